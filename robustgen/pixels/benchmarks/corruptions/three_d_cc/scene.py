"""Fog and focus of 3DCC, which need a depth map of the image."""

from dataclasses import dataclass

from robustgen.pixels.benchmarks.corruptions.three_d_cc.depth import DEPTH
from robustgen.pixels.benchmarks.corruptions.three_d_cc.family import THREE_D_CC
from robustgen.pixels.benchmarks.registry import corruption
from robustgen.pixels.imaging.depth import Depth, add_depth_fog, refocus
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng


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
