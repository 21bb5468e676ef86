"""Planning of a benchmark: from a config to the plan of a C or a P set."""

import copy
import dataclasses
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from robustgen.errors import ArgumentError, ConfigError, ImageError, SourceError
from robustgen.files.storage import Store, open_store
from robustgen.pixels.benchmarks.binding import Bound
from robustgen.pixels.benchmarks.corruptions import get_corruption
from robustgen.pixels.benchmarks.editions import EDITIONS, Edition, get_edition, nearest_scale
from robustgen.pixels.benchmarks.kinds import (
    CLEAN,
    CLEAN_VARIANT,
    CLIP,
    IMAGE,
    IMAGENET_P,
    USUAL_SCALE,
    Benchmark,
    Kind,
    Variant,
    require,
)
from robustgen.pixels.benchmarks.registry import CLIP_SETS, SMALLEST_SIDE, Corruption
from robustgen.pixels.imaging.decode import collect_complaints
from robustgen.pixels.imaging.geometry import RESIZING
from robustgen.pixels.imaging.jpeg import load_ijg
from robustgen.sets.dataset.mirror import Mirror
from robustgen.sets.dataset.outputs import refuse_files
from robustgen.sets.dataset.plan import CITATION, LICENCE, Making, Plan, assemble_making, check_output
from robustgen.sets.dataset.recipes import RECIPES, BenchmarkRecipe, CorruptionRecipe, Recipe, mix
from robustgen.sets.dataset.selection import (
    check_classes,
    check_data_set,
    describe_chosen,
    describe_columns,
    describe_maps,
    list_unselected,
    open_chosen_source,
    select_keys,
)
from robustgen.sets.dataset.state import SetLedger
from robustgen.sets.formats import DEFAULTS, FORMATS, open_writer, parse_format
from robustgen.sets.formats.base import EncoderChoices, FilePer, SetContent, Writer
from robustgen.sets.ingredients import open_ingredients
from robustgen.sets.sources.base import Source, list_dimensions
from robustgen.sets.sources.classes import find_unlabelled
from robustgen.settings.config import Config


def plan_benchmark(config: Config, kind: Kind, *, overwrite: bool = False) -> Plan:
    """Turn a config into the plan of a C or a P set.

    Parameters
    ----------
    config : Config
    kind : {"c", "p"}
    overwrite : bool
        Whether to ignore existing variants of the output.

    Raises
    ------
    ConfigError, SourceError, OutputError
        The request cannot be met; the message names the key.
    """
    if config.orientation:
        raise ConfigError("orientation: only evaluate --annotations has it; a set has the pixels as stored")
    output = open_store(config.resolve_output(kind))
    making = open_making(config, kind, output=output, extends=not overwrite)
    return plan_set(making, output, config)


plan_c, plan_p = partial(plan_benchmark, kind="c"), partial(plan_benchmark, kind="p")


def plan_set(making: Making, output: Store, config: Config) -> Plan:
    """Return the plan to write `making` to `output`, with the mirror that `config` asks for.

    Raises
    ------
    ConfigError, OutputError
        The source or the format allows no mirror, or the location of the output is not allowed.
    """
    check_output(output, making.source)
    mirror = _open_mirror(making, config)
    remarks = (*making.remarks, *(mirror.describe_left_out() if mirror else ()))
    return Plan(**vars(making) | {"remarks": remarks}, store=output, mirror=mirror)


