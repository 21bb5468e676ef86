"""Choices of scores and their tables."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StrictBool

from robustgen.settings.fields import Count, Flag, Group, Jobs, Options, Whole

SOURCE, CONTENT, OUTPUT, RUNNING = Group.SOURCE, Group.CONTENT, Group.OUTPUT, Group.RUNNING
Layout = Literal["table", "markdown", "csv", "json", "latex"]


class Tables(Options):
    """Form of the tables."""

    format: Annotated[Layout, Flag(OUTPUT, usual=True)] = "table"
    """form of the tables"""


class CellScoring(Tables):
    """Scores of files for each corruption and severity."""

    partial: Annotated[StrictBool, Flag(CONTENT, usual=True)] = False
    """score incomplete sets too; print the missing parts"""
    replicates: Annotated[Whole, Field(ge=0), Flag(CONTENT, "N")] = 100
    """bootstrap samples of images for 95 % intervals; 0 for none"""


class Scoring(CellScoring):
    """Scores of predictions."""

    replicates: Annotated[Whole, Field(ge=0), Flag(CONTENT, "N")] = 1000
    """bootstrap samples of images for 95 % intervals; 0 for none"""
    predictions: Annotated[tuple[str, ...], Flag(SOURCE, argument=True)]
    """folders of predictions"""
    baseline: Annotated[str | None, Flag(CONTENT, "NAME|FILE", usual=True)] = None
    """alexnet (default for ImageNet), none, or a file"""
    difficulty: Annotated[Whole, Field(ge=1, le=3), Flag(CONTENT, "N")] = 1
    """difficulty of perturbations"""
    plan: Annotated[float | None, Field(gt=0, allow_inf_nan=False), Flag(CONTENT, "WIDTH")] = None
    """print how many images a mean known to +- WIDTH needs, in the unit of the table"""
    compare_with: Annotated[Literal["published"] | None, Flag(CONTENT, usual=True)] = None
    """compare with published models"""
    dataset: Annotated[str | None, Flag(SOURCE, "DIR")] = None
    """check the keys of the predictions against this set"""
    verbose: Annotated[StrictBool, Flag(OUTPUT)] = False
    """print the papers' full tables at any width; default in pipes"""
    output: Annotated[tuple[Path, ...], Flag(OUTPUT, "FILE", usual=True)] = ()
    """also write a page (.html) or a chart (.png, .svg, .pdf); repeatable"""


class UnknownClassScoring(Tables):
    """Scores of the detection of unknown classes."""

    known: Annotated[tuple[Path, ...], Flag(SOURCE, "FILE", usual=True, name="id")]
    """predictions of known classes; repeatable"""
    unknown: Annotated[tuple[Path, ...], Flag(SOURCE, "FILE", usual=True, name="ood")]
    """predictions of unknown classes; repeatable"""
    confidence: Annotated[Literal["msp", "max-logit", "energy"], Flag(CONTENT, usual=True)] = "msp"
    """confidence; msp is the maximum softmax probability"""


class DetectionScoring(CellScoring):
    """Scores of detectors."""

    annotations: Annotated[Path, Flag(SOURCE, "FILE", usual=True)]
    """COCO annotations of the images"""
    results: Annotated[str, Flag(SOURCE, "PATTERN", usual=True)]
    """COCO result files, such as 'preds/{corruption}/{severity}.json'"""
    clean: Annotated[Path, Flag(SOURCE, "FILE", usual=True)]
    """COCO results on the clean images"""
    type: Annotated[tuple[Literal["bbox", "segm"], ...], Flag(CONTENT)] = ()
    """boxes or masks; repeatable; default the types in the results"""
    name: Annotated[str, Flag(OUTPUT, "NAME")] = "model"
    """name of the detector in CSV and JSON"""
    compare_with: Annotated[Literal["published"] | None, Flag(CONTENT)] = None
    """compare with MMDetection's detectors"""
    jobs: Annotated[Jobs, Flag(RUNNING, "N|all")] = None
    """processes; default all: one per core"""


class SegmentationScoring(CellScoring):
    """Scores of segmentation models."""

    truth: Annotated[Path, Flag(SOURCE, "DIR", usual=True)]
    """label maps of the images, PNG files"""
    results: Annotated[str, Flag(SOURCE, "PATTERN", usual=True)]
    """folders of predicted maps, such as 'preds/{corruption}/{severity}'"""
    clean: Annotated[Path, Flag(SOURCE, "DIR", usual=True)]
    """maps predicted on the clean images"""
    classes: Annotated[Count, Field(le=65535), Flag(CONTENT, "N")] = 19
    """number of classes"""
    ignore: Annotated[Whole, Flag(CONTENT, "LABEL")] = 255
    """label of pixels to ignore"""
    label_ids: Annotated[Literal["none", "truth", "results", "both"], Flag(CONTENT)] = "none"
    """maps that contain Cityscapes' 34 label ids instead of its 19 train ids"""
    reference: Annotated[Path | None, Flag(CONTENT, "FILE")] = None
    """JSON file of the reference model for mCD and rCD"""
    name: Annotated[str, Flag(OUTPUT, "NAME")] = "model"
    """name of the model in CSV and JSON"""
    jobs: Annotated[Jobs, Flag(RUNNING, "N|all")] = None
    """processes; default all: one per core"""
