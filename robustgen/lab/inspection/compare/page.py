"""A `Comparison` as a page with charts and pictures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from robustgen.display import html
from robustgen.errors import RobustgenError
from robustgen.lab.inspection.compare.equivalence import ALPHA, METRICS
from robustgen.lab.inspection.compare.layouts import (
    count_tests,
    describe_images,
    describe_origin,
    list_cells,
    list_sides,
    list_troubles,
)
from robustgen.lab.inspection.compare.results import Comparison, OperationResult
from robustgen.pixels.benchmarks.kinds import BENCHMARKS
from robustgen.sets.dataset.manifest import hide_paths

_PAIRS_SHOWN: Final = 2
_LOUDER: Final = 4


@dataclass(frozen=True)
class MetricChart:
    """Chart of one metric over the levels, in both sets, for the template.

    Attributes
    ----------
    title : str
    ticks : list of (float, str)
        Height and label.
    marks : list of (float, str)
        Position and label of the levels.
    series : list of dict
        For A and B: `band` and `line`, in SVG notation, and `points`: x and the y of three quantiles.
    """

    title: str
    ticks: list[tuple[float, str]]
    marks: list[tuple[float, str]]
    series: list[dict[str, Any]]


_LEFT, _RIGHT, _TOP, _BOTTOM = 42.0, 232.0, 8.0, 108.0


def _chart(operation: OperationResult, index: int) -> MetricChart | None:
    """Return the chart of one metric; None if it was not measured at each level."""
    found = [[variant.quantiles(index, side) for variant in operation.variants] for side in (0, 1)]
    rows = [[each for each in side if each] for side in found]
    if any(len(side) < len(operation.variants) for side in rows):
        return None
    values = np.array(rows)
    low, high = float(values.min()), float(values.max())
    margin = (high - low or abs(high) or 1.0) * 0.08
    low, high = low - margin, high + margin

    def height(value: float) -> float:
        return round(_BOTTOM - (value - low) / (high - low) * (_BOTTOM - _TOP), 1)

    xs = [round(x, 1) for x in np.linspace(_LEFT + 14, _RIGHT - 14, max(len(operation.variants), 2))]
    xs = xs if len(operation.variants) > 1 else [(_LEFT + _RIGHT) / 2]
    metric = METRICS[index]
    unit = f" ({'kB' if metric.relative else metric.unit})" if metric.unit else ""
    values = np.linspace(low + margin, high - margin, 3)
    shown = values / 1000 if metric.relative else values
    ticks = [
        (height(v), f"{s:.3g}" if abs(s) < 1000 else f"{s:.0f}") for v, s in zip(values, shown, strict=True)
    ]
    marks = [(x, str(variant.variant.level or "")) for x, variant in zip(xs, operation.variants, strict=True)]
    series = [_series(side, xs, height, 3 * i - 1.5) for i, side in enumerate(rows)]
    return MetricChart(f"{metric.title}{unit}", ticks, marks, series)


def _series(
    rows: Sequence[Sequence[float]], xs: Sequence[float], height: Any, aside: float
) -> dict[str, Any]:
    """Return the line of medians, and whiskers from the 10th to the 90th percentile, shifted by `aside`."""
    points = [
        (x + aside, height(low), height(middle), height(high))
        for x, (low, middle, high) in zip(xs, rows, strict=True)
    ]
    upper, lower = [f"{x},{top}" for x, _, _, top in points], [f"{x},{bottom}" for x, bottom, _, _ in points]
    return {
        "line": " ".join(f"{x},{middle}" for x, _, middle, _ in points),
        "band": " ".join(upper + lower[::-1]),
        "points": points,
    }


def render_comparison(comparison: Comparison) -> bytes:
    """Return a self-contained HTML page."""
    return html.render_page(
        "compare.html",
        comparison=comparison,
        sides=[
            (name, hide_paths(str(side.root)), describe_origin(side)) for name, side in list_sides(comparison)
        ],
        images=describe_images(comparison),
        tests=count_tests(comparison),
        alpha=ALPHA,
        axis=BENCHMARKS[comparison.kind].level,
        metrics=METRICS,
        rows=[
            (each, list_cells(each, METRICS)[2:])
            for each in comparison.operations
            if each.verdict != "identical"
        ],
        same=[each.name for each in comparison.operations if each.verdict == "identical"],
        troubles=list_troubles(comparison),
        sections=[
            _section(comparison, each) for each in comparison.operations if each.verdict != "identical"
        ],
    )


def _section(comparison: Comparison, operation: OperationResult) -> dict[str, Any]:
    charts = [_chart(operation, index) for index in range(len(METRICS))]
    effects = [("mean", operation.pooled)] * bool(operation.pooled)
    effects += [(str(variant.variant.level or "-"), variant.effects) for variant in operation.variants]
    return {
        "operation": operation,
        "charts": [chart for chart in charts if chart],
        "effects": effects,
        "pictures": _pictures(comparison, operation) if operation.verdict == "different" else [],
    }


def _pictures(comparison: Comparison, operation: OperationResult) -> list[dict[str, Any]]:
    """Return a few images of the variant with the most certain difference: in A, in B, and the difference."""
    variants = [variant for variant in operation.variants if variant.pairs and variant.effects]
    variant = min(variants, key=lambda each: min(effect.p for effect in each.effects))
    unequal = sorted((pair for pair in variant.pairs if not pair.equal), key=lambda pair: pair.spread)
    middle = max(0, (len(unequal) - _PAIRS_SHOWN) // 2)
    keys = [pair.key for pair in unequal[middle : middle + _PAIRS_SHOWN]]
    return [each for key in keys if (each := _picture(comparison, variant.variant.folder, key))]


def _picture(comparison: Comparison, folder: str, key: str) -> dict[str, Any] | None:
    try:
        pixels = [side.source(folder).load(key) for _, side in list_sides(comparison)]
    except RobustgenError:  # Readable before; the page omits it.
        return None
    a, b = (np.ascontiguousarray(each[len(each) // 2] if each.ndim == 4 else each) for each in pixels)
    between = np.clip(128 + _LOUDER * (b.astype(np.int16) - a), 0, 255).astype(np.uint8)
    return {"name": f"{folder}/{key}", "a": a, "b": b, "between": between, "louder": _LOUDER}
