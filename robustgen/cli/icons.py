"""make-icons: icons of the same classes in several styles."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from robustgen.cli.app import Section, command, echo
from robustgen.cli.execution import take_execution
from robustgen.cli.options import output_option, run_options
from robustgen.display.text import format_count, format_path, format_size, format_time
from robustgen.errors import ConfigError

if TYPE_CHECKING:
    from robustgen.related.icons.icon_set import IconPlan


@command("make-icons", Section.FAMILY)
@click.option(
    "--style", multiple=True, required=True, metavar="NAME=DIR", help="Pictures of a style; repeatable."
)
@click.option("--licence", multiple=True, metavar="NAME=TEXT", help="Licence of a style's pictures.")
@click.option("--size", type=int, help="Width and height in pixels; default 64.")
@click.option("--background", metavar="COLOUR", help="white (default), black or #rrggbb.")
@click.option("--classes", metavar="FILE", help="Your own YAML file of classes.")
@click.option("--per-class", metavar="N", help="Emoji per class, at most, or all; default 40.")
@click.option("--skin-tones/--no-skin-tones", default=None, help="Include skin tone variants; default on.")
@output_option
@run_options
def make_icons(**flags: Any) -> None:
    """Write icons of several styles, as in Icons-50."""
    execution = take_execution(flags)
    flags |= {name: _read_pairs(name, flags[name]) for name in ("style", "licence")}
    from robustgen.related.icons import icon_set
    from robustgen.settings import config

    planned = icon_set.plan_icons(config.load_as(icon_set.IconChoices, None, flags))
    if execution.dry_run:
        _show_styles(planned)
        _show_classes(planned)
        return
    try:
        execution.carry_out(planned)
    except SystemExit:  # the end of a complete run
        _show_styles(planned)
        raise


def _read_pairs(flag: str, texts: tuple[str, ...]) -> dict[str, str] | None:
    pairs: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not (name and sign and value):
            raise ConfigError(f"--{flag}: must be NAME={'DIR' if flag == 'style' else 'TEXT'}, not {text!r}")
        if pairs.setdefault(name, value) != value or texts.count(text) > 1:
            raise ConfigError(f"--{flag}: {name!r} is given twice")
    return pairs or None


def _show_styles(plan: "IconPlan") -> None:
    made = Counter(plan.style_of().values())
    duplicates = Counter(plan.style(key) for key in plan.duplicates())
    for style in plan.styles:
        package = (
            f"{style.package} {style.version or ''}".strip() if style.package else format_path(style.root)
        )
        parts = [
            format_count(made[style.name], "icon"),
            format_count(duplicates[style.name], "duplicate"),
            f"{len(plan.choice.lacking[style.name])} emoji missing",
        ]
        echo(f"{style.name:10} {package} ({style.licence}): {', '.join(parts)}")


def _show_classes(plan: "IconPlan") -> None:
    from robustgen.dataset.estimate import estimate

    names = [style.name for style in plan.styles]
    width = max(map(len, plan.counts()))
    echo("  ".join([" " * width, *names]))
    for name, counts in plan.counts().items():
        columns = [f"{counts.get(style, 0):{len(style)}}" for style in names]
        echo("  ".join([f"{name:{width}}", *columns]))
    cost = estimate(plan)
    echo(f"output {format_path(plan.store.location)}: {cost.outputs} icons, {len(plan.refused)} refused")
    judged = format_count(cost.images, "icon")
    echo(f"about  {format_size(cost.size)}, {format_time(cost.seconds)} (estimated from {judged})")
