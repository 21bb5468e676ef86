"""`robustgen preview`: the image, the pixels that make-c or make-p would create, sheets, animations, page."""

import base64
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from PIL import Image

from robustgen.display import sheets
from robustgen.display.html import render_page
from robustgen.display.progress import track
from robustgen.display.sheets import CELL, FRAMES_DRAWN, SheetRow, encode_picture, fit_picture
from robustgen.display.text import format_constant, format_name
from robustgen.errors import (
    ConfigError,
    ImageError,
    MissingDependencyError,
    OutputError,
    SourceError,
    explain_failure,
)
from robustgen.files.storage import open_store, save
from robustgen.pixels.benchmarks.kinds import BENCHMARKS, CLEAN, CLEAN_VARIANT, CLIP, IMAGE, Kind, Variant
from robustgen.pixels.benchmarks.registry import CATEGORIES
from robustgen.pixels.imaging import video
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import warn_of_few_greys
from robustgen.pixels.imaging.frames import change_rate, parse_rate, spread_frames, stills, take_first
from robustgen.pixels.imaging.jpeg import encode_jpeg
from robustgen.pixels.imaging.similarity import Reference
from robustgen.sets.dataset.outputs import refuse_files
from robustgen.sets.dataset.plan import Making, check_output
from robustgen.sets.dataset.planning import open_making
from robustgen.sets.dataset.recipes import BenchmarkRecipe, CorruptionRecipe, Recipe
from robustgen.sets.ingredients import find_fitting
from robustgen.sets.sources.base import Source, SourceOptions
from robustgen.sets.sources.clip_folder import OneClip
from robustgen.sets.sources.folder import OneImage
from robustgen.sets.sources.places import find_place
from robustgen.sets.sources.trees import is_video
from robustgen.settings.config import Config

# --- image ----------------------------------------------------------------------------------------


# Five seconds at 25 frames a second; a longer clip would fill memory.
_MOST_FRAMES: Final = 125


@dataclass(frozen=True)
class Previewed:
    """The shown image, and its outputs.

    Attributes
    ----------
    kind : {"c", "p"}
    recipe : Recipe
    variants : tuple of Variant
        Variants of corruptions or perturbations, without the clean one, by category.
    key : str
        The image's key, which decides its random streams.
    image : uint8 ndarray of shape (H, W, 3), or Clip
        Prepared by the recipe for corruptions, raw for perturbations.
    clean : uint8 ndarray of shape (H, W, 3), or Clip
        What corrupted ones are compared with.
    note : str
        Note at the bottom of a sheet.
    """

    kind: Kind
    recipe: Recipe[Any]
    variants: tuple[Variant, ...]
    key: str
    image: Any
    clean: Rgb
    note: str
    _shared: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def rate(self) -> Fraction:
        """Return the frames per second of an animation."""
        return FRAMES_PER_SECOND

    @property
    def moves(self) -> bool:
        """Return whether the outputs are sequences or clips."""
        return self.kind == "p"

    @property
    def moving(self) -> tuple[Variant, ...]:
        """Return the variants to show as frames."""
        return self.variants

    def make(self, variant: Variant, rate: Fraction | None = None) -> Rgb:
        """Return the pixels that make-c or make-p would encode for `variant`: (H, W, 3) or (T, H, W, 3).

        Frames of a clip are left out or repeated to show them at another `rate`.

        Raises
        ------
        ImageError
            The variant of this image failed.
        """
        try:
            return self._make(variant, rate)
        except MissingDependencyError:
            raise
        except Exception as error:
            raise ImageError(f"{variant.folder}: {explain_failure(error, self.key)}", self.key) from error

    def _make(self, variant: Variant, rate: Fraction | None) -> Rgb:
        return self.recipe.make(variant, self.key, self.image, self._shared)

    def category(self, variant: Variant) -> str:
        """Return the category of the corruption or perturbation of `variant`; "" for the clean one."""
        operations = BENCHMARKS[self.kind].operations
        return operations[variant.name].category if variant.name in operations else ""


