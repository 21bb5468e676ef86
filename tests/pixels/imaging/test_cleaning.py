"""Cleaning of images: CLAHE."""

from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest

from robustgen.errors import ArgumentError, ArgumentTypeError
from robustgen.pixels.imaging.cleaning import Clahe, clahe
from tests.helpers import photo


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
def test_any_size_and_the_argument_stays(size):
    image = photo(*size)
    before = image.copy()
    result = clahe(image)
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
