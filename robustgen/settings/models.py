"""Choices of models: what they take, where they run, what is kept of their outputs."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, StrictBool, model_validator

from robustgen.errors import ArgumentError, quote
from robustgen.settings.class_lists import read_classes
from robustgen.settings.fields import Count, Flag, Group, Location, Options, SetName, split_list

if TYPE_CHECKING:
    from typing_extensions import Self

MODEL, INPUT, OUTPUT, RUNNING = Group.MODEL, Group.INPUT, Group.OUTPUT, Group.RUNNING
Layout = Literal["NCHW", "NHWC"]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_NAMES: Final = "a file (model.onnx, model.pt2), timm:NAME[@FILE], torchvision:NAME@FILE, module:function"


def _read_numbers(value: Any) -> Any:
    """Return a text with commas, a number or a list as a tuple of numbers."""
    parts = split_list(value)
    try:
        numbers = tuple(float(part) for part in (parts if isinstance(parts, (list, tuple)) else (parts,)))
    except (TypeError, ValueError):
        numbers = ()
    if not numbers or isinstance(value, bool) or not all(map(math.isfinite, numbers)):
        raise ArgumentError(f"must be one number or several, not {quote(value)}")
    return numbers


def _read_colour(value: Any) -> Any:
    numbers = _read_numbers(value)
    if len(numbers) not in (1, 3):
        raise ArgumentError(f"must be one number, or three, not {quote(value)}")
    return numbers * (3 // len(numbers))


def _read_size(value: Any) -> Any:
    sides = _read_numbers(value)
    if len(sides) > 2 or any(side != int(side) or side < 1 for side in sides):
        raise ArgumentError(f"must be a number of pixels, or height and width, not {quote(value)}")
    return int(sides[0]), int(sides[-1])


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


Colour = tuple[float, float, float]
ClipLimit = Annotated[float, Field(gt=0, le=256, allow_inf_nan=False)]
Tiles = Annotated[Count, Field(le=64)]


class ClaheKeys(Options):
    """Parameters of CLAHE; higher limits clip nothing, and more tiles have few pixels."""

    clip_limit: ClipLimit = 2.0
    """limit of the contrast"""
    tiles: Tiles = 8
    """tiles along each side"""


def _read_clahe(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return {} if value else None
    if not isinstance(value, (Mapping, ClaheKeys)):
        raise ArgumentError(
            f"must be true, false, or a mapping with clip_limit and tiles, not {quote(value)}"
        )
    return value


class InputKeys(Options):
    """From pixels to the input of a model: the keys of a preprocessing file."""

    mean: Annotated[Colour | None, BeforeValidator(_read_colour), Flag(INPUT, "R,G,B")] = None
    """mean: the model input is (pixel-scale * pixel - mean) / std"""
    std: Annotated[
        tuple[Positive, Positive, Positive] | None, BeforeValidator(_read_colour), Flag(INPUT, "R,G,B")
    ] = None
    """standard deviation, see --mean"""
    pixel_scale: Annotated[Positive | None, Flag(INPUT, "X")] = None
    """factor for pixels from 0 to 255; default 1/255"""
    layout: Annotated[Layout | None, BeforeValidator(_upper), Flag(INPUT)] = None
    """axes of the model input; default from the model"""
    input_size: Annotated[tuple[int, int] | None, BeforeValidator(_read_size), Flag(INPUT, "N|H,W")] = None
    """resize images to this size in pixels"""
    clahe: Annotated[ClaheKeys | None, BeforeValidator(_read_clahe), Flag(INPUT, switch=True)] = None
    """apply CLAHE to the images first"""
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    """method of resizing"""
    classes: Annotated[
        tuple[str, ...] | None, BeforeValidator(read_classes), Flag(INPUT, "NAME|FILE", usual=True)
    ] = None
    """class folders in the order of the model's outputs: imagenet, a file, or a list"""

    @model_validator(mode="after")
    def _check_together(self) -> "Self":
        # A mean for pixels from 0 to 1 with a scale for 0 to 255 gives plausible wrong predictions.
        for key in ("mean", "std", "pixel_scale"):
            lacking = [other for other in ("mean", "std") if getattr(self, other) is None]
            if getattr(self, key) is not None and lacking:
                raise ArgumentError(f"{key} also needs {' and '.join(lacking)}")
        return self


class ModelInput(InputKeys):
    """From pixels to the input of a model, as given on the command line."""

    preprocessing: Annotated[Location | None, Flag(INPUT, "NAME|FILE", usual=True)] = None
    """a preset (imagenet, cifar-10, cifar-100) or a YAML file; default the model's own"""

    def overrides(self) -> dict[str, Any]:
        """Return the given keys, which override a preset or a file."""
        return {key: getattr(self, key) for key in self.flagged & {*InputKeys.model_fields}}


class Runtime(Options):
    """Device and precision of models."""

    device: Annotated[str, Flag(MODEL, "NAME", usual=True)] = "auto"
    """device: cuda, mps, cpu, auto (the first available), or a provider of ONNX Runtime"""
    mixed_precision: Annotated[StrictBool, Flag(MODEL)] = False
    """half precision where it is safe; PyTorch only"""
    threads: Annotated[Count | None, Flag(MODEL, "N")] = None
    """threads of the model; default one per core"""
    trust_model: Annotated[StrictBool, Flag(MODEL)] = False
    """load a .pt2 even if it can run any code"""


class Outputs(Options):
    """Kept part of the outputs of models."""

    save: Annotated[Literal["logits", "top5"] | None, Flag(OUTPUT)] = None
    """outputs to keep; default logits for C sets, top5 for P sets"""
    batch_size: Annotated[Count, Flag(MODEL, "N")] = 64
    """images per batch"""
    overwrite: Annotated[StrictBool, Flag(RUNNING, usual=True)] = False
    """remove other predictions from the output"""
    quiet: Annotated[StrictBool, Flag(RUNNING)] = False
    """print only failures, no progress and no result"""


class Predicting(Outputs):
    """A model on a set."""

    dataset: Annotated[Location, Flag(MODEL, argument=True)]
    """the set"""
    model: Annotated[str, Flag(MODEL, "NAME", usual=True)] = Field(description=_NAMES)
    output: Annotated[Location, Flag(OUTPUT, "DIR", usual=True)]
    """folder or URL; one subfolder per model"""


class OnTheFly(Outputs):
    """Kept part of the outputs of models, and the images that are made for them."""

    uncompressed: Annotated[StrictBool, Flag(Group.CONTENT, usual=True)] = False
    """give models the images and frames as made, without JPEG or video; default as published"""


class Evaluating(OnTheFly):
    """Models on images that are corrupted on the fly."""

    model: Annotated[tuple[str, ...], Flag(MODEL, "NAME", usual=True)] = Field(
        description=f"{_NAMES}; repeatable"
    )
    annotations: Annotated[Path | None, Flag(MODEL, "FILE")] = None
    """COCO annotations of the source, to run detectors"""
    output: Annotated[Location, Flag(OUTPUT, "DIR", usual=True)]
    """folder or URL; one subfolder per model"""
    baseline: Annotated[Location | None, Flag(OUTPUT, "NAME|FILE|DIR")] = None
    """baseline of the tables: alexnet, none, a file, or a folder of predictions"""


class Results(Options):
    """Place and name of the predictions of a model, in Python."""

    output: Location | None = None
    """folder or URL; a subfolder for the model"""
    name: SetName | None = None
    """name of the model"""
    baseline: Location | None = None
    """baseline of the scores"""
