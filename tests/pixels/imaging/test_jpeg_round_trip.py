"""The JPEG round trip: held to what jpeglib's libjpeg 9c reads, and to what Pillow reads."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from robustgen.pixels.imaging.jpeg import encode_jpeg, read_by_ijg, round_trip

LIBRARIES = ("ijg", "turbo")


def equals_files(image, quality, library, subsampling="4:2:0"):
    """Return whether the round trip gives the pixels of a file."""
    choices = {"library": library, "subsampling": subsampling}
    data = encode_jpeg(image, quality, optimise=False, **choices)
    read = read_by_ijg(data) if library == "ijg" else np.asarray(Image.open(BytesIO(data)))
    return np.array_equal(round_trip(image, quality, **choices), read.reshape(image.shape))


def ramps(height, width):
    """Products of coordinates, modulo 256."""
    y, x, k = np.ogrid[:height, :width, :3]
    return ((7 * x + 13 * y + 29 * k + x * y * (k + 1)) % 256).astype(np.uint8)


def waves(height, width):
    y, x, k = np.ogrid[:height, :width, :3]
    return np.abs((3 * x + 5 * y + 64 * k) % 510 - 255).astype(np.uint8)


def make_picture(kind, height, width, draws):
    """Make one of several kinds of picture, uint8 (height, width, 3)."""
    if kind == "noise":
        return draws.integers(0, 256, (height, width, 3), np.uint8)
    if kind == "extremes":
        return draws.integers(0, 2, (height, width, 3)).astype(np.uint8) * np.uint8(255)
    if kind == "flat":
        return np.broadcast_to(draws.integers(0, 256, 3, np.uint8), (height, width, 3)).copy()
    return ramps(height, width) if kind == "ramps" else waves(height, width)


KINDS = ("noise", "extremes", "flat", "ramps", "waves")


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("start", range(8))
def test_every_width_height_and_quality_gives_what_files_give(start, library):
    draws = np.random.default_rng(start)
    for number in range(80):
        # Each width and each height from 1 to 80 occurs in every part; the qualities go round.
        height, width = number + 1, (number * (2 * start + 3)) % 80 + 1
        image = make_picture(KINDS[(number + start) % 5], height, width, draws)
        image = image[:, :, 0].copy() if (number + start) % 3 == 0 else image
        quality, subsampling = (number * 8 + start) % 100 + 1, ("4:2:0", "4:4:4")[number % 4 == 0]
        assert equals_files(image, quality, library, subsampling), (image.shape, quality, subsampling)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("shape", [(224, 224), (299, 299), (81, 700), (700, 83), (431, 517)])
def test_large_images_give_what_files_give(shape, library):
    draws = np.random.default_rng(shape[0])
    for kind, quality in zip(KINDS, (5, 10, 23, 58, 90), strict=True):
        assert equals_files(make_picture(kind, *shape, draws), quality, library), (kind, quality)


# Found by integer programming: with it, values leave the range of libjpeg's limiter.
WRAPPING = """
255 49 209 231 196 0 232 128 1 146 0 238 164 218 238 29 255 219 204 222 173 25 255 22 134 0 5 13 3 255 162 20
0 201 164 56 255 86 59 241 209 197 3 63 7 3 255 230 250 0 7 83 177 56 0 165 37 6 255 74 203 0 187 51
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_values_beyond_the_limits_wrap_around_or_are_cut(library):
    block = np.array(WRAPPING.split(), np.uint8).reshape(8, 8)
    assert equals_files(block, 10, library)
    # Signs of one row of the inverse transform: the largest sums, for luma and for chroma.
    draws = np.random.default_rng(5)
    for quality in (1, 2, 4, 7, 10, 13):
        for side in (8, 16):
            basis = np.cos((2 * np.arange(side) + 1)[:, None] * np.arange(8) * np.pi / (2 * side))
            for _ in range(6):
                signs = draws.choice([-1, 1], (8, 8))
                grey = ((basis @ signs @ basis.T > 0) * 255).astype(np.uint8)
                colour = np.stack([grey, 255 - grey, grey.T], axis=2)
                assert equals_files(grey, quality, library) and equals_files(colour, quality, library)
