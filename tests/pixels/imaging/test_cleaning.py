"""Cleaning of images: CLAHE, non-local means and the median filter."""

from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest
from scipy.ndimage import median_filter

from robustgen.errors import ArgumentError, ArgumentTypeError
from robustgen.pixels.imaging.cleaning import CLEANINGS, Clahe, Denoise, Median, clahe, estimate_noise
from tests.helpers import photo

# --- CLAHE ---------------------------------------------------------------------------------------


def lightness(image):
    return cv2.cvtColor(image, cv2.COLOR_RGB2LAB)[..., 0].astype(float)


def test_low_contrast_is_raised_and_hues_stay():
    pale = (photo(96, 80) // 6 + 100).astype(np.uint8)
    result = clahe(pale)
    assert lightness(result).std() > 1.8 * lightness(pale).std()
    before, after = (cv2.cvtColor(image, cv2.COLOR_RGB2LAB)[..., 1:].astype(int) for image in (pale, result))
    assert np.abs(before - after).max() <= 4


def test_one_tile_without_a_limit_is_plain_equalisation():
    grey = np.tile(np.arange(64, dtype=np.uint8)[:, None], (64, 1, 3))
    result, levels = lightness(clahe(grey, Clahe(clip_limit=256.0, tiles=1)))[0], lightness(grey)[0]
    # Of a histogram, the share of pixels that are not lighter.
    assert np.abs(result - [255 * (levels <= level).mean() for level in levels]).max() <= 2


def test_a_tighter_limit_changes_less():
    pale = (photo(96, 80) // 6 + 100).astype(np.uint8)
    gains = [lightness(clahe(pale, Clahe(limit, 4))).std() for limit in (1.0, 2.0, 4.0)]
    assert gains == sorted(gains) and gains[0] < gains[-1]


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (5, 3), (33, 47), (64, 64)])
@pytest.mark.parametrize("cleaning", CLEANINGS.values(), ids=[*CLEANINGS])
def test_any_size_and_the_argument_stays(cleaning, size):
    image = photo(*size)
    before = image.copy()
    result = cleaning().apply(image)
    assert result.shape == image.shape and result.dtype == np.uint8
    np.testing.assert_array_equal(image, before)


def test_threads_do_not_disturb_each_other():
    images = [photo(64, 64, seed) // (1 + seed % 4) for seed in range(24)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            for image, result in zip(images, pool.map(clahe, images), strict=True):
                np.testing.assert_array_equal(result, clahe(image))


def test_other_than_images_are_refused():
    with pytest.raises(ArgumentTypeError, match="dtype uint8, not float64"):
        clahe(np.zeros((8, 8, 3)))
    grey = photo(16, 16)[..., 0]
    np.testing.assert_array_equal(clahe(grey), clahe(np.stack([grey] * 3, -1)))


@pytest.mark.parametrize(
    "wrong",
    [
        *({"clip_limit": value} for value in (0, -1.0, np.nan, np.inf, 257)),
        *({"tiles": value} for value in (0, -1, 2.5, 65)),
    ],
)
def test_parameters_out_of_range_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(ArgumentError, match=f"{name} must be"):
        Clahe(**wrong)


# --- non-local means and the median filter -------------------------------------------------------


def smooth(side=64):
    """A picture without noise."""
    ramp = np.linspace(40, 200, side)
    return np.stack([np.add.outer(ramp, ramp) / 2, np.outer(ramp, ramp) / 200, ramp + 0 * ramp[:, None]], -1)


@pytest.mark.parametrize("deviation", [0.02, 0.05, 0.1])
def test_the_estimate_finds_the_noise_that_was_added(deviation):
    noise = np.random.default_rng(1).normal(0, 255 * deviation, (64, 64, 3))
    image = np.clip(np.rint(smooth() + noise), 0, 255).astype(np.uint8)
    assert estimate_noise(image) == pytest.approx(deviation, rel=0.1)


def test_the_estimate_is_that_of_scikit_image():
    # estimate_sigma(image / 255, average_sigmas=True, channel_axis=-1) with PyWavelets 1.9
    for size, sigma in (((32, 32), 0.04575362162834532), ((33, 47), 0.04633720616478872)):
        assert estimate_noise(photo(*size, 3)) == pytest.approx(sigma, rel=1e-12)


def test_noise_is_removed_and_other_images_hardly_change():
    clean, noise = smooth(), np.random.default_rng(1).normal(0, 20, (64, 64, 3))
    noisy = np.clip(clean + noise, 0, 255).astype(np.uint8)
    errors = [np.abs(image - clean).mean() for image in (noisy, Denoise().apply(noisy))]
    assert errors[1] < 0.4 * errors[0]
    for image in (clean.astype(np.uint8), np.full((20, 20, 3), (130, 7, 201), np.uint8)):
        assert np.abs(Denoise().apply(image).astype(int) - image).max() <= 2


def test_the_median_is_that_of_scipy():
    image = photo(33, 47)
    for size in (3, 5, 9):
        expected = median_filter(image, (size, size, 1), mode="nearest")
        np.testing.assert_array_equal(Median(size).apply(image), expected)
