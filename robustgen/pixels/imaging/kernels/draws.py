"""Loops that draw random numbers."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner
from robustgen.pixels.imaging.kernels.exact import exponential, log
from robustgen.pixels.imaging.kernels.intrinsics import upper_product

# --- random numbers of PCG64, NumPy's default generator, and draws equal to NumPy's ----------------


@compiled
def alias_rows(filling, table):
    """Apply Walker's method to each row of `filling` (N, 256), probabilities times 256; overwrites it.

    Entries of `table` (uint32): probability to stay on a column (upper 24 bits), and its alias (lower 8).
    """
    columns = filling.shape[1]
    poor, rich = np.empty(columns, np.int64), np.empty(columns, np.int64)
    for row in range(filling.shape[0]):
        poors, riches = 0, 0
        for column in range(columns):
            # A full column is its own alias, so the last 2**-24 of its probability stays too.
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
def resample(image, table, bits, entries, out):
    """Replace each value v of `image` (uint8, flat) by one drawn from row v of an alias table.

    The lower 8 of `bits` (uint32, flat) select a column of `table` (256, 256); the upper 24 bits of its entry
    are the probability to stay there, the lower 8 the alias. `entries` (uint32, as many) is a buffer.
    """
    # A separate look-up loop, so that the rest can be vectorised.
    for i in range(image.size):
        entries[i] = table[image[i], bits[i] & np.uint32(255)]
    for i in range(image.size):
        stays = (bits[i] >> np.uint32(8)) < (entries[i] >> np.uint32(8))
        out[i] = np.uint8((bits[i] if stays else entries[i]) & np.uint32(255))


@compiled
def step(state, factor, summand):
    """Return `state` times `factor` plus `summand`, 128 bits each, as (upper, lower)."""
    low = state[1] * factor[1]
    high = upper_product(state[1], factor[1]) + state[0] * factor[1] + state[1] * factor[0]
    total = low + summand[1]
    return high + summand[0] + np.uint64(total < low), total


@compiled
def word(state):
    """Return the 64 output bits of a state."""
    turn, mixed = state[0] >> np.uint64(58), state[0] ^ state[1]
    return (mixed >> turn) | (mixed << ((np.uint64(64) - turn) & np.uint64(63)))


@compiled
def draw_words(generator, words):
    """Fill `words` (uint64), and advance `generator` (uint64: state and increment, lower halves first)."""
    one_step = np.uint64(0x2360ED051FC65DA4), np.uint64(0x4385DF649FCCF645)
    nothing = np.uint64(0), np.uint64(0)
    increment = generator[3], generator[2]
    four_steps, summand = (np.uint64(0), np.uint64(1)), nothing
    for _ in range(4):
        four_steps, summand = step(four_steps, one_step, nothing), step(summand, one_step, increment)
    last = generator[1], generator[0]
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
    generator[1], generator[0] = last


@compiled
def draw_uniform(generator, low, span, out):
    """Fill `out` (float64, flat) with uniform numbers in [`low`, `low` + `span`), like NumPy."""
    words = np.empty(512, np.uint64)
    for start in range(0, out.size, words.size):
        target = out[start : start + words.size]
        draw_words(generator, words[: target.size])
        for i in range(target.size):
            target[i] = low + span * (np.float64(words[i] >> np.uint64(11)) * (1.0 / 9007199254740992.0))


@compiled
def keep_below(octets, bound, out):
    """Fill `out` (uint8) with integers below `bound` (at most 255), each from one of `octets` (uint8).

    The integer is the upper byte of octet times `bound`; octets whose lower byte is less than 256 % bound are
    rejected, for a uniform result (Lemire 2019). Returns the numbers of integers written and octets used.
    """
    factor, refused = np.uint32(bound), np.uint32(256 % bound)
    done, used = 0, 0
    while done < out.size and used < octets.size:
        stretch = min(out.size - done, octets.size - used)
        for i in range(used, used + stretch):
            product = np.uint32(octets[i]) * factor
            # Without an unpredictable branch: the next value overwrites a rejected one.
            out[np.uint64(done)] = np.uint8(product >> np.uint32(8))
            done += 1 if product & np.uint32(255) >= refused else 0
        used += stretch
    return done, used


@inner
def next_word(generator, begun, words, used):
    """Return the next of `words`, of which used[0] are used; refill them if none are left.

    `begun` becomes the state of `generator` before the current words.
    """
    if used[0] == words.size:
        begun[0], begun[1] = generator[0], generator[1]
        draw_words(generator, words)
        used[0] = 0
    used[0] += 1
    return words[used[0] - 1]


@inner
def unit_of(word):
    """Return the upper 53 bits of a word as a number in [0, 1)."""
    return np.float64(np.int64(word >> np.uint64(11))) * (1.0 / 9007199254740992.0)


@inner
def deviate_of(word, widths):
    """Return strip, size and deviate of a word in NumPy's ziggurat with strips of `widths`."""
    strip = np.int64(word & np.uint64(255))
    size = np.int64((word >> np.uint64(9)) & np.uint64(0xFFFFFFFFFFFFF))
    deviate = np.float64(size) * widths[strip]
    return strip, size, -deviate if word & np.uint64(256) else deviate


