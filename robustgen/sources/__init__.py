"""Sources of images: folders, labelled folders, Tiny ImageNet, CIFAR and a few built-in photographs.

A source names its images by *keys*, relative POSIX paths ``"<class>/<file name>"``. The key decides the
random stream of an image, so one dataset has the same keys in whichever layout it is stored. Nothing that
lies in a source is trusted: links may not leave it, pickles run no code, archives are not extracted.
"""

import importlib.util
import io
import os
import pickle
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from robustgen.errors import ImageError, SourceError, UnknownNameError
from robustgen.imaging.decode import EXTENSIONS, Location, decode, reason_of
from robustgen.imaging.pixels import Rgb

# A key, and the reason for refusing it or None.
Found = tuple[str, str | None]


# --- decoding ------------------------------------------------------------------------------------


# --- what every source offers --------------------------------------------------------------------


class Source(ABC):
    """Images under unique keys. Picklable: listings and arrays are left behind and read again when needed.

    Parameters
    ----------
    location : path

    Raises
    ------
    SourceError
        There is nothing at `location`.
    """

    location: Path

    def __init__(self, location: Location) -> None:
        self.location = Path(location)
        with _malformed(self.location):
            self.location.stat()

    @abstractmethod
    def keys(self) -> tuple[str, ...]:
        """Return the keys of all usable images, sorted; listed once.

        Raises
        ------
        SourceError
            There are none, or the source is malformed.
        """

    @abstractmethod
    def load(self, key: str) -> Rgb:
        """Decode one image afresh.

        Returns
        -------
        uint8 ndarray of shape (H, W, 3), C-contiguous and writable

        Raises
        ------
        ImageError
            It cannot be read; the message names the key and the reason.
        """

    @abstractmethod
    def size(self, key: str) -> int:
        """Return the size of one image's file in bytes.

        Raises
        ------
        ImageError
            There is no such file.
        """

    @property
    @abstractmethod
    def classes(self) -> tuple[str, ...]:
        """Names of the classes; labels index them."""

    @abstractmethod
    def label(self, key: str) -> int:
        """Return the index of one image's class in `classes`.

        Raises
        ------
        ImageError
            `key` belongs to none of the classes.
        """

    def refused(self) -> dict[str, str]:
        """Return key and reason of whatever looks like an image but must not be processed."""
        return {}

    def output_name(self, key: str) -> str:
        """Return the POSIX path of the result for `key`: the key itself, ending in a name for JPEG."""
        if key.endswith((".JPEG", ".jpeg", ".jpg", ".JPG")):
            return key
        return f"{key.rpartition('.')[0] or key}.JPEG"

    def __getstate__(self) -> dict[str, Any]:
        cls = type(self)
        return {k: v for k, v in vars(self).items() if not isinstance(getattr(cls, k, None), cached_property)}


@contextmanager
def _malformed(where: object) -> Iterator[None]:
    """Turn any exception into a SourceError that names `where`: what is read here may hold anything."""
    try:
        yield
    except SourceError:
        raise
    except Exception as error:
        raise SourceError(f"{where}: {reason_of(error)}") from error


# --- folders -------------------------------------------------------------------------------------


class _Files(Source):
    """A source with one file for each image, below a folder."""

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        if not self.location.is_dir():
            raise SourceError(f"{self.location}: not a folder")

    @abstractmethod
    def _scan(self) -> Iterable[Found]:
        """All that look like images, in any order."""

    @abstractmethod
    def _path(self, key: str) -> Path:
        """Where the image lies; found without a listing, which worker processes do not have."""

    @cached_property
    def _listing(self) -> tuple[tuple[str, ...], dict[str, str]]:
        """The keys, and the refused ones with their reasons."""
        owners: dict[str, str] = {}
        refused: dict[str, str] = {}
        for key, reason in sorted(dict(self._scan()).items()):
            owner = key if reason else owners.setdefault(self.output_name(key), key)
            if reason or owner != key:
                refused[key] = reason or f"its result would overwrite that of {owner!r}"
        return tuple(owners.values()), refused

    def keys(self) -> tuple[str, ...]:
        keys, refused = self._listing
        if not keys:
            example = "".join(f"; {len(refused)} refused, {k!r}: {why}" for k, why in [*refused.items()][:1])
            raise SourceError(f"{self.location}: no images (looked for {', '.join(EXTENSIONS)}){example}")
        return keys

    def refused(self) -> dict[str, str]:
        return dict(self._listing[1])

    def load(self, key: str) -> Rgb:
        return decode(self._path(key), key)

    def size(self, key: str) -> int:
        try:
            return self._path(key).stat().st_size
        except (OSError, ValueError) as error:
            raise ImageError(f"{key!r}: {reason_of(error)}") from error

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(sorted({class_of(key) for key in self.keys()}))}

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(self._indices)

    def label(self, key: str) -> int:
        try:
            return self._indices[class_of(key)]
        except KeyError:
            raise ImageError(f"{key!r}: of no class that {self.location} has") from None


