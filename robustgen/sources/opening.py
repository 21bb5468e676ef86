"""Kinds of source: one table defines how each is recognised and opened."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from robustgen.errors import SourceError, UnknownNameError
from robustgen.imaging.decode import Location
from robustgen.sources.base import Source, blame_source
from robustgen.sources.cifar import Cifar, is_cifar
from robustgen.sources.folder import ImageFolder
from robustgen.sources.index import Cache
from robustgen.sources.labelled import LabelledFolder
from robustgen.sources.medmnist import MedMnist, is_medmnist
from robustgen.sources.mnist import Idx, is_idx
from robustgen.sources.parquet import Parquet, is_parquet
from robustgen.sources.photographs import Photographs
from robustgen.sources.places import Place, find_place
from robustgen.sources.table import Columns, Table, is_text_table
from robustgen.sources.tiny_imagenet import TinyImageNet, is_tiny_imagenet
from robustgen.sources.webdataset import WebDataset, is_webdataset


class Request(NamedTuple):
    """Arguments for opening a source; see `open_source`."""

    place: Place
    labels: Location | None
    follow: Sequence[Location]
    cache: Cache
    split: str | None
    labels_are_classes: bool
    columns: Columns | None


class KnownSource(NamedTuple):
    """A row of the table: name of the kind, for `source_kind`, and functions to recognise and open it."""

    name: str
    recognise: Callable[[Place], bool]
    open: Callable[[Request], Source]

    def enter_split(self, ask: Request) -> Request:
        """Return the request for the folder of the split, if this kind has such folders and it exists."""
        place, split = ask.place, ask.split
        if self.name in _IN_FOLDERS and split and place.is_folder and place.children.get(split):
            return ask._replace(place=place.below(split), split=None)
        return ask


# Kinds whose splits may be folders.
_IN_FOLDERS: Final = ("parquet", "webdataset", "folder")
# In order of recognition: the first match wins.
_ROWS = (
    KnownSource(
        "labelled",
        lambda _: False,
        lambda ask: LabelledFolder(ask.place, ask.labels, ask.follow, ask.cache, ask.labels_are_classes),
    ),
    KnownSource("table", is_text_table, lambda ask: Table(ask.place, ask.columns, ask.cache)),
    KnownSource("parquet", is_parquet, lambda ask: Parquet(ask.place, ask.cache, ask.split)),
    KnownSource("webdataset", is_webdataset, lambda ask: WebDataset(ask.place, ask.cache, ask.split)),
    KnownSource("mnist", is_idx, lambda ask: Idx(ask.place, ask.split)),
    KnownSource("medmnist", is_medmnist, lambda ask: MedMnist(ask.place, ask.split or "test")),
    KnownSource("cifar", is_cifar, lambda ask: Cifar(ask.place, ask.split or "test")),
    KnownSource(
        "tiny-imagenet",
        is_tiny_imagenet,
        lambda ask: TinyImageNet(ask.place, ask.follow, ask.cache, ask.split or "val"),
    ),
    KnownSource("folder", lambda _: True, lambda ask: ImageFolder(ask.place, ask.follow, ask.cache)),
    KnownSource("demo", lambda _: False, lambda _: Photographs()),
)
_BY_NAME = {row.name: row for row in _ROWS}
KINDS = ("auto", *_BY_NAME)


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
    with blame_source(location):
        asked = Request(find_place(location), labels, follow, index, split, labels_are_classes, columns)
        if kind == "auto" and (labels is not None or columns is not None):
            kind = "table" if labels is None else "labelled"
        rows = (row for row in _ROWS if row.recognise(row.enter_split(asked).place))
        row = next(rows) if kind == "auto" else _BY_NAME[kind]
    if (row.name == "labelled") != (labels is not None):
        raise SourceError(
            f"{location}: the kind 'labelled', and no other, needs a labels file; kind is {row.name!r}"
        )
    if columns is not None and row.name != "table":
        raise SourceError(f"{location}: --image-columns is for the kind 'table', not {row.name!r}")
    ask = row.enter_split(asked)
    if ask.split and row.name in ("folder", "labelled"):
        problem = "a source with a labels file has no" if labels else "contains no folder of the"
        raise SourceError(f"{location}: {problem} split {ask.split!r}")
    return row.open(ask)
