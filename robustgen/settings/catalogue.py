"""Names that choices accept, loaded on use: importing this module imports neither NumPy nor numba."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from robustgen.files import registry
from robustgen.files.registry import Registry
from robustgen.pixels.benchmarks.kinds import IMAGENET_C, IMAGENET_P

if TYPE_CHECKING:
    from robustgen.pixels.benchmarks.corruptions import Families
    from robustgen.pixels.benchmarks.editions import Edition
    from robustgen.pixels.benchmarks.registry import Operation

GROUPS = (*IMAGENET_C.groups,)


def families() -> "Families":
    """Return the families of corruptions."""
    from robustgen.pixels.benchmarks.corruptions import FAMILIES

    return FAMILIES


def all_corruptions() -> "Mapping[str, Operation]":
    """Return the corruptions of all families."""
    from robustgen.pixels.benchmarks.corruptions import ALL_CORRUPTIONS

    return ALL_CORRUPTIONS


def corruption_words() -> list[str]:
    """Return everything that ``--corruptions`` accepts."""
    return [*GROUPS, *families(), *all_corruptions()]


def perturbation_words() -> list[str]:
    """Return everything that ``--perturbations`` accepts."""
    return [*GROUPS, *IMAGENET_P.names]


def edition_names() -> Collection[str]:
    """Return the names of the editions."""
    from robustgen.pixels.benchmarks.editions import EDITIONS

    return EDITIONS


def find_edition(name: str) -> "Edition | None":
    """Return the edition called `name`, without its size; None if there is none."""
    from robustgen.pixels.benchmarks.editions import EDITIONS

    return EDITIONS.get(name.partition("@")[0])


def source_kinds() -> Collection[str]:
    """Return the values of `source_kind`."""
    return ["auto", *Registry("kind of source", "robustgen.sources", object, registry.SOURCE_ROWS), "demo"]


def formats() -> Collection[str]:
    """Return the names of the formats."""
    return [*Registry("format", "robustgen.formats", object, registry.FORMAT_ROWS)]


def video_presets() -> Collection[str]:
    """Return the presets of x264."""
    from robustgen.pixels.imaging.video import X264_PRESETS

    return X264_PRESETS


def pixel_formats() -> Collection[str]:
    """Return the pixel formats of videos."""
    from robustgen.pixels.imaging.video import CODECS

    return CODECS


def all_words() -> list[str]:
    """Return everything that `robustgen list` describes by name."""
    from robustgen.settings.yaml_files import dataset_names

    groups = ("corruptions", "perturbations", "editions", "formats", "data-sets")
    words = (*groups, *corruption_words(), *IMAGENET_P.names, *edition_names(), *formats(), *dataset_names())
    return [*dict.fromkeys(words)]
