"""Subject of `robustgen preview`: an image, and the pixels that make-c or make-p would make of it."""

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robustgen.benchmark import BENCHMARKS, CLEAN, Kind, Variant
from robustgen.dataset.config import Config
from robustgen.dataset.plan import Plan, plan_benchmark
from robustgen.dataset.recipes import BenchmarkRecipe, CorruptionRecipe, Recipe
from robustgen.errors import (
    ConfigError,
    ImageError,
    MissingDependencyError,
    OutputError,
    SourceError,
    explain_failure,
)
from robustgen.imaging.decode import decode
from robustgen.imaging.pixels import Rgb
from robustgen.registry import CATEGORIES
from robustgen.storage import is_url


@dataclass(frozen=True)
class Subject:
    """The image that is shown, and what is made of it.

    Attributes
    ----------
    kind : {"c", "p"}
    recipe : Recipe
    arms : tuple of Variant
        Of corruptions or perturbations, without the clean one, category by category.
    key : str
        The image's key, which decides its random streams.
    image : uint8 ndarray of shape (H, W, 3)
        As the recipe prepares it for corruptions, raw for perturbations.
    clean : uint8 ndarray of shape (H, W, 3)
        Of corruptions, what is compared with the corrupted images.
    edition : str
    seed : int
    """

    kind: Kind
    recipe: Recipe[Rgb]
    arms: tuple[Variant, ...]
    key: str
    image: Rgb
    clean: Rgb
    edition: str
    seed: int
    _shared: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def make(self, arm: Variant) -> Rgb:
        """Return what make-c or make-p would write for `arm`, before encoding: (H, W, 3) or (T, H, W, 3).

        Raises
        ------
        ImageError
            It cannot be made of this image.
        """
        try:
            return self.recipe.make(arm, self.key, self.image, self._shared)
        except MissingDependencyError:
            raise
        except Exception as error:
            raise ImageError(f"{self.key!r}: {arm.folder}: {explain_failure(error)}") from error

    @property
    def note(self) -> str:
        """Return what a sheet says of itself at the bottom."""
        return f"{self.key} · {self.edition} · seed {self.seed}"

    def category(self, arm: Variant) -> str:
        """Return the category of the corruption or perturbation of `arm`."""
        return BENCHMARKS[self.kind].operations[arm.name].category


def open_from_source(config: Config, kind: Kind, index: int, output: Path) -> Subject:
    """Return the image at `index`, from 0, among those that make-c or make-p would take.

    Raises
    ------
    SourceError, ConfigError, OutputError
        There is no such image, or the sheet at `output` would lie among the images.
    ImageError
        It cannot be read, or is too small for the edition.
    """
    plan = _plan(config, kind, output)
    if not 0 <= index < len(plan.keys):
        raise ConfigError(f"--index {index}: the images have the numbers 0 to {len(plan.keys) - 1}")
    key = plan.keys[index]
    return _subject(config, kind, plan, key, plan.source.load(key))


def open_from_file(path: Path, config: Config, kind: Kind, output: Path) -> Subject:
    """Return the image at `path`, whose key is ``<name of its folder>/<its own name>``.

    Of a data set whose images lie in class folders, that is the key which make-c and make-p give it.

    Raises
    ------
    SourceError, OutputError
        There is no such file, or `output` is the same.
    ImageError
        It cannot be read, or is too small for the edition.
    """
    with suppress(OSError):
        if path.samefile(output):
            raise OutputError(f"--output {output}: is the image itself")
    if not path.is_file():
        hint = "is a folder; --source shows an image of it" if path.is_dir() else "not a regular file"
        raise SourceError(f"{path}: {'no such file' if not path.exists() else hint}")
    if config.depth_maps:
        raise ConfigError("--depth goes with --source, whose images it is the depth of")
    own = Path(path.absolute().parent.name) / path.name
    nowhere = {"source": None, "source_kind": "demo", "labels": None, "subset": None, "limit": None}
    plan = _plan(config.model_copy(update=nowhere), kind, output)
    return _subject(config, kind, plan, own.as_posix(), decode(path))


def _plan(config: Config, kind: Kind, output: Path) -> Plan:
    # The folder of the sheet takes the place of that of the files; PNG frames ask for nothing beforehand.
    folder = output.absolute().parent
    source = config.source and not is_url(config.source) and Path(config.source).resolve()
    around = config.source is None or (source and folder.resolve() in source.parents)
    if around and folder.is_dir():
        # Files may not lie around their source, a sheet may; and scikit-image often lies in a .venv below.
        folder /= f"{output.name}.files"
    changed = {"output": str(folder), "format": "png", "mirror": None}
    return plan_benchmark(config.model_copy(update=changed), kind, overwrite=True)


def _subject(config: Config, kind: Kind, plan: Plan, key: str, source: Rgb) -> Subject:
    try:
        image = plan.recipe.prepare(source)
    except ImageError as error:
        raise ImageError(f"{key!r}: {error}") from error
    known = BENCHMARKS[kind].operations
    arms = [arm for arm in plan.arms if arm.name != CLEAN]
    arms.sort(key=lambda arm: CATEGORIES.index(known[arm.name].category))
    assert isinstance(plan.recipe, BenchmarkRecipe)
    clean = plan.recipe.complete(image) if isinstance(plan.recipe, CorruptionRecipe) else image
    return Subject(kind, plan.recipe, tuple(arms), key, image, clean, config.edition, config.seed)
