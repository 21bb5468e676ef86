"""`robustgen score-answers`: accuracy of vision-language models on clean and corrupted pictures.

Several questions share a picture, so pictures are the unit of all intervals and tests.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustgen.display.charts import CurveGroup
from robustgen.display.text import Cell, Table, escape, format_count, format_name
from robustgen.errors import ConfigError, SourceError, UnknownNameError
from robustgen.lab.scores.answer_files import AskedTable, read_answers, read_questions
from robustgen.lab.scores.gates import Judgement, judge
from robustgen.lab.scores.intervals import FEW_IMAGES, SIGNIFICANT, Interval
from robustgen.lab.scores.result_grid import (
    GridCell,
    averaged_cells,
    find_files,
    sort_cells,
    tabulate_severities,
)
from robustgen.lab.scores.table_page import group_curves, name_models
from robustgen.metrics.bootstrap import correct_holm
from robustgen.metrics.classification import Floats
from robustgen.metrics.intervals import (
    clustered_interval,
    difference_interval,
    margin_chance,
    paired_chances,
    ratio_interval,
    share_among_clusters,
)
from robustgen.pixels.benchmarks.kinds import CLEAN
from robustgen.settings.scoring import AnswerScoring, Drop, Threshold

ACCURACY: Final = "accuracy"
"""Name of the mean over corruptions and severities."""
_NAMED: Final = 5
_EQUAL: Final = 1e-9


class Difference(NamedTuple):
    """Distance of a mean below another one, with its 95 % interval and its probability by chance."""

    drop: float
    drop_low: float
    drop_high: float
    p: float


class AnswerScore(NamedTuple):
    """Accuracy on some questions, and how far it is below that on clean pictures, with 95 % intervals.

    The relative drop is None if all clean answers are wrong.
    """

    questions: int
    accuracy: float
    low: float
    high: float
    drop: float | None = None
    drop_low: float | None = None
    drop_high: float | None = None
    p: float | None = None
    relative_drop: float | None = None
    relative_drop_low: float | None = None
    relative_drop_high: float | None = None

    def list_cells(self) -> list[Cell]:
        """Return the accuracy, the drop, and the relative drop for a table."""
        return [_show(*self[1:4]), _show(*self[4:7]), _show(*self[8:])]


@dataclass(frozen=True)
class AnswerReport:
    """The accuracy of models on the same questions.

    Attributes
    ----------
    answers : dict of str to dict
        For each model, the scores of its answers by corruption and severity, None for the clean pictures:
        (questions,), from 0 to 1.
    pictures : ndarray of shape (questions,), int
        Number of the picture of each question.
    categories : ndarray of shape (questions,), str, or None
    averaged : sequence of (str, int)
        The corruptions and severities in the mean.
    unmatched : dict of str to int
        Number of answers of each model that match no question.
    notes : sequence of str
    """

    answers: Mapping[str, Mapping[GridCell | None, Floats]]
    pictures: NDArray[np.intp]
    categories: NDArray[Any] | None
    averaged: Sequence[GridCell]
    unmatched: Mapping[str, int]
    notes: Sequence[str]

    title = "answers about corrupted pictures"
    method = (
        "Intervals count pictures, all questions of a picture together: of accuracy Wilson's with the "
        "effective number of pictures, of a drop Student's, paired, of a relative drop Student's of the "
        "logarithm of the ratio. p is that of the exact sign-flip test while few pictures differ, otherwise "
        "of Student's paired test, after Holm's correction for the corruptions, or for the models."
    )
    recorded: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @property
    def model(self) -> str:
        """Return the names of the models, or their number."""
        return name_models(self.answers)

    @property
    def lead(self) -> str:
        """Return what was asked."""
        return f"{format_count(len(self.pictures), 'question')} about {format_count(self.count, 'picture')}"

    @cached_property
    def count(self) -> int:
        """Return the number of pictures."""
        return len(np.unique(self.pictures))

    @cached_property
    def parts(self) -> dict[str, Sequence[GridCell | None]]:
        """Return what each name of a score is the mean of: all, clean, corruptions, and their severities."""
        cells = [cell for cell in next(iter(self.answers.values())) if cell]
        names = {name: [cell for cell in cells if cell[0] == name] for name in dict(cells)}
        return {ACCURACY: self.averaged, CLEAN: [None], **names, **{f"{n}/{s}": [(n, s)] for n, s in cells}}

    @property
    def names(self) -> list[str]:
        """Return the corruptions."""
        return [*dict(cell for cell in next(iter(self.answers.values())) if cell)]

    @property
    def groups(self) -> dict[str, NDArray[np.bool_]]:
        """Return the questions of each category."""
        found = self.categories
        return {} if found is None else {name: found == name for name in np.unique(found).tolist()}

    def average(self, model: str, name: str) -> Floats:
        """Return the score of each question, (questions,): the mean over what a name stands for."""
        values: Floats = np.mean([self.answers[model][cell] for cell in self.parts[name]], axis=0)
        return values

    @cached_property
    def scores(self) -> dict[tuple[str, str, str], AnswerScore]:
        """Return all scores by model, name and category, "" for all questions."""
        found = dict[tuple[str, str, str], AnswerScore]()
        for model in self.answers:
            every = np.full(len(self.pictures), True)
            own = {name: self._score(model, name, every) for name in self.parts}
            chances = correct_holm([own[name].p or 0 for name in self.names])
            own |= {name: own[name]._replace(p=p) for name, p in zip(self.names, chances, strict=True)}
            found |= {(model, name, ""): each for name, each in own.items()}
            for category, part in self.groups.items():
                found |= {(model, name, category): self._score(model, name, part) for name in _MEANS}
        return found

    def _score(self, model: str, name: str, part: NDArray[np.bool_]) -> AnswerScore:
        places = self.pictures[part]
        clean, values = (self.average(model, each)[part] for each in (CLEAN, name))
        accuracy, base = float(values.mean()), float(clean.mean())
        found = AnswerScore(len(values), accuracy, *clustered_interval(values, places))
        if name == CLEAN:
            return found
        drop = _compare(values, clean, places)
        found = found._replace(**drop._asdict())
        if not base:
            return found
        ratio, low, high = accuracy / base, drop.drop_low / base, min(1.0, drop.drop_high / base)
        rows = [share_among_clusters(each, places) for each in (values, clean)]
        influences = (rows[0] - ratio * rows[1]) / base
        if ratio > _EQUAL and np.ptp(influences) > _EQUAL:
            high, low = (1 - float(end[0]) for end in ratio_interval([ratio], influences[:, None]))
        return found._replace(relative_drop=1 - ratio, relative_drop_low=low, relative_drop_high=high)

    @cached_property
    def differences(self) -> dict[tuple[str, str], Difference]:
        """Return how far the means of all models but the first are above those of the first."""
        first, *others = self.answers
        found = dict[tuple[str, str], Difference]()
        for name in _MEANS:
            base = self.average(first, name)
            pairs = [_compare(base, self.average(model, name), self.pictures) for model in others]
            chances = correct_holm([each.p for each in pairs])
            for model, each, p in zip(others, pairs, chances, strict=True):
                found[model, name] = each._replace(p=p)
        return found

    # --- forms

    def list_tables(self) -> list[Table]:
        """Return means, accuracy by corruption, severity and category, and differences of models."""
        several, heads = len(self.answers) > 1, ["Corrupted", "Drop", "Relative drop"]

        def list_row(head: str, model: str, category: str = "") -> list[object]:
            clean, own = (self.scores[model, name, category] for name in _MEANS)
            return [head, clean.list_cells()[0], *own.list_cells()]

        rows = [
            [*list_row(model, model), _show_chance(self.scores[model, ACCURACY, ""].p)]
            for model in self.answers
        ]
        over = f"mean over {format_count(len(dict(self.averaged)), 'corruption')}"
        tables = [Table(f"Accuracy in %, {over}", ["Model", "Clean", *heads, "p"], rows)]
        found = {name: [self.scores[model, name, ""] for model in self.answers] for name in self.names}
        rows = [
            [format_name(name), *(each.list_cells()[0] for each in own)]
            if several
            else [format_name(name), *own[0].list_cells(), _show_chance(own[0].p)]
            for name, own in found.items()
        ]
        columns = ["", *self.answers] if several else ["", *heads, "p"]
        levels = sorted({level for _, level in self.averaged})
        told = f"severit{'y' if len(levels) == 1 else 'ies'} {', '.join(map(str, levels))}"
        tables.append(Table(f"Accuracy in % by corruption: {self.lead}; {told}", columns, rows))
        for model, answers in self.answers.items():
            cells = {cell: float(each.mean()) for cell, each in answers.items() if cell}
            if len({level for _, level in cells}) > 1:
                title = f"Accuracy in %{f' of {model}' * several} by severity"
                tables.append(tabulate_severities(title, cells))
        if self.groups:
            rows = [
                [model] * several + list_row(category, model, category)
                for model in self.answers
                for category in self.groups
            ]
            columns = ["", *[""] * several, "Clean", *heads]
            tables.append(Table("Accuracy in % by category", columns, rows, names=1 + several))
        pairs = {model: [self.differences[model, name] for name in _MEANS] for model in [*self.answers][1:]}
        rows = [
            [model, *(cell for each in own for cell in (_show(*each[:3], form="+.1f"), _show_chance(each.p)))]
            for model, own in pairs.items()
        ]
        title = f"Differences from {next(iter(self.answers))} in %, on the same questions"
        return tables + [Table(title, ["Model", "Clean", "p", "Corrupted", "p"], rows)] * several

    def list_curves(self) -> list[CurveGroup]:
        """Return the accuracy of each model by severity, for each corruption."""
        groups = []
        for model, own in self.answers.items():
            found = {cell: self.scores[model, f"{cell[0]}/{cell[1]}", ""] for cell in own if cell}
            values = {cell: each.accuracy for cell, each in found.items()}
            ends = {cell: Interval(each.low, each.high) for cell, each in found.items()}
            title = f"Accuracy in %{f' of {model}' * (len(self.answers) > 1)} by severity"
            groups.append(group_curves(title, self.scores[model, CLEAN, ""].accuracy, values, ends))
        return groups

    def as_dict(self) -> dict[str, Any]:
        """Return all values, for JSON."""
        return {
            "questions": len(self.pictures),
            "pictures": self.count,
            "mean_over": [f"{name}/{level}" for name, level in self.averaged],
            "unmatched": self.unmatched,
            "scores": [
                {"model": model, "of": name, "category": category, **each._asdict()}
                for (model, name, category), each in self.scores.items()
            ],
            "differences": [
                {"model": model, "other": next(iter(self.answers)), "of": name}
                | dict(zip(("difference", "low", "high", "p"), each, strict=True))
                for (model, name), each in self.differences.items()
            ],
            "interval_method": self.method,
            "notes": [*self.notes],
        }

    # --- conditions

    def list_scores(self, model: str = "") -> dict[str, float]:
        """Return the scores of a model, by default of the first, that conditions can name, in %."""
        model = model or next(iter(self.answers))
        own = {key[1:]: each for key, each in self.scores.items() if key[0] == model}
        mean = own[ACCURACY, ""]
        found = {"drop": mean.drop, "relative drop": mean.relative_drop}
        found |= {
            f"{category}.{name}" * bool(category) or name: e.accuracy for (name, category), e in own.items()
        }
        known = {name: 100 * value for name, value in found.items() if value is not None}
        return known | {"unmatched": self.unmatched[model]}

    def judge(self, conditions: Sequence[Threshold | Drop]) -> list[Judgement]:
        """Apply conditions to all models; a drop from another model fails if it is significant.

        Raises
        ------
        ConfigError
            No score, or no model, has the name.
        """
        limits = [each for each in conditions if isinstance(each, Threshold)]
        found = [each for model in self.answers for each in judge(model, self.list_scores(model), limits)]
        drops, chances = list[Judgement](), list[float]()
        for each in conditions:
            if not isinstance(each, Drop):
                continue
            for noun, name, known in (("score", each.name, self.parts), ("model", each.folder, self.answers)):
                if name not in known:
                    raise ConfigError(f"--fail-if: {UnknownNameError(noun, name, known)}")
            base, least = self.average(each.folder, each.name), each.least / 100
            for model in [name for name in self.answers if name != each.folder]:
                values = self.average(model, each.name)
                own, limit = _compare(values, base, self.pictures), 100 * float(base.mean()) - each.least
                first, second = (share_among_clusters(e, self.pictures, centre=0) for e in (values, base))
                chances.append(margin_chance(first, second, least, 0, 1) if own.drop > least else 1.0)
                ends = Interval(-100 * own.drop_high, -100 * own.drop_low)
                value, change = 100 * float(values.mean()), -100 * own.drop
                drops.append(Judgement(model, str(each), each.name, value, limit, False, change, ends))
        if drops and len(drops) * 2.0 ** (1 - self.count) >= SIGNIFICANT:
            told = format_count(self.count, "picture")
            raise ConfigError(f"--fail-if '{drops[0].condition}': no result on {told} would be significant")
        pairs = zip(drops, correct_holm(chances), strict=True)
        return found + [replace(each, failed=p < SIGNIFICANT, p=p) for each, p in pairs]


_MEANS: Final = (CLEAN, ACCURACY)


def _compare(values: Floats, base: Floats, pictures: NDArray[np.intp]) -> Difference:
    first, second = (share_among_clusters(each, pictures) for each in (values, base))
    # The exact test is of pictures whose sums differ.
    sums = [share_among_clusters(each, pictures, centre=0) for each in (values, base)]
    ends, p = difference_interval(first, second, 0, 1), float(paired_chances(sums[1][:, None], sums[0])[0])
    return Difference(float(np.mean(base - values)), *ends, p)


def _show(value: float | None, low: float | None, high: float | None, form: str = ".1f") -> Cell:
    return Cell(value, None if low is None or high is None else (low, high), form)


def _show_chance(p: float | None) -> Cell:
    return Cell(p, form=".2g", factor=1)


# --- from files to scores -------------------------------------------------------------------------

_ODD: Final = {
    "match no question": "left out",
    "are there twice": "counted once",
    "name no choice": "wrong",
}


def score_answers(options: AnswerScoring) -> AnswerReport:
    """Score the answers of one or more models.

    Raises
    ------
    RobustgenError
        A file is missing or malformed, or files do not match; the message says which.
    """
    notes = list[str]()
    tables, cells = _find_tables(options, notes)
    models = sorted({model for model, _ in tables})
    averaged = averaged_cells(dict.fromkeys(cells))
    if not averaged:
        raise SourceError(f"--results {options.results}: the corruptions have no severity in common")
    first = read_answers(tables[models[0], None], options)
    asked = read_questions(options.questions, first.key, options) if options.questions else first
    questions = [*dict.fromkeys(row.question for row in asked.rows.values())]
    odd, unmatched = {name: list[str]() for name in _ODD}, Counter[str]()
    answers = dict[tuple[str, GridCell | None], dict[str, float]]()
    for model in models:
        clean = first if model == models[0] else read_answers(tables[model, None], options)
        for cell in (None, *cells):
            table = read_answers(tables[model, cell], options) if cell else clean
            answers[model, cell], others = _match(table, asked, clean)
            unmatched[model] += len(others)
            for name, keys in zip(_ODD, (others, table.repeated, table.unread), strict=True):
                odd[name] += [f"{key} in {table.path}" for key in keys]
            lacking = [question for question in questions if question not in answers[model, cell]]
            _tell_lack(options, notes, table.path, "questions with a score", len(questions), lacking)
    kept = [question for question in questions if all(question in own for own in answers.values())]
    if not kept:
        raise SourceError(f"--results {options.results}: no question has a score in all tables")
    if len(asked.rows) > len(questions):
        told = format_count(len(questions), "question")
        notes.append(f"{len(asked.rows):,} rows ask {told} in circles: right if all answers to one are")
    for name, keys in odd.items():
        if keys:
            told = f"{format_count(len(keys), 'answer')} {name}: {_ODD[name]}"
            notes.append(f"{told}, such as {escape(keys[0])}")
    rows = [asked.rows[question] for question in kept]
    pictures = [row.picture or first.rows.get(row.question, row).picture for row in rows]
    if not all(pictures):
        notes.append(
            f"warning: {format_count(pictures.count(''), 'question')} without a picture count as pictures of "
            "their own: if questions share pictures, intervals are too narrow; --questions FILE tells, or "
            "--picture COLUMN"
        )
    own = [picture or f"question {row.question}" for picture, row in zip(pictures, rows, strict=True)]
    names = {model: escape(model or options.name) for model in models}
    report = AnswerReport(
        {
            name: {cell: np.array([answers[model, cell][q] for q in kept]) for cell in (None, *cells)}
            for model, name in names.items()
        },
        np.unique(own, return_inverse=True)[1],
        np.array([row.category or "(none)" for row in rows]) if options.category else None,
        averaged,
        {name: unmatched[model] for model, name in names.items()},
        notes,
    )
    few = f"{format_count(report.count, 'picture')}: so few that intervals hold only roughly"
    return replace(report, notes=[*notes, *[few] * (report.count < FEW_IMAGES)])


def _find_tables(
    options: AnswerScoring, notes: list[str]
) -> tuple[dict[tuple[str, GridCell | None], Path], list[GridCell]]:
    """Return the tables of each model, None for the clean pictures, and what all models have."""
    paths = find_files(options.results, "--results", ("corruption", "severity"), ("model",))
    tables: dict[tuple[str, GridCell | None], Path]
    tables = {(model, (name, int(level))): path for (name, level, model), path in sorted(paths.items())}
    clean = find_files(options.clean, "--clean-results", (), ("model",))
    models = sorted({model for model, _ in tables})
    for model in models:
        if (model,) not in clean:
            raise SourceError(f"--clean-results {options.clean}: has no file of {model or 'the model'}")
        tables[model, None] = clean[model,]
    found = [cell for _, cell in tables if cell]
    wanted = sort_cells({(name, level) for name, _ in found for _, level in found})
    absent = [f"{m} {c[0]}/{c[1]}".strip() for m, c in product(models, wanted) if (m, c) not in tables]
    _tell_lack(options, notes, "--results", "tables", len(models) * len(wanted), absent)
    return tables, [cell for cell in wanted if all((model, cell) in tables for model in models)]


def _match(table: AskedTable, asked: AskedTable, clean: AskedTable) -> tuple[dict[str, float], list[str]]:
    """Return the scores by question, and the answers that match no question, or have other right answers.

    A question that is asked in circles has its smallest score, and none if an answer is missing.
    """
    found, unmatched = dict[str, list[float | None]](), list[str]()
    for key, row in table.rows.items():
        known = [each for each in (asked.rows.get(key), clean.rows.get(key)) if each]
        rights = [each.right for each in known if each.right[:1] == row.right[:1] and all(each.right)]
        if key not in asked.rows or (all(row.right) and any(right != row.right for right in rights)):
            unmatched.append(key)
        else:
            found.setdefault(asked.rows[key].question, []).append(row.score)
    if not found:
        told = format_count(len(unmatched), "answer")
        raise SourceError(f"{table.path}: none of its {told} is to a question of {asked.path}")
    counts = Counter(asked.rows[key].question for key in clean.rows.keys() & asked.rows.keys())
    scores = {}
    for question, own in found.items():
        values = [each for each in own if each is not None]
        if len(values) >= max(len(own), counts[question]):
            scores[question] = min(values)
    return scores, unmatched


def _tell_lack(
    options: AnswerScoring, notes: list[str], where: str, noun: str, count: int, lacking: Sequence[str]
) -> None:
    """Add a note on what a part lacks, if anything, or raise a SourceError, unless that is allowed."""
    if lacking:
        listed = ", ".join([*map(escape, lacking[:_NAMED]), *["..."] * (len(lacking) > _NAMED)])
        told = f"{where}: incomplete: {count - len(lacking):,} of {count:,} {noun}; missing: {listed}"
        if not options.partial:
            raise SourceError(f"{told} (--partial scores the rest)")
        notes.append(f"{told}; all numbers are of the rest")
