"""Images with one file each, in a folder or an archive."""

import importlib.util
import posixpath
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Final

from robustgen.errors import ImageError, SourceError
from robustgen.files.text_files import MOST_BYTES, parse_object
from robustgen.pixels.imaging.decode import Location, name_image_in_errors
from robustgen.sets.sources import SourceKind
from robustgen.sets.sources.base import DEFAULTS, SourceOptions, class_of
from robustgen.sets.sources.files import EncodedSource, SourceListing
from robustgen.sets.sources.labels import Label, check_label_size, parse_label, read_labels
from robustgen.sets.sources.places import PARQUET, Place, find_place
from robustgen.sets.sources.trees import UNREAD, FolderTree, describe_unread, is_image, open_tree

_SPLITS: Final = ("val", "valid", "validation", "test", "testing", "eval", "dev", "train", "training")
_RECORD: Final = "dataset.json"

Named = tuple[str, str, str | None]
"""Key of an image, name of its file below the prefix, and the reason for refusing it, or None."""


class FileSource(EncodedSource):
    """A source with one file for each image, in a folder or an archive.

    Parameters
    ----------
    root : path or URL
        A folder, or one of the archives in `places.ARCHIVES`.
    options : SourceOptions

    Raises
    ------
    SourceError
        `root` is neither a folder nor an archive.
    """

    has_class_folders: ClassVar[bool] = True

    def __init__(self, root: Location | Place, options: SourceOptions = DEFAULTS) -> None:
        self._tree, self.libjpeg, self.levels = open_tree(root, options), options.libjpeg, options.levels
        super().__init__(self._tree.location)
        folder = self._find_folder()
        self._prefix = f"{folder}/" if folder else ""

    def _find_folder(self) -> str:
        """Return the folder of the images; keys in an archive omit the folders that all images share."""
        if isinstance(self._tree, FolderTree):
            return ""
        folders = {posixpath.dirname(name) for name, _ in self._tree.find() if is_image(name)}
        folder = posixpath.commonpath(folders or [""])
        # A single class keeps its folder in the keys.
        return posixpath.dirname(folder) if folder in folders and self.has_class_folders else folder

    @abstractmethod
    def _scan(self) -> Iterable[Named]:
        """Find all files that look like images, in any order."""

    @cached_property
    def listing(self) -> SourceListing:
        """Return the images that `_scan` finds."""
        listing, unread = SourceListing(), list[str]()
        for key, name, reason in self._scan():
            if reason == UNREAD:
                unread.append(key)
            else:
                listing.add(key, self._prefix + name, reason)
        listing.remarks = [describe_unread(sorted(unread))] if unread else []
        recorded, are_numbers = self._read_record({class_of(key) for key in listing.places})
        listing.order_classes(recorded, are_numbers=are_numbers)
        return listing

    def _read_record(self, found: set[str]) -> tuple[Sequence[str], bool]:
        """Return the recorded classes, if any, and whether the classes are numbers; `found` have images."""
        return (), False

    def read_bytes(self, key: str) -> bytes:
        """Read the file of one image."""
        return self._tree.read(self._place(key))

    def size(self, key: str) -> int:
        """Return the size of one image's file in bytes; raise an ImageError if it does not exist."""
        return self.stat(key)[0]

    def stat(self, key: str) -> tuple[int, str]:
        """Return size and stamp of one image's file; raise an ImageError if it does not exist."""
        with name_image_in_errors(key):
            return self._tree.stat(self._place(key))

    def make_ready(self) -> None:
        """Cache the listing of an archive for worker processes."""
        self._tree.make_ready()


