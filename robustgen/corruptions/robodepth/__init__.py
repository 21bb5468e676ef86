"""The three corruptions of RoboDepth that imagecorruptions lacks: darkness, noise of a sensor, few colours.

Definitions: Kong et al. 2023. The fifteen others are those of the edition ``"coco-c"``. The categories are
ours.
"""

from robustgen.corruptions.robodepth import camera
from robustgen.corruptions.robodepth.camera import ROBODEPTH as FAMILY

__all__ = ["FAMILY", "camera"]
