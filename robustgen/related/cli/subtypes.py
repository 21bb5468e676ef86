"""make-subtypes: lists of seen and unseen subtypes."""

import sys
from typing import TYPE_CHECKING

from robustgen.cli.app import command, echo
from robustgen.cli.flags import takes
from robustgen.display.text import format_count, format_path
from robustgen.related.settings import SubtypeChoices

if TYPE_CHECKING:
    from robustgen.related.subtypes.splitting import SplitSummary


@command("make-subtypes")
@takes(options=SubtypeChoices)
def make_subtypes(options: SubtypeChoices) -> None:
    """List seen and unseen subtypes of broad types.

    Splits the subtypes of 25 types by WordNet. IMAGENET22K has a folder for each noun.

    Examples
    --------
    robustgen make-subtypes /data/imagenet22k --output subtypes
    robustgen make-subtypes /data/imagenet22k --wordnet package --output subtypes
    """
    from robustgen.related.subtypes import splitting

    summary = splitting.write_lists(options.imagenet22k, options.wordnet, options.output)
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
