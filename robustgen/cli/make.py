"""make-c and make-p: the two benchmarks; run: execution of a plan from a file."""

from typing import TYPE_CHECKING

from robustgen.cli.app import command, echo
from robustgen.cli.execution import PlannedSet
from robustgen.cli.flags import takes
from robustgen.settings.config import Config
from robustgen.settings.fields import Part
from robustgen.settings.running import PlanRun, Running

if TYPE_CHECKING:
    from robustgen.pixels.benchmarks.kinds import Kind


_OUTPUT = "output folder or URL; default out/{{dataset}}-{}, named after --dataset or the source"


@command("make-c")
@takes("c", parts=Part, says={"output": _OUTPUT.format("c")}, config=Config, running=Running)
def make_c(config: Config, running: Running) -> PlannedSet:
    """Write ImageNet-C: corrupted copies of every image.

    Examples
    --------
    robustgen make-c --dataset imagenet --source /data/imagenet/val
    robustgen make-c --dataset folder --source photos --corruptions fog,snow --severities 1,3
    """
    return _plan("c", config, running)


@command("make-p")
@takes("p", parts=Part, says={"output": _OUTPUT.format("p")}, config=Config, running=Running)
def make_p(config: Config, running: Running) -> PlannedSet:
    """Write ImageNet-P: perturbation sequences of every image.

    Examples
    --------
    robustgen make-p --dataset imagenet --source /data/imagenet/val
    robustgen make-p --dataset folder --source photos --perturbations tilt,snow --limit 10
    """
    return _plan("p", config, running)


def _plan(kind: "Kind", config: Config, running: Running) -> PlannedSet:
    config.require_source()
    if not (running.dry_run or running.write_plan or running.on):
        _begin_nursery(config.resolve_output(kind), config.jobs)
    from robustgen.pixels.benchmarks.corruptions import ALL_CORRUPTIONS
    from robustgen.sets.dataset.planning import plan_benchmark

    plan = plan_benchmark(config, kind, overwrite=running.overwrite)
    for name in config.corruptions if plan.mirror else ():
        if ALL_CORRUPTIONS[name].displaces:
            echo(f"{name} moves pixels, but boxes and masks stay in place", err=True)
    return PlannedSet(plan, running)


def _begin_nursery(output: str, jobs: int | None) -> None:
    """Have what workers need loaded while a new set is planned; a finished one may have nothing to do."""
    from robustgen.files.set_files import MANIFEST
    from robustgen.files.storage import open_store
    from robustgen.sets.executors import count_cores
    from robustgen.sets.executors.workers import begin_nursery

    store = open_store(output)
    if store.is_local and not store.exists(MANIFEST) and (jobs or count_cores()) > 1:
        begin_nursery()


@command("run")
@takes(running=PlanRun)
def run(running: PlanRun) -> PlannedSet:
    """Run a plan that a make command wrote with --write-plan.

    Examples
    --------
    robustgen run plan.json
    robustgen run plan.json --source /mnt/val --output /mnt/out --jobs 8
    """
    from robustgen.lab.plans import read_plan

    plan = read_plan(running.plan_file, source=running.source, output=running.output, jobs=running.jobs)
    return PlannedSet(plan, running)
