"""Plan: all that decides the bytes of a set, as a value.

`assemble_plan` serves every kind of set; `plan_benchmark` turns a `Config` into the plan of a C or a P set.
"""

import copy
import dataclasses
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robustgen.benchmarks.corruptions import get_corruption, get_family
from robustgen.benchmarks.editions import EDITIONS
from robustgen.benchmarks.kinds import BENCHMARKS, CLEAN, CLEAN_ARM, Benchmark, Kind, Variant
from robustgen.benchmarks.registry import SMALLEST_SIDE, Operation
from robustgen.dataset.depth import DepthMaps, open_depth
from robustgen.dataset.mirror import Mirror
from robustgen.dataset.names import ERRORS, FRAMES, MANIFEST, SUMS
from robustgen.dataset.outputs import refuse_files
from robustgen.dataset.recipes import (
    RECIPES,
    BenchmarkRecipe,
    CorruptionRecipe,
    Recipe,
    find_tile_side,
    lacks_tiles,
)
from robustgen.dataset.selection import check_classes, match_keys, open_chosen_source, select_keys
from robustgen.dataset.state import OutputState
from robustgen.dataset.tiles import Tiles, read_tiles
from robustgen.dataset.versions import list_versions
from robustgen.errors import ArgumentError, ConfigError, ImageError, OutputError, SourceError
from robustgen.files.storage import Store, is_url, open_store
from robustgen.formats import DEFAULTS, FORMATS, Order, WorkUnit, Writer, open_writer
from robustgen.imaging import video
from robustgen.imaging.frost import check_frost
from robustgen.imaging.jpeg import load_ijg
from robustgen.imaging.motion import check_imagemagick
from robustgen.imaging.tiles import TileBank
from robustgen.settings.config import USUAL_SCALE, Choices, Config, make_absolute
from robustgen.sources.base import Items, Loaded, Options, Source
from robustgen.sources.opening import open_source
from robustgen.sources.table import Table

