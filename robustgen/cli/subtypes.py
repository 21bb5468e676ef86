"""make-subtypes: seen and unseen subtypes of broad types."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from robustgen.cli.app import Section, command, echo
from robustgen.cli.options import PATH
from robustgen.display.text import format_count, format_path

if TYPE_CHECKING:
    from robustgen.related.subtypes.splitting import Summary


@command("make-subtypes", Section.FAMILY)
@click.argument("imagenet22k", type=PATH)
@click.option(
    "--wordnet",
    metavar="DIR",
    type=PATH,
    default="/usr/share/wordnet",
    help="Folder with WordNet 3.0's data.noun; default: that of Debian's wordnet-base.",
)
@click.option("--output", metavar="DIR", default="out/subtypes", help="Output folder.")
@click.option("--links", is_flag=True, help="Also create folders of links: <split>/<type>/<id>.")
def make_subtypes(imagenet22k: Path, wordnet: Path, output: str, links: bool) -> None:
    """List seen and unseen subtypes of broad types.

    Splits the subtypes of 25 types by WordNet. IMAGENET22K has a folder for each noun.
    """
    from robustgen.related.subtypes import splitting

    summary = splitting.make(imagenet22k, wordnet, output, links=links)
    for split in splitting.SPLITS:
        _show(summary, split)
    _show_left_out(summary)
    echo(f"in {format_path(output)}")
    sys.exit(1 if summary.refused else 0)


def _show(summary: "Summary", split: str) -> None:
    shares, missing = summary.shares[split], summary.missing(split)
    subtypes, images = sum(len(share.images) for share in shares), sum(share.total for share in shares)
    echo(f"{split:6} {format_count(images, 'image')} of {format_count(subtypes, 'subtype')}")
    if missing:
        named = ", ".join(missing[:5]) + ", ..." * (len(missing) > 5)
        echo(f"       without images: {format_count(len(missing), 'subtype')} ({named})", err=True)
    if lacking := summary.without_images(split):
        echo(f"       without images: the types {', '.join(lacking)}", err=True)


def _show_left_out(summary: "Summary") -> None:
    if summary.unknown:
        named = ", ".join(summary.unknown[:5]) + ", ..." * (len(summary.unknown) > 5)
        echo(f"unknown to WordNet: {format_count(len(summary.unknown), 'folder')} ({named})", err=True)
    for path, reason in [*summary.refused.items()][:10]:
        echo(f"left out: {path!r}: {reason}", err=True)
    if len(summary.refused) > 10:
        echo(f"left out: {len(summary.refused) - 10} more, listed in subtypes.json", err=True)
