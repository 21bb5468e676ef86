"""Everything that a package which extends robustgen imports.

    from robustgen.plugins import Family, Rgb, Rng, corruption

Each name loads on first use: a package of corruptions loads neither sources nor formats. Nothing in robustgen
imports this module.
"""

from typing import TYPE_CHECKING

from robustgen.files.wings import load_lazily

if TYPE_CHECKING:
    from robustgen.cli.app import command, echo
    from robustgen.cli.execution import PlannedSet
    from robustgen.cli.flags import takes
    from robustgen.files.storage import open_store
    from robustgen.files.wings import CommandRow, Section, SetRow, Wing
    from robustgen.pixels.benchmarks.ingredients import Ingredient, IngredientSpec, OpenedIngredient
    from robustgen.pixels.benchmarks.kinds import Variant
    from robustgen.pixels.benchmarks.registry import Family, corruption
    from robustgen.pixels.imaging.arrays import Rgb
    from robustgen.pixels.imaging.decode import as_rgb, decode_to_pillow
    from robustgen.pixels.imaging.geometry import PreparationStep
    from robustgen.pixels.imaging.laion_c_effects import TileBank
    from robustgen.pixels.imaging.rng import Rng, integers
    from robustgen.plugins import conformance
    from robustgen.sets.dataset.plan import Plan, assemble_plan
    from robustgen.sets.dataset.recipes import Recipe, item_rng
    from robustgen.sets.dataset.selection import open_chosen_source, select_keys
    from robustgen.sets.executors.base import Executor, Job, Launcher, Result, WorkersLostError, run_job
    from robustgen.sets.executors.progress import Reporter
    from robustgen.sets.formats import Format
    from robustgen.sets.formats.base import Encoded, Encoder, EncoderChoices, SetContent, Writer, WrittenSet
    from robustgen.sets.formats.encoders import JpegEncoder, LosslessEncoder, OriginalEncoder
    from robustgen.sets.formats.trees import TreeWriter
    from robustgen.sets.sources import SourceKind
    from robustgen.sets.sources.arrays import ArrayRows, NumberedSource
    from robustgen.sets.sources.base import Source, SourceOptions
    from robustgen.sets.sources.files import IndexedSource
    from robustgen.sets.sources.folder import FileSource
    from robustgen.sets.sources.places import Place
    from robustgen.settings.config import Choices
    from robustgen.settings.fields import Flag, Group, Options, Part
    from robustgen.settings.running import Running

__all__ = [
    "ArrayRows", "Choices", "CommandRow", "Encoded", "Encoder", "EncoderChoices", "Executor", "Family",
    "FileSource", "Flag", "Format", "Group", "IndexedSource", "Ingredient", "IngredientSpec", "Job",
    "JpegEncoder", "Launcher", "LosslessEncoder", "NumberedSource", "OpenedIngredient", "Options",
    "OriginalEncoder", "Part", "Place", "Plan", "PlannedSet", "PreparationStep", "Recipe", "Reporter",
    "Result", "Rgb", "Rng", "Running", "Section", "SetContent", "SetRow", "Source", "SourceKind",
    "SourceOptions", "TileBank", "TreeWriter", "Variant", "Wing", "WorkersLostError", "Writer", "WrittenSet",
    "as_rgb", "assemble_plan", "command", "conformance", "corruption", "decode_to_pillow", "echo", "integers",
    "item_rng", "open_chosen_source", "open_store", "run_job", "select_keys", "takes",
]  # fmt: skip

if not TYPE_CHECKING:  # else every misspelled name would have a type
    __getattr__ = load_lazily(__name__, __file__, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
