"""What is recorded of the results: files, rows of arrays, and the receipt for one source image.

`receipt_to_json` and `receipt_from_json` are the one way from a receipt into a journal and back, `to_json`
and `from_json` that of its records:

    WrittenFile   ["file", "fog/3/cat/a.JPEG", 8123, "5891b5b5...", ""]
    WrittenSample ["sample", "fog/3/000012.tar", 12007, 8123, "f3a9-000001-8c1d22aa-77.spool", 9131, "f3a9"]

Rows of one array differ in nothing but their arms, which follow the record:

    WrittenRow    ["fog.npy", 3072, "f3a9c81e0b47d215-8c1d22aa", ["fog/1", "fog/2", "fog/3"]]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
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
    """One filled row of an array; which one, follows from the image and the arm.

    Attributes
    ----------
    path : str
        Name of the array, POSIX path below the output.
    size : int
        Bytes of the row.
    layout : str
        Which layout of the array the row belongs to; rows of another one do not count.
    """

    path: str
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
        if name == "row":
            # Such records of single rows, with their numbers, are in journals of earlier versions.
            del columns[1]
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


def receipt_to_json(receipt: Receipt) -> dict[str, Any]:
    """`receipt` as JSON takes it."""
    files: dict[str, list[list[Any]]] = {}
    rows: dict[Written, list[str]] = {}
    for folder, written in receipt.files.items():
        if written and type(written[0]) is WrittenRow:
            rows.setdefault(written[0], []).append(folder)
        else:
            files[folder] = [to_json(each) for each in written]
    content: dict[str, Any] = {"key": receipt.key, "size": receipt.size, "files": files}
    if rows:
        content["rows"] = [[*row, folders] for row, folders in rows.items()]
    return content | ({"failures": receipt.failures} if receipt.failures else {})


def receipt_from_json(content: Mapping[str, Any]) -> Receipt:
    """The receipt that `receipt_to_json` made `content` of.

    Raises
    ------
    ValueError
        It is none.
    """
    try:
        files = _files_from_json(content["files"]) | _rows_from_json(content.get("rows", ()))
        receipt = Receipt(content["key"], content["size"], files, tuple(content.get("failures", ())))
        texts = [receipt.key, *(text for failure in receipt.failures for text in failure.values())]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no receipt: {error}") from error
    if not all(isinstance(text, str) for text in texts) or not isinstance(receipt.size, int):
        raise ValueError("a receipt with fields of other types")
    return receipt


def _files_from_json(held: Mapping[str, Sequence[Sequence[Any]]]) -> dict[str, list[Written]]:
    places = iter(from_json([each for written in held.values() for each in written]))
    return {folder: [*islice(places, len(written))] for folder, written in held.items()}


def _rows_from_json(entries: Sequence[Sequence[Any]]) -> dict[str, list[Written]]:
    rows: dict[str, list[Written]] = {}
    if not entries:
        return rows
    *columns, arms = zip(*entries, strict=True)
    if [{*map(type, column)} for column in columns] != _TYPES["row"] or {*map(type, chain(*arms))} != {str}:
        raise ValueError("rows with fields of other types")
    for record, folders in zip(map(WrittenRow, *columns), arms, strict=True):
        row: list[Written] = [record]
        rows |= dict.fromkeys(folders, row)
    return rows
