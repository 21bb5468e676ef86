"""The application: declaration of commands, sections of the help, handling of errors."""

import errno
import inspect
import os
import re
import shlex
import shutil
import signal
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from robustgen import __version__
from robustgen.cli.completion import restore_command, summarise
from robustgen.cli.rows import COMMANDS
from robustgen.display.text import escape, format_count
from robustgen.errors import ConfigError, DecodingWarning, RobustgenError, WriteError, name_error
from robustgen.files import wings
from robustgen.files.storage import host
from robustgen.files.storage.host import (
    check_system,
    collect_garbage_rarely,
    explain_refusal,
    find_task_limit,
    open_closed_streams,
    use_utf8,
)
from robustgen.files.text_files import escape_name
from robustgen.files.wings import CommandRow, Section

_Function = Callable[..., None]
_HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_HELP_ALL = "help_all"
_MOST_NAMED = 10
# Longer than a path can be.
_ENDLESS: Final = re.compile(r"(\S{200})\S{4000,}(\S{100})")
_EXAMPLES = "\n\nExamples\n--------\n"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_FEW_PER_CORE: Final = 8


def list_commands() -> Iterator[tuple[CommandRow, str]]:
    """Yield the rows of all commands and their packages: the core, wings, and plug-ins, which come last."""
    yield from ((row, "robustgen") for row in COMMANDS)
    for name in wings.WINGS.list_usable():
        yield from ((row, wings.WINGS.find_package(name)) for row in wings.WINGS[name].commands)


def explain_wings() -> Iterator[str]:
    """Yield why some plug-ins and some of their commands cannot be used, a line each."""
    yield from wings.WINGS.problems()
    owners = dict[str, str]()
    for row, package in list_commands():
        if (owner := owners.setdefault(row.name, package)) != package:
            yield f"command {row.name!r} of package {package} cannot be used: the name is taken by {owner}"


def _find_row(name: str) -> tuple[CommandRow, str] | tuple[None, str]:
    return next((each for each in list_commands() if each[0].name == name), (None, ""))


