"""A `Comparison` as text, JSON, and as a page with charts and pictures."""

from collections.abc import Container, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

import numpy as np

from robustgen.display import html
from robustgen.display.charts import Curve
from robustgen.display.text import (
    Table,
    escape,
    format_constant,
    format_count,
    format_json,
    format_signed,
    format_tables,
)
from robustgen.errors import RobustgenError
from robustgen.files.ledger import Differences, find_differences
from robustgen.lab.inspection.compare.equivalence import ALPHA, METRICS, Metric, describe_effect
from robustgen.lab.inspection.compare.results import (
    Comparison,
    Name,
    OperationResult,
    Side,
    VariantResult,
    shorten_folders,
)
from robustgen.pixels.benchmarks.kinds import BENCHMARKS
from robustgen.pixels.imaging.frames import stills
from robustgen.sets.dataset.manifest import hide_paths

_LINES: Final = 10
_SETTINGS: Final = 6
_NAMED: Final = 3


def list_sides(comparison: Comparison) -> Iterator[tuple[Name, Side]]:
    """Yield both sets with their names, A first."""
    yield "A", comparison.a
    yield "B", comparison.b


def describe_origin(side: Side) -> str:
    """Return the description of a set in `dataset.json`, in a few words."""
    manifest = side.written.manifest
    if not manifest:
        return "without dataset.json"
    seed, settings = manifest.get("config", {}).get("seed"), manifest.get("settings", {})
    output = settings.get("output", {})
    is_jpeg = "libjpeg" in output.get("sample", output)
    known = (
        manifest.get("title"),
        manifest.get("edition"),
        None if seed is None else f"seed {seed}",
        settings.get("versions", {}).get("libjpeg") if is_jpeg else None,
    )
    return ", ".join(str(each) for each in known if each is not None)


def find_settings(comparison: Comparison) -> Differences:
    """Return the settings, constants and libraries in which the sets differ; none if one has no manifest."""
    manifests = [side.written.manifest for _, side in list_sides(comparison)]
    if not all(manifests):
        return {}
    folders = {variant.variant.folder for variant in comparison.variants}
    a, b = (_list_settings(manifest, folders) for manifest in manifests)
    return {
        name: pair
        for one, other in zip(a, b, strict=True)
        for name, pair in find_differences(one, other).items()
    }


def _list_settings(manifest: Mapping[str, Any], folders: Container[str]) -> list[dict[str, Any]]:
    """Return what was set, the constants of the variants in `folders`, and the libraries."""
    settings = manifest["settings"]
    output, parameters = settings.get("output", {}), settings.get("parameters", {})
    sample = output.get("sample", {})
    form = ":".join(each["format"] for each in (output, sample) if each)
    chosen = {**settings, **output, **sample, "format": form}
    for name in ("kind", "output", "sample", "parameters", "versions"):
        chosen.pop(name, None)
    constants = {folder: values for folder, values in parameters.items() if folder in folders}
    return [chosen, constants, {"versions": settings.get("versions")}]


def describe_settings(comparison: Comparison) -> list[str]:
    """Return a line with the settings in which the sets differ; none if one has no manifest."""
    found = find_settings(comparison)
    if not found:
        known = all(side.written.manifest for _, side in list_sides(comparison))
        return ["no recorded setting differs"] * known
    named = [
        f"{name} ({_format_setting(a)} in A, {_format_setting(b)} in B)"
        for name, (a, b) in [*found.items()][:_SETTINGS]
    ]
    rest = len(found) - len(named)
    more = [f"and {rest} more (--format json names all)"] * (rest > 0)
    return [f"settings that differ: {', '.join([*named, *more])}"]


def _format_setting(value: object) -> str:
    return "none" if value is None else format_constant(value)


def describe_images(comparison: Comparison) -> str:
    """Return the number of compared images, and the seed that chose them."""
    counts = [len(variant.pairs) for variant in comparison.variants]
    images = format_count(max(counts), comparison.a.noun)
    span = images if min(counts) == max(counts) else f"{min(counts)} to {images}"
    return f"{span} of each, chosen with seed {comparison.options.seed}"


def count_tests(comparison: Comparison) -> int:
    """Return the number of tests for which the p-values are corrected."""
    pooled = sum(len(operation.pooled) for operation in comparison.operations)
    return 2 * (pooled + sum(len(variant.effects) for variant in comparison.variants))


def format_comparison(comparison: Comparison, layout: str, width: int = 0) -> str:
    """Return `comparison` as ``table`` or ``json``; a table fits into `width`, 0 for any."""
    if layout == "json":
        return format_json(describe_comparison(comparison))
    lines = [
        f"{name}  {escape(side.root)} ({describe_origin(side)})" for name, side in list_sides(comparison)
    ]
    metrics = [each for each in METRICS if any(o.overall(each.key) for o in comparison.operations)]
    heads = ["", "verdict", "equal", "pixels", *(f"{each.title} {each.unit}".strip() for each in metrics)]
    rows = [list_cells(each, metrics) for each in comparison.operations]
    legend = "B - A, mean over the severities; in brackets the smallest difference that would be detected"
    tests = f"{ALPHA} after Holm's correction for {format_count(count_tests(comparison), 'test')}"
    lines += [*describe_settings(comparison), describe_images(comparison), *comparison.notes, ""]
    lines += [
        format_tables([Table("", heads, rows, names=2)], width=width),
        *[f"({legend})"] * bool(metrics),
        *[f"(different: p below {tests})"] * (bool(metrics) and bool(count_tests(comparison))),
        "",
    ]
    reasons = [f"{each.name}: {each.reason}" for each in comparison.operations if each.reason]
    lines += [*reasons, *[""] * bool(reasons), *list_troubles(comparison), *comparison.reasons]
    return "\n".join(lines).rstrip("\n")


