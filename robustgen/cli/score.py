"""score: the tables of the papers."""

from pathlib import Path
from typing import Any

import click

from robustgen.cli.app import Section, command, echo, echo_text
from robustgen.cli.options import PATH, file_option, format_option, table_width
from robustgen.display.text import format_path, format_size
from robustgen.errors import ConfigError


@command("score", Section.SCORE)
@click.argument("predictions", nargs=-1)
@click.option("--baseline", metavar="NAME", help="alexnet (default for ImageNet), none, or a FILE.")
@format_option("table", "markdown", "csv", "json", "latex")
@click.option("--partial", is_flag=True, help="Score incomplete sets too; print the missing parts.")
@click.option(
    "--difficulty", type=click.IntRange(1, 3), default=1, help="Difficulty of perturbations; default 1."
)
@click.option(
    "--intervals/--no-intervals", default=True, help="Compute 95 % bootstrap intervals; default on."
)
@click.option(
    "--plan",
    metavar="WIDTH",
    type=click.FloatRange(0, min_open=True),
    help="Print how many images a mean known to +- WIDTH needs, in the unit of the table.",
)
@click.option("--compare-with", type=click.Choice(["published"]), help="Compare with published models.")
@click.option("--verbose", is_flag=True, help="Print the papers' full tables at any width; default in pipes.")
@click.option("--dataset", metavar="DIR", help="Check the keys of the predictions against this set.")
@click.option(
    "--id", "known", metavar="FILE", multiple=True, type=PATH, help="Known classes, for --ood; repeatable."
)
@click.option(
    "--ood", "unknown", metavar="FILE", multiple=True, type=PATH, help="Unknown classes; repeatable."
)
@click.option(
    "--confidence",
    type=click.Choice(["msp", "max-logit", "energy"]),
    default="msp",
    help="Confidence for --ood; default msp: the maximum softmax probability.",
)
@click.option("--report", "page", metavar="FILE", type=PATH, help="Write one self-contained HTML page.")
@file_option("--plot", "Write a chart: .png, .svg, .pdf.")
def score(
    predictions: tuple[str, ...],
    layout: str,
    plot: Path | None,
    page: Path | None,
    plan: float | None,
    verbose: bool,
    known: tuple[Path, ...],
    unknown: tuple[Path, ...],
    confidence: str,
    **flags: Any,
) -> None:
    """Print the papers' tables for predictions.

    PREDICTIONS are folders written by predict or evaluate, one for each model.
    """
    if known or unknown:
        if predictions or not (known and unknown):
            raise ConfigError("--ood FILE needs --id FILE, and no folders of predictions")
        from robustgen.scores.unknown_classes import score_unknown_classes

        echo_text(score_unknown_classes(known, unknown, confidence).render(layout))
        return
    if not predictions:
        raise click.UsageError("Missing argument 'PREDICTIONS...'.")
    from robustgen.display import charts, html
    from robustgen.scores import plotting, score_page, scoring, terminal_tables

    if plot:
        charts.check_chart_path(plot)
    if page:
        html.check_page_path(page, *([flags["dataset"]] if flags["dataset"] else []))
    report = scoring.score(predictions, **flags)
    echo_text(
        "\n".join(report.describe_plan(plan))
        if plan
        else terminal_tables.render(report, layout, 0 if verbose else table_width())
    )
    for note in report.notes:
        echo(note, err=True)
    if plot:
        plotting.plot(report, plot)
    if page:
        size = score_page.write_page(report, page, predictions, flags["dataset"])
        echo(f"{format_path(page.absolute())}, {format_size(size)}", err=True)
