"""Where corruptions and perturbations are registered, and looked up by name, level and scale.

A scale is the side of the square images that a column of constants was published
for: 224, 299, 64 or 32. A level is a severity (corruptions, 1 to 5) or a
difficulty (perturbations, 1 to 3 for the noises, else 1).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from robustgen.errors import ArgumentError, ArgumentTypeError, UnknownNameError

SCALES = (224, 299, 64, 32)
CATEGORIES = ("noise", "blur", "weather", "digital")

Stage = Literal["raw", "resized", "cropped"]
Function = TypeVar("Function", bound=Callable[..., Any])
Row = tuple[Any, ...]
Table = Mapping[int, Any]


@dataclass(frozen=True)
class Operation:
    """A corruption or a perturbation: its function and its parameters per scale and level.

    Attributes
    ----------
    name : str
    category : {"noise", "blur", "weather", "digital"}
    common : bool
        Whether it belongs to the benchmark; the others are the extra (validation) set.
    random : bool
        Whether the result depends on the random stream.
    function : callable
        ``function(image, parameters, rng)``.
    table : mapping of int to tuple
        Scale to the parameter objects of levels 1, 2, ...
    shares : callable or None
        ``shares(image)`` makes what all levels of one image can share; `function` takes it last.
    """

    name: str
    category: str
    common: bool
    random: bool
    function: Callable[..., Any]
    table: Mapping[int, Row]
    shares: Callable[[Any], Any] | None

    kind = "operation"
    level_name = "level"

    @property
    def levels(self) -> tuple[int, ...]:
        """The levels there are, from 1."""
        return tuple(range(1, len(self.table[224]) + 1))

    def apply(self, image: Any, parameters: Any, rng: Any, shared: dict[str, Any] | None = None) -> Any:
        """Call `function`; `shared` keeps, from call to call on the same image, what its levels share.

        Only what the latest operation shares is kept: its levels come one after the other.
        """
        if self.shares is None:
            return self.function(image, parameters, rng)
        shared = {} if shared is None else shared
        if self.name not in shared:
            shared.clear()
            shared[self.name] = self.shares(image)
        return self.function(image, parameters, rng, shared[self.name])

    def parameters(self, level: int, scale: int) -> Any:
        """Parameters of `level` at `scale`.

        Raises
        ------
        ArgumentTypeError, ArgumentError
            No such level.
        """
        if isinstance(level, bool) or not isinstance(level, Integral):
            raise ArgumentTypeError(f"{self.level_name} must be an int, not {type(level).__name__}")
        if level not in self.levels:
            known = f"1 to {len(self.levels)}" if len(self.levels) > 1 else "1"
            raise ArgumentError(f"{self.level_name} {level} of {self.name} does not exist ({known})")
        return self.table[scale][int(level) - 1]


@dataclass(frozen=True)
class Corruption(Operation):
    """An `Operation` that gives one image: ``function(image, parameters, rng) -> image``."""

    kind = "corruption"
    level_name = "severity"


@dataclass(frozen=True)
class Perturbation(Operation):
    """An `Operation` that gives a sequence: ``function(image, parameters, rng) -> frames``.

    Attributes
    ----------
    stage : mapping of int to str
        Scale to the stage of the preparation that the function acts on.
    temporal : bool
        Whether each frame follows from the one before; else each is compared with the first.
    """

    stage: Mapping[int, Stage]
    temporal: bool

    kind = "perturbation"
    level_name = "difficulty"


_corruptions: dict[str, Corruption] = {}
_perturbations: dict[str, Perturbation] = {}


def corruption(
    category: str,
    parameters: type,
    table: Table,
    *,
    common: bool = True,
    random: bool = True,
    shares: Callable[[Any], Any] | None = None,
) -> Callable[[Function], Function]:
    """Register the decorated function as a corruption under its own name.

    Parameters
    ----------
    category : str
    parameters : dataclass
        Called with each row of the table.
    table : mapping of int to sequence
        Scale to five rows, one per severity (a row of one value may stand without its tuple), or to
        another scale whose rows are the same.
    common : bool
        Whether it is one of the benchmark's fifteen.
    random : bool
        Whether it draws from its random stream.
    shares : callable, optional
        Called with an image, gives what all severities of it share; the function takes it last.
    """

    def register(function: Function) -> Function:
        name = function.__name__
        rows = _rows(parameters, table)
        _corruptions[name] = Corruption(name, category, common, random, function, rows, shares)
        return function

    return register


def perturbation(
    category: str,
    parameters: type,
    table: Table,
    *,
    common: bool = True,
    random: bool = True,
    stage: Mapping[int, Stage] | None = None,
    temporal: bool = True,
) -> Callable[[Function], Function]:
    """Register the decorated function as a perturbation; `table` as in `corruption`, one row per difficulty.

    Parameters
    ----------
    stage : mapping of int to str, optional
        Stage acted on, where it is not the cropped image.
    """

    def register(function: Function) -> Function:
        name = function.__name__
        stages: dict[int, Stage] = dict.fromkeys(SCALES, "cropped")
        stages.update(stage or {})
        _perturbations[name] = Perturbation(
            name, category, common, random, function, _rows(parameters, table), None, stages, temporal
        )
        return function

    return register


def _rows(parameters: type, table: Table) -> Mapping[int, Row]:
    def build(scale: int) -> Row:
        rows = table[scale]
        if isinstance(rows, int):
            return build(rows)
        return tuple(parameters(*row) if isinstance(row, tuple) else parameters(row) for row in rows)

    return MappingProxyType({scale: build(scale) for scale in SCALES})


def registered_corruptions() -> Mapping[str, Corruption]:
    """All corruptions registered so far, the benchmark's first, in the papers' order."""
    return _in_benchmark_order(_corruptions)


def registered_perturbations() -> Mapping[str, Perturbation]:
    """All perturbations registered so far, the benchmark's first, in the papers' order."""
    return _in_benchmark_order(_perturbations)


def _in_benchmark_order(registered: dict[str, Any]) -> Mapping[str, Any]:
    order = sorted(registered.values(), key=lambda o: (not o.common, CATEGORIES.index(o.category)))
    return MappingProxyType({operation.name: operation for operation in order})


def get_known(kind: str, name: str, known: Mapping[str, Any]) -> Any:
    """The entry of `known` called `name`.

    Raises
    ------
    ArgumentTypeError
        `name` is not a string.
    UnknownNameError
        There is no such entry; the message names the nearest.
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"{kind} must be a string, not {type(name).__name__}")
    if name not in known:
        raise UnknownNameError(kind, name, known)
    return known[name]
