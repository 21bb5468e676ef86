"""ImageNet-C: errors over severities and corruptions, by themselves and divided by a baseline's."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from robustgen.errors import ArgumentError
from robustgen.metrics.baselines import (
    ALEXNET_CLEAN_ERROR,
    ALEXNET_ERROR,
    baseline_value,
    check_positive,
    mean_over,
)
from robustgen.metrics.checks import Floats, array_of, bounded, number
from robustgen.metrics.names import COMMON_CORRUPTIONS, SEVERITIES


def unnormalised_corruption_error(errors: ArrayLike, *, severities: int = SEVERITIES) -> float:
    """Mean error over the severities of one corruption, uCE of [M] section 4.

    Parameters
    ----------
    errors : array_like, (5,), float
        Top-1 errors at severities 1 to 5, as fractions.
    severities : int
        How many severities there are; a mean over fewer than five is no uCE.

    Raises
    ------
    ArgumentError
        If there are not that many, or one is not a fraction.
    """
    return float(severity_errors(errors, severities=severities).mean())


def unnormalised_corruption_errors(mistakes: ArrayLike, *, severities: int = SEVERITIES) -> Floats:
    """What each image adds to `unnormalised_corruption_error`, which is the mean of this.

    Parameters
    ----------
    mistakes : array_like, (5, images), bool or float
        Whether the image is classified wrongly at each severity; or errors of samples, one a column.
    severities : int
        As for `unnormalised_corruption_error`.

    Returns
    -------
    ndarray, (images,), float64

    Raises
    ------
    ArgumentError
        If there are not that many severities.
    """
    wrong = array_of(mistakes, "mistakes", "bf", "severities images")
    if len(wrong) != severities:
        raise ArgumentError(f"mistakes must be given for all {severities} severities, not {len(wrong)}")
    errors: Floats = wrong.mean(axis=0)
    return errors


def corruption_error(
    corruption: str, errors: ArrayLike, baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR
) -> float:
    """Error summed over the severities, divided by that of the baseline: CE of [C] section 4.2.

    Parameters
    ----------
    corruption : str
        Name under which the baseline is looked up.
    errors : array_like, (5,), float
        Top-1 errors at severities 1 to 5, as fractions.
    baseline : mapping of str to float or array_like, (5,)
        For each corruption the errors of another model, or their mean.

    Raises
    ------
    ArgumentError
        If there are not five errors, one is not a fraction, or the baseline has no positive value.
    """
    return unnormalised_corruption_error(errors) / _baseline_error(baseline, corruption)


def corruption_errors(
    corruption: str, mistakes: ArrayLike, baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR
) -> Floats:
    """What each image adds to `corruption_error`, which is the mean of this; arguments as there.

    `mistakes` and the result are as for `unnormalised_corruption_errors`.
    """
    return unnormalised_corruption_errors(mistakes) / _baseline_error(baseline, corruption)


def relative_corruption_error(
    corruption: str,
    errors: ArrayLike,
    clean_error: float,
    baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR,
    baseline_clean_error: float | None = None,
) -> float:
    """Error beyond the clean one, divided by that of the baseline: Relative CE of [C] section 4.2.

    Parameters
    ----------
    corruption, errors, baseline
        As for `corruption_error`.
    clean_error : float
        Top-1 error on the clean images, a fraction.
    baseline_clean_error : float, optional
        The same of the baseline; only AlexNet's needs not be given.

    Raises
    ------
    ArgumentError
        As `corruption_error`; also if the baseline's clean error is unknown or not below the others.
    """
    decline = unnormalised_corruption_error(errors) - number(clean_error, "clean_error")
    return decline / _baseline_decline(corruption, baseline, baseline_clean_error)


def relative_corruption_errors(
    corruption: str,
    mistakes: ArrayLike,
    clean_mistakes: ArrayLike,
    baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR,
    baseline_clean_error: float | None = None,
) -> Floats:
    """What each image adds to `relative_corruption_error`, which is the mean of this; arguments as there.

    `mistakes` and the result are as for `unnormalised_corruption_errors`; `clean_mistakes`, (images,),
    are those on the clean images.
    """
    errors = unnormalised_corruption_errors(mistakes)
    decline: Floats = errors - array_of(clean_mistakes, "clean_mistakes", "bf", "images")
    return decline / _baseline_decline(corruption, baseline, baseline_clean_error)


def area_under_distortion_error(clean_error: float, errors: ArrayLike) -> float:
    """Area under error against severity 0 to 5, over 5, by the trapezoid rule: AUDE of [D] section 3.2.

    Parameters
    ----------
    clean_error : float
        Top-1 error on the clean images, which are severity 0.
    errors : array_like, (5,), float
        Top-1 errors at severities 1 to 5, as fractions.

    Raises
    ------
    ArgumentError
        If there are not five errors, or one is not a fraction.
    """
    curve = np.concatenate([[number(clean_error, "clean_error")], severity_errors(errors)])
    return float((curve[:-1] + curve[1:]).mean() / 2)


def areas_under_distortion_error(clean_mistakes: ArrayLike, mistakes: ArrayLike) -> Floats:
    """What each image adds to `area_under_distortion_error`, which is the mean of this.

    Arguments and result as for `relative_corruption_errors`.
    """
    wrong = array_of(mistakes, "mistakes", "bf", "severities images")
    clean = array_of(clean_mistakes, "clean_mistakes", "bf", "images")
    curve = np.concatenate([clean[None], wrong]).astype(np.float64)
    areas: Floats = (curve[:-1] + curve[1:]).mean(axis=0) / 2
    return areas


def mean_corruption_error(
    errors: Mapping[str, ArrayLike],
    baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR,
    names: Sequence[str] = COMMON_CORRUPTIONS,
) -> float:
    """Mean CE over the fifteen common corruptions: mCE of [C] section 4.2.

    Parameters
    ----------
    errors : mapping of str to array_like, (5,), float
        For each corruption the top-1 errors at severities 1 to 5. Others than `names` are ignored.
    baseline : mapping of str to float or array_like, (5,)
        As for `corruption_error`.
    names : sequence of str
        The corruptions that the mean goes over; over others than the fifteen it is no mCE.

    Raises
    ------
    ArgumentError
        If one of `names` is missing; also as `corruption_error`.
    """
    return mean_over(names, errors, lambda name, value: corruption_error(name, value, baseline))


def unnormalised_mean_corruption_error(
    errors: Mapping[str, ArrayLike],
    names: Sequence[str] = COMMON_CORRUPTIONS,
    *,
    severities: int = SEVERITIES,
) -> float:
    """Mean error over fifteen corruptions and five severities: the score of CIFAR-C, [M] section 4.

    Not to be compared with a published mCE. Arguments and errors as for `mean_corruption_error` and
    `unnormalised_corruption_error`.
    """

    def score(_: str, value: ArrayLike) -> float:
        return unnormalised_corruption_error(value, severities=severities)

    return mean_over(names, errors, score)


def relative_mean_corruption_error(
    errors: Mapping[str, ArrayLike],
    clean_error: float,
    baseline: Mapping[str, ArrayLike] = ALEXNET_ERROR,
    baseline_clean_error: float | None = None,
    names: Sequence[str] = COMMON_CORRUPTIONS,
) -> float:
    """Mean Relative CE over the fifteen common corruptions: Relative mCE of [C] section 4.2.

    Arguments and errors as for `mean_corruption_error` and `relative_corruption_error`.
    """

    def score(name: str, value: ArrayLike) -> float:
        return relative_corruption_error(name, value, clean_error, baseline, baseline_clean_error)

    return mean_over(names, errors, score)


def mean_area_under_distortion_error(
    clean_error: float, errors: Mapping[str, ArrayLike], names: Sequence[str] = COMMON_CORRUPTIONS
) -> float:
    """Mean AUDE over the fifteen common corruptions: mAUDE of [D] section 3.2.

    Arguments and errors as for `mean_corruption_error` and `area_under_distortion_error`.
    """
    return mean_over(names, errors, lambda _, value: area_under_distortion_error(clean_error, value))


def severity_errors(value: ArrayLike, name: str = "errors", severities: int = SEVERITIES) -> Floats:
    """`value` as one error, a fraction, for each of the severities."""
    errors = bounded(value, name, "severities")
    if len(errors) != severities:
        raise ArgumentError(f"{name} must be given for all {severities} severities, not {len(errors)}")
    return errors


def _baseline_error(baseline: Mapping[str, ArrayLike], corruption: str) -> float:
    value = np.asarray(baseline_value(baseline, corruption))
    errors = severity_errors(value if value.ndim else [value] * SEVERITIES, f"the baseline of {corruption}")
    return check_positive(float(errors.mean()), corruption)


def _baseline_decline(corruption: str, baseline: Mapping[str, ArrayLike], clean_error: float | None) -> float:
    """How much worse the baseline is on `corruption` than on clean images."""
    decline = _baseline_error(baseline, corruption) - _baseline_clean(baseline, clean_error)
    if decline <= 0:
        raise ArgumentError(f"the baseline's error on {corruption} does not exceed its clean error")
    return decline


def _baseline_clean(baseline: Mapping[str, ArrayLike], given: float | None) -> float:
    if given is not None:
        return number(given, "baseline_clean_error")
    # AlexNet's clean error under another model's errors would give a plausible wrong number.
    if baseline is not ALEXNET_ERROR:
        raise ArgumentError("a baseline other than AlexNet needs its own baseline_clean_error")
    return ALEXNET_CLEAN_ERROR
