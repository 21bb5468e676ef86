"""Lists of images, as the authors of data sets write them for a split, and as `robustgen list --keys` does.

A line, or one of its columns, names an image by its key, its path, its name or its name without suffix, or
names a folder, which stands for the images in it.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from typing import Final

from robustgen.errors import ConfigError, SourceError
from robustgen.files.storage import locate
from robustgen.files.text_files import unescape_name
from robustgen.sets.dataset.layouts import identify
from robustgen.sets.sources.labels import is_label_column
from robustgen.sets.sources.rows import ANY, Asked, is_title, list_tables, read_rows

_NOT_OF_THE_CLASS: Final = "-1"

Images = tuple[str, ...]
"""An image, or all images of a folder."""


def select_listed(path: str, keys: Sequence[str], maps: Collection[str] = (), asked: Asked = ANY) -> Images:
    """Return the images that a file lists, in the order of `keys`.

    Parameters
    ----------
    path : path or URL
    keys : sequence of str
        Images of the source.
    maps : collection of str
        Those of the `keys` that are label maps, which are only meant where nothing else can be.
    asked : Asked
        Names of columns, and the split.

    Raises
    ------
    ConfigError
        The file cannot be read, or a line names no image, or several.
    """
    index = _KeyIndex(keys)
    listed = "'robustgen list --keys' prints all keys"
    first = f"the source has no such image; its first key is {keys[0]!r} ({listed})"
    try:
        store, name = locate(path)
        tables = [*list_tables(store.read(name), path, index.there, of_lines=True)]
        # Whole lines come last: their last word may be a file.
        pictures = _KeyIndex([key for key in keys if key not in maps]) if maps else index

        def match(cells: Sequence[str]) -> list[list[Images]]:
            found = pictures.match(cells)
            # Beside pictures, a list may name label maps.
            both = zip(found, index.match(cells), strict=True) if maps and any(found) else ()
            return [one or other for one, other in both] or found

        read = read_rows(tables, path, match, asked, is_label_column)
        read = read or read_rows(tables, path, index.match, asked, is_label_column)
    except OSError as error:
        raise ConfigError(f"subset {path}: cannot be read: {error.strerror}") from error
    except SourceError as error:
        raise ConfigError(str(error)) from error
    if not tables:
        raise ConfigError(f"{path}: lists no image; write a key in each line ({listed})")
    if read is None:
        row, cells = tables[-1].rows[0]
        way = "name the column of files with the key file_column"
        raise ConfigError(f"{row}: read {cells[0][:80]!r}, but {first}; {way}")
    if read.title and not any(map(is_title, read.header)):
        raise ConfigError(f"{read.title}: read {read.header[read.header.index(read.file)]!r}, but {first}")
    wanted = set[str]()
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
    return tuple(key for key in keys if key in wanted)


class _KeyIndex:
    """Images by what a cell of a list may call them."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys, self.there = keys, {*keys}

    def match(self, cells: Sequence[str]) -> list[list[Images]]:
        """Return what each of the cells of a column may name."""
        return [*map(self._find, cells)]

    def _find(self, cell: str) -> list[Images]:
        for text in (cell, cell.removesuffix("\r"), unescape_name(cell.removeprefix("\\"))):
            if text in self.there:
                return [(text,)]
        parts = [part for part in re.split(r"[/\\]", cell.strip()) if part not in ("", ".", "..")]
        for names in ("_files", "_stems", "_folders") if parts else ():
            places: Mapping[str, Images] = getattr(self, names).get(parts[-1], {})
            if found := _choose_nearest(places, parts[:-1]):
                return found
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
