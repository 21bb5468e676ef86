"""Parquet as hubs serve it: a column of images, each with its bytes and path, and a column of labels."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from PIL import Image

from robustgen.errors import ImageError, SourceError
from robustgen.imaging.decode import (
    Location,
    as_rgb,
    blame_image,
    decode_to_pillow,
    read_dimensions,
    reason_of,
)
from robustgen.imaging.pixels import Rgb
from robustgen.sources.base import Source, blame_source, sort_classes
from robustgen.sources.labels import is_folder_name
from robustgen.sources.listed_file import Stamp, stamp_of
from robustgen.sources.parquet_files import import_pyarrow, read_features, read_group
from robustgen.sources.patterns import expand_pattern, is_pattern
from robustgen.sources.scratch import Scratch
from robustgen.sources.shelf import Index, Shelf

_SUFFIX = ".parquet"
_IMAGE_COLUMNS = ("image", "img", "jpg", "jpeg", "png", "webp", "picture", "pixels")
_LABEL_COLUMNS = ("label", "labels", "cls", "class", "fine_label", "category", "target")
# A row group is read as a whole; those of image sets have some 10 to 100 MB.
_MOST_GROUP_BYTES = 1 << 31
_SIGNATURES = {b"\xff\xd8": ".jpg", b"\x89P": ".png"}


class _Row(NamedTuple):
    """Where an image lies, and the bytes of its file."""

    file: int
    group: int
    row: int
    size: int


class _Found(NamedTuple):
    """An image as it was found: what its path calls it, how its bytes begin, and its label."""

    row: _Row
    path: str
    head: bytes
    label: Any


class _Column(NamedTuple):
    """A column of images: its name, and whether it is a struct of bytes and path."""

    name: str
    is_struct: bool

    @property
    def values(self) -> str:
        """The column or the part of it that has the bytes."""
        return f"{self.name}.bytes" if self.is_struct else self.name


@dataclass
class Rows(Index):
    """What all files hold.

    Attributes
    ----------
    files : list
        Path, stamp and column of images of each.
    rows : dict of str to _Row
    refused : dict of str to str
        Images and files that must not be read, with the reasons.
    classes : tuple of str
    labels : dict of str to int
        Key to the index in `classes`.
    has_lost_rows : bool
        Whether a file or a row group could not be read.
    """

    files: list[tuple[Path, Stamp, _Column]] = field(default_factory=list)
    rows: dict[str, _Row] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    labels: dict[str, int] = field(default_factory=dict)
    has_lost_rows: bool = False

    @classmethod
    def build(cls, location: Path, scratch: Scratch) -> "Rows":
        """As `Index.build`."""
        return list_rows(location)

    @classmethod
    def files_at(cls, location: Path) -> Sequence[Path]:
        """As `Index.files_at`."""
        return expand_pattern(location, _is_parquet_name)

    @property
    def is_lasting(self) -> bool:
        """As `Index.is_lasting`."""
        return not self.has_lost_rows

    def make_ready(self, scratch: Scratch) -> None:
        """As `Index.make_ready`; there is nothing to unpack."""

    def to_json(self, *, here: bool) -> Any:
        """As `Index.to_json`."""
        files = [(str(path), stamp, column) for path, stamp, column in self.files]
        return [files, self.rows, self.refused, self.classes, self.labels]

    @classmethod
    def from_json(cls, content: Any) -> "Rows":
        """As `Index.from_json`."""
        raw_files, raw_rows, refused, classes, labels = content
        files = [(Path(path), (*stamp,), _Column(*column)) for path, stamp, column in raw_files]
        rows = {key: _Row(*row) for key, row in raw_rows.items()}
        return cls(files, rows, refused, tuple(classes), labels)


class Parquet(Source):
    """Images in Parquet files.

    The column of images is a struct of ``bytes`` and ``path``, or binary; labels are integers, whose names
    are in the metadata of the schema, or names. The key of an image is ``<class>/<name>``, by its path, or
    by the number of its row where paths tell nothing.

    Parameters
    ----------
    files : path
        A file, a folder, or a pattern: ``data/validation-*.parquet``.
    held : path, optional
        The index that an earlier run has kept.

    Raises
    ------
    SourceError
        There is no such file. From everything else: it holds no images.
    MissingDependencyError
        pyarrow is not installed.
    """

    def __init__(self, files: Location, held: Path | None = None) -> None:
        # A pattern is no file that could be looked at.
        self.location = Path(files)
        import_pyarrow()
        self._shelf = Shelf(Rows, self.location, held)

    @property
    def _listed(self) -> Rows:
        with blame_source(self.location):
            return self._shelf.get()

    def make_ready(self) -> None:
        """Show processes of this machine what is where; a SourceError if that fails."""
        with blame_source(self.location):
            self._shelf.make_ready()

    def export_index(self) -> bytes | None:
        """Return the index, where it was built anew."""
        return self._shelf.export_index()

    def keys(self) -> tuple[str, ...]:
        """Return the keys of all images, sorted; a SourceError if there are none."""
        listed = self._listed
        if not listed.rows:
            example = "".join(f"; {key!r}: {why}" for key, why in [*listed.refused.items()][:1])
            raise SourceError(f"{self.location}: no images{example}")
        return tuple(sorted(listed.rows))

    def refused(self) -> dict[str, str]:
        """Return key or file, and the reason, of what must not be processed."""
        return dict(self._listed.refused)

    def load(self, key: str) -> Rgb:
        """Decode one image afresh: uint8 ndarray of shape (H, W, 3); an ImageError if it cannot be read."""
        with blame_image(key):
            return as_rgb(self.open(key))

    def open(self, key: str) -> Image.Image:
        """Decode one image afresh to a Pillow image of mode RGB; an ImageError if it cannot be read."""
        with blame_image(key):
            return decode_to_pillow(io.BytesIO(self._read(key)), key)

    def dimensions(self, key: str) -> tuple[int, int]:
        """Return width and height of one image, from its header; an ImageError if it cannot be read."""
        with blame_image(key):
            return read_dimensions(io.BytesIO(self._read(key)), key)

    def _read(self, key: str) -> bytes:
        listed = self._listed
        row = listed.rows[key]
        path, stamp, column = listed.files[row.file]
        data = read_group(path, stamp, column.values, row.group)[row.row].as_py()
        if not isinstance(data, bytes):
            raise ValueError("its row holds no bytes")
        return data

    def size(self, key: str) -> int:
        """Return the bytes of one image's file; an ImageError if there is no such image."""
        return self._row(key).size

    def storage_order(self, key: str) -> tuple[int, ...]:
        """Sort by file and row group, so that each is read once."""
        return self._row(key)

    def _row(self, key: str) -> _Row:
        try:
            return self._listed.rows[key]
        except KeyError:
            raise ImageError(f"{key!r}: no such image in {self.location}") from None

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes in the order of the labels."""
        return self._listed.classes

    def label(self, key: str) -> int:
        """Return the index of one image's class in `classes`; an ImageError if it is of none."""
        if key not in self._listed.labels:
            raise ImageError(f"{key!r}: of no class that {self.location} has")
        return self._listed.labels[key]


