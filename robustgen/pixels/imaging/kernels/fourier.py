"""Fourier transforms, and loops over fields of noise."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner
from robustgen.pixels.imaging.kernels.elementwise import repeat_thrice, truncated
from robustgen.pixels.imaging.kernels.exact import angle_of, cosine, fill_sines, sine
from robustgen.pixels.imaging.kernels.intrinsics import LANES, empty_lanes, load, store

# --- Fourier transforms along lines, with additions and multiplications in a fixed order -----------

# A library's transforms depend on the processor. These transform batches of eight lines, side by side as
# lanes. Complex numbers are two planes: row 0 of the first axis is real, row 1 imaginary. A batch of N places
# is an array (2, 8 N).


@inner
def _store_turned(x, y, c, s, real, imaginary, at):
    """Write x + i y times c - i s."""
    store(x * c + y * s, real, at)
    store(y * c - x * s, imaginary, at)


@inner
def _combine_twos(source, target, rest, length, cosines, sines):
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


# --- compiled loops of noise with a given power at each frequency ----------------------------------


@inner
def _unfold(left, upper, centre, y, line):
    """Write line `y` of a field that is symmetric under rotation by 180 degrees; `left` is (H, W // 2).

    If W is odd, its middle column is `upper` (H // 2), the `centre` if H is odd, and `upper` reversed.
    """
    half, turned = left.shape[1], left.shape[0] - 1 - y
    for x in range(half):
        line[x] = left[y, x]
    for x in range(half):
        line[line.size - half + x] = left[turned, half - 1 - x]
    if line.size % 2:
        line[half] = upper[min(y, turned)] if y != turned else centre


@compiled
def half_spectrum(left, upper, power):
    """Return the half spectrum of the real part of a noise, two planes, for `fourier.invert_columns`.

    The phases, `left` and `upper` as in `_unfold`, and `power` (H, W) are those of the frequency H // 2 and
    W // 2 further on.
    """
    sines, cosines = np.empty(left.shape), np.empty(left.shape)
    fill_sines(left.reshape(-1), sines.reshape(-1), cosines.reshape(-1))
    upper_sines, upper_cosines = np.empty(upper.size), np.empty(upper.size)
    fill_sines(upper, upper_sines, upper_cosines)
    height, width = power.shape
    padded = (width // (2 * LANES) + 1) * LANES
    out = empty_lanes(2 * height * padded // LANES).reshape(2, height, padded)
    out[:, :, width // 2 + 1 :] = 0.0
    columns, mirrored = np.empty(width // 2 + 1, np.uint64), np.empty(width // 2 + 1, np.uint64)
    for x in range(columns.size):
        columns[x] = (x - width // 2) % width
        mirrored[x] = ((width - x) % width - width // 2) % width
    c, s, opposite_c, opposite_s = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    # Two lines of opposite frequencies depend on the same two lines.
    for y in range(height // 2 + 1):
        opposite = (height - y) % height
        there, back = (y - height // 2) % height, (opposite - height // 2) % height
        _unfold(cosines, upper_cosines, 1.0, there, c)
        _unfold(sines, upper_sines, 0.0, there, s)
        _unfold(cosines, upper_cosines, 1.0, back, opposite_c)
        _unfold(sines, upper_sines, 0.0, back, opposite_s)
        here, other = power[there], power[back]
        _spectrum_line(columns, mirrored, here, c, s, other, opposite_c, opposite_s, out[0, y], out[1, y])
        _spectrum_line(
            columns, mirrored, other, opposite_c, opposite_s, here, c, s, out[0, opposite], out[1, opposite]
        )
    return out


@inner
def _spectrum_line(columns, mirrored, power, c, s, opposite, opposite_c, opposite_s, real, imaginary):
    """Write half the sum of each frequency and the conjugate of its opposite."""
    for x in range(columns.size):
        i, j = columns[x], mirrored[x]
        real[x] = 0.5 * (power[i] * c[i] + opposite[j] * opposite_c[j])
        imaginary[x] = 0.5 * (power[i] * s[i] - opposite[j] * opposite_s[j])


@inner
def _total(values):
    """Return the sum of `values` (flat), in an order independent of NumPy's release."""
    sums, whole = np.zeros(LANES), values.size // LANES * LANES
    lanes = load(sums, 0)
    for i in range(0, whole, LANES):
        lanes = lanes + load(values, i)
    store(lanes, sums, 0)
    total = 0.0
    for each in sums:
        total += each
    for i in range(whole, values.size):
        total += values[i]
    return total


@compiled
def standardise(values):
    """Divide `values` (float64, (H, W)) by their standard deviation, in place."""
    flat = values.reshape(-1)
    mean, squares = _total(flat) / flat.size, np.empty(flat.size)
    for i in range(flat.size):
        centred = flat[i] - mean
        squares[i] = centred * centred
    deviation = np.sqrt(_total(squares) / flat.size)
    for i in range(flat.size):
        flat[i] /= deviation


# --- compiled loops of noise: fields of waves, and their addition to images ------------------------


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
