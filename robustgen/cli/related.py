"""Related benchmarks: filter-a and filter-o, natural adversarial examples; make-icons; make-subtypes."""

import sys
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from robustgen.cli.app import command, echo, echo_failures
from robustgen.cli.execution import PlannedSet, stop_in_order
from robustgen.cli.flags import takes
from robustgen.display.text import format_count, format_path, format_size, format_time
from robustgen.errors import ConfigError
from robustgen.settings.fields import spell
from robustgen.settings.models import Runtime
from robustgen.settings.related import (
    AdversarialFiltering,
    Filtering,
    IconChoices,
    OutlyingFiltering,
    SubtypeChoices,
)
from robustgen.settings.running import Running

if TYPE_CHECKING:
    from robustgen.lab.related.filtration.filtering import FilterResult
    from robustgen.lab.related.filtration.rules import Rule
    from robustgen.lab.related.icons.icon_set import IconPlan
    from robustgen.lab.related.subtypes.splitting import SplitSummary

# What --accept alone needs.
_OF_ACCEPTING = frozenset({"candidates", "output", "accept", "overwrite"})


@command("filter-a")
@takes(options=AdversarialFiltering, runtime=Runtime)
def filter_a(options: AdversarialFiltering, runtime: Runtime) -> None:
    """Find images as in ImageNet-A.

    Finds images of known classes that the models do not recognise. CANDIDATES has a folder of images for each
    class, named like the model's classes.

    Examples
    --------
    robustgen filter-a candidates --model resnet50.onnx --classes wnids.txt --output out/a
    robustgen filter-a candidates --output out/a --accept accepted.txt
    """
    from robustgen.lab.related.filtration.rules import Adversarial

    rule = Adversarial(max_confidence=options.max_confidence, per_confusion=options.per_confusion)
    _filter(rule, options, runtime)


@command("filter-o")
@takes(options=OutlyingFiltering, runtime=Runtime)
def filter_o(options: OutlyingFiltering, runtime: Runtime) -> None:
    """Find images as in ImageNet-O.

    Finds images of unknown classes that the models take for known ones. CANDIDATES has a folder of images for
    each class.

    Examples
    --------
    robustgen filter-o candidates --model resnet50.onnx --classes wnids.txt --output out/o
    robustgen filter-o candidates --output out/o --accept accepted.txt
    """
    from robustgen.lab.related.filtration.rules import Outlying

    _filter(Outlying(min_confidence=options.min_confidence), options, runtime)


def _filter(rule: "Rule", options: Filtering, runtime: Runtime) -> None:
    failures = 0
    if options.model:
        failures = _shortlist(rule, options, runtime)
    elif not options.accept:
        raise ConfigError("give --model, or --accept with the list of a review")
    elif idle := sorted((options.flagged | runtime.flagged) - _OF_ACCEPTING):
        raise ConfigError(f"--accept uses the existing shortlist; without --model, omit {spell(idle[0])}")
    if options.accept:
        _accept(rule, options)
    sys.exit(1 if failures else 0)


def _shortlist(rule: "Rule", options: Filtering, runtime: Runtime) -> int:
    """Write the shortlist and print a summary; return the number of unusable images."""
    from robustgen.lab.related.filtration.filtering import filter_images

    stop_in_order()
    summary = filter_images(rule, options, runtime)
    _show_steps(summary, options.output)
    return len(summary.failures)


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
        echo_failures(summary.failures)


def _accept(rule: "Rule", options: Filtering) -> None:
    from robustgen.lab.related.filtration.accepting import accept

    done = accept(rule, options)
    what = f"{format_count(done.files, 'image')} of {format_count(done.classes, 'folder')}"
    echo(f"{what} {'accepted' if done.made else 'were there already'}, in {format_path(done.root)}")


