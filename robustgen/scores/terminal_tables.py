"""Tables that fit a terminal: the means of all models first, then one row for each corruption."""

import textwrap
from collections.abc import Iterator, Sequence

from robustgen.benchmarks.kinds import CLEAN
from robustgen.scores.intervals import MEAN, Difference, Interval
from robustgen.scores.measures import Measure
from robustgen.scores.reporting import Report
from robustgen.scores.tables import align_grid, as_text

_SHORTEST_NAME = 8
# Heading of a corruption's value, if it differs from that of the mean without its m.
_SINGLE = {"error": "Error"}


def render(report: Report, layout: str, width: int) -> str:
    """Return a report in a layout; tables fit into `width`, unless that is 0."""
    return compact_text(report, width) if layout == "table" and width else report.render(layout)


def compact_text(report: Report, width: int) -> str:
    """Return the means of all models, their differences, and the values of each operation, `width` wide."""
    parts = [
        _means(report, width),
        _differences(report, width),
        *_operations(report, width),
        *_families(report),
        *(as_text([table]).splitlines() for table in (*report.published_tables(), *report.family_rankings())),
    ]
    return "\n\n".join(
        "\n".join([*textwrap.wrap(title, width), *lines]) for title, *lines in filter(None, parts)
    )


def _number(measure: Measure | None, value: float | None, interval: Interval | None = None) -> str:
    """Return a value as text, with half the width of its interval."""
    if value is None:
        return "-"
    factor, digits = (measure.formula.factor, measure.formula.digits) if measure else (100, 1)
    half = f" ±{factor * (interval.high - interval.low) / 2:.{digits}f}" if interval else ""
    return f"{factor * value:.{digits}f}{half}"


def _mean_name(report: Report, measure: Measure) -> str:
    used = report.averaged(measure)
    whole = used == report.benchmark.common and report.models[0].complete
    return measure.formula.mean if whole else f"{measure.formula.mean} ({len(used)})"


def _means(report: Report, width: int) -> list[str]:
    measures = [measure for measure in report.measures if report.averaged(measure)]
    heads = ["Model", *(["Clean"] if report.benchmark.has_clean else [])]
    heads += [_mean_name(report, measure) for measure in measures]

    def rows(intervals: bool) -> Iterator[list[str]]:
        for place, model in enumerate(report.models):
            cells: list[tuple[Measure | None, float | None, str]] = []
            cells += [(None, model.clean_error, CLEAN)] if report.benchmark.has_clean else []
            cells += [(measure, report.mean(measure, model), MEAN) for measure in measures]
            found = [report.interval(place, m.key if m else "", name) for m, _, name in cells]
            pairs = zip(cells, found, strict=True)
            yield [model.model, *(_number(m, v, i if intervals else None) for (m, v, _), i in pairs)]

    grid = _fit_names([heads, *rows(True)], width)
    told = report.resampling is not None
    if max(map(len, align_grid(grid))) > width:
        grid, told = _fit_names([heads, *rows(False)], width), False
    unit = "in %" if report.benchmark.has_clean else "in %, muT5D from 0 to 15"
    base = (
        f"; normalised by {report.baseline.name}"
        if any(m.baseline for m in measures) and report.baseline
        else ""
    )
    return [f"Means {unit}{', ± half a 95 % interval' * told}{base}", *align_grid(grid)]


def _fit_names(grid: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Return the grid with the names in its first column cut to fit `width`."""
    excess = max(map(len, align_grid(grid))) - width
    longest = max(len(name) for name, *_ in grid)
    room = max(_SHORTEST_NAME, longest - max(0, excess))
    return [[_cut(name, room), *cells] for name, *cells in grid]


def _cut(name: str, room: int) -> str:
    # The end of a path is more informative than its beginning.
    return name if len(name) <= room else "…" + name[-(room - 1) :]


def _differences(report: Report, width: int) -> list[str]:
    """Return the differences of the means of all models from those of the first."""
    found: dict[str, list[Difference]] = {}
    for each in report.differences():
        found.setdefault(each.model, []).append(each)
    if not found:
        return []
    by_key = {measure.key: measure for measure in report.measures}
    kept = [by_key[each.measure] for each in next(iter(found.values()))]
    rows = [
        [
            model,
            *(
                f"{'+' * (d.value > 0)}{_number(m, d.value, d.interval)}"
                for m, d in zip(kept, own, strict=True)
            ),
        ]
        for model, own in found.items()
    ]
    heads = ["Model", *(_mean_name(report, measure) for measure in kept)]
    title = f"Differences from the means of {report.models[0].model}, on the same images"
    return [title, *align_grid(_fit_names([heads, *rows], width))]


def _operations(report: Report, width: int) -> Iterator[list[str]]:
    """Yield a table with a row for each operation: all measures of one model, or the first of several."""
    alone = len(report.models) == 1
    first = report.measures[0]
    measures = report.measures if alone else [first]
    columns = [(place, measure) for place in range(len(report.models)) for measure in measures]
    heads = [
        _SINGLE.get(m.key, m.formula.mean.removeprefix("m")) if alone else report.models[p].model
        for p, m in columns
    ]
    grid = [["", *(_cut(head, max(_SHORTEST_NAME, 14)) for head in heads)]]
    there = {name for measure in measures for row in measure.values for name in row}
    for name in report.names(first):
        if name in there:
            cells = [_number(m, m.values[p].get(name)) for p, m in columns]
            grid.append([name.replace("_", " "), *cells])
    lines = align_grid(grid)
    if max(map(len, lines)) <= width:
        yield [first.title if not alone else "By operation", *lines]
    else:
        yield [f"{len(report.models)} models do not fit side by side: --verbose shows all tables"]


def _families(report: Report) -> Iterator[list[str]]:
    for family in report.families:
        heads = [
            "Model",
            "Mean",
            *([f"/ {family.reference}"] if family.normalised_mean(0) is not None else []),
            *(score.head for score in family.scores),
        ]
        rows = []
        for place, model in enumerate(report.models):
            means = [family.mean(place)]
            means += [family.normalised_mean(place) or 0] if family.normalised_mean(0) is not None else []
            values = [*means, *(score.values[place] for score in family.scores)]
            rows.append([model.model, *(_number(None, value) for value in values)])
        yield [f"{family.title}: top-1 error in %, unnormalised", *align_grid([heads, *rows])]
