"""Several files named at once: ``val-{000000..000063}.tar``, ``data/validation-*.parquet``, a folder."""

import glob
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from robustgen.errors import SourceError

_MOST_FILES = 100_000


def is_pattern(path: Path) -> bool:
    """Whether `path` stands for several files, rather than being the name of one."""
    return bool(re.search(r"[*?\[{]", path.name)) and not path.exists()


def expand_pattern(path: Path, wanted: Callable[[str], bool]) -> list[Path]:
    """Find the files that `path` stands for, sorted, each once.

    Parameters
    ----------
    path : Path
        A file, a folder, or a pattern with braces as in a shell, ``*``, ``?`` and ``[...]``.
    wanted : callable
        Whether a file of this name in the folder is taken.

    Raises
    ------
    SourceError
        There are none, or too many.
    """
    if path.is_dir():
        found = [entry for entry in path.iterdir() if wanted(entry.name) and entry.name[0] != "."]
    elif is_pattern(path):
        names = list(itertools.islice(_expand_braces(path.name), _MOST_FILES + 1))
        found = [file for name in names for file in _expand_stars(path.parent, name)]
    else:
        found = [path]
    if not found or len(found) > _MOST_FILES:
        raise SourceError(f"{path}: {'stands for no file' if not found else 'stands for too many files'}")
    return sorted({*found})


def _expand_braces(text: str) -> Iterator[str]:
    braces = re.search(r"\{([^{}]*)\}", text)
    if not braces:
        yield text
        return
    for choice in _choices(braces[1]):
        yield from _expand_braces(f"{text[: braces.start()]}{choice}{text[braces.end() :]}")


def _choices(inside: str) -> Iterator[str]:
    span = re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})", inside)
    if not span:
        yield from inside.split(",")
        return
    width = len(span[1]) if span[1].startswith("0") else 0
    for number in range(int(span[1]), int(span[2]) + 1):
        yield f"{number:0{width}d}"


def _expand_stars(folder: Path, name: str) -> list[Path]:
    if not re.search(r"[*?\[]", name):
        return [folder / name]
    return sorted(Path(found) for found in glob.glob(f"{glob.escape(str(folder))}/{name}"))  # noqa: PTH207
