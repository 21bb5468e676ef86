"""WebDataset: tar shards in which an image and its label are files with the same stem."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from robustgen.files.containers.archives import peek_names
from robustgen.files.text_files import parse_object, split_names
from robustgen.pixels.imaging.decode import EXTENSIONS
from robustgen.sets.sources import SourceKind
from robustgen.sets.sources.base import class_of
from robustgen.sets.sources.classes import is_folder_name, list_numbers, name_folders
from robustgen.sets.sources.files import IndexedSource
from robustgen.sets.sources.index import SourceListing
from robustgen.sets.sources.places import ARCHIVES, SHARDS, Place, SourceFile
from robustgen.sets.sources.sample_names import CLASS_NAMES, KEYS, sample_key, sample_name
from robustgen.sets.sources.trees import list_archive, read_member
from robustgen.sets.sources.walk import check_name, is_image

_LABELS_IN_JSON: Final = ("cls", "label", "class", "class_id")
_MOST_LABEL_BYTES: Final = 1 << 20
_MOST_PEEKED: Final = 32

Label = int | str


class _Sample(NamedTuple):
    """An image in a shard: its place, its label (or None), and its name outside shards."""

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
        """List the samples of all shards; unpack compressed shards first."""
        full_names = {sample_key(name): name for name in self._read_names(KEYS)}
        samples = SourceListing(classes=self._read_names(CLASS_NAMES))
        for number, file in enumerate(self.files):
            with samples.refuse_damaged(file.name):
                shard = list_archive(self, number)
                samples.refused |= shard.refused
                self._group(shard, full_names, samples)
        if not self.kind:
            return _name_samples(samples)
        listing = SourceListing({}, samples.refused, samples.classes)
        for place, label, name in samples.places.values():
            self.add_as_stored(listing, name, label, place)
        return listing

    def _read_names(self, name: str) -> list[str]:
        """Read the nearest list called `name`; return [] if there is none."""
        for each in self.find_companions():
            if each.name == name and each.size >= 0:
                return [line.removesuffix("\r") for line in split_names(each.store.read(name))]
        return []

    def _group(self, shard: SourceListing, full_names: Mapping[str, str], samples: SourceListing) -> None:
        """Add the samples of one shard."""
        wanted = (".mp4",) if self.kind == "p" else EXTENSIONS
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
                    samples.add(key, _Sample(shard.places[images[0]], label, own))
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
        label: Any = read_member(self, shard.places[name]).decode().strip()
        if ".cls" not in members:
            content = parse_object(label)
            label = next((content[word] for word in _LABELS_IN_JSON if word in content), None)
        if isinstance(label, str) and re.fullmatch(r"-?\d{1,9}", label):
            label = int(label)
        if label is None or isinstance(label, int):
            # The library `datasets` marks hidden labels with -1.
            return None if label is None or label < 0 else label
        if isinstance(label, str) and is_folder_name(label):
            return label
        raise ValueError(f"{str(label)[:40]!r} cannot be the name of a class")

    def read_bytes(self, key: str) -> bytes:
        """Read the member of one image."""
        return read_member(self, self._place(key))


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


KIND: Final = SourceKind(is_webdataset, WebDataset, has_split_folders=True)


# --- listing -------------------------------------------------------------------------------------


def _decode_name(member: str) -> str:
    """Return the name of an image outside shards, with the dots that robustgen's writer escapes."""
    key, dot, suffix = member.rpartition(".")
    name = sample_name(key) + dot + suffix
    # robustgen never writes a name that decodes to a hidden one.
    return member if name.rpartition("/")[2].startswith(".") else name


def _name_samples(samples: SourceListing) -> SourceListing:
    """Assign every sample its key and class."""
    found, listing = samples.places, SourceListing({}, samples.refused)
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
            key, unprintable = check_name(own if as_they_are else f"{classes[name]}/{own}", None)
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