class ImageFolder(FileSource):
    """A folder or an archive of images; the class of an image is the first folder below the root, or "".

    Hidden files and other extensions are skipped. In an archive, the root is the parent of the class
    folders: keys omit the folders that all images share, and the split. Parameters are those of `FileSource`.
    """

    def __init__(self, root: Location | Place, options: SourceOptions = DEFAULTS) -> None:
        self._split = options.split
        super().__init__(root, options)

    def _find_folder(self) -> str:
        folder = super()._find_folder()
        if self._split is None:
            return folder
        folder = f"{folder}/{self._split}" if folder else self._split
        if next(iter(self._tree.find(f"{folder}/")), None) is None:
            raise SourceError(f"{self.location}: contains no folder of the split {self._split!r}")
        return folder

    def find_splits(self) -> tuple[tuple[str, ...], str]:
        """Return the splits in the root if they repeat class folders, and the first such folder."""
        inner = {split: set[str]() for split in _SPLITS}
        for key in self.keys():
            split, _, rest = key.partition("/")
            if split in inner and "/" in rest:
                inner[split].add(class_of(rest))
        splits = [split for split, names in inner.items() if names]
        repeated = sorted(
            name
            for name in set[str]().union(*inner.values())
            if sum(name in each for each in inner.values()) > 1
        )
        return (tuple(splits), repeated[0]) if repeated else ((), "")

    def _scan(self) -> Iterator[Named]:
        for name, reason in self._tree.find(self._prefix):
            yield name, name, reason

    def _read_record(self, found: set[str]) -> tuple[Sequence[str], bool]:
        """Return the classes in the `dataset.json` of a set of which this folder is a variant: ``fog/3``."""
        place, variant = Place(self.location), ""
        for _ in range(2 if isinstance(self._tree, FolderTree) else 0):
            variant = f"{place.name}/{variant}".rstrip("/")
            place = Place(place.store.location)
            # The file may be that of another program.
            with suppress(OSError, ValueError):
                content = parse_object(place.folder.read(_RECORD, size=MOST_BYTES + 1))
                names, variants = content.get("classes"), content.get("variants")
                if isinstance(names, list) and isinstance(variants, list) and variant in variants:
                    recorded = [str(name) for name in names]
                    return recorded if found <= {*recorded} else (), content.get("class_count") is None
        return (), False

    def _place(self, key: str) -> str:
        # Worker processes need no listing of a large folder.
        return self._prefix + key


class OneImage(FileSource):
    """A single image, whose key is `key`, or the name of its file; other parameters as for `FileSource`."""

    def __init__(self, image: Place, options: SourceOptions = DEFAULTS, key: str | None = None) -> None:
        super().__init__(Place(image.store.location), options)
        self.location, self._name, self._key = image.location, image.name, key or image.name

    def _scan(self) -> Iterator[Named]:
        yield self._key, self._name, None


class ShardFolders(FileSource):
    """Images that img2dataset wrote as files, in folders of shards, which are no classes.

    Keys are those of the same images in shards: the name of the file, below its class if the ``.json`` files
    have labels. Parameters are those of `FileSource`.
    """

    @cached_property
    def _found(self) -> dict[str, str | None]:
        """Return the names of all files, and why some are refused."""
        return dict(self._tree.find())

    @cached_property
    def _labels(self) -> tuple[dict[str, Label], dict[str, str]]:
        """Return the label of each image, and why some cannot be read; nothing if the first one has none."""
        labels, listing = dict[str, Label](), SourceListing()
        for name in sorted(filter(is_image, self._found)):
            label = None
            with listing.refuse_damaged(name, "its label cannot be read: "):
                label = self._read_label(f"{name.rpartition('.')[0]}.json")
            if label is not None:
                labels[name] = label
            elif not (labels or listing.refused):
                break
        return labels, listing.refused

    def _read_label(self, name: str) -> Label | None:
        if not self._tree.has(name):
            return None
        check_label_size(self._tree.size(name))
        return parse_label(self._tree.read(name), in_json=True)

    def _scan(self) -> Iterator[Named]:
        labels, wrong = self._labels
        for name, reason in self._found.items():
            own = name.rpartition("/")[2]
            if name in labels:
                yield f"{labels[name]}/{own}", name, reason
            elif labels and not reason:
                yield own, name, wrong.get(name, "has no label, but others have")
            else:
                yield own, name, reason

    def _read_record(self, found: set[str]) -> tuple[Sequence[str], bool]:
        return (), all(isinstance(label, int) for label in self._labels[0].values())

    @cached_property
    def _places(self) -> dict[str, str]:
        return {posixpath.basename(name): name for name in self._found}

    def _place(self, key: str) -> str:
        # Worker processes need no labels.
        try:
            return self._places[posixpath.basename(key)]
        except KeyError:
            raise ImageError(f"no such image in {self.location}", key) from None


