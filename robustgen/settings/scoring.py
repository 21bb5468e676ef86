"""Choices of scores and their tables."""

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool

from robustgen.errors import ArgumentError, ConfigError, quote, raise_as
from robustgen.settings.fields import (
    Count,
    ExpandedLocation,
    Flag,
    Group,
    Jobs,
    NewFile,
    Options,
    Whole,
    split_list,
)
from robustgen.settings.loading import check, convert
from robustgen.settings.yaml_files import read_yaml

SOURCE, CONTENT, OUTPUT, RUNNING = Group.SOURCE, Group.CONTENT, Group.OUTPUT, Group.RUNNING
TextForm = Literal["table", "markdown", "csv", "json", "latex"]
_COMPARISONS: Final = {">": gt, "<": lt, ">=": ge, "<=": le}


@dataclass(frozen=True)
class Threshold:
    """A condition on a score, in the unit of the tables: ``mCE > 70``."""

    name: str
    sign: str
    limit: float

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.limit:g}"

    def holds(self, value: float) -> bool:
        """Return whether the condition holds for a value of the score."""
        return bool(_COMPARISONS[self.sign](value, self.limit))


@dataclass(frozen=True)
class Drop:
    """A score that is worse than in the predictions of another model, in the unit of the tables.

    ``mCE worse than preds/main``, or ``mCE worse than preds/main by 1``.
    """

    name: str
    folder: str
    least: float

    def __str__(self) -> str:
        return f"{self.name} worse than {self.folder}" + f" by {self.least:g}" * bool(self.least)


def _read_condition(text: str) -> Threshold | Drop:
    found = re.fullmatch(r"\s*(.*?\S)\s+worse\s+than\s+(.*?\S)(?:\s+by\s+(\d+(?:\.\d+)?)\s*%?)?\s*", text)
    return Drop(found[1], found[2], float(found[3] or 0)) if found else _read_threshold(text)


def _read_threshold(text: str) -> Threshold:
    found = re.fullmatch(r"\s*(.*?\S)\s*([<>]=?)\s*(\d+(?:\.\d+)?)\s*%?\s*", text)
    if not found:
        raise ArgumentError(f"must be NAME > NUMBER, or with <, >= or <=, not {quote(text)}")
    return Threshold(found[1], found[2], float(found[3]))


@dataclass(frozen=True)
class SeedGroup:
    """Runs of one model with several seeds: ``resnet50=resnet50-seed*``.

    Attributes
    ----------
    name : str
        Name of the model in tables.
    pattern : str
        Shell pattern of the names of its runs.
    """

    name: str
    pattern: str


def _read_group(text: str) -> SeedGroup:
    name, sign, pattern = (part.strip() for part in text.partition("="))
    if not (sign and name and pattern):
        raise ArgumentError(f"must be NAME=PATTERN, such as resnet50=resnet50-seed*, not {quote(text)}")
    return SeedGroup(name, pattern)


def _check_link(text: str) -> str:
    if not re.match(r"https?://\S+$", text):
        raise ArgumentError(f"must be an address that begins with https://, not {quote(text)}")
    return text


Link = Annotated[str, AfterValidator(_check_link)]


class ModelFacts(Options):
    """Facts of a model, from a models file."""

    paper: str = ""
    """paper, for instance its title"""
    url: Link | None = None
    """address of the paper"""
    architecture: str = ""
    """architecture"""
    parameters: Count | None = None
    """number of parameters"""
    training_data: str = ""
    """training data"""
    image_size: Count | None = None
    """width of the input in pixels"""
    code: Link | None = None
    """address of the code or of the weights"""


def _read_models(path: object) -> dict[str, ModelFacts] | None:
    """Return the rows of a models file, by the names of the models."""
    if path is None:
        return None
    if not isinstance(path, (str, Path)):
        raise ArgumentError("must be a file")
    if Path(path).suffix.lower() != ".csv":
        rows = read_yaml(Path(path))
    else:
        refused = raise_as(ConfigError, f"{path}: cannot be read as CSV", OSError, ValueError, csv.Error)
        with refused, Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = {str(row.pop("model", "")): row for row in csv.DictReader(file)}
        rows = {
            name: {k: convert(ModelFacts, k, text) for k, text in row.items() if text}
            for name, row in rows.items()
        }
    if wrong := [name for name, row in rows.items() if not name or not isinstance(row, dict)]:
        raise ConfigError(f"{path}: {quote(wrong[0])}: must be the name of a model, with keys and values")
    return {name: check(ModelFacts, row, f"{path}: {name}") for name, row in rows.items()}


Condition = Annotated[Threshold | Drop, BeforeValidator(_read_condition)]
Limit = Annotated[Threshold, BeforeValidator(_read_threshold)]


class TableForm(Options):
    """Form of the tables."""

    format: Annotated[TextForm, Flag(OUTPUT, usual=True)] = "table"
    """form of the tables"""


