"""The corrupted images for detectors: those that make-c would write, as a reader reads them."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import tee
from pathlib import Path, PurePosixPath
from typing import Any

from robustgen.errors import ConfigError, ImageError, MissingDependencyError, SourceError, explain_failure
from robustgen.files.storage import AT_ONCE, open_store, prefetch
from robustgen.lab.evaluation.detection.reading import Annotations
from robustgen.lab.evaluation.processes import map_files
from robustgen.pixels.benchmarks.kinds import IMAGE, Variant, require
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.file_tags import turn_upright
from robustgen.sets.dataset.manifest import source_digest
from robustgen.sets.dataset.plan import Making, check_output
from robustgen.sets.dataset.planning import open_making
from robustgen.sets.dataset.unit_jobs import describe_orientations
from robustgen.sets.executors import count_cores
from robustgen.sets.sources.base import Items, map_keys
from robustgen.settings.config import Config

# Settings that decide pixels, besides those in the settings of any run; the last one is for constants.
_CHOICES = ("libjpeg", "parameters")
_FORMS = ("stored", "upright")
# Pixels that a worker returns at once.
_MOST_BYTES = 128 << 20


@dataclass(frozen=True)
class Orientations:
    """EXIF orientations of the images of an annotation file.

    Attributes
    ----------
    found : dict of int to int
        Image id to orientation, for all images that readers turn or mirror.
    upright : frozenset of int
        Ids of the images that detectors get so.
    rule : str
        What decides: "stored" or "upright", if the user has chosen, or else "as annotated", and one of these.
    """

    found: dict[int, int]
    upright: frozenset[int]
    rule: str

    def turn(self, image: int, pixels: Rgb) -> Rgb:
        """Return the `pixels` (H, W, 3) of an image as detectors get it."""
        return turn_upright(pixels, self.found[image]) if image in self.upright else pixels

    def describe(self, images: int) -> tuple[str, ...]:
        """Return a line about what detectors get, if any of so many images are concerned."""
        count = len(self.upright)
        split = f"detectors get {count} upright, {len(self.found) - count} as stored"
        way = "" if self.rule in _FORMS else "; --set orientation=stored or upright overrides"
        return describe_orientations(self.found.values(), images, split + way)


@dataclass(frozen=True)
class CorruptedImages:
    """The images of an annotation file in all variants.

    Attributes
    ----------
    making : Making
    keys : dict of int to str
        Image id to source image.
    sizes : dict of int to (int, int)
        Height and width according to the annotations.
    orientations : Orientations
    """

    making: Making
    keys: dict[int, str]
    sizes: dict[int, tuple[int, int]]
    orientations: Orientations

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Return the variants: the clean images, if wanted, and every corruption at every severity."""
        return self.making.variants

    @cached_property
    def identities(self) -> dict[str, str]:
        """Return source image to identity."""
        source, keys = self.making.source, [*self.keys.values()]
        return dict(zip(keys, map_keys(source.location, source.identify, keys, source.size), strict=True))

    def settings(self) -> dict[str, Any]:
        """Return everything that decides the pixels of all variants, so that variants can be added."""
        making = self.making
        found = {**making.settings()} | {name: making.choices.get(name) for name in _CHOICES}
        found |= {"source": source_digest({key: making.source.size(key) for key in self.keys.values()})}
        return found | ({"orientation": self.orientations.rule} if self.orientations.found else {})

    def __call__(self, wanted: tuple[int, Sequence[Variant]]) -> list[Rgb]:
        """Read an image, by its id, and return it in some variants, as a reader of the set would get it.

        Raises
        ------
        ImageError, SourceError
            The image fails, or its size differs from the annotations.
        """
        image, variants = wanted
        key, recipe, shared = self.keys[image], self.making.recipe, dict[str, Any]()
        try:
            prepared = recipe.prepare(self.making.source.open(key))
            as_read = self.making.writer.encoder.as_read
            made = [as_read(each, key, recipe.make(each, key, prepared, shared)) for each in variants]
            # Comes last, so that the pixels are those of make-c.
            made = [self.orientations.turn(image, each) for each in made]
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
        made = map_files(self, (piece[1:] for piece in ahead), self.making.jobs or count_cores())
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
    store = open_store(output)
    making = open_making(config.of_separate_images(require_classes=False), "c", output=store)
    check_output(store, making.source)
    require(making.source.medium, (IMAGE,), "evaluate --annotations")
    keys, missing = dict[int, str](), list[str]()
    for image, name, found in _match(annotations, making.keys):
        if len(found) > 1:
            raise SourceError(f"{annotations.path}: {name} may be {found[0]} or {found[1]}")
        if found:
            keys[image] = found[0]
        else:
            missing.append(name)
    some = any(value is not None for value in (config.limit, config.sample, config.subset))
    if not keys or (missing and not some):
        location, count = making.source.location, f"{len(missing)} of {len(annotations.sizes)}"
        raise SourceError(f"{location}: {count} images of {annotations.path} are missing: {missing[0]}")
    refused = making.refused.keys() & {*keys.values()}
    if refused:
        raise SourceError(f"{min(refused)!r}: {making.refused[min(refused)]}")
    sizes = {image: annotations.sizes[image] for image in keys}
    return CorruptedImages(making, keys, sizes, _find_orientations(config, annotations, making.source, keys))


