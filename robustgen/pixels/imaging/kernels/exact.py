"""Correctly rounded exponential, logarithm, sine and cosine, with the same bits on every machine.

Each is computed in double-double arithmetic, to some 100 bits, and rounded once, from additions,
multiplications and divisions alone; the last bit of a C library's functions depends on the processor.
"""

from fractions import Fraction

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner

# --- sine, cosine, exponential and powers from exact operations ------------------------------------

# The compiler can vectorise them, and the last bit does not depend on the machine's mathematical library. All
# are accurate to two units in the last place. Coefficients: minimax polynomials.

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


# --- correctly rounded exponential, logarithm, sine and cosine -------------------------------------

# Each is computed in double-double arithmetic, to some 100 bits, and rounded once, from additions,
# multiplications and divisions alone; the last bit of a C library's functions depends on the processor.


def _parts(number, count):
    """Split a Fraction into `count` floats, each the nearest to the remainder."""
    parts = []
    for _ in range(count):
        parts.append(float(number))
        number -= Fraction(parts[-1])
    return tuple(parts)


def _factorials(count):
    """Return 1 / n! for n = 0, 1, ... as pairs of floats, (count, 2)."""
    values, factorial = [], 1
    for n in range(count):
        factorial *= max(n, 1)
        values.append(_parts(Fraction(1, factorial), 2))
    return np.array(values)


_INVERSE_FACTORIALS = _factorials(30)
_INVERSES = np.array([_parts(Fraction(1, n), 2) for n in range(1, 6)])
_LN2 = _parts(Fraction(69314718055994530941723212145817656807550013436025525412068, 10**59), 3)
_HALF_PI = _parts(Fraction(157079632679489661923132169163975144209858469968755291048747, 10**59), 3)
_PER_LN2 = 1.4426950408889634
_PER_HALF_PI = 0.6366197723675814
# Veltkamp's factor, which splits a float into halves of 26 bits.
_SPLITTER = 134217729.0
_HALVINGS = 8


@inner
def quick_sum(a, b):
    """Return a + b, |a| >= |b|, and its rounding error."""
    total = a + b
    return total, b - (total - a)


