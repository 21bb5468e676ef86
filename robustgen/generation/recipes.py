"""What a run makes: its arms, its items, and the random stream of each item."""

import dataclasses
import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from robustgen.benchmark import CLEAN, TITLES, Arm, Kind, every_arm, operations
from robustgen.editions import EDITIONS, check_size, edition_called
from robustgen.errors import ArgumentError, ImageError, UnknownNameError
from robustgen.imaging.pixels import Rgb
from robustgen.registry import SCALES, look_up

Overrides = Mapping[str, Mapping[int, Mapping[str, Any]]]


class _Hash(np.random.SeedSequence):
    """Seeds a bit generator with the SHA-256 of `identity`: four 64-bit words, which is what PCG64 takes."""

    def __init__(self, identity: str) -> None:
        self._digest = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).digest()

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> npt.NDArray[Any]:
        return np.frombuffer(self._digest, "<u8").astype(dtype)[:n_words]


def item_rng(seed: int, kind: str, edition: str, name: str, level: int, key: str) -> np.random.Generator:
    """The random stream of one output: a hash of what it is, and of nothing else."""
    identity = "\0".join([str(seed), kind, edition, name, str(level), key])
    return np.random.Generator(np.random.PCG64(_Hash(identity)))


class Recipe(ABC):
    """All that decides the pixels of an output, but for the source image. Picklable.

    Attributes
    ----------
    title : str
        What ``dataset.json`` calls the kind of set.
    noun : str
        What one output is called: an image, a sequence.
    images_per_task : int
        How many images a worker takes at once.
    """

    title: str
    noun: str = "image"
    images_per_task: int = 4

    def prepare(self, source: Rgb) -> Rgb:
        """The image that all arms start from.

        Raises
        ------
        ImageError
            The image cannot be used.
        """
        return source

    @abstractmethod
    def make(self, arm: Arm, key: str, image: Rgb, shared: dict[str, Any] | None = None) -> Rgb:
        """Make one output from a prepared image: uint8 (H, W, 3), or frames (T, H, W, 3).

        `shared` keeps what the arms of one image have in common.
        """

    @abstractmethod
    def settings(self, arms: tuple[Arm, ...]) -> dict[str, Any]:
        """What decides the pixels of `arms`, as JSON takes it; ``"parameters"`` per folder of an arm."""

    def all_arms(self) -> tuple[Arm, ...]:
        """All arms that a set of this kind can have."""
        return ()


def rank(seed: int, key: str) -> bytes:
    """Sorted by this, images stand in an order that the seed and their names alone decide."""
    return hashlib.sha256(f"{seed}\0{key}".encode("utf-8", "surrogateescape")).digest()


