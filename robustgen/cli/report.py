"""report: one HTML page about a finished set."""

from pathlib import Path

import click

from robustgen.cli.app import Section, command, echo
from robustgen.cli.options import file_option
from robustgen.display.text import format_path, format_size


@command("report", Section.SEE)
@click.argument("directory")
@file_option("--output", "Output file; default DIRECTORY-report.html.")
@click.option("--images", type=click.IntRange(1, 12), default=3, help="Number of images; default 3.")
def report(directory: str, output: Path | None, images: int) -> None:
    """Write an HTML page about a finished set.

    DIRECTORY is an output of make-c or make-p, or a published set, as a path or a URL.
    """
    from robustgen.inspection.report.page import write_report

    written, size = write_report(directory, output, images)
    echo(f"{format_path(written)}, {format_size(size)}")
