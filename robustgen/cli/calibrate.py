"""calibrate: how strong corruptions are, and constants for other image sizes."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustgen.cli.app import Section, command
from robustgen.cli.options import (
    corruption_options,
    edition_option,
    file_option,
    format_option,
    resolve_config,
    scale_option,
    source_options,
)
from robustgen.display.text import format_path
from robustgen.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from robustgen.generation.config import Config


@command("calibrate", Section.SEE)
@source_options
@edition_option
@scale_option
@corruption_options
@click.option("--sample", type=click.IntRange(1), default=20, metavar="N", help="Images; default 20.")
@click.option("--seed", type=int, help="Chooses the images, and decides the draws; default 0.")
@click.option("--jobs", type=int, help="Threads; default all cores.")
@format_option("table", "json", "csv")
@file_option("--plot", "A chart: .png, .svg, .pdf.")
@click.option(
    "--for-size", type=int, metavar="PIXELS", help="Propose constants for square images of this size."
)
@file_option("--output", "For the YAML of --for-size.")
def calibrate(
    layout: str, plot: Path | None, for_size: int | None, output: Path | None, sample: int, **flags: Any
) -> None:
    """Measure how strong every corruption is.

    By MS-SSIM, that is; or find constants for another image size. Without --dataset, --config or --source on
    photographs that are carried along.
    """
    path = resolve_config(flags.pop("dataset"), flags.pop("config_file"))
    _check_calibration(flags, plot, for_size, output)
    from robustgen.calibrate import strengths
    from robustgen.display import charts
    from robustgen.generation import config

    if plot:
        charts.check(plot)
    if not (path or flags["source"]):
        path = config.dataset_file("demo")
    chosen = config.load(path, flags)
    if for_size is not None:
        _propose(chosen, for_size, sample, layout, output)
        return
    measured = strengths.calibrate(chosen, sample)
    from robustgen.calibrate import page as report

    layouts = {"table": report.as_text, "json": report.as_json, "csv": report.as_csv}
    click.echo(layouts[layout](measured))
    if plot:
        report.plot(measured, plot)
        click.echo(format_path(plot), err=True)
    _end(measured.failures)


def _check_calibration(
    flags: dict[str, Any], plot: Path | None, size: int | None, output: Path | None
) -> None:
    if (size is None) != (output is None):
        raise ConfigError("--for-size and --output go together")
    _check_file("--output", output)
    _check_file("--plot", plot)
    if size is not None and plot:
        raise ConfigError("--plot does not go with --for-size: it draws the strengths of an edition")
    for name in ("edition", "scale"):
        if size is not None and flags[name]:
            raise ConfigError(f"--{name} does not go with --for-size, which matches the edition imagenet")


def _check_file(flag: str, path: Path | None) -> None:
    if path and path.is_dir():
        raise OutputError(f"{flag} {path}: is a folder")


def _propose(config: "Config", size: int, sample: int, layout: str, output: Path | None) -> None:
    from robustgen.calibrate import matching
    from robustgen.calibrate import page as report
    from robustgen.output import files

    proposal = matching.propose(config, size, sample)
    layouts = {
        "table": report.proposal_as_text,
        "json": report.proposal_as_json,
        "csv": report.proposal_as_csv,
    }
    click.echo(layouts[layout](proposal))
    if output:
        files.save(output, report.proposal_as_yaml(proposal), f"--output {output}")
        click.echo(format_path(output), err=True)
    _end(proposal.failures)


def _end(failures: dict[str, str]) -> None:
    """Name what could not be read, and end with status 1 if there is any."""
    for key, reason in failures.items():
        click.echo(f"{key!r}: {reason}", err=True)
    sys.exit(1 if failures else 0)
