"""Distribution functions of the normal and the Poisson distribution."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled

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
