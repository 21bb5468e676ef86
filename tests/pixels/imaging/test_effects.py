"""Ingredients and whole corruptions equal what the libraries of the published scripts give."""

import hashlib
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from skimage.color import hsv2rgb, rgb2hsv

from robustgen import CORRUPTIONS, corrupt
from robustgen.errors import ImageError, MissingDependencyError
from robustgen.pixels.benchmarks.corruptions.blur import ZoomBlur
from robustgen.pixels.imaging import blur
from robustgen.pixels.imaging.arrays import to_uint8, unit
from robustgen.pixels.imaging.blur import (
    average_zooms,
    blur_along_line,
    enlarge,
    gaussian,
    gaussian_bytes,
    zoom_crop,
)
from robustgen.pixels.imaging.colour import Hsv, raise_value
from robustgen.pixels.imaging.geometry import resize_by_box
from robustgen.pixels.imaging.third_party import FROST_FILES
from robustgen.pixels.imaging.warps import displace, sample_affine, smooth_fields
from robustgen.pixels.imaging.weather_effects import (
    add_rain,
    draw_plasma,
    draw_rain,
    frost_crop,
    frost_photograph,
)
from tests import reference
from tests.golden.outputs import DESCRIBED
from tests.helpers import photo

# --- whole corruptions against their slow transcription ------------------------------------------


def split_image():
    """One half black, one half white, a grey stripe and a single red pixel."""
    image = np.zeros((45, 52, 3), np.uint8)
    image[:, 26:] = 255
    image[20:23] = 77
    image[5, 5] = (255, 0, 0)
    return image


IMAGES = {
    "wide": photo(33, 70),
    "tall": photo(61, 40, seed=1),
    "extremes": split_image(),
    "dark": photo(48, 48, seed=2) // 32,
    "black": np.zeros((40, 44, 3), np.uint8),
    "white": np.full((44, 40, 3), 255, np.uint8),
    "grey": np.repeat(photo(50, 37, seed=3)[:, :, :1], 3, axis=2),
}


@pytest.mark.parametrize("place", DESCRIBED["imagenet-c"])
def test_corruptions_equal_their_slow_transcription(place):
    """At the ends of the severities of all four scales; the water of spatter has random drops."""
    name, _, which = place.partition("/")
    entry, digest = CORRUPTIONS[name], hashlib.sha256()
    for scale in (224, 299, 64, 32):
        levels = [n for n in entry.levels if name != "spatter" or entry.parameters(n, scale).mud]
        for level in levels[:1] if name == "glass_blur" else (levels[0], levels[-1]):
            rng = np.random.RandomState(level)
            digest.update(corrupt(IMAGES[which], name, level, scale=scale, rng=rng))
    assert digest.hexdigest() == DESCRIBED["imagenet-c"][place]


@pytest.mark.parametrize("name", DESCRIBED["plain"])
def test_plain_images_equal_their_slow_transcription(name):
    """Where a filter's weights do not sum to exactly 1, truncation shows on plain images."""
    digest = hashlib.sha256()
    for value in range(0, 256, 5):
        image = np.full((36, 40, 3), value, np.uint8)
        image[..., 1] = 255 - value
        for scale in (224, 32):
            for level in (1, 5):
                digest.update(corrupt(image, name, level, scale=scale))
    assert digest.hexdigest() == DESCRIBED["plain"][name]


# --- Gaussian ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["nearest", "reflect"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(40, 57), (33, 32, 3), (7, 5, 3), (1, 9, 3), (6, 1)], ids=str)
def test_gaussian_equals_scipy_bit_for_bit(shape, dtype, mode):
    values = np.random.default_rng(1).random(shape).astype(dtype)
    for sigma in (0.05, 0.25, 0.4, 0.7, 1.1, 2.5, 6.5):
        for truncate in (3.0, 4.0, 7):
            want = reference.gaussian(values, sigma, mode, truncate)
            got = gaussian(values, sigma, truncate, mode)
            assert got.dtype == want.dtype
            assert np.array_equal(got, want), (sigma, truncate)


def test_gaussian_takes_any_memory_layout():
    values = np.random.default_rng(1).random((3, 30, 20)).transpose(1, 2, 0)
    assert np.array_equal(gaussian(values, 1.5), reference.gaussian(values, 1.5, "nearest", 4.0))


