"""Conditions of `--fail-if`: limits, significant drops from another model, and the evidence of both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from robustgen import __version__
from robustgen.display.text import Cell, Table
from robustgen.errors import ConfigError, UnknownNameError
from robustgen.lab.scores.intervals import MEAN, SIGNIFICANT, Interval, Score
from robustgen.lab.scores.results import ModelScores
from robustgen.lab.scores.scoreboard import Scoreboard
from robustgen.metrics.bootstrap import correct_holm
from robustgen.metrics.corruption_errors import FORMULAS
from robustgen.settings.scoring import Drop, Threshold

# Images above which no condition is looked for that could fail.
_MOST_IMAGES = 100_000
_Value = TypeVar("_Value")
_DIGESTS = {"sha256": "file of the model", "digest": "set", "source_digest": "source of the set"}


@dataclass(frozen=True)
class Judgement:
    """A condition, and its verdict on a model; numbers are in the unit of the tables.

    Attributes
    ----------
    model, condition, score : str
    value : float
        The model's score.
    limit : float
        The limit of the condition: a number, or the score of the other model and the margin.
    failed : bool
    difference : float or None
        The score minus that of the other model, with its interval and the probability by chance, corrected
        for the number of tests; None for a number.
    interval : Interval or None
    p : float or None
    """

    model: str
    condition: str
    score: str
    value: float
    limit: float
    failed: bool
    difference: float | None = None
    interval: Interval | None = None
    p: float | None = None

    def __str__(self) -> str:
        told = f"{self.score} is {self.value:.2f}"
        if self.difference is not None and self.interval:
            low, high = self.interval
            told += (
                f", {self.difference:+.2f} [{low:+.2f}, {high:+.2f}] from {self.value - self.difference:.2f}"
            )
        return f"failed: {self.model}: {told} ({self.condition})"


@dataclass(frozen=True)
class Evidence:
    """Judgements, and what identifies the models, the sets and the software behind them.

    Attributes
    ----------
    judgements : list of Judgement
    recorded : dict of str to mapping
        Model, or OOD set, to the `predictions.json` or `detections.json` beside its results.
    """

    judgements: Sequence[Judgement] = ()
    recorded: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def failures(self) -> list[str]:
        """Return a line for each condition that failed."""
        return [str(each) for each in self.judgements if each.failed]

    def as_dict(self) -> dict[str, Any]:
        """Return the part of the JSON on the conditions; empty without any."""
        if not self.judgements:
            return {}
        conditions = []
        for each in self.judgements:
            own = {key: value for key, value in vars(each).items() if value is not None and key != "failed"}
            conditions.append(own | {"verdict": "failed" if each.failed else "passed"})
        models = [{"name": name, **_identify(held)} for name, held in self.recorded.items()]
        return {"evidence": {"version": __version__, "conditions": conditions, "models": models}}

    def list_tables(self) -> list[Table]:
        """Return the tables of the pages: the conditions, and what the folders of predictions record."""
        if not self.judgements:
            return []
        rows = [
            [
                each.condition,
                each.model,
                *(Cell(number, form=".2f", factor=1) for number in (each.value, each.limit)),
            ]
            + ["failed" if each.failed else "passed"]
            for each in self.judgements
        ]
        found = [
            [name, head, str(_identify(held)[key] or "not recorded")]
            for name, held in self.recorded.items()
            for key, head in _DIGESTS.items()
        ]
        heads, title = ["Condition", "Model", "Value", "Limit", "Verdict"], "SHA-256 of models and sets"
        digests = Table(
            f"{title}; scored by robustgen {__version__}", ["Predictions", "Of", "SHA-256"], found, names=3
        )
        return [Table("Conditions", heads, rows, names=2), *[digests] * bool(found)]


NO_EVIDENCE: Final = Evidence()


def _identify(held: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identity of a model and its images, as recorded; None for what is not."""
    parts = [held.get(key) for key in ("model", "detector", "images")]
    model, detector, images = (each if isinstance(each, dict) else {} for each in parts)
    return {
        "model": model.get("file") or detector.get("model"),
        "sha256": model.get("sha256") or detector.get("sha256"),
        **{key: held.get(key) for key in ("title", "dataset", "edition", "digest", "keys", "annotations")},
        "source_digest": held.get("source_digest") or images.get("source"),
    }


def judge(model: str, scores: Mapping[str, float], conditions: Sequence[Threshold]) -> list[Judgement]:
    """Apply the `conditions` to the scores of a model, by their names.

    Raises
    ------
    ConfigError
        No score has the name.
    """
    values = [(each, _find(model, scores, each.name)) for each in conditions]
    return [
        Judgement(model, str(each), each.name, value, each.limit, each.holds(value)) for each, value in values
    ]


