"""The compression of a set, in words."""

from collections.abc import Mapping
from typing import Any

from robustgen.pixels.benchmarks.editions import EDITIONS
from robustgen.pixels.benchmarks.kinds import Kind
from robustgen.sets.formats.encoders import JpegEncoder
from robustgen.sets.formats.videos import Mp4Encoder


def describe_compression(output: Mapping[str, Any], kind: Kind, edition: str | None) -> str:
    """Return how the images of a set are compressed, and the published sets of its edition if otherwise.

    Parameters
    ----------
    output : mapping
        The settings of the writer.
    kind : {"c", "p"}
    edition : str or None
        None for sets without an edition.
    """
    own, row = _name_compression(output), EDITIONS.get(str(edition).partition("@")[0])
    if row is None:
        return own
    encoder = None if row.format != "jpeg" else Mp4Encoder() if kind == "p" else JpegEncoder(row.quality)
    published = _name_compression(encoder.settings() if encoder else {})
    return own if own == published else f"{own}; published: {published}"


def _name_compression(output: Mapping[str, Any]) -> str:
    own = output.get("sample", output)
    if coded := own.get("video"):
        parts = (coded.get(name) for name in ("pixel_format", "preset", "crf"))
        return "H.264 {}, preset {}, rate factor {}".format(*parts)
    return f"JPEG, quality {own['quality']}" if "quality" in own else "uncompressed"
