"""A `Comparison` as text, JSON, CSV, and as a page with charts and pictures."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from robustgen.compare.comparison import ArmResult, Comparison, OperationResult
from robustgen.compare.equivalence import ALPHA, METRICS, Effect, Metric, as_dict
from robustgen.compare.pairing import Name, Side
from robustgen.datasets import noun
from robustgen.display import html
from robustgen.display.text import format_count, format_csv
from robustgen.errors import RobustgenError
from robustgen.imaging.pixels import Rgb

_LINES: Final = 10
_NAMED: Final = 3
_PAIRS_SHOWN: Final = 2
_LOUDER: Final = 4


# --- what all layouts say ------------------------------------------------------------------------


def _sides(comparison: Comparison) -> Iterator[tuple[Name, Side]]:
    yield "A", comparison.a
    yield "B", comparison.b


def _origin(side: Side) -> str:
    """What `dataset.json` says of a set, in a few words."""
    about = side.dataset.about
    if not about:
        return "without dataset.json"
    seed = about.get("config", {}).get("seed")
    known = (about.get("kind"), about.get("edition"), None if seed is None else f"seed {seed}")
    return ", ".join(str(each) for each in known if each is not None)


def _images(comparison: Comparison) -> str:
    counts = [len(arm.pairs) for arm in comparison.arms]
    images = format_count(max(counts), noun(comparison.kind).removesuffix("s"))
    span = images if min(counts) == max(counts) else f"{min(counts)} to {images}"
    return f"{span} of each arm, chosen with seed {comparison.choice.seed}"


def _tests(comparison: Comparison) -> int:
    pooled = sum(len(operation.pooled) for operation in comparison.operations)
    return 2 * (pooled + sum(len(arm.effects) for arm in comparison.arms))


def _known(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else "-"


# --- text ----------------------------------------------------------------------------------------


def as_text(comparison: Comparison) -> str:
    """A line for each corruption or perturbation, and the answer."""
    lines = [f"{name}  {html.plain(side.root)} ({_origin(side)})" for name, side in _sides(comparison)]
    lines += [_images(comparison), *comparison.notes, "", *_table(comparison), ""]
    lines += _troubles(comparison)
    return "\n".join([*lines, comparison.sentence])


def _table(comparison: Comparison) -> list[str]:
    metrics = [each for each in METRICS if any(o.overall(each.key) for o in comparison.operations)]
    head = ["", "verdict", "equal", "pixels", *(f"{each.title} {each.unit}".strip() for each in metrics)]
    rows = [head] + [_row(each, metrics) for each in comparison.operations]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row, operation in zip(rows, [None, *comparison.operations], strict=True):
        cells = [row[0].ljust(widths[0]), row[1].ljust(widths[1])]
        cells += [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        lines.append("  ".join(cells).rstrip())
        lines += [f"  {operation.reason}"] if operation and operation.reason else []
    legend = "B - A, mean over the levels; in brackets the smallest difference that would have been found"
    return lines + ([f"({legend})"] if metrics else [])


def _row(operation: OperationResult, metrics: Sequence[Metric]) -> list[str]:
    pairs = sum(len(arm.pairs) for arm in operation.arms)
    equal = f"{sum(arm.equal for arm in operation.arms)}/{pairs}"
    offset, spread = _pixels(operation)
    cells = [_cell(operation.overall(each.key), each) for each in metrics]
    return [operation.name, operation.verdict, equal, f"{offset} ± {spread}", *cells]


def _pixels(operation: OperationResult) -> tuple[str, str]:
    offsets = [arm.offset for arm in operation.arms if arm.pairs]
    spreads = [arm.spread for arm in operation.arms if arm.pairs]
    return _known(_mean(offsets), "+.2f"), _known(_mean(spreads), ".1f")


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _cell(effect: Effect | None, metric: Metric) -> str:
    if effect is None:
        return "-"
    return f"{effect.difference:+.{metric.digits}f} ({effect.detectable:.{metric.digits}f})"


def _troubles(comparison: Comparison) -> list[str]:
    """Which images are missing or cannot be used, a line for each arm: the first few."""
    lines = [f"{each.side}: {each.folder}/{each.key!r}: {each.reason}" for each in comparison.problems]
    for arm in comparison.arms:
        lines += [
            f"{side} lacks {_some(keys)} of {arm.arm.folder}" for side, keys in arm.missing.items() if keys
        ]
    rest = len(lines) - _LINES
    return lines[:_LINES] + ([f"and {rest} more such lines (--format json names all)"] if rest > 0 else [])


def _some(keys: Sequence[str]) -> str:
    named = ", ".join(map(repr, keys[:_NAMED]))
    return f"{named} and {len(keys) - _NAMED} more" if len(keys) > _NAMED else named


# --- JSON and CSV --------------------------------------------------------------------------------


def as_json(comparison: Comparison) -> str:
    """All there is, severity by severity."""
    return json.dumps(_plain(as_dictionary(comparison)), indent=1, ensure_ascii=True)


def as_dictionary(comparison: Comparison) -> dict[str, Any]:
    """All there is, for JSON; what is not a number is NaN."""
    return {
        "equivalent": comparison.equivalent,
        "sentence": comparison.sentence,
        "kind": comparison.kind,
        **{
            name.lower(): {"root": str(side.root), "about": _origin(side)}
            for name, side in _sides(comparison)
        },
        "sample": comparison.choice.sample,
        "seed": comparison.choice.seed,
        "alpha": ALPHA,
        "correction": "Holm",
        "tests": _tests(comparison),
        "notes": list(comparison.notes),
        "only": {side.lower(): list(folders) for side, folders in comparison.only.items()},
        "problems": [vars(each) for each in comparison.problems],
        "operations": [_operation(each) for each in comparison.operations],
    }


def _operation(operation: OperationResult) -> dict[str, Any]:
    return {
        "name": operation.name,
        "verdict": operation.verdict,
        "reason": operation.reason,
        "pooled": [as_dict(each) for each in operation.pooled],
        "arms": [_arm(arm) for arm in operation.arms],
    }


def _arm(arm: ArmResult) -> dict[str, Any]:
    measured = {
        metric.key: {side: arm.quantiles(place, i) for i, side in enumerate("ab")}
        for place, metric in enumerate(METRICS)
    }
    return {
        "arm": arm.arm.folder,
        "verdict": arm.verdict,
        "pairs": len(arm.pairs),
        "equal": arm.equal,
        "pixel_difference_mean": arm.offset,
        "pixel_difference_std": arm.spread,
        "quantiles_10_50_90": measured,
        "effects": [as_dict(each) for each in arm.effects],
        "missing": {side.lower(): list(keys) for side, keys in arm.missing.items()},
    }


def _plain(value: Any) -> Any:
    """`value` without NaN and infinity, which JSON does not know."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_csv(comparison: Comparison) -> str:
    """A line for each arm and metric."""
    return format_csv([record for arm in comparison.arms for record in _records(comparison, arm)])


