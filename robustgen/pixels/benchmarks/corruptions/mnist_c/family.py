"""The family MNIST-C, and the registration of its corruptions."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from robustgen.errors import ArgumentError
from robustgen.pixels.benchmarks.registry import Family, corruption
from robustgen.pixels.imaging.pixels import Rgb

SIDE = 28

MNIST_C = Family(
    "mnist-c",
    "MNIST-C",
    "Norman Mu and Justin Gilmer: MNIST-C: A Robustness Benchmark for Computer Vision. "
    "arXiv:1906.02337, 2019.",
    licence="Apache-2.0",
    severities=(1,),
)
"""The fifteen corruptions of MNIST-C."""

Function = Callable[[Rgb, Any, Any], Rgb]


@dataclass(frozen=True)
class Fixed:
    """No constants."""


def digit(
    category: str,
    parameters: type = Fixed,
    constants: tuple[Any, ...] = (),
    *,
    random: bool = True,
    common: bool = True,
    displaces: bool = False,
) -> Callable[[Function], Function]:
    """Register the decorated function, for images uint8 (28, 28), with its `constants`."""

    def register(function: Function) -> Function:
        @wraps(function)
        def corrupt(image: Rgb, own: Any, rng: Any) -> Rgb:
            if image.shape != (SIDE, SIDE):
                size = f"{image.shape[1]} x {image.shape[0]}"
                raise ArgumentError(f"mnist-c needs images of {SIDE} x {SIDE} pixels, not {size}")
            return function(image, own, rng)

        return corruption(
            category,
            parameters,
            {"mnist": (constants,)},
            family=MNIST_C,
            random=random,
            common=common,
            displaces=displaces,
            smallest_side=SIDE,
            grey=True,
        )(corrupt)

    return register