@inner
def draw_tail(generator, begun, words, used):
    """Return a deviate beyond the outermost strip, without its sign."""
    while True:
        # 1 minus a number of 53 bits is exact.
        beyond = -0.27366123732975828 * log(1.0 - unit_of(next_word(generator, begun, words, used)))
        reach = -log(1.0 - unit_of(next_word(generator, begun, words, used)))
        if reach + reach > beyond * beyond:
            return 3.6541528853610088 + beyond


@inner
def finish_deviate(word, generator, begun, words, used, widths, limits, heights):
    """Return the deviate of `word`, outside the core of its strip, or of the words that follow."""
    while True:
        strip, size, deviate = deviate_of(word, widths)
        if size < limits[strip]:
            return deviate
        if strip == 0:
            tail = draw_tail(generator, begun, words, used)
            return -tail if size & 256 else tail
        share = unit_of(next_word(generator, begun, words, used))
        height = (heights[strip - 1] - heights[strip]) * share + heights[strip]
        if height < exponential(-0.5 * deviate * deviate):
            return deviate
        word = next_word(generator, begun, words, used)


@compiled
def draw_normal(generator, widths, limits, heights, mean, deviation, out):
    """Fill `out` (float64, flat) with normal numbers, like NumPy.

    The strips of the ziggurat have `widths` / 2**52 (float64, 256), `limits` (int64) of the size of deviates
    in their cores, and `heights` (float64) of the density at their edges.
    """
    words, begun, used = np.empty(512, np.uint64), generator.copy(), np.empty(1, np.int64)
    draw_words(generator, words)
    # In a variable, as the compiler keeps array elements in memory.
    index = 0
    for i in range(out.size):
        if index == words.size:
            begun[0], begun[1] = generator[0], generator[1]
            draw_words(generator, words)
            index = 0
        word = words[index]
        index += 1
        strip, size, deviate = deviate_of(word, widths)
        if size >= limits[strip]:
            used[0] = index
            deviate = finish_deviate(word, generator, begun, words, used, widths, limits, heights)
            index = used[0]
        out[i] = mean + deviation * deviate
    # Set the generator to the position after the last word used.
    draw_words(begun, words[:index])
    generator[0], generator[1] = begun[0], begun[1]


@inner
def read_through(values):
    """Read one value of every 64 bytes of `values` (uint32, flat) to load all into the cache.

    The processor prefetches sequential reads. The sum only keeps the compiler from removing the loop.
    """
    total = np.uint32(0)
    for i in range(0, values.size, 16):
        total += values[i]
    return total


@compiled
def draw_resampled(generator, image, table, out):
    """Resample like `resample`, with the lower and upper halves of words drawn from `generator`."""
    words = np.empty(512, np.uint64)
    bits, entries = words.view(np.uint32), np.empty(1024, np.uint32)
    if image.size > table.size:
        # Overwritten later.
        bits[0] = read_through(table.reshape(-1))
    for start in range(0, image.size, bits.size):
        values = image[start : start + bits.size]
        draw_words(generator, words[: (values.size + 1) // 2])
        resample(values, table, bits, entries, out[start:])


# --- distribution functions of the normal and the Poisson distribution -----------------------------

# Beyond this, the probability is 0 or 1 in double precision.
_FARTHEST = 8.5
_DENSITY = 0.3989422804014327


@compiled
def normal_below(deviates):
    """Return the probability of a normal deviate below each of `deviates` (flat), to 1e-14.

    1/2 + x times density times (1 + x^2/3 + x^4/15 + ...): all terms have the same sign, so none cancel.
    """
    shares = np.empty(deviates.size)
    for i in range(deviates.size):
        x = min(max(deviates[i], -_FARTHEST), _FARTHEST)
        square = x * x
        # The density as the 256th power of a short series.
        z = square * (-0.5 / 256.0)
        density = 1.0
        for n in range(12, 0, -1):
            density = 1.0 + z / n * density
        for _ in range(8):
            density *= density
        total, term, divisor = 1.0, 1.0, 1.0
        while term > 1e-17 * total:
            divisor += 2.0
            term *= square / divisor
            total += term
        shares[i] = min(max(0.5 + _DENSITY * density * x * total, 0.0), 1.0)
    return shares


@compiled
def poisson_below(means, counts, out):
    """Write the probability of at most counts[j], given means[i], to out[i, j]; 0 for negative counts.

    `counts` must increase. Terms are computed outwards from the largest, and divided by their sum.
    """
    for i in range(means.size):
        mean = means[i]
        mode = np.int64(mean)
        below, term, k = 0.0, 1.0, mode
        while term > 1e-30 and k > 0:
            term *= k / mean
            below += term
            k -= 1
        smallest, least = term, k
        total, term, k = 1.0 + below, 1.0, mode
        while term > 1e-30 * total:
            k += 1
            term *= mean / k
            total += term
        # Upwards from the smallest relevant term.
        term, share, at = smallest, smallest, least
        for j in range(counts.size):
            while at < counts[j] and share < total:
                at += 1
                term *= mean / at
                share += term
            out[i, j] = min(share / total, 1.0) if counts[j] >= at else 0.0


@compiled
def add_mixtures(chances, shares, out):
    """Add the product of two matrices to `out`; a library's order of sums depends on the processor."""
    for i in range(chances.shape[0]):
        line = out[i]
        for j in range(chances.shape[1]):
            chance, share = chances[i, j], shares[j]
            for k in range(line.size):
                line[k] += chance * share[k]
