"""Predictions on disk: one `.npz` for each corruption and severity, or for each perturbation.

    clean.npz  fog/1.npz ... fog/5.npz          of a C set
    tilt.npz   shot_noise.npz  shot_noise_2.npz of a P set

Each contains, for N images (or N sequences of T frames) and K classes,

    logits        (N, K) or (N, T, K), float        or, instead,
    top1, top5    (N,), (N, 5) or (N, T), (N, T, 5), int32, best first, and classes (), the number K
    labels        (N,), int64; optional for a P set
    keys          (N,), str
"""

import hashlib
import math
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustgen.errors import ArgumentError, OutputError, SourceError, UnfinishedError
from robustgen.files.containers.array_files import read_header
from robustgen.files.lazy import cached_property
from robustgen.files.set_files import STATE, WrittenFile, check_folder, read_described
from robustgen.files.storage import Store, measure, open_store
from robustgen.files.text_files import describe_difference
from robustgen.metrics import top_classes
from robustgen.pixels.benchmarks.kinds import BENCHMARKS, CLEAN, Kind, Variant, parse_variant
from robustgen.pixels.imaging.cleaning import CLEANINGS

# Names of files that are no folder of severities.
_NO_SEVERITIES = {CLEAN, *BENCHMARKS["p"].names}
_SEVERITY = re.compile(r"[^/]+/[\d.]+")

Saved = Literal["logits", "top5"]
ABOUT = "predictions.json"
_CHUNK_BYTES = 1 << 26
# Far larger than any real set (ten million images, four thousand letters a key), yet safe for memory.
_MOST_IMAGES = 10_000_000
_MOST_KEY_BYTES, _MOST_ENTRY_BYTES, _MOST_ROW_BYTES = 1 << 14, 1 << 30, 1 << 28


def list_treatments(settings: Mapping[str, Any]) -> list[str]:
    """Return the cleaning of the images that `predictions.json` records, if there is any."""
    given = settings.get("preprocessing")
    places = settings.get("cleaned"), given.get("clean_input") if isinstance(given, Mapping) else None
    names = [name for place in places if isinstance(place, Mapping) for name in place]
    return [each.title for name, each in CLEANINGS.items() if name in names]


def describe_outputs(settings: Mapping[str, Any]) -> str:
    """Return how `predictions.json` says that outputs were computed, if not as usual, after a comma."""
    only = settings.get("only_classes")
    cleaned = ", a set cleaned by preprocess" if settings.get("cleaned") else ""
    return cleaned + (f", among the {len(only)} classes of the set" if isinstance(only, list) else "")


# --- writing -------------------------------------------------------------------------------------


def path_of(folder: str) -> str:
    """Return the path of the file of the variant in `folder`, for instance ``fog/3``."""
    return f"{folder}.npz"


def write_predictions(
    root: str | Path,
    variant: Variant | str,
    keys: Sequence[str],
    labels: ArrayLike | None,
    logits: ArrayLike,
    save: Saved = "logits",
) -> str:
    """Write the predictions of one variant, in the form that `robustgen score` reads.

    Parameters
    ----------
    root : path or URL
        Folder of the model's predictions; created if needed.
    variant : Variant or str
        ``"fog/3"``, ``"clean"``, ``"tilt"``, ...
    keys : sequence of str
    labels : array_like, (N,), integer, optional
    logits : array_like, (N, K) or (N, T, K), float
    save : {"logits", "top5"}
        Whether to store the logits, or only the five best classes.

    Returns
    -------
    str
        Path or URL of the file.

    Raises
    ------
    ArgumentError
        The logits contain NaN, or shapes do not match.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> logits = np.array([[2.0, 1.0], [0.0, 3.0]])
    >>> path = robustgen.write_predictions("preds/m", "fog/3", ["a.png", "b.png"], [0, 0], logits)
    >>> robustgen.score("preds/m", partial=True).mean("error")
    0.5
    """
    folder, store = variant if isinstance(variant, str) else variant.folder, open_store(root)
    scores = np.asarray(logits)
    best = top_classes(scores, 5 if save == "top5" else 1)
    outputs = {"logits": scores} if save == "logits" else top5_entries(best, scores.shape[-1])
    try:
        path = write_entries(store, folder, keys, labels, outputs).path
        try:
            file = PredictionFile(store, path, parse_variant(folder, "p" if scores.ndim == 3 else "c"))
            file.check()
        except SourceError:
            store.delete(path)
            raise
    finally:
        store.clean()
    return file.location


