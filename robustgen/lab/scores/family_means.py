"""The means and scores of other families of corruptions, such as C-bar, in addition to the benchmark's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Final

import numpy as np

from robustgen import metrics
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
    published : mapping of str to float
        Published values, by model or human.
    sense : {-1, 1}
        1 if the highest value is the best, -1 if the lowest is.
    title : str
        Title of the table of published values, in %.
    on_demand : bool
        Whether published values are shown only if a comparison is asked for.
    """

    key: str
    head: str
    values: tuple[float | None, ...]
    published: Mapping[str, float] = field(default_factory=dict)
    sense: int = -1
    title: str = ""
    on_demand: bool = False


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
        The network whose published errors normalise the second means; empty if there are none.
    published : dict
        Its errors, by corruption.
    scores : tuple of FamilyScore
        The paper's scores other than the mean error.
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
    published: dict[str, float]
    scores: tuple[FamilyScore, ...] = ()
    notes: tuple[str, ...] = ()

    def mean(self, index: int) -> float:
        """Return the mean error of the model with this `index`, a fraction."""
        return fmean(self.errors[index][name] for name in self.names)

    def normalised_mean(self, index: int) -> float | None:
        """Return the mean of the errors divided by those of the reference; None if it lacks one."""
        if not all(self.published.get(name) for name in self.names):
            return None
        return fmean(self.errors[index][name] / self.published[name] for name in self.names)


def compute_family_means(
    models: Sequence[ModelScores], edition: str = "", *, of_clips: bool = False
) -> list[FamilyMean]:
    """Return the means of all other families of which every model has a corruption.

    Parameters
    ----------
    models : sequence of ModelScores
    edition : str
        Edition of the images, which decides the corruptions of a family.
    of_clips : bool
        Whether to return the means of ImageNet-C's corruptions too, because clips have further scores.
    """
    shared = [name for name in models[0].severities if all(name in each.severities for each in models)]
    others = [name for name in shared if of_clips or name not in IMAGENET_C.names]
    # Families are loaded only for sets with other corruptions.
    return [*_group_by_family(others, models, edition)] if others else []


def _group_by_family(others: Sequence[str], models: Sequence[ModelScores], edition: str) -> Any:
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
            published = {name: family.means[name] for name in names if name in family.means}
            measure = family.measure or PERFORMANCE * (family is BENCHMARK_FAMILY)
            scores, notes = _MEASURES[measure](names, models, edition)
            yield FamilyMean(
                family.name,
                family.title,
                names,
                tuple(levels),
                names in sets,
                errors,
                family.reference,
                published,
                tuple(scores),
                tuple(notes),
            )


# --- scores of single families -------------------------------------------------------------------

_Found = tuple[list[FamilyScore], list[str]]


def _score_balanced_errors(names: Sequence[str], models: Sequence[ModelScores], edition: str) -> _Found:
    """Return BE and rBE, and the clean balanced error."""
    if edition not in MEDMNIST:
        return [], ["BE and rBE need the edition of the images, such as pathmnist, which is unknown"]
    if edition == _MULTI_LABEL:
        return [], [f"BE of {edition} needs a score for each label: metrics.multi_label_balanced_error"]
    alexnet = metrics.alexnet_balanced_errors(edition)
    stems = [name.rpartition(":")[2] for name in names]
    clean, be, rbe = list[float | None](), list[float | None](), list[float | None]()
    for model in models:
        labels = model.labels
        assert labels is not None
        found = {
            stem: [balance_mistakes(each, labels) for each in model.measured_mistakes(name)]
            for stem, name in zip(stems, names, strict=True)
        }
        be.append(metrics.mean_balanced_corruption_error(stems, found, alexnet))
        error = balance_mistakes(model.mistakes[CLEAN], labels) if CLEAN in model.mistakes else None
        clean.append(error)
        rbe.append(
            None
            if error is None
            else metrics.mean_relative_balanced_corruption_error(stems, found, error, alexnet)
        )
    return [
        FamilyScore("clean_balanced_error", "Clean bal.", tuple(clean)),
        FamilyScore("be", "BE", tuple(be)),
        FamilyScore("rbe", "rBE", tuple(rbe)),
    ], []


def _score_superclasses(names: Sequence[str], models: Sequence[ModelScores], edition: str) -> _Found:
    """Return the accuracy over sixteen superclasses, averaged over severities and distortions."""
    values = list[float | None]()
    for model in models:
        folders = [IMAGENET_C.variant(name, level).folder for name in names for level in IMAGENET_C.levels]
        wrong = [model.superclass_mistakes.get(folder) for folder in folders]
        values.append(
            1 - fmean(float(np.mean(each)) for each in wrong if each is not None)
            if all(each is not None and len(each) for each in wrong)
            else None
        )
    published = {name: value / 100 for name, value in metrics.published_accuracies().items()}
    if None in values:
        lacking = [model.model for model, value in zip(models, values, strict=True) if value is None]
        return [], [
            f"{', '.join(lacking)}: no accuracy over superclasses: it needs logits (predict --save logits) "
            "of ImageNet's 1000 classes, and images of the sixteen superclasses"
        ]
    note = "LAION-C: published accuracies are of its own images, which were chosen for the superclasses"
    title = "accuracy over 16 superclasses in %, among published ones"
    return [FamilyScore("superclass_accuracy", "16 classes", tuple(values), published, 1, title)], [note]


def _score_performance(names: Sequence[str], models: Sequence[ModelScores], edition: str) -> _Found:
    """Return mPC, and rPC of the models with clean clips."""
    errors = [{name: model.errors[name] for name in names} for model in models]
    mpc = tuple(map(metrics.mean_performance_under_corruption, errors))
    rpc = tuple(
        None
        if (clean := model.clean_error) in (None, 1)
        else metrics.relative_performance_under_corruption(own, clean)
        for model, own in zip(models, errors, strict=True)
    )
    published: Mapping[str, Mapping[str, float]] = {}
    base = edition.partition("@")[0]
    if base in CLIP_SETS:
        from robustgen.pixels.benchmarks.corruptions import FAMILIES

        # The published values are means over these corruptions.
        if {*names} == {*FAMILIES["video-c"].names()}:
            published = metrics.published_performance(base)
    rows = {key: {name: row[key] / 100 for name, row in published.items()} for key in ("mpc", "rpc")}
    return [
        FamilyScore(key, head, values, rows[key], 1, f"{head} in %, among published ones", on_demand=True)
        for key, head, values in (("mpc", "mPC", mpc), ("rpc", "rPC", rpc))
    ], []


_MULTI_LABEL: Final = "chestmnist"
_MEASURES: Final[Mapping[str, Callable[[Sequence[str], Sequence[ModelScores], str], _Found]]] = {
    "": lambda names, models, edition: ([], []),
    BALANCED_ERRORS: _score_balanced_errors,
    SUPERCLASS_ACCURACY: _score_superclasses,
    PERFORMANCE: _score_performance,
}
"""The measures that families name."""
