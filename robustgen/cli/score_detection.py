"""score-detection: P, mPC and rPC of a detector."""

import os
from pathlib import Path
from typing import Any

import click

from robustgen.cli.app import Section, command, echo, echo_text
from robustgen.cli.options import PATH, Jobs, cell_score_options


@command("score-detection", Section.SCORE)
@click.option(
    "--annotations", metavar="FILE", type=PATH, required=True, help="COCO annotations of the images."
)
@click.option(
    "--results",
    metavar="PATTERN",
    required=True,
    help="COCO result files, such as 'preds/{corruption}/{severity}.json'.",
)
@click.option("--clean", metavar="FILE", type=PATH, required=True, help="COCO results on the clean images.")
@click.option(
    "--type",
    "types",
    type=click.Choice(["bbox", "segm"]),
    multiple=True,
    help="Boxes or masks; repeatable; default: the types in the results.",
)
@click.option(
    "--name", "model", default="model", metavar="NAME", help="Name of the detector in CSV and JSON."
)
@cell_score_options
@click.option(
    "--compare-with", type=click.Choice(["published"]), help="Compare with MMDetection's detectors."
)
@click.option("--jobs", type=Jobs(), default="all", help="Processes; default all: one per core.")
def score_detection(
    annotations: Path, results: str, clean: Path, layout: str, jobs: int | str, **flags: Any
) -> None:
    """Print P, mPC and rPC of a detector.

    pycocotools matches boxes and masks. mPC is the mean over fifteen corruptions at five severities.
    """
    from robustgen.scores.detection import scoring

    processes = (os.cpu_count() or 1) if isinstance(jobs, str) else jobs
    report = scoring.score_detections(annotations, results, clean, jobs=processes, **flags)
    echo_text(report.render(layout))
    for note in report.notes:
        echo(note, err=True)
