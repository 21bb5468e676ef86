"""Table of the formats, each of which writes the files of a set and reads them back.

To add a format, write a `Writer` (and a `WrittenSet`, if no reader knows the layout yet) and a `Format` in a
new module, and name the `Format` here, or in an entry point of your own package.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from robustgen.errors import ConfigError, UnknownNameError
from robustgen.files import registry
from robustgen.files.registry import Registry
from robustgen.pixels.benchmarks.kinds import Content

if TYPE_CHECKING:
    from robustgen.sets.formats.base import Encoder, EncoderChoices, FilePer, SetContent, Writer, WrittenSet


@dataclass(frozen=True)
class Format:
    """A row in the table of formats.

    Attributes
    ----------
    title : str
        Name for readers.
    encoders : mapping
        Content of a set, "c" for images, "p" for sequences or "clip", to a function that creates the encoder
        from `EncoderChoices`; or, for shards, to the name of the format whose encoder is used unless
        ``NAME:ENCODING`` chooses another one. Other sets are not supported.
    writer : type of Writer
        `TreeWriter` for separate files.
    reader : type of WrittenSet, optional
        Reads sets whose settings name this format. Default: files that Pillow decodes, or videos.

    Examples
    --------
    >>> from robustgen.plugins import Format, LosslessEncoder, TreeWriter
    >>> BMP = Format("BMP", {"c": lambda choices: LosslessEncoder(".bmp")}, TreeWriter)
    >>> BMP.file_per
    'image'
    """

    title: str
    encoders: "Mapping[Content, Callable[[EncoderChoices], Encoder] | str]"
    writer: "type[Writer]"
    reader: "type[WrittenSet] | None" = None

    @property
    def file_per(self) -> "FilePer":
        """Return the content of a file: one image or sequence, a shard, or all images of an operation."""
        return self.writer.file_per


FORMATS: Final[Registry[Format]] = Registry(
    "format",
    "robustgen.formats",
    Format,
    {name: f"{__name__}.{row}" for name, row in registry.FORMAT_ROWS.items()},
)
"""Formats by their name for `--format`."""

DEFAULTS: Final[Mapping[Content, str]] = {"c": "jpeg", "p": "mp4", "clip": "mp4"}
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
    if FORMATS[name].file_per != "shard":
        raise ConfigError(f"{name} has no encodings; write {name}, not {text}")
    known = dict.fromkeys(each for content in DEFAULTS for each in list_encodings(content))
    if encoding not in known:
        raise UnknownNameError(f"encoding of {name}", encoding, known)
    return name, encoding


def list_formats(content: Content) -> list[str]:
    """Return the names of the formats for sets of this content."""
    return [name for name in FORMATS.list_usable() if content in FORMATS[name].encoders]


def list_encodings(content: Content) -> list[str]:
    """Return the formats with one file for each item, which shards may contain."""
    from robustgen.sets.formats.base import EncoderChoices

    formats = [name for name in list_formats(content) if FORMATS[name].file_per == "image"]
    encoders = {name: _open_encoder(name, None, content, EncoderChoices()) for name in formats}
    return [name for name, encoder in encoders.items() if "." in (encoder.output_name("key") or "")]


def open_writer(
    name: str, content: "SetContent", choices: "EncoderChoices", encoding: str | None = None
) -> "Writer":
    """Return the writer of the format called `name`, with the `encoding` of the images in shards, if given.

    Raises
    ------
    ConfigError
        The format or the encoding does not exist for this benchmark, or cannot store the set.
    """
    benchmark = content.benchmark
    command = f"make-{benchmark.kind} of {benchmark.medium.name}s"
    if benchmark.content not in FORMATS[name].encoders:
        known = ", ".join(list_formats(benchmark.content))
        raise ConfigError(f"format: {command} writes no {name} (known: {known})")
    if encoding and encoding not in (allowed := list_encodings(benchmark.content)):
        raise ConfigError(f"format: shards of {command} cannot be {encoding} (known: {', '.join(allowed)})")
    return FORMATS[name].writer.create(_open_encoder(name, encoding, benchmark.content, choices), content)


def _open_encoder(name: str, encoding: str | None, content: Content, choices: "EncoderChoices") -> "Encoder":
    own = FORMATS[name].encoders[content]
    return _open_encoder(encoding or own, None, content, choices) if isinstance(own, str) else own(choices)
