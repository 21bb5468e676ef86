"""What all commands share: the group they belong to, how errors end, how sizes and times are told."""

import sys
from pathlib import Path
from typing import Any

import click

from robustgen import __version__
from robustgen.errors import ConfigError, RobustgenError

# What `robustgen --help` lists, and in which order.
_SECTIONS = {
    "Make and check": {
        "make-c": "Write ImageNet-C: corrupted copies of every image.",
        "make-p": "Write ImageNet-P: perturbation sequences.",
        "verify": "Check every file of an output.",
        "list": "List corruptions, perturbations, editions, data sets.",
    },
    "See": {
        "preview": "Draw an image with all its corruptions on one sheet.",
        "report": "Write an HTML page about a finished set.",
        "compare": "Tell whether two sets are equivalent.",
        "calibrate": "Measure how strong every corruption is.",
    },
    "Score": {
        "predict": "Run an ONNX model over a set.",
        "score": "Print the papers' tables for predictions.",
    },
    "The rest of the family": {
        "make-augmix": "Write AugMix copies of training images.",
        "filter-a": "Find images in the manner of ImageNet-A.",
        "filter-o": "Find images in the manner of ImageNet-O.",
        "make-icons": "Write icons of several styles, as Icons-50.",
        "make-subtypes": "List seen and unseen subtypes of broad types.",
        "preprocess": "Put a whole set through CLAHE.",
    },
}


class _Group(click.Group):
    """Turns robustgen's own errors into one line and their exit status."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([*commands.items()], col_spacing=4)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RobustgenError as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(error.exit_code)
        except OSError as error:
            # Of a path that cannot even be asked about: too long, or in a folder that is closed to us.
            if error.filename is None:
                raise
            click.echo(f"Error: {error.filename}: {error.strerror}", err=True)
            sys.exit(2)
        except KeyboardInterrupt:
            resumable = str(ctx.invoked_subcommand).startswith(("make-", "filter-", "preprocess"))
            goes_on = "; the same command goes on from here" * resumable
            click.echo(f"stopped{goes_on}", err=True)
            sys.exit(130)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="robustgen")
def main() -> None:
    """Regenerate ImageNet-C and ImageNet-P from your own images."""


def named_config(dataset: str | None, file: Path | None) -> Path | None:
    """The YAML file that --dataset or --config names, if one of them is given.

    Raises
    ------
    ConfigError, UnknownNameError
        Both are given, or there is no such data set.
    """
    if dataset and file:
        raise ConfigError("give --dataset or --config, not both")
    from robustgen.generation import config

    return config.dataset_file(dataset) if dataset else file


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
