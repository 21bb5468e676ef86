"""Choices of the related benchmarks."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool

from robustgen.errors import ArgumentError, quote
from robustgen.pixels.benchmarks.parameters import ALPHAS, LEVELS, MOST_STEPS
from robustgen.settings.catalogue import edition_names
from robustgen.settings.config import Choices, EditionName
from robustgen.settings.fields import (
    Count,
    ExpandedLocation,
    Flag,
    Group,
    Options,
    Part,
    Probability,
    SetName,
    Whole,
    make_absolute,
)
from robustgen.settings.models import ClaheKeys, DenoiseKeys, MedianKeys, ModelInput

SOURCE, CONTENT, OUTPUT, RUNNING = Group.SOURCE, Group.CONTENT, Group.OUTPUT, Group.RUNNING
MODEL = Group.MODEL


# --- make-augmix ---------------------------------------------------------------------------------

MOST_COPIES: Final = 1000


def _check_depth(depth: int) -> int:
    if depth != -1 and not 1 <= depth <= MOST_STEPS:
        raise ArgumentError(f"must be -1 or 1 to {MOST_STEPS}, not {depth}")
    return depth


class AugMixChoices(Choices):
    """Choices of make-augmix."""

    edition: Annotated[EditionName, Flag(CONTENT, "NAME", Part.EDITION, complete=edition_names)] = "folder"
    """preparation of the images"""
    quality: Annotated[Count, Field(le=95), Flag(OUTPUT, "N", Part.ENCODING)] = 85
    """quality of JPEG files"""
    copies: Annotated[Count, Field(le=MOST_COPIES), Flag(CONTENT, "N", Part.OPERATIONS, usual=True)] = 2
    """augmented copies of every image"""
    severity: Annotated[
        float,
        Field(ge=LEVELS[0], le=LEVELS[1], allow_inf_nan=False),
        Flag(CONTENT, "X", Part.OPERATIONS, usual=True),
    ] = 3.0
    """strength of the operations, 0.1 to 10"""
    width: Annotated[Count, Field(le=MOST_STEPS), Flag(CONTENT, "N", Part.OPERATIONS)] = 3
    """number of chains"""
    depth: Annotated[Whole, AfterValidator(_check_depth), Flag(CONTENT, "N", Part.OPERATIONS)] = -1
    """operations per chain; -1: 1 to 3 at random"""
    alpha: Annotated[
        float, Field(ge=ALPHAS[0], le=ALPHAS[1], allow_inf_nan=False), Flag(CONTENT, "X", Part.OPERATIONS)
    ] = 1.0
    """parameter of the distributions of the weights"""
    operations: Annotated[Literal["augmix", "all"], Flag(CONTENT, usual=True, part=Part.OPERATIONS)] = (
        "augmix"
    )
    """operations to draw from; all adds those close to ImageNet-C"""


# --- preprocess ------------------------------------------------------------------------------------


class CleaningChoices(Choices):
    """Choices of all commands of preprocess."""

    quality: Annotated[Count, Field(le=95), Flag(OUTPUT, "N", Part.ENCODING)] = 95
    """quality of JPEG files"""
    edition: str | None = None
    """edition of the source, as its manifest says"""
    benchmark: str | None = None
    """title of the source, as its manifest says"""
    origin: str | None = None
    """digest of the images that the source was made from"""


class ClaheChoices(CleaningChoices, ClaheKeys):
    """Choices of preprocess clahe."""


class DenoiseChoices(CleaningChoices, DenoiseKeys):
    """Choices of preprocess denoise."""


class MedianChoices(CleaningChoices, MedianKeys):
    """Choices of preprocess median."""


CLEANING_CHOICES: Final[Mapping[str, type[CleaningChoices]]] = {
    "clahe": ClaheChoices,
    "denoise": DenoiseChoices,
    "median": MedianChoices,
}


class CleaningCommand(Options):
    """Places of a data set before and after cleaning."""

    source: Annotated[str, Flag(SOURCE, argument=True, name="SRC")]
    """the data set"""
    destination: Annotated[str, Flag(OUTPUT, argument=True, name="DST")]
    """the output"""


# --- make-icons ----------------------------------------------------------------------------------


def _pairs(form: str) -> BeforeValidator:
    """Return a validator that turns texts of this `form`, such as ``NAME=DIR``, into a mapping."""

    def read(value: Any) -> Any:
        if not isinstance(value, tuple):
            return value
        pairs: dict[str, str] = {}
        for text in value:
            name, sign, given = text.partition("=")
            if not (name and sign and given):
                raise ArgumentError(f"must be {form}, not {quote(text)}")
            if name in pairs:
                raise ArgumentError(f"{quote(name)} is given twice")
            pairs[name] = given
        return pairs

    return BeforeValidator(read)


def _check_style_names(styles: dict[str, str]) -> dict[str, str]:
    for name in styles:
        if not re.fullmatch(r"\w[\w.-]*", name):
            raise ArgumentError(f"{quote(name)} is not a valid style name; use letters, digits, _, - and .")
    if len(styles) < 2:
        raise ArgumentError("at least two styles are needed, because each split holds one out")
    return {name: make_absolute(folder) for name, folder in sorted(styles.items())}


class IconChoices(Choices):
    """Choices of make-icons."""

    dataset: SetName | None = "icons"
    """name of the data set"""
    output: Annotated[ExpandedLocation, Flag(OUTPUT, "DIR", Part.OUTPUT, usual=True)] = "out/icons"
    """output folder or URL"""
    style: Annotated[
        dict[str, ExpandedLocation],
        _pairs("NAME=DIR"),
        AfterValidator(_check_style_names),
        Flag(SOURCE, "NAME=DIR", Part.OPERATIONS, usual=True),
    ]
    """pictures of a style; repeatable"""
    licence: Annotated[dict[str, str], _pairs("NAME=TEXT"), Flag(SOURCE, "NAME=TEXT", Part.OPERATIONS)] = (
        Field({})
    )
    """licence of a style's pictures; repeatable"""
    size: Annotated[Whole, Field(ge=16, le=1024), Flag(CONTENT, "PIXELS", Part.OPERATIONS, usual=True)] = 64
    """width and height in pixels"""
    per_class: Annotated[
        Count | None,
        BeforeValidator(lambda value: None if value == "all" else value),
        Flag(CONTENT, "N|all", Part.OPERATIONS),
    ] = 40
    """emoji of a class in each style at most"""