def _records(comparison: Comparison, arm: ArmResult) -> list[dict[str, Any]]:
    """The lines of `arm`: one a metric, or a single one where there is none."""
    names = ["images", "mean_a", "mean_b", "difference", "error", "ks", "p_paired", "p_ks", "detectable"]
    about = ["arm", "verdict", "pairs", "equal", "pixel_difference_mean", "pixel_difference_std"]
    plain = _arm(arm)
    missing = {f"missing_{side.lower()}": len(arm.missing.get(side, ())) for side, _ in _sides(comparison)}
    start = {name: plain[name] for name in about} | missing
    effects = [as_dict(effect) for effect in arm.effects] or [{}]
    return [start | {name: effect.get(name, "") for name in ("metric", *names)} for effect in effects]


# --- the page ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chart:
    """One metric over the levels, in both sets: what the template draws.

    Attributes
    ----------
    title : str
    ticks : list of (float, str)
        Height and label.
    marks : list of (float, str)
        Place and label of the levels.
    series : list of dict
        Of A and B: `band` and `line`, as SVG has them, and `points`: x and the y of three quantiles.
    """

    title: str
    ticks: list[tuple[float, str]]
    marks: list[tuple[float, str]]
    series: list[dict[str, Any]]


_LEFT, _RIGHT, _TOP, _BOTTOM = 42.0, 232.0, 8.0, 108.0


