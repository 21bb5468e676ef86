"""score-segmentation: mIoU, mCD and rCD of a segmentation model."""

import os
from pathlib import Path
from typing import Any

import click

from robustgen.cli.app import Section, command, echo, echo_text
from robustgen.cli.options import PATH, Jobs, cell_score_options, file_option


@command("score-segmentation", Section.SCORE)
@click.option("--truth", metavar="DIR", type=PATH, required=True, help="Label maps of the images, PNG files.")
@click.option(
    "--results",
    metavar="PATTERN",
    required=True,
    help="Folders of predicted maps, such as 'preds/{corruption}/{severity}'.",
)
@click.option("--clean", metavar="DIR", type=PATH, required=True, help="Maps predicted on the clean images.")
@click.option("--classes", type=click.IntRange(1, 65535), default=19, help="Number of classes; default 19.")
@click.option("--ignore", type=int, default=255, help="Label of pixels to ignore; default 255.")
@click.option(
    "--label-ids",
    type=click.Choice(["none", "truth", "results", "both"]),
    default="none",
    help="Maps that contain Cityscapes' 34 label ids instead of its 19 train ids; default none.",
)
@file_option("--reference", "JSON file of the reference model for mCD and rCD.")
@click.option("--name", "model", default="model", metavar="NAME", help="Name of the model in CSV and JSON.")
@cell_score_options
@click.option("--jobs", type=Jobs(), default="all", help="Processes; default all: one per core.")
def score_segmentation(
    truth: Path,
    results: str,
    clean: Path,
    classes: int,
    ignore: int,
    label_ids: str,
    layout: str,
    jobs: int | str,
    **flags: Any,
) -> None:
    """Print mIoU, mCD and rCD of a model from label maps.

    Predicted and true maps are matched by file name.
    """
    from robustgen.scores import segmentation

    labels = segmentation.LabelFormat(classes, ignore, label_ids)
    processes = (os.cpu_count() or 1) if isinstance(jobs, str) else jobs
    report = segmentation.score_segmentation(truth, results, clean, labels=labels, jobs=processes, **flags)
    echo_text(report.render(layout))
    for note in report.notes:
        echo(note, err=True)
