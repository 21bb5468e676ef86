"""list: what there is to choose from."""

import dataclasses
from typing import TYPE_CHECKING

import click

from robustgen.cli.app import Section, command, echo, echo_keys, echo_text
from robustgen.errors import UnknownNameError

if TYPE_CHECKING:
    from robustgen.registry import Operation


@command("list", Section.MAKE)
@click.argument("name", required=False)
@click.option("--keys", metavar="SOURCE", help="List the keys of a source's images, for --subset.")
@click.option("--labels", metavar="FILE", help="Labels file of a flat SOURCE.")
def list_(name: str | None, keys: str | None, labels: str | None) -> None:
    """List corruptions, perturbations, editions, data sets.

    With NAME, the published constants of that corruption or perturbation.
    """
    if keys:
        from robustgen.sources.opening import open_source

        echo_keys(open_source(keys, labels=labels).keys())
        return
    from robustgen.corruptions import FAMILIES

    echo_text(_describe_operation(name) if name else _list_all())
    for problem in [] if name else FAMILIES.problems():
        echo(problem, err=True)


def _list_all() -> str:
    """All corruptions, perturbations, editions and data sets, a line each."""
    from robustgen.corruptions import FAMILIES
    from robustgen.editions import EDITIONS
    from robustgen.generation.config import dataset_names
    from robustgen.perturbations import PERTURBATIONS

    lines = []
    for family in FAMILIES.values():
        lines += [f"corruptions of {family.title} (robustgen make-c --corruptions {family.group})"]
        lines += [_list_operation(operation) for operation in family.corruptions.values()] + [""]
    lines += ["perturbations (robustgen make-p)"]
    lines += [_list_operation(operation) for operation in PERTURBATIONS.values()]
    lines += ["", "editions"]
    lines += [f"  {e.name:20s} scale {e.scale or 'nearest to the image'}" for e in EDITIONS.values()]
    lines += ["", f"data sets: {', '.join(dataset_names())}"]
    return "\n".join(lines)


def _list_operation(operation: "Operation") -> str:
    names = ", ".join(field.name for field in dataclasses.fields(next(iter(operation.table.values()))[0]))
    group = "common" if operation.common else "extra"
    return f"  {operation.name:31s} {operation.category:8s} {group:7s} {names}"


def _describe_operation(name: str) -> str:
    """The published constants of the operation `name`, per scale and level.

    Raises
    ------
    UnknownNameError
    """
    from robustgen.corruptions import ALL_CORRUPTIONS
    from robustgen.perturbations import PERTURBATIONS

    tables = [o for known in (ALL_CORRUPTIONS, PERTURBATIONS) if (o := known.get(name))]
    if not tables:
        raise UnknownNameError("corruption or perturbation", name, [*ALL_CORRUPTIONS, *PERTURBATIONS])
    return "\n\n".join(_describe_table(operation) for operation in tables)


def _describe_table(operation: "Operation") -> str:
    from robustgen.corruptions import FAMILIES
    from robustgen.registry import SCALES

    lines = [f"{operation.kind} {operation.name}: {operation.function.__doc__}"]
    for scale in [each for each in SCALES if each in operation.table]:
        for level in operation.levels:
            values = dataclasses.asdict(operation.parameters(level, scale))
            constants = ", ".join(f"{key} {_format_value(value)}" for key, value in values.items())
            lines.append(f"  scale {scale:3d}, {operation.level_name} {level}: {constants}")
    family = FAMILIES.get(getattr(operation, "family", ""))
    if family and operation.name in family.means:
        mean = f"{100 * family.means[operation.name]:.1f} %"
        lines.append(f"  published mean error of {family.reference}: {mean}")
    return "\n".join(lines)


def _format_value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
