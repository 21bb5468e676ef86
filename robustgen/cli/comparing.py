"""compare and calibrate."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustgen.cli.group import main, named_config, shown
from robustgen.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from robustgen.generation.config import Config

_FORMATS = click.Choice(["table", "json", "csv"])


def _sample(ctx: click.Context, param: click.Parameter, value: str) -> int | None:
    """A number of images; None for ``all``."""
    if value == "all":
        return None
    if not value.isdecimal() or int(value) < 1:
        raise ConfigError(f"--sample: must be a number of images of at least 1, or all, not {value!r}")
    return int(value)


@main.command()
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option(
    "--sample", metavar="N", callback=_sample, default="200", help="Images of each arm, or all; default 200."
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Chooses the images; default 0.")
@click.option("--only", metavar="NAMES", help="Corruptions or perturbations to compare: a,b.")
@click.option("--severities", metavar="LEVELS", help="1-5 (default), or for instance 1,3.")
@click.option("--partial", is_flag=True, help="What only one of the two has does not count.")
@click.option(
    "--clean",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Prepared clean images, where a set has none.",
)
@click.option("--jobs", type=click.IntRange(1), help="Threads; default all cores.")
@click.option("--format", "layout", type=_FORMATS, default="table", help="Default table.")
@click.option(
    "--report",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write an HTML page with charts and pictures.",
)
def compare(a: Path, b: Path, layout: str, report: Path | None, **flags: Any) -> None:
    """Tell whether B is equivalent to A: two C or P sets of the same images, made here or published.

    Exits with 0 if nothing differs and nothing is missing, with 1 otherwise.
    """
    from robustgen.compare import comparison, page
    from robustgen.display import html
    from robustgen.generation import config
    from robustgen.output import files

    if report:
        html.check_place(report, a, b)
    severities = (
        config.load(None, {"severities": flags["severities"]}).severities if flags["severities"] else ()
    )
    names = tuple(name.strip() for name in (flags["only"] or "").split(",") if name.strip())
    choice = comparison.Choice(names, severities, flags["sample"], flags["seed"], flags["partial"])
    found = comparison.compare(a, b, choice=choice, clean=flags["clean"], jobs=flags["jobs"])
    layouts = {
        "table": page.as_text,
        "json": page.as_json,
        "csv": page.as_csv,
    }
    click.echo(layouts[layout](found))
    if report:
        files.save(report, page.as_page(found), f"--report {report}")
        click.echo(shown(report), err=True)
    sys.exit(0 if found.equivalent else 1)


@main.command()
@click.option("--dataset", metavar="NAME", help="A built-in config; default demo, photographs inside.")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="Your own YAML config.")
@click.option("--source", metavar="PATH", help="Folder or archive of the source images.")
@click.option("--labels", metavar="FILE", help="Labels file of a flat source folder.")
@click.option("--edition", metavar="NAME", help="Preparation and constants.")
@click.option("--scale", type=int, help="Constants of 224, 299, 64 or 32 instead of the edition's.")
@click.option("--corruptions", metavar="NAMES", help="common (default), extra, all, or names: a,b.")
@click.option("--severities", metavar="LEVELS", help="1-5 (default), or for instance 1,5.")
@click.option("--sample", type=click.IntRange(1), default=20, metavar="N", help="Images; default 20.")
@click.option("--seed", type=int, help="Chooses the images, and decides the draws; default 0.")
@click.option("--jobs", type=int, help="Threads; default all cores.")
@click.option("--format", "layout", type=_FORMATS, default="table", help="Default table.")
@click.option("--plot", metavar="FILE", type=click.Path(path_type=Path), help="A chart: .png, .svg, .pdf.")
@click.option(
    "--for-size", type=int, metavar="PIXELS", help="Propose constants for square images of this size."
)
@click.option("--output", metavar="FILE", type=click.Path(path_type=Path), help="For the YAML of --for-size.")
def calibrate(
    layout: str, plot: Path | None, for_size: int | None, output: Path | None, sample: int, **flags: Any
) -> None:
    """Measure how strong every corruption is, by MS-SSIM; or find constants for another image size.

    Without --dataset, --config or --source on photographs that are carried along.
    """
    path = named_config(flags.pop("dataset"), flags.pop("config_file"))
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
        click.echo(shown(plot), err=True)
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
        click.echo(shown(output), err=True)
    _end(proposal.failures)


def _end(failures: dict[str, str]) -> None:
    """Name what could not be read, and end with status 1 if there is any."""
    for key, reason in failures.items():
        click.echo(f"{key!r}: {reason}", err=True)
    sys.exit(1 if failures else 0)
