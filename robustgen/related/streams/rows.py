"""The lines of a stream file: JSON, one line for each image; lines of CCC are accessible by number."""

import json
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from robustgen.errors import ArgumentError
from robustgen.files.text_files import parse_json
from robustgen.pixels.benchmarks.corruptions import FAMILIES
from robustgen.related.streams.ccc import CccRun, CccStep, CropGeometry, StreamCell, draw_geometry
from robustgen.sets.sources.base import Items, map_keys

# Rows for which the sizes of images are asked for at once.
_ROWS_AHEAD: Final = 1024

# json.dumps would create a new encoder for each of millions of rows.
_ENCODER = json.JSONEncoder(ensure_ascii=False)


class StreamRow(NamedTuple):
    """One image of a stream.

    Attributes
    ----------
    key : str
        Key of the source image.
    corruption : str
    severity : float
    label : int
        Class of the image.
    visit : int
        Number of the pass through the corruptions, from 1.
    domain : int
        Number of this corruption and severity among those of the stream, from 0.
    reset : bool
        Whether the model should be reset before this image; written only if true.
    edition : str
        Edition of the stream; written only in the first row, if given.
    """

    key: str
    corruption: str
    severity: float
    label: int
    visit: int = 1
    domain: int = 0
    reset: bool = False
    edition: str = ""


def format_row(row: StreamRow) -> str:
    """Return the line of `row`, without a line break."""
    content = row._asdict()
    for name in ("reset", "edition"):
        if not content[name]:
            del content[name]
    return _ENCODER.encode(content)


def read_rows(path: Path) -> Iterator[StreamRow]:
    """Yield the rows of the file at `path`.

    Raises
    ------
    ArgumentError
        The file cannot be read, or a line is not a row; the message names file and line.
    """
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                yield _parse(StreamRow, line, f"{path}, line {number}")
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{path}: not UTF-8") from error


def _parse(kind: Any, line: str | bytes, place: str) -> Any:
    try:
        content = parse_json(line)
    except ValueError as error:
        raise ArgumentError(f"{place}: not JSON") from error
    optional = kind._field_defaults
    needed = [name for name in kind._fields if name not in optional]
    if not isinstance(content, dict) or not {*needed} <= content.keys() <= {*kind._fields}:
        more = f"; may contain {', '.join(optional)}" if optional else ""
        raise ArgumentError(f"{place}: must contain {', '.join(needed)}{more}, and nothing else")
    if wrong := [name for name, value in content.items() if not _CHECKS[name](value)]:
        raise ArgumentError(f"{place}: {wrong[0]} cannot be {content[wrong[0]]!r}")
    return kind(**content)


# Lines that are read together: of millions, only the positions of some are kept in memory.
_BLOCK: Final = 1000


class CccRow(NamedTuple):
    """One image of a run of CCC.

    Attributes
    ----------
    key : str
        Key of the source image.
    n1, n2 : str
        The corruptions.
    s1, s2 : float
        Their severities, 0 to 5.
    flip : bool
    box : sequence of int
        Left, upper, right and lower side of the crop, in the source image.
    label : int
    seed : sequence of int
        Seed of flip, crop and noise.
    """

    key: str
    n1: str
    s1: float
    n2: str
    s2: float
    flip: bool
    box: Sequence[int]
    label: int
    seed: Sequence[int]

    @property
    def geometry(self) -> CropGeometry:
        """Return the part of the source image to show."""
        left, upper, right, lower = self.box
        return CropGeometry(self.flip, (left, upper, right, lower))

    @property
    def cell(self) -> StreamCell:
        """Return both corruptions, with their severities."""
        return StreamCell(self.n1, self.s1, self.n2, self.s2)

    def step(self, image: int) -> CccStep:
        """Return the step number `index`, which shows this image."""
        return CccStep(image, self.cell, tuple(self.seed))


def draw_rows(run: CccRun, source: Items[Any], keys: Sequence[str]) -> Iterator[CccRow]:
    """Yield the rows of a run over the images `keys`.

    Raises
    ------
    ImageError
        The size of an image cannot be read.
    """
    sizes: dict[str, tuple[int, int]] = {}
    for start in range(0, len(run), _ROWS_AHEAD):
        steps = [run[index] for index in range(start, min(start + _ROWS_AHEAD, len(run)))]
        new = [*dict.fromkeys(key for step in steps if (key := keys[step.image]) not in sizes)]
        sizes |= zip(new, map_keys(source.location, source.dimensions, new), strict=True)
        for step in steps:
            key = keys[step.image]
            geometry, _ = draw_geometry(step, *sizes[key])
            yield CccRow(key, *step.cell, *geometry, source.label(key), step.seed)


def format_ccc_row(row: CccRow) -> str:
    """Return the line of `row`, without a line break."""
    return _ENCODER.encode(row._asdict())


def holds_ccc(path: Path) -> bool:
    """Return whether the file at `path` is a readable CCC stream."""
    try:
        with path.open("rb") as file:
            content = parse_json(file.readline(1 << 16))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and {"n1", "n2"} <= content.keys()


class CccFile:
    """The rows of a CCC stream file. Memory contains a few of them, and the positions of every thousandth.

    Attributes
    ----------
    name : str
        Name of the file in messages.

    Raises
    ------
    ArgumentError
        The file cannot be read; or, on access, a row is invalid. The message names file and line.
    """

    def __init__(self, path: Path) -> None:
        self._path, self.name = path, str(path)
        self._places, self._count = array("q"), 0
        self._block: tuple[int, list[bytes]] = (-1, [])
        offset = 0
        try:
            with path.open("rb") as file:
                for line in file:
                    if self._count % _BLOCK == 0:
                        self._places.append(offset)
                    self._count += 1
                    offset += len(line)
        except OSError as error:
            raise ArgumentError(f"{path}: cannot be read: {error.strerror}") from error
        self._places.append(offset)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> CccRow:
        number = range(self._count)[index]
        wanted, row = divmod(number, _BLOCK)
        block, lines = self._block
        if block != wanted:
            start, stop = self._places[wanted : wanted + 2]
            with self._path.open("rb") as file:
                file.seek(start)
                lines = file.read(stop - start).split(b"\n")
            self._block = wanted, lines
        found: CccRow = _parse(CccRow, lines[row], f"{self.name}, line {number + 1}")
        return found

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_block": (-1, [])}


def _is_whole(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_corruption(value: Any) -> bool:
    return isinstance(value, str) and FAMILIES["ccc"].find(f"ccc:{value}") is not None


def _is_severity(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 5


def _are_whole(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(map(_is_whole, value))


_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("key", "corruption", "edition"), lambda value: isinstance(value, str) and value != ""),
    **dict.fromkeys(("label", "visit", "domain"), lambda value: type(value) is int),
    **dict.fromkeys(("reset", "flip"), lambda value: isinstance(value, bool)),
    "severity": lambda value: type(value) in (int, float),
    "n1": _is_corruption,
    "s1": _is_severity,
    "n2": _is_corruption,
    "s2": _is_severity,
    "box": lambda value: _are_whole(value) and len(value) == 4,
    "seed": _are_whole,
}
