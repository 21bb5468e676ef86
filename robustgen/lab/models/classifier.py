"""A model with its preprocessing: from pixels to logits."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import ConfigError
from robustgen.lab.models.base import Model
from robustgen.lab.models.preprocessing import Pixels, Preprocessing


@dataclass(frozen=True)
class Classifier:
    """A model with its preprocessing: from pixels to logits."""

    model: Model
    preprocessing: Preprocessing

    def __post_init__(self) -> None:
        given, own = self.preprocessing, self.model.preprocessing
        if self.model.dtype == np.uint8 and own and given.normalisation != own.normalisation:
            raise ConfigError(f"{self.model.name}: gets pixels from 0 to 255: omit --mean, --std and presets")

    def __call__(self, images: Pixels) -> NDArray[Any]:
        """Return logits (n, K) of uint8 images (n, H, W, 3)."""
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
        prepared = self.preprocessing.resize(pixels)
        classes = int(self(prepared.reshape(-1, *prepared.shape[-3:])[:1]).shape[-1])
        named, own = self.preprocessing.classes, f"{self.model.name} has {classes} classes"
        if named and len(named) != classes:
            raise ConfigError(f"the class list has {len(named)} names, {own}")
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


def is_finite(logits: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows (n, ..., K) are numbers, (n,); minus infinity excludes a class."""
    finite: NDArray[np.bool_] = np.isfinite(logits.max(axis=-1)).reshape(len(logits), -1).all(axis=1)
    return finite
