"""Base of all models: batches, layouts and sizes of images; from pixels to logits."""

import math
import re
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.display.progress import print_line
from robustgen.errors import ConfigError
from robustgen.lab.models.preprocessing import RAW, Pixels, Preprocessing
from robustgen.pixels.imaging.colour import look_up_channels
from robustgen.pixels.imaging.decode import as_grey
from robustgen.settings.models import Axes, OutputForm

# Inputs for text, in ONNX files and in modules of transformers, open_clip and OpenAI.
TEXTS: Final = (
    *("input_ids", "text", "texts", "tokens", "text_tokens", "token_ids", "text_ids", "captions", "prompt"),
    *("attention_mask", "decoder_input_ids"),
)


Images = Sequence[Pixels] | Pixels
"""Images of one size, uint8 (H, W, 3), in a sequence or in an array (n, H, W, 3)."""


class OutOfDeviceMemoryError(Exception):
    """A batch is too large for the device."""


class Model(ABC):
    """Takes pixels, and returns logits of images that it normalises.

    Attributes
    ----------
    name : str
        Name as given by the user.
    label : str
        Short name for tables.
    given : str or None
        Name that the user gives it, in place of its own.
    dtype : dtype
        Type of the images.
    preprocessing : Preprocessing or None
        Preprocessing that the model declares, if any.
    class_names : tuple of str
        Names of its outputs, if it knows them.
    is_binary : bool
        Whether it turned out to have one output, for two classes.
    """

    name: str
    label: str
    dtype: np.dtype[Any]
    preprocessing: Preprocessing | None = None
    class_names: tuple[str, ...] = ()
    given: str | None = None
    is_binary = False
    # Whether an only output can be no probability, and the number of outputs looked at.
    _is_logit, _seen = False, 0
    _most: int | None = None
    _memory: NDArray[Any] | None = None
    _lent: weakref.ref[NDArray[Any]] | None = None

    @property
    def folder(self) -> str:
        """Return the name of its folder: the given one, or its own without weights and suffix."""
        own = Path(self.label.partition("@")[0].replace(":", "-")).name
        return self.given or own.removesuffix(".onnx").removesuffix(".pt2")

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the identity of the model, for JSON: ``"file"`` and ``"sha256"``."""

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Return the versions of the libraries that decide the last digits."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int | None, ...]:
        """Return the input shape (images, ...); None for an axis of any length."""

    @abstractmethod
    def run(self, images: Images, preprocessing: Preprocessing) -> NDArray[Any]:
        """Return the outputs for images that fit `shape` once they are normalised.

        Raises
        ------
        OutOfDeviceMemoryError
            There are too many images.
        Exception
            The model fails; the caller names it.
        """

    @property
    def text_inputs(self) -> Sequence[str]:
        """Return the names of inputs for text, which a classifier lacks."""
        return ()

    def layout(self, wanted: Axes | None) -> Axes:
        """Return the model's layout, or else `wanted`; raise a ConfigError if they disagree."""
        # Models take colours, or else greys.
        ends = [(self.shape[1] == channels, self.shape[3] == channels) for channels in (3, 1)]
        own: Axes | None = next(("NCHW" if first else "NHWC" for first, last in ends if first != last), None)
        if own and wanted and own != wanted:
            shape = " x ".join("any" if axis is None else str(axis) for axis in self.shape)
            raise ConfigError(f"{self.name}: takes {own} ({shape}), not {wanted}")
        return own or wanted or "NCHW"

    def takes_grey(self, layout: Axes) -> bool:
        """Return whether the images have one channel, rather than three."""
        return self.shape[1 if layout == "NCHW" else 3] == 1

    def sides(self, layout: Axes) -> tuple[int | None, int | None]:
        """Return height and width of the images that the model takes; None for any size."""
        height, width = self.shape[2:4] if layout == "NCHW" else self.shape[1:3]
        return height, width

    def check_size(self, height: int, width: int, layout: Axes) -> None:
        """Raise a ConfigError if the model does not take images of this size."""
        axes = self.sides(layout)
        for side, wanted in zip((height, width), axes, strict=True):
            if wanted and side != wanted:
                sides = " x ".join(str(axis) if axis else "any" for axis in axes)
                own = f"{height} x {width} (--input-size resizes them)"
                raise ConfigError(f"{self.name}: takes images of {sides} pixels, these are {own}")

    def choose_arrangement(self, preprocessing: Preprocessing) -> Callable[[Pixels], Pixels]:
        """Return what gives pixels (..., H, W, C) the channels of the model: three in its order, or luma.

        Raises
        ------
        ConfigError
            It takes one channel, and mean or standard deviation are those of three.
        """
        if not self.takes_grey(self.layout(preprocessing.layout)):
            is_rgb = preprocessing.channel_order == "rgb"
            return np.asarray if is_rgb else lambda pixels: np.ascontiguousarray(pixels[..., ::-1])
        if len({*preprocessing.mean}) > 1 or len({*preprocessing.std}) > 1:
            way = "give one mean and one std, such as --preprocessing mean=0"
            raise ConfigError(f"{self.name}: takes images of one channel: {way}")
        return lambda pixels: as_grey(pixels.reshape(-1, *pixels.shape[-2:])).reshape(*pixels.shape[:-1], 1)

    def normalise(self, images: Images, preprocessing: Preprocessing) -> NDArray[Any]:
        """Return the input for images, in memory that a later call uses again.

        As long as someone keeps the array, it stays as it is.
        """
        layout = self.layout(preprocessing.layout)
        (height, width, _), channels = images[0].shape, 1 if self.takes_grey(layout) else 3
        one = (channels, height, width) if layout == "NCHW" else (height, width, channels)
        size = len(images) * math.prod(one)
        is_kept = self._lent is not None and self._lent() is not None
        if self._memory is None or self._memory.size < size or is_kept:
            self._memory = np.empty(size, self.dtype)
        inputs = self._memory[:size].reshape(len(images), *one)
        self._lent = weakref.ref(inputs)
        tables, arrange = preprocessing.tabulate(self.dtype), self.choose_arrangement(preprocessing)
        # Image by image: they need not be copied into one array before.
        for image, place in zip(images, inputs, strict=True):
            if channels == 1:
                np.take(tables[0], arrange(image).reshape(one), out=place)
            else:
                look_up_channels(arrange(image), tables, place, planar=layout == "NCHW")
        return inputs

    def split(self, output: NDArray[Any], form: OutputForm | None) -> NDArray[Any]:
        """Return two columns of scores for the only output (n, 1) of a model of two classes.

        Raises
        ------
        ConfigError
            `form` is "probabilities", and a value is none; or it is None, and the values may be either.
        """
        self.is_binary = True
        least, largest = float(output.min()), float(output.max())
        are_shares = least >= 0 and largest <= 1
        if form == "probabilities":
            if not are_shares:
                raise ConfigError(f"{self.name}: {least:g} to {largest:g}, no probability: omit outputs")
            return np.concatenate([1 - output, output], axis=1)
        if form is None and not self._is_logit:
            self._is_logit, self._seen = not are_shares, self._seen + len(output)
            if are_shares and self._seen > 1:
                raise ConfigError(
                    f"{self.name}: its one output is {least:.3g} to {largest:.3g}, a logit or a probability "
                    "of the second class: give --preprocessing outputs=logits or outputs=probabilities"
                )
        return np.concatenate([np.zeros_like(output), output], axis=1)

    def __call__(self, images: Images, preprocessing: Preprocessing) -> NDArray[Any]:
        """Return logits (n, classes) of images."""
        fixed = self.shape[0]
        if not fixed:
            outputs, start = [], 0
            while start < len(images):
                part = images[start : start + (self._most or len(images))]
                outputs.append(self._run_halving(part, preprocessing))
                start += len(outputs[-1])
            return np.concatenate(outputs)
        parts = [images[start : start + fixed] for start in range(0, len(images), fixed)]
        # The last image pads an incomplete batch.
        filled = [[*part, *[part[-1]] * (fixed - len(part))] for part in parts]
        found = [
            self._run_checked(each, preprocessing)[: len(part)]
            for each, part in zip(filled, parts, strict=True)
        ]
        return np.concatenate(found)

    def _run_halving(self, images: Images, preprocessing: Preprocessing) -> NDArray[Any]:
        """Use smaller batches from now on, because this one is too large for the device."""
        try:
            return self._run_checked(images, preprocessing)
        except OutOfDeviceMemoryError as error:
            if len(images) == 1:
                message = f"{self.name}: the device has too little memory for a single image"
                raise ConfigError(message) from error
            self._most = len(images) // 2
            print_line(f"{self.name}: out of device memory; {self._most} images at once from now on")
        return self(images, preprocessing)

    def _run_checked(self, images: Images, preprocessing: Preprocessing) -> NDArray[Any]:
        try:
            logits = self.run(images, preprocessing)
        except (ConfigError, OutOfDeviceMemoryError):
            raise
        # Neither ONNX Runtime nor PyTorch has a base class for a model's errors.
        except Exception as error:
            if texts := self.text_inputs:
                raise ConfigError(explain_text(self.name, texts)) from error
            size = " x ".join(map(str, images[0].shape[:-1]))
            raise ConfigError(f"{self.name}: fails on images of {size}: {first_line(error)}") from error
        if logits.dtype.kind not in "fiu":
            raise ConfigError(f"{self.name}: returns {logits.dtype}, not numbers")
        if logits.shape == (len(images),):
            logits = logits[:, None]
        if logits.ndim != 2 or len(logits) != len(images) or not logits.shape[1]:
            shape = f"{logits.shape} for {len(images)} images"
            raise ConfigError(f"{self.name}: returns {shape}, not (images, classes)")
        return logits


