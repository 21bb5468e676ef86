"""`robustgen compare`: whether two C or P sets of the same images are equivalent.

The same sample of images is read from both sets. Of each, the mean grey level, the size of the file, and
PSNR, SSIM and MS-SSIM against the clean image (of a sequence, against its first frame) are measured
(`pairing`); `equivalence` says which differences chance explains.
"""

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from robustgen.benchmark import CLEAN, Arm, Kind
from robustgen.compare.equivalence import FEWEST, METRICS, Effect, corrected, effect, quantiles
from robustgen.compare.pairing import Name, Pair, Problem, Side, Sides, clean_side
from robustgen.datasets import noun, open_dataset
from robustgen.display import progress
from robustgen.display.text import format_count
from robustgen.errors import SourceError, UnknownNameError
from robustgen.generation.recipes import rank

SIDES: Final[tuple[Name, ...]] = ("A", "B", "clean")
Verdict = Literal["identical", "statistically the same", "differs", "not compared"]
_COUNTED: Final[Mapping[Verdict, str]] = {"differs": "different"}
_FROM_BEST: Final[tuple[Verdict, ...]] = ("identical", "statistically the same", "not compared", "differs")

Quantiles = tuple[float, ...]
Missing = Mapping[Name, tuple[str, ...]]


@dataclass(frozen=True)
class ArmResult:
    """What came of one corruption at one severity, or one perturbation.

    Attributes
    ----------
    arm : Arm
    pairs : tuple of Pair
        The images that were measured in both sets.
    effects : tuple of Effect
        A metric each; none where the pixels are the same or the pairs too few.
    problems : tuple of Problem
        Images that cannot be used.
    missing : mapping of {"A", "B"} to tuple of str
        Images that a set lacks here, though it or the other has them elsewhere.
    """

    arm: Arm
    pairs: tuple[Pair, ...]
    effects: tuple[Effect, ...]
    problems: tuple[Problem, ...]
    missing: Missing

    @property
    def equal(self) -> int:
        """How many pairs are equal to the pixel."""
        return sum(pair.equal for pair in self.pairs)

    @property
    def verdict(self) -> Verdict:
        """By the tests, or by the pixels where all are the same."""
        if self.pairs and self.equal == len(self.pairs):
            return "identical"
        if not self.effects:
            return "not compared"
        return "differs" if any(each.significant for each in self.effects) else "statistically the same"

    @property
    def offset(self) -> float:
        """Mean difference of the pixels, B - A, in grey levels; NaN without pairs."""
        return _mean(pair.offset for pair in self.pairs)

    @property
    def spread(self) -> float:
        """Standard deviation of the differences of the pixels within an image; mean over the images."""
        return _mean(pair.spread for pair in self.pairs)

    def quantiles(self, metric: int, side: int) -> Quantiles | None:
        """Of a metric, by its place in `METRICS`, in A (0) or B (1); None where it was not measured."""
        return quantiles(np.array([pair.values[side, metric] for pair in self.pairs]))


