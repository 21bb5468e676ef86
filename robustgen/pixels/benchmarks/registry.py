"""Registration of corruptions and perturbations, and look-up by name, level and scale.

A scale is the side of the square images that a column of constants was published
for: 224, 299, 64 or 32; or the data set, for instance ``"pathmnist"``. A level is a severity
(corruptions, usually any number from 1 to 5) or a difficulty (perturbations, 1 to 3 for the
noises, else 1). A family is a set of corruptions that were published together.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from functools import lru_cache
from numbers import Integral, Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

import numpy as np

from robustgen.errors import ArgumentError, ArgumentTypeError, UnknownNameError, raise_as
from robustgen.pixels.benchmarks.parameters import interpolate_parameters, read_calibrated_constants

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from robustgen.pixels.benchmarks.ingredients import Ingredient
    from robustgen.pixels.imaging.geometry import Preparation

SCALES = (224, 299, 64, 32)
# For these scales we computed the constants by `calibrate --for-size`; they are used only if named.
CALIBRATED_SCALES = (256, 336, 384, 448)
# For these data sets, constants were published separately.
MEDMNIST = (
    *("pathmnist", "bloodmnist", "dermamnist", "retinamnist", "tissuemnist", "octmnist", "breastmnist"),
    *("chestmnist", "pneumoniamnist", "organamnist", "organcmnist", "organsmnist"),
)
CLIP_SETS = ("kinetics", "ssv2")
DATA_SETS = ("mnist", *MEDMNIST, *CLIP_SETS)
CATEGORIES = ("noise", "blur", "weather", "digital")
SEVERITIES = (1, 2, 3, 4, 5)
# Minimal side of the image, in pixels, for most operations.
SMALLEST_SIDE = 32

Stage = Literal["raw", "resized", "cropped"]
Temporal = Literal["clip", "frame"]
OverTime = Temporal | Literal["whole"] | Callable[..., Iterator[Any]]
Function = TypeVar("Function", bound=Callable[..., Any])
AnyOperation = TypeVar("AnyOperation", bound="Operation")
Scale = int | str


@dataclass(frozen=True)
class Operation:
    """A corruption or a perturbation: its function and its parameters per scale and level.

    Attributes
    ----------
    name : str
    category : {"noise", "blur", "weather", "digital"}
    function : callable
        ``function(image, parameters, rng)``.
    table : mapping of int or str to tuple
        Scale to the parameter objects of all levels.
    common : bool
        Whether it belongs to the benchmark; the other operations are the extra (validation) set.
    random : bool
        Whether the result depends on the random stream.
    shares : callable or None
        ``shares(image)`` computes what all levels of one image share; `function` takes it last.
    once_per_run : bool
        Whether all images of a set, and all frames of a clip, repeat the draws of the first.
    """

    name: str
    category: str
    function: Callable[..., Any]
    table: Mapping[Scale, tuple[Any, ...]]
    common: bool = True
    random: bool = True
    shares: Callable[[Any], Any] | None = None
    once_per_run: bool = False

    noun = "operation"
    level_name = "level"
    smallest_side = SMALLEST_SIDE

    @property
    def summary(self) -> str:
        """Return the first line of the function's docstring, or an empty text."""
        return str(self.function.__doc__ or "").strip().partition("\n")[0]

    @property
    def levels(self) -> tuple[int, ...]:
        """Return all levels, from 1."""
        return tuple(range(1, len(next(iter(self.table.values()))) + 1))

    def apply(self, image: Any, parameters: Any, rng: Any, shared: dict[str, Any] | None = None) -> Any:
        """Call `function`; `shared` caches the shared part of an image between calls for its levels.

        Only the shared part of the latest operation is cached: its levels are computed one after the other.
        """
        return self.function(image, parameters, rng, *self._share(image, shared))

    def _share(self, image: Any, shared: dict[str, Any] | None) -> tuple[Any, ...]:
        """Return the shared part of `image` as further arguments of `function`."""
        if self.shares is None:
            return ()
        shared = {} if shared is None else shared
        if self.name not in shared:
            shared.clear()
            shared[self.name] = self.shares(image)
        return (shared[self.name],)

    def check_level(self, level: Any) -> float:
        """Return `level`, an int.

        Raises
        ------
        ArgumentTypeError, ArgumentError
            The level does not exist.
        """
        if isinstance(level, bool) or not isinstance(level, Integral):
            raise ArgumentTypeError(f"{self.level_name} must be an int, not {type(level).__name__}")
        if level not in self.levels:
            known = f"1 to {len(self.levels)}" if len(self.levels) > 1 else "1"
            raise ArgumentError(f"{self.level_name} {level} of {self.name} does not exist ({known})")
        return int(level)

    def has_level(self, level: float) -> bool:
        """Return whether `level` has parameters."""
        return level in self.levels

    def parameters(self, level: float, scale: Scale) -> Any:
        """Return the parameters of `level` at `scale`.

        Raises
        ------
        ArgumentTypeError, ArgumentError
            The level does not exist, or nothing was published for the scale.
        """
        return self.rows(scale)[int(self.check_level(level)) - 1]

    def rows(self, scale: Scale) -> tuple[Any, ...]:
        """Return the parameters of all levels at `scale`.

        Raises
        ------
        ArgumentError
            Nothing was published for that scale.
        """
        if scale not in self.table:
            ordered = sorted(self.table, key=lambda each: (isinstance(each, str), each))
            known = " and ".join(map(str, ordered))
            lacking = f"{self.noun} {self.name} has no published strength at scale {scale}"
            raise ArgumentError(f"{lacking} (it has at {known})")
        return self.table[scale]


