"""Whether two sets of measurements of the same images can come from one distribution.

Two sets that were made from the same images with other random draws give, for each image, a pair of values
whose order is chance. Two tests look at the pairs. The paired t-test sees a shift of the mean, and because
both values are of one image, what the images differ among each other does not count. The two-sample
Kolmogorov-Smirnov test sees any other change of the distribution; pairs that go together make it err on the
safe side. All tests of a comparison are corrected together by Holm's method: the chance that a comparison of
equal sets raises even one false alarm is at most `ALPHA`, however many tests there are.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ALPHA: Final = 0.01
# With fewer no test says anything.
FEWEST: Final = 5
_MOST_EXACT = 1000
_POWER = 0.8

_Values = NDArray[np.float64]


@dataclass(frozen=True)
class Metric:
    """What is measured of an image.

    Attributes
    ----------
    key, title, unit : str
    digits : int
        Decimals in print.
    relative : bool
        Whether differences are told in per cent, and taken between logarithms.
    """

    key: str
    title: str
    unit: str
    digits: int
    relative: bool = False


METRICS: Final = (
    Metric("level", "mean grey level", "", 2),
    Metric("psnr", "PSNR", "dB", 2),
    Metric("ssim", "SSIM", "", 4),
    Metric("ms_ssim", "MS-SSIM", "", 4),
    Metric("size", "file size", "%", 1, relative=True),
)


@dataclass(frozen=True)
class Effect:
    """How one metric of B differs from that of A in one arm.

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
        Of the two tests, corrected by Holm's method once `corrected` has seen them.
    detectable : float
        The smallest difference that would be found four times out of five; known after `corrected`.
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
    detectable: float = float("nan")

    @property
    def p(self) -> float:
        """The smaller of the two."""
        return min(self.p_paired, self.p_ks)

    @property
    def significant(self) -> bool:
        """Whether chance is no explanation."""
        return self.p < ALPHA

    @property
    def sureness(self) -> float:
        """How many standard errors the difference is away from none."""
        return abs(self.difference) / (self.error or 1e-9)

    def told(self) -> str:
        """What differs and by how much, in a few words."""
        metric = self.metric
        unit = f" {metric.unit}" if metric.unit else ""
        if self.p_paired <= self.p_ks:
            return f"{metric.title} {self.difference:+.{metric.digits}f}{unit} (± {self.error:.2g})"
        return f"distribution of {metric.title} (distance {self.ks:.2f})"


def measure_effect(metric: Metric, a: _Values, b: _Values) -> Effect | None:
    """How `metric` differs between the paired values `a` and `b`, (images,); None if they are too few.

    Pairs with a value that is not a number are left out.
    """
    from scipy.stats import ttest_rel

    known = np.isfinite(a) & np.isfinite(b)
    a, b = a[known], b[known]
    if len(a) < FEWEST:
        return None
    before, after = (100 * np.log(a), 100 * np.log(b)) if metric.relative else (a, b)
    differences = after - before
    mean, error = float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(len(a)))
    shown = 100 * float(np.expm1(mean / 100)) if metric.relative else mean
    # Without any spread the test has no answer: all differences are the same one.
    p_paired = float(ttest_rel(after, before).pvalue) if error else float(mean == 0)
    ks, p_ks = _kolmogorov_smirnov(a, b)
    return Effect(metric, len(a), float(a.mean()), float(b.mean()), shown, error, ks, p_paired, p_ks)


def _kolmogorov_smirnov(a: _Values, b: _Values) -> tuple[float, float]:
    from scipy.stats import ks_2samp

    with warnings.catch_warnings():
        # Some extreme cases it cannot compute exactly; it says so, and takes the asymptotic value.
        warnings.simplefilter("ignore", RuntimeWarning)
        result = ks_2samp(a, b, method="exact" if len(a) <= _MOST_EXACT else "asymp")
    return float(result.statistic), float(result.pvalue)


def correct_holm(p: Sequence[float]) -> list[float]:
    """`p` of several tests, corrected by Holm's step-down method for how many they are."""
    order = np.argsort(p, kind="stable")
    scaled = np.asarray(p, np.float64)[order] * np.arange(len(p), 0, -1)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return corrected.tolist()


def correct_effects(effects: Sequence[Effect]) -> list[Effect]:
    """All `effects` of a comparison with their p corrected, and what could have been detected."""
    if not effects:
        return []
    p = correct_holm([value for each in effects for value in (each.p_paired, each.p_ks)])
    pairs = zip(effects, p[::2], p[1::2], strict=True)
    return [
        replace(each, p_paired=paired, p_ks=ks, detectable=_detectable(each, len(p)))
        for each, paired, ks in pairs
    ]


def _detectable(found: Effect, tests: int) -> float:
    """The mean difference that the paired test finds with a chance of 0.8 among so many tests."""
    from scipy.special import stdtrit

    freedom = found.images - 1
    return float(found.error * (stdtrit(freedom, 1 - ALPHA / tests / 2) + stdtrit(freedom, _POWER)))


def find_quantiles(values: _Values) -> tuple[float, ...] | None:
    """The 10th, 50th and 90th percentile; None where there is no number."""
    known = values[np.isfinite(values)]
    return tuple(np.quantile(known, (0.1, 0.5, 0.9)).tolist()) if len(known) else None


def describe_effect(found: Effect) -> dict[str, Any]:
    """`found` as JSON takes it."""
    plain: dict[str, Any] = {name: value for name, value in vars(found).items() if name != "metric"}
    return {"metric": found.metric.key, **plain, "significant": found.significant}
