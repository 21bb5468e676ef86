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


def make_picture(content, height, width, draws):
    """Make a picture with some content, uint8 (height, width, 3)."""
    if content == "noise":
        return draws.integers(0, 256, (height, width, 3), np.uint8)
    if content == "extremes":
        return draws.integers(0, 2, (height, width, 3)).astype(np.uint8) * np.uint8(255)
    if content == "flat":
        return np.broadcast_to(draws.integers(0, 256, 3, np.uint8), (height, width, 3)).copy()
    return ramps(height, width) if content == "ramps" else waves(height, width)


CONTENTS = ("noise", "extremes", "flat", "ramps", "waves")


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("start", range(8))
def test_every_width_height_and_quality_gives_what_files_give(start, library):
    draws = np.random.default_rng(start)
    for number in range(80):
        # Each width and each height from 1 to 80 occurs in every part; the qualities go round.
        height, width = number + 1, (number * (2 * start + 3)) % 80 + 1
        image = make_picture(CONTENTS[(number + start) % 5], height, width, draws)
        image = image[:, :, 0].copy() if (number + start) % 3 == 0 else image
        quality, subsampling = (number * 8 + start) % 100 + 1, ("4:2:0", "4:4:4")[number % 4 == 0]
        assert equals_files(image, quality, library, subsampling), (image.shape, quality, subsampling)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("shape", [(224, 224), (299, 299), (81, 700), (700, 83), (431, 517)])
def test_large_images_give_what_files_give(shape, library):
    draws = np.random.default_rng(shape[0])
    for content, quality in zip(CONTENTS, (5, 10, 23, 58, 90), strict=True):
        assert equals_files(make_picture(content, *shape, draws), quality, library), (content, quality)


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


RNG = np.random.default_rng(0)


NOISE = RNG.integers(0, 256, (61, 83, 3), dtype=np.uint8)


SMOOTH = np.stack([np.add.outer(np.arange(64), np.arange(96)) + 30 * c for c in range(3)], axis=2).astype(
    np.uint8
)


IMAGES = {
    "noise": NOISE,
    "smooth": SMOOTH,
    "black": np.zeros((32, 32, 3), np.uint8),
    "tiny": NOISE[:32, :33].copy(),
}


def with_pillow(image, quality, optimise):
    buffer = BytesIO()
    Image.fromarray(image).save(buffer, "JPEG", quality=quality, optimize=optimise)
    return buffer.getvalue()


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("quality", [1, 7, 25, 58, 85, 95])
@pytest.mark.parametrize("optimise", [True, False])
def test_the_jpeg_encoder_gives_what_pillow_gives(name, quality, optimise):
    ours = encode_jpeg(IMAGES[name], quality, optimise=optimise)
    theirs = with_pillow(IMAGES[name], quality, optimise)
    decoded = np.asarray(Image.open(BytesIO(theirs)))
    assert np.array_equal(np.asarray(Image.open(BytesIO(ours))), decoded)
    assert abs(len(ours) - len(theirs)) <= 0.01 * len(theirs)


@pytest.mark.parametrize("quality", [1, 7, 85])
def test_ijg_files_hold_8_bit_tables_and_optimise_as_told(quality):
    plain, optimised = (encode_jpeg(NOISE, quality, optimise=o, library="ijg") for o in (False, True))
    assert len(optimised) < len(plain)
    with Image.open(BytesIO(plain)) as picture, Image.open(BytesIO(optimised)) as other:
        assert picture.format == "JPEG" and picture.size == (83, 61)
        assert picture.quantization == Image.open(BytesIO(with_pillow(NOISE, quality, False))).quantization
        assert np.array_equal(np.asarray(picture), np.asarray(other))
    assert not np.array_equal(round_trip(NOISE, quality, library="ijg"), round_trip(NOISE, quality))
