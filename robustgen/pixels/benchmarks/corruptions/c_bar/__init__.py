"""The fifteen corruptions of ImageNet-C-bar and CIFAR-10-C-bar, ten in each set.

Definitions: Mintun, Kirillov and Xie 2021, appendix, as the published generation code computes them. Lengths
published as a share of the square's side become that share of the shorter side of other images. The
categories are robustgen's.
"""

from robustgen.pixels.benchmarks.corruptions.c_bar import blur, digital, noise, weather
from robustgen.pixels.benchmarks.corruptions.c_bar.family import C_BAR

__all__ = ["C_BAR", "blur", "digital", "noise", "weather"]
