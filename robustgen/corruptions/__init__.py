"""The nineteen corruptions of ImageNet-C, the fifteen of C-bar, and those of plug-ins.

To add one of the benchmark's, write its function, its parameter dataclass and its table of
constants into the module of its category; the decorator does the rest.
Constants and definitions: Hendrycks & Dietterich 2019, section 4 and the
published scripts ``make_imagenet_c.py``, ``make_imagenet_c_inception.py``,
``make_imagenet_64_c.py`` and ``make_cifar_c.py``.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from robustgen.corruptions import blur, digital, noise, weather
from robustgen.corruptions.c_bar import C_BAR
from robustgen.registry import BENCHMARK_FAMILY, Corruption, Family

__all__ = ["ALL_CORRUPTIONS", "CORRUPTIONS", "FAMILIES", "blur", "digital", "noise", "weather"]

CORRUPTIONS = BENCHMARK_FAMILY.corruptions
"""The nineteen, by name."""

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {family.name: family for family in (BENCHMARK_FAMILY, C_BAR)}
)
"""Families of corruptions, by name."""


class _AllCorruptions(Mapping[str, Corruption]):
    """The corruptions of all families, by their full names."""

    def __getitem__(self, name: str) -> Corruption:
        for family in FAMILIES.values():
            if found := family.find(name):
                return found
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        for family in FAMILIES.values():
            yield from family.corruptions

    def __len__(self) -> int:
        return sum(len(family.corruptions) for family in FAMILIES.values())


ALL_CORRUPTIONS: Mapping[str, Corruption] = _AllCorruptions()
"""The corruptions of all families, by name."""
