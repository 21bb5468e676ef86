"""Fourier transforms along lines, with additions and multiplications in a fixed order.

A library's transforms depend on the processor. These transform batches of eight lines, side by side as
lanes. Complex numbers are two planes: row 0 of the first axis is real, row 1 imaginary. A batch of N places
is an array (2, 8 N).
"""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner
from robustgen.pixels.imaging.kernels.lanes import LANES, empty_lanes, load, store


@inner
def _store_turned(x, y, c, s, real, imaginary, at):
    """Write x + i y times c - i s."""
    store(x * c + y * s, real, at)
    store(y * c - x * s, imaginary, at)


@inner
def _combine_twos(source, target, rest, length, cosines, sines):
    """Transform pairs of rows."""
    real, imaginary, out_real, out_imaginary = source[0], source[1], target[0], target[1]
    spread, step = cosines.size // (2 * rest), rest * length
    for a in range(rest):
        c, s = cosines[a * spread], sines[a * spread]
        for i in range(0, length, LANES):
            at, to = a * length + i, 2 * a * length + i
            w, x = load(real, at), load(real, at + step)
            y, z = load(imaginary, at), load(imaginary, at + step)
            store(w + x, out_real, to)
            store(y + z, out_imaginary, to)
            _store_turned(w - x, y - z, c, s, out_real, out_imaginary, to + length)


@inner
def _combine_fours(source, target, rest, length, cosines, sines):
    """Transform fours of rows."""
    real, imaginary, out_real, out_imaginary = source[0], source[1], target[0], target[1]
    spread, step = cosines.size // (4 * rest), rest * length
    for a in range(rest):
        c1, s1 = cosines[a * spread], sines[a * spread]
        c2, s2 = cosines[2 * a * spread], sines[2 * a * spread]
        c3, s3 = cosines[3 * a * spread], sines[3 * a * spread]
        for i in range(0, length, LANES):
            at, to = a * length + i, 4 * a * length + i
            w, x = load(real, at), load(real, at + step)
            y, z = load(real, at + 2 * step), load(real, at + 3 * step)
            even, odd, even_difference, odd_difference = w + y, x + z, w - y, x - z
            w, x = load(imaginary, at), load(imaginary, at + step)
            y, z = load(imaginary, at + 2 * step), load(imaginary, at + 3 * step)
            even_i, odd_i, even_difference_i, odd_difference_i = w + y, x + z, w - y, x - z
            store(even + odd, out_real, to)
            store(even_i + odd_i, out_imaginary, to)
            # Each difference plus and minus i times the other.
            x, y = even_difference + odd_difference_i, even_difference_i - odd_difference
            _store_turned(x, y, c1, s1, out_real, out_imaginary, to + length)
            _store_turned(even - odd, even_i - odd_i, c2, s2, out_real, out_imaginary, to + 2 * length)
            x, y = even_difference - odd_difference_i, even_difference_i + odd_difference
            _store_turned(x, y, c3, s3, out_real, out_imaginary, to + 3 * length)


