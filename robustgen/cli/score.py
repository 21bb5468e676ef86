"""score, score-ood, score-detection, score-segmentation and score-answers: the tables of the papers."""

import sys
from typing import TYPE_CHECKING

from robustgen.cli.app import command, echo, echo_report, table_width
from robustgen.cli.flags import takes
from robustgen.display.text import format_path, format_size
from robustgen.errors import ConfigError
from robustgen.settings.scoring import (
    AnswerScoring,
    DetectionScoring,
    Drop,
    Gated,
    Scoring,
    SegmentationScoring,
    UnknownClassScoring,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustgen.lab.scores.exhibits import Examples
    from robustgen.lab.scores.gates import Evidence, Judgement
    from robustgen.lab.scores.table_page import TableReport


@command("score")
@takes(options=Scoring)
def score(options: Scoring) -> None:
    """Print the papers' tables for predictions.

    PREDICTIONS are folders of predictions, one for each model, or the --output of predict or evaluate, which
    contains such folders.

    Examples
    --------
    robustgen score preds
    robustgen score preds/resnet50 preds/vgg19 --output scores.html --compare-with published
    """
    from robustgen.display.html import PAGE_SUFFIXES
    from robustgen.lab.scores import scoring, text_forms
    from robustgen.lab.scores.gates import collect_evidence

    if options.chart and all(path.suffix.lower() in PAGE_SUFFIXES for path in options.output):
        raise ConfigError(f"--chart {options.chart} needs --output FILE.pdf, .png or .svg")
    for path in options.output:
        from robustgen.display import charts, html

        if path.suffix.lower() in PAGE_SUFFIXES:
            html.check_page_path(path, *([options.predicted_set] if options.predicted_set else []))
        else:
            charts.check_chart_path(path, ".html")
    opened = None
    if options.predicted_set:
        from robustgen.sets.dataset.opening import open_set

        opened = open_set(options.predicted_set)
    report = scoring.score(options.predictions, dataset=opened, **scoring.choices_of(options))
    if any(path.suffix.lower() not in PAGE_SUFFIXES for path in options.output):
        from robustgen.lab.scores import score_charts

        score_charts.choose_chart(report, options)
    folders = [each.folder for each in options.fail_if if isinstance(each, Drop)]
    others = {folder: scoring.read_other(folder, report) for folder in folders}
    evidence = collect_evidence(report, options.fail_if, others)
    if options.plan:
        text = "\n".join(text_forms.describe_plan(report, options.plan))
    else:
        width = 0 if options.verbose else table_width()
        text = text_forms.format_report(
            report, options.format, width, verbose=options.verbose, evidence=evidence
        )
    text += _list_failures(evidence, options.format)
    echo_report(text, [*report.inputs, *report.notes])
    for path in options.output:
        from robustgen.lab.scores import score_charts, score_page

        if path.suffix.lower() in PAGE_SUFFIXES:
            size = score_page.write_page(report, path, opened, evidence)
            echo(f"{format_path(path.absolute())}, {format_size(size)}", err=True)
        else:
            for sentence in score_charts.plot(report, path, options):
                echo(sentence, err=True)
    _finish(evidence, is_incomplete=bool(report.unfinished))


@command("score-ood")
@takes(options=UnknownClassScoring)
def score_ood(options: UnknownClassScoring) -> None:
    """Print how well a model detects unknown classes.

    Examples
    --------
    robustgen score-ood --id preds/mine/clean.npz --ood preds/ood/clean.npz
    robustgen score-ood --id preds/mine/clean.npz --ood preds/ood/clean.npz --confidence energy
    """
    from robustgen.lab.scores.unknown_classes import score_unknown_classes

    _check_page(options)
    _tell(score_unknown_classes(options), options, options.format)


@command("score-detection")
@takes(options=DetectionScoring)
def score_detection(options: DetectionScoring) -> None:
    r"""Print P, mPC and rPC of a detector.

    pycocotools matches boxes and masks. mPC is the mean over fifteen corruptions at five severities.

    Examples
    --------
    robustgen score-detection --annotations boxes.json --results 'preds/{corruption}/{severity}.json' \
      --clean-results clean.json
    robustgen score-detection --annotations boxes.json --results 'preds/{corruption}/{severity}.json' \
      --clean-results clean.json --compare-with published
    """
    from robustgen.lab.scores import detection
    from robustgen.sets.dataset.opening import open_set
    from robustgen.sets.executors import count_cores

    _check_page(options)
    options = options.model_copy(update={"jobs": options.jobs or count_cores()})
    opened = open_set(options.predicted_set) if options.predicted_set else None
    report = detection.score_detections(options, opened)
    _tell(report, options, options.format, examples=report.examples)


@command("score-segmentation")
@takes(options=SegmentationScoring)
def score_segmentation(options: SegmentationScoring) -> None:
    r"""Print mIoU, mCD and rCD of a model from label maps.

    Predicted and true maps are matched by file name.

    Examples
    --------
    robustgen score-segmentation --truth truth --results 'preds/{corruption}/{severity}' --clean-results clean
    robustgen score-segmentation --truth truth --results 'preds/{corruption}/{severity}' \
      --clean-results clean --reference deeplab.json
    """
    from robustgen.lab.scores import segmentation
    from robustgen.sets.executors import count_cores

    _check_page(options)
    options = options.model_copy(update={"jobs": options.jobs or count_cores()})
    report = segmentation.score_segmentation(options)
    _tell(report, options, options.format, examples=report.examples)


@command("score-answers")
@takes(options=AnswerScoring)
def score_answers(options: AnswerScoring) -> None:
    r"""Print the accuracy of answers about pictures.

    Tables of answers are those of VLMEvalKit or lmms-eval, or CSV, TSV, JSON, JSON lines or Parquet.

    Examples
    --------
    robustgen score-answers --results 'answers/{corruption}-{severity}.csv' --clean-results answers/clean.csv
    robustgen score-answers --results '{model}/{corruption}-{severity}.jsonl' \
      --clean-results '{model}/clean.jsonl' --questions MMBench_DEV_EN.tsv --rule choice --output page.html
    """
    from robustgen.lab.scores import answers

    _check_page(options)
    report = answers.score_answers(options)
    _tell(report, options, options.format, report.judge(options.fail_if))


def _check_page(options: Gated | AnswerScoring) -> None:
    """Check before the work that a page can be written."""
    if path := options.output:
        from robustgen.display.html import check_page_path

        check_page_path(path)


def _tell(
    report: "TableReport",
    options: Gated | AnswerScoring,
    layout: str,
    judgements: "Sequence[Judgement]" = (),
    examples: "Examples | None" = None,
) -> None:
    """Print a report, write its page, and end with status 1 if a condition holds, by default of one model."""
    from robustgen.lab.scores.gates import Evidence, judge
    from robustgen.lab.scores.table_page import render_report, write_table_page

    if isinstance(options, Gated):
        judgements = judge(report.model, report.list_scores(), options.fail_if)
    evidence = Evidence(judgements, report.recorded)
    text = render_report(report, layout, table_width(), evidence)
    echo_report(text + _list_failures(evidence, layout), report.notes)
    if path := options.output:
        size = write_table_page(report, evidence, path, examples)
        echo(f"{format_path(path.absolute())}, {format_size(size)}", err=True)
    _finish(evidence)


def _list_failures(evidence: "Evidence", layout: str) -> str:
    """Return the conditions that failed as a list below Markdown."""
    failures = evidence.failures if layout == "markdown" else []
    return "\n" * bool(failures) + "".join(f"\n- {each}" for each in failures)


def _finish(evidence: "Evidence", is_incomplete: bool = False) -> None:
    """Print the conditions that failed, and end with status 1 if there are any."""
    for failure in evidence.failures:
        echo(failure, err=True)
    sys.exit(1 if evidence.failures or is_incomplete else 0)
