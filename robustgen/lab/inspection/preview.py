"""`robustgen preview`: the image, the pixels that make-c or make-p would create, sheets, animations, page."""

import base64
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from PIL import Image

from robustgen.display import sheets
from robustgen.display.html import render_page
from robustgen.display.progress import track
from robustgen.display.sheets import CELL, SheetRow, encode_picture, fit_picture
from robustgen.display.text import format_constant, format_name
from robustgen.errors import (
    ConfigError,
    ImageError,
    MissingDependencyError,
    OutputError,
    SourceError,
    explain_failure,
)
from robustgen.files.storage import is_url, save
from robustgen.pixels.benchmarks.kinds import BENCHMARKS, CLEAN, Kind, Variant
from robustgen.pixels.benchmarks.registry import CATEGORIES
from robustgen.pixels.imaging import video
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import warn_of_few_greys
from robustgen.pixels.imaging.jpeg import encode_jpeg
from robustgen.pixels.imaging.similarity import Reference
from robustgen.sets.dataset.plan import Plan, plan_benchmark
from robustgen.sets.dataset.recipes import BenchmarkRecipe, CorruptionRecipe, Recipe
from robustgen.sets.ingredients import find_fitting
from robustgen.sets.sources.base import Source, SourceOptions
from robustgen.sets.sources.folder import OneImage
from robustgen.sets.sources.places import find_place
from robustgen.settings.config import Config

