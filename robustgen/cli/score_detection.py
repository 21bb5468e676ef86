"""score-detection: P, mPC and rPC of a detector."""

import os

from robustgen.cli.app import command, echo, echo_text, table_width
from robustgen.cli.flags import takes
from robustgen.settings.scoring import DetectionScoring


@command("score-detection")
@takes(options=DetectionScoring)
def score_detection(options: DetectionScoring) -> None:
    """Print P, mPC and rPC of a detector.

    pycocotools matches boxes and masks. mPC is the mean over fifteen corruptions at five severities.
    """
    from robustgen.scores.detection import scoring

    report = scoring.score_detections(
        options.annotations,
        options.results,
        options.clean,
        types=options.type,
        model=options.name,
        partial=options.partial,
        replicates=options.replicates,
        compare_with=options.compare_with,
        jobs=options.jobs or os.cpu_count() or 1,
    )
    echo_text(report.render(options.format, table_width()))
    for note in report.notes:
        echo(note, err=True)
