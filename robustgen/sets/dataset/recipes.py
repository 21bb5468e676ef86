"""Recipes: the computation of an output from a source image, and the random stream of each output."""

import dataclasses
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Final, Generic

import numpy as np
import numpy.typing as npt

from robustgen.errors import ArgumentError, ImageError
from robustgen.pixels.benchmarks.corruptions import get_corruption, get_family
from robustgen.pixels.benchmarks.editions import Edition, check_size, get_edition
from robustgen.pixels.benchmarks.ingredients import OpenedIngredient
from robustgen.pixels.benchmarks.kinds import CLEAN, IMAGENET_C, IMAGENET_P, Benchmark, Kind, Variant
from robustgen.pixels.benchmarks.overrides import NOT_CONSTANTS, Overrides
from robustgen.pixels.benchmarks.perturbations import PERTURBATIONS
from robustgen.pixels.benchmarks.registry import SMALLEST_SIDE, Corruption, Operation, Scale, get_known
from robustgen.pixels.imaging.arrays import Decoded, Rgb
from robustgen.pixels.imaging.decode import as_rgb
from robustgen.pixels.imaging.preparation import PreparationStep
from robustgen.sets.formats.base import SetListing, Writer
from robustgen.sets.sources.base import Loaded

_WORD: Final = np.dtype("<u8")


class _Words(np.random.SeedSequence):
    """Seed sequence that passes `words` to a bit generator unchanged."""

    __slots__ = ("_words",)

    def __init__(self, words: npt.NDArray[np.uint64]) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> npt.NDArray[Any]:
        return self._words


def _identify_stream(seed: int, kind: str, edition: str, name: str, level: float) -> str:
    """Return the part of the stream identity that all images of a variant share; the key follows it."""
    return "\0".join([str(seed), kind, edition, name, str(level), ""])


def item_rng(seed: int, kind: str, edition: str, name: str, level: float, key: str) -> np.random.Generator:
    """Return the random stream of one output, seeded by a hash of the arguments only."""
    return _make_rng(_identify_stream(seed, kind, edition, name, level) + key)


def _make_rng(identity: str) -> np.random.Generator:
    # PCG64 takes four words of 64 bits, the length of a SHA-256.
    digest = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).digest()
    return np.random.Generator(np.random.PCG64(_Words(np.frombuffer(digest, _WORD))))


class Recipe(ABC, Generic[Loaded]):
    """Everything that decides the pixels of an output, except for the source image. Picklable.

    Attributes
    ----------
    title : str
        Name of this kind of set in ``dataset.json``.
    noun : str
        Name of one output: image or sequence.
    images_at_once : int
        Number of images that a worker processes at once.
    """

    title: ClassVar[str]
    noun: ClassVar[str] = "image"
    images_at_once: ClassVar[int] = 4

    @property
    def keeps_size(self) -> bool:
        """Return whether the cost of an output depends on the size of the source image."""
        return False

    def prepare(self, loaded: Loaded) -> Loaded:
        """Return the prepared image that all variants start from, given a loaded image.

        Raises
        ------
        ImageError
            The image cannot be used.
        """
        return loaded

    def make_ready(self) -> None:
        """Store what the outputs need where worker processes find it, before the work begins."""

    @abstractmethod
    def make(self, variant: Variant, key: str, prepared: Loaded, shared: dict[str, Any] | None = None) -> Rgb:
        """Return one output of a prepared image: uint8 (H, W, 3), or frames (T, H, W, 3).

        `shared` caches what the variants of one image have in common.
        """

    def stream(self, variant: Variant, key: str, prepared: Loaded) -> Iterator[Rgb] | None:
        """Return an iterator that computes the frames of `make` one by one; None for images."""
        return None

    @abstractmethod
    def settings(self, variants: tuple[Variant, ...]) -> dict[str, Any]:
        """Return all that decides the pixels of `variants` as JSON values, ``"parameters"`` by folder."""

    def list_companions(self, list_all: Callable[[], SetListing], writer: Writer) -> Mapping[str, bytes]:
        """Return the small files about the outputs of all images: path below the output to content."""
        return {}


def rank(seed: int, key: str) -> bytes:
    """Return a sort key that depends only on the seed and the key of the image."""
    return hashlib.sha256(f"{seed}\0{key}".encode("utf-8", "surrogateescape")).digest()