@dataclass(frozen=True, kw_only=True)
class Corruption(Operation):
    """An `Operation` that returns one image: ``function(image, parameters, rng) -> image``.

    Attributes
    ----------
    family : str
        Name of its `Family`.
    breaks : mapping of int to tuple of int
        Scale to the severities after which its method changes: constants are not interpolated there.
    displaces : bool
        Whether it moves the content of an image so far that boxes and masks no longer fit.
    severities : tuple of int
        The whole severities, in the order of the rows.
    linear : bool
        Whether all constants are interpolated by equal steps; otherwise positive ones by equal factors.
    smallest_side : int
        Minimal side of an image in pixels.
    grey : bool
        Whether it acts on images of one channel, uint8 (H, W).
    needs : Ingredient or None
        What it needs beside the image; its function takes it as last argument.
    requires : callable or None
        ``requires(parameters, side)`` raises an error if a package is missing, or if images of `side` x
        `side` pixels (None for images of any size) cannot be used.
    prepared : callable or None
        ``prepared(parameters)`` returns the `Preparation` of the published images, if each corruption has
        its own.
    over_time : {"clip", "frame", "whole"} or callable
        "clip": all frames of a clip repeat the draws of the first; "frame": each frame draws its own;
        "whole": the function takes and returns a `Clip`, not an image; a callable:
        ``over_time(frames, parameters, rng)`` yields the corrupted frames.
    """

    family: str
    breaks: Mapping[Scale, tuple[int, ...]] = field(default_factory=dict)
    displaces: bool = False
    severities: tuple[int, ...] = SEVERITIES
    linear: bool = False
    smallest_side: int = SMALLEST_SIDE
    grey: bool = False
    needs: "Ingredient | None" = None
    requires: Callable[[Any, int | None], object] | None = None
    prepared: "Callable[[Any], Preparation] | None" = None
    over_time: "OverTime" = "clip"

    noun = "corruption"
    level_name = "severity"

    @property
    def levels(self) -> tuple[int, ...]:
        """Return the whole severities."""
        return self.severities

    def preparation(self, parameters: Any) -> "Preparation":
        """Return the preparation of its published images, if each corruption has its own."""
        # This import loads Pillow, which is not needed for names alone.
        from robustgen.pixels.imaging.geometry import Preparation

        return self.prepared(parameters) if self.prepared else Preparation()

    def apply(
        self, image: Any, parameters: Any, rng: Any, shared: dict[str, Any] | None = None, given: Any = None
    ) -> Any:
        """Call `function`. A plug-in's function cannot change the image, and its result is checked.

        Parameters
        ----------
        shared : dict, optional
            As in `Operation.apply`.
        given : object, optional
            What the ingredient gives for the image, if the corruption needs one.

        Raises
        ------
        ArgumentError
            A plug-in did not return an image of the same shape, or ended the program; or `given` is missing,
            or does not fit the image; or the corruption takes clips.
        """
        if self.over_time == "whole":
            raise ArgumentError(f"{self.name} needs the frames of a clip: use robustgen.corrupt_clip")
        if self.function.__module__.split(".")[0] == "robustgen":
            return self.function(image, parameters, rng, *self._list_more(image, shared, given))
        seen = np.asarray(image).view()
        seen.flags.writeable = False
        with raise_as(ArgumentError, f"{self.name} ended the program: SystemExit", SystemExit):
            result = self.function(seen, parameters, rng, *self._list_more(seen, shared, given))
        if not isinstance(result, np.ndarray) or (result.dtype, result.shape) != (seen.dtype, seen.shape):
            raise ArgumentError(f"{self.name} gave {_describe(result)}, not {_describe(seen)}")
        # The result may be the image itself.
        return result if result.flags.writeable else result.copy()

    def _list_more(self, image: Any, shared: dict[str, Any] | None, given: Any) -> tuple[Any, ...]:
        more = self._share(image, shared)
        return (*more, self.needs.validate(given, image, self.name)) if self.needs else more

    def check_level(self, level: Any) -> float:
        """Return `level`, from the lowest to the highest, as an int if it is whole, otherwise as a float."""
        if isinstance(level, bool) or not isinstance(level, Real):
            raise ArgumentTypeError(f"{self.level_name} must be a number, not {type(level).__name__}")
        if not self.has_level(float(level)):
            low, high = self.severities[0], self.severities[-1]
            known = f"{low} to {high}" if high > low else f"{low}"
            raise ArgumentError(f"{self.level_name} {level} of {self.name} does not exist ({known})")
        number = float(level)
        return int(number) if number.is_integer() else number

    def has_level(self, level: float) -> bool:
        """Return whether `level` is between the lowest and the highest severity."""
        return self.severities[0] <= level <= self.severities[-1]

    def rows(self, scale: Scale) -> tuple[Any, ...]:
        """Return the parameters of all severities at `scale`: published ones, or robustgen's own."""
        if scale in CALIBRATED_SCALES and self.family == BENCHMARK_FAMILY.name:
            return _read_calibrated(self.name, int(scale))
        return super().rows(scale)

    def parameters(self, level: float, scale: Scale) -> Any:
        """Return the parameters of `level` at `scale`: published, or interpolated between two severities.

        After one of the `breaks` they are those of the nearer severity, halfway those of the higher one.

        Raises
        ------
        ArgumentTypeError, ArgumentError
            The level does not exist, or nothing was published for the scale.
        """
        checked, rows = self.check_level(level), self.rows(scale)
        below = int(checked)
        fraction, row = checked - below, below - self.severities[0]
        if not fraction:
            return rows[row]
        if below in self.breaks.get(224 if scale in CALIBRATED_SCALES else scale, ()):
            fraction = float(fraction >= 0.5)
        return interpolate_parameters(rows[row], rows[row + 1], fraction, linear=self.linear)


