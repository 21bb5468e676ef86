"""preprocess: whole sets of images, put through what a model wants to see."""

from pathlib import Path
from typing import Any

import click

from robustgen.cli.group import main
from robustgen.cli.making import carry_out, run_options, taken_execution

_NOT_FOR_SETS = {
    *("--dataset", "--config", "--source", "--labels", "--edition", "--output", "--seed", "--subset"),
    *("--scale", "--frost-dir", "--motion-blur"),
}


@main.group()
def preprocess() -> None:
    """Put a whole set of images through a preprocessing."""


@preprocess.command()
@click.argument("source", metavar="SRC", type=click.Path(path_type=Path))
@click.argument("destination", metavar="DST", type=click.Path(path_type=Path))
@run_options(without=_NOT_FOR_SETS)
@click.option("--clip-limit", type=float, metavar="X", help="Of the contrast; default 2.")
@click.option("--tiles", type=int, metavar="N", help="Tiles along each side; default 8.")
@click.option("--quality", type=int, help="Of JPEG files; default 95.")
def clahe(source: Path, destination: Path, **flags: Any) -> None:
    """Equalise all images of SRC (CLAHE) into DST, under the same names."""
    from robustgen import preprocess as equalising
    from robustgen.generation import config

    execution = taken_execution(flags)
    given = flags | {"source": str(source), "output": str(destination)}
    carry_out(equalising.plan(config.load(None, given, equalising.Choices)), **execution)
