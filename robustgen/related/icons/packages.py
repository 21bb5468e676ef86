"""Unpacked packages of emoji pictures: their layouts, licences and file names.

Supported layouts are npm's ``emoji-datasource-<style>`` (``img/<style>/64/<code point>.png``),
``@lobehub/fluent-emoji-3d`` (``assets/<code point>.webp``), and plain folders of ``<code point>.png``.
"""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from PIL import Image, UnidentifiedImageError

from robustgen.errors import ImageError, SourceError, raise_as
from robustgen.files.storage.host import open_regular
from robustgen.files.text_files import read_json
from robustgen.pixels.imaging.decode import reason_of
from robustgen.pixels.imaging.geometry import MOST_PIXELS

SUFFIXES = (".png", ".webp")
AS_SUPPLIED = "as supplied"
# Licences of the pictures in the README of emoji-datasource; its package.json only covers the data.
PICTURES: Final[Mapping[str, str]] = {
    "emoji-datasource-google": "Apache-2.0",
    "emoji-datasource-twitter": "CC-BY-4.0",
    "emoji-datasource-apple": "Apple Inc.; not licensed for commercial use",
    "emoji-datasource-facebook": "Facebook, Inc.; no clear licence",
}
_LAYOUTS = (
    "img/<style>/64/<code point>.png, assets/<code point>.webp, or <code point>.png in the folder itself"
)
_SELECTOR = "fe0f"
_TONES = frozenset({"1f3fb", "1f3fc", "1f3fd", "1f3fe", "1f3ff"})
_LAST_TAG = "e007f"


# --- code points ---------------------------------------------------------------------------------


def parse_emoji(name: str) -> str | None:
    """Return the emoji in `name`: lower-case code points joined by ``-``, without fe0f.

    Parameters
    ----------
    name : str
        Such as ``"2708-fe0f"``, ``"1F468_200D_1F527"`` or ``"emoji_u1f600"``.

    Returns
    -------
    str or None
        None if `name` contains no code points.
    """
    points = re.split("[-_]", name.lower().removeprefix("emoji_u"))
    if not all(re.fullmatch("[0-9a-f]{2,6}", point) for point in points):
        return None
    points = [f"{int(point, 16):04x}" for point in points]
    # Some packages omit the tag that ends the flag of a region.
    if points[-1].startswith("e00") and points[-1] != _LAST_TAG:
        points.append(_LAST_TAG)
    usable = all(int(point, 16) <= 0x10FFFF for point in points)
    return "-".join(point for point in points if point != _SELECTOR) or None if usable else None


def order(emoji: str) -> tuple[int, ...]:
    """Return its code points as numbers, by which emoji are sorted."""
    return tuple(int(point, 16) for point in emoji.split("-"))


def strip_tones(emoji: str) -> str | None:
    """Return `emoji` without its skin tones; None if persons in it have different ones."""
    points = emoji.split("-")
    if len(_TONES.intersection(points)) > 1:
        return None
    return "-".join(point for point in points if point not in _TONES) or None


# --- packages ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Style:
    """The pictures of one style.

    Attributes
    ----------
    name : str
    root : Path
        The folder that the user named.
    files : mapping
        Emoji to its picture; of several, the first in the order of code points.
    repeated : tuple of str
        File names of further pictures of the same emoji, which are skipped.
    ignored : int
        Number of pictures that are not named after code points.
    package, version : str or None
        From ``package.json``.
    declared : str or None
        Licence in ``package.json``.
    licence : str
        Licence of the pictures.
    """

    name: str
    root: Path
    files: Mapping[str, Path]
    repeated: tuple[str, ...]
    ignored: int
    package: str | None
    version: str | None
    declared: str | None
    licence: str

    def describe(self) -> dict[str, Any]:
        """Return its entry in the manifest."""
        return {
            "location": str(self.root.resolve()),
            "package": self.package,
            "version": self.version,
            "declared_licence": self.declared,
            "licence": self.licence,
            "pictures": len(self.files),
            "repeated": list(self.repeated),
            "ignored": self.ignored,
        }


