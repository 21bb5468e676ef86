"""ImageNet-C: errors over severities and corruptions, raw and divided by a baseline's.

`errors` are top-1 errors at severities 1 to 5, (5,), as fractions. `mistakes`, (5, images), are whether each
image is classified wrongly at each severity, or errors of samples, one per column. Functions in the plural
return the share of each image in the score of the same name, which is the mean of these shares. `baseline`
maps corruptions to five errors of another model, or to their mean. Wrong shapes, errors that are not
fractions, and baselines without a positive value raise ArgumentError.
"""

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from robustgen.errors import ArgumentError
from robustgen.metrics.baselines import ALEXNET_CLEAN_ERROR, ALEXNET_ERROR
from robustgen.metrics.checks import Floats, array_of, number
from robustgen.metrics.formulas import (
    AREA,
    CORRUPTION_ERROR,
    ERROR,
    RELATIVE_CORRUPTION_ERROR,
    level_values,
    mean_over,
)
from robustgen.metrics.names import COMMON_CORRUPTIONS, SEVERITIES


def unnormalised_corruption_error(errors: ArrayLike, *, severities: int = SEVERITIES) -> float:
    """Return the mean error over the severities of one corruption, uCE of [M] section 4.

    A mean over a number of `severities` other than five is not uCE.
    """
    return float(ERROR.combine(level_values(errors, "errors", severities)))


def unnormalised_corruption_errors(mistakes: ArrayLike, *, severities: int = SEVERITIES) -> Floats:
    """Return the share of each image in `unnormalised_corruption_error`, (images,)."""
    return ERROR.combine(_mistakes(mistakes, severities))


def corruption_error(
    corruption: str, errors: ArrayLike, baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR
) -> float:
    """Return the error summed over the severities, divided by that of the baseline: CE of [C] section 4.2."""
    return float(CORRUPTION_ERROR.combine(level_values(errors, "errors"))) / CORRUPTION_ERROR.divisor(
        corruption, baseline
    )


def corruption_errors(
    corruption: str, mistakes: ArrayLike, baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR
) -> Floats:
    """Return the share of each image in `corruption_error`, (images,)."""
    return CORRUPTION_ERROR.combine(_mistakes(mistakes)) / CORRUPTION_ERROR.divisor(corruption, baseline)


def relative_corruption_error(
    corruption: str,
    errors: ArrayLike,
    clean_error: float,
    baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR,
    baseline_clean_error: float | None = None,
) -> float:
    """Return the error beyond the clean one, divided by that of the baseline: Relative CE of [C] section 4.2.

    `clean_error` is the top-1 error on the clean images, a fraction. `baseline_clean_error` is that of the
    baseline, required except for AlexNet. It must be below the baseline's error on the corruption.
    """
    of_baseline = RELATIVE_CORRUPTION_ERROR.divisor(
        corruption, baseline, _baseline_clean(baseline, baseline_clean_error)
    )
    decline = RELATIVE_CORRUPTION_ERROR.combine(
        level_values(errors, "errors"), number(clean_error, "clean_error")
    )
    return float(decline) / of_baseline


def relative_corruption_errors(
    corruption: str,
    mistakes: ArrayLike,
    clean_mistakes: ArrayLike,
    baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR,
    baseline_clean_error: float | None = None,
) -> Floats:
    """Return the share of each image in `relative_corruption_error`, (images,).

    `clean_mistakes`, (images,), are the mistakes on the clean images.
    """
    of_baseline = RELATIVE_CORRUPTION_ERROR.divisor(
        corruption, baseline, _baseline_clean(baseline, baseline_clean_error)
    )
    clean = array_of(clean_mistakes, "clean_mistakes", "bf", "images")
    return RELATIVE_CORRUPTION_ERROR.combine(_mistakes(mistakes), clean) / of_baseline


def area_under_distortion_error(clean_error: float, errors: ArrayLike) -> float:
    """Return the area under error against severity 0 to 5, over 5, by the trapezoid rule: [D] section 3.2.

    Severity 0 are the clean images, with the top-1 error `clean_error`.
    """
    return float(AREA.combine(level_values(errors, "errors"), number(clean_error, "clean_error")))


def areas_under_distortion_error(clean_mistakes: ArrayLike, mistakes: ArrayLike) -> Floats:
    """Return the share of each image in `area_under_distortion_error`, (images,)."""
    clean = array_of(clean_mistakes, "clean_mistakes", "bf", "images")
    return AREA.combine(array_of(mistakes, "mistakes", "bf", "severities images"), clean)


def mean_corruption_error(
    errors: Mapping[str, ArrayLike],
    baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR,
    names: Sequence[str] = COMMON_CORRUPTIONS,
) -> float:
    """Return the mean CE over the 15 common corruptions: mCE of [C] section 4.2.

    All of `names` must be in `errors`; over other corruptions than these it is not mCE.
    """
    return mean_over(names, errors, lambda name, value: corruption_error(name, value, baseline))


def unnormalised_mean_corruption_error(
    errors: Mapping[str, ArrayLike],
    names: Sequence[str] = COMMON_CORRUPTIONS,
    *,
    severities: int = SEVERITIES,
) -> float:
    """Return the mean error over corruptions and severities: the score of CIFAR-C, [M] section 4.

    It is not comparable with a published mCE.
    """
    return mean_over(
        names, errors, lambda _, value: unnormalised_corruption_error(value, severities=severities)
    )


def relative_mean_corruption_error(
    errors: Mapping[str, ArrayLike],
    clean_error: float,
    baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR,
    baseline_clean_error: float | None = None,
    names: Sequence[str] = COMMON_CORRUPTIONS,
) -> float:
    """Return the mean Relative CE over the 15 common corruptions: Relative mCE of [C] section 4.2."""

    def score(name: str, value: ArrayLike) -> float:
        return relative_corruption_error(name, value, clean_error, baseline, baseline_clean_error)

    return mean_over(names, errors, score)


def mean_area_under_distortion_error(
    clean_error: float, errors: Mapping[str, ArrayLike], names: Sequence[str] = COMMON_CORRUPTIONS
) -> float:
    """Return the mean AUDE over the 15 common corruptions: mAUDE of [D] section 3.2."""
    return mean_over(names, errors, lambda _, value: area_under_distortion_error(clean_error, value))


def _mistakes(value: ArrayLike, severities: int = SEVERITIES) -> ArrayLike:
    wrong = array_of(value, "mistakes", "bf", "severities images")
    if len(wrong) != severities:
        raise ArgumentError(f"mistakes must be given for all {severities} severities, not {len(wrong)}")
    return wrong


def _baseline_clean(baseline: Mapping[str, ArrayLike], given: float | None) -> float:
    if given is not None:
        return number(given, "baseline_clean_error")
    # AlexNet's clean error with another model's errors would give a plausible wrong number.
    if baseline is not ALEXNET_ERROR:
        raise ArgumentError("a baseline other than AlexNet needs its own baseline_clean_error")
    return ALEXNET_CLEAN_ERROR
