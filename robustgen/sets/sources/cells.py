"""Table cells that contain images or name image files.

A cell is bytes, a struct of bytes and path, base64 text, a data URI or a path, or a list of these. A text
of at most 64 characters that is not a path refers to the image of another row, as in tables of VLMEvalKit.
"""

import ast
import base64
import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from robustgen.pixels.imaging.decode import EXTENSIONS

_MOST_OF_REFERENCE: Final = 64
_LONGEST: Final = max(map(len, EXTENSIONS))
_DATA_URI: Final = re.compile(r"data:image/[\w.+-]+;base64,")
# In base64.
_SIGNATURES: Final = {
    "/9j/": ".jpg",
    "iVBO": ".png",
    "Qk": ".bmp",
    "UklG": ".webp",
    "SUkq": ".tif",
    "TU0A": ".tif",
}
# If a cell contains another format, the result is a PNG file.
_OTHER: Final = ".png"


class CellImage(NamedTuple):
    """An image in a cell.

    Attributes
    ----------
    data : bytes, str or None
        The encoded image, or its base64 text.
    path : str or None
        Path of its file, or of its original file.
    is_file : bool
        Whether the cell is a file name, so that the result is a file too.
    """

    data: bytes | str | None
    path: str | None = None
    is_file: bool = False

    def read(self, read_file: Callable[[str], bytes]) -> bytes:
        """Return the encoded image; raise a ValueError, or any error of `read_file`, on failure."""
        if self.data is None:
            return read_file(normalise(self.path or ""))
        return self.data if isinstance(self.data, bytes) else base64.b64decode(self.data, validate=True)

    @property
    def suffix(self) -> str:
        """Return the suffix of its file, or the usual suffix of its format."""
        if self.path and PurePosixPath(self.path).suffix.lower() in EXTENSIONS:
            return PurePosixPath(self.path).suffix
        head = self.data or ""
        head = head[:4] if isinstance(head, str) else base64.b64encode(head[:3]).decode()
        return next((suffix for mark, suffix in _SIGNATURES.items() if head.startswith(mark)), _OTHER)


class Result(NamedTuple):
    """Result for an image: its encoded file, unused if the cell names a file, and its suffix."""

    data: bytes
    suffix: str


Visit = Callable[[CellImage], Result | None]


def list_images(cell: Any) -> list[CellImage]:
    """Return the images in a cell, in order; an empty list if it is empty or refers to another row.

    Raises
    ------
    ValueError
        The cell contains something else.
    """
    found: list[CellImage] = []
    replace_images(cell, found.append)
    return found


def is_list(cell: Any) -> bool:
    """Return whether a cell contains a list of images."""
    return isinstance(cell, list) or (isinstance(cell, str) and cell.startswith("["))


def replace_images(cell: Any, visit: Visit) -> Any:
    """Return `cell` with each image replaced by the result of `visit`; None empties it."""
    if cell is None or cell in ("", b""):
        return cell
    if isinstance(cell, bytes):
        made = visit(CellImage(cell))
        return made and made.data
    if isinstance(cell, list):
        return [replace_images(each, visit) for each in cell]
    if isinstance(cell, dict):
        return _replace_in_struct(cell, visit)
    if isinstance(cell, str):
        return _replace_in_text(cell, visit)
    raise ValueError(f"{str(cell)[:40]!r} is neither bytes, base64 text nor the name of a file")


def _replace_in_struct(cell: dict[str, Any], visit: Visit) -> Any:
    if not cell.keys() & {"bytes", "path"}:
        raise ValueError(f"an object of {', '.join(map(str, cell)) or 'nothing'}, not of bytes and path")
    data, path = cell.get("bytes"), cell.get("path")
    if not data and not path:
        return cell
    made = visit(CellImage(data or None, path))
    if not made:
        return None
    content = base64.b64encode(made.data).decode() if isinstance(data, str) else made.data
    return cell | {"bytes": content} | ({"path": rename(path, made.suffix)} if path else {})


def _replace_in_text(cell: str, visit: Visit) -> Any:
    if is_list(cell):
        # VLMEvalKit writes several images of a row this way.
        try:
            listed = list(ast.literal_eval(cell))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
            raise ValueError(f"{cell[:40]!r} is not a list of images") from error
        return repr([replace_images(each, visit) or "" for each in listed])
    if cell[-_LONGEST:].lower().endswith(EXTENSIONS):
        normalise(cell)
        made = visit(CellImage(None, cell, is_file=True))
        return made and rename(cell, made.suffix)
    head = match[0] if (match := _DATA_URI.match(cell)) else ""
    if not head and len(cell) <= _MOST_OF_REFERENCE:
        return cell
    made = visit(CellImage(cell.removeprefix(head)))
    if not made:
        return None
    kind = made.suffix[1:].lower().replace("jpg", "jpeg")
    return (f"data:image/{kind};base64," if head else "") + base64.b64encode(made.data).decode()


def normalise(path: str) -> str:
    """Return `path` without empty parts; raise a ValueError if it leaves its folder."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts or "\0" in path or not parts:
        raise ValueError(f"path {path[:80]!r} leaves the folder of the images")
    return "/".join(parts)


def rename(path: str, suffix: str) -> str:
    """Return `path` with the `suffix` of a format, unless it already has one of that format."""
    own = PurePosixPath(path).suffix
    pair = {own.lower(), suffix.lower()}
    return path if len(pair) == 1 or pair == {".jpg", ".jpeg"} else f"{path.removesuffix(own)}{suffix}"
