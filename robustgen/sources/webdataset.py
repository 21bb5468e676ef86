"""WebDataset: shards of tar archives, in which an image and its label are files of one name."""

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from robustgen.errors import ImageError, SourceError
from robustgen.imaging.decode import EXTENSIONS, Location, reason_of
from robustgen.regular_file import open_regular
from robustgen.sources.archives import ARCHIVES, list_archive, peek_names
from robustgen.sources.base import blame_source, sort_classes
from robustgen.sources.catalogue import Catalogue
from robustgen.sources.files import FileSource
from robustgen.sources.labels import is_folder_name
from robustgen.sources.patterns import expand_pattern, is_pattern
from robustgen.sources.sample_names import CLASS_NAMES, KEYS, read_names, sample_key, sample_name
from robustgen.sources.scratch import Scratch
from robustgen.sources.shelf import Index, Shelf
from robustgen.sources.tree import FileTree
from robustgen.sources.walk import Found, check_name, is_image

_LABELS_IN_JSON = ("cls", "label", "class", "class_id")
_MOST_LABEL_BYTES = 1 << 20
_MOST_PEEKED = 32

Label = int | str


class _Sample(NamedTuple):
    """An image in a shard, its label if it has one, and what it is called outside of shards."""

    shard: int
    member: str
    label: Label | None
    name: str


