"""Other files of a source than its photographs: label maps, annotations and lists, repeated in every variant.

Each variant is then a complete data set, which other tools read like the original. Masks, palettes of classes
and maps of depth are PNG files too. Names pair them with pictures; names of folders and files, and the pixels
of a few files of each kind, tell which of the two is the map.
"""

import glob
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Final

from robustgen.display.text import format_count
from robustgen.errors import ConfigError, ImageError
from robustgen.files.ledger import Failure, Record
from robustgen.files.set_files import FRAMES, SUMS, WrittenFile
from robustgen.files.storage import Store
from robustgen.pixels.imaging.decode import Look, judge_look
from robustgen.sets.dataset.outputs import measure_file

_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_OF_MAPS: Final = re.compile(
    r".*(mask|label|lbl|annot|annotation|segmentation|disparity|depth|matte|trimap|thingmap|colormap)s?"
    r"|gt|truth|groundtruth|seg|segm|sem|semantics?|instances?|panoptic|disp|disparities|parts"
)
_JPEG: Final = (".jpg", ".jpeg")
# Files of each kind that are opened: those of one kind are alike, and large.
_LOOKED_AT: Final = 3
_TEXTS: Final = (
    *(".txt", ".yaml", ".yml", ".json", ".jsonl", ".csv", ".tsv", ".xml", ".lst", ".list", ".data", ".cfg"),
    *(".toml", ".py"),
)
# After a colon, it would be a URL.
_ABSOLUTE: Final = re.compile(rb"(?:^|[\s\"'=,>\[(])(/[^\s\"'<>,\])]+)", re.MULTILINE)
_MOST_NAMED: Final = 3


# --- label maps ----------------------------------------------------------------------------------


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
    for pattern in candidates:
        is_one_of_maps = any(fnmatchcase(key, pattern) for key in maps)
        if not is_one_of_maps and all(fnmatchcase(key, pattern) for key in pictures):
            return pattern
    return None


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
    by_start = defaultdict[str, list[str]](list)
    for picture in pictures:
        by_start[identify(picture)].append(picture)
    found = {}
    for key in candidates:
        # The name of a map begins with that of its picture, or is the same.
        start = find_owner(key, by_start) or find_owner(f"{identify(key)}.", by_start)
        owners = [picture for picture in by_start.get(start, ()) if picture != key]
        if owners:
            folders = {*key.split("/")}
            nearest = max(owners, key=lambda picture: len(folders.intersection(picture.split("/"))))
            found[key] = nearest, start
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
    """Return those of the `keys` without telling names that are maps of others of the same name.

    Also returns the first key of each uncertain role, with a picture.
    """
    roles = _group_by_role(keys)
    looks = {role: {look for _, look in judge.sample(members)} for role, members in roles.items()}
    pictures = [key for role, found in looks.items() if "map" not in found for key in roles[role]]
    if not pictures:
        return frozenset(), {}
    maps = frozenset(key for role, found in looks.items() if found == {"map"} for key in roles[role])
    uncertain = [roles[role][0] for role, found in looks.items() if "map" in found and len(found) > 1]
    return maps, dict.fromkeys(uncertain, pictures[0])


def _group_by_role(keys: Sequence[str]) -> dict[tuple[str, ...], list[str]]:
    """Return the `keys` with equal names, by what tells these apart: folders that others lack, and suffix."""
    equal = defaultdict[str, list[str]](list)
    for key in keys:
        equal[identify(key)].append(key)
    roles = defaultdict[tuple[str, ...], list[str]](list)
    for members in equal.values():
        # A map is never a JPEG file.
        if len(members) > 1 and not all(key.lower().endswith(_JPEG) for key in members):
            shared = set[str].intersection(*({*key.split("/")[:-1]} for key in members))
            for key in members:
                roles[_differ(key, shared)].append(key)
    return roles


def _differ(key: str, shared: Collection[str]) -> tuple[str, ...]:
    """Return the folders of `key` that are not `shared`, and its suffix."""
    return (*(part for part in key.split("/")[:-1] if part not in shared), PurePosixPath(key).suffix.lower())


def _folder(key: str) -> str:
    return key.rpartition("/")[0]


# --- copies of other files -----------------------------------------------------------------------


