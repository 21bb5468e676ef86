"""Label maps among the images of a source: files that belong to a picture and are no photographs.

Masks, palettes of classes and maps of depth are PNG files too. Names pair them with pictures; names of
folders and files, and the pixels of a few files of each kind, tell which of the two is the map.
"""

import glob
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Final

from robustgen.errors import ConfigError, ImageError
from robustgen.pixels.imaging.decode import Look, judge_look

_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_OF_MAPS: Final = re.compile(
    r".*(mask|label|lbl|annot|annotation|segmentation|disparity|depth|matte|trimap|thingmap|colormap)s?"
    r"|gt|truth|groundtruth|seg|segm|sem|semantics?|instances?|panoptic|disp|disparities|parts"
)
_JPEG: Final = (".jpg", ".jpeg")
# Files of each kind that are opened: those of one kind are alike, and large.
_LOOKED_AT: Final = 3


def identify(name: str) -> str:
    """Return the common start of files about an image: its name without extension and without folder names.

    An example is Cityscapes: ``leftImg8bit/val/bonn/bonn_000000_leftImg8bit.png``.
    """
    stem = PurePosixPath(name).stem
    for folder in name.split("/")[:-1]:
        stem = stem.removesuffix(f"_{folder}")
    return stem


def find_owner(name: str, owners: Collection[str]) -> str:
    """Return the longest of `owners` that starts the last part of a path; "" if there is none."""
    last = name.rpartition("/")[2]
    ends = [len(last), *(match.start() for match in re.finditer(r"[._-]", last))]
    return next((last[:end] for end in sorted(ends, reverse=True) if last[:end] in owners), "")


def find_maps(read: Callable[[str], bytes], keys: Sequence[str]) -> frozenset[str]:
    """Return the images among `keys` that are label maps of others.

    Parameters
    ----------
    read : callable
        Returns the file of an image.
    keys : sequence of str

    Raises
    ------
    ConfigError
        It is not certain whether an image is a label map; the message says how to select the pictures.
    """
    judge, named = _Judge(read), _list_named(keys)
    others = [key for key in keys if key not in named]
    owners = _find_owners([key for key in keys if key in named], others)
    maps, doubts = _judge_named(judge, owners)
    own, pairs = _judge_pairs(judge, others)
    maps |= own | _list_lone(named - owners.keys(), maps, others)
    doubts |= pairs
    # Names of depth maps may be times of their own.
    lone = defaultdict[str, list[str]](list)
    for key in sorted(named - owners.keys() - maps):
        lone[_folder(key)].append(key)
    for members in lone.values() if others else ():
        if {look for _, look in judge.sample(members)} == {"map"}:
            doubts[members[0]] = others[0]
    for key, picture in doubts.items():
        pictures = [each for each in keys if each not in maps and each not in doubts]
        pattern = find_pattern(pictures, [key]) or f"{glob.escape(_folder(picture))}/*"
        raise ConfigError(
            f"{key!r} may be a label map, unlike {picture!r}: select the pictures with --subset, for "
            f"instance --subset '{pattern}' (--subset '*' for all)"
        )
    return maps


def find_maps_of(
    read: Callable[[str], bytes], pictures: Sequence[str], others: Sequence[str]
) -> frozenset[str]:
    """Return the images among `others` that are label maps of the selected `pictures`."""
    judge, named, chosen = _Judge(read), _list_named([*pictures, *others]), {*pictures}
    # A map of a picture that was not selected may have the name of a selected one.
    owners = _find_owners(others, [*pictures, *(key for key in others if key not in named)])
    maps, doubts = _judge_named(judge, {key: found for key, found in owners.items() if found[0] in chosen})
    lone = _list_lone(named.difference(owners, chosen), maps, pictures)
    # What is named like a map, and is not selected, is no picture.
    return maps | lone | (doubts.keys() & named)


def find_pattern(pictures: Collection[str], maps: Collection[str]) -> str | None:
    """Return a pattern that all `pictures` match and none of the `maps`; None if no simple one exists."""
    candidates = []
    for folder in min(pictures).split("/")[:-1]:
        candidates += [f"{glob.escape(folder)}/*", f"*/{glob.escape(folder)}/*"]
    backwards = zip(*(key[::-1] for key in pictures), strict=False)
    same = takewhile(lambda letters: len({*letters}) == 1, backwards)
    last = "".join(letters[0] for letters in same)[::-1].rpartition("/")[2]
    candidates += [f"*{glob.escape(last)}", f"*[0-9]{glob.escape(PurePosixPath(min(pictures)).suffix)}"]
    return next((each for each in candidates if _separates(each, pictures, maps)), None)


