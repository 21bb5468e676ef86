"""Writes the page gallery.md of the site: a card for every operation, with its code and its constants.

mkdocs runs it (plugin gen-files). robustgen makes the pictures; they are not kept in the repository. The page
begins with the wipe page of `robustgen preview`.
"""

import html
import io
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import mkdocs_gen_files
import numpy as np
from PIL import Image
from skimage import data

import robustgen
from robustgen.cli import main as run_command
from robustgen.pixels.benchmarks.corruptions import FAMILIES, LATER
from robustgen.pixels.benchmarks.kinds import IMAGENET_P
from robustgen.pixels.benchmarks.registry import Corruption
from robustgen.pixels.imaging.decode import as_grey

SIDE, FRAME = 224, 15


def write_card(name: str, about: str, pixels: np.ndarray, code: str, constants: str = "") -> Iterator[str]:
    """Write a picture of the site, and yield its card."""
    path, buffer = f"gallery/{name.replace(':', '/')}.jpg", io.BytesIO()
    Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.LANCZOS).save(buffer, "JPEG", quality=85)
    with mkdocs_gen_files.open(path, "wb") as file:
        file.write(buffer.getvalue())
    title = name.replace("_", "_<wbr>").replace(":", ":<wbr>")
    yield from ('<div class="card" markdown>', "", f"### {title}", "")
    yield from (f"![{name}]({path}){{ loading=lazy }}", "", about, "", "```python", code, "```", "")
    if constants:
        yield f"<details><summary>Constants</summary>{constants}</details>"
    yield from ("", "</div>", "")


def list_constants(row: Corruption, scale: Any) -> str:
    """Return a table of the constants of each severity, in HTML."""
    lines = []
    for level in row.severities:
        found = row.parameters(level, scale)
        named = asdict(found) if is_dataclass(found) and not isinstance(found, type) else {}
        known = {key: each for key, each in named.items() if isinstance(each, (int, float, tuple))}
        texts = [
            f"{key} {each:g}" if isinstance(each, float) else f"{key} {each}" for key, each in known.items()
        ]
        lines += [f"<tr><td>{level:g}</td><td>{html.escape(', '.join(texts))}</td></tr>"] * bool(texts)
    return f"<table>{''.join(lines)}</table>" if lines else ""


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
    scale = next(iter(row.table))
    edition = scale if isinstance(scale, str) else None
    image = as_grey(np.asarray(Image.fromarray(photo).resize((28, 28)))) if row.grey else photo
    level = row.severities[len(row.severities) // 2]
    more = f", edition={edition!r}" if edition else ""
    function, noun = ("corrupt_clip", "clip") if row.over_time == "whole" else ("corrupt", "image")
    code = f"robustgen.{function}({noun}, {row.name!r}, {level:g}{more}, rng=0)"
    pixels = corrupt(row, image, level, edition)
    yield from write_card(row.name, row.summary, pixels, code, list_constants(row, scale))


def write_wipe(photo: np.ndarray) -> None:
    """Write the wipe page of the photograph."""
    with tempfile.TemporaryDirectory() as folder:
        picture, page = Path(folder, "photo", "cat.png"), Path(folder, "wipe.html")
        picture.parent.mkdir()
        Image.fromarray(photo).save(picture)
        run_command(["preview", str(picture), "--output", str(page)], standalone_mode=False)
        with mkdocs_gen_files.open("gallery/wipe.html", "wb") as file:
            file.write(page.read_bytes())


def main() -> None:
    photo = np.asarray(
        Image.fromarray(data.chelsea()[:300, 60:360]).resize((SIDE, SIDE), Image.Resampling.LANCZOS)
    )
    write_wipe(photo)
    lines = [
        "# Gallery",
        "",
        "Choose a corruption and a severity, and pull the line across the picture:",
        "",
        '<iframe class="wipe" src="wipe.html" title="The wipe page"></iframe>',
        "",
        "Below are all corruptions at a middle severity, at 224 pixels, and a frame of every perturbation."
        " robustgen makes the pictures when the site is built.",
        "",
    ]
    for name in (*FAMILIES.built_in, *LATER):
        family = FAMILIES[name]
        rows = [
            row for row in family.corruptions.values() if not row.needs or row.needs.default == "installed"
        ]
        lines += [f"## {family.title}", "", family.citation, "", '<div class="cards" markdown>', ""]
        lines += [line for row in rows for line in describe_corruption(row, photo)]
        lines += ["</div>", ""]
    lines += ["## ImageNet-P", "", '<div class="cards" markdown>', ""]
    for name in IMAGENET_P.names:
        frames = robustgen.perturb(photo, name, rng=0)
        number = min(FRAME, len(frames) - 1)
        about = f"Frame {number + 1} of {len(frames)}."
        lines += write_card(name, about, frames[number], f"robustgen.perturb(image, {name!r}, rng=0)")
    lines += ["</div>", ""]
    with mkdocs_gen_files.open("gallery.md", "w") as file:
        file.write("\n".join(lines) + "\n")


main()
