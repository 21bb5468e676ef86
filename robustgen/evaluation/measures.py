"""The measures of the papers: from the scores of models to one value an operation, and their mean."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from robustgen import metrics
from robustgen.benchmark import CLEAN
from robustgen.evaluation.baselines import Baseline
from robustgen.evaluation.results import Scores
from robustgen.metrics.checks import Floats


@dataclass(frozen=True, eq=False)
class Measure:
    """One kind of score of all models.

    Attributes
    ----------
    key : str
        Name in CSV and JSON.
    title, mean : str
        Title of its table, and head of the column of the mean.
    values : tuple of dict
        For each model, the value of each operation.
    average : callable
        Mean of a model's values over some operations.
    contributions : callable
        What each image or sequence adds to a model's value of an operation, which is the mean of it.
    baseline : str or None
        What it is divided by.
    factor, digits
        As for `ScoreTable`.
    """

    key: str
    title: str
    mean: str
    values: tuple[dict[str, float], ...]
    average: Callable[[Scores, Sequence[str]], float]
    contributions: Callable[[Scores, str], Floats]
    baseline: str | None = None
    factor: float = 100
    digits: int = 1


def make_measures(models: Sequence[Scores], baseline: Baseline | None) -> list[Measure]:
    """All measures that the scores of `models`, of one kind, allow.

    Raises
    ------
    ArgumentError
        The baseline lacks a value, or holds one that nothing can be divided by.
    """
    made = _corruption_measures if models[0].kind == "c" else _perturbation_measures
    return [measure for measure in made(models, baseline or Baseline("")) if any(measure.values)]


def _measure(
    models: Sequence[Scores],
    texts: tuple[str, str, str],
    values: Callable[[Scores], Mapping[str, Any]],
    score: Callable[[Scores, str, Any], float],
    average: Callable[[Scores, Sequence[str]], float],
    contributions: Callable[[Scores, str], Floats],
    **more: Any,
) -> Measure:
    scored = tuple({name: score(model, name, v) for name, v in values(model).items()} for model in models)
    return Measure(*texts, scored, average, contributions, **more)


def _corruption_measures(models: Sequence[Scores], baseline: Baseline) -> list[Measure]:
    normalised = _measure(
        models,
        ("corruption_error", f"Corruption error (CE) in %, normalised by {baseline.name}", "mCE"),
        lambda m: _select_known(m.errors, baseline.errors),
        lambda _, name, errors: metrics.corruption_error(name, errors, baseline.errors),
        lambda m, names: metrics.mean_corruption_error(m.errors, baseline.errors, names),
        lambda m, name: metrics.corruption_errors(name, m.mistakes_on(name), baseline.errors),
        baseline=baseline.name,
    )
    plain = _measure(
        models,
        ("error", f"Top-1 error in %, mean over {_severities(models[0])}, unnormalised", "Mean"),
        lambda m: m.errors,
        lambda m, _, errors: metrics.unnormalised_corruption_error(errors, severities=len(m.levels)),
        lambda m, names: metrics.unnormalised_mean_corruption_error(
            m.errors, names, severities=len(m.levels)
        ),
        lambda m, name: metrics.unnormalised_corruption_errors(m.mistakes_on(name), severities=len(m.levels)),
    )
    # All others are defined for five severities alone.
    return [normalised, plain, *_clean_measures(models, baseline)] if models[0].complete else [plain]


def _severities(model: Scores) -> str:
    if model.complete:
        return "severities"
    return (
        f"{'severity' if len(model.levels) == 1 else 'severities'} {', '.join(map(str, model.levels))} only"
    )


def _clean_measures(models: Sequence[Scores], baseline: Baseline) -> list[Measure]:
    """The measures that need the clean error."""
    relative = _measure(
        models,
        (
            "relative_corruption_error",
            f"Relative corruption error in %, normalised by {baseline.name}",
            "Rel. mCE",
        ),
        lambda m: _declining(m, baseline),
        lambda m, name, errors: metrics.relative_corruption_error(
            name, errors, m.clean_error or 0, baseline.errors, baseline.clean_error
        ),
        lambda m, names: metrics.relative_mean_corruption_error(
            m.errors, m.clean_error or 0, baseline.errors, baseline.clean_error, names
        ),
        lambda m, name: metrics.relative_corruption_errors(
            name, m.mistakes_on(name), m.mistakes[CLEAN], baseline.errors, baseline.clean_error
        ),
        baseline=baseline.name,
    )
    area = _measure(
        models,
        ("area_under_distortion_error", "Area under the error curve (AUDE) in %, unnormalised", "mAUDE"),
        lambda m: {} if m.clean_error is None else m.errors,
        lambda m, _, errors: metrics.area_under_distortion_error(m.clean_error or 0, errors),
        lambda m, names: metrics.mean_area_under_distortion_error(m.clean_error or 0, m.errors, names),
        lambda m, name: metrics.areas_under_distortion_error(m.mistakes[CLEAN], m.mistakes_on(name)),
    )
    return [relative, area]


def _select_known(values: Mapping[str, Any], baseline: Mapping[str, Any]) -> dict[str, Any]:
    """What can be divided: all but operations of one's own, for which no baseline has anything."""
    common = {*metrics.COMMON_CORRUPTIONS, *metrics.COMMON_PERTURBATIONS}
    return {name: value for name, value in values.items() if baseline and name in common | baseline.keys()}


