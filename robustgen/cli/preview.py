"""preview: an image with its corruptions or perturbations on one sheet."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustgen.cli.app import Section, command, echo
from robustgen.cli.options import (
    EDITION_NAMES,
    PATH,
    complete,
    corruption_options,
    file_option,
    ingredient_options,
    libjpeg_option,
    perturbation_options,
    resolve_config,
    scale_option,
    seed_option,
    source_options,
)
from robustgen.display.text import format_path, format_size
from robustgen.errors import ConfigError

if TYPE_CHECKING:
    from robustgen.benchmarks.kinds import Kind
    from robustgen.imaging.pixels import Rgb
    from robustgen.inspection.preview.subject import Subject

_OF_CORRUPTIONS = ("corruptions", "severities", "grid", "severity", "tiles", "depth_maps", "depth_scale")
_OF_SEQUENCES = ("perturbations", "difficulty", "frames", "animate")


@command("preview", Section.SEE)
@click.argument("image", required=False, type=PATH)
@source_options
@click.option("--index", type=click.IntRange(0), metavar="N", help="Index of the image, from 0; default 0.")
@click.option(
    "--edition",
    metavar="NAME",
    shell_complete=complete(*EDITION_NAMES),
    help=f"{', '.join(EDITION_NAMES)}; default for an IMAGE: imagenet.",
)
@scale_option
@seed_option
@libjpeg_option
@corruption_options
@ingredient_options
@click.option("--grid", is_flag=True, help="Show all at one severity, five in a row, as in the paper.")
@click.option("--severity", type=click.IntRange(1, 5), help="Severity of --grid; default 3.")
@perturbation_options
@click.option(
    "--frames", type=click.IntRange(1), metavar="N", help="Number of evenly spaced frames; default 6."
)
@click.option("--animate", is_flag=True, help="Animate the perturbations: .gif, .webp or .mp4.")
@click.option("--cell", type=int, metavar="PIXELS", help="Side of a square picture; default 112.")
@click.option(
    "--quality", type=click.IntRange(1, 95), default=90, help="Quality of .jpg and .webp; default 90."
)
@file_option("--output", "Output file; default out/preview.png.")
@file_option("--page", "Write an interactive page with every corruption, .html, instead of a sheet.")
@click.option("--show/--no-show", default=None, help="Show it in the terminal; default: if supported.")
def preview(image: Path | None, **flags: Any) -> None:
    """Draw an image with all its corruptions on one sheet.

    With --perturbations, draws frames of its perturbations instead. Without IMAGE, --dataset, --config or
    --source, a bundled sample photograph is used.
    """
    page = flags.pop("page")
    kind = _kind(flags)
    look = {name: flags.pop(name) for name in ("animate", "grid", "severity", "frames", "cell", "quality")}
    output, show = flags.pop("output"), flags.pop("show")
    if page:
        if kind == "p" or output or any(value for name, value in look.items() if name != "quality"):
            raise ConfigError("--page accepts only --corruptions, --severities and --edition")
        _write_page(image, flags, page)
        return
    output = output or Path("out/preview.gif" if look["animate"] else "out/preview.png")
    if look["grid"]:
        flags["severities"] = look["severity"] or 3
    from robustgen.display import sheets
    from robustgen.inspection.preview import drawing

    drawing.check_preview_path(output, look["animate"])
    sheets.check_cell(sheets.CELL if look["cell"] is None else look["cell"])
    picture = _write(_subject(image, kind, flags, output), output, **look)
    echo(format_path(output.absolute()))
    if show is not False:
        _show(picture, insist=bool(show))


def _write_page(image: Path | None, flags: dict[str, Any], page: Path) -> None:
    from robustgen.display.html import check_page_path
    from robustgen.inspection.preview.explorer import write_explorer

    if page.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"--page {page}: must end in .html")
    check_page_path(page)
    flags["corruptions"] = flags["corruptions"] or "all"
    size = write_explorer(_subject(image, "c", flags, page), page)
    echo(f"{format_path(page.absolute())}, {format_size(size)}")


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
    """Draw and write, and return the drawing; for an animation its first frame."""
    from robustgen.display import sheets
    from robustgen.files.storage import save
    from robustgen.inspection.preview import animation, drawing

    suffix = output.suffix.lower()
    if animate:
        moving = animation.draw_animation(subject, cell)
        save(output, animation.encode_animation(moving, suffix, quality), f"--output {output}")
        first: Rgb = moving[0]
        return first
    frames, cell = frames or drawing.FRAMES_DRAWN, cell or sheets.CELL
    sheet = drawing.draw_subject(subject, grid=grid, frames=frames, cell=cell)
    save(output, sheets.encode_picture(sheet, suffix, quality), f"--output {output}")
    return sheet


def _kind(flags: dict[str, Any]) -> "Kind":
    """Return the kind that the flags request: corruptions or perturbations."""
    of_c, of_p = (
        [f"--{name.replace('_', '-')}" for name in names if flags[name] not in (None, False)]
        for names in (_OF_CORRUPTIONS, _OF_SEQUENCES)
    )
    if of_c and of_p:
        raise ConfigError(f"{of_c[0]} is for corruptions, {of_p[0]} for perturbations: give one of them")
    if flags["animate"] and flags["frames"]:
        raise ConfigError("--frames is for sheets; --animate shows every frame")
    if flags["grid"] and flags["severities"]:
        raise ConfigError("--grid shows one severity: give --severity, not --severities")
    if flags["severity"] and not flags["grid"]:
        raise ConfigError("--severity needs --grid; for the columns of a sheet give --severities")
    return "p" if of_p else "c"


def _subject(image: Path | None, kind: "Kind", flags: dict[str, Any], output: Path) -> "Subject":
    """Open the image, with the settings of the config."""
    dataset, file, index = (flags.pop(name) for name in ("dataset", "config_file", "index"))
    path = resolve_config(dataset, file)
    if image and (flags["source"] or flags["labels"] or index is not None):
        raise ConfigError("give IMAGE, or --source (with --labels, --index), not both")
    from robustgen.inspection.preview.subject import open_from_file, open_from_source
    from robustgen.settings import config

    if image:
        # Only the settings of a config matter; its own images may be missing.
        flags |= {"source": ".", "source_kind": "folder"}
        is_chosen = path or config.are_laion_c(flags["corruptions"])
        flags["edition"] = flags["edition"] or (None if is_chosen else "imagenet")
    elif not (path or flags["source"]):
        path = config.dataset_file("demo")
    chosen = config.load(path, flags)
    if image:
        return open_from_file(image, chosen, kind, output)
    return open_from_source(chosen, kind, index or 0, output)


def _show(picture: "Rgb", *, insist: bool) -> None:
    from robustgen.display import terminal

    sys.stdout.flush()
    if not terminal.show_picture(picture, sys.stdout.buffer, os.environ) and insist:
        echo("this terminal is not known to support pictures", err=True)
