"""Plan: all that decides the bytes of a set, as a value.

`assemble_plan` serves all sets; `plan_benchmark` turns a `Config` into the plan of a C or a P set.
"""

import copy
import dataclasses
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from robustgen.errors import ArgumentError, ConfigError, ImageError, OutputError, SourceError, explain_failure
from robustgen.files.set_files import ERRORS, FRAMES, MANIFEST, SUMS
from robustgen.files.storage import Store, is_url, open_store
from robustgen.pixels.benchmarks.binding import Bound
from robustgen.pixels.benchmarks.corruptions import get_corruption
from robustgen.pixels.benchmarks.editions import EDITIONS, get_edition, nearest_scale
from robustgen.pixels.benchmarks.kinds import (
    BENCHMARKS,
    CLEAN,
    CLEAN_VARIANT,
    CLIP,
    IMAGENET_P,
    USUAL_SCALE,
    Benchmark,
    Kind,
    Variant,
)
from robustgen.pixels.benchmarks.registry import CLIP_SETS, SMALLEST_SIDE, Corruption
from robustgen.pixels.imaging import video
from robustgen.pixels.imaging.blur import check_imagemagick
from robustgen.pixels.imaging.decode import collect_complaints
from robustgen.pixels.imaging.geometry import RESIZING
from robustgen.pixels.imaging.jpeg import load_ijg
from robustgen.sets.dataset.descriptions import CARD
from robustgen.sets.dataset.label_maps import Maps
from robustgen.sets.dataset.mirror import Mirror
from robustgen.sets.dataset.outputs import refuse_files
from robustgen.sets.dataset.recipes import RECIPES, BenchmarkRecipe, ClipRecipe, CorruptionRecipe, Recipe, mix
from robustgen.sets.dataset.selection import (
    check_classes,
    check_data_set,
    describe_maps_left_in,
    leave_out_maps,
    list_files,
    list_subset,
    open_chosen_source,
    select_keys,
)
from robustgen.sets.dataset.state import SetLedger
from robustgen.sets.formats import DEFAULTS, FORMATS, open_writer, parse_format
from robustgen.sets.formats.base import EncoderChoices, FilePer, SetContent, WorkUnit, Writer, list_versions
from robustgen.sets.formats.encoders import LOSSLESS_CLIP
from robustgen.sets.ingredients import open_ingredients
from robustgen.sets.sources.base import Items, Loaded, Source
from robustgen.sets.sources.classes import find_unlabelled
from robustgen.sets.sources.table import TableSource
from robustgen.settings.config import Choices, Config
from robustgen.settings.fields import make_absolute

CITATION = (
    "Dan Hendrycks and Thomas Dietterich: Benchmarking Neural Network Robustness to Common Corruptions "
    "and Perturbations. International Conference on Learning Representations, 2019."
)
LICENCE = "The images derive from the source images and remain under their terms."


