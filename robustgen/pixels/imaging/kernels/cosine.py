"""Compiled loops of a JPEG round trip with the arithmetic of the IJG's libjpeg 9c or of libjpeg-turbo.

The constants are those of its "islow" transforms: round(c 2**13). Several blocks are transformed at once, so
that the innermost loops run along contiguous memory. Sums are cut to int32, as numba would widen them.
"""

import numpy as np
from numpy import int32

from robustgen.pixels.imaging.kernels.compiler import compiled, inner

# Lanes of a line of the work arrays, 256 // n blocks of n x n samples, and the distance between lines: a
# constant, so that loops are vectorised, and no power of two, so that lines do not compete in the cache.
LANES = 256
S = LANES + 16


@compiled
def forward_8(x, lanes, offset, left, shift, out):
    """Transform 8 samples x[k] of every lane to coefficients out[k]."""
    half, right = int32(1 << (shift - 1)), 2 - left
    for i in range(lanes):
        s0 = int32(x[i] + x[7 * S + i])
        s1 = int32(x[S + i] + x[6 * S + i])
        s2 = int32(x[2 * S + i] + x[5 * S + i])
        s3 = int32(x[3 * S + i] + x[4 * S + i])
        d0 = int32(x[i] - x[7 * S + i])
        d1 = int32(x[S + i] - x[6 * S + i])
        d2 = int32(x[2 * S + i] - x[5 * S + i])
        d3 = int32(x[3 * S + i] - x[4 * S + i])
        a = int32(s0 + s3)
        b = int32(s1 + s2)
        c = int32(s0 - s3)
        e = int32(s1 - s2)
        out[i] = int32((a + b + offset) << left) >> right
        out[4 * S + i] = int32((a - b + max(offset, 0)) << left) >> right
        z = int32(4433 * (c + e) + half)
        out[2 * S + i] = int32(z + 6270 * c) >> shift
        out[6 * S + i] = int32(z - 15137 * e) >> shift
        p, r = int32(d0 + d2), int32(d1 + d3)
        z = int32(9633 * (p + r) + half)
        p, r = int32(z - 3196 * p), int32(z - 16069 * r)
        m = int32(-7373 * (d0 + d3))
        k = int32(-20995 * (d1 + d2))
        out[S + i] = int32(12299 * d0 + m + p) >> shift
        out[3 * S + i] = int32(25172 * d1 + k + r) >> shift
        out[5 * S + i] = int32(16819 * d2 + k + p) >> shift
        out[7 * S + i] = int32(2446 * d3 + m + r) >> shift


@compiled
def forward_16(x, lanes, offset, left, right, shift, out):
    """Transform 16 samples x[k] of every lane to the 8 lowest coefficients out[k]."""
    half = int32(1 << (shift - 1))
    for i in range(lanes):
        s0 = int32(x[i] + x[15 * S + i])
        s1 = int32(x[S + i] + x[14 * S + i])
        s2 = int32(x[2 * S + i] + x[13 * S + i])
        s3 = int32(x[3 * S + i] + x[12 * S + i])
        s4 = int32(x[4 * S + i] + x[11 * S + i])
        s5 = int32(x[5 * S + i] + x[10 * S + i])
        s6 = int32(x[6 * S + i] + x[9 * S + i])
        s7 = int32(x[7 * S + i] + x[8 * S + i])
        d0 = int32(x[i] - x[15 * S + i])
        d1 = int32(x[S + i] - x[14 * S + i])
        d2 = int32(x[2 * S + i] - x[13 * S + i])
        d3 = int32(x[3 * S + i] - x[12 * S + i])
        d4 = int32(x[4 * S + i] - x[11 * S + i])
        d5 = int32(x[5 * S + i] - x[10 * S + i])
        d6 = int32(x[6 * S + i] - x[9 * S + i])
        d7 = int32(x[7 * S + i] - x[8 * S + i])
        a0 = int32(s0 + s7)
        a1 = int32(s1 + s6)
        a2 = int32(s2 + s5)
        a3 = int32(s3 + s4)
        c0 = int32(s0 - s7)
        c1 = int32(s1 - s6)
        c2 = int32(s2 - s5)
        c3 = int32(s3 - s4)
        out[i] = int32((a0 + a1 + a2 + a3 + offset) << left) >> right
        out[4 * S + i] = int32(10703 * (a0 - a3) + 4433 * (a1 - a2) + half) >> shift
        z = int32(2260 * (c3 - c1) + 11363 * (c0 - c2) + half)
        out[2 * S + i] = int32(z + 11893 * c1 + 17799 * c2) >> shift
        out[6 * S + i] = int32(z - 1730 * c0 - 8697 * c3) >> shift
        k1 = int32(11086 * (d0 + d1) + 3363 * (d6 - d7))
        k2 = int32(10217 * (d0 + d2) + 5461 * (d5 + d7))
        k3 = int32(8956 * (d0 + d3) + 7350 * (d4 - d7))
        k4 = int32(1136 * (d1 + d2) + 11529 * (d6 - d5))
        k5 = int32(-5461 * (d1 + d3) - 10217 * (d4 + d6))
        k6 = int32(-11086 * (d2 + d3) + 3363 * (d5 - d4))
        out[S + i] = int32(k1 + k2 + k3 - 18730 * d0 + 6387 * d7 + half) >> shift
        out[3 * S + i] = int32(k1 + k4 + k5 + 589 * d1 - 13631 * d6 + half) >> shift
        out[5 * S + i] = int32(k2 + k4 + k6 - 9222 * d2 + 10055 * d5 + half) >> shift
        out[7 * S + i] = int32(k3 + k5 + k6 + 8728 * d3 + 17760 * d4 + half) >> shift


