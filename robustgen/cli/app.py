"""The application: how commands are declared, the sections of its help, how errors end."""

import errno
import sys
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, TypeVar

import click

from robustgen import __version__
from robustgen.display.text import escape
from robustgen.errors import RobustgenError, WriteError
from robustgen.memory import collect_garbage_rarely
from robustgen.name_lists import escape_name

Made = TypeVar("Made", bound=click.Command)
_Function = Callable[..., None]
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Section(Enum):
    """Where ``robustgen --help`` lists a command."""

    MAKE = "Make and check"
    SEE = "See"
    SCORE = "Score"
    FAMILY = "The rest of the family"


class _App(click.Group):
    """Lists its commands by section, and turns robustgen's own errors into one line and their exit status."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.sections: dict[Section, list[click.Command]] = {section: [] for section in Section}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, commands in self.sections.items():
            with formatter.section(section.value):
                rows = [(command.name or "", _first_line(command)) for command in commands]
                formatter.write_dl(rows, col_spacing=4)

    def main(self, *args: Any, **settings: Any) -> Any:
        try:
            return super().main(*args, **settings)
        except OSError as error:
            # Commands name what they cannot write: without a name it is the help that click prints.
            if error.filename is not None or error.errno not in _FULL:
                raise
            echo(f"Error: standard output: {error.strerror}", err=True)
            sys.exit(WriteError.exit_code)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RobustgenError as error:
            echo(f"Error: {error}", err=True)
            sys.exit(error.exit_code)
        except OSError as error:
            # Of a path that cannot even be asked about: too long, or in a folder that is closed to us.
            if error.filename is None:
                raise
            echo(f"Error: {error.filename}: {error.strerror}", err=True)
            sys.exit(2)
        except KeyboardInterrupt:
            resumable = str(ctx.invoked_subcommand).startswith(("make-", "filter-", "preprocess"))
            goes_on = "; the same command goes on from here" * resumable
            echo(f"stopped{goes_on}", err=True)
            sys.exit(130)


def echo(line: str, *, err: bool = False) -> None:
    """Print one line, whatever names it holds: line breaks and codes for the terminal in them are escaped."""
    _print(escape(line), err=err)


def _print(line: str, *, err: bool = False) -> None:
    try:
        click.echo(line, err=err)
    except OSError as error:
        # Whoever reads a pipe may have enough; with that click deals itself.
        if err or error.errno == errno.EPIPE:
            raise
        raise WriteError(f"standard output: {error.strerror or error}") from error


def echo_text(text: str) -> None:
    """Print several lines, each as `echo` does; the names in them have no line breaks any more."""
    for line in text.split("\n"):
        echo(line)


def echo_keys(keys: Iterable[str]) -> None:
    """Print a key a line: on a terminal as `echo` does, elsewhere as `--subset` reads them."""
    terminal = sys.stdout.isatty()
    for key in keys:
        echo(key) if terminal else _print("".join(escape_name(key)))


def _first_line(command: click.Command) -> str:
    return (command.help or "").splitlines()[0]


@click.group(cls=_App, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="robustgen")
def main() -> None:
    """Regenerate ImageNet-C and ImageNet-P from your own images."""
    collect_garbage_rarely()


def command(name: str, section: Section) -> Callable[[_Function], click.Command]:
    """Declare a function to be the command `name`; the first line of its docstring is what `section` says."""
    return lambda function: _add(click.command(name)(function), section)


def group(name: str, section: Section) -> Callable[[_Function], click.Group]:
    """Declare a function to be a group of commands, as `command`."""
    return lambda function: _add(click.group(name)(function), section)


def _add(made: Made, section: Section) -> Made:
    main.add_command(made)
    main.sections[section].append(made)
    return made
