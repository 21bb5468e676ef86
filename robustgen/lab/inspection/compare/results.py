"""Results of a comparison of two sets: for a variant, for an operation, for the whole."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from robustgen.display.text import format_count
from robustgen.lab.inspection.compare.equivalence import Effect, find_quantiles
from robustgen.lab.inspection.compare.pairing import Name, Pair, Problem, Side
from robustgen.pixels.benchmarks.kinds import Kind, Variant, name_contents
from robustgen.settings.inspecting import Comparing

SIDES: Final[tuple[Name, ...]] = ("A", "B", "clean")
Verdict = Literal["identical", "equivalent", "too few images", "different"]
_FROM_BEST: Final[tuple[Verdict, ...]] = ("identical", "equivalent", "too few images", "different")
Quantiles = tuple[float, ...]
Missing = Mapping[Name, tuple[str, ...]]


def judge(effects: Sequence[Effect]) -> Verdict:
    """Return the verdict of all tests of one variant, or of the means over several."""
    if any(each.significant for each in effects):
        return "different"
    return "equivalent" if effects and all(each.within for each in effects) else "too few images"


@dataclass(frozen=True)
class VariantResult:
    """Result of one corruption at one severity, or of one perturbation.

    Attributes
    ----------
    variant : Variant
    pairs : tuple of Pair
        The images that were measured in both sets.
    effects : tuple of Effect
        One effect per metric; none if the pixels are the same or there are too few pairs.
    problems : tuple of Problem
        Images that cannot be used.
    missing : mapping of {"A", "B"} to tuple of str
        Images that a set lacks in this variant, although one of the sets has them elsewhere.
    """

    variant: Variant
    pairs: tuple[Pair, ...]
    effects: tuple[Effect, ...]
    problems: tuple[Problem, ...]
    missing: Missing

    @property
    def equal(self) -> int:
        """Return the number of pairs with equal pixels."""
        return sum(pair.equal for pair in self.pairs)

    @property
    def verdict(self) -> Verdict:
        """Return the verdict of the tests, or of the pixels if all are the same."""
        if self.pairs and self.equal == len(self.pairs):
            return "identical"
        return judge(self.effects)

    @property
    def offset(self) -> float:
        """Return the mean difference of the pixels, B - A, in grey levels; NaN without pairs."""
        return _mean(pair.offset for pair in self.pairs)

    @property
    def spread(self) -> float:
        """Return the standard deviation of the differences within an image; mean over the images."""
        return _mean(pair.spread for pair in self.pairs)

    def quantiles(self, metric: int, side: int) -> Quantiles | None:
        """Return a metric's values, by its index in `METRICS`, in A (0) or B (1); None if not measured."""
        return find_quantiles(np.array([pair.values[side, metric] for pair in self.pairs]))


@dataclass(frozen=True)
class OperationResult:
    """Result of a corruption or perturbation at all of its levels.

    Attributes
    ----------
    name : str
    variants : tuple of VariantResult
    pooled : tuple of Effect
        Effects on each image's means over the levels, which detect smaller differences than single levels.
    """

    name: str
    variants: tuple[VariantResult, ...]
    pooled: tuple[Effect, ...]

    @property
    def verdict(self) -> Verdict:
        """Return the worst verdict among its levels and their means."""
        levels = [each.verdict for each in self.variants]
        pooled = [judge(self.pooled)] if self.pooled else []
        return max(levels + pooled, key=_FROM_BEST.index)

    @property
    def reason(self) -> str:
        """Return the most certain difference, or the least certain equality, with its size and place."""
        if self.verdict == "too few images":
            return self._doubt
        found = [
            (each.p, -each.sureness, f"{each.describe()}{place}")
            for effects, place in self._placed
            for each in effects
            if each.significant
        ]
        return f"{min(found)[2]}{self._where}" if found else ""

    @property
    def _placed(self) -> list[tuple[tuple[Effect, ...], str]]:
        """Return the effects on the mean over the levels and at each level, with the words that name each."""
        levels = [
            (variant.effects, f" at severity {variant.variant.level}" * (len(self.variants) > 1))
            for variant in self.variants
        ]
        return [(self.pooled, " in the mean"), *levels]

    @property
    def _where(self) -> str:
        """Return the severities that differ, unless all do."""
        differing = [
            str(variant.variant.level) for variant in self.variants if variant.verdict == "different"
        ]
        if not 0 < len(differing) < len(self.variants):
            return ""
        return f"; different at severity {', '.join(differing)} only"

    @property
    def _doubt(self) -> str:
        """Return the metric that is farthest from being proven within its margin, and its place."""
        found = [
            (each.p_margin, f"{each.describe_doubt()}{place}")
            for effects, place in self._placed
            for each in effects
            if not each.within
        ]
        return max(found)[1] if found else ""

    def overall(self, metric: str) -> Effect | None:
        """Return the effect on a metric over all levels; None if all is equal or images are too few."""
        effects = self.pooled or (self.variants[0].effects if len(self.variants) == 1 else ())
        return next((each for each in effects if each.metric.key == metric), None)