@dataclass(frozen=True, eq=False)
class BoundVariant:
    """One variant of a recipe, with everything that can be computed without an image.

    Attributes
    ----------
    operation : Operation
    edition : Edition
    level : int or float
    scale : int or None
        Constants to use instead of the edition's.
    overrides : mapping of str to value
        Parameters instead of the published constants.
    stream : str
        Common part of the identities of its random streams.
    """

    operation: Operation
    edition: Edition
    level: float
    scale: int | None
    overrides: Mapping[str, Any]
    stream: str
    _known: dict[Scale, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def fixed_scale(self) -> Scale | None:
        """Return the scale for all images; None if it depends on the image size."""
        return self.scale or self.edition.fixed_scale(self.operation.table)

    def scale_for(self, image: Rgb) -> Scale:
        """Return the scale whose constants apply to `image`."""
        return self.fixed_scale or self.edition.scale_for(image, known=self.operation.table)

    def parameters(self, scale: Scale) -> Any:
        """Return the parameter object at `scale`, with overrides applied."""
        if scale not in self._known:
            published = self.operation.parameters(self.level, scale)
            self._known[scale] = dataclasses.replace(published, **self.overrides)
        return self._known[scale]

    def random_stream(self, key: str) -> np.random.Generator | None:
        """Return the random stream for the image `key`; None for an operation without randomness."""
        return _make_rng(self.stream + key) if self.operation.random else None


@dataclass(frozen=True)
class BenchmarkRecipe(Recipe[Rgb]):
    """Base class of the recipes of both benchmarks.

    Attributes
    ----------
    edition : str
    seed : int
    scale : int or None
        Constants to use instead of the edition's.
    overrides : mapping
        Operation to level to parameter to value, instead of the published constants.
    smallest_side : int
        Smallest side in pixels that all operations accept.
    """

    edition: str
    seed: int = 0
    scale: int | None = None
    overrides: Overrides = field(default_factory=dict)
    smallest_side: int = SMALLEST_SIDE
    _bound: dict[tuple[str, float], BoundVariant] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    benchmark: ClassVar[Benchmark]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_bound": {}}

    @property
    def keeps_size(self) -> bool:
        """Return whether the edition keeps the size of images."""
        return get_edition(self.edition).keeps_size

    def prepare(self, loaded: Decoded) -> Rgb:
        """Return the pixels of the image; raise an ImageError if it is too small for any operation."""
        return _check_side(as_rgb(loaded), min(self.smallest_side, get_edition(self.edition).smallest_side))

    def get_operation(self, name: str) -> Operation:
        """Return the corruption or perturbation `name` in the version of the edition."""
        operation: Operation = get_known("operation", name, self.benchmark.operations)
        return operation

    def bind(self, variant: Variant) -> BoundVariant:
        """Return `variant` with its operation and its constants in this recipe."""
        # Hashing this tuple takes a fifth of the time of hashing the variant.
        place = variant.name, variant.level
        bound = self._bound.get(place)
        if bound is None:
            operation, edition = self.get_operation(variant.name), get_edition(self.edition)
            overrides = self.overrides.get(variant.name, {}).get(variant.level, {})
            stream = _identify_stream(
                self.seed, self.benchmark.kind, self.edition, variant.name, variant.level
            )
            bound = BoundVariant(operation, edition, variant.level, self.scale, overrides, stream)
            self._bound[place] = bound
        return bound

    def settings(self, variants: tuple[Variant, ...]) -> dict[str, Any]:
        """Return edition, seed, scale and the constants of every variant."""
        return {
            "kind": self.benchmark.kind,
            "edition": self.edition,
            "seed": self.seed,
            "scale": self.scale or get_edition(self.edition).scale or "nearest",
            "parameters": {variant.folder: self._constants(variant) for variant in variants},
        }

    def _constants(self, variant: Variant) -> dict[str, Any]:
        if variant.name == CLEAN:
            return {}
        bound = self.bind(variant)
        if bound.fixed_scale:
            return self._describe(bound.operation, bound.parameters(bound.fixed_scale))
        return {
            str(scale): self._describe(bound.operation, bound.parameters(scale))
            for scale in bound.operation.table
        }

    def _describe(self, operation: Operation, parameters: Any) -> dict[str, Any]:
        """Return everything that decides the pixels of a variant, as JSON values."""
        plain = dataclasses.asdict(parameters)
        return {name: value for name, value in plain.items() if name not in NOT_CONSTANTS}


def _check_side(image: Rgb, smallest: int) -> Rgb:
    """Return `image`; raise an ImageError if a side has fewer than `smallest` pixels."""
    try:
        return check_size(image, smallest)
    except ArgumentError as error:
        raise ImageError(str(error)) from error


@dataclass(frozen=True)
class CorruptionRecipe(BenchmarkRecipe):
    """Recipe of ImageNet-C: one image for each corruption and severity, from the prepared image.

    Attributes
    ----------
    ingredients : mapping of str to OpenedIngredient
        What corruptions need beside the image, by name; others use what is installed.
    """

    ingredients: Mapping[str, OpenedIngredient] = field(default_factory=dict)

    benchmark = IMAGENET_C
    title = IMAGENET_C.title
    noun = IMAGENET_C.noun

    def make_ready(self) -> None:
        """Store what the ingredients need where worker processes find it."""
        for ingredient in self.ingredients.values():
            ingredient.make_ready()

    def prepare(self, loaded: Decoded) -> Rgb:
        """Return the image as the edition prepares it, the input of all corruptions.

        If each corruption has its own preparation, return the raw image.
        """
        edition = get_edition(self.edition)
        return super().prepare(loaded if edition.by_corruption else edition.prepared(loaded))

    def complete(self, prepared: Rgb) -> Rgb:
        """Return the result of `prepare` after the rest of the edition's preparation."""
        edition = get_edition(self.edition)
        return edition.prepared(prepared) if edition.by_corruption else prepared

    def get_operation(self, name: str) -> Corruption:
        """Return the corruption `name`, in the version of the edition."""
        return get_corruption(name, get_edition(self.edition).implementation)

    def cite(self, variants: Iterable[Variant]) -> str:
        """Return the publications that the corruptions of `variants` come from."""
        corruptions = [self.get_operation(variant.name) for variant in variants if variant.name != CLEAN]
        return " ".join(dict.fromkeys(get_family(corruption).citation for corruption in corruptions))

    def make(self, variant: Variant, key: str, prepared: Rgb, shared: dict[str, Any] | None = None) -> Rgb:
        """Return the corrupted image: uint8 (H, W, 3)."""
        if variant.name == CLEAN:
            return self.complete(prepared)
        bound = self.bind(variant)
        operation, edition, rng = bound.operation, bound.edition, bound.random_stream(key)
        assert isinstance(operation, Corruption)
        if min(prepared.shape[:2]) < operation.smallest_side:
            _check_side(prepared, operation.smallest_side)
        parameters = bound.parameters(bound.scale_for(prepared))
        shared = {} if shared is None else shared
        if not edition.by_corruption:
            given = self._give(operation, key, edition.prepared, shared)
            return as_rgb(edition.corrupt(operation, prepared, parameters, rng, shared=shared, given=given))
        preparation = operation.preparation(parameters)
        if (place := f"{preparation.resize}/{preparation.crop}") not in shared:
            shared[place] = preparation.prepare(prepared)
        given = self._give(operation, key, preparation.step, shared)
        made = edition.corrupt(operation, shared[place], parameters, rng, shared=shared, given=given)
        return as_rgb(preparation.complete(made))

    def _give(
        self, operation: Corruption, key: str, preparation: PreparationStep, shared: dict[str, Any]
    ) -> Any:
        """Return what `operation` needs beside the image `key`; None for nothing or for the installed."""
        if operation.needs is None or operation.needs.name not in self.ingredients:
            return None
        name = operation.needs.name
        if (place := f"{name} for {preparation}") not in shared:
            shared[place] = self.ingredients[name].give(key, preparation)
        return shared[place]

    def _describe(self, operation: Operation, parameters: Any) -> dict[str, Any]:
        constants = super()._describe(operation, parameters)
        needs = operation.needs.name if isinstance(operation, Corruption) and operation.needs else ""
        if needs in self.ingredients and (content := self.ingredients[needs].describe(parameters)):
            constants[needs] = content
        return constants


@dataclass(frozen=True)
class PerturbationRecipe(BenchmarkRecipe):
    """Recipe of ImageNet-P: a sequence of frames for each perturbation, from the raw image."""

    benchmark = IMAGENET_P
    title = IMAGENET_P.title
    noun = IMAGENET_P.noun
    # The frames of one sequence already share what is in the processor's cache.
    images_at_once = 1

    def prepare(self, loaded: Decoded) -> Rgb:
        """Return the raw image from which all sequences start."""
        try:
            return get_edition(self.edition).start(loaded, self.scale, self.smallest_side)
        except ArgumentError as error:
            raise ImageError(str(error)) from error

    def make(self, variant: Variant, key: str, prepared: Rgb, shared: dict[str, Any] | None = None) -> Rgb:
        """Return the sequence of the raw image, perturbed at the perturbation's stage: uint8 (T, H, W, 3)."""
        return np.stack([*self.stream(variant, key, prepared)])

    def stream(self, variant: Variant, key: str, prepared: Rgb) -> Iterator[Rgb]:
        """Yield the frames of `make` one by one, because those of a large photograph would fill memory."""
        bound = self.bind(variant)
        edition, operation, scale = bound.edition, PERTURBATIONS[variant.name], bound.scale_for(prepared)
        stage, parameters = operation.stage[scale], bound.parameters(scale)
        source, rng = edition.at_stage(prepared, stage), bound.random_stream(key)
        return edition.finish(operation.frames(source, parameters, rng), stage)


RECIPES: Final[Mapping[Kind, type[BenchmarkRecipe]]] = MappingProxyType(
    {"c": CorruptionRecipe, "p": PerturbationRecipe}
)
