"""A `Scoreboard` as tables for people, as CSV and as JSON.

Normalised and raw scores are in separate tables, each of which says so. Tables for people use per cent; CSV
and JSON contain fractions.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from robustgen.display.text import Cell, Table, format_as, format_count, format_name
from robustgen.errors import ArgumentError, ConfigError
from robustgen.lab.scores.gates import NO_EVIDENCE, Evidence
from robustgen.lab.scores.intervals import MEAN, WILSON, Interval, plan_images
from robustgen.lab.scores.measures import Measure, PublishedModel
from robustgen.lab.scores.scoreboard import Scoreboard, name_mean
from robustgen.pixels.benchmarks.kinds import CLEAN
from robustgen.settings.yaml_files import format_yaml

# Headings as the papers print them.
_HEADS: Final = {
    **{"gaussian_noise": "Gauss.", "shot_noise": "Shot", "impulse_noise": "Impulse"},
    **{"speckle_noise": "Speckle", "defocus_blur": "Defocus", "glass_blur": "Glass"},
    **{"motion_blur": "Motion", "zoom_blur": "Zoom", "gaussian_blur": "Gauss. blur"},
    **{"snow": "Snow", "frost": "Frost", "fog": "Fog", "brightness": "Bright", "spatter": "Spatter"},
    **{"contrast": "Contrast", "elastic_transform": "Elastic", "pixelate": "Pixel"},
    **{"jpeg_compression": "JPEG", "saturate": "Saturate", "translate": "Translate"},
    **{"rotate": "Rotate", "tilt": "Tilt", "scale": "Scale", "shear": "Shear"},
}


_GROUP_TITLES: Final = {"extra": "In no mean"}


def head_of(operation: str) -> str:
    """Return the heading of the column of an operation, as the papers abbreviate it."""
    return _HEADS.get(operation, operation)


def format_report(
    report: Scoreboard,
    layout: str,
    width: int = 0,
    *,
    verbose: bool = False,
    columns: Sequence[str] = (),
    evidence: Evidence = NO_EVIDENCE,
) -> str:
    """Return a report in a layout.

    Parameters
    ----------
    report : Scoreboard
    layout : str
    width : int
        Width of the terminal; 0 for any.
    verbose : bool
        Whether to return all tables of the papers where a summary is the default.
    columns : sequence of str
        ``"means"``, ``"extra"`` and categories: the columns of the only table; default those that suit the
        layout.
    evidence : Evidence, optional
        The conditions with their verdicts, for JSON.
    """
    if layout == "model-index":
        return format_model_index(report)
    if layout == "latex" and not verbose:
        columns = columns or ("means",)
    summary = not verbose and (width > 0 or layout != "table")
    return format_as(
        layout,
        lambda: [*list_tables(report, summary, columns)],
        lambda: [*_list_records(report)],
        lambda: _describe_report(report) | evidence.as_dict(),
        width,
    )


# --- tables --------------------------------------------------------------------------------------


def list_tables(report: Scoreboard, summary: bool = False, columns: Sequence[str] = ()) -> Iterator[Table]:
    """Yield the tables of the papers, or a summary: all means, then a row for each operation.

    With `columns`, yield one table with these columns.
    """
    measures = [measure for measure in report.measures if report.averaged(measure)]
    if columns:
        # Without a common operation there are no means.
        if measures or not report.families:
            yield _tabulate_columns(report, measures, columns if measures else ("extra",))
    elif summary:
        if measures:
            yield _tabulate_means(report, measures)
        yield _tabulate_operations(report)
    else:
        for measure in report.measures:
            if report.averaged(measure) or not report.families:
                yield _tabulate_measure(report, measure)
    if report.differences() and not columns:
        yield _tabulate_differences(report)
    yield from list_family_tables(report, summary)
    if report.published and measures:
        yield _tabulate_published(report)


def _cell(measure: Measure, value: float | None, interval: Interval | None = None) -> Cell:
    formula = measure.formula
    return Cell(value, interval, f".{formula.digits}f", formula.factor, -1)


def _tabulate_models(
    report: Scoreboard,
    title: str,
    measure: Measure,
    means: Sequence[Measure] = (),
    groups: Sequence[str] = (),
) -> Table:
    """Return a row for each model: clean error and `means`, if any, and a measure's values of `groups`."""
    has_clean = report.benchmark.has_clean and len(means) > 0
    lead = ["Model", *["Clean"] * has_clean, *(name_mean(report, each) for each in means)]
    names = {name: group for group in groups for name in _list_group(report, measure, group)}
    rows = []
    for index, model in enumerate(report.models):
        clean = Cell(model.clean_error, report.interval(index, "", CLEAN), sense=-1)
        cells = [_cell(m, report.mean(m, model), report.interval(index, m.key, MEAN)) for m in means]
        values = [_cell(measure, measure.values[index].get(name)) for name in names]
        rows.append([model.model, *[clean] * has_clean, *cells, *values])
    labels = [_GROUP_TITLES.get(group, group.title()) for group in names.values()]
    return Table(title, [*lead, *map(head_of, names)], rows, [*[""] * len(lead), *labels] if labels else ())


