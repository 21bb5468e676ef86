"""Elementary functions, transforms and distributions of our own: against decimals, NumPy and SciPy."""

import math
from decimal import Decimal, localcontext

import cv2
import numpy as np
import pytest
from scipy import fft, special

from robustgen.pixels.imaging import weather_effects
from robustgen.pixels.imaging.cleaning import Clahe, clahe
from robustgen.pixels.imaging.kernels import drawing, draws, exact, fourier, warps
from robustgen.pixels.imaging.noise_fields import plan_transform
from tests.helpers import photo

RNG = np.random.default_rng(0)
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


def test_exponentials_logarithms_and_powers_are_rounded_correctly():
    with localcontext() as context:
        context.prec = 60
        for x in (
            *RNG.uniform(-700, 700, 500),
            *(RNG.uniform(-1, 1, 500) * 10.0 ** RNG.uniform(-15, 1, 500)),
        ):
            assert exact.exp(x) == float(Decimal(x).exp()), x
        near_one = 1 + RNG.uniform(-1, 1, 300) * 2.0 ** RNG.uniform(-50, -1, 300)
        for x in (*RNG.uniform(0, 1, 300), *near_one, *(10.0 ** RNG.uniform(-300, 300, 300))):
            assert exact.log(x) == float(Decimal(x).ln()), x
        for x, y in zip(RNG.uniform(0.01, 30, 500), RNG.uniform(-5, 5, 500), strict=True):
            assert exact.power(x, y) == float((Decimal(y) * Decimal(x).ln()).exp()), (x, y)


def test_functions_at_the_ends_of_their_range():
    assert exact.exp(-800.0) == 0 and exact.exp(800.0) == np.inf and np.isnan(exact.exp(np.nan))
    assert np.isnan(exact.log(0.0)) and np.isnan(exact.log(-1.0)) and exact.log(1.0) == 0
    assert exact.sine_cosine(0.0) == (0, 1) and exact.hypot(0.0, 0.0) == 0 and exact.hypot(3.0, 4.0) == 5


def sine_of(x):
    """To 60 digits, by its series."""
    quarter = (x / (PI / 2)).to_integral_value()
    r, total = x - quarter * PI / 2, Decimal(0)
    term, n = (r, 1) if int(quarter) % 2 == 0 else (Decimal(1), 0)
    while abs(term) > Decimal(10) ** -60:
        total, term, n = total + term, -term * r * r / ((n + 1) * (n + 2)), n + 2
    return total if int(quarter) % 4 < 2 else -total


def test_sines_and_cosines_are_rounded_correctly():
    with localcontext() as context:
        context.prec = 75
        angles = (
            *RNG.uniform(-7, 7, 300),
            *RNG.uniform(-1e5, 1e5, 100),
            *map(math.radians, range(-360, 361, 9)),
        )
        for x in angles:
            sine, cosine = exact.sine_cosine(x)
            # The quarter turns of double precision lie beside those of pi.
            assert sine == float(sine_of(Decimal(x))), x
            assert cosine == float(sine_of(Decimal(x) + PI / 2)), x


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 12, 32, 64, 77, 224, 299, 61, 67, 131])
def test_transforms_are_those_of_numpy(size):
    batch = 8
    values = RNG.normal(size=(2, size, batch))
    room = np.zeros((2, plan_transform(size)[1].size * batch))
    room[:, : size * batch] = values.reshape(2, -1)
    assert all(each.flags.c_contiguous for each in plan_transform(size))
    transformed, _ = fourier.transform(room, np.empty_like(room), size, plan_transform(size))
    got = transformed[:, : size * batch].reshape(2, size, batch)
    assert np.allclose(got[0] + 1j * got[1], np.fft.fft(values[0] + 1j * values[1], axis=0), atol=1e-11)


