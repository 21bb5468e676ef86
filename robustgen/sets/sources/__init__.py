"""Sources of images: folders, archives, shards, tables, arrays and a few built-in photographs.

A source names its images by *keys*, relative POSIX paths ``"<class>/<file name>"``. The key determines the
random stream of an image, so a data set has the same keys in every layout. Sources are not trusted: links
may not leave them, pickles run no code, archives are not extracted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from robustgen.files import registry
from robustgen.files.registry import Registry

if TYPE_CHECKING:
    from robustgen.sets.sources.base import Source, SourceOptions
    from robustgen.sets.sources.places import Place


@dataclass(frozen=True)
class SourceKind:
    """A row in the table of sources; its name is the `source_kind`.

    Attributes
    ----------
    recognise : callable
        Returns True for a place with such a source.
    open : callable
        Opens the source at a place, with options.
    has_split_folders : bool
        Whether the splits of a source may be folders in it.

    Examples
    --------
    >>> from robustgen.plugins import NumberedSource, Place, SourceKind
    >>> kind = SourceKind(lambda place: place.has_suffix(".stack.npy"), NumberedSource)
    >>> kind.recognise(Place("photos.stack.npy")), kind.recognise(Place("photos.npy"))
    (True, False)
    """

    recognise: "Callable[[Place], bool]"
    open: "Callable[[Place, SourceOptions], Source]"
    has_split_folders: bool = False


SOURCES: Final[Registry[SourceKind]] = Registry(
    "kind of source",
    "robustgen.sources",
    SourceKind,
    {name: f"{__name__}.{row}" for name, row in registry.SOURCE_ROWS.items()},
    reserved=("auto", "demo"),
)
"""Rows by `source_kind`, in the order of recognition; plug-ins come before "arrays" and "folder"."""


def list_source_kinds() -> list[str]:
    """Return the names that `open_source` takes."""
    return ["auto", *SOURCES, "demo"]