def _list_group(report: Scoreboard, measure: Measure, group: str) -> Sequence[str]:
    """Return the operations of a category, or those in no mean."""
    categories, common = report.benchmark.categories, report.benchmark.common
    return categories.get(group) or [name for name in report.names(measure) if name not in common]


def _tabulate_means(report: Scoreboard, measures: Sequence[Measure]) -> Table:
    unit = "in %" if report.benchmark.has_clean else "in %, muT5D from 0 to 15"
    bases = dict.fromkeys(f", normalised by {each.baseline}" for each in measures if each.baseline)
    return _tabulate_models(report, f"Means {unit}{''.join(bases)}", report.measures[0], measures)


def _tabulate_columns(report: Scoreboard, measures: Sequence[Measure], columns: Sequence[str]) -> Table:
    """Return a table of some columns: all means, or the mean and the values of the first measure."""
    order = [*report.benchmark.categories, "extra"]
    groups = sorted({*columns} - {"means"}, key=order.index)
    if not groups:
        return _tabulate_means(report, measures)
    first = (measures or report.measures)[0]
    return _tabulate_models(report, first.title, first, measures[: "means" in columns], groups)


def _tabulate_measure(report: Scoreboard, measure: Measure) -> Table:
    """Return the values of a measure, in the layout of the papers."""
    used, common = report.averaged(measure), report.benchmark.common
    part = f" (incomplete: mean over {len(used)} of {format_count(len(common), report.benchmark.operation)})"
    title = f"{measure.title}{part * (used != common)}"
    return _tabulate_models(report, title, measure, [measure], [*report.benchmark.categories, "extra"])


def _tabulate_operations(report: Scoreboard) -> Table:
    """Return a row for each operation: all measures of one model, or the first of several models."""
    first = report.measures[0]
    alone = len(report.models) == 1
    columns = [(m, m.formula.symbol, m.values[0]) for m in report.measures]
    if not alone:
        columns = [(first, each.model, row) for each, row in zip(report.models, first.values, strict=True)]
    rows = [
        [format_name(name), *(_cell(measure, values.get(name)) for measure, _, values in columns)]
        for name in report.names(first)
        if any(name in values for _, _, values in columns)
    ]
    title = f"By {report.benchmark.operation}" if alone else first.title
    return Table(title, ["", *(head for _, head, _ in columns)], rows)


def _tabulate_differences(report: Scoreboard) -> Table:
    """Return the differences of the means of all models from those of the first."""
    measures = {measure.key: measure for measure in report.measures}
    kept = [measure for measure in report.measures if report.averaged(measure)]
    rows: dict[str, list[object]] = {model.model: [model.model] for model in report.models[1:]}
    for each in report.differences():
        formula = measures[each.measure].formula
        # Differences are small: one more digit.
        rows[each.model].append(Cell(each.value, each.interval, f"+.{formula.digits + 1}f", formula.factor))
    title = f"Differences from the means of {report.models[0].model}, on the same images"
    return Table(title, ["Model", *(name_mean(report, measure) for measure in kept)], [*rows.values()])