class _App(click.Group):
    """Lists commands by section, and turns robustgen's own errors into one line and an exit status."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [row.name for rows in self._sort_rows().values() for row in rows]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        row, package = _find_row(cmd_name)
        if row and ctx.resilient_parsing:
            return restore_command(row, partial(self._build, row, package))
        if not row:
            _print_problems()
        return self._build(row, package) if row else None

    def _build(self, row: CommandRow, package: str) -> click.Command:
        try:
            import_module(row.module)
            return self.commands[row.name]
        except (Exception, SystemExit) as error:
            if package == "robustgen" or isinstance(error, RobustgenError):
                raise
            reason = "it declares none" if isinstance(error, KeyError) else name_error(error)
            raise ConfigError(
                f"{row.module}: command {row.name!r} of package {package} cannot be used: {reason}"
            ) from error

    def _sort_rows(self) -> dict[Section, list[CommandRow]]:
        """Return the rows of all commands by section; of two that have a name, the first."""
        rows = dict[str, CommandRow]()
        for row, _ in list_commands():
            rows.setdefault(row.name, row)
        return {section: [row for row in rows.values() if row.section is section] for section in Section}

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        rows = [row for rows in self._sort_rows().values() for row in rows if row.name.startswith(incomplete)]
        flags = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(row.name, help=summarise(row)) for row in rows), *flags]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _print_problems()
        for section, rows in self._sort_rows().items():
            if rows:
                with formatter.section(section.value):
                    formatter.write_dl([(row.name, summarise(row)) for row in rows], col_spacing=4)

    def main(self, *args: Any, **settings: Any) -> Any:
        if not args and "args" not in settings:
            use_utf8()
        open_closed_streams()
        try:
            return super().main(*args, **settings)
        except OSError as error:
            # Commands name the file that they cannot write; an error without a name comes from click's help.
            if error.filename is not None or error.errno not in _FULL:
                raise
            _echo_error(f"standard output: {error.strerror}")
            sys.exit(WriteError.exit_code)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            try:
                with _print_warnings(), _show_start():
                    return super().invoke(ctx)
            except Exception as error:
                # An interrupted import of NumPy and others raises its own errors.
                if host.was_received():
                    raise KeyboardInterrupt from error
                raise
        except RobustgenError as error:
            _echo_error(f"{error}{_explain_variable(str(error))}")
            sys.exit(error.exit_code)
        except click.UsageError as error:
            error.message = _colour(error.message, "red")  # type: ignore[misc]
            raise
        except KeyboardInterrupt:
            row, _ = _find_row(str(ctx.invoked_subcommand))
            resumes = row is not None and row.resumes
            echo("stopped" + "; run the same command to resume" * resumes, err=True)
            # The exit status that shells use for a signal.
            sys.exit(128 + host.signal_number())
        except (OSError, RuntimeError) as error:
            if reason := explain_refusal(error):
                _echo_error(reason)
                sys.exit(WriteError.exit_code)
            # For a path that the system cannot look up: too long, or in a closed folder.
            if not isinstance(error, OSError) or error.filename is None:
                raise
            message = f"{error.filename}: {error.strerror}"
            _echo_error(f"{message}{_explain_variable(message)}")
            sys.exit(2)


def _print_problems() -> None:
    for problem in explain_wings():
        echo(problem, err=True)


@contextmanager
def _show_start() -> Iterator[None]:
    """Show on a terminal that the command starts, until it prints something: its libraries take a second."""
    streams = sys.stdout, sys.stderr
    can_erase = os.environ.get("TERM") != "dumb" and all(each.isatty() for each in streams)
    if "--quiet" in sys.argv or not can_erase:
        yield
        return

    def erase() -> None:
        for each in streams:
            vars(each).pop("write", None)
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()

    def write_to(stream: Any, text: str) -> int:
        erase()
        written: int = stream.write(text)
        return written

    sys.stderr.write("starting ...")
    sys.stderr.flush()
    for each in streams:
        vars(each)["write"] = partial(write_to, each)
    try:
        yield
    finally:
        if "write" in vars(sys.stderr):
            erase()


def show_step(text: str) -> None:
    """Show on a terminal, instead of "starting ...", what a command does until it prints something."""
    if "write" in getattr(sys.stderr, "__dict__", {}):
        type(sys.stderr).write(sys.stderr, f"\r\x1b[K{text} ...")
        sys.stderr.flush()


@contextmanager
def _print_warnings() -> Iterator[None]:
    """Print each warning about images once, in one line, without the place in this package."""
    usual, printed = warnings.showwarning, set[str]()

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if not issubclass(category, DecodingWarning):
            usual(message, category, *place, **more)
        elif (text := str(message)) not in printed:
            printed.add(text)
            echo(f"warning: {text}", err=True)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual


class Command(click.Command):
    """Groups its flags in the help, ends it with examples; suggests the intended flag for an unknown one."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.help, _, self.examples = inspect.cleandoc(self.help or "").partition(_EXAMPLES)
        # Where --help shows everything, it is the same.
        same = all(getattr(each, "usual", True) for each in self.params)
        attributes = {"is_flag": True, "is_eager": True, "expose_value": False, "hidden": same}
        self.params.append(click.Option(["--help-all"], callback=_print_all, **attributes))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usual flags by group, or with ``--help-all`` every flag."""
        from robustgen.settings.fields import Group

        everything = ctx.meta.get(_HELP_ALL, False)
        rows: dict[Group | None, list[tuple[str, str]]] = {group: [] for group in (*Group, None)}
        for each in self.get_params(ctx):
            if (everything or getattr(each, "usual", True)) and (row := each.get_help_record(ctx)):
                name, text = row
                rows[getattr(each, "group", None)].append(
                    (name, "Show every flag." if name == "--help-all" else text)
                )
        for group, records in rows.items():
            if records:
                with formatter.section(group.value if group else "Help"):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        with formatter.section("Examples"):
            for line in self.examples.splitlines():
                formatter.write(f"  {line}\n")

    def make_parser(self, ctx: click.Context) -> Any:
        """Return a parser that refuses a second value of an option with one value, instead of taking it."""
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_once(args: list[str]) -> Any:
            parsed = parse(args)
            for each, times in Counter(parsed[2]).items():
                single = isinstance(each, click.Option) and not each.multiple and not each.is_eager
                if times > 1 and single and not ctx.resilient_parsing:
                    raise ConfigError(f"{max(each.opts, key=len)} is given twice; give it once")
            return parsed

        parser.parse_args = parse_once  # type: ignore[method-assign]
        return parser

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; suggest the intended ones in place of wrong ones."""
        source = next((each.name for each in self.params if "--source" in each.opts), None)
        if any(isinstance(each, click.Argument) for each in self.params):
            source = None
        ctx.allow_extra_args = source is not None
        try:
            rest = super().parse_args(ctx, self._spell_input(args))
        except click.NoSuchOption as error:
            meant = _MEANT.get((self.name or "", error.option_name)) or self._find_key(error.option_name)
            if not meant:
                raise
            raise ConfigError(f"{self.name} has no {error.option_name}; did you mean {meant}?") from error
        if rest and source and not ctx.resilient_parsing:
            if len(rest) == 1 and not ctx.params[source]:
                named = f"--source {shlex.quote(rest[0])}"
                raise ConfigError(f"{rest[0]}: name the images with --source: {named}")
            raise ConfigError(
                f"{rest[0]}: --source takes one folder, archive or pattern; "
                "put a pattern into quotes: --source 'val-*.tar'"
            )
        return rest

    def _spell_input(self, args: list[str]) -> list[str]:
        """Return the arguments with ``--preprocessing mean=0`` in place of ``--mean 0``."""
        keys = next((each.keys for each in self.params if "--preprocessing" in each.opts), ())  # type: ignore[attr-defined]
        found, words = list[str](), iter(args)
        for word in words:
            option, equals, value = word.partition("=")
            key = option.removeprefix("--").replace("-", "_")
            if (
                option.startswith("--")
                and key in keys
                and not any(option in each.opts for each in self.params)
            ):
                found += ["--preprocessing", f"{key}={value if equals else next(words, '')}"]
            else:
                found.append(word)
        return found

    def _find_key(self, option: str) -> str:
        """Return the ``--set`` of the key of a config that an unknown `option` names; "" if there is none."""
        key = option.removeprefix("--").replace("-", "_")
        key = "fps" if key == "frame_rate" else key
        taker = next((each for each in self.params if key in getattr(each, "keys", ())), None)
        # Commands without these two flags take them as arguments.
        return f"{taker.opts[0]} {key}=VALUE" if taker and key not in ("source", "output") else ""


