"""Files that tell the classes of images, in whichever of the usual formats."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from robustgen.errors import SourceError
from robustgen.sources.base import blame_source


def read_labels(path: Path, images: Sequence[str]) -> dict[str, str]:
    """Class by name, with or without extension, whichever of the formats `path` is in."""
    rows = [(number, _fields(line.strip())) for number, line in enumerate(_lines(path), 1) if line.strip()]
    if not rows:
        raise SourceError(f"{path}, line 1: no labels")
    if rows[0][1] == ["ImageId", "PredictionString"]:
        # Behind the class stand boxes.
        rows = [(number, [row[0], *" ".join(row[1:]).split()[:1]]) for number, row in rows[1:]]
    elif all(len(row) == 1 for _, row in rows):
        if len(rows) != len(images):
            raise SourceError(f"{path}, line {rows[-1][0]}: {len(rows)} labels for {len(images)} images")
        rows = [(number, [name, *row]) for name, (number, row) in zip(images, rows, strict=True)]
    return _by_name(path, rows)


def _lines(path: Path) -> list[str]:
    with blame_source(path):
        content = path.read_bytes()
    try:
        # Not splitlines(): it would also split at form feeds and the like.
        return content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SourceError(f"{path}, line {line}: not UTF-8") from error


def _fields(line: str) -> list[str]:
    """Split a line at its tabs, else at its last comma, else at its last space."""
    if "\t" in line:
        return [field.strip() for field in line.split("\t")][:2]
    if "," in line:
        return [field.strip() for field in line.rsplit(",", 1)]
    return line.rsplit(maxsplit=1)


def _by_name(path: Path, rows: Iterable[tuple[int, list[str]]]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for number, row in rows:
        if len(row) < 2:
            raise SourceError(f"{path}, line {number}: no class beside {row[0]!r}")
        name, label = row
        if not _is_folder_name(label):
            raise SourceError(f"{path}, line {number}: {label!r} cannot be the name of a class")
        if labels.setdefault(name, label) != label:
            raise SourceError(f"{path}, line {number}: {name!r} was {labels[name]!r} before, now {label!r}")
    return labels


def _is_folder_name(label: str) -> bool:
    """Whether results can be put into a folder called `label`, and nowhere else."""
    return label.isprintable() and not label.startswith(".") and label != "" and not set(label) & set("/\\")