def _chart(operation: OperationResult, place: int) -> Chart | None:
    """The chart of one metric; None where it was not measured in each level."""
    found = [[arm.quantiles(place, side) for arm in operation.arms] for side in (0, 1)]
    rows = [[each for each in side if each] for side in found]
    if any(len(side) < len(operation.arms) for side in rows):
        return None
    values = np.array(rows)
    low, high = float(values.min()), float(values.max())
    margin = (high - low or abs(high) or 1.0) * 0.08
    low, high = low - margin, high + margin

    def height(value: float) -> float:
        return round(_BOTTOM - (value - low) / (high - low) * (_BOTTOM - _TOP), 1)

    xs = [round(x, 1) for x in np.linspace(_LEFT + 14, _RIGHT - 14, max(len(operation.arms), 2))]
    xs = xs if len(operation.arms) > 1 else [(_LEFT + _RIGHT) / 2]
    metric = METRICS[place]
    unit = f" ({'kB' if metric.relative else metric.unit})" if metric.unit else ""
    ticks = [(height(v), _tick(v, metric)) for v in np.linspace(low + margin, high - margin, 3)]
    marks = [(x, str(arm.arm.level or "")) for x, arm in zip(xs, operation.arms, strict=True)]
    series = [_series(side, xs, height, 3 * i - 1.5) for i, side in enumerate(rows)]
    return Chart(f"{metric.title}{unit}", ticks, marks, series)


def _tick(value: float, metric: Metric) -> str:
    value = value / 1000 if metric.relative else value
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _series(
    rows: Sequence[Sequence[float]], xs: Sequence[float], height: Any, aside: float
) -> dict[str, Any]:
    """The line of the medians, and whiskers from the 10th to the 90th percentile a little `aside`."""
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


def as_page(comparison: Comparison) -> bytes:
    """A self-contained HTML page."""
    return html.render(
        "compare.html",
        comparison=comparison,
        sides=[(name, side.root, _origin(side)) for name, side in _sides(comparison)],
        images=_images(comparison),
        tests=_tests(comparison),
        alpha=ALPHA,
        metrics=METRICS,
        rows=[(each, _row(each, METRICS)[2:]) for each in comparison.operations],
        troubles=_troubles(comparison),
        sections=[
            _section(comparison, each) for each in comparison.operations if each.verdict != "identical"
        ],
    )


def _section(comparison: Comparison, operation: OperationResult) -> dict[str, Any]:
    charts = [_chart(operation, place) for place in range(len(METRICS))]
    effects = [("mean", operation.pooled)] * bool(operation.pooled)
    effects += [(str(arm.arm.level or "-"), arm.effects) for arm in operation.arms]
    return {
        "operation": operation,
        "charts": [chart for chart in charts if chart],
        "effects": effects,
        "pictures": _pictures(comparison, operation) if operation.verdict == "differs" else [],
    }


def _pictures(comparison: Comparison, operation: OperationResult) -> list[dict[str, Any]]:
    """A few images of the arm that differs most surely, in A, in B, and what lies between."""
    arms = [arm for arm in operation.arms if arm.pairs and arm.effects]
    arm = min(arms, key=lambda each: min(effect.p for effect in each.effects))
    unequal = sorted((pair for pair in arm.pairs if not pair.equal), key=lambda pair: pair.spread)
    middle = max(0, (len(unequal) - _PAIRS_SHOWN) // 2)
    keys = [pair.key for pair in unequal[middle : middle + _PAIRS_SHOWN]]
    return [each for key in keys if (each := _picture(comparison, arm.arm.folder, key))]


def _picture(comparison: Comparison, folder: str, key: str) -> dict[str, Any] | None:
    try:
        a, b = (_still(side.load(folder, key)) for _, side in _sides(comparison))
    except RobustgenError:  # It was readable a moment ago; the page does without.
        return None
    between = np.clip(128 + _LOUDER * (b.astype(np.int16) - a), 0, 255).astype(np.uint8)
    return {"name": f"{folder}/{key}", "a": a, "b": b, "between": between, "louder": _LOUDER}


def _still(pixels: Any) -> Rgb:
    still: Rgb = pixels[len(pixels) // 2] if pixels.ndim == 4 else pixels
    return np.ascontiguousarray(still)