def _find(model: str, scores: Mapping[str, _Value], name: str) -> _Value:
    if name not in scores:
        raise ConfigError(f"--fail-if: {model}: {UnknownNameError('score', name, scores)}")
    return scores[name]


def _check_normalised(report: Scoreboard, conditions: Sequence[Threshold | Drop]) -> None:
    """Raise a ConfigError if a condition names a mean that needs a baseline, and there is none."""
    means = {each.mean for each in FORMULAS if each.normalised}
    for each in conditions:
        if report.baseline is None and each.name in means:
            raise ConfigError(f"--fail-if: {each.name} needs a --baseline, which these scores lack")


def collect_evidence(
    report: Scoreboard,
    conditions: Sequence[Threshold | Drop],
    others: Mapping[str, ModelScores] | None = None,
) -> Evidence:
    """Apply the `conditions` to all models.

    `others` are the scores of the predictions that conditions name.

    Raises
    ------
    ConfigError
        No score has the name, or the score has no interval.
    """
    limits = [each for each in conditions if isinstance(each, Threshold)]
    drops = [each for each in conditions if isinstance(each, Drop)]
    _check_normalised(report, conditions)
    found = list[Judgement]()
    for index, model in enumerate(report.models if limits else ()):
        values = {name: _read(*place, index) for name, place in _list_scores(report).items()}
        known = {name: value for name, value in values.items() if value is not None}
        found += judge(model.model, known, limits)
    found += _judge_drops(report, drops, others or {}) if drops else []
    return Evidence(found, {each.model: each.settings for each in (*report.models, *(others or {}).values())})


def _judge_drops(
    report: Scoreboard, drops: Sequence[Drop], others: Mapping[str, ModelScores]
) -> list[Judgement]:
    """Return the judgements of drops, which fail if significant; all tests are corrected together."""
    found, chances = [], []
    tests = len(drops) * len(report.models)
    for drop in drops:
        other = others[drop.folder]
        paired = replace(report, models=[*report.models, other])
        last, places = len(report.models), _list_scores(paired)
        if not paired.replicates:
            raise ConfigError(f"--fail-if '{drop}': needs intervals, so --replicates above 0")
        for index, model in enumerate(report.models):
            both = {n: (_read(*place, index), _read(*place, last)) for n, place in places.items()}
            value, old = _find(
                model.model, {n: each for n, each in both.items() if None not in each}, drop.name
            )
            assert value is not None and old is not None  # found
            score, name = places[drop.name]
            least = drop.least / score.unit.factor
            _check_possible(score, name, index, report.count, least, tests, str(drop))
            ends = Interval(*(score.unit.factor * end for end in score.difference(index, last, name)))
            # The path of the other model is that of this machine.
            condition, change = str(replace(drop, folder=other.model)), value - old
            found.append(
                Judgement(model.model, condition, drop.name, value, old + drop.least, False, change, ends)
            )
            is_above = change > drop.least
            chances.append(score.margin(index, last, name, least) if is_above else 1.0)
    pairs = zip(found, correct_holm(chances), strict=True)
    return [replace(each, failed=chance < SIGNIFICANT, p=chance) for each, chance in pairs]


def _check_possible(
    score: Score, name: str, index: int, images: int, least: float, tests: int, condition: str
) -> None:
    """Raise a ConfigError if no outcome on so few images would be significant."""

    def can_fail(count: int) -> bool:
        return tests * score.smallest_chance(index, name, least, count) < SIGNIFICANT

    if can_fail(images):
        return
    needed = next(filter(can_fail, range(images + 1, _MOST_IMAGES)), None)
    way_out = f"use {needed} or more" if needed else "the score cannot fall so far"
    raise ConfigError(
        f"--fail-if '{condition}': no result on {images} images is significant in {tests} tests: {way_out}"
    )


def _list_scores(report: Scoreboard) -> dict[str, tuple[Score, str]]:
    """Return scores and names of values by short names, then by ``measure.name``; means come first.

    The short name of an operation is for its value of the first measure.
    """
    means, long = {report.clean.key: (report.clean, MEAN)}, dict[str, tuple[Score, str]]()
    for score in report.scores:
        if score.has_mean:
            means |= {score.full_key: (score, MEAN)} if score.group else {}
            means |= {} if score.group else {score.head: (score, MEAN), f"{score.key}.{MEAN}": (score, MEAN)}
        values = dict.fromkeys(name for row in score.values for name in row)
        long |= {f"{score.full_key}.{name}": (score, name) for name in values}
    first = report.measures[0]
    short = {name: (first, name) for row in first.values for name in row}
    return means | short | long


def _read(score: Score, name: str, index: int) -> float | None:
    """Return a value in the unit of the tables; None if the model has none."""
    value = score.value(index, name)
    return None if value is None else score.unit.factor * value
