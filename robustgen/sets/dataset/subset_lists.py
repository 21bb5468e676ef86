"""Lists of images, as the authors of data sets write them for a split, and as `robustgen list --keys` does.

A line, or one of its columns, names an image by its key, its path, its name or its name without suffix, or
names a folder, which stands for the images in it.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from robustgen.errors import ConfigError, SourceError
from robustgen.files.storage import locate
from robustgen.files.text_files import unescape_name
from robustgen.sets.dataset.layouts import identify
from robustgen.sets.sources.classes import original_key
from robustgen.sets.sources.folder import SPLITS
from robustgen.sets.sources.labels import is_label_column
from robustgen.sets.sources.rows import (
    ANY,
    Asked,
    is_title,
    list_tables,
    read_rows,
    refuse_unmatched,
    strip_prefix,
)

_NOT_OF_THE_CLASS: Final = "-1"

Images = tuple[str, ...]
"""An image, or all images of a folder."""


class Listed(NamedTuple):
    """Images that a file lists, in the order of the source.

    Attributes
    ----------
    keys : tuple of str
    remarks : tuple of str
    shown : tuple of str
        Lines that say what the columns mean, and a few rows.
    """

    keys: tuple[str, ...]
    remarks: tuple[str, ...]
    shown: tuple[str, ...]


def select_listed(
    path: str, keys: tuple[str, ...], maps: frozenset[str] = frozenset(), asked: Asked = ANY, folder: str = ""
) -> Listed:
    """Return the images that a file lists.

    Parameters
    ----------
    path : path or URL
    keys : tuple of str
        Images of the source.
    maps : frozenset of str
        Those of the `keys` that are label maps, which are only meant where nothing else can be.
    asked : Asked
        Names of columns, and the split.
    folder : str
        Name of the folder of the source.

    Raises
    ------
    ConfigError
        The file cannot be read, or a line names no image, or several.
    """
    try:
        store, name = locate(path)
        return _select(store.read(name), path, keys, maps, asked, folder)
    except OSError as error:
        raise ConfigError(f"subset {path}: cannot be read: {error.strerror}") from error
    except SourceError as error:
        raise ConfigError(str(error)) from error


# Planning a set asks for the images of a list, and for remarks on it.
@lru_cache(maxsize=1)
def _select(
    content: bytes, path: str, keys: tuple[str, ...], maps: frozenset[str], asked: Asked, folder: str
) -> Listed:
    index = _KeyIndex(keys)
    listed = "'robustgen list --keys' prints all keys"
    first = f"the source has no such image; its first key is {keys[0]!r} ({listed})"
    tables = [*list_tables(content, path, index.there, of_lines=True)]
    # Whole lines come last: their last word may be a file.
    pictures = _KeyIndex([key for key in keys if key not in maps]) if maps else index

    def match(cells: Sequence[str]) -> list[list[Images]]:
        found = pictures.match(cells)
        # Beside pictures, a list may name label maps.
        both = zip(found, index.match(cells), strict=True) if maps and any(found) else ()
        return [one or other for one, other in both] or found

    read = read_rows(tables, path, match, asked, is_label_column)
    read = read or read_rows(tables, path, index.match, asked, is_label_column)
    if not tables:
        raise ConfigError(f"{path}: lists no image; write a key in each line ({listed})")
    if read is None:
        raise refuse_unmatched(tables, path, asked, keys[0], is_label_column)
    if read.title and not any(map(is_title, read.header)):
        raise ConfigError(f"{read.title}: read {read.header[read.header.index(read.file)]!r}, but {first}")
    wanted, above = set[str](), dict[str, str]()
    for (row, cells), found in zip(read.rows, read.found, strict=True):
        cell = cells[read.header.index(read.file)]
        if [*map(str, cells[1:])] == [_NOT_OF_THE_CLASS]:
            raise ConfigError(f"{path}: marks images of other classes with -1; list the others alone")
        if not found:
            raise ConfigError(f"{row}: read {cell!r}, but {first}")
        if len(found) > 1:
            one, other = (images[0] for images in sorted(found)[:2])
            raise ConfigError(f"{row}: {cell!r} may be {one!r} or {other!r}: write one of these keys")
        wanted.update(*found)
        if len(found[0]) == 1 and (head := _find_above(str(cell), found[0][0])):
            above[head] = row
    splits = sorted(each for each in {folder, *above} if each.lower() in SPLITS)
    if len(splits) > 1:
        first = next(each for each in splits if each != folder)
        raise ConfigError(
            f"{above[first]}: an image of {first!r} has the name of one in the source, which may be of "
            f"{' or '.join(map(repr, splits))}: list those of one split, with its folder as the source"
        )
    return Listed(
        tuple(key for key in keys if key in wanted),
        (*read.describe_prefixes(path, index.with_prefix | pictures.with_prefix), *read.doubt_splits(path)),
        tuple(read.describe(path, "", lambda found: ", ".join(found[0][:2]) + ", ..." * (len(found[0]) > 2))),
    )


class _KeyIndex:
    """Images by what a cell of a list may call them; `with_prefix` are cells with that of a tool."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys, self.there, self.with_prefix = keys, {*keys}, set[str]()

    def match(self, cells: Sequence[str]) -> list[list[Images]]:
        """Return what each of the cells of a column may name."""
        return [*map(self._find, cells)]

    def _find(self, cell: str) -> list[Images]:
        for text in (cell, cell.removesuffix("\r"), unescape_name(cell.removeprefix("\\"))):
            if text in self.there:
                return [(text,)]
        parts = [part for part in re.split(r"[/\\]", cell.strip()) if part not in ("", ".", "..")]
        parts[-1:] = [part for name in parts[-1:] for part in original_key(name).split("/")]
        for names in ("_files", "_stems", "_folders") if parts else ():
            places: Mapping[str, Images] = getattr(self, names).get(parts[-1], {})
            if found := _choose_nearest(places, parts[:-1]):
                return found
        if parts and len(own := self._files.get(strip_prefix(parts[-1]), {})) == 1:
            self.with_prefix.add(cell)
            return [*own.values()]
        return []

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


def _find_above(cell: str, key: str) -> str:
    """Return the name of the folder in a cell which is above the image `key`; "" if there is none."""
    folders = [
        part for part in re.split(r"[/\\]", cell.strip())[: -1 - key.count("/")] if part not in ("", ".")
    ]
    return folders[-1] if folders else ""


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
