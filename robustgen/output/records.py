"""What is recorded of the results: files, rows of arrays, and the receipt for one source image.

`to_json` and `from_json` are the one way from a record into a journal and back:

    WrittenFile   ["file", "fog/3/cat/a.JPEG", 8123, "5891b5b5...", ""]
    WrittenRow    ["row", "fog.npy", 10007, 3072, "f3a9c81e0b47d215-8c1d22aa"]
    WrittenSample ["sample", "fog/3/000012.tar", 12007, 8123, "f3a9-000001-8c1d22aa-77.spool", 9131, "f3a9"]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NamedTuple

Failure = dict[str, str]


class WrittenFile(NamedTuple):
    """One finished file.

    Attributes
    ----------
    path : str
        POSIX path below the output.
    size : int
        Bytes.
    sha256 : str
        Hexadecimal digest of the file.
    frames : str
        Of a video, the digest of the decoded frames; else empty.
    """

    path: str
    size: int
    sha256: str
    frames: str = ""


class WrittenRow(NamedTuple):
    """One filled row of an array.

    Attributes
    ----------
    path : str
        Name of the array, POSIX path below the output.
    row : int
    size : int
        Bytes of the row.
    layout : str
        Which layout of the array the row belongs to; rows of another one do not count.
    """

    path: str
    row: int
    size: int
    layout: str


class WrittenSample(NamedTuple):
    """One sample, staged in a spool until its shard is put together.

    Attributes
    ----------
    path : str
        The shard, POSIX path below the output.
    image : int
        Number of the image.
    size : int
        Bytes of the sample.
    spool : str
        Name of the spool.
    end : int
        Offset at which the sample ends there.
    layout : str
        Of which list of images the shard is.
    """

    path: str
    image: int
    size: int
    spool: str
    end: int
    layout: str


Written = WrittenFile | WrittenRow | WrittenSample

_KINDS: Final[Mapping[str, Any]] = {"file": WrittenFile, "row": WrittenRow, "sample": WrittenSample}
_NAMES: Final = {kind: name for name, kind in _KINDS.items()}
_TYPES: Final = {name: [{each} for each in kind.__annotations__.values()] for name, kind in _KINDS.items()}


def to_json(written: Written) -> list[Any]:
    """`written` as JSON takes it: the name of its kind, then its fields."""
    return [_NAMES[type(written)], *written]


def from_json(entries: Sequence[Sequence[Any]]) -> list[Written]:
    """The records that `to_json` made `entries` of, all of one kind.

    Raises
    ------
    ValueError
        They are none.
    """
    if not entries:
        return []
    try:
        # Column by column: there are millions of them.
        names, *columns = zip(*entries, strict=True)
        name = names[0]
        if {*names} != {name} or [{*map(type, column)} for column in columns] != _TYPES[name]:
            raise ValueError(f"of several kinds, or with fields of other types than a {name} has")
        if name == "file" and not "".join(chain(*columns[2:])).isalnum():
            raise ValueError("without digests")
        return [*map(_KINDS[name], *columns)]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"no records of what was written: {error}") from error


@dataclass(frozen=True)
class Receipt:
    """The result of one source image.

    Attributes
    ----------
    key : str
    size : int
        Bytes of the source image, by which a changed one is noticed.
    files : mapping of str to list of Written
        Arm's folder to the files or rows written.
    failures : tuple of dict
        Entries for `errors.jsonl`: key, arm (where it was one arm that failed) and reason.
    """

    key: str
    size: int
    files: Mapping[str, list[Written]] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()

    @property
    def folders(self) -> tuple[str, ...]:
        """Of the arms that are done."""
        return tuple(self.files)