CITATION = (
    "Dan Hendrycks and Thomas Dietterich: Benchmarking Neural Network Robustness to Common Corruptions "
    "and Perturbations. International Conference on Learning Representations, 2019."
)
LICENCE = (
    "The images derive from the source images and remain under their terms; windows of frost derive "
    "from the photographs in the package imagecorruptions."
)


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
    arms : tuple of Variant
    writer : Writer
    store : Store
        The output.
    jobs : int or None
        Number of worker processes; None for one per core.
    dataset : str
        Name of the data set.
    choices : dict
        Choices that the plan follows from, as JSON values with absolute paths.
    citation, licence : str
        Citation and licence of the set.
    mirror : Mirror, optional
        Links or copies other files of the source into every variant.
    """

    recipe: Recipe[Any]
    source: Items[Any]
    keys: tuple[str, ...]
    refused: dict[str, str]
    arms: tuple[Variant, ...]
    writer: Writer
    store: Store
    jobs: int | None
    dataset: str
    choices: dict[str, Any]
    citation: str = CITATION
    licence: str = LICENCE
    mirror: Mirror | None = None

    @property
    def is_beside(self) -> bool:
        """Return whether every folder of the output is a class; its state then lies next to the output."""
        return any(not variant.folder for variant in self.arms)

    def about(self) -> dict[str, Any]:
        """Return the content of `dataset.json` except for settings and counts."""
        return {
            "dataset": self.dataset,
            "kind": self.recipe.title,
            "edition": self.choices.get("edition"),
            "source": {"location": self.source.location, "images": len(self.source.keys())},
            "images": len(self.keys),
            "arms": [variant.folder for variant in self.arms],
            "arrays": list(self.writer.arrays),
            "config": self.choices,
            "licence": self.licence,
            "citation": self.citation,
        }

    def settings(self) -> dict[str, Any]:
        """Return everything that decides the bytes of the output, except for the source images."""
        return self.recipe.settings(self.arms) | {
            "output": self.writer.settings(),
            "versions": list_versions(self.choices.get("libjpeg", "turbo")) | self.writer.versions(),
        }

    def cut(self) -> Iterator[WorkUnit]:
        """Yield the work units, which depend only on the plan."""
        return self.writer.cut(self.keys, self.arms)

    def list_incomplete(self) -> list[str]:
        """Return the arrays that were not written because some of their images failed."""
        sizes = self.store.sizes(self.writer.arrays)
        return [array for array, size in zip(self.writer.arrays, sizes, strict=True) if size < 0]


def resolve_paths(choices: Choices) -> dict[str, Any]:
    """Return the `choices` that decide bytes, with paths made absolute."""
    plain = choices.model_dump(mode="json", exclude={"output", "jobs"})
    paths = {"source", "labels", "subset", "frost_dir", "tiles", "depth_maps", "image_root"}
    absolute = {k: make_absolute(v) if k in paths and isinstance(v, str) else v for k, v in plain.items()}
    return absolute | {"follow_links": [make_absolute(place) for place in choices.follow_links]}


def plan_benchmark(
    config: Config, kind: Kind, *, overwrite: bool = False, store: Store | None = None
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

    Raises
    ------
    ConfigError, SourceError, OutputError
        The request cannot be met; the message names the key.
    """
    benchmark, row = BENCHMARKS[kind], EDITIONS[config.edition]
    try:
        if kind == "p":
            row.check_perturbations()
    except ArgumentError as error:
        raise ConfigError(f"edition: {error}") from error
    store = store or open_store(config.resolve_output(kind))
    refuse_files(store)
    source = open_chosen_source(config, OutputState(store).index_place, config.libjpeg)
    check_classes(source, config)
    keys = select_keys(source, config)
    edition = config.edition if config.size is None else f"{config.edition}@{config.size}"
    arms = config.arms(kind)
    names = dict.fromkeys(arm.name for arm in arms if arm != CLEAN_ARM)
    operations = [benchmark.operations[name] for name in names]
    smallest = min((each.smallest_side for each in operations), default=SMALLEST_SIDE)
    recipe = RECIPES[kind](edition, config.seed, config.scale, _overrides(config, kind), smallest)
    _check_needs(arms, operations, config)
    usual = row.format if row.format != "jpeg" else DEFAULTS[kind]
    name = config.format or ("table" if kind == "c" and isinstance(source, Table) else usual)
    if FORMATS[name].stacked:
        _check_rows(recipe, source, keys)
    if FORMATS[name].joint and not overwrite:
        arms = _add_existing(arms, store, benchmark, stacked=FORMATS[name].stacked)
    if isinstance(recipe, CorruptionRecipe):
        tiles = _open_tiles(config, recipe, arms, source, store)
        depth = _open_depth(config, arms, source, keys, store)
        recipe = dataclasses.replace(recipe, tiles=tiles, depth=depth)
    order = Order(
        benchmark=benchmark,
        arms=arms,
        keys=keys,
        quality=config.quality,
        libjpeg=config.libjpeg,
        subsampling=row.subsampling,
        encodings=lambda: _encodings(config),
        sample_format=config.sample_format,
        shard_size=config.shard_size,
        grey=row.grey,
        source=source,
    )
    # Cite the publications that the corruptions come from.
    cited = operations if kind == "c" else []
    families = [get_family(get_corruption(each.name, row.dialect)) for each in cited]
    citation = " ".join(dict.fromkeys(family.citation for family in families)) or CITATION
    writer = open_writer(name, order)
    plan = assemble_plan(recipe, source, keys, arms, writer, store, config, citation=citation)
    return dataclasses.replace(plan, mirror=_open_mirror(name, config, source))


def _open_tiles(
    config: Config, recipe: CorruptionRecipe, arms: tuple[Variant, ...], source: Source, store: Store
) -> Tiles | None:
    """Read the pictures that `arms` need as tiles; return None if they need none.

    Raises
    ------
    ConfigError, SourceError
        There are too few pictures, or one cannot be read.
    """
    bound = [recipe.bind(arm) for arm in arms if arm.name.startswith("laion-c:")]
    parameters = [each.parameters(USUAL_SCALE) for each in bound]
    sides = [find_tile_side(each) for each in parameters if lacks_tiles(each)]
    if not sides:
        if config.tiles:
            raise ConfigError(
                "tiles: used only by laion-c:stickers and laion-c:mosaic, which are not selected"
            )
        return None
    if config.tiles is None:
        return read_tiles(source, match_keys(source, config), sides, OutputState(store).store, own=True)
    try:
        pictures = open_source(make_absolute(config.tiles), options=Options(libjpeg=config.libjpeg))
        keys = pictures.keys()
    except SourceError as error:
        raise ConfigError(f"tiles: {error}") from error
    return read_tiles(pictures, keys, sides, OutputState(store).store, own=False)


def _open_depth(
    config: Config, arms: tuple[Variant, ...], source: Source, keys: tuple[str, ...], store: Store
) -> DepthMaps | None:
    """Open the depth maps that `arms` need, and check every image for one; return None if none are needed.

    Raises
    ------
    ConfigError
        Maps are missing, or are given although no variant needs them.
    """
    dialect = EDITIONS[config.edition].dialect
    needing = [arm for arm in arms if arm != CLEAN_ARM and get_corruption(arm.name, dialect).needs_depth]
    if not needing:
        if config.depth_maps or config.depth_scale != 1:
            raise ConfigError(
                "depth: used only by 3dcc:fog_3d, 3dcc:near_focus and 3dcc:far_focus, which are not selected"
            )
        return None
    if config.depth_maps is None:
        raise ConfigError(f"{needing[0].name} needs depth maps: name them with --depth, or leave it out")
    maps = open_depth(make_absolute(config.depth_maps), source, config.depth_scale, OutputState(store).store)
    maps.check(keys)
    return maps


