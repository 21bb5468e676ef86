"""Recipes: the computation of an output from a source image, and the random stream of each output."""

import dataclasses
import hashlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import Any, ClassVar, Final, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from robustgen.display.text import format_count
from robustgen.errors import ArgumentError, ImageError
from robustgen.pixels.benchmarks.binding import (
    Bound,
    BoundCorruption,
    BoundPerturbation,
    Overrides,
    bind,
)
from robustgen.pixels.benchmarks.corruptions import get_family
from robustgen.pixels.benchmarks.editions import check_size, get_edition
from robustgen.pixels.benchmarks.ingredients import OpenedIngredient
from robustgen.pixels.benchmarks.kinds import (
    CLEAN,
    CLEAN_VARIANT,
    CLIP,
    CLIPS_C,
    IMAGE,
    IMAGENET_C,
    IMAGENET_P,
    Benchmark,
    Kind,
    Medium,
    Variant,
)
from robustgen.pixels.benchmarks.registry import CLIP_SETS, SMALLEST_SIDE, Corruption, Temporal
from robustgen.pixels.imaging.arrays import Decoded, Rgb
from robustgen.pixels.imaging.decode import as_rgb
from robustgen.pixels.imaging.frames import Clip, Repeatable
from robustgen.pixels.imaging.geometry import PreparationStep
from robustgen.sets.formats.base import SetListing, Writer
from robustgen.sets.sources.base import Loaded

_WORD: Final = np.dtype("<u8")

AnyBound = TypeVar("AnyBound", bound=Bound)


class _Words(np.random.SeedSequence):
    """Seed sequence that passes `words` to a bit generator unchanged."""

    __slots__ = ("_words",)

    def __init__(self, words: npt.NDArray[np.uint64]) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> npt.NDArray[Any]:
        return self._words


def item_rng(seed: int, recipe: str, edition: str, name: str, level: float, key: str) -> np.random.Generator:
    """Return the random stream of one output, seeded by a hash of the arguments only.

    Examples
    --------
    >>> import robustgen
    >>> rng = robustgen.item_rng(0, "c", "imagenet", "fog", 3, "n01440764/a.JPEG")
    >>> int(rng.integers(1000))
    750
    """
    identity = "\0".join([str(seed), recipe, edition, name, str(level), key])
    # PCG64 takes four words of 64 bits, the length of a SHA-256.
    digest = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).digest()
    return np.random.Generator(np.random.PCG64(_Words(np.frombuffer(digest, _WORD))))