def list_family_tables(report: Scoreboard, summary: bool = False) -> Iterator[Table]:
    """Yield the errors and scores of all models on other families, then these scores among published ones.

    A `summary` omits the errors of single corruptions.
    """
    for place, family in enumerate(report.families):
        yield _tabulate_family(report, place, () if summary else family.names)
    for family in report.families:
        for score in (s for s in family.scores if s.published and (report.compares or not s.on_demand)):
            own = {f"> {m.model}": value for m, value in zip(report.models, score.values, strict=True)}
            ranked = sorted((own | dict(score.published)).items(), key=lambda row: -(row[1] or 0))
            title = f"{family.title}: {score.title}"
            rows = [[name, Cell(value, sense=score.sense)] for name, value in ranked]
            yield Table(title, ["Model", score.head], rows)


def _tabulate_family(report: Scoreboard, place: int, names: tuple[str, ...]) -> Table:
    indices, family = range(len(report.models)), report.families[place]
    columns = {}
    if any(model.clean_error is not None for model in report.models):
        cleans = [(model.clean_error, report.interval(i, "", CLEAN)) for i, model in enumerate(report.models)]
        columns["Clean"] = [Cell(value, ends, sense=-1) for value, ends in cleans]
    columns["Mean"] = [Cell(family.mean(i), report.family_interval(i, place), sense=-1) for i in indices]
    for score in family.scores:
        pairs = zip(score.values, score.intervals, strict=True)
        columns[score.head] = [Cell(value, ends, sense=score.sense) for value, ends in pairs]
    groups = [""] * (1 + len(columns)) + [family.title] * len(names)
    for name in names:
        errors = [(family.errors[i][name], report.family_interval(i, place, name)) for i in indices]
        columns[name.rpartition(":")[2]] = [Cell(value, ends, sense=-1) for value, ends in errors]
    part = "" if family.whole else f" (incomplete: {format_count(len(family.names), 'corruption')})"
    title = f"{family.title}: top-1 error in %, mean over severities, unnormalised{part}"
    rows = [[m.model, *cells] for m, *cells in zip(report.models, *columns.values(), strict=True)]
    return Table(title, ["Model", *columns], rows, groups)


def _tabulate_published(report: Scoreboard) -> Table:
    """Return the means of the models together with published ones, from the best down."""
    measures = [measure for measure in report.measures if report.averaged(measure)]
    rows = [(f"> {each.model}", [report.mean(m, each) for m in measures]) for each in report.models]
    for each in report.published:
        means = [each.mean(m, report.baseline, report.averaged(m)) for m in measures]
        rows.append((each.model, means))
    rows.sort(key=lambda row: next((mean for mean in row[1] if mean is not None), float("inf")))
    return Table(
        "Means among published ones in % (yours are marked with >)",
        ["Model", *(name_mean(report, measure) for measure in measures)],
        [[name, *map(_cell, measures, means)] for name, means in rows],
    )


def describe_plan(report: Scoreboard, half_width: float) -> Iterator[str]:
    """Yield for each model how many images determine its mean to plus or minus `half_width`.

    The mean is that of the first measure, in the unit of its table. Raises an ArgumentError if it has no
    mean.
    """
    measure = report.measures[0]
    names, unit = report.averaged(measure), " %" if measure.formula.factor == 100 else ""
    if not names:
        raise ArgumentError(f"--plan: the models share none of the common {report.benchmark.operation}s")
    for model in report.models:
        mean = measure.average(model, names) * measure.formula.factor
        try:
            needed = plan_images(model, measure, names, half_width / measure.formula.factor)
        except ArgumentError as error:
            raise ConfigError(f"--plan {half_width:g}: {error}") from error
        yield (
            f"{model.model}: {name_mean(report, measure)} {mean:.1f}{unit} from "
            f"{format_count(model.count, report.benchmark.noun)}; "
            f"+- {half_width:g}{unit} (95 %) needs {format_count(needed, report.benchmark.noun)}"
        )


# --- model card ----------------------------------------------------------------------------------