class PreviewedClip(Previewed):
    """The shown clip, and its outputs."""

    moves = True

    @property
    def rate(self) -> Fraction:
        """Return the frames per second of the clip."""
        rate: Fraction = self.image.rate
        return rate

    @property
    def moving(self) -> tuple[Variant, ...]:
        """Return the clean variant, and all others."""
        return CLEAN_VARIANT, *self.variants

    def _make(self, variant: Variant, rate: Fraction | None) -> Rgb:
        made: Any = super()._make(variant, rate)
        made = made.hold()
        return np.stack([*change_rate(made, made, rate)]) if rate else made.stack()


_PREVIEWED: Final = {IMAGE: Previewed, CLIP: PreviewedClip}


def open_from_source(config: Config, kind: Kind, index: int, output: Path) -> Previewed:
    """Return the image at `index`, from 0, of the images that make-c or make-p would use.

    Raises
    ------
    SourceError, ConfigError, OutputError
        There is no such image, or the sheet at `output` would be among the images.
    ImageError
        The image cannot be read, or is too small for the edition.
    """
    making = _open_making(config, kind, output)
    if not 0 <= index < len(making.keys):
        raise ConfigError(f"--index {index}: must be from 0 to {len(making.keys) - 1}")
    return _prepare(config, kind, making, index)


def open_from_file(path: Path, config: Config, kind: Kind, output: Path | None = None) -> Previewed:
    """Return the image or clip at `path`, whose key is ``<name of its folder>/<its own name>``.

    For an image in a class folder, that is the key in make-c and make-p.

    Raises
    ------
    SourceError, OutputError
        The file does not exist, or `output` is the same file.
    ImageError
        The image cannot be read, or is too small for the edition.
    """
    with suppress(OSError):
        if output and path.samefile(output):
            raise OutputError(f"--output {output}: is the image itself")
    of_clips = config.medium is CLIP
    if not path.is_file() and not (of_clips and path.is_dir()):
        hint = "is a folder; --source shows an image of it" if path.is_dir() else "not a regular file"
        raise SourceError(f"{path}: {'no such file' if not path.exists() else hint}")
    recipe = CorruptionRecipe(config.edition)
    if kind == "c" and (needed := find_fitting(recipe, config.variants(kind))):
        raise ConfigError(f"--with {needed.name} needs --source: {needed.sentence}")
    nowhere = dict.fromkeys(("source", "labels", "subset", "sample", "limit")) | {"require_classes": False}
    own = f"{path.absolute().parent.name}/{path.name}"
    if is_video(path.name) and not of_clips:
        raise ConfigError(f"{path}: is a video; add --dataset clips")
    rate = parse_rate(config.fps) if config.fps else None
    options = SourceOptions(libjpeg=config.libjpeg, levels=config.levels, rate=rate)
    image: Any = (OneClip if of_clips else OneImage)(find_place(path), options, own)
    making = _open_making(config.model_copy(update=nowhere), kind, output, image)
    return _prepare(config, kind, making)


def _open_making(config: Config, kind: Kind, output: Path | None, image: Source | None = None) -> Making:
    folder = open_store(output.absolute().parent) if output else None
    if folder:
        refuse_files(folder)
    making = open_making(config.of_separate_images(format="png"), kind, source=image)
    if not (folder and output):
        return making
    # A sheet may be next to its source, unlike an output; scikit-image is often in a .venv below.
    around = f"{making.source.location}/".startswith(f"{folder.location}/")
    check_output(folder.folder(f"{output.name}.files") if around else folder, making.source)
    return making


