"""How often intervals of 95 % contain the truth: the second table of docs/use/scoring.md.

    python scripts/simulate_coverage.py [--draws N] [--ap]

Images differ in difficulty, which all corruptions share: a normal variable as wide as what is left to chance.
A model is wrong on about 37 % of the corrupted images, or with "few mistakes" on about 9 %. `--ap` simulates
detectors instead, which takes three minutes.
"""

import argparse
import contextlib
import io
import json
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import stats

from robustgen.lab.scores.unknown_classes import _find_intervals, _resample
from robustgen.metrics import detection_rates
from robustgen.metrics.bootstrap import draw_weights
from robustgen.metrics.intervals import (
    difference_interval,
    jackknife_interval,
    mean_interval,
    paired_chances,
    ratio_interval,
    stratified_interval,
)

SIZES = (10, 20, 50, 100)
CORRUPTIONS, SEVERITIES = 15, 5


def draw_errors(rng: Generator, images: int, level: float, models: int = 1) -> tuple[Any, Any]:
    """Mistakes of models, (models, variants, images), clean images first, and the true errors."""
    grid = (
        level + np.add.outer(np.linspace(-0.3, 0.3, CORRUPTIONS), 0.25 * (np.arange(SEVERITIES) - 2)).ravel()
    )
    limits = np.concatenate([[level - 1], grid])
    hard = rng.normal(size=images)
    mistakes = limits[:, None] + hard + rng.normal(size=(models, len(limits), images)) > 0
    return mistakes.astype(float), np.broadcast_to(
        stats.norm.cdf(limits / math.sqrt(2)), (models, len(limits))
    )