class Gated(Options):
    """Conditions and pages of scores of one model."""

    fail_if: Annotated[tuple[Limit, ...], Flag(OUTPUT, "CONDITION", usual=True)] = ()
    """condition that ends the command with status 1, in the unit of the tables; repeatable"""
    output: Annotated[NewFile | None, Flag(OUTPUT, "FILE", usual=True)] = None
    """also write a page (.html)"""


class ChartForm(Options):
    """Form of the charts."""

    chart_width: Annotated[Literal["column", "page"], Flag(OUTPUT)] = "page"
    """width of charts: column is 3.3 inches, page 6.9"""
    chart: Annotated[Literal["curves", "dots"] | None, Flag(OUTPUT, usual=True)] = None
    """curves of error against severity (default for C sets), or dots by corruption (default for P sets)"""
    chart_models: Annotated[tuple[str, ...], BeforeValidator(split_list), Flag(OUTPUT, "NAMES")] = ()
    """models in the charts; default all, in curves the best seven"""


class Resampled(Options):
    """Intervals of scores."""

    replicates: Annotated[Whole, Field(ge=0), Flag(CONTENT, "N")] = 100
    """bootstrap samples of images for 95 % intervals; 0 for none"""


class CellScoring(Resampled):
    """Scores of files for each corruption and severity."""

    partial: Annotated[StrictBool, Flag(CONTENT, usual=True)] = False
    """score incomplete sets too; print the missing parts"""


class Scoring(CellScoring, ChartForm):
    """Scores of predictions."""

    replicates: Annotated[Whole, Field(ge=0), Flag(CONTENT, "N")] = 1000
    """bootstrap samples of images for 95 % intervals; 0 for none"""
    format: Annotated[TextForm, Flag(OUTPUT, usual=True)] = "table"
    """form of the tables"""
    predictions: Annotated[tuple[ExpandedLocation, ...], Flag(SOURCE, argument=True)]
    """folders of predictions, or folders of such folders"""
    baseline: Annotated[ExpandedLocation | None, Flag(CONTENT, "NAME|FILE|DIR", usual=True)] = None
    """baseline: alexnet (default for ImageNet), none, a file, or a folder of predictions"""
    difficulty: Annotated[Whole, Field(ge=1, le=3), Flag(CONTENT, "N")] = 1
    """difficulty of perturbations"""
    plan: Annotated[float | None, Field(gt=0, allow_inf_nan=False), Flag(CONTENT, "WIDTH")] = None
    """print how many images a mean known to +- WIDTH needs, in the unit of the table"""
    compare_with: Annotated[Literal["published"] | None, Flag(CONTENT, usual=True)] = None
    """compare with published models"""
    group: Annotated[
        tuple[Annotated[SeedGroup, BeforeValidator(_read_group)], ...],
        Flag(CONTENT, "NAME=PATTERN", usual=True),
    ] = ()
    """runs of one model with several seeds, which become a row with their mean; repeatable"""
    models: Annotated[
        Mapping[str, ModelFacts] | None, BeforeValidator(_read_models), Flag(CONTENT, "FILE", usual=True)
    ] = None
    """YAML, JSON or CSV file with paper, architecture, parameters and more of each model, for the page"""
    predicted_set: Annotated[ExpandedLocation | None, Flag(SOURCE, "SET")] = None
    """the set that was predicted: check keys against it, and show its pictures on the page"""
    verbose: Annotated[StrictBool, Flag(OUTPUT)] = False
    """print all tables of the papers; default for tables in pipes"""
    fail_if: Annotated[tuple[Condition, ...], Flag(OUTPUT, "CONDITION", usual=True)] = ()
    """condition that ends the command with status 1: 'mCE > 70', 'mCE worse than DIR by 1'; repeatable"""
    output: Annotated[tuple[NewFile, ...], Flag(OUTPUT, "FILE", usual=True)] = ()
    """also write a page (.html) or a chart (.png, .svg, .pdf); repeatable"""


class UnknownClassScoring(Resampled, TableForm, Gated):
    """Scores of the detection of unknown classes."""

    known: Annotated[tuple[Path, ...], Flag(SOURCE, "FILE", usual=True, name="id")]
    """predictions of known classes; repeatable"""
    unknown: Annotated[tuple[Path, ...], Flag(SOURCE, "FILE", usual=True, name="ood")]
    """predictions of unknown classes; repeatable"""
    confidence: Annotated[Literal["msp", "max-logit", "energy"], Flag(CONTENT, usual=True)] = "msp"
    """confidence; msp is the maximum softmax probability"""


