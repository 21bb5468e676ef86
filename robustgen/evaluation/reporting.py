"""Models side by side: the measures that their results allow, and the tables of the papers.

What is divided by a baseline and what is not stand in separate tables, each of which says so. Tables for
people show per cent; CSV and JSON hold fractions.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from robustgen import metrics
from robustgen.benchmark import Kind
from robustgen.evaluation.baselines import Baseline
from robustgen.evaluation.results import Scores
from robustgen.evaluation.tables import LAYOUTS, Cell, Table, as_csv

# Heads as the papers print them, and the categories above.
_HEADS: Final = {
    **{"gaussian_noise": "Gauss.", "shot_noise": "Shot", "impulse_noise": "Impulse"},
    **{"speckle_noise": "Speckle", "defocus_blur": "Defocus", "glass_blur": "Glass"},
    **{"motion_blur": "Motion", "zoom_blur": "Zoom", "gaussian_blur": "Gauss. blur"},
    **{"snow": "Snow", "frost": "Frost", "fog": "Fog", "brightness": "Bright", "spatter": "Spatter"},
    **{"contrast": "Contrast", "elastic_transform": "Elastic", "pixelate": "Pixel"},
    **{"jpeg_compression": "JPEG", "saturate": "Saturate", "translate": "Translate"},
    **{"rotate": "Rotate", "tilt": "Tilt", "scale": "Scale", "shear": "Shear"},
}
CATEGORIES: Final[Mapping[Kind, Mapping[str, int]]] = {
    "c": {"Noise": 3, "Blur": 4, "Weather": 4, "Digital": 4},
    "p": {"Noise": 2, "Blur": 2, "Weather": 2, "Digital": 4},
}
"""How many of the common operations, in their order, belong to each category."""
COMMON: Final[Mapping[Kind, tuple[str, ...]]] = {
    "c": metrics.COMMON_CORRUPTIONS,
    "p": metrics.COMMON_PERTURBATIONS,
}
"""The operations that the means go over."""


# --- measures --------------------------------------------------------------------------------------


@dataclass(frozen=True)
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
    baseline : str or None
        What it is divided by.
    factor, digits
        As for `Table`.
    """

    key: str
    title: str
    mean: str
    values: tuple[dict[str, float], ...]
    baseline: str | None = None
    factor: float = 100
    digits: int = 1


def measures(models: Sequence[Scores], baseline: Baseline | None) -> list[Measure]:
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
    **more: Any,
) -> Measure:
    scored = tuple({name: score(model, name, v) for name, v in values(model).items()} for model in models)
    return Measure(*texts, scored, **more)


def _corruption_measures(models: Sequence[Scores], baseline: Baseline) -> list[Measure]:
    normalised = _measure(
        models,
        ("corruption_error", f"Corruption error (CE) in %, normalised by {baseline.name}", "mCE"),
        lambda m: _known(m.errors, baseline.errors),
        lambda _, name, errors: metrics.corruption_error(name, errors, baseline.errors),
        baseline=baseline.name,
    )
    plain = _measure(
        models,
        ("error", "Top-1 error in %, mean over severities, unnormalised", "Mean"),
        lambda m: m.errors,
        lambda _, name, errors: metrics.unnormalised_corruption_error(errors),
    )
    return [normalised, plain, *_clean_measures(models, baseline)]


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
        baseline=baseline.name,
    )
    area = _measure(
        models,
        ("area_under_distortion_error", "Area under the error curve (AUDE) in %, unnormalised", "mAUDE"),
        lambda m: {} if m.clean_error is None else m.errors,
        lambda m, _, errors: metrics.area_under_distortion_error(m.clean_error or 0, errors),
    )
    return [relative, area]


def _known(values: Mapping[str, Any], baseline: Mapping[str, Any]) -> dict[str, Any]:
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


def _perturbation_measures(models: Sequence[Scores], baseline: Baseline) -> list[Measure]:
    return [*_flip_measures(models, baseline), *_distance_measures(models, baseline)]


def _flip_measures(models: Sequence[Scores], baseline: Baseline) -> list[Measure]:
    rates = baseline.flip_probabilities
    normalised = _measure(
        models,
        ("flip_rate", f"Flip rate (FR) in %, normalised by {baseline.name}", "mFR"),
        lambda m: _known(m.flip_probabilities, rates),
        lambda _, name, value: metrics.flip_rate(name, value, rates),
        baseline=baseline.name,
    )
    texts = ("flip_probability", "Flip probability (FP) in %, unnormalised", "mFP")
    return [normalised, _measure(models, texts, lambda m: m.flip_probabilities, _as_it_is)]


def _distance_measures(models: Sequence[Scores], baseline: Baseline) -> list[Measure]:
    own = baseline.top5_distances
    normalised = _measure(
        models,
        ("standardised_top5_distance", f"Top-5 distance (T5D) in %, normalised by {baseline.name}", "mT5D"),
        lambda m: _known(m.top5_distances, own),
        lambda _, name, value: metrics.standardised_top5_distance(name, value, own),
        baseline=baseline.name,
    )
    texts = ("top5_distance", "Top-5 distance (uT5D), 0 to 15, unnormalised", "muT5D")
    return [normalised, _measure(models, texts, lambda m: m.top5_distances, _as_it_is, factor=1, digits=2)]


