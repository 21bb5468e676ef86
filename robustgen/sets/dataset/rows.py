"""Sets that robustgen can write: those of the benchmarks, and those of wings and plug-ins."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from robustgen.files.wings import SetRow, list_wings

_C: Final = SetRow("make-c", "robustgen.settings.config:Config", "robustgen.sets.dataset.planning:plan_c")
_P: Final = SetRow("make-p", "robustgen.settings.config:Config", "robustgen.sets.dataset.planning:plan_p")

BENCHMARK_SETS: Final[Mapping[str, SetRow]] = MappingProxyType(
    {"ImageNet-C": _C, "ImageNet-C for clips": _C, "ImageNet-C, mixed": _C, "ImageNet-P": _P}
)
"""Sets of the benchmarks by their title in `dataset.json`."""


def find_set(title: str) -> SetRow | None:
    """Return the row of the sets with this `title` in `dataset.json`; None if there is none."""
    tables = (BENCHMARK_SETS, *(wing.sets for wing in list_wings()))
    return next((table[title] for table in tables if title in table), None)