@inner
def _combine_odds(source, target, size, rest, length, cosines, sines):
    """Transform groups of `size` rows, an odd number: the r-th from either end share cosines and sines."""
    real, imaginary, out_real, out_imaginary = source[0], source[1], target[0], target[1]
    spread, step, half = cosines.size // (size * rest), rest * length, (size - 1) // 2
    sums, sums_i = np.empty((half + 1) * LANES), np.empty((half + 1) * LANES)
    differences, differences_i = np.empty((half + 1) * LANES), np.empty((half + 1) * LANES)
    roots = np.empty((2, size))
    for r in range(size):
        roots[0, r], roots[1, r] = cosines[r * rest * spread], sines[r * rest * spread]
    for a in range(rest):
        for i in range(0, length, LANES):
            at, to = a * length + i, size * a * length + i
            first, first_i = load(real, at), load(imaginary, at)
            total, total_i = first, first_i
            for r in range(1, half + 1):
                near, far = at + r * step, at + (size - r) * step
                x, y = load(real, near), load(real, far)
                store(x + y, sums, r * LANES)
                store(x - y, differences, r * LANES)
                total = total + (x + y)
                x, y = load(imaginary, near), load(imaginary, far)
                store(x + y, sums_i, r * LANES)
                store(x - y, differences_i, r * LANES)
                total_i = total_i + (x + y)
            store(total, out_real, to)
            store(total_i, out_imaginary, to)
            for q in range(1, half + 1):
                even, even_i, odd, odd_i = first, first_i, first * 0.0, first * 0.0
                for r in range(1, half + 1):
                    c, s = roots[0, r * q % size], roots[1, r * q % size]
                    even = even + load(sums, r * LANES) * c
                    even_i = even_i + load(sums_i, r * LANES) * c
                    odd = odd + load(differences_i, r * LANES) * s
                    odd_i = odd_i - load(differences, r * LANES) * s
                c, s = cosines[a * q * spread], sines[a * q * spread]
                _store_turned(even + odd, even_i + odd_i, c, s, out_real, out_imaginary, to + q * length)
                q = size - q
                c, s = cosines[a * q * spread], sines[a * q * spread]
                _store_turned(even - odd, even_i - odd_i, c, s, out_real, out_imaginary, to + q * length)


@compiled
def _transform_smooth(values, spare, factors, cosines, sines):
    """Transform a batch whose N is the product of `factors`: 4, 2 or odd.

    `cosines` and `sines` (N) are those of 2 pi k / N. Return the result and the other array; both are
    overwritten.
    """
    left, length = cosines.size, LANES
    for factor in factors:
        left //= factor
        if factor == 2:
            _combine_twos(values, spare, left, length, cosines, sines)
        elif factor == 4:
            _combine_fours(values, spare, left, length, cosines, sines)
        else:
            _combine_odds(values, spare, factor, left, length, cosines, sines)
        length *= factor
        values, spare = spare, values
    return values, spare


@inner
def _multiply_rows(values, factors, rows):
    """Multiply row k of a batch, in place, by the complex number factors[:, k]."""
    real, imaginary = values[0], values[1]
    for k in range(rows):
        c, s = factors[0, k], factors[1, k]
        x, y = load(real, k * LANES), load(imaginary, k * LANES)
        store(x * c - y * s, real, k * LANES)
        store(x * s + y * c, imaginary, k * LANES)


@inner
def _swap_planes(values):
    """Exchange the planes of a batch, so that the next transform is the inverse."""
    real, imaginary = values[0], values[1]
    for at in range(0, real.size, LANES):
        x, y = load(real, at), load(imaginary, at)
        store(y, real, at)
        store(x, imaginary, at)


@compiled
def transform(values, spare, rows, plan):
    """Transform a batch of `rows` rows along them, and return the result and the other array.

    If the number of rows has large prime factors, they are convolved with a chirp (2, rows) with the
    transform `response` (2, N), N a product of small factors (Bluestein 1970). Both arrays are overwritten.
    """
    factors, cosines, sines, chirp, response = plan
    if response.shape[1] == 0:
        return _transform_smooth(values, spare, factors, cosines, sines)
    _multiply_rows(values, chirp, rows)
    values[:, rows * LANES :] = 0.0
    for back in range(2):
        values, spare = _transform_smooth(values, spare, factors, cosines, sines)
        if not back:
            _multiply_rows(values, response, cosines.size)
        _swap_planes(values)
    _multiply_rows(values, chirp, rows)
    return values, spare


@inner
def _make_batches(plan):
    """Return two arrays for a batch."""
    rows = plan[1].size
    return empty_lanes(2 * rows).reshape(2, -1), empty_lanes(2 * rows).reshape(2, -1)