@pytest.mark.parametrize("shape", [(32, 32, 3), (33, 70, 3), (60, 35, 3)], ids=str)
@pytest.mark.parametrize("sigma", [0.05, 0.7, 1.5, 6, 20])
def test_an_image_filtered_in_one_pass_is_the_same(shape, sigma):
    """Kernels shorter and longer than the image, of odd and even radius."""
    image = np.random.default_rng(4).integers(0, 256, shape, dtype=np.uint8)
    assert np.array_equal(gaussian_bytes(image, sigma), to_uint8(gaussian(unit(image), sigma)))


@pytest.mark.parametrize("shape", [(32, 32), (224, 224), (299, 299), (201, 99)], ids=str)
def test_the_box_filter_is_that_of_pillow(shape):
    image = np.random.default_rng(shape).integers(0, 256, (*shape, 3), dtype=np.uint8)
    for fraction in (0.95, 0.9, 0.85, 0.75, 0.65, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 1.3, 0.011):
        height, width = (max(int(side * fraction), 1) for side in shape)
        want = reference.boxed(image, width, height)
        assert np.array_equal(resize_by_box(image, width, height), want), fraction
        back = reference.boxed(want, *shape[::-1])
        assert np.array_equal(resize_by_box(want, *shape[::-1]), back), fraction


# --- zoom, displacement, smooth fields -----------------------------------------------------------


FACTORS = (1, 1.01, 1.06, 1.11, 1.25, 1.31, 1.75, 2, 2.25, 2.5, 3, 4, 4.5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "shape", [(32, 32), (41, 60, 3), (64, 33, 3), (36, 40, 1), (101, 57), (33, 513, 3), (32, 1100)], ids=str
)
def test_zoom_equals_scipy(shape, dtype):
    values = np.random.default_rng(2).random(shape).astype(dtype)
    for factor in FACTORS:
        want = reference.zoomed(values, factor, "nearest")
        got = enlarge(np.ascontiguousarray(values[zoom_crop(shape[:2], factor)]), shape[:2], factor)
        assert got.dtype == want.dtype and got.shape == want.shape
        assert np.abs(got - want).max() <= 4 * np.finfo(dtype).eps


@pytest.mark.parametrize("reach", [0, 0.3, 4, 90])
@pytest.mark.parametrize("shape", [(40, 51), (32, 32)], ids=str)
def test_displace_equals_that_of_scipy_in_2018(shape, reach):
    rng = np.random.default_rng(3)
    image = rng.random((*shape, 4)).astype(np.float32)
    dx, dy = (rng.uniform(-reach, reach, (2, *shape))).astype(np.float32)
    want = np.stack([reference.displaced(image[:, :, c], dx, dy) for c in range(3)], axis=2)
    got = displace(image, dx, dy)
    assert got.dtype == np.uint8
    assert np.array_equal(got, reference.truncated(want))


@pytest.mark.parametrize("sigma", [0, 0.64, 2.5, 5.12, 9.6, 11, 19.5, 29, 170])
@pytest.mark.parametrize("shape", [(32, 32), (45, 70), (67, 101)], ids=str)
def test_smooth_fields_equal_scipy(shape, sigma):
    """Wide kernels go through the cosine domain: equal to 1e-9, which no float32 of this size shows."""
    rng = np.random.RandomState(4)
    for got in smooth_fields(shape, 1.0, sigma, np.random.RandomState(4)):
        want = reference.smooth_field(shape, 1.0, sigma, rng)
        assert got.dtype == np.float32
        assert np.abs(got - want.astype(np.float32)).max() <= (1e-9 if sigma > 9 else 0)


# --- motion blur ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def imagemagick():
    try:
        from wand.version import MAGICK_VERSION
    except ImportError as error:
        remedy = "apt-get install libmagickwand-6.q16-6 and pip install Wand"
        if os.environ.get("CI"):
            pytest.fail(f"CI must compare with ImageMagick: {remedy} ({error})")
        pytest.skip(f"ImageMagick 6.9 (Q16) is absent: {remedy}")
    if not MAGICK_VERSION.startswith("ImageMagick 6.9") or "Q16" not in MAGICK_VERSION:
        pytest.fail(f"motion blur is that of ImageMagick 6.9 Q16, and here is {MAGICK_VERSION}")


