"""Formats: one module each writes the files of a set and reads them back; the table of them.

To add a format, write a `Writer` in a module of its own and give it a row in `FORMATS`. A layout that no
`Dataset` reads yet gets one in the same module, and a row in `robustgen.dataset.opening`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from numpy.typing import NDArray

from robustgen.benchmark import BENCHMARKS, Benchmark, Kind, Variant
from robustgen.errors import ConfigError
from robustgen.formats.base import Dataset as Dataset
from robustgen.formats.base import Labels as Labels
from robustgen.formats.base import Listing as Listing
from robustgen.formats.base import Pixels as Pixels
from robustgen.formats.base import TreeWriter
from robustgen.formats.base import UnitWriter as UnitWriter
from robustgen.formats.base import Writer as Writer
from robustgen.formats.base import WrittenFile as WrittenFile
from robustgen.formats.base import describe_difference as describe_difference
from robustgen.formats.base import name_contents as name_contents
from robustgen.formats.base import parse_variant as parse_variant
from robustgen.formats.card import write_card
from robustgen.formats.jpeg import JpegTree
from robustgen.formats.lossless import PngTree, WebpTree
from robustgen.formats.mp4 import Mp4Tree
from robustgen.formats.npy import ArrayWriter
from robustgen.formats.npz import ArchiveWriter
from robustgen.formats.original import OriginalTree
from robustgen.formats.parquet import ParquetWriter
from robustgen.formats.png_frames import PngFrames
from robustgen.formats.shards import SHARD_SIZE
from robustgen.formats.table import FileTableWriter, TableWriter
from robustgen.formats.units import WorkUnit as WorkUnit
from robustgen.formats.webdataset import WebDatasetWriter
from robustgen.imaging import video
from robustgen.imaging.jpeg import Libjpeg, Subsampling
from robustgen.sources.base import Items
from robustgen.sources.table import Table


def _published_encodings() -> tuple[video.Encoding, video.Encoding]:
    return video.Encoding(), video.Encoding(crf=None, tune="grain")


@dataclass(frozen=True, kw_only=True)
class Order:
    """All that a writer of any format may need of the set to write.

    Attributes
    ----------
    benchmark : Benchmark
    arms : tuple of Variant
    keys : tuple of str
        The images, in order.
    quality : int
    libjpeg : {"turbo", "ijg"}
        Of JPEG files: how fine, and which library writes them.
    subsampling : {"4:2:0", "4:4:4"}
        Of their colours.
    shapes : callable
        Returns, for each folder of an arm, the shape of what it makes: (H, W, 3), or (T, H, W, 3).
    encodings : callable
        Returns how smooth sequences are encoded, and how noise is.
    sample_format : str or None
        Of shards: the format of the files in them; None for the published one.
    shard_size : int
        Of shards: how many images each holds.
    class_labels : callable
        Returns what the images of each class are labelled with, (classes, labels), or None for its number.
    grey : bool
        Whether all three channels are the same, of which files that can keep one.
    source : Items
        What the images are from.
    """

    benchmark: Benchmark
    arms: tuple[Variant, ...]
    keys: tuple[str, ...]
    quality: int
    shapes: Callable[[], Mapping[str, tuple[int, ...]]]
    source: Items[Any]
    libjpeg: Libjpeg = "turbo"
    subsampling: Subsampling = "4:2:0"
    encodings: Callable[[], tuple[video.Encoding, video.Encoding]] = _published_encodings
    sample_format: str | None = None
    shard_size: int = SHARD_SIZE
    class_labels: Callable[[], NDArray[Any] | None] = lambda: None
    grey: bool = False


@dataclass(frozen=True)
class Format:
    """One row of the formats.

    Attributes
    ----------
    title : str
        In words.
    writers : mapping
        Kind of set to what makes the writer from an `Order`; kinds that it lacks cannot be written so.
    samples : str
        Kinds of set of which shards can be made of its files.
    joint : bool
        Whether its files hold many images, so that all arms of a set share one list of them.
    stacked : bool
        Whether the levels of an operation share a file, if the benchmark has it so.
    card : callable or None
        Makes files about the set from its manifest: names, below the output, to bytes.
    """

    title: str
    writers: Mapping[Kind, Callable[[Order], Writer]]
    samples: str = ""
    joint: bool = False
    stacked: bool = False
    card: Callable[[Mapping[str, Any]], Mapping[str, bytes]] | None = None


def _jpeg(order: Order) -> JpegTree:
    return JpegTree(order.quality, order.libjpeg, order.grey, order.subsampling)


def _videos(order: Order) -> Mp4Tree:
    return Mp4Tree(*order.encodings(), frozenset(order.benchmark.noises))


def _arrays(order: Order) -> ArrayWriter:
    return ArrayWriter(
        order.arms, order.keys, order.shapes(), per_name=order.benchmark.shares_arrays, grey=order.grey
    )


def _archives(order: Order) -> ArchiveWriter:
    return ArchiveWriter(order.arms, order.keys, order.shapes(), order.class_labels(), grey=order.grey)


def _sample_encoder(order: Order) -> TreeWriter:
    """Return the writer that encodes the samples of shards."""
    kind = order.benchmark.kind
    known = [name for name, row in FORMATS.items() if kind in row.samples]
    name = order.sample_format or DEFAULTS[kind]
    if name not in known:
        raise ConfigError(f"sample_format: shards of make-{kind} hold no {name} (known: {', '.join(known)})")
    encoder = FORMATS[name].writers[kind](order)
    assert isinstance(encoder, TreeWriter)
    return encoder


def _webdataset(order: Order) -> WebDatasetWriter:
    return WebDatasetWriter(_sample_encoder(order), len(order.keys), order.shard_size)


def _parquet(order: Order) -> ParquetWriter:
    encoder, names = _sample_encoder(order), order.source.classes
    labels = [order.source.label(key) for key in order.keys] if names else []
    return ParquetWriter(encoder, len(order.keys), order.shard_size, order.benchmark, names, labels)


def _table(order: Order) -> Writer:
    if not isinstance(order.source, Table):
        raise ConfigError("format: table is for sources of the kind table (--dataset table)")
    encoder = _sample_encoder(order) if order.sample_format else OriginalTree(order.quality, order.libjpeg)
    if order.source.names_files:
        return FileTableWriter(order.source, encoder)
    return TableWriter(order.source, encoder, order.keys)


FORMATS: Final[Mapping[str, Format]] = {
    "jpeg": Format("JPEG", {"c": _jpeg}, samples="c"),
    "png": Format("PNG", {"c": lambda order: PngTree(order.grey), "p": lambda _: PngFrames()}, samples="c"),
    "webp": Format("lossless WebP", {"c": lambda _: WebpTree()}, samples="c"),
    "original": Format("as in the source", {"c": lambda order: OriginalTree(order.quality, order.libjpeg)}),
    "mp4": Format("MP4", {"p": _videos}, samples="p"),
    "npy": Format("NumPy arrays", dict.fromkeys(BENCHMARKS, _arrays), joint=True, stacked=True),
    "npz": Format("NumPy archives of MedMNIST-C", {"c": _archives}, joint=True, stacked=True),
    "webdataset": Format("WebDataset", dict.fromkeys(BENCHMARKS, _webdataset), joint=True),
    "parquet": Format("Parquet", dict.fromkeys(BENCHMARKS, _parquet), joint=True, card=write_card),
    "table": Format("tables as in the source", {"c": _table}, joint=True),
}
"""Name, as `--format` takes it, to format."""

DEFAULTS: Final[Mapping[Kind, str]] = {"c": "jpeg", "p": "mp4"}
"""The formats of the published sets, but for those of CIFAR, which are arrays."""


def formats_of(kind: Kind) -> list[str]:
    """Return the names of the formats that a set of this kind can be written in."""
    return [name for name, row in FORMATS.items() if kind in row.writers]


def open_writer(name: str, order: Order) -> Writer:
    """Return the writer of the format called `name`.

    Raises
    ------
    ConfigError
        There is no such format for this kind of set.
    """
    known = formats_of(order.benchmark.kind)
    if name not in known:
        raise ConfigError(f"format: make-{order.benchmark.kind} writes no {name} (known: {', '.join(known)})")
    return FORMATS[name].writers[order.benchmark.kind](order)
