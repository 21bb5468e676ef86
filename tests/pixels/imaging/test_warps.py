"""Affine and perspective maps against the plain version of their text."""

import numpy as np
import pytest

from robustgen.pixels.imaging import warps
from tests import reference

RNG = np.random.default_rng(5)
IMAGES = [RNG.integers(0, 256, shape, dtype=np.uint8) for shape in ((32, 32, 3), (41, 70, 3), (90, 33, 3))]
MATRICES = {
    "identity": [[1, 0, 0], [0, 1, 0]],
    "shift by quarters": [[1, 0, 0.25], [0, 1, -3.75]],
    "turn": [[0.94, -0.34, 9.1], [0.34, 0.94, -7.3]],
    "far out": [[0.2, 0.1, -50], [-0.1, 0.3, 160]],
    "shrink": [[0.05, 0, 20], [0.01, 0.07, 3]],
    "flip": [[-1, 0.01, 31.5], [0, -1.01, 30]],
}


def perspectives():
    shears = RNG.uniform(-1e-3, 1e-3, (5, 2))
    for matrix, (g, h) in zip(MATRICES.values(), shears, strict=False):
        yield np.array([*matrix, [g, h, 1]], float)
    # Its horizon lies within the image.
    yield np.array([[1, 0.1, 2], [0, 1, 3], [0.04, 0.01, -1]])


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("image", IMAGES, ids=lambda image: str(image.shape))
def test_the_affine_map_is_that_of_its_text(image, name):
    matrix = np.array(MATRICES[name], float)
    got = warps.warp_affine(image, matrix)
    assert got.dtype == np.float32 and got.shape == (*image.shape[:2], 4)
    assert np.array_equal(got[..., :3], reference.warped_affine(image, matrix))


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: str(image.shape))
def test_the_perspective_map_is_that_of_its_text(image):
    for matrix in perspectives():
        got = warps.warp_perspective(image, matrix)
        # The last bit of an inverse may round a position otherwise, by 1/32 of a pixel.
        assert (got != reference.warped_perspective(image, matrix)).mean() < 5e-3


def test_a_singular_matrix_shows_the_corner():
    """As in OpenCV, which takes the inverse of 0 for 0."""
    image = IMAGES[0]
    assert (warps.warp_affine(image, np.zeros((2, 3)))[..., :3] == image[0, 0] / np.float32(255)).all()
    assert (warps.warp_perspective(image, np.zeros((3, 3))) == image[0, 0]).all()