@inner
def two_sum(a, b):
    """Return a + b and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@inner
def two_product(a, b):
    """Return a * b and its rounding error, without a fused multiply-add."""
    product = a * b
    cut = _SPLITTER * a
    a_high = cut - (cut - a)
    a_low = a - a_high
    cut = _SPLITTER * b
    b_high = cut - (cut - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@compiled
def add(high, low, other_high, other_low):
    """Add two double-doubles."""
    total, error = two_sum(high, other_high)
    tail, tail_error = two_sum(low, other_low)
    total, error = quick_sum(total, error + tail)
    return quick_sum(total, error + tail_error)


@compiled
def multiply(high, low, other_high, other_low):
    """Multiply two double-doubles."""
    product, error = two_product(high, other_high)
    return quick_sum(product, error + (high * other_low + low * other_high))


@compiled
def wide_exp(high, low):
    """Return the exponential of a double-double as a double-double; 0 below -745, inf above 709.7."""
    if not -745.2 < high < 709.78:
        return (0.0 if high < 0.0 else high * np.inf), 0.0
    power = np.floor(high * _PER_LN2 + 0.5)
    rest, error = high, low
    for i in range(3):
        part, part_error = two_product(-power, _LN2[i])
        rest, error = add(rest, error, part, part_error)
    scale = 1.0 / (1 << _HALVINGS)
    rest, error = rest * scale, error * scale
    # e^rest - 1 avoids the loss of digits next to the 1 when squaring.
    total, tail = _INVERSE_FACTORIALS[12, 0], _INVERSE_FACTORIALS[12, 1]
    for n in range(11, 0, -1):
        total, tail = multiply(total, tail, rest, error)
        total, tail = add(total, tail, _INVERSE_FACTORIALS[n, 0], _INVERSE_FACTORIALS[n, 1])
    total, tail = multiply(total, tail, rest, error)
    for _ in range(_HALVINGS):
        square, square_tail = multiply(total, tail, total, tail)
        total, tail = add(2.0 * total, 2.0 * tail, square, square_tail)
    total, tail = add(total, tail, 1.0, 0.0)
    # In two steps, because 2**1024 and 2**-1075 are not floats.
    half = np.floor(power * 0.5)
    first, second = _power_of_two(half), _power_of_two(power - half)
    return total * first * second, tail * first * second


@inner
def _power_of_two(power):
    """Return 2 to an integer `power` from -1000 to 1000."""
    value, factor = 1.0, 2.0 if power > 0.0 else 0.5
    left = np.int64(abs(power))
    while left:
        if left & 1:
            value *= factor
        factor *= factor
        left >>= 1
    return value


@compiled
def exp(x):
    """Return e to the power of `x`."""
    return wide_exp(x, 0.0)[0]


@compiled
def wide_log(x):
    """Return the natural logarithm of `x` as a double-double; NaN unless it is positive and finite."""
    if not 0.0 < x < np.inf:
        return np.nan, np.nan
    power, scaled = 0.0, x
    while scaled > 1.5:
        scaled, power = scaled * 0.5, power + 1.0
    while scaled < 0.75:
        scaled, power = scaled * 2.0, power - 1.0
    difference = scaled - 1.0
    if abs(difference) < 2.0**-20 and power == 0.0:
        # Close to 1, the series is short, and the step below would lose digits.
        high, low = _INVERSES[4, 0], _INVERSES[4, 1]
        for n in range(4, 0, -1):
            high, low = multiply(-high, -low, difference, 0.0)
            high, low = add(high, low, _INVERSES[n - 1, 0], _INVERSES[n - 1, 1])
        return multiply(high, low, difference, 0.0)
    s = difference / (scaled + 1.0)
    z, near = s * s, 0.0
    for n in range(31, 0, -2):
        near = near * z + 1.0 / n
    near = 2.0 * s * near
    # One step of Newton's method from a guess accurate to 1e-15.
    high, low = wide_exp(-near, 0.0)
    high, low = multiply(high, low, scaled, 0.0)
    rest, error = add(high, low, -1.0, 0.0)
    high, low = add(near, 0.0, rest - 0.5 * rest * rest, error)
    for i in range(3):
        part, part_error = two_product(power, _LN2[i])
        high, low = add(high, low, part, part_error)
    return high, low


@compiled
def log(x):
    """Return the natural logarithm of `x`; NaN unless it is positive and finite."""
    return wide_log(x)[0]


@compiled
def power(base, exponent):
    """Return the positive and finite `base` to the power of `exponent`."""
    high, low = wide_log(base)
    high, low = multiply(high, low, exponent, 0.0)
    return wide_exp(high, low)[0]


@compiled
def sine_cosine(x):
    """Return sine and cosine of `x`, at most a million in size."""
    quarter = np.floor(x * _PER_HALF_PI + 0.5)
    rest, error = x, 0.0
    for i in range(3):
        part, part_error = two_product(-quarter, _HALF_PI[i])
        rest, error = add(rest, error, part, part_error)
    square, square_error = multiply(rest, error, rest, error)
    sine, sine_tail = _INVERSE_FACTORIALS[27, 0], _INVERSE_FACTORIALS[27, 1]
    cosine, cosine_tail = _INVERSE_FACTORIALS[28, 0], _INVERSE_FACTORIALS[28, 1]
    for n in range(25, 0, -2):
        sine, sine_tail = multiply(-sine, -sine_tail, square, square_error)
        sine, sine_tail = add(sine, sine_tail, _INVERSE_FACTORIALS[n, 0], _INVERSE_FACTORIALS[n, 1])
    sine, sine_tail = multiply(sine, sine_tail, rest, error)
    for n in range(26, -1, -2):
        cosine, cosine_tail = multiply(-cosine, -cosine_tail, square, square_error)
        cosine, cosine_tail = add(cosine, cosine_tail, _INVERSE_FACTORIALS[n, 0], _INVERSE_FACTORIALS[n, 1])
    turn = np.int64(quarter) & 3
    if turn == 0:
        return sine, cosine
    if turn == 1:
        return cosine, -sine
    if turn == 2:
        return -sine, -cosine
    return -cosine, sine


@compiled
def gaussian_at(places, sigma):
    """Return exp((c x) x), c = -0.5 / sigma^2, for each of `places` (flat); for sigma 0, 1 only at 0."""
    out, variance = np.empty(places.size), sigma * sigma
    for i in range(places.size):
        x = np.float64(places[i])
        out[i] = exp(-0.5 / variance * x * x) if variance > 0.0 else np.float64(x == 0.0)
    return out


@compiled
def hypot(x, y):
    """Return the length of the vector (`x`, `y`); its squares must not over- or underflow."""
    root = np.sqrt(x * x + y * y)
    if root == 0.0:
        return root
    a, a_tail = two_product(x, x)
    b, b_tail = two_product(y, y)
    c, c_tail = two_product(-root, root)
    high, low = add(a, a_tail, b, b_tail)
    high, low = add(high, low, c, c_tail)
    return root + high / (2.0 * root)


@compiled
def sine_cosine_each(angles):
    """Return sine and cosine of each of `angles` (N), (2, N)."""
    out = np.empty((2, angles.size))
    for i in range(angles.size):
        out[0, i], out[1, i] = sine_cosine(angles[i])
    return out