def class_of(key: str) -> str:
    """First folder of `key`; "" for an image directly in the root."""
    return key.partition("/")[0] if "/" in key else ""


class ImageFolder(_Files):
    """A folder of images; the class of an image is the first folder below `root`, or "".

    Links are followed where they stay inside `root`; hidden files and other extensions are passed over.

    Parameters
    ----------
    root : path

    Raises
    ------
    SourceError
        `root` is no folder.
    """

    def __init__(self, root: Location) -> None:
        super().__init__(root)

    def _scan(self) -> Iterable[Found]:
        return _walk(self.location)

    def _path(self, key: str) -> Path:
        return self.location / key


class LabelledFolder(_Files):
    """A flat folder of images and a text file that tells their classes.

    Parameters
    ----------
    root : path
    labels : path
        Lines ``name class`` (parted by tab, comma or space; the name with or without its extension),
        Kaggle's ``LOC_val_solution.csv``, or one class a line for the images in sorted order.

    Raises
    ------
    SourceError
        One of the two is missing. From `keys` and `refused`: the labels are malformed; names the line.
    """

    def __init__(self, root: Location, labels: Location) -> None:
        super().__init__(root)
        self.labels_file = Path(labels)
        with _malformed(self.labels_file):
            self.labels_file.stat()

    def _scan(self) -> Iterator[Found]:
        found = dict(_walk(self.location, deep=False))
        labels = _read_labels(self.labels_file, sorted(filter(_is_image, found)))
        for name, reason in found.items():
            label = labels.get(name) or labels.get(name.rpartition(".")[0])
            if label:
                yield f"{label}/{name}", reason
            else:
                yield name, reason or f"no label in {self.labels_file}"

    def _path(self, key: str) -> Path:
        return self.location / key.rpartition("/")[2]


class TinyImageNet(_Files):
    """The validation images of an unpacked tiny-imagenet-200, as shipped or sorted into class folders.

    Parameters
    ----------
    root : path
        The folder tiny-imagenet-200, or its folder val.

    Raises
    ------
    SourceError
        `root` is no folder.
    """

    def __init__(self, root: Location) -> None:
        super().__init__(root)
        val = self.location / "val"
        self._val = val if val.is_dir() else self.location
        images, labels = self._val / "images", self._val / "val_annotations.txt"
        # Scripts that sort the images into class folders often leave the labels behind.
        shipped = labels.is_file() and images.is_dir() and any(_walk(images, deep=False))
        self._shipped = LabelledFolder(images, labels) if shipped else None

    def _scan(self) -> Iterable[Found]:
        if self._shipped:
            return self._shipped._scan()
        return ((key.replace("/images/", "/", 1), reason) for key, reason in _walk(self._val))

    def _path(self, key: str) -> Path:
        if self._shipped:
            return self._shipped._path(key)
        wnid, _, name = key.partition("/")
        nested = self._val / wnid / "images"
        return nested / name if nested.is_dir() else self._val / key


