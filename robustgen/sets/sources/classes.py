"""The order of classes, one list for each source, which all formats keep, and the files that record names."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from robustgen.errors import SourceError
from robustgen.files.text_files import imagenet_classes
from robustgen.sets.sources.base import Items

# Of the first words of ImageNet's class names, as hubs and torchvision have them, in the order of the ids.
_NAMES_OF_IMAGENET: Final = "1acf7e1ce3ea84734a6a67d40d37f0c545457fa32f577976a23afb00ef8d131e"
# Two cranes and two maillots, which lists of unique names tell apart in different ways.
_AMBIGUOUS: Final = (134, 517, 638, 639)
# In bytes.
_MOST_OF_NAME: Final = 255
# The Hub adds the class to the name of each image of ImageNet: ILSVRC2012_val_00000293_n01440764.JPEG.
_OF_HUB: Final = re.compile(r"(?:(n\d{8})/)?(ILSVRC2012_val_\d{8}|n\d{8}_\d+)_(n\d{8})((?:\.\w+)?)")
# With more digits, an integer is an identifier.
_NUMBER: Final = re.compile(r"0|[1-9]\d{0,4}")


def sort_classes(names: Iterable[str]) -> list[str]:
    """Return class names without a recorded order: by value if all are whole numbers, otherwise as text."""
    names = sorted(names)
    if all(name.isascii() and name.isdigit() for name in names):
        names.sort(key=int)
    return names


def describe_order(names: Sequence[str]) -> list[str]:
    """Return a remark on class names that `sort_classes` has ordered, if other tools order them as text."""
    as_text = sorted(names)
    if [*names] == as_text:
        return []
    first = next(place for place, pair in enumerate(zip(names, as_text, strict=True)) if len({*pair}) > 1)
    return [
        f"classes {names[0]} to {names[-1]} are ordered as numbers, by torchvision's ImageFolder as text ("
        f"{', '.join(as_text[: first + 1][-3:])}, ...); if the model has that order, list its classes with "
        "predict --classes or evaluate --classes"
    ]


def list_numbers(names: Iterable[str]) -> list[str] | None:
    """Return all class numbers up to the largest one in `names`; None if a name is not such a number."""
    found = [*names]
    if not (found and all(map(_NUMBER.fullmatch, found))):
        return None
    return [*map(str, range(max(map(int, found)) + 1))]


def name_folders(recorded: Sequence[str]) -> list[str]:
    """Return the folder of each class that a file records.

    These are WordNet ids for ImageNet's class names, numbers if the names cannot be those of folders, or
    else the names.
    """
    first = [name.partition(",")[0].strip().lower() for name in recorded]
    text = "\n".join(name for place, name in enumerate(first) if place not in _AMBIGUOUS)
    if hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest() == _NAMES_OF_IMAGENET:
        return imagenet_classes()
    if all(map(is_folder_name, recorded)) and len({*recorded}) == len(recorded):
        return [*recorded]
    return [*map(str, range(len(recorded)))]


def is_folder_name(label: str) -> bool:
    """Return True if `label` is a safe name of a single folder."""
    is_short = 0 < len(label.encode("utf-8", "replace")) <= _MOST_OF_NAME
    return is_short and label.isprintable() and not label.startswith(".") and not set(label) & set("/\\")


def original_key(name: str) -> str:
    """Return the original key of an image of ImageNet that has a name of the Hub, or else its name."""
    match = _OF_HUB.fullmatch(name)
    return f"{match[3]}/{match[2]}{match[4]}" if match and match[1] in (None, match[3]) else name


def list_hub_names(key: str) -> tuple[str, ...]:
    """Return the names, in a class folder and without one, of which `original_key` makes another `key`."""
    wnid, _, name = key.partition("/")
    stem, dot, suffix = name.rpartition(".")
    own = f"{stem}_{wnid}{dot}{suffix}"
    return (f"{wnid}/{own}", own) if _OF_HUB.fullmatch(own) else ()


def find_unlabelled(source: Items[Any], keys: Iterable[str], *, needed: bool = True) -> dict[str, str]:
    """Return the images without a label, if others have one, with the reason for leaving them out of scores.

    Raises
    ------
    SourceError
        Labels are `needed`, but images lie in no class folder, or none has a label.
    """
    labels = {key: source.label(key) for key in keys}
    lost = [key for key, label in labels.items() if label >= 0 and not source.classes[label]]
    # A single folder is refused beside a model, which has more classes.
    if needed and lost and source.class_count != 1:
        none = f"{len(lost)} of {len(labels)} images have no class, such as {lost[0]!r}"
        ways = "--labels, the key label_column, or class folders"
        raise SourceError(f"{source.location}: {none}: give {ways}")
    return {key: "has no label, but others have" for key, label in labels.items() if label < 0}


def number_images(
    source: Items[Any], keys: Iterable[str], listed: Sequence[str] | None = None
) -> dict[str, int]:
    """Return the true class of each image: its label in the source, or its place in a list of class names.

    Raises
    ------
    SourceError
        The list lacks a class.
    """
    labels = {key: source.label(key) for key in keys}
    if listed is None:
        return labels
    places = place_classes(source.location, source.classes, {*labels.values()}, listed)
    return {key: places[label] for key, label in labels.items()}


def place_classes(
    location: str, names: Sequence[str] | None, labels: Iterable[int], listed: Sequence[str]
) -> Mapping[int, int]:
    """Return the place in `listed` of each of the `labels`, which number `names`, or have no names.

    Raises
    ------
    SourceError
        The list lacks a class; the message begins with `location`.
    """
    places = {name: place for place, name in enumerate(listed)}
    named = {label: str(label) if names is None else names[label] for label in labels}
    if lacking := sorted({*named.values()} - places.keys()):
        raise SourceError(f"{location}: class {lacking[0]!r} is not in the class list")
    return {label: places[name] for label, name in named.items()}


# --- names in sets with many images per file -----------------------------------------------------


CLASS_NAMES: Final = "classnames.txt"
"""File next to the shards or above them with the class names, in the order of the labels."""
KEYS: Final = "keys.txt"
"""File in an output with many images per file: their names, in order."""


def sample_key(name: str) -> str:
    """Return the key of the sample `name`, a POSIX path: the name without its suffix.

    Readers treat everything after the first dot as the suffix, so other dots are written ``%2E``.
    """
    folder, slash, file = name.rpartition("/")
    dot = file.rfind(".")
    stem = file[:dot] if 0 < dot < len(file) - 1 else file
    return folder + slash + stem.replace("%", "%25").replace(".", "%2E")


def sample_name(key: str) -> str:
    """Return the name, without suffix, that `sample_key` converts to `key`."""
    folder, slash, stem = key.rpartition("/")
    return folder + slash + stem.replace("%2E", ".").replace("%25", "%")