def format_model_index(report: Scoreboard) -> str:
    """Return the `model-index` of a Hugging Face model card, in YAML; errors are in per cent.

    Raises
    ------
    ConfigError
        There are several models, but a card is about one.
    """
    if len(report.models) > 1:
        raise ConfigError("--format model-index: a card is about one model; give one folder")
    model, held, title = report.models[0], report.settings, report.benchmark.title
    metrics: list[tuple[str, str, float, float | None]]
    metrics = [("clean_error", "Clean error (%)", 100, model.clean_error)]
    for each in report.measures:
        unit = "%" if each.formula.factor == 100 else "0 to 15"
        base = f", normalised by {each.baseline}" if each.baseline else ""
        name = f"{name_mean(report, each)} ({unit}{base})"
        metrics.append((each.key, name, each.formula.factor, report.mean(each, model)))
    for family in report.families:
        metrics.append((f"{family.family}.mean_error", f"{family.title} (%)", 100, family.mean(0)))
    args = {key: held.get(key) for key in ("edition", "digest", "source_digest")}
    dataset = {
        "type": title.lower(),
        "name": f"{title} of {held['dataset']}" if held.get("dataset") else title,
        "split": "test",
        "revision": held.get("digest") or held.get("source_digest"),
        "args": {key: value for key, value in args.items() if value}
        | {f"{report.benchmark.noun}s": model.count},
    }
    result = {
        "task": {"type": "image-classification", "name": "Image Classification"},
        "dataset": {key: value for key, value in dataset.items() if value},
        "metrics": [
            {"type": key, "name": name, "value": round(factor * value, 2)}
            for key, name, factor, value in metrics
            if value is not None
        ],
    }
    return format_yaml({"model-index": [{"name": model.model, "results": [result]}]})


# --- CSV -----------------------------------------------------------------------------------------


def _list_records(report: Scoreboard) -> Iterator[dict[str, object]]:
    """Yield the rows of the CSV: values and the ends of their intervals, published values, other families."""
    columns = [*dict.fromkeys(name for measure in report.measures for name in report.names(measure))]

    def record(
        model: str,
        start: Mapping[str, object],
        statistic: str,
        values: Mapping[str, float | None],
        over: int,
        method: str = "",
    ) -> dict[str, object]:
        row: dict[str, object] = {"model": model, **start, "statistic": statistic, "interval_method": method}
        row |= (
            {"clean_error": values[CLEAN]}
            if report.benchmark.has_clean
            else {"difficulty": report.difficulty}
        )
        return row | {MEAN: values[MEAN], "mean_over": over} | {name: values.get(name) for name in columns}

    def records(
        model: str,
        start: Mapping[str, object],
        values: Mapping[str, float | None],
        found: Mapping[str, Interval | None],
        over: int,
        method: str,
    ) -> Iterator[dict[str, object]]:
        yield record(model, start, "value", values, over)
        for end, label in enumerate(Interval._fields if report.uncertainty else ()):
            ends = {name: each and each[end] for name, each in found.items()}
            yield record(model, start, label, ends, over, method)

    for measure in report.measures:
        used = report.averaged(measure)
        start = {"measure": measure.key, "normalised_by": measure.baseline or ""}
        for index, model in enumerate(report.models):
            values = {CLEAN: model.clean_error, MEAN: report.mean(measure, model), **measure.values[index]}
            found = {n: report.interval(index, measure.key if n != CLEAN else "", n) for n in values}
            method = report.uncertainty.method(measure) if report.uncertainty else ""
            yield from records(model.model, start, values, found, len(used), method)
    for each in report.published:
        for measure in report.measures:
            used = report.averaged(measure)
            start = {"measure": measure.key, "normalised_by": measure.baseline or ""}
            values = {CLEAN: each.clean_error, MEAN: each.mean(measure, report.baseline, used)}
            values |= each.values(measure, report.baseline)
            yield record(each.model, start, "published", values, len(used))
    for place, family in enumerate(report.families):
        for score in family.scores:
            base = family.reference if score.key == "normalised_mean" else ""
            start = {"measure": f"{score.key} of {family.family}", "normalised_by": base}
            for index, model in enumerate(report.models):
                clean, mean = report.interval(index, "", CLEAN), score.intervals[index]
                values = {CLEAN: model.clean_error, MEAN: score.values[index]}
                found = {CLEAN: clean, MEAN: mean}
                yield from records(model.model, start, values, found, len(family.names), score.method)
        start = {"measure": f"error of {family.family}", "normalised_by": ""}
        for index, model in enumerate(report.models):
            values = {CLEAN: model.clean_error, MEAN: family.mean(index), **family.errors[index]}
            found = {name: report.family_interval(index, place, name) for name in family.names}
            found |= {CLEAN: report.interval(index, "", CLEAN), MEAN: report.family_interval(index, place)}
            yield from records(model.model, start, values, found, len(family.names), WILSON)