class CommandGroup(Command, click.Group):
    """A command with commands of its own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the flags, and the commands."""
        Command.format_options(self, ctx, formatter)
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (each.help or "").splitlines()[0]) for name, each in self.commands.items()]
            )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments of the group; a command follows, or none."""
        return click.Group.parse_args(self, ctx, args)


def _print_all(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_HELP_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


# Options that make-c and make-p call by different names.
_MEANT = {
    ("make-p", "--severities"): "--difficulty",
    ("make-p", "--severity"): "--difficulty",
    ("make-p", "--corruptions"): "--perturbations",
    ("make-c", "--difficulty"): "--severities",
    ("make-c", "--perturbations"): "--corruptions",
}


def _explain_variable(message: str) -> str:
    """Return an explanation of a ``$NAME`` that the shell has left in a path."""
    found = re.search(r"\$(\w+)", message)
    if not found:
        return ""
    name = found[1]
    if name not in os.environ:
        return f"; environment variable {name} is not set"
    return f"; ${name} was not replaced: use no single quotes, and in a config write ${{{name}}}"


def _echo_error(message: str) -> None:
    """Print an error in one line; words that no file name can have lose their middle."""
    _print(_colour(escape("Error: " + _ENDLESS.sub(r"\1 ... \2", message)), "red"), err=True)


def _colour(text: str, colour: str, *, bold: bool = False) -> str:
    """Return `text` in a colour, which click keeps on terminals only; plain if `NO_COLOR` is set."""
    return text if os.environ.get("NO_COLOR") else click.style(text, fg=colour, bold=bold or None)


def echo_verdict(line: str, *, good: bool) -> None:
    """Print the conclusion of a report below an empty line; on a terminal it is bold, and green or red."""
    _print("")
    _print(_colour(escape(line), "green" if good else "red", bold=True))


def echo(line: str, *, err: bool = False) -> None:
    """Print one line; line breaks and terminal codes in it are escaped.

    Examples
    --------
    >>> from robustgen.plugins import echo
    >>> echo("8 images")
    8 images
    """
    _print(escape(line), err=err)


def _print(line: str, *, err: bool = False) -> None:
    try:
        click.echo(line, err=err)
    except OSError as error:
        # The reader of a pipe may stop early; click handles that.
        if err or error.errno == errno.EPIPE:
            raise
        raise WriteError(f"standard output: {error.strerror or error}") from error


def echo_text(text: str) -> None:
    """Print several lines, each as `echo` does; names in them must have no line breaks."""
    for line in text.split("\n"):
        echo(line)


def echo_keys(keys: Iterable[str]) -> None:
    """Print one key per line: on a terminal as `echo` does, otherwise in the form that `--subset` reads."""
    terminal = sys.stdout.isatty()
    for key in keys:
        echo(key) if terminal else _print("".join(escape_name(key)))


def echo_failures(failures: Iterable[tuple[str, str]], noun: str = "image") -> None:
    """Print a line on stderr for each of the first reasons: the key that failed for it, or their number."""
    keys = dict[str, dict[str, None]]()
    for key, reason in failures:
        keys.setdefault(reason, {})[key] = None
    for reason, own in islice(keys.items(), _MOST_NAMED):
        echo(f"  {format_count(len(own), noun) if len(own) > 1 else repr(*own)}: {reason}", err=True)


def echo_report(text: str, notes: Iterable[str]) -> None:
    """Print the tables of a report, and its notes on stderr."""
    echo_text(text)
    for note in notes:
        echo(note, err=True)


def table_width() -> int:
    """Return the number of columns of the terminal; 0 in a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