TRAILS = [
    *((10, 3), (15, 5), (15, 8), (15, 12), (20, 15), (12, 4), (22, 16)),
    *((10, 1), (12, 3), (6, 1), (8, 2), (9, 2.5), (14, 12), (13, 3), (6, 1.8), (10.5, 2.5), (1, 0.5)),
]
ANGLES = [0, 45, -45, 90, -90, 135, 180, -120, -135, 0.1, 33.33, -17.7, 29.9999, -81.3, 250, -150]


@pytest.mark.parametrize(("radius", "sigma"), TRAILS)
def test_motion_blur_equals_imagemagick(imagemagick, radius, sigma):
    images = [photo(37, 50), photo(64, 33)[:, :, 0], split_image()]
    for angle in ANGLES + [*np.random.default_rng(5).uniform(-180, 180, 8)]:
        for image in images:
            exact, library = (
                blur(image, radius, sigma, angle) for blur in (blur_along_line, blur_by_imagemagick)
            )
            assert np.array_equal(exact, library), angle


def blur_by_imagemagick(image, radius, sigma, angle):
    from wand.image import Image as WandImage

    colours = image if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)
    with WandImage.from_array(colours, channel_map="RGB") as picture:
        picture.motion_blur(radius=radius, sigma=sigma, angle=angle)
        # At 16 bits, division by 257 equals the PNG round trip of the scripts.
        exported = picture.export_pixels(channel_map="RGB", storage="short")
    blurred = (np.array(exported, np.uint16) // 257).astype(np.uint8).reshape(colours.shape)
    return blurred if image.ndim == 3 else blurred[:, :, 0]


# --- frost ---------------------------------------------------------------------------------------


def test_the_last_window_of_a_photograph_is_never_taken(monkeypatch):
    photograph = photo(40, 50)
    monkeypatch.setattr("robustgen.pixels.imaging.weather_effects.frost_photograph", lambda *_: photograph)
    for seed in range(20):
        window = frost_crop((39, 49), 1.0, None, np.random.default_rng(seed))
        assert np.array_equal(window, photograph[:39, :49])


def test_photographs_of_another_folder_are_the_published_ones(tmp_path):
    for name in FROST_FILES.digests:
        shutil.copy(FROST_FILES.find() / name, tmp_path / name)
    for i in range(5):
        assert np.array_equal(frost_photograph(i, 0.3, str(tmp_path)), frost_photograph(i, 0.3))
    with (tmp_path / "frost2.png").open("ab") as file:
        file.write(b"\0")
    (tmp_path / "frost4.jpg").unlink()
    with pytest.raises(MissingDependencyError, match=r"frost2\.png.*SHA-256"):
        frost_photograph(1, 1.0, str(tmp_path))
    with pytest.raises(MissingDependencyError, match=r"frost4\.jpg.*--with frost=DIR"):
        frost_photograph(3, 1.0, str(tmp_path))


# --- colour --------------------------------------------------------------------------------------


def many_colours():
    """Random colours, all greys, near-greys, the corners of the cube, and colours with equal channels."""
    rng = np.random.default_rng(6)
    random = rng.integers(0, 256, (60_000, 3))
    greys = np.repeat(np.arange(256)[:, None], 3, axis=1)
    near = np.clip(
        np.repeat(rng.integers(0, 256, (2000, 1)), 3, axis=1) + rng.integers(-1, 2, (2000, 3)), 0, 255
    )
    corners = np.array(np.meshgrid(*[[0, 1, 254, 255]] * 3)).reshape(3, -1).T
    ties = rng.integers(0, 256, (2000, 3))
    ties[:, 1] = ties[:, 0]
    ties = np.concatenate([np.roll(ties, shift, axis=1) for shift in range(3)])
    colours = np.concatenate([random, greys, near, corners, ties]).astype(np.uint8)
    return colours[: len(colours) // 32 * 32].reshape(32, -1, 3)


CHANGES = [(0.3, 0, 0), (2, 0, 0), (20, 0.2, 0), (1, 0, 0.1), (1, 0, -0.3), (1, 0, 0)]


@pytest.mark.parametrize(("gain", "offset", "added"), CHANGES)
def test_changes_of_hsv_equal_scikit_image(gain, offset, added):
    colours = many_colours()
    hsv = rgb2hsv(unit(colours))
    hsv[..., 1] = np.clip(hsv[..., 1] * gain + offset, 0, 1)
    hsv[..., 2] = np.clip(hsv[..., 2] + added, 0, 1)
    got = Hsv(colours).change(gain, offset, added)
    assert np.array_equal(got, reference.truncated(hsv2rgb(hsv)))


@pytest.mark.parametrize("added", [0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 1 / 3, 0, -0.3, 1.5])
def test_raised_values_equal_the_way_through_hsv(added):
    """Products that are whole numbers, such as those of 51 levels more, are where a shortcut would show."""
    steps = np.array([0, 1, 2, 50, 51, 52, 101, 102, 127, 128, 153, 170, 204, 205, 253, 254, 255], np.uint8)
    grid = np.stack(np.meshgrid(steps, steps, steps), -1).reshape(1, -1, 3)
    for colours in (many_colours(), grid, np.random.default_rng(0).integers(0, 256, (300, 300, 3), np.uint8)):
        assert np.array_equal(raise_value(colours, added), Hsv(colours).change(value_offset=added))


# --- quantising ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_to_uint8_clips_and_truncates_in_its_own_precision(dtype):
    levels = np.arange(256, dtype=dtype) / dtype(255)
    values = np.concatenate([levels, np.nextafter(levels, dtype(-1)), np.nextafter(levels, dtype(2))])
    values = np.concatenate([values, np.array([-1, -1e-9, 1.0001, 7, 0.5], dtype)])
    want = (np.clip(values, 0, 1) * dtype(255)).astype(np.uint8)
    assert np.array_equal(to_uint8(values), want)
    assert np.array_equal(unit(np.arange(256, dtype=np.uint8), dtype), levels)


# --- plasma --------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", [32, 64, 256])
@pytest.mark.parametrize("decay", [1.4, 2, 3])
def test_plasma_spans_zero_to_one_and_equals_its_slow_transcription(side, decay):
    field, lowest, span = draw_plasma((side, side), decay, np.random.RandomState(7))
    field = (field - lowest) / span
    assert field.min() == 0 and field.max() == 1
    assert np.abs(field - reference.plasma(side, decay, np.random.RandomState(7))).max() < 1e-12


@pytest.mark.parametrize("shape", [(33, 32), (40, 64), (65, 50), (31, 1)], ids=str)
def test_plasma_of_other_shapes_is_cut_from_the_next_power_of_two(shape):
    side = 1 << (max(shape) - 1).bit_length()
    whole = draw_plasma((side, side), 2, np.random.default_rng(8))
    part = draw_plasma(shape, 2, np.random.default_rng(8))
    assert part.field.shape == shape
    assert np.array_equal(part.field, whole.field[: shape[0], : shape[1]])
    assert (part.lowest, part.span) == (whole.field.min(), np.ptp(whole.field))


@pytest.mark.parametrize("rng", [np.random.default_rng, np.random.RandomState])
@pytest.mark.parametrize("shape", [(64, 64), (37, 50), (1, 64), (128, 5)], ids=str)
def test_a_large_plasma_is_refined_in_bands(monkeypatch, rng, shape):
    ours, whole = rng(8), rng(8)
    want = draw_plasma(shape, 1.7, whole)
    monkeypatch.setattr("robustgen.pixels.imaging.weather_effects._AT_ONCE", 4)
    monkeypatch.setattr("robustgen.pixels.imaging.weather_effects._DRAWS", 37)
    got = draw_plasma(shape, 1.7, ours)
    assert np.array_equal(got.field, want.field) and got[1:] == want[1:]
    assert ours.bytes(8) == whole.bytes(8)


@pytest.mark.slow("draws 268 million numbers")
def test_fog_of_a_strip_needs_less_than_2_gb():
    # ru_maxrss includes the memory of the parent at the start; VmHWM does not.
    code = """
import numpy as np
import robustgen

robustgen.corrupt(np.zeros((16384, 32, 3), np.uint8), "fog", 3, rng=1)
print(open("/proc/self/status").read())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(re.search(r"VmHWM:\s+(\d+) kB", done.stdout)[1]) < 2_000_000
    with pytest.raises(ImageError, match=r"32 x 16385"):
        corrupt(np.zeros((16385, 32, 3), np.uint8), "fog", 3, rng=1)


@pytest.mark.parametrize("edition", ["folder", "coco-c"])
def test_frost_of_a_strip_that_would_fill_memory_is_refused(edition):
    strip = np.zeros((40000, 32, 3), np.uint8)
    with pytest.raises(ImageError, match=r"32 x 40000"):
        corrupt(strip, "frost", 1, edition=edition, rng=1)


# --- what severities share -----------------------------------------------------------------------


def zoom_blurs():
    return [ZoomBlur(stop, step) for step in (0.02, 0.01) for stop in (1.21, 1.06, 3.0, 1.11, 1.26, 1)]


@pytest.mark.parametrize("which", ["wide", "tall"])
def test_zoom_blur_gives_the_same_after_any_other_severity(which):
    image, shared = IMAGES[which], {}
    for parameters in (*zoom_blurs(), *reversed(zoom_blurs())):
        alone = CORRUPTIONS["zoom_blur"].apply(image, parameters, None)
        assert np.array_equal(CORRUPTIONS["zoom_blur"].apply(image, parameters, None, shared), alone)


def test_zoom_blur_gives_the_same_after_a_severity_that_failed_halfway(monkeypatch):
    image, shared, parameters = IMAGES["wide"], {}, ZoomBlur(1.11, 0.01)
    zoom_blur = CORRUPTIONS["zoom_blur"]
    zoom_blur.apply(image, ZoomBlur(1.05, 0.01), None, shared)

    def out_of_memory(image, factors, total, added, black_outside):
        average_zooms(image, factors[: added + 3], total, added)
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("robustgen.pixels.benchmarks.corruptions.blur.average_zooms", out_of_memory)
        with pytest.raises(MemoryError):
            zoom_blur.apply(image, parameters, None, shared)
    again = zoom_blur.apply(image, parameters, None, shared)
    assert np.array_equal(again, zoom_blur.apply(image, parameters, None))


@pytest.mark.parametrize("angle", [-150, -90, -40, 0, 31, 90, 180])
@pytest.mark.parametrize("shape", [(100, 40, 3), (77, 60)], ids=str)
def test_motion_blur_is_the_same_slab_by_slab(shape, angle, monkeypatch):
    image = np.random.default_rng(8).integers(0, 256, shape, dtype=np.uint8)
    whole = blur_along_line(image, 7, 3, angle)
    monkeypatch.setattr(blur, "_LARGE", image.size // 5)
    assert np.array_equal(blur_along_line(image, 7, 3, angle), whole)


# --- affine maps ---------------------------------------------------------------------------------


def matrices(height, width):
    rng = np.random.default_rng(6)
    yield 1.0, 0.0, 0.0, 0.0, 1.0, 0.0
    for shift in (0.5, -0.5, 1.0, 1 / 3, float(-width), float(height)):
        yield 1.0, 0.0, shift, 0.0, 1.0, -shift
    for spread in (0.1, 1, 100):
        for _ in range(20):
            yield tuple(map(float, rng.normal(0, spread, 6) * (1, 1, width, 1, 1, height)))


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (9, 1), (31, 31), (40, 33)], ids=str)
def test_sample_affine_equals_pillow(shape):
    image = np.random.default_rng(7).integers(0, 256, (*shape, 3), dtype=np.uint8)
    for matrix in matrices(*shape):
        got = sample_affine(image, matrix)
        size, affine, bilinear = shape[::-1], Image.Transform.AFFINE, Image.Resampling.BILINEAR
        assert np.array_equal(got, Image.fromarray(image).transform(size, affine, matrix, bilinear)), matrix


def test_a_drop_of_rain_leans_to_the_left_and_is_cut_at_the_edge():
    class Draws(np.random.RandomState):
        def __init__(self, values):
            super().__init__(0)
            self.values = iter(values)

        def randint(self, *_):
            return next(self.values)

    # The slant, then column and row of each drop: inside, on the edge, and beyond it.
    mask = draw_rain((20, 30), 200, 4, Draws([-3, 7, 5, 0, 2, -2, 3]))
    assert sorted(zip(*np.nonzero(mask), strict=True)) == [(2, 0), (5, 7), (6, 7), (7, 6), (8, 6), (9, 6)]
    assert set(np.unique(mask)) == {0.0, 220.0}


def test_rain_needs_frames_that_are_higher_than_its_drops():
    with pytest.raises(ImageError, match="80"):
        draw_rain((80, 200), 400, 80, np.random.RandomState(0))
    frame = np.full((90, 20, 3), 100, np.uint8)
    rainy = add_rain(frame, draw_rain((90, 20), 400, 80, np.random.default_rng(0)), 0.5)
    assert rainy.shape == frame.shape and len(np.unique(rainy)) > 1
