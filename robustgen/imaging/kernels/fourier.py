"""Fourier transforms along lines, of additions and multiplications in a fixed order.

A library's transforms choose their loops by the processor. These work on a batch of B lines at once, which
stand side by side, so that the compiler can vectorise every step without changing the order of a single sum.
Complex numbers are two planes: row 0 of the first axis is real, row 1 imaginary.
"""

import numpy as np

from robustgen.imaging.kernels.compiler import compiled, inner

# Lines of a batch: enough to outweigh what a step costs by itself, few enough for the cache.
_MOST_LINES = 56
# Lines that are read or written side by side where they lie one below the other.
_ABREAST = 8
# Values of a line of sums that stay in the fastest cache.
_CHUNK = 256


@compiled
def lines_at_once(count):
    """Return of how many lines the batches of `count` lines are: much the same number, a multiple of 8."""
    batches = -(-count // _MOST_LINES)
    return -(-count // (8 * batches)) * 8


@compiled
def add_lines(a, b, out):
    """Write a + b (flat) into `out`."""
    for i in range(out.size):
        out[i] = a[i] + b[i]


@compiled
def sum_and_difference(a, b, total, difference):
    """Write a + b and a - b (flat)."""
    for i in range(total.size):
        x, y = a[i], b[i]
        total[i], difference[i] = x + y, x - y


@compiled
def rotate(real, imaginary, c, s, out_real, out_imaginary):
    """Multiply lines by c - i s."""
    for i in range(out_real.size):
        x, y = real[i], imaginary[i]
        out_real[i], out_imaginary[i] = c * x + s * y, c * y + -s * x


@compiled
def accumulate_lines(a, weight, out, b, other_weight, other_out):
    """Add weight * a (flat) to `out`, and the same of the others."""
    for i in range(out.size):
        out[i] += weight * a[i]
        other_out[i] += other_weight * b[i]


@inner
def _combine_two(source, target, a, size, rest, length, c, s, room):
    """Transform pairs of lines."""
    for begin in range(0, length, _CHUNK):
        end = min(begin + _CHUNK, length)
        first, second = a * length + begin, (a + rest) * length + begin
        to, after = 2 * a * length + begin, (2 * a + 1) * length + begin
        count = end - begin
        for plane in range(2):
            x, y = source[plane, first:], source[plane, second:]
            sum_and_difference(x, y, target[plane, to : to + count], room[plane, :count])
        rotate(
            room[0], room[1], c[1], s[1], target[0, after : after + count], target[1, after : after + count]
        )


@inner
def _combine_four(source, target, a, size, rest, length, c, s, room):
    """Transform fours of lines."""
    for begin in range(0, length, _CHUNK):
        count = min(_CHUNK, length - begin)
        at, step, to = a * length + begin, rest * length, 4 * a * length + begin
        for plane in range(2):
            w, x = source[plane, at:], source[plane, at + step :]
            y, z = source[plane, at + 2 * step :], source[plane, at + 3 * step :]
            # Sums in rooms 0 and 1, differences in 2 and 3, each twice for both planes.
            sum_and_difference(w, y, room[plane, :count], room[4 + plane, :count])
            sum_and_difference(x, z, room[2 + plane, :count], room[6 + plane, :count])
        for plane in range(2):
            first, second = target[plane, to : to + count], room[8 + plane, :count]
            sum_and_difference(room[plane], room[2 + plane], first, second)
        # The differences plus and minus i times each other.
        sum_and_difference(room[4], room[7], room[0, :count], room[2, :count])
        sum_and_difference(room[5], room[6], room[3, :count], room[1, :count])
        for q, real in ((1, 0), (2, 8), (3, 2)):
            start = to + q * length
            rotate(
                room[real],
                room[real + 1],
                c[q],
                s[q],
                target[0, start : start + count],
                target[1, start : start + count],
            )


@inner
def _combine_odd(source, target, a, size, rest, length, c, s, roots, room):
    """Transform groups of an odd number of lines: the r-th from either end share their cosines and sines."""
    half, step = (size - 1) // 2, rest * length
    for begin in range(0, length, _CHUNK):
        count = min(_CHUNK, length - begin)
        at, to = a * length + begin, size * a * length + begin
        for plane in range(2):
            add_lines(source[plane, at:], room[0], target[plane, to : to + count])
            for r in range(1, half + 1):
                x, y = source[plane, at + r * step :], source[plane, at + (size - r) * step :]
                row = 6 + 4 * r + plane
                sum_and_difference(x, y, room[row, :count], room[row + 2, :count])
                total = target[plane, to : to + count]
                add_lines(total, room[row], total)
        for q in range(1, half + 1):
            for plane in range(2):
                add_lines(source[plane, at:], room[0], room[1 + plane, :count])
                add_lines(room[0], room[0], room[3 + plane, :count])
            for r in range(1, half + 1):
                place = r * q % size
                cosine, sine = roots[0, place], roots[1, place]
                row = 6 + 4 * r
                accumulate_lines(room[row], cosine, room[1, :count], room[row + 3], sine, room[3, :count])
                accumulate_lines(
                    room[row + 1], cosine, room[2, :count], room[row + 2], -sine, room[4, :count]
                )
            # Outputs q and size - q are the one sum plus and minus the other.
            sum_and_difference(room[1], room[3], room[5, :count], room[7, :count])
            sum_and_difference(room[2], room[4], room[6, :count], room[8, :count])
            for output, row in ((q, 5), (size - q, 7)):
                start = to + output * length
                rotate(
                    room[row],
                    room[row + 1],
                    c[output],
                    s[output],
                    target[0, start : start + count],
                    target[1, start : start + count],
                )


@compiled
def transform(values, spare, batch, factors, cosines, sines):
    """Transform `values` (2, N * B) along N, by way of `spare`; both are written over.

    `factors` multiply to N: 2, 4 or odd. `cosines` and `sines` (N) are those of 2 pi k / N. Returns 0 or 1:
    whether the result stands in `values` or in `spare`.
    """
    size, length, count = cosines.size, batch, 0
    left = size
    most = 4
    for factor in factors:
        most = max(most, factor)
    room = np.zeros((8 + 2 * most + 4, _CHUNK))
    c, s, roots = np.empty(most), np.empty(most), np.empty((2, most))
    for factor in factors:
        source, target = (values, spare) if count % 2 == 0 else (spare, values)
        rest, spread = left // factor, size // left
        if factor % 2:
            room[0, :] = 0.0
            for r in range(factor):
                roots[0, r], roots[1, r] = cosines[r * (size // factor)], sines[r * (size // factor)]
        for a in range(rest):
            for q in range(factor):
                c[q], s[q] = cosines[a * q * spread], sines[a * q * spread]
            if factor == 2:
                _combine_two(source, target, a, 2, rest, length, c, s, room)
            elif factor == 4:
                _combine_four(source, target, a, 4, rest, length, c, s, room)
            else:
                _combine_odd(source, target, a, factor, rest, length, c, s, roots, room)
        left, length, count = rest, length * factor, count + 1
    return count % 2


@compiled
def multiply_rows(values, factors, rows, batch):
    """Multiply row k of `values` (2, N * B), in place, by the complex number factors[:, k]."""
    for k in range(rows):
        c, s = factors[0, k], factors[1, k]
        x, y = values[0, k * batch : (k + 1) * batch], values[1, k * batch : (k + 1) * batch]
        for i in range(x.size):
            real, imaginary = x[i], y[i]
            x[i], y[i] = real * c - imaginary * s, real * s + imaginary * c


@inner
def _swap_planes(values, spare):
    """Exchange the planes of `values` (2, N * B), by way of `spare`: a transform then goes back."""
    for i in range(values.shape[1]):
        spare[0, i] = values[0, i]
    for i in range(values.shape[1]):
        values[0, i] = values[1, i]
    for i in range(values.shape[1]):
        values[1, i] = spare[0, i]


@compiled
def transform_any(values, spare, rows, batch, factors, cosines, sines, chirp, response):
    """Transform `rows` rows, whose number may have large prime factors; the result is in `values`.

    Such lines are convolved with a `chirp` (2, N) whose transform is `response` (2, L) (Bluestein 1970), L
    being the size that `factors`, `cosines` and `sines` belong to; else `response` is empty and L is N.
    """
    if response.shape[1] == 0:
        if transform(values, spare, batch, factors, cosines, sines):
            copy_planes(spare, values)
        return
    multiply_rows(values, chirp, rows, batch)
    for plane in range(2):
        tail = values[plane, rows * batch :]
        for i in range(tail.size):
            tail[i] = 0.0
    for back in range(2):
        if transform(values, spare, batch, factors, cosines, sines):
            copy_planes(spare, values)
        if not back:
            multiply_rows(values, response, response.shape[1], batch)
        _swap_planes(values, spare)
    multiply_rows(values, chirp, rows, batch)


@compiled
def copy_planes(source, target):
    """Copy `source` to `target`, both (2, M)."""
    for plane in range(2):
        x, y = source[plane], target[plane]
        for i in range(y.size):
            y[i] = x[i]


@compiled
def filter_lines(first, second, lines, line_step, place_step, order, mixing, plan):
    """Filter the lines of two fields with a symmetric kernel under reflecting borders, in place.

    Both fields (float64, flat) take part at once, as real and imaginary part. Line i starts at i *
    `line_step` and goes on in steps of `place_step`. The cosine transform of a line is the Fourier transform
    of its even samples, followed by the odd ones backwards: `order` (N). In terms of it, the filter
    multiplies each frequency by mixing[0] and adds its opposite times mixing[1] + i mixing[2] (3, N).
    """
    factors, cosines, sines, chirp, response = plan
    size, length, batch = order.size, cosines.size, lines_at_once(lines)
    values, spare = np.empty((2, length * batch)), np.empty((2, length * batch))
    for start in range(0, lines, batch):
        count = min(batch, lines - start)
        if count < batch:
            values[:] = 0.0
        # A few lines at a time, so that what is read across the lines stays in the cache.
        for begin in range(0, count, _ABREAST):
            end = min(begin + _ABREAST, count)
            for k in range(size):
                place = start * line_step + order[k] * place_step
                for i in range(begin, end):
                    values[0, k * batch + i] = first[place + i * line_step]
                    values[1, k * batch + i] = second[place + i * line_step]
        transform_any(values, spare, size, batch, factors, cosines, sines, chirp, response)
        for k in range(size):
            opposite = (size - k) % size
            x, y = values[0, k * batch :], values[1, k * batch :]
            u, v = values[0, opposite * batch :], values[1, opposite * batch :]
            own, real, imaginary = mixing[0, k], mixing[1, k], mixing[2, k]
            # The planes change places: the transform back is that of the swapped ones.
            to, target = spare[1, k * batch :], spare[0, k * batch :]
            for i in range(batch):
                to[i] = own * x[i] + (real * u[i] - imaginary * v[i])
            for i in range(batch):
                target[i] = own * y[i] + (real * v[i] + imaginary * u[i])
        transform_any(spare, values, size, batch, factors, cosines, sines, chirp, response)
        for begin in range(0, count, _ABREAST):
            end = min(begin + _ABREAST, count)
            for k in range(size):
                place = start * line_step + order[k] * place_step
                for i in range(begin, end):
                    first[place + i * line_step] = spare[1, k * batch + i]
                    second[place + i * line_step] = spare[0, k * batch + i]


@compiled
def invert_columns(spectrum, plan):
    """Transform each column of `spectrum` (2, H, K) back, in place."""
    factors, cosines, sines, chirp, response = plan
    _, height, width = spectrum.shape
    batch = lines_at_once(width)
    values, spare = np.zeros((2, cosines.size * batch)), np.empty((2, cosines.size * batch))
    share = 1.0 / height
    for start in range(0, width, batch):
        count = min(batch, width - start)
        for k in range(height):
            for i in range(count):
                values[0, k * batch + i] = spectrum[1, k, start + i] * share
                values[1, k * batch + i] = spectrum[0, k, start + i] * share
        transform_any(values, spare, height, batch, factors, cosines, sines, chirp, response)
        for k in range(height):
            for i in range(count):
                spectrum[0, k, start + i] = values[1, k * batch + i]
                spectrum[1, k, start + i] = values[0, k * batch + i]


@compiled
def invert_rows(spectrum, plan, out):
    """Transform rows of frequencies of real lines, `spectrum` (2, H, W // 2 + 1), back into `out` (H, W).

    Two rows at once: one becomes the real part, the other the imaginary one.
    """
    factors, cosines, sines, chirp, response = plan
    height, width = out.shape
    share, pairs = 1.0 / width, (height + 1) // 2
    batch = lines_at_once(pairs)
    values, spare = np.zeros((2, cosines.size * batch)), np.empty((2, cosines.size * batch))
    for start in range(0, pairs, batch):
        count = min(batch, pairs - start)
        for begin in range(0, count, _ABREAST):
            end = min(begin + _ABREAST, count)
            for k in range(width // 2 + 1):
                at, opposite = k * batch, (width - k) % width * batch
                alone = at == opposite
                for i in range(begin, end):
                    row, after = 2 * (start + i), min(2 * (start + i) + 1, height - 1)
                    a, b = spectrum[0, row, k] * share, spectrum[1, row, k] * share
                    c, d = spectrum[0, after, k] * share, spectrum[1, after, k] * share
                    # a + i b and its conjugate, plus i times c + i d and its conjugate; the planes swapped.
                    values[1, at + i], values[0, at + i] = a if alone else a - d, c if alone else b + c
                    if not alone:
                        values[1, opposite + i], values[0, opposite + i] = a + d, c - b
        transform_any(values, spare, width, batch, factors, cosines, sines, chirp, response)
        for begin in range(0, count, _ABREAST):
            end = min(begin + _ABREAST, count)
            for k in range(width):
                for i in range(begin, end):
                    out[2 * (start + i), k] = values[1, k * batch + i]
                    if 2 * (start + i) + 1 < height:
                        out[2 * (start + i) + 1, k] = values[0, k * batch + i]


@compiled
def transfer_function(weights, cosines):
    """Return what a symmetric kernel, whose right half is `weights`, multiplies each cosine of a line by.

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