def _separates(pattern: str, pictures: Iterable[str], maps: Iterable[str]) -> bool:
    return all(fnmatchcase(key, pattern) for key in pictures) and not any(
        fnmatchcase(key, pattern) for key in maps
    )


def _list_named(keys: Iterable[str]) -> set[str]:
    """Return the `keys` whose names say that they are maps, by a word that not all `keys` have."""
    words = {key: {*map(str.lower, _WORDS.findall(key))} for key in keys}
    shared = set[str].intersection(*words.values()) if words else set[str]()
    return {key for key, own in words.items() if any(map(_OF_MAPS.fullmatch, own - shared))}


class _Judge:
    """Appearance of groups of images, from a few files of each.

    Parameters
    ----------
    read : callable
        Returns the file of an image.
    """

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self._read, self._known = read, dict[str, Look | None]()

    def look(self, key: str) -> Look | None:
        """Return the appearance of an image; None if it is damaged, which its processing reports."""
        if key not in self._known:
            try:
                self._known[key] = judge_look(self._read(key), key)
            except (ImageError, OSError, ValueError, LookupError):
                self._known[key] = None
        return self._known[key]

    def sample(self, keys: Sequence[str]) -> Iterator[tuple[str, Look]]:
        """Yield a few of the `keys` that are not damaged, with their appearance."""
        for key in dict.fromkeys(keys[len(keys) * index // _LOOKED_AT] for index in range(_LOOKED_AT)):
            if look := self.look(key):
                yield key, look


def _find_owners(candidates: Iterable[str], pictures: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the picture that each candidate may belong to, and the common start of their names."""
    by_name = defaultdict[str, list[str]](list)
    for picture in pictures:
        by_name[identify(picture)].append(picture)
    found = {}
    for key in candidates:
        start = find_owner(key, by_name) or find_owner(f"{identify(key)}.", by_name)
        parts = {*key.split("/")}
        if known := [picture for picture in by_name.get(start, ()) if picture != key]:
            found[key] = max(known, key=lambda picture: len(parts.intersection(picture.split("/")))), start
    return found


def _list_lone(named: Iterable[str], maps: Iterable[str], pictures: Iterable[str]) -> set[str]:
    """Return the maps of missing pictures: those `named` so that lie among `maps`."""
    folders = {_folder(key) for key in maps} - {_folder(key) for key in pictures}
    return {key for key in named if _folder(key) in folders}


def _judge_named(
    judge: _Judge, owners: Mapping[str, tuple[str, str]]
) -> tuple[frozenset[str], dict[str, str]]:
    """Return those keys of `owners` that are maps of their pictures, and uncertain ones with the pictures."""
    groups = defaultdict[tuple[str, ...], dict[str, str]](dict)
    for key, (picture, start) in owners.items():
        end = re.sub(r"\d+", "#", key.rpartition("/")[2].removeprefix(start))
        groups[(*_differ(key, picture.split("/")[:-1]), end)][key] = picture
    maps, doubts = set[str](), dict[str, str]()
    for group in groups.values():
        looks = [*judge.sample([*group])]
        if looks and all(
            look in ("map", "palette") or (look == "grey" and judge.look(group[key]) == "colour")
            for key, look in looks
        ):
            maps |= group.keys()
        else:
            doubts |= group
    return frozenset(maps), doubts


def _judge_pairs(judge: _Judge, keys: Sequence[str]) -> tuple[frozenset[str], dict[str, str]]:
    """Return those of the `keys` without telling names that are maps of others of the same name."""
    same = defaultdict[str, list[str]](list)
    for key in keys:
        same[identify(key)].append(key)
    groups = defaultdict[tuple[str, ...], list[str]](list)
    for members in same.values():
        if len(members) > 1 and not all(key.lower().endswith(_JPEG) for key in members):
            shared = set[str].intersection(*({*key.split("/")[:-1]} for key in members))
            for key in members:
                groups[_differ(key, shared)].append(key)
    looks = {role: {look for _, look in judge.sample(members)} for role, members in groups.items()}
    pictures = [key for role, found in looks.items() if "map" not in found for key in groups[role]]
    if not pictures:
        return frozenset(), {}
    maps = frozenset(key for role, found in looks.items() if found == {"map"} for key in groups[role])
    mixed = [groups[role][0] for role, found in looks.items() if "map" in found and len(found) > 1]
    return maps, dict.fromkeys(mixed, pictures[0])


def _differ(key: str, shared: Collection[str]) -> tuple[str, ...]:
    """Return the folders of `key` that are not `shared`, and its suffix."""
    return (*(part for part in key.split("/")[:-1] if part not in shared), PurePosixPath(key).suffix.lower())


def _folder(key: str) -> str:
    return key.rpartition("/")[0]
