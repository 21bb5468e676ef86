"""The family LAION-C, and the preparation of its images."""

from robustgen.pixels.benchmarks.registry import Family
from robustgen.pixels.imaging.preparation import Preparation

LAION_C = Family(
    "laion-c",
    "LAION-C",
    "Fanfei Li, Thomas Klein, Wieland Brendel, Robert Geirhos and Roland S. Zimmermann: LAION-C: An "
    "Out-of-Distribution Benchmark for Web-Scale Vision Models. International Conference on Machine "
    "Learning, 2025.",
    licence="MIT",
)
"""The six distortions."""


def published_preparation(name: str, severity: float) -> Preparation:
    """Return the geometry of the distortion `name`, for instance ``"laion-c:mosaic"``, at `severity`."""
    distortion = LAION_C.corruptions[name]
    return distortion.preparation(distortion.parameters(severity, 224))