# --- image ----------------------------------------------------------------------------------------


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
    image : uint8 ndarray of shape (H, W, 3)
        Prepared by the recipe for corruptions, raw for perturbations.
    clean : uint8 ndarray of shape (H, W, 3)
        For corruptions, the image that corrupted ones are compared with.
    edition : str
    seed : int
    """

    kind: Kind
    recipe: Recipe[Rgb]
    variants: tuple[Variant, ...]
    key: str
    image: Rgb
    clean: Rgb
    edition: str
    seed: int
    _shared: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def make(self, variant: Variant) -> Rgb:
        """Return the pixels that make-c or make-p would encode for `variant`: (H, W, 3) or (T, H, W, 3).

        Raises
        ------
        ImageError
            The variant of this image failed.
        """
        try:
            return self.recipe.make(variant, self.key, self.image, self._shared)
        except MissingDependencyError:
            raise
        except Exception as error:
            raise ImageError(f"{variant.folder}: {explain_failure(error, self.key)}", self.key) from error

    @property
    def note(self) -> str:
        """Return the note at the bottom of a sheet."""
        return f"{self.key} · {self.edition} · seed {self.seed}"

    def category(self, variant: Variant) -> str:
        """Return the category of the corruption or perturbation of `variant`."""
        return BENCHMARKS[self.kind].operations[variant.name].category


def open_from_source(config: Config, kind: Kind, index: int, output: Path) -> Previewed:
    """Return the image at `index`, from 0, of the images that make-c or make-p would use.

    Raises
    ------
    SourceError, ConfigError, OutputError
        There is no such image, or the sheet at `output` would be among the images.
    ImageError
        The image cannot be read, or is too small for the edition.
    """
    plan = _plan(config, kind, output)
    if not 0 <= index < len(plan.keys):
        raise ConfigError(f"--index {index}: must be from 0 to {len(plan.keys) - 1}")
    return _prepare(config, kind, plan, index)


def open_from_file(path: Path, config: Config, kind: Kind, output: Path) -> Previewed:
    """Return the image at `path`, whose key is ``<name of its folder>/<its own name>``.

    For an image in a class folder, that is the key in make-c and make-p.

    Raises
    ------
    SourceError, OutputError
        The file does not exist, or `output` is the same file.
    ImageError
        The image cannot be read, or is too small for the edition.
    """
    with suppress(OSError):
        if path.samefile(output):
            raise OutputError(f"--output {output}: is the image itself")
    if not path.is_file():
        hint = "is a folder; --source shows an image of it" if path.is_dir() else "not a regular file"
        raise SourceError(f"{path}: {'no such file' if not path.exists() else hint}")
    recipe = CorruptionRecipe(config.edition)
    if kind == "c" and (needed := find_fitting(recipe, config.variants(kind))):
        raise ConfigError(f"--with {needed.name} needs --source: {needed.sentence}")
    nowhere = dict.fromkeys(("source", "labels", "subset", "sample", "limit")) | {"require_classes": False}
    own = f"{path.absolute().parent.name}/{path.name}"
    image = OneImage(find_place(path), SourceOptions(libjpeg=config.libjpeg, levels=config.levels), own)
    plan = _plan(config.model_copy(update=nowhere), kind, output, image)
    return _prepare(config, kind, plan)


def _plan(config: Config, kind: Kind, output: Path, image: Source | None = None) -> Plan:
    # The folder of the sheet replaces the output folder; PNG frames need no checks in advance.
    folder = output.absolute().parent
    source = config.source and not is_url(config.source) and Path(config.source).resolve()
    around = config.source is None or (source and folder.resolve() in source.parents)
    if around and folder.is_dir():
        # A sheet may be next to its source, unlike an output; scikit-image is often in a .venv below.
        folder /= f"{output.name}.files"
    needs_classes = config.require_classes and not config.mirror
    changed = {
        "output": str(folder),
        "format": "png",
        "mirror": None,
        "one_per_image": False,
        "require_classes": needs_classes,
    }
    plan = plan_benchmark(config.model_copy(update=changed), kind, overwrite=True, source=image)
    return plan.require_images("preview")


def _prepare(config: Config, kind: Kind, plan: Plan, index: int = 0) -> Previewed:
    key = plan.keys[index]
    source = plan.source.open(key)
    warn_of_few_greys(source)
    try:
        image = plan.recipe.prepare(source)
    except ImageError as error:
        raise ImageError(str(error), key) from error
    known = BENCHMARKS[kind].operations
    variants = [variant for variant in plan.variants if variant.name != CLEAN]
    variants.sort(key=lambda variant: CATEGORIES.index(known[variant.name].category))
    assert isinstance(plan.recipe, BenchmarkRecipe)
    clean = plan.recipe.complete(image) if isinstance(plan.recipe, CorruptionRecipe) else image
    return Previewed(kind, plan.recipe, tuple(variants), key, image, clean, config.edition, config.seed)


# --- sheets ---------------------------------------------------------------------------------------

ANIMATED = (".gif", ".mp4")
# Evenly spaced for all published lengths: 16, 21, 31 and 41.
FRAMES_DRAWN = 6


def draw_previewed(
    previewed: Previewed, *, grid: bool = False, frames: int = FRAMES_DRAWN, cell: int = CELL
) -> Rgb:
    """Return the sheet, uint8 (H, W, 3); `grid` is for corruptions, `frames` for perturbations."""
    if previewed.kind == "p":
        return draw_sequences(previewed, frames, cell)
    return (draw_corruption_grid if grid else draw_corruptions)(previewed, cell)


def _follow(previewed: Previewed) -> Iterator[Variant]:
    """Yield the variants, and count them with a bar."""
    return track(previewed.variants, len(previewed.variants), "variants")


def draw_corruptions(previewed: Previewed, cell: int = CELL) -> Rgb:
    """Return a row for each corruption, a column for the clean image and each severity; uint8 (H, W, 3)."""
    clean = fit_picture(previewed.clean, cell)
    rows = [
        # Reduced one by one: full-size outputs of a large photograph would fill the memory.
        SheetRow(
            format_name(name),
            [clean, *(fit_picture(previewed.make(variant), cell) for variant in variants)],
            group=category,
        )
        for (category, name), variants in groupby(
            _follow(previewed), lambda variant: (previewed.category(variant), variant.name)
        )
    ]
    levels = sorted({variant.level for variant in previewed.variants})
    columns = ["clean", *(f"severity {level}" for level in levels)]
    return sheets.draw_sheet(rows, columns, cell=cell, note=previewed.note)


def draw_corruption_grid(previewed: Previewed, cell: int = CELL) -> Rgb:
    """Return every corruption at one severity above its name, five in a row, as in the paper's figure 1."""
    pictures = [
        (format_name(variant.name), fit_picture(previewed.make(variant), cell))
        for variant in _follow(previewed)
    ]
    (level,) = {variant.level for variant in previewed.variants}
    return sheets.draw_grid(pictures, cell=cell, note=f"{previewed.note} · severity {level}")


def draw_sequences(previewed: Previewed, frames: int = FRAMES_DRAWN, cell: int = CELL) -> Rgb:
    """Return a row for each perturbation: that many frames, evenly spaced from the first to the last."""
    strips = [_strip(previewed.make(variant), frames, cell) for variant in _follow(previewed)]
    # Sequences may have different lengths; deviations from the headings are noted below the pictures.
    ((heads, _),) = Counter(names for names, _ in strips).most_common(1)
    rows = [
        SheetRow(
            format_name(variant.folder),
            pictures,
            () if names == heads else names,
            previewed.category(variant),
        )
        for variant, (names, pictures) in zip(previewed.variants, strips, strict=True)
    ]
    return sheets.draw_sheet(rows, heads, cell=cell, note=previewed.note)


def _strip(sequence: Rgb, count: int, cell: int) -> tuple[tuple[str, ...], list[Rgb]]:
    """Return names and pictures of `count` frames, or of all if there are fewer."""
    last = len(sequence) - 1
    numbers = np.linspace(0, last, min(count, last + 1)).round().astype(int).tolist()
    return tuple(f"frame {n}" for n in numbers), [fit_picture(sequence[n], cell) for n in numbers]


# --- files ---------------------------------------------------------------------------------------