def explain_binary(root: str, content: str, name: str) -> str:
    """Return why a model of one output does not fit the set at `root`."""
    return (
        f"{root} has {content}, {name} has one output, which tells two classes apart: use a model with one "
        "output for each class"
    )


def explain_text(name: str, inputs: Sequence[str]) -> str:
    """Return why a model that takes text is no classifier, and what to do."""
    return (
        f"{name}: takes text ({', '.join(inputs)}); a classifier takes images alone and returns a score for "
        "each class: docs/use/zero-shot.md shows how to make one from CLIP"
    )


def first_line(error: Exception) -> str:
    """Return the part of `error` that fits into a message."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    return plain.strip().partition("\n")[0] or type(error).__name__


# --- a model with its preprocessing ----------------------------------------------------------------


@dataclass(frozen=True)
class Classifier:
    """A model with its preprocessing: from pixels to logits.

    Attributes
    ----------
    model : Model
    preprocessing : Preprocessing
    outputs : tuple of int, optional
        Numbers of the outputs to use, in this order; default all.
    is_single : bool
        Whether the set has one class, so that a single output is its score and not one of two classes.
    of_clips : bool
        Whether the model takes clips (n, T, H, W, 3) in place of images.
    """

    model: Model
    preprocessing: Preprocessing
    outputs: tuple[int, ...] | None = None
    is_single: bool = False
    of_clips: bool = False

    def __post_init__(self) -> None:
        given, own = self.preprocessing, self.model.preprocessing
        if self.of_clips and not isinstance(self.model, FunctionModel):
            raise ConfigError(f"{self.model.name}: clips need a function of (n, T, H, W, 3)")
        # A function orders the channels itself; a graph may take either order.
        parts = slice(None if isinstance(self.model, FunctionModel) else -1)
        if self.model.dtype == np.uint8 and own and given.normalisation[parts] != own.normalisation[parts]:
            order = " and channel_order" if parts.stop is None else ""
            raise ConfigError(f"{self.model.name}: gets pixels from 0 to 255: omit presets, mean, std{order}")

    def as_inputs(self, items: Images) -> Images:
        """Return the inputs in images, sequences (T, H, W, 3) or clips: the frames of sequences."""
        is_sequence = items[0].ndim == 4 and not self.of_clips
        return [frame for sequence in items for frame in sequence] if is_sequence else items

    def __call__(self, images: Images) -> NDArray[Any]:
        """Return logits (n, K) of images, or of clips."""
        logits = self._run(images)
        return logits if self.outputs is None else logits[:, self.outputs]

    def _run(self, images: Images) -> NDArray[Any]:
        """Return all outputs (n, K) of the model for images of its size."""
        layout = self.model.layout(self.preprocessing.layout)
        height, width = images[0].shape[-3:-1]
        self.model.check_size(height, width, layout)
        outputs = self.model(images, self.preprocessing)
        if outputs.shape[1] == 1 and not self.is_single:
            return self.model.split(outputs, self.preprocessing.outputs)
        if self.preprocessing.outputs == "probabilities":
            count = outputs.shape[1]
            raise ConfigError(f"{self.model.name}: outputs: probability is for one output, it has {count}")
        return outputs

    def count_classes(self, pixels: Pixels, root: str, count: int | None) -> int:
        """Return the number of the model's classes, from an image of the set at `root`.

        Parameters
        ----------
        pixels : (H, W, 3) or (T, H, W, 3), uint8
            An image or a sequence of the set.
        root : str
        count : int or None
            Number of the set's classes, if known.

        Raises
        ------
        ConfigError
            The model does not accept these images, or its classes are not those of the set.
        """
        prepared = self.preprocessing.resize(pixels)
        first = self.as_inputs(prepared[None])[:1]
        classes = int(self._run(first).shape[-1])
        named, own = self.preprocessing.classes, f"{self.model.name} has {classes} classes"
        if named and len(named) != classes:
            raise ConfigError(f"the class list has {len(named)} names, {own}")
        if self.outputs is not None:
            return len(self.outputs)
        if count == 1 < classes:
            raise ConfigError(
                f"{root}: all images are in one folder, {own}: name the folder above the class folders, or "
                "labels (evaluate --labels); detectors, for sets such as COCO, need evaluate --annotations"
            )
        if count not in (None, classes) and self.model.is_binary:
            raise ConfigError(explain_binary(root, f"{count} classes", self.model.name))
        if count is not None and count != classes:
            flag = name_class_flag(classes) + ", and evaluate --only-classes for a part of them" * (
                count < classes
            )
            raise ConfigError(f"{root} has {count} classes, {own}: name these, in its order, with {flag}")
        return classes


def name_class_flag(outputs: int) -> str:
    """Return the flag that lists the classes of a model with so many outputs."""
    return "--classes FILE" + ", or --classes imagenet for its thousand classes" * (outputs == 1000)


def is_finite(logits: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows (n, ..., K) are numbers, (n,); minus infinity excludes a class."""
    finite: NDArray[np.bool_] = np.isfinite(logits.max(axis=-1)).reshape(len(logits), -1).all(axis=1)
    return finite


# --- functions of arrays as models -----------------------------------------------------------------


class FunctionModel(Model):
    """A function that takes pixels, uint8 (n, H, W, 3), and returns scores of classes, (n, classes).

    Parameters
    ----------
    function : callable
    name : str
        Its identity: robustgen cannot see what decides the scores.
    sha256 : str
        Digest of the file whose function returned it, a part of the identity; "" if there is none.
    """

    dtype = np.dtype(np.uint8)
    # The function gets the pixels themselves, so that it can do with them what its library does.
    preprocessing = replace(RAW, layout="NHWC")
    shape = (None, None, None, 3)

    def __init__(self, function: Callable[[Any], Any], name: str, sha256: str = "") -> None:
        self.name = self.label = name
        self._function, self._sha256 = function, sha256

    def settings(self) -> dict[str, Any]:
        """Return its name, as `Model.settings`."""
        return {"file": self.name, "function": True} | ({"sha256": self._sha256} if self._sha256 else {})

    def versions(self) -> dict[str, str]:
        """Return nothing, as the library is unknown."""
        return {}

    def run(self, images: Images, preprocessing: Preprocessing) -> NDArray[Any]:
        """Return the scores of a batch, as `Model.run`."""
        return np.asarray(self._function(np.asarray(images)))
