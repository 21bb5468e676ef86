"""Compiled loops of noise: fields of waves, and their addition to images."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled
from robustgen.pixels.imaging.kernels.elementary import angle_of, cosine, sine
from robustgen.pixels.imaging.kernels.elementwise import repeat_thrice, truncated


@compiled
def add_field(image, field, amount, out):
    """Add `amount` times `field` (H, W) to all channels of `image` (uint8, (H, 3 W)), into `out`."""
    added = np.empty(image.shape[1])
    for y in range(image.shape[0]):
        repeat_thrice(field[y], added)
        values, target = image[y], out[y]
        for i in range(added.size):
            target[i] = truncated(values[i] + amount * added[i])


@compiled
def add_fields(image, fields, amount, out):
    """Add `amount` times each of `fields` (3, N) to its channel of `image` (uint8, (N, 3)), into `out`."""
    red, green, blue = fields[0], fields[1], fields[2]
    for i in range(red.size):
        out[i, 0] = truncated(image[i, 0] + amount * red[i])
        out[i, 1] = truncated(image[i, 1] + amount * green[i])
        out[i, 2] = truncated(image[i, 2] + amount * blue[i])


@compiled
def cut_below(image, field, threshold, out):
    """Copy `image` (uint8, (N, 3)) to `out` where `field` (N) exceeds `threshold`; else write black."""
    for i in range(field.size):
        keep = field[i] > threshold
        for c in range(3):
            out[i, c] = image[i, c] if keep else np.uint8(0)


@compiled
def mix_turbulence(image, turbulence, alpha, out):
    """Mix `image` (uint8, (H, 3 W)) with clip(turbulence / 2 + 1/2), 255 times `alpha`, into `out`."""
    rest, light = np.float32(1.0 - alpha), 255.0 * alpha
    clouds, added = np.empty(turbulence.shape[1]), np.empty(image.shape[1])
    for y in range(image.shape[0]):
        line, values, target = turbulence[y], image[y], out[y]
        for x in range(line.size):
            t = min(max(0.5 * line[x] + 0.5, 0.0), 1.0) * light
            # One gradient in 65536 has no direction, which the scripts turn into 0/0: black.
            clouds[x] = -np.inf if line[x] != line[x] else t
        repeat_thrice(clouds, added)
        for i in range(added.size):
            target[i] = truncated(np.float64(np.float32(values[i]) * rest) + added[i])


@compiled
def plane_wave(along_x, along_y, phase, out):
    """Write sin(x `along_x` + y `along_y` + `phase`) of each place (y, x) to `out` (H, W)."""
    for y in range(out.shape[0]):
        line, rise = out[y], y * along_y
        for x in range(line.size):
            line[x] = sine(x * along_x + rise + phase)


@compiled
def ring_wave(centre_x, centre_y, frequency, amplitude, width, out):
    """Write rings around a centre, `width` apart and bent by a sine, to `out` (H, W): -1/2 to 1/2."""
    for y in range(out.shape[0]):
        line, dy = out[y], y - centre_y
        for x in range(line.size):
            dx = x - centre_x
            bend = sine(angle_of(dx, dy) * frequency) * amplitude
            way = np.sqrt(dx * dx + dy * dy) + bend
            # Python's remainder, which has the sign of the divisor.
            rest = way - np.floor(way / width) * width
            line[x] = rest / width - 0.5


@compiled
def plasma_waves(image, time, rounds, sharpness, scale, amount, out):
    """Blend `image` (uint8, (H, W, 3)) with colours stirred by `rounds` of waves, into `out`.

    `time` is the phase of all waves, `sharpness` the weight of finer ones, `scale` the size in pixels.
    """
    width = image.shape[1]
    across, down, first, second = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    blue, green, red = np.empty(width), np.empty(width), np.empty(width)
    rest = 1.0 - amount / 255.0
    for y in range(image.shape[0]):
        for x in range(width):
            across[x], down[x] = x / scale, y / scale
        fine, slow, fade = 1.0, 1.0, 1.0
        for _ in range(rounds):
            shift = time / slow
            for x in range(width):
                first[x] = cosine(down[x] * fine + shift) / fade
            for x in range(width):
                second[x] = sine(across[x] * fine + shift) / fade
            for x in range(width):
                across[x] += first[x] - 0.3 * second[x]
                down[x] += second[x] + 0.3 * first[x]
            fine, slow, fade = fine * 1.93, slow * 1.15, (2.25 - sharpness) * fade
        middle = sine(time)
        for x in range(width):
            red[x] = sine(across[x] - time)
        for x in range(width):
            green[x] = sine((across[x] + down[x] + middle) / 2)
        for x in range(width):
            blue[x] = sine(down[x] + time)
        for x in range(width):
            out[y, x, 0] = truncated(rest * image[y, x, 0] + amount * red[x])
            out[y, x, 1] = truncated(rest * image[y, x, 1] + amount * green[x])
            out[y, x, 2] = truncated(rest * image[y, x, 2] + amount * blue[x])
