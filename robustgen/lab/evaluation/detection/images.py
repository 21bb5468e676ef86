"""The corrupted images for detectors: those that make-c would write, as a reader reads them.

No other module of the package knows how images are created.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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

    def __call__(self, wanted: tuple[Variant, int]) -> Rgb:
        """Return the image of a variant, by its id, as a reader of the set would get it.

        Raises
        ------
        ImageError, SourceError
            The image fails, or its size differs from the annotations.
        """
        variant, image = wanted
        key, plan = self.keys[image], self.plan
        try:
            prepared = plan.recipe.prepare(plan.source.open(key))
            read: Rgb = plan.writer.encoder.as_read(
                variant, key, plan.recipe.make(variant, key, prepared, {})
            )
        except MissingDependencyError:
            raise
        except Exception as error:
            raise ImageError(explain_failure(error, key), key) from error
        if read.shape[:2] != self.sizes[image]:
            height, width = self.sizes[image]
            own = f"{read.shape[1]} x {read.shape[0]}"
            raise SourceError(f"{key!r}: is {own} pixels, where the annotations have {width} x {height}")
        return read

    def stream(self, variants: Sequence[Variant]) -> Iterator[tuple[Variant, int, Rgb]]:
        """Yield all images of some variants, one variant after another; workers prepare some in advance."""
        wanted = [(variant, image) for variant in variants for image in self.keys]
        made = map_files(self, wanted, self.plan.jobs or count_cores())
        for (variant, image), pixels in zip(wanted, made, strict=True):
            yield variant, image, pixels


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
