"""Images with one file each, in a folder or an archive."""

import importlib.util
import posixpath
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Final

from robustgen.display.text import format_count
from robustgen.errors import SourceError
from robustgen.files.lazy import cached_property
from robustgen.files.text_files import MOST_BYTES, parse_object
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import Levels, Location, name_image_in_errors, read_dimensions
from robustgen.pixels.imaging.jpeg import Libjpeg
from robustgen.sets.sources import SourceKind
from robustgen.sets.sources.base import (
    DEFAULTS,
    Loaded,
    Source,
    SourceOptions,
    class_of,
    name_source_in_errors,
)
from robustgen.sets.sources.classes import list_hub_names, original_key
from robustgen.sets.sources.files import EncodedSource, ListedItems, SourceListing
from robustgen.sets.sources.labels import (
    METADATA,
    ImageNames,
    Labels,
    parse_metadata,
    read_labels,
)
from robustgen.sets.sources.places import PARQUET, Place, find_place
from robustgen.sets.sources.rows import ask
from robustgen.sets.sources.trees import (
    UNREAD,
    FileTree,
    Finder,
    FolderTree,
    describe_unread,
    find_by_name,
    is_image,
    open_tree,
)

SPLITS: Final = ("val", "valid", "validation", "test", "testing", "eval", "dev", "train", "training")
"""Usual names of the folders of splits."""
_RECORD: Final = "dataset.json"

Named = tuple[str, str, str | None]
"""Key of an image, name of its file below the prefix, and the reason for refusing it, or None."""


class TreeItems(ListedItems[Loaded]):
    """Items in the files of a folder or an archive.

    Parameters
    ----------
    root : path, URL or FileTree
        A folder, or one of the archives in `places.ARCHIVES`.
    options : SourceOptions

    Raises
    ------
    SourceError
        `root` is neither a folder nor an archive.

    Attributes
    ----------
    keeps_folders : bool
        Whether keys in a folder are whole paths; else they omit the folders that all items share.
    left_out : frozenset of str
        Keys of the items that `leave_out` left out.
    finder : callable
        Recognises the files of its items by their names.
    """

    has_class_folders: bool = True
    keeps_folders: bool = True
    left_out: frozenset[str] = frozenset()
    finder: Finder = staticmethod(find_by_name)

    def __init__(self, root: Location | Place | FileTree, options: SourceOptions = DEFAULTS) -> None:
        self._tree = open_tree(root, options, self.finder)
        self.libjpeg: Libjpeg = options.libjpeg
        self.levels: Levels | None = options.levels
        super().__init__(self._tree.location)
        folder = self._find_folder()
        self._prefix = f"{folder}/" if folder else ""

    def _find_folder(self) -> str:
        """Return the folder of the items; keys in an archive omit the folders that all items share."""
        if self.keeps_folders and isinstance(self._tree, FolderTree):
            return ""
        folders, shared = Counter[str](), ""
        for folder in self._list_folders():
            folders[folder] += 1
            shared = posixpath.commonpath([folder, shared]) if len(folders) > 1 else folder
            if not shared:
                return ""
        # A single class keeps its folder in the keys; a few images beside class folders are none.
        is_class = self.has_class_folders and 2 * folders[shared] >= folders.total()
        return posixpath.dirname(shared) if is_class else shared

    def _list_folders(self) -> Iterator[str]:
        """Yield the folder of each item."""
        return (posixpath.dirname(name) for name, _ in self._tree.find() if is_image(name))

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
        listing.remarks = [*describe_unread(unread), *self._describe_level(listing.places)]
        self._review(listing)
        recorded, are_numbers = self._read_record({class_of(key) for key in listing.places})
        listing.order_classes(recorded, are_numbers=are_numbers)
        return listing

    def _describe_level(self, keys: Collection[str]) -> Iterator[str]:
        """Yield a line if another level of folders may be that of the classes."""
        if self.keeps_folders or not self.has_class_folders:
            return
        inner = sorted("/".join(key.split("/", 2)[:2]) for key in keys if key.count("/") > 1)
        if 2 * len(inner) > len(keys) and len({folder.partition("/")[2] for folder in inner}) > 1:
            first, is_folder = class_of(inner[0]), isinstance(self._tree, FolderTree)
            way = f"--source {self.location}/{self._prefix}{first}" if is_folder else f"--set split={first}"
            yield (
                f"classes are the folders such as {first!r}, not those in them, such as {inner[0]!r}: {way} "
                "takes the latter, and --labels FILE the classes of a table"
            )
        elif self._prefix and isinstance(self._tree, FolderTree):
            first = "--set require_classes=false takes the first ones"
            yield f"classes are the folders in {self._prefix!r}; {first}"

    def _review(self, listing: SourceListing) -> None:
        """Leave images out of the listing that has all of them, or add remarks."""

    def _read_record(self, found: set[str]) -> tuple[Sequence[str], bool]:
        """Return the recorded classes, if any, and whether the classes are numbers; `found` have images."""
        return (), False

    def list_files(self, key: str) -> tuple[str, ...]:
        """Return the names of the files of one item, in order."""
        return (key,)

    def read_file(self, name: str) -> bytes:
        """Read one of the files in `list_files`; raise any exception if it cannot be read."""
        return self._tree.read(name)

    def size(self, key: str) -> int:
        """Return the size of one item's files in bytes; raise an ImageError if there are none."""
        return self.stat(key)[0]

    def leave_out(self, keys: Collection[str]) -> None:
        """Count the files of some items among the other files of the source."""
        listing, self.left_out = self.listing, frozenset(keys)
        places = {key: place for key, place in listing.places.items() if key not in keys}
        emptied = {*map(class_of, keys)}.difference(map(class_of, places))
        classes = [name for name in listing.classes if name not in emptied]
        self.listing = replace(listing, places=places, classes=classes)
        vars(self).pop("_keys", None)

    def make_ready(self) -> None:
        """Cache the listing of an archive for worker processes."""
        self._tree.make_ready()


