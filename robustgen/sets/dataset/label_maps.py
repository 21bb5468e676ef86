"""Label maps among the images of a source: masks, palettes of classes, maps of depth, alpha mattes.

Names pair a map with its picture: the paths differ in a few folders and in one part of the name, such as
``masks/7.png`` and ``images/7.jpg``, or ``7_mask.png`` and ``7_sat.jpg``. A word such as ``mask``, or else
the pixels of a few files, tell which of the two is the map.
"""

import glob
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import takewhile
from typing import Any, Final, NamedTuple

from robustgen.display.text import format_count
from robustgen.errors import ConfigError, ImageError
from robustgen.pixels.imaging.decode import Look, judge_look
from robustgen.sets.sources.folder import FileSource, TreeItems

_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_OF_MAPS: Final = re.compile(
    r".*(mask|label|lbl|annot|annotation|segmentation|disparity|depth|matte|trimap|thingmap|colormap)s?"
    r"|label+ed|gt|truth|groundtruth|seg|segm|sem|semantics?|instances?|panoptic|disp|disparities|parts"
    r"|alphas?|pha"
)
# A quick test for names that may have such a word.
_MAYBE_OF_MAPS: Final = re.compile(
    r"mask|labe|lbl|anno|seg|disp|dept|matt|trim|map|gt|trut|sem|inst|pano|part|pha", re.IGNORECASE
)
_TOKENS: Final = re.compile(r"[^\W\d_]+|\d+|[\W_]+")
# Files of each group that are opened: those of one group are alike, and large.
_LOOKED_AT: Final = 3
# Files of each series, and in all, that are compared with all others by their names.
_COMPARED, _MOST_COMPARED = 8, 5000
# A name that more files of one folder have in common tells no picture.
_MOST_ALIKE: Final = 16
# Change detection has two pictures for a map; classes that repeat names have more.
_MOST_PICTURES: Final = 2


Maps = Mapping[str, tuple[str, ...]]
"""Label maps to their pictures, none if they are missing."""


class FoundMaps(NamedTuple):
    """Label maps among images.

    Attributes
    ----------
    maps : dict of str to tuple of str
        Label map to its pictures, none if they are missing.
    doubts : dict of str to str
        Image that may be a label map, to a picture.
    """

    maps: dict[str, tuple[str, ...]]
    doubts: dict[str, str]


def find_maps(source: TreeItems[Any], keys: Sequence[str]) -> FoundMaps:
    """Return the images that are label maps of others, and those that may be; `keys` name their files."""
    looks, named = _Looks(source), _list_named(keys)
    others = [key for key in keys if key not in named]
    owners = _find_owners(sorted(named), others)
    maps, doubts = _judge_named(looks, owners)
    # What has a map is a picture.
    own, unsure = _judge_pairs(looks, others, {picture for each in maps.values() for picture in each})
    maps, doubts = maps | own, doubts | unsure
    maps |= dict.fromkeys(_list_lone(named - owners.keys(), maps, others), ())
    # Names of depth maps may be times of their own.
    lone = defaultdict[str, list[str]](list)
    for key in sorted(named - owners.keys() - maps.keys()):
        lone[_folder(key)].append(key)
    for members in lone.values() if others else ():
        if {look for _, look in looks.sample(members)} == {"map"}:
            doubts |= dict.fromkeys(members, others[0])
    return FoundMaps(maps, doubts)


def check_doubts(found: FoundMaps, keys: Iterable[str]) -> None:
    """Raise a ConfigError that says how to select the pictures, if an image may be a label map."""
    for key, picture in found.doubts.items():
        pictures = [each for each in keys if each not in found.maps and each not in found.doubts]
        pattern = find_pattern(pictures, found.doubts)
        how = f"--subset '{pattern}'" if pattern else "--subset @FILE, a list of them"
        raise ConfigError(
            f"{key!r} may be a label map, unlike {picture!r}: select the pictures with --subset, for "
            f"instance {how} (--subset '*' for all)"
        )


