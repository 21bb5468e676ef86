"""Table of the formats; one module per format writes the files of a set and reads them back.

To add a format, write a `Writer` (and a `WrittenSet`, if no reader knows the layout yet) and a `Format` in a
new module, and name the `Format` here, or in an entry point of your own package.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from robustgen.errors import ConfigError, UnknownNameError
from robustgen.files import rows
from robustgen.files.registry import Registry

if TYPE_CHECKING:
    from robustgen.pixels.benchmarks.kinds import Kind
    from robustgen.sets.formats.base import Encoder, Writer, WriterSpec, WrittenSet


@dataclass(frozen=True)
class Format:
    """A row in the table of formats.

    Attributes
    ----------
    title : str
        Name for readers.
    writers : mapping
        Kind of set to a function that creates the writer from a `WriterSpec`; other kinds are not supported.
    reader : type of WrittenSet, optional
        Reads sets whose settings name this format. Default: files that Pillow decodes, or videos.
    samples : str
        Kinds of set whose shards may contain its files.
    has_samples : bool
        Whether its files contain files of another format, which ``NAME:ENCODING`` chooses.
    joint : bool
        Whether each file contains many images, so that all variants of a set share one list of images.
    stacked : bool
        Whether the levels of an operation share a file, if the benchmark stores them so.
    """

    title: str
    writers: "Mapping[Kind, Callable[[WriterSpec], Writer]]"
    reader: "type[WrittenSet] | None" = None
    samples: str = ""
    has_samples: bool = False
    joint: bool = False
    stacked: bool = False


FORMATS: Final[Registry[Format]] = Registry(
    "format", "robustgen.formats", Format, {name: f"{__name__}.{row}" for name, row in rows.FORMATS.items()}
)
"""Formats by their name for `--format`."""

DEFAULTS: "Final[Mapping[Kind, str]]" = {"c": "jpeg", "p": "mp4"}
"""Formats of the published sets, except those of CIFAR, which are arrays."""


def parse_format(text: str) -> tuple[str, str | None]:
    """Return the names in ``"webdataset:png"``: the format, and the encoding of the images in its files.

    Raises
    ------
    UnknownNameError
        The format or the encoding does not exist.
    ConfigError
        Its files do not contain encoded images.
    """
    name, colon, encoding = text.partition(":")
    if name not in FORMATS:
        raise UnknownNameError("format", name, FORMATS)
    if not colon:
        return name, None
    if not FORMATS[name].has_samples:
        raise ConfigError(f"{name} has no encodings; write {name}, not {text}")
    if encoding not in FORMATS or not FORMATS[encoding].samples:
        raise UnknownNameError(f"encoding of {name}", encoding, _list_rows(lambda row: bool(row.samples)))
    return name, encoding


def formats_of(kind: "Kind") -> list[str]:
    """Return the names of the formats for sets of this kind."""
    return _list_rows(lambda row: kind in row.writers)


def _list_rows(fits: Callable[[Format], bool]) -> list[str]:
    return [name for name in FORMATS.list_usable() if fits(FORMATS[name])]


def open_writer(name: str, spec: "WriterSpec") -> "Writer":
    """Return the writer of the format called `name`.

    Raises
    ------
    ConfigError
        The format does not exist for this kind of set.
    """
    kind = spec.benchmark.kind
    if kind not in FORMATS[name].writers:
        raise ConfigError(f"format: make-{kind} writes no {name} (known: {', '.join(formats_of(kind))})")
    return FORMATS[name].writers[kind](spec)


def open_sample_encoder(spec: "WriterSpec") -> "Encoder":
    """Return the encoder of the images in files that contain many.

    Raises
    ------
    ConfigError
        The encoding does not exist for this kind of set.
    """
    kind = spec.benchmark.kind
    name = spec.sample_format or DEFAULTS[kind]
    if kind not in FORMATS[name].samples:
        known = ", ".join(_list_rows(lambda row: kind in row.samples))
        raise ConfigError(f"format: make-{kind} shards cannot be {name} (known: {known})")
    return FORMATS[name].writers[kind](spec).encoder
