"""The two benchmarks as data: all facts in which ImageNet-C and ImageNet-P differ.

    benchmark = BENCHMARKS["p"]
    benchmark.variants(("tilt", "shot_noise"), (1, 2))    # folders tilt, shot_noise, shot_noise_2

The functions of the operations are in a registry, which `Benchmark.operations` loads on demand: reading and
scoring a set needs only the names.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from robustgen.errors import ConfigError, SourceError

if TYPE_CHECKING:
    from robustgen.pixels.benchmarks.registry import Operation

Kind = Literal["c", "p"]
Content = Literal["c", "p", "clip"]
CLEAN: Final = "clean"


@dataclass(frozen=True)
class Medium:
    """The medium of a source: images or clips.

    Attributes
    ----------
    name : str
        Its noun.
    axes : int
        Number of axes of its pixels: 3 for (H, W, 3), 4 for (T, H, W, 3).
    suffix : str
        Suffix of a video made of the item, which the keys of a set lack; "" if they have it.
    """

    name: str
    axes: int
    suffix: str


IMAGE: Final = Medium("image", 3, ".mp4")
CLIP: Final = Medium("clip", 4, "")


def require(medium: Medium, takes: Collection[Medium], who: str) -> None:
    """Raise a ConfigError if `who`, a command or a corruption, does not take this medium."""
    if medium not in takes:
        known = " or ".join(f"{each.name}s" for each in takes)
        hint = "--dataset clips is for videos and folders of frames"
        raise ConfigError(f"{who} takes {known}, not {medium.name}s; {hint}")


@dataclass(frozen=True, order=True)
class Variant:
    """One operation at one level: a folder of the output, or a part of an array.

    Attributes
    ----------
    name : str
        Corruption or perturbation, or ``"clean"`` for the prepared image itself.
    level : int or float
        Severity or difficulty; 0 for the clean variant. A whole level is an int.
    folder : str
        Folder of its files below the output, for instance ``"fog/3"``, ``"fog/2.5"`` or
        ``"shot_noise_2"``; empty for the output itself.

    Examples
    --------
    >>> from robustgen.plugins import Variant
    >>> Variant("fog", 3, "fog/3").path("a.png")
    'fog/3/a.png'
    """

    name: str
    level: float
    folder: str

    def path(self, name: str) -> str:
        """Return the path of the file called `name` below the output, POSIX."""
        return f"{self.folder}/{name}" if self.folder else name


CLEAN_VARIANT: Final = Variant(CLEAN, 0, CLEAN)


@dataclass(frozen=True, eq=False)
class Benchmark:
    """One of the two benchmarks: its operations, levels and layout.

    Attributes
    ----------
    kind : {"c", "p"}
        Its letter in random streams, settings and the names of commands.
    title : str
        Its name in `dataset.json`.
    operation, level, noun : str
        Words for its operations, their levels and its outputs.
    medium : Medium
        What its operations are applied to.
    content : {"c", "p", "clip"}
        Key of its encoders in the table of formats.
    levels : tuple of int
        All levels that an operation can have.
    categories : mapping of str to tuple of str
        The operations of the benchmark itself, in the order of the papers' tables, by category.
    extra : tuple of str
        The operations for validation, which no mean includes.
    noises : tuple of str
        The operations whose outputs are compared with the clean image at every level.
    array_shape : str
        Shape of its arrays, as messages show it.
    has_clean : bool
        Whether the clean images are a separate variant; otherwise each sequence begins with them.
    level_mark : str
        Separator of operation and level in the name of a folder.
    bare_level : int
        The level whose folder has the name of the operation alone; 0 for none.
    finer : bool
        Whether fractional levels exist.
    """

    kind: Kind
    title: str
    operation: str
    level: str
    noun: str
    medium: Medium
    content: Content
    levels: tuple[int, ...]
    categories: Mapping[str, tuple[str, ...]]
    extra: tuple[str, ...]
    noises: tuple[str, ...]
    array_shape: str
    has_clean: bool
    level_mark: str
    bare_level: int
    finer: bool

    @property
    def common(self) -> tuple[str, ...]:
        """Return the operations that the means include, in the order of the papers' tables."""
        return tuple(name for names in self.categories.values() for name in names)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the published operations: the common ones, then the extra ones."""
        return (*self.common, *self.extra)

    @property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """Return the published operations by the names of their groups, in the order of the tables."""
        return {"common": self.common, "extra": self.extra, "all": self.names, **self.categories}

    @property
    def operations(self) -> "Mapping[str, Operation]":
        """Return all registered operations by name, including the published ones."""
        from robustgen.pixels.benchmarks.corruptions import ALL_CORRUPTIONS
        from robustgen.pixels.benchmarks.perturbations import PERTURBATIONS

        known: Mapping[Kind, Mapping[str, Operation]] = {"c": ALL_CORRUPTIONS, "p": PERTURBATIONS}
        return known[self.kind]

    @property
    def array_axes(self) -> int:
        """Return the number of axes of its arrays."""
        return self.array_shape.count(",") + 1

    # --- variants

    def variant(self, name: str, level: float) -> Variant:
        """Return the variant of the operation `name` at `level`."""
        # Not every file system allows the colon between a plug-in's family and its corruption.
        stem = name.replace(":", ".")
        return Variant(name, level, stem if level == self.bare_level else f"{stem}{self.level_mark}{level}")

    def variants(
        self,
        names: Iterable[str],
        levels: Iterable[float],
        *,
        clean: bool = False,
        own: Mapping[str, Iterable[float]] = MappingProxyType({}),
    ) -> tuple[Variant, ...]:
        """Return the variants of a set: the clean one first if `clean`, then all `levels` of all `names`.

        An operation has its `own` levels, if there are any, instead. Otherwise it has those of the `levels`
        that exist; an operation with a single level always has it.

        Raises
        ------
        ArgumentError
            An operation has none of the levels, or one of its `own` levels does not exist.
        """
        wanted, known = tuple(levels), self.operations

        def choose(operation: "Operation") -> Iterable[float]:
            if operation.name in own:
                return map(operation.check_level, own[operation.name])
            if len(operation.levels) == 1:
                return operation.levels
            return [*filter(operation.has_level, wanted)] or [operation.check_level(wanted[0])]

        variants = [self.variant(name, level) for name in names for level in choose(known[name])]
        return (*[CLEAN_VARIANT] * clean, *variants)

    def published_variant(self, variant: Variant) -> Variant:
        """Return the variant in the folder that its family published: ``glitched/intensity_level_3``."""
        from robustgen.pixels.benchmarks.corruptions import find_family

        family = find_family(variant.name)
        if not (family and family.level_mark):
            return variant
        folder = f"{variant.name.rpartition(':')[2]}{family.level_mark}{variant.level}"
        return Variant(variant.name, variant.level, folder)

    def usual_folder(self, variant: Variant) -> str:
        """Return the folder of `variant` in layouts other than that of a published set."""
        return variant.folder if variant.name == CLEAN else self.variant(variant.name, variant.level).folder

    def variant_in(self, folder: str) -> Variant | None:
        """Return the variant of `folder`: ``fog/3``, ``tilt``, ``shot_noise_2``; None if it is not one."""
        if folder == CLEAN:
            return CLEAN_VARIANT
        name, mark, level = folder.rpartition(self.level_mark)
        number = self.read_level(level) if mark else None
        if number is not None and number != self.bare_level:
            return Variant(name.replace(".", ":"), number, folder)
        return Variant(folder, self.bare_level, folder) if self.bare_level else self._find_published(folder)

    def _find_published(self, folder: str) -> Variant | None:
        """Return the variant of a `folder` with the name that its family published."""
        from robustgen.pixels.benchmarks.corruptions import FAMILIES

        for family in (each for each in FAMILIES.values() if each.level_mark):
            name, _, level = folder.partition(family.level_mark)
            if number := self.read_level(level):
                return Variant(family.full_name(name), number, folder)
        return None

    def read_level(self, text: str) -> float | None:
        """Return the level of the folder name `text`: ``3``, or ``2.5`` for a severity; else None."""
        if text in map(str, self.levels):
            return int(text)
        if not (self.finer and re.fullmatch(r"\d\.\d+", text)):
            return None
        level = float(text)
        canonical = str(level) == text and not level.is_integer()
        return level if canonical and self.levels[0] < level < self.levels[-1] else None

    def array_name(self, variant: Variant) -> str:
        """Return the name, without suffix, of the array that contains `variant`."""
        return variant.folder.partition("/")[0]


IMAGENET_C: Final = Benchmark(
    kind="c",
    title="ImageNet-C",
    operation="corruption",
    level="severity",
    noun="image",
    medium=IMAGE,
    content="c",
    levels=(1, 2, 3, 4, 5),
    categories=MappingProxyType(
        {
            "noise": ("gaussian_noise", "shot_noise", "impulse_noise"),
            "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
            "weather": ("snow", "frost", "fog", "brightness"),
            "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
        }
    ),
    extra=("speckle_noise", "gaussian_blur", "spatter", "saturate"),
    noises=(),
    array_shape="(N, H, W, 3)",
    has_clean=True,
    level_mark="/",
    bare_level=0,
    finer=True,
)
"""Hendrycks & Dietterich 2019: section 4.1, Table 1, appendix B."""

IMAGENET_P: Final = Benchmark(
    kind="p",
    title="ImageNet-P",
    operation="perturbation",
    level="difficulty",
    noun="sequence",
    medium=IMAGE,
    content="p",
    levels=(1, 2, 3),
    categories=MappingProxyType(
        {
            "noise": ("gaussian_noise", "shot_noise"),
            "blur": ("motion_blur", "zoom_blur"),
            "weather": ("snow", "brightness"),
            "digital": ("translate", "rotate", "tilt", "scale"),
        }
    ),
    extra=("speckle_noise", "gaussian_blur", "spatter", "shear"),
    noises=("gaussian_noise", "shot_noise", "speckle_noise"),
    array_shape="(N, T, H, W, 3)",
    has_clean=False,
    level_mark="_",
    bare_level=1,
    finer=False,
)
"""Hendrycks & Dietterich 2019: section 4.2, Table 3, appendix E."""

CLIPS_C: Final = replace(
    IMAGENET_C,
    title="ImageNet-C for clips",
    noun="clip",
    medium=CLIP,
    content="clip",
    array_shape="(N, T, H, W, 3)",
)
"""ImageNet-C whose items are clips: the same corruptions, severities and folders."""

BENCHMARKS: Final[Mapping[Kind, Benchmark]] = MappingProxyType({"c": IMAGENET_C, "p": IMAGENET_P})
TITLES: Final[Mapping[str, Benchmark]] = MappingProxyType(
    {b.title: b for b in (*BENCHMARKS.values(), CLIPS_C)}
)
"""Titles of the sets in `dataset.json`, and the benchmark of each."""


def parse_variant(folder: str, kind: Kind) -> Variant:
    """Return the variant of a `folder`: ``fog/3``, ``clean``, ``tilt`` or ``shot_noise_2``.

    Raises
    ------
    SourceError
        A set of this benchmark has no such folder.
    """
    variant = BENCHMARKS[kind].variant_in(folder)
    if variant is None:
        most = BENCHMARKS["c"].levels[-1]
        raise SourceError(f"{folder!r} is not a corruption with a severity from 1 to {most}")
    return variant


def find_medium(title: str) -> Medium:
    """Return the medium of the source of a set with this title."""
    return TITLES.get(title, IMAGENET_C).medium


USUAL_SCALE: Final = 224
