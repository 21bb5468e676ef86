"""A `Scoreboard` as tables for people, as CSV and as JSON.

Normalised and raw scores are in separate tables, each of which says so. Tables for people use per cent; CSV
and JSON contain fractions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from robustgen.display.text import Cell, Table, format_as, format_count, format_name
from robustgen.errors import ArgumentError, ConfigError
from robustgen.lab.scores.gates import NO_EVIDENCE, Evidence
from robustgen.lab.scores.intervals import MEAN, WILSON, Interval, Score, ScoreGroup, error_interval
from robustgen.lab.scores.scoreboard import Scoreboard

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


def head_of(operation: str) -> str:
    """Return the heading of the column of an operation, as the papers abbreviate it."""
    return _HEADS.get(operation, operation)


def format_report(
    report: Scoreboard,
    layout: str,
    width: int = 0,
    *,
    verbose: bool = False,
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
    evidence : Evidence, optional
        The conditions with their verdicts, for JSON.
    """
    summary = not verbose and (width > 0 or layout != "table")
    return format_as(
        layout,
        lambda: [*list_tables(report, summary)],
        lambda: [*_list_records(report)],
        lambda: _describe_report(report) | evidence.as_dict(),
        width,
    )


# --- tables --------------------------------------------------------------------------------------


def list_tables(report: Scoreboard, summary: bool = False) -> Iterator[Table]:
    """Yield the tables of the papers, or a summary: all means, then a row for each operation."""
    for group in report.groups:
        first = group.scores[0]
        if summary:
            if first.has_mean:
                yield _tabulate_means(report, group)
            yield _tabulate_operations(report, group)
        elif group.name:
            yield _tabulate_models(report, first.title, group.scores, first, [group.panels])
        else:
            for score in group.scores:
                names = [report.benchmark.categories, {"In no mean": _list_others(report, score)}]
                yield _tabulate_models(report, f"{score.title}{group.lacking}", [score], score, names)
        yield from _tabulate_seeds(report, group)
        yield from _tabulate_differences(report, group)
        yield from _tabulate_published(report, group)


def _tabulate_models(
    report: Scoreboard,
    title: str,
    means: Sequence[Score],
    detail: Score | None = None,
    panels: Sequence[Mapping[str, Sequence[str]]] = (),
) -> Table:
    """Return a row for each model: clean error and `means`, if any, and the values of `detail`."""
    leads = [*[report.clean] * (report.clean.has_mean and len(means) > 0), *means]
    heads = ["Model", *(score.head for score in leads)]
    there = {name for row in (detail.values if detail else ()) for name in row}
    names = [(n, title) for each in panels for title, own in each.items() for n in own if n in there]
    rows = [
        [model.model, *(score.cell(index) for score in leads)]
        # Tables of the papers would be too wide with the intervals of all values.
        + [detail.cell(index, name, with_ends=bool(detail.group)) for name, _ in names if detail]
        for index, model in enumerate(report.models)
    ]
    groups = [*[""] * len(heads), *(title if title[:1].isupper() else title.title() for _, title in names)]
    return Table(title, [*heads, *(head_of(name) for name, _ in names)], rows, groups if names else ())


def _list_others(report: Scoreboard, score: Score) -> Sequence[str]:
    """Return the operations in no mean, which are in no other family either."""
    known = {
        *report.benchmark.common,
        *(n for group in report.groups if group.name for n in group.scores[0].names),
    }
    return [name for name in report.names(score) if name not in known]


def _tabulate_means(report: Scoreboard, group: ScoreGroup) -> Table:
    unit = "in %" if report.benchmark.has_clean else "in %, muT5D from 0 to 15"
    bases = dict.fromkeys(f", normalised by {each.base}" for each in group.scores if each.base)
    title = group.scores[0].title if group.name else f"Means {unit}{''.join(bases)}"
    return _tabulate_models(report, title, group.scores)


