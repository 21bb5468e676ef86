"""Pictures: labelled contact sheets, as arrays, and pictures in the terminal.

`draw_sheet` puts labels at the left and above, `draw_grid` a name below each picture; `encode_picture`
returns a file's bytes.
"""

import base64
import math
import re
import shutil
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from io import BytesIO
from itertools import groupby
from typing import BinaryIO, Literal, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from robustgen.errors import ArgumentError
from robustgen.pixels.imaging.arrays import Rgb

CELL = 112
FRAMES_DRAWN = 6
SMALLEST_CELL, LARGEST_CELL = 16, 1024
PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".pdf")

_Colour = tuple[int, int, int]
PAPER, INK, SOFT, RULE, HAIR = ((grey, grey, grey) for grey in (255, 30, 105, 190, 222))
# An elongated picture gets the area of a square cell, but at most this length in cells.
_LONGEST = 3
# Pixels per inch in a PDF.
_RESOLUTION = 150
# Letters are drawn larger by this factor and then reduced.
_FINE = 4


class SheetRow(NamedTuple):
    """One row of a sheet.

    Attributes
    ----------
    label : str
        Text at its left; "" for none.
    pictures : sequence of uint8 ndarray of shape (H, W, 3), or None
        One per column, drawn unchanged (see `fit_picture`); None leaves a cell empty.
    captions : sequence of str
        Text below each picture; default none.
    group : str
        Name of consecutive rows that are drawn closer together, with the name beside them.
    """

    label: str
    pictures: Sequence[Rgb | None]
    captions: Sequence[str] = ()
    group: str = ""


def draw_sheet(
    rows: Sequence[SheetRow], columns: Sequence[str] = (), *, cell: int = CELL, note: str = ""
) -> Rgb:
    """Draw rows of pictures, one below the other, on white.

    Parameters
    ----------
    rows : sequence of SheetRow
    columns : sequence of str
        Text above the columns; default none.
    cell : int
        Size that the pictures were fitted to, 16 to 1024 pixels; letters and gaps are in proportion.
    note : str
        A line at the bottom; if it is too long, dots replace its beginning.

    Returns
    -------
    uint8 ndarray of shape (H, W, 3)

    Raises
    ------
    ArgumentError
        There is no picture, or `cell` is out of range.
    """
    check_cell(cell)
    if not any(picture is not None for row in rows for picture in row.pictures):
        raise ArgumentError("a sheet needs at least one picture")
    return np.asarray(_Layout(tuple(rows), tuple(columns), cell, note).drawn())


def check_cell(cell: int) -> None:
    """Raise an ArgumentError unless `cell` is a valid size."""
    if not SMALLEST_CELL <= cell <= LARGEST_CELL:
        raise ArgumentError(f"cell must be from {SMALLEST_CELL} to {LARGEST_CELL} pixels, not {cell}")


def draw_grid(
    pictures: Iterable[tuple[str, Rgb]], *, across: int = 5, cell: int = CELL, note: str = ""
) -> Rgb:
    """Draw `pictures`, pairs of name and uint8 (H, W, 3), `across` in a row, each above its name."""
    named = list(pictures)
    rows = [named[start : start + across] for start in range(0, len(named), across)]
    return draw_sheet(
        [SheetRow("", [p for _, p in row], [n for n, _ in row]) for row in rows], cell=cell, note=note
    )


def fit_picture(picture: Rgb, cell: int) -> Rgb:
    """Return `picture` at about the area of `cell` x `cell` pixels.

    A large picture is reduced (Lanczos); a small one is enlarged by a whole factor, pixel for pixel.
    """
    height, width = picture.shape[:2]
    factor = min(cell / math.sqrt(width * height), _LONGEST * cell / max(width, height))
    if factor < 1:
        size = max(1, round(width * factor)), max(1, round(height * factor))
        return np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.LANCZOS))
    times = int(factor + 0.5)
    return picture.repeat(times, axis=0).repeat(times, axis=1)