@pytest.mark.parametrize("shape", [(32, 32), (33, 64), (7, 5), (67, 131), (250, 120)], ids=str)
def test_half_spectra_become_the_lines_of_scipy(shape):
    height, width = shape
    half = RNG.normal(size=(2, height, width // 2 + 1))
    want, out = fft.irfft(fft.ifft(half[0] + 1j * half[1], axis=0), width), np.empty(shape)
    half = np.pad(half, ((0, 0), (0, 0), (0, -half.shape[2] % 8)))
    fourier.invert_columns(half, plan_transform(height))
    fourier.invert_rows(half, plan_transform(width), out)
    assert np.allclose(out, want, atol=1e-13)


def test_distribution_functions_are_those_of_scipy():
    deviates = np.concatenate([RNG.uniform(-9, 9, 2000), RNG.normal(0, 0.01, 500), [0, -50, 50]])
    assert np.abs(draws.normal_below(deviates) - special.ndtr(deviates)).max() < 1e-13
    for photons in (3, 12, 60, 500, 3000):
        means, counts = np.linspace(0, photons, 256), np.sort(RNG.integers(-1, photons + 1, 255))
        below = np.empty((256, 255))
        draws.poisson_below(means, counts, below)
        want = np.where(counts < 0, 0.0, special.pdtr(np.maximum(counts, 0), means[:, None]))
        assert np.abs(below - want).max() < 1e-12


@pytest.mark.parametrize("shape", [(64, 64), (33, 90), (1, 40), (40, 1)], ids=str)
def test_distances_are_the_chamfer_of_opencv(shape):
    edges = np.where(RNG.random(shape) > 0.995, 255, 0).astype(np.uint8)
    edges[0, 0] = 255
    # Costs of whole pixels, which every build of OpenCV would give; in the largest image some are cut off.
    rows, columns = np.argwhere(edges > 0).T
    y, x = np.mgrid[: shape[0], : shape[1]][..., None]
    dy, dx = np.abs(y - rows), np.abs(x - columns)
    low, high = np.minimum(dy, dx), np.maximum(dy, dx)
    # The cheapest way of straight steps, diagonals and knight's moves, in the open.
    ways = np.where(
        2 * low <= high,
        low * 143976 + (high - 2 * low) * 65536,
        (high - low) * 143976 + (2 * low - high) * 91750,
    )
    field = np.minimum(ways.min(axis=-1), 20 * 65536) / 65536
    want = cv2.blur(field, (3, 3)).astype(np.float32).astype(np.uint8)
    out = np.empty_like(edges)
    drawing.blur_distances(edges, weather_effects.FIXED_POINT_COSTS, out)
    assert np.array_equal(out, want)


@pytest.mark.parametrize("size", [(386, 580), (35, 41), (200, 90)], ids=str)
def test_cubic_resizing_is_that_of_opencv(size):
    image, out = photo(90, 120), np.empty((*size, 3), np.uint8)
    warps.resize_cubic(image, out)
    difference = np.abs(out.astype(int) - cv2.resize(image, size[::-1], interpolation=cv2.INTER_CUBIC))
    # With IPP next to nothing differs, without it OpenCV rounds the weights to 11 bits.
    assert difference.max() <= 1 and (difference > 0).mean() < 0.06


@pytest.mark.parametrize("shape", [(64, 64), (61, 83), (2, 2), (1, 5), (200, 224)], ids=str)
@pytest.mark.parametrize(("limit", "tiles"), [(2.0, 8), (40.0, 3), (0.01, 1), (256.0, 5)])
def test_clahe_is_that_of_opencv(shape, limit, tiles):
    image = photo(*shape) if min(shape) > 8 else RNG.integers(0, 256, (*shape, 3), dtype=np.uint8)
    lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)
    lab[..., 0] = cv2.createCLAHE(limit, (tiles, tiles)).apply(lab[..., 0])
    difference = clahe(image, Clahe(limit, tiles)).astype(int) - cv2.cvtColor(lab, cv2.COLOR_LAB2RGB)
    # Where OpenCV fuses products and sums, as on ARM, it rounds a few values otherwise.
    assert (difference != 0).mean() < 0.005
