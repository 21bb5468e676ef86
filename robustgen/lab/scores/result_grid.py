"""Files for each corruption and severity, such as ``preds/{corruption}/{severity}.json``, and their means."""

import glob
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from robustgen.display import text
from robustgen.errors import ConfigError, SourceError
from robustgen.files.text_files import read_json
from robustgen.pixels.benchmarks.kinds import IMAGENET_C

GridCell = tuple[str, int]
"""A corruption and a severity."""


def find_cells(pattern: str, option: str) -> dict[GridCell, Path]:
    """Return the files that match `pattern`, in the order of the benchmark.

    Raises
    ------
    ConfigError
        The pattern lacks a placeholder.
    SourceError
        No file matches.
    """
    pieces = re.split(r"(\{corruption\}|\{severity\})", pattern)
    names = pieces[1::2]
    if sorted(names) != ["{corruption}", "{severity}"]:
        raise ConfigError(f"{option} {pattern}: must contain {{corruption}} and {{severity}} once each")
    groups = {"{corruption}": r"(?P<corruption>[^/]+?)", "{severity}": r"(?P<severity>[1-5])"}
    matcher = re.compile("".join(groups.get(piece) or re.escape(piece) for piece in pieces))
    globbed = "".join("*" if piece in groups else glob.escape(piece) for piece in pieces)
    found = [(matcher.fullmatch(path), path) for path in glob.glob(globbed)]  # noqa: PTH207 (the pattern may be absolute)
    cells = {(m["corruption"], int(m["severity"])): Path(path) for m, path in found if m}
    if not cells:
        raise SourceError(f"{option} {pattern}: there are no such files")
    known = {name: index for index, name in enumerate(IMAGENET_C.names)}
    return dict(sorted(cells.items(), key=lambda pair: (known.get(pair[0][0], len(known)), pair[0])))


def check_cells(cells: Mapping[GridCell, object], option: str, partial: bool) -> list[str]:
    """Return notes on missing files of the common corruptions at five severities.

    Raises
    ------
    SourceError
        A file is missing, and `partial` is not set.
    """
    missing = [
        f"{name}/{level}"
        for name in IMAGENET_C.common
        for level in IMAGENET_C.levels
        if (name, level) not in cells
    ]
    absent = [name for name in IMAGENET_C.common if all(f"{name}/{s}" in missing for s in IMAGENET_C.levels)]
    listed = ", ".join(
        [*absent, *(variant for variant in missing if variant.partition("/")[0] not in absent)]
    )
    if missing and not partial:
        raise SourceError(f"{option}: incomplete: {listed} missing (--partial scores the rest)")
    return [f"incomplete: {listed} missing; means are over the rest"] * bool(missing)


def averaged_cells(cells: Mapping[GridCell, object]) -> list[GridCell]:
    """Return the cells of the common corruptions, or all if there are none of these.

    Severities that one of these corruptions lacks are omitted from all.
    """
    names = dict.fromkeys(name for name, _ in cells)
    chosen: Sequence[str] = [name for name in names if name in IMAGENET_C.common] or [*names]
    levels = [level for level in IMAGENET_C.levels if all((name, level) in cells for name in chosen)]
    return [(name, level) for name in chosen for level in levels]


def describe_averaged(averaged: Sequence[GridCell]) -> str:
    """Return the end of a title: how many results are in the means, unless all are."""
    whole = len(IMAGENET_C.common) * len(IMAGENET_C.levels)
    return "" if len(averaged) == whole else f" (incomplete: over {len(averaged)} of {whole} results)"


def tabulate_severities(title: str, values: Mapping[GridCell, float | None]) -> text.Table:
    """Return a table with a row for each corruption: a fraction for each severity, and their mean."""
    levels = sorted({level for _, level in values})
    rows = []
    for name in dict.fromkeys(name for name, _ in values):
        row = [values.get((name, level)) for level in levels]
        known = [value for value in row if value is not None]
        mean = fmean(known) if len(known) == len(levels) else None
        rows.append([name, *map(text.Cell, [*row, mean])])
    return text.Table(title, ["", *map(str, levels), "Mean"], rows)


def read_reference(path: Path, cells: Sequence[GridCell]) -> dict[str, Any]:
    """Return the reference model's values, as printed by ``score-segmentation --format json``.

    Raises
    ------
    ConfigError
        The file is invalid, lacks one of the `cells`, or is no worse on a corruption than on clean images.
    """
    try:
        content = read_json(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"--reference {path}: cannot be read as JSON ({error})") from error
    if not isinstance(content, dict) or not content.keys() >= {"model", "clean", "corruptions"}:
        raise ConfigError(f"--reference {path}: must contain model, clean and corruptions")
    values: dict[GridCell | None, Any] = {None: content["clean"]}
    for name, level in cells:
        by_level = content["corruptions"].get(name) if isinstance(content["corruptions"], dict) else None
        if not isinstance(by_level, dict) or str(level) not in by_level:
            raise ConfigError(f"--reference {path}: has no value for {name}/{level}")
        values[name, level] = by_level[str(level)]
    for value in values.values():
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 1:
            raise ConfigError(f"--reference {path}: mIoU must be from 0 to 1, not {value!r}")
    for name in dict(cells):
        if sum(value - content["clean"] for cell, value in values.items() if cell and cell[0] == name) >= 0:
            raise ConfigError(f"--reference {path}: is no worse on {name} than on clean images")
    return content
