"""Choices to the `Plan` of a run: which images, which arms, into what, with which settings.

`assemble_plan` serves every kind of set; `plan_benchmark` makes that of a C or a P set from its `Config`.
"""

import dataclasses
import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robustgen.benchmark import BENCHMARKS, CLEAN, CLEAN_ARM, Arm, Benchmark, Kind
from robustgen.corruptions import get_corruption, get_family
from robustgen.editions import EDITIONS, get_edition
from robustgen.errors import ArgumentError, ConfigError, ImageError, OutputError, SourceError
from robustgen.generation.config import Choices, Config, Video
from robustgen.generation.recipes import RECIPES, BenchmarkRecipe, CorruptionRecipe, Recipe
from robustgen.generation.selection import check_classes, match_keys, open_chosen_source, select_keys
from robustgen.generation.versions import list_versions
from robustgen.imaging import video
from robustgen.imaging.frost import check_frost
from robustgen.imaging.jpeg import load_ijg
from robustgen.imaging.motion import check_imagemagick
from robustgen.output.files import ERRORS, FRAMES, MANIFEST, SUMS
from robustgen.output.mirror import Mirror
from robustgen.output.state import State
from robustgen.output.writers import DEFAULTS, FORMATS, Listing, Order, Writer, open_writer
from robustgen.sources.base import Items, Loaded, Source

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
    """All that a run needs to know.

    Attributes
    ----------
    recipe : Recipe
    source : Source
    keys : tuple of str
        The source images, in the order of the source.
    refused : dict
        Images of the source that must not be taken, with the reasons.
    arms : tuple of Arm
    writer : Writer
    output : Path
    jobs : int or None
        Worker processes; None for one a core.
    dataset : str
        Name of the data set.
    choices : dict
        What it was made from, as JSON takes it, paths absolute; ``verify --deep`` plans anew from it.
    citation, licence : str
        Of what is made.
    mirror : Mirror, optional
        Repeats what the source has beside its images in every arm.
    """

    recipe: Recipe[Any]
    source: Items[Any]
    keys: tuple[str, ...]
    refused: dict[str, str]
    arms: tuple[Arm, ...]
    writer: Writer
    output: Path
    jobs: int | None
    dataset: str
    choices: dict[str, Any]
    citation: str = CITATION
    licence: str = LICENCE
    mirror: Mirror | None = None

    def digest(self) -> str:
        """What tells this plan's images and arms from another's, in any order: eight hexadecimal digits."""
        listing = [*self.keys, "", *sorted(arm.folder for arm in self.arms)]
        return hashlib.sha256("\0".join(listing).encode("utf-8", "surrogateescape")).hexdigest()[:8]

    def about(self) -> dict[str, Any]:
        """What `dataset.json` says beside settings and counts."""
        return {
            "dataset": self.dataset,
            "kind": self.recipe.title,
            "edition": self.choices.get("edition"),
            "source": {"location": str(self.source.location.resolve()), "images": len(self.source.keys())},
            "images": len(self.keys),
            "arms": [arm.folder for arm in self.arms],
            "arrays": list(self.writer.arrays),
            "config": self.choices,
            "licence": self.licence,
            "citation": self.citation,
        }

    def listing(self) -> Listing:
        """The images, in order, and their classes."""
        return Listing(self.keys, self.source.label, lambda: self.source.classes)

    def settings(self) -> dict[str, Any]:
        """All that decides the bytes of the output, but for the source images."""
        return self.recipe.settings(self.arms) | {
            "output": self.writer.settings(),
            "versions": list_versions(self.choices.get("libjpeg", "turbo")) | self.writer.versions(),
        }


def resolve_paths(choices: Choices) -> dict[str, Any]:
    """`choices` without what decides no byte, their paths absolute, so that they hold in any folder."""
    plain = choices.model_dump(mode="json", exclude={"output", "jobs"})
    paths = {"source", "labels", "subset", "frost_dir"}
    absolute = {k: str(Path(v).absolute()) if k in paths and v else v for k, v in plain.items()}
    return absolute | {"follow_links": [str(Path(place).absolute()) for place in choices.follow_links]}