@click.group(cls=_App, context_settings=_HELP)
@click.version_option(__version__, prog_name="robustgen")
def main() -> None:
    """Regenerate ImageNet-C and ImageNet-P from your own images."""
    check_system()
    collect_garbage_rarely()
    if find_task_limit()[0] < _FEW_PER_CORE * (os.cpu_count() or 1):
        # OpenBLAS interrupts the process if one of its threads, one for each core, cannot start.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if threading.current_thread() is threading.main_thread():
        host.remember(signal.SIGINT)


def command(name: str) -> Callable[[_Function], click.Command]:
    """Declare a function as the command `name`; its docstring is the help, and ends with examples.

    Examples
    --------
    >>> from robustgen.plugins import Options, command, echo, takes
    >>> @command("greet")
    ... @takes(options=Options)
    ... def greet(options):
    ...     echo("Hello.")
    >>> greet.main([], standalone_mode=False)
    Hello.
    """
    return main.command(name, cls=Command, context_settings=_HELP)


def group(name: str, **attributes: Any) -> Callable[[_Function], CommandGroup]:
    """Declare a function as a group of commands, like `command`."""

    def declare(function: _Function) -> CommandGroup:
        made = CommandGroup(
            name,
            callback=function,
            params=getattr(function, "__click_params__", [])[::-1],
            help=function.__doc__,
            context_settings=_HELP,
            **attributes,
        )
        main.add_command(made)
        return made

    return declare
