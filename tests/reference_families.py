"""C-bar and the implementation of imagecorruptions once more, slowly, straight from what was published.

`C_BAR` and `IMAGECORRUPTIONS` map names to functions of an image, a strength or a severity, and a
RandomState, so that results can be compared pixel by pixel on images and at sizes of which there are no
published outputs.
"""

from math import ceil, cos, exp, hypot, pi, radians, sin, sqrt

import cv2
import numpy as np
import scipy.ndimage as ndi
from PIL import Image

from robustgen import CORRUPTIONS
from robustgen.imaging.third_party_files import FROST


def truncated(values):
    return np.clip(values, 0, 255).astype(np.uint8)


def part(strength, most):
    return strength * most / 10


def seeded(rng):
    # As randint(0, 2**32) of a machine whose long has 64 bits.
    return np.random.RandomState(rng.randint(0, 2**32, dtype=np.int64))


def grid(image):
    return np.mgrid[: image.shape[0], : image.shape[1]].astype(float)


# --- ImageNet-C-bar ------------------------------------------------------------------------------


def single_frequency_greyscale(a, s, r):
    y, x = grid(a)
    m = r.uniform(-pi, pi)
    n = r.uniform(-abs(m), abs(m))
    f = np.array([m, n])[r.permutation(2)]
    noise = np.sin(x * f[0] + y * f[1] + r.uniform(0, 2 * pi))
    return truncated(a + part(s, 196) * noise[..., None])


def cocentric_sine_waves(a, s, r):
    side, (y, x) = a.shape[0], grid(a)
    x0, y0 = r.uniform(0, side, 2)
    freq, amplitude, width = r.uniform(0, 10), r.uniform(0, side / 10), r.uniform(0, side / 10)
    t = np.arctan2(x - x0, y - y0) * freq
    noise = ((np.sqrt((x - x0) ** 2 + (y - y0) ** 2) + np.sin(t) * amplitude) % width) / width - 0.5
    return truncated(a + part(s, 128) * noise[..., None])


def plasma_noise(a, s, r):
    side, (y, x) = a.shape[0], grid(a)
    time, n, sharp = r.uniform(0, 6 * pi), r.randint(4, 7), r.uniform(0.5, 1)
    scale = r.uniform(0.075, 0.2) * side
    x, y, i = x / scale, y / scale, (1, 1, 1, 0)
    for _ in range(n):
        r0, r1 = np.cos(y * i[0] - i[3] + time / i[1]) / i[2], np.sin(x * i[0] - i[3] + time / i[1]) / i[2]
        r0, r1 = r0 - 0.3 * r1, r1 + 0.3 * r0
        x, y = x + r0, y + r1
        i = (1.93 * i[0], 1.15 * i[1], (2.25 - sharp) * i[2], i[3] * time * i[1])
    noise = np.stack([np.sin(x - time), np.sin((x + y + np.sin(time)) / 2), np.sin(y + time)], -1)
    v = part(s, 64)
    return truncated((1 - v / 255) * a + v * noise)


def lattice(q):
    """Gradients and permutation of perlin_noise."""
    g = ((q.randint(0, 2**31, size=(514, 2)) % 512) - 256) / 256
    with np.errstate(invalid="ignore"):
        g /= np.sqrt((g**2).sum(axis=1, keepdims=True))
    order = list(range(514))
    for i in range(255, -1, -1):
        j = q.randint(0, 2**31) % 256
        order[i], order[j] = order[j], order[i]
    for i in range(258):
        order[256 + i], g[256 + i] = order[i], g[i]
    return g, np.array(order)


def perlin_noise(a, s, r):
    q, alpha, (y, x) = seeded(r), part(s, 0.5), grid(a)
    g, order = lattice(q)
    c = 1 / (32 * a.shape[0] / 224)

    def noise(u, v):
        tu, tv = u + 4096, v + 4096
        bx, by = ([t.astype(int) % 256, (t.astype(int) % 256 + 1) % 256] for t in (tu, tv))
        rx, ry = ([t % 1, t % 1 - 1] for t in (tu, tv))

        def dot(k, m):
            at = g[order[order[bx[k]] + by[m]]]
            return rx[k] * at[..., 0] + ry[m] * at[..., 1]

        def weight(t):
            return t**2 * (3 - 2 * t)

        low = dot(0, 0) + weight(rx[0]) * (dot(1, 0) - dot(0, 0))
        high = dot(0, 1) + weight(rx[0]) * (dot(1, 1) - dot(0, 1))
        return 1.5 * (low + weight(ry[0]) * (high - low))

    turbulence = sum(np.abs(noise(f * y * c, f * x * c)) / f for f in (1, 2, 4, 8, 16))
    t = np.clip(0.5 * turbulence + 0.5, 0, 1)
    mixed = (a.astype(np.float32) * np.float32(1 - alpha)).astype(float) + (255 * alpha * t)[..., None]
    return truncated(np.where(np.isnan(mixed), 0, mixed))