@dataclass(frozen=True)
class Plan:
    """Complete description of a run.

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
    store : Store
        The output.
    jobs : int or None
        Number of worker processes; None for one per core.
    dataset : str
        Name of the data set.
    choices : dict
        Choices that the plan follows from, as JSON values with absolute paths.
    citation : str
    licence : tuple of str
        Sentences about the terms of the set.
    mirror : Mirror, optional
        Links or copies other files of the source into every variant.
    remarks : tuple of str
        Remarks about the choice of images.

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

    recipe: Recipe[Any]
    source: Items[Any]
    keys: tuple[str, ...]
    refused: dict[str, str]
    variants: tuple[Variant, ...]
    writer: Writer
    store: Store
    jobs: int | None
    dataset: str
    choices: dict[str, Any]
    citation: str = CITATION
    licence: tuple[str, ...] = (LICENCE,)
    mirror: Mirror | None = None
    remarks: tuple[str, ...] = ()

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

    def require_images(self, command: str) -> "Plan":
        """Return this plan; raise a ConfigError if it is of clips, which `command` does not take."""
        if self.source.noun == CLIP:
            hint = "write a few with make-c --limit 3, which report shows"
            raise ConfigError(f"{self.source.location}: {command} takes images, not clips; {hint}")
        return self

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


# The run counts the warnings of decoders.
@collect_complaints()
def plan_benchmark(
    config: Config,
    kind: Kind,
    *,
    overwrite: bool = False,
    store: Store | None = None,
    source: Source | None = None,
) -> Plan:
    """Turn a config into the plan of a C or a P set.

    Parameters
    ----------
    config : Config
    kind : {"c", "p"}
    overwrite : bool
        Whether to ignore existing variants of the output.
    store : Store, optional
        Output to use instead of the one in the config.
    source : Source, optional
        Images to use instead of those in the config.

    Raises
    ------
    ConfigError, SourceError, OutputError
        The request cannot be met; the message names the key.
    """
    if config.orientation:
        raise ConfigError("orientation: only evaluate --annotations has it; a set has the pixels as stored")
    benchmark, row, variants = BENCHMARKS[kind], EDITIONS[config.base_edition], config.variants(kind)
    recipe = _open_recipe(config, kind, variants)
    store = store or open_store(config.resolve_output(kind))
    refuse_files(store)
    source = source or open_chosen_source(config, SetLedger(store).index_place, config.libjpeg)
    check_classes(source, config)
    check_data_set(source, row)
    recipe, benchmark = _fit_recipe(recipe, source, config)
    config, maps, remarks = leave_out_maps(config, source)
    keys = select_keys(source, config)
    remarks += describe_maps_left_in(config, source, keys)
    usual = row.format if row.format != "jpeg" else DEFAULTS[benchmark.content]
    usual = "table" if kind == "c" and isinstance(source, TableSource) else usual
    name, encoding = parse_format(config.format or usual)
    # Other formats have no place for rows of a table without a label.
    is_converted = isinstance(source, TableSource) and name != "table"
    unlabelled = find_unlabelled(source, keys, needed=False) if is_converted else {}
    keys = tuple(key for key in keys if key not in unlabelled)
    file_per = FORMATS[name].file_per
    if file_per == "operation":
        _check_rows(recipe, source, keys)
    if file_per != "image" and not overwrite:
        variants = _add_existing(variants, store, benchmark, file_per)
    citation, terms = CITATION, list[str]()
    if isinstance(recipe, CorruptionRecipe):
        ingredients = open_ingredients(config, recipe, variants, source, keys, store)
        recipe = dataclasses.replace(recipe, ingredients=ingredients)
        citation = recipe.cite(variants) or CITATION
        terms = [each.licence for each in ingredients.values() if each.licence]
    made: Recipe[Any] = recipe
    if config.one_per_image:
        if not isinstance(recipe, CorruptionRecipe):
            raise ConfigError("one_per_image: only make-c has it")
        if file_per != "image":
            raise ConfigError(
                f"one_per_image: format {name} has files of many images; choose jpeg, png, webp or original"
            )
        made, variants = mix(recipe, variants)
    content = SetContent(
        benchmark=benchmark, variants=variants, keys=keys, source=source, shard_size=config.shard_size
    )
    choices = EncoderChoices(
        quality=config.quality,
        libjpeg=config.libjpeg,
        subsampling=row.subsampling,
        grey=row.grey,
        videos=lambda: _choose_encodings(config),
        clip_video=lambda: _choose_clip_encodings(config),
    )
    writer = open_writer(name, content, choices, encoding)
    mirror = _open_mirror(name, config, source, maps)
    remarks += mirror.describe_left_out() if mirror else ()
    plan = assemble_plan(
        made, source, keys, variants, writer, store, config, citation=citation, licence=(LICENCE, *terms)
    )
    remarks = (*remarks, *_name_unused(config, name, writer))
    return dataclasses.replace(plan, refused=plan.refused | unlabelled, mirror=mirror, remarks=remarks)


def _name_unused(config: Config, form: str, writer: Writer) -> Iterator[str]:
    """Yield a remark on each choice of an encoding that the writer does not have."""
    settings, fields = writer.settings(), type(config).model_fields
    used = {*settings, *settings.get("sample", ())}
    usual = {key: fields[key].default for key in ("quality", "shard_size", "video")}
    usual["quality"] = EDITIONS[config.base_edition].quality
    for key, value in usual.items():
        if getattr(config, key) != value and key not in used:
            yield f"{key}: has no effect on the format {form}"


plan_c, plan_p = partial(plan_benchmark, kind="c"), partial(plan_benchmark, kind="p")


def _open_recipe(config: Config, kind: Kind, variants: tuple[Variant, ...]) -> BenchmarkRecipe[Any]:
    """Return the recipe of a set, and check now rather than at the first image that it can make `variants`.

    Raises
    ------
    ConfigError, MissingDependencyError
        Constants, sides or libraries are missing, or the config's own parameters do not fit each other.
    """
    row, overrides = EDITIONS[config.base_edition], copy.deepcopy(config.parameters)
    if kind == "c":
        _try_out(config)
    else:
        row.check_perturbations()
        overrides = {}
    if config.motion_blur == "imagemagick":
        if row.implementation:
            raise ConfigError(f"motion_blur: imagemagick: edition {row.name} defines its own motion blur")
        for variant in variants:
            if variant.name in ("motion_blur", "snow"):
                check_imagemagick()
                severities = overrides.setdefault(variant.name, {})
                severities.setdefault(variant.level, {})["engine"] = config.motion_blur
    if config.libjpeg == "ijg":
        load_ijg()
    recipe = RECIPES[kind](config.edition, config.seed, config.constants_for, overrides)
    bound = [recipe.bind(variant) for variant in variants if variant != CLEAN_VARIANT]
    for each in bound:
        _check_constants(each, config)
    smallest = min((each.operation.smallest_side for each in bound), default=SMALLEST_SIDE)
    return dataclasses.replace(recipe, smallest_side=smallest)


def _fit_recipe(
    recipe: BenchmarkRecipe[Any], source: Source, config: Config
) -> tuple[BenchmarkRecipe[Any], Benchmark]:
    """Return the recipe for what the source contains, images or clips, and its benchmark.

    Raises
    ------
    ConfigError
        The source has no clips but a corruption needs them, or clips that the recipe cannot use.
    """
    if source.noun != CLIP:
        names = config.corruptions if isinstance(recipe, CorruptionRecipe) else ()
        if needing := [name for name in names if get_corruption(name).takes_clips]:
            raise ConfigError(
                f"{needing[0]} needs clips: choose --dataset clips, whose source are videos or frames"
            )
        return recipe, recipe.benchmark
    if not isinstance(recipe, CorruptionRecipe):
        raise ConfigError(
            f"{source.location}: contains clips, of which make-c writes sets; make-p needs images"
        )
    row = get_edition(config.edition)
    is_for_clips = row.format == "jpeg" and row.data_set in (None, *CLIP_SETS)
    if row.by_corruption or row.implementation or not is_for_clips:
        raise ConfigError(f"edition {config.edition} has no clips; choose kinetics, ssv2, imagenet or folder")
    if config.one_per_image:
        raise ConfigError("one_per_image: needs images, not clips")
    own = {each.name: getattr(recipe, each.name) for each in dataclasses.fields(recipe) if each.init}
    clips = ClipRecipe(**own, temporal=config.temporal)
    return clips, clips.benchmark


def _check_constants(bound: Bound, config: Config) -> None:
    """Raise an ArgumentError if a variant has no constants, or cannot use images of the edition's size."""
    operation, edition, scale, hint = bound.operation, bound.edition, bound.fixed_scale, ""
    try:
        if edition.side and edition.side < operation.smallest_side:
            least = f"{operation.name} needs sides of at least {operation.smallest_side} pixels"
            raise ArgumentError(f"{least}; {RESIZING}")
        sides = [each for each in operation.table if isinstance(each, int)]
        if sides and isinstance(scale, int) and scale not in sides:
            hint = f"; set constants_for={nearest_scale(scale, sides)}"
        if {*operation.table} == {*CLIP_SETS}:
            hint = "; choose --dataset clips, kinetics or ssv2, or the edition kinetics or ssv2"
        if scale or not (sides or len(operation.table) == 1):
            operation.rows(scale or USUAL_SCALE)
    except ArgumentError as error:
        raise ConfigError(f"edition {config.edition}: {error}{hint}") from error
    if isinstance(operation, Corruption) and operation.requires:
        side = operation.preparation(bound.any_parameters()).crop if edition.by_corruption else edition.side
        operation.requires(bound.any_parameters(), side)


