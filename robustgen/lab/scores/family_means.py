"""The means and scores of other families of corruptions, such as C-bar, in addition to the benchmark's."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from statistics import fmean
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen import metrics
from robustgen.display.text import format_count
from robustgen.lab.scores.intervals import (
    MEAN,
    RATIO,
    STRATIFIED,
    Contribution,
    PublishedScore,
    Score,
    ScoreGroup,
    Unit,
)
from robustgen.lab.scores.results import ModelScores
from robustgen.metrics.corruption_errors import balance_mistakes
from robustgen.pixels.benchmarks.kinds import CLEAN, IMAGENET_C
from robustgen.pixels.benchmarks.registry import (
    BALANCED_ERRORS,
    BENCHMARK_FAMILY,
    CLIP_SETS,
    MEDMNIST,
    PERFORMANCE,
    SUPERCLASS_ACCURACY,
    Family,
)


def list_families(
    models: Sequence[ModelScores],
    edition: str = "",
    replicates: int = 0,
    apart: Collection[str] = IMAGENET_C.names,
) -> list[ScoreGroup]:
    """Return the scores of all other families of which every model has a corruption, also of unknown ones.

    Parameters
    ----------
    models : sequence of ModelScores
    edition : str
        Edition of the images, which decides the corruptions of a family.
    replicates : int
        0 for no intervals.
    apart : collection of str
        Corruptions that other measures cover.
    """
    shared = [name for name in models[0].severities if all(name in each.severities for each in models)]
    others = [name for name in shared if name not in apart]
    # Families are loaded only for sets with other corruptions.
    return [*_group_by_family(others, models, edition, replicates)] if others else []


def _group_by_family(
    others: Sequence[str], models: Sequence[ModelScores], edition: str, replicates: int
) -> Iterator[ScoreGroup]:
    from robustgen.pixels.benchmarks.corruptions import FAMILIES

    for family in FAMILIES.values():
        # Severity 0 is the image itself.
        levels = [level for level in family.severities if level]
        had = {
            name: tuple(level for level in levels if all(level in each.severities[name] for each in models))
            for name in others
            if (entry := family.find(name)) and entry.common
        }
        own = [name for name, found in had.items() if len(found) == len(levels)]
        scales = dict.fromkeys(scale for each in family.corruptions.values() for scale in each.table)
        sets = [family.names(scale) for scale in ([edition] if edition in scales else scales)]
        sets = sorted(filter(None, sets), key=len, reverse=True)
        names = next((each for each in sets if set(each) <= set(own)), tuple(own))
        if names:
            part = f" (incomplete: {format_count(len(names), 'corruption')})" * (names not in sets)
            error = _score_errors(names, levels, models)
            measure = family.measure or PERFORMANCE * (family is BENCHMARK_FAMILY)
            scores, notes = _MEASURES[measure](names, models, edition)
            if family.reference and all(family.means.get(name) for name in names):
                scores.insert(0, _score_normalised(names, levels, family.means, family.reference, models))
            yield _group(family, family.title, [error, *scores], levels, part, replicates, notes)
        # Means are over equal severities.
        for few in dict.fromkeys(found for found in had.values() if found and not names):
            error = _score_errors([name for name, found in had.items() if found == few], few, models)
            title = f"{family.title}, severity {', '.join(map(str, few))}"
            yield _group(family, title, [error], few, " (incomplete)", replicates)
    # Predictions of a plug-in can be scored without it.
    for prefix in dict.fromkeys(name.partition(":")[0] for name in others if ":" in name):
        names = tuple(name for name in others if name.startswith(f"{prefix}:"))
        rows = [each.severities[name] for each in models for name in names]
        shared = tuple(sorted(set.intersection(*map(set, rows))))
        if prefix not in FAMILIES and shared:
            error = _score_errors(names, shared, models)
            error = replace(error, title=f"{prefix}: {error.title}", group=prefix, replicates=replicates)
            yield ScoreGroup(prefix, prefix, (error,), {prefix: names}, shared)


def _group(
    family: Family,
    title: str,
    scores: Sequence[Score],
    levels: Sequence[float],
    part: str,
    replicates: int,
    notes: Sequence[str] = (),
) -> ScoreGroup:
    """Return a group of scores, the first of which is the mean error."""
    name = family.name + title.removeprefix(family.title)
    scores = [replace(scores[0], title=f"{title}: {scores[0].title}{part}"), *scores[1:]]
    return ScoreGroup(
        name,
        title,
        tuple(replace(each, group=name, replicates=replicates) for each in scores),
        _divide(family, title, scores[0].names),
        tuple(levels),
        part,
        tuple(notes),
    )


def _divide(family: Family, title: str, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the corruptions of a group by category, with its title if there is one category alone."""
    found = dict[str, list[str]]()
    for name in names:
        entry = family.find(name)
        assert entry is not None
        found.setdefault(f"{title}, {entry.category}", []).append(name)
    return {title: tuple(own) for title, own in found.items()} if len(found) > 1 else {title: tuple(names)}


