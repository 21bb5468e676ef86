"""Tests of paired values: is chance the explanation of a difference, and does it lie within a margin?

Both sets hold the same images, so each metric gives a pair of values an image. A paired t-test sees a shift
of the mean, whatever the images differ among each other. A two-sample Kolmogorov-Smirnov test sees any other
change of the distribution; it takes the samples for independent, which errs on the safe side for pairs. All
p of a comparison are corrected together by Holm's method: equal sets are called different with a probability
of at most `ALPHA`, however many tests there are.

That no difference was found proves nothing. So two one-sided t-tests (Schuirmann 1987) ask besides whether
the mean difference certainly lies within a margin. They need no correction: sets are equivalent only if every
one of them says so.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ALPHA: Final = 0.01
# With fewer no test says anything.
FEWEST: Final = 5
# With fewer equivalence is not claimed: a handful of images says little about the others.
FEWEST_EQUIVALENT: Final = 10
# A single severity may lie this many times farther off than the mean over all of them.
LEVEL_FACTOR: Final = 3
_MOST_EXACT = 1000
_POWER = 0.8
_NO_MARGINS: Final[Mapping[str, float]] = MappingProxyType({})

_Values = NDArray[np.float64]


@dataclass(frozen=True)
class Metric:
    """Metrics of an image.

    Attributes
    ----------
    key, title, unit : str
    digits : int
        Decimals in print.
    margin : float
        The mean difference that counts as none unless the user says otherwise.
    relative : bool
        Whether differences, and the margin, are in per cent, and taken between logarithms.
    """

    key: str
    title: str
    unit: str
    digits: int
    margin: float
    relative: bool = False


METRICS: Final = (
    Metric("level", "mean grey level", "", 2, 5),
    Metric("psnr", "PSNR", "dB", 2, 0.5),
    Metric("ssim", "SSIM", "", 4, 0.02),
    Metric("ms_ssim", "MS-SSIM", "", 4, 0.02),
    Metric("right", "shift right", "px", 2, 0.5),
    Metric("down", "shift down", "px", 2, 0.5),
    Metric("size", "file size", "%", 1, 5, relative=True),
)
# Of what draws nothing at random the pixels themselves have to agree, but for the codec.
PIXELS: Final = Metric("pixels", "pixel distance", "", 2, 4)


@dataclass(frozen=True)
class Effect:
    """Difference of one metric between A and B in one variant.

    Attributes
    ----------
    metric : Metric
    images : int
        Pairs.
    mean_a, mean_b : float
    difference, error : float
        Mean of B - A over the pairs, and its standard error; in per cent for relative metrics.
    ks : float
        The greatest distance between the two distribution functions.
    p_paired, p_ks : float
        That chance explains the difference, of the two tests; corrected by Holm's method once
        `correct_effects` has seen them.
    margin : float
    p_margin : float
        That the mean difference lies outside of the margin: the larger p of two one-sided tests.
    tolerated : bool
        Whether a difference that is certain counts as none within the margin.
    detectable : float
        The smallest difference that would be found four times out of five; known after `correct_effects`.
    """

    metric: Metric
    images: int
    mean_a: float
    mean_b: float
    difference: float
    error: float
    ks: float
    p_paired: float
    p_ks: float
    margin: float
    p_margin: float
    tolerated: bool = False
    detectable: float = float("nan")

    @property
    def p(self) -> float:
        """Return the smaller of the two that speak of a difference."""
        return min(self.p_paired, self.p_ks)

    @property
    def within(self) -> bool:
        """Return whether the mean difference certainly lies within the margin."""
        return self.images >= FEWEST_EQUIVALENT and self.p_margin < ALPHA

    @property
    def significant(self) -> bool:
        """Return whether the two sets differ: chance is no explanation, and no margin allows it."""
        shifted = self.p_paired < ALPHA and not (self.tolerated and self.within)
        return shifted or self.p_ks < ALPHA

    @property
    def sureness(self) -> float:
        """Return the number of standard errors between the difference and none."""
        return abs(self.difference) / (self.error or 1e-9)

    def describe(self) -> str:
        """Return what differs and by how much, in a few words."""
        metric = self.metric
        unit = f" {metric.unit}" if metric.unit else ""
        if self.p_paired <= self.p_ks:
            return f"{metric.title} {self.difference:+.{metric.digits}f}{unit} (± {self.error:.2g})"
        return f"distribution of {metric.title} (distance {self.ks:.2f})"

    def describe_doubt(self) -> str:
        """Return why the difference is not proven to be within the margin, in a few words."""
        metric = self.metric
        unit = f" {metric.unit}" if metric.unit else ""
        if self.images < FEWEST_EQUIVALENT:
            return f"{self.images} images, of at least {FEWEST_EQUIVALENT}"
        difference = f"{self.difference:+.{metric.digits}f} ± {self.error:.2g}{unit}"
        return f"{metric.title} {difference}, not surely within {self.margin:g}{unit}"


def measure_effect(
    metric: Metric, a: _Values, b: _Values, margins: Mapping[str, float] = _NO_MARGINS, *, factor: float = 1
) -> Effect | None:
    """Difference of one metric between paired values.

    Parameters
    ----------
    metric : Metric
    a, b : float64 ndarray of shape (images,)
        Pairs with a value that is not a number are left out.
    margins : mapping of str to float
        What the user allows, by key of the metric. A difference that is certain counts as none if it lies
        within such a margin; within one of our own it does not.
    factor : float
        How many times the margin is allowed.

    Returns
    -------
    Effect or None
        None if there are fewer than `FEWEST` pairs.
    """
    from scipy.stats import ttest_rel

    known = np.isfinite(a) & np.isfinite(b)
    a, b = a[known], b[known]
    if len(a) < FEWEST:
        return None
    margin, tolerated = factor * margins.get(metric.key, metric.margin), metric.key in margins
    before, after = (100 * np.log(a), 100 * np.log(b)) if metric.relative else (a, b)
    mean, error = _mean_and_error(after - before)
    shown = 100 * math.expm1(mean / 100) if metric.relative else mean
    # Without any spread the test has no answer: all differences are the same one.
    p_paired = float(ttest_rel(after, before).pvalue) if error else float(mean == 0)
    # Where a shift is allowed, only what else differs counts.
    ks, p_ks = _kolmogorov_smirnov(before, after - mean if tolerated else after)
    # The larger p of two one-sided tests that the mean difference is beyond either end of the margin.
    p_margin = max(_student(each - margin, error, len(a)) for each in (mean, -mean))
    means = float(a.mean()), float(b.mean())
    return Effect(metric, len(a), *means, shown, error, ks, p_paired, p_ks, margin, p_margin, tolerated)


def measure_distance(
    distances: _Values, margins: Mapping[str, float] = _NO_MARGINS, *, factor: float = 1
) -> Effect | None:
    """Compare pixels of pairs that should be equal: `distances` in grey levels, (images,).

    Two codecs leave a little, so only what certainly lies outside of the margin counts as different.
    """
    if len(distances) < FEWEST:
        return None
    margin = factor * margins.get(PIXELS.key, PIXELS.margin)
    mean, error = _mean_and_error(distances)
    below = _student(mean - margin, error, len(distances))
    return Effect(PIXELS, len(distances), 0, mean, mean, error, 0, 1 - below, 1, margin, below)


def _mean_and_error(differences: _Values) -> tuple[float, float]:
    """Their mean and its standard error; differences that are all the same have none, rounding apart."""
    mean, error = float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(len(differences)))
    return mean, error if error > 1e-12 * abs(mean) else 0.0


def _student(excess: float, error: float, images: int) -> float:
    """Return the p of a one-sided t-test that what exceeds zero by `excess` is truly below it."""
    from scipy.special import stdtr

    return float(stdtr(images - 1, excess / error)) if error else float(excess >= 0)


def _kolmogorov_smirnov(a: _Values, b: _Values) -> tuple[float, float]:
    from scipy.stats import ks_2samp

    with warnings.catch_warnings():
        # Some extreme cases it cannot compute exactly; it says so, and takes the asymptotic value.
        warnings.simplefilter("ignore", RuntimeWarning)
        result = ks_2samp(a, b, method="exact" if len(a) <= _MOST_EXACT else "asymp")
    return float(result.statistic), float(result.pvalue)


def correct_holm(p: Sequence[float]) -> list[float]:
    """Return `p` of several tests, corrected by Holm's step-down method for how many they are."""
    order = np.argsort(p, kind="stable")
    scaled = np.asarray(p, np.float64)[order] * np.arange(len(p), 0, -1)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return corrected.tolist()