def describe_likely_maps(source: object, keys: Sequence[str]) -> tuple[str, str | None]:
    """Return a remark on images that look like label maps of others, and a pattern without them, if any.

    Only folders and names that say so are looked at, and at most three pairs are read.
    """
    likely = {key for key in keys if _MAYBE_OF_MAPS.search(key)}
    if not likely or not isinstance(source, FileSource):
        return "", None
    # A word that all names share tells nothing.
    named = _list_named(keys) if len(likely) == len(keys) else _list_named(likely, shared=False)
    others = [key for key in keys if key not in named]
    owners = _find_owners(sorted(named), others) if others else {}
    pairs = {key: each.pictures[0] for key, each in owners.items() if len(each.pictures) <= _MOST_PICTURES}
    looks = _Looks(source)
    sample = [*looks.sample([*pairs])]
    if not sample or 2 * len(pairs) < len(named):
        return "", None
    for key, look in sample:
        is_map = _is_map(look, looks.look(pairs[key])) and looks.look(pairs[key]) != "map"
        if not is_map or not _have_one_size(source, {key: pairs[key]}):
            return "", None
    first = min(pairs)
    remark = (
        f"{format_count(len(pairs), 'image')}, such as {first!r}, may be label maps of others, such as "
        f"{pairs[first]!r}, but are processed like photographs"
    )
    return remark, find_pattern(others, named)


def find_pattern(pictures: Collection[str], maps: Collection[str]) -> str | None:
    """Return a pattern that all `pictures` match and none of the `maps`; None if no simple one exists."""
    candidates = []
    for folder in min(pictures).split("/")[:-1]:
        candidates += [f"{glob.escape(folder)}/*", f"*/{glob.escape(folder)}/*"]
    last = _share_start(key[::-1] for key in pictures)[::-1].rpartition("/")[2]
    first = _share_start(pictures)
    candidates += [f"*{glob.escape(last)}", f"*[0-9]{glob.escape(_suffix(min(pictures)))}"]
    candidates += [f"{glob.escape(first)}*", f"{glob.escape(first)}*{glob.escape(last)}"]
    for pattern in candidates:
        is_one_of_maps = any(fnmatchcase(key, pattern) for key in maps)
        if not is_one_of_maps and all(fnmatchcase(key, pattern) for key in pictures):
            return pattern
    return None


def _share_start(texts: Iterable[str]) -> str:
    same = takewhile(lambda letters: len({*letters}) == 1, zip(*texts, strict=False))
    return "".join(letters[0] for letters in same)


def _list_named(keys: Collection[str], *, shared: bool = True) -> set[str]:
    """Return the `keys` whose names say that they are maps; a word that all have does not, if `shared`."""
    words = {key: {*map(str.lower, _WORDS.findall(key))} for key in keys}
    common = set[str].intersection(*words.values()) if words and shared else set[str]()
    return {key for key, own in words.items() if any(map(_OF_MAPS.fullmatch, own - common))}


