"""The six published editions, and `folder` for images as they are.

An edition fixes the scale of the constants, how a source image is prepared, and
what is written by default. The preparation has two steps, because some
perturbations act on the image between them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from robustgen.errors import ArgumentError, ArgumentTypeError, UnknownNameError
from robustgen.image import SMALLEST_SIDE, Rgb, as_rgb, centre_crop, resize, resize_shorter
from robustgen.registry import SCALES

Sink = Literal["jpeg", "npy"]
Step = Callable[[Rgb], Rgb]


def _as_is(image: Rgb) -> Rgb:
    return image


def _shorter_256(image: Rgb) -> Rgb:
    return resize_shorter(image, 256)


def _shorter_64(image: Rgb) -> Rgb:
    return resize_shorter(image, 64)


def _crop_224(image: Rgb) -> Rgb:
    return centre_crop(image, 224, 224)


def _crop_64(image: Rgb) -> Rgb:
    return centre_crop(image, 64, 64)


def _squeeze_64(image: Rgb) -> Rgb:
    return resize(image, 64, 64)


def _inception(image: Rgb) -> Rgb:
    height, width = image.shape[:2]
    return resize(centre_crop(image, int(0.875 * width), int(0.875 * height)), 299, 299)


def _cifar(image: Rgb) -> Rgb:
    if image.shape != (32, 32, 3):
        raise ArgumentError(f"CIFAR images are 32 x 32 pixels, not {image.shape[1]} x {image.shape[0]}")
    return image


@dataclass(frozen=True)
class Edition:
    """One row of the published editions.

    Attributes
    ----------
    name : str
    scale : int or None
        Side that the constants belong to; None takes the scale nearest to the image's shorter side.
    resized, cropped : callable
        The two steps of the preparation for perturbations, uint8 (H, W, 3) to uint8 (H, W, 3).
    prepared : callable
        The preparation for corruptions.
    sink : {"jpeg", "npy"}
        What `make-c` writes.
    """

    name: str
    scale: int | None
    resized: Step
    cropped: Step
    prepared: Step
    sink: Sink = "jpeg"

    def scale_for(self, image: Rgb, scale: int | None = None) -> int:
        """`scale` if given, else the edition's own, else the one nearest to the shorter side of `image`."""
        return scale or self.scale or nearest_scale(min(image.shape[:2]))


def nearest_scale(side: int) -> int:
    """The published scale nearest to `side` pixels (the larger of two equally near)."""
    return min(sorted(SCALES, reverse=True), key=lambda scale: abs(scale - side))


def _shorter_then_crop(image: Rgb) -> Rgb:
    return _crop_224(_shorter_256(image))


_ROWS = (
    Edition("imagenet", 224, _shorter_256, _crop_224, _shorter_then_crop),
    Edition("imagenet-inception", 299, _as_is, _inception, _inception),
    Edition("imagenet-64", 64, _squeeze_64, _as_is, _squeeze_64),
    # The two benchmarks prepared Tiny ImageNet differently; both are kept.
    Edition("tiny-imagenet", 64, _shorter_64, _crop_64, _squeeze_64),
    Edition("cifar-10", 32, _as_is, _cifar, _cifar, "npy"),
    Edition("cifar-100", 32, _as_is, _cifar, _cifar, "npy"),
    Edition("folder", None, _as_is, _as_is, _as_is),
)

EDITIONS: Mapping[str, Edition] = MappingProxyType({edition.name: edition for edition in _ROWS})


def edition_called(name: str) -> Edition:
    """The edition called `name`.

    Raises
    ------
    ArgumentTypeError, UnknownNameError
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"edition must be a string, not {type(name).__name__}")
    if name not in EDITIONS:
        raise UnknownNameError("edition", name, EDITIONS)
    return EDITIONS[name]


def prepare(image: Any, edition: str = "imagenet") -> Rgb:
    """Resize and crop a source image the way the edition's images were prepared before any corruption.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3) or (H, W), or a Pillow image
    edition : str

    Returns
    -------
    uint8 ndarray of shape (H', W', 3)

    Raises
    ------
    ArgumentTypeError, ArgumentError
        Not an image, or no such edition.
    ImageError
        The image is too small or too elongated for the edition.
    """
    row = edition_called(edition)
    return row.prepared(as_rgb(image))


def check_size(image: Rgb) -> Rgb:
    """`image` itself, if its sides are long enough for every operation."""
    height, width = image.shape[:2]
    if min(height, width) < SMALLEST_SIDE:
        raise ArgumentError(f"image is {width} x {height} pixels; each side needs at least {SMALLEST_SIDE}")
    return image