def _as_it_is(_: Scores, name: str, value: float) -> float:
    return value


# --- tables ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """Models side by side.

    Attributes
    ----------
    models : list of Scores
    baseline : Baseline or None
    difficulty : int
    notes : list of str
        What a reader of the tables has to know.
    """

    models: list[Scores]
    baseline: Baseline | None
    difficulty: int
    notes: list[str]

    @property
    def kind(self) -> Kind:
        """Whether of C or of P sets."""
        return self.models[0].kind

    def measures(self) -> list[Measure]:
        """As the function of this name."""
        return measures(self.models, self.baseline)

    def averaged(self, measure: Measure) -> tuple[str, ...]:
        """The common operations that every model has: those that the means go over."""
        return tuple(name for name in COMMON[self.kind] if all(name in row for row in measure.values))

    def mean(self, measure: Measure, row: Mapping[str, float]) -> float | None:
        """Mean over `averaged`."""
        names = self.averaged(measure)
        return fmean(row[name] for name in names) if names else None

    def rendered(self, layout: str) -> str:
        """The report as one of `LAYOUTS`, as csv or as json."""
        if layout == "json":
            return json.dumps(self.as_dict(), indent=1)
        if layout == "csv":
            return as_csv(self._records())
        return LAYOUTS[layout]([self._table(measure) for measure in self.measures()])

    def _table(self, measure: Measure) -> Table:
        names, used = self._names(measure), self.averaged(measure)
        whole = len(used) == len(COMMON[self.kind])
        mean = measure.mean if whole else f"Mean of {len(used)}"
        clean = self.kind == "c"
        rows = []
        for model, values in zip(self.models, measure.values, strict=True):
            # The clean error is a plain error, in per cent, in whichever table.
            first: list[Cell] = [model.clean_error] if clean else []
            cells = [self.mean(measure, values), *(values.get(name) for name in names)]
            rows.append((model.model, (*first, *cells)))
        heads = tuple(_HEADS.get(name, name) for name in names)
        lead = ("Error", mean) if clean else (mean,)
        title = measure.title if whole else f"{measure.title} (incomplete: no {measure.mean})"
        groups = (("", len(lead)), *self._groups(names))
        return Table(title, (*lead, *heads), groups, tuple(rows), measure.factor, measure.digits)

    def _names(self, measure: Measure) -> list[str]:
        """The common operations, and others that some model has."""
        common = COMMON[self.kind]
        extra = metrics.EXTRA_CORRUPTIONS if self.kind == "c" else metrics.EXTRA_PERTURBATIONS
        there = {name for row in measure.values for name in row}
        return [*common, *(n for n in extra if n in there), *sorted(there - {*common, *extra})]

    def _groups(self, names: Sequence[str]) -> list[tuple[str, int]]:
        others = len(names) - len(COMMON[self.kind])
        return [*CATEGORIES[self.kind].items(), *([("In no mean", others)] if others else [])]

    def _records(self) -> list[dict[str, object]]:
        """Rows of the CSV: all have the same columns."""
        made, extra = self.measures(), {"c": "clean_error", "p": "difficulty"}[self.kind]
        columns = dict.fromkeys(name for measure in made for name in self._names(measure))
        return [
            {
                "model": model.model,
                "measure": measure.key,
                "normalised_by": measure.baseline or "",
                extra: model.clean_error if self.kind == "c" else self.difficulty,
                "mean": self.mean(measure, row),
                "mean_over": len(self.averaged(measure)),
                **{name: row.get(name) for name in columns},
            }
            for measure in made
            for model, row in zip(self.models, measure.values, strict=True)
        ]

    def as_dict(self) -> dict[str, Any]:
        """All values, for JSON; what it says of one model serves as a baseline."""
        made = self.measures()
        return {
            "kind": "ImageNet-C" if self.kind == "c" else "ImageNet-P",
            "baseline": self.baseline.name if self.baseline else None,
            **({"difficulty": self.difficulty} if self.kind == "p" else {}),
            "models": [self._model(i, made) for i in range(len(self.models))],
        }

    def _model(self, i: int, made: Sequence[Measure]) -> dict[str, Any]:
        model = self.models[i]
        own: dict[str, Any] = {"model": model.model, "count": model.count, "missing": list(model.missing)}
        if self.kind == "c":
            own |= {"clean_error": model.clean_error, "errors": model.errors}
        else:
            own |= {"flip_probabilities": model.flip_probabilities, "top5_distances": model.top5_distances}
        own["measures"] = {
            measure.key: {
                "normalised_by": measure.baseline,
                "mean": self.mean(measure, measure.values[i]),
                "mean_over": list(self.averaged(measure)),
                "values": measure.values[i],
            }
            for measure in made
        }
        return own
