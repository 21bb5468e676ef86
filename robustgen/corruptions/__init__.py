"""The nineteen corruptions: fifteen of the benchmark, four extra ones for validation.

To add one, write its function, its parameter dataclass and its table of
constants into the module of its category; the decorator does the rest.
Constants and definitions: Hendrycks & Dietterich 2019, section 4 and the
published scripts ``make_imagenet_c.py``, ``make_imagenet_c_inception.py``,
``make_imagenet_64_c.py`` and ``make_cifar_c.py``.
"""

from robustgen.corruptions import blur, digital, noise, weather
from robustgen.registry import registered_corruptions

__all__ = ["CORRUPTIONS", "blur", "digital", "noise", "weather"]

CORRUPTIONS = registered_corruptions()
