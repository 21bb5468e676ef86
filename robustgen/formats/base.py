"""The interfaces of every format: the `Writer` of a set, and the `Dataset` that reads one back."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from robustgen.benchmark import BENCHMARKS, Benchmark, Kind, Variant
from robustgen.errors import ImageError, SourceError
from robustgen.formats.prefetch import prefetch
from robustgen.formats.units import WorkUnit, cut_by_images
from robustgen.imaging.pixels import Rgb
from robustgen.name_lists import split_names
from robustgen.storage import Store

Pixels = NDArray[np.uint8]
Labels = NDArray[np.int64]

_LEVELS = tuple(map(str, BENCHMARKS["c"].levels))


def keep_grey(pixels: Rgb) -> Pixels:
    """Return the one channel (H, W) of an image (H, W, 3) whose channels are the same."""
    return np.ascontiguousarray(pixels[..., 0])


# --- writing -------------------------------------------------------------------------------------


class WrittenFile(NamedTuple):
    """A finished file.

    Attributes
    ----------
    path : str
        POSIX path below the output; of an image's own file, below the folder of the variant.
    size : int
        Bytes.
    sha256 : str
        Hexadecimal digest of the file.
    frames : str
        Of a video, the digest of the decoded frames; else empty.
    """

    path: str
    size: int
    sha256: str
    frames: str = ""


@dataclass(frozen=True)
class Listing:
    """The images of a set, in order.

    Attributes
    ----------
    keys : tuple of str
    label : callable
        Key to the index of its class.
    classes : callable
        Returns the names of the classes, in the order of the labels.
    failed : callable
        Returns keys and folders of the variants that could not be made; "" stands for all variants.
    """

    keys: tuple[str, ...]
    label: Callable[[str], int]
    classes: Callable[[], Sequence[str]]
    failed: Callable[[], Collection[tuple[str, str]]] = tuple


class UnitWriter(Protocol):
    """Writes the files of one work unit."""

    def write(self, variant: Variant, index: int, key: str, pixels: Rgb) -> list[WrittenFile]:
        """Write `pixels`, made of the image `key`, the plan's `index`-th.

        Returns
        -------
        list of WrittenFile
            Its own files, their paths below the folder of the variant; none in files of many images.

        Raises
        ------
        ImageError
            The format cannot hold these pixels.
        OSError
        """

    def write_frames(
        self, variant: Variant, index: int, key: str, frames: Iterator[Rgb]
    ) -> list[WrittenFile]:
        """Write a sequence, as `write`; its frames (H, W, 3) are made as they are asked for."""

    def finish(self, failed: Sequence[str]) -> list[WrittenFile]:
        """Complete the files that hold many images, without the `failed` ones, and return them."""


class Writer(ABC):
    """Writes sets in one format. Picklable.

    Attributes
    ----------
    joint : bool
        Whether its files hold many images, so that they are written by one unit.
    is_separable : bool
        Whether every variant has files of its own.
    images_at_once : int or None
        How many images are made side by side; None for as many as the recipe says.
    arrays : tuple of str
        Names of the files that hold a row for each image, as ``dataset.json`` lists them.
    needs_labels : bool
        Whether its files hold the classes.
    """

    joint: ClassVar[bool] = False
    is_separable: bool = True
    images_at_once: ClassVar[int | None] = None
    arrays: tuple[str, ...] = ()
    needs_labels: ClassVar[bool] = False

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return what decides the bytes, except for the pixels."""

    def versions(self) -> dict[str, str]:
        """Return the libraries that decide the bytes, beside those that every set depends on."""
        return {}

    @abstractmethod
    def output_name(self, key: str) -> str | None:
        """Return the POSIX path, below a variant's folder, of what is made of the source image `key`.

        Two images of one name would overwrite each other. None where images have no files of their own.
        """

    def cut(self, keys: Sequence[str], variants: tuple[Variant, ...]) -> Iterator[WorkUnit]:
        """Yield the work units of a plan, which follow from the plan alone."""
        return cut_by_images(keys, variants)

    @abstractmethod
    def open(self, root: Store, unit: WorkUnit, labels: Sequence[int]) -> AbstractContextManager[UnitWriter]:
        """Open a writer for the files of `unit` below `root`."""

    def list_companions(self, listing: Listing, folders: Sequence[str]) -> Mapping[str, bytes]:
        """Return the small files that belong to the set as a whole: path below the output to content.

        `folders` are those of all variants.
        """
        return {}

    def as_read(self, variant: Variant, key: str, pixels: Rgb) -> Rgb:
        """Return what is read again after `pixels` were written: the same, except for lossy formats.

        Raises
        ------
        ImageError
            The format cannot hold these pixels.
        """
        return pixels

    def measure(self, variant: Variant, key: str, pixels: Rgb) -> int:
        """Return how many bytes `pixels` would take."""
        return int(pixels.nbytes)

    def count_inodes(self, pixels: Rgb) -> int:
        """Return how many files and folders of their own `pixels` would get; 0 in files of many images."""
        return 0

    @abstractmethod
    def find_differences(
        self, root: Store, variant: Variant, index: int, key: str, pixels: Rgb
    ) -> Iterator[tuple[str, str]]:
        """Yield path and detail of what at `root` is not what would be written of `pixels` now."""


