"""Corruptions by darkness: a complete plug-in for robustgen."""

from dataclasses import dataclass

import numpy as np

from robustgen.plugins import Family, Rgb, Rng, corruption

CITATION = "A. Lamp: On Darkness. Journal of Night, 2031."
MEANS = {"darkness:dusk": 0.42, "darkness:shadow": 0.55}
DARKNESS = Family("darkness", "ImageNet-Darkness", CITATION, MEANS, reference="AlexNet")


@dataclass(frozen=True)
class Dusk:
    """Share `light` of the light that is left."""

    light: float


@corruption("weather", Dusk, {224: (0.7, 0.5, 0.4, 0.3, 0.2), 32: 224}, family=DARKNESS, random=False)
def dusk(image: Rgb, parameters: Dusk, rng: Rng) -> Rgb:
    """Take light away from the whole image."""
    return (image * parameters.light).astype(np.uint8)


@dataclass(frozen=True)
class Shadow:
    """A band of `width` columns in which the share `light` is left."""

    width: int
    light: float


@corruption(
    "weather", Shadow, {224: ((20, 0.6), (30, 0.5), (40, 0.4), (50, 0.3), (60, 0.2))}, family=DARKNESS
)
def shadow(image: Rgb, parameters: Shadow, rng: Rng) -> Rgb:
    """Let a shadow fall on a random band."""
    left = int(rng.uniform(0, max(image.shape[1] - parameters.width, 0)))
    out = image.copy()
    out[:, left : left + parameters.width] = out[:, left : left + parameters.width] * parameters.light
    return out
