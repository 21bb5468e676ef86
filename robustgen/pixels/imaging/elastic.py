"""Elastic deformation: a random affine map, smooth displacements, and sampling along them."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.fourier import plan_transform, unit_circle
from robustgen.pixels.imaging.gaussian import gaussian, gaussian_weights
from robustgen.pixels.imaging.kernels import fourier
from robustgen.pixels.imaging.kernels import warps as kernels
from robustgen.pixels.imaging.pixels import Floats, Rgb
from robustgen.pixels.imaging.rng import Rng, uniform
from robustgen.pixels.imaging.warps import warp_affine

# For longer half kernels, cosine transforms are faster (scripts/bench.py).
_LONGEST_KERNEL = 30


@lru_cache(maxsize=64)
def _anchors(shape: tuple[int, int]) -> npt.NDArray[np.float32]:
    """Return the three points, float32 (3, 2), that define the affine map of an image of `shape` (H, W)."""
    centre, reach = np.array(shape) // 2, min(shape) // 3
    corners = [centre + reach, [centre[0] + reach, centre[1] - reach], centre - reach]
    return np.array(corners, np.float32)


def jittered_affine(image: Rgb, jitter: float, rng: Rng) -> npt.NDArray[np.float32]:
    """Warp `image` so that three points around its centre move by uniform(-jitter, jitter)."""
    anchors = _anchors(image.shape[:2])
    moved = anchors + rng.uniform(-jitter, jitter, size=anchors.shape).astype(np.float32)
    return warp_affine(image, _solve_affine(anchors.tolist(), moved.tolist()))


def _solve_affine(before: list[list[float]], after: list[list[float]]) -> npt.NDArray[np.float64]:
    """Return the affine map, (2, 3), from three points (x, y) to three others."""
    (x0, y0), (x1, y1), (x2, y2) = before
    ax, ay, bx, by = x1 - x0, y1 - y0, x2 - x0, y2 - y0
    determinant = ax * by - bx * ay
    rows = []
    for i in range(2):
        start = after[0][i]
        a, b = after[1][i] - start, after[2][i] - start
        across, down = (a * by - b * ay) / determinant, (b * ax - a * bx) / determinant
        rows.append([across, down, start - across * x0 - down * y0])
    return np.array(rows)


def smooth_fields(
    shape: tuple[int, int], alpha: float, sigma: float, rng: Rng
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Draw two fields: `alpha` times uniform(-1, 1) noise of `shape`, smoothed by `sigma`.

    Borders are reflected; the Gaussian is cut at 3 sigma.
    """
    first: Floats = uniform(rng, -1, 1, shape)
    second: Floats = uniform(rng, -1, 1, shape)
    if sigma:
        weights = gaussian_weights(float(sigma), 3.0)
        if weights.size <= _LONGEST_KERNEL:
            first, second = (gaussian(field, sigma, 3.0, "reflect") for field in (first, second))
        else:
            _filter_by_cosines(first, second, weights)
    first *= alpha
    second *= alpha
    return first.astype(np.float32), second.astype(np.float32)


def _filter_by_cosines(first: Floats, second: Floats, weights: npt.NDArray[np.float64]) -> None:
    """Filter both fields in place with a symmetric kernel and reflected borders."""
    height, width = first.shape
    flat, other, packed = first.reshape(-1), second.reshape(-1), weights.tobytes()
    for size, lines, line_step, place_step in ((height, width, 1, width), (width, height, width, 1)):
        order, mixing = _mixing(size, packed)
        fourier.filter_lines(flat, other, lines, line_step, place_step, order, mixing, plan_transform(size))


@lru_cache(maxsize=64)
def _mixing(size: int, packed_weights: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return `order` and `mixing` of `fourier.filter_lines` for lines of `size` samples."""
    places = np.arange(size)
    order = np.concatenate([places[::2], places[1::2][::-1]])
    circle = unit_circle(2 * size)
    gains = fourier.transfer_function(np.frombuffer(packed_weights), circle[0].copy())
    opposite = np.append(gains[:1], gains[:0:-1])
    half = (gains - opposite) / 2 / size
    return order, np.array([(gains + opposite) / 2 / size, *(half * circle[:, :size])])


def displace(
    image: npt.NDArray[np.float32],
    dx: npt.NDArray[np.float32],
    dy: npt.NDArray[np.float32],
    *,
    mended: bool = False,
) -> Rgb:
    """Sample a unit `image` (H, W, 4) at (row + dy, column + dx); return uint8 (H, W, 3).

    Borders are reflected like in SciPy before 1.6; if `mended`, like in later releases.
    """
    out = np.empty((*dx.shape, 3), np.uint8)
    kernels.displace(image, dx, dy, mended, out)
    return out
