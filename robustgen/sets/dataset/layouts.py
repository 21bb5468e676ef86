"""Pictures and label maps of a source: masks, palettes of classes, maps of depth, alpha mattes.

The key `maps` names the label maps. Without it they are what a layout says, a row of ``layouts.json``, and
companions of a picture: ``7.png`` or ``7_mask.png`` beside ``7.jpg``. All other images are pictures.
`check_pictures` refuses a source in which this would be a guess.
"""

import glob
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from itertools import takewhile
from typing import Any, Final, NamedTuple

from robustgen.display.text import format_count
from robustgen.errors import ConfigError, ImageError
from robustgen.files.text_files import parse_json
from robustgen.pixels.imaging.decode import Look, judge_look
from robustgen.sets.sources.folder import SPLITS, TreeItems

_OF_MAP: Final = re.compile(
    r"[._-](mask|label|gt|seg|depth|disp|alpha|matte|trimap|normal|superpixel|annot|instance)", re.IGNORECASE
)
_JPEG: Final = (".jpg", ".jpeg", ".jpe")
# Files of each group that are opened: those of one group are alike, and large.
_LOOKED_AT, _MOST_GROUPS = 3, 200


class Layout(NamedTuple):
    """A row of ``layouts.json``.

    Attributes
    ----------
    name : str
    pictures, maps : re.Pattern
        What matches the paths of pictures, and those of label maps beside such pictures.
    alone : bool
        Whether `pictures` are pictures in a source without such maps, too.
    looked_at : bool
        Whether the row is so general that a few maps are opened: pictures in colours are refused.
    """

    name: str
    pictures: re.Pattern[str]
    maps: re.Pattern[str]
    alone: bool
    looked_at: bool


class FoundMaps(NamedTuple):
    """Label maps among images.

    Attributes
    ----------
    maps : frozenset of str
    said : frozenset of str
        Pictures of which a layout, or the key `maps`, says that they are.
    likely : frozenset of str
        Those of them of which only a general rule says it, and that are no JPEG files.
    doubted : tuple of tuple of str
        Groups of maps by general rules.
    names : tuple of str
        What says so.
    """

    maps: frozenset[str]
    said: frozenset[str]
    likely: frozenset[str]
    doubted: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]


@cache
def list_layouts() -> tuple[Layout, ...]:
    """Return the rows of ``layouts.json``, the most particular ones first."""
    rows = parse_json(files(__package__).joinpath("layouts.json").read_text())
    layouts = list[Layout]()
    for row in rows:
        flags = re.IGNORECASE if "looked_at" in row else 0
        pictures, maps = _compile(row["pictures"], flags), _compile(row["maps"], flags)
        layouts.append(Layout(row["name"], pictures, maps, "alone" in row, "looked_at" in row))
    return tuple(layouts)


def name_layouts(names: Collection[str]) -> list[str]:
    """Return the published layouts that images have, by their `names`."""
    return [
        row.name
        for row in list_layouts()
        if not row.looked_at
        and any(map(row.pictures.fullmatch, names))
        and (row.alone or any(map(row.maps.fullmatch, names)))
    ]


def _compile(patterns: Iterable[str], flags: int) -> re.Pattern[str]:
    """Return what matches the end of a path: * any part of a name, ** any rest, {a,b} one of several."""
    words = {"**": ".*", "*": "[^/]*", "{": "(?:", "}": ")", ",": "|"}
    parts = (
        "".join(
            words.get(each) or (each if each[0] == "[" else re.escape(each))
            for each in re.findall(r"\*\*|\*|[{},]|\[[^]]*\]|[^*{},[]+", pattern)
        )
        for pattern in patterns
    )
    return re.compile(f"(?:.*/)?(?:{'|'.join(parts)})", flags)


