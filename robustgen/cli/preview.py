"""preview: an image with its corruptions or perturbations on one sheet."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from robustgen.cli.app import command, echo
from robustgen.cli.flags import takes
from robustgen.display.text import format_path, format_size
from robustgen.errors import ConfigError
from robustgen.pixels.benchmarks.kinds import CLIP
from robustgen.settings.config import Config
from robustgen.settings.fields import Part, spell
from robustgen.settings.inspecting import Previewing

if TYPE_CHECKING:
    from robustgen.lab.inspection.preview import Previewed
    from robustgen.pixels.benchmarks.kinds import Kind
    from robustgen.pixels.imaging.arrays import Rgb

_OF_CORRUPTIONS = frozenset({"corruptions", "severities", "grid"})
_OF_SEQUENCES = frozenset({"perturbations", "difficulty", "frames"})
_OF_SHEETS = frozenset({"grid", "frames", "cell"})


@command("preview")
@takes(
    demo=True,
    instead="options__image",
    parts=(Part.SOURCE, Part.EDITION, Part.OPERATIONS, Part.CLIPS),
    also=("seed", "libjpeg"),
    says={
        "edition": "preparation and constants (robustgen list); imagenet@384 for another size; default "
        "folder with --source, else imagenet",
        "perturbations": "draw these perturbations (robustgen list perturbations); default none",
        "difficulty": "draw perturbations at this difficulty of the noise sequences, 1 to 3; default none",
    },
    config=Config,
    options=Previewing,
)
def preview(config: Config, options: Previewing) -> None:
    """Draw an image with all its corruptions on one sheet.

    With --perturbations, draws frames of its perturbations instead, and with --dataset clips frames of a
    video or of a folder of frames. Without IMAGE, --dataset, --config or --source, a bundled sample
    photograph is used.

    Examples
    --------
    robustgen preview photo.jpg --output photo.png
    robustgen preview photo.jpg --output photo.html
    """
    from robustgen.display.html import PAGE_SUFFIXES

    of_clips = config.medium is CLIP
    kind = _find_kind(config, options, of_clips)
    output = options.output or Path("out/preview.png")
    suffix = output.suffix.lower()
    if suffix in PAGE_SUFFIXES:
        if of_clips:
            raise ConfigError(f"--output {output}: a page is for images; choose .png, .gif or .mp4")
        _write_page(config, options, kind, output)
        return
    from robustgen.display import sheets
    from robustgen.files.storage import save
    from robustgen.lab.inspection import preview as previews

    animate = (kind == "p" or of_clips) and suffix in previews.ANIMATED
    if animate and (of_sheets := [key for key in ("frames", "grid") if key in options.flagged]):
        raise ConfigError(f"{spell(of_sheets[0])} is for sheets; {output.name} shows every frame")
    previews.check_preview_path(output, animate)
    sheets.check_cell(sheets.CELL if options.cell is None else options.cell)
    previewed = _open(previews.choose_severities(config, grid=options.grid), options, kind, output)
    cell = options.cell or sheets.CELL
    if animate:
        rate = previews.choose_rate(previewed, suffix)
        moving = previews.draw_animation(previewed, options.cell, rate)
        save(output, previews.encode_animation(moving, suffix, rate), f"--output {output}")
        picture: Rgb = moving[0]
    else:
        frames = options.frames or sheets.FRAMES_DRAWN
        picture, *more = previews.draw_previewed(
            previewed, grid=options.grid, frames=frames, cell=cell, slides=suffix == ".pdf"
        )
        save(output, sheets.encode_picture(picture, suffix, options.quality, more), f"--output {output}")
    echo(format_path(output.absolute()))
    if options.show is not False:
        _show(picture, insist=bool(options.show))


def _find_kind(config: Config, options: Previewing, of_clips: bool) -> "Kind":
    """Return the benchmark that the flags request."""
    # Clips have frames too.
    given = sorted((config.flagged | options.flagged) - ({"frames"} if of_clips else set()))
    of_c, of_p = ([key for key in given if key in keys] for keys in (_OF_CORRUPTIONS, _OF_SEQUENCES))
    if of_c and of_p:
        raise ConfigError(f"{spell(of_c[0])} is for corruptions, {spell(of_p[0])} for perturbations")
    common = config.severities if "severities" in config.flagged else ()
    if options.grid and any(len(each) > 1 for each in (common, *config.severities_of.values())):
        raise ConfigError("--grid shows one severity, such as --severities 3")
    return "p" if of_p else "c"


def _write_page(config: Config, options: Previewing, kind: "Kind", page: Path) -> None:
    from robustgen.display.html import check_page_path
    from robustgen.lab.inspection.preview import write_explorer

    if kind == "p" or options.flagged & _OF_SHEETS:
        raise ConfigError(f"--output {page}: a page accepts only --corruptions, --severities and --edition")
    check_page_path(page)
    if config.origins.get("corruptions", "demo.yaml:").rpartition(":")[0].endswith("demo.yaml"):
        from robustgen.pixels.benchmarks.corruptions import CORRUPTIONS

        config = config.model_copy(update={"corruptions": tuple(CORRUPTIONS)})
    size = write_explorer(_open(config, options, "c", page), page)
    echo(f"{format_path(page.absolute())}, {format_size(size)}")


def _open(config: Config, options: Previewing, kind: "Kind", output: Path) -> "Previewed":
    """Open the image, with the settings of the config."""
    from robustgen.lab.inspection.preview import open_from_file, open_from_source

    if options.image is None:
        return open_from_source(config, kind, options.index or 0, output)
    if config.flagged & {"source", "labels"} or options.index is not None:
        raise ConfigError("give IMAGE, or --source (with --labels, --index), not both")
    return open_from_file(options.image, config, kind, output)


def _show(picture: "Rgb", *, insist: bool) -> None:
    from robustgen.display import sheets

    sys.stdout.flush()
    if not sheets.show_picture(picture, sys.stdout.buffer, os.environ) and insist:
        echo("this terminal is not known to support pictures", err=True)
