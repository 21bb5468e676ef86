"""run: execution of a plan from a file."""

from typing import Any

import click

from robustgen.cli.app import Section, command
from robustgen.cli.execution import take_execution
from robustgen.cli.options import output_option, run_options, shard_options


@command("run", Section.MAKE)
@click.argument("plan")
@click.option("--source", metavar="PATH", help="Path or URL of the source on this machine, if different.")
@output_option
@run_options
@shard_options
def run(plan: str, **flags: Any) -> None:
    """Run a plan that a make command wrote with --plan."""
    execution = take_execution(flags)
    from robustgen.plans import read_plan

    jobs = None if flags["jobs"] == "all" else flags["jobs"]
    execution.carry_out(read_plan(plan, source=flags["source"], output=flags["output"], jobs=jobs))
