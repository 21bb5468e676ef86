"""Where pixels become files: one module per format, and the table of them.

To add a format, write a `Writer` in a module of its own and give it a row in `FORMATS`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from robustgen.benchmark import BENCHMARKS, Arm, Benchmark, Kind
from robustgen.errors import ConfigError
from robustgen.imaging import video
from robustgen.imaging.jpeg import Libjpeg
from robustgen.output.writers.base import Listing, Writer
from robustgen.output.writers.jpeg import JpegTree
from robustgen.output.writers.lossless import PngTree, WebpTree
from robustgen.output.writers.mp4 import Mp4Tree
from robustgen.output.writers.npy import Arrays
from robustgen.output.writers.png_frames import PngFrames
from robustgen.output.writers.same import SameTree

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
    """

    benchmark: Benchmark
    arms: tuple[Arm, ...]
    keys: tuple[str, ...]
    quality: int
    shapes: Callable[[], Mapping[str, tuple[int, ...]]]
    libjpeg: Libjpeg = "turbo"
    encodings: Callable[[], tuple[video.Encoding, video.Encoding]] = _published_encodings


@dataclass(frozen=True)
class Format:
    """One row of the formats.

    Attributes
    ----------
    title : str
        In words.
    writers : mapping
        Kind of set to what makes the writer from an `Order`; kinds that it lacks cannot be written so.
    """

    title: str
    writers: Mapping[Kind, Callable[[Order], Writer]]


def _videos(order: Order) -> Mp4Tree:
    return Mp4Tree(*order.encodings(), frozenset(order.benchmark.noises))


def _arrays(order: Order) -> Arrays:
    return Arrays(order.arms, order.keys, order.shapes(), per_name=order.benchmark.shares_arrays)


FORMATS: Final[Mapping[str, Format]] = {
    "jpeg": Format("JPEG", {"c": lambda order: JpegTree(order.quality, order.libjpeg)}),
    "png": Format("PNG", {"c": lambda _: PngTree(), "p": lambda _: PngFrames()}),
    "webp": Format("lossless WebP", {"c": lambda _: WebpTree()}),
    "same": Format("as in the source", {"c": lambda order: SameTree(order.quality, order.libjpeg)}),
    "mp4": Format("MP4", {"p": _videos}),
    "npy": Format("NumPy arrays", dict.fromkeys(BENCHMARKS, _arrays)),
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
