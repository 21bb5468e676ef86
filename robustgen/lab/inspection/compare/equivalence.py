"""Tests of paired values: does chance explain a difference, and is it within a margin?

Both sets contain the same images, so each metric gives a pair of values for each image. A paired t-test
detects a shift of the mean, whatever the variation between images. A two-sample Kolmogorov-Smirnov test
detects any other change of the distribution; it assumes independent samples and is conservative for pairs.
All p-values of a comparison are corrected together by Holm's method: the probability that equal sets are
called different is at most `ALPHA`, for any number of tests.

A test without a finding does not prove equality. So two one-sided t-tests (Schuirmann 1987) check whether the
mean difference is within a margin. They need no correction: sets are equivalent only if all these tests
say so.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.display.text import format_signed
from robustgen.metrics.bootstrap import correct_holm

ALPHA: Final = 0.01
# Minimal number of pairs for any test.
FEWEST: Final = 5
# Minimal number of images for the verdict "equivalent".
FEWEST_EQUIVALENT: Final = 10
# Factor of the margin for a single severity, relative to the margin of the mean over all.
LEVEL_FACTOR: Final = 3
_MOST_EXACT = 1000
_POWER = 0.8
_NO_MARGINS: Final[Mapping[str, float]] = MappingProxyType({})

_Values = NDArray[np.float64]


@dataclass(frozen=True)
class Metric:
    """A metric of an image.

    Attributes
    ----------
    key, title, unit : str
    digits : int
        Decimals in print.
    margin : float
        The tolerated mean difference, if the user sets none.
    relative : bool
        Whether differences and the margin are in per cent, computed from logarithms.
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
# The pixels of deterministic operations must agree, except for the codec.
PIXELS: Final = Metric("pixels", "pixel distance", "", 2, 4)
METRIC_NAMES: Final = tuple(each.key for each in (*METRICS, PIXELS))


@dataclass(frozen=True)
class Effect:
    """Difference of one metric between A and B in one variant.

    Attributes
    ----------
    metric : Metric
    images : int
        Number of pairs.
    mean_a, mean_b : float
    difference, error : float
        Mean of B - A over the pairs, and its standard error; in per cent for relative metrics.
    ks : float
        The largest distance between the two distribution functions.
    p_paired, p_ks : float
        Probabilities of the two tests that chance explains the difference; corrected by Holm's method after
        `correct_effects`.
    margin : float
    p_margin : float
        Probability that the mean difference is outside the margin: the larger p of two one-sided tests.
    tolerated : bool
        Whether a certain difference within the margin is tolerated.
    detectable : float
        The smallest difference that would be detected with a probability of 80 %; set by `correct_effects`.
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
        """Return the smaller p of the two tests for a difference."""
        return min(self.p_paired, self.p_ks)

    @property
    def within(self) -> bool:
        """Return whether the mean difference is certainly within the margin."""
        return self.images >= FEWEST_EQUIVALENT and self.p_margin < ALPHA

    @property
    def significant(self) -> bool:
        """Return whether the two sets differ: chance does not explain it, and no margin tolerates it."""
        shifted = self.p_paired < ALPHA and not (self.tolerated and self.within)
        return shifted or self.p_ks < ALPHA

    @property
    def sureness(self) -> float:
        """Return the difference in standard errors."""
        return abs(self.difference) / (self.error or 1e-9)

    def describe(self) -> str:
        """Return the difference and its size, in a few words."""
        metric = self.metric
        unit = f" {metric.unit}" if metric.unit else ""
        if self.p_paired <= self.p_ks:
            return (
                f"{metric.title} {format_signed(self.difference, metric.digits)}{unit} (± {self.error:.2g})"
            )
        return f"distribution of {metric.title} (distance {self.ks:.2f})"

    def describe_doubt(self) -> str:
        """Return why the difference is not proven to be within the margin, in a few words."""
        metric = self.metric
        unit = f" {metric.unit}" if metric.unit else ""
        if self.images < FEWEST_EQUIVALENT:
            return f"{self.images} images, of at least {FEWEST_EQUIVALENT}"
        difference = f"{format_signed(self.difference, metric.digits)} ± {self.error:.2g}{unit}"
        return f"{metric.title} {difference}, not certainly within {self.margin:g}{unit}"


def measure_effect(
    metric: Metric, a: _Values, b: _Values, margins: Mapping[str, float] = _NO_MARGINS, *, factor: float = 1
) -> Effect | None:
    """Return the effect of one metric on paired values.

    Parameters
    ----------
    metric : Metric
    a, b : float64 ndarray of shape (images,)
        Pairs with a value that is not a number are ignored.
    margins : mapping of str to float
        The user's margins, by key of the metric. A certain difference is tolerated within such a margin, but
        not within a default margin.
    factor : float
        Factor of the margin.

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
    # Without variation the test gives no result: all differences are the same.
    p_paired = float(ttest_rel(after, before).pvalue) if error else float(mean == 0)
    # If a shift is tolerated, only other differences count.
    ks, p_ks = _kolmogorov_smirnov(before, after - mean if tolerated else after)
    # The larger p of two one-sided tests that the mean difference is beyond either end of the margin.
    p_margin = max(_student(each - margin, error, len(a)) for each in (mean, -mean))
    means = float(a.mean()), float(b.mean())
    return Effect(metric, len(a), *means, shown, error, ks, p_paired, p_ks, margin, p_margin, tolerated)


