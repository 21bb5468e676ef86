"""score-segmentation: mIoU, mCD and rCD of a segmentation model."""

import os

from robustgen.cli.app import command, echo, echo_text, table_width
from robustgen.cli.flags import takes
from robustgen.settings.scoring import SegmentationScoring


@command("score-segmentation")
@takes(options=SegmentationScoring)
def score_segmentation(options: SegmentationScoring) -> None:
    """Print mIoU, mCD and rCD of a model from label maps.

    Predicted and true maps are matched by file name.
    """
    from robustgen.scores import segmentation

    report = segmentation.score_segmentation(
        options.truth,
        options.results,
        options.clean,
        labels=segmentation.LabelFormat(options.classes, options.ignore, options.label_ids),
        reference=options.reference,
        model=options.name,
        partial=options.partial,
        replicates=options.replicates,
        jobs=options.jobs or os.cpu_count() or 1,
    )
    echo_text(report.render(options.format, table_width()))
    for note in report.notes:
        echo(note, err=True)
