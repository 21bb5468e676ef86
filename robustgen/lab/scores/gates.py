"""Conditions of `--fail-if`: a score beyond a limit, or significantly worse than another model's."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from robustgen.errors import ConfigError, UnknownNameError
from robustgen.lab.scores.intervals import MEAN, SIGNIFICANT, Column, Uncertainty
from robustgen.lab.scores.results import ModelScores
from robustgen.lab.scores.scoreboard import Scoreboard, name_mean
from robustgen.metrics.bootstrap import correct_holm
from robustgen.metrics.corruption_errors import FORMULAS
from robustgen.pixels.benchmarks.kinds import CLEAN
from robustgen.settings.scoring import Drop, Threshold

# Images above which no condition is looked for that could fail.
_MOST_IMAGES = 100_000


def find_beyond(model: str, scores: Mapping[str, float], conditions: Sequence[Threshold]) -> list[str]:
    """Return a line for each of the `conditions` that holds for the scores of a model, by their names.

    Raises
    ------
    ConfigError
        No score has the name.
    """
    found = []
    for each in conditions:
        value = _find(model, scores, each.name)
        if each.holds(value):
            condition = f"{each.name} {each.sign} {each.limit:g}"
            found.append(f"failed: {model}: {each.name} is {value:.2f} ({condition})")
    return found


def _find(model: str, scores: Mapping[str, float], name: str) -> float:
    if name not in scores:
        raise ConfigError(f"--fail-if: {model}: {UnknownNameError('score', name, scores)}")
    return scores[name]


def _check_normalised(report: Scoreboard, conditions: Sequence[Threshold | Drop]) -> None:
    """Raise a ConfigError if a condition names a mean that needs a baseline, and there is none."""
    means = {each.mean for each in FORMULAS if each.normalised}
    for each in conditions:
        if report.baseline is None and each.name in means:
            raise ConfigError(f"--fail-if: {each.name} needs a --baseline, which these scores lack")


class _Score(NamedTuple):
    """A value in the unit of the tables, and its column among those with intervals, if it has one."""

    value: float
    factor: float
    column: Column | None


def find_failures(
    report: Scoreboard,
    conditions: Sequence[Threshold | Drop],
    others: Mapping[str, ModelScores] | None = None,
) -> list[str]:
    """Return a line for each of the `conditions` that holds for a model.

    `others` are the scores of the predictions that conditions name.

    Raises
    ------
    ConfigError
        No score has the name, or the score has no interval.
    """
    limits = [each for each in conditions if isinstance(each, Threshold)]
    drops = [each for each in conditions if isinstance(each, Drop)]
    _check_normalised(report, conditions)
    found = list[str]()
    for index, model in enumerate(report.models if limits else ()):
        scores = {name: each.value for name, each in _list_scores(report, index).items()}
        found += find_beyond(model.model, scores, limits)
    return found + (_find_drops(report, drops, others or {}) if drops else [])


def _find_drops(report: Scoreboard, drops: Sequence[Drop], others: Mapping[str, ModelScores]) -> list[str]:
    """Return lines on the significant drops; all tests are corrected together."""
    lines, chances = [], []
    tests = len(drops) * len(report.models)
    for drop in drops:
        paired = replace(report, models=[*report.models, others[drop.folder]])
        last = len(report.models)
        if not (uncertainty := paired.uncertainty):
            raise ConfigError(f"--fail-if '{drop}': needs intervals, so --replicates above 0")
        base = _list_scores(paired, last)
        for index, model in enumerate(report.models):
            own = _list_scores(paired, index)
            values = {name: each.value for name, each in own.items() if each.column and name in base}
            _find(model.model, values, drop.name)
            (value, factor, column), old = own[drop.name], base[drop.name].value
            assert column is not None  # checked by `_find`
            least = drop.least / factor
            _check_possible(uncertainty, index, column, least, tests, str(drop))
            low, high = (f"{factor * end:+.2f}" for end in uncertainty.difference(index, last, column))
            told = f"{drop.name} is {value:.2f}, {value - old:+.2f} [{low}, {high}] from {old:.2f} of"
            lines.append(f"failed: {model.model}: {told} {drop.folder} ({drop})")
            is_above = value - old > drop.least
            chances.append(uncertainty.margin(index, last, column, least) if is_above else 1.0)
    pairs = zip(lines, correct_holm(chances), strict=True)
    return [line for line, chance in pairs if chance < SIGNIFICANT]


def _check_possible(
    uncertainty: Uncertainty, index: int, column: Column, least: float, tests: int, condition: str
) -> None:
    """Raise a ConfigError if no outcome on so few images would be significant."""
    images = uncertainty.images

    def can_fail(count: int) -> bool:
        return tests * uncertainty.smallest_chance(index, column, least, count) < SIGNIFICANT

    if can_fail(images):
        return
    needed = next(filter(can_fail, range(images + 1, _MOST_IMAGES)), None)
    way_out = f"use {needed} or more" if needed else "the score cannot fall so far"
    raise ConfigError(
        f"--fail-if '{condition}': no result on {images} images is significant in {tests} tests: {way_out}"
    )


def _list_scores(report: Scoreboard, index: int) -> dict[str, _Score]:
    """Return a model's scores by short names, then by ``measure.name``; means come first.

    The short name of an operation is for its value of the first measure.
    """
    model = report.models[index]
    means, values, long = dict[str, _Score](), dict[str, _Score](), dict[str, _Score]()
    if model.clean_error is not None:
        means["clean_error"] = _Score(100 * model.clean_error, 100, Column("", CLEAN))
    for measure in report.measures:
        factor, mean = measure.formula.factor, report.mean(measure, model)
        own = {
            name: _Score(factor * value, factor, Column(measure.key, name))
            for name, value in measure.values[index].items()
        }
        if mean is not None:
            column = Column(measure.key, MEAN)
            means[name_mean(report, measure)] = _Score(factor * mean, factor, column)
            means[f"{measure.key}.{MEAN}"] = means[name_mean(report, measure)]
        values |= own if measure is report.measures[0] else {}
        long |= {f"{measure.key}.{name}": score for name, score in own.items()}
    for family in report.families:
        means[f"{family.family}.mean_error"] = _Score(100 * family.mean(index), 100, None)
        scores = ((each.key, each.values[index]) for each in family.scores)
        means |= {
            f"{family.family}.{key}": _Score(100 * value, 100, None)
            for key, value in scores
            if value is not None
        }
    return means | values | long
