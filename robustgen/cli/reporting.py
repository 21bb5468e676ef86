"""report."""

from pathlib import Path

import click

from robustgen.cli.group import in_bytes, main, shown


@main.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--output", metavar="FILE", type=click.Path(path_type=Path), help="Default DIRECTORY-report.html."
)
@click.option("--images", type=click.IntRange(1, 12), default=3, help="How many to show; default 3.")
def report(directory: Path, output: Path | None, images: int) -> None:
    """Write an HTML page about DIRECTORY, an output of make-c or make-p or a published set."""
    from robustgen.report import page as summary

    page, size = summary.report(directory, output, images)
    click.echo(f"{shown(page)}, {in_bytes(size)}")
