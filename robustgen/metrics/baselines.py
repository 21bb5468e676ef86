"""What scores are divided by: AlexNet's values as the papers print them, and look-ups in those of others."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType
from typing import Final, TypeVar

from robustgen.errors import ArgumentError
from robustgen.metrics.checks import number

_Value = TypeVar("_Value")


ALEXNET_CLEAN_ERROR: Final = 0.435
"""Top-1 error of AlexNet on clean ImageNet; [C] Table 1."""


ALEXNET_ERROR: Final[Mapping[str, float]] = MappingProxyType(
    {
        "gaussian_noise": 0.886,
        "shot_noise": 0.894,
        "impulse_noise": 0.923,
        "defocus_blur": 0.820,
        "glass_blur": 0.826,
        "motion_blur": 0.786,
        "zoom_blur": 0.798,
        "snow": 0.867,
        "frost": 0.827,
        "fog": 0.819,
        "brightness": 0.565,
        "contrast": 0.853,
        "elastic_transform": 0.646,
        "pixelate": 0.718,
        "jpeg_compression": 0.607,
        "speckle_noise": 0.845,
        "gaussian_blur": 0.787,
        "spatter": 0.718,
        "saturate": 0.658,
    }
)
"""Top-1 error of AlexNet on ImageNet-C, mean over the five severities; [C] appendix D."""


ALEXNET_FLIP_PROBABILITY: Final[Mapping[str, float]] = MappingProxyType(
    {
        "gaussian_noise": 0.2365,
        "shot_noise": 0.3006,
        "motion_blur": 0.0930,
        "zoom_blur": 0.0594,
        "snow": 0.1193,
        "brightness": 0.0489,
        "translate": 0.1101,
        "rotate": 0.1310,
        "tilt": 0.0705,
        "scale": 0.2353,
        "speckle_noise": 0.1865,
        "gaussian_blur": 0.0278,
        "spatter": 0.0505,
        "shear": 0.1066,
    }
)
"""Flip probability of AlexNet on ImageNet-P, at difficulty 1; [C] appendix E."""


ALEXNET_TOP5_DISTANCE: Final[Mapping[str, float]] = MappingProxyType(
    {
        "gaussian_noise": 4.77,
        "shot_noise": 5.76,
        "motion_blur": 1.93,
        "zoom_blur": 1.34,
        "snow": 2.42,
        "brightness": 1.19,
        "translate": 2.63,
        "rotate": 2.95,
        "tilt": 1.75,
        "scale": 4.48,
        "speckle_noise": 3.89,
        "gaussian_blur": 0.70,
        "spatter": 1.26,
        "shear": 2.48,
    }
)
"""Unnormalised top-5 distance of AlexNet on ImageNet-P, at difficulty 1; [C] appendix E."""


def baseline_value(baseline: Mapping[str, _Value], name: str) -> _Value:
    """The value of `name`; an ArgumentError lists what there is instead."""
    if name not in baseline:
        raise ArgumentError(f"the baseline has no value for {name!r}; it has: {', '.join(baseline)}")
    return baseline[name]


def check_positive(value: float, name: str) -> float:
    """`value`, by which something is to be divided."""
    if value == 0:
        raise ArgumentError(f"the baseline of {name} is 0; nothing can be divided by it")
    return value


def ratio(name: str, value: float, baseline: Mapping[str, float], most: float) -> float:
    """`value` of an operation over that of the baseline, both from 0 to `most`."""
    of_baseline = number(baseline_value(baseline, name), f"the baseline of {name}", most)
    return number(value, f"the value of {name}", most) / check_positive(of_baseline, name)


def mean_over(
    names: Sequence[str], values: Mapping[str, _Value], score: Callable[[str, _Value], float]
) -> float:
    """Mean of `score` over the operations `names`, all of which must be among `values`."""
    if not names:
        raise ArgumentError("a mean needs at least one operation")
    missing = [name for name in names if name not in values]
    if missing:
        raise ArgumentError(f"a mean over {len(names)} needs them all; missing: {', '.join(missing)}")
    return fmean(score(name, values[name]) for name in names)
