"""Pictures in the terminal, by kitty's graphics protocol or as sixels.

Only environment variables tell what the terminal supports. The terminal is not queried: some never answer,
and a late answer would be typed into the next command.
"""

import base64
import re
import shutil
from collections.abc import Iterator, Mapping
from typing import BinaryIO, Literal

import numpy as np
from PIL import Image

from robustgen.display.sheets import encode_picture
from robustgen.pixels.imaging.arrays import Rgb

Protocol = Literal["kitty", "sixel"]

_KITTY_TERMS = ("xterm-kitty", "xterm-ghostty")
_SIXEL_TERMS = ("foot", "mlterm", "yaft", "contour", "xterm-sixel")
_PROGRAMS: dict[str, Protocol] = {
    "kitty": "kitty",
    "ghostty": "kitty",
    "WezTerm": "kitty",
    "iTerm.app": "sixel",
    "mintty": "sixel",
    "contour": "sixel",
}
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
    if program in _PROGRAMS:
        return _PROGRAMS[program]
    # Another terminal, started from kitty, inherits its number but sets its own name.
    if term in _KITTY_TERMS or ("KITTY_WINDOW_ID" in environment and not program):
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
    small = _fit_width(picture, shutil.get_terminal_size().columns * _CELL_WIDTH)
    stream.write((encode_kitty if how == "kitty" else encode_sixel)(small) + b"\n")
    stream.flush()
    return True


def _fit_width(picture: Rgb, width: int) -> Rgb:
    height, own = picture.shape[:2]
    if own <= width:
        return picture
    size = width, max(1, round(height * width / own))
    return np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.LANCZOS))


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
