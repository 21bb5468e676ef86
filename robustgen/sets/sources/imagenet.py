"""Checks that class folders are those of ImageNet, named by WordNet ids, and not folders above them."""

import re
from collections.abc import Iterable
from typing import Final

from robustgen.errors import SourceError
from robustgen.sets.sources.base import Source
from robustgen.sets.sources.folder import ImageFolder, Photographs
from robustgen.sets.sources.places import ARCHIVES

_WORDNET_ID: Final = re.compile(r"n\d{8}")
# ImageNet-V2 and others name class folders by number.
_NUMBER: Final = re.compile(r"\d{1,4}")
_SPLITS: Final = {"", "train", "val", "test"}
_PREFIX: Final = "ILSVRC2012_"


def check_classes(source: Source, remedy: str, *, is_imagenet: bool = False) -> None:
    """Refuse ImageNet images without classes, or with folders that are not classes.

    Parameters
    ----------
    source : Source
    remedy : str
        Advice for using the images as they are.
    is_imagenet : bool
        Whether the images are known to be ImageNet's; if false, their names decide.

    Raises
    ------
    SourceError
        The message names the folder, and the folder that was probably meant.
    """
    found, in_folders = {*source.classes}, isinstance(source, ImageFolder)
    known = {name for name in found if _WORDNET_ID.fullmatch(name)}
    if in_folders and not known and (around := find_folders_of_classes(source.keys())):
        meant = next((folder for folder in around if folder.rpartition("/")[2] == "val"), around[0])
        advice = f"did you mean --source {source.location}/{meant}?"
        if source.location.lower().endswith(ARCHIVES):
            advice = f"unpack it and name its {meant} with --source"
        there = f"its class folders are deeper, in {', '.join(around)}"
        raise SourceError(f"{source.location}: {there}; {advice} (else {remedy})")
    splits = {name for name in found if name in _SPLITS or name.startswith(_PREFIX)}
    named = (key.rpartition("/")[2].startswith(_PREFIX) for key in source.keys())  # noqa: SIM118
    if splits == found and (is_imagenet or any(named)):
        raise SourceError(
            f"{source.location}: its images are not in class folders; pass a labels file or the archive of "
            f"ImageNet's devkit with --labels, or {remedy}"
        )
    others = [name for name in source.classes if name not in known and not _NUMBER.fullmatch(name)]
    # A preview shows the demo's photographs as a data set would have them.
    if is_imagenet and others and not isinstance(source, Photographs):
        strays = (key for key in source.keys() if source.classes[source.label(key)] in others)  # noqa: SIM118
        stray = next(strays, None) if in_folders else None
        what = f"class {others[0]!r} is not" if stray is None else f"{stray!r} is not in"
        where = f"{source.location}: {what} a class folder of ImageNet, named by a WordNet id"
        raise SourceError(f"{where} (else {remedy})")


def find_folders_of_classes(keys: Iterable[str]) -> list[str]:
    """Return the folders above the first WordNet id in each key; keys that begin with one are ignored."""
    folders = set()
    for key in keys:
        parts = key.split("/")[:-1]
        if index := next((index for index, part in enumerate(parts) if _WORDNET_ID.fullmatch(part)), 0):
            folders.add("/".join(parts[:index]))
    return sorted(folders)