def _prepare(config: Config, kind: Kind, making: Making, index: int = 0) -> Previewed:
    key = making.keys[index]
    source, note = making.source.open(key), f"{key} · {config.edition} · seed {config.seed}"
    warn_of_few_greys(source)
    try:
        source, count = take_first(source, _MOST_FRAMES)
        note += f" · first {_MOST_FRAMES} of {count} frames" if count > _MOST_FRAMES else ""
        image = making.recipe.prepare(source)
    except ImageError as error:
        raise ImageError(str(error), key) from error
    known = BENCHMARKS[kind].operations
    variants = [variant for variant in making.variants if variant.name != CLEAN]
    variants.sort(key=lambda variant: CATEGORIES.index(known[variant.name].category))
    assert isinstance(making.recipe, BenchmarkRecipe)
    clean = making.recipe.complete(image) if isinstance(making.recipe, CorruptionRecipe) else image
    return _PREVIEWED[making.source.medium](kind, making.recipe, tuple(variants), key, image, clean, note)


# --- sheets ---------------------------------------------------------------------------------------

ANIMATED = (".gif", ".mp4")
# Evenly spaced for all published lengths: 16, 21, 31 and 41.


def choose_severities(config: Config, *, grid: bool) -> Config:
    """Return the config for a grid or clips, which have severity 3 alone unless others are given."""
    alone = (grid or config.medium is CLIP) and "severities" not in config.flagged
    return config.model_copy(update={"severities": (3,)}) if alone else config


def draw_previewed(
    previewed: Previewed,
    *,
    grid: bool = False,
    frames: int = FRAMES_DRAWN,
    cell: int = CELL,
    slides: bool = False,
) -> list[Rgb]:
    """Return the sheet, uint8 (H, W, 3), or for `slides` one for each category.

    `grid` is for corruptions, `frames` for perturbations and clips.
    """
    if grid:
        return [draw_corruption_grid(previewed, cell)]
    rows, columns = (
        _list_sequences(previewed, frames, cell) if previewed.moves else _list_corruptions(previewed, cell)
    )
    groups = [[*own] for _, own in groupby(rows, lambda row: row.group)] if slides else [rows]
    return [sheets.draw_sheet(own, columns, cell=cell, note=previewed.note) for own in groups]


def _follow(previewed: Previewed) -> Iterator[Variant]:
    """Yield the variants, and count them with a bar."""
    return track(previewed.variants, len(previewed.variants), "variants")


def _list_corruptions(previewed: Previewed, cell: int) -> tuple[list[SheetRow], list[str]]:
    """Return a row for each corruption, and columns of the clean image and each severity."""
    clean = fit_picture(previewed.clean, cell)
    levels, rows = sorted({variant.level for variant in previewed.variants}), list[SheetRow]()
    for (category, name), variants in groupby(
        _follow(previewed), lambda variant: (previewed.category(variant), variant.name)
    ):
        # Reduced one by one: full-size outputs of a large photograph would fill the memory.
        drawn = {variant.level: fit_picture(previewed.make(variant), cell) for variant in variants}
        rows.append(SheetRow(format_name(name), [clean, *map(drawn.get, levels)], group=category))
    return rows, ["clean", *(f"severity {level}" for level in levels)]


def draw_corruption_grid(previewed: Previewed, cell: int = CELL) -> Rgb:
    """Return every corruption at one severity above its name, five in a row, as in the paper's figure 1."""
    levels = {variant.level for variant in previewed.variants}
    pictures = [
        (
            format_name(variant.name) + f" {variant.level}" * (len(levels) > 1),
            fit_picture(stills(previewed.make(variant), 1)[0], cell),
        )
        for variant in _follow(previewed)
    ]
    note = f"{previewed.note} · severity {min(levels)}" if len(levels) == 1 else previewed.note
    return sheets.draw_grid(pictures, cell=cell, note=note)


