"""The three corruptions of RoboDepth that imagecorruptions lacks: darkness, sensor noise, few colours.

Definitions: Kong et al. 2023. The other fifteen are those of the edition ``"coco-c"``. The categories are
robustgen's.
"""

from robustgen.pixels.benchmarks.corruptions import three_d_cc
from robustgen.pixels.benchmarks.corruptions.three_d_cc import Bits, LowLight, SensorNoise
from robustgen.pixels.benchmarks.registry import Family, corruption
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.rng import Rng

# --- the family RoboDepth and its three corruptions ------------------------------------------------

ROBODEPTH = Family(
    "robodepth",
    "RoboDepth (KITTI-C, NYUDepth2-C)",
    "Lingdong Kong, Shaoyuan Xie, Hanjiang Hu, Lai Xing Ng, Benoit R. Cottereau and Wei Tsang Ooi: "
    "RoboDepth: Robust Out-of-Distribution Depth Estimation under Corruptions. Advances in Neural "
    "Information Processing Systems, 2023.",
    licence="CC BY-NC-SA 4.0 (formulas and constants alone are used)",
)
"""Three corruptions of KITTI-C and NYUDepth2-C; the other fifteen are those of imagecorruptions."""


@corruption(
    "noise",
    LowLight,
    {224: ((0.6, 600, 0.008), (0.5, 250, 0.012), (0.4, 120, 0.018), (0.3, 50, 0.026), (0.2, 30, 0.038))},
    family=ROBODEPTH,
)
def dark(image: Rgb, parameters: LowLight, rng: Rng) -> Rgb:
    """Darken the image; the sensor noise grows with the severity."""
    return three_d_cc.low_light(image, parameters, rng)


corruption(
    "noise",
    SensorNoise,
    {224: tuple((25, 0.7 * strength) for strength in (0.08, 0.12, 0.18, 0.26, 0.38))},
    family=ROBODEPTH,
)(three_d_cc.iso_noise)

corruption("digital", Bits, {224: (5, 4, 3, 2, 1)}, family=ROBODEPTH, random=False)(three_d_cc.color_quant)


FAMILY = ROBODEPTH
