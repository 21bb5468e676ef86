"""WebDataset: tar shards in which an image and its label are files with the same stem."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from robustgen.files.containers.tar import peek_names
from robustgen.files.json_files import parse_object
from robustgen.files.name_lists import split_names
from robustgen.imaging.decode import EXTENSIONS
from robustgen.sources import SourceKind
from robustgen.sources.base import class_of, sort_classes
from robustgen.sources.files import IndexedSource
from robustgen.sources.index import SourceListing
from robustgen.sources.labels import is_folder_name
from robustgen.sources.places import ARCHIVES, SHARDS, Place, SourceFile
from robustgen.sources.sample_names import CLASS_NAMES, KEYS, sample_key, sample_name
from robustgen.sources.trees import list_archive, read_member
from robustgen.sources.walk import check_name, is_image

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
        if isinstance(label, str) and re.fullmatch(r"\d{1,9}", label):
            return int(label)
        if label is None or isinstance(label, int) or (isinstance(label, str) and is_folder_name(label)):
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
    # If a name is not a valid folder name, the numbers are used.
    usable = all(map(is_folder_name, samples.classes)) and len({*samples.classes}) == len(samples.classes)
    names = samples.classes if usable else ()
    classes = {
        name: names[label] if isinstance(label, int) and 0 <= label < len(names) else str(label)
        for name, (_, label, _) in found.items()
        if label is not None
    }
    as_they_are = not classes or _folders_are(classes)
    folders = {class_of(name) for name in classes}
    common = "" if as_they_are or len(folders) > 1 else f"{folders.pop()}/"
    for name, sample in found.items():
        if classes and name not in classes:
            listing.refused[sample.name] = "has no label, but others have"
            continue
        own = sample.name.removeprefix(common)
        key, unprintable = check_name(own if as_they_are else f"{classes[name]}/{own}", None)
        listing.add(key, sample.place, unprintable)
    every = {class_of(key) for key in listing.places}
    listing.classes = names if every <= {*names} and not as_they_are else sort_classes(every)
    return listing


def _folders_are(classes: Mapping[str, str]) -> bool:
    """Return True if the first folders of the samples correspond one-to-one to their classes."""
    pairs = {(class_of(name), label) for name, label in classes.items()}
    folders, every = ({*each} for each in zip(*pairs, strict=True))
    # A single folder, such as val, is a class folder only if it has the name of the class.
    same = len(pairs) > 1 or folders == every
    return "" not in folders and len(folders) == len(every) == len(pairs) and same