def find_maps(names: Sequence[str], patterns: Collection[str] | None = None) -> FoundMaps:
    """Return the label maps among the images `names`: what the `patterns` match, or what a layout says."""
    if patterns is not None:
        maps = {name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)}
        return FoundMaps(frozenset(maps), frozenset(names) - maps, frozenset(), (), ("the key maps",))
    shapes = {name[: (cut := name.rfind("/") + 1)] + re.sub(r"\d+", "0", name[cut:]) for name in names}
    maps, said, likely = set[str](), set[str](), set[str]()
    doubted, used = list[tuple[str, ...]](), list[str]()
    for row in list_layouts():
        if not any(map(row.pictures.fullmatch, shapes)):
            continue
        own = {name for name in names if name not in maps and row.maps.fullmatch(name)} - said
        pictures = {name for name in names if name not in maps and row.pictures.fullmatch(name)} - own
        if not pictures or not (own or row.alone):
            continue
        maps |= own
        likely |= {name for name in pictures - said if row.looked_at and not name.lower().endswith(_JPEG)}
        said |= pictures
        used += [f"layout {row.name}"] * bool(own)
        if row.looked_at:
            doubted.append(tuple(sorted(own)))
    if own := {*_find_companions([name for name in names if name not in maps])}:
        maps, said, used = maps | own, said - own, [*used, "names that begin like a picture"]
        doubted.append(tuple(sorted(own)))
    return FoundMaps(
        frozenset(maps), frozenset(said), frozenset(likely - maps), tuple(filter(None, doubted)), tuple(used)
    )


def _find_companions(names: Sequence[str]) -> Iterator[str]:
    """Yield the files whose name begins with that of a picture beside them, and that are maps.

    They are no JPEG files beside one, or a word such as ``_mask`` follows.
    """
    folders = defaultdict[str, list[str]](list)
    for name in names:
        folders[name.rpartition("/")[0]].append(name)
    for own in folders.values():
        photos = {identify(name) for name in own if name.lower().endswith(_JPEG)}
        stems = {identify(name) for name in own} if any(map(_OF_MAP.search, own)) else set[str]()
        for name in own:
            stem = identify(name)
            is_photo = name.lower().endswith(_JPEG)
            owner = find_owner(stem, photos) if photos and not is_photo else ""
            start = find_owner(stem, stems - {stem}) if _OF_MAP.search(stem) else ""
            if owner or (start and _OF_MAP.match(stem, len(start))):
                yield name


# --- what is no guess ----------------------------------------------------------------------------


def check_pictures(source: TreeItems[Any], keys: Sequence[str], found: FoundMaps) -> None:
    """Raise a ConfigError if it is a guess which of the files `keys` are pictures.

    So it is if general rules call photographs in colours maps; if a folder or a numbered series cannot have
    photographs, unlike others; or if two of them have the same names, and no layout says what they are.
    """
    pictures = [key for key in keys if key not in found.maps]
    for group in found.doubted:
        if _look(source, group) == "colour":
            _refuse(pictures, group, "may be photographs")
    sure = found.said - found.likely
    groups = _list_series([key for key in pictures if key not in sure])
    step = len(groups) // _MOST_GROUPS + 1
    looks = {name: _look(source, groups[name]) for name in sorted(groups)[::step]}
    odd = [name for name, look in looks.items() if look in ("map", "palette")]
    if odd and (len(odd) < len(looks) or sure):
        maps = [key for name in odd for key in groups[name]]
        _refuse([key for key in pictures if key not in {*maps}], maps, "cannot be photographs")
    if pair := _find_pair(source, _list_series(pictures), found.said):
        # Photographs in colours come first.
        if not found.said.issuperset(pair[0]) and _look(source, pair[0]) != "colour":
            pair = pair[::-1]
        _refuse(*pair, "have the names of other images")