# --- make-subtypes -------------------------------------------------------------------------------


class SubtypeChoices(Options):
    """Choices of make-subtypes."""

    imagenet22k: Annotated[Path, Flag(SOURCE, argument=True)]
    """a folder for each noun"""
    wordnet: Annotated[Path, Flag(SOURCE, "DIR", usual=True)] = Path("/usr/share/wordnet")
    """folder with WordNet 3.0's data.noun; by default that of Debian's wordnet-base"""
    output: Annotated[str, Flag(OUTPUT, "DIR", usual=True)] = "out/subtypes"
    """output folder"""


# --- filter a, filter o --------------------------------------------------------------------------


class Filtering(ModelInput):
    """Choices of the searches for natural adversarial examples."""

    candidates: Annotated[str, Flag(SOURCE, argument=True)]
    """a folder for each class"""
    model: Annotated[tuple[str, ...], Flag(MODEL, "NAME", usual=True)]
    """a file (model.onnx, model.pt2), timm:NAME[@FILE], ...; repeatable"""
    batch_size: Annotated[Count, Flag(MODEL, "N")] = 2
    """images per batch"""
    output: Annotated[str, Flag(OUTPUT, "DIR", usual=True)]
    """folder or URL for the shortlist and the page"""
    classes: Annotated[tuple[str, ...], Flag(MODEL, "NAME|FILE", usual=True)] = ()
    """class folders in the order of the outputs; once, or once per model"""
    only: Annotated[Path | None, Flag(CONTENT, "FILE", usual=True)] = None
    """the relevant classes, one per line"""
    resize: Annotated[Count | None, Flag(Group.INPUT, "N")] = None
    """shorter side before the crop; default input size / 0.875"""
    limit: Annotated[Count | None, Flag(SOURCE, "N", usual=True)] = None
    """use only the first N candidates"""
    overwrite: Annotated[StrictBool, Flag(RUNNING, usual=True)] = False
    """replace results created with different settings"""


class AdversarialFiltering(Filtering):
    """Choices of filter a."""

    max_confidence: Annotated[Probability, Flag(CONTENT, "P", usual=True)] = 0.15
    """limit for the true class"""
    per_confusion: Annotated[Count, Flag(CONTENT, "N", usual=True)] = 15
    """images per confused pair"""


class OutlyingFiltering(Filtering):
    """Choices of filter o."""

    batch_size: Annotated[Count, Flag(MODEL, "N")] = 16
    """images per batch"""
    min_confidence: Annotated[Probability, Flag(CONTENT, "P", usual=True)] = 0.9
    """limit for the prediction"""
