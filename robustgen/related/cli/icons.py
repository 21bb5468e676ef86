"""make-icons: icons of several styles."""

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from robustgen.cli.app import command, echo
from robustgen.cli.execution import PlannedSet
from robustgen.cli.flags import takes
from robustgen.display.text import format_count, format_path, format_size, format_time
from robustgen.related.settings import IconChoices
from robustgen.settings.fields import Part
from robustgen.settings.running import Running

if TYPE_CHECKING:
    from robustgen.related.icons.icon_set import IconPlan


@command("make-icons")
@takes(parts=(Part.OPERATIONS, Part.OUTPUT, Part.JOBS), choices=IconChoices, running=Running)
def make_icons(choices: IconChoices, running: Running) -> PlannedSet:
    """Write icons of several styles, as in Icons-50.

    Examples
    --------
    robustgen make-icons --style google=DIR --style twitter=DIR --output icons
    robustgen make-icons --style google=DIR --style twitter=DIR --size 128 --output icons-128
    """
    from robustgen.related.icons import icon_set

    planned = icon_set.plan_icons(choices)
    return PlannedSet(planned, running, partial(_show_styles, planned), partial(_show_plan, planned))


def _show_plan(plan: "IconPlan") -> None:
    _show_styles(plan)
    _show_classes(plan)


def _show_styles(plan: "IconPlan") -> None:
    from robustgen.related.icons.choosing import style_in

    made, duplicates = (Counter(map(style_in, keys)) for keys in (plan.keys, plan.source.sifted.duplicates))
    for style in plan.styles:
        named = f"{style.package} {style.version or ''}".strip()
        package = named if style.package else format_path(style.root)
        parts = [
            format_count(made[style.name], "icon"),
            format_count(duplicates[style.name], "duplicate"),
            f"{len(plan.choice.lacking[style.name])} emoji missing",
        ]
        echo(f"{style.name:10} {package} ({style.licence}): {', '.join(parts)}")


def _show_classes(plan: "IconPlan") -> None:
    from robustgen.related.icons.choosing import count_icons
    from robustgen.sets.dataset.estimate import estimate

    table = count_icons(plan.keys)
    names = [style.name for style in plan.styles]
    width = max(map(len, table))
    echo("  ".join([" " * width, *names]))
    for name, counts in table.items():
        columns = [f"{counts.get(style, 0):{len(style)}}" for style in names]
        echo("  ".join([f"{name:{width}}", *columns]))
    cost = estimate(plan)
    refused = f", {len(plan.refused)} refused" if plan.refused else ""
    echo(f"output {format_path(plan.store.location)}: {cost.outputs} icons{refused}")
    judged = format_count(cost.images, "icon")
    echo(f"about  {format_size(cost.size)}, {format_time(cost.seconds)} (estimated from {judged})")