@compiled
def inverse_8(c, lanes, bias, shift, out):
    """Transform 8 coefficients c[k] of every lane to 8 samples out[k]."""
    for i in range(lanes):
        t0 = int32((c[i] + c[4 * S + i] << 13) + bias)
        t1 = int32((c[i] - c[4 * S + i] << 13) + bias)
        z = int32(4433 * (c[2 * S + i] + c[6 * S + i]))
        t2 = int32(z + 6270 * c[2 * S + i])
        t3 = int32(z - 15137 * c[6 * S + i])
        e0 = int32(t0 + t2)
        e1 = int32(t1 + t3)
        e2 = int32(t1 - t3)
        e3 = int32(t0 - t2)
        p, r = int32(c[7 * S + i] + c[3 * S + i]), int32(c[5 * S + i] + c[S + i])
        z = int32(9633 * (p + r))
        p, r = int32(z - 16069 * p), int32(z - 3196 * r)
        m = int32(-7373 * (c[7 * S + i] + c[S + i]))
        k = int32(-20995 * (c[5 * S + i] + c[3 * S + i]))
        o0 = int32(12299 * c[S + i] + m + r)
        o1 = int32(25172 * c[3 * S + i] + k + p)
        o2 = int32(16819 * c[5 * S + i] + k + r)
        o3 = int32(2446 * c[7 * S + i] + m + p)
        out[i] = int32(e0 + o0) >> shift
        out[7 * S + i] = int32(e0 - o0) >> shift
        out[S + i] = int32(e1 + o1) >> shift
        out[6 * S + i] = int32(e1 - o1) >> shift
        out[2 * S + i] = int32(e2 + o2) >> shift
        out[5 * S + i] = int32(e2 - o2) >> shift
        out[3 * S + i] = int32(e3 + o3) >> shift
        out[4 * S + i] = int32(e3 - o3) >> shift


