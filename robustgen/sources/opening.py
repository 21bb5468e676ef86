"""Kinds of source: one table defines how each is recognised and opened."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from robustgen.errors import SourceError, UnknownNameError
from robustgen.imaging.decode import Location
from robustgen.sources.base import DEFAULTS, Options, Source, blame_source
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


def open_source(location: Location | None, kind: str = "auto", options: Options = DEFAULTS) -> Source:
    """Open a source of images.

    Parameters
    ----------
    location : path, URL or None
        Path of the images; ignored for the kind "demo".
    kind : str
        One of `KINDS`. "auto" detects the kind from the content of `location`; it selects "labelled" if the
        options name labels, and "table" if they name columns or the folder of their images.
    options : Options

    Returns
    -------
    Source

    Raises
    ------
    UnknownNameError
        `kind` is unknown.
    SourceError
        `location` or a folder to follow does not exist, the split does not exist, or the options do not fit
        the kind.
    """
    labels, split, in_columns = options.labels, options.split, bool(options.columns or options.image_root)
    if kind not in KINDS:
        raise UnknownNameError("kind of source", kind, KINDS)
    if kind == "demo":
        if split:
            raise SourceError(f"the demo has no splits; omit {split!r}")
        return Photographs(Options(libjpeg=options.libjpeg))
    if location is None:
        raise SourceError(f"a source of kind {kind!r} needs a path")
    for folder in options.follow:
        if not Path(folder).is_dir():
            raise SourceError(f"follow_links: {folder}: the folder does not exist")
    place, recognise = find_place(location), kind == "auto"
    if recognise:
        kind = "labelled" if labels is not None else "table" if in_columns else _recognise(place)
    if (kind == "labelled") != (labels is not None):
        raise SourceError(f"{location}: only the kind 'labelled' needs --labels; the kind is {kind!r}")
    if in_columns and kind != "table":
        raise SourceError(f"{location}: --image-columns is for the kind 'table', not {kind!r}")
    if split and kind in _IN_FOLDERS and place.is_folder and place.children.get(split):
        place, split = Place(f"{place.location}/{split}"), None
        kind = _recognise(place) if recognise else kind
    if split and kind in ("folder", "labelled"):
        raise SourceError(f"{location}: contains no folder of the split {split!r}")
    return _KINDS[kind].open(place, options._replace(split=split))


def _recognise(place: Place) -> str:
    """Return the kind of the source at `place`."""
    with blame_source(place.location):
        return next(kind for kind, known in _KINDS.items() if known.recognise(place))
