"""Where pixels become files: one module per format, and the table of them.

To add a format, write a `Writer` in a module of its own and give it a row in `FORMATS`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from robustgen.benchmark import BENCHMARKS, Arm, Benchmark, Kind
from robustgen.errors import ConfigError
from robustgen.imaging import video
from robustgen.imaging.jpeg import Libjpeg
from robustgen.output.writers.base import Listing, TreeWriter, Writer
from robustgen.output.writers.card import write_card
from robustgen.output.writers.jpeg import JpegTree
from robustgen.output.writers.lossless import PngTree, WebpTree
from robustgen.output.writers.mp4 import Mp4Tree
from robustgen.output.writers.npy import Arrays
from robustgen.output.writers.parquet import SAMPLE_COLUMNS, ParquetWriter
from robustgen.output.writers.png_frames import PngFrames
from robustgen.output.writers.same import SameTree
from robustgen.output.writers.shards import SHARD_SIZE
from robustgen.output.writers.webdataset import WebDatasetWriter

__all__ = ["DEFAULTS", "FORMATS", "Listing", "Order", "Writer", "formats_of", "open_writer"]


def _published_encodings() -> tuple[video.Encoding, video.Encoding]:
    return video.Encoding(), video.Encoding(crf=None, tune="grain")


@dataclass(frozen=True, kw_only=True)
class Order:
    """All that a writer of any format may want to know of the set to be written.

    Attributes
    ----------
    benchmark : Benchmark
    arms : tuple of Arm
    keys : tuple of str
        The images, in order.
    quality : int
    libjpeg : {"turbo", "ijg"}
        Of JPEG files: how fine, and which library writes them.
    shapes : callable
        Returns, for each folder of an arm, the shape of what it makes: (H, W, 3), or (T, H, W, 3).
    encodings : callable
        Returns how smooth sequences are encoded, and how noise is.
    sample_format : str or None
        Of shards: the format of the files in them; None for the published one.
    shard_size : int
        Of shards: how many images each holds.
    """

    benchmark: Benchmark
    arms: tuple[Arm, ...]
    keys: tuple[str, ...]
    quality: int
    shapes: Callable[[], Mapping[str, tuple[int, ...]]]
    libjpeg: Libjpeg = "turbo"
    encodings: Callable[[], tuple[video.Encoding, video.Encoding]] = _published_encodings
    sample_format: str | None = None
    shard_size: int = SHARD_SIZE


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


def _videos(order: Order) -> Mp4Tree:
    return Mp4Tree(*order.encodings(), frozenset(order.benchmark.noises))


def _arrays(order: Order) -> Arrays:
    return Arrays(order.arms, order.keys, order.shapes(), per_name=order.benchmark.shares_arrays)


def _sample_encoder(order: Order) -> TreeWriter:
    """What encodes the samples of shards."""
    kind = order.benchmark.kind
    known = [name for name, row in FORMATS.items() if kind in row.samples]
    name = order.sample_format or DEFAULTS[kind]
    if name not in known:
        raise ConfigError(f"sample_format: shards of make-{kind} hold no {name} (known: {', '.join(known)})")
    encoder = FORMATS[name].writers[kind](order)
    assert isinstance(encoder, TreeWriter)
    return encoder


def _webdataset(order: Order) -> WebDatasetWriter:
    return WebDatasetWriter(_sample_encoder(order), order.arms, order.keys, order.shard_size)


def _parquet(order: Order) -> ParquetWriter:
    column = SAMPLE_COLUMNS[order.benchmark.kind]
    return ParquetWriter(_sample_encoder(order), order.arms, order.keys, order.shard_size, column)


FORMATS: Final[Mapping[str, Format]] = {
    "jpeg": Format("JPEG", {"c": lambda order: JpegTree(order.quality, order.libjpeg)}, samples="c"),
    "png": Format("PNG", {"c": lambda _: PngTree(), "p": lambda _: PngFrames()}, samples="c"),
    "webp": Format("lossless WebP", {"c": lambda _: WebpTree()}, samples="c"),
    "same": Format("as in the source", {"c": lambda order: SameTree(order.quality, order.libjpeg)}),
    "mp4": Format("MP4", {"p": _videos}, samples="p"),
    "npy": Format("NumPy arrays", dict.fromkeys(BENCHMARKS, _arrays), joint=True, stacked=True),
    "webdataset": Format("WebDataset", dict.fromkeys(BENCHMARKS, _webdataset), joint=True),
    "parquet": Format("Parquet", dict.fromkeys(BENCHMARKS, _parquet), joint=True, card=write_card),
}
"""Name, as `--format` takes it, to format."""

DEFAULTS: Final[Mapping[Kind, str]] = {"c": "jpeg", "p": "mp4"}
"""The formats of the published sets, but for those of CIFAR, which are arrays."""


def formats_of(kind: Kind) -> list[str]:
    """The names of the formats that a set of this kind can be written in."""
    return [name for name, row in FORMATS.items() if kind in row.writers]


def open_writer(name: str, order: Order) -> Writer:
    """The writer of the format called `name`.

    Raises
    ------
    ConfigError
        There is no such format for this kind of set.
    """
    known = formats_of(order.benchmark.kind)
    if name not in known:
        raise ConfigError(f"format: make-{order.benchmark.kind} writes no {name} (known: {', '.join(known)})")
    return FORMATS[name].writers[order.benchmark.kind](order)