@compiled
def inverse_16(c, lanes, bias, shift, out):
    """Transform 8 coefficients c[k] of every lane to 16 samples out[k]."""
    for i in range(lanes):
        c1 = int32(c[S + i])
        c2 = int32(c[2 * S + i])
        c3 = int32(c[3 * S + i])
        c5 = int32(c[5 * S + i])
        c6 = int32(c[6 * S + i])
        c7 = int32(c[7 * S + i])
        t = int32((c[i] << 13) + bias)
        a = int32(10703 * c[4 * S + i])
        b = int32(4433 * c[4 * S + i])
        m = int32(2260 * (c2 - c6))
        k = int32(11363 * (c2 - c6))
        g0 = int32(k + 20995 * c6)
        g1 = int32(m + 7373 * c2)
        g2 = int32(k - 4926 * c2)
        g3 = int32(m - 4176 * c6)
        e0 = int32(t + a + g0)
        e7 = int32(t + a - g0)
        e1 = int32(t + b + g1)
        e6 = int32(t + b - g1)
        e2 = int32(t - b + g2)
        e5 = int32(t - b - g2)
        e3 = int32(t - a + g3)
        e4 = int32(t - a - g3)
        # The letters are those of shared terms.
        aa = int32(11086 * (c1 + c3))
        bb = int32(10217 * (c1 + c5))
        ee = int32(8956 * (c1 + c7))
        kk = int32(7350 * (c1 - c7))
        ll = int32(5461 * (c1 + c5))
        mm = int32(3363 * (c1 - c3))
        nn = int32(1136 * (c3 + c5))
        pp = int32(11529 * (c5 - c3))
        tt = int32(-5461 * (c3 + c7))
        uu = int32(-10217 * (c3 + c7))
        vv = int32(-11086 * (c5 + c7))
        ww = int32(3363 * (c7 - c5))
        o0 = int32(aa + bb + ee - 18730 * c1)
        o1 = int32(aa + nn + 589 * c3 + tt)
        o2 = int32(bb + nn - 9222 * c5 + vv)
        o3 = int32(ee + tt + 8728 * c7 + vv)
        o4 = int32(kk + uu + 25733 * c7 + ww)
        o5 = int32(ll + pp - 6278 * c5 + ww)
        o6 = int32(mm + pp + 16154 * c3 + uu)
        o7 = int32(kk + ll + mm - 15038 * c1)
        out[i] = int32(e0 + o0) >> shift
        out[15 * S + i] = int32(e0 - o0) >> shift
        out[S + i] = int32(e1 + o1) >> shift
        out[14 * S + i] = int32(e1 - o1) >> shift
        out[2 * S + i] = int32(e2 + o2) >> shift
        out[13 * S + i] = int32(e2 - o2) >> shift
        out[3 * S + i] = int32(e3 + o3) >> shift
        out[12 * S + i] = int32(e3 - o3) >> shift
        out[4 * S + i] = int32(e4 + o4) >> shift
        out[11 * S + i] = int32(e4 - o4) >> shift
        out[5 * S + i] = int32(e5 + o5) >> shift
        out[10 * S + i] = int32(e5 - o5) >> shift
        out[6 * S + i] = int32(e6 + o6) >> shift
        out[9 * S + i] = int32(e6 - o6) >> shift
        out[7 * S + i] = int32(e7 + o7) >> shift
        out[8 * S + i] = int32(e7 - o7) >> shift


@inner
def quantise(x, steps):
    """Round coefficients, which are 8 times too large before, to multiples of `steps`."""
    for i in range(x.size):
        value, step = x[i], steps[i]
        size = int32(max(value, int32(-value)) + int32(step << 2))
        level = int32(int32(np.float32(size) / np.float32(int32(step << 3))) * step)
        x[i] = level if value >= 0 else int32(-level)


@inner
def limit(value, mask):
    """Return a sample around 384 as 0 to 255, after cutting it to `mask`."""
    return min(max(int32(int32(value & mask) - int32(384)), int32(0)), int32(255))


@inner
def exchange(x, n, m, blocks, out):
    """Copy x[k, (j, block)] to out[j, (k, block)] for k < n and j < m."""
    for k in range(n):
        for j in range(m):
            for b in range(blocks):
                out[j * S + k * blocks + b] = x[k * S + j * blocks + b]