def encode_picture(picture: Rgb, suffix: str, quality: int = 90, more: Sequence[Rgb] = ()) -> bytes:
    """Return the file of `picture`: PNG, or JPEG, WebP or PDF of `quality` with full colour resolution.

    A PDF has further pages for the pictures in `more`, and its pages are slides of 16:9.

    Raises
    ------
    ArgumentError
        `suffix` is not in `PICTURE_SUFFIXES`, or the picture is too large for the format.
    """
    fine: dict[str, object] = {"quality": quality, "subsampling": 0}
    options: dict[str, dict[str, object]] = {
        ".png": {"format": "PNG"},
        ".jpg": {"format": "JPEG", **fine, "optimize": True, "progressive": True},
        ".webp": {"format": "WEBP", "quality": quality},
        ".pdf": {
            **{"format": "PDF", **fine, "resolution": _RESOLUTION},
            "save_all": True,
            "append_images": [_put_on_slide(each) for each in more],
            # The same sheet gives the same bytes at any time.
            "creationDate": None,
            "modDate": None,
        },
    }
    options[".jpeg"] = options[".jpg"]
    if suffix not in options:
        raise ArgumentError(f"must end in {', '.join(PICTURE_SUFFIXES)}, not {suffix!r}")
    buffer = BytesIO()
    try:
        shown = _put_on_slide(picture) if suffix == ".pdf" else Image.fromarray(picture)
        shown.save(buffer, **options[suffix])  # type: ignore[arg-type]
    except (OSError, ValueError) as error:
        height, width = picture.shape[:2]
        raise ArgumentError(f"{width} x {height} pixels cannot be stored as {suffix}: {error}") from error
    return buffer.getvalue()


