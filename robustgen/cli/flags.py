"""Flags of the commands, derived from the fields of their models."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import click
from click.shell_completion import CompletionItem
from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from robustgen.cli.completion import Complete, complete_words
from robustgen.settings.config import Choices, find_published_edition
from robustgen.settings.fields import Flag, Group, Options, Part, keys_of, list_flags, spell
from robustgen.settings.loading import load, load_config
from robustgen.settings.yaml_files import dataset_names

_FROM_FILES: Final = (
    (
        "dataset",
        Flag(Group.SOURCE, "NAME", Part.SOURCE, usual=True, complete=dataset_names),
        "Built-in config (robustgen list).",
    ),
    ("config", Flag(Group.SOURCE, "FILE", Part.SOURCE, usual=True), "YAML config of your own."),
)
_SET: Final = Flag(Group.RUNNING, "KEY=VALUE")


class FieldOption(click.Option):
    """An option that knows its group, whether ``--help`` shows it, and the keys that it can set."""

    def __init__(
        self,
        names: Sequence[str],
        flag: Flag,
        help_text: str,
        sentence: str = "",
        keys: Collection[str] = (),
        **attributes: Any,
    ) -> None:
        super().__init__(names, help=help_text, **attributes)
        self.group, self.usual, self.sentence, self.keys = flag.group, flag.usual, sentence, keys


class FieldArgument(click.Argument):
    """An argument that the help describes like an option."""

    group = Group.ARGUMENTS

    def __init__(self, names: Sequence[str], help_text: str, **attributes: Any) -> None:
        super().__init__(names, **attributes)
        self._text = help_text

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return the placeholder and the sentence."""
        return self.make_metavar(ctx), self._text


