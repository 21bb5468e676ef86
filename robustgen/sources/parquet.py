"""Parquet as hubs serve it: a column of images, each with bytes and path, and a column of labels."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from robustgen.benchmark import Kind
from robustgen.containers.parquet import (
    Table,
    import_pyarrow,
    iterate_batches,
    open_table,
    read_features,
    read_group,
)
from robustgen.errors import SourceError
from robustgen.imaging.decode import reason_of
from robustgen.sources.base import class_of, sort_classes
from robustgen.sources.files import IndexedSource
from robustgen.sources.index import Listing
from robustgen.sources.labels import is_folder_name
from robustgen.sources.places import PARQUET, Place, SourceFile

_IMAGE_COLUMNS: Final = ("image", "img", "jpg", "jpeg", "png", "webp", "picture", "pixels")
_LABEL_COLUMNS: Final = ("label", "labels", "cls", "class", "fine_label", "category", "target")
_SIGNATURES: Final = {b"\xff\xd8": ".jpg", b"\x89P": ".png"}


class _Found(NamedTuple):
    """An image found: its place, its path, the first bytes of its file, and its label."""

    place: tuple[int, int, int, int, str]
    path: str
    head: bytes
    label: Any


def _list_as_stored(
    found: Sequence[_Found], listing: Listing, files: list[SourceFile], kind: Kind
) -> Listing:
    """List every row of a set under the name and label it was written with."""
    for each in found:
        number, group, row = each.place[:3]
        key = each.path or f"{PurePosixPath(files[number].name).stem}/{group}-{row}"
        key = key if kind == "c" else str(PurePosixPath(key).with_suffix(""))
        if key in listing.places:
            listing.refused[key] = "occurs twice in the rows"
        elif key.startswith("/") or ".." in key.split("/"):
            listing.refused[key] = "its path leaves the folder"
        elif isinstance(each.label, int):
            listing.labels[key] = each.label
        listing.places[key] = each.place
    return listing


class Parquet(IndexedSource):
    """Images in Parquet files.

    The column of images is a struct of ``bytes`` and ``path``, or binary; labels are names, or integers
    with names in the metadata of the schema. The key of an image is ``<class>/<name>``, from its path, or
    from its row number if all paths are the same or missing.
    """

    def find_files(self) -> list[SourceFile]:
        """Look up the files."""
        return Place(self.location).expand(_is_parquet_name, self.split)

    def build(self) -> Listing:
        """Read all files once, and list keys, sizes and labels of their images."""
        found, refused = list[_Found](), dict[str, str]()
        names: Sequence[str] | None = None
        for number, each in enumerate(self.files):
            try:
                with each.store.open(each.name) as content:
                    table = open_table(content)
                    own = _read_schema(table.file.schema_arrow, self.kind)
                    if own.names not in (None, names or own.names):
                        raise ValueError("its class names differ from those of the files before it")
                    names = names or own.names
                    for group in range(table.file.num_row_groups):
                        try:
                            found += _read_rows(table, own, number, group, self.kind)
                        except (OSError, ValueError) as error:
                            refused[f"{each.name}, row group {group}"] = _describe(error)
            except (OSError, ValueError) as error:
                refused[each.name] = _describe(error)
        listing = Listing({}, refused, names or (), {})
        if self.kind:
            return _list_as_stored(found, listing, self.files, self.kind)
        return _name_rows(found, listing)

    def read_bytes(self, key: str) -> bytes:
        """Read the cell of one image."""
        number, group, row, _, column = self._place(key)
        data = read_cells(self.check(number), column, group)[row].as_py()
        if not isinstance(data, bytes):
            raise ValueError("its row contains no bytes")
        return data

    def size(self, key: str) -> int:
        """Return the size of one image's file in bytes; raise an ImageError if `key` is unknown."""
        return int(self._place(key)[3])


def is_parquet(place: Place) -> bool:
    """Return True for a Parquet file, a pattern of such files, or a folder that contains one directly."""
    if place.is_folder:
        return any(map(_is_parquet_name, place.children))
    return place.has_suffix(PARQUET)


def _is_parquet_name(name: str) -> bool:
    return name.lower().endswith(PARQUET)


# Consecutive rows share a row group.
@lru_cache(maxsize=4)
def read_cells(file: SourceFile, column: str, group: int) -> Any:
    """Return the values of a column in a row group."""
    with file.store.open(file.name) as content:
        return read_group(open_table(content), group, column)