class Encoded(NamedTuple):
    """A file to write: its name below the variant's folder, its bytes, and of a video its frames' digest."""

    name: str
    data: bytes
    frames: str = ""


@dataclass(frozen=True)
class TreeWriter(Writer):
    """Writes files of their own for each image, in the folder of the variant."""

    @abstractmethod
    def encode(self, variant: Variant, key: str, pixels: Rgb) -> list[Encoded]:
        """Return the files of `pixels`.

        Raises
        ------
        ImageError
            The format cannot hold them.
        """

    def encode_frames(self, variant: Variant, key: str, frames: Iterable[Rgb]) -> Iterable[Encoded]:
        """Return the files of a sequence of uint8 frames (H, W, 3)."""
        return self.encode(variant, key, np.stack([*frames]))

    def measure(self, variant: Variant, key: str, pixels: Rgb) -> int:
        """Return the bytes of the files."""
        return sum(len(encoded.data) for encoded in self.encode(variant, key, pixels))

    def count_inodes(self, pixels: Rgb) -> int:
        """Return 1: a file."""
        return 1

    @contextmanager
    def open(self, root: Store, unit: WorkUnit, labels: Sequence[int]) -> Iterator["_TreeUnit"]:
        """Open a writer for files of their own."""
        yield _TreeUnit(self, root)

    def find_differences(
        self, root: Store, variant: Variant, index: int, key: str, pixels: Rgb
    ) -> Iterator[tuple[str, str]]:
        """Yield the files that hold something else, or are missing."""
        for encoded in self.encode(variant, key, pixels):
            path = variant.path(encoded.name)
            try:
                same = root.read(path) == encoded.data
            except OSError:
                same = False
            if not same:
                yield path, ": from what the source gives now"


class _TreeUnit:
    """Writes each file at once."""

    def __init__(self, writer: TreeWriter, root: Store) -> None:
        self._writer, self._root = writer, root

    def write(
        self, variant: Variant, index: int, key: str, pixels: Any, encode: Any = None
    ) -> list[WrittenFile]:
        """Write all files, or none of them if they cannot all be made."""
        written: list[WrittenFile] = []
        try:
            for name, data, frames in (encode or self._writer.encode)(variant, key, pixels):
                self._root.put(variant.path(name), data)
                written.append(WrittenFile(name, len(data), hashlib.sha256(data).hexdigest(), frames))
        except BaseException:
            for each in written:
                self._root.delete(variant.path(each.path))
            raise
        return written

    def write_frames(
        self, variant: Variant, index: int, key: str, frames: Iterator[Rgb]
    ) -> list[WrittenFile]:
        return self.write(variant, index, key, frames, self._writer.encode_frames)

    def finish(self, failed: Sequence[str]) -> list[WrittenFile]:
        return []


