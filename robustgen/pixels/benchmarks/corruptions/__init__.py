"""The corruptions of ImageNet-C, of C-bar, of later families, and of plug-ins.

The corruptions of ImageNet-C are closed. To add others, write a family: a module with its `Family`, and a
row in `LATER`.
Constants and definitions: Hendrycks & Dietterich 2019, section 4 and the
published scripts ``make_imagenet_c.py``, ``make_imagenet_c_inception.py``,
``make_imagenet_64_c.py`` and ``make_cifar_c.py``.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from robustgen.errors import ArgumentError
from robustgen.files.registry import Registry
from robustgen.pixels.benchmarks.corruptions import blur, digital, noise, plugins, weather
from robustgen.pixels.benchmarks.registry import (
    BENCHMARK_FAMILY,
    CATEGORIES,
    Corruption,
    Family,
    Scale,
    get_known,
)

__all__ = [
    "ALL_CORRUPTIONS",
    "CORRUPTIONS",
    "FAMILIES",
    "blur",
    "digital",
    "get_corruption",
    "get_family",
    "noise",
    "weather",
]

CORRUPTIONS = BENCHMARK_FAMILY.corruptions
"""The nineteen corruptions of ImageNet-C, by name."""

# The corruptions of these families have names without that of the family.
_BUILT_IN = (BENCHMARK_FAMILY.name, "c-bar")
LATER = {
    "laion-c": "laion_c",
    "medmnist-c": "medmnist_c",
    "mnist-c": "mnist_c",
    "3dcc": "three_d_cc",
    "robodepth": "robodepth",
    "robobev": "robobev",
    "ccc": "ccc",
    "video-c": "video_c",
}
"""Family to its module, which is imported when one of its corruptions is used, or when all are listed."""


class Families(Registry[Family]):
    """Families of corruptions by name: built-in ones, and those of usable plug-ins."""

    def __iter__(self) -> Iterator[str]:
        return self.list_usable()

    def check(self, row: Any, name: str) -> Family:
        """Return the family of a plug-in; raise an ArgumentError if it cannot be used."""
        return plugins.check_family(super().check(row, name), name)

    @property
    def built_in(self) -> Mapping[str, Family]:
        """Return the families whose corruptions have names without that of the family."""
        return {name: self[name] for name in _BUILT_IN}


FAMILIES = Families(
    "family",
    "robustgen.corruptions",
    Family,
    {
        BENCHMARK_FAMILY.name: "robustgen.pixels.benchmarks.registry:BENCHMARK_FAMILY",
        "c-bar": f"{__name__}.c_bar:C_BAR",
        **{name: f"{__name__}.{module}:FAMILY" for name, module in LATER.items()},
    },
    reserved=("common", "extra", "all", *CATEGORIES),
)
"""Families of corruptions, by name."""


class _AllCorruptions(Mapping[str, Corruption]):
    """The corruptions of all families, by full name."""

    def __getitem__(self, name: str) -> Corruption:
        family, colon, _ = name.partition(":")
        for each in map(FAMILIES.__getitem__, (family,) if colon else _BUILT_IN):
            if found := each.find(name):
                return found
            if reason := each.not_made.get(name.partition(":")[2]):
                raise ArgumentError(f"{name} cannot be made: it {reason}")
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        for family in FAMILIES.values():
            yield from family.corruptions

    def __len__(self) -> int:
        return sum(len(family.corruptions) for family in FAMILIES.values())


ALL_CORRUPTIONS: Mapping[str, Corruption] = _AllCorruptions()
"""The corruptions of all families, by full name."""


def _open_implementation(name: str) -> Family:
    """Return the versions of corruptions by other code, which few calls need."""
    from robustgen.pixels.benchmarks.corruptions.imagecorruptions import IMAGECORRUPTIONS

    return {IMAGECORRUPTIONS.name: IMAGECORRUPTIONS}[name]


def get_corruption(name: str, implementation: str | None = None) -> Corruption:
    """Return the corruption `name`; for one of the nineteen, the version of `implementation` if given.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        The corruption does not exist; the message names the nearest one, or says why a plug-in is unusable.
    """
    found = None
    if implementation and isinstance(name, str):
        found = _open_implementation(implementation).find(name)
    corruption: Corruption = found or get_known("corruption", name, ALL_CORRUPTIONS)
    return corruption


def get_family(corruption: Corruption) -> Family:
    """Return the family that `corruption` belongs to."""
    return FAMILIES.get(corruption.family) or _open_implementation(corruption.family)


def find_family(name: str) -> Family | None:
    """Return the family that is called `name`, or of the corruption ``family:corruption``; None without."""
    try:
        return FAMILIES[name.partition(":")[0]]
    except (KeyError, ArgumentError):  # The lookup of the corruption reports it.
        return None


def expand_families(names: Iterable[Any], scales: Collection[Scale | None]) -> list[Any]:
    """Return `names` with ``family``, ``family:all`` and ``family:name`` replaced by corruption names.

    A family expands to its corruptions with constants for one of the `scales`. Other names are unchanged.
    """
    return [name for part in names for name in _expand_family(part, scales)]


def _expand_family(part: Any, scales: Collection[Scale | None]) -> Iterable[Any]:
    _, colon, member = part.partition(":") if isinstance(part, str) else ("", "", "")
    if not (isinstance(part, str) and (family := find_family(part))):
        return [part]
    every = [each for each in family.corruptions.values() if each.common or colon]
    if member in ("", "all"):
        # If no member supports these scales, return all: the check of each one reports the reason.
        found = [each.name for each in every if any(scale in each.table for scale in scales)]
        return found or [each.name for each in every]
    return [family.full_name(member)]
