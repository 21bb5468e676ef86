"""What is recorded of the results: files, rows of arrays, and the receipt for one source image.

`receipts_to_json` and `receipts_from_json` are the one way from receipts into a journal and back, `to_json`
and `from_json` that of their records:

    WrittenFile   ["file", "fog/3/cat/a.JPEG", 8123, "5891b5b5...", ""]
    WrittenSample ["sample", "fog/3/000012.tar", 12007, 8123, "f3a9-000001-8c1d22aa-77.spool", 9131, "f3a9"]

Rows of one array differ in nothing but image and arm; the arms follow the record:

    WrittenRow    ["fog.npy", 3072, "f3a9c81e0b47d215-8c1d22aa", ["fog/1", "fog/2", "fog/3"]]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from operator import itemgetter
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


def receipts_to_json(receipts: Sequence[Receipt]) -> list[dict[str, Any]]:
    """`receipts`, all with the same `files`, as JSON takes them: each by itself, all of rows as one."""
    files = receipts[0].files
    if {type(each) for written in files.values() for each in written} != {WrittenRow}:
        return [_add_failures(_files_to_json(receipt), receipt.failures) for receipt in receipts]
    rows: dict[Written, list[str]] = {}
    for folder, (row,) in files.items():
        rows.setdefault(row, []).append(folder)
    images = {receipt.key: receipt.size for receipt in receipts}
    content = {"images": images, "rows": [[*row, folders] for row, folders in rows.items()]}
    return [_add_failures(content, [failure for receipt in receipts for failure in receipt.failures])]


def _files_to_json(receipt: Receipt) -> dict[str, Any]:
    files = {folder: [*map(to_json, written)] for folder, written in receipt.files.items()}
    return {"key": receipt.key, "size": receipt.size, "files": files}


def _add_failures(content: dict[str, Any], failures: Sequence[Failure]) -> dict[str, Any]:
    return content | ({"failures": failures} if failures else {})


def receipts_from_json(content: Mapping[str, Any]) -> list[Receipt]:
    """The receipts that `receipts_to_json` made the entry `content` of.

    Raises
    ------
    ValueError
        It is none.
    """
    try:
        failures = tuple(content.get("failures", ()))
        texts = [text for failure in failures for text in failure.values()]
        if "rows" in content:
            images, files = dict(content["images"]), _rows_from_json(content["rows"])
        else:
            images, files = {content["key"]: content["size"]}, _files_from_json(content["files"])
        if not {*map(type, [*images, *texts])} <= {str} or {*map(type, images.values())} != {int}:
            raise ValueError("a receipt with fields of other types")
        own = dict.fromkeys(images, ()) | {
            key: tuple(each) for key, each in groupby(failures, key=itemgetter("key"))
        }
        return [Receipt(key, size, files, own[key]) for key, size in images.items()]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no receipt: {error}") from error


def _files_from_json(held: Mapping[str, Sequence[Sequence[Any]]]) -> dict[str, list[Written]]:
    places = iter(from_json([each for written in held.values() for each in written]))
    return {folder: [*islice(places, len(written))] for folder, written in held.items()}


def _rows_from_json(entries: Sequence[Sequence[Any]]) -> dict[str, list[Written]]:
    rows: dict[str, list[Written]] = {}
    *columns, arms = zip(*entries, strict=True)
    if [{*map(type, column)} for column in columns] != _TYPES["row"] or {*map(type, chain(*arms))} != {str}:
        raise ValueError("rows with fields of other types")
    for record, folders in zip(map(WrittenRow, *columns), arms, strict=True):
        row: list[Written] = [record]
        rows |= dict.fromkeys(folders, row)
    return rows
