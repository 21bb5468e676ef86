"""Sums over a disk."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled


@compiled
def add_up_columns(padded, sums):
    """Write the sum of the values above each value of `padded` (uint16, (H, W * C)) in its column.

    Sums overflow, but differences below 65536 are correct. `sums` has one more row.
    """
    sums[0, :] = 0
    for row in range(padded.shape[0]):
        source, above, target = padded[row], sums[row], sums[row + 1]
        for m in range(source.size):
            target[m] = above[m] + source[m]


@compiled
def weigh_groups(padded, sums, weights, ends, taps, run_ends, runs, out):
    """Correlate with a kernel of few distinct weights: add up the values under each, exactly, then weigh.

    Group g has the weight weights[g], the taps up to ends[g] and the runs of taps up to run_ends[g], together
    no more than 257 places, or 16 bits overflow. A tap is (row, flat column) in `padded` (uint16,
    (H', W' * C)), a run (flat column, row, the row after it) in `sums`, its `add_up_columns`. Writes uint8
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
                # Four at a time, to load and store `total` less often.
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
                before = sums[row + runs[run, 1], runs[run, 0] :]
                after = sums[row + runs[run, 2], runs[run, 0] :]
                for m in range(total.size):
                    total[m] += np.uint16(after[m] - before[m])
                run += 1
            for m in range(total.size):
                line[m] += weight * np.float64(total[m])
        for m in range(line.size):
            out[row, m] = np.uint8(np.int32(min(line[m], 255.0)))
