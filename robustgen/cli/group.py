"""What all commands share: the group they belong to, how errors end, how sizes and times are told."""

import sys
from pathlib import Path
from typing import Any

import click

from robustgen import __version__
from robustgen.errors import RobustgenError


class _Group(click.Group):
    """Turns robustgen's own errors into one line and their exit status."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RobustgenError as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(error.exit_code)
        except KeyboardInterrupt:
            resumable = str(ctx.invoked_subcommand).startswith(("make-", "filter-", "preprocess"))
            goes_on = "; the same command goes on from here" * resumable
            click.echo(f"stopped{goes_on}", err=True)
            sys.exit(130)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="robustgen")
def main() -> None:
    """Regenerate ImageNet-C and ImageNet-P from your own images."""


def counted(number: int, noun: str) -> str:
    """``"1 image"``, ``"2 images"``."""
    return f"{number} {noun}{'s' * (number != 1)}"


def shown(path: Path) -> Path:
    """`path` as the user is likely to have named it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def in_bytes(size: float) -> str:
    """`size` with its unit, three digits."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def in_time(seconds: float) -> str:
    """`seconds` in the unit that fits."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
