"""Everything that a package which extends robustgen imports.

    from robustgen.plugins import Family, Rgb, Rng, corruption

Each name loads on first use: a package of corruptions loads neither sources nor formats. Nothing in robustgen
imports this module.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robustgen.pixels.benchmarks.ingredients import Ingredient as Ingredient
    from robustgen.pixels.benchmarks.ingredients import IngredientSpec as IngredientSpec
    from robustgen.pixels.benchmarks.ingredients import OpenedIngredient as OpenedIngredient
    from robustgen.pixels.benchmarks.kinds import Variant as Variant
    from robustgen.pixels.benchmarks.registry import Family as Family
    from robustgen.pixels.benchmarks.registry import corruption as corruption
    from robustgen.pixels.imaging.arrays import Rgb as Rgb
    from robustgen.pixels.imaging.decode import as_rgb as as_rgb
    from robustgen.pixels.imaging.decode import decode_to_pillow as decode_to_pillow
    from robustgen.pixels.imaging.geometry import PreparationStep as PreparationStep
    from robustgen.pixels.imaging.laion_c_effects import TileBank as TileBank
    from robustgen.pixels.imaging.rng import Rng as Rng
    from robustgen.pixels.imaging.rng import integers as integers
    from robustgen.plugins import conformance as conformance
    from robustgen.sets.executors.base import Executor as Executor
    from robustgen.sets.executors.base import Job as Job
    from robustgen.sets.executors.base import Launcher as Launcher
    from robustgen.sets.executors.base import Result as Result
    from robustgen.sets.executors.base import WorkersLostError as WorkersLostError
    from robustgen.sets.executors.base import run_job as run_job
    from robustgen.sets.executors.progress import Reporter as Reporter
    from robustgen.sets.formats import Format as Format
    from robustgen.sets.formats.base import Encoded as Encoded
    from robustgen.sets.formats.base import Encoder as Encoder
    from robustgen.sets.formats.base import EncoderChoices as EncoderChoices
    from robustgen.sets.formats.base import SetContent as SetContent
    from robustgen.sets.formats.base import Writer as Writer
    from robustgen.sets.formats.base import WrittenSet as WrittenSet
    from robustgen.sets.formats.encoders import LosslessEncoder as LosslessEncoder
    from robustgen.sets.formats.trees import TreeWriter as TreeWriter
    from robustgen.sets.sources import SourceKind as SourceKind
    from robustgen.sets.sources.arrays import ArrayRows as ArrayRows
    from robustgen.sets.sources.arrays import NumberedSource as NumberedSource
    from robustgen.sets.sources.base import Source as Source
    from robustgen.sets.sources.base import SourceOptions as SourceOptions
    from robustgen.sets.sources.files import IndexedSource as IndexedSource
    from robustgen.sets.sources.folder import FileSource as FileSource
    from robustgen.sets.sources.places import Place as Place

_PUBLIC = {
    "Family": "robustgen.pixels.benchmarks.registry",
    "Ingredient": "robustgen.pixels.benchmarks.ingredients",
    "IngredientSpec": "robustgen.pixels.benchmarks.ingredients",
    "OpenedIngredient": "robustgen.pixels.benchmarks.ingredients",
    "PreparationStep": "robustgen.pixels.imaging.geometry",
    "Rgb": "robustgen.pixels.imaging.arrays",
    "Rng": "robustgen.pixels.imaging.rng",
    "TileBank": "robustgen.pixels.imaging.laion_c_effects",
    "Variant": "robustgen.pixels.benchmarks.kinds",
    "as_rgb": "robustgen.pixels.imaging.decode",
    "corruption": "robustgen.pixels.benchmarks.registry",
    "decode_to_pillow": "robustgen.pixels.imaging.decode",
    "integers": "robustgen.pixels.imaging.rng",
    "FileSource": "robustgen.sets.sources.folder",
    "IndexedSource": "robustgen.sets.sources.files",
    "NumberedSource": "robustgen.sets.sources.arrays",
    "SourceOptions": "robustgen.sets.sources.base",
    "Place": "robustgen.sets.sources.places",
    "ArrayRows": "robustgen.sets.sources.arrays",
    "Source": "robustgen.sets.sources.base",
    "SourceKind": "robustgen.sets.sources",
    "Encoded": "robustgen.sets.formats.base",
    "Encoder": "robustgen.sets.formats.base",
    "Format": "robustgen.sets.formats",
    "EncoderChoices": "robustgen.sets.formats.base",
    "LosslessEncoder": "robustgen.sets.formats.encoders",
    "SetContent": "robustgen.sets.formats.base",
    "TreeWriter": "robustgen.sets.formats.trees",
    "Writer": "robustgen.sets.formats.base",
    "WrittenSet": "robustgen.sets.formats.base",
    "Executor": "robustgen.sets.executors.base",
    "Job": "robustgen.sets.executors.base",
    "Launcher": "robustgen.sets.executors.base",
    "Reporter": "robustgen.sets.executors.progress",
    "Result": "robustgen.sets.executors.base",
    "WorkersLostError": "robustgen.sets.executors.base",
    "run_job": "robustgen.sets.executors.base",
    "CommandRow": "robustgen.files.wings",
    "Section": "robustgen.files.wings",
    "SetRow": "robustgen.files.wings",
    "Wing": "robustgen.files.wings",
    "open_store": "robustgen.files.storage",
    "Choices": "robustgen.settings.config",
    "Flag": "robustgen.settings.fields",
    "Group": "robustgen.settings.fields",
    "Options": "robustgen.settings.fields",
    "Running": "robustgen.settings.running",
    "Recipe": "robustgen.sets.dataset.recipes",
    "item_rng": "robustgen.sets.dataset.recipes",
    "Plan": "robustgen.sets.dataset.plan",
    "assemble_plan": "robustgen.sets.dataset.plan",
    "open_chosen_source": "robustgen.sets.dataset.selection",
    "select_keys": "robustgen.sets.dataset.selection",
    "JpegEncoder": "robustgen.sets.formats.encoders",
    "OriginalEncoder": "robustgen.sets.formats.encoders",
    "command": "robustgen.cli.app",
    "echo": "robustgen.cli.app",
    "takes": "robustgen.cli.flags",
    "PlannedSet": "robustgen.cli.execution",
    "conformance": "robustgen.plugins",
}

__all__ = [*_PUBLIC]


if not TYPE_CHECKING:  # else every misspelled name would have a type

    def __getattr__(name: str) -> Any:
        if name not in _PUBLIC:
            raise AttributeError(f"module 'robustgen.plugins' has no attribute {name!r}")
        if name == "conformance":
            return import_module(f"{_PUBLIC[name]}.{name}")
        return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