class Photographs(_Files):
    """The photographs that scikit-image's wheel carries: a demonstration without any download.

    Raises
    ------
    SourceError
        scikit-image or some of the photographs are missing; says the remedy.
    """

    NAMES = (
        "astronaut.png",
        "chelsea.png",
        "coffee.png",
        "hubble_deep_field.jpg",
        "ihc.png",
        "motorcycle_left.png",
        "retina.jpg",
        "rocket.jpg",
    )

    def __init__(self) -> None:
        # Only looked up: importing scikit-image takes a second.
        spec = importlib.util.find_spec("skimage")
        folders = [Path(folder) / "data" for folder in (spec and spec.submodule_search_locations) or ()]
        complete = [folder for folder in folders if all((folder / name).is_file() for name in self.NAMES)]
        if not complete:
            remedy = "pip install --force-reinstall --no-deps scikit-image"
            raise SourceError(
                f"scikit-image with its photographs ({', '.join(self.NAMES)}) is missing: {remedy}"
            )
        super().__init__(complete[0])

    def _scan(self) -> Iterator[Found]:
        for name in self.NAMES:
            yield f"{Path(name).stem}/{name}", None

    def _path(self, key: str) -> Path:
        return self.location / key.rpartition("/")[2]


# --- walking a folder ----------------------------------------------------------------------------

# Folders that link to each other crosswise have exponentially many paths through them.
_MOST_LINKS = 3


class _Folder(NamedTuple):
    """A folder to list: what keys in it begin with, its real path, and the folders whose links led there."""

    prefix: str
    real: str
    trail: tuple[str, ...] = ()


def _walk(root: Path, deep: bool = True) -> Iterator[Found]:
    """Find the images below `root`, or only those directly in it, in any order."""
    top = os.path.realpath(root)
    pending = [_Folder("", top)]
    while pending:
        folder = pending.pop()
        for key, found in _look_into(folder, top):
            if not isinstance(found, _Folder):
                yield _checked(key, found)
            elif deep:
                pending.append(found)


def _look_into(folder: _Folder, top: str) -> Iterator[tuple[str, _Folder | str | None]]:
    """List one folder: folders to enter, and images with the reason for refusing them or None."""
    try:
        with os.scandir(folder.real) as listed:
            entries = [entry for entry in listed if entry.name.startswith("..") or entry.name[0] != "."]
    except OSError as error:
        yield folder.prefix.rstrip("/"), f"folder cannot be listed: {reason_of(error)}"
        return
    for entry in entries:
        key = folder.prefix + entry.name
        if entry.name.startswith(".."):
            # Neither hidden by anyone's habit nor a name to put below another folder.
            yield key, "its name begins with two dots"
        elif entry.is_symlink():
            yield from ((key, found) for found in _follow(entry, folder, top))
        elif entry.is_dir():
            yield key, _Folder(key + "/", entry.path, folder.trail)
        elif _is_image(entry.name):
            yield key, None if entry.is_file() else "not a regular file"


def _follow(entry: os.DirEntry[str], folder: _Folder, top: str) -> Iterator[_Folder | str | None]:
    """Yield what a link leads to, as `_look_into` does; nothing if it is no concern of ours."""
    try:
        real = Path(os.path.realpath(entry.path, strict=True))
        is_folder, is_file = real.is_dir(), real.is_file()
    except OSError as error:
        # A name without extension may be that of a class folder.
        if _is_image(entry.name) or "." not in entry.name:
            yield f"symlink that cannot be followed: {reason_of(error)}"
        return
    trail = (*folder.trail, folder.real)
    if not is_folder and not _is_image(entry.name):
        return
    if not real.is_relative_to(top):
        yield "symlink that leaves the source"
    elif not is_folder:
        yield None if is_file else "not a regular file"
    elif any(Path(visited).is_relative_to(real) for visited in trail):
        yield "symlink loop"
    elif len(trail) > _MOST_LINKS:
        yield f"more than {_MOST_LINKS} symlinked folders within each other"
    else:
        yield _Folder(f"{folder.prefix}{entry.name}/", str(real), trail)


def _checked(key: str, reason: str | None) -> Found:
    """Make `key` printable, refusing it where it was not."""
    printable = key.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return printable, reason or (None if printable == key else "file name is not valid UTF-8")


def _is_image(name: str) -> bool:
    return name.lower().endswith(EXTENSIONS)


# --- labels files --------------------------------------------------------------------------------