class FileSource(TreeItems[Rgb], EncodedSource):
    """A source with one file for each image, in a folder or an archive.

    Examples
    --------
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from robustgen.plugins import Choices, FileSource, open_chosen_source
    >>> Path("photos/cat").mkdir(parents=True)
    >>> Image.new("RGB", (64, 48)).save("photos/cat/a.png")
    >>> source = open_chosen_source(Choices(source="photos"))
    >>> isinstance(source, FileSource), source.dimensions("cat/a.png")
    (True, (64, 48))
    """

    @cached_property
    def _is_of_hub(self) -> bool:
        """Return whether the first image has a name of the Hub, which adds its class."""
        first = next((name for name, _ in self._tree.find(self._prefix) if is_image(name)), "")
        return original_key(first) != first

    def _find_file(self, key: str, own: str) -> str:
        """Return the file of an image: its `own` name below the prefix, or that of the Hub."""
        # Worker processes need no listing of a large folder.
        names = list_hub_names(key)
        if not names or not self._is_of_hub or self._tree.has(self._prefix + own):
            return self._prefix + own
        return next(filter(self._tree.has, map(self._prefix.__add__, names)), self._prefix + own)

    def read_bytes(self, key: str) -> bytes:
        """Read the file of one image."""
        return self._tree.read(self._place(key))

    def dimensions(self, key: str) -> tuple[int, int]:
        """Return width and height of one image from its header; raise an ImageError if unreadable."""
        with name_image_in_errors(key), self._tree.open(self._place(key)) as file:
            return read_dimensions(file, key)

    def read_file(self, name: str) -> bytes:
        """Read the file of one image, which has the name of its key."""
        return self.read_bytes(name)

    def stat(self, key: str) -> tuple[int, str]:
        """Return size and stamp of one image's file; raise an ImageError if it does not exist."""
        with name_image_in_errors(key):
            return self._tree.stat(self._place(key))


