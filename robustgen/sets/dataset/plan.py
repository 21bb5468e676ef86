"""Making and Plan: all that decides the bytes of a set, and where it is written, as values.

`assemble_plan` puts a plan together from its parts; `planning` finds those of a C or a P set.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustgen.errors import ImageError, OutputError, explain_failure
from robustgen.files.set_files import ERRORS, FRAMES, MANIFEST, NOTES, SUMS
from robustgen.files.storage import Store, is_url, open_store
from robustgen.pixels.benchmarks.kinds import Variant, require
from robustgen.sets.dataset.descriptions import CARD
from robustgen.sets.dataset.mirror import Mirror
from robustgen.sets.dataset.outputs import refuse_files
from robustgen.sets.dataset.recipes import Recipe
from robustgen.sets.dataset.state import SetLedger
from robustgen.sets.formats.base import WorkUnit, Writer, list_versions
from robustgen.sets.sources.base import Items, Loaded
from robustgen.settings.config import Choices
from robustgen.settings.fields import make_absolute

CITATION = (
    "Dan Hendrycks and Thomas Dietterich: Benchmarking Neural Network Robustness to Common Corruptions "
    "and Perturbations. International Conference on Learning Representations, 2019."
)
LICENCE = "The images derive from the source images and remain under their terms."


@dataclass(frozen=True, kw_only=True)
class Making:
    """Complete description of what is computed, wherever it goes.

    Attributes
    ----------
    recipe : Recipe
    source : Source
    keys : tuple of str
        Keys of the source images, in the order of the source.
    refused : dict
        Images that must be skipped, with the reasons.
    variants : tuple of Variant
    writer : Writer
        Its encoder decides the pixels of a file and the name of an image.
    jobs : int or None
        Number of worker processes; None for one per core.
    dataset : str
        Name of the data set.
    choices : dict
        Choices that it follows from, as JSON values with absolute paths.
    citation : str
    licence : tuple of str
        Sentences about the terms of the set.
    remarks : tuple of str
        Remarks about the choice of images.
    columns : tuple of str
        Lines that say what the columns of labels and lists mean.
    """

    recipe: Recipe[Any]
    source: Items[Any]
    keys: tuple[str, ...]
    refused: dict[str, str]
    variants: tuple[Variant, ...]
    writer: Writer
    jobs: int | None
    dataset: str
    choices: dict[str, Any]
    citation: str = CITATION
    licence: tuple[str, ...] = (LICENCE,)
    remarks: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    def settings(self) -> dict[str, Any]:
        """Return everything that decides the bytes of the output, except for the source images."""
        given = {key: self.choices[key] for key in ("levels", "fps") if self.choices.get(key)}
        return self.recipe.settings(self.variants) | {
            "output": self.writer.settings(),
            "versions": list_versions(self.choices.get("libjpeg", "turbo"))
            | self.writer.versions()
            | self.recipe.versions(),
            # Sets that were created before there were these choices have no such keys.
            **given,
        }


@dataclass(frozen=True, kw_only=True)
class Plan(Making):
    """Complete description of a run: a making, and where it is written.

    Attributes
    ----------
    store : Store
        The output.
    mirror : Mirror, optional
        Links or copies other files of the source into every variant.

    Examples
    --------
    >>> from robustgen.plugins import Choices, OriginalEncoder, Recipe, TreeWriter, Variant
    >>> from robustgen.plugins import assemble_plan, open_chosen_source, open_store
    >>> class Negatives(Recipe):
    ...     title = "Negatives"
    ...     def prepare(self, loaded):
    ...         return loaded
    ...     def make(self, variant, key, prepared, shared=None):
    ...         return 255 - prepared
    ...     def settings(self, variants):
    ...         return {}
    >>> choices = Choices(source_kind="demo")
    >>> source, variants = open_chosen_source(choices), (Variant("negative", 0, ""),)
    >>> writer, output = TreeWriter(OriginalEncoder(95)), open_store("negatives")
    >>> plan = assemble_plan(Negatives(), source, source.keys(), variants, writer, output, choices)
    >>> [variant.folder for variant in plan.variants], plan.jobs
    ([''], None)
    """

    store: Store
    mirror: Mirror | None = None

    @property
    def has_classes_at_root(self) -> bool:
        """Return whether every folder of the output is a class; its state then lies next to the output."""
        return any(not variant.folder for variant in self.variants)

    def manifest(self) -> dict[str, Any]:
        """Return the content of `dataset.json` except for settings and counts."""
        return {
            "dataset": self.dataset,
            "title": self.recipe.title,
            "edition": self.choices.get("edition"),
            "source": {"location": self.source.location, "images": len(self.source.keys())},
            "images": len(self.keys),
            "class_folders": all((self.writer.output_name(key) or key).count("/") == 1 for key in self.keys),
            "classes": [*self.source.classes] if any(self.source.classes) else [],
            "class_count": self.source.class_count,
            "variants": [variant.folder for variant in self.variants],
            "arrays": list(self.writer.arrays),
            "config": self.choices,
            "licence": list(self.licence),
            "citation": self.citation,
        }

    def cut(self) -> Iterator[WorkUnit]:
        """Yield the work units, which depend only on the plan."""
        return self.writer.cut(self.keys, self.variants)


def resolve_paths(choices: Choices) -> dict[str, Any]:
    """Return the `choices` that decide bytes, with paths made absolute."""
    plain = choices.model_dump(mode="json", exclude={"output", "jobs"}, by_alias=True)
    paths = {"source", "labels", "image_root"}
    absolute = {k: make_absolute(v) if k in paths and isinstance(v, str) else v for k, v in plain.items()}
    if choices.subset and choices.subset[0] == "@":
        absolute["subset"] = f"@{make_absolute(choices.subset[1:])}"
    return absolute | {"follow_links": [make_absolute(place) for place in choices.follow_links]}


def assemble_plan(
    recipe: Recipe[Loaded],
    source: Items[Loaded],
    keys: tuple[str, ...],
    variants: tuple[Variant, ...],
    writer: Writer,
    store: Store,
    choices: Choices,
    *,
    citation: str = CITATION,
    licence: tuple[str, ...] = (LICENCE,),
) -> Plan:
    """Return the plan to create `variants` from the images `keys` of `source`, without refused images.

    Raises
    ------
    ConfigError
        The recipe does not take what the source contains.
    OutputError
        The location of the output is not allowed.

    Examples
    --------
    >>> from robustgen.plugins import Choices, OriginalEncoder, Recipe, TreeWriter, Variant
    >>> from robustgen.plugins import assemble_plan, open_chosen_source, open_store
    >>> class Negatives(Recipe):
    ...     title = "Negatives"
    ...     def prepare(self, loaded):
    ...         return loaded
    ...     def make(self, variant, key, prepared, shared=None):
    ...         return 255 - prepared
    ...     def settings(self, variants):
    ...         return {}
    >>> choices = Choices(source_kind="demo")
    >>> source, variants = open_chosen_source(choices), (Variant("negative", 0, ""),)
    >>> writer, output = TreeWriter(OriginalEncoder(95)), open_store("negatives")
    >>> plan = assemble_plan(Negatives(), source, source.keys(), variants, writer, output, choices)
    >>> len(plan.keys), plan.recipe.title
    (8, 'Negatives')
    """
    making = assemble_making(recipe, source, keys, variants, writer, choices)
    check_output(store, source)
    return Plan(**vars(making) | {"citation": citation, "licence": licence}, store=store)


def assemble_making(
    recipe: Recipe[Loaded],
    source: Items[Loaded],
    keys: tuple[str, ...],
    variants: tuple[Variant, ...],
    writer: Writer,
    choices: Choices,
) -> Making:
    """Return the making of `variants` from the images `keys` of `source`, without refused images.

    Raises
    ------
    ConfigError
        The recipe does not take what the source contains.
    """
    require(source.medium, recipe.takes, recipe.title)
    refused = source.refused() | _collisions(source, writer, variants)
    return Making(
        recipe=recipe,
        source=source,
        keys=tuple(key for key in keys if key not in refused),
        refused=refused,
        variants=variants,
        writer=writer,
        jobs=choices.jobs,
        dataset=choices.name_dataset(),
        choices=resolve_paths(choices),
    )


def _collisions(source: Items[Any], writer: Writer, variants: tuple[Variant, ...]) -> dict[str, str]:
    """Return the images whose output name is already taken by an earlier image or by a file about the set.

    The values are the reasons.
    """
    reserved = {SUMS, FRAMES}
    if any(not variant.folder for variant in variants):
        reserved |= {MANIFEST, ERRORS, NOTES, CARD}
    first: dict[str, str] = {}
    refused = {}
    for key in source.keys():  # noqa: SIM118
        if (name := writer.output_name(key)) is None:
            continue
        earlier = first.setdefault(name, key)
        if (top := name.split("/")[0]) in reserved:
            refused[key] = f"its output would replace the set's own {top}"
        elif earlier != key and (damage := _find_damage(source, earlier)):
            refused[earlier], first[name] = damage, key
        elif earlier != key:
            refused[key] = f"its output would replace that of {earlier!r}"
    return refused


def _find_damage(source: Items[Any], key: str) -> str:
    """Return why an image cannot be read; "" if it can."""
    try:
        source.open(key)
    except ImageError as error:
        return explain_failure(error, key)
    return ""


def check_output(store: Store, source: Items[Any]) -> None:
    """Raise an error if the output overlaps its source, another set or a file."""
    output, root = store.location, source.location
    if store.is_local != (not is_url(root)):
        return
    if f"{output}/".startswith(f"{root}/"):
        raise OutputError(f"output {output} is inside the source {root}; choose another output")
    if root.startswith(f"{output}/"):
        raise OutputError(f"output {output} contains the source {root}; choose another output")
    if not store.is_local:
        return
    refuse_files(store)
    for folder in Path(output).parents:
        if (folder / MANIFEST).exists() or SetLedger(open_store(folder)).exists:
            raise OutputError(f"output {output} is inside another set, {folder}; choose another output")
