"""compare: a test of whether two sets are equivalent."""

import math
import sys
from pathlib import Path
from typing import Any

import click

from robustgen.cli.app import Section, command, echo, echo_text
from robustgen.cli.options import complete_operations, file_option, format_option, threads_option
from robustgen.display.text import format_path
from robustgen.errors import ConfigError


def _read_sample(ctx: click.Context, param: click.Parameter, value: str) -> int | None:
    """Return a number of images; None for ``all``."""
    if value == "all":
        return None
    if not value.isdecimal() or int(value) < 1:
        raise ConfigError(f"--sample: must be a number of images of at least 1, or all, not {value!r}")
    return int(value)


def _read_margins(texts: tuple[str, ...]) -> dict[str, float]:
    """Return ``psnr=0.2`` as {"psnr": 0.2}."""
    from robustgen.inspection.compare.equivalence import METRICS, PIXELS

    known, margins = {metric.key for metric in (*METRICS, PIXELS)}, dict[str, float]()
    for name, sign, value in (text.partition("=") for text in texts):
        if name not in known or not sign:
            raise ConfigError(f"--margin: must be METRIC=X, METRIC one of {', '.join(sorted(known))}")
        try:
            margins[name] = float(value)
        except ValueError:
            margins[name] = math.nan
        if not 0 < margins[name] < math.inf:
            raise ConfigError(f"--margin: {name}: must be a number above 0, not {value!r}")
    return margins


@command("compare", Section.SEE)
@click.argument("a")
@click.argument("b")
@click.option(
    "--sample",
    metavar="N",
    callback=_read_sample,
    default="200",
    help="Images per severity or perturbation, or all; default 200.",
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the choice of images; default 0.")
@click.option(
    "--corruptions",
    metavar="NAMES",
    shell_complete=complete_operations,
    help="Compare only these corruptions of C sets: a,b.",
)
@click.option("--severities", metavar="N,N", help="Compare only these severities, for instance 1,3.")
@click.option(
    "--perturbations",
    metavar="NAMES",
    shell_complete=complete_operations,
    help="Compare only these perturbations of P sets: a,b.",
)
@click.option("--partial", is_flag=True, help="Ignore corruptions present in only one of the two sets.")
@click.option("--clean", metavar="DIR", help="Prepared clean images for a set that has none.")
@click.option(
    "--margin",
    "margins",
    metavar="METRIC=X",
    multiple=True,
    help="Mean difference to tolerate, e.g. psnr=0.2, ssim=0.01, size=2; repeatable.",
)
@threads_option
@format_option("table", "json", "csv")
@file_option("--report", "Write an HTML page with charts and pictures.")
def compare(a: str, b: str, layout: str, report: Path | None, **flags: Any) -> None:
    """Test whether two sets are equivalent.

    A and B are two C or P sets of the same images, created by robustgen or published, as paths or URLs.
    Exits with 0 if they are identical or equivalent within the margin and nothing is missing, otherwise 1.
    """
    from robustgen.display.html import check_page_path
    from robustgen.files.storage import is_url, save
    from robustgen.inspection.compare.comparison import compare_sets
    from robustgen.inspection.compare.layouts import format_comparison
    from robustgen.inspection.compare.page import render_comparison
    from robustgen.inspection.compare.results import Scope
    from robustgen.settings import config

    if report:
        check_page_path(report, *(each for each in (a, b) if not is_url(each)))
    severities = (
        config.load(None, {"severities": flags["severities"]}).severities if flags["severities"] else ()
    )
    listed = [flags["corruptions"] or "", flags["perturbations"] or ""]
    names = tuple(name.strip() for name in ",".join(listed).split(",") if name.strip())
    margins = _read_margins(flags["margins"])
    scope = Scope(names, severities, flags["sample"], flags["seed"], flags["partial"], margins)
    found = compare_sets(a, b, scope=scope, clean=flags["clean"], jobs=flags["jobs"])
    echo_text(format_comparison(found, layout))
    if report:
        save(report, render_comparison(found), f"--report {report}")
        echo(format_path(report), err=True)
    sys.exit(0 if found.equivalent else 1)