def takes(
    kinds: str = "cp",
    *,
    parts: Iterable[Part] = (),
    also: Iterable[str] = (),
    demo: bool = False,
    instead: str = "",
    says: Mapping[str, str] = MappingProxyType({}),
    **models: type[Options],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a command the flags of `models`, and calls it with the loaded models.

    Parameters
    ----------
    kinds : str
        Benchmarks whose sets the command writes or reads: ``c``, ``p`` or ``cp``.
    parts : iterable of Part
        Parts of a config whose flags the command has; `Part` itself for all.
    also : iterable of str
        Keys of other parts whose flags the command has too.
    demo : bool
        Whether the built-in config `demo` is used if no config and no source is given.
    instead : str
        Argument that replaces the source and labels of a config, which may be missing then.
    says : mapping of str to str
        Key to the sentence that describes it in this command, if it differs from that of the field.
    **models : type
        Argument of the command to the model that it takes.

    Examples
    --------
    >>> from typing import Annotated
    >>> from pydantic import Field
    >>> from robustgen.plugins import Flag, Group, Options, command, echo, takes
    >>> class Greeting(Options):
    ...     times: Annotated[int, Flag(Group.CONTENT, "N")] = Field(1, description="number of greetings")
    >>> @command("greet")
    ... @takes(greeting=Greeting)
    ... def greet(greeting):
    ...     echo("Hello." * greeting.times)
    >>> greet.main(["--times", "2"], standalone_mode=False)
    Hello.Hello.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def run(**given: Any) -> Any:
            # A group runs itself only if none of its commands is called.
            if click.get_current_context().invoked_subcommand is not None:
                return None
            replaced = {"source", "labels"} if given.get(instead) else set()
            return function(
                **{name: _load(model, name, given, replaced, demo=demo) for name, model in models.items()}
            )

        made = [each for name, model in models.items() for each in _declare(model, name, kinds, opted, says)]
        run.__click_params__ = made[::-1]  # type: ignore[attr-defined]
        return run

    chosen, named = frozenset(parts), frozenset(also)

    def opted(key: str, flag: Flag) -> bool:
        return flag.part in chosen or key in named

    return decorate


def _load(
    model: type[Options], name: str, given: dict[str, Any], replaced: set[str], *, demo: bool
) -> Options:
    own = {
        key.removeprefix(f"{name}__"): value for key, value in given.items() if key.startswith(f"{name}__")
    }
    flags = {key: own[_name(key)] for key, _, _ in list_flags(model) if own.get(_name(key)) not in (None, ())}
    if not issubclass(model, Choices):
        return load(model, None, flags)
    dataset, file = own.get("_dataset"), own.get("_config")
    if demo and not (dataset or file or flags.get("source")):
        dataset = "demo"
        if replaced and find_published_edition(flags.get("corruptions")):
            # The photographs' edition is not that of another image.
            replaced = replaced | {"edition", "quality"}
    settings = own.get("_set") or ()
    return load_config(model, dataset, file, flags, settings=settings, ignored=replaced)


def _declare(
    model: type[Options],
    name: str,
    kinds: str,
    opted: Callable[[str, Flag], bool],
    says: Mapping[str, str],
) -> Iterator[click.Parameter]:
    if of_config := issubclass(model, Choices):
        for key, flag, text in _FROM_FILES:
            if opted(key, flag):
                complete = _complete(flag.complete)
                names = [f"{name}___{key}", f"--{key}"]
                yield FieldOption(names, flag, text, metavar=flag.metavar, shell_complete=complete)
        others = {key for key, _, own in list_flags(model) if not {*own.kinds} & {*kinds}}
        keys = keys_of(model).keys() - others
        names, text = [f"{name}___set", "--set"], "Set any key of the config (robustgen config); repeatable."
        yield FieldOption(names, _SET, text, keys=keys, metavar=_SET.metavar, multiple=True)
    flagged = {key for key, _, _ in list_flags(model)}
    for key, field, own in list_flags(model):
        if {*own.kinds} & {*kinds} and (not of_config or opted(key, own)):
            sentence = says.get(key, field.description or "")
            if own.argument:
                yield _declare_argument(name, key, field, own, sentence)
            else:
                yield _declare_option(name, key, field, own, sentence, keys_of(model).keys() - flagged)


def _name(key: str) -> str:
    """Return `key` as a part of a name of Python: click accepts no dot, as in ``video.preset``."""
    return key.replace(".", "__")


def _declare_argument(name: str, key: str, field: FieldInfo, flag: Flag, sentence: str) -> FieldArgument:
    several = get_origin(field.annotation) is tuple
    shown = flag.name or key.upper()
    return FieldArgument(
        [f"{name}__{key}"],
        _describe(field, sentence),
        nargs=-1 if several else 1,
        required=False,
        metavar=(shown if field.is_required() else f"[{shown}]") + "..." * several,
        shell_complete=_complete(flag.complete),
    )


def _declare_option(
    name: str, key: str, field: FieldInfo, flag: Flag, sentence: str, others: Collection[str]
) -> FieldOption:
    """Return the option of a field; one of KEY=VALUE sets the `others`, which have no flags."""
    spelled = spell(key, flag)[2:]
    dest, text = f"{name}__{_name(key)}", _describe(field, sentence) + " Required." * field.is_required()
    if flag.switch or bool in _types_in(field.annotation):
        both = field.default is not False
        spelled += f"/--no-{spelled}" * both
        return FieldOption([dest, f"--{spelled}"], flag, text, sentence, is_flag=True, default=None)
    words = _list_words(field.annotation)
    # A list with a validator of its own reads commas, so that its values are joined.
    reads_commas = any(isinstance(each, BeforeValidator) for each in field.metadata)
    is_list = get_args(field.annotation)[1:] == (...,)
    return FieldOption(
        [dest, f"--{spelled}"],
        flag,
        text,
        sentence,
        others if flag.metavar.endswith("|KEY=VALUE") else (),
        metavar=flag.metavar or "|".join(words),
        multiple=is_list or get_origin(field.annotation) is dict,
        callback=_join if is_list and reads_commas else None,
        shell_complete=_complete(flag.complete or ((lambda: words) if words else None)),
    )


def _join(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> str | None:
    return ",".join(values) if values else None


def _describe(field: FieldInfo, sentence: str) -> str:
    """Return the sentence about a field, with its default unless the sentence names one."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", sentence)
    default = field.default
    is_plain = isinstance(default, (int, float, str, Path)) and not isinstance(default, bool)
    shown = f"; default {'on' if default is True else default}" if is_plain or default is True else ""
    return f"{text[0].upper()}{text[1:]}{'' if 'default' in text or field.is_required() else shown}."


def _types_in(annotation: Any) -> Iterator[Any]:
    """Yield the types that an annotation combines, without their limits."""
    if get_origin(annotation) is Annotated:
        yield from _types_in(get_args(annotation)[0])
    elif get_origin(annotation) in (None, Literal, tuple, dict):
        yield annotation
    else:
        for each in get_args(annotation):
            yield from _types_in(each)


def _list_words(annotation: Any) -> list[str]:
    """Return the values of the literals in an annotation."""
    if get_origin(annotation) is tuple:
        annotation = get_args(annotation)[0]
    return [
        str(word) for each in _types_in(annotation) if get_origin(each) is Literal for word in get_args(each)
    ]


def _complete(names: Callable[[], Iterable[str]] | None) -> Complete:
    """Return the completion of one of the `names` or the last of several; without names, that of files."""

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        return complete_words(names(), begun) if names else [CompletionItem(begun, type="file")]

    return complete
