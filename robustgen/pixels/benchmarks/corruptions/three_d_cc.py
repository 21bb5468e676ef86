"""The corruptions of 3DCC that need no network: three need only the image, three also its depth map.

Definitions: Kar, Yeo, Atanov and Zamir 2022. The categories are robustgen's.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from robustgen.errors import ArgumentError
from robustgen.pixels.benchmarks.ingredients import Ingredient
from robustgen.pixels.benchmarks.parameters import within
from robustgen.pixels.benchmarks.registry import Family, corruption
from robustgen.pixels.imaging.arrays import UNITS, Rgb
from robustgen.pixels.imaging.rng import Rng
from robustgen.pixels.imaging.three_d_cc_effects import Depth, add_depth_fog, darken, expose, refocus

# --- the family 3DCC, and its corruptions that robustgen does not have -----------------------------

NOT_MADE = {
    "flash": "needs a map of the shading, which a network estimates",
    "xy_motion_blur": "needs the networks of 3D Ken Burns, which paint what the camera uncovers",
    "z_motion_blur": "needs the networks of 3D Ken Burns, which paint what the camera uncovers",
    "h265_crf": "needs the video of xy_motion_blur",
    "h265_abr": "needs the video of xy_motion_blur",
    "bit_error": "needs the video of xy_motion_blur",
}
"""The other corruptions of ImageNet-3DCC, and the reasons why they are missing."""

THREE_D_CC = Family(
    "3dcc",
    "ImageNet-3DCC (without networks)",
    "Oguzhan Fatih Kar, Teresa Yeo, Andrei Atanov and Amir Zamir: 3D Common Corruptions and Data "
    "Augmentation. Conference on Computer Vision and Pattern Recognition, 2022.",
    licence="CC BY-NC 4.0 (formulas and constants alone are used)",
    not_made=NOT_MADE,
)
"""Six of the twelve corruptions of ImageNet-3DCC."""


# --- depth maps with the same keys as the images of a set ------------------------------------------


def _parse_scale(value: Any) -> float | Literal["midas"]:
    if value == "midas":
        return "midas"
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0
    if not 0 < number < float("inf"):
        raise ArgumentError(f"must be a positive number or midas, not {value!r}")
    return number


class DepthMaps(Ingredient):
    """Depth maps of the images.

    The setting `scale` is a factor of the stored values; "midas" is for the 16-bit inverse depth of MiDaS.
    """

    name = "depth"
    sentence = "depth maps with the keys of the images, in a folder, an archive or shards"
    settings: ClassVar = {"scale": _parse_scale}
    fits_image = True

    def validate(self, value: Any, image: Any, corruption: str) -> Depth:
        """Return a depth map as float32 (H, W)."""
        if value is None:
            raise ArgumentError(f"{corruption} needs a depth map: corrupt(..., depth=array of shape (H, W))")
        depth = np.asarray(value)
        if depth.dtype.kind not in "fiu" or depth.shape != image.shape[:2]:
            raise ArgumentError(f"depth must hold numbers {image.shape[:2]}, not {depth.dtype} {depth.shape}")
        depth = np.ascontiguousarray(depth, np.float32)
        if not np.isfinite(depth).all():
            raise ArgumentError("depth holds NaN or infinity")
        if depth.min() < 0:
            raise ArgumentError(f"depth must not be negative, not {depth.min():g}")
        return depth


DEPTH = DepthMaps()


# --- camera effects of 3DCC, which need only the image ---------------------------------------------

_LIGHT = tuple(UNITS.tolist())


@dataclass(frozen=True)
class Bits:
    """Number of highest `bits` of each value that are kept."""

    bits: int


@corruption("digital", Bits, {224: (5, 4, 3, 2, 1)}, family=THREE_D_CC, random=False)
def color_quant(image: Rgb, parameters: Bits, rng: Rng) -> Rgb:
    """Keep the highest bits of each value."""
    return image & np.uint8(0xFF00 >> min(parameters.bits, 8) & 0xFF)


@dataclass(frozen=True)
class SensorNoise:
    """Number of `photons` at full brightness, and `sigma` of the circuit noise."""

    photons: float = within(0.1, 1e5)
    sigma: float = within(0, 100)


@corruption(
    "noise",
    SensorNoise,
    {224: tuple((25, 0.7 * strength) for strength in (0.08, 0.12, 0.18, 0.26, 0.38))},
    family=THREE_D_CC,
)
def iso_noise(image: Rgb, parameters: SensorNoise, rng: Rng) -> Rgb:
    """Raise the sensitivity of the camera: photon noise and circuit noise."""
    return expose(image, _LIGHT, parameters.photons, parameters.sigma, rng)


@dataclass(frozen=True)
class LowLight:
    """Brightest value `left`, and the noise: `photons` at full brightness, `sigma` of the circuit."""

    left: float
    photons: float = within(0.1, 1e5)
    sigma: float = within(0, 100)


@corruption(
    "noise",
    LowLight,
    # The noise is that of the third severity at all severities.
    {224: tuple((left, 120, 0.018) for left in (0.6, 0.5, 0.4, 0.3, 0.2))},
    family=THREE_D_CC,
)
def low_light(image: Rgb, parameters: LowLight, rng: Rng) -> Rgb:
    """Darken the image, and keep the noise of the sensor."""
    return expose(image, darken(image, parameters.left), parameters.photons, parameters.sigma, rng)


# --- fog and focus of 3DCC, which need a depth map of the image ------------------------------------


@dataclass(frozen=True)
class DepthFog:
    """The `density` of the fog: the share exp(-density * depth) of the light passes."""

    density: float


@corruption("weather", DepthFog, {224: (4, 8, 12, 16, 20)}, family=THREE_D_CC, random=False, needs=DEPTH)
def fog_3d(image: Rgb, parameters: DepthFog, rng: Rng, depth: Depth) -> Rgb:
    """Add fog that gets thicker with distance."""
    return add_depth_fog(image, depth, parameters.density)


@dataclass(frozen=True)
class Lens:
    """The `aperture`; at twice the distance of the focus, the blur in pixels is half of it."""

    aperture: float


@corruption("blur", Lens, {224: (3, 4, 5, 6, 7)}, family=THREE_D_CC, random=False, needs=DEPTH)
def near_focus(image: Rgb, parameters: Lens, rng: Rng, depth: Depth) -> Rgb:
    """Focus on near objects."""
    return refocus(image, depth, parameters.aperture, far=False)


@corruption("blur", Lens, {224: (1.5, 2.5, 3.5, 4.5, 5.5)}, family=THREE_D_CC, random=False, needs=DEPTH)
def far_focus(image: Rgb, parameters: Lens, rng: Rng, depth: Depth) -> Rgb:
    """Focus on far objects."""
    return refocus(image, depth, parameters.aperture, far=True)


FAMILY = THREE_D_CC
