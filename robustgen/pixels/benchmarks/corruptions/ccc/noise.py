"""Noise of CCC."""

from dataclasses import dataclass

from robustgen.pixels.benchmarks.corruptions import noise as common
from robustgen.pixels.benchmarks.corruptions.ccc.family import varying
from robustgen.pixels.benchmarks.corruptions.noise import ImpulseNoise, Noise, ShotNoise
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng

varying("noise", Noise, 0, 0.08, 0.12, 0.18, 0.26, 0.38)(common.gaussian_noise)


@dataclass(frozen=True)
class Grain:
    """The brightness of one `photon`, as a share of the full one."""

    photon: float


@varying("noise", Grain, 0, 1 / 60, 1 / 25, 1 / 12, 1 / 5, 1 / 3)
def shot_noise(image: Rgb, parameters: Grain, rng: Rng) -> Rgb:
    """Count photons: Poisson(x / photon) * photon."""
    return common.shot_noise(image, ShotNoise(1 / parameters.photon), rng)


varying("noise", ImpulseNoise, 0, 0.03, 0.06, 0.09, 0.17, 0.27)(common.impulse_noise)
