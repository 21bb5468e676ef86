"""The fourteen perturbation sequences: ten of the benchmark, four extra ones for validation.

To add one, write its function, its parameter dataclass and its table of constants into the module of its
category, and register it with the decorator. The function gets the image at the stage in its table row and
returns all frames, uint8 (T, H, W, 3). Constants and definitions: Hendrycks & Dietterich 2019, section 4 and
appendix, and the published ``make_imagenet_p.py``, ``make_imagenet_p_inception.py``,
``make_imagenet_64_p.py``, ``make_tinyimagenet_p.py`` and ``make_cifar_p.py``.
"""

from robustgen.pixels.benchmarks.perturbations import blur, digital, noise, weather
from robustgen.pixels.benchmarks.registry import registered_perturbations

__all__ = ["PERTURBATIONS", "blur", "digital", "noise", "weather"]

PERTURBATIONS = registered_perturbations()
"""The perturbations of ImageNet-P, by name."""
