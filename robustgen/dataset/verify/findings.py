"""Findings that `verify` reports."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Finding:
    """One thing that is not as it should be.

    Attributes
    ----------
    kind : {"missing", "extra", "changed", "truncated", "differs", "damaged", "unfinished"}
    path : str
        POSIX path below the output.
    detail : str
        More about it, or empty.
    """

    kind: str
    path: str
    detail: str = ""


@dataclass(frozen=True)
class Findings:
    """Result of `verify`.

    Attributes
    ----------
    problems : list of Finding
    failed : list of str
        Source images that failed when the set was made, if nothing else is missing.
    images : int
        Source images of the set.
    checked : int
        Files that the checksums list.
    remade : int
        Images that were made again.
    digest : str
        Of the data set.
    known_as : str or None
        A sentence on the canonical set that it is.
    """

    problems: list[Finding]
    failed: list[str]
    images: int
    checked: int
    remade: int
    digest: str
    known_as: str | None