def _try_out(config: Config) -> None:
    """Corrupt one image with each set of the config's own parameters, as values may not fit each other."""
    row = EDITIONS[config.base_edition]
    side = min(64, row.side or 64)
    image = np.arange(side * side * 3, dtype=np.uint8).reshape(side, side, 3)
    edition = config.edition if row.implementation or row.data_set else "folder"
    recipe = CorruptionRecipe(edition, 0, config.constants_for, config.parameters)
    for name, severities in config.parameters.items():
        for severity in severities:
            variant = Variant(name, severity, f"{name}/{severity}")
            operation = recipe.bind(variant).operation
            # Whole clips are corrupted by one number, which has been checked.
            is_lacking = operation.needs and operation.needs.default != "installed"
            if operation.takes_clips or operation.requires or is_lacking:
                continue
            try:
                recipe.make(variant, "trial", image)
            except Exception as error:
                raise ConfigError(f"parameters: {name}.{severity}: cannot be used: {error}") from error


def _open_mirror(name: str, config: Config, source: Source, maps: Maps) -> Mirror | None:
    """Return the mirror of the source's other files, if the config asks for one.

    `maps` are all label maps of the source, with their pictures.

    Raises
    ------
    ConfigError
        The source or the format does not allow it.
    """
    if config.mirror is None:
        return None
    if name != "original":
        raise ConfigError(
            "mirror: needs `format: original`, which keeps the names that other files refer to; "
            "choose it, or `mirror: none`"
        )
    folder = open_store(source.location)
    if folder.is_local and not Path(source.location).is_dir():
        raise ConfigError(f"mirror: {source.location} is not a folder; choose `mirror: none`")
    chosen, every = (
        frozenset(list_files(source, keys)) for keys in (list_subset(source, config), source.keys())
    )
    return Mirror(folder, chosen, every - chosen, maps, link=config.mirror == "link")


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
    _check_output(store, source)
    refused = source.refused() | _collisions(source, writer, variants)
    keys = tuple(key for key in keys if key not in refused)
    return Plan(
        recipe,
        source,
        keys,
        refused,
        variants,
        writer,
        store,
        choices.jobs,
        dataset=choices.name_dataset(),
        choices=resolve_paths(choices),
        citation=citation,
        licence=licence,
    )


