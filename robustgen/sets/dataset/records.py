"""Records of the files that work units have written, and of their source images.

A record is one small file, written after all files of its unit, so that the files it names exist. Records are
the only state of a run. The first line is the SHA-256 of the second, which is a JSON object:

    {"images": {"cat/a.JPEG": [110230, "9f86d081884c7d65"]}, "variants": ["fog/3"],
     "files": [["fog/3/cat/a.JPEG", 8123, "5891b5b5...", ""]],
     "failures": [{"key": "dog/b.png", "reason": "truncated"}], "shared": "", "values": {}}

``images`` contains the bytes and the identity of each source file at the time of reading. ``files`` contains
path, bytes and SHA-256 of each output, and for a video the digest of its frames.
"""

import hashlib
import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from robustgen.files.set_files import WrittenFile

Failure = dict[str, str]
"""An entry of `errors.jsonl`: ``key``, ``variant`` if only one variant failed, ``reason``."""
COMPANIONS: Final = "companions"
"""Name of the record of the files about a set as a whole, and of its refused images."""
Origin = tuple[int, str]
"""Bytes of a source image, and its identity at the time of reading (empty if it could not be read)."""


@dataclass(frozen=True)
class Record:
    """Record of a work unit, or of files that belong to the set as a whole.

    Attributes
    ----------
    images : mapping of str to Origin
        Key to bytes and identity of the source image; empty for files of the set.
    variants : sequence of str
        Folders of the variants that were attempted.
    files : sequence of WrittenFile
        Files, with their paths below the output.
    failures : sequence of dict
        Failures of the images that the files lack.
    shared : str
        Part of the content of the files that depends on the whole set; empty if there is none. For files
        about the set, the `identify` of what they describe.
    values : mapping of str to list
        Lists with a JSON value for each image, by name: results of units that compute instead of writing
        files, and ``used_bits`` of images with 16 bits.
    """

    images: Mapping[str, Origin] = field(default_factory=dict)
    variants: Sequence[str] = ()
    files: Sequence[WrittenFile] = ()
    failures: Sequence[Failure] = ()
    shared: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


class Coverage(dict[str, frozenset[str]]):
    """Images to the folders of their attempted variants; images with the same variants share one object."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[frozenset[str], frozenset[str]] = {}

    def add(self, keys: Iterable[str], folders: Iterable[str]) -> None:
        """Add the variants in `folders` to all `keys`."""
        given = frozenset(folders)
        for key in keys:
            every = self.get(key, given) | given
            self[key] = self._known.setdefault(every, every)


def find_folder(path: str, folders: Container[str]) -> str:
    """Return which of the `folders`, at most two levels deep, contains the file at `path`; else ""."""
    outer, _, rest = path.partition("/")
    inner, slash, _ = rest.partition("/")
    if slash and f"{outer}/{inner}" in folders:
        return f"{outer}/{inner}"
    return outer if rest and outer in folders else ""


def name_mirror(folder: str) -> str:
    """Return the name of the record of the mirrored files in the `folder` of a variant."""
    return f"mirror-{folder.replace('/', '-')}"


def identify(keys: Iterable[str], folders: Iterable[str], failures: Iterable[Failure] = ()) -> str:
    """Return a digest of the images, variants and failures that files about a whole set describe."""
    failed = (f"{failure['key']}\0{failure.get('variant', '')}" for failure in failures)
    text = "\0\0".join("\0".join(sorted(part)) for part in (keys, folders, failed))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def to_bytes(record: Record) -> bytes:
    """Return `record` as the bytes of a file; equal records give equal bytes."""
    body = json.dumps(vars(record), separators=(",", ":"))
    return f"{hashlib.sha256(body.encode()).hexdigest()}\n{body}\n".encode()


def from_bytes(data: bytes, *, any_version: bool = False) -> Record:
    """Return the record in the bytes of a file; with `any_version`, only its files.

    Raises
    ------
    ValueError, TypeError
        The file is damaged, or another version wrote it.
    """
    digest, _, body = data.partition(b"\n")
    if hashlib.sha256(body.removesuffix(b"\n")).hexdigest().encode() != digest:
        raise ValueError("its checksum does not match")
    content: dict[str, Any] = json.loads(body)
    files = [WrittenFile(*file) for file in content["files"]]
    return Record(files=files) if any_version else Record(**content | {"files": files})
