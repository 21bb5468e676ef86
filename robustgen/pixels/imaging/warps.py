"""Moving pixels: affine and perspective maps, elastic displacements, and cubic splines."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from robustgen.pixels.imaging.arrays import AnyFloats, Rgb, unit
from robustgen.pixels.imaging.blur import gaussian, gaussian_weights
from robustgen.pixels.imaging.kernels import exact, fourier, warps
from robustgen.pixels.imaging.noise_fields import plan_transform, unit_circle
from robustgen.pixels.imaging.rng import Rng, uniform
from robustgen.pixels.imaging.third_party import cv2

# --- affine warps like Pillow's, and affine and perspective warps like those of OpenCV 3 and 4 -----

# The published data were created with positions rounded to 1/32 of a pixel. OpenCV 5 interpolates at exact
# positions, so this module uses its own loops, independent of the release.

Matrix = tuple[float, float, float, float, float, float]


def sample_affine(image: Rgb, matrix: Matrix) -> Rgb:
    """Sample `image` bilinearly at the places that `matrix` maps to; outside is black.

    Equals Pillow's ``Image.transform``.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    matrix : six floats
        Maps (x, y) in the result to (a x + b y + c, d x + e y + f) in `image`.
    """
    width, out = image.shape[1], np.zeros_like(image)
    places, parts = np.empty(width, np.int32), np.empty((6, width))
    near, lines = _make_lines(width)
    words = _frame_words(image, 1)
    words[0], words[-1] = words[1], words[-2]
    words[:, 0], words[:, -1] = words[:, 1], words[:, -2]
    warps.sample_affine(words, matrix, places, parts, near, lines, out)
    return out


def _make_lines(width: int) -> tuple[npt.NDArray[np.uint32], Rgb]:
    """Return buffers for a line of results: the four neighbours of each pixel, and its channels."""
    return np.empty((4, width), np.uint32), np.empty((3, width), np.uint8)


def _frame_words(image: Rgb, border: int) -> npt.NDArray[np.uint32]:
    """Return the pixels of `image` as words, red lowest, with a black border of `border` pixels."""
    height, width = image.shape[:2]
    framed = np.zeros((height + 2 * border, width + 2 * border, 4), np.uint8)
    cv2.cvtColor(image, cv2.COLOR_RGB2RGBA, framed[border:-border, border:-border])
    return framed.view(np.uint32)[..., 0]


def warp_affine(image: Rgb, matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Map `image` by an affine `matrix`, bilinearly, borders mirrored about the edge pixels.

    Bit-identical to ``cv2.warpAffine(image / 255 as float32, matrix, borderMode=cv2.BORDER_REFLECT_101)`` of
    OpenCV 3 and 4.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    matrix : float64 ndarray of shape (2, 3)
        Maps (x, y, 1) in `image` to its place in the result.

    Returns
    -------
    float32 ndarray of shape (H, W, 4)
        Values in [0, 1]; the fourth of each pixel is unused and pads the pixel to a word of 16 bytes.
    """
    (a, b, c), (d, e, f) = matrix.tolist()
    determinant = a * e - b * d
    scale = 1.0 / determinant if determinant else 0.0
    xx, xy, yx, yy = e * scale, -b * scale, -d * scale, a * scale
    inverse = (xx, xy, -xx * c - xy * f, yx, yy, -yx * c - yy * f)
    out = np.empty((*image.shape[:2], 4), np.float32)
    warps.warp_affine(image, inverse, out)
    return out


def warp_perspective(image: Rgb, matrix: npt.NDArray[np.float64]) -> Rgb:
    """Map `image` by a projective `matrix`, bilinearly; outside is black.

    Bit-identical to ``cv2.warpPerspective(image, matrix, (width, height))`` of OpenCV 3 and 4.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    matrix : float64 ndarray of shape (3, 3)
        Maps (x, y, 1) in `image` to its place in the result, up to a factor.
    """
    (a, b, c), (d, e, f), (g, h, i) = matrix.tolist()
    determinant = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    scale = 1.0 / determinant if determinant else 0.0
    inverse = (
        (e * i - f * h) * scale,
        (c * h - b * i) * scale,
        (b * f - c * e) * scale,
        (f * g - d * i) * scale,
        (a * i - c * g) * scale,
        (c * d - a * f) * scale,
        (d * h - e * g) * scale,
        (b * g - a * h) * scale,
        (a * e - b * d) * scale,
    )
    width, out = image.shape[1], np.empty_like(image)
    near, lines = _make_lines(width)
    words = _frame_words(image, 2)
    warps.warp_perspective(words, inverse, np.empty((3, width), np.int32), near, lines, out)
    return out


