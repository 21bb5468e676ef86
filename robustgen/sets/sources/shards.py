"""Shards: WebDataset, whose images and labels are files with one stem in a tar, and Parquet of hubs."""

from bisect import bisect
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import PurePosixPath
from threading import Lock
from typing import Any, Final, NamedTuple

from robustgen.errors import SourceError
from robustgen.files.containers import tables
from robustgen.files.containers.archives import iterate_members, locate_member, peek_names, skip_members
from robustgen.files.lazy import cached_property
from robustgen.files.text_files import split_names
from robustgen.pixels.benchmarks.kinds import Kind
from robustgen.pixels.imaging.decode import EXTENSIONS
from robustgen.sets.sources import SourceKind
from robustgen.sets.sources.base import class_of, name_source_in_errors
from robustgen.sets.sources.classes import (
    CLASS_NAMES,
    KEYS,
    is_folder_name,
    list_numbers,
    name_folders,
    original_key,
    sample_key,
    sample_name,
)
from robustgen.sets.sources.files import IndexedSource, SourceListing
from robustgen.sets.sources.labels import Label, is_label_column, parse_label
from robustgen.sets.sources.places import ARCHIVES, PARQUET, SHARDS, Place, SourceFile
from robustgen.sets.sources.trees import (
    check_name,
    describe_unread,
    is_image,
    is_unread,
    list_archive,
    read_member,
)

_MOST_PEEKED: Final = 32
_MOST_LABEL_BYTES: Final = 1 << 20
_STEP: Final = 16


class Sample(NamedTuple):
    """An image or a video in a shard: its place, its label (or None), and its name outside shards."""

    place: Sequence[Any]
    label: Label | None
    name: str


class WebDataset(IndexedSource):
    """Images of a WebDataset.

    The image of a sample has one of the usual suffixes; its label is the number or name in ``.cls`` or
    ``.json``, or the folder in its key. ``classnames.txt``, next to the shards or in a folder above, maps
    numbers to names. If folders and labels agree, keys are the member names; otherwise ``<class>/<name>``.
    """

    suffixes = SHARDS

    def find_companions(self) -> list[SourceFile]:
        """Look up the files that name classes and samples, next to a shard or up to two folders above."""
        place, found = Place(self.files[0].store.location), list[SourceFile]()
        for _ in range(3):
            found += [SourceFile.look(place.folder, name) for name in (CLASS_NAMES, KEYS)]
            place = Place(place.store.location)
        return found

    def build(self) -> SourceListing:
        """List the images of all shards, with their classes; unpack compressed shards first."""
        return _name_samples(self.list_samples("c"))

    def list_samples(self, kind: Kind) -> SourceListing:
        """Return a listing of the images, or the videos of a P set, whose places are samples."""
        full_names = {sample_key(name): name for name in self._read_names(KEYS)}
        samples, unread = SourceListing(classes=self._read_names(CLASS_NAMES)), list[str]()
        for number, file in enumerate(self.files):
            with samples.refuse_damaged(file.name):
                shard = list_archive(self, number)
                self._group(shard, full_names, samples, (".mp4",) if kind == "p" else EXTENSIONS)
                unread += filter(is_unread, shard.places)
        samples.remarks = describe_unread(unread) if kind == "c" else ()
        return samples

    @cached_property
    def _steps(self) -> dict[int, list[int]]:
        """Return the offsets of every sixteenth sample of each shard, as far as they are known."""
        return {}

    def find_sample(self, file: int, index: int, name: str, kind: Kind) -> Any:
        """Return the place of sample number `index` of a shard of a set, called `name`.

        Those before it are skipped unread.

        Raises
        ------
        OSError, ValueError
            The file cannot be read, or has another sample there.
        """
        store, path = self.locate(file)
        step, rest = divmod(index, _STEP)
        offsets = [*self._steps.get(file, [0])]
        with store.open(path) as content:
            content.seek(offsets[min(step, len(offsets) - 1)])
            # A sample has two members: image and label.
            while len(offsets) <= step:
                skip_members(content, 2 * _STEP)
                offsets.append(content.tell())
            self._steps[file] = offsets
            skip_members(content, 2 * rest)
            entry = next(iterate_members(content), None)
            folder, slash, member = entry.name.rpartition("/") if entry else ("", "", "")
            if not entry or folder + slash + member.partition(".")[0] != sample_key(name):
                raise ValueError(f"not at its place in {self.files[file].name}")
            return file, *locate_member(content, entry)

    def _read_names(self, name: str) -> list[str]:
        """Read the nearest list called `name`; return [] if there is none."""
        for each in self.find_companions():
            if each.name == name and each.size >= 0:
                return [line.removesuffix("\r") for line in split_names(each.store.read(name))]
        return []

    def _group(
        self,
        shard: SourceListing,
        full_names: Mapping[str, str],
        samples: SourceListing,
        wanted: tuple[str, ...],
    ) -> None:
        """Add the samples of a shard, or the reasons for refusing them."""
        samples.refused |= shard.refused
        grouped: dict[str, dict[str, str]] = defaultdict(dict)
        for name in shard.places:
            folder, slash, file = name.rpartition("/")
            stem, _, suffix = file.partition(".")
            grouped[folder + slash + stem][f".{suffix.lower()}"] = name
        for key, members in grouped.items():
            images = [name for suffix, name in members.items() if suffix in wanted]
            if len(images) == 1:
                with samples.refuse_damaged(images[0], "its label cannot be read: "):
                    label = self._read_label(shard, members)
                    own = full_names.get(key) or _decode_name(images[0])
                    samples.add(key, Sample(shard.places[images[0]], label, own))
            elif images:
                samples.refused[key] = f"has {len(images)} images"
            elif others := [name for name in members.values() if is_image(name)]:
                samples.refused[others[0]] = "WebDataset treats everything after the first dot as the suffix"

    def _read_label(self, shard: SourceListing, members: Mapping[str, str]) -> Label | None:
        name = members.get(".cls") or members.get(".json")
        if name is None:
            return None
        if (size := shard.places[name][-1]) > _MOST_LABEL_BYTES:
            raise ValueError(f"{size} bytes")
        return parse_label(read_member(self, shard.places[name]), in_json=".cls" not in members)

    def read_sample(self, place: Any) -> bytes:
        """Read the member of one sample."""
        return read_member(self, place)

    def read_bytes(self, key: str) -> bytes:
        """Read the member of one image."""
        return self.read_sample(self._place(key))