def _collisions(source: Items[Any], writer: Writer, variants: tuple[Variant, ...]) -> dict[str, str]:
    """Return the images whose output name is already taken by an earlier image or by a file about the set.

    The values are the reasons.
    """
    reserved = {SUMS, FRAMES}
    if any(not variant.folder for variant in variants):
        reserved |= {MANIFEST, ERRORS, CARD}
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


def _add_existing(
    variants: tuple[Variant, ...], store: Store, benchmark: Benchmark, file_per: FilePer
) -> tuple[Variant, ...]:
    """Return `variants` and existing variants, in a fixed order, if their files share a list of images."""
    existing = [variant for plan in SetLedger(store).plans() for variant in plan["manifest"]["variants"]]
    ranks = {name: rank for rank, name in enumerate((CLEAN, *benchmark.operations))}
    found = {*variants, *filter(None, map(benchmark.variant_in, existing))}
    known = (variant for variant in found if variant.name in ranks)
    wanted = sorted(known, key=lambda variant: (ranks[variant.name], variant.level))
    # Only arrays of a C set contain several severities.
    if file_per == "shard" or benchmark is IMAGENET_P:
        return tuple(wanted)
    names = dict.fromkeys(variant.name for variant in wanted if variant != CLEAN_VARIANT)
    severities = sorted({variant.level for variant in wanted if variant != CLEAN_VARIANT})
    return benchmark.variants(names, severities, clean=CLEAN_VARIANT in wanted)


def _check_output(store: Store, source: Items[Any]) -> None:
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


def _choose_encodings(config: Config) -> tuple[video.Encoding, video.Encoding]:
    """Return the encodings of smooth sequences and of noise."""
    choice = config.video
    side = config.size or EDITIONS[config.base_edition].side or 0
    if side % 2 and (choice.playable or choice.pixel_format == "yuv420p"):
        raise ConfigError(f"video: yuv420p halves the colour, which {side} x {side} pixels do not allow")
    changes: dict[str, Any] = {"pixel_format": choice.pixel_format}
    changes |= {} if choice.preset is None else {"preset": choice.preset}
    changes |= {} if choice.crf is None else {"crf": choice.crf}
    usual = video.Encoding(), video.Encoding(crf=None, tune="grain")
    smooth, noise = (dataclasses.replace(encoding, **changes) for encoding in usual)
    if choice.lossless:
        smooth, noise = smooth.lossless(), noise.lossless()
    return (smooth.playable(), noise.playable()) if choice.playable else (smooth, noise)


def _choose_clip_encodings(config: Config) -> tuple[Any, ...]:
    """Return the arguments of `ClipVideoEncoder`; () for its defaults."""
    choice = config.video
    if choice == type(choice)():
        return ()
    smooth, noise = _choose_encodings(config)
    if choice.lossless and not choice.playable and choice.pixel_format == "yuv444p":
        # Only RGB is exact.
        smooth = noise = dataclasses.replace(LOSSLESS_CLIP, preset=choice.preset or LOSSLESS_CLIP.preset)
    return smooth, noise, not choice.lossless


def _check_rows(recipe: BenchmarkRecipe[Any], source: Source, keys: tuple[str, ...]) -> None:
    """Raise an error if no image can be used, or if the images cannot be rows of one array."""
    if recipe.keeps_size:
        _check_one_size(source, keys)
    reason = ""
    for key in keys:
        try:
            recipe.prepare(source.open(key))
            return
        except ImageError as error:
            reason = reason or f": {error}"
    raise SourceError(f"{source.location}: none of its images can be read{reason}")


def _check_one_size(source: Source, keys: tuple[str, ...]) -> None:
    """Raise an error if the images differ in size and cannot be rows of one array."""
    first: dict[tuple[int, int], str] = {}
    for key in keys:
        # Unreadable images fail in the run.
        with suppress(ImageError):
            first.setdefault(source.dimensions(key), key)
        if len(first) > 1:
            named = ", ".join(f"{key!r} is {width} x {height}" for (width, height), key in first.items())
            raise ConfigError(
                f"format npy: {named}; all images must have one size: choose an edition with a size"
            )
