"""Kinds of source: one table defines how each is recognised and opened."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from robustgen.errors import SourceError, UnknownNameError
from robustgen.imaging.decode import Location
from robustgen.sources.base import Cache, Columns, Options, Source, blame_source
from robustgen.sources.cifar import Cifar, is_cifar
from robustgen.sources.folder import ImageFolder, LabelledFolder, Photographs
from robustgen.sources.medmnist import MedMnist, is_medmnist
from robustgen.sources.mnist import Idx, is_idx
from robustgen.sources.parquet import Parquet, is_parquet
from robustgen.sources.places import Place, find_place
from robustgen.sources.table import Table, is_text_table
from robustgen.sources.tiny_imagenet import TinyImageNet, is_tiny_imagenet
from robustgen.sources.webdataset import WebDataset, is_webdataset


class KnownSource(NamedTuple):
    """A kind of source: functions to recognise and to open it."""

    recognise: Callable[[Place], bool]
    open: Callable[[Place, Options], Source]


# In order of recognition: the first match wins.
_KINDS: Final[Mapping[str, KnownSource]] = {
    "labelled": KnownSource(lambda _: False, LabelledFolder),
    "table": KnownSource(is_text_table, Table),
    "parquet": KnownSource(is_parquet, Parquet),
    "webdataset": KnownSource(is_webdataset, WebDataset),
    "mnist": KnownSource(is_idx, Idx),
    "medmnist": KnownSource(is_medmnist, MedMnist),
    "cifar": KnownSource(is_cifar, Cifar),
    "tiny-imagenet": KnownSource(is_tiny_imagenet, TinyImageNet),
    "folder": KnownSource(lambda _: True, ImageFolder),
}
KINDS = ("auto", *_KINDS, "demo")
# Kinds whose splits may be folders.
_IN_FOLDERS: Final = ("parquet", "webdataset", "folder")


def open_source(
    location: Location | None,
    kind: str = "auto",
    labels: Location | None = None,
    follow: Sequence[Location] = (),
    index: Cache = None,
    split: str | None = None,
    labels_are_classes: bool = False,
    columns: Columns | None = None,
) -> Source:
    """Open a source of images.

    Parameters
    ----------
    location : path, URL or None
        Path of the images; ignored for the kind "demo".
    kind : str
        One of `KINDS`. "auto" detects the kind from the content of `location`; it selects "labelled" if
        `labels` are given.
    labels : path or URL, optional
        Labels file of the kind "labelled".
    follow : sequence of path
        Folders outside `location` to which links may lead.
    index : (Store, str), optional
        A file in which the listing of an archive or of shards may be cached. `make_ready` writes it; later
        runs and worker processes read it, as long as size and stamp of the files are unchanged.
    split : str, optional
        "train" or another split of the source. Default: the split that benchmarks use, or all images.
    labels_are_classes : bool
        Whether labels from 1 to 1000 are class names, not the numbers of the devkit.
    columns : Columns, optional
        Image columns of the kind "table"; "auto" selects this kind if they are given.

    Returns
    -------
    Source

    Raises
    ------
    UnknownNameError
        `kind` is unknown.
    SourceError
        `location` or a folder in `follow` does not exist, the split does not exist, or `labels` or
        `columns` do not fit the kind.
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of source", kind, KINDS)
    if kind == "demo":
        if split:
            raise SourceError(f"the demo has no splits; omit {split!r}")
        return Photographs()
    if location is None:
        raise SourceError(f"a source of kind {kind!r} needs a path")
    for folder in follow:
        if not Path(folder).is_dir():
            raise SourceError(f"follow_links: {folder}: the folder does not exist")
    place, recognise = find_place(location), kind == "auto"
    if recognise:
        kind = "labelled" if labels is not None else "table" if columns is not None else _recognise(place)
    if (kind == "labelled") != (labels is not None):
        raise SourceError(f"{location}: only the kind 'labelled' needs --labels; the kind is {kind!r}")
    if columns is not None and kind != "table":
        raise SourceError(f"{location}: --image-columns is for the kind 'table', not {kind!r}")
    if split and kind in _IN_FOLDERS and place.is_folder and place.children.get(split):
        place, split = place.below(split), None
        kind = _recognise(place) if recognise else kind
    if split and kind in ("folder", "labelled"):
        raise SourceError(f"{location}: contains no folder of the split {split!r}")
    options = Options(labels, follow, index, split, labels_are_classes, columns)
    return _KINDS[kind].open(place, options)


def _recognise(place: Place) -> str:
    """Return the kind of the source at `place`."""
    with blame_source(place.location):
        return next(kind for kind, known in _KINDS.items() if known.recognise(place))
