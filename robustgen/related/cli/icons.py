"""make-icons: icons of several styles."""

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from robustgen.cli.app import command, echo
from robustgen.cli.execution import PlannedSet
from robustgen.cli.flags import takes
from robustgen.display.text import format_count, format_path
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
    return PlannedSet(planned, running, partial(_show_styles, planned))


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