@compiled
def compress_plane(words, table, n, mask):
    """Replace a plane by its round trip with blocks of n x n samples.

    `words` (int32, (H, W / 4)) are the plane's samples, four in each, as a view; its sides are multiples of
    `n`. `table` is int32 (8, 8): the steps of quantisation. `mask` is 1023 if values beyond -512 .. 511 wrap
    around, so that white becomes black, as in libjpeg, and -1 if they do not, as in libjpeg-turbo.
    """
    across, down = np.zeros(16 * S, np.int32), np.zeros(16 * S, np.int32)
    blocks, groups, kept = LANES // n, n // 4, int32(mask)
    steps = np.ones(8 * S, np.int32)
    for v in range(8):
        for u in range(8):
            for b in range(blocks):
                steps[v * S + u * blocks + b] = table[v, u]
    width = words.shape[1] // groups
    count = width * (words.shape[0] // n)
    for first in range(0, count, blocks):
        here = min(blocks, count - first)
        for b in range(here):
            top, left = (first + b) // width * n, (first + b) % width * groups
            for y in range(n):
                line = words[top + y, left : left + groups]
                for g in range(groups):
                    across[4 * g * S + y * blocks + b] = line[g]
        for g in range(groups):
            four = across[4 * g * S : 4 * (g + 1) * S]
            for i in range(LANES):
                word = four[i]
                for k in range(4):
                    four[k * S + i] = int32(word >> int32(8 * k)) & int32(255)
        if n == 8:
            forward_8(across, LANES, -1024, 2, 11, down)
            exchange(down, 8, 8, blocks, across)
            forward_8(across, LANES, 2, 0, 15, down)
        else:
            forward_16(across, LANES, -2048, 2, 0, 11, down)
            exchange(down, 8, 16, blocks, across)
            forward_16(across, 8 * blocks, 8, 0, 4, 17, down)
        quantise(down[: 8 * S], steps)
        # The rounding term of the second pass includes the centre of the limits, 512.
        if n == 8:
            inverse_8(down, LANES, 1 << 10, 11, across)
            exchange(across, 8, 8, blocks, down)
            inverse_8(down, LANES, (512 * 32 + 16) << 13, 18, across)
        else:
            inverse_16(down, 8 * blocks, 1 << 10, 11, across)
            exchange(across, 16, 8, blocks, down)
            inverse_16(down, LANES, (512 * 32 + 16) << 13, 18, across)
        for g in range(groups):
            four = across[4 * g * S : 4 * (g + 1) * S]
            for i in range(LANES):
                word = int32(0)
                for k in range(4):
                    word |= int32(limit(four[k * S + i], kept) << int32(8 * k))
                four[i] = word
        for b in range(here):
            top, left = (first + b) // width * n, (first + b) % width * groups
            for y in range(n):
                line = words[top + y, left : left + groups]
                for g in range(groups):
                    line[g] = across[4 * g * S + y * blocks + b]


@compiled
def halve_plane(plane, out):
    """Write the means of 2 x 2 samples of `plane` to `out` (H, W), rounded down and up in turns."""
    for y in range(out.shape[0]):
        upper, lower, line = plane[2 * y], plane[2 * y + 1], out[y]
        for x in range(line.size):
            total = (
                int32(upper[2 * x]) + int32(upper[2 * x + 1]) + int32(lower[2 * x]) + int32(lower[2 * x + 1])
            )
            line[x] = int32(total + 1 + (x & 1)) >> 2


@compiled
def double_plane(plane, out):
    """Write `plane`, interpolated linearly to twice its sides, to `out`, whose sides may be one shorter."""
    height, width = (out.shape[0] + 1) // 2, (out.shape[1] + 1) // 2
    sums = np.empty(width + 2, np.int32)
    for y in range(out.shape[0]):
        near, line = plane[y // 2], out[y]
        far = plane[min(max(y // 2 + 2 * (y & 1) - 1, 0), height - 1)]
        for x in range(width):
            sums[x + 1] = 3 * int32(near[x]) + int32(far[x])
        sums[0], sums[width + 1] = sums[1], sums[width]
        for x in range(line.size // 2):
            line[2 * x] = int32(3 * sums[x + 1] + sums[x] + 8) >> 4
            line[2 * x + 1] = int32(3 * sums[x + 1] + sums[x + 2] + 7) >> 4
        if line.size & 1:
            line[line.size - 1] = int32(3 * sums[width] + sums[width - 1] + 8) >> 4


@compiled
def split_colours(pixels, planes, by_red, by_green):
    """Write luma and both chromas of RGB `pixels` (uint8, (H, 3 W)) to `planes` (uint8, (3, H, W))."""
    channels = np.empty((3, planes.shape[2]), np.uint8)
    red, green, blue = channels[0], channels[1], channels[2]
    for y in range(planes.shape[1]):
        line, luma, first, second = pixels[y], planes[0, y], planes[1, y], planes[2, y]
        for x in range(luma.size):
            red[x], green[x], blue[x] = line[3 * x], line[3 * x + 1], line[3 * x + 2]
        for x in range(luma.size):
            r, g, b = int32(red[x]), int32(green[x]), int32(blue[x])
            luma[x] = int32(19595 * r + 38470 * g + 7471 * b + 32768) >> 16
            first[x] = int32(by_red * r + by_green * g + 32768 * b + 8421375) >> 16
            second[x] = int32(32768 * r - 27439 * g - 5329 * b + 8421375) >> 16


@compiled
def join_colours(planes, by_blue):
    """Replace luma and both chromas in `planes` (uint8, (3, N)) by red, green and blue."""
    luma, first, second = planes[0], planes[1], planes[2]
    least, most = int32(0), int32(255)
    for i in range(luma.size):
        y, b, r = int32(luma[i]), int32(int32(first[i]) - 128), int32(int32(second[i]) - 128)
        luma[i] = min(max(int32(y + (int32(91881 * r + 32768) >> 16)), least), most)
        first[i] = min(max(int32(y + (int32(by_blue * b - 46802 * r + 32768) >> 16)), least), most)
        second[i] = min(max(int32(y + (int32(116130 * b + 32768) >> 16)), least), most)
