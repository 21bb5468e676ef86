"""The compiled loops, and nothing else.

Each is a plain loop over arrays that NumPy cannot express in one pass. They are
compiled by numba on first use and cached on disk. Floating-point operations
stand in the order in which the published functions take them, so that results
agree to the last bit; numba neither reorders nor fuses them.
"""

import math

import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from robustgen.imaging.loop_cache import use_temporary_cache


def _choose_compiler():
    """The decorator of all loops, with a cache that can be written."""
    # None of them is called from C, so that the wrappers for that need not be compiled.
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    cached = njit(cache=True, **options)
    try:
        cached(_choose_compiler)
    except RuntimeError:
        # Read-only site-packages and home, as in many containers.
        try:
            config.CACHE_DIR = use_temporary_cache()
        except OSError:
            return njit(**options)
    return cached


compiled = _choose_compiler()


@compiled
def quantise(values, out):
    """Write `values` (float, flat) clipped to [0, 1], times 255, truncated, into `out` (uint8, flat)."""
    zero, one, top = values.dtype.type(0), values.dtype.type(1), values.dtype.type(255)
    for i in range(values.size):
        out[i] = np.uint8(np.int32(min(max(values[i], zero), one) * top))


@compiled
def widen(values, units, out):
    """Write the entry in `units` (float64, 256) of each of `values` (uint8, flat) into `out` (float64)."""
    for i in range(values.size):
        out[i] = units[values[i]]


@compiled
def alias_rows(filling, table):
    """Walker's method for each row of `filling` (N, 256), chances times 256, which is used up.

    Packs into `table` (uint32): upper 24 bits the chance to stay on a column, lower 8 bits its alias.
    """
    columns = filling.shape[1]
    poor, rich = np.empty(columns, np.int64), np.empty(columns, np.int64)
    for row in range(filling.shape[0]):
        poors, riches = 0, 0
        for column in range(columns):
            # A full column is its own alias, so the last 2**-24 of its chance stays at home too.
            table[row, column] = np.uint32(0xFFFFFF00 | column)
            if filling[row, column] < 1.0:
                poor[poors] = column
                poors += 1
            else:
                rich[riches] = column
                riches += 1
        while poors and riches:
            poors -= 1
            taker, giver = poor[poors], rich[riches - 1]
            stay = np.int64(min(np.rint(filling[row, taker] * 16777216.0), 16777215.0))
            table[row, taker] = np.uint32(stay * 256 + giver)
            filling[row, giver] -= 1.0 - filling[row, taker]
            if filling[row, giver] < 1.0:
                riches -= 1
                poor[poors] = giver
                poors += 1


@compiled
def resample(image, table, bits, out):
    """Replace each value v of `image` (uint8, flat) by one drawn from row v of an alias table.

    `table` (256, 256) holds in its upper 24 bits the chance to stay on the column that the lower 8 of
    `bits` (uint32, flat) choose, and in its lower 8 the alias taken otherwise.
    """
    for i in range(image.size):
        column = bits[i] & np.uint32(255)
        entry = table[image[i], column]
        stays = (bits[i] >> np.uint32(8)) < (entry >> np.uint32(8))
        out[i] = np.uint8(column) if stays else np.uint8(entry & np.uint32(255))


# --- PCG64: NumPy's default generator, word for word ------------------------------------------------------
# A 128-bit linear congruence, whose output is the exclusive or of both halves, rotated by the upper six bits.
# Four stand side by side, each four steps ahead of its last word, because one alone waits for its products.


@intrinsic
def upper_product(context, a, b):
    """The upper 64 bits of the product of two uint64."""

    def generate(context, builder, signature, args):
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@compiled
def step(state, factor, summand):
    """`state` times `factor` plus `summand`: 128 bits each, as (upper, lower)."""
    low = state[1] * factor[1]
    high = upper_product(state[1], factor[1]) + state[0] * factor[1] + state[1] * factor[0]
    total = low + summand[1]
    return high + summand[0] + np.uint64(total < low), total


@compiled
def word(state):
    """The 64 bits that a state gives."""
    turn, mixed = state[0] >> np.uint64(58), state[0] ^ state[1]
    return (mixed >> turn) | (mixed << ((np.uint64(64) - turn) & np.uint64(63)))


@compiled
def draw_words(generator, words):
    """Fill `words` (uint64) and move `generator` (uint64: state and increment, upper halves first) on."""
    one_step = np.uint64(0x2360ED051FC65DA4), np.uint64(0x4385DF649FCCF645)
    nothing = np.uint64(0), np.uint64(0)
    increment = generator[2], generator[3]
    four_steps, summand = (np.uint64(0), np.uint64(1)), nothing
    for _ in range(4):
        four_steps, summand = step(four_steps, one_step, nothing), step(summand, one_step, increment)
    last = generator[0], generator[1]
    a = step(last, one_step, increment)
    b = step(a, one_step, increment)
    c = step(b, one_step, increment)
    d = step(c, one_step, increment)
    whole = words.size // 4 * 4
    for i in range(0, whole, 4):
        words[i], words[i + 1], words[i + 2], words[i + 3] = word(a), word(b), word(c), word(d)
        last = d
        a, b = step(a, four_steps, summand), step(b, four_steps, summand)
        c, d = step(c, four_steps, summand), step(d, four_steps, summand)
    for i in range(whole, words.size):
        words[i], last = word(a), a
        a, b = b, c
    generator[0], generator[1] = last


@compiled
def draw_uniform(generator, low, span, out):
    """Fill `out` (float64, flat) with uniform numbers in [`low`, `low` + `span`), as NumPy does."""
    words = np.empty(512, np.uint64)
    for start in range(0, out.size, words.size):
        target = out[start : start + words.size]
        draw_words(generator, words[: target.size])
        for i in range(target.size):
            target[i] = low + span * (np.float64(words[i] >> np.uint64(11)) * (1.0 / 9007199254740992.0))


@compiled
def next_word(generator, begun, words, used):
    """The next of `words`, of which used[0] have been taken; new ones where there are none left.

    `begun` becomes the state of `generator` before the present ones.
    """
    if used[0] == words.size:
        begun[0], begun[1] = generator[0], generator[1]
        draw_words(generator, words)
        used[0] = 0
    used[0] += 1
    return words[used[0] - 1]


@compiled
def unit_of(word):
    """The upper 53 bits of a word as a number in [0, 1)."""
    return np.float64(np.int64(word >> np.uint64(11))) * (1.0 / 9007199254740992.0)


@compiled
def deviate_of(word, widths):
    """Strip, size and deviate that a word stands for in NumPy's ziggurat, whose strips have `widths`."""
    strip = np.int64(word & np.uint64(255))
    size = np.int64((word >> np.uint64(9)) & np.uint64(0xFFFFFFFFFFFFF))
    deviate = np.float64(size) * widths[strip]
    return strip, size, -deviate if word & np.uint64(256) else deviate