class ImageFolder(FileSource):
    """A folder or an archive of images; the class of an image is the first folder below the root, or "".

    Hidden files and other extensions are skipped, and images beside class folders are left out. In an
    archive, the root is the parent of the class folders: keys omit the folders that all images share, and the
    split. Parameters are those of `FileSource`.
    """

    def __init__(self, root: Location | Place, options: SourceOptions = DEFAULTS) -> None:
        # A list of images may say the split instead of a folder.
        self.lacks_split = options.split_is_listed and options.split is not None
        self.keeps_folders = not options.classes
        self._split, self._has_classes = None if self.lacks_split else options.split, options.classes
        self.strays: list[str] = []
        super().__init__(root, options)

    def _find_folder(self) -> str:
        shared = PurePosixPath(super()._find_folder())
        if self._split is None:
            return f"{shared}".removeprefix(".")
        # All images may be in the folder of the split.
        for folder in (f"{each / self._split}" for each in (shared, *shared.parents)):
            if next(iter(self._tree.find(f"{folder}/")), None):
                return folder
        raise SourceError(f"{self.location}: contains no folder of the split {self._split!r}")

    @property
    def tree(self) -> FileTree:
        """Return all files."""
        return self._tree

    def find_files(self, names: Sequence[str]) -> list[str]:
        """Return those of the files called `names` that lie in the root, in the tree."""
        shared = PurePosixPath(self._prefix)
        if not isinstance(self._tree, FolderTree) and self._split is None:
            # The root may be any of the folders that all images share.
            shared = PurePosixPath(posixpath.commonpath([*self._list_folders()] or [""]))
        above = shared.parents if self._split is None else ()
        folders = [f"{each}/".removeprefix("./") for each in (shared, *above)]
        return [folder + name for folder in folders for name in names if self._tree.has(folder + name)]

    def find_splits(self) -> tuple[tuple[str, ...], str]:
        """Return the splits in the root if they repeat class folders, and the first such folder."""
        inner = {split: set[str]() for split in SPLITS}
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

    def _list_folders(self) -> Iterator[str]:
        names = (name.rpartition("/") for name, _ in self._tree.find() if is_image(name))
        for folder, slash, own in names:
            yield posixpath.dirname(folder + slash + (original_key(own) if self._has_classes else own))

    def _scan(self) -> Iterator[Named]:
        for name, reason in self._tree.find(self._prefix):
            yield original_key(name) if self._has_classes and self._is_of_hub else name, name, reason

    def _review(self, listing: SourceListing) -> None:
        """Leave out the images beside class folders, which have no class."""
        in_root = sorted(
            key for key in (*listing.places, *listing.refused) if "/" not in key and is_image(key)
        )
        # If most images lie in the root, the folders are no classes.
        if not (self._has_classes and 0 < len(in_root) < sum("/" in key for key in listing.places)):
            return
        self.strays = in_root
        for key in in_root:
            listing.places.pop(key, None)
            listing.refused.pop(key, None)
        named = f"{format_count(len(in_root), 'image')}, such as {in_root[0]!r}"
        ways = "put them into a class folder, or set require_classes=false"
        listing.remarks = [*listing.remarks, f"left out, beside the class folders: {named}; {ways}"]

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
        return self._find_file(key, key) if self._has_classes else self._prefix + key


class OneImage(FileSource):
    """A single image, whose key is `key`, or the name of its file; other parameters as for `FileSource`."""

    def __init__(self, image: Place, options: SourceOptions = DEFAULTS, key: str | None = None) -> None:
        super().__init__(Place(image.store.location), options)
        self.location, self._name, self._key = image.location, image.name, key or image.name

    def _scan(self) -> Iterator[Named]:
        yield self._key, self._name, None


