"""Writes the page gallery.md of the site: every operation at every level, with its definition and constants.

mkdocs runs it (plugin gen-files). robustgen makes the pictures; they are not kept in the repository.
"""

import io
from collections.abc import Iterator
from dataclasses import asdict, is_dataclass
from typing import Any

import mkdocs_gen_files
import numpy as np
from PIL import Image
from skimage import data

import robustgen
from robustgen.pixels.benchmarks.corruptions import FAMILIES, LATER
from robustgen.pixels.benchmarks.kinds import IMAGENET_P
from robustgen.pixels.benchmarks.registry import Corruption
from robustgen.pixels.imaging.decode import as_grey

SIDE, SHOWN = 224, 150
FRAMES = (1, 8, 15, 22, 29)


def write_picture(path: str, pixels: np.ndarray) -> str:
    """Write a picture of the site, and return the Markdown that shows it."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).resize((SHOWN, SHOWN), Image.Resampling.LANCZOS).save(buffer, "JPEG", quality=85)
    with mkdocs_gen_files.open(path, "wb") as file:
        file.write(buffer.getvalue())
    return f"![]({path})"


def list_constants(constants: Any) -> str:
    if not is_dataclass(constants) or isinstance(constants, type):
        return ""
    shown = {
        name: value for name, value in asdict(constants).items() if isinstance(value, (int, float, tuple))
    }
    return "<br>".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in shown.items()
    )


def table(heads: list[str], *rows: list[str]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)]


def corrupt(row: Corruption, image: np.ndarray, level: float, edition: str | None) -> np.ndarray:
    """Return the corrupted image; of a corruption of clips the middle frame, as the camera pans."""
    if row.over_time != "whole":
        return robustgen.corrupt(image, row.name, level, edition=edition, rng=0)
    cat = data.chelsea()
    clip = np.stack([cat[t : t + SIDE, 2 * t + 40 : 2 * t + 40 + SIDE] for t in range(30)])
    made = robustgen.corrupt_clip(clip, row.name, level, edition=edition, rng=0)
    middle: np.ndarray = made[len(made) // 2]
    return middle


def describe_corruption(row: Corruption, photo: np.ndarray) -> Iterator[str]:
    severities, scale = row.severities, next(iter(row.table))
    edition = scale if isinstance(scale, str) else None
    image = as_grey(np.asarray(Image.fromarray(photo).resize((28, 28)))) if row.grey else photo
    folder = row.name.replace(":", "/")
    pictures = [
        write_picture(f"gallery/{folder}-{level}.jpg", corrupt(row, image, level, edition))
        for level in severities
    ]
    constants = [list_constants(row.parameters(level, scale)) for level in severities]
    yield from (f"### {row.name}", "", row.summary, "")
    yield from table([f"severity {level}" for level in severities], pictures, constants)
    yield ""


def describe_perturbation(name: str, photo: np.ndarray) -> Iterator[str]:
    frames = robustgen.perturb(photo, name, rng=0)
    shown = [number for number in FRAMES if number < len(frames)]
    pictures = [write_picture(f"gallery/{name}-frame-{number}.jpg", frames[number]) for number in shown]
    yield from (f"### {name} (sequence)", "")
    yield from table([f"frame {number}" for number in shown], pictures)
    yield ""


def main() -> None:
    photo = np.asarray(
        Image.fromarray(data.chelsea()[:300, 60:360]).resize((SIDE, SIDE), Image.Resampling.LANCZOS)
    )
    lines = [
        "# Gallery",
        "",
        "Every corruption at every severity, at 224 pixels, and every perturbation at difficulty 1. robustgen"
        " makes the pictures when the site is built. This is the clean image:",
        "",
        write_picture("gallery/clean.jpg", photo),
        "",
    ]
    for name in (*FAMILIES.built_in, *LATER):
        family = FAMILIES[name]
        lines += [f"## {family.title}", "", family.citation, ""]
        for row in family.corruptions.values():
            if not (row.needs and row.needs.default != "installed"):
                lines += describe_corruption(row, photo)
    lines += ["## ImageNet-P", ""]
    for name in IMAGENET_P.names:
        lines += describe_perturbation(name, photo)
    with mkdocs_gen_files.open("gallery.md", "w") as file:
        file.write("\n".join(lines) + "\n")


main()
