"""Places of sources: a file, a folder, or a pattern of files, local or behind a URL."""

import fnmatch
import itertools
import os
import re
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from robustgen.errors import SourceError
from robustgen.files.containers.archives import open_compressed
from robustgen.files.storage import Store, locate, open_store
from robustgen.pixels.imaging.decode import EXTENSIONS, Location
from robustgen.sets.sources.base import name_source_in_errors

_MOST_FILES: Final = 100_000
COMPRESSED: Final = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
SHARDS: Final = (".tar", *COMPRESSED)
ARCHIVES: Final = (*SHARDS, ".zip")
PARQUET: Final = ".parquet"
ARRAYS: Final = (".npy", ".npz", ".mat")
TEXT_TABLES: Final = (".jsonl", ".tsv")
_LISTS: Final = (".csv", ".json", ".list", ".lst", ".txt")
OF_LISTS: Final = "name the folder of its images with --source, and the file with --labels or --subset @FILE"
"""Sentence on a list that is given as a source."""
VIDEOS: Final = (
    *(".mp4", ".m4v", ".mov", ".webm", ".mkv", ".avi", ".mpg", ".mpeg", ".ts", ".mts", ".flv", ".wmv"),
    *(".ogv", ".3gp", ".3g2", ".asf", ".m2ts", ".vob", ".f4v"),
)
"""Suffixes of video files."""


class SourceFile(NamedTuple):
    """A file of a source when it was listed; the size is -1 if it does not exist."""

    store: Store
    name: str
    size: int
    stamp: str

    @classmethod
    def look(cls, store: Store, name: str) -> "SourceFile":
        """Look up one file."""
        try:
            return cls(store, name, *store.stat(name)[1:])
        except FileNotFoundError:
            return cls(store, name, -1, "missing")


class Place:
    """A place named by a user: a path, a URL, or a pattern such as ``val-{000000..000063}.tar``.

    Attributes
    ----------
    location : str
        Absolute path or URL.
    store : Store
        Its parent folder.
    name : str

    Examples
    --------
    >>> from robustgen.plugins import Place
    >>> place = Place("photos/val-{000000..000063}.tar")
    >>> place.name, place.is_pattern, place.has_suffix(".tar")
    ('val-{000000..000063}.tar', True, True)
    """

    def __init__(self, location: Location) -> None:
        self.store: Store
        self.name: str
        self.store, self.name = locate(location)
        self.location: str = f"{self.store.location}/{self.name}" if self.name else self.store.location

    def __getstate__(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in ("location", "store", "name")}

    def has_suffix(self, *suffixes: str) -> bool:
        """Return True if the name ends in one of `suffixes`, in any case."""
        return self.name.lower().endswith(suffixes)

    @cached_property
    def is_pattern(self) -> bool:
        """Return True if the name is a pattern of files, not an existing file."""
        is_there = self.store.is_local and os.path.lexists(self.location)
        return not is_there and bool(re.search(r"[*?\[{]", self.name))

    @cached_property
    def is_folder(self) -> bool:
        """Return True if the place is a folder; for a URL, its name decides."""
        if self.store.is_local:
            return os.path.isdir(self.location)  # noqa: PTH112
        return not self.is_pattern and not self.has_suffix(
            *ARCHIVES, PARQUET, *TEXT_TABLES, *ARRAYS, *EXTENSIONS, *VIDEOS
        )

    @property
    def is_image(self) -> bool:
        """Return True if the place is a single image."""
        return self.has_suffix(*EXTENSIONS) and not self.is_folder and not self.is_pattern

    @cached_property
    def folder(self) -> Store:
        """Return the store of this folder."""
        return open_store(self.location)

    @cached_property
    def children(self) -> dict[str, bool]:
        """Return the names directly in this folder, except hidden ones, and whether each is a folder."""
        if self.store.is_local:
            with os.scandir(self.location) as entries:
                found = {entry.name: entry.is_dir() for entry in entries}
        else:
            paths = (entry.path.partition("/") for entry in self.folder.list())
            found = {name: bool(slash) for name, slash, _ in paths}
        return {name: is_folder for name, is_folder in found.items() if not name.startswith(".")}

    def expand(self, suffixes: tuple[str, ...], split: str | None = None) -> list[SourceFile]:
        """Return the sorted files of the place: those with `suffixes` in a folder, or those of a pattern.

        With a `split`, keep only names that contain it as a word: ``train-00000-of-00005.parquet``.

        Raises
        ------
        SourceError
            There are no files, or too many.
        """
        store, names = self.store, [self.name]
        if self.is_folder:
            store, names = self.folder, [n for n in self.children if n.lower().endswith(suffixes)]
        elif self.is_pattern:
            names, parent = [], Place(store.location)
            for name in itertools.islice(_expand_braces(self.name), _MOST_FILES + 1):
                is_starred = re.search(r"[*?\[]", name)
                names += fnmatch.filter(parent.children, name) if is_starred else [name]
        if split:
            names = [name for name in names if split in re.split(r"[-_.]", name)]
        if not names or len(names) > _MOST_FILES:
            own = f" of the split {split!r}" if split else ""
            problem = "too many files" if names else f"no file{own} ({', '.join(suffixes)})"
            raise SourceError(f"{self.location}: matches {problem}")
        with ThreadPoolExecutor(1 if store.is_local else 16) as pool:
            return list(pool.map(lambda name: SourceFile.look(store, name), sorted({*names})))


