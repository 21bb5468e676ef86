"""`robustgen compare`: a test of whether two C or P sets of the same images are equivalent.

The same sample of images is read from both sets. For each image, `results` measures the mean grey level, the
size of the file, and PSNR, SSIM, MS-SSIM and displacement relative to the clean image (for a sequence, to its
first frame). `equivalence` decides which differences chance explains, and which are within a margin.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from robustgen.display import progress
from robustgen.display.text import format_count
from robustgen.errors import ConfigError, SourceError, UnknownNameError
from robustgen.lab.inspection.compare.equivalence import (
    FEWEST_EQUIVALENT,
    LEVEL_FACTOR,
    METRIC_NAMES,
    METRICS,
    Effect,
    correct_effects,
    measure_distance,
    measure_effect,
)
from robustgen.lab.inspection.compare.results import (
    Comparison,
    Missing,
    Name,
    OperationResult,
    Pair,
    Problem,
    Side,
    Sides,
    VariantResult,
    open_clean_side,
)
from robustgen.pixels.benchmarks.kinds import BENCHMARKS, CLEAN, Kind, Variant
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.dataset.recipes import rank
from robustgen.sets.executors import count_cores
from robustgen.settings.inspecting import Comparing


def compare_sets(options: Comparing) -> Comparison:
    """Compare two sets: outputs of make-c or make-p, or published sets as downloaded.

    By default the clean images of one set are used for both.

    Raises
    ------
    SourceError
        One of them is not a set, or they have nothing in common.
    """
    for name in options.margin.keys() - METRIC_NAMES:
        raise ConfigError(f"--margin: {UnknownNameError('metric', name, METRIC_NAMES)}")
    first, second = Side(open_set(options.a)), Side(open_set(options.b))
    kind = first.written.kind
    if first.written.benchmark.content != second.written.benchmark.content:
        contents = f"{first.root} contains {first.noun}s, {second.root} {second.noun}s"
        raise SourceError(f"{contents}: they cannot be compared")
    folders, only = _find_shared_variants(first, second, options)
    notes: list[str] = []
    sides = Sides(first, second, _find_clean_sides(first, second, options.clean, kind, notes))
    missing = _find_missing(sides, folders)
    plan = _choose_sample(sides, folders, options)
    if any(sides.unlike_files(folder, key) for key, variants in plan.items() for folder in variants):
        notes.append("one has videos, the other frames: their file sizes are not compared")
    # Text says of equal pairs that they are equal; their values matter to tests of operations with others.
    is_text = options.format != "json" and not options.output
    measured = set[str]() if is_text else {variant.name for variant in first.variants.values()}
    found = _measure_variants(sides, plan, folders, options.jobs or count_cores(), measured)
    judge = _Judge(kind, options.margin)
    variants = {folder: first.variants[folder] for folder in folders}
    levels = Counter(variant.name for variant in variants.values())
    results = [
        _variant_result(variant, found[folder], missing[folder], judge, levels[variant.name])
        for folder, variant in variants.items()
    ]
    if cut := sum(pair.cut for variant in results for pair in variant.pairs):
        notes.append(f"{format_count(cut, first.noun)} of unequal length: only frames in both are compared")
    operations = _judge_variants(results, judge)
    if options.sample is not None and len(plan) < options.sample:
        notes.append(f"only {format_count(len(plan), first.noun)} to compare")
    doubtful = [len(each.pairs) for each in results if each.verdict == "too few images"]
    if min(doubtful, default=FEWEST_EQUIVALENT) < FEWEST_EQUIVALENT:
        notes.append(f"equivalence needs at least {FEWEST_EQUIVALENT} {first.noun}s that are in both sets")
    return Comparison(first, second, kind, operations, only, tuple(notes), options)


def _find_shared_variants(
    a: Side, b: Side, options: Comparing
) -> tuple[list[str], dict[Name, tuple[str, ...]]]:
    """Return the requested variants that both sets have, in order, and those that only one of them has."""
    known = sorted({variant.name for side in (a, b) for variant in side.variants.values()} - {CLEAN})
    names, levels = (*options.corruptions, *options.perturbations), options.severities or ()
    for name in names:
        if name not in known:
            raise UnknownNameError({"c": "corruption", "p": "perturbation"}[a.written.kind], name, known)

    def is_wanted(variant: Variant) -> bool:
        named = not names or variant.name in names
        return variant.name == CLEAN or (named and (not levels or variant.level in levels))

    wanted_a, wanted_b = (
        [f for f, variant in side.variants.items() if is_wanted(variant)] for side in (a, b)
    )
    shared = [folder for folder in wanted_a if folder in wanted_b]
    if not set(shared) - {CLEAN}:
        raise SourceError(f"{a.root} and {b.root} have no corruption, perturbation or severity in common")
    # Published sets have no clean images; that does not count as missing.
    only_a = tuple(f for f in wanted_a if f not in wanted_b and f != CLEAN)
    only_b = tuple(f for f in wanted_b if f not in wanted_a and f != CLEAN)
    return shared, {"A": only_a, "B": only_b}


def _find_clean_sides(
    a: Side, b: Side, clean: str | None, kind: Kind, notes: list[str]
) -> tuple[Side | None, Side | None]:
    """Return the clean images for both sets: their own, the given ones, or those of the other set."""
    if kind == "p":
        if clean:
            raise SourceError("--clean-images: sequences are compared with their own first frame")
        notes.append("frames are compared with the first frame of their sequence")
        return None, None
    given = open_clean_side(clean, a.written.benchmark.title) if clean else None
    own = [side if CLEAN in side.variants else given for side in (a, b)]
    found = own[0] or own[1]
    if found is None:
        notes.append("no clean images (--clean-images DIR): only pixels and file sizes are compared")
    elif own[0] is None or own[1] is None:
        notes.append(
            f"{'A' if own[0] is None else 'B'} has no clean images; those of {found.root} are used for both"
        )
    return own[0] or found, own[1] or found


def _find_missing(sides: Sides, folders: Iterable[str]) -> dict[str, Missing]:
    """Return for each variant the images that a side lacks, out of all images of any variant of any side."""
    for side in (sides.a, sides.b):
        side.open(folders)
    every: set[str] = set()
    for folder in folders:
        a, b = sides.a.keys(folder), sides.b.keys(folder)
        every |= a | b
        if a and b and not a & b:
            both = f"the first are {min(a)!r} and {min(b)!r}"
            raise SourceError(f"{sides.a.root}, {sides.b.root}: no common image of {folder}: {both}")
    return {
        folder: {
            "A": tuple(sorted(every - sides.a.keys(folder))),
            "B": tuple(sorted(every - sides.b.keys(folder))),
        }
        for folder in folders
    }


def _choose_sample(sides: Sides, folders: Iterable[str], options: Comparing) -> dict[str, list[str]]:
    """Return the images to read, and their variants: as far as possible the same images in all variants."""
    plan: dict[str, list[str]] = {}
    ranks: dict[str, bytes] = {}
    for folder in folders:
        common = sides.a.keys(folder) & sides.b.keys(folder)
        for key in common - ranks.keys():
            ranks[key] = rank(options.seed, key)
        for key in sorted(common, key=ranks.__getitem__)[: options.sample]:
            plan.setdefault(key, []).append(folder)
    return plan


def _measure_variants(
    sides: Sides, plan: Mapping[str, list[str]], folders: Iterable[str], jobs: int, measured: set[str]
) -> dict[str, list[Pair | Problem]]:
    """Return the results of each variant, in the order of `plan`, independent of the threads.

    `measured` are the operations of which equal pairs are measured too; those with unequal pairs join them.
    """
    found = {folder: dict[str, Pair | Problem]() for folder in folders}

    def is_left(folder: str, key: str) -> bool:
        result = found[folder].get(key)
        is_deferred = isinstance(result, Pair) and not result.is_measured
        return result is None or (is_deferred and sides.a.variants[folder].name in measured)

    pool = ThreadPoolExecutor(jobs)
    try:
        while left := {
            key: own for key, every in plan.items() if (own := [each for each in every if is_left(each, key)])
        }:
            done = pool.map(lambda each: (each[0], sides.measure(each[0], each[1], measured)), left.items())
            with progress.Meter(sum(map(len, left.values())), "pairs") as bar:
                for key, image in done:
                    bar.update(len(image))
                    for folder, result in image:
                        found[folder][key] = result
    finally:
        pool.shutdown(cancel_futures=True)
    return {folder: [*results.values()] for folder, results in found.items()}


def _variant_result(
    variant: Variant, found: list[Pair | Problem], missing: Missing, judge: "_Judge", levels: int
) -> VariantResult:
    pairs = tuple(each for each in found if isinstance(each, Pair))
    problems = tuple(each for each in found if isinstance(each, Problem))
    same = all(pair.equal for pair in pairs)
    factor = LEVEL_FACTOR if levels > 1 else 1
    values = np.array([pair.values for pair in pairs])
    distances = np.array([pair.distance for pair in pairs])
    effects = () if same else judge.measure(variant, values, distances, factor)
    return VariantResult(variant, pairs, effects, problems, missing)


@dataclass(frozen=True)
class _Judge:
    """Applies the tests to the pairs of a variant, or to their means over several variants."""

    kind: Kind
    margins: Mapping[str, float]

    def measure(
        self, variant: Variant, values: NDArray[np.float64], distances: NDArray[np.float64], factor: float
    ) -> tuple[Effect, ...]:
        """Return the effects on all metrics of `values`, (images, 2, metrics), with uncorrected p."""
        found = [
            measure_effect(metric, values[:, 0, i], values[:, 1, i], self.margins, factor=factor)
            for i, metric in enumerate(METRICS)
        ]
        known = BENCHMARKS[self.kind].operations
        # An unknown operation may be random even for the same image.
        if variant.name == CLEAN or (variant.name in known and not known[variant.name].random):
            found.append(measure_distance(distances, self.margins, factor=factor))
        return tuple(each for each in found if each)

    def pool(self, variants: tuple[VariantResult, ...]) -> tuple[Effect, ...]:
        """Return the effects on the means over several levels, for images measured at all of them."""
        if len(variants) == 1 or all(variant.verdict == "identical" for variant in variants):
            return ()
        pairs = [{pair.key: pair for pair in variant.pairs} for variant in variants]
        shared = [key for key in pairs[0] if all(key in each for each in pairs)]
        values = [np.mean([each[key].values for each in pairs], axis=0) for key in shared]
        distances = [np.mean([each[key].distance for each in pairs]) for key in shared]
        shape = (-1, 2, len(METRICS))
        return self.measure(variants[0].variant, np.reshape(values, shape), np.array(distances), 1)


def _judge_variants(variants: list[VariantResult], judge: _Judge) -> tuple[OperationResult, ...]:
    """Return the variants by operation, with the p-values of all their effects corrected together."""
    groups = [tuple(group) for _, group in groupby(variants, key=lambda each: each.variant.name)]
    pooled = [judge.pool(group) for group in groups]
    every = [*(variant.effects for variant in variants), *pooled]
    judged = iter(correct_effects([each for effects in every for each in effects]))

    def take_judged(effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
        return tuple(next(judged) for _ in effects)

    settled = [
        tuple(replace(variant, effects=take_judged(variant.effects)) for variant in group) for group in groups
    ]
    return tuple(
        OperationResult(group[0].variant.name, group, take_judged(effects))
        for group, effects in zip(settled, pooled, strict=True)
    )
