"""Canonical sets, whose digests are known, because everybody who creates them gets the same bytes."""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

PENDING = "pending"
TABLE = Path(__file__).with_name("canonical.json")
PUBLISHED_FILES: Final = {
    "cifar-10": (
        "CIFAR-10-C",
        {
            "brightness.npy": "0a81ef75e0b523c3383219c330a85d48",
            "contrast.npy": "3c8262171c51307f916c30a3308235a8",
            "defocus_blur.npy": "7d1322666342a0702b1957e92f6254bc",
            "gaussian_blur.npy": "c33370155bc9b055fb4a89113d3c559d",
            "jpeg_compression.npy": "2b9cc4c864e0193bb64db8d7728f8187",
            "pixelate.npy": "0f14f7e2db14288304e1de10df16832f",
            "saturate.npy": "1cfae0964219c5102abbb883e538cc56",
            "zoom_blur.npy": "6ea8e63f1c5cdee1517533840641641b",
            "labels.npy": "c439b113295ed5254878798ffe28fd54",
        },
    ),
    "cifar-100": (
        "CIFAR-100-C",
        {
            "brightness.npy": "f22d7195aecd6abb541e27fca230c171",
            "contrast.npy": "322bb385f1d05154ee197ca16535f71e",
            "defocus_blur.npy": "d923e3d9c585a27f0956e2f2ad832564",
            "gaussian_blur.npy": "5204ba0d557839772ef5a4196a052c3e",
            "jpeg_compression.npy": "c851b7f1324e1d2ffddeb76920576d11",
            "pixelate.npy": "96c00c60f144539e14cffb02ddbd0640",
            "saturate.npy": "c0697e9fdd646916a61e9c312c77bf6b",
            "zoom_blur.npy": "0204613400c034a81c4830d5df81cb82",
            "labels.npy": "bb4026e9ce52996b95f439544568cdb2",
        },
    ),
}
"""Data set to the name of its C set on Zenodo, and the MD5 of those files that need no random draws."""


@dataclass(frozen=True)
class CanonicalSet:
    """One row of the table.

    Attributes
    ----------
    source : str
        Name of the data set, as for ``--dataset``.
    kind : {"c", "p"}
    operations : {"default", "all"}
        The corruptions or perturbations of the data set's config, or all of them.
    seed : int
    title : str
        The set's name, such as ``CIFAR-10-C``.
    release : str
        The release of robustgen that first published the digest.
    digest : str
        The dataset digest; for a set of MP4 files that of the decoded frames; or `PENDING`.
    """

    source: str
    kind: Literal["c", "p"]
    operations: Literal["default", "all"]
    seed: int
    title: str
    release: str
    digest: str


@lru_cache(maxsize=1)
def read_table() -> tuple[CanonicalSet, ...]:
    """Read the rows of ``canonical.json``."""
    return tuple(CanonicalSet(**row) for row in json.loads(TABLE.read_text(encoding="utf-8")))


def recognise(*digests: str | None) -> str | None:
    """Return a sentence that names the canonical set with one of `digests`, or None.

    Parameters
    ----------
    *digests : str or None
        As `CanonicalSet.digest`: the dataset digest, and for videos that of the frames.
    """
    for row in read_table():
        if row.digest in digests and row.digest != PENDING:
            return f"This is {row.title} (seed {row.seed}) as published with robustgen {row.release}."
    return None