class FrameWriter(TreeWriter):
    """Writes sequences frame by frame, as they are made."""

    @abstractmethod
    def encode_frames(self, variant: Variant, key: str, frames: Iterable[Rgb]) -> Iterator[Encoded]:
        """Yield the files of a sequence of uint8 frames (H, W, 3).

        Raises
        ------
        ImageError
            The format cannot hold them.
        """

    def encode(self, variant: Variant, key: str, pixels: Rgb) -> list[Encoded]:
        """Return the files of uint8 frames (T, H, W, 3)."""
        return [*self.encode_frames(variant, key, pixels)]


def without_suffix(name: str) -> str:
    """Return `name` (POSIX) without its last suffix."""
    return str(PurePosixPath(name).with_suffix(""))


# --- reading -------------------------------------------------------------------------------------


def parse_variant(folder: str, kind: Kind) -> Variant:
    """Return the variant whose files lie in `folder`: ``fog/3``, ``clean``, ``tilt`` or ``shot_noise_2``.

    Raises
    ------
    SourceError
        A set of this kind has no such folder.
    """
    variant = BENCHMARKS[kind].arm_in(folder)
    if variant is None:
        raise SourceError(f"{folder!r} is no corruption with a severity from 1 to {_LEVELS[-1]}")
    return variant


def name_contents(kind: Kind) -> str:
    """Return what a set of this kind holds: images or sequences."""
    return f"{BENCHMARKS[kind].noun}s"


def describe_difference(own: Sequence[str], others: Sequence[str], what: str) -> str:
    """Return in a few words how the keys `own` differ from `others`."""
    missing, more = sorted(set(others) - set(own)), sorted(set(own) - set(others))
    parts = []
    if missing:
        parts.append(f"{len(missing)} of {len(others)} {what} are missing, for instance {missing[0]!r}")
    if more:
        parts.append(f"{len(more)} {what} too many, for instance {more[0]!r}")
    return " and ".join(parts) or f"the {what} are in another order"


