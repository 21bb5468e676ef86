"""The corruptions of MedMNIST-C, with constants for each of twelve sets of medical images.

Definitions: Di Salvo, Doerrich and Ledig 2024, as the published generation code computes them. The edition
is the name of the set: ``edition="pathmnist"``.
"""

from robustgen.pixels.benchmarks.corruptions.medmnist_c import blur, colour, digital, microscope, noise
from robustgen.pixels.benchmarks.corruptions.medmnist_c.family import MEDMNIST_C as FAMILY
from robustgen.pixels.benchmarks.corruptions.medmnist_c.family import published_names

__all__ = ["FAMILY", "blur", "colour", "digital", "microscope", "noise", "published_names"]
