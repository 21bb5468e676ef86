"""score: the tables of the papers."""

from pathlib import Path
from typing import Any

import click

from robustgen.cli.app import Section, command, echo, echo_text
from robustgen.cli.options import PATH, file_option, format_option


@command("score", Section.SCORE)
@click.argument("predictions", nargs=-1, required=True, type=PATH)
@click.option("--baseline", metavar="NAME", help="alexnet (default for ImageNet), none, or a FILE.")
@format_option("table", "markdown", "csv", "json", "latex")
@click.option("--partial", is_flag=True, help="Score incomplete sets too, and say what is missing.")
@click.option("--difficulty", type=click.IntRange(1, 3), default=1, help="Of perturbations; default 1.")
@click.option("--intervals/--no-intervals", default=True, help="95 % bootstrap intervals; default on.")
@click.option(
    "--plan",
    metavar="WIDTH",
    type=click.FloatRange(0, min_open=True),
    help="How many images a mean known to +- WIDTH takes, in the unit of the table.",
)
@click.option("--dataset", metavar="DIR", type=PATH, help="Check the keys against it.")
@file_option("--plot", "Draw a chart: .png, .svg, .pdf.")
def score(
    predictions: tuple[Path, ...], layout: str, plot: Path | None, plan: float | None, **flags: Any
) -> None:
    """Print the papers' tables for predictions.

    PREDICTIONS are folders that predict wrote, one for each model.
    """
    from robustgen.display import charts
    from robustgen.evaluation import plotting, scoring

    if plot:
        charts.check_chart_path(plot)
    report = scoring.score(predictions, **flags)
    echo_text("\n".join(report.describe_plan(plan)) if plan else report.render(layout))
    for note in report.notes:
        echo(note, err=True)
    if plot:
        plotting.plot(report, plot)
