"""The six distortions of LAION-C.

Definitions: Li, Klein, Brendel, Geirhos and Zimmermann 2025, as the published generation code computes them.
The categories are robustgen's.
"""

from robustgen.pixels.benchmarks.corruptions.laion_c import distortions
from robustgen.pixels.benchmarks.corruptions.laion_c.family import LAION_C as FAMILY
from robustgen.pixels.benchmarks.corruptions.laion_c.family import published_preparation

__all__ = ["FAMILY", "distortions", "published_preparation"]
