#!/usr/bin/env python3
"""Draws the sheets in docs/images from the photographs in scikit-image, and the charts of simulated models.

    python scripts/docs_images.py [FOLDER]

The same releases of the libraries write the same bytes.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from skimage import data

import robustgen
from robustgen.cli import main
from robustgen.display.sheets import SheetRow, draw_sheet, encode_picture, fit_picture
from robustgen.lab.scores.measures import ALEXNET
from robustgen.lab.scores.results import ModelScores
from robustgen.lab.scores.score_charts import plot
from robustgen.lab.scores.scoreboard import Scoreboard
from robustgen.metrics import COMMON_PERTURBATIONS
from robustgen.pixels.benchmarks.corruptions.laion_c import published_preparation
from robustgen.pixels.benchmarks.corruptions.medmnist_c import MEDMNIST_C
from robustgen.pixels.benchmarks.kinds import IMAGENET_C
from robustgen.pixels.imaging.laion_c_effects import TileBank
from robustgen.related.streams import ccc
from robustgen.settings.scoring import ChartForm

MOST_BYTES = 250_000
COFFEE, CAT = ("--dataset", "demo", "--index", "2"), ("--dataset", "demo", "--index", "1")
SHEETS = {
    "corruptions.jpg": (*COFFEE, "--grid", "--severities", "3", "--cell", "168", "--quality", "85"),
    "severities.jpg": (*COFFEE, "--cell", "80", "--quality", "75"),
    "c-bar.jpg": (
        *CAT,
        "--corruptions",
        "c-bar",
        "--grid",
        "--severities",
        "3",
        "--cell",
        "168",
        "--quality",
        "80",
    ),
    "perturbations.jpg": (*CAT, "--perturbations", "common", "--cell", "104", "--quality", "75"),
}


SEVERITIES = range(1, 6)
LEVELS = ["clean", *(f"severity {level}" for level in SEVERITIES)]


def cut_pictures(count):
    """Cut squares out of the photographs; return a bank of pictures."""
    draws = np.random.default_rng(0)
    sources = [
        data.astronaut(),
        data.coffee(),
        data.rocket(),
        data.chelsea(),
        data.retina(),
    ]
    for number in range(count):
        source = sources[number % len(sources)]
        side = int(draws.integers(60, 240))
        top, left = (int(draws.integers(0, length - side)) for length in source.shape[:2])
        yield Image.fromarray(source[top : top + side, left : left + side])


def compare_levels(family, image, names=None, *, cell=104, edition="imagenet", **more):
    """Draw a row for each corruption and a column for each severity."""
    rows = []
    for name in names or robustgen.FAMILIES[family].names():
        made = [
            robustgen.corrupt(image, name, level, edition=edition, rng=level, **more) for level in SEVERITIES
        ]
        clean = made[0] * 0 + image if made[0].ndim == 3 else image
        rows.append(
            SheetRow(name.partition(":")[2], [fit_picture(colour(each), cell) for each in (clean, *made)])
        )
    return rows


def colour(image):
    return image if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)


def draw_laion_c():
    bank, rows, cell = TileBank.from_images(cut_pictures(1200), (4, 6, 8, 16, 28)), [], 112
    for name in robustgen.FAMILIES["laion-c"].names():
        own = {"tiles": bank} if name.endswith(("stickers", "mosaic")) else None
        pictures = [fit_picture(robustgen.prepare(data.chelsea()), cell)]
        for level in SEVERITIES:
            steps = published_preparation(name, level)
            image = steps.prepare(data.chelsea())
            made = robustgen.corrupt(image, name, level, edition="imagenet", parameters=own, rng=level)
            pictures.append(fit_picture(steps.complete(made), cell))
        rows.append(SheetRow(name.partition(":")[2], pictures))
    return draw_sheet(rows, LEVELS, cell=cell)


def square(image, side):
    height, width = image.shape[:2]
    edge = min(height, width)
    cut = image[(height - edge) // 2 :, (width - edge) // 2 :][:edge, :edge]
    return np.asarray(Image.fromarray(cut).resize((side, side), Image.Resampling.LANCZOS))


def draw_medmnist_c():
    rows, cell = [], 88
    tissue, retina = square(data.immunohistochemistry(), 224), square(data.retina(), 224)
    cells = square(data.cell(), 224)
    for image, edition, names in (
        (tissue, "pathmnist", MEDMNIST_C.names("pathmnist")),
        (retina, "dermamnist", ("medmnist-c:black_corner", "medmnist-c:characters", "medmnist-c:zoom_blur")),
        (
            cells,
            "chestmnist",
            ("medmnist-c:gaussian_blur", "medmnist-c:gamma_corr_up", "medmnist-c:speckle_noise"),
        ),
    ):
        rows += compare_levels("medmnist-c", image, names, cell=cell, edition=edition)
    return draw_sheet(rows, LEVELS, cell=cell)


def draw_mnist_c():
    canvas = Image.new("L", (28, 28))
    painter = ImageDraw.Draw(canvas)
    painter.text((14, 14), "5", fill=255, font=ImageFont.load_default(24), anchor="mm")
    digit, cell = np.asarray(canvas), 112
    made = [
        (name.partition(":")[2], colour(robustgen.corrupt(digit, name, 1, edition="mnist", rng=4)))
        for name in robustgen.FAMILIES["mnist-c"].names()
    ]
    rows = [made[start : start + 8] for start in range(0, len(made), 8)]
    return draw_sheet(
        [SheetRow("", [fit_picture(p, cell) for _, p in row], [n for n, _ in row]) for row in rows], cell=cell
    )


def draw_video_c():
    photograph, rows, cell = data.astronaut(), [], 96
    clip = np.stack([photograph[t : t + 224, 3 * t + 60 : 3 * t + 284] for t in range(32)])
    for name in robustgen.FAMILIES["video-c"].names():
        made = robustgen.corrupt_clip(clip, name, 4, rng=1)
        numbers = [round(place * (len(made) - 1) / 5) for place in range(6)]
        rows.append(SheetRow(name.partition(":")[2], [fit_picture(made[number], cell) for number in numbers]))
    return draw_sheet(rows, cell=cell)


def draw_three_d_cc():
    left, _, disparity = data.stereo_motorcycle()
    scene = np.where(np.isfinite(disparity) & (disparity > 0), disparity, np.nanmin(disparity[disparity > 0]))
    depth = (10 / scene).astype(np.float32)
    depth = np.clip(depth / np.quantile(depth, 0.99) * 0.4, 0.02, 0.5)
    size = left.shape[1] // 2, left.shape[0] // 2
    image = np.asarray(Image.fromarray(left).resize(size, Image.Resampling.LANCZOS))
    near = np.asarray(Image.fromarray(depth).resize(size, Image.Resampling.NEAREST))
    rows, cell = [], 112
    for name in robustgen.FAMILIES["3dcc"].names():
        more = {"depth": near} if robustgen.FAMILIES["3dcc"].corruptions[name].needs else {}
        rows += compare_levels("3dcc", image, (name,), cell=cell, **more)
    rows += compare_levels("robodepth", image, ("robodepth:dark",), cell=cell)
    return draw_sheet(rows, LEVELS, cell=cell)


def draw_ccc():
    image, rows, cell = robustgen.prepare(data.coffee()), [], 112
    # Accuracies that fall evenly with both severities.
    fall = 76 * np.exp(-np.add.outer(np.arange(21), np.arange(21)) / 14)
    path = ccc.find_path(fall, 20)
    for first, second in (
        ("gaussian_noise", "glass_blur"),
        ("snow", "fog"),
        ("contrast", "elastic"),
        ("frost", "pixelate"),
    ):
        pictures, captions = [], []
        for i, j in path[:: -(-len(path) // 6)]:
            made = robustgen.corrupt(image, f"ccc:{first}", i / 4, rng=1)
            pictures.append(fit_picture(robustgen.corrupt(made, f"ccc:{second}", j / 4, rng=2), cell))
            captions.append(f"{i / 4:g} + {j / 4:g}")
        rows.append(SheetRow(f"{first}, {second}", pictures, captions))
    return draw_sheet(rows, cell=cell)


def simulate_models(count):
    """Scores of models that do not exist, on the same 400 images."""
    rng = np.random.default_rng(0)
    draws, models = rng.random((2, 400)), []
    for place in range(count):
        mistakes = {"clean": draws[0] < 0.18 + 0.012 * place}
        for name in IMAGENET_C.common:
            skill = 0.45 + (0.5 * place / count) + rng.normal(0, 0.04)
            for level in IMAGENET_C.levels:
                chance = ALEXNET.errors[name] * skill * (0.4 + 0.2 * level)
                own = 0.7 * draws[0] + 0.3 * rng.permutation(draws[1])
                mistakes[f"{name}/{level}"] = own < np.quantile(own, min(0.97, chance))
        models.append(ModelScores(f"model {chr(ord('A') + place)}", "c", 400, (), mistakes=mistakes))
    return Scoreboard(models, ALEXNET)


def simulate_sequences(count):
    """Scores of models that do not exist, on the same 200 sequences of each perturbation."""
    rng, models = np.random.default_rng(0), []
    shared = {name: rng.normal(size=200) for name in COMMON_PERTURBATIONS}
    for place in range(count):
        rates = {
            name: np.clip(0.06 + 0.012 * place + rng.normal(0, 0.01) + 0.04 * draws, 0, 1)
            for name, draws in shared.items()
        }
        distances = {name: 20 * each for name, each in rates.items()}
        name = f"model {chr(ord('A') + place)}"
        models.append(ModelScores(name, "p", 200, (), flips=rates, distances=distances))
    return Scoreboard(models, None)


def draw_charts(folder):
    plot(simulate_sequences(6), folder / "chart-flips.png", ChartForm())
    check(folder / "chart-flips.png")
    for name, count, form in (("chart-curves.png", 5, "curves"), ("chart-dots.png", 20, "dots")):
        plot(simulate_models(count), folder / name, ChartForm(chart=form))
        check(folder / name)


FAMILIES = {
    "laion-c.jpg": (draw_laion_c, 76),
    "medmnist-c.jpg": (draw_medmnist_c, 72),
    "mnist-c.jpg": (draw_mnist_c, 80),
    "video-c.jpg": (draw_video_c, 72),
    "3dcc.jpg": (draw_three_d_cc, 80),
    "ccc.jpg": (draw_ccc, 80),
}


def draw(folder):
    draw_charts(folder)
    for name, (make, quality) in FAMILIES.items():
        path = folder / name
        path.write_bytes(encode_picture(make(), ".jpg", quality))
        check(path)
    for name, flags in SHEETS.items():
        path = folder / name
        main(["preview", *flags, "--no-show", "--output", str(path)], standalone_mode=False)
        check(path)


def check(path):
    if path.stat().st_size > MOST_BYTES:
        sys.exit(f"{path} has {path.stat().st_size} bytes, more than {MOST_BYTES}")


if __name__ == "__main__":
    draw(Path(sys.argv[1] if sys.argv[1:] else Path(__file__).parent.parent / "docs" / "images"))
