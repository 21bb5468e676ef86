"""Compiled loops of light flares."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled
from robustgen.pixels.imaging.kernels.elementary import angle_of, raise_to
from robustgen.pixels.imaging.kernels.elementwise import repeat_thrice, truncated


@compiled
def flare(centre_row, centre_column, lengths, exponent, out):
    """Write the light of rays of `lengths` around a centre, 0 to 1, to `out` (H, W)."""
    count, width = lengths.size, out.shape[1]
    turn = count / (2.0 * np.pi)
    # The first two are repeated at the end, for the angle of a full turn.
    rays = np.concatenate((lengths, lengths[:2]))
    places, nearness = np.empty(width), np.empty(width)
    for y in range(out.shape[0]):
        dy = y - centre_row
        for x in range(width):
            places[x] = (angle_of(x - centre_column, dy) + np.pi) * turn
        for x in range(width):
            dx = x - centre_column
            nearness[x] = 1.0 / (dx * dx + dy * dy + 0.0001)
        line = out[y]
        for x in range(width):
            ray = np.uint64(np.int64(places[x]))
            part = places[x] - np.float64(np.int64(places[x]))
            length = rays[ray] + part * (rays[ray + np.uint64(1)] - rays[ray])
            nearness[x] *= length * length
            line[x] = 1.0 - (part - 0.5) * (part - 0.5)
        if exponent != 1.0:
            raise_to(nearness, exponent)
        for x in range(width):
            line[x] = min(max(line[x] * nearness[x], 0.0), 1.0)


@compiled
def light_stars(image, centres, lengths, ends, out):
    """Lighten `image` (uint8, (H, 3 W)) by one flare after the other, into `out` (uint8).

    Flare i has its centre (row, column) at centres[i], and the rays lengths[ends[i] : ends[i + 1]].
    """
    values, light = image.astype(np.float32), np.empty((image.shape[0], image.shape[1] // 3))
    shares = np.empty(image.shape[1])
    for i in range(centres.shape[0]):
        flare(centres[i, 0], centres[i, 1], lengths[ends[i] : ends[i + 1]], 1.0, light)
        last = i == centres.shape[0] - 1
        for y in range(values.shape[0]):
            repeat_thrice(light[y], shares)
            line, target = values[y], out[y]
            for m in range(shares.size):
                value = np.float64(line[m])
                shares[m] = value + shares[m] * (255.0 - value)
            if last:
                for m in range(shares.size):
                    target[m] = truncated(shares[m])
            else:
                for m in range(shares.size):
                    line[m] = np.float32(shares[m])


@compiled
def light_up(image, light, out):
    """Write 255 + light * (`image` - 255), with `light` (H, W), to `out` (uint8, (H, 3 W))."""
    shares = np.empty(image.shape[1])
    for y in range(image.shape[0]):
        repeat_thrice(light[y], shares)
        line, target = image[y], out[y]
        for i in range(shares.size):
            target[i] = truncated(255.0 + shares[i] * (line[i] - 255.0))