def is_webdataset(place: Place) -> bool:
    """Return True for a pattern of shards, a folder of tars, or a tar with images and labels."""
    if place.is_folder:
        names = place.children
        has_shards = any(name.lower().endswith(SHARDS) for name in names)
        return has_shards and not any(names.values()) and not any(map(is_image, names))
    if place.is_pattern:
        return place.has_suffix(*ARCHIVES)
    if not place.has_suffix(".tar"):
        return False
    with place.store.open(place.name) as file:
        stems = [(name.rpartition("."), is_image(name)) for name in peek_names(file, _MOST_PEEKED)]
    images = {stem for (stem, _, _), is_one in stems if is_one}
    return any(stem in images and suffix in ("cls", "json") for (stem, _, suffix), _ in stems)


WEBDATASET: Final = SourceKind(is_webdataset, WebDataset, has_split_folders=True)


# --- listing -------------------------------------------------------------------------------------


def _decode_name(member: str) -> str:
    """Return the name of an image outside shards, with the dots that robustgen's writer escapes."""
    key, dot, suffix = member.rpartition(".")
    name = sample_name(key) + dot + suffix
    # robustgen never writes a name that decodes to a hidden one.
    return member if name.rpartition("/")[2].startswith(".") else name


def _name_samples(samples: SourceListing) -> SourceListing:
    """Assign every sample its key and class."""
    found, listing = samples.places, SourceListing({}, samples.refused, remarks=samples.remarks)
    recorded, told = name_folders(samples.classes), [each.label for each in found.values()]
    are_numbers = not recorded and all(isinstance(label, int) for label in told if label is not None)
    classes = {
        name: recorded[label] if isinstance(label, int) and label < len(recorded) else str(label)
        for name, (_, label, _) in found.items()
        if label is not None
    }
    names = recorded or (list_numbers(classes.values()) if are_numbers else None) or []
    folders = _match_folders(classes)
    # The labels order the folders; a class without images has no folder.
    ordered = [folders.get(name, name) for name in names]
    as_they_are = bool(folders or not classes) and len({*ordered}) == len(ordered)
    around = {class_of(name) for name in classes}
    common = "" if as_they_are or len(around) > 1 else f"{around.pop()}/"
    for name, sample in found.items():
        own = sample.name.removeprefix(common)
        if classes and name not in classes:
            listing.refused[sample.name] = "has no label, but others have"
        elif recorded and classes and classes[name] not in recorded:
            listing.refused[sample.name] = f"label {classes[name]!r} is not in {CLASS_NAMES}"
        else:
            whole = own if as_they_are else f"{classes[name]}/{own}"
            key, unprintable = check_name(original_key(whole), None)
            listing.add(key, sample.place, unprintable)
    if not classes and not {class_of(key) for key in listing.places} <= {*names}:
        ordered = []
    listing.order_classes(ordered if as_they_are else names, are_numbers=are_numbers and bool(classes))
    return listing


