"""`robustgen make-augmix`: several AugMix copies of every training image."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from robustgen.benchmarks.editions import get_edition
from robustgen.benchmarks.kinds import Variant
from robustgen.dataset.plan import Plan, assemble_plan
from robustgen.dataset.recipes import Recipe, item_rng
from robustgen.dataset.selection import open_chosen_source, select_keys
from robustgen.dataset.state import OutputState
from robustgen.errors import ArgumentError, ConfigError, SourceError
from robustgen.files.storage import open_store
from robustgen.formats import TreeWriter
from robustgen.formats.jpeg import JpegEncoder
from robustgen.imaging.pixels import Decoded, Rgb
from robustgen.related.augmentation import TITLE
from robustgen.related.augmentation.augmix import ALPHAS, LOWEST_LEVEL, MOST, TOP_LEVEL, AugMix, augmix
from robustgen.settings import config
from robustgen.settings.config import Whole
from robustgen.sources.base import Source
from robustgen.sources.numbered import NumberedSource
from robustgen.sources.tiny_imagenet import TinyImageNet

MOST_COPIES = 1000
CITATION = (
    "Dan Hendrycks, Norman Mu, Ekin D. Cubuk, Barret Zoph, Justin Gilmer and Balaji Lakshminarayanan: "
    "AugMix: A Simple Data Processing Method to Improve Robustness and Uncertainty. International "
    "Conference on Learning Representations, 2020."
)
LICENCE = "The images derive from the source images and remain under their terms."


# --- choices -------------------------------------------------------------------------------------


def _check_depth(depth: int) -> int:
    if depth != -1 and not 1 <= depth <= MOST:
        raise ArgumentError(f"must be -1 or 1 to {MOST}, not {depth}")
    return depth


class AugMixChoices(config.Choices):
    """The settings of a run of `make-augmix`."""

    edition: config.EditionName = Field("folder", description="preparation of the images")
    quality: Annotated[Whole, Field(ge=1, le=95)] = Field(85, description="of the JPEG files")
    copies: Annotated[Whole, Field(ge=1, le=MOST_COPIES)] = Field(2, description="of every image")
    severity: float = Field(
        3.0, ge=LOWEST_LEVEL, le=TOP_LEVEL, allow_inf_nan=False, description="of the operations at most"
    )
    width: Annotated[Whole, Field(ge=1, le=MOST)] = Field(3, description="number of chains")
    depth: Annotated[Whole, AfterValidator(_check_depth)] = Field(
        -1, description="operations in each chain; -1: 1 to 3"
    )
    alpha: float = Field(
        1.0,
        ge=ALPHAS[0],
        le=ALPHAS[1],
        allow_inf_nan=False,
        description="of the distributions of the weights",
    )
    operations: Literal["augmix", "all"] = Field("augmix", description="all: also those near to ImageNet-C")


class _File(config.Config, AugMixChoices):
    """Keys that a YAML file may contain; those of `make-c` and `make-p` are ignored."""


def load_choices(path: Path | None, flags: dict[str, Any]) -> AugMixChoices:
    """Read and check the config at `path`; the command line's `flags` override it.

    Raises
    ------
    ConfigError
        One line that names the file or the flag, the key and what is wrong.
    """
    everything = config.load_as(_File, path, flags)
    return AugMixChoices(**everything.model_dump(include=set(AugMixChoices.model_fields)))


# --- the recipe and the plan ---------------------------------------------------------------------


@dataclass(frozen=True)
class AugMixRecipe(Recipe[Rgb]):
    """Copies with different random streams.

    Attributes
    ----------
    parameters : AugMix
    edition : str
        Edition that prepares the images.
    seed : int
    """

    parameters: AugMix
    edition: str = "folder"
    seed: int = 0

    title = TITLE

    def prepare(self, loaded: Decoded) -> Rgb:
        """Return the image as the edition prepares it."""
        return get_edition(self.edition).prepared(loaded)

    def make(self, arm: Variant, key: str, prepared: Rgb, shared: dict[str, Any] | None = None) -> Rgb:
        """Create one copy, uint8 (H, W, 3)."""
        rng = item_rng(self.seed, "augmix", self.edition, arm.name, arm.level, key)
        return augmix(prepared, self.parameters, rng)

    def settings(self, arms: tuple[Variant, ...]) -> dict[str, Any]:
        """Return edition, seed and the parameters, which are the same for all copies."""
        parameters = asdict(self.parameters)
        return {
            "kind": "augmix",
            "edition": self.edition,
            "seed": self.seed,
            "parameters": {arm.folder: parameters for arm in arms},
        }


def copy_arms(count: int) -> tuple[Variant, ...]:
    """Return one arm for each copy, counted from 1."""
    return tuple(Variant("augmix", copy, f"augmix/{copy}") for copy in range(1, count + 1))


def plan_copies(choices: AugMixChoices) -> Plan:
    """Return the plan of an augmented training set.

    Raises
    ------
    ConfigError, SourceError, OutputError
        The settings or the source are invalid; the message names the key.
    """
    store = open_store(choices.resolve_output("augmix"))
    source = open_chosen_source(choices, OutputState(store).index_place)
    _check_training(source)
    parameters = AugMix(choices.severity, choices.width, choices.depth, choices.alpha, choices.operations)
    recipe = AugMixRecipe(parameters, choices.edition, choices.seed)
    keys, arms = select_keys(source, choices), copy_arms(choices.copies)
    writer = TreeWriter(JpegEncoder(choices.quality))
    return assemble_plan(
        recipe, source, keys, arms, writer, store, choices, citation=CITATION, licence=LICENCE
    )


def refuse_scored_source(dataset: str | None, choices: AugMixChoices, source: str | None) -> None:
    """Refuse the source of a built-in config, because models are scored on it.

    Raises
    ------
    ConfigError
    """
    if dataset and source is None and choices.source is not None:
        raise ConfigError(f"--dataset {dataset} names test images; give the training images with --source")


def _check_training(source: Source) -> None:
    # Nobody should train by accident on a test split.
    if isinstance(source, NumberedSource):
        raise SourceError(
            f"{source.location}: has no class folders, which the copies need; augment the training "
            "images while loading them, with robustgen.torch.AugMixDataset"
        )
    if isinstance(source, TinyImageNet) and source.split != "train":
        raise SourceError(
            f"{source.location}: the validation images of Tiny ImageNet are for tests; give --split train"
        )
