"""MNIST-C: written down plainly, one channel and 28 x 28 pixels all the way."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage
from skimage import feature, transform
from sklearn.datasets import load_digits

import robustgen
from robustgen.errors import ArgumentError, ImageError
from robustgen.imaging.mnist_c_effects import bend_zigzag

DIGITS = [
    np.clip(ndimage.zoom(each / 16 * 255, 3.5, order=1), 0, 255).astype(np.uint8)
    for each in load_digits().images[:60]
]
DIGIT = DIGITS[3]


def corrupt(image, name, seed=None):
    rng = None if seed is None else np.random.RandomState(seed)
    made = robustgen.corrupt(image, f"mnist-c:{name}", 1, rng=rng)
    assert made.shape == (28, 28) and made.dtype == np.uint8
    return made


def to_bytes(values):
    return np.rint(np.float32(np.clip(values, 0, 1) * 255)).astype(np.uint8)


GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "families2.npz")


@pytest.mark.parametrize("name", sorted(robustgen.FAMILIES["mnist-c"].corruptions))
def test_pixels_are_those_of_the_original_rounded(name):
    name = name.removeprefix("mnist-c:")
    cases = [key for key in GOLDEN.files if key.startswith(f"mnist-c/{name}/")]
    assert len(cases) >= 16
    for key in cases:
        _, _, _, photograph, seed = key.split("/")
        assert np.array_equal(corrupt(GOLDEN[f"input/{photograph}"], name, int(seed)), GOLDEN[key]), key


def test_noise_is_that_of_the_description():
    x, draws = DIGIT / 255, np.random.RandomState(1)
    assert np.array_equal(corrupt(DIGIT, "shot_noise", 1), to_bytes(draws.poisson(3 * x) / 3.0))
    draws = np.random.RandomState(2)
    hit, salt = draws.random_sample((28, 28)) <= 0.17, draws.random_sample((28, 28)) <= 0.5
    assert np.array_equal(corrupt(DIGIT, "impulse_noise", 2), np.where(hit, 255 * salt, DIGIT))
    assert np.array_equal(corrupt(DIGIT, "identity"), DIGIT)


def test_glass_swaps_pixels():
    draws = np.random.RandomState(4)
    x = (ndimage.gaussian_filter(DIGIT / 255, (0.7, 0), mode="nearest") * 255).astype(np.uint8)
    for _ in range(2):
        for h in range(27, 1, -1):
            for w in range(27, 1, -1):
                if draws.choice([True, False], 1)[0]:
                    dx, dy = draws.randint(-1, 1, size=(2,))
                    x[h, w], x[h + dy, w + dx] = x[h + dy, w + dx], x[h, w]
    want = to_bytes(ndimage.gaussian_filter(x / 255, (0.7, 0), mode="nearest"))
    assert np.array_equal(corrupt(DIGIT, "glass_blur", 4), want)
    # A swap moves light, and takes none away.
    ours = robustgen.corrupt(DIGIT, "mnist-c:glass_blur", 1, rng=1)
    assert abs(ours.mean() - DIGIT.mean()) < 2


def about_centre(matrix):
    a1, a2, b1, b2 = *matrix[0], *matrix[1]
    return transform.AffineTransform(
        np.array([[a1, a2, 13.5 * (1 - a1 - a2)], [b1, b2, 13.5 * (1 - b1 - b2)], [0, 0, 1]])
    )


@pytest.mark.parametrize("seed", range(6))
def test_maps_are_those_of_scikit_image(seed):
    sign = np.random.RandomState(seed).choice([-1, 1], 1)[0]
    c, s = math.cos(0.4), math.sin(0.4 * sign)
    matrices = {"rotate": [[c, -s], [s, c]], "shear": [[1, -s], [0, c]], "scale": np.eye(2) / 0.7}
    for name, matrix in matrices.items():
        want = to_bytes(transform.warp(DIGIT / 255, inverse_map=about_centre(matrix)))
        assert np.array_equal(corrupt(DIGIT, name, seed), want)
    moves = 3 * np.random.RandomState(seed).choice([-1, 1], 2)
    want = np.zeros_like(DIGIT)
    for y in range(28):
        for x in range(28):
            if 0 <= y + moves[1] < 28 and 0 <= x + moves[0] < 28:
                want[y, x] = DIGIT[y + moves[1], x + moves[0]]
    assert np.array_equal(corrupt(DIGIT, "translate", seed), want)


def test_brightness_and_stripes():
    assert np.array_equal(corrupt(DIGIT, "brightness"), to_bytes(DIGIT / 255 + 0.5))
    striped = corrupt(DIGIT, "stripe")
    assert np.array_equal(striped[:, 7:21], DIGIT[:, 7:21])
    assert np.array_equal(striped[:, :7], 255 - DIGIT[:, :7])
    assert np.array_equal(striped[:, 21:], 255 - DIGIT[:, 21:])


def test_fog_is_the_corner_of_a_large_plasma():
    large = robustgen.imaging.haze.draw_plasma((256, 256), 1.4, np.random.RandomState(9))
    plasma = ((large.field - large.lowest) / large.span)[:28, :28]
    x = DIGIT / 255
    want = np.clip((x + 3 * plasma) * x.max() / (x.max() + 3), 0, 1)
    assert np.array_equal(corrupt(DIGIT, "fog", 9), to_bytes(want))
    assert plasma.min() >= 0 and plasma.max() <= 1


def test_mud_is_that_of_the_description():
    draws = np.random.RandomState(3)
    layer = ndimage.gaussian_filter(draws.normal(0.65, 0.3, (28, 28)), 1, mode="nearest")
    layer[layer < 0.65] = 0
    mask = ndimage.gaussian_filter((layer > 0.65).astype(np.float32), 1.5, mode="nearest")
    mask[mask < 0.8] = 0
    x = np.float32(DIGIT) / np.float32(255)
    mud = np.clip(x * (1 - mask) + np.float32(63 / 255) * mask, 0, 1) * np.float32(255)
    assert np.array_equal(corrupt(DIGIT, "spatter", 3), np.rint(mud).astype(np.uint8))


def line_plainly(c0, r0, c1, r1):
    found = np.zeros((28, 28))
    if c1 == c0:
        return found
    slope = (r1 - r0) / (c1 - c0)
    for row in range(28):
        for column in range(math.floor(c0), math.ceil(c1)):
            away = min(abs(row - (slope * (column - c0) + r0)), 2.3 - 1e-10)
            found[row, column] = min(max(math.log(1 - away / 2.3) + 1, 0), 1)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_dots_are_pairs_of_columns_of_a_soft_line(seed):
    r0, r1 = np.random.RandomState(seed).randint(0, 27, 2)
    line = line_plainly(0, r0, 27, r1)
    line[:, [column for column in range(28) if column // 2 % 2 == 0]] = 0
    assert np.array_equal(corrupt(DIGIT, "dotted_line", seed), to_bytes(DIGIT / 255 + line))


@pytest.mark.parametrize("seed", range(8))
def test_the_zigzag_is_that_of_the_description(seed):
    draws = np.random.RandomState(seed)
    r0 = draws.randint(0, 27)
    r1 = r0 + draws.randint(-5, 5)
    angle = math.atan((r1 - r0) / 23)
    length = 23 / math.cos(angle)
    points = [(0, 0)] + [(2 * (2 * i + 1), 2 * (-1) ** i) for i in range(math.floor((length - 2) / 4) + 1)]
    left = length - 4 * math.floor(length / 4)
    points.append((length, points[-1][1] / (2 * left)))
    c, s = math.cos(angle), math.sin(angle)
    turned = [(x * c - y * s + 2, x * s + y * c + r0) for x, y in points]
    assert np.allclose(bend_zigzag((2.0, float(r0)), (25.0, float(r1)), 2, 2), turned)
    values = DIGIT / 255
    for start, end in itertools.pairwise(turned):
        values = np.clip(values + line_plainly(*start, *end), 0, 1)
    differing = corrupt(DIGIT, "zigzag", seed) != to_bytes(values)
    # A point that lies on a whole column may fall on either side of it.
    assert differing.mean() < 0.02


@pytest.mark.parametrize("digit", range(0, 60, 6))
def test_edges_are_those_of_scikit_image(digit):
    image = DIGITS[digit]
    assert np.array_equal(corrupt(image, "canny_edges"), 255 * feature.canny(image / 255))


def test_grey_stays_grey_and_colours_become_luma():
    colours = np.stack([DIGIT, DIGIT, DIGIT], axis=2)
    for image in (DIGIT, DIGIT[:, :, None], colours):
        made = robustgen.corrupt(image, "mnist-c:stripe", 1, edition="mnist")
        assert np.array_equal(made, corrupt(DIGIT, "stripe"))


def test_other_sizes_are_refused():
    with pytest.raises(ArgumentError, match="28 x 28 pixels, not 32 x 30"):
        robustgen.corrupt(np.zeros((30, 32), np.uint8), "mnist-c:fog", 1)
    with pytest.raises(ArgumentError, match="each side needs at least 28"):
        robustgen.corrupt(np.zeros((20, 28), np.uint8), "mnist-c:fog", 1)
    # The others still need 32.
    with pytest.raises(ArgumentError, match="each side needs at least 32"):
        robustgen.corrupt(DIGIT, "fog", 1)
    with pytest.raises(ImageError, match="MNIST images are 28 x 28"):
        robustgen.prepare(np.zeros((32, 32, 3), np.uint8), "mnist")