def plan_benchmark(config: Config, kind: Kind, *, anew: bool = False, held: Path | None = None) -> Plan:
    """Turn a config into the plan of a C or a P set; `anew` if what the output holds does not count.

    The index of the source that an earlier run kept is in the output, or `held` elsewhere.

    Raises
    ------
    ConfigError, SourceError, OutputError
        What was asked for cannot be done; the message names the key.
    """
    if kind == "p":
        _check_perturbations(config)
    output = config.resolve_output(kind)
    source = open_chosen_source(config, held or State(output).source_index)
    check_classes(source, config)
    keys = select_keys(source, config)
    edition = config.edition if config.size is None else f"{config.edition}@{config.size}"
    recipe = RECIPES[kind](edition, config.seed, config.scale, _overrides(config, kind))
    arms = config.arms(kind)
    _check_strengths(arms, config, BENCHMARKS[kind])
    _check_ingredients(arms, config)
    name = _format_name(config, kind)
    if FORMATS[name].joint and not anew:
        arms = _add_held(arms, output, BENCHMARKS[kind], stacked=FORMATS[name].stacked)
    writer = _open_writer(name, config, recipe, source, keys, arms)
    citation = _cite(arms, config.edition) if kind == "c" else CITATION
    plan = assemble_plan(recipe, source, keys, arms, writer, output, config, citation=citation)
    return dataclasses.replace(plan, mirror=_open_mirror(name, config, source))


def _open_mirror(name: str, config: Config, source: Source) -> Mirror | None:
    """What repeats the other files of the source, if the config asks for it.

    Raises
    ------
    ConfigError
        The source or the format does not allow it.
    """
    if config.mirror is None:
        return None
    if name != "same":
        raise ConfigError("mirror: goes with format same, which keeps the names that other files refer to")
    if not source.location.is_dir():
        raise ConfigError(f"mirror: {source.location} is no folder")
    return Mirror(source.location, frozenset(match_keys(source, config)), link=config.mirror == "link")


def assemble_plan(
    recipe: Recipe[Loaded],
    source: Items[Loaded],
    keys: tuple[str, ...],
    arms: tuple[Arm, ...],
    writer: Writer,
    output: Path,
    choices: Choices,
    *,
    citation: str = CITATION,
    licence: str = LICENCE,
) -> Plan:
    """The plan of making `arms` of the images `keys` of `source`, without those that must not be taken.

    Raises
    ------
    OutputError
        The output lies where it must not.
    """
    _check_output(output, source)
    refused = source.refused() | _collisions(source, writer, arms)
    keys = tuple(key for key in keys if key not in refused)
    dataset, jobs = choices.name_dataset(), choices.jobs
    made_from = resolve_paths(choices)
    return Plan(
        recipe,
        source,
        keys,
        refused,
        arms,
        writer,
        output,
        jobs,
        dataset,
        made_from,
        citation,
        licence,
    )


def _collisions(source: Items[Any], writer: Writer, arms: tuple[Arm, ...]) -> dict[str, str]:
    """The images whose output would be that of an earlier one or a file about the set, with the reason."""
    reserved = {SUMS, FRAMES}
    if any(not arm.folder for arm in arms):
        reserved |= {MANIFEST, ERRORS}
    first: dict[str, str] = {}
    refused = {}
    names = ((key, writer.output_name(key)) for key in source.keys())  # noqa: SIM118
    for key, name in ((key, name) for key, name in names if name is not None):
        earlier = first.setdefault(name, key)
        if (top := name.split("/")[0]) in reserved:
            refused[key] = f"its output would lie where the set's own {top} belongs"
        elif earlier != key:
            refused[key] = f"its output would be that of {earlier!r}"
    return refused


def _format_name(config: Config, kind: Kind) -> str:
    """The format that is asked for, or else that of the published set."""
    arrays = get_edition(config.edition).format == "npy"
    return config.format or ("npy" if arrays else DEFAULTS[kind])