def _list_sequences(previewed: Previewed, frames: int, cell: int) -> tuple[list[SheetRow], tuple[str, ...]]:
    """Return a row for each variant: that many frames, evenly spaced from the first to the last."""
    variants = previewed.moving
    followed = track(variants, len(variants), "variants")
    strips = [_strip(previewed.make(variant), frames, cell) for variant in followed]
    # Sequences may have different lengths; deviations from the headings are noted below the pictures.
    ((heads, _),) = Counter(names for names, _ in strips).most_common(1)
    rows = [
        SheetRow(
            format_name(variant.folder),
            pictures,
            names if names != heads else (),
            previewed.category(variant),
        )
        for variant, (names, pictures) in zip(variants, strips, strict=True)
    ]
    return rows, heads


def _strip(sequence: Rgb, count: int, cell: int) -> tuple[tuple[str, ...], list[Rgb]]:
    """Return names and pictures of `count` frames, or of all if there are fewer."""
    numbers = spread_frames(len(sequence), count)
    return tuple(f"frame {n}" for n in numbers), [fit_picture(sequence[n], cell) for n in numbers]


# --- files ---------------------------------------------------------------------------------------


def check_preview_path(path: Path, animate: bool) -> None:
    """Check before the work that `path` can be the name of the file.

    Raises
    ------
    OutputError
        The path is a folder, or has an unknown suffix.
    """
    if not animate and path.suffix.lower() not in sheets.PICTURE_SUFFIXES:
        known = ", ".join((*sheets.PICTURE_SUFFIXES, ".html"))
        moving = f"with --perturbations or clips also {', '.join(ANIMATED)}"
        raise OutputError(f"--output {path}: must end in {known}; {moving}")
    if path.is_dir():
        raise OutputError(f"--output {path}: is a folder")


# --- animations -----------------------------------------------------------------------------------

FRAMES_PER_SECOND: Final = Fraction(8)
"""Frames per second of perturbations; those of clips have their own."""

# A GIF counts hundredths of a second, and browsers and players slow down the shortest pauses.
_SHORTEST_PAUSE: Final = 4


# A single sequence is animated at its own size, within limits.
_SMALLEST_ALONE = 224
_LARGEST_ALONE = 512


def choose_rate(previewed: Previewed, suffix: str) -> Fraction:
    """Return the frames per second of a file: the own rate; in a GIF the nearest possible, at most 25."""
    if suffix != ".gif":
        return previewed.rate
    return Fraction(100, max(_SHORTEST_PAUSE, round(100 / previewed.rate)))


def draw_animation(previewed: Previewed, cell: int | None = None, rate: Fraction | None = None) -> Rgb:
    """Return the frames, uint8 (T, H, W, 3), of one variant, or of several side by side with names.

    Shorter sequences wait at their end. Clips are shown at another `rate` if given.
    """
    rate = rate or previewed.rate
    if len(previewed.variants) == 1:
        alone = previewed.make(previewed.variants[0], rate)
        side = round(math.sqrt(alone.shape[1] * alone.shape[2]))
        return np.stack(_shrink_frames(alone, cell or min(max(side, _SMALLEST_ALONE), _LARGEST_ALONE)))
    size = cell or CELL
    sequences = [_shrink_frames(previewed.make(variant, rate), size) for variant in previewed.moving]
    names = [format_name(variant.folder) for variant in previewed.moving]
    longest = max(map(len, sequences))
    moments = zip(*(each + each[-1:] * (longest - len(each)) for each in sequences), strict=True)
    grids = [zip(names, pictures, strict=True) for pictures in moments]
    return np.stack([sheets.draw_grid(pictures, cell=size, note=previewed.note) for pictures in grids])


def _shrink_frames(sequence: Rgb, cell: int) -> list[Rgb]:
    return [fit_picture(frame, cell) for frame in sequence]