def top5_entries(best: NDArray[Any], classes: int) -> dict[str, NDArray[Any]]:
    """Return the entries stored instead of logits: `best` (..., 5), and the number of classes."""
    lists = best.astype(np.int32, copy=False)
    return {"top1": lists[..., 0], "top5": lists, "classes": np.array(classes)}


@dataclass(frozen=True)
class Pieces:
    """An array that is written in pieces, because it may be larger than memory."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    pieces: Iterable[NDArray[Any]]


def write_entries(
    store: Store,
    folder: str,
    keys: Sequence[str],
    labels: ArrayLike | None,
    outputs: Mapping[str, NDArray[Any] | Pieces],
) -> WrittenFile:
    """Write the file of the variant in `folder`, completely or not at all."""
    entries = dict(outputs)
    if labels is not None:
        entries["labels"] = np.asarray(labels, np.int64)
    entries["keys"] = np.array(keys, np.str_)
    with store.create(path_of(folder)) as target:
        with zipfile.ZipFile(target, "w") as archive:
            for name, array in entries.items():
                entry = zipfile.ZipInfo(f"{name}.npy")
                # Logits hardly compress; keys, with four bytes a letter, do.
                entry.compress_type = zipfile.ZIP_STORED if name == "logits" else zipfile.ZIP_DEFLATED
                with archive.open(entry, "w", force_zip64=True) as file:
                    _write_array(file, array)
        return WrittenFile(path_of(folder), *measure(target))


def _write_array(file: IO[bytes], array: NDArray[Any] | Pieces) -> None:
    if not isinstance(array, Pieces):
        return np.lib.format.write_array(file, array, allow_pickle=False)
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(file, header)
    for piece in array.pieces:
        file.write(piece.tobytes())


# --- reading -------------------------------------------------------------------------------------


# Errors that reading a damaged archive raises; the last two for unusual compression or encryption.
_DAMAGE = (
    *(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error),
    *(NotImplementedError, RuntimeError),
)


@contextmanager
def prefix_errors(path: str) -> Iterator[None]:
    """Put `path` at the beginning of the message of any error in it."""
    try:
        yield
    except SourceError:
        raise
    except ArgumentError as error:
        raise SourceError(f"{path}: {error}") from error
    except _DAMAGE as error:
        raise SourceError(f"{path}: not a complete file of predictions ({error})") from error


_Head = tuple[dict[str, NDArray[Any]], dict[str, tuple[int, ...]]]


@dataclass(eq=False)
class PredictionFile:
    """One `.npz`, whose logits are read in pieces.

    Parameters
    ----------
    store : Store
    path : str
    variant : Variant
    """

    store: Store
    path: str
    variant: Variant

    @property
    def location(self) -> str:
        """Return its path or URL, for messages."""
        return f"{self.store.location}/{self.path}"

    @contextmanager
    def _open(self) -> Iterator[zipfile.ZipFile]:
        with self.store.open(self.path) as file, zipfile.ZipFile(file) as archive:
            yield archive

    @cached_property
    def _head(self) -> _Head:
        """Return the small entries, and the shapes of the large ones."""
        with prefix_errors(self.location), self._open() as archive:
            names = {name.removesuffix(".npy") for name in archive.namelist()}
            small = {name: _read_entry(archive, name) for name in names & {"keys", "labels", "classes"}}
            shapes = dict[str, tuple[int, ...]]()
            for name in names & {"logits", "top1", "top5"}:
                with archive.open(f"{name}.npy") as file:
                    shapes[name], *_ = read_header(file)
            return small, shapes

    @property
    def small(self) -> dict[str, NDArray[Any]]:
        """Return all entries except logits and lists of best classes."""
        return self._head[0]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of logits, top1 and top5, if present."""
        return self._head[1]

    @property
    def has_logits(self) -> bool:
        """Return whether it contains logits, rather than lists of the best classes."""
        return "logits" in self.shapes

    @property
    def outputs(self) -> tuple[int, ...]:
        """Return the shape (N,) or (N, T)."""
        return self.shapes["logits"][:-1] if self.has_logits else self.shapes["top1"]

    @property
    def classes(self) -> int | None:
        """Return K, if the file contains it."""
        if self.has_logits:
            return self.shapes["logits"][-1]
        return int(self.small["classes"]) if "classes" in self.small else None

    @property
    def lists(self) -> int:
        """Return the number of best classes: 5, or fewer if the model has fewer classes."""
        return min(5, self.classes or 5) if self.has_logits or "top5" in self.shapes else 1

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Return the names of the images or sequences."""
        return _list_keys(self.small["keys"].tobytes(), self.small["keys"].dtype)

    @property
    def labels(self) -> NDArray[Any] | None:
        """Return the true classes, (N,)."""
        return self.small.get("labels")

    def check(self) -> None:
        """Raise a SourceError if the entries do not match each other; `best` checks the logits."""
        with prefix_errors(self.location):
            self._check()

    def _check(self) -> None:
        if not (self.has_logits or "top1" in self.shapes):
            raise ArgumentError("has neither logits nor top1 and top5")
        if "keys" not in self.small or self.small["keys"].dtype.kind != "U" or self.small["keys"].ndim != 1:
            raise ArgumentError("has no list of keys")
        if len(set(self.keys)) != len(self.keys):
            raise ArgumentError("has a key twice")
        name = "logits" if self.has_logits else "top1"
        if len(self.outputs) not in (1, 2) or 0 in self.shapes[name]:
            raise ArgumentError(f"{name} have the shape {self.shapes[name]}")
        if len(self.keys) != self.outputs[0]:
            raise ArgumentError(f"{len(self.keys)} keys for {self.outputs[0]} predictions")
        if not self.has_logits and self.shapes.get("top5", (*self.outputs, 5)) != (*self.outputs, 5):
            raise ArgumentError(f"top5 has the shape {self.shapes['top5']}, not {(*self.outputs, 5)}")
        labels = self.labels
        if labels is None and len(self.outputs) == 2:
            return
        if labels is None or labels.dtype.kind not in "iu" or labels.ndim != 1:
            raise ArgumentError("has no list of integer labels")
        if len(labels) != len(self.keys):
            raise ArgumentError(f"{len(labels)} labels for {len(self.keys)} keys")
        if labels.min() < 0 or (self.classes and labels.max() >= self.classes):
            most = f"0 to {self.classes - 1}" if self.classes else "0 or more"
            raise ArgumentError(f"labels must be {most}, not {labels.min()} to {labels.max()}")

    def best(self, count: int) -> Iterator[NDArray[Any]]:
        """Yield the `count` best classes, (n, count) or (n, T, count), in pieces.

        Raises
        ------
        SourceError
            The logits contain NaN, or the file is incomplete.
        """
        with prefix_errors(self.location):
            if self.has_logits:
                for rows in self._rows("logits"):
                    yield top_classes(rows, count)
            elif count == 1:
                yield from (self._check_range(rows)[..., None] for rows in self._rows("top1"))
            else:
                yield from map(self._check_range, self._rows("top5"))

    def logits(self) -> Iterator[NDArray[Any]]:
        """Yield the logits, (n, K) or (n, T, K), in pieces.

        Raises
        ------
        SourceError
            There are no logits, or the file is incomplete.
        """
        if not self.has_logits:
            raise SourceError(f"{self.path}: has no logits; predict --save logits stores them")
        with prefix_errors(self.path):
            yield from self._rows("logits")

    def _check_range(self, rows: NDArray[Any]) -> NDArray[Any]:
        if rows.dtype.kind not in "iu":
            raise ArgumentError(f"top1 and top5 must be integers, not {rows.dtype}")
        if rows.min() < 0 or (self.classes and rows.max() >= self.classes):
            raise ArgumentError(f"predicted classes {rows.min()} to {rows.max()} are out of range")
        return rows

    def _rows(self, name: str) -> Iterator[NDArray[Any]]:
        with self._open() as archive, archive.open(f"{name}.npy") as file:
            shape, dtype, _ = read_header(file)
            row_bytes = dtype.itemsize * math.prod(shape[1:])
            if row_bytes > _MOST_ROW_BYTES:
                raise ArgumentError(f"{name} claim {row_bytes} bytes a row")
            step = max(1, _CHUNK_BYTES // max(1, row_bytes))
            for start in range(0, shape[0], step):
                rows = min(step, shape[0] - start)
                data = file.read(rows * row_bytes)
                if len(data) < rows * row_bytes:
                    raise ArgumentError(f"{name} is cut off")
                yield np.frombuffer(data, dtype).reshape(rows, *shape[1:])


def _read_entry(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Return a small entry of `archive`, after a check of its size."""
    with archive.open(f"{name}.npy") as file:
        shape, dtype, _ = read_header(file)
        size = dtype.itemsize * math.prod(shape)
        if size > _MOST_ENTRY_BYTES or dtype.itemsize > _MOST_KEY_BYTES or math.prod(shape) > _MOST_IMAGES:
            raise ArgumentError(f"{name} claim the shape {shape}, {dtype.itemsize} bytes each")
        # One more byte than expected, because zipfile checks the checksum only at the end.
        data = file.read(size + 1)
    if len(data) != size:
        raise ArgumentError(f"{name} {'are cut off' if len(data) < size else 'are longer than they claim'}")
    return _share(data, dtype, shape)