def _add_held(arms: tuple[Arm, ...], output: Path, benchmark: Benchmark, *, stacked: bool) -> tuple[Arm, ...]:
    """`arms`, and those that `output` holds: its files hold many images, and all arms share one list."""
    try:
        held = State(output).settings().get("parameters", {})
    except (OSError, OutputError):
        held = {}
    if not held:
        return arms
    order = {name: place for place, name in enumerate((CLEAN, *benchmark.operations))}
    found = {*arms, *filter(None, map(benchmark.arm_in, held))}
    wanted = sorted((arm for arm in found if arm.name in order), key=lambda arm: (order[arm.name], arm.level))
    if not (stacked and benchmark.shares_arrays):
        return tuple(wanted)
    names = dict.fromkeys(arm.name for arm in wanted if arm != CLEAN_ARM)
    levels = sorted({arm.level for arm in wanted if arm != CLEAN_ARM})
    return benchmark.arms(names, levels, clean=CLEAN_ARM in wanted)


def _check_output(output: Path, source: Items[Any]) -> None:
    inside, root = output.resolve(), source.location.resolve()
    if root.is_dir() and (inside == root or root in inside.parents):
        raise OutputError(f"output {output} lies inside the source {source.location}")
    if inside in root.parents:
        raise OutputError(f"output {output} lies around the source {source.location}")
    for folder in inside.parents:
        if (folder / MANIFEST).exists() or State(folder).has_settings:
            raise OutputError(f"output {output} lies inside another set, {folder}")
    try:
        if output.exists() and not output.is_dir():
            raise OutputError(f"output {output} is a file")
    except OSError as error:
        raise OutputError(f"output {output} cannot be used: {error.strerror}") from error


def _check_perturbations(config: Config) -> None:
    try:
        EDITIONS[config.edition].check_perturbations()
    except ArgumentError as error:
        raise ConfigError(f"edition: {error}") from error


def _check_strengths(arms: tuple[Arm, ...], config: Config, benchmark: Benchmark) -> None:
    """Refuse what has no published strength where the constants are those of one scale."""
    scale = config.scale or EDITIONS[config.edition].scale
    if scale is None:
        return
    for name in dict.fromkeys(arm.name for arm in arms if arm != CLEAN_ARM):
        try:
            benchmark.operations[name].rows(scale)
        except ArgumentError as error:
            raise ConfigError(f"edition {config.edition}: {error}") from error


def _cite(arms: tuple[Arm, ...], edition: str) -> str:
    """The publications that the corruptions among `arms` are from."""
    dialect = EDITIONS[edition].dialect
    made = [get_corruption(arm.name, dialect) for arm in arms if arm != CLEAN_ARM]
    return " ".join(dict.fromkeys(get_family(each).citation for each in made)) or CITATION


def _check_ingredients(arms: tuple[Arm, ...], config: Config) -> None:
    """Find out now, not at the first image, whether what is not our own is there."""
    names = {arm.name for arm in arms}
    if "frost" in names:
        check_frost(config.frost_dir)
    if config.motion_blur == "imagemagick" and EDITIONS[config.edition].dialect:
        raise ConfigError(f"motion_blur: imagemagick: edition {config.edition} has a motion blur of its own")
    if config.motion_blur == "imagemagick" and names & {"motion_blur", "snow"}:
        check_imagemagick()
    if config.libjpeg == "ijg":
        load_ijg()


def _try_out(config: Config) -> None:
    """Make one image with each of the config's own parameters, as they may fit each other no better."""
    image = np.arange(64 * 64 * 3, dtype=np.uint8).reshape(64, 64, 3)
    edition = config.edition if EDITIONS[config.edition].dialect else "folder"
    recipe = CorruptionRecipe(edition, 0, config.scale, config.parameters)
    for name, levels in config.parameters.items():
        for level in levels:
            try:
                recipe.make(Arm(name, level, f"{name}/{level}"), "trial", image)
            except Exception as error:
                raise ConfigError(f"parameters: {name}.{level}: cannot be used: {error}") from error