@command("make-icons")
@takes(
    hide=("dataset", "config", "source", "split", "labels", "levels", "limit", "sample", "subset", "seed"),
    choices=IconChoices,
    running=Running,
)
def make_icons(choices: IconChoices, running: Running) -> PlannedSet | None:
    """Write icons of several styles, as in Icons-50.

    Examples
    --------
    robustgen make-icons --style google=DIR --style twitter=DIR --output icons
    robustgen make-icons --style google=DIR --style twitter=DIR --size 128 --output icons-128
    """
    from robustgen.lab.related.icons import icon_set

    planned = icon_set.plan_icons(choices)
    if running.dry_run:
        _show_styles(planned)
        _show_classes(planned)
        return None
    return PlannedSet(planned, running, partial(_show_styles, planned))


def _show_styles(plan: "IconPlan") -> None:
    made = Counter(plan.style_of().values())
    duplicates = Counter(plan.style(key) for key in plan.duplicates())
    for style in plan.styles:
        package = (
            f"{style.package} {style.version or ''}".strip() if style.package else format_path(style.root)
        )
        parts = [
            format_count(made[style.name], "icon"),
            format_count(duplicates[style.name], "duplicate"),
            f"{len(plan.choice.lacking[style.name])} emoji missing",
        ]
        echo(f"{style.name:10} {package} ({style.licence}): {', '.join(parts)}")


def _show_classes(plan: "IconPlan") -> None:
    from robustgen.sets.dataset.estimate import estimate

    names = [style.name for style in plan.styles]
    width = max(map(len, plan.counts()))
    echo("  ".join([" " * width, *names]))
    for name, counts in plan.counts().items():
        columns = [f"{counts.get(style, 0):{len(style)}}" for style in names]
        echo("  ".join([f"{name:{width}}", *columns]))
    cost = estimate(plan)
    echo(f"output {format_path(plan.store.location)}: {cost.outputs} icons, {len(plan.refused)} refused")
    judged = format_count(cost.images, "icon")
    echo(f"about  {format_size(cost.size)}, {format_time(cost.seconds)} (estimated from {judged})")


@command("make-subtypes")
@takes(options=SubtypeChoices)
def make_subtypes(options: SubtypeChoices) -> None:
    """List seen and unseen subtypes of broad types.

    Splits the subtypes of 25 types by WordNet. IMAGENET22K has a folder for each noun.

    Examples
    --------
    robustgen make-subtypes /data/imagenet22k --output subtypes
    robustgen make-subtypes /data/imagenet22k --links --output subtypes
    """
    from robustgen.lab.related.subtypes import splitting

    summary = splitting.write_lists(options.imagenet22k, options.wordnet, options.output, links=options.links)
    for split in splitting.SPLITS:
        _show_split(summary, split)
    _show_left_out(summary)
    echo(f"in {format_path(options.output)}")
    sys.exit(1 if summary.refused else 0)


def _show_split(summary: "SplitSummary", split: str) -> None:
    shares, missing = summary.shares[split], summary.missing(split)
    subtypes, images = sum(len(share.images) for share in shares), sum(share.total for share in shares)
    echo(f"{split:6} {format_count(images, 'image')} of {format_count(subtypes, 'subtype')}")
    if missing:
        named = ", ".join(missing[:5]) + ", ..." * (len(missing) > 5)
        echo(f"       without images: {format_count(len(missing), 'subtype')} ({named})", err=True)
    if lacking := summary.without_images(split):
        echo(f"       without images: the types {', '.join(lacking)}", err=True)


def _show_left_out(summary: "SplitSummary") -> None:
    if summary.unknown:
        named = ", ".join(summary.unknown[:5]) + ", ..." * (len(summary.unknown) > 5)
        echo(f"unknown to WordNet: {format_count(len(summary.unknown), 'folder')} ({named})", err=True)
    for path, reason in [*summary.refused.items()][:10]:
        echo(f"left out: {path!r}: {reason}", err=True)
    if len(summary.refused) > 10:
        echo(f"left out: {len(summary.refused) - 10} more, listed in subtypes.json", err=True)
