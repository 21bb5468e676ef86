"""Rigs of several cameras: the camera and the scene of each file, by a pattern or a table."""

import re
from collections.abc import Iterable
from typing import Final, Literal

from robustgen.errors import SourceError
from robustgen.sets.sources.classes import is_folder_name
from robustgen.sets.sources.labels import read_labels
from robustgen.sets.sources.places import find_place
from robustgen.sets.sources.rows import Asked

NUSCENES: Final = r"(?:^|/)(?P<camera>CAM_(?:FRONT|BACK)(?:_LEFT|_RIGHT)?)/"
"""The cameras of nuScenes, by their folders."""


def find_in_rig(
    rig: str, part: Literal["camera", "scene"], names: Iterable[str], folder: str
) -> dict[str, str]:
    """Return the camera or the scene of the files that have one.

    Parameters
    ----------
    rig : str
        A pattern with the group `part`, or ``@FILE``, a table with the columns ``file`` and `part`.
    part : {"camera", "scene"}
    names : iterable of str
        Paths of the files below `folder`.
    folder : str
        Absolute path or URL.

    Raises
    ------
    SourceError
        The table cannot be read, or does not match the files.
    """
    if rig.startswith("@"):
        asked = Asked("file", part)
        table = read_labels(find_place(rig[1:]), sorted(names), folder, asked, are_classes=True)
        return {name: found for name, found in table.classes.items() if found}
    matches = ((name, re.search(rig, name)) for name in names)
    found = ((name, match.groupdict().get(part)) for name, match in matches if match)
    kept = {name: own for name, own in found if own}
    if wrong := next((own for own in kept.values() if not is_folder_name(own)), None):
        raise SourceError(f"rig: {wrong!r} cannot be the name of a {part}, which is that of a folder")
    return kept


def says(rig: str | None, part: Literal["camera", "scene"]) -> bool:
    """Return whether a rig says the camera or the scene of files; a table is assumed to."""
    return rig is not None and (rig.startswith("@") or part in re.compile(rig).groupindex)


def require_all(rig: str, part: str, names: Iterable[str], found: Iterable[str]) -> None:
    """Raise a SourceError if one of the files `names` has no camera or scene."""
    if lacking := sorted({*names} - {*found}):
        raise SourceError(
            f"rig: {rig!r} says no {part} of {lacking[0]!r}; name a pattern with (?P<{part}>...), or "
            f"@FILE, a table with a column {part}"
        )
