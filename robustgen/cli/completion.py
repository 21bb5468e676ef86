"""Completion by shells, from a table for each package of commands: commands take longer to build.

`scripts/docs_reference.py` writes the tables from the commands.
"""

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial
from importlib.resources import files
from typing import Any

import click
from click.shell_completion import CompletionItem

from robustgen.files.wings import CommandRow

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def complete_words(words: Iterable[str], begun: str) -> list[CompletionItem]:
    """Return the `words` that complete `begun`, or its part after the last comma."""
    before, comma, last = begun.rpartition(",")
    return [CompletionItem(f"{before}{comma}{each}") for each in words if each.startswith(last)]


# --- writing the table ---------------------------------------------------------------------------


def make_table(commands: Iterable[tuple[str, click.Command]]) -> dict[str, Any]:
    """Return summary and flags of each command, and the words that flags accept, for JSON."""
    words = dict[str, list[str]]()
    made = {
        name: {
            "help": (command.help or "").partition("\n")[0],
            "flags": [_describe(name, each, words) for each in command.params],
        }
        for name, command in commands
    }
    return {"commands": made, "words": words}


def _describe(command: str, parameter: click.Parameter, words: dict[str, list[str]]) -> dict[str, Any]:
    described: dict[str, Any] = {"name": "/".join([*parameter.opts, *parameter.secondary_opts])}
    if isinstance(parameter, click.Option):
        described |= {name: True for name in ("is_flag", "multiple") if getattr(parameter, name)}
        described["help"] = parameter.help
    elif parameter.nargs != 1:
        described["nargs"] = parameter.nargs
    found = parameter.shell_complete(click.Context(click.Command("")), "")
    if own := [each.value for each in found if each.type == "plain"]:
        same = (name for name, listed in words.items() if listed == own)
        described["words"] = next(same, f"{command} {described['name']}")
        words[described["words"]] = own
    return described


# --- reading it ----------------------------------------------------------------------------------


def summarise(row: CommandRow) -> str:
    """Return the first line of a command's help."""
    rows = _read_table(row.module.rpartition(".")[0])["commands"]
    return row.summary or str(rows.get(row.name, {}).get("help", ""))


@cache
def _read_table(package: str) -> Any:
    """Return the table of the commands in a package; an empty one if it has none, like plug-ins."""
    # A package that cannot be imported is named when its command is called.
    with suppress(Exception):
        path = files(package) / "completion.json"
        return json.loads(path.read_text(encoding="utf-8"))
    return {"commands": {}}


def restore_command(row: CommandRow, build: Callable[[], click.Command]) -> click.Command:
    """Return a command with flags for completion only; `build` returns it whole."""
    table = _read_table(row.module.rpartition(".")[0])
    return _restore(row.name, table, build) if row.name in table["commands"] else build()


def _restore(name: str, table: Any, build: Callable[[], click.Command]) -> click.Command:
    rows = table["commands"]
    flags = [_restore_flag(build, table["words"], **each) for each in rows[name]["flags"]]
    inner = [each for each in rows if each.startswith(f"{name} ")]
    if not inner:
        return click.Command(name, params=flags, help=rows[name]["help"])
    group = click.Group(name, params=flags)
    for each in inner:
        own = each.removeprefix(f"{name} ")
        group.add_command(_restore(each, table, partial(_build_inner, build, own)), own)
    return group


def _build_inner(build: Callable[[], click.Command], name: str) -> click.Command:
    group = build()
    assert isinstance(group, click.Group)
    return group.commands[name]


def _restore_flag(
    build: Callable[[], click.Command],
    known: dict[str, list[str]],
    name: str,
    words: str | None = None,
    **attributes: Any,
) -> click.Parameter:
    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        if words is None:
            return [CompletionItem(begun, type="file")]
        # The table does not know the words of plug-ins.
        return complete_words(known[words], begun) or next(
            each.shell_complete(context, begun) for each in build().params if each.opts == parameter.opts
        )

    made = click.Option if name.startswith("-") else click.Argument
    return made([name], shell_complete=complete, **attributes)