def find_place(location: Location | Place) -> Place:
    """Return the place at `location`; raise a SourceError if it is a local path that does not exist."""
    with name_source_in_errors(location):
        place = location if isinstance(location, Place) else Place(location)
        # URLs and patterns are looked up later.
        if place.store.is_local and not place.is_pattern:
            os.stat(place.location)  # noqa: PTH116
    return place


def _expand_braces(text: str) -> Iterator[str]:
    braces = re.search(r"\{([^{}]*)\}", text)
    if not braces:
        yield text
        return
    choices: Iterable[str] = braces[1].split(",")
    if span := re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})", braces[1]):
        width = len(span[1]) if span[1].startswith("0") else 0
        choices = (f"{number:0{width}d}" for number in range(int(span[1]), int(span[2]) + 1))
    for choice in choices:
        yield from _expand_braces(f"{text[: braces.start()]}{choice}{text[braces.end() :]}")


# --- files of known names ------------------------------------------------------------------------


# CIFAR unpacks to 186 MB; skipping the rest of a larger archive would only take time.
_MOST_UNPACKED: Final = 2 << 30


def read_named_files(
    place: Place, names: Collection[str], folders: Collection[str], most: int
) -> dict[str, bytes]:
    """Read the files called `names` in a folder or in `folders` below it, or in `folders` of a tar.

    Raises
    ------
    OSError
        `place` cannot be read.
    ValueError
        A file has more than `most` bytes, or the tar is far larger than such files.
    """
    found: dict[str, bytes] = {}
    if place.is_folder:
        for path in (prefix + name for prefix in ("", *(f"{each}/" for each in folders)) for name in names):
            if place.folder.exists(path):
                found.setdefault(PurePosixPath(path).name, place.folder.read(path, 0, most + 1))
    else:
        with place.store.open(place.name) as packed, open_compressed(packed) as archive:
            for member in archive:
                if member.offset_data + member.size > _MOST_UNPACKED:
                    raise ValueError(f"unpacks to more than {_MOST_UNPACKED} bytes")
                folder, _, name = member.name.rpartition("/")
                wanted = name in names and PurePosixPath(folder).name in folders
                if wanted and member.isreg() and (file := archive.extractfile(member)):
                    found.setdefault(name, file.read(most + 1))
    for name, content in found.items():
        if len(content) > most:
            raise ValueError(f"{name} has more than {most} bytes")
    return found


# --- formats of other libraries ------------------------------------------------------------------


_EXPORT: Final = "write its images into class folders, or as WebDataset shards or Parquet"
_SAVE: Final = "write its arrays with numpy.savez(file, images=..., labels=...)"
_LOAD: Final = "load it with datasets.load_from_disk, and write each split with .to_parquet('test.parquet')"
_EACH: Final = f"{_EXPORT}, for instance"
_TFRECORDS: Final = r".+\.tfrecords?(-.*|\.gz)?|\w+-\d{5}-of-\d{5}"
# Pattern of file names, name of the format, and the way to convert it.
_FOREIGN: Final = (
    (r"dataset_dict\.json|.+\.arrow", "a folder of `save_to_disk`", _LOAD),
    (_TFRECORDS, "TFRecord", f"{_EACH} with tensorflow_datasets.as_numpy"),
    (r"data\.mdb|lock\.mdb|.+\.lmdb", "an LMDB", f"{_EACH} the entries of lmdb.open(...).begin()"),
    (r".+\.beton", "FFCV", f"name the images that the .beton was written from, or {_EXPORT}"),
    (r".+\.rec", "RecordIO", f"{_EACH} with mxnet.recordio"),
    (r".+\.(h5|hdf5)", "HDF5", _SAVE),
    (r".+\.(pt|pth)", "a file of PyTorch", _SAVE.replace("arrays", "tensors")),
    (r".+\.(pkl|pickle)", "a pickle", _SAVE),
    (r".+\.(7z|rar|zst)", "a compressed file", "unpack it, or pack it as .zip or .tar"),
)


_HEAD_BYTES: Final = 1 << 20
# A longer word is a picture as text.
_MOST_OF_WORD: Final = 1000


def explain_foreign(place: Place) -> str:
    """Return the format of another library that is at `place`, and a way to convert it; "" if unknown.

    Object stores have no folders, so one without objects does not exist.
    """
    if place.is_folder and not place.store.is_local and not place.children:
        return "no such folder: nothing in the bucket has this prefix"
    if place.has_suffix(".csv") and not place.is_folder:
        words = re.split(rb"[,;\s]", place.store.read(place.name, 0, _HEAD_BYTES))
        if max(map(len, words)) > _MOST_OF_WORD:
            way = f"pandas.read_csv('{place.name}').to_csv('{place.name[:-4]}.tsv', sep='\\t', index=False)"
            return f"a CSV with pictures in its cells, which is not read; convert it with {way}"
    names = [*_walk_names(place)] if place.is_folder else [place.name]
    for pattern, what, way in _FOREIGN:
        if found := next((name for name in names if re.fullmatch(pattern, name, re.IGNORECASE)), None):
            there = f"contains {found}: " if place.is_folder else ""
            return f"{there}{what}, which is not read; {way}"
    if place.has_suffix(*_LISTS) and not place.is_folder:
        return f"neither a folder, an image nor an archive; if it is a list, {OF_LISTS}"
    return ""


def _walk_names(place: Place, depth: int = 2) -> Iterator[str]:
    """Yield the names in a folder, and in folders in it, as some libraries name folders after releases."""
    for name, is_folder in sorted(place.children.items()):
        if not is_folder:
            yield name
        elif depth:
            yield from _walk_names(Place(f"{place.location}/{name}"), depth - 1)