def read_style(name: str, root: Path, licence: str | None = None) -> Style:
    """List the pictures below `root`.

    Parameters
    ----------
    name : str
        Name of the style.
    root : Path
        An unpacked package, or a folder of pictures.
    licence : str, optional
        Licence of the pictures, instead of that of the package.

    Raises
    ------
    SourceError
        The folder does not exist, or has none of the known layouts.
    """
    with raise_as(SourceError, str(root), OSError):
        folder, found = _pictures(root)
    if not found:
        hint = f"; is it {root / 'package'}?" if (root / "package").is_dir() else ""
        raise SourceError(f"{root} contains no emoji images in a known layout: {_LAYOUTS}{hint}")
    files: dict[str, Path] = {}
    repeated = []
    for file in sorted(found, key=_place):
        if files.setdefault(found[file], folder / file) != folder / file:
            repeated.append(file)
    package = _package(root)
    ignored = sum(Path(each).suffix.lower() in SUFFIXES for each in _entries(folder)) - len(found)
    stated = (package.get("name"), package.get("version"), package.get("license"))
    own = PICTURES.get(stated[0] or "", stated[2] or AS_SUPPLIED)
    return Style(name, root, files, tuple(repeated), ignored, *stated, licence or own)


def _place(file: str) -> tuple[tuple[int, ...], str]:
    """Return the sort key of a picture's file name: its code points including fe0f."""
    return tuple(
        int(point, 16)
        for point in re.findall("[0-9a-f]{2,6}", Path(file).stem.lower().removeprefix("emoji_u"))
    ), file


def _entries(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


def _pictures(root: Path) -> tuple[Path, dict[str, str]]:
    """Return the folder of the pictures, and their file names with the emoji they show."""
    for folder in (_datasource(root), root / "assets", root):
        if folder and folder.is_dir() and (found := _list_named_after_emoji(folder)):
            return folder, found
    return root, {} if root.is_dir() else _list_named_after_emoji(root)


def _datasource(root: Path) -> Path | None:
    """Return the pictures of 64 pixels in an emoji-datasource."""
    sizes = sorted(root.glob("img/*/64"))
    if len(sizes) > 1:
        among = ", ".join(folder.parent.name for folder in sizes)
        raise SourceError(f"{root} holds several styles ({among}); name one, such as {sizes[0]}")
    return next(iter(sizes), None)


def _list_named_after_emoji(folder: Path) -> dict[str, str]:
    stems = {file: Path(file) for file in _entries(folder) if not file.startswith(".")}
    pictures = {file: path.stem for file, path in stems.items() if path.suffix.lower() in SUFFIXES}
    emoji = {file: parse_emoji(stem) for file, stem in pictures.items()}
    return {file: each for file, each in emoji.items() if each}


def _package(root: Path) -> dict[str, Any]:
    path = root / "package.json"
    try:
        content = read_json(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise SourceError(f"{path} contains no object")
    return {key: value for key, value in content.items() if isinstance(value, str)}


# --- pictures ------------------------------------------------------------------------------------


def read_picture(path: Path, root: Path) -> Image.Image:
    """Decode a picture; of an animation, the first frame.

    Parameters
    ----------
    path : Path
    root : Path
        The folder that a link at `path` must not lead out of.

    Returns
    -------
    Pillow image of mode RGBA

    Raises
    ------
    ImageError
        The picture cannot be read; the message names the file.
    """
    try:
        if not path.resolve().is_relative_to(root.resolve()):
            raise ImageError("a link that leads out of its package")
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with open_regular(path) as file, Image.open(file, formats=("PNG", "WEBP")) as image:
                if max(image.size) ** 2 > MOST_PIXELS:
                    raise ImageError(f"too large for a square: {image.width} x {image.height} pixels")
                return image.convert("RGBA")
    except UnidentifiedImageError:
        raise ImageError(f"'{path}': neither PNG nor WebP") from None
    # On malformed bytes, Pillow's decoders raise almost any exception, even MemoryError.
    except Exception as error:
        raise ImageError(f"'{path}': {reason_of(error)}") from error
