"""warm: compilation of the loops in advance."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from robustgen.cli.app import command, echo
from robustgen.cli.flags import takes
from robustgen.display.text import format_count
from robustgen.errors import MissingDependencyError
from robustgen.execution.progress import Progress, Reporter
from robustgen.imaging.kernels.loop_cache import loop_folder
from robustgen.settings.inspecting import Warming

if TYPE_CHECKING:
    from robustgen.dataset.plan import Plan

# One edition on each side of the thresholds that choose between loops.
_EDITIONS = {"imagenet": 224, "cifar-10": 32}


@dataclass(frozen=True)
class WarmingJob:
    """One corruption or perturbation, as a job for an executor."""

    kind: str
    name: str

    @property
    def is_done(self) -> bool:
        """Return whether the loops of the operation are in the cache."""
        return self._mark.exists()

    @property
    def _mark(self) -> Path:
        return loop_folder() / f"{self.kind}-{self.name}.done"

    def run(self, reporter: Reporter) -> tuple["WarmingJob", str]:
        """Apply the operation to small images; return the reason if that fails, else an empty text."""
        import numpy as np

        from robustgen import api

        try:
            for edition, side in _EDITIONS.items():
                image = np.random.default_rng(0).integers(0, 256, (side, side, 3), np.uint8)
                for level in (1, 5) if self.kind == "corruption" else (1,):
                    if self.kind == "corruption":
                        api.corrupt(image, self.name, level, edition=edition, rng=0)
                    else:
                        api.perturb(image, self.name, edition=edition, rng=0)
        except MissingDependencyError as error:
            return self, str(error)
        self._mark.touch()
        return self, ""


def compile_loops(jobs: Iterable[WarmingJob], workers: int) -> list[str]:
    """Carry out `jobs` in `workers` processes, and return the reasons of those that failed."""
    from robustgen.execution import carry_out

    reasons = dict[str, None]()
    with Progress() as progress:
        for _, reason in carry_out({job: job for job in jobs}, lambda done: done[0], workers, progress):
            progress.finish(1)
            reasons |= {reason: None} if reason else {}
    return [*reasons]


def compile_for(plan: "Plan") -> None:
    """Divide the loops of `plan` that are not in the cache among its workers.

    Otherwise all workers need the same loop at the same time, and wait for the one that compiles it.
    """
    from robustgen.benchmarks.corruptions import CORRUPTIONS
    from robustgen.benchmarks.perturbations import PERTURBATIONS
    from robustgen.dataset.recipes import BenchmarkRecipe
    from robustgen.execution import count_cores

    workers = plan.jobs or count_cores()
    if workers == 1 or not isinstance(plan.recipe, BenchmarkRecipe):
        return
    operations = {"c": ("corruption", CORRUPTIONS), "p": ("perturbation", PERTURBATIONS)}
    kind, known = operations[plan.recipe.benchmark.kind]
    jobs = [
        WarmingJob(kind, name) for name in dict.fromkeys(each.name for each in plan.variants) if name in known
    ]
    if jobs := [job for job in jobs if not job.is_done]:
        compile_loops(jobs, workers)


@command("warm")
@takes(options=Warming)
def warm(options: Warming) -> None:
    """Compile the loops in advance.

    Otherwise the first run of make-c or make-p compiles them. numba caches them. A container image
    that runs this command needs NUMBA_CACHE_DIR set to a folder inside it.
    """
    from robustgen.benchmarks.corruptions import CORRUPTIONS
    from robustgen.benchmarks.perturbations import PERTURBATIONS
    from robustgen.execution import count_cores

    jobs = [WarmingJob("corruption", name) for name in CORRUPTIONS]
    jobs += [WarmingJob("perturbation", name) for name in PERTURBATIONS]
    started = time.monotonic()
    for reason in compile_loops(jobs, options.jobs or count_cores()):
        echo(reason, err=True)
    echo(f"{format_count(len(jobs), 'operation')} in {time.monotonic() - started:.1f} s")
