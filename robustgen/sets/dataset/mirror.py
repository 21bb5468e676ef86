"""Other files of a source than its photographs: label maps, annotations and lists, repeated in every variant.

Each variant is then a complete data set, which other tools read like the original.
"""

import re
import zipfile
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, Final

import numpy as np

from robustgen.display.text import format_count
from robustgen.files.containers.array_files import read_header
from robustgen.files.ledger import Failure, Record
from robustgen.files.set_files import FRAMES, SUMS, WrittenFile
from robustgen.files.storage import Store, measure
from robustgen.pixels.imaging.decode import read_dimensions
from robustgen.sets.dataset.layouts import find_owner, identify
from robustgen.sets.dataset.outputs import measure_file

_TEXTS: Final = (
    *(".txt", ".yaml", ".yml", ".json", ".jsonl", ".csv", ".tsv", ".xml", ".lst", ".list", ".data", ".cfg"),
    *(".toml", ".py"),
)
# Arrays that loaders cache beside pictures, and read in their place.
_ARRAYS: Final = (".npy", ".npz")
# Files that may contain the clean pictures; those of TensorFlow may end in their number.
_CONTAINERS: Final = re.compile(
    r".*\.(cache|(tf)?records?(-\d+-of-\d+)?|h5|hdf5?|zip|tar|tgz|gz|bz2|xz|zst|7z|rar|lmdb|mdb|rec|beton|mds"
    r"|arrow|feather|parquet|pt|pth|pkl|pickle|mat|db|sqlite3?)",
    re.IGNORECASE,
)
# The field of labelme's files with the picture itself, in base64.
_IMAGE_DATA: Final = re.compile(rb'("imageData"\s*:\s*)"[A-Za-z0-9+/=\\\s]{64,}"')
# After a colon, it would be a URL.
_ABSOLUTE: Final = re.compile(rb"(?:^|[\s\"'=,>\[(])(/[^\s\"'<>,\])]+)", re.MULTILINE)
_MOST_NAMED, _MOST_FOLDERS = 3, 10
# Bytes of an array of which one counts the values: label maps have few.
_LOOKED_AT, _FEW_VALUES = 1 << 20, 64


def select_companions(names: Iterable[str], images: Collection[str], others: Collection[str]) -> list[str]:
    """Return the files among `names` that belong to `images`, and not only to others.

    A file belongs to an image if its name begins with that of the image. Files named after no image belong to
    all images, unless a word of their path names a folder with only other images, such as ``train2017``.

    Parameters
    ----------
    names : iterable of str
    images : collection of str
        Selected images.
    others : collection of str
        All other pictures.
    """
    own, foreign = {identify(name) for name in images}, {identify(name) for name in others}
    known = own | foreign
    near = {part for name in images for part in name.split("/")[:-1]}
    far = {part for name in others for part in name.split("/")[:-1]} - near

    def goes_along(name: str) -> bool:
        if name in others:
            return False
        owner = find_owner(name, known)
        # Images of several folders may have one name.
        if owner and (owner in own) != (owner in foreign):
            return owner in own
        return far.isdisjoint(re.split(r"[/._-]", name))

    return [name for name in names if goes_along(name)]


