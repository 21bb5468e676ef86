"""Parquet as hubs serve it: a column of images, each with bytes and path, and a column of labels."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from robustgen.errors import SourceError
from robustgen.files.containers import tables
from robustgen.sets.sources import SourceKind
from robustgen.sets.sources.classes import is_folder_name, name_folders
from robustgen.sets.sources.files import IndexedSource
from robustgen.sets.sources.index import SourceListing
from robustgen.sets.sources.places import PARQUET, Place, SourceFile

_IMAGE_COLUMNS: Final = ("image", "img", "jpg", "jpeg", "png", "webp", "picture", "pixels")
_LABEL_COLUMNS: Final = ("label", "labels", "cls", "class", "fine_label", "category", "target")
_SIGNATURES: Final = {b"\xff\xd8": ".jpg", b"\x89P": ".png"}


class _Found(NamedTuple):
    """An image found: its place, its path, the first bytes of its file, and its label."""

    place: tuple[int, int, int, str, int]
    path: str
    head: bytes
    label: Any


class Parquet(IndexedSource):
    """Images in Parquet files.

    The column of images is a struct of ``bytes`` and ``path``, or binary; labels are names, or integers
    with names in the metadata of the schema. The key of an image is ``<class>/<name>``, from its path, or
    from its row number if all paths are the same or missing.
    """

    suffixes = (PARQUET,)

    def build(self) -> SourceListing:
        """Read all files once, and list keys and sizes of their images."""
        found, listing = list[_Found](), SourceListing()
        for number, file in enumerate(self.files):
            with listing.refuse_damaged(file.name), file.store.open(file.name) as content:
                table = tables.open_table(content)
                schema = _read_schema(table.file.schema_arrow, self.kind)
                if schema.names not in (None, listing.classes or schema.names):
                    raise ValueError("its class names differ from those of the files before it")
                listing.classes = listing.classes or schema.names or ()
                for group in range(table.file.num_row_groups):
                    with listing.refuse_damaged(f"{file.name}, row group {group}"):
                        found += _read_rows(table, schema, number, group, self.kind)
        if not self.kind:
            return _name_rows(found, listing)
        for place, path, _, label in found:
            number, group, row = place[:3]
            name = path or f"{PurePosixPath(self.files[number].name).stem}/{group}-{row}"
            self.add_as_stored(listing, name, label, place)
        return listing

    def read_bytes(self, key: str) -> bytes:
        """Read the cell of one image."""
        number, group, row, column, _ = self._place(key)
        name, _, part = column.partition(".")
        cell = read_rows(self.check(number), column, group)[row][name]
        data = cell[part] if cell and part else cell
        if not isinstance(data, bytes):
            raise ValueError("its row contains no bytes")
        return data


def is_parquet(place: Place) -> bool:
    """Return True for a Parquet file, a pattern of such files, or a folder that contains one directly.

    img2dataset writes a Parquet file with the metadata of each shard next to it.
    """
    if place.is_folder:
        names = [name for name in place.children if name.lower().endswith(PARQUET)]
        return any(f"{name[: -len(PARQUET)]}.tar" not in place.children for name in names)
    return place.has_suffix(PARQUET)


KIND: Final = SourceKind(is_parquet, Parquet, has_split_folders=True)


# Consecutive rows share a row group.
@lru_cache(maxsize=4)
def read_rows(file: SourceFile, column: str, group: int) -> list[dict[str, Any]]:
    """Return the rows of a row group with one column."""
    with file.store.open(file.name) as content:
        batches = tables.iterate_batches(tables.open_table(content), group, [column])
        return [row for batch in batches for row in batch.to_pylist()]


# --- listing -------------------------------------------------------------------------------------


class _Schema(NamedTuple):
    """Relevant columns of a file: images, which may be a struct, and labels with class names."""

    images: str
    is_struct: bool
    label: str | None
    names: Sequence[str] | None


def _read_schema(schema: Any, kind: str | None) -> _Schema:
    """Find the columns of images or videos, and of labels."""
    types, features = tables.import_pyarrow()[0].types, tables.read_features(schema)
    label = next((name for name in _LABEL_COLUMNS if name in schema.names), None)
    names = features.get(label or "", {}).get("names")
    names = names if isinstance(names, list) and all(isinstance(name, str) for name in names) else None
    wanted, usual = ("Video", ("video",)) if kind == "p" else ("Image", _IMAGE_COLUMNS)
    noted = [name for name, feature in features.items() if feature.get("_type") == wanted]
    columns = {column.name: column.type for column in schema}
    structs = [name for name, type_ in columns.items() if types.is_struct(type_)]
    # A struct of bytes and path with a feature note may be audio or video.
    for name in (*noted, *usual, *(name for name in structs if name not in features)):
        if name in structs and {"bytes", "path"} <= {part.name for part in columns[name]}:
            return _Schema(name, True, label, names)
        if name in columns and (types.is_binary(columns[name]) or types.is_large_binary(columns[name])):
            return _Schema(name, False, label, names)
    raise SourceError(f"no column of images (columns: {', '.join(columns) or 'none'})")


def _read_rows(
    table: tables.OpenParquet, schema: _Schema, number: int, group: int, kind: str | None
) -> list[_Found]:
    """Read the images of a row group of file `number`; for a set, only their paths."""
    column = f"{schema.images}.bytes" if schema.is_struct else schema.images
    listed = f"{schema.images}.path" if schema.is_struct and kind else schema.images
    found: list[_Found] = []
    for batch in tables.iterate_batches(table, group, [listed, *([schema.label] if schema.label else [])]):
        for row in batch.to_pylist():
            cell = row[schema.images]
            image = cell if isinstance(cell, dict) else {"bytes": cell}
            data = image.get("bytes") or b""
            place = number, group, len(found), column, len(data)
            found.append(_Found(place, image.get("path") or "", data[:2], row.get(schema.label)))
    return found


def _name_rows(found: Sequence[_Found], listing: SourceListing) -> SourceListing:
    """Assign every image its key and class."""
    numbered = len(found) > 1 and len({each.path for each in found}) == 1
    # The library `datasets` marks hidden labels with -1.
    labels = [None if isinstance(each.label, int) and each.label < 0 else each.label for each in found]
    names, types = name_folders(listing.classes), {*map(type, labels)} - {type(None)}
    for number, (each, label) in enumerate(zip(found, labels, strict=True)):
        own = f"{number:08d}{_SIGNATURES.get(each.head, '')}" if numbered or not each.path else each.path
        with listing.refuse_damaged(f"row {number}"):
            if types and label is None:
                raise ValueError("has no label, but others have")
            key = _name_image(own, _name_class(label, names))
            listing.add(key, each.place, None if each.place[-1] else "its row contains no bytes")
    listing.order_classes(names if types else (), are_numbers=not names and types == {int})
    return listing


def _name_class(label: object, names: Sequence[str]) -> str | None:
    if label is None:
        return None
    if isinstance(label, int) and label < (len(names) or label + 1):
        return names[label] if names else str(label)
    if names or not isinstance(label, str) or not is_folder_name(label):
        raise ValueError(f"label {str(label)[:40]!r} is not one of the classes")
    return label


def _name_image(path: str, class_name: str | None) -> str:
    """Return the key of an image: its path if it begins with the class, or its name below the class."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or any(part.startswith("..") for part in parts) or "\0" in path:
        raise ValueError(f"path {path[:80]!r} cannot be the name of an image")
    if class_name is None:
        return "/".join(parts) if not path.startswith("/") else parts[-1]
    return "/".join(parts) if parts[0] == class_name and len(parts) > 1 else f"{class_name}/{parts[-1]}"