def _look(source: TreeItems[Any], keys: Sequence[str]) -> Look | None:
    """Return the appearance of most of a few `keys`; None if all are damaged."""
    looks = Counter[Look]()
    for key in dict.fromkeys(keys[len(keys) * place // _LOOKED_AT] for place in range(_LOOKED_AT)):
        try:
            looks[judge_look(source.read_file(key), key)] += 1
        except (ImageError, OSError, ValueError, LookupError):
            continue
    return looks.most_common(1)[0][0] if looks else None


def _list_series(keys: Iterable[str]) -> dict[str, list[str]]:
    """Return the images of each folder, and of each numbered series in it or in folders beside it."""
    folders, across = (defaultdict[tuple[str, str], list[str]](list) for _ in range(2))
    for key in keys:
        folder, _, name = key.rpartition("/")
        folders[folder, re.sub(r"\d+", "#", name)].append(key)
    series = defaultdict[str, list[str]](list)
    for (folder, shape), own in folders.items():
        if len(own) > 1:
            series[f"{folder}/{shape}"] = own
        else:
            across[folder.rpartition("/")[0], shape] += own
    for (parent, shape), own in across.items():
        name = f"{parent}/*/{shape}" if len(own) > 1 else f"{own[0].rpartition('/')[0]}/*"
        series[name] += own
    return series


def _find_pair(
    source: TreeItems[Any], groups: Mapping[str, Sequence[str]], said: Container[str]
) -> tuple[list[str], list[str]] | None:
    """Return two groups with the same names, of which not both are `said` to be pictures.

    They lie in folders side by side, or have the numbers of two series in a folder. Folders that differ in
    numbers alone, and look alike, are no such groups.
    """
    roles = defaultdict[tuple[str, str], list[tuple[list[str], list[str]]]](list)
    by_parent = defaultdict[str, dict[str, dict[str, str]]](lambda: defaultdict(dict))
    for name, keys in groups.items():
        folder, _, shape = name.rpartition("/")
        for key in keys:
            parts = key.split("/")
            for depth in range(len(parts) - 1):
                rest = "/".join(parts[depth + 1 :])
                by_parent["/".join(parts[:depth])][parts[depth]][rest.rpartition(".")[0]] = key
            if shape != "*":
                numbers = " ".join(re.findall(r"\d+", parts[-1]))
                by_parent[f"{folder}\0"][shape][numbers] = key
    for children in by_parent.values():
        by_names = defaultdict[frozenset[str], list[str]](list)
        for child, inside in children.items():
            if re.sub(r"\d+", "", child.lower()) not in SPLITS:
                by_names[frozenset(inside)].append(child)
        for names in by_names.values():
            # Numbers of subjects, of classes or of cameras.
            some = names[:: len(names) // _MOST_GROUPS + 1]
            if len({re.sub(r"\d+", "#", name) for name in names}) == 1 and (
                len({_look(source, [*children[name].values()]) for name in some}) == 1
            ):
                continue
            # Maps are no JPEG files.
            unsaid = [
                name
                for name in names
                if not all(key in said or key.lower().endswith(_JPEG) for key in children[name].values())
            ]
            if unsaid and len(names) > 1:
                # What is said to be pictures comes first.
                first = next(name for name in (*sorted({*names} - {*unsaid}), *names) if name != unsaid[-1])
                pair = first, unsaid[-1]
                one, other = ([children[name][rest] for rest in sorted(children[name])] for name in pair)
                numberless = re.sub(r"\d+", "#", first), re.sub(r"\d+", "#", unsaid[-1])
                roles[numberless].append((one, other))
    if not roles:
        return None
    pairs = max(roles.values(), key=lambda each: sum(len(one) for one, _ in each))
    return [key for one, _ in pairs for key in one], [key for _, other in pairs for key in other]


def _refuse(pictures: Sequence[str], maps: Sequence[str], why: str) -> None:
    """Raise the ConfigError that names both groups, and patterns of this source that work."""
    ways = ["--subset @FILE, a list of the pictures"]
    if pictures and (pattern := find_pattern(pictures, maps)):
        ways.insert(0, f"--subset '{pattern}'")
    if pictures and (pattern := find_pattern(maps, pictures)):
        ways.append(f"--set 'maps={pattern}'")
    beside = f", unlike {_count(pictures)}" if pictures else ""
    raise ConfigError(
        f"{_count(maps)} {why}{beside}: select the pictures with {ways[0]}, or name the label maps with "
        f"{ways[-1] if len(ways) > 1 else '`maps: PATTERN`'} (--set maps=none if all are pictures)"
    )


def _count(keys: Sequence[str]) -> str:
    """Describe images by the folder of the first one, their number and their suffixes."""
    suffixes = " and ".join(sorted({key.rpartition(".")[2].lower() for key in keys}))
    return f"{format_count(len(keys), 'image')} such as {min(keys)!r} ({suffixes})"


def describe_likely_maps(keys: Sequence[str]) -> tuple[str, str | None]:
    """Return a remark on the label maps among chosen images, by their names, and a pattern without them."""
    found = find_maps(keys)
    pictures = [key for key in keys if key not in found.maps]
    if not found.maps or not pictures:
        return "", None
    count = f"{format_count(len(found.maps), 'image')}, such as {min(found.maps)!r}"
    remark = (
        f"{count}, may be label maps ({found.names[0]}), unlike {min(pictures)!r}, but are processed like "
        "photographs"
    )
    return remark, find_pattern(pictures, found.maps)


def find_pattern(pictures: Collection[str], maps: Collection[str]) -> str | None:
    """Return a pattern that all `pictures` match and none of the `maps`; None if no simple one exists."""
    candidates = []
    for folder in min(pictures).split("/")[:-1]:
        candidates += [f"{glob.escape(folder)}/*", f"*/{glob.escape(folder)}/*"]
    last = _share_start(key[::-1] for key in pictures)[::-1].rpartition("/")[2]
    first, suffix = _share_start(pictures), f".{min(pictures).rpartition('.')[2]}"
    candidates += [f"*{glob.escape(last)}", f"*[0-9]{glob.escape(suffix)}"]
    candidates += [f"{glob.escape(first)}*", f"{glob.escape(first)}*{glob.escape(last)}"]
    for pattern in candidates:
        is_one_of_maps = any(fnmatchcase(key, pattern) for key in maps)
        if not is_one_of_maps and all(fnmatchcase(key, pattern) for key in pictures):
            return pattern
    return None


def _share_start(texts: Iterable[str]) -> str:
    same = takewhile(lambda letters: len({*letters}) == 1, zip(*texts, strict=False))
    return "".join(letters[0] for letters in same)


# --- files of chosen pictures --------------------------------------------------------------------


def find_other_maps(
    source: TreeItems[Any], chosen: Collection[str], others: Iterable[str], found: FoundMaps
) -> frozenset[str]:
    """Return those of the images beside the chosen ones that a loader needs with them.

    No row says what they are, they have the name of a chosen picture, and their folder has no photographs.
    """
    names, folders = {identify(key) for key in chosen}, defaultdict[str, list[str]](list)
    for key in others:
        if key not in found.said and find_owner(identify(key), names):
            folders[key.rpartition("/")[0]].append(key)
    return frozenset(key for own in folders.values() if _look(source, own) != "colour" for key in own)


def identify(name: str) -> str:
    """Return the common start of files about an image: its name without extension and without folder names.

    An example is Cityscapes: ``leftImg8bit/val/bonn/bonn_000000_leftImg8bit.png``.
    """
    *folders, last = name.split("/")
    dot = last.rfind(".")
    stem = last[:dot] if dot > 0 else last
    for folder in folders:
        stem = stem.removesuffix(f"_{folder}")
    return stem


def find_owner(name: str, owners: Container[str]) -> str:
    """Return the longest of `owners` that starts the last part of a path; "" if there is none."""
    last = name.rpartition("/")[2]
    ends = [len(last), *(match.start() for match in re.finditer(r"[._-]", last))]
    return next((last[:end] for end in sorted(ends, reverse=True) if last[:end] in owners), "")