class LabelledFolder(FileSource):
    """A folder or an archive of images, and a file with their labels; a key is ``<class>/<relative path>``.

    The option `labels` is a file that `labels.parse_labels` reads, or ImageNet's devkit: its archive, its
    folder, or its ``ILSVRC2012_validation_ground_truth.txt``. Parameters are those of `FileSource`.

    Raises
    ------
    SourceError
        The images or the labels are missing. From `keys` and `refused`: a line of labels is malformed.
    """

    has_class_folders = False

    def __init__(self, root: Location | Place | FileTree, options: SourceOptions = DEFAULTS) -> None:
        self.keeps_folders = not options.classes
        super().__init__(root, options)
        self._file, self._asked = find_place(options.labels or ""), ask(options)
        self._are_classes = options.labels_are_classes

    @cached_property
    def _found(self) -> dict[str, str | None]:
        """Return the names of all images, and why some are refused."""
        return dict(self._tree.find(self._prefix))

    @cached_property
    def _labels(self) -> Labels:
        images, folder = sorted(filter(is_image, self._found)), f"{self.location}/{self._prefix}".rstrip("/")
        if not images:
            return Labels({}, are_numbers=False)
        return read_labels(self._file, images, folder, self._asked, self._are_classes)

    def _read_record(self, found: set[str]) -> tuple[Sequence[str], bool]:
        return (), self._labels.are_numbers

    def _review(self, listing: SourceListing) -> None:
        listing.remarks = [*listing.remarks, *self._labels.remarks]

    def describe_columns(self) -> Sequence[str]:
        """Return what the columns of the labels mean, and a few rows."""
        return self._labels.shown

    def _scan(self) -> Iterator[Named]:
        return put_into_classes(self._found, self._labels, self._file.location)

    @property
    def lacks_split(self) -> bool:
        """Return whether the labels do not say which images belong to a split."""
        return not self._labels.split

    def _place(self, key: str) -> str:
        # Worker processes need no labels.
        return self._find_file(key, key.partition("/")[2])


def put_into_classes(found: Mapping[str, str | None], labels: Labels, where: object) -> Iterator[Named]:
    """Yield the key ``class/name`` of each image; refuse images without a label, naming `where`.

    Images of other splits are not among them.
    """
    for name, reason in found.items():
        if name in labels.left_out:
            continue
        if label := labels.classes.get(name):
            yield original_key(f"{label}/{name}"), name, reason
        else:
            yield name, name, reason or f"no label in {where}"


def _open_images(place: Place, options: SourceOptions) -> FileSource:
    found = place.children if place.is_folder and options.classes else {}
    if shards := [name for name in found if {f"{name}{PARQUET}", f"{name}_stats.json"} & found.keys()]:
        raise SourceError(
            f"{place.location}: {shards[0]!r} is a shard of img2dataset, not a class: set "
            "require_classes=false, or write the shards with its output_format webdataset"
        )
    return OneImage(place, options) if place.is_image else ImageFolder(place, options)


class MetadataFolder(LabelledFolder):
    """A folder or an archive of images with a file of the Hugging Face Hub beside them: ``metadata.csv``.

    Parameters
    ----------
    root : FileTree
    options : SourceOptions
    metadata : str
        Name of the file, in the tree.
    """

    def __init__(self, root: FileTree, options: SourceOptions, metadata: str) -> None:
        self._metadata = metadata
        super().__init__(root, options._replace(labels=root.location))

    def _find_folder(self) -> str:
        return posixpath.dirname(self._metadata)

    @cached_property
    def _labels(self) -> Labels:
        where, names = f"{self.location}/{self._metadata}", ImageNames(sorted(filter(is_image, self._found)))
        try:
            with name_source_in_errors(where):
                labels = parse_metadata(self._tree.read(self._metadata), where, names, self._asked)
        except SourceError as error:
            raise SourceError(f"{error} (set source_kind=folder to use class folders)") from error
        return labels or Labels({}, are_numbers=False)

    @property
    def is_needed(self) -> bool:
        """Return whether the file has labels that class folders do not tell."""
        labels = {name: label for name, label in self._labels.classes.items() if label is not None}
        return not all(name.startswith(f"{label}/") for name, label in labels.items())

    def _review(self, listing: SourceListing) -> None:
        super()._review(listing)
        listing.remarks = [*listing.remarks, f"labels are those of {self._metadata}"]


def open_by_metadata(source: Source, options: SourceOptions) -> Source:
    """Return a folder or an archive with the labels in its metadata, if there are any; or the same source."""
    if not isinstance(source, ImageFolder) or not options.classes:
        return source
    for name in source.find_files(METADATA):
        labelled = MetadataFolder(source.tree, options, name)
        if labelled.is_needed:
            return labelled
    return source


LABELLED: Final = SourceKind(lambda _: False, LabelledFolder, has_split_folders=True)
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
            raise SourceError("scikit-image with its photographs is missing: pip install 'robustgen[demo]'")
        super().__init__(folder, options)

    def _scan(self) -> Iterator[Named]:
        for name in self.NAMES:
            yield f"{Path(name).stem}/{name.replace('.jpg', '.JPEG')}", name, None