def encode_animation(frames: Rgb, suffix: str, rate: Fraction = FRAMES_PER_SECOND) -> bytes:
    """Return the file of `frames`, uint8 (T, H, W, 3): a looping GIF, or an MP4 for browsers."""
    if suffix == ".mp4":
        encoding = video.Encoding(preset="medium", fps=rate).playable()
        # yuv420p needs even sides.
        _, height, width, _ = frames.shape
        frames = np.pad(frames, ((0, 0), (0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        return video.encode(frames, encoding)
    first, *others = map(Image.fromarray, frames)
    buffer = BytesIO()
    pause = round(1000 / rate)
    first.save(buffer, "GIF", save_all=True, append_images=others, duration=pause, loop=0)
    return buffer.getvalue()


MOST_BYTES: Final = 4_000_000
"""Largest size of a page."""
# Sides of squares of the same area, from the finest possible one.
_SIDES: Final = (512, 448, 384, 320, 256, 224, 192, 160, 128, 96, 64)
_QUALITY: Final = 82
# Smaller pictures are stored without loss, because JPEG artefacts would be visible.
_LOSSLESS_PIXELS: Final = 96 * 96
# Parameters that are not constants.


def write_explorer(previewed: Previewed, path: Path) -> int:
    """Write the page about `previewed`, and return its size in bytes.

    Raises
    ------
    OutputError
        The page cannot be written, or is too large even with small pictures.
    ImageError
        A corruption of the image failed.
    """
    reference = Reference(previewed.clean)
    shown = [_show(previewed, variant, reference) for variant in _follow(previewed)]
    clean = _shrink(previewed.clean, _SIDES[0])
    for side in _SIDES:
        corruptions = [
            {
                "name": format_name(name),
                "category": category,
                "variants": [entry | {"picture": _encode(picture, side)} for _, picture, entry in group],
            }
            for (name, category), group in groupby(shown, lambda each: each[0])
        ]
        data = {"clean": _encode(clean, side), "corruptions": corruptions}
        page = render_page(
            "explorer.html",
            data=data,
            note=previewed.note,
            size=f"{previewed.clean.shape[1]} x {previewed.clean.shape[0]}",
            ratio=f"{previewed.clean.shape[1] / previewed.clean.shape[0]:.4f}",
            small=previewed.clean.shape[0] * previewed.clean.shape[1] <= _LOSSLESS_PIXELS,
        )
        if len(page) <= MOST_BYTES:
            save(path, page, f"--output {path}")
            return len(page)
    raise OutputError(f"--output {path}: over {MOST_BYTES:,} bytes; name fewer --corruptions or --severities")


def _show(
    previewed: Previewed, variant: Variant, reference: Reference
) -> tuple[tuple[str, str], Rgb, dict[str, Any]]:
    """Return corruption and category, the picture at most as large as a page shows it, and its entry."""
    made = previewed.make(variant)
    recipe = cast("BenchmarkRecipe[Any]", previewed.recipe)
    constants = asdict(recipe.bind(variant).parameters_for(previewed.image))
    shown = {name: format_constant(value) for name, value in constants.items() if name != "library"}
    ms_ssim = round(reference.similarity(made).ms_ssim, 4)
    entry = {"severity": variant.level, "ms_ssim": ms_ssim, "constants": shown}
    return (variant.name, previewed.category(variant)), _shrink(made, _SIDES[0]), entry


def _shrink(picture: Rgb, side: int) -> Rgb:
    """Return `picture` reduced to about the area of a square of `side` pixels; smaller ones unchanged."""
    height, width = picture.shape[:2]
    return picture if height * width <= side * side else fit_picture(picture, side)


def _encode(picture: Rgb, side: int) -> str:
    """Return the data URI of a picture."""
    small = _shrink(picture, side)
    lossless = small.shape[0] * small.shape[1] <= _LOSSLESS_PIXELS
    data = encode_picture(small, ".png") if lossless else encode_jpeg(small, _QUALITY, optimise=True)
    extension = "png" if lossless else "jpeg"
    return f"data:image/{extension};base64,{base64.b64encode(data).decode('ascii')}"
