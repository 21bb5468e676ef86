"""Opening of a source, whose `source_kind` is given or recognised."""

from pathlib import Path
from typing import Final

from robustgen.errors import SourceError, UnknownNameError
from robustgen.pixels.imaging.decode import Location
from robustgen.sets.sources import SOURCES, list_source_kinds
from robustgen.sets.sources.base import DEFAULTS, Source, SourceOptions, name_source_in_errors
from robustgen.sets.sources.folder import Photographs, open_by_metadata
from robustgen.sets.sources.places import ARRAYS, Place, find_place

# Plug-ins come before these rows.
_LAST: Final = ("arrays", "folder")


def open_source(
    location: Location | None, source_kind: str = "auto", options: SourceOptions = DEFAULTS
) -> Source:
    """Open a source of images.

    Parameters
    ----------
    location : path, URL or None
        Path of the images; ignored for "demo".
    source_kind : str
        One of `list_source_kinds()`. "auto" detects it from the content of `location`, and selects
        "labelled" if the options name labels, and "table" if they name columns or the folder of their images.
    options : SourceOptions

    Returns
    -------
    Source

    Raises
    ------
    UnknownNameError
        `source_kind` is unknown.
    SourceError
        `location` or a folder to follow does not exist, the split does not exist, or the options do not fit
        `source_kind`.
    """
    labels, split, in_columns = options.labels, options.split, bool(options.columns or options.image_root)
    if source_kind not in ("auto", "demo") and source_kind not in SOURCES:
        raise UnknownNameError("kind of source", source_kind, list_source_kinds())
    if source_kind == "demo":
        if split:
            raise SourceError(f"the demo has no splits; omit {split!r}")
        return Photographs(SourceOptions(libjpeg=options.libjpeg))
    if location is None:
        raise SourceError(f"source_kind={source_kind} needs a path")
    for folder in options.follow:
        if not Path(folder).is_dir():
            raise SourceError(f"follow_links: {folder}: the folder does not exist")
    place, recognise = find_place(location), source_kind == "auto"
    if recognise:
        with_labels = "arrays" if place.has_suffix(*ARRAYS) else "labelled"
        source_kind = with_labels if labels is not None else "table" if in_columns else _recognise(place)
    if (source_kind == "labelled") != (labels is not None) and source_kind not in ("arrays", "clips"):
        raise SourceError(f"{location}: only source_kind=labelled needs --labels, not {source_kind}")
    if in_columns and source_kind != "table":
        raise SourceError(f"{location}: image_columns is for source_kind=table, not {source_kind}")
    if split and SOURCES[source_kind].has_split_folders and place.is_folder and place.children.get(split):
        place, options = Place(f"{place.location}/{split}"), options._replace(folder_split=split)
        split = None
        source_kind = _recognise(place) if recognise and labels is None else source_kind
    # An archive finds the folder of a split itself; a table of labels, or a list, may say the split.
    if split and source_kind == "folder" and place.is_folder and not options.split_is_listed:
        raise SourceError(f"{location}: contains no folder of the split {split!r}")
    source = SOURCES[source_kind].open(place, options._replace(split=split))
    return open_by_metadata(source, options) if recognise else source


def _recognise(place: Place) -> str:
    """Return the `source_kind` at `place`: the first row that recognises it; a folder recognises all."""
    with name_source_in_errors(place.location):
        names = sorted(SOURCES.list_usable(), key=_LAST.__contains__)
        return next(each for each in names if SOURCES[each].recognise(place))
