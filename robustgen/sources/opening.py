"""The kinds of source: one table says how each is recognised and opened."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from robustgen.errors import SourceError, UnknownNameError
from robustgen.imaging.decode import Location
from robustgen.sources.base import Source, blame_source
from robustgen.sources.cifar import Cifar, is_cifar
from robustgen.sources.folder import ImageFolder
from robustgen.sources.labelled import LabelledFolder
from robustgen.sources.parquet import Parquet, is_parquet
from robustgen.sources.photographs import Photographs
from robustgen.sources.tiny_imagenet import TinyImageNet, is_tiny_imagenet
from robustgen.sources.webdataset import WebDataset, is_webdataset


@dataclass(frozen=True)
class Request:
    """What a source is opened with.

    Attributes
    ----------
    path : Path
    labels : path or None
    follow : sequence of path
        Places outside to which links may lead.
    held : path or None
        The index that an earlier run has kept.
    """

    path: Path
    labels: Location | None
    follow: Sequence[Location]
    held: Path | None


@dataclass(frozen=True)
class KnownSource:
    """A row of the table.

    Attributes
    ----------
    name : str
        What `source_kind` calls it.
    recognise : callable
        Whether what is asked for is of this kind.
    open : callable
    labelled : bool
        Whether it needs a file of labels; the others take none.
    """

    name: str
    recognise: Callable[[Request], bool]
    open: Callable[[Request], Source]
    labelled: bool = False


# In the order of recognition: the first row that says yes.
_ROWS = (
    KnownSource(
        "labelled",
        lambda asked: asked.labels is not None,
        lambda asked: LabelledFolder(asked.path, asked.labels or "", asked.follow, asked.held),
        labelled=True,
    ),
    KnownSource(
        "parquet", lambda asked: is_parquet(asked.path), lambda asked: Parquet(asked.path, asked.held)
    ),
    KnownSource(
        "webdataset",
        lambda asked: is_webdataset(asked.path),
        lambda asked: WebDataset(asked.path, asked.held),
    ),
    KnownSource("cifar", lambda asked: is_cifar(asked.path), lambda asked: Cifar(asked.path)),
    KnownSource(
        "tiny-imagenet",
        lambda asked: is_tiny_imagenet(asked.path, asked.held),
        lambda asked: TinyImageNet(asked.path, asked.follow, asked.held),
    ),
    KnownSource(
        "folder", lambda asked: True, lambda asked: ImageFolder(asked.path, asked.follow, asked.held)
    ),
    KnownSource("demo", lambda asked: False, lambda asked: Photographs()),
)
_BY_NAME = {row.name: row for row in _ROWS}
KINDS = ("auto", *_BY_NAME)


def open_source(
    path: Location | None,
    kind: str = "auto",
    labels: Location | None = None,
    follow: Sequence[Location] = (),
    held: Path | None = None,
) -> Source:
    """Open a source of images.

    Parameters
    ----------
    path : path or None
        Where the images are; not looked at for the kind "demo".
    kind : {"auto", "labelled", "parquet", "webdataset", "cifar", "tiny-imagenet", "folder", "demo"}
        "auto" tells the kind from what lies at `path`, and takes "labelled" if `labels` are given.
    labels : path, optional
        The labels file of the kind "labelled".
    follow : sequence of path
        Places outside `path` to which links may lead.
    held : path, optional
        The index that an earlier run has kept (`Items.export_index`). Where there is none, or it does not fit
        any more, the source is listed anew.

    Returns
    -------
    Source

    Raises
    ------
    UnknownNameError
        There is no such kind.
    SourceError
        There is nothing at `path` or a place to `follow`, or `labels` do not go with the kind.
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of source", kind, KINDS)
    if kind == "demo":
        return Photographs()
    if path is None:
        raise SourceError(f"a source of kind {kind!r} needs a path")
    for place in follow:
        if not Path(place).is_dir():
            raise SourceError(f"follow_links: {place}: there is no such folder")
    asked = Request(Path(path), labels, follow, held)
    row = _recognise(asked) if kind == "auto" else _BY_NAME[kind]
    if row.labelled != (labels is not None):
        raise SourceError(
            f"{path}: a labels file goes with the kind 'labelled', and with no other; kind is {row.name!r}"
        )
    return row.open(asked)


def _recognise(asked: Request) -> KnownSource:
    with blame_source(asked.path):
        return next(row for row in _ROWS if row.recognise(asked))
