"""Findings that `verify` reports."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Finding:
    """One problem of an output.

    Attributes
    ----------
    kind : {"missing", "extra", "changed", "truncated", "differs", "damaged", "unfinished"}
    path : str
        POSIX path below the output.
    detail : str
        Details of the problem, or empty.
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
        Source images that failed when the set was created, if nothing else is missing.
    images : int
        Number of source images of the set.
    checked : int
        Number of files that the checksums list.
    remade : int
        Number of images that were recreated.
    digest : str
        Digest of the data set.
    known_as : str or None
        Sentence that names the canonical set with this digest, if any.
    """

    problems: list[Finding]
    failed: list[str]
    images: int
    checked: int
    remade: int
    digest: str
    known_as: str | None
