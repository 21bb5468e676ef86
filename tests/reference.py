"""The corruptions once more, slowly, by way of the libraries that the published scripts called.

`corrupted` takes its draws from a RandomState in the scripts' order, so that results can be compared
pixel by pixel on images and at sizes of which there are no published outputs. Motion blur and water are
left out: the one is held against ImageMagick, the other is OpenCV throughout.
"""

from decimal import Decimal
from io import BytesIO
from math import ceil

import cv2
import numpy as np
import scipy.ndimage as ndi
from PIL import Image
from skimage.color import hsv2rgb, rgb2hsv

from robustgen.imaging.defocus import disk
from robustgen.imaging.jpeg import decode_jpeg, encode_jpeg
from robustgen.imaging.motion import blur_along_line
from robustgen.imaging.third_party_files import FROST


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


def blurred(x, sigma):
    return gaussian(x, sigma, "nearest", 4.0)


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


def gaussian_noise(image, p, rng):
    x = image / 255.0
    return truncated(x + rng.normal(size=x.shape, scale=p.sigma))


def speckle_noise(image, p, rng):
    x = image / 255.0
    return truncated(x + x * rng.normal(size=x.shape, scale=p.sigma))


def shot_noise(image, p, rng):
    return truncated(rng.poisson(image / 255.0 * p.photons) / p.photons)


def impulse_noise(image, p, rng):
    hit = rng.uniform(size=image.shape) <= p.amount
    salt = rng.uniform(size=image.shape) <= 0.5
    out = image.copy()
    out[hit & salt], out[hit & ~salt] = 255, 0
    return out


def gaussian_blur(image, p, rng):
    return truncated(blurred(image / 255.0, p.sigma))


def defocus_blur(image, p, rng):
    kernel = disk(p.radius, p.alias_blur)
    return truncated(np.stack([cv2.filter2D(image[:, :, c] / 255.0, -1, kernel) for c in range(3)], axis=2))


def glass_blur(image, p, rng):
    out, d = truncated(blurred(image / 255.0, p.sigma)), p.max_delta
    for _ in range(p.iterations):
        for h in range(out.shape[0] - d, d, -1):
            for w in range(out.shape[1] - d, d, -1):
                dx, dy = rng.randint(-d, d, size=(2,))
                out[h, w] = out[h + dy, w + dx]
    return truncated(blurred(out / 255.0, p.sigma))


def zoom_blur(image, p, rng):
    x = (image / np.float32(255)).astype(np.float32)
    factors = np.arange(1, p.stop, p.step)
    total = np.zeros_like(x)
    for factor in factors:
        total += zoomed(x, factor)
    return truncated((x + total) / (len(factors) + 1))


def snow(image, p, rng):
    x = (image / np.float32(255)).astype(np.float32)
    layer = zoomed(rng.normal(size=x.shape[:2], loc=p.loc, scale=p.scale), p.zoom)
    layer[layer < p.threshold] = 0
    flakes = truncated(layer)
    layer = blur_along_line(flakes, p.radius, p.sigma, rng.uniform(-135, -45))[..., None] / 255.0
    weights = np.float32([0.299, 0.587, 0.114])
    grey = ((x[..., 1] * weights[1] + x[..., 2] * weights[2]) + x[..., 0] * weights[0])[..., None]
    x = p.mix * x + (1 - p.mix) * np.maximum(x, grey * 1.5 + 0.5)
    return truncated(x + layer + np.rot90(layer, k=2))


def frost(image, p, rng):
    name = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")[rng.randint(5)]
    photograph = cv2.imread(str(FROST.find() / name))
    if p.shrink != 1:
        photograph = cv2.resize(photograph, (0, 0), fx=p.shrink, fy=p.shrink)
    height, width = image.shape[:2]
    top = rng.randint(0, photograph.shape[0] - height)
    left = rng.randint(0, photograph.shape[1] - width)
    crop = photograph[top : top + height, left : left + width, ::-1]
    return np.clip(p.image_weight * image + p.frost_weight * crop, 0, 255).astype(np.uint8)


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


def fog(image, p, rng):
    x = image / 255.0
    height, width = x.shape[:2]
    side = 2 ** ceil(np.log2(max(height, width)))
    haze = plasma(side, p.decay, rng)[:height, :width, None]
    return truncated((x + p.strength * haze) * x.max() / (x.max() + p.strength))


def brightness(image, p, rng):
    hsv = rgb2hsv(image / 255.0)
    hsv[:, :, 2] = np.clip(hsv[:, :, 2] + p.added, 0, 1)
    return truncated(hsv2rgb(hsv))


def saturate(image, p, rng):
    hsv = rgb2hsv(image / 255.0)
    hsv[:, :, 1] = np.clip(hsv[:, :, 1] * p.gain + p.offset, 0, 1)
    return truncated(hsv2rgb(hsv))


def contrast(image, p, rng):
    x = image / 255.0
    means = np.mean(x, axis=(0, 1), keepdims=True)
    return truncated((x - means) * p.factor + means)


def elastic_transform(image, p, rng):
    shape = image.shape[:2]
    centre, reach = np.float32(shape) // 2, min(shape) // 3
    anchors = np.float32([centre + reach, [centre[0] + reach, centre[1] - reach], centre - reach])
    moved = anchors + rng.uniform(-p.jitter, p.jitter, size=(3, 2)).astype(np.float32)
    x = warped_affine(image, cv2.getAffineTransform(anchors, moved))
    dx, dy = (smooth_field(shape, p.alpha, p.sigma, rng).astype(np.float32) for _ in range(2))
    return truncated(np.stack([displaced(x[:, :, c], dx, dy) for c in range(3)], axis=2))


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


def pixelate(image, p, rng):
    height, width = image.shape[:2]
    return boxed(boxed(image, int(width * p.fraction), int(height * p.fraction)), width, height)


def boxed(image, width, height):
    """Pillow's box filter, along the rows first: its releases differ in that where an image is tall."""
    picture = Image.fromarray(image).resize((width, len(image)), Image.Resampling.BOX)
    return np.asarray(picture.resize((width, height), Image.Resampling.BOX))


def jpeg_compression(image, p, rng):
    if p.library == "ijg":
        return decode_jpeg(encode_jpeg(image, p.quality, optimise=False, library="ijg"), library="ijg")
    file = BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=p.quality)
    return np.asarray(Image.open(file))


def spatter(image, p, rng):
    """Mud."""
    x = (image / np.float32(255)).astype(np.float32)
    layer = blurred(rng.normal(size=x.shape[:2], loc=p.loc, scale=p.scale), p.sigma)
    layer[layer < p.threshold] = 0
    cover = blurred((layer > p.threshold).astype(np.float64), p.strength)[..., None]
    cover[cover < 0.8] = 0
    mud = np.float32([63 / 255, 42 / 255, 20 / 255]).astype(np.float64)
    return truncated((x * (1 - cover)).astype(np.float32) + (mud * cover).astype(np.float32))


def corrupted(image, name, parameters, rng):
    return globals()[name](image, parameters, rng)