class _Looks:
    """Appearance of groups of images, from a few files of each."""

    def __init__(self, source: TreeItems[Any]) -> None:
        self.source, self._known = source, dict[str, Look | None]()

    def look(self, key: str) -> Look | None:
        """Return the appearance of an image; None if it is damaged, which its processing reports."""
        if key not in self._known:
            try:
                self._known[key] = judge_look(self.source.read_file(key), key)
            except (ImageError, OSError, ValueError, LookupError):
                self._known[key] = None
        return self._known[key]

    def sample(self, keys: Sequence[str]) -> Iterator[tuple[str, Look]]:
        """Yield a few of the `keys` that are not damaged, with their appearance."""
        places = (len(keys) * index // _LOOKED_AT for index in range(_LOOKED_AT))
        for key in dict.fromkeys(keys[place] for place in places) if keys else ():
            if look := self.look(key):
                yield key, look


# --- maps that their names tell ------------------------------------------------------------------


class _Index:
    """Pictures by their names, of which the nearest ones to an image are found.

    Parameters
    ----------
    pictures : sequence of str
    cut : callable
        Returns the names of a picture, each with the part that it leaves out.
    wanted : collection of str, optional
        The only names that are looked for.
    """

    def __init__(
        self,
        pictures: Sequence[str],
        cut: Callable[[str], Iterable[tuple[str, str]]],
        wanted: Collection[str] | None = None,
    ) -> None:
        self._names = defaultdict[str, dict[str, list[tuple[str, str]]]](dict)
        self._sizes = Counter(part for each in pictures for part in _folder(each).split("/"))
        self._nearest = dict[tuple[str, frozenset[str]], list[str]]()
        for picture in pictures:
            for name, part in cut(picture):
                if wanted is not None and name not in wanted:
                    continue
                self._names[name].setdefault(_folder(picture), []).append((picture, part))
        # What many files of a folder share is no name of a picture.
        for name, places in self._names.items():
            self._names[name] = {place: each for place, each in places.items() if len(each) <= _MOST_ALIKE}
        self._places = {name: frozenset(places) for name, places in self._names.items()}

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def find(self, key: str, name: str) -> list[tuple[str, str]]:
        """Return the other pictures called `name` in the nearest folders, with the parts."""
        held, own = self._places.get(name, frozenset[str]()), _folder(key)
        if own in held and all(picture == key for picture, _ in self._names[name][own]):
            held -= {own}
        if (own, held) not in self._nearest:
            self._nearest[own, held] = self._choose_nearest({*own.split("/")}, held)
        places = self._nearest[own, held]
        return [each for place in places for each in self._names[name][place] if each[0] != key]

    def _choose_nearest(self, own: set[str], folders: Iterable[str]) -> list[str]:
        """Return those of the `folders` that share most parts with `own`, and whose other parts are usual."""
        ranks = {}
        for folder in folders:
            parts = {*folder.split("/")}
            sizes = (self._sizes[part] for part in parts - own)
            ranks[folder] = len(parts & own), min(sizes, default=sys.maxsize)
        shared, usual = max(ranks.values(), default=(0, 0))
        return sorted(each for each, rank in ranks.items() if rank[0] == shared and 2 * rank[1] >= usual)


class _Owner(NamedTuple):
    """Pictures to which an image may belong.

    Attributes
    ----------
    pictures : tuple of str
    group : tuple of str
        Folders that only the image has, and what its name has beside that of the pictures.
    """

    pictures: tuple[str, ...]
    group: tuple[str, ...]


def _find_owners(candidates: Sequence[str], pictures: Sequence[str]) -> dict[str, _Owner]:
    """Return the pictures to which each candidate may belong."""
    index, found = _Index(pictures, lambda picture: [(identify(picture), "")]), dict[str, _Owner]()
    for key in candidates:
        start = find_owner(key, index) or find_owner(f"{identify(key)}.", index)
        if near := tuple(picture for picture, _ in index.find(key, start)):
            end = re.sub(r"\d+", "#", key.rpartition("/")[2].removeprefix(start))
            found[key] = _Owner(near, (*_differ(key, near[0]), end))
    lacking = [key for key in candidates if key not in found]
    roles = _pair(lacking, pictures) if lacking else {}
    # The part in which most of them differ from pictures comes last.
    for role, pairs in sorted(roles.items(), key=lambda each: (len(each[1]), each[0])):
        if len(pairs) > 1 or role.is_certain:
            group = (*role.folders, role.part)
            found |= {key: _Owner((picture,), group) for key, picture in pairs.items()}
    return found


def _judge_named(looks: _Looks, owners: Mapping[str, _Owner]) -> FoundMaps:
    """Return those keys of `owners` that are maps, and uncertain ones."""
    groups = defaultdict[tuple[str, ...], dict[str, tuple[str, ...]]](dict)
    for key, owner in owners.items():
        groups[owner.group][key] = owner.pictures
    found = FoundMaps({}, {})
    for group in groups.values():
        sample = [*looks.sample([*group])]
        if sample and all(_is_map(look, looks.look(group[key][0])) for key, look in sample):
            found.maps.update(group)
        else:
            found.doubts.update((key, pictures[0]) for key, pictures in group.items())
    return found


def _is_map(look: Look, of_picture: Look | None) -> bool:
    """Return whether an image with the name of a map looks like one."""
    return look in ("map", "palette") or (look == "grey" and of_picture == "colour")


def _list_lone(named: Iterable[str], maps: Iterable[str], pictures: Iterable[str]) -> set[str]:
    """Return the maps of missing pictures: those `named` so that lie among `maps`."""
    folders = {_folder(key) for key in maps} - {_folder(key) for key in pictures}
    return {key for key in named if _folder(key) in folders}


# --- maps that only their pixels tell ------------------------------------------------------------


class _Role(NamedTuple):
    """Parts of a path in which images differ from their pictures.

    Attributes
    ----------
    folders, of_picture : tuple of str
        Folders and suffix that only one of the two has.
    part, replaced : str
        Parts of the names that only one of the two has; "" for none.
    """

    folders: tuple[str, ...]
    of_picture: tuple[str, ...]
    part: str
    replaced: str

    @property
    def is_certain(self) -> bool:
        """Return whether a single pair is enough: names or suffixes differ, by no more than an addition."""
        is_alike = self.folders[-1] == self.of_picture[-1] and self.part == self.replaced
        return not (self.is_replaced or is_alike)

    @property
    def is_replaced(self) -> bool:
        """Return whether both names have a part that the other lacks."""
        return bool(self.part and self.replaced)


def _pair(candidates: Sequence[str], pictures: Sequence[str]) -> dict[_Role, dict[str, str]]:
    """Return the pictures that have the names of `candidates` except for one part, by that part."""
    cuts = {key: [*_cut(key)] for key in candidates}
    index = _Index(pictures, _cut, {name for each in cuts.values() for name, _ in each})
    roles = defaultdict[_Role, dict[str, str]](dict)
    for key, own in cuts.items():
        for name, part in own:
            for picture, other in index.find(key, name):
                roles[_Role(_differ(key, picture), _differ(picture, key), part, other)][key] = picture
    return roles


def _cut(key: str) -> Iterator[tuple[str, str]]:
    """Yield the name of an image without a part that may tell what it is, and that part, marked by zeros."""
    stem = _stem(key)
    yield f"{stem}\0", ""
    yield f"\0{stem}", ""
    tokens = _TOKENS.findall(stem)
    is_break = [not (token.isdigit() or token.isalpha()) for token in tokens]
    for place in range(1, len(tokens)):
        start, end = "".join(tokens[:place]), "".join(tokens[place:])
        has_letters = [any(map(str.isalpha, text)) for text in (start, end)]
        if has_letters[1] and not is_break[place - 1] and not tokens[place].isdigit():
            yield f"{start}\0", f"\0{end}"
        if has_letters[0] and not is_break[place] and not tokens[place - 1].isdigit():
            yield f"\0{end}", f"{start}\0"
        inner = tokens[place].isalpha() and place + 1 < len(tokens)
        if inner and is_break[place - 1] and is_break[place + 1]:
            yield f"{start}\0{''.join(tokens[place + 1 :])}", f"\0{tokens[place]}\0"


def _judge_pairs(looks: _Looks, keys: Sequence[str], owners: Collection[str]) -> FoundMaps:
    """Return those of the `keys` without telling names that are maps, and uncertain ones.

    They are maps if each file with the same part in its name has one picture of the same size, and a few of
    them look like maps. No picture in `owners` is one.
    """
    roles = _pair_one_to_one(_choose_candidates(looks, keys), keys)
    counts = Counter(
        (*_name_place(key), part)
        for key in (keys if roles else ())
        for part in {part for _, part in _cut(key)}
    )
    maps, doubts = dict[str, tuple[str, ...]](), dict[str, str]()
    for role, pairs in sorted(roles.items(), key=lambda each: (each[0].is_replaced, -len(each[1]), each[0])):
        places = {(*_name_place(key), role.part) for key in pairs}
        count = sum(counts[each] for each in places)
        if count > 2 * len(pairs) or not maps.keys().isdisjoint(pairs):
            continue
        if not pairs.keys().isdisjoint(owners):
            continue
        found = {look for _, look in looks.sample([*pairs])}
        pictures = {look for _, look in looks.sample([*pairs.values()])}
        if "map" not in found or "map" in pictures or not pictures:
            continue
        first = next(iter(pairs))
        names = role.part, role.replaced
        same = [each for own, each in roles.items() if (own.part, own.replaced) == names and first in each]
        alike = [each for each in same if len(each) >= len(pairs)]
        if len(alike) > _MOST_PICTURES or not _have_one_size(looks.source, pairs):
            continue
        if found == {"map"} and count == len(pairs):
            maps |= {key: tuple(each[key] for each in alike if key in each) for key in pairs}
        elif pictures == {"colour"}:
            # Files with that part that have no picture are uncertain as well.
            lone = (key for key in keys if any((*_name_place(key), part) in places for _, part in _cut(key)))
            doubts |= dict.fromkeys(lone, pairs[first]) | pairs
    return FoundMaps(maps, {key: picture for key, picture in doubts.items() if key not in maps})


def _choose_candidates(looks: _Looks, keys: Sequence[str]) -> list[str]:
    """Return the images of the folders in which a few of each series look like maps of others."""
    series = defaultdict[str, list[str]](list)
    for key in keys:
        series[re.sub(r"\d+", "#", key)].append(key)
    places = [
        (members, len(members) * place // _COMPARED)
        for members in series.values()
        for place in range(_COMPARED)
    ]
    few = [*dict.fromkeys(members[place] for members, place in places)]
    few = few[:: len(few) // _MOST_COMPARED + 1]
    folders = set[tuple[str, str]]()
    for pairs in _pair_one_to_one(few, keys).values():
        for key, look in looks.sample([*pairs]):
            if look == "map" and looks.look(pairs[key]) != "map":
                folders.add(_generalise(key))
    return [key for key in keys if _generalise(key) in folders] if folders else []


def _generalise(key: str) -> tuple[str, str]:
    """Return the folder and the suffix of an image, without numbers."""
    return re.sub(r"\d+", "#", _folder(key)), _suffix(key)


def _pair_one_to_one(candidates: Sequence[str], pictures: Sequence[str]) -> dict[_Role, dict[str, str]]:
    """Return the pairs of `_pair` of those parts by which each candidate has a picture of its own."""
    return {
        role: pairs
        for role, pairs in (_pair(candidates, pictures).items() if candidates else ())
        if len({*pairs.values()}) == len(pairs) and (len(pairs) > 1 or role.is_certain)
    }


def _have_one_size(source: TreeItems[Any], pairs: Mapping[str, str]) -> bool:
    """Return whether all readable maps and pictures have the same sides; one of the two may be turned."""
    for pair in pairs.items():
        try:
            first, second = (sorted(source.measure(key)) for key in pair)
        except ImageError:
            continue
        if first != second:
            return False
    return True


# --- names ---------------------------------------------------------------------------------------


def identify(name: str) -> str:
    """Return the common start of files about an image: its name without extension and without folder names.

    An example is Cityscapes: ``leftImg8bit/val/bonn/bonn_000000_leftImg8bit.png``.
    """
    stem = _stem(name)
    for folder in name.split("/")[:-1]:
        stem = stem.removesuffix(f"_{folder}")
    return stem


def find_owner(name: str, owners: Container[str]) -> str:
    """Return the longest of `owners` that starts the last part of a path; "" if there is none."""
    last = name.rpartition("/")[2]
    ends = [len(last), *(match.start() for match in re.finditer(r"[._-]", last))]
    return next((last[:end] for end in sorted(ends, reverse=True) if last[:end] in owners), "")


def _differ(key: str, other: str) -> tuple[str, ...]:
    """Return the folders of `key` that the `other` image lacks, and its suffix."""
    shared = other.split("/")[:-1]
    return (*(part for part in key.split("/")[:-1] if part not in shared), _suffix(key).lower())


def _folder(key: str) -> str:
    return key.rpartition("/")[0]


def _stem(key: str) -> str:
    last = key.rpartition("/")[2]
    dot = last.rfind(".")
    return last[:dot] if dot > 0 else last


def _name_place(key: str) -> tuple[str, str]:
    """Return the folder and the suffix of an image."""
    return _folder(key), _suffix(key)


def _suffix(key: str) -> str:
    last = key.rpartition("/")[2]
    return last[len(_stem(key)) :]
