"""Random numbers: PCG64, NumPy's default generator, word for word, and what is drawn from it."""

import numpy as np

from robustgen.imaging.kernels.compiler import compiled, inner
from robustgen.imaging.kernels.elementary import exponential
from robustgen.imaging.kernels.exact import log
from robustgen.imaging.kernels.intrinsics import upper_product


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
def resample(image, table, bits, entries, out):
    """Replace each value v of `image` (uint8, flat) by one drawn from row v of an alias table.

    `table` (256, 256) holds in its upper 24 bits the chance to stay on the column that the lower 8 of
    `bits` (uint32, flat) choose, and in its lower 8 the alias taken otherwise. `entries` (uint32, as many) is
    written over.
    """
    # Looked up one by one, so that the rest can be done for many at once.
    for i in range(image.size):
        entries[i] = table[image[i], bits[i] & np.uint32(255)]
    for i in range(image.size):
        stays = (bits[i] >> np.uint32(8)) < (entries[i] >> np.uint32(8))
        out[i] = np.uint8((bits[i] if stays else entries[i]) & np.uint32(255))


@compiled
def step(state, factor, summand):
    """Return `state` times `factor` plus `summand`: 128 bits each, as (upper, lower)."""
    low = state[1] * factor[1]
    high = upper_product(state[1], factor[1]) + state[0] * factor[1] + state[1] * factor[0]
    total = low + summand[1]
    return high + summand[0] + np.uint64(total < low), total


@compiled
def word(state):
    """Return the 64 bits that a state gives."""
    turn, mixed = state[0] >> np.uint64(58), state[0] ^ state[1]
    return (mixed >> turn) | (mixed << ((np.uint64(64) - turn) & np.uint64(63)))


@compiled
def draw_words(generator, words):
    """Fill `words` (uint64) and move `generator` (uint64: state and increment, lower halves first) on."""
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
    """Fill `out` (float64, flat) with uniform numbers in [`low`, `low` + `span`), as NumPy does."""
    words = np.empty(512, np.uint64)
    for start in range(0, out.size, words.size):
        target = out[start : start + words.size]
        draw_words(generator, words[: target.size])
        for i in range(target.size):
            target[i] = low + span * (np.float64(words[i] >> np.uint64(11)) * (1.0 / 9007199254740992.0))


@compiled
def keep_below(octets, bound, out):
    """Fill `out` (uint8) with whole numbers below `bound` (at most 255), each from one of `octets` (uint8).

    Of an octet times `bound` it is the upper byte, unless the lower one is less than 256 % bound: so all come
    equally often (Lemire 2019). Returns how many of `out` are filled, and how many octets that took.
    """
    factor, refused = np.uint32(bound), np.uint32(256 % bound)
    done, used = 0, 0
    while done < out.size and used < octets.size:
        stretch = min(out.size - done, octets.size - used)
        for i in range(used, used + stretch):
            product = np.uint32(octets[i]) * factor
            # Without a branch, which no processor could predict: what is refused the next one overwrites.
            out[np.uint64(done)] = np.uint8(product >> np.uint32(8))
            done += 1 if product & np.uint32(255) >= refused else 0
        used += stretch
    return done, used


@inner
def next_word(generator, begun, words, used):
    """Return the next of `words`, of which used[0] have been taken; new ones where there are none left.

    `begun` becomes the state of `generator` before the present ones.
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
    """Strip, size and deviate that a word stands for in NumPy's ziggurat, whose strips have `widths`."""
    strip = np.int64(word & np.uint64(255))
    size = np.int64((word >> np.uint64(9)) & np.uint64(0xFFFFFFFFFFFFF))
    deviate = np.float64(size) * widths[strip]
    return strip, size, -deviate if word & np.uint64(256) else deviate


@inner
def draw_tail(generator, begun, words, used):
    """Return a deviate beyond the outermost strip, without its sign."""
    while True:
        # A share of 53 bits taken from 1 leaves no rest.
        beyond = -0.27366123732975828 * log(1.0 - unit_of(next_word(generator, begun, words, used)))
        reach = -log(1.0 - unit_of(next_word(generator, begun, words, used)))
        if reach + reach > beyond * beyond:
            return 3.6541528853610088 + beyond


@inner
def finish_deviate(word, generator, begun, words, used, widths, limits, heights):
    """Return the deviate that `word` stands for, or those after it, if it does not lie in the core of its
    strip.
    """
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


@inner
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
    """Resample as `resample`, by the lower and the upper half of words drawn from `generator`."""
    words = np.empty(512, np.uint64)
    bits, entries = words.view(np.uint32), np.empty(1024, np.uint32)
    if image.size > table.size:
        # To be overwritten.
        bits[0] = read_through(table.reshape(-1))
    for start in range(0, image.size, bits.size):
        values = image[start : start + bits.size]
        draw_words(generator, words[: (values.size + 1) // 2])
        resample(values, table, bits, entries, out[start:])
