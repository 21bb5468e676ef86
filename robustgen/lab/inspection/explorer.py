"""The page of `robustgen preview`: every corruption of one image, with sliders for severities."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final, cast

from robustgen.display.html import render_page
from robustgen.display.sheets import encode_picture, fit_picture
from robustgen.display.text import format_constant, format_name
from robustgen.errors import OutputError
from robustgen.files.storage import save
from robustgen.lab.inspection.preview import Previewed
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.jpeg import encode_jpeg
from robustgen.pixels.imaging.similarity import Reference
from robustgen.sets.dataset.recipes import BenchmarkRecipe

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
    for variant in previewed.variants:
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
    kind = "png" if lossless else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


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