def _overrides(config: Config, kind: Kind) -> dict[str, dict[int, dict[str, Any]]]:
    """The config's own parameters, and its choice of libraries and photographs, per operation and level."""
    overrides: dict[str, dict[int, dict[str, Any]]] = {}
    if kind == "c":
        _try_out(config)
        overrides = {
            name: {n: dict(v) for n, v in levels.items()} for name, levels in config.parameters.items()
        }
    everywhere: dict[str, Any] = {}
    if config.motion_blur != "exact":
        everywhere["engine"] = config.motion_blur
    if config.frost_dir:
        everywhere["directory"] = config.frost_dir
    if config.libjpeg != "turbo":
        everywhere["library"] = config.libjpeg
    recipe = RECIPES[kind](config.edition)
    for name in BENCHMARKS[kind].names:
        operation = recipe.get_operation(name)
        names = {field.name for field in dataclasses.fields(operation.parameters(1, 224))}
        for parameter in everywhere.keys() & names:
            for level in {*operation.levels, *(config.severities if kind == "c" else ())}:
                overrides.setdefault(name, {}).setdefault(level, {})[parameter] = everywhere[parameter]
    return overrides


def _open_writer(
    name: str,
    config: Config,
    recipe: BenchmarkRecipe,
    source: Source,
    keys: tuple[str, ...],
    arms: tuple[Arm, ...],
) -> Writer:
    benchmark = recipe.benchmark
    order = Order(
        benchmark=benchmark,
        arms=arms,
        keys=keys,
        quality=config.quality,
        libjpeg=config.libjpeg,
        shapes=lambda: _shapes(recipe, source, keys, arms),
        encodings=lambda: _encodings(config),
        sample_format=config.sample_format,
        shard_size=config.shard_size,
    )
    return open_writer(name, order)


def _encodings(config: Config) -> tuple[video.Encoding, video.Encoding]:
    """How smooth sequences are encoded, and how noise is."""
    choice = config.video
    scale = config.size or config.scale or EDITIONS[config.edition].scale or 0
    if scale % 2 and (choice.playable or choice.pixel_format == "yuv420p"):
        raise ConfigError(f"video: yuv420p halves the colour, which {scale} x {scale} pixels do not allow")
    smooth = video.Encoding(preset=choice.preset, pixel_format=choice.pixel_format)
    noise = video.Encoding(preset=choice.preset, pixel_format=choice.pixel_format, crf=None, tune="grain")
    return _apply_choice(smooth, choice), _apply_choice(noise, choice)


def _apply_choice(encoding: video.Encoding, choice: Video) -> video.Encoding:
    if choice.crf is not None:
        encoding = dataclasses.replace(encoding, crf=choice.crf)
    encoding = encoding.lossless() if choice.lossless else encoding
    return encoding.playable() if choice.playable else encoding


def _shapes(
    recipe: BenchmarkRecipe, source: Source, keys: tuple[str, ...], arms: tuple[Arm, ...]
) -> Mapping[str, tuple[int, ...]]:
    """The shape of what each arm makes, taken from the first image that can be read."""
    if get_edition(recipe.edition).keeps_size:
        _check_one_size(source, keys)
    for key in keys:
        try:
            image = recipe.prepare(source.load(key))
            return {arm.folder: np.shape(recipe.make(arm, key, image)) for arm in arms}
        except ImageError:
            continue
    raise SourceError(f"{source.location}: no image of it can be read")


def _check_one_size(source: Source, keys: tuple[str, ...]) -> None:
    """Refuse to make arrays of images that do not fit the same rows."""
    first: dict[tuple[int, int], str] = {}
    for key in keys:
        # What cannot be read fails in the run.
        with suppress(ImageError):
            first.setdefault(source.dimensions(key), key)
        if len(first) > 1:
            named = ", ".join(f"{key!r} is {width} x {height}" for (width, height), key in first.items())
            raise ConfigError(
                f"format npy: {named}; images of one size are needed: name an edition, or --size"
            )