class DetectionScoring(CellScoring, TableForm, Gated):
    """Scores of detectors."""

    annotations: Annotated[Path, Flag(SOURCE, "FILE", usual=True)]
    """COCO annotations of the images"""
    results: Annotated[str, Flag(SOURCE, "PATTERN", usual=True)]
    """COCO result files, such as 'preds/{corruption}/{severity}.json'"""
    clean: Annotated[Path, Flag(SOURCE, "FILE", usual=True, name="clean-results")]
    """COCO results on the clean images"""
    predicted_set: Annotated[ExpandedLocation | None, Flag(SOURCE, "SET", usual=True)] = None
    """the corrupted set, for pictures below the boxes on the page"""
    type: Annotated[tuple[Literal["bbox", "segm"], ...], Flag(CONTENT)] = ()
    """boxes or masks; repeatable; default the types in the results"""
    name: Annotated[str, Flag(OUTPUT, "NAME")] = "model"
    """name of the model in JSON and on the page"""
    compare_with: Annotated[Literal["published"] | None, Flag(CONTENT)] = None
    """compare with MMDetection's detectors"""
    jobs: Annotated[Jobs, Flag(RUNNING, "N|all")] = None
    """processes; default all: one per core"""


class AnswerScoring(TableForm):
    """Scores of answers to questions about pictures."""

    results: Annotated[str, Flag(SOURCE, "PATTERN", usual=True)]
    """tables of answers, such as 'out/{model}/{model}_MMBench_{corruption}-{severity}_*_result.xlsx'"""
    clean: Annotated[str, Flag(SOURCE, "PATTERN", usual=True, name="clean-results")]
    """tables of answers about the clean pictures"""
    questions: Annotated[str | None, Flag(SOURCE, "FILE", usual=True)] = None
    """table that was asked: which questions there are, and which of them share a picture"""
    score: Annotated[str | None, Flag(CONTENT, "COLUMN", usual=True)] = None
    """column of scores from 0 to 1, or metric of lmms-eval; default hit, score, or the only metric"""
    rule: Annotated[
        Literal["exact", "words", "choice", "yes-no", "number", "anls", "mean", "max", "distance"] | None,
        Flag(CONTENT, usual=True),
    ] = None
    """comparison of prediction and answer; mean, max or distance for the matches of VLMEvalKit"""
    key: Annotated[str | None, Flag(CONTENT, "COLUMN")] = None
    """column that identifies a question; default index, doc_id, question_id or question"""
    picture: Annotated[str | None, Flag(CONTENT, "COLUMN")] = None
    """column of pictures, or of their names; default image, image_path or input_media"""
    category: Annotated[str | None, Flag(CONTENT, "COLUMN", usual=True)] = None
    """column of categories, which get scores of their own"""
    partial: Annotated[StrictBool, Flag(CONTENT, usual=True)] = False
    """score incomplete results too; print the missing parts"""
    name: Annotated[str, Flag(OUTPUT, "NAME")] = "model"
    """name of the model, if the patterns have no {model}"""
    # "worse than" names a model of the results.
    fail_if: Annotated[tuple[Condition, ...], Flag(OUTPUT, "CONDITION", usual=True)] = ()
    """condition that ends the command with status 1: 'accuracy < 60', 'fog worse than MODEL'; repeatable"""
    output: Annotated[NewFile | None, Flag(OUTPUT, "FILE", usual=True)] = None
    """also write a page (.html)"""


class SegmentationScoring(CellScoring, TableForm, Gated):
    """Scores of segmentation models."""

    truth: Annotated[Path, Flag(SOURCE, "DIR", usual=True)]
    """label maps of the images: PNG, TIFF, BMP, GIF or .npy files"""
    results: Annotated[str, Flag(SOURCE, "PATTERN", usual=True)]
    """folders of predicted maps, such as 'preds/{corruption}/{severity}'"""
    clean: Annotated[Path, Flag(SOURCE, "DIR", usual=True, name="clean-results")]
    """maps predicted on the clean images"""
    classes: Annotated[Count, Field(le=65535), Flag(CONTENT, "N", name="class-count")] = 19
    """number of classes"""
    ignore: Annotated[Whole | None, Flag(CONTENT, "LABEL")] = None
    """label of pixels to ignore; default 255"""
    one_based: Annotated[Literal["none", "truth", "results", "both"], Flag(CONTENT)] = "none"
    """maps whose classes begin at 1, and whose 0 is no class"""
    palette: Annotated[Path | None, Flag(CONTENT, "FILE|voc")] = None
    """classes of colours: lines of red, green and blue in the order of the classes, or voc (Pascal VOC's)"""
    label_ids: Annotated[Literal["none", "truth", "results", "both"], Flag(CONTENT)] = "none"
    """maps that contain Cityscapes' 34 label ids instead of its 19 train ids"""
    reference: Annotated[Path | None, Flag(CONTENT, "FILE")] = None
    """JSON file of the reference model for mCD and rCD"""
    name: Annotated[str, Flag(OUTPUT, "NAME")] = "model"
    """name of the model in JSON and on the page"""
    jobs: Annotated[Jobs, Flag(RUNNING, "N|all")] = None
    """processes; default all: one per core"""
