"""Blur of C-bar: rotation about the centre, and colour channels of different size."""

import numpy as np

from robustgen.pixels.benchmarks.corruptions.c_bar.family import C_BAR, CBarStrength
from robustgen.pixels.benchmarks.registry import corruption
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng
from robustgen.pixels.imaging.splines import Spline, blur_by_turning, enlarge_channel, fit_spline


@corruption(
    "blur",
    CBarStrength,
    {32: (2.8, 3.6, 4.4, 5.2, 6)},
    family=C_BAR,
    random=False,
    shares=fit_spline,
)
def circular_motion_blur(image: Rgb, parameters: CBarStrength, rng: Rng, spline: Spline) -> Rgb:
    """Rotate the camera about its axis."""
    return blur_by_turning(spline, parameters.share(15))


# The first enlargements differ by less than a pixel.
@corruption("blur", CBarStrength, {32: (1, 2, 5, 9, 10)}, family=C_BAR, breaks={32: (1,)})
def transverse_chromatic_abberation(image: Rgb, parameters: CBarStrength, rng: Rng) -> Rgb:
    """Enlarge the colour channels by different factors."""
    zoom, out = parameters.share(0.5), np.empty_like(image)
    scales = np.array([1, 1 + zoom / 2, 1 + zoom])[rng.permutation(3)]
    for channel, scale in enumerate(scales):
        enlarge_channel(image, channel, scale, out)
    return out
