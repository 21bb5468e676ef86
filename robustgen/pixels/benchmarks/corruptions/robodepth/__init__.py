"""The three corruptions of RoboDepth that imagecorruptions lacks: darkness, sensor noise, few colours.

Definitions: Kong et al. 2023. The other fifteen are those of the edition ``"coco-c"``. The categories are
robustgen's.
"""

from robustgen.pixels.benchmarks.corruptions.robodepth import camera
from robustgen.pixels.benchmarks.corruptions.robodepth.camera import ROBODEPTH as FAMILY

__all__ = ["FAMILY", "camera"]
