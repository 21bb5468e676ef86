"""calibrate: the strength of corruptions, and constants for other image sizes."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustgen.cli.app import Section, command, echo, echo_text
from robustgen.cli.options import (
    corruption_options,
    edition_option,
    file_option,
    format_option,
    resolve_config,
    scale_option,
    source_options,
    threads_option,
)
from robustgen.display.text import format_path
from robustgen.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from robustgen.settings.config import Config


@command("calibrate", Section.SEE)
@source_options
@edition_option
@scale_option
@corruption_options
@click.option(
    "--sample", type=click.IntRange(1), default=20, metavar="N", help="Number of images; default 20."
)
@click.option("--seed", type=int, help="Seed of the choice of images and of the draws; default 0.")
@threads_option
@format_option("table", "json", "csv")
@file_option("--plot", "Write a chart: .png, .svg, .pdf.")
@click.option(
    "--for-size", type=int, metavar="PIXELS", help="Propose constants for square images of this size."
)
@file_option("--output", "YAML file for the constants of --for-size.")
def calibrate(
    layout: str, plot: Path | None, for_size: int | None, output: Path | None, sample: int, **flags: Any
) -> None:
    """Measure the strength of every corruption.

    The strength is the MS-SSIM to the clean image. --for-size searches for constants for another size.
    Without --dataset, --config or --source, bundled photographs are used.
    """
    path = resolve_config(flags.pop("dataset"), flags.pop("config_file"))
    _check_calibration(flags, plot, for_size, output)
    from robustgen.display.charts import check_chart_path
    from robustgen.inspection.calibrate.chart import plot_strengths
    from robustgen.inspection.calibrate.layouts import format_calibration
    from robustgen.inspection.calibrate.strengths import measure_strengths
    from robustgen.settings import config

    if plot:
        check_chart_path(plot)
    if not (path or flags["source"]):
        path = config.dataset_file("demo")
    choices = config.load(path, flags)
    if for_size is not None:
        _propose(choices, for_size, sample, layout, output)
        return
    measured = measure_strengths(choices, sample)
    echo_text(format_calibration(measured, layout))
    if plot:
        plot_strengths(measured, plot)
        echo(format_path(plot), err=True)
    _end(measured.failures)


def _check_calibration(
    flags: dict[str, Any], plot: Path | None, size: int | None, output: Path | None
) -> None:
    if (size is None) != (output is None):
        raise ConfigError("--for-size and --output must be given together")
    _check_file("--output", output)
    _check_file("--plot", plot)
    if size is not None and plot:
        raise ConfigError("--plot cannot be combined with --for-size: it draws the strengths of an edition")
    for name in ("edition", "scale"):
        if size is not None and flags[name]:
            raise ConfigError(f"--{name} cannot be combined with --for-size, which uses the edition imagenet")


def _check_file(flag: str, path: Path | None) -> None:
    if path and path.is_dir():
        raise OutputError(f"{flag} {path}: is a folder")


def _propose(config: "Config", size: int, sample: int, layout: str, output: Path | None) -> None:
    from robustgen.files.storage import save
    from robustgen.inspection.calibrate.layouts import format_proposal, write_config
    from robustgen.inspection.calibrate.matching import propose_constants

    proposal = propose_constants(config, size, sample)
    echo_text(format_proposal(proposal, layout))
    if output:
        save(output, write_config(proposal), f"--output {output}")
        echo(format_path(output), err=True)
    _end(proposal.failures)


def _end(failures: dict[str, str]) -> None:
    """Print failed images, and exit with status 1 if there are any."""
    for key, reason in failures.items():
        echo(f"{key!r}: {reason}", err=True)
    sys.exit(1 if failures else 0)
