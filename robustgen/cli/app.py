"""The application: declaration of commands, sections of the help, handling of errors."""

import errno
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, TypeVar

import click

from robustgen import interruption
from robustgen.cli.examples import EXAMPLES
from robustgen.display.text import escape
from robustgen.errors import ConfigError, RobustgenError, WriteError
from robustgen.files.name_lists import escape_name
from robustgen.files.storage.host import open_closed_streams
from robustgen.files.storage.memory import collect_garbage_rarely
from robustgen.files.version import __version__

Made = TypeVar("Made", bound=click.Command)
_Function = Callable[..., None]
_HELP = {"help_option_names": ["-h", "--help"]}
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_RESUMABLE = ("make-", "run", "filter-", "preprocess", "evaluate", "predict", "stream")


class Section(Enum):
    """Sections of ``robustgen --help``."""

    MAKE = "Make and check"
    SEE = "Inspect"
    SCORE = "Score"
    FAMILY = "Related benchmarks"


class _App(click.Group):
    """Lists commands by section, and turns robustgen's own errors into one line and an exit status."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.sections: dict[Section, list[click.Command]] = {section: [] for section in Section}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, commands in self.sections.items():
            with formatter.section(section.value):
                rows = [(command.name or "", (command.help or "").splitlines()[0]) for command in commands]
                formatter.write_dl(rows, col_spacing=4)

    def main(self, *args: Any, **settings: Any) -> Any:
        open_closed_streams()
        try:
            return super().main(*args, **settings)
        except OSError as error:
            # Commands name the file that they cannot write; an error without a name comes from click's help.
            if error.filename is not None or error.errno not in _FULL:
                raise
            echo(f"Error: standard output: {error.strerror}", err=True)
            sys.exit(WriteError.exit_code)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return self._invoke(ctx)
        except RobustgenError as error:
            echo(f"Error: {error}{_explain_variable(str(error))}", err=True)
            sys.exit(error.exit_code)
        except OSError as error:
            # For a path that the system cannot look up: too long, or in a closed folder.
            if error.filename is None:
                raise
            message = f"{error.filename}: {error.strerror}"
            echo(f"Error: {message}{_explain_variable(message)}", err=True)
            sys.exit(2)
        except KeyboardInterrupt:
            resumable = str(ctx.invoked_subcommand).startswith(_RESUMABLE)
            echo("stopped" + "; run the same command to resume" * resumable, err=True)
            # The exit status that shells use for a signal.
            sys.exit(128 + interruption.signal_number())

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            # An interrupted import of NumPy and others raises its own errors.
            if interruption.was_received():
                raise KeyboardInterrupt from error
            raise


class Command(click.Command):
    """Ends its help with examples; suggests the intended option for an unknown one."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        with formatter.section("Examples"):
            for example in EXAMPLES[self.name or ""]:
                formatter.write(f"  {example}\n")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; suggest the intended ones in place of wrong ones."""
        takes_source = any("--source" in each.opts for each in self.params)
        ctx.allow_extra_args = takes_source
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if not (meant := _MEANT.get((self.name or "", error.option_name))):
                raise
            raise ConfigError(f"{self.name} has no {error.option_name}; did you mean {meant}?") from error
        if rest and takes_source and not ctx.resilient_parsing:
            if len(rest) == 1 and not ctx.params["source"]:
                named = f"--source {shlex.quote(rest[0])}"
                raise ConfigError(f"{rest[0]}: name the images with --source: {named}")
            raise ConfigError(
                f"{rest[0]}: --source takes one folder, archive or pattern; "
                "put a pattern into quotes: --source 'val-*.tar'"
            )
        return rest


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


def echo(line: str, *, err: bool = False) -> None:
    """Print one line; line breaks and terminal codes in it are escaped."""
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


@click.group(cls=_App, context_settings=_HELP)
@click.version_option(__version__, prog_name="robustgen")
def main() -> None:
    """Regenerate ImageNet-C and ImageNet-P from your own images."""
    collect_garbage_rarely()
    if threading.current_thread() is threading.main_thread():
        interruption.remember(signal.SIGINT)


def command(name: str, section: Section) -> Callable[[_Function], click.Command]:
    """Declare a function as the command `name`; its docstring's first line is its summary in `section`."""
    return lambda function: _add(click.command(name, cls=Command, context_settings=_HELP)(function), section)


def group(name: str, section: Section) -> Callable[[_Function], click.Group]:
    """Declare a function as a group of commands, like `command`."""
    return lambda function: _add(click.group(name, context_settings=_HELP)(function), section)


def _add(made: Made, section: Section) -> Made:
    main.add_command(made)
    main.sections[section].append(made)
    return made
