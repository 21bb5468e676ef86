"""Choices of models: what they take, where they run, what is kept of their outputs."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, field_validator, model_validator

from robustgen.errors import ArgumentError, quote
from robustgen.settings.class_lists import read_classes
from robustgen.settings.fields import (
    Count,
    ExpandedLocation,
    Flag,
    Group,
    Options,
    Part,
    SetName,
    expand_variables,
    split_list,
)

if TYPE_CHECKING:
    from typing_extensions import Self

CONTENT, MODEL, INPUT = Group.CONTENT, Group.MODEL, Group.INPUT
OUTPUT, RUNNING = Group.OUTPUT, Group.RUNNING
Axes = Literal["NCHW", "NHWC"]
OutputForm = Literal["logits", "probabilities"]
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


Colour = tuple[float, float, float]
ClipLimit = Annotated[float, Field(gt=0, le=256, allow_inf_nan=False)]
TileCount = Annotated[Count, Field(le=64)]


def _check_odd(value: int) -> int:
    if value % 2 == 0:
        raise ArgumentError(f"must be odd, not {value}")
    return value


OddSide = Annotated[Count, Field(ge=3, le=31), AfterValidator(_check_odd)]


class ClaheKeys(Options):
    """Parameters of CLAHE; higher limits clip nothing, and more tiles have few pixels."""

    clip_limit: Annotated[ClipLimit, Flag(CONTENT, "X", Part.OPERATIONS)] = 2.0
    """limit of the contrast"""
    tiles: Annotated[TileCount, Flag(CONTENT, "N", Part.OPERATIONS)] = 8
    """tiles along each side"""


class DenoiseKeys(Options):
    """Parameters of non-local means."""

    patch: Annotated[OddSide, Flag(CONTENT, "N", Part.OPERATIONS)] = 5
    """side of the patches that are compared, odd"""
    distance: Annotated[Count, Field(le=31), Flag(CONTENT, "N", Part.OPERATIONS)] = 6
    """largest distance of patches along each axis"""
    strength: Annotated[Positive, Field(le=10), Flag(CONTENT, "X", Part.OPERATIONS)] = 0.6
    """cut-off distance, as a multiple of the estimated noise"""


class MedianKeys(Options):
    """Parameters of the median filter."""

    size: Annotated[OddSide, Flag(CONTENT, "N", Part.OPERATIONS, name="window")] = 3
    """side of the square in pixels, odd"""


class CleaningKeys(Options):
    """One way of cleaning images, with its parameters."""

    clahe: ClaheKeys | None = None
    """contrast limited adaptive histogram equalisation"""
    denoise: DenoiseKeys | None = None
    """non-local means, as strong as the estimated noise"""
    median: MedianKeys | None = None
    """median filter"""

    @model_validator(mode="after")
    def _check_single(self) -> "Self":
        if sum(own is not None for _, own in self) != 1:
            raise ArgumentError(f"must be one of {', '.join(CleaningKeys.model_fields)}")
        return self


def _read_cleaning(value: Any) -> Any:
    """Return the mapping that a name stands for, with the default parameters."""
    if value in (None, "none"):
        return None
    if isinstance(value, str) and value in CleaningKeys.model_fields:
        return {value: {}}
    if not isinstance(value, (Mapping, CleaningKeys)):
        names = ", ".join(CleaningKeys.model_fields)
        raise ArgumentError(f"must be {names}, none, or a mapping of one of them, not {quote(value)}")
    return value


class InputKeys(Options):
    """From pixels to the input of a model: the keys of a preprocessing file."""

    mean: Annotated[Colour | None, BeforeValidator(_read_colour)] = None
    """mean: the model input is (pixel_scale * pixel - mean) / std"""
    std: Annotated[tuple[Positive, Positive, Positive] | None, BeforeValidator(_read_colour)] = None
    """standard deviation, see mean"""
    pixel_scale: Positive | None = None
    """factor for pixels from 0 to 255; default 1/255"""
    layout: Annotated[Axes | None, BeforeValidator(lambda it: it.upper() if isinstance(it, str) else it)] = (
        None
    )
    """axes of the model input; default from the model"""
    channel_order: Annotated[
        Literal["rgb", "bgr"], BeforeValidator(lambda it: it.lower() if isinstance(it, str) else it)
    ] = "rgb"
    """order of the channels of the model input, which mean and std have too"""
    outputs: Annotated[
        OutputForm | None, BeforeValidator(lambda it: "probabilities" if it == "probability" else it)
    ] = None
    """form of a single output, for the second of two classes; default logits, unless they may be either"""
    input_size: Annotated[tuple[int, int] | None, BeforeValidator(_read_size), Flag(INPUT, "N|H,W")] = None
    """resize images to this size in pixels"""
    clean_input: Annotated[
        CleaningKeys | None,
        BeforeValidator(_read_cleaning),
        Flag(INPUT, "clahe|denoise|median|none", complete=lambda: [*CleaningKeys.model_fields, "none"]),
    ] = None
    """clean the images first"""
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

    preprocessing: Annotated[tuple[str, ...], Flag(INPUT, "NAME|FILE|KEY=VALUE", usual=True)] = ()
    """a preset (imagenet, cifar-10, cifar-100), a YAML file, or a key, such as mean=0.5; repeatable, later
    ones override; default the model's own"""

    @field_validator("preprocessing", mode="before")
    @classmethod
    def _read_layers(cls, value: Any) -> Any:
        layers = (value,) if isinstance(value, str) else value or ()
        return tuple(each if "=" in str(each) else expand_variables(each) for each in layers)

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
    """load a .pt2, which can run any code"""