def _score_errors(names: Sequence[str], levels: Sequence[float], models: Sequence[ModelScores]) -> Score:
    """Return the mean errors over severities, by corruption, and their means."""
    folders = {name: [IMAGENET_C.variant(name, level).folder for level in levels] for name in names}

    def contribute(index: int, name: str) -> Contribution:
        chosen = folders[name] if name != MEAN else [each for own in folders.values() for each in own]
        return Contribution(np.mean([models[index].mistakes[each] for each in chosen], axis=0), 0, 1)

    values = [
        {name: fmean(model.severities[name][level] for level in levels) for name in names} for model in models
    ]
    means = tuple(fmean(row.values()) for row in values)
    title = "top-1 error in %, mean over severities, unnormalised"
    return Score(
        *("mean_error", "Mean error", Unit(), tuple(names), tuple(values), means, contribute),
        title=title,
        symbol="Error",
    )


# --- scores of single families -------------------------------------------------------------------

_Found = tuple[list[Score], list[str]]
_Errors = Mapping[str, float]
_Rows = Mapping[str, NDArray[Any]]
# Change of an error that gives a derivative.
_STEP: Final = 1e-4


def _evaluate(
    key: str,
    head: str,
    score: Callable[[_Errors], float | None],
    models: Sequence[_Rows],
    *,
    unit: Unit = Unit(),  # noqa: B008 - it cannot be changed
    labels: Sequence[NDArray[Any] | None] = (),
    **more: Any,
) -> Score:
    """Return a score of each model, and what its images contribute to it to first order.

    Parameters
    ----------
    key, head, unit, more
        As those of `Score`.
    score : callable
        The score of errors by folder of a variant; None if it is undefined.
    models : sequence of mapping
        For each model, its mistakes by folder, (images,).
    labels : sequence of ndarray, optional
        True classes of the images of each model, (images,), if errors are balanced.
    """

    @cache
    def errors_of(index: int) -> _Errors:
        return {
            folder: balance_mistakes(each, truth)
            if labels and (truth := labels[index]) is not None
            else float(np.mean(each))
            for folder, each in models[index].items()
        }

    @cache
    def contribute(index: int, _: str) -> Contribution:
        errors, value = errors_of(index), means[index]
        assert value is not None
        slopes = _find_slopes(score, errors)
        rows = models[index].items()
        images = value + np.sum([slopes[name] * (each - errors[name]) for name, each in rows], axis=0)
        clean = slopes.get(CLEAN, 0.0)
        start = value - sum(slopes[folder] * error for folder, error in errors.items())
        whole = sum(slopes.values()) - clean
        corners = [start, start + clean, start + whole, start + clean + whole]
        return Contribution(images, min(corners), max(corners))

    means = tuple(score(errors_of(index)) for index in range(len(models)))
    return Score(key, head, unit, (), tuple({} for _ in models), means, contribute, labels=labels, **more)


def _find_slopes(score: Callable[[_Errors], float | None], errors: _Errors) -> dict[str, float]:
    """Return the derivative of a score with respect to each error."""
    slopes = {}
    for folder, error in errors.items():
        below, above = max(0.0, error - _STEP), min(1.0, error + _STEP)
        ends = [score({**errors, folder: each}) for each in (below, above)]
        assert ends[0] is not None and ends[1] is not None
        slopes[folder] = (ends[1] - ends[0]) / (above - below)
    return slopes


def _fold(errors: _Errors, names: Sequence[str], levels: Sequence[float]) -> dict[str, list[float]]:
    """Return the errors at each of the severities, by corruption."""
    return {name: [errors[IMAGENET_C.variant(name, level).folder] for level in levels] for name in names}


def _score_normalised(
    names: Sequence[str],
    levels: Sequence[float],
    means: Mapping[str, float],
    reference: str,
    models: Sequence[ModelScores],
) -> Score:
    """Return the mean of the errors divided by those of the reference."""

    def score(errors: _Errors) -> float:
        return fmean(fmean(each) / means[name] for name, each in _fold(errors, names, levels).items())

    rows = [model.mistakes for model in models]
    return _evaluate("normalised_mean", f"/ {reference}", score, rows, base=reference)


