"""Lists of images, as the authors of data sets write them for a split, and as `robustgen list --keys` does.

A line, or one of its columns, names an image by its key, its path, its name or its name without suffix, or
names a folder, which stands for the images in it.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from robustgen.errors import ConfigError
from robustgen.files.storage import locate
from robustgen.files.text_files import unescape_name
from robustgen.sets.dataset.label_maps import identify

_SEPARATORS: Final = ("\t", ",", ";", None)
_HEADERS: Final = frozenset(
    ("file", "filename", "filepath", "id", "image", "imageid", "imagename", "imagepath", "images")
    + ("img", "imgpath", "key", "name", "path", "rgb")
)
_NOT_OF_THE_CLASS: Final = "-1"

Images = tuple[str, ...]
"""An image, or all images of a folder."""


class _Column(NamedTuple):
    """A column of a list, or its whole lines.

    Attributes
    ----------
    cells : sequence of str
    found : list of list of tuple
        What each cell may name.
    has_files : bool
        Whether a cell names a file with its suffix.
    """

    cells: Sequence[str]
    found: list[list[Images]]
    has_files: bool

    @property
    def named(self) -> int:
        """Return the number of cells that name something."""
        return sum(map(bool, self.found))

    @property
    def rank(self) -> tuple[bool, int]:
        """Return what the column of the images has most of."""
        return self.has_files, self.named

    def without(self, maps: Collection[str]) -> "_Column":
        """Return the column without what names only `maps`."""
        return self._replace(found=[[*_drop(images, maps)] for images in self.found])


def select_listed(path: str, keys: Sequence[str], list_maps: Callable[[], Collection[str]]) -> Images:
    """Return the images that a file lists, in the order of `keys`.

    Parameters
    ----------
    path : path or URL
    keys : sequence of str
        Images of the source.
    list_maps : callable
        Returns those of the `keys` that are label maps, which are only meant where nothing else can be.

    Raises
    ------
    ConfigError
        The file cannot be read, or a line names no image, or several.
    """
    index = _KeyIndex(keys)
    lines = {
        number: line
        for number, line in enumerate(_read_lines(path), 1)
        if line.strip() and (not line.startswith("#") or line.removesuffix("\r") in index.there)
    }
    if not lines:
        raise ConfigError(f"{path}: lists no image")
    columns = _choose_columns(path, [*lines.values()], index)
    if sum(each.named > 0 for each in columns) > 1:
        maps = list_maps()
        pictures = [each.without(maps) for each in columns]
        columns = pictures if any(each.named for each in pictures) else columns
    best = max(columns, key=lambda each: each.rank)
    wanted = set[str]()
    for place, number in enumerate(lines):
        meant = {images for each in columns if each.rank == best.rank for images in each.found[place]}
        if len(meant) > 1 or any(len(images) > 1 for images in meant):
            meant = {*_drop(meant, list_maps())} or meant
        if len(meant) == 1:
            wanted.update(*meant)
        elif meant:
            first, second = (images[0] for images in sorted(meant)[:2])
            raise ConfigError(
                f"{path}, line {number}: {best.cells[place]!r} may be {first!r} or {second!r}: write one "
                "of these keys"
            )
        elif place or not _is_header(lines[number]):
            raise ConfigError(
                f"{path}, line {number}: the source has no image {best.cells[place]!r}; its first key is "
                f"{keys[0]!r} ('robustgen list --keys' prints all keys)"
            )
    return tuple(key for key in keys if key in wanted)


def _read_lines(path: str) -> list[str]:
    """Return the lines of a text in UTF-8 or UTF-16."""
    try:
        store, name = locate(path)
        data = store.read(name)
    except OSError as error:
        raise ConfigError(f"subset {path}: cannot be read: {error.strerror}") from error
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", "replace")
    else:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    # splitlines() would also split at form feeds, which keys may contain.
    return text.split("\n")


def _choose_columns(path: str, lines: Sequence[str], index: "_KeyIndex") -> list[_Column]:
    """Return the whole lines as a column, or their columns if these name more images."""
    whole = index.read_column(lines)
    for separator in _SEPARATORS if whole.named < len(lines) else ():
        rows = [[cell.strip().strip("\"'") for cell in line.split(separator)] for line in lines]
        columns = [index.read_column(column) for column in zip_longest(*rows, fillvalue="")]
        if max(each.named for each in columns) > whole.named:
            if any(row[1:] == [_NOT_OF_THE_CLASS] for row in rows):
                raise ConfigError(f"{path}: marks images of other classes with -1; list the others alone")
            return columns
    return [whole]


def _is_header(line: str) -> bool:
    """Return whether a line has the name of a column of images."""
    words = (re.sub(r"[\W_]", "", cell).lower() for cell in re.split(r"[\t,; ]", line))
    return not _HEADERS.isdisjoint(words)


def _drop(groups: Iterable[Images], maps: Collection[str]) -> Iterator[Images]:
    """Yield the images of each of the `groups` that are no `maps`, if there are any."""
    for images in groups:
        if pictures := tuple(key for key in images if key not in maps):
            yield pictures


class _KeyIndex:
    """Images by what a cell of a list may call them."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys, self.there = keys, {*keys}

    def read_column(self, cells: Sequence[str]) -> _Column:
        """Look up the cells of a column."""
        found = [*map(self._find, cells)]
        return _Column(cells, [images for images, _ in found], any(is_file for _, is_file in found))

    def _find(self, cell: str) -> tuple[list[Images], bool]:
        """Return what a cell may name, and whether it names a file with its suffix."""
        for text in (cell, cell.removesuffix("\r"), unescape_name(cell.removeprefix("\\"))):
            if text in self.there:
                return [(text,)], True
        parts = [part for part in re.split(r"[/\\]", cell.strip()) if part not in ("", ".", "..")]
        for names in ("_files", "_stems", "_folders") if parts else ():
            places: Mapping[str, Images] = getattr(self, names).get(parts[-1], {})
            if found := _choose_nearest(places, parts[:-1]):
                return found, names == "_files"
        return [], False

    @cached_property
    def _files(self) -> dict[str, dict[str, Images]]:
        """Return the path of each image with its key, by its last part."""
        return _group((key.rpartition("/")[2], key) for key in self._keys)

    @cached_property
    def _stems(self) -> dict[str, dict[str, Images]]:
        """Return the same without suffixes; the part that repeats a folder's name may be missing."""
        stems = ((stem, key) for key in self._keys for stem in {PurePosixPath(key).stem, identify(key)})
        return _group(stems)

    @cached_property
    def _folders(self) -> dict[str, dict[str, Images]]:
        """Return the path of each folder with its images, by its last part."""
        inside = defaultdict[str, list[str]](list)
        for key in self._keys:
            for folder in PurePosixPath(key).parents:
                inside[str(folder)].append(key)
        names = defaultdict[str, dict[str, Images]](dict)
        for path, keys in inside.items():
            names[path.rpartition("/")[2]][path] = tuple(keys)
        return names


def _group(names: Iterable[tuple[str, str]]) -> dict[str, dict[str, Images]]:
    found = defaultdict[str, dict[str, Images]](dict)
    for name, key in names:
        found[name][key] = (key,)
    return found


def _choose_nearest(places: Mapping[str, Images], folders: Sequence[str]) -> list[Images]:
    """Return the images at those `places` that lie in most of the `folders`, and in no others."""
    ranks = {}
    for path in places:
        own = path.split("/")[:-1]
        common = min(len(own), len(folders))
        # A list may begin above the source, or below it.
        if own[len(own) - common :] == [*folders[len(folders) - common :]]:
            ranks[path] = common
    return [places[path] for path, rank in ranks.items() if rank == max(ranks.values())]
