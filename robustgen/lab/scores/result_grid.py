"""Files for each corruption and severity, such as ``preds/{corruption}/{severity}.json``, and their means."""

import glob
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

from robustgen.display import text
from robustgen.errors import ConfigError, SourceError
from robustgen.pixels.benchmarks.kinds import IMAGENET_C

GridCell = tuple[str, int]
"""A corruption and a severity."""


# What placeholders of patterns stand for.
_PLACEHOLDERS: Final = {"model": "[^/]+?", "corruption": "[^/]+?", "severity": "[1-5]"}


def find_files(
    pattern: str, option: str, needed: Sequence[str], optional: Sequence[str] = ()
) -> dict[tuple[str, ...], Path]:
    """Return the files that match `pattern` by the values of the placeholders, the needed ones first.

    An optional one may be missing, which gives "", or stand several times for the same text; ``*`` stands for
    any text.

    Raises
    ------
    ConfigError
        The pattern lacks a placeholder.
    SourceError
        No file matches, or two have the same values.
    """
    pieces = re.split(r"(\{(?:model|corruption|severity)\}|\*)", pattern)
    names = [piece.strip("{}") for piece in pieces[1::2] if piece != "*"]
    if {*needed} - {*names} or {*names} - {*needed, *optional} or any(names.count(n) > 1 for n in needed):
        wanted = " and ".join(f"{{{name}}}" for name in needed) or "no {corruption} or {severity}"
        raise ConfigError(f"{option} {pattern}: must contain {wanted}{' once each' * bool(needed)}")
    expression, globbed, known = "", "", set[str]()
    for number, piece in enumerate(pieces):
        name = piece.strip("{}")
        if number % 2 == 0:
            expression += re.escape(piece)
        elif piece == "*":
            expression += "[^/]*"
        else:
            expression += f"(?P={name})" if name in known else f"(?P<{name}>{_PLACEHOLDERS[name]})"
            known.add(name)
        globbed += "*" if number % 2 else glob.escape(piece)
    found = dict[tuple[str, ...], Path]()
    for path in sorted(glob.glob(globbed)):  # noqa: PTH207 (the pattern may be absolute)
        if match := re.fullmatch(expression, path):
            values = match.groupdict()
            key = tuple(values.get(name, "") for name in (*needed, *optional))
            if key in found:
                raise SourceError(f"{option} {pattern}: both {found[key]} and {path} match; name one of them")
            found[key] = Path(path)
    if not found:
        raise SourceError(f"{option} {pattern}: there are no such files")
    return found


def sort_cells(cells: Iterable[GridCell]) -> list[GridCell]:
    """Return corruptions and severities in the order of the benchmark."""
    known = {name: index for index, name in enumerate(IMAGENET_C.names)}
    return sorted(cells, key=lambda cell: (known.get(cell[0], len(known)), cell))


def find_cells(pattern: str, option: str) -> dict[GridCell, Path]:
    """Return the files that match `pattern`, in the order of the benchmark; raises errors as `find_files`."""
    found = find_files(pattern, option, ("corruption", "severity"))
    cells = {(name, int(level)): path for (name, level), path in found.items()}
    return {cell: cells[cell] for cell in sort_cells(cells)}


def shorten_missing(missing: Collection[str]) -> str:
    """Return the folders of missing variants; a common corruption without any severity by its name."""
    absent = [name for name in IMAGENET_C.common if all(f"{name}/{s}" in missing for s in IMAGENET_C.levels)]
    return ", ".join([*absent, *(each for each in missing if each.partition("/")[0] not in absent)])


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
    listed = shorten_missing(missing)
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


def divide_cells(cells: Iterable[GridCell]) -> dict[str, list[GridCell]]:
    """Return the cells by the category of their corruption, "other" if it is not ImageNet-C's."""
    known = {name: category for category, names in IMAGENET_C.categories.items() for name in names}
    parts: dict[str, list[GridCell]] = {}
    for cell in cells:
        parts.setdefault(known.get(cell[0], "other"), []).append(cell)
    return parts


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