def check_preview_path(path: Path, animate: bool) -> None:
    """Check before the work that `path` can be the name of the file.

    Raises
    ------
    OutputError
        The path is a folder, or has an unknown suffix.
    """
    known = ANIMATED if animate else sheets.PICTURE_SUFFIXES
    if path.suffix.lower() not in known:
        hint = " (animations need --perturbations)" if path.suffix.lower() in ANIMATED else ""
        raise OutputError(f"--output {path}: must end in {', '.join(known)}{hint}")
    if path.is_dir():
        raise OutputError(f"--output {path}: is a folder")


# --- animations -----------------------------------------------------------------------------------

FRAMES_PER_SECOND = 8


# A single sequence is animated at its own size, within limits.
_SMALLEST_ALONE = 224
_LARGEST_ALONE = 512


def draw_animation(previewed: Previewed, cell: int | None = None) -> Rgb:
    """Return the frames, uint8 (T, H, W, 3), of one perturbation, or of several side by side with names.

    Shorter sequences wait at their end.
    """
    if len(previewed.variants) == 1:
        alone = previewed.make(previewed.variants[0])
        side = round(math.sqrt(alone.shape[1] * alone.shape[2]))
        return np.stack(_shrink_frames(alone, cell or min(max(side, _SMALLEST_ALONE), _LARGEST_ALONE)))
    size = cell or CELL
    sequences = [_shrink_frames(previewed.make(variant), size) for variant in previewed.variants]
    names = [format_name(variant.folder) for variant in previewed.variants]
    longest = max(map(len, sequences))
    moments = zip(*(each + each[-1:] * (longest - len(each)) for each in sequences), strict=True)
    grids = [zip(names, pictures, strict=True) for pictures in moments]
    return np.stack([sheets.draw_grid(pictures, cell=size, note=previewed.note) for pictures in grids])


def _shrink_frames(sequence: Rgb, cell: int) -> list[Rgb]:
    return [fit_picture(frame, cell) for frame in sequence]


def encode_animation(frames: Rgb, suffix: str) -> bytes:
    """Return the file of `frames`, uint8 (T, H, W, 3): a looping GIF, or an MP4 for browsers."""
    if suffix == ".mp4":
        encoding = video.Encoding(preset="medium", fps=FRAMES_PER_SECOND).playable()
        # yuv420p needs even sides.
        _, height, width, _ = frames.shape
        frames = np.pad(frames, ((0, 0), (0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        return video.encode(frames, encoding)
    first, *others = map(Image.fromarray, frames)
    buffer = BytesIO()
    pause = 1000 // FRAMES_PER_SECOND
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
_NOT_SHOWN: Final = ("engine", "library")


@dataclass(frozen=True)
class ShownVariant:
    """One corruption of the image at one severity.

    Attributes
    ----------
    variant : Variant
    picture : uint8 ndarray of shape (H, W, 3)
        Reduced to at most the size for a page.
    ms_ssim : float
        Similarity to the clean image, at full size.
    constants : dict
    """

    variant: Variant
    picture: Rgb
    ms_ssim: float
    constants: Mapping[str, Any]


def write_explorer(previewed: Previewed, path: Path) -> int:
    """Write the page about `previewed`, and return its size in bytes.

    Raises
    ------
    OutputError
        The page cannot be written, or is too large even with small pictures.
    ImageError
        A corruption of the image failed.
    """
    variants = [*_make_variants(previewed)]
    clean = _shrink(previewed.clean, _SIDES[0])
    for side in _SIDES:
        pictures = {each.variant.folder: _encode(each.picture, side) for each in variants}
        data = {
            "clean": _encode(clean, side),
            "corruptions": [*_group(previewed, variants, pictures)],
        }
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
    raise OutputError(
        f"--output {path}: more than {MOST_BYTES:,} bytes; name fewer --corruptions or --severities"
    )


def _make_variants(previewed: Previewed) -> Iterator[ShownVariant]:
    reference = Reference(previewed.clean)
    recipe = cast("BenchmarkRecipe[Any]", previewed.recipe)
    for variant in _follow(previewed):
        made = previewed.make(variant)
        constants = asdict(recipe.bind(variant).parameters_for(previewed.image))
        shown = {name: value for name, value in constants.items() if name not in _NOT_SHOWN}
        yield ShownVariant(variant, _shrink(made, _SIDES[0]), reference.similarity(made).ms_ssim, shown)


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


def _group(
    previewed: Previewed, variants: list[ShownVariant], pictures: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    for name, group in groupby(variants, lambda each: each.variant.name):
        own = [*group]
        yield {
            "name": format_name(name),
            "category": previewed.category(own[0].variant),
            "variants": [
                {
                    "severity": each.variant.level,
                    "ms_ssim": round(each.ms_ssim, 4),
                    "constants": {key: format_constant(value) for key, value in each.constants.items()},
                    "picture": pictures[each.variant.folder],
                }
                for each in own
            ],
        }
