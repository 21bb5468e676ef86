"""The corruptions of 3DCC that need no network: three need only the image, three also its depth map.

Definitions: Kar, Yeo, Atanov and Zamir 2022. The categories are robustgen's.
"""

from robustgen.pixels.benchmarks.corruptions.three_d_cc import camera, scene
from robustgen.pixels.benchmarks.corruptions.three_d_cc.family import THREE_D_CC as FAMILY

__all__ = ["FAMILY", "camera", "scene"]