def correct_effects(effects: Sequence[Effect]) -> list[Effect]:
    """Return all `effects` of a comparison with their p corrected, and what could have been detected."""
    if not effects:
        return []
    from scipy.special import stdtrit

    p, found = correct_holm([value for each in effects for value in (each.p_paired, each.p_ks)]), []
    for each, paired, ks in zip(effects, p[::2], p[1::2], strict=True):
        # The mean difference that the paired test finds with a chance of 0.8 among so many tests.
        freedom = each.images - 1
        quantiles = stdtrit(freedom, 1 - ALPHA / len(p) / 2) + stdtrit(freedom, _POWER)
        found.append(replace(each, p_paired=paired, p_ks=ks, detectable=float(each.error * quantiles)))
    return found


def find_quantiles(values: _Values) -> tuple[float, ...] | None:
    """Return the 10th, 50th and 90th percentile; None where there is no number."""
    known = values[np.isfinite(values)]
    return tuple(np.quantile(known, (0.1, 0.5, 0.9)).tolist()) if len(known) else None


def describe_effect(found: Effect) -> dict[str, Any]:
    """Return `found` as JSON takes it: numbers to ten digits, which do not depend on the processor."""
    plain: dict[str, Any] = {name: value for name, value in vars(found).items() if name != "metric"}
    plain |= {name: float(f"{value:.10g}") for name, value in plain.items() if isinstance(value, float)}
    return {"metric": found.metric.key, **plain, "significant": found.significant, "within": found.within}