def _put_on_slide(picture: Rgb) -> Image.Image:
    height, width = picture.shape[:2]
    size = max(width, -(-16 * height // 9)), max(height, -(-9 * width // 16))
    slide = Image.new("RGB", size, PAPER)
    slide.paste(Image.fromarray(picture), ((size[0] - width) // 2, (size[1] - height) // 2))
    return slide


# --- text ----------------------------------------------------------------------------------------


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise ArgumentError("Pillow was built without FreeType, which draws the labels")
    return font


@cache
def _width(text: str, size: int) -> int:
    return math.ceil(_font(_FINE * size).getlength(text) / _FINE)


def _mask(text: str, size: int) -> Image.Image:
    """Return the letters of `text`, white on black: drawn large and reduced, for better spacing."""
    font = _font(_FINE * size)
    height = math.ceil(sum(font.getmetrics()) / _FINE)
    large = Image.new("L", (_FINE * _width(text, size), _FINE * height))
    ImageDraw.Draw(large).text((0, 0), text, fill=255, font=font)
    return large.reduce(_FINE)


@cache
def _has_glyph(character: str) -> bool:
    """Return whether the font, which has few letters beyond English, has this one."""
    missing = bytes(_font(16).getmask("\uffff"))
    return character.isprintable() and (character == " " or bytes(_font(16).getmask(character)) != missing)


def replace_undrawable(text: str) -> str:
    """Return `text` with letters missing in the font replaced by unaccented ones or question marks."""
    plain = "".join(c if _has_glyph(c) else unicodedata.normalize("NFKD", c) for c in text)
    return "".join(c if _has_glyph(c) else "?" for c in plain if not unicodedata.combining(c))


def _shorten(text: str, size: int, room: int) -> str:
    """Return `text`, with dots in place of its beginning if it is wider than `room`."""
    if _width(text, size) <= room:
        return text
    return next((cut for n in range(1, len(text)) if _width(cut := f"…{text[n:]}", size) <= room), "")


# --- layout --------------------------------------------------------------------------------------


class _Box(NamedTuple):
    """A row on the sheet: positions of its pictures, and heights of pictures and captions."""

    top: int
    pictures: int
    captions: int

    @property
    def bottom(self) -> int:
        return self.top + self.pictures + self.captions


@dataclass(frozen=True)
class _Layout:
    """Layout of a sheet in pixels, and its drawing."""

    rows: tuple[SheetRow, ...]
    columns: tuple[str, ...]
    cell: int
    note: str

    @property
    def text(self) -> int:
        return min(max(round(self.cell / 8), 11), 16)

    @property
    def line(self) -> int:
        return round(1.5 * self.text)

    @property
    def gap(self) -> int:
        return max(2, round(self.cell / 28))

    @cached_property
    def labels(self) -> list[str]:
        return [replace_undrawable(row.label) for row in self.rows]

    @cached_property
    def heads(self) -> list[str]:
        return [replace_undrawable(head) for head in self.columns]

    @cached_property
    def captions(self) -> list[list[str]]:
        return [[replace_undrawable(caption) for caption in row.captions] for row in self.rows]

    @cached_property
    def column(self) -> int:
        """Return the width of all columns: that of the widest picture, heading or caption."""
        pictures: list[int] = [p.shape[1] for row in self.rows for p in row.pictures if p is not None]
        texts = [*self.heads, *(caption for row in self.captions for caption in row)]
        return max([*pictures, *(_width(text, self.text) + self.text // 2 for text in texts)])

    @cached_property
    def across(self) -> int:
        return max(len(self.columns), max(len(row.pictures) for row in self.rows))

    @cached_property
    def left(self) -> int:
        """Return the position of the first picture."""
        labels = max(_width(label, self.text) for label in self.labels)
        return self.text + self.groups_width + (labels + self.text if labels else 0)

    @property
    def groups_width(self) -> int:
        return self.line + self.text // 2 if any(row.group for row in self.rows) else 0

    @cached_property
    def boxes(self) -> list[_Box]:
        boxes: list[_Box] = []
        top = self.text + (self.line if self.heads else 0)
        numbers = iter(range(len(self.rows)))
        for group, members in groupby(self.rows, key=lambda row: row.group):
            start = top
            for _ in members:
                number = next(numbers)
                heights = [p.shape[0] for p in self.rows[number].pictures if p is not None]
                # A larger gap below a caption than above it shows which row it belongs to.
                captions = self.line + 3 * self.gap if any(self.captions[number]) else 0
                height = max([*heights, self.line if self.labels[number] else 0])
                boxes.append(_Box(top, height, captions))
                top = boxes[-1].bottom + self.gap
            # The name of a group of few and low rows needs space as well.
            top = max(top, start + _width(replace_undrawable(group), self.text)) + (
                2 * self.gap if group else 0
            )
        return boxes

    @cached_property
    def groups(self) -> list[tuple[str, int, int]]:
        found = []
        for group, members in groupby(
            zip(self.rows, self.boxes, strict=True), key=lambda pair: pair[0].group
        ):
            boxes = [box for _, box in members]
            low = boxes[0].top + _width(replace_undrawable(group), self.text)
            found.append((replace_undrawable(group), boxes[0].top, max(boxes[-1].bottom, low)))
        return found

    @property
    def size(self) -> tuple[int, int]:
        width = self.left + self.across * (self.column + self.gap) - self.gap + self.text
        bottom = max(self.boxes[-1].bottom, self.groups[-1][2] if self.groups_width else 0)
        return width, bottom + (self.line if self.note else 0) + self.text

    def middle(self, column: int) -> int:
        return self.left + column * (self.column + self.gap) + self.column // 2

    def drawn(self) -> Image.Image:
        canvas = Image.new("RGB", self.size, PAPER)
        draw = ImageDraw.Draw(canvas)
        for box, row in zip(self.boxes, self.rows, strict=True):
            for i, picture in enumerate(row.pictures):
                if picture is not None:
                    height, width = picture.shape[:2]
                    x, y = self.middle(i) - width // 2, box.top + (box.pictures - height) // 2
                    canvas.paste(Image.fromarray(picture), (x, y))
                    # A thin line separates snow from the paper.
                    draw.rectangle((x - 1, y - 1, x + width, y + height), outline=HAIR)
        for x, y, text, place, colour in self._place_texts():
            self._write(canvas, x, y, text, place, colour)
        for name, top, bottom in self.groups:
            if name:
                self._draw_group(canvas, name, top, bottom)
        return canvas

    def _place_texts(self) -> Iterator[tuple[int, int, str, float, _Colour]]:
        """Yield each text with its middle height and the x of its beginning (0), middle (0.5) or end (1)."""
        half = self.line // 2
        for i, head in enumerate(self.heads):
            yield self.middle(i), self.boxes[0].top - half, head, 0.5, INK
        for box, label, captions in zip(self.boxes, self.labels, self.captions, strict=True):
            yield self.left - self.text, box.top + box.pictures // 2, label, 1, INK
            for i, caption in enumerate(captions):
                yield self.middle(i), box.top + box.pictures + round(0.7 * self.text), caption, 0.5, INK
        width, height = self.size
        note = _shorten(replace_undrawable(self.note), self.text, width - 2 * self.text)
        yield self.text, height - self.text // 2 - half, note, 0, SOFT

    def _write(self, canvas: Image.Image, x: int, y: int, text: str, place: float, colour: _Colour) -> None:
        if text:
            mask = _mask(text, self.text)
            canvas.paste(colour, (x - round(place * mask.width), y - mask.height // 2), mask)

    def _draw_group(self, canvas: Image.Image, name: str, top: int, bottom: int) -> None:
        """Write `name` vertically along a line."""
        mask = _mask(name, self.text).transpose(Image.Transpose.ROTATE_90)
        x = self.text + self.line
        canvas.paste(SOFT, (x - self.text // 3 - mask.width, (top + bottom - mask.height) // 2), mask)
        ImageDraw.Draw(canvas).line([(x, top), (x, bottom - 1)], fill=RULE)


# --- pictures in the terminal, by kitty's graphics protocol or as sixels ---------------------------

# Only environment variables tell what the terminal supports. The terminal is not queried: some never answer,
# and a late answer would be typed into the next command.

Protocol = Literal["kitty", "sixel"]

_KITTY_TERMS = ("xterm-kitty", "xterm-ghostty")
_SIXEL_TERMS = ("foot", "mlterm", "yaft", "contour", "xterm-sixel")
_KITTY_PROGRAMS = ("kitty", "ghostty", "WezTerm")
_SIXEL_PROGRAMS = ("iTerm.app", "mintty", "contour")
# Longer pieces violate kitty's protocol.
_PIECE = 4096
_COLOURS = 128
_CELL_WIDTH = 8


def detect_protocol(environment: Mapping[str, str]) -> Protocol | None:
    """Return the picture protocol of the terminal with these environment variables; None if it has none.

    tmux and screen do not forward pictures, whatever terminal they run in.
    """
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    if term.startswith(("tmux", "screen", "dumb")) or environment.keys() & {"TMUX", "STY"}:
        return None
    if program in _SIXEL_PROGRAMS:
        return "sixel"
    # Another terminal, started from kitty, inherits its number but sets its own name.
    is_kitty = term in _KITTY_TERMS or ("KITTY_WINDOW_ID" in environment and not program)
    if is_kitty or program in _KITTY_PROGRAMS:
        return "kitty"
    return "sixel" if term.startswith(_SIXEL_TERMS) else None


def show_picture(picture: Rgb, stream: BinaryIO, environment: Mapping[str, str]) -> bool:
    """Show `picture`, uint8 (H, W, 3), in the terminal behind `stream`, no wider than its window.

    Returns
    -------
    bool
        Whether it was shown: `stream` must be a terminal that supports pictures.
    """
    how = detect_protocol(environment) if stream.isatty() else None
    if how is None:
        return False
    height, width = picture.shape[:2]
    # Python 3.10 takes 0 from a terminal that does not know.
    room = (shutil.get_terminal_size().columns or 80) * _CELL_WIDTH
    if width > room:
        size = room, max(1, round(height * room / width))
        picture = np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.LANCZOS))
    stream.write((encode_kitty if how == "kitty" else encode_sixel)(picture) + b"\n")
    stream.flush()
    return True


def encode_kitty(picture: Rgb) -> bytes:
    """Return `picture` in kitty's graphics protocol: a PNG file in pieces, with replies suppressed."""
    data = base64.standard_b64encode(encode_picture(picture, ".png"))
    pieces = [data[start : start + _PIECE] for start in range(0, len(data), _PIECE)]
    heads = [b"a=T,f=100,q=2,m=1"] + [b"m=1"] * (len(pieces) - 1)
    heads[-1] = heads[-1].replace(b"m=1", b"m=0")
    return b"".join(b"\x1b_G%s;%s\x1b\\" % pair for pair in zip(heads, pieces, strict=True))


def encode_sixel(picture: Rgb) -> bytes:
    """Return `picture` as sixels of at most 128 colours."""
    height, width = picture.shape[:2]
    reduced = Image.fromarray(picture).quantize(_COLOURS, dither=Image.Dither.NONE)
    numbers, palette = np.asarray(reduced), np.reshape(reduced.getpalette() or [], (-1, 3))
    colours = b"".join(b"#%d;2;%d;%d;%d" % (i, *colour) for i, colour in enumerate(palette * 100 // 255))
    bands = b"-".join(b"$".join(_band(numbers[top : top + 6])) for top in range(0, height, 6))
    return b'\x1bP0;1q"1;1;%d;%d%s%s\x1b\\' % (width, height, colours, bands)


def _band(rows: Rgb) -> Iterator[bytes]:
    """Yield up to six rows of colour numbers: for each colour, one character per column marks its pixels."""
    bits = (1 << np.arange(len(rows)))[:, None]
    for colour in np.unique(rows):
        columns = ((rows == colour) * bits).sum(axis=0) + ord("?")
        text = columns.astype(np.uint8).tobytes().rstrip(b"?")
        runs = re.sub(rb"(.)\1{3,}", lambda run: b"!%d%s" % (len(run[0]), run[1]), text, flags=re.DOTALL)
        yield b"#%d%s" % (colour, runs)