def _match_folders(classes: Mapping[str, str]) -> dict[str, str]:
    """Return the folder of each class, if the first folders of samples and their classes are one-to-one."""
    pairs = {(label, class_of(name)) for name, label in classes.items()}
    folder_of = dict(pairs)
    folders = {*folder_of.values()}
    # A single folder, such as val, is a class folder only if it has the name of the class.
    same = len(pairs) > 1 or folders == folder_of.keys()
    return folder_of if "" not in folders and len(folders) == len(folder_of) == len(pairs) and same else {}


# --- Parquet -------------------------------------------------------------------------------------


_IMAGE_COLUMNS: Final = ("image", "img", "jpg", "jpeg", "png", "webp", "picture", "pixels")
_LABEL_COLUMNS: Final = ("label", "labels", "cls", "class", "fine_label", "category", "target")
_ORDER: Final = {name: place for place, name in enumerate(_LABEL_COLUMNS)}
_BEGINNINGS: Final = {b"\xff\xd8": ".jpg", b"\x89P": ".png"}


class _Found(NamedTuple):
    """An image found: its place, its path, the first bytes of its file, and its label in each column."""

    place: tuple[int, int, int, str, int]
    path: str
    head: bytes
    labels: dict[str, Any]

    @property
    def label(self) -> Any:
        """Return the label in the first column of labels."""
        return next(iter(self.labels.values()), None)


class Parquet(IndexedSource):
    """Images in Parquet files.

    The column of images is a struct of ``bytes`` and ``path``, or binary; labels are names, or integers
    with names in the metadata of the schema. The key of an image is ``<class>/<name>``, from its path, or
    from its row number if all paths are the same or missing.
    """

    suffixes = (PARQUET,)

    def build(self) -> SourceListing:
        """Read all files once, and list keys and sizes of their images."""
        listing = SourceListing()
        found = self._read_files(listing)
        with name_source_in_errors(self.location):
            _check_agreement([each.labels for each in found], listing.classes)
        return _name_rows(found, listing)

    def list_samples(self, kind: Kind) -> SourceListing:
        """Return a listing of the images, or the videos of a P set, whose places are samples of size 0."""
        listing = SourceListing()
        for each in self._read_files(listing, kind):
            number, group, row = each.place[:3]
            name = each.path or f"{PurePosixPath(self.files[number].name).stem}/{group}-{row}"
            listing.add(name, Sample(each.place, each.label, name))
        return listing

    def find_sample(self, file: int, index: int, name: str, kind: Kind) -> Any:
        """Return the place of row number `index` of a file of a set."""
        column, starts = find_groups(self.check(file), kind)
        group = bisect(starts, index) - 1
        return file, group, index - starts[group], column, 0

    def _read_files(self, listing: SourceListing, kind: Kind | None = None) -> list[_Found]:
        """Return all images, and add the names of classes and what cannot be read to `listing`."""
        found = list[_Found]()
        for number, file in enumerate(self.files):
            with listing.refuse_damaged(file.name), file.store.open(file.name) as content:
                table = tables.open_table(content)
                schema = _read_schema(table.file.schema_arrow, kind, self.label_column)
                if schema.names not in (None, listing.classes or schema.names):
                    raise ValueError("its class names differ from those of the files before it")
                listing.classes = listing.classes or schema.names or ()
                if schema.others:
                    also = f"{', '.join(map(repr, schema.others))} too (see the key image_columns)"
                    remark = f"images are those of column {schema.images!r}; there are others in {also}"
                    listing.remarks = [*dict.fromkeys([*listing.remarks, remark])]
                for group in range(table.file.num_row_groups):
                    with listing.refuse_damaged(f"{file.name}, row group {group}"):
                        found += _read_rows(table, schema, number, group, kind)
        return found

    def read_bytes(self, key: str) -> bytes:
        """Read the cell of one image."""
        return self.read_sample(self._place(key))

    def read_sample(self, place: Any) -> bytes:
        """Read the cell of one sample."""
        number, group, row, column, _ = place
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
        stems = [name[: -len(PARQUET)] for name in names]
        return any(not {stem, f"{stem}.tar"} & place.children.keys() for stem in stems)
    return place.has_suffix(PARQUET)