# --- JSON ----------------------------------------------------------------------------------------


def _describe_report(report: Scoreboard) -> dict[str, Any]:
    """Return all values, for JSON; those of one model can serve as a baseline."""
    content: dict[str, Any] = {
        "title": report.benchmark.title,
        "baseline": report.baseline.name if report.baseline else None,
    }
    if report.benchmark.has_clean:
        content["severities"] = [*report.models[0].levels]
    else:
        content["difficulty"] = report.difficulty
    content["models"] = [_describe_model(report, index) for index in range(len(report.models))]
    if differences := report.differences():
        content["differences"] = [vars(each) for each in differences]
    if report.published:
        content["published"] = [_describe_published(report, each) for each in report.published]
    return content


def _describe_model(report: Scoreboard, index: int) -> dict[str, Any]:
    model = report.models[index]
    own: dict[str, Any] = {"model": model.model, "count": model.count, "missing": model.missing}
    if report.benchmark.has_clean:
        own |= {"clean_error": model.clean_error, "errors": model.errors}
        if report.families:
            own["families"] = {
                each.family: _describe_family(report, place, index)
                for place, each in enumerate(report.families)
            }
    else:
        own |= {"flip_probabilities": model.flip_probabilities, "top5_distances": model.top5_distances}
    if report.uncertainty and model.mistakes:
        own["error_intervals"] = {folder: report.interval(index, "", folder) for folder in model.mistakes}
        own["error_interval_method"] = WILSON
    own["measures"] = {measure.key: _describe_measure(report, measure, index) for measure in report.measures}
    return own


def _describe_family(report: Scoreboard, place: int, index: int) -> dict[str, Any]:
    family = report.families[place]
    found: dict[str, Any] = {"mean_error": family.mean(index), "mean_over": family.names}
    if report.uncertainty:
        found["mean_error_interval"] = report.family_interval(index, place)
        found["intervals"] = {name: report.family_interval(index, place, name) for name in family.names}
        found["interval_method"] = WILSON
    if family.reference:
        found["normalised_by"] = family.reference
    for score in family.scores:
        found[score.key] = score.values[index]
        if report.uncertainty:
            found[f"{score.key}_interval"] = score.intervals[index]
            found[f"{score.key}_interval_method"] = score.method
        found |= {"published": score.published} if score.published else {}
    return found


def _describe_measure(report: Scoreboard, measure: Measure, index: int) -> dict[str, Any]:
    values = measure.values[index]
    described: dict[str, Any] = {
        "normalised_by": measure.baseline,
        "mean_name": name_mean(report, measure),
        "mean": report.mean(measure, report.models[index]),
        "mean_over": report.averaged(measure),
        "values": values,
    }
    if report.uncertainty:
        described["mean_interval"] = report.interval(index, measure.key, MEAN)
        described["intervals"] = {name: report.interval(index, measure.key, name) for name in values}
        described["interval_method"] = report.uncertainty.method(measure)
    return described


def _describe_published(report: Scoreboard, model: PublishedModel) -> dict[str, Any]:
    measures = {
        measure.key: {
            "mean": model.mean(measure, report.baseline, report.averaged(measure)),
            "values": model.values(measure, report.baseline),
        }
        for measure in report.measures
    }
    clean = model.clean_error
    return {"model": model.model, **vars(model.table), "clean_error": clean, "measures": measures}