def _read_labels(path: Path, images: Sequence[str]) -> dict[str, str]:
    """Class by name, with or without extension, whichever of the formats `path` is in."""
    rows = [(number, _fields(line.strip())) for number, line in enumerate(_lines(path), 1) if line.strip()]
    if not rows:
        raise SourceError(f"{path}, line 1: no labels")
    if rows[0][1] == ["ImageId", "PredictionString"]:
        # Behind the class stand boxes.
        rows = [(number, [row[0], *" ".join(row[1:]).split()[:1]]) for number, row in rows[1:]]
    elif all(len(row) == 1 for _, row in rows):
        if len(rows) != len(images):
            raise SourceError(f"{path}, line {rows[-1][0]}: {len(rows)} labels for {len(images)} images")
        rows = [(number, [name, *row]) for name, (number, row) in zip(images, rows, strict=True)]
    return _by_name(path, rows)


def _lines(path: Path) -> list[str]:
    with _malformed(path):
        content = path.read_bytes()
    try:
        # Not splitlines(): it would also split at form feeds and the like.
        return content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SourceError(f"{path}, line {line}: not UTF-8") from error


def _fields(line: str) -> list[str]:
    """Split a line at its tabs, else at its last comma, else at its last space."""
    if "\t" in line:
        return [field.strip() for field in line.split("\t")][:2]
    if "," in line:
        return [field.strip() for field in line.rsplit(",", 1)]
    return line.rsplit(maxsplit=1)


