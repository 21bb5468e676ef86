"""A model with its preprocessing: from pixels to logits."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import ConfigError
from robustgen.lab.models.base import Model
from robustgen.lab.models.preprocessing import Pixels, Preprocessing
from robustgen.metrics import softmax
from robustgen.pixels.imaging.geometry import crop_ten


@dataclass(frozen=True)
class Classifier:
    """A model with its preprocessing: from pixels to logits.

    Attributes
    ----------
    model : Model
    preprocessing : Preprocessing
    outputs : tuple of int, optional
        Numbers of the outputs to use, in this order; default all.
    crops : {1, 10}
        With 10, the logits are logarithms of the mean softmax over ten crops of the model's input size.
    """

    model: Model
    preprocessing: Preprocessing
    outputs: tuple[int, ...] | None = None
    crops: Literal[1, 10] = 1

    def __post_init__(self) -> None:
        given, own = self.preprocessing, self.model.preprocessing
        if self.model.dtype == np.uint8 and own and given.normalisation != own.normalisation:
            raise ConfigError(f"{self.model.name}: gets pixels from 0 to 255: omit --mean, --std and presets")

    @property
    def view(self) -> Preprocessing:
        """Return the part of the preprocessing that comes before the crops."""
        return self.preprocessing if self.crops == 1 else replace(self.preprocessing, input_size=None)

    def __call__(self, images: Pixels) -> NDArray[Any]:
        """Return logits (n, K) of uint8 images (n, H, W, 3)."""
        if self.crops == 1:
            return self._select(self._run(images))
        found = [self._run(crop) for crop in self._crop(images)]
        mean = np.mean([softmax(self._select(_as_logits(each))) for each in found], axis=0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(mean), np.promote_types(found[0].dtype, np.float32))

    def _select(self, logits: NDArray[Any]) -> NDArray[Any]:
        return logits if self.outputs is None else logits[:, self.outputs]

    def _crop(self, images: Pixels) -> Iterator[Pixels]:
        """Yield ten crops of the images, each (n, height, width, 3)."""
        name, layout = self.model.name, self.model.layout(self.preprocessing.layout)
        height, width = self.preprocessing.input_size or self.model.sides(layout)
        if not height or not width:
            raise ConfigError(f"{name}: takes images of any size: give the size of a crop with input_size")
        rows, columns = images.shape[1:3]
        if rows < height or columns < width or (rows, columns) == (height, width):
            raise ConfigError(
                f"{name}: ten crops of {height} x {width} pixels need larger images, these are {rows} x "
                f"{columns}: create them larger (edition imagenet@256), or take one crop"
            )
        return crop_ten(images, width, height)

    def _run(self, images: Pixels) -> NDArray[Any]:
        """Return all outputs (n, K) of the model for images of its size."""
        layout = self.model.layout(self.preprocessing.layout)
        self.model.check_size(images.shape[1], images.shape[2], layout)
        return self.model(self.preprocessing.normalise(images, layout, self.model.dtype))

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
        prepared = self.view.resize(pixels)
        first = prepared.reshape(-1, *prepared.shape[-3:])[:1]
        classes = int(self._run(first if self.crops == 1 else next(self._crop(first))).shape[-1])
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
        if count not in (None, classes):
            raise ConfigError(
                f"{root} has {count} classes, {own}: list these, in the order of the model's outputs, with "
                "--classes"
            )
        return classes


def _as_logits(outputs: NDArray[Any]) -> NDArray[np.float64]:
    """Return the outputs (n, K) of a model, or their logarithms if they are probabilities already."""
    values = outputs.astype(np.float64)
    # The tolerance is wide enough for float16.
    are_shares = (values.min(axis=1) >= 0) & (np.abs(values.sum(axis=1) - 1) < 0.01)
    values[are_shares] = np.log(np.maximum(values[are_shares], np.finfo(np.float64).tiny))
    return values


def is_finite(logits: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows (n, ..., K) are numbers, (n,); minus infinity excludes a class."""
    finite: NDArray[np.bool_] = np.isfinite(logits.max(axis=-1)).reshape(len(logits), -1).all(axis=1)
    return finite