# The files of many models contain the same keys and labels, which take memory and time once.
@lru_cache(maxsize=8)
def _share(data: bytes, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    return np.frombuffer(data, dtype).reshape(shape)


@lru_cache(maxsize=2)
def _list_keys(data: bytes, dtype: np.dtype[Any]) -> tuple[str, ...]:
    return tuple(np.frombuffer(data, dtype).tolist())


# --- folders -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Predictions:
    """All predictions of one model on one C or P set.

    Attributes
    ----------
    store : Store
    kind : {"c", "p"}
    files : dict of str to PredictionFile
        By the usual folder of the variant, wherever the file is; all for the same images.
    settings : dict
        Content of `predictions.json`; empty without this file.
    """

    store: Store
    kind: Kind
    files: dict[str, PredictionFile]
    settings: dict[str, Any]

    @property
    def root(self) -> str:
        """Return the path or URL of the folder."""
        return self.store.location

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the names of the images, sorted."""
        return tuple(sorted(next(iter(self.files.values())).keys))

    @property
    def classes(self) -> int | None:
        """Return the number of the model's classes, if the files contain it."""
        return next(iter(self.files.values())).classes


def list_files(store: Store) -> list[str]:
    """Return the paths of all files that may contain predictions."""
    found = {path for path in _list_paths(store) if path.endswith(".npz") and path.count("/") < 2}
    return sorted(path for path in found if not path.startswith(f"{STATE}/"))


def _list_paths(store: Store) -> Iterator[str]:
    irregular = [path for path, _ in store.list_irregular()]
    # Linked folders are listed only by their own names.
    entries = chain(store.list(), *(store.list(path) for path in irregular))
    yield from chain(irregular, (entry.path for entry in entries))


def is_unfinished(store: Store) -> bool:
    """Return whether a run of predict or evaluate is unfinished in this folder."""
    return next(iter(store.list(f"{STATE}/parts")), None) is not None


def find_folders(root: str | Path) -> list[str]:
    """Return the folders of predictions that `root` names: itself, or its subfolders with predictions."""
    store, models = open_store(root), set[str]()
    for path in _list_paths(store):
        folder, _, name = path.partition("/")
        if path == ABOUT or (path.endswith(".npz") and not name):
            return [str(root)]
        # A corruption's folder has only files of severities.
        stem = name.removesuffix(".npz")
        if name == ABOUT or (stem != name and (_SEVERITY.fullmatch(stem) or stem in _NO_SEVERITIES)):
            models.add(folder)
    return [f"{store.location}/{name}" for name in sorted(models - {STATE})] or [str(root)]


def open_predictions(root: str | Path) -> Predictions:
    """Find and check all prediction files in the folder `root`, a path or a URL.

    Raises
    ------
    SourceError
        There are none, they belong to several sets, or one is malformed or was written by another version;
        the message names the file.
    """
    store = open_store(root)
    try:
        check_folder(store)
    except SourceError as error:
        raise SourceError(f"{error} of predictions") from None
    settings = read_settings(store)
    folders = [path.removesuffix(".npz") for path in list_files(store)]
    if {*folders} <= {CLEAN} and (is_unfinished(store) or (settings and not folders)):
        raise UnfinishedError(f"{store.location}: the run is unfinished; the same command resumes it")
    severities = [folder for folder in folders if "/" in folder]
    sequences = [folder for folder in folders if "/" not in folder and folder != CLEAN]
    if severities and sequences:
        mixed = f"mixes a C set ({severities[0]}) with a P set ({sequences[0]})"
        raise SourceError(f"{store.location}: {mixed}")
    if not severities and not sequences:
        there = "no predictions (<corruption>/<severity>.npz or <perturbation>.npz)"
        raise SourceError(f"{store.location}: has {there}")
    kind: Kind = "c" if severities else "p"
    variants = {folder: parse_variant(folder, kind) for folder in folders}
    files = {
        BENCHMARKS[kind].usual_folder(variant): PredictionFile(store, path_of(folder), variant)
        for folder, variant in variants.items()
    }
    # On a server, many files are read at once.
    for file, _ in zip(files.values(), store.map(PredictionFile.check, files.values()), strict=True):
        if len(file.outputs) != (1 if kind == "c" else 2):
            shape = file.shapes["logits" if file.has_logits else "top1"]
            what = "one row per image" if kind == "c" else "one row per frame, (sequences, frames, ...)"
            raise SourceError(f"{file.location}: predictions of the shape {shape} are not {what}")
    _check_alike([*files.values()])
    return Predictions(store, kind, files, settings)


def read_settings(store: Store) -> dict[str, Any]:
    """Return the content of `predictions.json`; empty without this file.

    Raises
    ------
    SourceError
        It is malformed, or another version wrote it.
    """
    try:
        return read_described(store, ABOUT) if store.exists(ABOUT) else {}
    except OutputError as error:
        raise SourceError(str(error)) from error


def _check_alike(files: list[PredictionFile]) -> None:
    """Check that all variants have the same images, with the same labels, and the same model."""
    first = files[0]
    known = map_labels(first)
    for file in files[1:]:
        if file.classes != first.classes and file.classes and first.classes:
            other = f"{first.location} has {first.classes}"
            raise SourceError(f"{file.location}: {file.classes} classes, where {other}")
        if (own := map_labels(file)) != known:
            if own.keys() != known.keys():
                reason = describe_difference(tuple(own), tuple(known), "keys")
                raise SourceError(f"{file.location}: not the images of {first.location}: {reason}")
            raise SourceError(f"{file.location}: other labels than in {first.location}")


def map_labels(file: PredictionFile) -> dict[str, int]:
    """Return the true class of each image, -1 without labels."""
    labels = file.labels
    return dict(zip(file.keys, [-1] * len(file.keys) if labels is None else labels.tolist(), strict=True))


def digest_of(keys: Sequence[str]) -> str:
    """Return a SHA-256 of the keys, to compare lists of images."""
    return hashlib.sha256("\0".join(keys).encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(frozen=True)
class EvaluateResult:
    """Result of a run.

    Attributes
    ----------
    folders : tuple of str
        Path or URL of the predictions of each model.
    made, kept : int
        Images, sequences or clips predicted now, and earlier, by all models.
    noun : str
        Which of these, in the singular.
    source_noun : str
        Name of an item of the source: image or clip.
    failures : dict of str to str
        Source image to reason.
    seconds : float
    remarks : tuple of str
        Remarks about the source, one line each.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> def guess(pixels):  # one score for each class of the demo
    ...     return np.eye(8)[np.zeros(len(pixels), int)]
    >>> keys = {"corruptions": "contrast", "severities": 3, "limit": 2, "jobs": 1, "quiet": True}
    >>> scores = robustgen.evaluate(guess, "demo", **keys)
    >>> scores.run.made, scores.run.failures
    (4, {})
    """

    folders: tuple[str, ...]
    made: int
    kept: int
    noun: str
    source_noun: str
    failures: dict[str, str]
    seconds: float
    remarks: tuple[str, ...] = ()
