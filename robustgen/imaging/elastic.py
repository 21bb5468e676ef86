"""Elastic deformation: a random affine map, smooth displacements, and sampling along them."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from robustgen.imaging.gaussian import gaussian, gaussian_weights
from robustgen.imaging.kernels import warps as kernels
from robustgen.imaging.opencv import cv2
from robustgen.imaging.pixels import Floats, Rgb
from robustgen.imaging.rng import Rng, uniform
from robustgen.imaging.warps import warp_affine

# Above this radius the cosine transform is the faster one (scripts/bench.py --only elastic_transform).
_LONGEST_KERNEL = 30


@lru_cache(maxsize=64)
def _anchors(shape: tuple[int, int]) -> npt.NDArray[np.float32]:
    """The three points, float32 (3, 2), that an affine map of an image of `shape` (H, W) is fixed by."""
    centre, reach = np.array(shape) // 2, min(shape) // 3
    corners = [centre + reach, [centre[0] + reach, centre[1] - reach], centre - reach]
    return np.array(corners, np.float32)


def jittered_affine(image: Rgb, jitter: float, rng: Rng) -> npt.NDArray[np.float32]:
    """Map three points around the centre of `image` to themselves plus uniform(-jitter, jitter)."""
    anchors = _anchors(image.shape[:2])
    moved = anchors + rng.uniform(-jitter, jitter, size=anchors.shape).astype(np.float32)
    return warp_affine(image, np.asarray(cv2.getAffineTransform(anchors, moved), np.float64))


def smooth_field(shape: tuple[int, int], alpha: float, sigma: float, rng: Rng) -> npt.NDArray[np.float32]:
    """`alpha` times Gaussian-smoothed uniform(-1, 1) noise of `shape`, borders reflected, cut at 3 sigma."""
    field: Floats = uniform(rng, -1, 1, shape)
    if sigma:
        weights = gaussian_weights(float(sigma), 3.0)
        direct = weights.size <= _LONGEST_KERNEL
        field = gaussian(field, sigma, 3.0, "reflect") if direct else _cosine_filter(field, weights)
    field *= alpha
    return field.astype(np.float32)


def _cosine_filter(field: Floats, weights: npt.NDArray[np.float64]) -> Floats:
    """Filter with a symmetric kernel under reflecting borders, where it is a product in the cosine domain."""
    from scipy import fft

    rows, columns = (_transfer(side, weights.tobytes()) for side in field.shape)
    spectrum = fft.dctn(field, overwrite_x=True)
    spectrum *= rows[:, None]
    spectrum *= columns
    return np.asarray(fft.idctn(spectrum, overwrite_x=True))


@lru_cache(maxsize=64)
def _transfer(side: int, packed_weights: bytes) -> npt.NDArray[np.float64]:
    """What the kernel multiplies each cosine of a line of `side` samples by."""
    weights = np.frombuffer(packed_weights)
    phases = np.cos(np.pi / side * np.arange(side)[:, None] * np.arange(1, weights.size)[None, :])
    return np.asarray(weights[0] + 2 * phases @ weights[1:])


def displace(image: npt.NDArray[np.float32], dx: npt.NDArray[np.float32], dy: npt.NDArray[np.float32]) -> Rgb:
    """Sample a unit `image` (H, W, 4) at (row + dy, column + dx), as SciPy did before 1.6; uint8."""
    out = np.empty((*dx.shape, 3), np.uint8)
    kernels.displace(image, dx, dy, out)
    return out