def _tabulate_operations(report: Scoreboard, group: ScoreGroup) -> Table:
    """Return a row for each operation: all measures of one model, or the first of several models."""
    first, scores = group.scores[0], [score for score in group.scores if any(score.values)]
    alone = len(report.models) == 1
    columns = [(score, 0, score.symbol) for score in scores]
    if not alone:
        columns = [(first, index, model.model) for index, model in enumerate(report.models)]
    names = first.names if group.name else [*report.benchmark.common, *_list_others(report, first)]
    # The lowest of a column is the easiest operation, not the best model.
    rows = [
        [
            format_name(name),
            *(replace(score.cell(at, name, with_ends=False), sense=0) for score, at, _ in columns),
        ]
        for name in names
        if any(name in score.values[index] for score, index, _ in columns)
    ]
    title = f"By {report.benchmark.operation}" if alone and not group.name else first.title
    return Table(title, ["", *(head for *_, head in columns)], rows)


def _tabulate_seeds(report: Scoreboard, group: ScoreGroup) -> Iterator[Table]:
    """Yield the standard deviations of the means over the seeds of models."""
    leads = [*[report.clean] * (report.clean.has_mean), *(each for each in group.scores if each.has_mean)]
    rows = [
        [model.model, str(len(model.seeds))]
        + [score.cell_of(score.deviations[index].get(MEAN)) for score in leads]
        for index, model in enumerate(report.models)
        if model.seeds
    ]
    if rows and leads:
        of = f": {group.title}" * bool(group.name)
        title = f"Standard deviation over seeds, in the unit of the means{of}"
        yield Table(title, ["Model", "Seeds", *(score.head for score in leads)], rows)


def _tabulate_differences(report: Scoreboard, group: ScoreGroup) -> Iterator[Table]:
    """Yield the differences of the means of all models from those of the first."""
    scores = [score for score in group.scores if score.can_compare]
    found = {score: score.list_differences(report.models) for score in scores}
    # Differences are small: one more digit.
    rows = [
        [model.model]
        + [
            Cell(each[at].value, each[at].interval, f"+.{score.unit.digits + 1}f", score.unit.factor)
            for score, each in found.items()
        ]
        for at, model in enumerate(report.models[1:])
    ]
    of = f"{group.title} of " * bool(group.name)
    title = f"Differences from the means of {of}{report.models[0].model}, on the same images"
    if scores and rows:
        yield Table(title, ["Model", *(score.head for score in scores)], rows)


def _tabulate_published(report: Scoreboard, group: ScoreGroup) -> Iterator[Table]:
    """Yield the means of the models together with published ones, from the best."""
    scores = [each for each in group.scores if each.published and (report.compares or not each.on_demand)]
    if not scores or not any(score.has_mean for score in scores):
        return
    first = scores[0]
    rows = [(f"> {each.model}", [score.means[i] for score in scores]) for i, each in enumerate(report.models)]
    rows += [(each.model, [s.published[i].mean for s in scores]) for i, each in enumerate(first.published)]

    def rank(row: tuple[str, list[float | None]]) -> float:
        known = [mean for mean in row[1] if mean is not None]
        return -first.unit.sense * known[0] if known else float("inf")

    title = "means among published ones in % (yours are marked with >)"
    yield Table(
        f"{group.title}: {title}" if group.name else title.capitalize(),
        ["Model", *(score.head for score in scores)],
        [
            [name, *(score.cell_of(mean) for score, mean in zip(scores, means, strict=True))]
            for name, means in sorted(rows, key=rank)
        ],
    )


def describe_plan(report: Scoreboard, half_width: float) -> Iterator[str]:
    """Yield for each model how many images determine its mean to plus or minus `half_width`.

    The mean is that of the first measure, in the unit of its table. Raises an ArgumentError if it has no
    mean, or models have several seeds, whose share in the interval no images reduce.
    """
    score = report.measures[0]
    if len(report.runs) > len(report.models):
        raise ArgumentError("--plan counts images alone; leave out --group")
    factor, unit = score.unit.factor, " %" if score.unit.factor == 100 else ""
    if not score.names:
        raise ArgumentError(f"--plan: the models share none of the common {report.benchmark.operation}s")
    for index, (model, mean) in enumerate(zip(report.models, score.means, strict=True)):
        try:
            needed = score.plan_images(index, half_width / factor)
        except ArgumentError as error:
            raise ConfigError(f"--plan {half_width:g}: {error}") from error
        yield (
            f"{model.model}: {score.head} {factor * (mean or 0):.1f}{unit} from "
            f"{format_count(model.count, report.benchmark.noun)}; "
            f"+- {half_width:g}{unit} (95 %) needs {format_count(needed, report.benchmark.noun)}"
        )