def _by_name(path: Path, rows: Iterable[tuple[int, list[str]]]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for number, row in rows:
        if len(row) < 2:
            raise SourceError(f"{path}, line {number}: no class beside {row[0]!r}")
        name, label = row
        if not _is_folder_name(label):
            raise SourceError(f"{path}, line {number}: {label!r} cannot be the name of a class")
        if labels.setdefault(name, label) != label:
            raise SourceError(f"{path}, line {number}: {name!r} was {labels[name]!r} before, now {label!r}")
    return labels


def _is_folder_name(label: str) -> bool:
    """Whether results can be put into a folder called `label`, and nowhere else."""
    return label.isprintable() and not label.startswith(".") and label != "" and not set(label) & set("/\\")


# --- CIFAR ---------------------------------------------------------------------------------------


class _Edition(NamedTuple):
    """What CIFAR-10 and CIFAR-100 call their folder, files and dictionary entries."""

    folder: str
    batch: str
    meta: str
    labels: bytes
    names: bytes
    classes: int


_EDITIONS = (
    _Edition("cifar-10-batches-py", "test_batch", "batches.meta", b"labels", b"label_names", 10),
    _Edition("cifar-100-python", "test", "meta", b"fine_labels", b"fine_label_names", 100),
)
_MEMBERS = frozenset(name for edition in _EDITIONS for name in (edition.batch, edition.meta))
# Of the published batches the largest has 31 MB; more than 99 999 images would not fit five-digit keys.
_MOST_BYTES = 256 * 2**20
_PIXELS = 32 * 32 * 3


class _Batch(NamedTuple):
    """Content of a test batch: (N, 32, 32, 3) and (N,), read-only, and the names of the classes."""

    images: Rgb
    labels: npt.NDArray[np.int64]
    classes: tuple[str, ...]


class Cifar(Source):
    """The test split of CIFAR-10 or CIFAR-100 in the published Python format; keys are "00000", "00001", ...

    Parameters
    ----------
    path : path
        The folder cifar-10-batches-py or cifar-100-python, the one above it, or the .tar.gz, which is
        read in place.

    Raises
    ------
    SourceError
        There is nothing at `path`. From everything else: it holds no proper batch.
    """

    def __init__(self, path: Location) -> None:
        super().__init__(path)

    @cached_property
    def _batch(self) -> _Batch:
        files = [*_cifar_files(self.location).values()] or [self.location]
        with _malformed(self.location):
            return _read_cifar(self.location, tuple(file.stat().st_mtime_ns for file in files))

    @property
    def images(self) -> Rgb:
        """All images: uint8 ndarray of shape (N, 32, 32, 3), read-only."""
        return self._batch.images

    @property
    def labels(self) -> npt.NDArray[np.int64]:
        """All labels: int64 ndarray of shape (N,), read-only."""
        return self._batch.labels

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes in the order of the labels; digits where the published names are missing."""
        return self._batch.classes

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        return tuple(f"{index:05d}" for index in range(len(self.labels)))

    def keys(self) -> tuple[str, ...]:
        """Return the five-digit indices in the order of the batch."""
        return self._keys

    def load(self, key: str) -> Rgb:
        """Return a copy of one image: uint8 ndarray of shape (32, 32, 3); an unknown key is an ImageError."""
        image: Rgb = self.images[self._index(key)].copy()
        return image

    def label(self, key: str) -> int:
        """Return the label that the batch gives; an unknown key is an ImageError."""
        return int(self.labels[self._index(key)])

    def size(self, key: str) -> int:
        """Return the bytes of one image in the batch, 3072; an unknown key is an ImageError."""
        return int(self.images[self._index(key)].nbytes)

    def _index(self, key: str) -> int:
        if not (key.isdecimal() and int(key) < len(self.labels) and key == f"{int(key):05d}"):
            raise ImageError(f"{key!r}: no such image in {self.location}")
        return int(key)


def _cifar_files(location: Path) -> dict[str, Path]:
    """The files of a CIFAR folder, or of those below `location`, by name."""
    folders = (location, *(location / edition.folder for edition in _EDITIONS))
    return {name: folder / name for folder in folders for name in _MEMBERS if (folder / name).is_file()}


# Worker processes unpickle a source with each task; they shall not read the batch as often.
@lru_cache(maxsize=1)
def _read_cifar(location: Path, stamp: tuple[int, ...]) -> _Batch:
    """Read a batch; `stamp` only tells a changed one from the one remembered."""
    files = _read_folder(location) if location.is_dir() else _read_archive(location)
    present = [edition for edition in _EDITIONS if edition.batch in files]
    if len(present) != 1:
        choice = " nor ".join(edition.batch for edition in _EDITIONS)
        raise SourceError(f"{location}: holds {'both CIFARs; name one' if present else f'neither {choice}'}")
    return _parse(location, files, present[0])


def _read_folder(location: Path) -> dict[str, bytes]:
    files = _cifar_files(location)
    return {name: path.read_bytes() for name, path in files.items() if path.stat().st_size <= _MOST_BYTES}


def _read_archive(location: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    with tarfile.open(location, "r:gz") as archive:
        for member in archive:
            content = archive.extractfile(member) if _is_wanted(member) else None
            if content is not None:
                files.setdefault(PurePosixPath(member.name).name, content.read())
    return files


def _is_wanted(member: tarfile.TarInfo) -> bool:
    path = PurePosixPath(member.name)
    inside = len(path.parts) > 1 and not path.is_absolute() and ".." not in path.parts
    return inside and path.name in _MEMBERS and member.isreg() and member.size <= _MOST_BYTES


def _parse(location: Path, files: dict[str, bytes], edition: _Edition) -> _Batch:
    classes = tuple(str(index) for index in range(edition.classes))
    if edition.meta in files:
        with _malformed(f"{location}: {edition.meta}"):
            names = _entry(_unpickle(files[edition.meta]), edition.names, list)
            classes = tuple(name.decode() for name in names)
    with _malformed(f"{location}: {edition.batch}"):
        batch = _unpickle(files[edition.batch])
        images = _images(_entry(batch, b"data", _Pickled))
        labels = _labels(_entry(batch, edition.labels, list), len(images), len(classes))
    return _Batch(images, labels, classes)


def _entry(content: object, key: bytes, kind: type) -> Any:
    if not isinstance(content, dict):
        raise ValueError(f"a dict was expected, not {type(content).__name__}")
    if not isinstance(content.get(key), kind):
        raise ValueError(f"{key!r} is missing or of the wrong type")
    return content[key]


def _images(data: "_Pickled") -> Rgb:
    """Bring the (N, 3072) planes of a batch to (N, 32, 32, 3)."""
    _, shape, dtype, by_columns, content = data.state
    if dtype.made_from[0] not in ("u1", b"u1") or shape[1:] != (_PIXELS,) or not shape[0]:
        raise ValueError(f"b'data' must be uint8 of shape (N, {_PIXELS}), not {shape}")
    rows = np.frombuffer(content, np.uint8).reshape(shape, order="F" if by_columns else "C")
    images = np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    images.setflags(write=False)
    return images


def _labels(labels: list[object], images: int, classes: int) -> npt.NDArray[np.int64]:
    if len(labels) != images:
        raise ValueError(f"{len(labels)} labels for {images} images")
    wrong = [label for label in labels if type(label) is not int or not 0 <= label < classes]
    if wrong:
        raise ValueError(f"label {wrong[0]!r} is none of the integers from 0 to {classes - 1}")
    array = np.array(labels, np.int64)
    array.setflags(write=False)
    return array


class _Pickled:
    """Stands in for NumPy's classes in a pickle: only remembers what it was made from and its state."""

    def __init__(self, *made_from: Any) -> None:
        self.made_from = made_from

    def __setstate__(self, state: Any) -> None:
        self.state = state


def _latin1(text: str, _encoding: str) -> bytes:
    """Stand-in for `_codecs.encode`, with which Python 3 writes bytes into old pickles."""
    return text.encode("latin-1")


_STAND_INS: dict[tuple[str, str], Callable[..., object]] = {
    ("numpy", "ndarray"): _Pickled,
    ("numpy", "dtype"): _Pickled,
    ("numpy.core.multiarray", "_reconstruct"): _Pickled,
    ("numpy._core.multiarray", "_reconstruct"): _Pickled,
    ("_codecs", "encode"): _latin1,
}


class _Unpickler(pickle.Unpickler):
    """Gives pickles the stand-ins and no other global, so that they can run no code."""

    def find_class(self, module: str, name: str) -> Callable[..., object]:
        try:
            return _STAND_INS[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"asks for the global {module}.{name}, which is refused") from None


def _unpickle(content: bytes) -> object:
    return _Unpickler(io.BytesIO(content), encoding="bytes").load()


# --- opening -------------------------------------------------------------------------------------

KINDS = ("auto", "folder", "labelled", "tiny-imagenet", "cifar", "demo")


def open_source(path: Location | None, kind: str = "auto", labels: Location | None = None) -> Source:
    """Open a source of images.

    Parameters
    ----------
    path : path or None
        Where the images are; not looked at for the kind "demo".
    kind : {"auto", "folder", "labelled", "tiny-imagenet", "cifar", "demo"}
        "auto" tells the kind from what lies at `path`, and takes "labelled" if `labels` are given.
    labels : path, optional
        The labels file of the kind "labelled".

    Returns
    -------
    Source

    Raises
    ------
    UnknownNameError
        There is no such kind.
    SourceError
        There is nothing at `path`, or `labels` do not go with the kind.
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of source", kind, KINDS)
    if kind == "demo":
        return Photographs()
    if path is None:
        raise SourceError(f"a source of kind {kind!r} needs a path")
    with _malformed(path):
        kind = _detect(Path(path), labels) if kind == "auto" else kind
    if (kind == "labelled") != (labels is not None):
        raise SourceError(
            f"{path}: a labels file goes with the kind 'labelled', and with no other; kind is {kind!r}"
        )
    if labels is not None:
        return LabelledFolder(path, labels)
    openers: dict[str, Callable[[Location], Source]]
    openers = {"folder": ImageFolder, "tiny-imagenet": TinyImageNet, "cifar": Cifar}
    return openers[kind](path)


def _detect(path: Path, labels: Location | None) -> str:
    if labels is not None:
        return "labelled"
    if path.name.endswith((".tar.gz", ".tgz")) or _cifar_files(path):
        return "cifar"
    if (path / "val" / "val_annotations.txt").is_file() or (path / "val_annotations.txt").is_file():
        return "tiny-imagenet"
    # A sorted val folder may have lost its annotations; the list of classes lies above it.
    home = path.parent if path.name == "val" else path
    return "tiny-imagenet" if (home / "wnids.txt").is_file() and (home / "val").is_dir() else "folder"