# The run counts the warnings of decoders.
@collect_complaints()
def open_making(
    config: Config,
    kind: Kind,
    *,
    source: Source | None = None,
    output: Store | None = None,
    extends: bool = False,
) -> Making:
    """Turn a config into what a C or a P set is computed from, without writing it.

    Parameters
    ----------
    config : Config
    kind : {"c", "p"}
    source : Source, optional
        Images to use instead of those in the config.
    output : Store, optional
        Output in whose state workers find the listing of the source, and other large content.
    extends : bool
        Whether the variants that exist in `output` are included, if their files share a list of images.

    Raises
    ------
    ConfigError, SourceError, OutputError
        The request cannot be met; the message names the key.
    """
    edition, variants = EDITIONS[config.base_edition], config.variants(kind)
    recipe = _open_recipe(config, kind, variants)
    if output:
        refuse_files(output)
    index = SetLedger(output).index_place if output else None
    source = source or open_chosen_source(config, index, config.libjpeg)
    check_classes(source, config)
    check_data_set(source, edition)
    recipe = _fit_recipe(recipe, config, kind, source)
    remarks, keys = describe_maps(config, source), select_keys(source, config)
    recipe = dataclasses.replace(recipe, copies=source.copies)
    remarks += describe_chosen(config, source, keys)
    name, encoding = parse_format(config.format or _name_usual_format(edition, recipe.benchmark, source))
    # Other formats have no place for rows of a table without a label.
    is_converted = source.usual_format not in (None, name)
    unlabelled = find_unlabelled(source, keys, needed=False) if is_converted else {}
    keys = tuple(key for key in keys if key not in unlabelled)
    file_per = FORMATS[name].file_per
    if file_per == "operation":
        _check_rows(recipe, source, keys)
    if output and extends and file_per != "image":
        own = bool(config.severities_of)
        variants = _add_existing(variants, output, recipe.benchmark, file_per, own=own)
    citation, terms = CITATION, list[str]()
    if isinstance(recipe, CorruptionRecipe):
        ingredients = open_ingredients(config, recipe, variants, source, keys, output)
        recipe = dataclasses.replace(recipe, ingredients=ingredients)
        citation = recipe.cite(variants) or CITATION
        terms = [each.licence for each in ingredients.values() if each.licence]
    made: Recipe[Any] = recipe
    if config.one_per_image:
        require(source.medium, (IMAGE,), "one_per_image")
        if not isinstance(recipe, CorruptionRecipe):
            raise ConfigError("one_per_image: only make-c has it")
        if file_per != "image":
            others = "choose jpeg, png, webp or original"
            raise ConfigError(f"one_per_image: format {name} has files of many images; {others}")
        made, variants = mix(recipe, variants)
    content = SetContent(
        benchmark=recipe.benchmark,
        variants=variants,
        keys=keys,
        source=source,
        shard_size=config.shard_size,
    )
    choices = EncoderChoices(
        quality=config.quality,
        libjpeg=config.libjpeg,
        subsampling=edition.subsampling,
        grey=edition.grey,
        video=config.video,
        side=config.size or edition.side or 0,
    )
    writer = open_writer(name, content, choices, encoding)
    making = assemble_making(made, source, keys, variants, writer, config)
    return dataclasses.replace(
        making,
        refused=making.refused | unlabelled,
        citation=citation,
        licence=(LICENCE, *terms),
        remarks=(*remarks, *_name_unused(config, name, writer)),
        columns=describe_columns(config, source),
    )


def _open_recipe(config: Config, kind: Kind, variants: tuple[Variant, ...]) -> BenchmarkRecipe[Any]:
    """Return the recipe, and check now rather than at the first image that it can make `variants`.

    Raises
    ------
    ConfigError, MissingDependencyError
        Constants, sides or libraries are missing, or the config's own parameters do not fit each other.
    """
    edition, overrides = EDITIONS[config.base_edition], copy.deepcopy(config.parameters)
    if kind == "c":
        _try_out(config, edition)
    else:
        edition.check_perturbations()
        overrides = {}
    if config.libjpeg == "ijg":
        load_ijg()
    recipe = RECIPES[kind][IMAGE](config.edition, config.seed, config.constants_for, overrides)
    bound = [recipe.bind(variant) for variant in variants if variant != CLEAN_VARIANT]
    for each in bound:
        _check_constants(config, each)
    smallest = min((each.operation.smallest_side for each in bound), default=SMALLEST_SIDE)
    return dataclasses.replace(recipe, smallest_side=smallest)


def _try_out(config: Config, row: Edition) -> None:
    """Corrupt one image with each set of the config's parameters, as values may not fit each other."""
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
            if operation.over_time == "whole" or operation.requires or is_lacking:
                continue
            try:
                recipe.make(variant, "trial", image)
            except Exception as error:
                raise ConfigError(f"parameters: {name}.{severity}: cannot be used: {error}") from error


def _check_constants(config: Config, bound: Bound) -> None:
    """Raise a ConfigError if a variant has no constants, or cannot use images of the edition's size."""
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


