"""Parameters of operations: replacement of published constants, and interpolation between them."""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from numbers import Real
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

from robustgen.errors import ArgumentError, ArgumentTypeError, UnknownNameError, quote

Parameters = TypeVar("Parameters")


_RANGE = "range"
MOST_STEPS: Final = 100
"""Chains of AugMix, and operations in a chain."""

LEVELS: Final = 0.1, 10
"""Lowest and highest strength of AugMix's operations."""

# With smaller values, a RandomState would sometimes draw weights that are 0 / 0.
ALPHAS: Final = 0.1, 1000.0
"""Parameters of AugMix's distributions of weights."""

# Published constants are below 2000; larger ones would take hours, or more memory than there is.
USUAL_RANGE = 0, 10_000


def within(low: float, high: float) -> Any:
    """Declare a field of a parameter class with a range from `low` to `high`, both included."""
    return dataclasses.field(metadata={_RANGE: (low, high)})


def find_ranges(table_type: Any) -> dict[str, tuple[float, float]]:
    """Return the lowest and highest value of each field of a parameter class that has a range."""
    return {
        each.name: each.metadata[_RANGE] for each in dataclasses.fields(table_type) if _RANGE in each.metadata
    }


def replace_parameters(published: Parameters, values: Any, operation: str) -> Parameters:
    """Return `published`, with `values` (name to value) in place of the named constants.

    Parameters
    ----------
    published : dataclass object
        The parameters of an operation at a level and scale.
    values : mapping of str to value, or None
        None replaces nothing.
    operation : str
        Name of the operation, for messages.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        `values` is not a mapping, names an unknown parameter, or contains an invalid value.
    """
    if values is None:
        return published
    if not isinstance(values, Mapping):
        raise ArgumentTypeError(f"parameters must be a mapping of names to values, not {quote(values)}")
    own = {
        name: check_parameter(published, name, value, operation, f"parameters: {operation}.{name}")
        for name, value in values.items()
    }
    return dataclasses.replace(published, **own)  # type: ignore[type-var]


@lru_cache(maxsize=1)
def read_calibrated_constants() -> Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]:
    """Return the constants of scripts/calibrate_sizes.py: scale to corruption to severity to constants."""
    text = Path(__file__).with_name("calibrated_constants.json").read_text(encoding="utf-8")
    constants: dict[str, Any] = json.loads(text)
    return constants


def interpolate_parameters(
    low: Parameters, high: Parameters, fraction: float, *, linear: bool = False
) -> Parameters:
    """Return constants interpolated between `low` (fraction 0) and `high` (fraction 1).

    Two positive numbers are interpolated by equal factors, others by equal steps. Whole numbers use equal
    steps and are rounded, halves towards `high`. For other values the nearer one is used, halfway `high`.

    Parameters
    ----------
    low, high : dataclass objects of one class
    fraction : float
        0 to 1.
    linear : bool
        Whether positive numbers use equal steps too.
    """
    hints = get_type_hints(type(low))
    values = {
        field.name: _interpolate(
            getattr(low, field.name), getattr(high, field.name), fraction, hints[field.name], linear
        )
        for field in dataclasses.fields(low)  # type: ignore[arg-type]
    }
    return dataclasses.replace(low, **values)  # type: ignore[type-var]


def _interpolate(low: Any, high: Any, fraction: float, hint: Any, linear: bool) -> Any:
    if hint is int:
        value = low + (high - low) * fraction
        return math.floor(value + 0.5) if high > low else math.ceil(value - 0.5)
    if hint is not float:
        return high if fraction >= 0.5 else low
    if linear:
        return low + (high - low) * fraction
    return move_number(low, high, fraction)


def move_number(low: float, high: float, fraction: float) -> float:
    """Return the number between `low` (fraction 0) and `high` (fraction 1), or beyond; never below 0.

    Two positive numbers are interpolated by equal factors, others by equal steps.
    """
    if low == high:
        return low
    if low <= 0 or high <= 0:
        return max(0.0, low + (high - low) * fraction)
    # The last bit of a C library's power depends on the processor. Compiled code is slow to import.
    from robustgen.pixels.imaging.kernels import exact

    factor: float = exact.power(high / low, float(fraction))
    return low * factor


def check_parameter(published: Any, name: str, value: Any, operation: str, place: str) -> Any:
    """Return `value` in the type of parameter `name` of `published`: int, float, str or tuple.

    Parameters
    ----------
    place : str
        Beginning of messages.

    Raises
    ------
    UnknownNameError
        The parameter is unknown.
    ArgumentError
        The value is of the wrong type, or out of range.
    """
    hints = get_type_hints(type(published))
    known = [field.name for field in dataclasses.fields(published)]
    if name not in known:
        raise UnknownNameError(f"parameter of {operation}", name, known)
    checked = _check_value(place, value, hints[name])
    low, high = find_ranges(published).get(name, USUAL_RANGE)
    if hints[name] in (int, float) and not low <= checked <= high:
        raise ArgumentError(f"{place}: must be from {low:g} to {high:g}, not {quote(value)}")
    return checked


def _check_value(place: str, value: Any, hint: Any) -> Any:
    if hint is int or hint is float:
        return _check_number(place, value, whole=hint is int)
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            known = " or ".join(map(repr, get_args(hint)))
            raise ArgumentError(f"{place}: must be {known}, not {quote(value)}")
        return value
    if get_origin(hint) is tuple:
        if not isinstance(value, Sequence) or isinstance(value, str) or not value:
            raise ArgumentError(f"{place}: must be a sequence of numbers, not {quote(value)}")
        return tuple(_check_number(place, each, whole=False) for each in value)
    if isinstance(value, get_args(hint) or (str, type(None))):
        return value
    raise ArgumentError(f"{place}: must be a string, not {quote(value)}")


def _check_number(place: str, value: Any, *, whole: bool) -> float:
    numeric = isinstance(value, Real) and not isinstance(value, bool)
    if not numeric or not 0 <= value < math.inf or (whole and value != int(value)):
        wanted = "a whole number" if whole else "a number"
        raise ArgumentError(f"{place}: must be {wanted} of at least 0, not {quote(value)}")
    return int(value) if whole else float(value)
