"""run: execution of a plan from a file."""

from robustgen.cli.app import command
from robustgen.cli.execution import WrittenSet
from robustgen.cli.flags import takes
from robustgen.settings.running import PlanRun


@command("run")
@takes(running=PlanRun)
def run(running: PlanRun) -> WrittenSet:
    """Run a plan that a make command wrote with --plan.

    Examples
    --------
    robustgen run plan.json
    robustgen run plan.json --source /mnt/val --output /mnt/out --jobs 8
    """
    from robustgen.lab.plans import read_plan

    plan = read_plan(running.plan_file, source=running.source, output=running.output, jobs=running.jobs)
    return WrittenSet(plan, running)