def _open_mirror(name: str, config: Config, source: Source) -> Mirror | None:
    """Return the mirror of the source's other files, if the config asks for one.

    Raises
    ------
    ConfigError
        The source or the format does not allow it.
    """
    if config.mirror is None:
        return None
    if name != "original":
        raise ConfigError(
            "mirror: needs --format original, which keeps the names that other files refer to; "
            "choose it, or --mirror none"
        )
    folder = open_store(source.location)
    if folder.is_local and not Path(source.location).is_dir():
        raise ConfigError(f"mirror: {source.location} is not a folder; choose --mirror none")
    chosen, others = frozenset(match_keys(source, config)), frozenset(source.keys())
    return Mirror(folder, chosen, others - chosen, link=config.mirror == "link")


def assemble_plan(
    recipe: Recipe[Loaded],
    source: Items[Loaded],
    keys: tuple[str, ...],
    arms: tuple[Variant, ...],
    writer: Writer,
    store: Store,
    choices: Choices,
    *,
    citation: str = CITATION,
    licence: str = LICENCE,
) -> Plan:
    """Return the plan to create `arms` from the images `keys` of `source`, without refused images.

    Raises
    ------
    OutputError
        The location of the output is not allowed.
    """
    _check_output(store, source)
    refused = source.refused() | _collisions(source, writer, arms)
    keys = tuple(key for key in keys if key not in refused)
    about = choices.jobs, choices.name_dataset(), resolve_paths(choices), citation, licence
    return Plan(recipe, source, keys, refused, arms, writer, store, *about)


def _collisions(source: Items[Any], writer: Writer, arms: tuple[Variant, ...]) -> dict[str, str]:
    """Return the images whose output name is already taken by an earlier image or by a file about the set.

    The values are the reasons.
    """
    reserved = {SUMS, FRAMES}
    if any(not arm.folder for arm in arms):
        reserved |= {MANIFEST, ERRORS}
    first: dict[str, str] = {}
    refused = {}
    for key in source.keys():  # noqa: SIM118
        if (name := writer.output_name(key)) is None:
            continue
        earlier = first.setdefault(name, key)
        if (top := name.split("/")[0]) in reserved:
            refused[key] = f"its output would replace the set's own {top}"
        elif earlier != key:
            refused[key] = f"its output would replace that of {earlier!r}"
    return refused


def _add_existing(
    arms: tuple[Variant, ...], store: Store, benchmark: Benchmark, *, stacked: bool
) -> tuple[Variant, ...]:
    """Return `arms` and the existing variants, in a fixed order, if their files share a list of images."""
    existing = [arm for plan in OutputState(store).plans() for arm in plan["about"]["arms"]]
    order = {name: place for place, name in enumerate((CLEAN, *benchmark.operations))}
    found = {*arms, *filter(None, map(benchmark.arm_in, existing))}
    wanted = sorted((arm for arm in found if arm.name in order), key=lambda arm: (order[arm.name], arm.level))
    if not (stacked and benchmark.shares_arrays):
        return tuple(wanted)
    names = dict.fromkeys(arm.name for arm in wanted if arm != CLEAN_ARM)
    levels = sorted({arm.level for arm in wanted if arm != CLEAN_ARM})
    return benchmark.arms(names, levels, clean=CLEAN_ARM in wanted)


def _check_output(store: Store, source: Items[Any]) -> None:
    """Raise an error if the output overlaps its source, another set or a file."""
    output, root = store.location, source.location
    if store.is_local != (not is_url(root)):
        return
    if f"{output}/".startswith(f"{root}/"):
        raise OutputError(f"output {output} is inside the source {root}; choose another --output")
    if root.startswith(f"{output}/"):
        raise OutputError(f"output {output} contains the source {root}; choose another --output")
    if not store.is_local:
        return
    refuse_files(store)
    for folder in Path(output).parents:
        if (folder / MANIFEST).exists() or OutputState(open_store(folder)).exists:
            raise OutputError(f"output {output} is inside another set, {folder}; choose another --output")