@dataclass
class Samples(Index):
    """What all shards hold.

    Attributes
    ----------
    shards : list of Catalogue
    places : dict
        Key to the number of the shard and the name of the member in it.
    refused : dict of str to str
        Images and shards that must not be read, with the reasons.
    classes : tuple of str
        Names of the classes, where there are labels; empty otherwise.
    labels : dict of str to int
        Key to the index in `classes`.
    has_lost_shards : bool
        Whether a shard could not be read at all.
    """

    shards: list[Catalogue] = field(default_factory=list)
    places: dict[str, tuple[int, str]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    labels: dict[str, int] = field(default_factory=dict)
    has_lost_shards: bool = False

    @classmethod
    def build(cls, location: Path, scratch: Scratch) -> "Samples":
        """As `Index.build`."""
        return list_samples(location, scratch)

    @classmethod
    def files_at(cls, location: Path) -> Sequence[Path]:
        """As `Index.files_at`: the shards, and what names classes and samples."""
        shards = expand_pattern(location, _is_shard)
        beside = [folder / name for folder in _folders_around(shards[0]) for name in (CLASS_NAMES, KEYS)]
        return [*shards, *beside]

    @property
    def is_lasting(self) -> bool:
        """As `Index.is_lasting`."""
        shards = {catalogue.file.name for catalogue in self.shards}
        return not self.has_lost_shards and not shards & self.refused.keys()

    def make_ready(self, scratch: Scratch) -> None:
        """As `Index.make_ready`."""
        for shard in self.shards:
            shard.make_ready(scratch)

    def to_json(self, *, here: bool) -> Any:
        """As `Index.to_json`."""
        shards = [shard.to_json(here=here) for shard in self.shards]
        return [shards, self.places, self.refused, self.classes, self.labels]

    @classmethod
    def from_json(cls, content: Any) -> "Samples":
        """As `Index.from_json`."""
        shards, places, refused, classes, labels = content
        listed = [Catalogue.from_json(shard) for shard in shards]
        return cls(listed, {k: (n, name) for k, (n, name) in places.items()}, refused, tuple(classes), labels)


class WebDataset(FileSource):
    """The images of a WebDataset.

    The image of a sample has one of the usual suffixes; its label is what ``.cls`` or ``.json`` say, a
    number or a name, or else the folder in its key. Numbers have names in ``classnames.txt``, beside the
    shards or in the folder above. Where the folders are the classes that the labels tell, keys are the names
    of the members; otherwise ``<class>/<name>``.

    Parameters
    ----------
    shards : path
        A tar, a folder of tars, or a pattern: ``val-{000000..000063}.tar``, ``val-*.tar``.
    held : path, optional
        The index that an earlier run has kept.

    Raises
    ------
    SourceError
        There is no such shard.
    """

    def __init__(self, shards: Location, held: Path | None = None) -> None:
        # A pattern is no file that could be looked at.
        self.location = Path(shards)
        self._tree: ShardTree = ShardTree(self.location, held)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes in the order of the labels, or sorted where there are none."""
        return self._tree.samples.classes or super().classes

    def label(self, key: str) -> int:
        """Return the index of one image's class in `classes`; an ImageError if it is of none."""
        samples = self._tree.samples
        if not samples.classes:
            return super().label(key)
        if key not in samples.labels:
            raise ImageError(f"{key!r}: of no class that {self.location} has")
        return samples.labels[key]

    def storage_order(self, key: str) -> tuple[int, ...]:
        """Sort by shard and place, so that shards are read from the beginning to the end."""
        shard, member = self._tree.samples.places[key]
        return shard, self._tree.samples.shards[shard].places[member].offset


class ShardTree(FileTree):
    """The images of a WebDataset under their keys."""

    def __init__(self, location: Path, held: Path | None = None) -> None:
        self.location = location
        self._shelf = Shelf(Samples, location, held)

    @property
    def samples(self) -> Samples:
        """What the shards hold; a SourceError if there is none."""
        with blame_source(self.location):
            return self._shelf.get()

    def make_ready(self) -> None:
        """Unpack compressed shards, and show processes of this machine what is where."""
        with blame_source(self.location):
            self._shelf.make_ready()

    def export_index(self) -> bytes | None:
        """Return the index, where it was built anew."""
        return self._shelf.export_index()

    def find(self, deep: bool = True) -> Iterator[Found]:
        """Find the images; damaged shards are among those refused."""
        for key in self.samples.places:
            yield check_name(key, None)
        for key, reason in self.samples.refused.items():
            yield check_name(key, reason)

    def open(self, name: str) -> BinaryIO:
        """Read an image into memory."""
        shard, member = self.samples.places[name]
        return io.BytesIO(self.samples.shards[shard].read(member))

    def size(self, name: str) -> int:
        """Return the size of an image's file in bytes."""
        shard, member = self.samples.places[name]
        return self.samples.shards[shard].places[member].size

    def has(self, name: str) -> bool:
        """Whether there is an image of this key."""
        return name in self.samples.places

    def below(self, folder: str) -> FileTree:
        """Return the tree itself: its names are keys already."""
        if folder:
            raise SourceError(f"{self.location}: a WebDataset has no folders")
        return self


def is_webdataset(path: Path) -> bool:
    """Whether `path` is a pattern of shards, a folder of tars, or a tar with labels beside its images."""
    if is_pattern(path):
        return path.name.lower().endswith(ARCHIVES)
    if path.is_dir():
        names = [entry.name for entry in path.iterdir() if not entry.name.startswith(".")]
        if not any(map(_is_shard, names)) or any(map(is_image, names)):
            return False
        return not any((path / name).is_dir() for name in names)
    return path.name.lower().endswith(".tar") and path.is_file() and _has_labels(path)


def _is_shard(name: str) -> bool:
    return name.lower().endswith(ARCHIVES) and not name.lower().endswith(".zip")


def _has_labels(path: Path) -> bool:
    names = peek_names(path, _MOST_PEEKED)
    images = {name.rpartition(".")[0] for name in names if is_image(name)}
    return any(name.rpartition(".")[0] in images for name in names if name.endswith((".cls", ".json")))


# --- listing -------------------------------------------------------------------------------------


def list_samples(location: Path, scratch: Scratch) -> Samples:
    """List the samples of all shards; compressed ones are unpacked to `scratch`."""
    paths = expand_pattern(location, _is_shard)
    listed = Samples()
    found: dict[str, _Sample] = {}
    full_names = _read_full_names(paths[0])
    for path in paths:
        catalogue = _list_shard(path, scratch, listed)
        if catalogue is None:
            listed.has_lost_shards = True
            continue
        listed.shards.append(catalogue)
        for name, sample in _group(catalogue, len(listed.shards) - 1, full_names, listed):
            if name in found or name in listed.refused:
                found.pop(name, None)
                listed.refused[name] = "stands in the shards twice"
            else:
                found[name] = sample
    if not listed.shards:
        raise SourceError(f"{location}: no shard can be read; {next(iter(listed.refused.items()), '')}")
    _name_samples(found, _read_class_names(paths[0]), listed)
    return listed


def _list_shard(path: Path, scratch: Scratch, listed: Samples) -> Catalogue | None:
    """The files of one shard; what is wrong with it goes to what is refused."""
    try:
        catalogue = list_archive(path, scratch)
    except (OSError, EOFError, ValueError) as error:
        listed.refused[path.name] = reason_of(error).removeprefix(f"{path}: ")
        return None
    listed.refused |= catalogue.refused
    return catalogue


def _group(
    catalogue: Catalogue, shard: int, full_names: Mapping[str, str], listed: Samples
) -> Iterator[tuple[str, _Sample]]:
    """The samples of one shard: their keys in it, and where their images lie."""
    grouped: dict[str, dict[str, str]] = {}
    for name in catalogue.places:
        folder, slash, file = name.rpartition("/")
        stem, _, suffix = file.partition(".")
        grouped.setdefault(folder + slash + stem, {})[suffix.lower()] = name
    for key, members in grouped.items():
        images = [name for suffix, name in members.items() if f".{suffix}" in EXTENSIONS]
        if len(images) == 1:
            try:
                label = _read_label(catalogue, members)
                yield key, _Sample(shard, images[0], label, full_names.get(key) or _decode_name(images[0]))
            except ValueError as error:
                listed.refused[images[0]] = f"its label cannot be read: {reason_of(error)}"
        elif images:
            listed.refused[key] = f"has {len(images)} images"
        elif others := [name for name in members.values() if is_image(name)]:
            listed.refused[others[0]] = "WebDataset takes all behind the first dot of a name for its suffix"


def _decode_name(member: str) -> str:
    """What an image is called outside of shards: with the dots that our own writer does not write as such."""
    key, dot, suffix = member.rpartition(".")
    name = sample_name(key) + dot + suffix
    # A name that would be hidden then was not made so by us.
    return member if name.rpartition("/")[2].startswith(".") else name


def _read_full_names(shard: Path) -> dict[str, str]:
    """Key of a sample to its name, suffix and all, where a list of our own tells."""
    for folder in _folders_around(shard):
        with suppress(OSError):
            return {sample_key(name): name for name in read_names(folder / KEYS) if is_image(name)}
    return {}


def _read_label(catalogue: Catalogue, members: Mapping[str, str]) -> Label | None:
    name = members.get("cls") or members.get("json")
    if name is None:
        return None
    if catalogue.places[name].size > _MOST_LABEL_BYTES:
        raise ValueError(f"{catalogue.places[name].size} bytes")
    text = catalogue.read(name).decode().strip()
    value: object = text
    if not name.lower().endswith(".cls"):
        content = json.loads(text)
        content = content if isinstance(content, dict) else {}
        value = next((content[word] for word in _LABELS_IN_JSON if word in content), None)
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value):
        return int(value)
    if isinstance(value, str) and is_folder_name(value):
        return value
    raise ValueError(f"{str(value)[:40]!r} cannot be the name of a class")