PARQUET_FILES: Final = SourceKind(is_parquet, Parquet, has_split_folders=True)


@lru_cache(maxsize=4)
def find_groups(file: SourceFile, kind: Kind | None) -> tuple[str, list[int]]:
    """Return the column of the encoded images, and the number of the first row of each row group."""
    with file.store.open(file.name) as content:
        table = tables.open_table(content).file
    schema, metadata = _read_schema(table.schema_arrow, kind), table.metadata
    rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    return _name_column(schema), [0, *accumulate(rows[:-1])]


_OPENING: Final = Lock()


def read_rows(file: SourceFile, column: str, group: int) -> list[dict[str, Any]]:
    """Return the rows of a row group with one column; threads that ask for the same one read it once."""
    with _OPENING:
        opened = _open_group(file, column, group)
    return opened.read()


class _RowGroup:
    """Row group of a file with one column, read by the first thread that asks for it."""

    def __init__(self, file: SourceFile, column: str, group: int) -> None:
        self._file, self._column, self._group = file, column, group
        self._reading, self._rows = Lock(), list[dict[str, Any]]()

    def read(self) -> list[dict[str, Any]]:
        """Return the rows."""
        with self._reading:
            if not self._rows:
                with self._file.store.open(self._file.name) as content:
                    batches = tables.iterate_batches(tables.open_table(content), self._group, [self._column])
                    self._rows = [row for batch in batches for row in batch.to_pylist()]
        return self._rows


# Consecutive rows share a row group.
_open_group = lru_cache(maxsize=4)(_RowGroup)


# --- listing -------------------------------------------------------------------------------------


class _Schema(NamedTuple):
    """Relevant columns of a file: images, which may be a struct, others, and labels with class names."""

    images: str
    is_struct: bool
    others: Sequence[str]
    labels: Sequence[str]
    names: Sequence[str] | None


def _read_schema(schema: Any, kind: Kind | None, column: str | None = None) -> _Schema:
    """Find the columns of images or videos, and of labels: `column`, or those with a usual name."""
    types, features = tables.import_pyarrow()[0].types, tables.read_features(schema)
    labels = sorted(filter(is_label_column, schema.names), key=lambda name: _ORDER.get(name, len(_ORDER)))
    if column is not None and column not in schema.names:
        listed = ", ".join(schema.names)
        raise SourceError(f"no column {column!r} (columns: {listed}); see the key label_column")
    labels = labels if column is None else [column]
    names = features.get(labels[0], {}).get("names") if labels else None
    names = names if isinstance(names, list) and all(isinstance(name, str) for name in names) else None
    wanted, usual = ("Video", ("video",)) if kind == "p" else ("Image", _IMAGE_COLUMNS)
    columns = {each.name: each.type for each in schema}
    structs = [
        name
        for name, own in columns.items()
        if types.is_struct(own) and {"bytes", "path"} <= {part.name for part in own}
    ]
    usable = {*structs}
    usable |= {name for name, own in columns.items() if types.is_binary(own) or types.is_large_binary(own)}
    noted = [name for name, feature in features.items() if feature.get("_type") == wanted]
    # A struct of bytes and path with a feature note may be audio or video.
    groups = noted, usual, [name for name in structs if name not in features]
    found = next((some for group in groups if (some := [name for name in group if name in usable])), [])
    if not found:
        raise SourceError(f"no column of images (columns: {', '.join(columns) or 'none'})")
    image = usual[0] if usual[0] in found else found[0]
    if len(found) > 1 and image != usual[0]:
        raise SourceError(f"columns {', '.join(found)} contain images; choose one with the key image_columns")
    return _Schema(image, image in structs, [name for name in found if name != image], labels, names)


