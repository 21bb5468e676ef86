"""list: all available operations, editions, formats and data sets; config: every key of a config."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from robustgen.cli.app import command, echo, echo_keys, echo_text, explain_wings
from robustgen.cli.flags import takes
from robustgen.display.text import format_constant
from robustgen.errors import ArgumentError, UnknownNameError
from robustgen.settings.config import Config
from robustgen.settings.fields import Part
from robustgen.settings.inspecting import Listing, ShowingConfig

if TYPE_CHECKING:
    from robustgen.pixels.benchmarks.editions import Edition
    from robustgen.pixels.benchmarks.registry import Family, Operation
    from robustgen.sets.formats import Format


@command("list")
@takes(options=Listing)
def list_(options: Listing) -> None:
    """List corruptions, perturbations, editions, formats, data sets.

    NAME shows all details: constants, preparation, or the config of a data set. A group or family, such as
    common, noise, c-bar or formats, lists its members. Without NAME, lists everything.

    Examples
    --------
    robustgen list glass_blur
    robustgen list --keys /data/imagenet/val
    """
    name = options.name
    if options.keys:
        from robustgen.sets.sources.base import SourceOptions
        from robustgen.sets.sources.opening import open_source

        named = options.labels_are_classes, options.label_column
        reading = SourceOptions(labels=options.labels, labels_are_classes=named[0], label_column=named[1])
        source = open_source(options.keys, options=reading)
        echo_keys(source.keys())
        for remark in source.remarks():
            echo(remark, err=True)
        return
    from robustgen.display.text import format_json
    from robustgen.pixels.benchmarks.corruptions import FAMILIES
    from robustgen.sets.executors import EXECUTORS
    from robustgen.sets.formats import FORMATS
    from robustgen.sets.sources import SOURCES

    found = [*(_find(name) if name else _list_all(FAMILIES))]
    if options.format == "json":
        echo_text(format_json(found))
    elif name in (each["name"] for each in found):
        echo_text("\n\n".join(map(_describe, found)))
    else:
        echo_text(_summarise(found))
    if not name:
        tables = (FAMILIES, FORMATS, SOURCES, EXECUTORS)
        for problem in (*(each for table in tables for each in table.problems()), *explain_wings()):
            echo(problem, err=True)
    if name and name in FAMILIES:
        for corruption, reason in FAMILIES[name].not_made.items():
            echo(f"{name}:{corruption} cannot be made: it {reason}", err=True)


def _find(name: str) -> list[dict[str, Any]]:
    """Return the entries called `name`, or the members of the group or family of that name.

    Only the plug-in that `name` begins with is imported.
    """
    from robustgen.pixels.benchmarks.corruptions import FAMILIES

    plugin = name.partition(":")[0]
    families = dict(FAMILIES.built_in)
    if family := FAMILIES.get(plugin):
        families[plugin] = family
    every = [*_list_all(families)]
    found = [each for each in every if each["name"] == name]
    found = found or [each for each in every if name in _groups(each)]
    if not found:
        if family and (reason := family.not_made.get(name.partition(":")[2])):
            raise ArgumentError(f"{name} cannot be made: it {reason}")
        known = {str(word) for each in every for word in (each["name"], *_groups(each))}
        nouns = "corruption, perturbation, edition, format, data set, recipe or family"
        if get_close_matches(name.lower(), known, n=1):
            raise UnknownNameError(nouns, name, sorted(known))
        raise ArgumentError(f"unknown {nouns} {name!r} (robustgen list names all)")
    return found


def _groups(each: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the groups of an entry, such as formats, and those that ``--corruptions`` takes."""
    plural = f"{each['type']}s".replace(" ", "-")
    if each["type"] == "corruption" and each["group"] != "common":
        return plural, each["group"], f"{each['group']}:all"
    if each["type"] in ("corruption", "perturbation"):
        benchmark = "imagenet-c" if each["type"] == "corruption" else "imagenet-p"
        within = ("common", each["category"]) if each["common"] else ("extra",)
        return plural, "all", *within, benchmark
    return (plural,)


def _list_all(families: Mapping[str, "Family"]) -> Iterator[dict[str, Any]]:
    """Yield all corruptions of `families`, perturbations, editions, formats, sets and recipes, for JSON."""
    from robustgen.pixels.benchmarks.editions import EDITIONS
    from robustgen.pixels.benchmarks.perturbations import PERTURBATIONS
    from robustgen.sets.formats import FORMATS
    from robustgen.settings.recipes import list_recipes
    from robustgen.settings.yaml_files import dataset_file, dataset_names

    for family in families.values():
        for operation in family.corruptions.values():
            mean = family.means.get(operation.name)
            published = {} if mean is None else {"published_mean_error": mean, "reference": family.reference}
            names = {"family": family.title, "group": family.group}
            yield _read_operation(operation) | names | published
    yield from map(_read_operation, PERTURBATIONS.values())
    yield from map(_read_edition, EDITIONS.values())
    yield from (_read_format(name, FORMATS[name]) for name in FORMATS.list_usable())
    for name in dataset_names():
        yield {"type": "data set", "name": name, "config": dataset_file(name).read_text(encoding="utf-8")}
    yield from ({"type": "recipe", **row._asdict()} for row in list_recipes())


