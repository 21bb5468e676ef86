"""ImageNet: checks that class folders are its own, named by WordNet ids; and Tiny ImageNet."""

import re
import zipfile
from collections.abc import Iterable
from typing import Final

from robustgen.errors import SourceError
from robustgen.pixels.imaging.decode import Location
from robustgen.sets.sources import SourceKind
from robustgen.sets.sources.base import DEFAULTS, Source, SourceOptions, check_split
from robustgen.sets.sources.folder import FileSource, ImageFolder, Named, Photographs, put_into_classes
from robustgen.sets.sources.labels import ImageNames, parse_labels
from robustgen.sets.sources.places import ARCHIVES, Place
from robustgen.sets.sources.trees import is_image

_WORDNET_ID: Final = re.compile(r"n\d{8}")
# ImageNet-V2 and others name class folders by number.
_NUMBER: Final = re.compile(r"\d{1,4}")
_SPLITS: Final = {"", "train", "val", "test"}
_PREFIX: Final = "ILSVRC2012_"


def check_classes(source: Source, remedy: str, *, is_imagenet: bool = False) -> None:
    """Refuse ImageNet images without classes, or with folders that are not classes.

    Parameters
    ----------
    source : Source
    remedy : str
        Advice for using the images as they are.
    is_imagenet : bool
        Whether the images are known to be ImageNet's; if false, their names decide.

    Raises
    ------
    SourceError
        The message names the folder, and the folder that was probably meant.
    """
    found, in_folders = {*source.classes}, isinstance(source, ImageFolder)
    known = {name for name in found if _WORDNET_ID.fullmatch(name)}
    if in_folders and not known and (around := find_folders_of_classes(source.keys())):
        meant = next((folder for folder in around if folder.rpartition("/")[2] == "val"), around[0])
        advice = f"did you mean --source {source.location}/{meant}?"
        if source.location.lower().endswith(ARCHIVES):
            advice = f"unpack it and name its {meant} with --source"
        there = f"its class folders are deeper, in {', '.join(around)}"
        raise SourceError(f"{source.location}: {there}; {advice} (else {remedy})")
    splits = {name for name in found if name in _SPLITS or name.startswith(_PREFIX)}
    named = (key.rpartition("/")[2].startswith(_PREFIX) for key in source.keys())  # noqa: SIM118
    if splits == found and (is_imagenet or any(named)):
        ways = "a file of labels or the devkit's archive with --labels"
        raise SourceError(f"{source.location}: not in class folders; pass {ways}, or {remedy}")
    others = [name for name in source.classes if name not in known and not _NUMBER.fullmatch(name)]
    strays = [*source.strays] if isinstance(source, ImageFolder) else []
    # A preview shows the demo's photographs as a data set would have them.
    if is_imagenet and (others or strays) and not isinstance(source, Photographs):
        if in_folders:
            strays += (key for key in source.keys() if source.classes[source.label(key)] in others)  # noqa: SIM118
        stray = next(iter(strays), None)
        what = f"class {others[0]!r} is not" if stray is None else f"{stray!r} is not in"
        where = f"{source.location}: {what} a class folder of ImageNet, named by a WordNet id"
        raise SourceError(f"{where} (else {remedy})")


def find_folders_of_classes(keys: Iterable[str]) -> list[str]:
    """Return the folders above the first WordNet id in each key; keys that begin with one are ignored."""
    folders = set()
    for key in keys:
        parts = key.split("/")[:-1]
        if index := next((index for index, part in enumerate(parts) if _WORDNET_ID.fullmatch(part)), 0):
            folders.add("/".join(parts[:index]))
    return sorted(folders)


# --- Tiny ImageNet -------------------------------------------------------------------------------


_ANNOTATIONS, _TINY_CLASSES = "val_annotations.txt", 200


class TinyImageNet(FileSource):
    """A split of tiny-imagenet-200, as shipped or sorted into class folders.

    Parameters
    ----------
    root : path or URL
        The folder tiny-imagenet-200, its folder val, or its zip.
    options : SourceOptions
        The split is "val", the default, or "train".

    Raises
    ------
    SourceError
        `root` is not one of these.
    """

    def __init__(self, root: Location | Place, options: SourceOptions = DEFAULTS) -> None:
        self.split = check_split(root, options.split or "val", ("val", "train"))
        super().__init__(root, options)

    def _find_folder(self) -> str:
        parts = (f"/{name}".partition(f"/{self.split}/") for name, _ in self._tree.find())
        above = next((above for above, found, _ in parts if found), None)
        if above is None:
            # This is the folder val itself.
            return "" if self.split == "val" else self.split
        return f"{above}/{self.split}".removeprefix("/")

    def _scan(self) -> Iterable[Named]:
        images, annotations = f"{self._prefix}images/", self._prefix + _ANNOTATIONS
        shipped = dict(self._tree.find(images, deep=False)) if self._tree.has(annotations) else {}
        names = sorted(filter(is_image, shipped))
        if not names:
            return ((key.replace("/images/", "/", 1), key, why) for key, why in self._tree.find(self._prefix))
        where = f"{self.location}/{annotations}"
        # Boxes follow the class.
        lines = (line.split(b"\t")[:2] for line in self._tree.read(annotations).split(b"\n"))
        labels = parse_labels(b"\n".join(map(b"\t".join, lines)), where, ImageNames(names))
        found = put_into_classes(shipped, labels, where)
        return ((key, f"images/{name}", reason) for key, name, reason in found)


def is_tiny_imagenet(place: Place) -> bool:
    """Return True for tiny-imagenet-200: its zip, its folder, or its val."""
    if not place.is_folder:
        if not place.has_suffix(".zip"):
            return False
        with place.store.open(place.name) as file, zipfile.ZipFile(file) as archive:
            return any(name.endswith(f"val/{_ANNOTATIONS}") for name in archive.namelist())
    names = place.children
    if _ANNOTATIONS in names or (names.get("val") and place.folder.exists(f"val/{_ANNOTATIONS}")):
        return True
    # A sorted val folder may lack its annotations; the class list is in its parent.
    home = (Place(place.store.location) if place.name == "val" else place).folder
    if "val" not in (place.name, *names) or not home.exists("wnids.txt"):
        return False
    # Class lists for models may have the same name, but have more classes.
    return len(home.read("wnids.txt").splitlines()) <= _TINY_CLASSES


TINY_IMAGENET: Final = SourceKind(is_tiny_imagenet, TinyImageNet)
