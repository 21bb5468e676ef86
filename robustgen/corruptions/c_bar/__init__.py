"""The fifteen corruptions of ImageNet-C-bar and CIFAR-10-C-bar, ten in each set.

Definitions: Mintun, Kirillov and Xie 2021, appendix, as the published generation code computes them. A length
that was published as a share of the square's side is that share of the shorter side of any other image. The
categories are ours.
"""

from robustgen.corruptions.c_bar import blur, digital, noise, weather
from robustgen.corruptions.c_bar.family import C_BAR

__all__ = ["C_BAR", "blur", "digital", "noise", "weather"]
