"""score-segmentation: mIoU, mCD and rCD of a segmentation model."""

from robustgen.cli.app import command, echo_report, table_width
from robustgen.cli.flags import takes
from robustgen.settings.scoring import SegmentationScoring


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

    options = options.model_copy(update={"jobs": options.jobs or count_cores()})
    report = segmentation.score_segmentation(options)
    echo_report(report.render(options.format, table_width()), report.notes)