def measure_distance(
    distances: _Values, margins: Mapping[str, float] = _NO_MARGINS, *, factor: float = 1
) -> Effect | None:
    """Return the effect on pixels of pairs that should be equal: `distances` in grey levels, (images,).

    Two codecs differ a little, so only what is certainly outside the margin counts as different.
    """
    if len(distances) < FEWEST:
        return None
    margin = factor * margins.get(PIXELS.key, PIXELS.margin)
    mean, error = _mean_and_error(distances)
    below = _student(mean - margin, error, len(distances))
    return Effect(PIXELS, len(distances), 0, mean, mean, error, 0, 1 - below, 1, margin, below)


def _mean_and_error(differences: _Values) -> tuple[float, float]:
    """Return the mean and its standard error, which is 0 if all differences are the same up to rounding."""
    mean, error = float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(len(differences)))
    return mean, error if error > 1e-12 * abs(mean) else 0.0


def _student(excess: float, error: float, images: int) -> float:
    """Return the p of a one-sided t-test that the value which exceeds zero by `excess` is below zero."""
    from scipy.special import stdtr

    return float(stdtr(images - 1, excess / error)) if error else float(excess >= 0)


def _kolmogorov_smirnov(a: _Values, b: _Values) -> tuple[float, float]:
    from scipy.stats import ks_2samp

    with warnings.catch_warnings():
        # For some extreme cases it cannot compute the exact value; it warns and uses the asymptotic one.
        warnings.simplefilter("ignore", RuntimeWarning)
        result = ks_2samp(a, b, method="exact" if len(a) <= _MOST_EXACT else "asymp")
    return float(result.statistic), float(result.pvalue)


def correct_effects(effects: Sequence[Effect]) -> list[Effect]:
    """Return all `effects` of a comparison with corrected p-values and detectable differences."""
    if not effects:
        return []
    from scipy.special import stdtrit

    p, found = correct_holm([value for each in effects for value in (each.p_paired, each.p_ks)]), []
    for each, paired, ks in zip(effects, p[::2], p[1::2], strict=True):
        # The mean difference that the paired test detects with probability 0.8 among this many tests.
        freedom = each.images - 1
        quantiles = stdtrit(freedom, 1 - ALPHA / len(p) / 2) + stdtrit(freedom, _POWER)
        found.append(replace(each, p_paired=paired, p_ks=ks, detectable=float(each.error * quantiles)))
    return found


def find_quantiles(values: _Values) -> tuple[float, ...] | None:
    """Return the 10th, 50th and 90th percentile; None if there is no number."""
    known = values[np.isfinite(values)]
    return tuple(np.quantile(known, (0.1, 0.5, 0.9)).tolist()) if len(known) else None


def describe_effect(found: Effect) -> dict[str, Any]:
    """Return `found` in a form for JSON: numbers to ten digits, which do not depend on the processor."""
    plain: dict[str, Any] = {name: value for name, value in vars(found).items() if name != "metric"}
    plain |= {name: float(f"{value:.10g}") for name, value in plain.items() if isinstance(value, float)}
    return {"metric": found.metric.key, **plain, "significant": found.significant, "within": found.within}
