"""Records of the files that work units have written, and of their source images.

A record is one small file, written after all files of its unit, so that the files it names exist. Records are
the only state of a run. The first line is the SHA-256 of the second, which is a JSON object. For one file per
image:

    {"images": {"cat/a.JPEG": [110230, "9f86d081884c7d65"]}, "variants": ["fog/3"],
     "outputs": {"fog/3": [[["cat/a.JPEG", 8123, "5891b5b5..."]]]}, "failures": []}

For files with many images:

    {"images": {...}, "variants": ["fog/3"], "written": [["fog/3/000000.tar", 8123904, "5891b5b5..."]],
     "failures": [{"key": "dog/b.png", "reason": "truncated"}]}

``images`` contains the bytes and the identity of each source file at the time of reading. For each image in
the order of ``images``, ``outputs`` contains the files of that variant, or null if it failed: name below the
folder of the variant, bytes, SHA-256, and for a video the digest of its frames.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from robustgen.formats import WrittenFile

Failure = dict[str, str]
"""An entry of `errors.jsonl`: ``key``, ``arm`` if only one variant failed, ``reason``."""
Origin = tuple[int, str]
"""Bytes of a source image, and its identity at the time of reading (empty if it could not be read)."""


@dataclass(frozen=True)
class ImagesRecord:
    """Record of images with one or more files each.

    Attributes
    ----------
    images : mapping of str to Origin
        Key to bytes and identity of the source image.
    variants : sequence of str
        Folders of the variants that were attempted.
    outputs : mapping of str to list
        Folder of a variant to the files of each image, in the order of `images`; None if the image failed or
        was not attempted.
    failures : sequence of dict
    """

    images: Mapping[str, Origin]
    variants: Sequence[str]
    outputs: Mapping[str, Sequence[Sequence[WrittenFile] | None]]
    failures: Sequence[Failure] = ()

    def files(self) -> Iterator[tuple[str, WrittenFile]]:
        """Yield the folder of the variant and each file, with its path below the output."""
        for folder, rows in self.outputs.items():
            prefix = f"{folder}/" if folder else ""
            for file in chain.from_iterable(filter(None, rows)):
                yield folder, WrittenFile(prefix + file[0], file[1], file[2], file[3])

    def list_outputs(self) -> Iterator[tuple[str, str, WrittenFile]]:
        """Yield the key, the folder of the variant, and each file, with its path below that folder."""
        for folder, rows in self.outputs.items():
            for key, files in zip(self.images, rows, strict=True):
                for file in files or ():
                    yield key, folder, WrittenFile(*file)

    def list_made(self) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield each key and the folders of its finished variants."""
        rows = [self.outputs[folder] for folder in self.variants]
        whole = frozenset(self.variants)
        for place, key in enumerate(self.images):
            made = [row[place] is not None for row in rows]
            if all(made):
                yield key, whole
            else:
                yield key, frozenset(f for f, done in zip(self.variants, made, strict=True) if done)

    def list_attempts(self) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield each key and the folders of the variants that were created from it or failed."""
        failed: dict[str, set[str]] = {}
        for failure in self.failures:
            own = [failure["arm"]] if "arm" in failure else self.variants
            failed.setdefault(failure["key"], set()).update(own)
        for key, made in self.list_made():
            yield key, made.union(failed[key]) if key in failed else made

    def without(self, keys: set[str]) -> "ImagesRecord":
        """Return the record of all other images."""
        kept = [place for place, key in enumerate(self.images) if key not in keys]
        return ImagesRecord(
            {key: origin for key, origin in self.images.items() if key not in keys},
            self.variants,
            {folder: [rows[place] for place in kept] for folder, rows in self.outputs.items()},
            [failure for failure in self.failures if failure["key"] not in keys],
        )


@dataclass(frozen=True)
class FilesRecord:
    """Record of files that contain many images, or that belong to the set as a whole.

    Attributes
    ----------
    images : mapping of str to Origin
        See `ImagesRecord`; empty for files of the set.
    variants : sequence of str
    written : sequence of WrittenFile
        Files, with their paths below the output.
    failures : sequence of dict
        Failures of the images that the files lack.
    shared : str
        Part of the content of the files that depends on the whole set; empty if there is none.
    """

    images: Mapping[str, Origin] = field(default_factory=dict)
    variants: Sequence[str] = ()
    written: Sequence[WrittenFile] = ()
    failures: Sequence[Failure] = ()
    shared: str = ""

    def files(self) -> Iterator[tuple[str, WrittenFile]]:
        """Yield each file, after the folder of its variant (empty: none).

        The folder is at the root of the output, or in one of its folders.
        """
        folders = [folder for folder in self.variants if folder]
        for file in map(WrittenFile._make, ([*each, ""][:4] for each in self.written)):
            inside = (
                folder
                for path in (file.path, file.path.partition("/")[2])
                for folder in folders
                if path.startswith(f"{folder}/")
            )
            yield next(inside, ""), file

    def list_attempts(self) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield each key and the folders of the variants that were created from it or failed."""
        folders = frozenset(self.variants)
        return ((key, folders) for key in self.images)


@dataclass(frozen=True)
class ValuesRecord(FilesRecord):
    """Record that contains the results for its images.

    Attributes
    ----------
    values : mapping of str to list
        JSON values.
    """

    values: Mapping[str, Any] = field(default_factory=dict)


Record = ImagesRecord | FilesRecord


def to_bytes(record: Record) -> bytes:
    """Return `record` as the bytes of a file; equal records give equal bytes."""
    body = json.dumps(vars(record), separators=(",", ":"))
    return f"{hashlib.sha256(body.encode()).hexdigest()}\n{body}\n".encode()


def from_bytes(data: bytes) -> Record:
    """Return the record in the bytes of a file.

    Raises
    ------
    ValueError
        The file is damaged.
    """
    digest, _, body = data.partition(b"\n")
    if hashlib.sha256(body.removesuffix(b"\n")).hexdigest().encode() != digest:
        raise ValueError("its checksum does not match")
    content: dict[str, Any] = json.loads(body)
    kind = ImagesRecord if "outputs" in content else ValuesRecord if "values" in content else FilesRecord
    record: Record = kind(**content)
    return record
