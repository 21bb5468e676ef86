"""Constants of a user's own, in place of published ones."""

from collections.abc import Mapping
from typing import Any

from robustgen.errors import ArgumentError
from robustgen.pixels.benchmarks.corruptions import get_corruption
from robustgen.pixels.benchmarks.parameters import check_parameter

Overrides = Mapping[str, Mapping[Any, Mapping[str, Any]]]
"""Operation to level to parameter to value."""

# A config key of its own chooses it, and it changes no pixel.
NOT_CONSTANTS = ("engine",)


def check_overrides(overrides: Overrides) -> Overrides:
    """Return the parameters of corruptions, with whole numbers as int.

    Raises
    ------
    ArgumentError
        A corruption, level, parameter or value cannot be used; the message names the place.
    """
    checked: dict[str, dict[int, dict[str, Any]]] = {}
    for name, levels in overrides.items():
        operation = get_corruption(name)
        if not levels:
            raise ArgumentError(f"{name}: no severity given; write {name}: {{3: {{...}}}}")
        for given, values in levels.items():
            # YAML may give the level as a string.
            level = int(given) if isinstance(given, str) and given.isdecimal() else given
            is_whole = isinstance(level, int) and not isinstance(level, bool)
            if not is_whole or not (isinstance(values, Mapping) and values):
                wanted = f"name a severity from 1 to 5, as in {name}: {{3: {{...}}}}"
                raise ArgumentError(f"{name}.{given}: {wanted}")
            published = operation.parameters(level, next(iter(operation.table)))
            for parameter, value in values.items():
                place = f"{name}.{level}.{parameter}"
                constant = check_parameter(published, parameter, value, name, place, NOT_CONSTANTS)
                checked.setdefault(name, {}).setdefault(level, {})[parameter] = constant
    return checked
