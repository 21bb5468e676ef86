"""list: what there is to choose from."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from robustgen.cli.app import Section, command, echo, echo_keys, echo_text
from robustgen.cli.options import complete_operations
from robustgen.errors import UnknownNameError

if TYPE_CHECKING:
    from robustgen.editions import Edition
    from robustgen.registry import Operation


@command("list", Section.MAKE)
@click.argument("name", required=False, shell_complete=complete_operations)
@click.option("--json", "as_json", is_flag=True, help="All that is known, as JSON.")
@click.option("--keys", metavar="SOURCE", help="List the keys of a source's images, for --subset.")
@click.option("--labels", metavar="FILE", help="Labels file of a flat SOURCE.")
def list_(name: str | None, as_json: bool, keys: str | None, labels: str | None) -> None:
    """List corruptions, perturbations, editions, data sets.

    With NAME, all about one of them: constants, preparation, the config it stands for.
    """
    if keys:
        from robustgen.sources.opening import open_source

        echo_keys(open_source(keys, labels=labels).keys())
        return
    from robustgen.corruptions import FAMILIES
    from robustgen.display.text import format_json

    found = [each for each in _list_all() if name in (None, each["name"])]
    if not found:
        known = [each["name"] for each in _list_all()]
        raise UnknownNameError("corruption, perturbation, edition or data set", str(name), known)
    if as_json:
        echo_text(format_json(found))
    else:
        echo_text("\n\n".join(map(_describe, found)) if name else _summarise(found))
    for problem in [] if name else FAMILIES.problems():
        echo(problem, err=True)


def _list_all() -> Iterator[dict[str, Any]]:
    """All corruptions, perturbations, editions and data sets, as JSON takes them."""
    from robustgen.corruptions import FAMILIES
    from robustgen.editions import EDITIONS
    from robustgen.generation.config import dataset_file, dataset_names
    from robustgen.perturbations import PERTURBATIONS

    for family in FAMILIES.values():
        for operation in family.corruptions.values():
            mean = family.means.get(operation.name)
            published = {} if mean is None else {"published_mean_error": mean, "reference": family.reference}
            names = {"family": family.title, "group": family.group}
            yield _read_operation(operation) | names | published
    yield from map(_read_operation, PERTURBATIONS.values())
    yield from map(_read_edition, EDITIONS.values())
    for name in dataset_names():
        yield {"kind": "data set", "name": name, "config": dataset_file(name).read_text(encoding="utf-8")}


def _read_operation(operation: "Operation") -> dict[str, Any]:
    return {
        "kind": operation.kind,
        "name": operation.name,
        "category": operation.category,
        "common": operation.common,
        "random": operation.random,
        "summary": (operation.function.__doc__ or "").splitlines()[0],
        "level": operation.level_name,
        "parameters": {
            scale: {level: asdict(operation.parameters(level, scale)) for level in operation.levels}
            for scale in operation.table
        },
    }


def _read_edition(edition: "Edition") -> dict[str, Any]:
    return {
        "kind": "edition",
        "name": edition.name,
        "scale": edition.scale,
        "preparation": edition.preparation,
        "format": edition.format,
    }


def _summarise(found: list[dict[str, Any]]) -> str:
    """A line for each, below heads; the names of the data sets together."""
    lines: list[str] = []
    head = ""
    for each in found:
        if each["kind"] != "data set" and _head(each) != head:
            lines += [""] * bool(head) + [_head(each)]
            head = _head(each)
        lines += [_row(each)] if each["kind"] != "data set" else []
    names = [each["name"] for each in found if each["kind"] == "data set"]
    return "\n".join([*lines, "", f"data sets: {', '.join(names)}"])


def _head(each: dict[str, Any]) -> str:
    if each["kind"] == "corruption":
        return f"corruptions of {each['family']} (robustgen make-c --corruptions {each['group']})"
    return {"perturbation": "perturbations (robustgen make-p)", "edition": "editions"}[each["kind"]]


def _row(each: dict[str, Any]) -> str:
    if each["kind"] == "edition":
        return f"  {each['name']:20s} scale {each['scale'] or 'nearest to the image'}"
    first = next(iter(each["parameters"].values()))[1]
    group = "common" if each["common"] else "extra"
    return f"  {each['name']:31s} {each['category']:8s} {group:7s} {', '.join(first)}"


def _describe(each: dict[str, Any]) -> str:
    """All about one of them, in some lines."""
    if each["kind"] == "data set":
        return f"data set {each['name']}, the config\n\n{each['config'].rstrip()}"
    if each["kind"] == "edition":
        scale = f"constants of {each['scale']} pixels" if each["scale"] else "constants nearest to the image"
        lines = [f"edition {each['name']}: {scale}", f"  images      {each['preparation']}"]
        return "\n".join([*lines, f"  by default  {each['format']} files"])
    lines = [f"{each['kind']} {each['name']}: {each['summary']}"]
    for scale, levels in each["parameters"].items():
        for level, values in levels.items():
            constants = ", ".join(f"{key} {_format_value(value)}" for key, value in values.items())
            lines.append(f"  scale {scale:3d}, {each['level']} {level}: {constants}")
    if "published_mean_error" in each:
        mean = f"{100 * each['published_mean_error']:.1f} %"
        lines.append(f"  published mean error of {each['reference']}: {mean}")
    return "\n".join(lines)


def _format_value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
