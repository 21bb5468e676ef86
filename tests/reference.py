"""Parts of the corruptions once more, slowly, by way of the libraries that the published scripts called."""

from decimal import Decimal
from math import ceil

import numpy as np
import scipy.ndimage as ndi
from PIL import Image


def truncated(x):
    return (np.clip(x, 0, 1) * 255).astype(np.uint8)


def gaussian(values, sigma, mode, truncate):
    """`ndimage.gaussian_filter` along two axes, as of 2018: its weights' exponentials rounded correctly."""
    radius = int(truncate * sigma + 0.5)
    exponents = (
        -0.5 / (sigma * sigma) * np.arange(-radius, radius + 1) * np.arange(-radius, radius + 1)
    ).tolist()
    weights = np.array([float(Decimal(each).exp()) for each in exponents])
    for axis in range(2):
        values = ndi.correlate1d(values, weights / weights.sum(), axis, mode=mode)
    return values


def zoomed(x, factor, mode="nearest"):
    """Central ceil(side / factor) of each axis, enlarged, trimmed to the centre.

    The scripts left `mode` at "constant", whereby SciPy blackens the last line at sizes where it falls
    1e-15 outside; at the published sizes it never does.
    """
    sides = x.shape[:2]
    crops = [ceil(side / factor) for side in sides]
    top, left = ((side - crop) // 2 for side, crop in zip(sides, crops, strict=True))
    large = x[top : top + crops[0], left : left + crops[1]]
    large = ndi.zoom(large, (factor, factor, 1)[: x.ndim], order=1, mode=mode)
    top, left = ((size - side) // 2 for size, side in zip(large.shape[:2], sides, strict=True))
    return large[top : top + sides[0], left : left + sides[1]]


def plasma(side, decay, rng):
    field = np.zeros((side, side))
    step, wobble = side, 100.0

    def jitter(mean):
        return mean + wobble * rng.uniform(-wobble, wobble, mean.shape)

    while step >= 2:
        half = step // 2
        corners = field[::step, ::step]
        total = corners + np.roll(corners, -1, axis=0)
        total = total + np.roll(total, -1, axis=1)
        field[half::step, half::step] = jitter(total / 4)
        centres = field[half::step, half::step]
        up_down = centres + np.roll(centres, 1, axis=0)
        field[::step, half::step] = jitter((up_down + (corners + np.roll(corners, -1, axis=1))) / 4)
        left_right = centres + np.roll(centres, 1, axis=1)
        field[half::step, ::step] = jitter((left_right + (corners + np.roll(corners, -1, axis=0))) / 4)
        step, wobble = half, wobble / decay
    field -= field.min()
    return field / field.max()


def smooth_field(shape, alpha, sigma, rng):
    field = rng.uniform(-1, 1, size=shape)
    if sigma:
        field = gaussian(field, sigma, "reflect", 3)
    return field * alpha


def displaced(plane, dx, dy):
    """`map_coordinates(plane, ..., order=1, mode="reflect")` of SciPy 1.1."""
    rows, columns = np.mgrid[: plane.shape[0], : plane.shape[1]]
    y, x = (folded(place, size) for place, size in zip((rows + dy, columns + dx), plane.shape, strict=True))
    top, left = np.floor(y).astype(int), np.floor(x).astype(int)
    (top, bottom), (left, right) = (
        (mirrored(first, size), mirrored(first + 1, size))
        for first, size in zip((top, left), plane.shape, strict=True)
    )
    down, across = y - np.floor(y), x - np.floor(x)
    upper = plane[top, left] * ((1 - down) * (1 - across)) + plane[top, right] * ((1 - down) * across)
    return (
        upper + plane[bottom, left] * (down * (1 - across)) + plane[bottom, right] * (down * across)
    ).astype(np.float32)


def folded(place, size):
    """Where SciPy before 1.6 went beyond the border of a line: -0.3 became -0.7, size - 0.7 stayed."""
    period = 2 * size
    low = np.where(place < -period, place + period * np.trunc(-place / period), place)
    low = np.where(low < -size, low + period, -low - 1)
    high = place - period * np.trunc(place / period)
    high = np.where(high >= size, period - high - 1, high)
    return np.where(place < 0, low, np.where(place > size - 1, high, place))


def mirrored(index, size):
    """`index` folded back about the edge samples."""
    index = np.abs(index) % (2 * size - 2)
    return np.where(index < size, index, 2 * size - 2 - index)


def warped_affine(image, matrix):
    """`cv2.warpAffine(image / 255, matrix, borderMode=BORDER_REFLECT_101)` of OpenCV 3 and 4."""
    m = matrix.reshape(-1)
    d = 1 / (m[0] * m[4] - m[1] * m[3])
    a, b, c, e = m[4] * d, -m[1] * d, -m[3] * d, m[0] * d
    shift_x, shift_y = -a * m[2] - b * m[5], -c * m[2] - e * m[5]
    height, width = image.shape[:2]
    y, x = np.arange(height)[:, None], np.arange(width)[None, :]
    at_x = (np.rint((b * y + shift_x) * 1024) + 16 + np.rint(a * x * 1024)).astype(int) >> 5
    at_y = (np.rint((e * y + shift_y) * 1024) + 16 + np.rint(c * x * 1024)).astype(int) >> 5
    part_x, part_y = (np.float32(at & 31)[..., None] / np.float32(32) for at in (at_x, at_y))
    left, right = mirrored(at_x >> 5, width), mirrored((at_x >> 5) + 1, width)
    top, bottom = mirrored(at_y >> 5, height), mirrored((at_y >> 5) + 1, height)
    values = image / np.float32(255)
    upper = values[top, left] * ((1 - part_y) * (1 - part_x)) + values[top, right] * ((1 - part_y) * part_x)
    return upper + values[bottom, left] * (part_y * (1 - part_x)) + values[bottom, right] * (part_y * part_x)


def warped_perspective(image, matrix):
    """`cv2.warpPerspective(image, matrix)` of OpenCV 3 and 4, pixel by pixel; `matrix` is not singular."""
    height, width = image.shape[:2]
    m = np.array(
        [np.linalg.det(np.delete(np.delete(matrix, j, 0), i, 1)) for i in range(3) for j in range(3)]
    )
    m = m * [1, -1, 1, -1, 1, -1, 1, -1, 1] / np.linalg.det(matrix)
    out = np.zeros_like(image)
    block = min(1024 // min(16, height), width)
    for y in range(height):
        for x in range(width):
            first = x // block * block
            w = (m[6] * first + m[7] * y + m[8]) + m[6] * (x - first)
            w = 32 / w if w else 0.0
            at_x = int(np.rint(((m[0] * first + m[1] * y + m[2]) + m[0] * (x - first)) * w))
            at_y = int(np.rint(((m[3] * first + m[4] * y + m[5]) + m[3] * (x - first)) * w))
            total = np.full(3, 16384)
            for row, down in ((at_y >> 5, 32 - (at_y & 31)), ((at_y >> 5) + 1, at_y & 31)):
                for column, across in ((at_x >> 5, 32 - (at_x & 31)), ((at_x >> 5) + 1, at_x & 31)):
                    if 0 <= row < height and 0 <= column < width:
                        total += down * across * 32 * image[row, column].astype(int)
            out[y, x] = total >> 15
    return out


def boxed(image, width, height):
    """Pillow's box filter, along the rows first: its releases differ in that where an image is tall."""
    picture = Image.fromarray(image).resize((width, len(image)), Image.Resampling.BOX)
    return np.asarray(picture.resize((width, height), Image.Resampling.BOX))
