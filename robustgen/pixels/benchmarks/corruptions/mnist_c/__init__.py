"""The fifteen corruptions of MNIST-C, each with one severity, for grey images of 28 x 28 pixels.

Definitions: Mu and Gilmer 2019, as the published generation code computes them. The categories are
robustgen's.
"""

from robustgen.pixels.benchmarks.corruptions.mnist_c import effects, geometry, marks
from robustgen.pixels.benchmarks.corruptions.mnist_c.family import MNIST_C as FAMILY

__all__ = ["FAMILY", "effects", "geometry", "marks"]