@dataclass(frozen=True)
class Comparison:
    """Two sets, and how they differ.

    Attributes
    ----------
    a, b : Side
    kind : {"c", "p"}
    operations : tuple of OperationResult
        Operations of both sets; the clean images first.
    only : mapping of {"A", "B"} to tuple of str
        Folders of the variants that only one of the sets has.
    notes : tuple of str
        Notes for the reader.
    options : Comparing
    """

    a: Side
    b: Side
    kind: Kind
    operations: tuple[OperationResult, ...]
    only: Missing
    notes: tuple[str, ...]
    options: Comparing

    @property
    def variants(self) -> list[VariantResult]:
        """Return all variants of all operations."""
        return [variant for operation in self.operations for variant in operation.variants]

    @property
    def problems(self) -> list[Problem]:
        """Return all unusable images."""
        return [each for variant in self.variants for each in variant.problems]

    def missing(self, side: Name) -> int:
        """Return the number of images that a set lacks, in all variants together."""
        return sum(len(variant.missing.get(side, ())) for variant in self.variants)

    @property
    def whole(self) -> bool:
        """Return whether both sets have the same variants and images."""
        return not (any(self.only.values()) or self.missing("A") or self.missing("B"))

    @property
    def equivalent(self) -> bool:
        """Return whether nothing differs and, unless the scope is partial, nothing is missing."""
        settled = all(each.verdict in _FROM_BEST[:2] for each in self.operations)
        return settled and not self.problems and (self.whole or self.options.partial)

    @property
    def sentence(self) -> str:
        """Return the conclusion."""
        named = {v: [o.name for o in self.operations if o.verdict == v] for v in _FROM_BEST}
        counts = [f"{len(names)} {each}" for each, names in named.items() if names]
        parts = [f"{v}: {', '.join(named[v])}" for v in _FROM_BEST[:1:-1] if named[v]]
        return "; ".join([f"{self._answer} ({', '.join(counts)})", *parts, *self._describe_lacking()]) + "."

    @property
    def _answer(self) -> str:
        verdicts = {each.verdict for each in self.operations}
        if self.equivalent:
            return (
                "B is identical to A"
                if verdicts == {"identical"}
                else "B is equivalent to A within the margin"
            )
        if "different" in verdicts or "too few images" not in verdicts:
            return "B is not equivalent to A"
        return "too few images to tell whether B is equivalent to A"

    def _describe_lacking(self) -> list[str]:
        what = name_contents(self.kind).removesuffix("s")
        parts = [
            f"only in {side}: {shorten_folders(folders)}" for side, folders in self.only.items() if folders
        ]
        for side in SIDES:
            missing = self.missing(side)
            unusable = sum(each.side == side for each in self.problems)
            parts += [f"{format_count(missing, what)} missing from {side}"] * bool(missing)
            parts += [f"{format_count(unusable, what)} unusable in {side}"] * bool(unusable)
        return parts


def shorten_folders(folders: Iterable[str]) -> str:
    """Return folders of variants, with consecutive severities combined: ``fog/1-3, fog/5, tilt``."""
    runs: list[tuple[str, str, str]] = []
    for folder in folders:
        name, _, level = folder.partition("/")
        before, first, last = runs[-1] if runs else ("", "", "")
        # Fractional severities, such as 2.5, are never consecutive.
        if name == before and level.isdecimal() and last.isdecimal() and int(level) == int(last) + 1:
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