BALANCED_ERRORS, SUPERCLASS_ACCURACY = "balanced errors", "superclass accuracy"
PERFORMANCE = "performance under corruption"


@dataclass(frozen=True)
class Family:
    """A set of corruptions that were published together.

    Attributes
    ----------
    name : str
        Part before the colon in ``family:corruption``.
    title : str
        Name of the set, for instance ``"ImageNet-C-bar"``.
    citation : str
        Citation of the publication.
    licence : str
        Licence of the published code.
    severities : tuple of int
        The whole severities of each corruption.
    linear : bool
        As in `Corruption`.
    not_made : mapping of str to str
        Published corruptions that robustgen does not have, and the reasons.
    means : mapping of str to float
        Corruption to the published mean error, 0 to 1, of a reference network over the five severities;
        `score` divides by it.
    reference : str
        Name of the reference network.
    qualified : bool
        Whether its corruptions are called ``family:corruption``; those of built-in families are not.
    edition : str
        Edition in which it was published, the default if only its corruptions are chosen; empty for none.
    level_mark : str
        Separator of corruption and severity in the folders of the published set, if they differ from ours.
    measure : str
        Further measure of its paper that `score` prints: `SUPERCLASS_ACCURACY`, `PERFORMANCE` or, for
        MedMNIST-C alone, `BALANCED_ERRORS`; empty for none.

    Examples
    --------
    >>> from robustgen.plugins import Family
    >>> PAPER = Family("few", "Few Shades", "A. Painter: Few Shades, 2031.", licence="MIT")
    >>> PAPER.title, PAPER.severities
    ('Few Shades', (1, 2, 3, 4, 5))
    """

    name: str
    title: str
    citation: str = ""
    means: Mapping[str, float] = field(default_factory=dict)
    reference: str = ""
    qualified: bool = True
    licence: str = ""
    severities: tuple[int, ...] = SEVERITIES
    linear: bool = False
    not_made: Mapping[str, str] = field(default_factory=dict)
    edition: str = ""
    level_mark: str = ""
    measure: str = ""
    _registered: dict[str, Corruption] = field(default_factory=dict, repr=False, compare=False)

    @property
    def corruptions(self) -> Mapping[str, Corruption]:
        """Return the registered corruptions by full name, those of the benchmark first, by category."""
        return MappingProxyType({each.name: each for each in _sort_by_benchmark(self._registered)})

    @property
    def group(self) -> str:
        """Return the name of the group of all corruptions in its mean."""
        return "common" if self is BENCHMARK_FAMILY else self.name

    def full_name(self, name: str) -> str:
        """Return the full name of the corruption `name` of this family."""
        return f"{self.name}:{name}" if self.qualified else name

    def find(self, name: str) -> Corruption | None:
        """Return the corruption of that full name; None if there is none."""
        return self._registered.get(name)

    def names(self, scale: Scale | None = None) -> tuple[str, ...]:
        """Return the full names of the corruptions in the mean, or of those with constants at `scale`."""
        every = self.corruptions.values()
        return tuple(each.name for each in every if each.common and (scale is None or scale in each.table))

    def add(self, entry: Corruption) -> None:
        """Add the corruption `entry`.

        Raises
        ------
        ArgumentError
            The name is taken.
        """
        if entry.name in self._registered:
            raise ArgumentError(f"corruption {entry.name!r} is registered twice")
        self._registered[entry.name] = entry


