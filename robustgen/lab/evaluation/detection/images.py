"""The corrupted images for detectors: those that make-c would write, as a reader reads them."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import tee
from pathlib import Path, PurePosixPath
from typing import Any

from robustgen.errors import ConfigError, ImageError, MissingDependencyError, SourceError, explain_failure
from robustgen.lab.evaluation.detection.reading import Annotations
from robustgen.lab.evaluation.processes import map_files
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.sets.dataset.manifest import source_digest
from robustgen.sets.dataset.plan import Plan, plan_benchmark
from robustgen.sets.executors import count_cores
from robustgen.settings.config import Config

# Settings that decide pixels, besides those in the settings of any run; the last one is for constants.
_CHOICES = ("libjpeg", "motion_blur", "parameters")
# Pixels that a worker returns at once.
_MOST_BYTES = 128 << 20


@dataclass(frozen=True)
class CorruptedImages:
    """The images of an annotation file in all variants.

    Attributes
    ----------
    plan : Plan
    keys : dict of int to str
        Image id to source image.
    sizes : dict of int to (int, int)
        Height and width according to the annotations.
    """

    plan: Plan
    keys: dict[int, str]
    sizes: dict[int, tuple[int, int]]

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Return the variants: the clean images, if wanted, and every corruption at every severity."""
        return self.plan.variants

    def settings(self) -> dict[str, Any]:
        """Return everything that decides the pixels of all variants, so that variants can be added."""
        plan = self.plan
        found = {**plan.settings()} | {name: plan.choices.get(name) for name in _CHOICES}
        return found | {"source": source_digest({key: plan.source.size(key) for key in self.keys.values()})}

    def __call__(self, wanted: tuple[int, Sequence[Variant]]) -> list[Rgb]:
        """Read an image, by its id, and return it in some variants, as a reader of the set would get it.

        Raises
        ------
        ImageError, SourceError
            The image fails, or its size differs from the annotations.
        """
        image, variants = wanted
        key, recipe, shared = self.keys[image], self.plan.recipe, dict[str, Any]()
        try:
            prepared = recipe.prepare(self.plan.source.open(key))
            as_read = self.plan.writer.encoder.as_read
            made = [as_read(each, key, recipe.make(each, key, prepared, shared)) for each in variants]
        except MissingDependencyError:
            raise
        except Exception as error:
            raise ImageError(explain_failure(error, key), key) from error
        height, width = self.sizes[image]
        for each in made:
            if each.shape[:2] != (height, width):
                own = f"{each.shape[1]} x {each.shape[0]}"
                raise SourceError(f"{key!r}: is {own} pixels, where the annotations have {width} x {height}")
        return made

    def stream(
        self, wanted: Iterable[tuple[str, int, Sequence[Variant]]]
    ) -> Iterator[tuple[str, int, Variant, Rgb]]:
        """Yield a unit, an image of it, a variant and the pixels, for all `wanted` variants of each image.

        Workers prepare some in advance. They read an image once, or again for every 128 MB of its variants.
        """
        pieces, ahead = tee(
            (unit, image, variants[start : start + step])
            for unit, image, variants in wanted
            for step in [max(1, _MOST_BYTES // (3 * math.prod(self.sizes[image])))]
            for start in range(0, len(variants), step)
        )
        made = map_files(self, (piece[1:] for piece in ahead), self.plan.jobs or count_cores())
        for pictures, (unit, image, variants) in zip(made, pieces, strict=True):
            for variant, pixels in zip(variants, pictures, strict=True):
                yield unit, image, variant, pixels


def open_images(config: Config, annotations: Annotations, output: Path) -> CorruptedImages:
    """Find the images of an annotation file in the source of `config`.

    If the config selects only some of the source's images, others may be missing.

    Raises
    ------
    SourceError
        The source lacks an image, or has two of one name.
    """
    if config.one_per_image:
        raise ConfigError("one_per_image: only make-c has it; evaluate uses all corruptions and severities")
    changed = {"output": str(output), "mirror": None, "require_classes": False}
    plan = plan_benchmark(config.model_copy(update=changed), "c", overwrite=True)
    by_name: dict[str, list[str]] = {}
    for key in plan.keys:
        by_name.setdefault(PurePosixPath(key).name, []).append(key)
    keys, missing = {}, []
    for each in annotations.content["images"]:
        name = PurePosixPath(str(each.get("file_name", "")))
        found = [key for key in by_name.get(name.name, []) if f"/{key}".endswith(f"/{name}")]
        if len(found) > 1:
            raise SourceError(f"{annotations.path}: {name} may be {found[0]} or {found[1]}")
        if found:
            keys[int(each["id"])] = found[0]
        else:
            missing.append(str(name))
    some = any(value is not None for value in (config.limit, config.sample, config.subset))
    if not keys or (missing and not some):
        count = f"{len(missing)} of {len(annotations.sizes)}"
        raise SourceError(
            f"{plan.source.location}: {count} images of {annotations.path} are missing, such as {missing[0]}"
        )
    refused = plan.refused.keys() & {*keys.values()}
    if refused:
        raise SourceError(f"{min(refused)!r}: {plan.refused[min(refused)]}")
    return CorruptedImages(plan, keys, {image: annotations.sizes[image] for image in keys})
