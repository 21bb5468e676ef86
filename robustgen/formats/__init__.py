"""Table of the formats; one module per format writes the files of a set and reads them back.

To add a format, write a `Writer` in a new module and add a row to `FORMATS`. If no `Dataset` reads the
layout yet, add one in the same module, with a row in `robustgen.dataset.opening`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from robustgen.benchmarks.kinds import BENCHMARKS, Kind
from robustgen.errors import ConfigError
from robustgen.formats.arrays import ArchiveWriter, ArrayWriter
from robustgen.formats.base import Dataset as Dataset
from robustgen.formats.base import Encoder as Encoder
from robustgen.formats.base import Labels as Labels
from robustgen.formats.base import Listing as Listing
from robustgen.formats.base import Order as Order
from robustgen.formats.base import Pixels as Pixels
from robustgen.formats.base import TreeWriter as TreeWriter
from robustgen.formats.base import UnitWriter as UnitWriter
from robustgen.formats.base import Writer as Writer
from robustgen.formats.base import WrittenFile as WrittenFile
from robustgen.formats.base import describe_difference as describe_difference
from robustgen.formats.base import name_contents as name_contents
from robustgen.formats.base import parse_variant as parse_variant
from robustgen.formats.card import write_card
from robustgen.formats.jpeg import JpegEncoder
from robustgen.formats.lossless import LosslessEncoder, PngFramesEncoder
from robustgen.formats.mp4 import Mp4Encoder
from robustgen.formats.original import OriginalEncoder
from robustgen.formats.parquet import ParquetWriter
from robustgen.formats.table import FileTableWriter, TableWriter
from robustgen.formats.units import WorkUnit as WorkUnit
from robustgen.formats.webdataset import WebDatasetWriter
from robustgen.sources.table import Table


@dataclass(frozen=True)
class Format:
    """A row in the table of formats.

    Attributes
    ----------
    title : str
        Name for readers.
    writers : mapping
        Kind of set to a function that creates the writer from an `Order`; other kinds are not supported.
    samples : str
        Kinds of set whose shards may contain its files.
    joint : bool
        Whether each file contains many images, so that all arms of a set share one list of images.
    stacked : bool
        Whether the levels of an operation share a file, if the benchmark stores them so.
    card : callable or None
        Returns files that describe the set, from its manifest: path below the output to bytes.
    """

    title: str
    writers: Mapping[Kind, Callable[[Order], Writer]]
    samples: str = ""
    joint: bool = False
    stacked: bool = False
    card: Callable[[Mapping[str, Any]], Mapping[str, bytes]] | None = None


def _jpeg(order: Order) -> TreeWriter:
    return TreeWriter(JpegEncoder(order.quality, order.libjpeg, order.grey, order.subsampling))


def _original(order: Order) -> TreeWriter:
    return TreeWriter(OriginalEncoder(order.quality, order.libjpeg))


def _videos(order: Order) -> TreeWriter:
    return TreeWriter(Mp4Encoder(frozenset(order.benchmark.noises), *order.encodings()))


def _sample_encoder(order: Order) -> Encoder:
    """Return the encoder of the samples of shards."""
    kind = order.benchmark.kind
    known = [name for name, row in FORMATS.items() if kind in row.samples]
    name = order.sample_format or DEFAULTS[kind]
    if name not in known:
        raise ConfigError(f"sample_format: make-{kind} shards cannot be {name} (known: {', '.join(known)})")
    return FORMATS[name].writers[kind](order).encoder


def _webdataset(order: Order) -> WebDatasetWriter:
    return WebDatasetWriter(_sample_encoder(order), order)


def _parquet(order: Order) -> ParquetWriter:
    return ParquetWriter(_sample_encoder(order), order)


def _table(order: Order) -> Writer:
    if not isinstance(order.source, Table):
        raise ConfigError("format: table is for sources of the kind table (--dataset table)")
    encoder = _sample_encoder(order) if order.sample_format else _original(order).encoder
    if order.source.names_files:
        return FileTableWriter(order.source, encoder)
    return TableWriter(order.source, encoder, order.keys)


FORMATS: Final[Mapping[str, Format]] = {
    "jpeg": Format("JPEG", {"c": _jpeg}, samples="c"),
    "png": Format(
        "PNG",
        {
            "c": lambda order: TreeWriter(LosslessEncoder(".png", order.grey)),
            "p": lambda _: TreeWriter(PngFramesEncoder()),
        },
        samples="c",
    ),
    "webp": Format("lossless WebP", {"c": lambda _: TreeWriter(LosslessEncoder(".webp"))}, samples="c"),
    "original": Format("as in the source", {"c": _original}),
    "mp4": Format("MP4", {"p": _videos}, samples="p"),
    "npy": Format("NumPy arrays", dict.fromkeys(BENCHMARKS, ArrayWriter), joint=True, stacked=True),
    "npz": Format("NumPy archives of MedMNIST-C", {"c": ArchiveWriter}, joint=True, stacked=True),
    "webdataset": Format("WebDataset", dict.fromkeys(BENCHMARKS, _webdataset), joint=True),
    "parquet": Format("Parquet", dict.fromkeys(BENCHMARKS, _parquet), joint=True, card=write_card),
    "table": Format("tables as in the source", {"c": _table}, joint=True),
}
"""Formats by their name for `--format`."""

DEFAULTS: Final[Mapping[Kind, str]] = {"c": "jpeg", "p": "mp4"}
"""Formats of the published sets, except those of CIFAR, which are arrays."""


def formats_of(kind: Kind) -> list[str]:
    """Return the names of the formats for sets of this kind."""
    return [name for name, row in FORMATS.items() if kind in row.writers]


def open_writer(name: str, order: Order) -> Writer:
    """Return the writer of the format called `name`.

    Raises
    ------
    ConfigError
        The format does not exist for this kind of set.
    """
    known = formats_of(order.benchmark.kind)
    if name not in known:
        raise ConfigError(f"format: make-{order.benchmark.kind} writes no {name} (known: {', '.join(known)})")
    return FORMATS[name].writers[order.benchmark.kind](order)
