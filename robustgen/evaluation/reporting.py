"""Models side by side: the tables of the papers.

What is divided by a baseline and what is not stand in separate tables, each of which says so. Tables for
people show per cent; CSV and JSON hold fractions.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from robustgen import metrics
from robustgen.benchmark import Kind
from robustgen.display.text import format_csv
from robustgen.evaluation.baselines import Baseline
from robustgen.evaluation.measures import Measure, measures
from robustgen.evaluation.results import Scores
from robustgen.evaluation.tables import LAYOUTS, Cell, ScoreTable

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

    def mean(self, measure: Measure, model: Scores) -> float | None:
        """Mean over `averaged`."""
        names = self.averaged(measure)
        return measure.average(model, names) if names else None

    def render(self, layout: str) -> str:
        """The report as one of `LAYOUTS`, as csv or as json."""
        if layout == "json":
            return json.dumps(self.as_dict(), indent=1)
        if layout == "csv":
            return format_csv(self._records())
        return LAYOUTS[layout]([self._table(measure) for measure in self.measures()])

    def _table(self, measure: Measure) -> ScoreTable:
        names, used = self._names(measure), self.averaged(measure)
        whole = len(used) == len(COMMON[self.kind])
        mean = measure.mean if whole else f"Mean of {len(used)}"
        clean = self.kind == "c"
        rows = []
        for model, values in zip(self.models, measure.values, strict=True):
            # The clean error is a plain error, in per cent, in whichever table.
            first: list[Cell] = [model.clean_error] if clean else []
            cells = [self.mean(measure, model), *(values.get(name) for name in names)]
            rows.append((model.model, (*first, *cells)))
        heads = tuple(_HEADS.get(name, name) for name in names)
        lead = ("Error", mean) if clean else (mean,)
        title = measure.title if whole else f"{measure.title} (incomplete: no {measure.mean})"
        groups = (("", len(lead)), *self._groups(names))
        return ScoreTable(title, (*lead, *heads), groups, tuple(rows), measure.factor, measure.digits)

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
                "mean": self.mean(measure, model),
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
                "mean": self.mean(measure, model),
                "mean_over": list(self.averaged(measure)),
                "values": measure.values[i],
            }
            for measure in made
        }
        return own