def read_names(store: Store, path: str) -> list[str] | None:
    """Return the names in a file of a set, or None where there is none.

    Raises
    ------
    SourceError
        It cannot be read.
    """
    try:
        return split_names(store.read(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SourceError(f"{store.location}/{path}: {error.strerror or error}") from error


def stack_images(images: Sequence[Pixels], where: object, remedy: str = "") -> Pixels:
    """Return images (or sequences) of one size as one array, uint8 (N, ...).

    Raises
    ------
    ImageError
        There are several sizes; names two of them, `where`, and the `remedy`.
    """
    if len({image.shape for image in images}) > 1:
        sizes = " and ".join(sorted({"x".join(map(str, image.shape[:-1])) for image in images})[:2])
        raise ImageError(f"{where}: images differ in size: {sizes}{remedy and f' ({remedy})'}")
    return np.stack(images)


class Dataset(ABC):
    """A C or a P set.

    Attributes
    ----------
    store : Store
    kind : {"c", "p"}
    arms : tuple of Variant
        The clean images, where there are any, then all corruptions and severities; or all perturbations.
    about : mapping
        The content of `dataset.json`; empty for a set that has none.
    format : str
        Name of the format that writes this layout, among those of `robustgen.formats`.
    usual_edition : str
        The edition of sets of this layout that have no manifest.
    has_image_files : bool
        Whether each image, or each frame of a sequence, is a file of its own.
    in_place : bool
        Whether the variants lie where make-c and make-p put them.
    grey : bool
        Whether its files hold one channel.
    class_labels : ndarray, optional
        What the images of each class are labelled with, (classes, labels), if that is not its number.
    """

    store: Store
    kind: Kind
    arms: tuple[Variant, ...]
    about: Mapping[str, Any]
    format: ClassVar[str]
    usual_edition: ClassVar[str] = "imagenet"
    has_image_files: bool = False
    in_place: bool = True
    grey: bool = False
    class_labels: NDArray[Any] | None = None

    @property
    def root(self) -> str:
        """Return the path or URL of the set."""
        return self.store.location

    @property
    def benchmark(self) -> Benchmark:
        """Return the benchmark that it is a set of."""
        return BENCHMARKS[self.kind]

    @abstractmethod
    def keys(self, arm: Variant) -> tuple[str, ...]:
        """Return the names of the images or sequences of `arm`; those of all variants are the same.

        Raises
        ------
        SourceError
            The variant lacks some of the images of others, or has more.
        """

    @abstractmethod
    def labels(self, arm: Variant) -> Labels | None:
        """Return the true classes, (images,); None for a P set of arrays that came without.

        Raises
        ------
        SourceError
            A class folder is not among the classes, or the labels do not fit the images.
        """

    @property
    def class_names(self) -> Sequence[str] | None:
        """Names of the classes that the labels count, if the set tells."""
        return None

    @property
    @abstractmethod
    def classes(self) -> int | None:
        """Return the number of classes, if the set says."""

    @abstractmethod
    def load(self, arm: Variant, index: int) -> Pixels:
        """Return the image (H, W, 3), or the frames (T, H, W, 3), of the key at `index`.

        Raises
        ------
        ImageError
            It cannot be read.
        """

    @abstractmethod
    def read(self, arm: Variant, key: str) -> Pixels:
        """Return the image or the frames called `key`, as `load`; other variants need not have it.

        Raises
        ------
        ImageError
            It is missing, or cannot be read.
        """

    def has(self, arm: Variant, key: str) -> bool:
        """Return whether `arm` has the image or sequence called `key`."""
        return True

    def size(self, key: str) -> int:
        """Return the bytes of the files that all variants have of `key`; 0 if images have no own files.

        Raises
        ------
        ImageError
            One is missing.
        """
        return 0

    def path(self, arm: Variant, key: str) -> str | None:
        """Return the path below the set of the file of `key`, or of the folder of its frames, if any."""
        return None

    def restrict(self, arm: Variant, keys: tuple[str, ...] | None = None) -> "Dataset":
        """Return the set with this variant alone, so that its keys are its own; or the `keys`, if known."""
        return self

    def batches(
        self,
        arm: Variant,
        size: int,
        start: int = 0,
        prepare: Callable[[Pixels], Pixels] | None = None,
        stop: int | None = None,
    ) -> Iterator[Pixels]:
        """Yield images or sequences in the order of `keys`, `size` at a time; the next are read meanwhile.

        Parameters
        ----------
        arm : Variant
        size : int
        start : int
            Index of the first.
        prepare : callable, optional
            Applied to each image or sequence, for instance to resize it.
        stop : int, optional
            Index behind the last.

        Yields
        ------
        ndarray, (size, H, W, 3) or (size, T, H, W, 3), uint8
            The last may be smaller.

        Raises
        ------
        ImageError
            One cannot be read, or they differ in size.
        """

        def read(first: int) -> Pixels:
            items = [self.load(arm, index) for index in range(first, min(first + size, count))]
            prepared = [prepare(item) for item in items] if prepare else items
            return stack_images(prepared, f"{self.root}/{arm.folder}")

        count = min(len(self.keys(arm)), stop or len(self.keys(arm)))
        yield from prefetch(read, range(start, count, size))


@dataclass(eq=False)
class FolderDataset(Dataset):
    """A set with a folder for each variant.

    Parameters
    ----------
    store, kind, arms, about
        As for `Dataset`.
    folders : mapping of Variant to str
        POSIX paths below the set.
    names : sequence of str, optional
        Names of the classes in the order of the model's outputs.
    """

    store: Store
    kind: Kind
    arms: tuple[Variant, ...]
    about: Mapping[str, Any]
    folders: Mapping[Variant, str]
    names: Sequence[str] | None = None