def _fit_recipe(
    recipe: BenchmarkRecipe[Any], config: Config, kind: Kind, source: Source
) -> BenchmarkRecipe[Any]:
    """Return the recipe for what the source contains: images or clips.

    Raises
    ------
    ConfigError
        The benchmark, the edition or a corruption does not take it.
    """
    medium = source.medium
    for name in config.corruptions if kind == "c" else ():
        require(medium, (CLIP,) if get_corruption(name).over_time == "whole" else (IMAGE, CLIP), name)
    require(medium, RECIPES[kind], f"make-{kind}")
    row = get_edition(config.edition)
    of_clips = row.format == "jpeg" and row.data_set in (None, *CLIP_SETS)
    takes = (IMAGE, CLIP) if of_clips and not (row.by_corruption or row.implementation) else (IMAGE,)
    require(medium, takes, f"edition {row.name}, unlike kinetics, ssv2, imagenet and folder,")
    fitting = RECIPES[kind][medium]
    names = [each.name for each in dataclasses.fields(fitting) if each.init]
    return fitting(**{name: getattr(recipe if hasattr(recipe, name) else config, name) for name in names})


def _name_usual_format(edition: Edition, benchmark: Benchmark, source: Source) -> str:
    """Return the format of a set whose config names none."""
    if benchmark.kind == "c" and source.usual_format:
        return source.usual_format
    return edition.format if edition.format != "jpeg" else DEFAULTS[benchmark.content]


def _open_mirror(making: Making, config: Config) -> Mirror | None:
    """Return the mirror of the source's other files, if the config asks for one.

    Raises
    ------
    ConfigError
        The source or the format does not allow it.
    """
    if config.mirror is None:
        return None
    if (config.format or EDITIONS[config.base_edition].format) != "original":
        raise ConfigError("mirror: needs `format: original`, which keeps names; or choose `mirror: none`")
    source = making.source
    folder = open_store(source.location)
    if folder.is_local and not Path(source.location).is_dir():
        raise ConfigError(f"mirror: {source.location} is not a folder; choose `mirror: none`")
    return Mirror(folder, *list_unselected(config, source), link=config.mirror == "link")


def _name_unused(config: Config, form: str, writer: Writer) -> Iterator[str]:
    """Yield a remark on each choice of an encoding that the writer does not have."""
    settings, fields = writer.settings(), type(config).model_fields
    used = {*settings, *settings.get("sample", ())}
    usual = {key: fields[key].default for key in ("quality", "shard_size", "video")}
    usual["quality"] = EDITIONS[config.base_edition].quality
    for key, value in usual.items():
        if getattr(config, key) != value and key not in used:
            yield f"{key}: has no effect on the format {form}"


def _add_existing(
    variants: tuple[Variant, ...], store: Store, benchmark: Benchmark, file_per: FilePer, *, own: bool
) -> tuple[Variant, ...]:
    """Return `variants` and existing variants, in a fixed order, if their files share a list of images.

    Unless severities are the corruptions' `own`, all arrays of a C set have the same ones.
    """
    existing = [variant for plan in SetLedger(store).plans() for variant in plan["manifest"]["variants"]]
    ranks = {name: rank for rank, name in enumerate((CLEAN, *benchmark.operations))}
    found = {*variants, *filter(None, map(benchmark.variant_in, existing))}
    known = (variant for variant in found if variant.name in ranks)
    wanted = sorted(known, key=lambda variant: (ranks[variant.name], variant.level))
    # Only arrays of a C set contain several severities.
    if file_per == "shard" or benchmark is IMAGENET_P or own:
        return tuple(wanted)
    names = dict.fromkeys(variant.name for variant in wanted if variant != CLEAN_VARIANT)
    severities = sorted({variant.level for variant in wanted if variant != CLEAN_VARIANT})
    return benchmark.variants(names, severities, clean=CLEAN_VARIANT in wanted)


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
    for key, size in zip(keys, list_dimensions(source, keys), strict=True):
        # Unreadable images fail in the run.
        if size:
            first.setdefault(size, key)
        if len(first) > 1:
            named = ", ".join(f"{key!r} is {width} x {height}" for (width, height), key in first.items())
            raise ConfigError(f"format npy: {named}: choose an edition with a size")
