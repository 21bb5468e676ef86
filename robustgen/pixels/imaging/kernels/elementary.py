"""Sine, cosine, exponential, powers and vector angle from additions, multiplications and divisions.

The compiler can vectorise them, and the last bit does not depend on the machine's mathematical library. All
are accurate to two units in the last place. Coefficients: minimax polynomials.
"""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner

_PI = 3.141592653589793
# Pi in three parts: products of the first two with integers below 2**20 are exact.
_PI_HIGH, _PI_MIDDLE, _PI_LOW = 3.1415926534682512, 1.2154201012607932e-10, 4.044532497591901e-21
# Powers of 2 from -1022 to 0.
_POWERS = np.ldexp(1.0, np.arange(-1022, 1))


@inner
def _sine_near_zero(r):
    """Return the sine of `r` in [-pi/2, pi/2]."""
    z = r * r
    p = -7.982518961783833e-18
    p = p * z + 2.8102145350022103e-15
    p = p * z + -7.647127739966418e-13
    p = p * z + 1.6059043206300948e-10
    p = p * z + -2.5052108378602197e-08
    p = p * z + 2.755731922394071e-06
    p = p * z + -0.0001984126984126967
    p = p * z + 0.008333333333333333
    p = p * z + -0.16666666666666666
    return r + r * z * p


@compiled
def sine(x):
    """Return the sine of `x`, at most a million in size."""
    turns = np.floor(x * (1 / _PI) + 0.5)
    r = ((x - turns * _PI_HIGH) - turns * _PI_MIDDLE) - turns * _PI_LOW
    odd = turns - 2.0 * np.floor(turns * 0.5)
    return _sine_near_zero(r) * (1.0 - 2.0 * odd)


@compiled
def cosine(x):
    """Return the cosine of `x`, at most a million in size."""
    turns = np.floor(x * (1 / _PI))
    half = turns + 0.5
    r = ((x - half * _PI_HIGH) - half * _PI_MIDDLE) - half * _PI_LOW
    odd = turns - 2.0 * np.floor(turns * 0.5)
    return _sine_near_zero(r) * (2.0 * odd - 1.0)


@inner
def sine_and_cosine(x):
    """Return sine and cosine of `x`, at most a million in size; the cosine to an absolute 2e-16."""
    turns = np.floor(x * (1 / _PI) + 0.5)
    r = ((x - turns * _PI_HIGH) - turns * _PI_MIDDLE) - turns * _PI_LOW
    sign = 1.0 - 2.0 * (turns - 2.0 * np.floor(turns * 0.5))
    half = _sine_near_zero(0.5 * r)
    return _sine_near_zero(r) * sign, (1.0 - 2.0 * half * half) * sign


@inner
def fill_sines(angles, sines, cosines):
    """Write the sines and cosines of `angles`; all are flat."""
    for x in range(angles.size):
        sines[x], cosines[x] = sine_and_cosine(angles[x])


@compiled
def angle_of(y, x):
    """Return the angle of the vector (`x`, `y`) in [-pi, pi], like ``arctan2(y, x)``."""
    across, up = abs(x), abs(y)
    short, long = min(across, up), max(across, up)
    # Beyond 22.5 degrees, measure from 45 degrees.
    steep = short > 0.41421356237309503 * long
    top = short - long if steep else short
    bottom = short + long if steep else (long if long > 0.0 else 1.0)
    q = top / bottom
    z = q * q
    p = -0.017805397205419446
    p = p * z + 0.03796525745386593
    p = p * z + -0.05035102456601552
    p = p * z + 0.05846878297330872
    p = p * z + -0.06662951813629191
    p = p * z + 0.07692045330902225
    p = p * z + -0.09090896809064027
    p = p * z + 0.11111110744919658
    p = p * z + -0.14285714279250245
    p = p * z + 0.19999999999940893
    p = p * z + -0.3333333333333312
    angle = q + q * z * p
    angle = angle + 0.25 * _PI if steep else angle
    angle = 0.5 * _PI - angle if up > across else angle
    angle = _PI - angle if x < 0.0 else angle
    return -angle if y < 0.0 else angle


@inner
def exponential(x):
    """Return the exponential of `x`, -700 to 0, to a unit in the last place; below, that of -700."""
    x = min(max(x, -700.0), 0.0)
    whole = np.floor(x * 1.4426950408889634 + 0.5)
    # log(2) in two parts: products of the first with integers below 2**20 are exact.
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


@compiled
def raise_to(values, exponent):
    """Raise `values` (float64, flat, above 0 and finite) to `exponent`, in place, to 1e-14 of the result."""
    bits = values.view(np.int64)
    powers = np.empty(values.size)
    for i in range(values.size):
        powers[i] = np.float64((bits[i] >> np.int64(52)) - np.int64(1023))
    for i in range(values.size):
        bits[i] = (bits[i] & np.int64(0x000FFFFFFFFFFFFF)) | np.int64(0x3FF0000000000000)
    for i in range(values.size):
        m = values[i]
        large = m > 1.4142135623730951
        m = 0.5 * m if large else m
        whole = powers[i] + 1.0 if large else powers[i]
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        p = 0.13262103674021808
        p = p * z + 0.13248763083460116
        p = p * z + 0.1538716092613408
        p = p * z + 0.18181773738016305
        p = p * z + 0.2222222267692954
        p = p * z + 0.2857142856881913
        p = p * z + 0.40000000000007496
        p = p * z + 0.6666666666666666
        p = p * z + 2.0
        # Logarithm to base 2 times the exponent, split into integer and fraction.
        power = exponent * (whole + s * p * 1.4426950408889634)
        power = min(max(power, -1000.0), 1000.0)
        whole = np.floor(power + 0.5)
        r = power - whole
        p = 2.5733568308756892e-11
        p = p * r + 4.456675341049206e-10
        p = p * r + 7.054894386348348e-09
        p = p * r + 1.0178051192960649e-07
        p = p * r + 1.3215486815999978e-06
        p = p * r + 1.5252733856293466e-05
        p = p * r + 0.00015403530393362755
        p = p * r + 0.0013333558146390353
        p = p * r + 0.009618129107628484
        p = p * r + 0.0555041086648217
        p = p * r + 0.24022650695910072
        p = p * r + 0.6931471805599453
        powers[i] = p * r + 1.0
        values[i] = whole
    for i in range(values.size):
        bits[i] = (np.int64(values[i]) + np.int64(1023)) << np.int64(52)
    for i in range(values.size):
        values[i] *= powers[i]