def _name_column(schema: _Schema) -> str:
    return f"{schema.images}.bytes" if schema.is_struct else schema.images


def _read_rows(
    table: tables.OpenParquet, schema: _Schema, number: int, group: int, kind: Kind | None
) -> list[_Found]:
    """Read the images of a row group of file `number`; for a set, only their paths."""
    column = _name_column(schema)
    listed = f"{schema.images}.path" if schema.is_struct and kind else schema.images
    found: list[_Found] = []
    for batch in tables.iterate_batches(table, group, [listed, *schema.labels]):
        for row in batch.to_pylist():
            cell = row[schema.images]
            image = cell if isinstance(cell, dict) else {"bytes": cell}
            data = image.get("bytes") or b""
            place = number, group, len(found), column, len(data)
            labels = {name: _whole(row[name]) for name in schema.labels}
            found.append(_Found(place, image.get("path") or "", data[:2], labels))
    return found


def _whole(label: Any) -> Any:
    """Return a label that pandas has made a float, because others are empty, as a whole number or None."""
    if not isinstance(label, float) or (label == label and not label.is_integer()):
        return label
    return int(label) if label == label else None


def _check_agreement(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Raise a ValueError if columns of labels, the first of which has `names`, give images other classes."""
    first, *others = [*rows[0]] if rows and rows[0] else [""]
    for other in others:
        pairs = {(_plain(row.get(first)), _plain(row.get(other))) for row in rows}
        pairs = {pair for pair in pairs if None not in pair}
        ranks = [sorted({str(pair[side]) for pair in pairs}) for side in (0, 1)]
        numbers = [
            [own if isinstance(own, int) else ranks[side].index(str(own)) for side, own in enumerate(pair)]
            for pair in pairs
        ]
        is_named = all(isinstance(a, int) and [*names[a : a + 1]] == [b] for a, b in pairs)
        if not is_named and any(a != b for a, b in numbers):
            choose = "choose one with the key label_column"
            raise ValueError(f"columns {first!r} and {other!r} disagree about the classes; {choose}")


def _plain(label: Any) -> int | str | None:
    if isinstance(label, int):
        return label if label >= 0 else None
    return None if label is None else str(label)


def _name_rows(found: Sequence[_Found], listing: SourceListing) -> SourceListing:
    """Assign every image its key and class."""
    numbered = len(found) > 1 and len({each.path for each in found}) == 1
    # The library `datasets` marks hidden labels with -1.
    labels = [None if isinstance(each.label, int) and each.label < 0 else each.label for each in found]
    names, types = name_folders(listing.classes), {*map(type, labels)} - {type(None)}
    for number, (each, label) in enumerate(zip(found, labels, strict=True)):
        own = f"{number:08d}{_BEGINNINGS.get(each.head, '')}" if numbered or not each.path else each.path
        with listing.refuse_damaged(f"row {number}"):
            if types and label is None:
                raise ValueError("has no label, but others have")
            key = original_key(_name_row(own, _name_class(label, names)))
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


def _name_row(path: str, class_name: str | None) -> str:
    """Return the key of an image: its path if it begins with the class, or its name below the class."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or any(part.startswith("..") for part in parts) or "\0" in path:
        raise ValueError(f"path {path[:80]!r} cannot be the name of an image")
    if class_name is None:
        return "/".join(parts) if not path.startswith("/") else parts[-1]
    return "/".join(parts) if parts[0] == class_name and len(parts) > 1 else f"{class_name}/{parts[-1]}"
