"""The family CCC, and the registration of its corruptions."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from robustgen.pixels.benchmarks.registry import Family, corruption
from robustgen.pixels.imaging.pixels import Rgb

CCC = Family(
    "ccc",
    "CCC",
    "Ori Press, Steffen Schneider, Matthias Kuemmerer and Matthias Bethge: RDumb: A simple approach that "
    "questions our progress in continual test-time adaptation. Advances in Neural Information Processing "
    "Systems, 2023.",
    licence="MIT",
    severities=(0, 1, 2, 3, 4, 5),
    linear=True,
)
"""Fifteen corruptions; the published runs use fourteen."""

Function = Callable[..., Rgb]


def varying(category: str, parameters: type, *rows: Any, **flags: Any) -> Callable[[Function], Function]:
    """Register the decorated function with `rows` of constants for the severities 0 to 5.

    The function is not called for severity 0.
    """
    still = parameters(*rows[0]) if isinstance(rows[0], tuple) else parameters(rows[0])

    def register(function: Function) -> Function:
        @wraps(function)
        def corrupt(image: Rgb, own: Any, rng: Any, *shared: Any) -> Rgb:
            return image if own == still else function(image, own, rng, *shared)

        return corruption(category, parameters, {224: rows}, family=CCC, **flags)(corrupt)

    return register
