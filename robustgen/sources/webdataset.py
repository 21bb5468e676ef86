"""WebDataset: tar shards in which an image and its label are files with the same stem."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from robustgen.benchmark import Kind
from robustgen.containers.tar import peek_names
from robustgen.errors import SourceError
from robustgen.imaging.decode import EXTENSIONS, reason_of
from robustgen.json_files import parse_json
from robustgen.name_lists import split_names
from robustgen.sources.base import class_of, sort_classes
from robustgen.sources.files import IndexedSource
from robustgen.sources.index import Listing
from robustgen.sources.labels import is_folder_name
from robustgen.sources.places import ARCHIVES, Place, SourceFile
from robustgen.sources.sample_names import CLASS_NAMES, KEYS, sample_key, sample_name
from robustgen.sources.trees import list_archive, read_member
from robustgen.sources.walk import check_name, is_image

_LABELS_IN_JSON: Final = ("cls", "label", "class", "class_id")
_MOST_LABEL_BYTES: Final = 1 << 20
_MOST_PEEKED: Final = 32

Label = int | str


class _Sample(NamedTuple):
    """An image in a shard: its place, member name, label (or None), and its name outside shards."""

    place: Sequence[Any]
    member: str
    label: Label | None
    name: str


class WebDataset(IndexedSource):
    """Images of a WebDataset.

    The image of a sample has one of the usual suffixes; its label is the number or name in ``.cls`` or
    ``.json``, or the folder in its key. ``classnames.txt``, next to the shards or in a folder above, maps
    numbers to names. If folders and labels agree, keys are the member names; otherwise ``<class>/<name>``.
    """

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Return the suffixes of the sample files."""
        return (".mp4",) if self.kind == "p" else EXTENSIONS

    def find_files(self) -> list[SourceFile]:
        """Look up the shards."""
        return Place(self.location).expand(_is_shard, self.split)

    def find_companions(self) -> list[SourceFile]:
        """Look up the files that name classes and samples, next to a shard or up to two folders above."""
        folder, found = self.files[0].store, []
        for _ in range(3):
            found += [SourceFile.look(folder, name) for name in (CLASS_NAMES, KEYS)]
            above = Place(folder.location)
            if not above.name:
                break
            folder = above.store
        return found

    def build(self) -> Listing:
        """List the samples of all shards; unpack compressed shards first."""
        full_names = {sample_key(name): name for name in self._read_names(KEYS)}
        refused: dict[str, str] = {}
        samples = Listing({}, refused, (), {})
        lost = 0
        for number, file in enumerate(self.files):
            try:
                shard = list_archive(self, number)
            except ConnectionError:
                raise
            except (OSError, EOFError, ValueError) as error:
                refused[file.name] = reason_of(error).removeprefix(f"{file.store.location}/{file.name}: ")
                lost += 1
                continue
            refused |= shard.refused
            for name, sample in self._group(shard, full_names, refused):
                samples.add(name, sample)
        if lost == len(self.files):
            raise SourceError(f"{self.location}: no shard can be read; {next(iter(refused.items()), '')}")
        listing = Listing({}, refused, self._read_names(CLASS_NAMES), {})
        if self.kind:
            return _list_as_stored(samples.places, listing, self.kind)
        return _name_samples(samples.places, listing)

    def _read_names(self, name: str) -> list[str]:
        """Read the nearest list called `name`; return [] if there is none."""
        for each in self.find_companions():
            if each.name == name and each.size >= 0:
                return [line.removesuffix("\r") for line in split_names(each.store.read(name))]
        return []

    def _group(
        self, shard: Listing, full_names: Mapping[str, str], refused: dict[str, str]
    ) -> Iterator[tuple[str, _Sample]]:
        """Yield the samples of one shard, each with its key."""
        grouped: dict[str, dict[str, str]] = {}
        for name in shard.places:
            folder, slash, file = name.rpartition("/")
            stem, _, suffix = file.partition(".")
            grouped.setdefault(folder + slash + stem, {})[f".{suffix.lower()}"] = name
        for key, members in grouped.items():
            images = [name for suffix, name in members.items() if suffix in self.suffixes]
            if len(images) == 1:
                try:
                    label = self._read_label(shard, members)
                    own = full_names.get(key) or _decode_name(images[0])
                    yield key, _Sample(shard.places[images[0]], images[0], label, own)
                except ValueError as error:
                    refused[images[0]] = f"its label cannot be read: {reason_of(error)}"
            elif images:
                refused[key] = f"has {len(images)} images"
            elif others := [name for name in members.values() if is_image(name)]:
                refused[others[0]] = "WebDataset treats everything after the first dot as the suffix"

    def _read_label(self, shard: Listing, members: Mapping[str, str]) -> Label | None:
        name = members.get(".cls") or members.get(".json")
        if name is None:
            return None
        size = shard.places[name][2]
        if size > _MOST_LABEL_BYTES:
            raise ValueError(f"{size} bytes")
        text = read_member(self, shard.places[name]).decode().strip()
        value: object = text
        if not name.lower().endswith(".cls"):
            content = parse_json(text)
            content = content if isinstance(content, dict) else {}
            value = next((content[word] for word in _LABELS_IN_JSON if word in content), None)
        if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value):
            value = int(value)
        if value is None or isinstance(value, int) or (isinstance(value, str) and is_folder_name(value)):
            return value
        raise ValueError(f"{str(value)[:40]!r} cannot be the name of a class")

    def read_bytes(self, key: str) -> bytes:
        """Read the member of one image."""
        return read_member(self, self._place(key))

    def size(self, key: str) -> int:
        """Return the size of one image's file in bytes; raise an ImageError if `key` is unknown."""
        return int(self._place(key)[2])


