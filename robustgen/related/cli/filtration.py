"""filter a and filter o: natural adversarial examples."""

import sys
from typing import TYPE_CHECKING

from robustgen.cli.app import Command, echo, echo_failures, group
from robustgen.cli.execution import stop_in_order
from robustgen.cli.flags import takes
from robustgen.display.text import format_count, format_path, format_time
from robustgen.related.settings import AdversarialFiltering, Filtering, OutlyingFiltering
from robustgen.settings.models import Runtime

if TYPE_CHECKING:
    from robustgen.related.filtration.filtering import FilterResult
    from robustgen.related.filtration.rules import Rule


@group("filter")
def filter_() -> None:
    """Find images as in ImageNet-A and ImageNet-O.

    Examples
    --------
    robustgen filter a candidates --model resnet50.onnx --classes imagenet --output out/a
    robustgen filter o --help
    """


@filter_.command(cls=Command, name="a")
@takes(options=AdversarialFiltering, runtime=Runtime)
def filter_a(options: AdversarialFiltering, runtime: Runtime) -> None:
    """Find images as in ImageNet-A.

    Finds images of known classes that the models do not recognise. CANDIDATES has a folder of images for each
    class, named like the model's classes.

    Examples
    --------
    robustgen filter a candidates --model resnet50.onnx --classes imagenet --output out/a
    robustgen filter a candidates --model vit.onnx --classes imagenet --max-confidence 0.1 --output out/b
    """
    from robustgen.related.filtration.rules import Adversarial

    rule = Adversarial(max_confidence=options.max_confidence, per_confusion=options.per_confusion)
    _filter(rule, options, runtime)


@filter_.command(cls=Command, name="o")
@takes(options=OutlyingFiltering, runtime=Runtime)
def filter_o(options: OutlyingFiltering, runtime: Runtime) -> None:
    """Find images as in ImageNet-O.

    Finds images of unknown classes that the models take for known ones. CANDIDATES has a folder of images for
    each class.

    Examples
    --------
    robustgen filter o candidates --model resnet50.onnx --classes imagenet --output out/o
    robustgen filter o candidates --model vit.onnx --classes imagenet --min-confidence 0.8 --output out/p
    """
    from robustgen.related.filtration.rules import Outlying

    _filter(Outlying(min_confidence=options.min_confidence), options, runtime)


def _filter(rule: "Rule", options: Filtering, runtime: Runtime) -> None:
    from robustgen.related.filtration.filtering import filter_images

    stop_in_order()
    summary = filter_images(rule, options, runtime)
    _show_steps(summary, options.output)
    sys.exit(1 if summary.failures else 0)


def _show_steps(summary: "FilterResult", output: str) -> None:
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
        echo_failures(sorted(summary.failures.items()))