def _declining(model: Scores, baseline: Baseline) -> dict[str, list[float]]:
    """Errors of the corruptions that make the baseline worse; of the others no relative error is defined."""
    clean = baseline.clean_error
    if model.clean_error is None or clean is None:
        return {}
    worse = {name for name, errors in baseline.errors.items() if _mean_error(errors) > clean}
    return {name: errors for name, errors in model.errors.items() if name in worse}


def _mean_error(errors: Any) -> float:
    return fmean(errors) if isinstance(errors, list) else float(errors)


@dataclass(frozen=True)
class _Quantity:
    """What is measured of sequences, normalised and plain.

    Attributes
    ----------
    values, contributions : callable
        Of a model: one value an operation, and one a sequence.
    normalised, plain : (str, str, str)
        Key, title and head of the mean; `{}` in a title is the baseline.
    divide, average, average_plain : callable
        One value by the baseline's, and the means over operations.
    """

    values: Callable[[Scores], Mapping[str, float]]
    contributions: Callable[[Scores], Mapping[str, Floats]]
    normalised: tuple[str, str, str]
    plain: tuple[str, str, str]
    divide: Callable[[str, float, Mapping[str, float]], float]
    average: Callable[[Mapping[str, float], Mapping[str, float], Sequence[str]], float]
    average_plain: Callable[[Mapping[str, float], Sequence[str]], float]
    factor: float = 100
    digits: int = 1

    def measure(self, models: Sequence[Scores], name: str, baseline: Mapping[str, float]) -> list[Measure]:
        """Both measures; `baseline`, called `name`, has a value for each operation."""
        key, title, mean = self.normalised
        normalised = _measure(
            models,
            (key, title.format(name), mean),
            lambda m: _select_known(self.values(m), baseline),
            lambda _, operation, value: self.divide(operation, value, baseline),
            lambda m, names: self.average(self.values(m), baseline, names),
            lambda m, operation: self.contributions(m)[operation] / baseline[operation],
            baseline=name,
        )
        plain = _measure(
            models,
            self.plain,
            self.values,
            lambda _model, _operation, value: float(value),
            lambda m, names: self.average_plain(self.values(m), names),
            lambda m, operation: self.contributions(m)[operation],
            factor=self.factor,
            digits=self.digits,
        )
        return [normalised, plain]


_FLIPS: Final = _Quantity(
    values=lambda m: m.flip_probabilities,
    contributions=lambda m: m.flips,
    normalised=("flip_rate", "Flip rate (FR) in %, normalised by {}", "mFR"),
    plain=("flip_probability", "Flip probability (FP) in %, unnormalised", "mFP"),
    divide=metrics.flip_rate,
    average=metrics.mean_flip_rate,
    average_plain=metrics.mean_flip_probability,
)
_DISTANCES: Final = _Quantity(
    values=lambda m: m.top5_distances,
    contributions=lambda m: m.distances,
    normalised=("standardised_top5_distance", "Top-5 distance (T5D) in %, normalised by {}", "mT5D"),
    plain=("top5_distance", "Top-5 distance (uT5D), 0 to 15, unnormalised", "muT5D"),
    divide=metrics.standardised_top5_distance,
    average=metrics.mean_top5_distance,
    average_plain=metrics.unnormalised_mean_top5_distance,
    factor=1,
    digits=2,
)


def _perturbation_measures(models: Sequence[Scores], baseline: Baseline) -> list[Measure]:
    flips = _FLIPS.measure(models, baseline.name, baseline.flip_probabilities)
    return [*flips, *_DISTANCES.measure(models, baseline.name, baseline.top5_distances)]