BENCHMARK_FAMILY = Family(
    "imagenet-c",
    "ImageNet-C",
    "Dan Hendrycks and Thomas Dietterich: Benchmarking Neural Network Robustness to Common Corruptions "
    "and Perturbations. International Conference on Learning Representations, 2019.",
    qualified=False,
)
"""The nineteen corruptions of ImageNet-C."""


@dataclass(frozen=True, kw_only=True)
class Perturbation(Operation):
    """An `Operation` that returns a sequence: ``function(image, parameters, rng)`` yields its frames.

    Attributes
    ----------
    stage : mapping of int to str
        Scale to the stage of the preparation whose image the function takes.
    temporal : bool
        Whether each frame is compared with the previous one; otherwise each is compared with the first.
    """

    stage: Mapping[Scale, Stage]
    temporal: bool

    noun = "perturbation"
    level_name = "difficulty"

    def frames(self, image: Any, parameters: Any, rng: Any) -> Iterator[Any]:
        """Yield the frames, uint8 (H, W, 3), one after the other, each computed on demand."""
        yield from self.function(image, parameters, rng)

    def apply(self, image: Any, parameters: Any, rng: Any, shared: dict[str, Any] | None = None) -> Any:
        """Return all frames, uint8 (T, H, W, 3)."""
        return np.stack([*self.frames(image, parameters, rng)])


def _describe(result: Any) -> str:
    is_array = isinstance(result, np.ndarray)
    return f"{result.dtype} of shape {result.shape}" if is_array else type(result).__name__


_perturbations: dict[str, Perturbation] = {}


@lru_cache(maxsize=128)
def _read_calibrated(name: str, scale: int) -> tuple[Any, ...]:
    constants = read_calibrated_constants()[str(scale)][name]
    published = BENCHMARK_FAMILY.corruptions[name].table[224]
    return tuple(replace(row, **constants[str(i)]) for i, row in enumerate(published, 1))


class Traits(TypedDict, total=False):
    """Keywords of `corruption`: attributes of a `Corruption`."""

    common: bool
    random: bool
    shares: Callable[[Any], Any] | None
    once_per_run: bool
    breaks: Mapping[Any, tuple[int, ...]]
    displaces: bool
    smallest_side: int
    grey: bool
    needs: "Ingredient | None"
    requires: Callable[[Any, int | None], object] | None
    prepared: "Callable[[Any], Preparation] | None"
    over_time: "OverTime"


