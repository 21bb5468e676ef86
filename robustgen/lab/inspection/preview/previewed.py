"""Image of `robustgen preview`, and the pixels that make-c or make-p would create from it."""

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robustgen.errors import (
    ConfigError,
    ImageError,
    MissingDependencyError,
    OutputError,
    SourceError,
    explain_failure,
)
from robustgen.files.storage import is_url
from robustgen.pixels.benchmarks.kinds import BENCHMARKS, CLEAN, Kind, Variant
from robustgen.pixels.benchmarks.registry import CATEGORIES
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.sets.dataset.plan import Plan, plan_benchmark
from robustgen.sets.dataset.recipes import BenchmarkRecipe, CorruptionRecipe, Recipe
from robustgen.sets.ingredients.opening import find_fitting
from robustgen.sets.sources.base import Options, Source
from robustgen.sets.sources.folder import OneImage
from robustgen.sets.sources.places import find_place
from robustgen.settings.config import Config


@dataclass(frozen=True)
class Previewed:
    """The shown image, and its outputs.

    Attributes
    ----------
    kind : {"c", "p"}
    recipe : Recipe
    variants : tuple of Variant
        Variants of corruptions or perturbations, without the clean one, by category.
    key : str
        The image's key, which decides its random streams.
    image : uint8 ndarray of shape (H, W, 3)
        Prepared by the recipe for corruptions, raw for perturbations.
    clean : uint8 ndarray of shape (H, W, 3)
        For corruptions, the image that corrupted ones are compared with.
    edition : str
    seed : int
    """

    kind: Kind
    recipe: Recipe[Rgb]
    variants: tuple[Variant, ...]
    key: str
    image: Rgb
    clean: Rgb
    edition: str
    seed: int
    _shared: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def make(self, variant: Variant) -> Rgb:
        """Return the pixels that make-c or make-p would encode for `variant`: (H, W, 3) or (T, H, W, 3).

        Raises
        ------
        ImageError
            The variant of this image failed.
        """
        try:
            return self.recipe.make(variant, self.key, self.image, self._shared)
        except MissingDependencyError:
            raise
        except Exception as error:
            raise ImageError(f"{variant.folder}: {explain_failure(error, self.key)}", self.key) from error

    @property
    def note(self) -> str:
        """Return the note at the bottom of a sheet."""
        return f"{self.key} · {self.edition} · seed {self.seed}"

    def category(self, variant: Variant) -> str:
        """Return the category of the corruption or perturbation of `variant`."""
        return BENCHMARKS[self.kind].operations[variant.name].category


def open_from_source(config: Config, kind: Kind, index: int, output: Path) -> Previewed:
    """Return the image at `index`, from 0, of the images that make-c or make-p would use.

    Raises
    ------
    SourceError, ConfigError, OutputError
        There is no such image, or the sheet at `output` would be among the images.
    ImageError
        The image cannot be read, or is too small for the edition.
    """
    plan = _plan(config, kind, output)
    if not 0 <= index < len(plan.keys):
        raise ConfigError(f"--index {index}: must be from 0 to {len(plan.keys) - 1}")
    return _prepare(config, kind, plan, index)


def open_from_file(path: Path, config: Config, kind: Kind, output: Path) -> Previewed:
    """Return the image at `path`, whose key is ``<name of its folder>/<its own name>``.

    For an image in a class folder, that is the key in make-c and make-p.

    Raises
    ------
    SourceError, OutputError
        The file does not exist, or `output` is the same file.
    ImageError
        The image cannot be read, or is too small for the edition.
    """
    with suppress(OSError):
        if path.samefile(output):
            raise OutputError(f"--output {output}: is the image itself")
    if not path.is_file():
        hint = "is a folder; --source shows an image of it" if path.is_dir() else "not a regular file"
        raise SourceError(f"{path}: {'no such file' if not path.exists() else hint}")
    recipe = CorruptionRecipe(config.edition)
    if kind == "c" and (needed := find_fitting(recipe, config.variants(kind))):
        raise ConfigError(f"--with {needed.name} needs --source: {needed.sentence}")
    nowhere = dict.fromkeys(("source", "labels", "subset", "sample", "limit")) | {"require_classes": False}
    own = f"{path.absolute().parent.name}/{path.name}"
    image = OneImage(find_place(path), Options(libjpeg=config.libjpeg, levels=config.levels), own)
    plan = _plan(config.model_copy(update=nowhere), kind, output, image)
    return _prepare(config, kind, plan)


def _plan(config: Config, kind: Kind, output: Path, image: Source | None = None) -> Plan:
    # The folder of the sheet replaces the output folder; PNG frames need no checks in advance.
    folder = output.absolute().parent
    source = config.source and not is_url(config.source) and Path(config.source).resolve()
    around = config.source is None or (source and folder.resolve() in source.parents)
    if around and folder.is_dir():
        # A sheet may be next to its source, unlike an output; scikit-image is often in a .venv below.
        folder /= f"{output.name}.files"
    needs_classes = config.require_classes and not config.mirror
    changed = {
        "output": str(folder),
        "format": "png",
        "mirror": None,
        "one_per_image": False,
        "require_classes": needs_classes,
    }
    return plan_benchmark(config.model_copy(update=changed), kind, overwrite=True, source=image)


def _prepare(config: Config, kind: Kind, plan: Plan, index: int = 0) -> Previewed:
    key = plan.keys[index]
    source = plan.source.open(key)
    try:
        image = plan.recipe.prepare(source)
    except ImageError as error:
        raise ImageError(str(error), key) from error
    known = BENCHMARKS[kind].operations
    variants = [variant for variant in plan.variants if variant.name != CLEAN]
    variants.sort(key=lambda variant: CATEGORIES.index(known[variant.name].category))
    assert isinstance(plan.recipe, BenchmarkRecipe)
    clean = plan.recipe.complete(image) if isinstance(plan.recipe, CorruptionRecipe) else image
    return Previewed(kind, plan.recipe, tuple(variants), key, image, clean, config.edition, config.seed)