@dataclass(frozen=True)
class OperationResult:
    """What came of a corruption or perturbation at all of its levels.

    Attributes
    ----------
    name : str
    arms : tuple of ArmResult
    pooled : tuple of Effect
        Of each image's means over the levels, which tell smaller differences than one level alone.
    """

    name: str
    arms: tuple[ArmResult, ...]
    pooled: tuple[Effect, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst among its levels and their means."""
        if any(each.significant for each in self.pooled):
            return "differs"
        return max((each.verdict for each in self.arms), key=_FROM_BEST.index)

    @property
    def reason(self) -> str:
        """What differs most surely, by how much and where; empty where nothing does."""
        levels = [(arm.effects, f" at level {arm.arm.level}" * (len(self.arms) > 1)) for arm in self.arms]
        found = [
            (each.p, -each.sureness, f"{each.told()}{place}")
            for effects, place in [(self.pooled, " in the mean"), *levels]
            for each in effects
            if each.significant
        ]
        return min(found)[2] if found else ""

    def overall(self, metric: str) -> Effect | None:
        """The effect on one metric over all levels; None where all is equal or there is too little."""
        effects = self.pooled or (self.arms[0].effects if len(self.arms) == 1 else ())
        return next((each for each in effects if each.metric.key == metric), None)


@dataclass(frozen=True)
class Comparison:
    """Two sets, and how they differ.

    Attributes
    ----------
    a, b : Side
    kind : {"c", "p"}
    operations : tuple of OperationResult
        Those that are in both sets; the clean images first.
    only : mapping of {"A", "B"} to tuple of str
        Folders of the arms that only one of the sets has.
    notes : tuple of str
        What the reader has to know.
    choice : Choice
        What was asked for.
    """

    a: Side
    b: Side
    kind: Kind
    operations: tuple[OperationResult, ...]
    only: Missing
    notes: tuple[str, ...]
    choice: "Choice"

    @property
    def arms(self) -> list[ArmResult]:
        """All arms of all operations."""
        return [arm for operation in self.operations for arm in operation.arms]

    @property
    def problems(self) -> list[Problem]:
        """All images that cannot be used."""
        return [each for arm in self.arms for each in arm.problems]

    def missing(self, side: Name) -> int:
        """How many images a set lacks, in all arms together."""
        return sum(len(arm.missing.get(side, ())) for arm in self.arms)

    @property
    def whole(self) -> bool:
        """Whether both sets have the same arms and images."""
        return not (any(self.only.values()) or self.missing("A") or self.missing("B"))

    @property
    def equivalent(self) -> bool:
        """Whether nothing differs and, unless the choice is partial, nothing is missing."""
        settled = all(each.verdict in _FROM_BEST[:2] for each in self.operations)
        return settled and not self.problems and (self.whole or self.choice.partial)

    @property
    def sentence(self) -> str:
        """The answer."""
        named = {v: [o.name for o in self.operations if o.verdict == v] for v in _FROM_BEST}
        counts = [f"{len(names)} {_COUNTED.get(each, each)}" for each, names in named.items() if names]
        answer = (
            "is equivalent to A, as far as this sample shows" if self.equivalent else "is not equivalent to A"
        )
        parts = [f"{_COUNTED.get(v, v)}: {', '.join(named[v])}" for v in _FROM_BEST[:1:-1] if named[v]]
        return "; ".join([f"B {answer} ({', '.join(counts)})", *parts, *self._lacking()]) + "."

    def _lacking(self) -> list[str]:
        what = noun(self.kind).removesuffix("s")
        parts = [f"only in {side}: {shortened(folders)}" for side, folders in self.only.items() if folders]
        for side in SIDES:
            missing = self.missing(side)
            unusable = sum(each.side == side for each in self.problems)
            parts += [f"{format_count(missing, what)} missing from {side}"] * bool(missing)
            parts += [f"{format_count(unusable, what)} unusable in {side}"] * bool(unusable)
        return parts


def shortened(folders: Iterable[str]) -> str:
    """Folders of arms, severities that follow each other put together: ``fog/1-3, fog/5, tilt``."""
    runs: list[tuple[str, str, str]] = []
    for folder in folders:
        name, _, level = folder.partition("/")
        before, first, last = runs[-1] if runs else ("", "", "")
        if level and name == before and int(level) == int(last) + 1:
            runs[-1] = name, first, level
        else:
            runs.append((name, level, level))
    return ", ".join(
        f"{name}/{first}-{last}" if first != last else f"{name}/{first}".rstrip("/")
        for name, first, last in runs
    )


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return float(np.mean(known)) if known else float("nan")


# --- comparing -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """What is to be compared.

    Attributes
    ----------
    names : tuple of str
        Corruptions or perturbations; empty for all.
    levels : tuple of int
        Severities; empty for all.
    sample : int or None
        Images of each arm; None for all.
    seed : int
        Decides which images.
    partial : bool
        Whether what only one of the sets has does not count.
    """

    names: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()
    sample: int | None = 200
    seed: int = 0
    partial: bool = False

    def has(self, arm: Arm) -> bool:
        """Whether `arm` was asked for; the clean images always are."""
        if arm.name == CLEAN:
            return True
        return (not self.names or arm.name in self.names) and (not self.levels or arm.level in self.levels)


def compare(
    a: Path, b: Path, *, choice: Choice | None = None, clean: Path | None = None, jobs: int | None = None
) -> Comparison:
    """Compare the sets at `a` and `b`.

    Parameters
    ----------
    a, b : Path
        Outputs of make-c or make-p, or published sets as they were downloaded.
    choice : Choice, optional
        Otherwise 200 images of everything.
    clean : Path, optional
        The clean images of a C set that has none: an output of make-c, or a folder of prepared images.
        Otherwise those of the other set serve both.
    jobs : int, optional
        Threads; otherwise one a core.

    Raises
    ------
    SourceError
        One of them is no set, or they have nothing in common.
    """
    choice = choice or Choice()
    first, second = Side(open_dataset(a)), Side(open_dataset(b))
    kind = _kind_of(first, second)
    folders, only = _shared(first, second, choice)
    notes: list[str] = []
    sides = Sides(first, second, _clean_sides(first, second, clean, kind, notes))
    missing = _missing(sides, folders)
    plan = _sampled(sides, folders, choice)
    if any(sides.unlike_files(folder, key) for key, arms in plan.items() for folder in arms):
        notes.append("one has videos, the other frames: their file sizes are not compared")
    found = _measured(sides, plan, folders, jobs or os.cpu_count() or 1)
    operations = _judged([_arm_result(first.arms[f], found[f], missing[f]) for f in folders])
    if choice.sample is not None and len(plan) < choice.sample:
        notes.append(f"no more than {format_count(len(plan), noun(kind).removesuffix('s'))} to compare")
    if any(arm.verdict == "not compared" and arm.pairs for operation in operations for arm in operation.arms):
        notes.append(f"the tests need at least {FEWEST} {noun(kind)} that are in both sets")
    return Comparison(first, second, kind, operations, only, tuple(notes), choice)


def _kind_of(a: Side, b: Side) -> Kind:
    if a.dataset.kind != b.dataset.kind:
        kinds = {"c": "a set of corruptions", "p": "a set of perturbation sequences"}
        raise SourceError(
            f"{a.root} is {kinds[a.dataset.kind]}, {b.root} {kinds[b.dataset.kind]}: they cannot be compared"
        )
    return a.dataset.kind


def _shared(a: Side, b: Side, choice: Choice) -> tuple[list[str], dict[Name, tuple[str, ...]]]:
    """The arms of both sets that were asked for, in order, and those that only one of them has."""
    known = sorted({arm.name for side in (a, b) for arm in side.arms.values()} - {CLEAN})
    for name in choice.names:
        if name not in known:
            raise UnknownNameError("arm", name, known)
    wanted_a, wanted_b = ([f for f, arm in side.arms.items() if choice.has(arm)] for side in (a, b))
    shared = [folder for folder in wanted_a if folder in wanted_b]
    if not set(shared) - {CLEAN}:
        raise SourceError(f"{a.root} and {b.root} have no corruption, perturbation or severity in common")
    # Published sets come without their clean images; those lack nothing.
    only_a = tuple(f for f in wanted_a if f not in wanted_b and f != CLEAN)
    only_b = tuple(f for f in wanted_b if f not in wanted_a and f != CLEAN)
    return shared, {"A": only_a, "B": only_b}


def _clean_sides(
    a: Side, b: Side, clean: Path | None, kind: Kind, notes: list[str]
) -> tuple[Side | None, Side | None]:
    """Where the clean images of both sets are: their own, those given, or those of the other set."""
    if kind == "p":
        if clean:
            raise SourceError("--clean: the frames of sequences are compared with their own first frame")
        notes.append("frames are measured against the first frame of their sequence")
        return None, None
    given = clean_side(clean) if clean else None
    own = [side if CLEAN in side.arms else given for side in (a, b)]
    found = own[0] or own[1]
    if found is None:
        notes.append("no clean images (--clean DIR): only pixels and file sizes are compared")
    elif own[0] is None or own[1] is None:
        notes.append(
            f"{'A' if own[0] is None else 'B'} has no clean images; those of {found.root} serve both"
        )
    return own[0] or found, own[1] or found


def _missing(sides: Sides, folders: Iterable[str]) -> dict[str, Missing]:
    """Of each arm, the images that either side lacks, out of all that any arm of any side has."""
    every: set[str] = set()
    for folder in folders:
        a, b = sides.a.keys(folder), sides.b.keys(folder)
        every |= a.keys() | b.keys()
        if a and b and not a.keys() & b.keys():
            raise SourceError(
                f"{sides.a.root} and {sides.b.root} have no image of {folder} in common: "
                f"the first are {min(a)!r} and {min(b)!r}"
            )
    return {
        folder: {
            "A": tuple(sorted(every - sides.a.keys(folder).keys())),
            "B": tuple(sorted(every - sides.b.keys(folder).keys())),
        }
        for folder in folders
    }


def _sampled(sides: Sides, folders: Iterable[str], choice: Choice) -> dict[str, list[str]]:
    """The images to read, and in which arms: as far as possible the same in all."""
    plan: dict[str, list[str]] = {}
    ranks: dict[str, bytes] = {}
    for folder in folders:
        common = sides.a.keys(folder).keys() & sides.b.keys(folder).keys()
        for key in common - ranks.keys():
            ranks[key] = rank(choice.seed, key)
        for key in sorted(common, key=ranks.__getitem__)[: choice.sample]:
            plan.setdefault(key, []).append(folder)
    return plan


def _measured(
    sides: Sides, plan: Mapping[str, list[str]], folders: Iterable[str], jobs: int
) -> dict[str, list[Pair | Problem]]:
    """What was found in each arm, in the order of `plan`, whatever the threads do."""
    found: dict[str, list[Pair | Problem]] = {folder: [] for folder in folders}
    pool = ThreadPoolExecutor(jobs)
    try:
        done = pool.map(lambda each: sides.measure(*each), plan.items())
        with progress.bar(sum(map(len, plan.values())), "pairs") as bar:
            for image in done:
                bar.update(len(image))
                for folder, result in image:
                    found[folder].append(result)
    finally:
        pool.shutdown(cancel_futures=True)
    return found


def _arm_result(arm: Arm, found: list[Pair | Problem], missing: Missing) -> ArmResult:
    pairs = tuple(each for each in found if isinstance(each, Pair))
    problems = tuple(each for each in found if isinstance(each, Problem))
    same = all(pair.equal for pair in pairs)
    effects = () if same else _effects(np.array([pair.values for pair in pairs]))
    return ArmResult(arm, pairs, effects, problems, missing)


def _effects(values: NDArray[np.float64]) -> tuple[Effect, ...]:
    """The effects on all metrics of `values`, (images, 2, metrics); p know nothing of other tests yet."""
    found = [effect(metric, values[:, 0, i], values[:, 1, i]) for i, metric in enumerate(METRICS)]
    return tuple(each for each in found if each)


def _pooled(arms: tuple[ArmResult, ...]) -> tuple[Effect, ...]:
    """The effects on the means over several levels, of the images that were measured in all of them."""
    if len(arms) == 1 or all(arm.verdict == "identical" for arm in arms):
        return ()
    values = [{pair.key: pair.values for pair in arm.pairs} for arm in arms]
    shared = [key for key in values[0] if all(key in each for each in values)]
    means = [np.mean([each[key] for each in values], axis=0) for key in shared]
    return _effects(np.array(means).reshape(-1, 2, len(METRICS)))


def _judged(arms: list[ArmResult]) -> tuple[OperationResult, ...]:
    """The arms by operation, and the p of all their effects corrected together."""
    groups = [tuple(group) for _, group in groupby(arms, key=lambda each: each.arm.name)]
    pooled = [_pooled(group) for group in groups]
    every = [each for arm in arms for each in arm.effects] + [each for effects in pooled for each in effects]
    judged = iter(corrected(every))

    def renewed(effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
        return tuple(next(judged) for _ in effects)

    settled = [tuple(replace(arm, effects=renewed(arm.effects)) for arm in group) for group in groups]
    return tuple(
        OperationResult(group[0].arm.name, group, renewed(effects))
        for group, effects in zip(settled, pooled, strict=True)
    )
