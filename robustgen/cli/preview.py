"""preview."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustgen.cli.group import main, named_config, shown
from robustgen.errors import ConfigError

if TYPE_CHECKING:
    from robustgen.benchmark import Kind
    from robustgen.imaging.pixels import Rgb
    from robustgen.preview.previews import Subject

_OF_CORRUPTIONS = ("corruptions", "severities", "grid", "severity")
_OF_SEQUENCES = ("perturbations", "difficulty", "frames", "animate")


@main.command()
@click.argument("image", required=False, type=click.Path(path_type=Path))
@click.option("--dataset", metavar="NAME", help="A built-in config; default demo, photographs inside.")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="Your own YAML config.")
@click.option("--source", metavar="PATH", help="Folder or archive of images, of which one is shown.")
@click.option("--labels", metavar="FILE", help="Labels file of a flat source folder.")
@click.option("--index", type=click.IntRange(0), metavar="N", help="Which of the images, from 0; default 0.")
@click.option("--edition", metavar="NAME", help="Preparation and constants; of an IMAGE default imagenet.")
@click.option("--scale", type=int, help="Constants of 224, 299, 64 or 32 instead of the edition's.")
@click.option("--seed", type=int, help="Non-negative whole number; default 0.")
@click.option("--corruptions", metavar="NAMES", help="common (default), extra, all, or names: a,b.")
@click.option("--severities", metavar="LEVELS", help="1-5 (default), or for instance 1,3,5.")
@click.option("--grid", is_flag=True, help="All at one severity, five in a row, as in the paper.")
@click.option("--severity", type=click.IntRange(1, 5), help="Of --grid; default 3.")
@click.option("--perturbations", metavar="NAMES", help="Rows of frames of these instead of corruptions.")
@click.option("--difficulty", metavar="LEVELS", help="1 (default), 2, 3 or all: strength of the noises.")
@click.option("--frames", type=click.IntRange(1), metavar="N", help="Evenly spaced frames; default 6.")
@click.option("--animate", is_flag=True, help="Perturbations in motion: .gif, .webp or .mp4.")
@click.option("--cell", type=int, metavar="PIXELS", help="Side of a square picture; default 112.")
@click.option("--quality", type=click.IntRange(1, 95), default=90, help="Of .jpg and .webp; default 90.")
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="Default out/preview.png.")
@click.option("--show/--no-show", default=None, help="In the terminal too; default where it is able to.")
def preview(image: Path | None, **flags: Any) -> None:
    """Draw an image with all its corruptions, or frames of its perturbations, on one labelled sheet.

    Without IMAGE, --dataset, --config or --source it is a photograph that is carried along.
    """
    kind = _kind(flags)
    look = {name: flags.pop(name) for name in ("animate", "grid", "severity", "frames", "cell", "quality")}
    output, show = flags.pop("output"), flags.pop("show")
    output = output or Path("out/preview.gif" if look["animate"] else "out/preview.png")
    if look["grid"]:
        flags["severities"] = look["severity"] or 3
    from robustgen.display import sheets
    from robustgen.preview import previews

    previews.check_output(output, look["animate"])
    sheets.check_cell(sheets.CELL if look["cell"] is None else look["cell"])
    picture = _write(_subject(image, kind, flags, output), output, **look)
    click.echo(shown(output.absolute()))
    if show is not False:
        _show(picture, insist=bool(show))


def _write(
    subject: "Subject",
    output: Path,
    *,
    animate: bool,
    grid: bool,
    frames: int | None,
    cell: int | None,
    quality: int,
    severity: int | None,
) -> "Rgb":
    """Draw, write, and return what was drawn; of an animation its first frame."""
    from robustgen.display import sheets
    from robustgen.output.files import save
    from robustgen.preview import previews

    suffix = output.suffix.lower()
    if animate:
        moving = previews.animation(subject, cell)
        save(output, previews.animated(moving, suffix, quality), f"--output {output}")
        first: Rgb = moving[0]
        return first
    frames, cell = frames or previews.FRAMES, cell or sheets.CELL
    sheet = previews.drawn(subject, grid=grid, frames=frames, cell=cell)
    save(output, sheets.encoded(sheet, suffix, quality), f"--output {output}")
    return sheet


def _kind(flags: dict[str, Any]) -> "Kind":
    """Whether corruptions or perturbations are asked for."""
    of_c, of_p = (
        [f"--{name}" for name in names if flags[name] not in (None, False)]
        for names in (_OF_CORRUPTIONS, _OF_SEQUENCES)
    )
    if of_c and of_p:
        raise ConfigError(f"{of_c[0]} is for corruptions, {of_p[0]} for perturbations: give one of them")
    if flags["animate"] and flags["frames"]:
        raise ConfigError("--frames is for sheets; --animate shows every frame")
    if flags["grid"] and flags["severities"]:
        raise ConfigError("--grid shows one severity: give --severity, not --severities")
    if flags["severity"] and not flags["grid"]:
        raise ConfigError("--severity goes with --grid; for the columns of a sheet give --severities")
    return "p" if of_p else "c"


def _subject(image: Path | None, kind: "Kind", flags: dict[str, Any], output: Path) -> "Subject":
    """The image that the command names, with the config it names."""
    dataset, file, index = (flags.pop(name) for name in ("dataset", "config_file", "index"))
    path = named_config(dataset, file)
    if image and (flags["source"] or flags["labels"] or index is not None):
        raise ConfigError("give IMAGE, or --source (with --labels, --index), not both")
    from robustgen.generation import config
    from robustgen.preview import previews

    if image:
        # Of a config only its settings count, so where its own images lie need not be known.
        flags |= {"source": ".", "source_kind": "folder"}
        flags["edition"] = flags["edition"] or (None if path else "imagenet")
    elif not (path or flags["source"]):
        path = config.dataset_file("demo")
    chosen = config.load(path, flags)
    if image:
        return previews.from_file(image, chosen, kind, output)
    return previews.from_source(chosen, kind, index or 0, output)


def _show(picture: "Rgb", *, insist: bool) -> None:
    from robustgen.display import terminal

    sys.stdout.flush()
    if not terminal.show(picture, sys.stdout.buffer, os.environ) and insist:
        click.echo("this terminal is not known to show pictures", err=True)