class LabelledFolder(FileSource):
    """A flat folder or archive of images, and a file with their labels.

    The option `labels` is a file with lines ``name class`` (separated by tab, comma or space; the name with
    or without its extension), Kaggle's ``LOC_val_solution.csv``, one class per line for the images in sorted
    order, or ImageNet's devkit: its archive, its folder, or its ``ILSVRC2012_validation_ground_truth.txt``.
    Parameters are those of `FileSource`.

    Raises
    ------
    SourceError
        The images or the labels are missing. From `keys` and `refused`: a line of labels is malformed.
    """

    has_class_folders = False

    def __init__(self, root: Location | Place, options: SourceOptions = DEFAULTS) -> None:
        super().__init__(root, options)
        self._labels, self._are_classes = find_place(options.labels or ""), options.labels_are_classes

    def _read_record(self, found: set[str]) -> tuple[Sequence[str], bool]:
        return (), not self._are_classes

    def _scan(self) -> Iterator[Named]:
        found = dict(self._tree.find(self._prefix, deep=False))
        labels = read_labels(self._labels, sorted(filter(is_image, found)), self._are_classes)
        return put_into_classes(found, labels, self._labels.location)

    def _place(self, key: str) -> str:
        # Worker processes need no labels.
        return self._prefix + posixpath.basename(key)


def put_into_classes(
    found: Mapping[str, str | None], labels: Mapping[str, str], where: object
) -> Iterator[Named]:
    """Yield the key ``class/name`` of each image; refuse images without a label, naming `where`."""
    for name, reason in found.items():
        if label := labels.get(name) or labels.get(name.rpartition(".")[0]):
            yield f"{label}/{name}", name, reason
        else:
            yield name, name, reason or f"no label in {where}"


def is_img2dataset(place: Place) -> bool:
    """Return True for a folder with ``00000`` and its metadata, ``00000.parquet`` or ``00000_stats.json``."""
    found = place.children if place.is_folder else {}
    folders = (name for name, is_folder in found.items() if is_folder)
    return any(f"{name}{PARQUET}" in found or f"{name}_stats.json" in found for name in folders)


def _open_images(place: Place, options: SourceOptions) -> FileSource:
    return OneImage(place, options) if place.is_image else ImageFolder(place, options)


LABELLED: Final = SourceKind(lambda _: False, LabelledFolder)
SHARD_FOLDERS: Final = SourceKind(is_img2dataset, ShardFolders)
FOLDER: Final = SourceKind(lambda _: True, _open_images, has_split_folders=True)


class Photographs(FileSource):
    """The photographs in scikit-image's wheel, for a demonstration without downloads.

    The keys of JPEG files end in ``.JPEG``, like the outputs of the PNG files.

    Raises
    ------
    SourceError
        scikit-image or a photograph is missing; the message says how to install them.
    """

    NAMES = (
        "astronaut.png",
        "chelsea.png",
        "coffee.png",
        "hubble_deep_field.jpg",
        "ihc.png",
        "motorcycle_left.png",
        "retina.jpg",
        "rocket.jpg",
    )

    def __init__(self, options: SourceOptions = DEFAULTS) -> None:
        # Look up the package without importing it, which takes a second.
        spec = importlib.util.find_spec("skimage")
        folder = Path(spec.origin).parent / "data" if spec and spec.origin else Path()
        if not all((folder / name).is_file() for name in self.NAMES):
            raise SourceError(
                f"scikit-image with its photographs ({', '.join(self.NAMES)}) is missing: "
                "pip install 'robustgen[demo]'"
            )
        super().__init__(folder, options)

    def _scan(self) -> Iterator[Named]:
        for name in self.NAMES:
            yield f"{Path(name).stem}/{name.replace('.jpg', '.JPEG')}", name, None
