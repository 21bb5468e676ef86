"""What `robustgen list` prints."""

import dataclasses

from robustgen.corruptions import CORRUPTIONS
from robustgen.editions import EDITIONS
from robustgen.errors import UnknownNameError
from robustgen.generation.config import dataset_names
from robustgen.perturbations import PERTURBATIONS
from robustgen.registry import SCALES, Operation


def overview() -> str:
    """All corruptions, perturbations, editions and data sets, a line each."""
    lines = ["corruptions (robustgen make-c)"]
    lines += [_line(operation) for operation in CORRUPTIONS.values()]
    lines += ["", "perturbations (robustgen make-p)"]
    lines += [_line(operation) for operation in PERTURBATIONS.values()]
    lines += ["", "editions"]
    lines += [f"  {e.name:20s} scale {e.scale or 'nearest to the image'}" for e in EDITIONS.values()]
    lines += ["", f"data sets: {', '.join(dataset_names())}"]
    return "\n".join(lines)


def _line(operation: Operation) -> str:
    names = ", ".join(field.name for field in dataclasses.fields(operation.parameters(1, 224)))
    group = "common" if operation.common else "extra"
    return f"  {operation.name:20s} {operation.category:8s} {group:7s} {names}"


def parameters(name: str) -> str:
    """The published constants of the operation `name`, per scale and level.

    Raises
    ------
    UnknownNameError
    """
    tables = [o for known in (CORRUPTIONS, PERTURBATIONS) if (o := known.get(name))]
    if not tables:
        raise UnknownNameError("corruption or perturbation", name, [*CORRUPTIONS, *PERTURBATIONS])
    return "\n\n".join(_table(operation) for operation in tables)


def _table(operation: Operation) -> str:
    lines = [f"{operation.kind} {operation.name}: {operation.function.__doc__}"]
    for scale in SCALES:
        for level in operation.levels:
            values = dataclasses.asdict(operation.parameters(level, scale))
            shown = ", ".join(f"{key} {_short(value)}" for key, value in values.items())
            lines.append(f"  scale {scale:3d}, {operation.level_name} {level}: {shown}")
    return "\n".join(lines)


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