def list_cells(operation: OperationResult, metrics: Sequence[Metric]) -> list[str]:
    """Return a row of the table: name, verdict, equal images, pixels, and a cell for each of `metrics`."""
    pairs = sum(len(variant.pairs) for variant in operation.variants)
    equal = f"{sum(variant.equal for variant in operation.variants)}/{pairs}"
    known, pixels = [variant for variant in operation.variants if variant.pairs], "-"
    if known:
        offset, spread = fmean(each.offset for each in known), fmean(each.spread for each in known)
        pixels = f"{format_signed(offset, 2)} ± {spread:.1f}"
    overall = [(operation.overall(each.key), each.digits) for each in metrics]
    cells = [f"{format_signed(e.difference, n)} ({e.detectable:.{n}f})" if e else "-" for e, n in overall]
    return [operation.name, operation.verdict, equal, pixels, *cells]


def list_troubles(comparison: Comparison) -> list[str]:
    """Return the first few lines about missing or unusable images, one for those that variants share."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for variant in comparison.variants:
        for side, keys in variant.missing.items():
            found.setdefault((side, keys), []).extend([variant.variant.folder] * bool(keys))
    lines = [f"{each.side}: {each.folder}/{each.key!r}: {each.reason}" for each in comparison.problems]
    for (lacking, keys), folders in found.items():
        more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
        named = ", ".join(map(repr, keys[:_NAMED])) + more
        lines += [f"{named} of {shorten_folders(folders)} missing from {lacking}"] * bool(keys)
    rest = len(lines) - _LINES
    return lines[:_LINES] + ([f"and {rest} more such lines (--format json names all)"] if rest > 0 else [])


def describe_comparison(comparison: Comparison) -> dict[str, Any]:
    """Return all values, for JSON; missing numbers are NaN."""
    return {
        "equivalent": comparison.equivalent,
        "sentence": comparison.sentence,
        "kind": comparison.kind,
        **{
            name.lower(): {"root": str(side.root), "origin": describe_origin(side)}
            for name, side in list_sides(comparison)
        },
        "sample": comparison.options.sample,
        "seed": comparison.options.seed,
        "alpha": ALPHA,
        "correction": "Holm",
        "tests": count_tests(comparison),
        "settings": {
            name: dict(zip("ab", pair, strict=True)) for name, pair in find_settings(comparison).items()
        },
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
        "variants": [_variant(variant) for variant in operation.variants],
    }


def _variant(variant: VariantResult) -> dict[str, Any]:
    measured = {
        metric.key: {side: variant.quantiles(index, i) for i, side in enumerate("ab")}
        for index, metric in enumerate(METRICS)
    }
    return {
        "variant": variant.variant.folder,
        "verdict": variant.verdict,
        "pairs": len(variant.pairs),
        "equal": variant.equal,
        "pixel_difference_mean": variant.offset,
        "pixel_difference_std": variant.spread,
        "quantiles_10_50_90": measured,
        "effects": [describe_effect(each) for each in variant.effects],
        "missing": {side.lower(): list(keys) for side, keys in variant.missing.items()},
    }


_PAIRS_SHOWN: Final = 2
_LOUDER: Final = 4


def _chart(operation: OperationResult, index: int) -> dict[str, Any] | None:
    """Return curves of a metric over the levels in A and B, medians between the 10th and 90th percentile.

    Also the ends of their axis; None if the metric was not measured at each level.
    """
    found = [[variant.quantiles(index, side) for variant in operation.variants] for side in (0, 1)]
    if not all(map(all, found)):
        return None
    metric = METRICS[index]
    # File sizes are shown in kilobytes.
    values = np.array(found) / (1000 if metric.relative else 1)
    unit = f" ({'kB' if metric.relative else metric.unit})" if metric.unit else ""
    levels: list[Any] = [variant.variant.level or "" for variant in operation.variants]
    curves = [Curve(f"{metric.title}{unit}", levels, *side.T[[1, 0, 2]].tolist()) for side in values]
    low, high = float(values.min()), float(values.max())
    margin = (high - low or abs(high) or 1.0) * 0.08
    return {"curves": curves, "floor": low - margin, "top": high + margin}


def render_comparison(comparison: Comparison) -> bytes:
    """Return a self-contained HTML page."""
    return html.render_page(
        "compare.html",
        comparison=comparison,
        sides=[
            (name, hide_paths(str(side.root)), describe_origin(side)) for name, side in list_sides(comparison)
        ],
        settings=describe_settings(comparison),
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
        "levels": len(operation.variants) > 1,
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
        pixels = [side.load(folder, key) for _, side in list_sides(comparison)]
    except RobustgenError:  # Readable before; the page omits it.
        return None
    a, b = (np.ascontiguousarray(stills(each, 1)[0]) for each in pixels)
    between = np.clip(128 + _LOUDER * (b.astype(np.int16) - a), 0, 255).astype(np.uint8)
    return {"name": f"{folder}/{key}", "a": a, "b": b, "between": between, "louder": _LOUDER}
