"""The page on which a human keeps or drops each image of a shortlist; self-contained and offline."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from robustgen.display import html
from robustgen.errors import ConfigError
from robustgen.files.set_files import WrittenFile
from robustgen.files.storage import Store
from robustgen.files.storage.host import read_regular
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.geometry import resize

PER_PAGE: Final = 1000
"""Images per page, about 15 MB."""
SIDE: Final = 256
"""Longer side of a picture, in pixels."""


def page_name(number: int) -> str:
    """Return the file name of the page `number`, from 1."""
    return "review.html" if number == 1 else f"review-{number}.html"


def write_pages(
    output: Store,
    title: str,
    digest: str,
    entries: Sequence[Mapping[str, Any]],
    load: Callable[[str], Rgb],
    words: Mapping[str, str],
) -> list[WrittenFile]:
    """Write the review pages, one for every thousand images; remove those of an earlier run.

    Parameters
    ----------
    output : Store
    title : str
        Title of the set.
    digest : str
        Digest of the shortlist, under which a browser stores decisions.
    entries : sequence of mapping
        Entries of the shortlist.
    load : callable
        Returns the pixels, uint8 (H, W, 3), of a key.
    words : mapping of str to str
        Class folder to its name.

    Returns
    -------
    list of WrittenFile

    Raises
    ------
    ImageError
        An image can no longer be read.
    """
    count, written = max(1, -(-len(entries) // PER_PAGE)), list[WrittenFile]()
    for number in range(1, count + 1):
        first = (number - 1) * PER_PAGE
        page = html.render_page(
            "review.html",
            title=title,
            digest=digest,
            entries=entries[first : first + PER_PAGE],
            first=first,
            total=len(entries),
            number=number,
            names=[page_name(each) for each in range(1, count + 1)],
            thumbnail=lambda entry: html.embed_picture(thumbnail(load(entry["key"]))),
            words=words,
        )
        output.put(page_name(number), page)
        written.append(WrittenFile(page_name(number), len(page), hashlib.sha256(page).hexdigest()))
    wanted = {page.path for page in written}
    for path in [entry.path for entry in output.list()]:
        if path not in wanted and re.fullmatch(r"review-\d+\.html", path):
            output.delete(path)
    return written


def thumbnail(image: Rgb) -> Rgb:
    """Return `image`, uint8 (H, W, 3), with its longer side at most `SIDE`."""
    height, width = image.shape[:2]
    share = min(1, SIDE / max(height, width))
    return resize(image, max(1, round(width * share)), max(1, round(height * share)))


def read_words(paths: Sequence[Path]) -> dict[str, str]:
    """Return the names of class folders in the files.

    Parameters
    ----------
    paths : sequence of Path
        Lines ``n01440764 tench``; others are ignored. Later files override earlier ones.

    Raises
    ------
    ConfigError
        A file cannot be read.
    """
    found: dict[str, str] = {}
    for text in map(read_text, paths):
        found |= re.findall(r"^(n\d{8})[ \t]+(\S.*?)[ \t\r]*$", text, re.MULTILINE)
    return found


def read_text(path: Path) -> str:
    """Return the text of a file of UTF-8; raise a ConfigError that names it."""
    try:
        return read_regular(path).decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8") from error