# --- elastic deformation: a random affine map, smooth displacements, and sampling along them -------

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
    first: AnyFloats = uniform(rng, -1, 1, shape)
    second: AnyFloats = uniform(rng, -1, 1, shape)
    if sigma:
        weights = gaussian_weights(float(sigma), 3.0)
        if weights.size <= _LONGEST_KERNEL:
            first, second = (gaussian(field, sigma, 3.0, "reflect") for field in (first, second))
        else:
            _filter_by_cosines(first, second, weights)
    first *= alpha
    second *= alpha
    return first.astype(np.float32), second.astype(np.float32)


def _filter_by_cosines(first: AnyFloats, second: AnyFloats, weights: npt.NDArray[np.float64]) -> None:
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
    warps.displace(image, dx, dy, mended, out)
    return out


# --- rotation and enlargement by cubic splines, like ``scipy.ndimage`` -----------------------------

_TURNS = 20


Spline = npt.NDArray[np.float64]
"""Cubic B-spline coefficients of an image: (H + 3, W + 3, 4); the fourth of each pixel is unused."""


def fit_spline(image: Rgb) -> Spline:
    """Return the B-spline coefficients of `image` in [0, 1], mirrored by one sample before and two after."""
    height, width = image.shape[:2]
    spline = np.zeros((height + 3, width + 3, 4))
    warps.fit_spline(unit(image, np.float32), _powers(height), _powers(width), spline)
    return spline


def blur_by_turning(spline: Spline, angle: float) -> Rgb:
    """Return the Gaussian-weighted mean of an image rotated by 21 angles within +-`angle` (degrees)."""
    turns, whole = _turns(float(angle))
    out = np.empty((len(spline) - 3, spline.shape[1] - 3, 3), np.uint8)
    warps.blur_by_turning(spline, turns, whole, out)
    return out


@lru_cache(maxsize=256)
def _powers(size: int) -> AnyFloats:
    """Return the powers 0 to `size` - 1 of the pole of a cubic B-spline."""
    return np.multiply.accumulate(np.append(1.0, np.full(size - 1, warps.POLE)))


@lru_cache(maxsize=256)
def _turns(angle: float) -> tuple[npt.NDArray[np.float64], np.float32]:
    """Return cosine, sine and weight of each angle within +-`angle` (degrees), and the sum of weights."""
    places = [2 * i / _TURNS - 1 for i in range(_TURNS + 1)]
    weights = [exact.exp(-2 * place * place) for place in places]
    turns = [exact.sine_cosine(math.radians(place * angle)) for place in places]
    rows = [(cosine, sine, weight) for (sine, cosine), weight in zip(turns, weights, strict=True)]
    return np.array(rows), np.float32(np.add.accumulate(weights)[-1])


@dataclass(frozen=True)
class _SplineAxis:
    """Four samples for each place of one axis, and their weights, both (4, size)."""

    places: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]


@lru_cache(maxsize=256)
def _spline_axis(size: int, scale: float) -> _SplineAxis:
    """Return the central `size` places of an axis of `size` samples enlarged by `scale`."""
    enlarged = round(size * scale)
    step = (size - 1) / (enlarged - 1)
    at = (np.arange(size) + (enlarged - size) // 2) * step
    first = np.floor(at).astype(np.int64)
    places = np.abs(first + np.arange(-1, 3)[:, None])
    places = np.where(places >= size, 2 * size - 2 - places, places)
    weights = np.array([warps.spline_weights(part) for part in at - first]).T.copy()
    return _SplineAxis(places, weights)


def enlarge_channel(image: Rgb, channel: int, scale: float, out: Rgb) -> None:
    """Write the centre of one channel of `image`, enlarged by `scale`, into that channel of `out`.

    The samples are used as spline coefficients, so that a scale of 1 smoothes.
    """
    rows, columns = (_spline_axis(size, float(scale)) for size in image.shape[:2])
    warps.zoom_channel(image, channel, rows.places, rows.weights, columns.places, columns.weights, out)