@compiled
def draw_tail(generator, begun, words, used):
    """A deviate beyond the outermost strip, without its sign."""
    while True:
        beyond = -0.27366123732975828 * math.log1p(-unit_of(next_word(generator, begun, words, used)))
        reach = -math.log1p(-unit_of(next_word(generator, begun, words, used)))
        if reach + reach > beyond * beyond:
            return 3.6541528853610088 + beyond


@compiled
def finish_deviate(word, generator, begun, words, used, widths, limits, heights):
    """The deviate that `word` stands for, or those after it, if it does not lie in the core of its strip."""
    while True:
        strip, size, deviate = deviate_of(word, widths)
        if size < limits[strip]:
            return deviate
        if strip == 0:
            tail = draw_tail(generator, begun, words, used)
            return -tail if size & 256 else tail
        share = unit_of(next_word(generator, begun, words, used))
        height = (heights[strip - 1] - heights[strip]) * share + heights[strip]
        if height < math.exp(-0.5 * deviate * deviate):
            return deviate
        word = next_word(generator, begun, words, used)


@compiled
def draw_normal(generator, widths, limits, heights, mean, deviation, out):
    """Fill `out` (float64, flat) with normal numbers, as NumPy does.

    Of each strip of the ziggurat: `widths` (float64, 256) by 2**52, `limits` (int64) of the size of deviates
    in its core, `heights` (float64) of the density at its edge.
    """
    words, begun, used = np.empty(512, np.uint64), generator.copy(), np.empty(1, np.int64)
    draw_words(generator, words)
    # In a variable, because the compiler keeps what stands in an array in memory.
    place = 0
    for i in range(out.size):
        if place == words.size:
            begun[0], begun[1] = generator[0], generator[1]
            draw_words(generator, words)
            place = 0
        word = words[place]
        place += 1
        strip, size, deviate = deviate_of(word, widths)
        if size >= limits[strip]:
            used[0] = place
            deviate = finish_deviate(word, generator, begun, words, used, widths, limits, heights)
            place = used[0]
        out[i] = mean + deviation * deviate
    # The generator is left where the last word was taken.
    draw_words(begun, words[:place])
    generator[0], generator[1] = begun[0], begun[1]


@compiled
def read_through(values):
    """Read something of every 64 bytes of `values` (uint32, flat), so that all lie in the cache afterwards.

    Here they come in order, which the processor foresees. The sum is of no use, but without it the compiler
    leaves the reading out.
    """
    total = np.uint32(0)
    for i in range(0, values.size, 16):
        total += values[i]
    return total


