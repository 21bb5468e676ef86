"""A `Comparison` as text, JSON and CSV."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from robustgen.display.text import escape, format_count, format_csv, format_json
from robustgen.formats import name_contents
from robustgen.inspection.compare.equivalence import ALPHA, METRICS, Metric, describe_effect
from robustgen.inspection.compare.pairing import Name, Side
from robustgen.inspection.compare.results import ArmResult, Comparison, OperationResult

_LINES: Final = 10
_NAMED: Final = 3
_CSV_ABOUT: Final = ("arm", "verdict", "pairs", "equal", "pixel_difference_mean", "pixel_difference_std")
_CSV_EFFECT: Final = (
    *("images", "mean_a", "mean_b", "difference", "error"),
    *("ks", "p_paired", "p_ks", "margin", "p_margin", "detectable"),
)


def list_sides(comparison: Comparison) -> Iterator[tuple[Name, Side]]:
    """Yield both sets with their names, A first."""
    yield "A", comparison.a
    yield "B", comparison.b


def describe_origin(side: Side) -> str:
    """Return the description of a set in `dataset.json`, in a few words."""
    about = side.dataset.about
    if not about:
        return "without dataset.json"
    seed, settings = about.get("config", {}).get("seed"), about.get("settings", {})
    output = settings.get("output", {})
    is_jpeg = "libjpeg" in output.get("sample", output)
    known = (
        about.get("kind"),
        about.get("edition"),
        None if seed is None else f"seed {seed}",
        settings.get("versions", {}).get("libjpeg") if is_jpeg else None,
    )
    return ", ".join(str(each) for each in known if each is not None)


def describe_images(comparison: Comparison) -> str:
    """Return the number of compared images, and the seed that chose them."""
    counts = [len(arm.pairs) for arm in comparison.arms]
    images = format_count(max(counts), name_contents(comparison.kind).removesuffix("s"))
    span = images if min(counts) == max(counts) else f"{min(counts)} to {images}"
    return f"{span} of each, chosen with seed {comparison.scope.seed}"


def count_tests(comparison: Comparison) -> int:
    """Return the number of tests for which the p-values are corrected."""
    pooled = sum(len(operation.pooled) for operation in comparison.operations)
    return 2 * (pooled + sum(len(arm.effects) for arm in comparison.arms))


def _format_known(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else "-"


def format_comparison(comparison: Comparison, layout: str) -> str:
    """Return `comparison` as ``table``, ``json`` or ``csv``."""
    layouts = {"table": _as_text, "json": _as_json, "csv": _as_csv}
    return layouts[layout](comparison)


def _as_text(comparison: Comparison) -> str:
    """Return a line for each corruption or perturbation, and the conclusion."""
    lines = [
        f"{name}  {escape(side.root)} ({describe_origin(side)})" for name, side in list_sides(comparison)
    ]
    lines += [describe_images(comparison), *comparison.notes, "", *_table(comparison), ""]
    lines += list_troubles(comparison)
    return "\n".join([*lines, comparison.sentence])


def _table(comparison: Comparison) -> list[str]:
    metrics = [each for each in METRICS if any(o.overall(each.key) for o in comparison.operations)]
    head = ["", "verdict", "equal", "pixels", *(f"{each.title} {each.unit}".strip() for each in metrics)]
    rows = [head] + [list_cells(each, metrics) for each in comparison.operations]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row, operation in zip(rows, [None, *comparison.operations], strict=True):
        cells = [row[0].ljust(widths[0]), row[1].ljust(widths[1])]
        cells += [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        lines.append("  ".join(cells).rstrip())
        lines += [f"  {operation.reason}"] if operation and operation.reason else []
    legend = "B - A, mean over the severities; in brackets the smallest difference that would be detected"
    return lines + ([f"({legend})"] if metrics else [])


def list_cells(operation: OperationResult, metrics: Sequence[Metric]) -> list[str]:
    """Return a row of the table: name, verdict, equal images, pixels, and a cell for each of `metrics`."""
    pairs = sum(len(arm.pairs) for arm in operation.arms)
    equal = f"{sum(arm.equal for arm in operation.arms)}/{pairs}"
    offset, spread = _pixels(operation)
    overall = [(operation.overall(each.key), f".{each.digits}f") for each in metrics]
    cells = [f"{e.difference:+{digits}} ({e.detectable:{digits}})" if e else "-" for e, digits in overall]
    return [operation.name, operation.verdict, equal, f"{offset} ± {spread}", *cells]


def _pixels(operation: OperationResult) -> tuple[str, str]:
    offsets = [arm.offset for arm in operation.arms if arm.pairs]
    spreads = [arm.spread for arm in operation.arms if arm.pairs]
    return _format_known(_mean(offsets), "+.2f"), _format_known(_mean(spreads), ".1f")


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def list_troubles(comparison: Comparison) -> list[str]:
    """Return the first few lines about missing or unusable images, one for each variant."""
    lines = [f"{each.side}: {each.folder}/{each.key!r}: {each.reason}" for each in comparison.problems]
    for arm in comparison.arms:
        for side, keys in arm.missing.items():
            more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
            named = ", ".join(map(repr, keys[:_NAMED])) + more
            lines += [f"{side} lacks {named} of {arm.arm.folder}"] if keys else []
    rest = len(lines) - _LINES
    return lines[:_LINES] + ([f"and {rest} more such lines (--format json names all)"] if rest > 0 else [])


def _as_json(comparison: Comparison) -> str:
    """Return all values by severity, as JSON."""
    return format_json(describe_comparison(comparison))


def describe_comparison(comparison: Comparison) -> dict[str, Any]:
    """Return all values, for JSON; missing numbers are NaN."""
    return {
        "equivalent": comparison.equivalent,
        "sentence": comparison.sentence,
        "kind": comparison.kind,
        **{
            name.lower(): {"root": str(side.root), "about": describe_origin(side)}
            for name, side in list_sides(comparison)
        },
        "sample": comparison.scope.sample,
        "seed": comparison.scope.seed,
        "alpha": ALPHA,
        "correction": "Holm",
        "tests": count_tests(comparison),
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
        "pooled": [describe_effect(each) for each in operation.pooled],
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
        "effects": [describe_effect(each) for each in arm.effects],
        "missing": {side.lower(): list(keys) for side, keys in arm.missing.items()},
    }


def _as_csv(comparison: Comparison) -> str:
    """Return a line for each arm and metric."""
    return format_csv([row for arm in comparison.arms for row in _csv_rows(arm)])


def _csv_rows(arm: ArmResult) -> list[dict[str, Any]]:
    """Return one row per metric, or one without a metric if there is no effect."""
    plain = _arm(arm)
    about = {name: plain[name] for name in _CSV_ABOUT}
    missing = {f"missing_{side.lower()}": len(arm.missing.get(side, ())) for side in ("A", "B")}
    effects = plain["effects"] or [dict.fromkeys(("metric", *_CSV_EFFECT), "")]
    names = ("metric", *_CSV_EFFECT)
    return [{**about, **missing, **{name: effect[name] for name in names}} for effect in effects]