def _check_needs(arms: tuple[Variant, ...], operations: Iterable[Operation], config: Config) -> None:
    """Check for constants, libraries and files now rather than at the first image."""
    row, names = EDITIONS[config.edition], {arm.name for arm in arms}
    try:
        for operation in operations:
            if row.side and row.side < operation.smallest_side:
                side = operation.smallest_side
                raise ArgumentError(f"{operation.name} needs sides of at least {side} pixels")
            scale = config.scale or row.fixed_scale(operation.table)
            of_sides = any(isinstance(each, int) for each in operation.table)
            if scale or not (of_sides or len(operation.table) == 1):
                operation.rows(scale or USUAL_SCALE)
    except ArgumentError as error:
        raise ConfigError(f"edition {config.edition}: {error}") from error
    if "frost" in names:
        check_frost(config.frost_dir)
    if config.motion_blur == "imagemagick":
        if row.dialect:
            raise ConfigError(
                f"motion_blur: imagemagick: edition {config.edition} defines its own motion blur"
            )
        if names & {"motion_blur", "snow"}:
            check_imagemagick()
    if config.libjpeg == "ijg":
        load_ijg()
    for arm in arms:
        if ":" in arm.name:
            _check_requirements(arm, config)


def _check_requirements(arm: Variant, config: Config) -> None:
    """Check that the tiles or libraries of a corruption are available."""
    edition = EDITIONS[config.edition]
    operation = get_corruption(arm.name, edition.dialect)
    if operation.requires:
        scale = config.scale or edition.fixed_scale(operation.table) or next(iter(operation.table))
        own = config.parameters.get(arm.name, {}).get(int(arm.level), {})
        parameters = dataclasses.replace(operation.parameters(arm.level, scale), **own)
        side = operation.preparation(parameters).crop if edition.by_corruption else edition.side
        if lacks_tiles(parameters):
            # `_open_tiles` reads them.
            parameters = dataclasses.replace(parameters, tiles=TileBank({}))
        operation.requires(parameters, config.size or side)


def _try_out(config: Config) -> None:
    """Corrupt one image with each set of the config's own parameters, as values may not fit each other."""
    row = EDITIONS[config.edition]
    side = min(64, row.side or 64)
    image = np.arange(side * side * 3, dtype=np.uint8).reshape(side, side, 3)
    edition = config.edition if row.dialect or row.data_set else "folder"
    recipe = CorruptionRecipe(edition, 0, config.scale, config.parameters)
    for name, levels in config.parameters.items():
        # `_check_requirements` covers the corruptions that need files.
        tried = [] if getattr(get_corruption(name, row.dialect), "requires", None) else levels
        for level in tried:
            try:
                recipe.make(Variant(name, level, f"{name}/{level}"), "trial", image)
            except Exception as error:
                raise ConfigError(f"parameters: {name}.{level}: cannot be used: {error}") from error


def _overrides(config: Config, kind: Kind) -> dict[str, dict[int, dict[str, Any]]]:
    """Return the config's own parameters, engine and photographs, by operation and level."""
    overrides: dict[str, dict[int, dict[str, Any]]] = {}
    if kind == "c":
        _try_out(config)
        overrides = copy.deepcopy(config.parameters)
    chosen = {"engine": config.motion_blur, "directory": config.frost_dir}
    everywhere = {name: value for name, value in chosen.items() if value not in (None, "exact")}
    recipe = RECIPES[kind](config.edition)
    for name in BENCHMARKS[kind].names:
        operation = recipe.get_operation(name)
        names = {field.name for field in dataclasses.fields(operation.parameters(1, 224))}
        for parameter in everywhere.keys() & names:
            for level in {*operation.levels, *(config.severities if kind == "c" else ())}:
                overrides.setdefault(name, {}).setdefault(level, {})[parameter] = everywhere[parameter]
    return overrides


def _encodings(config: Config) -> tuple[video.Encoding, video.Encoding]:
    """Return the encodings of smooth sequences and of noise."""
    choice = config.video
    side = config.size or EDITIONS[config.edition].side or 0
    if side % 2 and (choice.playable or choice.pixel_format == "yuv420p"):
        raise ConfigError(f"video: yuv420p halves the colour, which {side} x {side} pixels do not allow")
    changes: dict[str, Any] = {"preset": choice.preset, "pixel_format": choice.pixel_format}
    changes |= {} if choice.crf is None else {"crf": choice.crf}
    usual = video.Encoding(), video.Encoding(crf=None, tune="grain")
    smooth, noise = (dataclasses.replace(encoding, **changes) for encoding in usual)
    if choice.lossless:
        smooth, noise = smooth.lossless(), noise.lossless()
    return (smooth.playable(), noise.playable()) if choice.playable else (smooth, noise)


def _check_rows(recipe: BenchmarkRecipe, source: Source, keys: tuple[str, ...]) -> None:
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
                f"format npy: {named}; all images must have one size: choose an edition, or --size"
            )
