"""MNIST-C: published pixels, one channel and 28 x 28 pixels all the way."""

import numpy as np
import pytest

import robustgen
from robustgen.errors import ArgumentError, ImageError
from tests.golden.outputs import read_outputs

GOLDEN = read_outputs("families2")
DIGIT = GOLDEN["input/mnist-digit-3"]


@pytest.mark.parametrize("key", [key for key in GOLDEN if key.startswith("mnist-c/")])
def test_pixels_are_the_published_ones(key):
    """All pixels of sixteen images, rounded, with one or two seeds each."""
    family, name, _, photograph, seed = key.split("/")
    image, rng = GOLDEN[f"input/{photograph}"], np.random.RandomState(int(seed))
    assert np.array_equal(robustgen.corrupt(image, f"{family}:{name}", 1, rng=rng), GOLDEN[key])


def test_glass_swaps_pixels():
    """A swap moves light, and takes none away."""
    made = robustgen.corrupt(DIGIT, "mnist-c:glass_blur", 1, rng=1)
    assert abs(made.mean() - DIGIT.mean()) < 2


def test_grey_stays_grey_and_colours_become_luma():
    colours = np.stack([DIGIT, DIGIT, DIGIT], axis=2)
    grey, *others = (
        robustgen.corrupt(image, "mnist-c:stripe", 1, edition="mnist")
        for image in (DIGIT, DIGIT[:, :, None], colours)
    )
    assert grey.shape == (28, 28) and all(np.array_equal(each, grey) for each in others)


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