@dataclass(frozen=True)
class BenchmarkRecipe(Recipe):
    """Of ImageNet-C (kind ``"c"``) and ImageNet-P (``"p"``).

    Attributes
    ----------
    kind : {"c", "p"}
    edition : str
    seed : int
    scale : int or None
        Constants to use instead of the edition's.
    overrides : mapping
        Operation to level to parameter to value, instead of the published constants.
    """

    kind: Kind
    edition: str
    seed: int = 0
    scale: int | None = None
    overrides: Overrides = field(default_factory=dict)
    _resolved: dict[tuple[Arm, int], Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def title(self) -> str:  # type: ignore[override]
        """Name of the benchmark."""
        return TITLES[self.kind]

    @property
    def noun(self) -> str:  # type: ignore[override]
        """Of a P set, an output is a sequence."""
        return "image" if self.kind == "c" else "sequence"

    @property
    def images_per_task(self) -> int:  # type: ignore[override]
        """A sequence takes long enough by itself."""
        return 4 if self.kind == "c" else 1

    def all_arms(self) -> tuple[Arm, ...]:
        """Every corruption at every severity, or every perturbation at every difficulty."""
        return every_arm(self.kind)

    def prepare(self, source: Rgb) -> Rgb:
        """The image that all arms start from: prepared for corruptions, raw for perturbations."""
        image = edition_called(self.edition).prepared(source) if self.kind == "c" else source
        try:
            return check_size(image)
        except ArgumentError as error:
            raise ImageError(str(error)) from error

    def parameters(self, arm: Arm, scale: int) -> Any:
        """The parameter object of `arm` at `scale`, overrides applied."""
        if (arm, scale) not in self._resolved:
            published = look_up("operation", arm.name, operations(self.kind)).parameters(arm.level, scale)
            own = self.overrides.get(arm.name, {}).get(arm.level, {})
            self._resolved[arm, scale] = dataclasses.replace(published, **own)
        return self._resolved[arm, scale]

    def make(self, arm: Arm, key: str, image: Rgb, shared: dict[str, Any] | None = None) -> Rgb:
        """Make one output from a prepared (c) or raw (p) image: (H, W, 3), or frames (T, H, W, 3)."""
        if arm.name == CLEAN:
            return image
        operation = operations(self.kind)[arm.name]
        edition = edition_called(self.edition)
        scale = edition.scale_for(image, self.scale)
        identity = self.seed, self.kind, self.edition, arm.name, arm.level, key
        rng = item_rng(*identity) if operation.random else None
        parameters = self.parameters(arm, scale)
        if self.kind == "c":
            corrupted: Rgb = operation.apply(image, parameters, rng, shared)
            return corrupted
        stage = operation.stage[scale]  # type: ignore[attr-defined]
        return edition.finish(operation.apply(edition.at_stage(image, stage), parameters, rng), stage)

    def settings(self, arms: tuple[Arm, ...]) -> dict[str, Any]:
        """Edition, seed, scale and the constants of every arm."""
        return {
            "kind": self.kind,
            "edition": self.edition,
            "seed": self.seed,
            "scale": self.scale or EDITIONS[self.edition].scale or "nearest",
            "parameters": {arm.folder: self._constants(arm) for arm in arms},
        }

    def _constants(self, arm: Arm) -> dict[str, Any]:
        if arm.name == CLEAN:
            return {}
        scale = self.scale or EDITIONS[self.edition].scale
        if scale:
            return _plain(self.parameters(arm, scale))
        return {str(each): _plain(self.parameters(arm, each)) for each in SCALES}


# Chosen by keys of their own, because they change no pixel.
_NOT_CONSTANTS = ("engine", "directory")


def _plain(parameters: Any) -> dict[str, Any]:
    plain = dataclasses.asdict(parameters)
    return {name: value for name, value in plain.items() if name not in _NOT_CONSTANTS}


def checked_overrides(kind: Kind, overrides: Overrides) -> Overrides:
    """`overrides` with whole numbers as int.

    Raises
    ------
    ArgumentError
        An operation, level, parameter or value cannot be used; the message names the place.
    """
    checked: dict[str, dict[int, dict[str, Any]]] = {}
    for name, levels in overrides.items():
        operation = look_up("corruption" if kind == "c" else "perturbation", name, operations(kind))
        for level, values in levels.items():
            published = operation.parameters(level, 224)
            known = {f.name: f.type for f in dataclasses.fields(published) if f.name not in _NOT_CONSTANTS}
            for parameter, value in values.items():
                if parameter not in known:
                    raise UnknownNameError(f"parameter of {name}", parameter, known)
                constant = _constant(f"{name}.{level}.{parameter}", value, whole=known[parameter] is int)
                checked.setdefault(name, {}).setdefault(level, {})[parameter] = constant
    return checked


def _constant(place: str, value: Any, *, whole: bool) -> float:
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not numeric or not math.isfinite(value) or value < 0 or (whole and value != int(value)):
        kind = "a whole number" if whole else "a number"
        raise ArgumentError(f"{place}: must be {kind} of at least 0, not {value!r}")
    return int(value) if whole else float(value)
