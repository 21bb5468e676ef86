"""`robustgen make-augmix`: several AugMix copies of every training image."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from robustgen.errors import ConfigError, SourceError
from robustgen.files.storage import open_store
from robustgen.pixels.benchmarks.editions import get_edition
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging.arrays import Decoded, Rgb
from robustgen.pixels.imaging.augmix import AugMix, augmix
from robustgen.related.settings import AugMixChoices
from robustgen.sets.dataset.plan import Plan, assemble_plan
from robustgen.sets.dataset.recipes import Recipe, item_rng
from robustgen.sets.dataset.selection import (
    describe_chosen,
    describe_columns,
    open_chosen_source,
    select_keys,
)
from robustgen.sets.dataset.state import SetLedger
from robustgen.sets.formats.encoders import JpegEncoder
from robustgen.sets.formats.trees import TreeWriter
from robustgen.sets.sources.arrays import NumberedSource
from robustgen.sets.sources.imagenet import TinyImageNet
from robustgen.settings.yaml_files import config_folder

CITATION = (
    "Dan Hendrycks, Norman Mu, Ekin D. Cubuk, Barret Zoph, Justin Gilmer and Balaji Lakshminarayanan: "
    "AugMix: A Simple Data Processing Method to Improve Robustness and Uncertainty. International "
    "Conference on Learning Representations, 2020."
)


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

    title = "AugMix"

    def prepare(self, loaded: Decoded) -> Rgb:
        """Return the image as the edition prepares it."""
        return get_edition(self.edition).prepared(loaded)

    def make(self, variant: Variant, key: str, prepared: Rgb, shared: dict[str, Any] | None = None) -> Rgb:
        """Create one copy, uint8 (H, W, 3)."""
        rng = item_rng(self.seed, "augmix", self.edition, variant.name, variant.level, key)
        return augmix(prepared, self.parameters, rng)

    def settings(self, variants: tuple[Variant, ...]) -> dict[str, Any]:
        """Return edition, seed and the parameters, which are the same for all copies."""
        parameters = asdict(self.parameters)
        return {
            "recipe": "augmix",
            "edition": self.edition,
            "seed": self.seed,
            "parameters": {variant.folder: parameters for variant in variants},
        }


def plan_copies(choices: AugMixChoices) -> Plan:
    """Return the plan of an augmented training set.

    Raises
    ------
    ConfigError, SourceError, OutputError
        The settings or the source are invalid; the message names the key.
    """
    store = open_store(choices.resolve_output("augmix"))
    source = open_chosen_source(choices, SetLedger(store).index_place)
    # Nobody should train by accident on a test split.
    if isinstance(source, NumberedSource):
        raise SourceError(f"{source.location}: has no class folders; see robustgen.torch.AugMixDataset")
    if isinstance(source, TinyImageNet) and source.split != "train":
        raise SourceError(f"{source.location}: Tiny ImageNet's validation images; give --split train")
    parameters = AugMix(choices.severity, choices.width, choices.depth, choices.alpha, choices.operations)
    recipe = AugMixRecipe(parameters, choices.edition, choices.seed)
    keys, copies = select_keys(source, choices), range(1, choices.copies + 1)
    variants = tuple(Variant("augmix", copy, f"augmix/{copy}") for copy in copies)
    writer = TreeWriter(JpegEncoder(choices.quality))
    plan = assemble_plan(recipe, source, keys, variants, writer, store, choices, citation=CITATION)
    columns = describe_columns(choices, source)
    return replace(plan, remarks=describe_chosen(choices, source, keys), columns=columns)


def refuse_scored_source(choices: AugMixChoices) -> None:
    """Refuse the source of a built-in config, because models are scored on it.

    Raises
    ------
    ConfigError
    """
    origin = Path(choices.origins.get("source", "").rpartition(":")[0])
    if origin.parent == config_folder():
        raise ConfigError(f"--dataset {origin.stem}: test images; name training images with --source")