class Recipe(ABC, Generic[Loaded]):
    """Everything that decides the pixels of an output, except for the source image. Picklable.

    Attributes
    ----------
    title : str
        Title of the set in ``dataset.json``.
    noun : str
        Name of one output: image or sequence.
    takes : collection of Medium
        What it can be applied to.
    images_at_once : int
        Number of images that a worker processes at once.

    Examples
    --------
    >>> import numpy as np
    >>> from robustgen.plugins import Recipe, Variant, as_rgb
    >>> class Negatives(Recipe):
    ...     title = "Negatives"
    ...     def prepare(self, loaded):
    ...         return as_rgb(loaded)
    ...     def make(self, variant, key, prepared, shared=None):
    ...         return 255 - prepared
    ...     def settings(self, variants):
    ...         return {}
    >>> black = np.zeros((32, 32, 3), np.uint8)
    >>> int(Negatives().make(Variant("negative", 0, ""), "a.png", black).min())
    255
    """

    title: ClassVar[str]
    noun: ClassVar[str] = "image"
    takes: ClassVar[Collection[Medium]] = (IMAGE,)
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

    def note(self, made: Any) -> Mapping[str, Any]:
        """Return what is worth noting about the result of `make`, as JSON values."""
        return {}

    def describe_notes(self, notes: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """Yield remarks on the notes of a run, which also have ``"key"`` and ``"variant"``."""
        yield from ()

    @abstractmethod
    def settings(self, variants: tuple[Variant, ...]) -> dict[str, Any]:
        """Return all that decides the pixels of `variants` as JSON values, ``"parameters"`` by folder."""

    def versions(self) -> dict[str, str]:
        """Return the versions of libraries that decide the pixels, apart from those of every set."""
        return {}

    def list_companions(self, list_all: Callable[[], SetListing], writer: Writer) -> Mapping[str, bytes]:
        """Return the small files about the outputs of all images: path below the output to content."""
        return {}


def rank(seed: int, key: str) -> bytes:
    """Return a sort key that depends only on the seed and the key of the image."""
    return hashlib.sha256(f"{seed}\0{key}".encode("utf-8", "surrogateescape")).digest()


@dataclass(frozen=True)
class BenchmarkRecipe(Recipe[Rgb], Generic[AnyBound]):
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
    copies : mapping of str to str
        Key of an image to that of an equal one, whose random numbers it gets.
    """

    edition: str
    seed: int = 0
    scale: int | None = None
    overrides: Overrides = field(default_factory=dict)
    smallest_side: int = SMALLEST_SIDE
    copies: Mapping[str, str] = field(default_factory=dict)
    _bound: dict[tuple[str, float], AnyBound] = field(
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

    def bind(self, variant: Variant) -> AnyBound:
        """Return the operation of `variant` at its level, with its constants in this recipe."""
        # Hashing this tuple takes a fifth of the time of hashing the variant.
        place = variant.name, variant.level
        if place not in self._bound:
            overrides = self.overrides.get(variant.name, {}).get(variant.level, {})
            made = bind(self.edition, *place, self.benchmark.kind, scale=self.scale, overrides=overrides)
            self._bound[place] = cast("AnyBound", made)
        return self._bound[place]

    def open_stream(self, variant: Variant, key: str) -> np.random.Generator | None:
        """Return the random stream of `variant` for the image `key`; None if its operation draws nothing."""
        operation = self.bind(variant).operation
        own = "" if operation.once_per_run else self.copies.get(key, key)
        place = self.edition, variant.name, variant.level, own
        return item_rng(self.seed, self.benchmark.kind, *place) if operation.random else None

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
            return self._describe(bound, bound.parameters(bound.fixed_scale))
        return {str(scale): self._describe(bound, bound.parameters(scale)) for scale in bound.operation.table}

    def _describe(self, bound: AnyBound, parameters: Any) -> dict[str, Any]:
        """Return everything that decides the pixels of a variant, as JSON values."""
        return dataclasses.asdict(parameters)


def _check_side(image: Rgb, smallest: int) -> Rgb:
    """Return `image`; raise an ImageError if a side has fewer than `smallest` pixels."""
    try:
        return check_size(image, smallest)
    except ArgumentError as error:
        raise ImageError(str(error)) from error


@dataclass(frozen=True)
class CorruptionRecipe(BenchmarkRecipe[BoundCorruption]):
    """Recipe of ImageNet-C: one image for each corruption and severity, from the prepared image.

    Attributes
    ----------
    ingredients : mapping of str to OpenedIngredient
        What corruptions need beside the image, by name; others use what is installed.
    """

    ingredients: Mapping[str, OpenedIngredient] = field(default_factory=dict)

    benchmark = IMAGENET_C
    title: ClassVar[str] = IMAGENET_C.title

    def make_ready(self) -> None:
        """Store what the ingredients need where worker processes find it."""
        for ingredient in self.ingredients.values():
            ingredient.make_ready()

    def prepare(self, loaded: Decoded) -> Rgb:
        """Return the image as the edition prepares it, the input of all corruptions.

        If each corruption has its own preparation, return the raw image.
        """
        edition = get_edition(self.edition)
        return as_rgb(loaded) if edition.by_corruption else super().prepare(edition.prepared(loaded))

    def complete(self, prepared: Rgb) -> Rgb:
        """Return the result of `prepare` after the rest of the edition's preparation."""
        edition = get_edition(self.edition)
        return edition.prepared(prepared) if edition.by_corruption else prepared

    def cite(self, variants: Iterable[Variant]) -> str:
        """Return the publications that the corruptions of `variants` come from."""
        corruptions = [self.bind(variant).operation for variant in variants if variant.name != CLEAN]
        return " ".join(dict.fromkeys(get_family(corruption).citation for corruption in corruptions))

    def make(self, variant: Variant, key: str, prepared: Rgb, shared: dict[str, Any] | None = None) -> Rgb:
        """Return the corrupted image: uint8 (H, W, 3)."""
        if variant.name == CLEAN:
            return self.complete(prepared)
        bound, rng = self.bind(variant), self.open_stream(variant, key)
        operation, edition = bound.operation, bound.edition
        shared = {} if shared is None else shared
        if not edition.by_corruption:
            if min(prepared.shape[:2]) < operation.smallest_side:
                _check_side(prepared, operation.smallest_side)
            given = self._give(operation, key, edition.prepared, shared)
            return as_rgb(bound.apply(prepared, rng, shared, given))
        preparation = operation.preparation(bound.parameters_for(prepared))
        if (place := f"{preparation.resize}/{preparation.crop}") not in shared:
            shared[place] = preparation.prepare(prepared)
        given = self._give(operation, key, preparation.step, shared)
        return as_rgb(preparation.complete(bound.apply(shared[place], rng, shared, given)))

    def _give(
        self, operation: Corruption, key: str, preparation: PreparationStep, shared: dict[str, Any]
    ) -> Any:
        """Return what `operation` needs beside the image `key`; None for nothing or for the installed."""
        if operation.needs is None or operation.needs.name not in self.ingredients:
            return None
        name = operation.needs.name
        if (place := f"{name} for {preparation}") not in shared:
            shared[place] = self.ingredients[name].provide(key, preparation)
        return shared[place]

    def _describe(self, bound: BoundCorruption, parameters: Any) -> dict[str, Any]:
        constants = super()._describe(bound, parameters)
        needs = bound.operation.needs.name if bound.operation.needs else ""
        if needs in self.ingredients and (content := self.ingredients[needs].describe(parameters)):
            constants[needs] = content
        return constants


@dataclass(frozen=True)
class ClipRecipe(CorruptionRecipe):
    """Recipe of ImageNet-C on clips: each clip has one random stream, and its frames are computed on demand.

    Attributes
    ----------
    temporal : {"clip", "frame"}
        Whether all frames share draws that last, such as fog; "frame" draws everything afresh in each frame,
        except for corruptions that were published for clips.
    """

    temporal: Temporal = "clip"

    benchmark = CLIPS_C
    title: ClassVar[str] = CLIPS_C.title
    noun: ClassVar[str] = CLIPS_C.noun
    takes: ClassVar[Collection[Medium]] = (CLIP,)
    images_at_once = 1
    # All frames have one size, and are decoded on demand.
    keeps_size = False

    def prepare(self, loaded: Clip) -> Clip:  # type: ignore[override]
        """Return the clip with its frames as the edition prepares them."""
        if get_edition(self.edition).keeps_size:
            held = loaded.hold()
            super().prepare(next(iter(held)))
            return held
        frames = Repeatable(partial(map, super().prepare, loaded))
        # The file of the source has other frames than these.
        return replace(loaded, frames=frames, data=b"").hold()

    def make(  # type: ignore[override]
        self, variant: Variant, key: str, prepared: Clip, shared: dict[str, Any] | None = None
    ) -> Clip:
        """Return the corrupted clip, whose frames are computed on demand."""
        if variant.name == CLEAN:
            return replace(prepared, data=b"")
        bound, rng = self.bind(variant), self.open_stream(variant, key)
        _check_side(next(iter(prepared)), bound.operation.smallest_side)
        given = self._give(bound.operation, key, bound.edition.prepared, {} if shared is None else shared)
        family = get_family(bound.operation)
        temporal = "clip" if family.edition in CLIP_SETS else self.temporal
        return bound.apply_to_clip(prepared, rng, given, temporal)

    def note(self, made: Clip) -> Mapping[str, Any]:
        """Return what an encoder or a lossy link did to the clip."""
        return made.notes

    def describe_notes(self, notes: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """Yield a remark for each variant in which no byte or datagram of some clips was hit."""
        every, spared = Counter[str](), Counter[str]()
        for note in notes:
            every[note["variant"]] += 1
            spared[note["variant"]] += 0 in (note.get("changed_bytes"), note.get("lost_datagrams"))
        for folder, count in sorted((+spared).items()):
            what = f"{count} of {format_count(every[folder], 'clip')}"
            yield f"{folder}: {what} came out unharmed, as their streams are short (notes.jsonl)"

    def settings(self, variants: tuple[Variant, ...]) -> dict[str, Any]:
        """Return the settings of the set of images, and what the frames of a clip share."""
        return super().settings(variants) | {"temporal": self.temporal}

    def versions(self) -> dict[str, str]:
        """Return the versions of PyAV and of the video encoders."""
        from robustgen.pixels.imaging import codecs

        return {"video": codecs.build()}


@dataclass(frozen=True)
class PerturbationRecipe(BenchmarkRecipe[BoundPerturbation]):
    """Recipe of ImageNet-P: a sequence of frames for each perturbation, from the raw image."""

    benchmark = IMAGENET_P
    title: ClassVar[str] = IMAGENET_P.title
    noun: ClassVar[str] = IMAGENET_P.noun
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
        return self.bind(variant).apply(prepared, self.open_stream(variant, key))

    def stream(self, variant: Variant, key: str, prepared: Rgb) -> Iterator[Rgb]:
        """Yield the frames of `make` one by one, because those of a large photograph would fill memory."""
        return self.bind(variant).frames(prepared, self.open_stream(variant, key))


RECIPES: Final[Mapping[Kind, Mapping[Medium, type[BenchmarkRecipe[Any]]]]] = MappingProxyType(
    {"c": {IMAGE: CorruptionRecipe, CLIP: ClipRecipe}, "p": {IMAGE: PerturbationRecipe}}
)


# --- one corrupted copy of each image ------------------------------------------------------------


MIXED: Final = Variant("mixed", 0, "mixed")
"""The variant of the corrupted copies."""


@dataclass(frozen=True)
class MixedRecipe(Recipe[Rgb]):
    """Recipe of one corrupted copy of each image: the image that a C set of the same seed has.

    Attributes
    ----------
    whole : CorruptionRecipe
        Recipe of the C set.
    drawn : tuple of Variant
        Variants that the copies are drawn from, with equal probability.
    """

    whole: CorruptionRecipe
    drawn: tuple[Variant, ...]

    title: ClassVar[str] = "ImageNet-C, mixed"

    @property
    def keeps_size(self) -> bool:
        """Return whether the edition keeps the size of images."""
        return self.whole.keeps_size

    def make_ready(self) -> None:
        """Store what the ingredients need where worker processes find it."""
        self.whole.make_ready()

    def prepare(self, loaded: Decoded) -> Rgb:
        """Return the image as the edition prepares it."""
        return self.whole.prepare(loaded)

    def draw(self, key: str) -> Variant:
        """Return the variant of the image `key`, which depends on no other image."""
        rng = item_rng(self.whole.seed, "c", self.whole.edition, MIXED.name, MIXED.level, key)
        return self.drawn[rng.integers(len(self.drawn))]

    def make(self, variant: Variant, key: str, prepared: Rgb, shared: dict[str, Any] | None = None) -> Rgb:
        """Return the clean image or its corrupted copy: uint8 (H, W, 3)."""
        own = variant if variant.name == CLEAN else self.draw(key)
        return self.whole.make(own, key, prepared, shared)

    def settings(self, variants: tuple[Variant, ...]) -> dict[str, Any]:
        """Return the settings of the C set, and the corruptions and severities that are drawn."""
        levels = groupby(self.drawn, lambda variant: variant.name)
        drawn = ", ".join(f"{name} {' '.join(str(each.level) for each in own)}" for name, own in levels)
        return self.whole.settings(self.drawn) | {"mixed": drawn}

    def list_companions(self, list_all: Callable[[], SetListing], writer: Writer) -> Mapping[str, bytes]:
        """Return the list of the copies, ``mixed.jsonl``: JSON lines in the order of the source."""
        listing = list_all()
        failed = {key for key, folder in listing.failed() if folder in ("", MIXED.folder)}
        lines = (self._describe(key, listing, writer) for key in listing.keys if key not in failed)
        return {f"{MIXED.folder}.jsonl": "".join(f"{json.dumps(line)}\n" for line in lines).encode()}

    def _describe(self, key: str, listing: SetListing, writer: Writer) -> dict[str, Any]:
        drawn = self.draw(key)
        return {
            "file": MIXED.path(writer.output_name(key) or key),
            "key": key,
            "corruption": drawn.name,
            "severity": drawn.level,
            "label": listing.label(key),
        }


def mix(recipe: CorruptionRecipe, variants: tuple[Variant, ...]) -> tuple[MixedRecipe, tuple[Variant, ...]]:
    """Return the recipe of one copy of each image, drawn from `variants`, and the variants of the set.

    The order of the corruptions decides nothing.
    """
    drawn = tuple(sorted(variant for variant in variants if variant != CLEAN_VARIANT))
    clean = (CLEAN_VARIANT,) if CLEAN_VARIANT in variants else ()
    return MixedRecipe(recipe, drawn), (*clean, MIXED)