@dataclass(frozen=True, eq=False)
class Mirror:
    """Copies of the other files of a source in an output.

    Attributes
    ----------
    source : Store
    images : frozenset of str
        Paths of the images in the source, which are not repeated.
    others : frozenset of str
        Paths of its other images, which are not repeated either.
    maps : frozenset of str
        Paths of its label maps, which are repeated like any other file.
    link : bool
        Whether to create hard links, if the file system supports them, instead of copies.
    """

    source: Store
    images: frozenset[str]
    others: frozenset[str]
    maps: frozenset[str]
    link: bool

    def extend(self, images: Collection[str]) -> "Mirror":
        """Return the mirror of further `images`."""
        return replace(self, images=self.images.union(images), others=self.others.difference(images))

    @cached_property
    def _names(self) -> tuple[list[str], list[Failure]]:
        """Return the other files, except for hidden ones, and those that cannot be repeated, with reasons."""
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
        return [name for name in names if name not in irregular], failures

    def list_files(self) -> tuple[list[str], list[Failure]]:
        """Return the files to repeat, and the files that cannot be repeated, with reasons.

        Hidden files are skipped, and so are files that belong to images that were not selected.
        """
        names, failures = self._names
        names = [name for name in names if name not in self.cached]
        if self.others:
            names = select_companions(names, self.images, self.others)
        return names, sorted(failures, key=lambda failure: failure["key"])

    @cached_property
    def cached(self) -> frozenset[str]:
        """Return the arrays of a picture, called like one of the images, which are not repeated."""
        return frozenset(name for name, is_cache in self._arrays.items() if is_cache)

    @cached_property
    def _arrays(self) -> dict[str, bool]:
        """Return the files of arrays that are pictures, and whether each is that of one of the images."""
        beside = {name.rpartition(".")[0]: name for name in self.images | self.others}
        stems, found = {name.rpartition("/")[2] for name in beside}, {}
        for name in self._names[0]:
            if name.lower().endswith(_ARRAYS):
                stem = name.rpartition(".")[0]
                with suppress(OSError, ValueError, zipfile.BadZipFile):
                    if axes := self._count_axes(name, beside.get(stem)):
                        found[name] = axes == len("HWC") and stem.rpartition("/")[2] in stems
        return found

    def _count_axes(self, name: str, image: str | None) -> int:
        """Return the number of axes of an array that is a picture, or several; 0 for any other array.

        A picture is uint8 of many values, or has the size of the `image` beside it.
        """
        with ExitStack() as stack:
            file: IO[bytes] = stack.enter_context(self.source.open(name))
            members = [file]
            if zipfile.is_zipfile(file):
                archive = stack.enter_context(zipfile.ZipFile(file))
                members = [stack.enter_context(archive.open(each)) for each in archive.namelist()]
            else:
                file.seek(0)
            for member in members:
                shape, dtype, _ = read_header(member)
                if dtype == np.uint8:
                    values = np.unique(np.frombuffer(member.read(_LOOKED_AT), np.uint8))
                    is_picture, channels = len(values) > _FEW_VALUES, {1, 3, 4}
                else:
                    sides = read_dimensions(stack.enter_context(self.source.open(image))) if image else ()
                    is_picture, channels = (
                        bool(sides) and {*sides} <= {*shape} and dtype.kind in "iuf",
                        {3, 4},
                    )
                if is_picture and len(shape) >= len("HWC") and channels & {shape[0], shape[-1]}:
                    return len(shape)
        return 0

    @cached_property
    def _emptied(self) -> frozenset[str]:
        """Return the files of labelme whose field with the picture is emptied."""
        names = (name for name in self._names[0] if name.lower().endswith(".json"))
        return frozenset(name for name in names if _IMAGE_DATA.search(self.source.read(name)))

    def describe_clean_pictures(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return remarks on files with clean pictures: those left out, and those of the repeated `names`."""
        others = self._arrays.keys() - self.cached
        found = {
            "arrays of the clean pictures, which are not repeated": sorted(self.cached),
            "files that may contain pictures, which would stay clean": [
                name for name in names if _CONTAINERS.fullmatch(name) or name in others
            ],
            "files of labelme, repeated without the clean pictures in imageData": sorted(
                self._emptied.intersection(names)
            ),
        }
        return tuple(
            f"mirror: {what}: {format_count(len(each), 'file')}, {', '.join(map(repr, each[:_MOST_NAMED]))}"
            + ", ..." * (len(each) > _MOST_NAMED)
            for what, each in found.items()
            if each
        )

    def describe_left_out(self) -> tuple[str, ...]:
        """Return a remark on the files that are not repeated because they belong to other images."""
        left = {*self._names[0]}.difference(self.list_files()[0], self.cached)
        if not left:
            return ()
        counts = Counter((name.rpartition("/")[0], PurePosixPath(name).suffix) for name in left)
        folders = [
            f"{folder or '.'}/ ({count}{suffix and f' {suffix}'})"
            for (folder, suffix), count in sorted(counts.items())
        ]
        named = [*map(repr, sorted(left))] if len(left) <= _MOST_NAMED else folders
        more = ", ..." * (len(named) > _MOST_FOLDERS)
        are = "are" if len(left) > 1 else "is"
        return (
            f"mirror: {format_count(len(left), 'file')} of images that are not selected {are} not repeated: "
            f"{', '.join(named[:_MOST_FOLDERS])}{more}",
        )

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
        described = self.source.map(self._describe, names)
        files = [each._replace(path=f"{folder}/{each.path}") for each in described]
        return Record({}, [folder], files)

    def copy(self, folder: str, store: Store, path: str) -> None:
        """Create the copy at `path`, in `folder` of the output `store`."""
        name = path.removeprefix(f"{folder}/")
        if name in self._emptied:
            store.put(path, self._empty(name))
        else:
            store.copy(self.source, name, path, link=self.link)

    def _empty(self, name: str) -> bytes:
        return _IMAGE_DATA.sub(rb"\1null", self.source.read(name))

    @cache  # noqa: B019
    def _describe(self, name: str) -> WrittenFile:
        if name in self._emptied:
            return WrittenFile(name, *measure(BytesIO(self._empty(name))))
        return WrittenFile(name, *measure_file(self.source, name))


def _leads_to(text: bytes, roots: Iterable[str], files: Collection[bytes]) -> bool:
    """Return whether `text` contains one of the `roots`, or an absolute path to one of the `files`."""
    plain = text.replace(b"\\/", b"/")
    return any(re.search(re.escape(root.encode()) + rb"(?![\w.-])", plain) for root in roots) or any(
        path.rpartition(b"/")[2] in files for path in _ABSOLUTE.findall(plain)
    )


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))