def _folders_around(shard: Path) -> Sequence[Path]:
    """Where files about the shards of a set may lie: beside a shard, or up to two folders above."""
    return [shard.parent, *shard.parent.parents[:2]]


def _read_class_names(shard: Path) -> list[str]:
    """The names of the classes in the order of the labels; none if one of them cannot name a folder."""
    for folder in _folders_around(shard):
        try:
            with open_regular(folder / CLASS_NAMES) as file:
                names = file.read(_MOST_LABEL_BYTES).decode().splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        return names if all(map(is_folder_name, names)) and len({*names}) == len(names) else []
    return []


def _name_samples(found: Mapping[str, _Sample], names: list[str], listed: Samples) -> None:
    """Give every sample its key, class and label."""
    labels = {name: sample.label for name, sample in found.items() if sample.label is not None}
    if not labels:
        for sample in found.values():
            _put(sample.name, sample, listed)
        return
    classes = {name: _name_class(label, names) for name, label in labels.items()}
    as_they_are = _folders_are(classes)
    common = "" if as_they_are else _common_folder(classes)
    listed.classes = tuple(names) if {*classes.values()} <= {*names} else _order(labels, classes)
    if as_they_are:
        classes = {name: name.partition("/")[0] for name in classes}
        listed.classes = tuple(sort_classes({*classes.values()}))
    index = {name: number for number, name in enumerate(listed.classes)}
    for name, sample in found.items():
        if name not in labels:
            listed.refused[sample.member] = "has no label, though others have"
            continue
        own = sample.name.removeprefix(common)
        key = own if as_they_are else f"{classes[name]}/{own}"
        _put(key, sample, listed)
        listed.labels[key] = index[classes[name]]


def _put(key: str, sample: _Sample, listed: Samples) -> None:
    """Note where the image `key` lies, unless another one is called so."""
    if key in listed.places or key in listed.refused:
        listed.places.pop(key, None)
        listed.refused[key] = "stands in the shards twice"
    else:
        listed.places[key] = (sample.shard, sample.member)


def _name_class(label: Label, names: list[str]) -> str:
    return names[label] if isinstance(label, int) and 0 <= label < len(names) else str(label)


def _order(labels: Mapping[str, Label], classes: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the classes, by their numbers where they all have some."""
    numbers = {classes[name]: label for name, label in labels.items() if isinstance(label, int)}
    every = {*classes.values()}
    if every <= numbers.keys():
        return tuple(sorted(every, key=lambda name: numbers[name]))
    return tuple(sort_classes(every))


def _folders_are(classes: Mapping[str, str]) -> bool:
    """Whether the first folders of the samples part them just as their classes do."""
    pairs = {(name.partition("/")[0] if "/" in name else None, label) for name, label in classes.items()}
    folders, every = {folder for folder, _ in pairs}, {label for _, label in pairs}
    if None in folders or len(pairs) != len(folders) or len(pairs) != len(every):
        return False
    # A single folder of a single class, such as val, tells nothing unless it is called so.
    return len(pairs) > 1 or all(folder == label for folder, label in pairs)


def _common_folder(names: Mapping[str, str]) -> str:
    """The first folder that all samples lie in, with a slash behind it."""
    firsts = {name.partition("/")[0] if "/" in name else "" for name in names}
    (first,) = firsts if len(firsts) == 1 else ("",)
    return f"{first}/" if first else ""
