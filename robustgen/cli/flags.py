"""Flags of the commands, derived from the fields of their models."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import click
from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from robustgen.errors import ConfigError
from robustgen.settings.config import Choices, Config
from robustgen.settings.fields import Flag, Group, Options, flag_of, keys_of
from robustgen.settings.loading import load
from robustgen.settings.yaml_files import dataset_file, dataset_names

_FROM_FILES: Final = (
    (
        "dataset",
        Flag(Group.SOURCE, "NAME", usual=True, complete=dataset_names),
        "built-in config (robustgen list)",
    ),
    ("config", Flag(Group.SOURCE, "FILE", usual=True), "YAML config of your own"),
    ("set", Flag(Group.RUNNING, "KEY=VALUE"), "set any key of the config (robustgen config); repeatable"),
)


class FieldOption(click.Option):
    """An option that knows its group, and whether ``--help`` shows it."""

    def __init__(self, names: Sequence[str], flag: Flag, help_text: str, **attributes: Any) -> None:
        super().__init__(names, help=help_text, **attributes)
        self.group, self.usual = flag.group, flag.usual


def takes(
    kinds: str = "cp",
    *,
    hide: Iterable[str] = (),
    demo: bool = False,
    replaces_source: str = "",
    **models: type[Options],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a command the flags of `models`, and calls it with the loaded models.

    Parameters
    ----------
    kinds : str
        Kinds of sets that the command writes or reads: ``c``, ``p`` or ``cp``.
    hide : iterable of str
        Keys of configs without a flag in this command.
    demo : bool
        Whether the built-in config `demo` is used if no config and no source is given.
    replaces_source : str
        Argument and key, such as ``options__image``: if it is given, the source of a config is not read.
    **models : type
        Argument of the command to the model that it takes.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def run(**given: Any) -> Any:
            # A group runs itself only if none of its commands is called.
            if click.get_current_context().invoked_subcommand is not None:
                return None
            unread = {"source", "labels"} if given.get(replaces_source) else set[str]()
            load_own = partial(_load, demo=demo, unread=unread)
            return function(**{name: load_own(model, name, given) for name, model in models.items()})

        made = [
            each
            for name, model in models.items()
            for each in _declare(model, name, kinds, {*hide} if issubclass(model, Choices) else set())
        ]
        run.__click_params__ = made[::-1]  # type: ignore[attr-defined]
        return run

    return decorate


def _load(
    model: type[Options], name: str, given: dict[str, Any], *, demo: bool, unread: Iterable[str] = ()
) -> Options:
    own = {
        key.removeprefix(f"{name}__"): value for key, value in given.items() if key.startswith(f"{name}__")
    }
    flags = {key: value for key, value in own.items() if value not in (None, ()) and key in keys_of(model)}
    if not issubclass(model, Choices):
        return load(model, None, flags)
    dataset, file = own.get("_dataset"), own.get("_config")
    if dataset and file:
        raise ConfigError("give --dataset or --config, not both")
    if demo and not (dataset or file or flags.get("source")):
        dataset = "demo"
    path = dataset_file(dataset) if dataset else file and Path(file)
    return load(
        model,
        path,
        flags,
        settings=own.get("_set") or (),
        ignored={*keys_of(Config)} - {*keys_of(model)} | {*unread},
    )


def _declare(model: type[Options], name: str, kinds: str, hidden: set[str]) -> Iterator[click.Parameter]:
    if issubclass(model, Choices):
        for key, flag, text in _FROM_FILES:
            if key not in hidden:
                yield FieldOption(
                    [f"{name}___{key}", f"--{key}"],
                    flag,
                    f"{text[0].upper()}{text[1:]}.",
                    metavar=flag.metavar,
                    multiple=key == "set",
                    shell_complete=_complete(flag.complete),
                )
    for key, field in keys_of(model).items():
        own = flag_of(model, key)
        if own and key not in hidden and {*own.kinds} & {*kinds}:
            declare = _declare_argument if own.argument else _declare_option
            yield declare(name, key, field, own)


def _declare_argument(name: str, key: str, field: FieldInfo, flag: Flag) -> click.Argument:
    several = get_origin(field.annotation) is tuple
    shown = flag.name or key.upper()
    return click.Argument(
        [f"{name}__{key}"],
        nargs=-1 if several else 1,
        required=False,
        metavar=f"[{shown}]..." if several else shown if field.is_required() else f"[{shown}]",
        shell_complete=_complete(flag.complete),
    )


def _declare_option(name: str, key: str, field: FieldInfo, flag: Flag) -> FieldOption:
    spelled = (flag.name or key).replace("_", "-")
    dest = f"{name}__{key}"
    if flag.switch or bool in _kinds_of(field.annotation):
        both = field.default is not False
        text = f"--{spelled}/--no-{spelled}" if both else f"--{spelled}"
        return FieldOption([dest, text], flag, _describe(field), is_flag=True, default=None)
    words = _list_words(field.annotation)
    # A list with a validator of its own reads commas; any other list is a repeated flag.
    reads_commas = any(isinstance(each, BeforeValidator) for each in field.metadata)
    kind = get_origin(field.annotation)
    several = kind is dict or (kind is tuple and not reads_commas)
    return FieldOption(
        [dest, f"--{spelled}"],
        flag,
        _describe(field),
        metavar=flag.metavar or "|".join(words),
        multiple=several,
        shell_complete=_complete(flag.complete or (lambda: words)),
    )


def _describe(field: FieldInfo) -> str:
    """Return the sentence of a field, with its default unless the sentence names one."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", field.description or "")
    default = field.default
    is_plain = isinstance(default, (int, float, str, Path)) and not isinstance(default, bool)
    shown = f"; default {'on' if default is True else default}" if is_plain or default is True else ""
    return f"{text[0].upper()}{text[1:]}{'' if 'default' in text or field.is_required() else shown}."


def _kinds_of(annotation: Any) -> Iterator[Any]:
    """Yield the types that an annotation combines, without their limits."""
    if get_origin(annotation) is Annotated:
        yield from _kinds_of(get_args(annotation)[0])
    elif get_origin(annotation) in (None, Literal, tuple, dict):
        yield annotation
    else:
        for each in get_args(annotation):
            yield from _kinds_of(each)


def _list_words(annotation: Any) -> list[str]:
    """Return the values of the literals in an annotation."""
    if get_origin(annotation) is tuple:
        annotation = get_args(annotation)[0]
    return [
        str(word) for kind in _kinds_of(annotation) if get_origin(kind) is Literal for word in get_args(kind)
    ]


def _complete(names: Callable[[], Iterable[str]] | None) -> Any:
    """Return the completion of one name, or of the last in a list with commas."""

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
        before, comma, last = begun.rpartition(",")
        return [f"{before}{comma}{each}" for each in (names() if names else ()) if each.startswith(last)]

    return complete