def is_parquet(path: Path) -> bool:
    """Whether `path` is a Parquet file, a pattern of some, or a folder that has some directly in it."""
    if path.is_dir():
        return any(entry.suffix.lower() == _SUFFIX for entry in path.iterdir())
    return path.suffix.lower() == _SUFFIX and (is_pattern(path) or path.is_file())


def _is_parquet_name(name: str) -> bool:
    return name.lower().endswith(_SUFFIX)


# --- listing -------------------------------------------------------------------------------------


def list_rows(location: Path) -> Rows:
    """Read through all files once: keys, sizes and labels of their images."""
    pyarrow, _ = import_pyarrow()
    listed, found = Rows(), list[_Found]()
    names: Sequence[str] | None = None
    for path in expand_pattern(location, _is_parquet_name):
        try:
            file, own = _open(path)
            names = _agree(names, own.names)
        except (pyarrow.ArrowException, OSError, ValueError, SourceError) as error:
            listed.refused[path.name], listed.has_lost_rows = reason_of(error), True
            continue
        listed.files.append((path, stamp_of(path.stat()), own.images))
        for group in range(file.num_row_groups):
            try:
                found += _read_rows(file, own, len(listed.files) - 1, group)
            except (pyarrow.ArrowException, OSError, ValueError) as error:
                listed.refused[f"{path.name}, row group {group}"] = reason_of(error)
                listed.has_lost_rows = True
    _name_rows(found, names or (), listed)
    return listed


def _agree(names: Sequence[str] | None, own: Sequence[str] | None) -> Sequence[str] | None:
    """The names of the classes, of which a file has its `own`; a ValueError if these are others."""
    if names is not None and own is not None and list(names) != list(own):
        pairs = enumerate(zip_longest(names, own))
        place, (theirs, ours) = next((place, pair) for place, pair in pairs if pair[0] != pair[1])
        raise ValueError(f"its class {place} is {ours!r}, where files before it have {theirs!r}")
    return own if names is None else names


