"""filter-a and filter-o: natural adversarial examples."""

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustgen.cli.app import Section, command, echo
from robustgen.cli.execution import stop_in_order
from robustgen.cli.options import (
    PATH,
    PREPROCESSING,
    combine,
    inference_options,
    pop_runtime,
    preprocessing_options,
)
from robustgen.display.text import format_count, format_path, format_time
from robustgen.errors import ConfigError

if TYPE_CHECKING:
    from robustgen.related.filtration.filtering import FilterResult
    from robustgen.related.filtration.rules import Rule

_MOST_NAMED = 10


class _Probability(click.FloatRange):
    """A number from 0 to 1; rejects NaN, which click accepts."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number from 0 to 1.", param, ctx)
        return number


_PROBABILITY = _Probability(0, 1)


_of_both = combine(
    click.argument("candidates"),
    click.option(
        "--model",
        "models",
        metavar="NAME",
        multiple=True,
        help="model.onnx, model.pt2, timm:NAME[@FILE], ...; repeatable.",
    ),
    click.option(
        "--output", metavar="DIR", required=True, help="Folder or URL for the shortlist and the page."
    ),
    click.option(
        "--classes",
        metavar="FILE",
        multiple=True,
        help="Class folders in the order of the outputs; once, or once per model.",
    ),
    click.option("--only", metavar="FILE", type=PATH, help="The relevant classes, one per line."),
    click.option("--names", metavar="FILE", type=PATH, help="Class names for the page: n01440764 tench ..."),
    click.option(
        "--preprocessing",
        metavar="NAME",
        multiple=True,
        help="imagenet (default), cifar-10, cifar-100, or a YAML file; once, or once per model.",
    ),
    preprocessing_options,
    click.option(
        "--resize",
        type=click.IntRange(1),
        metavar="N",
        help="Shorter side before the crop; default input size / 0.875.",
    ),
    click.option(
        "--outputs",
        type=click.Choice(["logits", "probabilities"]),
        help="Kind of the models' outputs; default: detected.",
    ),
    click.option(
        "--batch", type=click.IntRange(1), metavar="N", help="Images per batch; default 2, for filter-o 16."
    ),
    inference_options,
    click.option("--limit", type=click.IntRange(1), metavar="N", help="Use only the first N candidates."),
    click.option("--overwrite", is_flag=True, help="Replace results created with different settings."),
    click.option(
        "--accept",
        "lists",
        metavar="LIST",
        type=PATH,
        multiple=True,
        help="Write the final tree of the images in this list from the review page; repeatable.",
    ),
)


@command("filter-a", Section.FAMILY)
@_of_both
@click.option(
    "--max-confidence", type=_PROBABILITY, metavar="P", help="Limit for the true class; default 0.15."
)
@click.option(
    "--per-confusion", type=click.IntRange(1), metavar="N", help="Images per confused pair; default 15."
)
def filter_a(max_confidence: float | None, per_confusion: int | None, **flags: Any) -> None:
    """Find images as in ImageNet-A.

    Finds images of known classes that the models do not recognise. CANDIDATES has a folder of images for each
    class, named like the model's classes.
    """
    from robustgen.related.filtration.rules import Adversarial

    own = _drop_missing(max_confidence=max_confidence, per_confusion=per_confusion)
    _filter(Adversarial(**own), own, flags, batch=2)


@command("filter-o", Section.FAMILY)
@_of_both
@click.option(
    "--min-confidence", type=_PROBABILITY, metavar="P", help="Limit for the prediction; default 0.9."
)
def filter_o(min_confidence: float | None, **flags: Any) -> None:
    """Find images as in ImageNet-O.

    Finds images of unknown classes that the models take for known ones. CANDIDATES has a folder of images for
    each class.
    """
    from robustgen.related.filtration.rules import Outlying

    own = _drop_missing(min_confidence=min_confidence)
    _filter(Outlying(**own), own, flags, batch=16)


def _drop_missing(**flags: Any) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if value not in (None, ())}


def _filter(rule: "Rule", own: dict[str, Any], flags: dict[str, Any], batch: int) -> None:
    candidates, output = flags.pop("candidates"), flags.pop("output")
    lists, overwrite = flags.pop("lists"), flags.pop("overwrite")
    failures = 0
    if flags["models"] or not lists:
        failures = _run(rule, candidates, output, _drop_missing(**flags), overwrite, batch)
    elif idle := {**own, **_drop_missing(**flags)}:
        name = next(iter(idle)).replace("_", "-")
        raise ConfigError(f"--accept uses the existing shortlist; without --model, omit --{name}")
    if lists:
        _accept(rule, candidates, output, lists, overwrite)
    sys.exit(1 if failures else 0)


def _run(
    rule: "Rule", candidates: str, output: str, flags: dict[str, Any], overwrite: bool, batch: int
) -> int:
    """Write the shortlist and print a summary; return the number of unusable images."""
    if "models" not in flags:
        raise ConfigError("give --model, or --accept with the list of a review")
    from robustgen.related.filtration.ensemble import EnsembleOptions
    from robustgen.related.filtration.filtering import filter_images

    stop_in_order()
    own = {name: flags.pop(name, None) for name in PREPROCESSING}
    flags["runtime"] = pop_runtime(flags)
    run: dict[str, Any] = {name: flags.pop(name) for name in ("limit", "names") if name in flags}
    run["batch"] = flags.pop("batch", batch)
    if "resize" in flags:
        flags["shorter"] = flags.pop("resize")
    summary = filter_images(
        rule, candidates, EnsembleOptions(flags=own, **flags), output, overwrite=overwrite, **run
    )
    _show(summary, output)
    return len(summary.failures)


def _show(summary: "FilterResult", output: str) -> None:
    width = max(len(label) for label, _ in summary.steps)
    for label, images in summary.steps:
        echo(f"{label:{width}s}  {images:9d}")
    if summary.passed_over:
        echo(f"{format_count(summary.passed_over, 'image')} of other classes skipped (--only)")
    asked = f"{format_count(summary.made, 'image')} predicted in {format_time(summary.seconds)}"
    echo(f"{asked}, {summary.kept} were there already")
    more = f" to {summary.pages[-1].rpartition('/')[2]}" if len(summary.pages) > 1 else ""
    echo(f"review the images in a browser: {format_path(summary.pages[0])}{more}")
    if summary.failures:
        failed = format_count(len(summary.failures), "image")
        echo(f"{failed} unusable, listed in {format_path(f'{output}/errors.jsonl')}:", err=True)
        for key, reason in sorted(summary.failures.items())[:_MOST_NAMED]:
            echo(f"  {key!r}: {reason}", err=True)


def _accept(rule: "Rule", candidates: str, output: str, lists: tuple[Path, ...], overwrite: bool) -> None:
    from robustgen.related.filtration.accepting import accept

    done = accept(rule, candidates, output, lists, overwrite)
    what = f"{format_count(done.files, 'image')} of {format_count(done.classes, 'folder')}"
    echo(f"{what} {'accepted' if done.made else 'were there already'}, in {format_path(done.root)}")