# --- listing -------------------------------------------------------------------------------------


def _describe(error: Exception) -> str:
    """Return the reason of a failure, unless a connection was lost, which a later run may not find."""
    if isinstance(error, ConnectionError):
        raise error
    return reason_of(error)


class _Schema(NamedTuple):
    """Relevant columns of a file: images, which may be a struct, and labels with class names."""

    images: str
    is_struct: bool
    label: str | None
    names: Sequence[str] | None


def _read_schema(schema: Any, kind: Kind | None) -> _Schema:
    """Find the columns of images or videos, and of labels."""
    kinds, features = import_pyarrow()[0].types, read_features(schema)
    label = next((name for name in _LABEL_COLUMNS if name in schema.names), None)
    names = features.get(label, {}).get("names") if label else None
    names = names if isinstance(names, list) and all(isinstance(name, str) for name in names) else None
    wanted, usual = ("Video", ("video",)) if kind == "p" else ("Image", _IMAGE_COLUMNS)
    noted = [name for name, feature in features.items() if feature.get("_type") == wanted]
    columns = {column.name: column.type for column in schema}
    # A struct of bytes and path with a feature note may be audio or video.
    others = [name for name, kind in columns.items() if kinds.is_struct(kind) and name not in features]
    for name in dict.fromkeys([*noted, *usual, *others]):
        kind = columns.get(name)
        if kind is None:
            continue
        if kinds.is_struct(kind) and {"bytes", "path"} <= {part.name for part in kind}:
            return _Schema(name, True, label, names)
        if kinds.is_binary(kind) or kinds.is_large_binary(kind):
            return _Schema(name, False, label, names)
    raise SourceError(f"no column of images (columns: {', '.join(columns) or 'none'})")


def _read_rows(table: Table, schema: _Schema, number: int, group: int, kind: Kind | None) -> list[_Found]:
    """Read the images of a row group of file `number`; for a set, only their paths."""
    column = f"{schema.images}.bytes" if schema.is_struct else schema.images
    listed = f"{schema.images}.path" if schema.is_struct and kind else schema.images
    found: list[_Found] = []
    for batch in iterate_batches(table, group, [listed, *([schema.label] if schema.label else [])]):
        for row in batch.to_pylist():
            cell = row[schema.images]
            image = cell if isinstance(cell, dict) else {"bytes": cell}
            data = image.get("bytes") or b""
            place = number, group, len(found), len(data), column
            label = row[schema.label] if schema.label else None
            found.append(_Found(place, image.get("path") or "", data[:2], label))
    return found


def _name_rows(found: Sequence[_Found], listing: Listing) -> Listing:
    """Assign every image its key, class and label."""
    numbered = len(found) > 1 and len({each.path for each in found}) == 1
    usable = listing.classes if all(map(is_folder_name, listing.classes)) else ()
    classes: dict[str, str] = {}
    for number, each in enumerate(found):
        own = f"{number:08d}{_SIGNATURES.get(each.head, '')}" if numbered or not each.path else each.path
        try:
            class_name = _name_class(each.label, usable)
            key = _name_image(own, class_name)
        except ValueError as error:
            listing.refused[f"row {number}"] = str(error)
            continue
        listing.add(key, each.place, None if each.place[3] else "its row contains no bytes")
        classes[key] = class_of(key) if class_name is None else class_name
    present = {classes[key] for key in listing.places}
    ordered = list(usable) if usable and present <= {*usable} else sort_classes(present)
    return listing.number(ordered, classes)


def _name_class(label: object, names: Sequence[str]) -> str | None:
    if label is None:
        return None
    if isinstance(label, int) and names:
        if not 0 <= label < len(names):
            raise ValueError(f"label {label} is not one of the {len(names)} classes")
        return names[label]
    if not isinstance(label, int | str) or not is_folder_name(str(label)):
        raise ValueError(f"label {str(label)[:40]!r} cannot be the name of a class")
    return str(label)


def _name_image(path: str, class_name: str | None) -> str:
    """Return the key of an image: its path if it begins with the class, or its name below the class."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or any(part.startswith("..") for part in parts) or "\0" in path:
        raise ValueError(f"path {path[:80]!r} cannot be the name of an image")
    if class_name is None:
        return "/".join(parts) if not path.startswith("/") else parts[-1]
    return (
        "/".join(parts)
        if len(parts) > 1 and parts[0] == class_name
        else f"{class_name}/{PurePosixPath(path).name}"
    )
