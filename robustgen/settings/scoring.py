"""Choices of scores and their tables."""

import re
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BeforeValidator, Field, StrictBool

from robustgen.errors import ArgumentError
from robustgen.settings.fields import Count, Flag, Group, Jobs, NewFile, Options, Whole, split_list

SOURCE, CONTENT, OUTPUT, RUNNING = Group.SOURCE, Group.CONTENT, Group.OUTPUT, Group.RUNNING
Layout = Literal["table", "markdown", "csv", "json", "latex"]
ScoreLayout = Literal["table", "markdown", "csv", "json", "latex", "model-index"]
Columns = Literal["means", "noise", "blur", "weather", "digital", "extra"]
_COMPARISONS: Final = {">": gt, "<": lt, ">=": ge, "<=": le}


class Threshold(NamedTuple):
    """A condition on a score, in the unit of the tables: ``mCE > 70``."""

    name: str
    sign: str
    limit: float

    def holds(self, value: float) -> bool:
        """Return whether the condition holds for a value of the score."""
        return bool(_COMPARISONS[self.sign](value, self.limit))


def _read_threshold(text: str) -> Threshold:
    found = re.fullmatch(r"\s*(.*?\S)\s*([<>]=?)\s*(\d+(?:\.\d+)?)\s*%?\s*", text)
    if not found:
        raise ArgumentError(f"must be NAME > NUMBER, or with <, >= or <=, not {text!r}")
    return Threshold(found[1], found[2], float(found[3]))


Condition = Annotated[Threshold, BeforeValidator(_read_threshold)]


class Tables(Options):
    """Form of the tables."""

    format: Annotated[Layout, Flag(OUTPUT, usual=True)] = Field("table", description="form of the tables")


class CellScoring(Options):
    """Scores of files for each corruption and severity."""

    partial: Annotated[StrictBool, Flag(CONTENT, usual=True)] = Field(
        False, description="score incomplete sets too; print the missing parts"
    )
    replicates: Annotated[Whole, Field(ge=0), Flag(CONTENT, "N")] = Field(
        100, description="bootstrap samples of images for 95 % intervals; 0 for none"
    )


class Scoring(CellScoring):
    """Scores of predictions."""

    replicates: Annotated[Whole, Field(ge=0), Flag(CONTENT, "N")] = Field(
        1000, description="bootstrap samples of images for 95 % intervals; 0 for none"
    )
    format: Annotated[ScoreLayout, Flag(OUTPUT, usual=True)] = Field(
        "table", description="form of the tables; model-index is for a Hugging Face model card"
    )
    predictions: Annotated[tuple[str, ...], Flag(SOURCE, argument=True)] = Field(
        description="folders of predictions"
    )
    baseline: Annotated[str | None, Flag(CONTENT, "NAME|FILE", usual=True)] = Field(
        None, description="baseline: alexnet (default for ImageNet), none, or a file"
    )
    difficulty: Annotated[Whole, Field(ge=1, le=3), Flag(CONTENT, "N")] = Field(
        1, description="difficulty of perturbations"
    )
    plan: Annotated[float | None, Field(gt=0, allow_inf_nan=False), Flag(CONTENT, "WIDTH")] = Field(
        None, description="print how many images a mean known to +- WIDTH needs, in the unit of the table"
    )
    compare_with: Annotated[Literal["published"] | None, Flag(CONTENT, usual=True)] = Field(
        None, description="compare with published models"
    )
    dataset: Annotated[str | None, Flag(SOURCE, "DIR")] = Field(
        None, description="check the keys of the predictions against this set"
    )
    verbose: Annotated[StrictBool, Flag(OUTPUT)] = Field(
        False, description="print all tables of the papers; default for tables in pipes"
    )
    columns: Annotated[tuple[Columns, ...], BeforeValidator(split_list), Flag(OUTPUT, "GROUPS")] = Field(
        (), description="columns of a single table: means, noise, blur, weather, digital, extra"
    )
    fail_if: Annotated[tuple[Condition, ...], Flag(OUTPUT, "CONDITION", usual=True)] = Field(
        (), description="condition that ends the command with status 1, such as 'mCE > 70'; repeatable"
    )
    output: Annotated[tuple[NewFile, ...], Flag(OUTPUT, "FILE", usual=True)] = Field(
        (), description="also write a page (.html) or a chart (.png, .svg, .pdf); repeatable"
    )


class UnknownClassScoring(Tables):
    """Scores of the detection of unknown classes."""

    known: Annotated[tuple[Path, ...], Flag(SOURCE, "FILE", usual=True, name="id")] = Field(
        description="predictions of known classes; repeatable"
    )
    unknown: Annotated[tuple[Path, ...], Flag(SOURCE, "FILE", usual=True, name="ood")] = Field(
        description="predictions of unknown classes; repeatable"
    )
    confidence: Annotated[Literal["msp", "max-logit", "energy"], Flag(CONTENT, usual=True)] = Field(
        "msp", description="confidence; msp is the maximum softmax probability"
    )


class DetectionScoring(CellScoring, Tables):
    """Scores of detectors."""

    annotations: Annotated[Path, Flag(SOURCE, "FILE", usual=True)] = Field(
        description="COCO annotations of the images"
    )
    results: Annotated[str, Flag(SOURCE, "PATTERN", usual=True)] = Field(
        description="COCO result files, such as 'preds/{corruption}/{severity}.json'"
    )
    clean: Annotated[Path, Flag(SOURCE, "FILE", usual=True)] = Field(
        description="COCO results on the clean images"
    )
    type: Annotated[tuple[Literal["bbox", "segm"], ...], Flag(CONTENT)] = Field(
        (), description="boxes or masks; repeatable; default the types in the results"
    )
    name: Annotated[str, Flag(OUTPUT, "NAME")] = Field(
        "model", description="name of the detector in CSV and JSON"
    )
    compare_with: Annotated[Literal["published"] | None, Flag(CONTENT)] = Field(
        None, description="compare with MMDetection's detectors"
    )
    jobs: Annotated[Jobs, Flag(RUNNING, "N|all")] = Field(
        None, description="processes; default all: one per core"
    )


class SegmentationScoring(CellScoring, Tables):
    """Scores of segmentation models."""

    truth: Annotated[Path, Flag(SOURCE, "DIR", usual=True)] = Field(
        description="label maps of the images, PNG files"
    )
    results: Annotated[str, Flag(SOURCE, "PATTERN", usual=True)] = Field(
        description="folders of predicted maps, such as 'preds/{corruption}/{severity}'"
    )
    clean: Annotated[Path, Flag(SOURCE, "DIR", usual=True)] = Field(
        description="maps predicted on the clean images"
    )
    classes: Annotated[Count, Field(le=65535), Flag(CONTENT, "N")] = Field(
        19, description="number of classes"
    )
    ignore: Annotated[Whole, Flag(CONTENT, "LABEL")] = Field(255, description="label of pixels to ignore")
    label_ids: Annotated[Literal["none", "truth", "results", "both"], Flag(CONTENT)] = Field(
        "none", description="maps that contain Cityscapes' 34 label ids instead of its 19 train ids"
    )
    reference: Annotated[Path | None, Flag(CONTENT, "FILE")] = Field(
        None, description="JSON file of the reference model for mCD and rCD"
    )
    name: Annotated[str, Flag(OUTPUT, "NAME")] = Field(
        "model", description="name of the model in CSV and JSON"
    )
    jobs: Annotated[Jobs, Flag(RUNNING, "N|all")] = Field(
        None, description="processes; default all: one per core"
    )