def _score_balanced_errors(names: Sequence[str], models: Sequence[ModelScores], edition: str) -> _Found:
    """Return BE and rBE, and the clean balanced error."""
    if edition not in MEDMNIST:
        return [], ["BE and rBE need the edition of the images, such as pathmnist, which is unknown"]
    if edition == _MULTI_LABEL:
        return [], [f"BE of {edition} needs a score for each label: metrics.multi_label_balanced_error"]
    alexnet = metrics.alexnet_balanced_errors(edition)
    stems = [name.rpartition(":")[2] for name in names]

    def fold(errors: _Errors) -> dict[str, list[float]]:
        return dict(zip(stems, _fold(errors, names, models[0].levels).values(), strict=True))

    def be(errors: _Errors) -> float:
        return metrics.mean_balanced_corruption_error(stems, fold(errors), alexnet)

    def rbe(errors: _Errors) -> float | None:
        if CLEAN not in errors:
            return None
        return metrics.mean_relative_balanced_corruption_error(stems, fold(errors), errors[CLEAN], alexnet)

    rows, labels = [model.mistakes for model in models], [model.labels for model in models]
    return [
        _evaluate(key, head, score, rows, labels=labels, method=STRATIFIED)
        for key, head, score in (
            ("clean_balanced_error", "Clean bal.", lambda errors: errors.get(CLEAN)),
            ("be", "BE", be),
            ("rbe", "rBE", rbe),
        )
    ], []


def _score_superclasses(names: Sequence[str], models: Sequence[ModelScores], edition: str) -> _Found:
    """Return the accuracy over sixteen superclasses, averaged over severities and distortions."""
    folders = [IMAGENET_C.variant(name, level).folder for name in names for level in IMAGENET_C.levels]
    wrong = [
        {n: each for n, each in m.superclass_mistakes.items() if n in folders and len(each)} for m in models
    ]

    def accuracy(errors: _Errors) -> float | None:
        return 1 - fmean(errors.values()) if len(errors) == len(folders) else None

    published = tuple(
        PublishedScore(name, each / 100) for name, each in metrics.published_accuracies().items()
    )
    score = _evaluate(
        "superclass_accuracy", "16 classes", accuracy, wrong, unit=Unit(sense=1), published=published
    )
    if None in score.means:
        lacking = [model.model for model, mean in zip(models, score.means, strict=True) if mean is None]
        return [], [
            f"{', '.join(lacking)}: no accuracy over superclasses: it needs logits (predict --save logits) "
            "of ImageNet's 1000 classes, and images of the sixteen superclasses"
        ]
    note = "LAION-C: published accuracies are of its own images, which were chosen for the superclasses"
    return [score], [note]


def _score_performance(names: Sequence[str], models: Sequence[ModelScores], edition: str) -> _Found:
    """Return mPC, and rPC of the models with clean clips."""
    levels = models[0].levels

    def mpc(errors: _Errors) -> float:
        return metrics.mean_performance_under_corruption(_fold(errors, names, levels))

    def rpc(errors: _Errors) -> float | None:
        if errors.get(CLEAN, 1) == 1:
            return None
        return metrics.relative_performance_under_corruption(_fold(errors, names, levels), errors[CLEAN])

    published: Mapping[str, Mapping[str, float]] = {}
    base = edition.partition("@")[0]
    if base in CLIP_SETS:
        from robustgen.pixels.benchmarks.corruptions import FAMILIES

        # The published values are means over these corruptions.
        if {*names} == {*FAMILIES["video-c"].names()}:
            published = metrics.published_performance(base)
    rows = [model.mistakes for model in models]

    def evaluate(key: str, head: str, score: Callable[[_Errors], float | None], **more: Any) -> Score:
        known = tuple(PublishedScore(name, row[key] / 100) for name, row in published.items())
        return _evaluate(key, head, score, rows, unit=Unit(sense=1), published=known, on_demand=True, **more)

    return [evaluate("mpc", "mPC", mpc), evaluate("rpc", "rPC", rpc, method=RATIO)], []


_MULTI_LABEL: Final = "chestmnist"
_MEASURES: Final[Mapping[str, Callable[[Sequence[str], Sequence[ModelScores], str], _Found]]] = {
    "": lambda *_: ([], []),
    BALANCED_ERRORS: _score_balanced_errors,
    SUPERCLASS_ACCURACY: _score_superclasses,
    PERFORMANCE: _score_performance,
}
"""The measures that families name."""