def _match(annotations: Annotations, keys: Iterable[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Yield id and name of each image of an annotation file, and which of the `keys` it may be."""
    by_name = defaultdict[str, list[str]](list)
    for key in keys:
        by_name[PurePosixPath(key).name].append(key)
    for each in annotations.content["images"]:
        name = PurePosixPath(str(each.get("file_name", "")))
        named = by_name.get(name.name, ())
        yield int(each["id"]), str(name), [key for key in named if f"/{key}".endswith(f"/{name}")]


# --- orientation ---------------------------------------------------------------------------------


def _find_orientations(
    config: Config, annotations: Annotations, source: Items[Any], keys: Mapping[int, str]
) -> Orientations:
    """Return which images detectors get upright: those whose annotations have the size of the turned image.

    If both sizes fit, as for squares and images that are upside down, other images of the annotation file
    decide, if they agree.
    """

    def read(chosen: Mapping[int, str]) -> Iterator[tuple[int, int, frozenset[str]]]:
        """Yield id and orientation of each image that has one, and which of its forms have the right size."""
        headers = prefetch(partial(_try_header, source), chosen.values(), AT_ONCE)
        for image, (width, height, orientation) in zip(chosen, headers, strict=True):
            stored, turned = (height, width), (width, height)
            sizes = zip(_FORMS, (stored, turned if orientation >= 5 else stored), strict=True)
            if orientation > 1:
                fitting = (form for form, size in sizes if size == annotations.sizes[image])
                yield image, orientation, frozenset(fitting)

    tagged = [*read(keys)]
    found = {image: orientation for image, orientation, _ in tagged}
    if given := config.orientation:
        for image, _, fitting in tagged:
            if fitting and given not in fitting:
                (other,) = fitting
                raise SourceError(f"{keys[image]!r}: annotated as {other}: omit orientation={given}")
        return Orientations(found, frozenset(found if given == "upright" else ()), given)
    usual = "upright"
    if any(len(fitting) == 2 for *_, fitting in tagged):
        matches = _match(annotations, source.keys())
        others = {image: found[0] for image, _, found in matches if image not in keys and len(found) == 1}
        votes = {fitting for *_, fitting in (*tagged, *read(others)) if len(fitting) == 1}
        usual = "stored" if votes == {frozenset({"stored"})} else "upright"
    fits = {image: fitting if len(fitting) == 1 else {usual} for image, _, fitting in tagged}
    upright = frozenset(image for image, fitting in fits.items() if "upright" in fitting)
    return Orientations(found, upright, f"as annotated, or {usual}")


def _try_header(source: Items[Any], key: str) -> tuple[int, int, int]:
    """Return width, height and orientation of an image; zeros for a damaged one, which fails later."""
    with suppress(ImageError):
        width, height, tags = source.read_header(key)
        return width, height, tags.orientation
    return 0, 0, 0