def cover(rng: Generator, draws: int, images: int, level: float) -> Iterator[tuple[str, bool]]:
    """Yield for each score and data set whether its interval contains the truth."""
    for _ in range(draws):
        wrong, truth = draw_errors(rng, images, level, models=2)
        errors, aims = wrong[:, 1:].mean(1), truth[:, 1:].mean(1)
        yield "one variant", contains(mean_interval(wrong[0, 38, :, None]), truth[0, 38])
        yield "mean error, mCE, AUDE", contains(mean_interval(errors[0][:, None]), aims[0])
        relative = errors[0] - wrong[0, 0]
        yield "relative mCE", contains(mean_interval(relative[:, None], -1, 1), aims[0] - truth[0, 0])
        ratio = errors[0].mean() / max(errors[1].mean(), 1e-9)
        influence = (errors[0] - ratio * errors[1]) / max(errors[1].mean(), 1e-9)
        yield (
            "CE by a baseline's predictions",
            contains(ratio_interval([ratio], influence[:, None]), 1),
        )
        yield "difference, one variant", contains(difference_interval(wrong[0, 38], wrong[1, 38], 0, 1), 0)
        yield "difference of means", contains(difference_interval(errors[0], errors[1], 0, 1), 0)
        yield (
            "no false alarm, one variant",
            bool(paired_chances(wrong[0, 38, :, None], wrong[1, 38])[0] >= 0.05),
        )
        yield "no false alarm, means", bool(paired_chances(errors[0][:, None], errors[1])[0] >= 0.05)
        labels = np.where(np.arange(images) < max(3, images // 10), 1, 0)
        yield "balanced error, a class of a tenth", contains(stratified_interval(errors[0], labels), aims[0])


def cover_rates(rng: Generator, draws: int, images: int) -> Iterator[tuple[str, bool]]:
    aims = [stats.norm.cdf(stats.norm.ppf(0.95) - 2), stats.norm.cdf(math.sqrt(2))]
    for _ in range(draws):
        known, unknown = rng.normal(2, 1, images), rng.normal(0, 1, images)
        rates = {"o": detection_rates(known, unknown)}
        samples = {"o": _resample(known, unknown, draw_weights(images, 200))}
        (ends,) = _find_intervals(rates, samples, images, {"o": unknown}, known).values()
        for name, own, aim in zip(("FPR@95", "AUROC"), ends, aims, strict=False):
            yield name, contains(own, aim)


def cover_miou(rng: Generator, draws: int, images: int, classes: int = 3) -> Iterator[tuple[str, bool]]:
    def draw(count: int) -> Any:
        quality, common = rng.beta(4, 2, count), rng.integers(0, classes, count)
        truth = np.where(
            rng.random((count, 64)) < 0.7, common[:, None], rng.integers(0, classes, (count, 64))
        )
        guess = np.where(
            rng.random((count, 64)) < quality[:, None], truth, rng.integers(0, classes, (count, 64))
        )
        pairs = [((truth == n) & (guess == n), (truth == n) | (guess == n)) for n in range(classes)]
        return np.array([[part.sum(1) for part in each] for each in pairs])

    def miou(counts: Any) -> float:
        return float(np.mean(counts[:, 0] / np.maximum(counts[:, 1], 1)))

    aim = miou(draw(50_000).sum(2))
    for _ in range(draws):
        counts = draw(images)
        left = [miou(counts.sum(2) - counts[:, :, n]) for n in range(images)]
        yield "mIoU", contains(jackknife_interval(miou(counts.sum(2)), left, images), aim)


def cover_precision(rng: Generator, draws: int, images: int) -> Iterator[tuple[str, bool]]:
    """AP of boxes that are found, missed or moved; the truth is that of 4,000 images."""
    from robustgen.cli import main

    def find(root: Path, count: int, replicates: int) -> tuple[Any, Any]:
        truth, found = list[Any](), list[Any]()
        for image in range(1, count + 1):
            skill = rng.beta(4, 2)
            for _ in range(rng.integers(1, 5)):
                box = [float(each) for each in (*rng.integers(0, 150, 2), *rng.integers(20, 140, 2))]
                own = {"image_id": image, "category_id": int(rng.integers(1, 4)), "bbox": box}
                truth.append(own | {"id": len(truth) + 1, "area": box[2] * box[3], "iscrowd": 0})
                if rng.random() < skill:
                    moved = [each + float(rng.normal(0, 4)) for each in box]
                    found.append(own | {"bbox": moved, "score": float(rng.beta(4, 2))})
                if rng.random() < 0.3:
                    found.append(own | {"bbox": [5.0, 5.0, 40.0, 40.0], "score": float(rng.beta(2, 4))})
        pictures = [
            {"id": n, "width": 300, "height": 300, "file_name": f"{n}.png"} for n in range(1, count + 1)
        ]
        names = [{"id": n, "name": str(n)} for n in range(1, 4)]
        content = {"images": pictures, "annotations": truth, "categories": names}
        (root / "truth.json").write_text(json.dumps(content))
        (root / "fog").mkdir(exist_ok=True)
        for name in ("clean", "fog/1"):
            (root / f"{name}.json").write_text(json.dumps(found))
        words = [
            "score-detection",
            "--annotations",
            root / "truth.json",
            "--clean-results",
            root / "clean.json",
        ]
        words += [
            "--results",
            f"{root}/{{corruption}}/{{severity}}.json",
            "--partial",
            "--format",
            "json",
            "--jobs",
            1,
        ]
        out = io.StringIO()
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.suppress(SystemExit),
        ):
            main([*map(str, words), "--replicates", str(replicates)], standalone_mode=False)
        scores = json.loads(out.getvalue())["types"]["bbox"]
        return scores["summary"]["AP"]["P"], scores["intervals"] and scores["intervals"]["AP"]["P"]

    with tempfile.TemporaryDirectory() as folder:
        aim, _ = find(Path(folder), 4000, 0)
        for _ in range(draws):
            _, ends = find(Path(folder), images, 100)
            yield "AP", contains(ends, aim)


def contains(ends: Any, truth: float) -> bool:
    low, high = (float(np.squeeze(end)) for end in ends)
    return bool(low - 1e-9 <= truth <= high + 1e-9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--ap", action="store_true")
    options = parser.parse_args()
    rows: dict[str, list[float]] = {}
    for images in SIZES:
        rng, found = np.random.default_rng(images), dict[str, list[bool]]()
        parts = (
            [cover_precision(rng, 150, images)] if options.ap else [cover(rng, options.draws, images, -0.5)]
        )
        if not options.ap:
            parts += [
                ((f"{name}, few mistakes", hit) for name, hit in cover(rng, options.draws, images, -2.0))
            ]
            parts += [cover_rates(rng, max(1, options.draws // 5), images)]
            parts += [cover_miou(rng, options.draws, images)]
        for part in parts:
            for name, hit in part:
                found.setdefault(name, []).append(hit)
        for name, hits in found.items():
            rows.setdefault(name, []).append(float(np.mean(hits)))
    print(f"| score | {' | '.join(f'{images} images' for images in SIZES)} |")
    for name, shares in rows.items():
        print(f"| {name} | {' | '.join(f'{100 * share:.0f} %' for share in shares)} |")


if __name__ == "__main__":
    main()
