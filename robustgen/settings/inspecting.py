"""Choices of the commands that look at sets."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictBool

from robustgen.errors import ArgumentError, quote
from robustgen.settings import catalogue
from robustgen.settings.config import Severities
from robustgen.settings.fields import (
    Count,
    ExpandedLocation,
    Flag,
    Group,
    Jobs,
    NewFile,
    Options,
    Seed,
    Whole,
    Words,
    none_if,
)

SOURCE, CONTENT, OUTPUT, RUNNING = Group.SOURCE, Group.CONTENT, Group.OUTPUT, Group.RUNNING


class Verifying(Options):
    """A check of a finished output."""

    directory: Annotated[str, Flag(SOURCE, argument=True)]
    """the output"""
    jobs: Annotated[Jobs, Flag(RUNNING, "N|all")] = None
    """threads; default all: one per core, 32 for object stores"""
    deep: Annotated[str | None, Flag(CONTENT, "N|all", usual=True)] = None
    """regenerate N images from the source and compare the bytes"""
    source: Annotated[ExpandedLocation | None, Flag(SOURCE, "PATH", usual=True)] = None
    """path or URL of the source, for --deep, if it or the set has moved"""
    against: Annotated[str | None, Flag(CONTENT, "OTHER", usual=True)] = None
    """compare with another output, or with a dataset digest"""
    allow_failures: Annotated[StrictBool, Flag(RUNNING, usual=True)] = False
    """exit with status 0 if only failed images are missing"""
    format: Annotated[Literal["table", "json"], Flag(OUTPUT, usual=True)] = "table"
    """form of the result; json: all findings and counts as one object"""


class Listing(Options):
    """Content of `list`."""

    name: Annotated[str | None, Flag(SOURCE, argument=True, complete=catalogue.all_words)] = None
    """operation, group, family, edition, format or data set; or formats, editions, ..."""
    format: Annotated[Literal["table", "json"], Flag(OUTPUT, usual=True)] = "table"
    """form of the list"""
    keys: Annotated[ExpandedLocation | None, Flag(SOURCE, "SOURCE", usual=True)] = None
    """list the image keys of a source, for --subset"""
    labels: Annotated[ExpandedLocation | None, Flag(SOURCE, "FILE")] = None
    """table of labels, if the source has no class folders"""
    labels_are_classes: Annotated[StrictBool, Flag(SOURCE)] = False
    """treat numbers in --labels as names of your own classes"""
    label_column: Annotated[str | None, Flag(SOURCE, "NAME")] = None
    """column of the labels in --labels"""


class Describing(Options):
    """Fields of croissant.json."""

    directory: Annotated[str, Flag(SOURCE, argument=True)]
    """the output"""
    rai: Annotated[Path | None, Flag(CONTENT, "FILE", usual=True)] = None
    """YAML or JSON file of fields that only you know: creator, url, datePublished, rai:dataBiases, ..."""


class Fetching(Options):
    """Files from the packages of others."""

    names: Annotated[tuple[str, ...], Flag(SOURCE, argument=True, complete=lambda: ("frost", "ink"))] = ()
    """files to download: frost (default), ink"""
    wheel: Annotated[str | None, Flag(SOURCE, "FILE", usual=True)] = None
    """read the files from this wheel instead of downloading it"""


class Warming(Options):
    """Compilation in advance."""

    jobs: Annotated[Jobs, Flag(RUNNING, "N|all", usual=True)] = None
    """worker processes; default all: one per core"""


class Reporting(Options):
    """A page about a set."""

    directory: Annotated[str, Flag(SOURCE, argument=True)]
    """the set"""
    output: Annotated[Path | None, Flag(OUTPUT, "FILE.html", usual=True)] = None
    """the page; default DIRECTORY-report.html"""
    images: Annotated[Count, Field(le=12), Flag(CONTENT, "N", usual=True)] = 3
    """number of images"""


def _read_margins(texts: Any) -> dict[str, float]:
    margins = dict[str, float]()
    for count, text in enumerate(texts, 1):
        name, sign, value = text.partition("=")
        try:
            margins[name] = float(value)
        except ValueError:
            margins[name] = 0
        if not sign or not 0 < margins[name] < float("inf"):
            raise ArgumentError(f"must be METRIC=X with a number above 0, not {quote(text)}")
        if len(margins) != count:
            raise ArgumentError(f"{quote(name)} is given twice")
    return margins


class Comparing(Options):
    """A comparison of two sets."""

    a: Annotated[str, Flag(SOURCE, argument=True)]
    """a set"""
    b: Annotated[str, Flag(SOURCE, argument=True)]
    """another set"""
    sample: Annotated[Count | None, none_if("all"), Flag(CONTENT, "N|all", usual=True, name="images")] = 200
    """images per severity or perturbation"""
    seed: Annotated[Seed, Flag(CONTENT, "N")] = 0
    """seed of the choice of images"""
    corruptions: Annotated[Words, Flag(CONTENT, "NAMES", complete=catalogue.corruption_words)] = ()
    """compare only these corruptions of C sets: a,b"""
    severities: Annotated[Severities | None, Flag(CONTENT, "N,N")] = None
    """compare only these severities, for instance 1,3"""
    perturbations: Annotated[Words, Flag(CONTENT, "NAMES", complete=catalogue.perturbation_words)] = ()
    """compare only these perturbations of P sets: a,b"""
    partial: Annotated[StrictBool, Flag(CONTENT, usual=True)] = False
    """ignore corruptions present in only one of the two sets"""
    clean: Annotated[str | None, Flag(SOURCE, "DIR", name="clean-images")] = None
    """prepared clean images for a set that has none"""
    margin: Annotated[dict[str, float], BeforeValidator(_read_margins), Flag(CONTENT, "METRIC=X")] = Field(
        (), validate_default=True
    )
    """mean difference to tolerate, e.g. psnr=0.2, ssim=0.01, size=2; repeatable"""
    jobs: Annotated[Jobs, Flag(RUNNING, "N|all")] = None
    """threads; default all: one per core"""
    format: Annotated[Literal["table", "json"], Flag(OUTPUT, usual=True)] = "table"
    """form of the result"""
    output: Annotated[NewFile | None, Flag(OUTPUT, "FILE", usual=True)] = None
    """also write a page (.html)"""


class Calibrating(Options):
    """A measurement of the strength of corruptions."""

    sample: Annotated[Count, Flag(SOURCE, "N", usual=True, name="images")] = 20
    """number of images"""
    for_size: Annotated[Whole | None, Flag(CONTENT, "PIXELS", usual=True)] = None
    """propose constants for square images of this size, and write them to --output"""
    format: Annotated[Literal["table", "json"], Flag(OUTPUT, usual=True)] = "table"
    """form of the result"""
    output: Annotated[NewFile | None, Flag(OUTPUT, "FILE", usual=True)] = None
    """with --for-size the YAML file of constants"""


class Previewing(Options):
    """A drawing of an image with its corruptions or perturbations."""

    image: Annotated[Path | None, Flag(SOURCE, argument=True)] = None
    """the image, or with --dataset clips the video or folder of frames"""
    index: Annotated[Whole | None, Field(ge=0), Flag(SOURCE, "N")] = None
    """index of the image in the source, from 0"""
    grid: Annotated[StrictBool, Flag(OUTPUT, usual=True)] = False
    """show all at one severity (default 3), five in a row, as in the paper; of clips the middle frame"""
    frames: Annotated[Count | None, Flag(OUTPUT, "N")] = None
    """number of evenly spaced frames of perturbations and clips; default 6"""
    cell: Annotated[Whole | None, Flag(OUTPUT, "PIXELS")] = None
    """side of a square picture; default 112"""
    quality: Annotated[Count, Field(le=95), Flag(OUTPUT, "N")] = 90
    """quality of .jpg, .webp and .pdf"""
    output: Annotated[Path | None, Flag(OUTPUT, "FILE", usual=True)] = Field(
        None,
        description="sheet (.png, .jpg, .webp, .pdf), page with every corruption (.html), or with "
        "--perturbations or clips an animation (.gif, .mp4); default out/preview.png",
    )
    show: Annotated[StrictBool | None, Flag(OUTPUT)] = None
    """show it in the terminal; default if supported"""


class ShowingConfig(Options):
    """Form of `config`."""

    as_schema: Annotated[StrictBool, Flag(OUTPUT, usual=True, name="schema")] = False
    """print the JSON Schema of a config file"""
