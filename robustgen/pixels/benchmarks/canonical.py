"""Canonical sets, whose digests are known, because everybody who creates them gets the same bytes."""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

PENDING = "pending"
TABLE = Path(__file__).with_name("canonical.json")
PUBLISHED_FILES: Final = json.loads(TABLE.with_name("published_files.json").read_text(encoding="utf-8"))
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
