"""The means and scores of other families of corruptions, such as C-bar, in addition to the benchmark's."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen import metrics
from robustgen.lab.scores.intervals import RATIO, STRATIFIED, WILSON, Interval, Uncertainty
from robustgen.lab.scores.results import ModelScores
from robustgen.metrics.corruption_errors import balance_mistakes
from robustgen.metrics.intervals import mean_interval, ratio_interval, stratified_interval
from robustgen.pixels.benchmarks.kinds import CLEAN, IMAGENET_C
from robustgen.pixels.benchmarks.registry import (
    BALANCED_ERRORS,
    BENCHMARK_FAMILY,
    CLIP_SETS,
    MEDMNIST,
    PERFORMANCE,
    SUPERCLASS_ACCURACY,
)


@dataclass(frozen=True)
class FamilyScore:
    """A score that the paper of a family defines.

    Attributes
    ----------
    key, head : str
        Name in JSON and CSV, and heading of its column.
    values : tuple of float or None
        A fraction for each model.
    intervals : tuple of Interval or None
        Ends of the 95 % interval of each value; None if none are wanted.
    published : mapping of str to float
        Published values, by model or human.
    sense : {-1, 1}
        1 if the highest value is the best, -1 if the lowest is.
    title : str
        Title of the table of published values, in %.
    on_demand : bool
        Whether published values are shown only if a comparison is asked for.
    method : str
        Name of the method of the intervals.
    """

    key: str
    head: str
    values: tuple[float | None, ...]
    intervals: tuple[Interval | None, ...]
    published: Mapping[str, float] = field(default_factory=dict)
    sense: int = -1
    title: str = ""
    on_demand: bool = False
    method: str = WILSON


@dataclass(frozen=True)
class FamilyMean:
    """The errors of all models on one family of corruptions.

    Attributes
    ----------
    family, title : str
    names : tuple of str
        The corruptions in the means, which all models have.
    levels : tuple of float
        The severities that errors are averaged over.
    whole : bool
        Whether these are all corruptions in the family's mean at one scale.
    errors : tuple of dict
        For each model, the mean error over severities, by corruption.
    reference : str
        The network whose published errors normalise the score ``normalised_mean``; empty if there is none.
    scores : tuple of FamilyScore
        That score, and the paper's scores other than the mean error.
    notes : tuple of str
        Reasons why some scores are missing.
    """

    family: str
    title: str
    names: tuple[str, ...]
    levels: tuple[float, ...]
    whole: bool
    errors: tuple[dict[str, float], ...]
    reference: str
    scores: tuple[FamilyScore, ...] = ()
    notes: tuple[str, ...] = ()

    def mean(self, index: int) -> float:
        """Return the mean error of the model with this `index`, a fraction."""
        return fmean(self.errors[index][name] for name in self.names)


def compute_family_means(
    models: Sequence[ModelScores],
    edition: str = "",
    get_uncertainty: Callable[[], Uncertainty | None] = lambda: None,
    *,
    apart: Collection[str] = IMAGENET_C.names,
) -> list[FamilyMean]:
    """Return the means of all other families of which every model has a corruption.

    Parameters
    ----------
    models : sequence of ModelScores
    edition : str
        Edition of the images, which decides the corruptions of a family.
    get_uncertainty : callable
        Returns the intervals of the models, if scores are to have some; called only for other families.
    apart : collection of str
        Corruptions that other measures cover.
    """
    shared = [name for name in models[0].severities if all(name in each.severities for each in models)]
    others = [name for name in shared if name not in apart]
    # Families are loaded only for sets with other corruptions.
    return [*_group_by_family(others, models, edition, get_uncertainty())] if others else []


def _group_by_family(
    others: Sequence[str], models: Sequence[ModelScores], edition: str, uncertainty: Uncertainty | None
) -> Any:
    from robustgen.pixels.benchmarks.corruptions import FAMILIES

    for family in FAMILIES.values():
        # Severity 0 is the image itself.
        levels = [level for level in family.severities if level]
        own = [
            name
            for name in others
            if (entry := family.find(name))
            and entry.common
            and all(model.severities[name].keys() >= {*levels} for model in models)
        ]
        scales = dict.fromkeys(scale for each in family.corruptions.values() for scale in each.table)
        sets = [family.names(scale) for scale in ([edition] if edition in scales else scales)]
        sets = sorted(filter(None, sets), key=len, reverse=True)
        names = next((each for each in sets if set(each) <= set(own)), tuple(own))
        if names:
            errors = tuple(
                {name: fmean(model.severities[name][level] for level in levels) for name in names}
                for model in models
            )
            measure = family.measure or PERFORMANCE * (family is BENCHMARK_FAMILY)
            scores, notes = _MEASURES[measure](names, models, edition, uncertainty)
            reference = family.reference * all(family.means.get(name) for name in names)
            if reference:
                scores.insert(
                    0, _score_normalised(names, levels, family.means, reference, models, uncertainty)
                )
            yield FamilyMean(
                family.name,
                family.title,
                names,
                tuple(levels),
                names in sets,
                errors,
                reference,
                tuple(scores),
                tuple(notes),
            )


# --- scores of single families -------------------------------------------------------------------

_Found = tuple[list[FamilyScore], list[str]]
_Errors = Mapping[str, float]
_Rows = Mapping[str, NDArray[Any]]
# Change of an error that gives a derivative.
_STEP: Final = 1e-4


def _evaluate(
    score: Callable[[_Errors], float | None],
    models: Sequence[_Rows],
    uncertainty: Uncertainty | None,
    labels: Sequence[NDArray[Any] | None] | None = None,
    *,
    is_ratio: bool = False,
) -> tuple[tuple[float | None, ...], tuple[Interval | None, ...]]:
    """Return a score of each model, and its intervals.

    Parameters
    ----------
    score : callable
        The score of errors by folder of a variant; None if it is undefined.
    models : sequence of mapping
        For each model, its mistakes by folder, (images,).
    uncertainty : Uncertainty or None
        None for no intervals.
    labels : sequence of ndarray, optional
        True classes of the images of each model, (images,), if errors are balanced.
    is_ratio : bool
        Whether the score is a ratio of errors.
    """
    values, found = list[float | None](), list[Interval | None]()
    for index, rows in enumerate(models):
        truth = labels[index] if labels else None
        errors = {
            folder: float(np.mean(each)) if truth is None else balance_mistakes(each, truth)
            for folder, each in rows.items()
        }
        value = score(errors)
        values.append(value)
        if value is None or not uncertainty:
            found.append(None)
            continue
        slopes = _find_slopes(score, errors)
        images = value + np.sum([slopes[name] * (each - errors[name]) for name, each in rows.items()], axis=0)
        clean = slopes.get(CLEAN, 0.0)
        start = value - sum(slopes[folder] * error for folder, error in errors.items())
        whole = sum(slopes.values()) - clean
        corners = [start, start + clean, start + whole, start + clean + whole]
        if truth is not None:
            ends: Sequence[float] = stratified_interval(images, truth, min(corners), max(corners))
        elif is_ratio and np.ptp(images) > 0:
            ends = [float(end[0]) for end in ratio_interval([value], (images - value)[:, None])]
        else:
            ends = [float(end[0]) for end in mean_interval(images[:, None], min(corners), max(corners))]
        found.append(Interval(*ends))
    return tuple(values), tuple(found)


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
    uncertainty: Uncertainty | None,
) -> FamilyScore:
    """Return the mean of the errors divided by those of the reference."""

    def score(errors: _Errors) -> float:
        return fmean(fmean(each) / means[name] for name, each in _fold(errors, names, levels).items())

    rows = [model.mistakes for model in models]
    return FamilyScore("normalised_mean", f"/ {reference}", *_evaluate(score, rows, uncertainty))


def _score_balanced_errors(
    names: Sequence[str], models: Sequence[ModelScores], edition: str, uncertainty: Uncertainty | None
) -> _Found:
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

    rows = [model.mistakes for model in models]
    labels = [model.labels for model in models]
    return [
        FamilyScore(key, head, *_evaluate(score, rows, uncertainty, labels), method=STRATIFIED)
        for key, head, score in (
            ("clean_balanced_error", "Clean bal.", lambda errors: errors.get(CLEAN)),
            ("be", "BE", be),
            ("rbe", "rBE", rbe),
        )
    ], []


def _score_superclasses(
    names: Sequence[str], models: Sequence[ModelScores], edition: str, uncertainty: Uncertainty | None
) -> _Found:
    """Return the accuracy over sixteen superclasses, averaged over severities and distortions."""
    folders = [IMAGENET_C.variant(name, level).folder for name in names for level in IMAGENET_C.levels]
    wrong = [
        {name: model.superclass_mistakes[name] for name in folders if name in model.superclass_mistakes}
        for model in models
    ]
    wrong = [{name: each for name, each in row.items() if len(each)} for row in wrong]

    def accuracy(errors: _Errors) -> float | None:
        return 1 - fmean(errors.values()) if len(errors) == len(folders) else None

    values, intervals = _evaluate(accuracy, wrong, uncertainty)
    published = {name: value / 100 for name, value in metrics.published_accuracies().items()}
    if None in values:
        lacking = [model.model for model, value in zip(models, values, strict=True) if value is None]
        return [], [
            f"{', '.join(lacking)}: no accuracy over superclasses: it needs logits (predict --save logits) "
            "of ImageNet's 1000 classes, and images of the sixteen superclasses"
        ]
    note = "LAION-C: published accuracies are of its own images, which were chosen for the superclasses"
    title = "accuracy over 16 superclasses in %, among published ones"
    return [FamilyScore("superclass_accuracy", "16 classes", values, intervals, published, 1, title)], [note]


def _score_performance(
    names: Sequence[str], models: Sequence[ModelScores], edition: str, uncertainty: Uncertainty | None
) -> _Found:
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
    rows = {key: {name: row[key] / 100 for name, row in published.items()} for key in ("mpc", "rpc")}
    return [
        FamilyScore(
            key,
            head,
            *_evaluate(score, [model.mistakes for model in models], uncertainty, is_ratio=key == "rpc"),
            rows[key],
            1,
            f"{head} in %, among published ones",
            on_demand=True,
            method=RATIO if key == "rpc" else WILSON,
        )
        for key, head, score in (("mpc", "mPC", mpc), ("rpc", "rPC", rpc))
    ], []


_MULTI_LABEL: Final = "chestmnist"
_MEASURES: Final[
    Mapping[str, Callable[[Sequence[str], Sequence[ModelScores], str, Uncertainty | None], _Found]]
] = {
    "": lambda *_: ([], []),
    BALANCED_ERRORS: _score_balanced_errors,
    SUPERCLASS_ACCURACY: _score_superclasses,
    PERFORMANCE: _score_performance,
}
"""The measures that families name."""
