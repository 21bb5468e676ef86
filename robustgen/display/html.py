"""Self-contained HTML pages: templates with embedded pictures, without any downloads."""

import base64
import json
import re
from functools import cache
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup
from PIL import Image

from robustgen.display.text import escape, format_signed, replace_nan
from robustgen.errors import OutputError
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.jpeg import encode_jpeg

PAGE_SUFFIXES: Final = (".html", ".htm")
"""Suffixes of pages in ``--output``."""
_MOST_LETTERS = 32
# Milliseconds of a moving picture.
_PLAYING = 2000


@cache
def _environment() -> Environment:
    folder = files("robustgen.display") / "templates"
    environment = Environment(
        loader=FunctionLoader(lambda name: (folder / name).read_text("utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["picture"] = embed_picture
    environment.filters["plain"] = escape
    environment.filters["data"] = embed_data
    environment.filters["finite"] = replace_nan
    environment.filters["breakable"] = _make_breakable
    environment.filters["signed"] = format_signed
    environment.filters["shorten"] = _shorten
    return environment


def _shorten(name: str) -> str:
    """Return a long name without its middle: names of one set mostly differ at their ends."""
    return name if len(name) <= _MOST_LETTERS else f"{name[:10]}…{name[11 - _MOST_LETTERS :]}"


def _make_breakable(name: object) -> Markup:
    """Return a file's name, escaped, with line breaks allowed after slashes but not within the suffix."""
    text = escape(name)
    ending = re.search(r"[^/]{0,4}\.[A-Za-z]\w{0,4}$", text)
    start = text[: ending.start()] if ending else text
    end = Markup('<span class="whole">{}</span>').format(ending[0]) if ending else Markup()
    return Markup("/<wbr>").join(start.split("/")) + end


def render_page(template: str, /, **values: Any) -> bytes:
    """Return the HTML page, UTF-8, of `template` in ``display/templates`` with `values`, all escaped.

    Bytes without an encoding, which file names may contain, become question marks.
    """
    return _environment().get_template(template).render(values).encode("utf-8", "replace")


def check_page_path(page: Path, *sets: str | Path) -> None:
    """Check before the work that `page` can be written.

    Raises
    ------
    OutputError
        The path is a folder, has another suffix, or is inside one of the `sets`.
    """
    if page.is_dir():
        raise OutputError(f"{page}: is a folder")
    if page.suffix.lower() not in PAGE_SUFFIXES:
        raise OutputError(f"{page}: must end in .html")
    if any(page.resolve().is_relative_to(Path(root).resolve()) for root in sets):
        raise OutputError(f"{page}: is inside the set, where robustgen verify would report it as extra")


def embed_data(content: Any) -> Markup:
    """Return `content` as JSON that is safe in a ``script`` element: no tag can begin or end in it."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def embed_picture(image: Rgb, quality: int = 80) -> Markup:
    """Return the data URI of `image`, uint8 (H, W, 3), as a JPEG file: the ``src`` of an ``img``.

    Frames, uint8 (T, H, W, 3), become an animated WebP file, which plays for about two seconds and repeats.
    """
    if image.ndim == 4:
        file, (first, *others) = BytesIO(), map(Image.fromarray, image)
        duration = _PLAYING // len(image)
        first.save(file, "WEBP", save_all=True, append_images=others, duration=duration, loop=0, quality=60)
        return Markup(f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode('ascii')}")
    data = base64.b64encode(encode_jpeg(image, quality, optimise=True)).decode("ascii")
    return Markup(f"data:image/jpeg;base64,{data}")
