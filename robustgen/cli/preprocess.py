"""preprocess: CLAHE for whole sets."""

from typing import Any

import click

from robustgen.cli.app import Command, Section, group
from robustgen.cli.execution import take_execution
from robustgen.cli.options import run_options, shard_options


@group("preprocess", Section.FAMILY)
def preprocess() -> None:
    """Apply CLAHE to a data set."""


@preprocess.command(cls=Command)
@click.argument("source", metavar="SRC")
@click.argument("destination", metavar="DST")
@click.option("--clip-limit", type=float, metavar="X", help="Limit of the contrast; default 2.")
@click.option("--tiles", type=int, metavar="N", help="Tiles along each side; default 8.")
@click.option("--quality", type=int, help="Quality of JPEG files; default 95.")
@click.option("--limit", type=int, metavar="N", help="Use only the first N images.")
@run_options
@shard_options
def clahe(source: str, destination: str, **flags: Any) -> None:
    """Apply CLAHE to all images of SRC and write them to DST, under the same names."""
    from robustgen.related.clahe_sets import ClaheChoices, plan_clahe
    from robustgen.settings import config

    execution = take_execution(flags)
    given = flags | {"source": source, "output": destination}
    execution.carry_out(plan_clahe(config.load_as(ClaheChoices, None, given)))