@compiled
def draw_resampled(generator, image, table, out):
    """As `resample`, by the lower and the upper half of words drawn from `generator`."""
    words = np.empty(512, np.uint64)
    bits = words.view(np.uint32)
    if image.size > table.size:
        # To be overwritten.
        bits[0] = read_through(table.reshape(-1))
    for start in range(0, image.size, bits.size):
        values = image[start : start + bits.size]
        draw_words(generator, words[: (values.size + 1) // 2])
        resample(values, table, bits, out[start:])


@compiled
def copy(values, target):
    """Copy `values` to `target` (both flat), which compiles in a fifth of the time of a slice assignment."""
    for i in range(target.size):
        target[i] = values[i]


@compiled
def blur_across_rows(lines, weights, source, row, line):
    """Correlate along axis 0 with the symmetric kernel whose right half is `weights`: one row, into `line`.

    `weights` (r + 1, r a multiple of four) end in zeros where the kernel is shorter. `source` (H + 2 r) names
    which of `lines` (N, M) stands at each row of the image extended by r on both sides.
    """
    radius = weights.size - 1
    centre = lines[source[row + radius]]
    for m in range(line.size):
        line[m] = centre[m] * weights[0]
    for j in range(radius, 0, -4):
        # Four at a time, so that `line` goes to and from memory less often; the order of sums stays.
        above, below = source[row + radius - j :], source[row + radius + j - 3 :]
        a, b, c, d = lines[above[0]], lines[above[1]], lines[above[2]], lines[above[3]]
        e, f, g, h = lines[below[3]], lines[below[2]], lines[below[1]], lines[below[0]]
        of_a, of_b, of_c, of_d = weights[j], weights[j - 1], weights[j - 2], weights[j - 3]
        for m in range(line.size):
            total = line[m] + (np.float64(a[m]) + np.float64(e[m])) * of_a
            total += (np.float64(b[m]) + np.float64(f[m])) * of_b
            total += (np.float64(c[m]) + np.float64(g[m])) * of_c
            line[m] = total + (np.float64(d[m]) + np.float64(h[m])) * of_d


@compiled
def blur_along_row(values, channels, weights, source, extended, line):
    """Correlate `values` (W * channels) with the symmetric kernel whose right half is `weights`, into `line`.

    `weights` and `source` as in `blur_across_rows`, for columns; `extended` ((W + 2 r) * channels) is room to
    work in.
    """
    radius = weights.size - 1
    margin = radius * channels
    centre = extended[margin : margin + line.size]
    copy(values, centre)
    for x in range(radius):
        left, right = source[x] * channels, source[source.size - 1 - x] * channels
        for c in range(channels):
            extended[x * channels + c] = values[left + c]
            extended[extended.size - (x + 1) * channels + c] = values[right + c]
    for m in range(line.size):
        line[m] = centre[m] * weights[0]
    for j in range(radius, 0, -4):
        left, right = margin - j * channels, margin + j * channels
        a, b = extended[left:], extended[left + channels :]
        c, d = extended[left + 2 * channels :], extended[left + 3 * channels :]
        e, f = extended[right:], extended[right - channels :]
        g, h = extended[right - 2 * channels :], extended[right - 3 * channels :]
        of_a, of_b, of_c, of_d = weights[j], weights[j - 1], weights[j - 2], weights[j - 3]
        for m in range(line.size):
            total = line[m] + (a[m] + e[m]) * of_a + (b[m] + f[m]) * of_b
            line[m] = total + (c[m] + g[m]) * of_c + (d[m] + h[m]) * of_d


@compiled
def blur(image, channels, weights, rows, columns, out):
    """Filter `image` (H, W * channels) along both axes; between them it is rounded to the type of `out`.

    `rows` and `columns` are the `source` of `blur_across_rows` and `blur_along_row`.
    """
    width = image.shape[1]
    line, between = np.empty(width), np.empty(width, out.dtype)
    extended = np.empty(width + 2 * (weights.size - 1) * channels)
    for row in range(image.shape[0]):
        blur_across_rows(image, weights, rows, row, line)
        copy(line, between)
        blur_along_row(between, channels, weights, columns, extended, line)
        copy(line, out[row])


@compiled
def blur_bytes(image, channels, units, weights, rows, columns, out):
    """As `blur`, of the entries in `units` (float64, 256) of a uint8 image, clipped and truncated, as uint8.

    Only the rows under the kernel are ever there as floats, so that they stay in the cache.
    """
    height, width = image.shape
    radius = weights.size - 1
    line, result = np.empty(width), np.empty(width)
    extended = np.empty(width + 2 * radius * channels)
    lines = np.empty((min(2 * radius + 1, height), width))
    places = np.empty(rows.size, rows.dtype)
    for i in range(rows.size):
        places[i] = rows[i] % lines.shape[0]
    there = 0
    for row in range(height):
        while there < min(row + radius + 1, height):
            widen(image[there], units, lines[there % lines.shape[0]])
            there += 1
        blur_across_rows(lines, weights, places, row, line)
        blur_along_row(line, channels, weights, columns, extended, result)
        quantise(result, out[row])


@compiled
def beyond(index, size, mirrored):
    """Which of `size` samples stands at `index`: beyond the border the edge, or its mirror image."""
    if 0 <= index < size:
        return index
    if not mirrored:
        return 0 if index < 0 else size - 1
    index = abs(index) % (2 * size - 2)
    return index if index < size else 2 * size - 2 - index


@compiled
def extend(image, channels, above, left, mirrored, scale, out):
    """Copy `image` (H, W * channels) times `scale` into `out`, `above` and `left` pixels from its corner.

    Beyond the border stands the edge, or else the image `mirrored` about its edge pixels.
    """
    height, width = image.shape[0], image.shape[1] // channels
    columns = out.shape[1] // channels
    for row in range(out.shape[0]):
        source = image[beyond(row - above, height, mirrored)]
        target = out[row]
        middle = target[left * channels : (left + width) * channels]
        for m in range(middle.size):
            middle[m] = source[m] * scale
        for side in range(columns - width):
            column = side if side < left else side + width
            x = beyond(column - left, width, mirrored)
            for c in range(channels):
                target[column * channels + c] = source[x * channels + c] * scale


@compiled
def motion_rows(padded, weights, tops, lefts, out):
    """Add shifted windows of `padded` (16-bit values as float32, (H', W' * C)) into `out` (uint8 (H, W * C)).

    Window i starts at row tops[i], flat column lefts[i] and weighs weights[i]; sums are rounded half up to
    16 bit and divided by 257, which is how ImageMagick's Q16 build comes back to 8 bit.
    """
    line = np.empty(out.shape[1])
    fours = weights.size // 4 * 4
    for row in range(out.shape[0]):
        for m in range(line.size):
            line[m] = 0.0
        for i in range(0, fours, 4):
            # Four at a time, so that `line` goes to and from memory less often; the order of sums stays.
            a, b = padded[row + tops[i], lefts[i] :], padded[row + tops[i + 1], lefts[i + 1] :]
            c, d = padded[row + tops[i + 2], lefts[i + 2] :], padded[row + tops[i + 3], lefts[i + 3] :]
            of_a, of_b, of_c, of_d = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
            for m in range(line.size):
                total = line[m] + of_a * np.float64(a[m]) + of_b * np.float64(b[m])
                line[m] = total + of_c * np.float64(c[m]) + of_d * np.float64(d[m])
        for i in range(fours, weights.size):
            window, weight = padded[row + tops[i], lefts[i] :], weights[i]
            for m in range(line.size):
                line[m] += weight * np.float64(window[m])
        target = out[row]
        for m in range(line.size):
            target[m] = np.uint8(np.int32(line[m] + 0.5) // 257)


@compiled
def place_samples(direction_x, direction_y, length, rows, columns):
    """Write the row and column offsets of `rows.size` samples along a direction of that `length`."""
    for i in range(rows.size):
        columns[i] = np.int64(np.ceil(i * direction_y / length - 0.5))
        rows[i] = np.int64(np.ceil(i * direction_x / length - 0.5))


@compiled
def blur_along_line(image, channels, weights, direction_x, direction_y, length, out):
    """Blur `image` (uint8, (H, W * C)) by `weights` along the line of `place_samples`, into `out`."""
    rows, columns = np.empty(weights.size, np.int64), np.empty(weights.size, np.int64)
    place_samples(direction_x, direction_y, length, rows, columns)
    # Both run from 0 in one direction.
    down, right = rows[-1], columns[-1]
    above, left = max(-down, 0), max(-right, 0)
    padded = np.empty((image.shape[0] + abs(down), image.shape[1] + abs(right) * channels), np.float32)
    extend(image, channels, above, left, False, np.float32(257), padded)
    for i in range(weights.size):
        rows[i], columns[i] = rows[i] + above, (columns[i] + left) * channels
    motion_rows(padded, weights, rows, columns, out)


@compiled
def sum_rows(padded, weights, tops, lefts, out):
    """Add shifted windows of `padded` (float64, (H', W' * C)), weighted, into `out` (float64, (H, W * C)).

    Windows as in `motion_rows`.
    """
    for row in range(out.shape[0]):
        line = out[row]
        line[:] = 0.0
        for i in range(weights.size):
            window, weight = padded[row + tops[i], lefts[i] :], weights[i]
            for m in range(line.size):
                line[m] += weight * window[m]


@compiled
def add_up_rows(padded, channels, sums):
    """Write for every value of `padded` (uint16, (H, W * C)) the sum of those before it in row and channel.

    Sums overflow; the difference of two is right all the same where it is below 65536. `sums` is one pixel
    wider.
    """
    for row in range(padded.shape[0]):
        source, target = padded[row], sums[row]
        target[:channels] = 0
        for m in range(source.size):
            target[m + channels] = target[m] + source[m]


@compiled
def weigh_groups(padded, sums, weights, ends, taps, run_ends, runs, out):
    """Correlate with a kernel of few distinct weights: add up the values under each, exactly, then weigh.

    Group g has the weight weights[g], the taps up to ends[g] and the runs of taps up to run_ends[g], together
    no more than 257 places, or 16 bits overflow. A tap is (row, flat column) in `padded` (uint16,
    (H', W' * C)), a run (row, flat column, the column after it) in `sums`, its `add_up_rows`. Writes uint8
    (H, W * C).
    """
    line, total = np.empty(out.shape[1]), np.empty(out.shape[1], np.uint16)
    for row in range(out.shape[0]):
        line[:] = 0.0
        tap = run = 0
        for group in range(weights.size):
            total[:] = 0
            end, weight = ends[group], weights[group]
            while tap + 4 <= end:
                # Four at a time, so that `total` goes to and from memory less often.
                a = padded[row + taps[tap, 0], taps[tap, 1] :]
                b = padded[row + taps[tap + 1, 0], taps[tap + 1, 1] :]
                c = padded[row + taps[tap + 2, 0], taps[tap + 2, 1] :]
                d = padded[row + taps[tap + 3, 0], taps[tap + 3, 1] :]
                for m in range(total.size):
                    total[m] += np.uint16(a[m] + b[m]) + np.uint16(c[m] + d[m])
                tap += 4
            while tap < end:
                window = padded[row + taps[tap, 0], taps[tap, 1] :]
                for m in range(total.size):
                    total[m] += window[m]
                tap += 1
            while run < run_ends[group]:
                before, after = (
                    sums[row + runs[run, 0], runs[run, 1] :],
                    sums[row + runs[run, 0], runs[run, 2] :],
                )
                for m in range(total.size):
                    total[m] += np.uint16(after[m] - before[m])
                run += 1
            for m in range(total.size):
                line[m] += weight * np.float64(total[m])
        for m in range(line.size):
            out[row, m] = np.uint8(np.int32(min(line[m], 255.0)))


@compiled
def pack(image, words):
    """Write the pixels of `image` (uint8, (N, 3)) as `words` (uint32, N), red lowest."""
    for i in range(words.size):
        words[i] = (
            image[i, 0] | np.uint32(image[i, 1]) << np.uint32(8) | np.uint32(image[i, 2]) << np.uint32(16)
        )


@compiled
def unpack(words, image):
    """Write the pixels that `pack` made `words` of."""
    for i in range(words.size):
        image[i, 0] = np.uint8(words[i])
        image[i, 1] = np.uint8(words[i] >> np.uint32(8))
        image[i, 2] = np.uint8(words[i] >> np.uint32(16))


@compiled
def glass_shuffle(image, moves, reach, iterations):
    """Move pixels of `image` (H, W, 3) in place.

    `moves` holds for each visit (dx + reach) * 2 * reach + (dy + reach), dx and dy being where to take from.
    """
    height, width, _ = image.shape
    # A pixel is moved as one word.
    pixels = np.empty(height * width, np.uint32)
    pack(image.reshape(-1, 3), pixels)
    offsets = np.empty(4 * reach * reach, np.int64)
    for move in range(offsets.size):
        dx, dy = move // (2 * reach) - reach, move % (2 * reach) - reach
        offsets[move] = dy * width + dx
    visit = 0
    for _ in range(iterations):
        for row in range(height - reach, reach, -1):
            for to in range((row + 1) * width - reach, row * width + reach, -1):
                # The scripts wrote a swap; NumPy views made it this one-way copy, and the data carries it.
                # Of unsigned indices numba need not ask whether they count from the end.
                pixels[np.uint64(to)] = pixels[np.uint64(to + offsets[np.uint64(moves[visit])])]
                visit += 1
    unpack(pixels, image.reshape(-1, 3))


@intrinsic
def copy_block(context, source, at, target, to):
    """Copy `BLOCK` values from source[at] on to target[to] on: all are read before one is written.

    A loop would have to find out first, each time, whether the two overlap.
    """

    def generate(context, builder, signature, args):
        block = ir.VectorType(context.get_data_type(source.dtype), BLOCK)

        def point(array_type, array, index):
            first = context.make_array(array_type)(context, builder, array).data
            return builder.bitcast(builder.gep(first, [index]), block.as_pointer())

        values = builder.load(point(source, args[0], args[1]))
        stored = builder.store(values, point(target, args[2], args[3]))
        values.align = stored.align = source.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(source, types.intp, target, types.intp), generate


BLOCK = 16


@intrinsic
def add_weighed(context, spline, at, pitch, across, down, weight, total, to):
    """Add `weight` times 4 x 4 weighed pixels of `spline` (float64, flat) to one of `total` (float32, flat).

    Pixels have four values, which are taken at once: those from `at` on, and in the next three lines of
    `pitch` values; they go to the four from `to` on. `across` and `down` are the four weights of either axis.
    """

    def generate(context, builder, signature, args):
        _, at, pitch, across, down, weight, _, to = args
        wide, narrow = ir.VectorType(ir.DoubleType(), 4), ir.VectorType(ir.FloatType(), 4)

        def point(number, index, vector):
            first = context.make_array(signature.args[number])(context, builder, args[number]).data
            return builder.bitcast(builder.gep(first, [index]), vector.as_pointer())

        def spread(value, vector):
            one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, nought)
            everywhere = ir.Constant(ir.VectorType(ir.IntType(32), 4), [0] * 4)
            return builder.shuffle_vector(one, one, everywhere)

        def weigh(four, weights):
            a, b, c, d = map(builder.fmul, four, weights)
            return builder.fadd(builder.fadd(a, b), builder.fadd(c, d))

        nought = ir.Constant(ir.IntType(32), 0)
        a_row, a_column = (
            [spread(each, wide) for each in cgutils.unpack_tuple(builder, weights)]
            for weights in (across, down)
        )
        lines = []
        for _ in range(4):
            places = [builder.add(at, ir.Constant(at.type, 4 * i)) for i in range(4)]
            four = [builder.load(point(0, place, wide), align=8) for place in places]
            lines.append(weigh(four, a_row))
            at = builder.add(at, pitch)
        sample = builder.fptrunc(weigh(lines, a_column), narrow)
        target = point(6, to, narrow)
        added = builder.fmul(spread(weight, narrow), sample)
        builder.store(builder.fadd(builder.load(target, align=4), added), target, align=4)
        return context.get_dummy_value()

    return types.void(spline, types.intp, types.intp, across, down, weight, total, types.intp), generate


@compiled
def mix_columns(row, channels, blocks, parts, extended, near, out):
    """Linear samples of `row`, into `out`: of a value and the one a pixel on, which weighs parts.

    `blocks` (N, 2) says where in `row` blocks of the first ones stand, and where in `out` they belong; what
    a block has too many the next one overwrites. Beyond the last pixel stands the same once more. `extended`
    (a pixel and a block longer than `row`) and `near` (2, a block longer than `out`) are room to work in.
    """
    copy(row, extended[: row.size])
    copy(row[row.size - channels :], extended[row.size : row.size + channels])
    left, right = near[0], near[1]
    for i in range(blocks.shape[0]):
        copy_block(extended, blocks[i, 0], left, blocks[i, 1])
        copy_block(extended, blocks[i, 0] + channels, right, blocks[i, 1])
    for m in range(out.size):
        out[m] = left[m] * (1.0 - parts[m]) + right[m] * parts[m]


@compiled
def add_zoomed(image, channels, crops, rows, row_parts, blocks, ends, parts, total):
    """Add bilinear samples of Z parts of `image` (H, W * C), each rounded to its precision, to `total`.

    Part z begins at row crops[z, 0] and flat column crops[z, 1]; its last row is crops[z, 2], its width
    crops[z, 3]. Row y is sampled at rows[z, y] + row_parts[z, y] within it, a row as `mix_columns` says, with
    the blocks up to ends[z] and with parts[z]. Row by row, so that `total` (H', W' * C) is gone through once.
    """
    zooms, width = parts.shape
    # Of each zoom, the two rows that the present one lies between: even ones first.
    lines = np.empty((2 * zooms, width))
    extended = np.empty(image.shape[1] + channels + BLOCK, image.dtype)
    near = np.empty((2, width + BLOCK), image.dtype)
    for y in range(total.shape[0]):
        target = total[y]
        for zoom in range(zooms):
            first, start = rows[zoom, y], ends[zoom - 1] if zoom else 0
            reached = rows[zoom, y - 1] + 1 if y else -1
            for row in range(max(first, reached + 1), first + 2):
                source = image[crops[zoom, 0] + min(row, crops[zoom, 2]), crops[zoom, 1] :]
                mix_columns(
                    source[: crops[zoom, 3]],
                    channels,
                    blocks[start : ends[zoom]],
                    parts[zoom],
                    extended,
                    near,
                    lines[2 * zoom + row % 2],
                )
            above, below = lines[2 * zoom + first % 2], lines[2 * zoom + (first + 1) % 2]
            part = row_parts[zoom, y]
            for m in range(target.size):
                target[m] += image.dtype.type(above[m] * (1.0 - part) + below[m] * part)


@compiled
def average(image, total, count, out):
    """(image + total) / count (float32, flat) clipped to [0, 1], times 255, truncated, into `out` (uint8)."""
    zero, one, top = np.float32(0), np.float32(1), np.float32(255)
    for i in range(image.size):
        out[i] = np.uint8(np.int32(min(max((image[i] + total[i]) / count, zero), one) * top))


@compiled
def blend(image, weight, other, other_weight, out):
    """weight * image + other_weight * other (uint8, flat), clipped and truncated, into `out` (uint8)."""
    for i in range(image.size):
        mixed = weight * np.float64(image[i]) + other_weight * np.float64(other[i])
        out[i] = np.uint8(np.int32(min(max(mixed, 0.0), 255.0)))


@compiled
def repeat_thrice(line, out):
    """Each of `line` (N) once for each channel, into `out` (at least 3 N)."""
    for x in range(line.size):
        out[3 * x], out[3 * x + 1], out[3 * x + 2] = line[x], line[x], line[x]


@compiled
def largest_byte(values):
    """The largest of `values` (uint8, flat)."""
    largest = np.uint8(0)
    for i in range(values.size):
        largest = max(largest, values[i])
    return largest


@compiled
def add_haze(image, units, haze, strength, out):
    """(x + strength * haze) * brightest / (brightest + strength) of `image` (uint8, flat), `haze` (N).

    x is the entry in `units` (256) of each value, `brightest` that of the largest. Clipped and truncated into
    `out` (uint8, flat).
    """
    brightest = units[largest_byte(image)]
    whole = brightest + strength
    # A stretch of pixels at a time, channels side by side, so that the compiler takes many values at once.
    values, added = np.empty(1536), np.empty(1536)
    for start in range(0, haze.size, 512):
        part = haze[start : start + 512]
        repeat_thrice(part, added)
        stretch, target = image[3 * start : 3 * (start + part.size)], out[3 * start :]
        widen(stretch, units, values)
        for m in range(stretch.size):
            x = (values[m] + strength * added[m]) * brightest / whole
            target[m] = np.uint8(np.int32(min(max(x, 0.0), 1.0) * 255.0))


@compiled
def quantise_above(values, threshold, out):
    """As `quantise`, but 0 for `values` under `threshold`."""
    for i in range(values.size):
        value = values[i] if values[i] >= threshold else 0.0
        out[i] = np.uint8(np.int32(min(max(value, 0.0), 1.0) * 255.0))


@compiled
def snowfall(image, grey, mix, rest, layer, units, out):
    """Whiten `image` (flat) by its `grey` (N) and add `layer` (uint8, N) and its reverse, into `out` (uint8).

    `mix` and `rest` weigh the image and the lighter of image and grey, in the image's own precision; `units`
    (256) are the values of the layer.
    """
    half, more = np.float32(0.5), np.float32(1.5)
    snow, turned = np.empty(layer.size), np.empty(layer.size)
    widen(layer, units, snow)
    for i in range(layer.size):
        turned[i] = snow[layer.size - 1 - i]
    # As in `add_haze`.
    greys, first, second = np.empty(1536, np.float32), np.empty(1536), np.empty(1536)
    for start in range(0, layer.size, 512):
        part = grey[start : start + 512]
        repeat_thrice(part, greys)
        repeat_thrice(snow[start : start + part.size], first)
        repeat_thrice(turned[start : start + part.size], second)
        stretch, target = image[3 * start : 3 * (start + part.size)], out[3 * start :]
        for m in range(stretch.size):
            white = mix * stretch[m] + rest * max(stretch[m], greys[m] * more + half)
            target[m] = np.uint8(np.int32(min(max(white + first[m] + second[m], 0.0), 1.0) * 255.0))


@compiled
def average_columns(image, firsts, counts, shares, out):
    """Write the mean of counts[x] pixels from firsts[x] on as pixel x of every row of `out` (H, W', 3).

    shares[x] is 2**22 / counts[x], rounded: Pillow's fixed point.
    """
    half, field = np.uint64(1 << 21), np.uint64((1 << 21) - 1)
    # The channels of a pixel side by side, 21 bits each, so that one sum adds all three.
    words = np.empty(image.shape[1], np.uint64)
    for row in range(image.shape[0]):
        source, target = image[row], out[row]
        for x in range(words.size):
            words[x] = (
                source[x, 0]
                | np.uint64(source[x, 1]) << np.uint64(21)
                | np.uint64(source[x, 2]) << np.uint64(42)
            )
        for x in range(firsts.size):
            # Unsigned, as in `glass_shuffle`.
            first, share = np.uint64(firsts[x]), np.uint64(shares[x])
            total = words[first]
            for i in range(1, counts[x]):
                total += words[first + np.uint64(i)]
            red, green, blue = total & field, (total >> np.uint64(21)) & field, total >> np.uint64(42)
            target[x, 0] = np.uint8((red * share + half) >> np.uint64(22))
            target[x, 1] = np.uint8((green * share + half) >> np.uint64(22))
            target[x, 2] = np.uint8((blue * share + half) >> np.uint64(22))


@compiled
def average_rows(image, firsts, counts, shares, out):
    """As `average_columns`, of whole rows (H, M)."""
    half = np.uint64(1 << 21)
    total = np.empty(image.shape[1], np.uint32)
    for row in range(firsts.size):
        first, count, share = firsts[row], counts[row], np.uint64(shares[row])
        if count == 1:
            copy(image[first], out[row])
            continue
        copy(image[first], total)
        for y in range(first + 1, first + count):
            source = image[y]
            for m in range(total.size):
                total[m] += source[m]
        target = out[row]
        for m in range(total.size):
            target[m] = np.uint8((total[m] * share + half) >> np.uint64(22))


@compiled
def average_boxes(image, across, down, out):
    """Mean of a box of `image` (uint8, (H, W, 3)) for each pixel of `out`: first `across`, then `down`.

    Both are firsts, counts and shares as `average_columns` takes them.
    """
    lines = np.empty((image.shape[0], out.shape[1], 3), np.uint8)
    average_columns(image, across[0], across[1], across[2], lines)
    average_rows(lines.reshape(image.shape[0], -1), down[0], down[1], down[2], out.reshape(out.shape[0], -1))


@compiled
def split_channels(pixels, lines):
    """Write `pixels` (N, 3) as `lines` (3, at least N), one a channel, which the compiler can vectorise."""
    red, green, blue = lines[0], lines[1], lines[2]
    for i in range(pixels.shape[0]):
        red[i], green[i], blue[i] = pixels[i, 0], pixels[i, 1], pixels[i, 2]


@compiled
def join_channels(lines, pixels):
    """Write `lines` (3, at least N) as `pixels` (N, 3)."""
    red, green, blue = lines[0], lines[1], lines[2]
    for i in range(pixels.shape[0]):
        pixels[i, 0], pixels[i, 1], pixels[i, 2] = red[i], green[i], blue[i]


@compiled
def add_light(image, light, brightest, strength, colour, out):
    """Add `light` (float32, N) / brightest * strength of a `colour` (3) to `image` / 255 (uint8, (N, 3)).

    All in single precision; clipped and truncated into `out` (uint8).
    """
    zero, one, most = np.float32(0), np.float32(1), np.float32(255)
    values, results, share = (
        np.empty((3, 512), np.float32),
        np.empty((3, 512), np.uint8),
        np.empty(512, np.float32),
    )
    for start in range(0, light.size, 512):
        part = light[start : start + 512]
        split_channels(image[start : start + part.size], values)
        for i in range(part.size):
            share[i] = part[i] / brightest * strength
        for c in range(3):
            value, result, tint = values[c], results[c], colour[c]
            for i in range(part.size):
                result[i] = np.uint8(np.int32(min(max(value[i] / most + share[i] * tint, zero), one) * most))
        join_channels(results, out[start : start + part.size])


@compiled
def cover(image, shares, colour, out):
    """Cover `image` / 255 (uint8, (N, 3)) by `shares` (float32, N) with a `colour` (3).

    All in single precision; clipped and truncated into `out` (uint8).
    """
    zero, one, most = np.float32(0), np.float32(1), np.float32(255)
    values, results = np.empty((3, 512), np.float32), np.empty((3, 512), np.uint8)
    for start in range(0, shares.size, 512):
        share = shares[start : start + 512]
        split_channels(image[start : start + share.size], values)
        for c in range(3):
            value, result, tint = values[c], results[c], colour[c]
            for i in range(share.size):
                mixed = value[i] / most * (one - share[i]) + tint * share[i]
                result[i] = np.uint8(np.int32(min(max(mixed, zero), one) * most))
        join_channels(results, out[start : start + share.size])


@compiled
def channel_sums(image, units, sums):
    """Add up the `units` (256) of `image` (uint8, (N, 3)), row by row as NumPy does, into `sums` (3)."""
    r, g, b = 0.0, 0.0, 0.0
    for i in range(image.shape[0]):
        r += units[image[i, 0]]
        g += units[image[i, 1]]
        b += units[image[i, 2]]
    sums[0], sums[1], sums[2] = r, g, b


@compiled
def look_up(image, table, out):
    """Replace each value of channel c of `image` (uint8, (N, 3)) by its entry in column c of `table`."""
    for i in range(image.shape[0]):
        for c in range(3):
            out[i, c] = table[image[i, c], c]


@compiled
def scale_about(image, units, centres, factor, out):
    """Multiply the distance of each value of `image` (uint8, (N, 3)) from its channel's centre by `factor`.

    `units` (256) are the values, `centres` (3) in the same unit; clipped and truncated into `out` (uint8).
    """
    table = np.empty((256, 3), np.uint8)
    for value in range(256):
        for c in range(3):
            scaled = (units[value] - centres[c]) * factor + centres[c]
            table[value, c] = np.uint8(np.int32(min(max(scaled, 0.0), 1.0) * 255.0))
    look_up(image, table, out)


@compiled
def plasma(uniforms, wobble, decay, field):
    """Diamond-square fractal on the torus `field` (n, n), n a power of two, from n * n - 1 draws."""
    side = field.shape[0]
    # What is left over when an index is divided by the side is its lower bits.
    bits = side - 1
    field[0, 0] = 0.0
    used = 0
    step = side
    while step >= 2:
        half = step // 2
        low, spread = -wobble, wobble - -wobble
        for y in range(0, side, step):
            row, middle, below = field[y], field[y + half], field[(y + step) & bits]
            for x in range(0, side, step):
                right = (x + step) & bits
                total = (row[x] + below[x]) + (row[right] + below[right])
                middle[x + half] = total / 4 + wobble * (low + spread * uniforms[used])
                used += 1
        for y in range(0, side, step):
            row, middle, above = field[y], field[y + half], field[(y - half) & bits]
            for x in range(0, side, step):
                across = middle[x + half] + above[x + half]
                along = row[x] + row[(x + step) & bits]
                row[x + half] = (across + along) / 4 + wobble * (low + spread * uniforms[used])
                used += 1
        for y in range(0, side, step):
            row, middle, below = field[y], field[y + half], field[(y + step) & bits]
            for x in range(0, side, step):
                across = middle[x + half] + middle[(x - half) & bits]
                along = row[x] + below[x]
                middle[x] = (across + along) / 4 + wobble * (low + spread * uniforms[used])
                used += 1
        step = half
        wobble /= decay


@compiled
def unit_plasma(uniforms, wobble, decay, out):
    """The top left part of a `plasma`, scaled to [0, 1] by the least and the largest value of the whole."""
    side = np.int64(np.sqrt(uniforms.size + 1))
    field = np.empty((side, side))
    plasma(uniforms, wobble, decay, field)
    least, most = field[0].copy(), field[0].copy()
    for y in range(1, side):
        # Line by line, so that the compiler can compare many values at once.
        for x in range(side):
            least[x], most[x] = min(least[x], field[y, x]), max(most[x], field[y, x])
    lowest = least.min()
    span = most.max() - lowest
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            out[y, x] = (field[y, x] - lowest) / span


@compiled
def split_hsv(image, hues, saturations, values):
    """Write HSV of `image` (uint8, (N, 3)) as rgb2hsv of scikit-image has it, but for hues from 0 to 6.

    Chosen without branches, which no processor could predict, and from lines of one channel each.
    """
    channels = np.empty((3, 512))
    for start in range(0, hues.size, 512):
        pixels = image[start : start + 512]
        red, green, blue = channels[0, : pixels.shape[0]], channels[1], channels[2]
        split_channels(pixels, channels)
        hue, saturation, value = hues[start:], saturations[start:], values[start:]
        for i in range(red.size):
            r, g, b = red[i] / 255.0, green[i] / 255.0, blue[i] / 255.0
            v = max(max(r, g), b)
            delta = v - min(min(r, g), b)
            difference = r - g if b == v else (b - r if g == v else g - b)
            offset = 4.0 if b == v else (2.0 if g == v else 0.0)
            grey = delta == 0.0
            h = 0.0 if grey else (offset + difference / (1.0 if grey else delta)) / 6.0
            hue[i] = (h + 1.0 if h < 0.0 else h) * 6.0
            saturation[i] = 0.0 if grey else delta / (1.0 if grey else v)
            value[i] = v


@compiled
def join_hsv(hues, saturations, values, gain, saturation_offset, value_offset, out):
    """Write what `split_hsv` gave, saturation and value changed and clipped, into `out` (uint8, (N, 3)).

    In the order of operations of scikit-image's hsv2rgb, times 255, truncated.
    """
    lines = np.empty((3, 512), np.uint8)
    for start in range(0, hues.size, 512):
        hue, saturation, value = hues[start : start + 512], saturations[start:], values[start:]
        red, green, blue, target = lines[0], lines[1], lines[2], out[start:]
        for i in range(hue.size):
            s = min(max(saturation[i] * gain + saturation_offset, 0.0), 1.0)
            v = min(max(value[i] + value_offset, 0.0), 1.0)
            sector = np.floor(hue[i])
            f = hue[i] - sector
            # All four lie in [0, 1]. Each channel is one of them, by sector; the seventh is the first again.
            most, least = np.int32(v * 255.0), np.int32(v * (1.0 - s) * 255.0)
            rising = np.int32(v * (1.0 - (1.0 - f) * s) * 255.0)
            falling = np.int32(v * (1.0 - f * s) * 255.0)
            r = rising if sector == 4.0 else least
            r = falling if sector == 1.0 else r
            r = most if sector >= 5.0 else r
            red[i] = np.uint8(most if sector == 0.0 else r)
            g = falling if sector == 3.0 else least
            g = rising if sector == 0.0 else g
            g = rising if sector == 6.0 else g
            g = most if sector == 1.0 else g
            green[i] = np.uint8(most if sector == 2.0 else g)
            b = falling if sector == 5.0 else least
            b = rising if sector == 2.0 else b
            b = most if sector == 3.0 else b
            blue[i] = np.uint8(most if sector == 4.0 else b)
        join_channels(lines, target[: hue.size])


@compiled
def sample_affine(image, matrix, out):
    """Bilinear samples of `image` (H, W, 3), where `matrix` takes the centre of each pixel, into `out`.

    (x, y) goes to (a x + b y + c, d x + e y + f). Black beyond the border, truncated: Pillow's arithmetic.
    """
    height, width, _ = image.shape
    a, b, c, d, e, f = matrix
    flat = image.reshape(-1)
    line_size = 3 * out.shape[1]
    # Gathered first, so that the arithmetic runs over whole lines at once.
    upper_left, upper_right = np.empty(line_size, np.uint8), np.empty(line_size, np.uint8)
    lower_left, lower_right = np.empty(line_size, np.uint8), np.empty(line_size, np.uint8)
    across, down = np.zeros(line_size), np.zeros(line_size)
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            x = a * (column + 0.5) + b * (row + 0.5) + c
            y = d * (column + 0.5) + e * (row + 0.5) + f
            to = 3 * column
            if not (0.0 <= x < width and 0.0 <= y < height):
                for k in range(to, to + 3):
                    upper_left[k], upper_right[k], lower_left[k], lower_right[k] = 0, 0, 0, 0
                continue
            left, top = np.int64(np.floor(x - 0.5)), np.int64(np.floor(y - 0.5))
            part_x, part_y = x - 0.5 - left, y - 0.5 - top
            first, second = max(3 * left, 0), min(3 * left + 3, 3 * width - 3)
            above, below = 3 * width * max(top, 0), 3 * width * min(top + 1, height - 1)
            for k in range(3):
                upper_left[to + k] = flat[np.uint64(above + first + k)]
                upper_right[to + k] = flat[np.uint64(above + second + k)]
                lower_left[to + k] = flat[np.uint64(below + first + k)]
                lower_right[to + k] = flat[np.uint64(below + second + k)]
                across[to + k], down[to + k] = part_x, part_y
        target = out[row].reshape(-1)
        for m in range(line_size):
            start, end = np.int32(upper_left[m]), np.int32(lower_left[m])
            upper = start + np.float64(np.int32(upper_right[m]) - start) * across[m]
            lower = end + np.float64(np.int32(lower_right[m]) - end) * across[m]
            target[m] = np.uint8(np.int32(upper + (lower - upper) * down[m]))


@compiled
def count_values(image, counts):
    """Add to `counts` (256, 3) how often each value is in each channel of `image` (uint8, (N, 3))."""
    for i in range(image.shape[0]):
        for c in range(3):
            counts[image[i, c], c] += 1


@compiled
def weighted_mean(images, weights, out):
    """Sum of `images` (uint8, (M, N)) times `weights` (float32), rounded half up, into `out` (uint8, N)."""
    half, top = np.float32(0.5), np.float32(255)
    line = np.empty(2048, np.float32)
    for start in range(0, out.size, line.size):
        target = out[start : start + line.size]
        line[:] = half
        for m in range(weights.size):
            part, weight = images[m, start:], weights[m]
            for i in range(target.size):
                line[i] += weight * np.float32(part[i])
        for i in range(target.size):
            target[i] = np.uint8(np.int32(min(line[i], top)))


@compiled
def mirrored(index, size):
    """`index` folded back into 0 .. size - 1 about the edge samples (d c b | a b c d | c b a)."""
    if 0 <= index < size:
        return index
    index = abs(index) % (2 * size - 2)
    return index if index < size else 2 * size - 2 - index


@compiled
def mark_outside(rows, columns, height, width, outside):
    """Set `outside` where the neighbours of (rows, columns) are not all in the image; returns how many."""
    bottom, right = height - 1, width - 1
    for x in range(rows.size):
        outside[x] = (rows[x] < 0) | (rows[x] >= bottom) | (columns[x] < 0) | (columns[x] >= right)
    count = 0
    for x in range(rows.size):
        count += outside[x]
    return count


@compiled
def place_corners(top, left, width, corners):
    """Write which pixels, counted flat, the four neighbours from (`top`, `left`) are."""
    for x in range(top.size):
        corners[0, x] = np.int64(top[x]) * width + np.int64(left[x])
    for x in range(top.size):
        corners[1, x] = corners[0, x] + 1
    for x in range(top.size):
        corners[2, x] = corners[0, x] + width
    for x in range(top.size):
        corners[3, x] = corners[2, x] + 1


@compiled
def mirror_corners(top, left, height, width, x, corners):
    """Write which pixels the four neighbours of one place are, mirrored about the edge pixels."""
    top, bottom = width * mirrored(top, height), width * mirrored(top + 1, height)
    left, right = mirrored(left, width), mirrored(left + 1, width)
    corners[0, x], corners[1, x] = top + left, top + right
    corners[2, x], corners[3, x] = bottom + left, bottom + right


@compiled
def gather(pixels, corners, near):
    """Copy the `pixels`, each one word, at `corners` (4, W) to `near` (4, W)."""
    for corner in range(4):
        place, target = corners[corner], near[corner]
        for x in range(place.size):
            target[x] = pixels[np.uint64(place[x])]


@compiled
def warp_affine(image, matrix, out):
    """Bilinear samples of `image` (uint8, (H, W, 3)) / 255 where `matrix` takes each pixel, into `out`.

    (x, y) goes to (a x + b y + c, d x + e y + f), rounded to 1/32 of a pixel; borders are mirrored about the
    edge pixels. `out` is float32 (H, W, 4), of which the fourth is left alone. This is OpenCV 3's and 4's
    warpAffine of a float32 image.
    """
    height, width, _ = image.shape
    a, b, c, d, e, f = matrix
    one, steps, most = np.float32(1), np.float32(32), np.float32(255)
    pixels = np.empty(height * width, np.uint32)
    pack(image.reshape(-1, 3), pixels)
    across, down = np.empty(width, np.int64), np.empty(width, np.int64)
    for x in range(width):
        across[x], down[x] = np.int64(np.rint(a * x * 1024)), np.int64(np.rint(d * x * 1024))
    # Whole lines at once: positions, then neighbours, then sums, each of which the compiler vectorises.
    top, left, corners = np.empty(width, np.int64), np.empty(width, np.int64), np.empty((4, width), np.int64)
    part_x, part_y, outside = (
        np.empty(width, np.float32),
        np.empty(width, np.float32),
        np.empty(width, np.uint8),
    )
    near, line = np.empty((4, width), np.uint32), np.empty((3, width), np.float32)
    for y in range(height):
        from_x, from_y = (
            np.int64(np.rint((b * y + c) * 1024)) + 16,
            np.int64(np.rint((e * y + f) * 1024)) + 16,
        )
        for x in range(width):
            left[x] = (from_x + across[x]) >> 5
            part_x[x] = np.float32(left[x] & 31) / steps
            left[x] >>= 5
        for x in range(width):
            top[x] = (from_y + down[x]) >> 5
            part_y[x] = np.float32(top[x] & 31) / steps
            top[x] >>= 5
        place_corners(top, left, width, corners)
        if mark_outside(top, left, height, width, outside):
            for x in range(width):
                if outside[x]:
                    mirror_corners(top[x], left[x], height, width, x, corners)
        gather(pixels, corners, near)
        upper, next_upper, lower, next_lower = near[0], near[1], near[2], near[3]
        for k in range(3):
            target, shift = line[k], np.uint32(8 * k)
            for x in range(width):
                px, py = part_x[x], part_y[x]
                target[x] = (
                    np.float32((upper[x] >> shift) & np.uint32(255)) / most * ((one - py) * (one - px))
                    + np.float32((next_upper[x] >> shift) & np.uint32(255)) / most * ((one - py) * px)
                    + np.float32((lower[x] >> shift) & np.uint32(255)) / most * (py * (one - px))
                    + np.float32((next_lower[x] >> shift) & np.uint32(255)) / most * (py * px)
                )
        red, green, blue, target = line[0], line[1], line[2], out[y]
        for x in range(width):
            target[x, 0], target[x, 1], target[x, 2], target[x, 3] = red[x], green[x], blue[x], 0


@compiled
def warp_perspective(image, matrix, out):
    """Bilinear samples of `image` (uint8, (H, W, 3)) where `matrix` (9) takes each pixel, into `out`.

    (x, y) goes to the first two of `matrix` (x, y, 1), divided by the third, rounded to 1/32 of a pixel;
    black beyond the border. This is OpenCV 3's and 4's warpPerspective, whose blocks decide the rounding.
    """
    height, width, _ = image.shape
    a, b, c, d, e, f, g, h, i = matrix
    rows = min(16, height)
    columns = min(1024 // rows, width)
    least, most = -2147483648.0, 2147483647.0
    for y in range(height):
        for start in range(0, width, columns):
            from_x, from_y, from_w = a * start + b * y + c, d * start + e * y + f, g * start + h * y + i
            for x in range(start, min(start + columns, width)):
                w = from_w + g * (x - start)
                w = 32.0 / w if w != 0.0 else 0.0
                at_x = np.int64(np.rint(min(max((from_x + a * (x - start)) * w, least), most)))
                at_y = np.int64(np.rint(min(max((from_y + d * (x - start)) * w, least), most)))
                left, top, part_x, part_y = at_x >> 5, at_y >> 5, at_x & 31, at_y & 31
                weight_a, weight_b = (32 - part_y) * (32 - part_x) * 32, (32 - part_y) * part_x * 32
                weight_c, weight_d = part_y * (32 - part_x) * 32, part_y * part_x * 32
                for k in range(3):
                    total = np.int64(16384)
                    if 0 <= top < height:
                        if 0 <= left < width:
                            total += weight_a * image[top, left, k]
                        if -1 <= left < width - 1:
                            total += weight_b * image[top, left + 1, k]
                    if -1 <= top < height - 1:
                        if 0 <= left < width:
                            total += weight_c * image[top + 1, left, k]
                        if -1 <= left < width - 1:
                            total += weight_d * image[top + 1, left + 1, k]
                    out[y, x, k] = np.uint8(total >> 15)


@compiled
def folded(place, size):
    """`place` reflected into the line of `size` samples as SciPy did before 1.6: -0.3 becomes -0.7."""
    if place < 0:
        if place < -2 * size:
            place += 2 * size * np.trunc(-place / (2 * size))
        return place + 2 * size if place < -size else -place - 1
    if place > size - 1:
        place -= 2 * size * np.trunc(place / (2 * size))
        if place >= size:
            return 2 * size - place - 1
    return place


@compiled
def displace(image, dx, dy, out):
    """Bilinear samples of unit `image` (float32, (H, W, 4)) at (row + dy, column + dx) into `out` (uint8).

    The fourth value of a pixel counts for nothing. Samples are summed in double and rounded to single
    precision, clipped to [0, 1] and truncated. Borders are those of SciPy before 1.6: the place is folded,
    its neighbours are mirrored about the edge pixels.
    """
    zero, one, most = np.float32(0), np.float32(1), np.float32(255)
    height, width, _ = image.shape
    # A pixel is moved as one word of 16 bytes.
    pixels = image.reshape(-1).view(np.complex128)
    near, line = np.empty((4, width), np.complex128), np.empty((3, width), np.uint8)
    values = near.view(np.float32)
    rows, columns, corners = np.empty(width), np.empty(width), np.empty((4, width), np.int64)
    top, left, outside = np.empty(width), np.empty(width), np.empty(width, np.uint8)
    for y in range(height):
        for x in range(width):
            rows[x] = y + np.float64(dy[y, x])
            top[x] = np.floor(rows[x])
        for x in range(width):
            columns[x] = x + np.float64(dx[y, x])
            left[x] = np.floor(columns[x])
        place_corners(top, left, width, corners)
        if mark_outside(rows, columns, height, width, outside):
            for x in range(width):
                if outside[x]:
                    rows[x], columns[x] = folded(rows[x], height), folded(columns[x], width)
                    top[x], left[x] = np.floor(rows[x]), np.floor(columns[x])
                    mirror_corners(np.int64(top[x]), np.int64(left[x]), height, width, x, corners)
        gather(pixels, corners, near)
        upper, next_upper, lower, next_lower = values[0], values[1], values[2], values[3]
        for k in range(3):
            target = line[k]
            for x in range(width):
                part_y, part_x = rows[x] - top[x], columns[x] - left[x]
                value = np.float32(
                    upper[4 * x + k] * ((1.0 - part_y) * (1.0 - part_x))
                    + next_upper[4 * x + k] * ((1.0 - part_y) * part_x)
                    + lower[4 * x + k] * (part_y * (1.0 - part_x))
                    + next_lower[4 * x + k] * (part_y * part_x)
                )
                target[x] = np.uint8(np.int32(min(max(value, zero), one) * most))
        red, green, blue, target = line[0], line[1], line[2], out[y]
        for x in range(width):
            target[x, 0], target[x, 1], target[x, 2] = red[x], green[x], blue[x]