def is_webdataset(place: Place) -> bool:
    """Return True for a pattern of shards, a folder of tars, or a tar with images and labels."""
    if place.is_folder:
        children = place.children
        is_flat = not any(children.values())
        return is_flat and any(map(_is_shard, children)) and not any(map(is_image, children))
    if place.is_pattern:
        return place.has_suffix(*ARCHIVES)
    if not place.has_suffix(".tar"):
        return False
    with place.store.open(place.name) as file:
        names = peek_names(file, _MOST_PEEKED)
    images = {name.rpartition(".")[0] for name in names if is_image(name)}
    return any(name.rpartition(".")[0] in images for name in names if name.endswith((".cls", ".json")))


def _is_shard(name: str) -> bool:
    return name.lower().endswith(ARCHIVES) and not name.lower().endswith(".zip")


# --- listing -------------------------------------------------------------------------------------


def _decode_name(member: str) -> str:
    """Return the name of an image outside shards, with the dots that robustgen's writer escapes."""
    key, dot, suffix = member.rpartition(".")
    name = sample_name(key) + dot + suffix
    # robustgen never writes a name that decodes to a hidden one.
    return member if name.rpartition("/")[2].startswith(".") else name


def _list_as_stored(found: Mapping[str, _Sample], listing: Listing, kind: Kind) -> Listing:
    """List every sample of a set under the name and label it was written with."""
    for sample in found.values():
        key = sample.name if kind == "c" else sample.name.rpartition(".")[0]
        listing.places[key] = sample.place
        if isinstance(sample.label, str):
            listing.refused[key] = f"its label {sample.label!r} is not a number"
        elif sample.label is not None:
            listing.labels[key] = sample.label
    return listing


def _name_samples(found: Mapping[str, _Sample], listing: Listing) -> Listing:
    """Assign every sample its key, class and label."""
    # If a name is not a valid folder name, the numbers are used.
    usable = all(map(is_folder_name, listing.classes)) and len({*listing.classes}) == len(listing.classes)
    names = listing.classes if usable else ()
    labels = {name: sample.label for name, sample in found.items() if sample.label is not None}
    classes = {
        name: names[label] if isinstance(label, int) and 0 <= label < len(names) else str(label)
        for name, label in labels.items()
    }
    as_they_are = not labels or _folders_are(classes)
    folders = {name.partition("/")[0] + "/" if "/" in name else "" for name in classes}
    common = folders.pop() if len(folders) == 1 and not as_they_are else ""
    for name, sample in found.items():
        if labels and name not in labels:
            listing.refused[sample.member] = "has no label, but others have"
            continue
        own = sample.name.removeprefix(common)
        key, unprintable = check_name(own if as_they_are else f"{classes[name]}/{own}", None)
        listing.add(key, sample.place, unprintable)
    every = {class_of(key) for key in listing.places} if as_they_are else {*classes.values()}
    ordered: Sequence[str] = sort_classes(every)
    if not as_they_are:
        numbers = {classes[name]: label for name, label in labels.items() if isinstance(label, int)}
        if every <= {*names}:
            ordered = names
        elif every <= numbers.keys():
            ordered = sorted(every, key=numbers.__getitem__)
    return listing.number(ordered, {key: class_of(key) for key in listing.places})


def _folders_are(classes: Mapping[str, str]) -> bool:
    """Return True if the first folders of the samples correspond one-to-one to their classes."""
    pairs = {(name.partition("/")[0] if "/" in name else None, label) for name, label in classes.items()}
    folders, every = {folder for folder, _ in pairs}, {label for _, label in pairs}
    if None in folders or len(pairs) != len(folders) or len(pairs) != len(every):
        return False
    # A single folder, such as val, is a class folder only if it has the name of the class.
    return len(pairs) > 1 or all(folder == label for folder, label in pairs)
