"""Binding: an operation at one level, with its edition and constants, ready for any number of images.

    bound = bind("imagenet", "fog", 3)
    corrupted = bound.apply(prepared, rng)

Everything that writes, shows, streams or measures a corruption or perturbation binds it here.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, overload

import numpy as np

from robustgen.errors import ArgumentError
from robustgen.pixels.benchmarks.corruptions import get_corruption
from robustgen.pixels.benchmarks.editions import Edition, check_scale, get_edition, scale_by_side
from robustgen.pixels.benchmarks.parameters import check_parameter, replace_parameters
from robustgen.pixels.benchmarks.registry import (
    Corruption,
    Operation,
    Perturbation,
    Scale,
    Temporal,
    get_known,
)
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import as_grey
from robustgen.pixels.imaging.frames import Clip, peek
from robustgen.pixels.imaging.geometry import blacken_gap
from robustgen.pixels.imaging.rng import repeat_draws

Overrides = Mapping[str, Mapping[Any, Mapping[str, Any]]]
"""A user's own constants: operation to level to parameter to value."""

AS_IT_IS = "folder"


@dataclass(frozen=True, eq=False)
class Bound:
    """An operation at one level, with everything that needs no image.

    Attributes
    ----------
    operation : Operation
    edition : Edition
    level : int or float
    scale : int or None
        Constants to use instead of the edition's.
    overrides : mapping of str to value, or None
        Parameters instead of the published constants.
    """

    operation: Operation
    edition: Edition
    level: float
    scale: int | None
    overrides: Any
    _known: dict[Scale, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def fixed_scale(self) -> Scale | None:
        """Return the scale for all images; None if it depends on the image size."""
        return self.scale or self.edition.fixed_scale(self.operation.table)

    def scale_for(self, image: Rgb) -> Scale:
        """Return the scale whose constants apply to `image`."""
        return self.fixed_scale or scale_by_side(min(image.shape[:2]), tuple(self.operation.table))

    def parameters(self, scale: Scale) -> Any:
        """Return the parameter object at `scale`, with overrides applied.

        Raises
        ------
        ArgumentTypeError, ArgumentError
            The level or an override does not exist, or nothing was published for the scale.
        """
        if scale not in self._known:
            published = self.operation.parameters(self.level, scale)
            self._known[scale] = replace_parameters(published, self.overrides, self.operation.name)
        return self._known[scale]

    def parameters_for(self, image: Rgb) -> Any:
        """Return the parameter object for `image`."""
        return self.parameters(self.scale_for(image))

    def any_parameters(self) -> Any:
        """Return the parameter object at the scale of all images, or at one of several."""
        return self.parameters(self.fixed_scale or next(iter(self.operation.table)))


@dataclass(frozen=True, eq=False)
class BoundCorruption(Bound):
    """A corruption at one severity."""

    operation: Corruption

    def apply(self, image: Rgb, rng: Any, shared: dict[str, Any] | None = None, given: Any = None) -> Rgb:
        """Return the corrupted `image`, which is prepared: uint8 (H, W, 3), or (H, W) in a grey edition.

        Parameters
        ----------
        image : uint8 ndarray
        rng : Generator, RandomState or None
            None for a corruption that draws nothing.
        shared, given
            As in `Corruption.apply`.
        """
        operation, parameters = self.operation, self.parameters_for(image)
        seen = as_grey(image) if operation.grey else image
        corrupted: Rgb = operation.apply(seen, parameters, rng, shared, given)
        if self.edition.leaves_gap and operation.name == "pixelate":
            blacken_gap(corrupted, parameters.fraction)
        return as_grey(corrupted) if self.edition.grey else corrupted

    def apply_to_clip(self, clip: Clip, rng: Any, given: Any = None, temporal: Temporal = "clip") -> Clip:
        """Return the corrupted `clip`, whose frames are prepared; its own are computed on demand.

        Parameters
        ----------
        clip : Clip
        rng : Generator, RandomState or None
            None for a corruption that draws nothing.
        given
            As in `Corruption.apply`, the same for all frames.
        temporal : {"clip", "frame"}
            "frame" draws afresh in every frame; "clip" does so only if the corruption is defined so.

        Raises
        ------
        ArgumentError
            The corruption needs something that fits one image, such as a depth map.
        """
        operation = self.operation
        if operation.needs and operation.needs.fits_image:
            raise ArgumentError(f"{operation.name} needs {operation.needs.name}; clips have none")
        if operation.over_time == "whole":
            changed: Clip = operation.function(clip, self.any_parameters(), rng)
            # Encoders keep all frames; others leave some out.
            return replace(changed, names=clip.names) if changed.data else changed
        return Clip(self._corrupt_frames(clip, rng, given, temporal), clip.rate, names=clip.names)

    def _corrupt_frames(
        self, frames: Iterable[Rgb], rng: Any, given: Any, temporal: Temporal
    ) -> Iterator[Rgb]:
        own = self.operation.over_time
        if callable(own) and temporal == "clip":
            first, frames = peek(frames)
            yield from own(frames, self.parameters_for(first), rng)
            return
        repeats = self.operation.once_per_run or (own, temporal) == ("clip", "clip")
        repeat = repeat_draws(rng) if repeats else None
        for number, frame in enumerate(frames):
            if repeat and number:
                repeat()
            yield self.apply(frame, rng, {}, given)


@dataclass(frozen=True, eq=False)
class BoundPerturbation(Bound):
    """A perturbation at one difficulty."""

    operation: Perturbation

    def frames(self, raw: Rgb, rng: Any) -> Iterator[Rgb]:
        """Yield the frames of a raw image, uint8 (H, W, 3), each computed on demand."""
        scale, edition = self.scale_for(raw), self.edition
        stage, parameters = self.operation.stage[scale], self.parameters(scale)
        return edition.finish(self.operation.frames(edition.at_stage(raw, stage), parameters, rng), stage)

    def apply(self, raw: Rgb, rng: Any) -> Rgb:
        """Return all frames of a raw image: uint8 (T, H, W, 3)."""
        return np.stack([*self.frames(raw, rng)])


@overload
def bind(
    edition: str | None,
    name: str,
    level: Any,
    kind: Literal["c"] = ...,
    *,
    scale: Any = ...,
    overrides: Any = ...,
) -> BoundCorruption: ...
@overload
def bind(
    edition: str | None, name: str, level: Any, kind: Literal["p"], *, scale: Any = ..., overrides: Any = ...
) -> BoundPerturbation: ...
def bind(
    edition: str | None,
    name: str,
    level: Any,
    kind: Literal["c", "p"] = "c",
    *,
    scale: Any = None,
    overrides: Any = None,
) -> Bound:
    """Return the operation `name` of an edition at `level`; its parameters are looked up on first use.

    Parameters
    ----------
    edition : str or None
        None for ``"folder"``, that of a photograph as it is.
    name : str
        A corruption, or for kind ``"p"`` a perturbation.
    level : int or float
    kind : {"c", "p"}
    scale : int, optional
        Constants to use instead of the edition's.
    overrides : mapping of str to value, optional
        Parameters instead of the published constants.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        Edition, operation or scale does not exist, or the edition has no perturbations.
    """
    row = get_edition(AS_IT_IS if edition is None else edition)
    if kind == "c":
        corruption = get_corruption(name, row.implementation)
        return BoundCorruption(corruption, row, level, check_scale(scale), overrides)
    from robustgen.pixels.benchmarks.perturbations import PERTURBATIONS

    perturbation: Perturbation = get_known("perturbation", name, PERTURBATIONS)
    row.check_perturbations()
    return BoundPerturbation(perturbation, row, level, check_scale(scale), overrides)


def check_overrides(overrides: Overrides) -> Overrides:
    """Return the parameters of corruptions, with whole numbers as int.

    Raises
    ------
    ArgumentError
        A corruption, level, parameter or value cannot be used; the message names the place.
    """
    checked: dict[str, dict[int, dict[str, Any]]] = {}
    for name, levels in overrides.items():
        operation = get_corruption(name)
        if not levels:
            raise ArgumentError(f"{name}: no severity given; write {name}: {{3: {{...}}}}")
        for given, values in levels.items():
            # YAML may give the level as a string.
            level = int(given) if isinstance(given, str) and given.isdecimal() else given
            is_whole = isinstance(level, int) and not isinstance(level, bool)
            if not is_whole or not (isinstance(values, Mapping) and values):
                wanted = f"name a severity from 1 to 5, as in {name}: {{3: {{...}}}}"
                raise ArgumentError(f"{name}.{given}: {wanted}")
            published = operation.parameters(level, next(iter(operation.table)))
            for parameter, value in values.items():
                place = f"{name}.{level}.{parameter}"
                constant = check_parameter(published, parameter, value, name, place)
                checked.setdefault(name, {}).setdefault(level, {})[parameter] = constant
    return checked