# --- CSV -----------------------------------------------------------------------------------------


def _list_records(report: Scoreboard) -> Iterator[dict[str, object]]:
    """Yield the rows of the CSV."""
    columns = dict.fromkeys(name for score in report.measures for name in report.names(score))
    sizes = {group.name: len(group.scores[0].names) for group in report.groups}
    for model, score, statistic, clean, values in _list_statistics(report):
        measure = f"{score.key.removeprefix('mean_')} of {score.group}" if score.group else score.key
        row = {"model": model, "measure": measure, "normalised_by": score.base, "statistic": statistic}
        row |= {"interval_method": score.method if statistic in Interval._fields else ""}
        about = {"clean_error": clean} if report.benchmark.has_clean else {"difficulty": report.difficulty}
        over = {"mean": values.get(MEAN), "mean_over": sizes.get(score.group, 0)}
        yield row | about | over | {name: values.get(name) for name in columns}


def _list_statistics(report: Scoreboard) -> Iterator[tuple[str, Score, str, Any, Mapping[str, Any]]]:
    """Yield model, score, statistic, clean error and values, of `MEAN` too; published models are last."""
    for score in report.scores:
        for index, model in enumerate(report.models):
            clean = report.clean.statistics(index)
            for statistic, values in score.statistics(index).items():
                yield model.model, score, statistic, clean[statistic].get(MEAN), values
    for score in report.measures:
        for each, known in zip(report.published, score.published, strict=True):
            yield each.model, score, "published", each.clean_error, {MEAN: known.mean, **known.values}


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
    if differences := report.list_differences():
        content["differences"] = [vars(each) for each in differences]
    if report.published:
        content["published"] = [
            {"model": each.model, **vars(each.table), "clean_error": each.clean_error}
            | {
                "measures": {
                    score.key: {"mean": score.published[at].mean, "values": score.published[at].values}
                    for score in report.measures
                }
            }
            for at, each in enumerate(report.published)
        ]
    return content


def _describe_model(report: Scoreboard, index: int) -> dict[str, Any]:
    model = report.models[index]
    own: dict[str, Any] = {"model": model.model, "count": model.count, "missing": model.missing}
    if report.benchmark.has_clean:
        own |= {"clean_error": model.clean_error, "errors": model.errors}
        families = {each.name: _describe_family(each, index) for each in report.groups if each.name}
        own |= {"families": families} if families else {}
    else:
        own |= {"flip_probabilities": model.flip_probabilities, "top5_distances": model.top5_distances}
    if report.replicates and model.mistakes:
        own["error_intervals"] = {folder: error_interval(model, [folder]) for folder in model.mistakes}
        own["error_interval_method"] = WILSON
    if model.seeds:
        own["seeds"] = [each.model for each in model.seeds]
    if facts := report.facts.get(model.model):
        own["facts"] = facts.model_dump(exclude_defaults=True)
    own["measures"] = {score.key: _describe_measure(score, index) for score in report.measures}
    return own


def _describe_family(group: ScoreGroup, index: int) -> dict[str, Any]:
    found: dict[str, Any] = {"mean_over": group.scores[0].names}
    for score in group.scores:
        found[score.key] = score.means[index]
        found |= {"normalised_by": score.base} if score.base else {}
        if score.published:
            published = {each.model: each.mean for each in score.published}
            found[f"{score.key}_published" if "published" in found else "published"] = published
        if score.replicates:
            found[f"{score.key}_interval"] = score.interval(index)
            found[f"{score.key}_interval_method"] = score.method
            found |= _describe_ends(score, index) if score.names else {}
        if spread := score.deviations.get(index):
            found[f"{score.key}_seed_deviation"] = spread
    return found


def _describe_ends(score: Score, index: int) -> dict[str, Any]:
    ends = {name: score.interval(index, name) for name in score.values[index]}
    return {"intervals": ends, "interval_method": score.method}


def _describe_measure(score: Score, index: int) -> dict[str, Any]:
    described: dict[str, Any] = {
        "normalised_by": score.base or None,
        "mean_name": score.head,
        "mean": score.means[index],
        "mean_over": score.names,
        "values": score.values[index],
    }
    if score.replicates:
        described |= {"mean_interval": score.interval(index), **_describe_ends(score, index)}
    if spread := score.deviations.get(index):
        described["seed_deviation"] = spread
    return described