@compiled
def filter_lines(first, second, lines, line_step, place_step, order, mixing, plan):
    """Filter the lines of two fields with a symmetric kernel and reflected borders, in place.

    The fields (float64, flat) are real and imaginary part of one transform. Line i starts at i * `line_step`
    and continues in steps of `place_step`. The cosine transform of a line is the Fourier transform of its
    even samples, followed by the odd ones backwards: `order` (N). The filter multiplies each frequency by
    mixing[0] and adds its opposite times mixing[1] + i mixing[2] (3, N).
    """
    size, (values, spare) = order.size, _make_batches(plan)
    values[:] = 0.0
    for start in range(0, lines, LANES):
        count = min(LANES, lines - start)
        for k in range(size):
            place = start * line_step + order[k] * place_step
            for i in range(count):
                values[0, k * LANES + i] = first[place + i * line_step]
                values[1, k * LANES + i] = second[place + i * line_step]
        values, spare = transform(values, spare, size, plan)
        real, imaginary, out_real, out_imaginary = values[0], values[1], spare[0], spare[1]
        for k in range(size):
            at, opposite = k * LANES, (size - k) % size * LANES
            x, y, u, v = load(real, at), load(imaginary, at), load(real, opposite), load(imaginary, opposite)
            own, c, s = mixing[0, k], mixing[1, k], mixing[2, k]
            # The transform of the swapped planes is the inverse.
            store(x * own + (u * c - v * s), out_imaginary, at)
            store(y * own + (v * c + u * s), out_real, at)
        spare, values = transform(spare, values, size, plan)
        for k in range(size):
            place = start * line_step + order[k] * place_step
            for i in range(count):
                first[place + i * line_step] = spare[1, k * LANES + i]
                second[place + i * line_step] = spare[0, k * LANES + i]


@compiled
def invert_columns(spectrum, plan):
    """Invert the transform of each column of `spectrum` (2, H, K), K a multiple of 8, in place."""
    _, height, width = spectrum.shape
    share, (values, spare) = 1.0 / height, _make_batches(plan)
    real, imaginary = spectrum[0].reshape(-1), spectrum[1].reshape(-1)
    for start in range(0, width, LANES):
        for k in range(height):
            store(load(imaginary, k * width + start) * share, values[0], k * LANES)
            store(load(real, k * width + start) * share, values[1], k * LANES)
        values, spare = transform(values, spare, height, plan)
        for k in range(height):
            store(load(values[1], k * LANES), real, k * width + start)
            store(load(values[0], k * LANES), imaginary, k * width + start)


@compiled
def invert_rows(spectrum, plan, out):
    """Invert the transform of rows of `spectrum` (2, H, W // 2 + 1 or more) to real `out` (H, W).

    Two rows are transformed at once, as real and imaginary part.
    """
    height, width = out.shape
    share, (values, spare) = 1.0 / width, _make_batches(plan)
    values[:] = 0.0
    for start in range(0, height, 2 * LANES):
        count = min(LANES, (height - start + 1) // 2)
        for k in range(width // 2 + 1):
            at, opposite = k * LANES, (width - k) % width * LANES
            alone = at == opposite
            for i in range(count):
                row = start + 2 * i
                after = min(row + 1, height - 1)
                a, b = spectrum[0, row, k] * share, spectrum[1, row, k] * share
                c, d = spectrum[0, after, k] * share, spectrum[1, after, k] * share
                # a + i b and its conjugate, plus i times c + i d and its conjugate; the planes swapped.
                values[1, at + i], values[0, at + i] = a if alone else a - d, c if alone else b + c
                if not alone:
                    values[1, opposite + i], values[0, opposite + i] = a + d, c - b
        values, spare = transform(values, spare, width, plan)
        for k in range(width):
            for i in range(count):
                out[start + 2 * i, k] = values[1, k * LANES + i]
                if start + 2 * i + 1 < height:
                    out[start + 2 * i + 1, k] = values[0, k * LANES + i]


@compiled
def transfer_function(weights, cosines):
    """Return the factor of each cosine of a line for a symmetric kernel with the right half `weights`.

    `cosines` (2 N) are those of pi k / N.
    """
    period = cosines.size
    out = np.empty(period // 2)
    for k in range(out.size):
        total = 0.0
        for j in range(1, weights.size):
            total += weights[j] * cosines[k * j % period]
        out[k] = weights[0] + 2.0 * total
    return out