def _read_operation(operation: "Operation") -> dict[str, Any]:
    return {
        "type": operation.noun,
        "name": operation.name,
        "category": operation.category,
        "common": operation.common,
        "random": operation.random,
        "summary": operation.summary,
        "level": operation.level_name,
        "needs": {
            need.name: f"{need.sentence} (make-c --{f'set {need.key}' if need.key else f'with {need.name}'}=)"
            for need in (getattr(operation, "needs", None),)
            if need
        },
        "parameters": {
            scale: {level: asdict(operation.parameters(level, scale)) for level in operation.levels}
            for scale in operation.table
        },
    }


def _read_edition(edition: "Edition") -> dict[str, Any]:
    from robustgen.pixels.benchmarks.registry import CLIP_SETS

    return {
        "type": "edition",
        "name": edition.name,
        "scale": edition.scale,
        "preparation": edition.preparation,
        "format": "mp4" if edition.data_set in CLIP_SETS else edition.format,
    }


def _read_format(name: str, row: "Format") -> dict[str, Any]:
    return {
        "type": "format",
        "name": name,
        "title": row.title,
        "sets": [{"c": "images", "p": "sequences", "clip": "clips"}[content] for content in row.encoders],
        "contains_images": row.file_per == "shard",
    }


def _summarise(found: list[dict[str, Any]]) -> str:
    """Return a line for each entry, below headings."""
    lines: list[str] = []
    head = ""
    for each in found:
        if _head(each) != head:
            lines += [""] * bool(head) + [_head(each)]
            head = _head(each)
        lines.append(_row(each))
    return "\n".join(lines)


def _head(each: dict[str, Any]) -> str:
    if each["type"] == "corruption":
        return f"corruptions of {each['family']} (robustgen make-c --corruptions {each['group']})"
    return {
        "perturbation": "perturbations (robustgen make-p)",
        "edition": "editions",
        "format": "formats (robustgen make-c --format NAME; with images inside also webdataset:png)",
        "data set": "data sets (robustgen make-c --dataset NAME)",
        "recipe": "recipes of well-known sets (robustgen COMMAND)",
    }[each["type"]]


def _row(each: dict[str, Any]) -> str:
    if each["type"] == "edition":
        return f"  {each['name']:20s} scale {each['scale'] or 'nearest to the image'}"
    if each["type"] == "format":
        return f"  {_describe(each).removeprefix('format ')}"
    if each["type"] == "data set":
        return f"  {each['name']:20s} {each['config'].partition(chr(10))[0].removeprefix('# ')}"
    if each["type"] == "recipe":
        return f"  {each['name']:20s} {each['command']}"
    first = next(iter(each["parameters"].values()))[1]
    group = "common" if each["common"] else "extra"
    return f"  {each['name']:31s} {each['category']:8s} {group:7s} {', '.join(first)}"


def _describe(each: dict[str, Any]) -> str:
    """Return all details of an entry, in several lines."""
    if each["type"] == "data set":
        return f"data set {each['name']}, the config\n\n{each['config'].rstrip()}"
    if each["type"] == "recipe":
        return "\n".join(f"{key:9s} {value}" for key, value in each.items() if value and key != "type")
    if each["type"] == "format":
        inside = ", with images inside" * each["contains_images"]
        return f"format {each['name']:20s} {each['title']}: {' and '.join(each['sets'])}{inside}"
    if each["type"] == "edition":
        scale = f"constants of {each['scale']} pixels" if each["scale"] else "constants nearest to the image"
        lines = [f"edition {each['name']}: {scale}", f"  images      {each['preparation']}"]
        return "\n".join([*lines, f"  by default  {each['format']} files"])
    lines = [f"{each['type']} {each['name']}" + f": {each['summary']}" * bool(each["summary"])]
    lines += [f"  needs {name}: {what}" for name, what in each["needs"].items()]
    for scale, levels in each["parameters"].items():
        for level, values in levels.items():
            constants = ", ".join(f"{key} {format_constant(value)}" for key, value in values.items())
            lines.append(f"  scale {scale!s:>3}, {each['level']} {level}: {constants}")
    if "published_mean_error" in each:
        mean = f"{100 * each['published_mean_error']:.1f} %"
        lines.append(f"  published mean error of {each['reference']}: {mean}")
    return "\n".join(lines)


@command("config")
@takes(parts=Part, config=Config, options=ShowingConfig)
def config(config: Config, options: ShowingConfig) -> None:
    """Show every key of a config, its value and its origin.

    Takes the flags of make-c and make-p. --schema prints the JSON Schema of a config file, with which editors
    complete and check it.

    Examples
    --------
    robustgen config --dataset imagenet --source /data/imagenet/val
    robustgen config --schema
    """
    from robustgen.display.text import format_json
    from robustgen.settings.schema import make_schema

    if options.as_schema:
        echo_text(format_json(make_schema(Config)))
        return
    for key, value in config.model_dump(mode="json", by_alias=True).items():
        # JSON in one line is YAML, so the output is a config.
        echo(f"{key}: {json.dumps(value)}  # {config.origins.get(key, 'default')}")