class Outputs(Options):
    """Computation and kept part of the outputs of models."""

    save: Annotated[Literal["logits", "top5"] | None, Flag(OUTPUT)] = None
    """outputs to keep; default logits for C sets, top5 for P sets"""
    only_classes: Annotated[StrictBool, Flag(MODEL)] = False
    """use only the outputs of the set's classes; --classes names all outputs"""
    batch_size: Annotated[Count, Flag(MODEL, "N")] = 64
    """images per batch"""
    frames: Annotated[Count, Flag(INPUT, "N")] = 32
    """of clips: number of frames that the model gets, evenly spaced as for Mini Kinetics-C"""
    overwrite: Annotated[StrictBool, Flag(RUNNING, usual=True)] = False
    """remove other predictions from the output"""
    quiet: Annotated[StrictBool, Flag(RUNNING)] = False
    """print only failures, no progress and no result"""


class Predicting(Outputs):
    """A model on a set."""

    dataset: Annotated[ExpandedLocation, Flag(MODEL, argument=True, name="SET")]
    """the set"""
    model: Annotated[str, Flag(MODEL, "NAME", usual=True)] = Field(description=_NAMES)
    output: Annotated[ExpandedLocation, Flag(OUTPUT, "DIR", usual=True)]
    """folder or URL; one subfolder per model"""


class OnTheFly(Outputs):
    """Kept part of the outputs of models, and the images that are made for them."""

    random_offset: Annotated[StrictBool, Flag(INPUT)] = False
    """of clips: draw the first of these frames by --seed, as for Mini Kinetics-C; default the first frame"""
    uncompressed: Annotated[StrictBool, Flag(Group.CONTENT, usual=True)] = False
    """give models the images and frames as made, without JPEG or video; default as published"""


class Evaluating(OnTheFly):
    """Models on images that are corrupted on the fly."""

    model: Annotated[tuple[str, ...], Flag(MODEL, "NAME", usual=True)] = Field(
        description=f"{_NAMES}; repeatable"
    )
    annotations: Annotated[Path | None, Flag(MODEL, "FILE")] = None
    """COCO annotations of the source, to run detectors"""
    output: Annotated[ExpandedLocation, Flag(OUTPUT, "DIR", usual=True)]
    """folder or URL; one subfolder per model"""
    baseline: Annotated[ExpandedLocation | None, Flag(OUTPUT, "NAME|FILE|DIR")] = None
    """baseline of the tables: alexnet, none, a file, or a folder of predictions"""


class Results(Options):
    """Place and name of the predictions of a model, in Python."""

    output: ExpandedLocation | None = None
    """folder or URL; a subfolder for the model"""
    name: SetName | None = None
    """name of the model"""
    baseline: ExpandedLocation | None = None
    """baseline of the scores"""