class _Schema(NamedTuple):
    """The columns of a file that matter, and the names of the classes."""

    images: _Column
    label: str | None
    names: Sequence[str] | None


def _open(path: Path) -> tuple[Any, _Schema]:
    _, parquet = import_pyarrow()
    stamp_of(path.stat())
    file = parquet.ParquetFile(path)
    schema, features = file.schema_arrow, read_features(file.schema_arrow)
    label = next((name for name in _LABEL_COLUMNS if name in schema.names), None)
    names = features.get(label, {}).get("names") if label else None
    return file, _Schema(_find_images(path, schema, features), label, names)


def _find_images(path: Path, schema: Any, features: Mapping[str, Any]) -> _Column:
    kinds = import_pyarrow()[0].types
    noted = [name for name, feature in features.items() if feature.get("_type") == "Image"]
    columns = {column.name: column.type for column in schema}
    # A struct of bytes and path can be a sound or a video as well, of which there is a note then.
    others = [name for name, kind in columns.items() if kinds.is_struct(kind) and name not in features]
    for name in dict.fromkeys([*noted, *_IMAGE_COLUMNS, *others]):
        kind = columns.get(name)
        if kind is None:
            continue
        if kinds.is_struct(kind) and {"bytes", "path"} <= {part.name for part in kind}:
            return _Column(name, True)
        if kinds.is_binary(kind) or kinds.is_large_binary(kind):
            return _Column(name, False)
    raise SourceError(f"no column of images (it has {', '.join(columns) or 'none at all'})")


def _read_rows(file: Any, schema: _Schema, number: int, group: int) -> list[_Found]:
    """The images of a row group of the file `number`."""
    size = file.metadata.row_group(group).total_byte_size
    if not 0 <= size <= _MOST_GROUP_BYTES:
        raise ValueError(f"a row group of {size} bytes, which is read as a whole")
    columns = [schema.images.name, *([schema.label] if schema.label else [])]
    table = file.read_row_group(group, columns=columns)
    images = table[schema.images.name].combine_chunks()
    data, paths = (images.field("bytes"), images.field("path")) if schema.images.is_struct else (images, None)
    labels = table[schema.label].to_pylist() if schema.label else [None] * table.num_rows
    found = []
    for row, cell in enumerate(data):
        content = memoryview(cell.as_buffer() or b"")
        name = (paths[row].as_py() if paths is not None else None) or ""
        found.append(_Found(_Row(number, group, row, len(content)), name, bytes(content[:2]), labels[row]))
    return found


def _name_rows(found: Sequence[_Found], names: Sequence[str], listed: Rows) -> None:
    """Give every image its key, class and label."""
    numbered = len(found) > 1 and len({each.path for each in found}) == 1
    usable = names if all(isinstance(n, str) and is_folder_name(n) for n in names) else ()
    classes: dict[str, str] = {}
    for number, each in enumerate(found):
        own = f"{number:08d}{_SIGNATURES.get(each.head, '')}" if numbered or not each.path else each.path
        try:
            class_name = _name_class(each.label, usable)
            key = _name_image(own, class_name)
        except ValueError as error:
            listed.refused[f"row {number}"] = str(error)
            continue
        if key in listed.rows or key in listed.refused:
            listed.rows.pop(key, None)
            listed.refused[key] = "stands in the rows twice"
        elif each.row.size == 0:
            listed.refused[key] = "its row holds no bytes"
        else:
            listed.rows[key] = each.row
            classes[key] = key.partition("/")[0] if class_name is None and "/" in key else class_name or ""
    present = {classes[key] for key in listed.rows}
    listed.classes = tuple(usable) if usable and present <= {*usable} else tuple(sort_classes(present))
    index = {name: number for number, name in enumerate(listed.classes)}
    listed.labels = {key: index[classes[key]] for key in listed.rows}


def _name_class(label: object, names: Sequence[str]) -> str | None:
    if label is None:
        return None
    if isinstance(label, int) and names:
        if not 0 <= label < len(names):
            raise ValueError(f"label {label} is none of the {len(names)} classes")
        return names[label]
    if not isinstance(label, int | str) or not is_folder_name(str(label)):
        raise ValueError(f"label {str(label)[:40]!r} cannot be the name of a class")
    return str(label)


def _name_image(path: str, class_name: str | None) -> str:
    """The key of an image: its path if that begins with the class, else its name below the class."""
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
