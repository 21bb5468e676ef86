"""What `verify` reports."""

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
    """What `verify` found.

    Attributes
    ----------
    problems : list of Finding
    checked : int
        Files that the checksums list.
    remade : int
        Images that were made anew.
    digest : str
        Of the data set.
    """

    problems: list[Finding]
    checked: int
    remade: int
    digest: str