def spectral(side, q, power):
    left = q.uniform(0, 2 * pi, (side, side // 2))
    columns = [left, left[::-1, ::-1]]
    if side % 2:
        upper = q.uniform(0, 2 * pi, (side // 2, 1))
        columns.insert(1, np.concatenate([upper, [[0]], upper[::-1]]))
    phases = np.concatenate(columns, axis=1)
    z = np.roll(power * (np.cos(phases) + 1j * np.sin(phases)), side // 2, axis=(0, 1))
    noise = np.fft.ifft2(z).real
    return noise / noise.std()


def distances(a):
    y, x = grid(a)
    return np.sqrt((x - a.shape[0] / 2) ** 2 + (y - a.shape[0] / 2) ** 2)


def blue_noise_sample(a, s, r):
    noise = spectral(a.shape[0], seeded(r), distances(a))
    return a * (noise > part(s, 3) - 2.5)[..., None].astype(np.uint8)


def brownish_noise(a, s, r):
    q, power = seeded(r), 1 / (distances(a) ** 2 + 1)
    noise = np.stack([spectral(a.shape[0], q, power) for _ in range(3)], -1)
    return truncated(a + part(s, 64) * noise)


def checkerboard_cutout(a, s, r):
    side, (y, x) = a.shape[0], grid(a)
    angle, cell = r.uniform(0, 2 * pi), max(r.uniform(0.1, 0.25) * side, 1)
    k = int(4 * side // cell)
    squares = seeded(r).uniform(size=(k, k)) < part(s, 1)
    nx, ny = (cos(angle) * y + sin(angle) * x) / cell, (-sin(angle) * y + cos(angle) * x) / cell
    hit = ((nx % 2).astype(int) == (ny % 2).astype(int)) & squares[nx.astype(int), ny.astype(int)]
    return np.where(hit[..., None], np.uint8(128), a)


def flare(a, centre, lengths, exponent):
    (y, x), n = grid(a), len(lengths)
    dy, dx = y - centre[0], x - centre[1]
    d = (np.arctan2(dx, dy) + pi) / (2 * pi) * n
    i = d.astype(int)
    f = d - i
    length = lengths[i % n] + f * (lengths[(i + 1) % n] - lengths[i % n])
    dist = np.sqrt(dy**2 + dx**2)
    g = (length**2 / (dist**2 + 0.0001)) ** exponent
    return np.clip((1 - (f - 0.5) ** 2) * g, 0, 1)[..., None]


def sparkles(a, s, r):
    centres = r.uniform(0, a.shape[0], (5, 2))
    q, rays = seeded(r), r.randint(50, 200, size=5)
    radius, values = part(s, 0.1) * a.shape[0], a
    for centre, n in zip(centres, rays, strict=True):
        lengths = np.array([max(1, radius + 0.25 * radius * q.randn()) for _ in range(n)])
        read = values.astype(np.float32).astype(float)
        values = read + flare(a, centre, lengths, 1) * (255 - read)
    return truncated(values)


def inverse_sparkles(a, s, r):
    centre = r.uniform(0.25, 0.75, 2) * a.shape[0]
    q, n = seeded(r), r.randint(50, 200)
    radius = 0.25 * a.shape[0]
    lengths = np.array([radius + 0.25 * radius * q.randn() for _ in range(n)])
    light = flare(a, centre, lengths, (100 - (100 - part(s, 65))) / 50)
    return truncated(255 + light * (a.astype(float) - 255))


def bilinear(image, down, right):
    """Values at (down, right) of an image (H, W, 3), in its precision, and where a neighbour was outside."""
    kind, (height, width) = image.dtype, image.shape[:2]
    top, left = np.floor(down).astype(int), np.floor(right).astype(int)
    bottom, far = top + 1, left + 1
    b, c = (1 - right) + left, (1 - far) + right
    e, g = (1 - down) + top, (1 - bottom) + down

    def pixel(row, column):
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        values = image[np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)]
        return np.where(inside[..., None], values, kind.type(0)), inside

    def times(values, factor):
        return values * factor[..., None].astype(kind)

    corners = {(i, j): pixel(row, column) for i, row in enumerate((top, bottom))
               for j, column in enumerate((left, far))}  # fmt: skip
    rows = []
    for i, factor in enumerate((e, g)):
        (first, near), (second, other) = corners[i, 0], corners[i, 1]
        products = times(first, b), times(second, c)
        whole = (near & other)[..., None]
        low = products[0] + products[1]
        high = products[0].astype(float) + products[1].astype(float)
        rows.append((low, high, whole, factor))
    short = sum(times(low, factor) for low, _, _, factor in rows)
    # Of each row: in its own precision where both of its neighbours are inside.
    mixed = [
        np.where(whole, times(low, factor).astype(float), high * factor[..., None])
        for low, high, whole, factor in rows
    ]
    all_inside = rows[0][2] & rows[1][2]
    return np.where(all_inside, short.astype(float), mixed[0] + mixed[1]), all_inside


def caustic_refraction(a, s, r):
    side, (y, x) = a.shape[0], grid(a)
    time, size = r.uniform(0.5, 2), r.uniform(0.75, 1.25) * side
    lens, light = part(s, 0.5 * side), part(s, 2)
    p0, p1 = (place / size % 1 * 6.28318530718 - 250 for place in (y, x))
    i0, i1, c = p0, p1, np.ones_like(p0)
    for n in range(5):
        t = time * (1 - 3.5 / (n + 1))
        i0, i1 = p0 + np.cos(t - i0) + np.sin(t + i1), p1 + (np.sin(t - i1) + np.cos(t + i0))
        c = c + 1 / np.sqrt((p0 / (np.sin(i0 + t) / 0.005)) ** 2 + (p1 / (np.cos(i1 + t) / 0.005)) ** 2)
    c = 1.17 - (c / 5) ** 1.4
    surface = np.pad(ndi.gaussian_filter(np.clip(np.abs(c) ** 8, 0, 1), 1), 1)
    ns = surface[1:-1, :-2] - surface[1:-1, 2:]
    ew = surface[2:, 1:-1] - surface[:-2, 1:-1]
    norm = np.sqrt(ew**2 + ns**2 + 1)
    n0, n1, n2 = ew / norm, -ns / norm, 1 / norm
    with np.errstate(invalid="ignore", divide="ignore"):
        o, h = np.arcsin(np.sin(np.arccos(n2)) / 4), np.sqrt(n0**2 + n1**2)
        factor = (np.cos(o) - np.sin(o) * n2 / h) * lens
        moved = [np.where(np.abs(n2) >= 0.999, 0, np.round(n * factor, 3)) for n in (n0, n1)]
    values, inside = bilinear(a.astype(np.float32) / np.float32(255), y + moved[0], x + moved[1])
    short = values.astype(np.float32)
    for bright in (ns, ew):
        values = values + (bright * light)[..., None]
        short = short + (bright * light)[..., None].astype(np.float32)
    out = np.where(inside, np.clip(short, 0, 1).astype(float), np.clip(values, 0, 1))
    return (out * 255).astype(np.uint8)


# --- the other five of CIFAR-10-C-bar ------------------------------------------------------------


def antialiased_line(r0, c0, r1, c1):
    dc, dr = abs(c0 - c1), abs(r0 - r1)
    err, sc, sr = dc - dr, (1 if c0 < c1 else -1), (1 if r0 < r1 else -1)
    ed = np.float32(sqrt(dc**2 + dr**2)) if dc + dr else np.float32(1)
    points, c, r = [], c0, r0
    while True:
        points.append((r, c, abs(err - dc + dr) / ed))
        e, before = err, c
        if 2 * e >= -dc:
            if c == c1:
                break
            if e + dr < ed:
                points.append((r + sr, c, abs(e + dr) / ed))
            err, c = err - dr, c + sc
        if 2 * e <= dr:
            if r == r1:
                break
            if dc - e < ed:
                points.append((r, before + sc, abs(dc - e) / ed))
            err, r = err + dc, r + sr
    return points


def lines(a, s, r):
    side, out = a.shape[0], a.copy()
    angle, variation, q = r.uniform(0, 2 * pi), r.uniform(0.1, 1), seeded(r)
    for _ in range(int(part(s, 1) * side)):
        x, y = side * q.uniform(), side * q.uniform()
        t = angle + 2 * pi * variation * (q.uniform() - 0.5)
        dx, dy = sin(t) * side, cos(t) * side
        points = antialiased_line(int(x - dy), int(y - dx), int(x + dy), int(y + dx))
        new = {}
        for row, column, distance in points:
            if 0 <= row < side and 0 <= column < side:
                cover = 1 - distance
                new[row, column] = (1 - cover) * out[row, column].astype(np.float32) + 128 * float(cover)
        for place, value in new.items():
            out[place] = value.astype(np.uint8)
    return out


def pinch_and_twirl(a, s, r):
    angles = (np.array([r.choice([1, -1]) for _ in range(9)]) * part(s, pi / 2)).reshape(3, 3)
    amount, out = part(s, 0.4) + 0.1, a.astype(np.float32)
    for i in range(3):
        for j in range(3):
            y, x = np.mgrid[10 * j : 10 * j + 10, 10 * i : 10 * i + 10].astype(float)
            centre = 10 * j + 5, 10 * i + 5
            dy, dx = y - centre[0], x - centre[1]
            dist = np.sqrt(dy**2 + dx**2)
            stays = (dist > 5) | (np.round(dist, 3) == 0)
            depth = np.where(stays, 1, dist / 5)
            t, w = np.sin(pi * 0.5 * depth) ** (-amount), angles[i, j] * (1 - depth) ** 2
            values, _ = bilinear(
                out,
                centre[0] + (dy * t * np.cos(w) - dx * t * np.sin(w)),
                centre[1] + (dy * t * np.sin(w) + dx * t * np.cos(w)),
            )
            cell = out[10 * j : 10 * j + 10, 10 * i : 10 * i + 10]
            cell[~stays] = values[~stays]
    return truncated(out)


def ripple(a, s, r):
    y, x = grid(a)
    wavelengths, phases = r.uniform(0.1, 0.3, 2) * a.shape[0], r.uniform(0, 2 * pi, 2)
    down, right = (
        place + part(s, 0.025) * a.shape[0] * np.sin(2 * pi * place / wavelength + phase)
        for place, wavelength, phase in zip((y, x), wavelengths, phases, strict=True)
    )
    return truncated(bilinear(a.astype(float), down, right)[0])


def circular_motion_blur(a, s, r):
    image, amount = a.astype(np.float32) / np.float32(255), part(s, 15)
    out, total = np.zeros_like(image), 0.0
    for i in range(21):
        place = 2 * i / 20 - 1
        weight = exp(-2 * place**2)
        out += np.float32(weight) * ndi.rotate(image, place * amount, reshape=False)
        total += weight
    return truncated(out / np.float32(total) * np.float32(255))


def transverse_chromatic_abberation(a, s, r):
    z, side = part(s, 0.5), a.shape[0]
    scales = np.array([1, 1 + z / 2, 1 + z])[r.permutation(3)]
    channels = []
    for channel, scale in enumerate(scales):
        large = ndi.zoom(a[..., channel], scale, prefilter=False)
        start = (large.shape[0] - side) // 2
        channels.append(large[start : start + side, start : start + side])
    return np.stack(channels, -1)


C_BAR = {
    each.__name__: each
    for each in (
        single_frequency_greyscale, cocentric_sine_waves, plasma_noise, perlin_noise, blue_noise_sample,
        brownish_noise, checkerboard_cutout, sparkles, inverse_sparkles, caustic_refraction, lines,
        pinch_and_twirl, ripple, circular_motion_blur, transverse_chromatic_abberation,
    )
}  # fmt: skip


# --- imagecorruptions ----------------------------------------------------------------------------


def constants(name, severity):
    return CORRUPTIONS[name].table[224][severity - 1]


def summed(layer, radius, sigma, angle):
    """The motion blur of a float64 array of two or three dimensions."""
    height, width = layer.shape[:2]
    taps = 2 * int(radius) + 1
    k = np.exp(-(np.arange(taps) ** 2) / (2 * sigma**2)) / (sqrt(2 * pi) * sigma)
    k /= k.sum()
    py, px = taps * sin(radians(angle)), taps * cos(radians(angle))
    out = np.zeros_like(layer)
    rows, columns = np.arange(height), np.arange(width)
    for i in range(taps):
        oy, ox = ceil(i * py / hypot(py, px) - 0.5), ceil(i * px / hypot(py, px) - 0.5)
        if abs(oy) >= height or abs(ox) >= width:
            break
        moved = np.ix_(np.clip(rows + oy, 0, height - 1), np.clip(columns + ox, 0, width - 1))
        out += k[i] * layer[moved]
    return out


def motion_blur(a, severity, r):
    p = constants("motion_blur", severity)
    return truncated(summed(a.astype(float), p.radius, p.sigma, r.uniform(-45, 45)))


def snow(a, severity, r):
    p, (height, width) = constants("snow", severity), a.shape[:2]
    layer = r.normal(size=(height, width), loc=p.loc, scale=p.scale)
    crops = [ceil(side / p.zoom) for side in (height, width)]
    top, left = ((side - crop) // 2 for side, crop in zip((height, width), crops, strict=True))
    layer = ndi.zoom(layer[top : top + crops[0], left : left + crops[1]], (p.zoom, p.zoom), order=1)
    layer[layer < p.threshold] = 0
    blown = summed(np.clip(layer, 0, 1), p.radius, p.sigma, r.uniform(-135, -45))
    layer = (np.round(blown * 255).astype(np.uint8) / 255.0)[:height, :width, None]
    x = a.astype(np.float32) / np.float32(255)
    grey = cv2.cvtColor(x, cv2.COLOR_RGB2GRAY).reshape(height, width, 1)
    x = np.float32(p.mix) * x + np.float32(1 - p.mix) * np.maximum(
        x, grey * np.float32(1.5) + np.float32(0.5)
    )
    return (np.clip((x + layer) + np.rot90(layer, 2), 0, 1) * 255).astype(np.uint8)


def frost(a, severity, r):
    p, (height, width) = constants("frost", severity), a.shape[:2]
    names = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg", "frost6.jpg")
    photograph = cv2.imread(str(FROST.find() / names[r.randint(5)]))
    rows, columns = photograph.shape[:2]
    k = max(1, height / rows, width / columns) * 1.1
    size = ceil(columns * k), ceil(rows * k)
    photograph = cv2.resize(photograph, size, interpolation=cv2.INTER_CUBIC)
    top = r.randint(0, photograph.shape[0] - height)
    left = r.randint(0, photograph.shape[1] - width)
    window = photograph[top : top + height, left : left + width, ::-1]
    return truncated(p.image_weight * a.astype(float) + p.frost_weight * window)


def elastic_transform(a, severity, r):
    height, width = a.shape[:2]
    alpha = 250 * (0.05, 0.065, 0.085, 0.1, 0.12)[severity - 1]
    bound = 0.005 * height

    def field():
        noise = r.uniform(-bound, bound, (height, width))
        smooth = ndi.gaussian_filter(noise, (0.01 * height, 0.01 * width), mode="reflect", truncate=3)
        return (smooth * alpha).astype(np.float32)

    dx, dy = field(), field()
    y, x = grid(a)
    image = a.astype(np.float32) / np.float32(255)
    planes = [ndi.map_coordinates(image[..., c], [y + dy, x + dx], order=1, mode="reflect") for c in range(3)]
    return (np.clip(np.stack(planes, -1), 0, 1) * np.float32(255)).astype(np.uint8)


def pixelate(a, severity, r):
    c, (height, width) = constants("pixelate", severity).fraction, a.shape[:2]
    small = Image.fromarray(a).resize((int(width * c), int(height * c)), Image.Resampling.BOX)
    return np.array(small.resize((width, height), Image.Resampling.NEAREST))


def zoom_blur(a, severity, r):
    p, (height, width) = constants("zoom_blur", severity), a.shape[:2]
    x = (a / 255.0).astype(np.float32)
    factors = np.arange(1, p.stop, p.step)
    out = np.zeros_like(x)
    for factor in factors:
        crops = ceil(height / factor), ceil(width / factor)
        top, left = (height - crops[0]) // 2, (width - crops[1]) // 2
        crop = x[top : top + crops[0], left : left + crops[1]]
        out += ndi.zoom(crop, (factor, factor, 1), order=1)[:height, :width]
    return (np.clip((x + out) / (len(factors) + 1), 0, 1) * 255).astype(np.uint8)


IMAGECORRUPTIONS = {
    each.__name__: each for each in (motion_blur, snow, frost, elastic_transform, pixelate, zoom_blur)
}
