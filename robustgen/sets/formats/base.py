"""Interface of formats: the units that a plan is cut into, encoders, writers, and written sets."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib import metadata
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from robustgen import __version__
from robustgen.errors import ImageError, SourceError
from robustgen.files.set_files import MANIFEST, WrittenFile
from robustgen.files.storage import AT_ONCE, Store, prefetch
from robustgen.files.text_files import describe_difference
from robustgen.pixels.benchmarks.kinds import BENCHMARKS, TITLES, Benchmark, Kind, Variant
from robustgen.pixels.imaging.arrays import Pixels, Rgb, check_alike
from robustgen.pixels.imaging.file_tags import NO_TAGS, FileTags, add_tags
from robustgen.pixels.imaging.jpeg import Libjpeg, Subsampling, decoder_version, libjpeg_version
from robustgen.pixels.imaging.third_party import cv2
from robustgen.sets.sources.base import Items, Source
from robustgen.sets.sources.classes import place_classes

if TYPE_CHECKING:
    from robustgen.settings.config import Video

_FEWEST_UNITS, _MOST_UNITS, _MOST_IMAGES = 64, 4096, 16


@dataclass(frozen=True)
class WorkUnit:
    """Some images of a plan times some variants.

    Attributes
    ----------
    number : int
        Position among the units of the plan.
    start : int
        Number of the first image in the plan; images of complete units are consecutive.
    keys : tuple of str
    variants : tuple of Variant
    expected : mapping of str to str
        Key to the required identity of the source image, if other outputs of it exist.
    shared : str
        Properties of the whole set that determine the bytes of its files.
    """

    number: int
    start: int
    keys: tuple[str, ...]
    variants: tuple[Variant, ...]
    expected: Mapping[str, str] = field(default_factory=dict)
    shared: str = ""

    @property
    def name(self) -> str:
        """Return the name of the record, which depends only on images and variants, whatever the plan."""
        return digest_content(self.keys, (variant.folder for variant in self.variants), self.shared)

    @property
    def folders(self) -> frozenset[str]:
        """Return the folders of the variants."""
        return frozenset(variant.folder for variant in self.variants)

    def count_outputs(self) -> int:
        """Return the number of outputs of the unit."""
        return len(self.keys) * len(self.variants)


def digest_content(keys: Iterable[str], folders: Iterable[str], shared: str) -> str:
    """Return 16 hexadecimal digits that stand for these images and variants, and a unit's `shared`."""
    parts = [*keys, "", *folders, ""]
    parts += ["", shared] if shared else []
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def cut_by_images(
    keys: Sequence[str], variants: tuple[Variant, ...], *, is_slow: bool = False
) -> Iterator[WorkUnit]:
    """Cut a plan with separate files for each image: a few images and all variants per unit.

    If encoding `is_slow`, the variants of few images are divided, so that all cores have work.
    """
    size = max(1, min(_MOST_IMAGES, len(keys) // _FEWEST_UNITS), -(-len(keys) // _MOST_UNITS))
    parts = -(-_FEWEST_UNITS // max(1, len(keys))) if is_slow else 1
    some = max(1, -(-len(variants) // parts))
    groups = [variants[start : start + some] for start in range(0, len(variants), some)]
    return cut(keys, size, groups or [variants])


def cut(
    keys: Sequence[str], size: int, groups: Sequence[tuple[Variant, ...]], shared: str = ""
) -> Iterator[WorkUnit]:
    """Cut a plan into units of `size` images and one of the `groups` of variants."""
    number = 0
    for start in range(0, len(keys), size):
        for variants in groups:
            yield WorkUnit(number, start, tuple(keys[start : start + size]), variants, shared=shared)
            number += 1


FilePer = Literal["image", "shard", "operation"]
"""Content of a file: one image or sequence, many images of a variant, or all images of an operation."""

Labels = NDArray[np.int64]

SHARD_SIZE: Final = 1000
"""Default number of images per shard."""


def keep_grey(pixels: Rgb) -> Pixels:
    """Return one channel (H, W) of an image (H, W, 3) whose channels are equal."""
    return np.ascontiguousarray(pixels[..., 0])


# --- writing -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class EncoderChoices:
    """Choices that determine how images and sequences are encoded.

    Attributes
    ----------
    quality : int
        Quality of JPEG files.
    libjpeg : {"turbo", "ijg"}
        Library that writes JPEG files.
    subsampling : {"4:2:0", "4:4:4"}
        Chroma subsampling of JPEG files.
    grey : bool
        Whether all three channels are the same, so that files keep one channel if their format allows it.
    video : Video, optional
        Compression of videos; default as published.
    side : int
        Side of the images of sequences; 0 if unknown.

    Examples
    --------
    >>> from robustgen.plugins import EncoderChoices
    >>> EncoderChoices(quality=95).quality, EncoderChoices().subsampling
    (95, '4:2:0')
    """

    quality: int = 85
    libjpeg: Libjpeg = "turbo"
    subsampling: Subsampling = "4:2:0"
    grey: bool = False
    video: "Video | None" = None
    side: int = 0


@dataclass(frozen=True, kw_only=True)
class SetContent:
    """Images and variants of a set, from which its writer is created.

    Attributes
    ----------
    benchmark : Benchmark
    variants : tuple of Variant
    keys : tuple of str
        The images, in order.
    source : Items
        Source of the images.
    shard_size : int
        Number of images per shard.

    Examples
    --------
    >>> import robustgen
    >>> from robustgen.plugins import SetContent
    >>> variants = tuple(robustgen.IMAGENET_C.variants(["fog"], [1, 3]))
    >>> content = SetContent(benchmark=robustgen.IMAGENET_C, variants=variants, keys=("a",), source=None)
    >>> [variant.folder for variant in content.variants]
    ['fog/1', 'fog/3']
    """

    benchmark: Benchmark
    variants: tuple[Variant, ...]
    keys: tuple[str, ...]
    source: Items[Any]
    shard_size: int = SHARD_SIZE


@dataclass(frozen=True)
class SetListing:
    """Images of a set, in order.

    Attributes
    ----------
    keys : tuple of str
    label : callable
        Key to the index of its class.
    classes : callable
        Returns the names of the classes, in the order of the labels.
    failed : callable
        Returns keys and variant folders of the failed outputs; folder "" means all variants.
    """

    keys: tuple[str, ...]
    label: Callable[[str], int]
    classes: Callable[[], Sequence[str]]
    failed: Callable[[], Collection[tuple[str, str]]] = tuple


class Encoded(NamedTuple):
    """Encoded image or frame: name below the variant's folder, and bytes.

    Videos also have the digest of their frames, and rows of arrays have a shape.

    Examples
    --------
    >>> from robustgen.plugins import Encoded
    >>> Encoded("a.png", b"...").name
    'a.png'
    """

    name: str
    data: bytes
    frames: str = ""
    shape: tuple[int, ...] = ()


# It takes as long as a small image, and workers ask before each unit.
_find_version = cache(metadata.version)


def list_versions(libjpeg: Libjpeg = "turbo") -> dict[str, str]:
    """Return the name and version of each library that can change a pixel.

    With the `libjpeg` "turbo", files are encoded by OpenCV's and source images decoded by Pillow's.
    """
    return {
        "robustgen": __version__,
        "numpy": _find_version("numpy"),
        "scipy": _find_version("scipy"),
        "opencv": str(cv2.__version__),
        "pillow": _find_version("pillow"),
        "libjpeg": libjpeg_version(libjpeg),
        "jpeg_decoder": decoder_version(libjpeg),
    }


class Encoder(ABC):
    """Encodes images or sequences in one format. Picklable.

    Attributes
    ----------
    is_slow : bool
        Whether encoding takes far longer than reading a source image, which units may then repeat.
    keeps_tags : bool
        Whether files keep orientation and colour profile of the source's file; their pixels are then RGB.

    Examples
    --------
    >>> import numpy as np
    >>> from robustgen.plugins import Encoded, Encoder, Variant
    >>> class Raw(Encoder):
    ...     def settings(self):
    ...         return {"format": "raw"}
    ...     def output_name(self, key):
    ...         return key + ".raw"
    ...     def encode(self, variant, key, pixels):
    ...         return [Encoded(self.output_name(key), pixels.tobytes())]
    >>> (file,) = Raw().encode(Variant("fog", 3, "fog/3"), "a", np.zeros((32, 32, 3), np.uint8))
    >>> file.name, len(file.data)
    ('a.raw', 3072)
    """

    is_slow: ClassVar[bool] = False
    keeps_tags: ClassVar[bool] = False

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the settings that determine the bytes, apart from the pixels."""

    def versions(self) -> dict[str, str]:
        """Return the versions of libraries that determine the bytes, apart from those of every set."""
        return {}

    @abstractmethod
    def output_name(self, key: str) -> str | None:
        """Return the POSIX path of the output for the source image `key`, below a variant's folder.

        Two images with the same path would overwrite each other. None if outputs have no names.
        """

    @abstractmethod
    def encode(self, variant: Variant, key: str, pixels: Any) -> Iterable[Encoded]:
        """Return the encoded image, uint8 (H, W, 3), or sequence, an iterable of such frames.

        Raises
        ------
        ImageError
            The format cannot store these pixels.
        """

    def encode_with_tags(self, variant: Variant, key: str, pixels: Any, tags: FileTags) -> Iterable[Encoded]:
        """Return the result of `encode`, with the `tags` of the source's file if the format keeps them."""
        encoded = self.encode(variant, key, pixels)
        if tags == NO_TAGS or not self.keeps_tags:
            return encoded
        return [each._replace(data=add_tags(each.data, tags)) for each in encoded]

    def as_read(self, variant: Variant, key: str, pixels: Rgb) -> Rgb:
        """Return the pixels read back after `pixels` are written: the same, except for lossy formats.

        Raises
        ------
        ImageError
            The format cannot store these pixels.
        """
        return pixels


class UnitWriter(Protocol):
    """Writes the files of one work unit."""

    def write(self, variant: Variant, index: int, key: str, encoded: Iterable[Encoded]) -> list[WrittenFile]:
        """Write the encoded result for the image `key`, which is number `index` in the plan.

        Returns
        -------
        list of WrittenFile
            Files of this image, with paths below the folder of the variant; empty if files contain many
            images.

        Raises
        ------
        ImageError
            The format cannot store this result.
        OSError
        """

    def finish(self, failed: Sequence[str]) -> list[WrittenFile]:
        """Complete and return the files that contain many images, without the `failed` ones.

        If these files cannot omit images, nothing is written, and the block of `Writer.open` ends here.
        """


class Writer(ABC):
    """Writes sets in one format. Picklable.

    Attributes
    ----------
    encoder : Encoder
        Encodes each image or sequence.
    file_per : {"image", "shard", "operation"}
        Content of a file: one image or sequence; many images of one variant; or all images of an operation,
        as the rows of an array. One unit writes each file.
    arrays : tuple of str
        Names of the files per operation, in the order of the units, for ``dataset.json``.

    Examples
    --------
    >>> from robustgen.plugins import LosslessEncoder, TreeWriter
    >>> TreeWriter(LosslessEncoder(".png")).settings()
    {'format': 'png'}
    """

    file_per: ClassVar[FilePer]
    arrays: tuple[str, ...] = ()

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    @classmethod
    @abstractmethod
    def create(cls, encoder: Encoder, content: SetContent) -> "Writer":
        """Return the writer of a set.

        Raises
        ------
        ConfigError
            The format cannot store the set.
        """

    def settings(self) -> dict[str, Any]:
        """Return the settings that determine the bytes, apart from the pixels."""
        return self.encoder.settings()

    def versions(self) -> dict[str, str]:
        """Return the versions of libraries that determine the bytes, apart from those of every set."""
        return self.encoder.versions()

    def output_name(self, key: str) -> str | None:
        """Return the name of the output for the source image `key`, as `Encoder.output_name`."""
        return self.encoder.output_name(key)

    def measure(self, encoded: Encoded) -> int:
        """Return the number of bytes of an output in the files of this format, for estimates."""
        return len(encoded.data)

    def cut(self, keys: Sequence[str], variants: tuple[Variant, ...]) -> Iterator[WorkUnit]:
        """Yield the work units of a plan; they depend on the plan alone."""
        return cut_by_images(keys, variants, is_slow=self.encoder.is_slow)

    @abstractmethod
    def open(
        self, root: Store, unit: WorkUnit, label: Callable[[str], int]
    ) -> AbstractContextManager[UnitWriter]:
        """Open a writer for the files of `unit` below `root`; `label` returns the class of an image."""

    def list_companions(self, listing: SetListing, folders: Sequence[str]) -> Mapping[str, bytes]:
        """Return the small files about the whole set: path below the output to content.

        `folders` are the folders of all variants.
        """
        return {}

    @abstractmethod
    def find_output(
        self, root: Store, variant: Variant, index: int, key: str, encoded: Encoded
    ) -> tuple[str, bool]:
        """Return the path of the file at `root` with an output, and whether the output is `encoded`.

        Raises
        ------
        OSError, ValueError
            The file cannot be read.
        """


def without_suffix(name: str) -> str:
    """Return `name` (POSIX) without its last suffix."""
    return str(PurePosixPath(name).with_suffix(""))


# --- reading -------------------------------------------------------------------------------------

# Each open variant may take memory for its images' places.
_MOST_OPEN: Final = 3


@dataclass(eq=False)
class WrittenSet(Mapping[Variant, Source], ABC):
    """A C or a P set: each variant is a source of images, or of sequences, uint8 (T, H, W, 3).

    The clean images, if any, are first.

    Parameters
    ----------
    store : Store
    kind : {"c", "p"}
    manifest : mapping
        The content of `dataset.json`; empty for a set without this file.
    places : mapping of Variant to str
        POSIX paths of its folder, or of its file, below the set.
    names : sequence of str, optional
        Class names in the order of the model's outputs, if this is not the order of the set.

    Attributes
    ----------
    format : str
        Name of the format in `robustgen.sets.formats` that writes this layout.
    grey : bool
        Whether its files contain one channel.

    Examples
    --------
    >>> import robustgen
    >>> made = robustgen.make_c("demo", corruptions="contrast", limit=1, output="out", jobs=1, quiet=True)
    >>> opened = robustgen.open_set("out")
    >>> len(opened), [variant.folder for variant in opened][0], opened.format
    (6, 'clean', 'original')
    """

    store: Store
    kind: Kind
    manifest: Mapping[str, Any]
    places: Mapping[Variant, str]
    names: Sequence[str] | None = None

    format: ClassVar[str]
    grey: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Limit the number of open variants."""
        self._open = lru_cache(_MOST_OPEN)(self.open)
        self._alike: set[Variant] = set()

    @abstractmethod
    def open(self, variant: Variant) -> Source:
        """Open the images or sequences of a variant; indexing keeps the latest ones open.

        Raises
        ------
        SourceError
            They cannot be read.
        """

    def __getitem__(self, variant: Variant) -> Source:
        return self._open(variant)

    def __contains__(self, variant: object) -> bool:
        return variant in self.places

    def __iter__(self) -> Iterator[Variant]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Return the clean images, if any, then all corruptions and severities; or all perturbations."""
        return tuple(self.places)

    @property
    def root(self) -> str:
        """Return the path or URL of the set."""
        return self.store.location

    @property
    def benchmark(self) -> Benchmark:
        """Return the benchmark of the set."""
        return TITLES.get(self.manifest.get("title", ""), BENCHMARKS[self.kind])

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        return self._list_keys(self.variants[0])

    def keys_of(self, variant: Variant) -> tuple[str, ...]:
        """Return the names of the images or sequences of `variant`, which are the same for all variants.

        Raises
        ------
        SourceError
            The variant has fewer or more images than others, or one of its files cannot be used.
        """
        if variant not in self._alike:
            if variant != self.variants[0] and (own := self._list_keys(variant)) != self._keys:
                difference = describe_difference(own, self._keys, "images")
                raise SourceError(f"{self.root}/{self.places[variant]}: {difference}")
            self._alike.add(variant)
        return self._keys

    def _list_keys(self, variant: Variant) -> tuple[str, ...]:
        source = self[variant]
        for name, reason in source.refused().items():
            raise SourceError(f"{source.location}: {name!r}: {reason}")
        return source.keys()

    def labels(self, variant: Variant) -> Labels | None:
        """Return the true classes, (images,); None if the set lacks that of an image.

        Raises
        ------
        SourceError
            A class is not among those of the set or of `names`, or the labels do not match the images.
        """
        source, keys = self[variant], self.keys_of(variant)
        try:
            own = np.array([source.label(key) for key in keys], np.int64)
        except ImageError as error:
            raise SourceError(f"{source.location}/{error.key}: is in no class of its {MANIFEST}") from error
        if (own < 0).any():
            return None
        if self.names is None:
            return own
        found = np.unique(own)
        recorded = self.manifest.get("classes") or source.classes or None
        places = place_classes(self.root, recorded, found.tolist(), self.names)
        return np.array([*places.values()], np.int64)[np.searchsorted(found, own)]

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the class names in the order of the set's labels; () if the classes have no names.

        They are those of ``dataset.json``, or else of other files or folders of the set.
        """
        return tuple(self.manifest.get("classes") or self[self.variants[0]].classes)

    @property
    def class_count(self) -> int | None:
        """Return the number of classes; None if unknown, as for classes that are bare numbers."""
        if self.names is None and "class_count" in self.manifest:
            count: int | None = self.manifest["class_count"]
            return count
        return len(self.classes if self.names is None else self.names) or None

    @property
    def class_labels(self) -> NDArray[np.int64]:
        """Return the labels of each class, (classes, labels): by default, its number."""
        return self[self.variants[0]].class_labels

    def remarks(self) -> Sequence[str]:
        """Return remarks on the order of classes that nothing records, one line each."""
        return [] if self.names or "classes" in self.manifest else self[self.variants[0]].remarks()

    def load(self, variant: Variant, key: str) -> Pixels:
        """Return an image (H, W, 3), or frames (T, H, W, 3), by its key.

        Raises
        ------
        ImageError
            The image cannot be read; the message names its place in the set.
        """
        source = self[variant]
        try:
            return source.load(key)
        except ImageError as error:
            raise ImageError(error.reason, f"{source.location}/{error.key}") from error

    def batches(self, variant: Variant, size: int) -> Iterator[Pixels]:
        """Yield images or sequences in the order of their keys, in batches; read the next ones ahead.

        Parameters
        ----------
        variant : Variant
        size : int

        Yields
        ------
        ndarray, (size, H, W, 3) or (size, T, H, W, 3), uint8
            The last batch may be smaller.

        Raises
        ------
        ImageError
            An image cannot be read, or images differ in size.
        """
        starts = range(0, len(self.keys_of(variant)), size)
        return prefetch(lambda start: self.batch(variant, start, start + size), starts)

    def batch(
        self, variant: Variant, start: int, stop: int, prepare: Callable[[Pixels], Pixels] | None = None
    ) -> Pixels:
        """Return the images or sequences from number `start` to `stop`, each as `prepare` returns it."""
        keys = self.keys_of(variant)[start:stop]

        def load(key: str) -> Pixels:
            item = self.load(variant, key)
            return prepare(item) if prepare else item

        prepared = [*self.store.map(load, keys, AT_ONCE)]
        check_alike(prepared, f"{self.root}/{variant.folder}", "predict resizes them to an input size")
        return np.stack(prepared)
