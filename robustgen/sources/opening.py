"""The kinds of source: one table says how each is recognised and opened."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from robustgen.errors import SourceError, UnknownNameError
from robustgen.imaging.decode import Location
from robustgen.sources.base import Source, blame_source
from robustgen.sources.cifar import Cifar, find_batches
from robustgen.sources.folder import ImageFolder
from robustgen.sources.labelled import LabelledFolder
from robustgen.sources.photographs import Photographs
from robustgen.sources.tiny_imagenet import TinyImageNet, is_tiny_imagenet


@dataclass(frozen=True)
class KnownSource:
    """A row of the table.

    Attributes
    ----------
    name : str
        What `source_kind` calls it.
    recognise : callable
        Whether what lies at a path, beside the labels given or None, is of this kind.
    open : callable
        Path and labels to the source.
    labelled : bool
        Whether it needs a file of labels; the others take none.
    """

    name: str
    recognise: Callable[[Path, Location | None], bool]
    open: Callable[[Path, Location | None], Source]
    labelled: bool = False


# In the order of recognition: the first row that says yes.
_ROWS = (
    KnownSource(
        "labelled",
        lambda path, labels: labels is not None,
        lambda path, labels: LabelledFolder(path, labels or ""),
        labelled=True,
    ),
    KnownSource(
        "cifar",
        lambda path, labels: path.name.endswith((".tar.gz", ".tgz")) or bool(find_batches(path)),
        lambda path, labels: Cifar(path),
    ),
    KnownSource(
        "tiny-imagenet",
        lambda path, labels: is_tiny_imagenet(path),
        lambda path, labels: TinyImageNet(path),
    ),
    KnownSource("folder", lambda path, labels: True, lambda path, labels: ImageFolder(path)),
    KnownSource("demo", lambda path, labels: False, lambda path, labels: Photographs()),
)
_BY_NAME = {row.name: row for row in _ROWS}
KINDS = ("auto", *_BY_NAME)


def open_source(path: Location | None, kind: str = "auto", labels: Location | None = None) -> Source:
    """Open a source of images.

    Parameters
    ----------
    path : path or None
        Where the images are; not looked at for the kind "demo".
    kind : {"auto", "labelled", "cifar", "tiny-imagenet", "folder", "demo"}
        "auto" tells the kind from what lies at `path`, and takes "labelled" if `labels` are given.
    labels : path, optional
        The labels file of the kind "labelled".

    Returns
    -------
    Source

    Raises
    ------
    UnknownNameError
        There is no such kind.
    SourceError
        There is nothing at `path`, or `labels` do not go with the kind.
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of source", kind, KINDS)
    if kind == "demo":
        return Photographs()
    if path is None:
        raise SourceError(f"a source of kind {kind!r} needs a path")
    row = _recognise(Path(path), labels) if kind == "auto" else _BY_NAME[kind]
    if row.labelled != (labels is not None):
        raise SourceError(
            f"{path}: a labels file goes with the kind 'labelled', and with no other; kind is {row.name!r}"
        )
    return row.open(Path(path), labels)


def _recognise(path: Path, labels: Location | None) -> KnownSource:
    with blame_source(path):
        return next(row for row in _ROWS if row.recognise(path, labels))
