"""score-detection: P, mPC and rPC of a detector."""

from robustgen.cli.app import command, echo_report, table_width
from robustgen.cli.flags import takes
from robustgen.settings.scoring import DetectionScoring


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
    from robustgen.sets.executors import count_cores

    options = options.model_copy(update={"jobs": options.jobs or count_cores()})
    report = detection.score_detections(options)
    echo_report(report.render(options.format, table_width()), report.notes)