def select_companions(
    names: Iterable[str], images: Collection[str], maps: Collection[str], others: Collection[str]
) -> list[str]:
    """Return the files among `names` that belong to `images`, and not only to others.

    A file belongs to an image if its name begins with that of the image. Files named after no image belong to
    all images, unless a word of their path names a folder with only other images, such as ``train2017``.

    Parameters
    ----------
    names : iterable of str
    images : collection of str
        Selected images.
    maps : collection of str
        Label maps of `images`.
    others : collection of str
        All other files that look like images.
    """
    own, foreign = {identify(name) for name in images}, {identify(name) for name in others}
    near = {part for name in (*images, *maps) for part in name.split("/")[:-1]}
    far = {part for name in others for part in name.split("/")[:-1]} - near

    def goes_along(name: str) -> bool:
        if name in others or name in maps:
            return name in maps
        owner = find_owner(name, own | foreign)
        # Images of several folders may have one name.
        if owner and (owner in own) != (owner in foreign):
            return owner in own
        return far.isdisjoint(re.split(r"[/._-]", name))

    return [name for name in names if goes_along(name)]


@dataclass(frozen=True)
class Mirror:
    """Copies of the other files of a source in an output.

    Attributes
    ----------
    source : Store
    images : frozenset of str
        Paths of the images in the source, which are not repeated.
    maps : frozenset of str
        Paths of the label maps of these images, which are.
    others : frozenset of str
        Paths of all other files that look like images.
    link : bool
        Whether to create hard links, if the file system supports them, instead of copies.
    """

    source: Store
    images: frozenset[str]
    maps: frozenset[str]
    others: frozenset[str]
    link: bool

    def list_files(self) -> tuple[list[str], list[Failure]]:
        """Return the files to repeat, and the files that cannot be repeated, with reasons.

        Hidden files are skipped, and so are files that belong to images that were not selected.
        """
        names, failures = [], []
        for name in sorted(entry.path for entry in self.source.list()):
            if name in self.images or _is_hidden(name):
                continue
            if name in (SUMS, FRAMES):
                failures.append({"key": name, "reason": f"its copy would replace the set's own {name}"})
            else:
                names.append(name)
        irregular = {
            name: f"{what}, which is not mirrored"
            for name, what in self.source.list_irregular()
            if name not in self.images and name[-1] != "/" and not _is_hidden(name)
        }
        failures += [{"key": name, "reason": reason} for name, reason in irregular.items()]
        names = [name for name in names if name not in irregular]
        if self.others:
            names = select_companions(names, self.images, self.maps, self.others)
        return names, sorted(failures, key=lambda failure: failure["key"])

    def describe_ways_back(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return a warning about those of the repeated files `names` that lead to the clean images.

        Lists and configs of detectors often contain absolute paths of images.
        """
        files, roots = {name.rpartition("/")[2].encode() for name in self.images}, {self.source.location}
        if self.source.is_local:
            roots.add(str(Path(self.source.location).resolve()))
        texts = (name for name in names if name.lower().endswith(_TEXTS))
        found = [name for name in texts if _leads_to(self.source.read(name), roots, files)]
        if not found:
            return ()
        count, named = format_count(len(found), "file"), ", ".join(map(repr, found[:_MOST_NAMED]))
        more = ", ..." * (len(found) > _MOST_NAMED)
        return (f"mirror: absolute paths in {count} lead to the clean images, not to these: {named}{more}",)

    def make_record(self, folder: str, names: Sequence[str]) -> Record:
        """Return the record of the copies of the files `names` in one `folder` of an output."""
        files = [self._describe(name)._replace(path=f"{folder}/{name}") for name in names]
        return Record({}, [folder], files)

    def copy(self, folder: str, store: Store, path: str) -> None:
        """Create the copy at `path`, in `folder` of the output `store`."""
        store.copy(self.source, path.removeprefix(f"{folder}/"), path, link=self.link)

    @cache  # noqa: B019
    def _describe(self, name: str) -> WrittenFile:
        return WrittenFile(name, *measure_file(self.source, name))


def _leads_to(text: bytes, roots: Iterable[str], files: Collection[bytes]) -> bool:
    """Return whether `text` contains one of the `roots`, or an absolute path to one of the `files`."""
    plain = text.replace(b"\\/", b"/")
    return any(re.search(re.escape(root.encode()) + rb"(?![\w.-])", plain) for root in roots) or any(
        path.rpartition(b"/")[2] in files for path in _ABSOLUTE.findall(plain)
    )


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))
