"""The exponential of negative numbers, of arithmetic alone: the last bit does not depend on the machine."""

import numpy as np

from robustgen.imaging.kernels.compiler import compiled, inner

# Powers of 2 from -1022 to 0.
_POWERS = np.ldexp(1.0, np.arange(-1022, 1))


@inner
def exponential(x):
    """Return the exponential of `x`, at most 0, to a unit in the last place: of arithmetic alone."""
    x = min(max(x, -700.0), 0.0)
    whole = np.floor(x * 1.4426950408889634 + 0.5)
    # The logarithm of 2 in two parts: products of the first with whole numbers below 2**20 are exact.
    r = (x - whole * 0.6931471803691238) - whole * 1.9082149292705877e-10
    p = 1.6059043836821613e-10
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    return (r * r * p + r + 1.0) * _POWERS[np.int64(whole) + 1022]


@compiled
def fill_exponentials(exponents, out):
    """Write the exponentials of `exponents` (flat, at most 0), computed in float64, into `out`."""
    for i in range(out.size):
        out[i] = exponential(np.float64(exponents[i]))
