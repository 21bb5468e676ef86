"""filter a and filter o: natural adversarial examples."""

import sys
from typing import TYPE_CHECKING

from robustgen.cli.app import Command, echo, echo_failures, group
from robustgen.cli.execution import stop_in_order
from robustgen.cli.flags import takes
from robustgen.display.text import format_count, format_path, format_time
from robustgen.errors import ConfigError
from robustgen.related.settings import AdversarialFiltering, Filtering, OutlyingFiltering
from robustgen.settings.fields import spell
from robustgen.settings.models import Runtime

if TYPE_CHECKING:
    from robustgen.related.filtration.filtering import FilterResult
    from robustgen.related.filtration.rules import Rule

# What --accept alone needs.
_OF_ACCEPTING = frozenset({"candidates", "output", "accept", "overwrite"})


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
    robustgen filter a candidates --output out/a --accept accepted.txt
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
    robustgen filter o candidates --output out/o --accept accepted.txt
    """
    from robustgen.related.filtration.rules import Outlying

    _filter(Outlying(min_confidence=options.min_confidence), options, runtime)


def _filter(rule: "Rule", options: Filtering, runtime: Runtime) -> None:
    failures = 0
    if options.model:
        from robustgen.related.filtration.filtering import filter_images

        stop_in_order()
        summary = filter_images(rule, options, runtime)
        _show_steps(summary, options.output)
        failures = len(summary.failures)
    elif not options.accept:
        raise ConfigError("give --model, or --accept with the list of a review")
    elif idle := sorted((options.flagged | runtime.flagged) - _OF_ACCEPTING):
        raise ConfigError(f"--accept uses the existing shortlist; without --model, omit {spell(idle[0])}")
    if options.accept:
        from robustgen.related.filtration.accepting import accept

        done = accept(rule, options)
        what = f"{format_count(done.files, 'image')} of {format_count(done.classes, 'folder')}"
        echo(f"{what} {'accepted' if done.made else 'were there already'}, in {format_path(done.root)}")
    sys.exit(1 if failures else 0)


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