def corruption(
    category: str,
    parameters: type,
    table: Mapping[Any, Any],
    *,
    family: Family = BENCHMARK_FAMILY,
    **traits: "Unpack[Traits]",
) -> Callable[[Function], Function]:
    """Register the decorated function as a corruption under its own name.

    Parameters
    ----------
    category : {"noise", "blur", "weather", "digital"}
    parameters : dataclass
        Called with each row of the table.
    table : mapping of int or str to sequence
        Scale, or data set, to rows, one per severity (a row of one value needs no tuple), or to
        another scale with the same rows. An omitted scale has no constants.
    family : Family
        Family that it was published in.
    **traits : Traits
        Attributes of the `Corruption`. By default, it belongs to the mean of its family (`common`) and draws
        from the random stream (`random`); each frame of a clip has its own noise, but no other draws
        (`over_time`).

    Raises
    ------
    ArgumentError, ArgumentTypeError
        The category, the parameters or the table is invalid, or the name is taken.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from robustgen.plugins import Family, corruption
    >>> @dataclass(frozen=True)
    ... class Dim:
    ...     light: float
    >>> PAPER = Family("few", "Few Shades", "A. Painter: Few Shades, 2031.", licence="MIT")
    >>> @corruption("weather", Dim, {224: (0.8, 0.6, 0.4, 0.2, 0.1)}, family=PAPER, random=False)
    ... def dim(image, parameters, rng):
    ...     return (image * parameters.light).astype(np.uint8)
    >>> [*PAPER.corruptions]
    ['few:dim']
    >>> grey = np.full((64, 64, 3), 100, np.uint8)
    >>> int(dim(grey, PAPER.corruptions["few:dim"].parameters(3, 224), None).max())
    40
    """

    def register(function: Function) -> Function:
        name = function.__name__
        if not family.qualified and function.__module__.split(".")[0] != "robustgen":
            raise ArgumentError(f"{name} needs its own family: corruption(..., family=Family(...))")
        if category not in CATEGORIES:
            raise UnknownNameError(f"category of {name}", category, CATEGORIES)
        rows = _rows(name, parameters, table)
        levels = len(family.severities)
        if wrong := [scale for scale, row in rows.items() if len(row) != levels]:
            each = f"each of the {levels} severities" if levels > 1 else "its only severity"
            raise ArgumentError(f"table of {name}: scale {wrong[0]} needs a row for {each}")
        usual: Traits = {"over_time": "frame" if category == "noise" else "clip"}
        of_family: Any = {"family": family.name, "severities": family.severities, "linear": family.linear}
        family.add(
            Corruption(family.full_name(name), category, function, rows, **of_family, **usual | traits)
        )
        return function

    return register


def perturbation(
    category: str,
    parameters: type,
    table: Mapping[Any, Any],
    *,
    common: bool = True,
    random: bool = True,
    stage: Mapping[Any, Stage] | None = None,
    temporal: bool = True,
) -> Callable[[Function], Function]:
    """Register the decorated function as a perturbation; `table` as in `corruption`, one row per difficulty.

    Parameters
    ----------
    stage : mapping of int to str, optional
        Stage of the preparation whose image it takes, if not the cropped one.
    """

    def register(function: Function) -> Function:
        name = function.__name__
        rows = _rows(name, parameters, table)
        stages: Any = {**dict.fromkeys(SCALES, "cropped"), **(stage or {})}
        _perturbations[name] = Perturbation(
            name, category, function, rows, common, random, stage=stages, temporal=temporal
        )
        return function

    return register


def _rows(name: str, parameters: type, table: Mapping[Any, Any]) -> Mapping[Scale, tuple[Any, ...]]:
    if not (isinstance(parameters, type) and is_dataclass(parameters)):
        raise ArgumentTypeError(f"parameters of {name} must be a dataclass, not {parameters!r}")
    if not isinstance(table, Mapping) or not table:
        raise ArgumentTypeError(f"table of {name} must map scales to rows, not {table!r}")
    if unknown := set(table) - {*SCALES, *DATA_SETS}:
        known = ", ".join(map(str, (*SCALES, *DATA_SETS)))
        raise ArgumentError(f"table of {name}: no scale {min(unknown, key=str)!r} (known: {known})")
    return MappingProxyType({scale: _rows_at(name, parameters, table, scale) for scale in table})


def _rows_at(name: str, parameters: type, table: Mapping[Any, Any], scale: Scale) -> tuple[Any, ...]:
    rows = table[scale]
    if isinstance(rows, int | str):
        if isinstance(table.get(rows), int | str) or rows not in table:
            raise ArgumentError(f"table of {name}: scale {scale} refers to {rows}, which has no rows")
        return _rows_at(name, parameters, table, rows)
    with raise_as(ArgumentTypeError, f"table of {name}: scale {scale}", TypeError):
        return tuple(parameters(*row) if isinstance(row, tuple) else parameters(row) for row in rows)


def registered_perturbations() -> Mapping[str, Perturbation]:
    """Return all registered perturbations, those of the benchmark first, in the order of the papers."""
    return MappingProxyType({each.name: each for each in _sort_by_benchmark(_perturbations)})


def _sort_by_benchmark(registered: Mapping[str, AnyOperation]) -> list[AnyOperation]:
    return sorted(registered.values(), key=lambda each: (not each.common, CATEGORIES.index(each.category)))


def get_known(noun: str, name: str, known: Mapping[str, Any]) -> Any:
    """Return the entry of `known` called `name`.

    Raises
    ------
    ArgumentTypeError
        `name` is not a string.
    UnknownNameError
        The name is unknown; the message names the nearest one.
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"{noun} must be a string, not {type(name).__name__}")
    try:
        return known[name]
    except KeyError:
        raise UnknownNameError(noun, name, known) from None
