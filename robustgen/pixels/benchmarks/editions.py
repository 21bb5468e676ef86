"""The published editions, and `folder` for images of any size.

An edition defines the scale of the constants, the preparation of a source image, and the default format. The
preparation has two steps, because some perturbations act on the image between them.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from numbers import Integral
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np
from PIL import Image

from robustgen.errors import ArgumentError, ArgumentTypeError, quote
from robustgen.pixels.benchmarks.registry import (
    CALIBRATED_SCALES,
    CLIP_SETS,
    MEDMNIST,
    SCALES,
    SMALLEST_SIDE,
    Scale,
    Stage,
    get_known,
)
from robustgen.pixels.imaging.arrays import Decoded, Rgb
from robustgen.pixels.imaging.decode import as_rgb
from robustgen.pixels.imaging.geometry import (
    RESIZING,
    Chain,
    CheckSide,
    Crop,
    CropMost,
    Keep,
    PreparationStep,
    ResizeShorter,
    Squeeze,
)
from robustgen.pixels.imaging.jpeg import Subsampling

MOST_SIDE = 4096
# Quality of the published frames of clips.
_OF_FRAMES: Final = 80
_KEEP: Final = Keep()


@dataclass(frozen=True)
class Edition:
    """One row of the published editions.

    Attributes
    ----------
    name : str
    scale : int or None
        Image size of the constants; None uses the scale nearest to the image's shorter side.
    prepared : PreparationStep
        Source image to the image for corruptions, uint8 (H, W, 3) or a Pillow image of mode RGB to
        uint8 (H', W', 3).
    resized, cropped : PreparationStep
        The two steps of the preparation for perturbations: `raw` to `resized` to `cropped`.
    finished : PreparationStep
        Last step for a frame computed from the `raw` image.
    format : {"jpeg", "npy", "npz"}
        Default format.
    implementation : str or None
        The package whose port of the nineteen corruptions is used; it has no perturbations.
    preparation : str
        The preparation, in words.
    side : int or None
        Side of the square prepared images; None if images keep their size.
    data_set : str or None
        Data set whose own constants are used, if it has any.
    grey : bool
        Whether its images have one channel.
    by_corruption : bool
        Whether each corruption has its own preparation; `prepared` is then that of most.
    quality : int
        Quality of its published JPEG files.
    subsampling : {"4:2:0", "4:4:4"}
        Their chroma subsampling.
    resizes_as_stored : bool
        Whether its script for perturbations resized an image before it converted it to RGB.
    leaves_gap : bool
        Whether its `pixelate` has the black row and column of Pillow 5.2.
    """

    name: str
    scale: int | None
    prepared: PreparationStep = _KEEP
    resized: PreparationStep = _KEEP
    cropped: PreparationStep = _KEEP
    finished: PreparationStep = _KEEP
    format: Literal["jpeg", "npy", "npz"] = "jpeg"
    implementation: str | None = None
    preparation: str = "as they are"
    side: int | None = None
    data_set: str | None = None
    grey: bool = False
    by_corruption: bool = False
    quality: int = 85
    subsampling: Subsampling = "4:2:0"
    resizes_as_stored: bool = False
    leaves_gap: bool = False

    @property
    def keeps_size(self) -> bool:
        """Return whether images keep their size."""
        return self.prepared == _KEEP

    @property
    def smallest_side(self) -> int:
        """Return the minimal side of its prepared images in pixels."""
        return min(SMALLEST_SIDE, self.side or SMALLEST_SIDE)

    def fixed_scale(self, known: Collection[Scale] = SCALES) -> Scale | None:
        """Return the scale of all images: of those `known` the data set, else the edition's own."""
        return self.data_set if self.data_set in known else self.scale

    def check_perturbations(self) -> None:
        """Raise an ArgumentError if the edition has no perturbations."""
        if self.implementation or self.data_set or self.by_corruption:
            raise ArgumentError(f"edition {self.name} has no perturbations, only corruptions")

    def start(self, image: Decoded, scale: int | None = None, smallest: int = SMALLEST_SIDE) -> Rgb:
        """Return the raw pixels of a source image for perturbations with the constants of `scale`.

        Raises
        ------
        ArgumentError
            The prepared image is too small.
        ImageError
            The image cannot be prepared.
        """
        # At other scales, some perturbations act on the raw image.
        if self.resizes_as_stored and scale in (None, self.scale) and isinstance(image, Image.Image):
            pixels = self.resized.apply_as_stored(image)
        else:
            pixels = as_rgb(image)
        if min(pixels.shape[:2]) < smallest:
            check_size(self.at_stage(pixels, "cropped"), min(smallest, self.smallest_side))
        return pixels

    def at_stage(self, source: Rgb, stage: Stage) -> Rgb:
        """Return the raw `source`, prepared up to `stage`."""
        if stage == "raw":
            return source
        resized = self.resized(source)
        return resized if stage == "resized" else self.cropped(resized)

    def finish(self, frames: Iterable[Rgb], stage: Stage) -> Iterator[Rgb]:
        """Yield `frames` computed at `stage`, each prepared to the end."""
        step = {"raw": self.finished, "resized": self.cropped, "cropped": _KEEP}[stage]
        return map(step, frames)


@lru_cache
def scale_by_side(side: int, known: tuple[Scale, ...]) -> Scale:
    """Return the scale of those `known` nearest to `side`, the shorter side of an image.

    A data set is used if it is the only one of those `known`.
    """
    sides = [each for each in known if isinstance(each, int)]
    if not sides and len(known) == 1:
        return known[0]
    return nearest_scale(side, sides or SCALES)


def nearest_scale(side: int, known: Iterable[int] = SCALES) -> int:
    """Return the scale of those `known` nearest to `side` pixels (the larger of two equally near)."""
    return min(known, key=lambda scale: (abs(scale - side), -scale))


def _imagenet(name: str, size: int, scale: int | None = 224) -> Edition:
    resized, cropped = ResizeShorter(round(size * 256 / 224)), Crop(size)
    whole = Chain(resized, cropped)
    words = f"shorter side to {round(size * 256 / 224)} pixels, then the middle {size} x {size}"
    as_stored = name == "imagenet"
    steps = whole, resized, cropped, whole
    return Edition(name, scale, *steps, preparation=words, side=size, resizes_as_stored=as_stored)


def _imagenet_inception(name: str, size: int) -> Edition:
    whole = Chain(CropMost(), Squeeze(size))
    words = f"the middle 87.5 % of both sides, then squeezed to {size} x {size} pixels"
    has_gap = size == 299
    return Edition(name, 299, whole, _KEEP, whole, whole, preparation=words, side=size, leaves_gap=has_gap)


def _imagenet_64(name: str, size: int) -> Edition:
    # Frames computed from the raw image kept their aspect ratio in the scripts, unlike all others at 64.
    finished = Chain(ResizeShorter(size), Crop(size))
    squeezed, words = Squeeze(size), f"squeezed to {size} x {size} pixels"
    return Edition(name, 64, squeezed, squeezed, _KEEP, finished, preparation=words, side=size)


def _tiny_imagenet(name: str, size: int) -> Edition:
    # The scripts squeezed for the corruptions and cropped for the perturbations; both are kept.
    resized, cropped = ResizeShorter(size), Crop(size)
    words = f"squeezed to {size} x {size} pixels; for perturbations shorter side to {size}, then the middle"
    steps = Squeeze(size), resized, cropped, Chain(resized, cropped)
    return Edition(name, 64, *steps, preparation=words, side=size)


def _clips(name: str, size: int) -> Edition:
    return replace(_imagenet(name, size, None), data_set=name.partition("@")[0], quality=_OF_FRAMES)


def _as_they_are(name: str, title: str, side: int) -> Edition:
    whole, words = CheckSide(title, side), f"as they are, {side} x {side} pixels"
    return Edition(name, 32, whole, _KEEP, whole, whole, format="npy", preparation=words, side=side)


def _medmnist(name: str, size: int = 0) -> Edition:
    base = name.partition("@")[0]
    grey = base not in ("pathmnist", "bloodmnist", "dermamnist", "retinamnist")
    whole = CheckSide("MedMNIST+", 224, f"edition {base}@224 resizes them, and so does any {base}@SIZE")
    words = f"squeezed to {size} x {size} pixels" if size else "as they are, 224 x 224 pixels"
    edition = Edition(name, 224, Squeeze(size) if size else whole, format="npz", preparation=words)
    return replace(edition, side=size or 224, data_set=base, grey=grey)


_AT_SIZE: Mapping[str, Callable[[str, int], Edition]] = {
    "imagenet": _imagenet,
    "imagenet-inception": _imagenet_inception,
    "imagenet-64": _imagenet_64,
    "tiny-imagenet": _tiny_imagenet,
    "folder": partial(_imagenet, scale=None),
    **dict.fromkeys(CLIP_SETS, _clips),
    **dict.fromkeys(MEDMNIST, _medmnist),
}
_SIZES = {"imagenet": 224, "imagenet-inception": 299, "imagenet-64": 64, "tiny-imagenet": 64}
_ROWS = (
    *(_AT_SIZE[name](name, size) for name, size in _SIZES.items()),
    *(_as_they_are(name, "CIFAR", 32) for name in ("cifar-10", "cifar-100")),
    Edition("folder", None),
    # With the constants for 224 pixels at every size.
    Edition("coco-c", 224, implementation="imagecorruptions"),
    replace(
        _imagenet("laion-c", 224),
        preparation="shorter side to 256 pixels, of mosaics to a multiple of the tile, then the middle 224",
        by_corruption=True,
        quality=100,
        subsampling="4:4:4",
    ),
    replace(_as_they_are("mnist", "MNIST", 28), data_set="mnist", grey=True),
    *map(_medmnist, MEDMNIST),
    # For clips, whose frames keep their size.
    *(Edition(name, None, data_set=name, quality=_OF_FRAMES) for name in CLIP_SETS),
)

EDITIONS: Mapping[str, Edition] = MappingProxyType({edition.name: edition for edition in _ROWS})
"""Preparations with their constants, by name."""


def get_edition(name: str) -> Edition:
    """Return the edition called `name`; ``"imagenet@384"`` is `imagenet` resized and cropped to 384 pixels.

    For `folder`, which keeps image sizes, a size is prepared as in `imagenet`.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        The edition does not exist, or does not have this size.
    """
    base, at, size = name.partition("@") if isinstance(name, str) else (name, "", "")
    edition: Edition = get_known("edition", base, EDITIONS)
    return _at_size(base, size) if at else edition


@lru_cache
def _at_size(base: str, size: str) -> Edition:
    if not re.fullmatch("[0-9]{1,9}", size) or not SMALLEST_SIDE <= int(size) <= MOST_SIDE:
        raise ArgumentError(f"size of {base} is {SMALLEST_SIDE} to {MOST_SIDE} pixels, not {quote(size)}")
    name, side = f"{base}@{size}", EDITIONS[base].side
    if base in _AT_SIZE:
        return _AT_SIZE[base](name, int(size))
    if int(size) != side:
        own = f"is {side} x {side} pixels, and has no other size" if side else "keeps the size of each image"
        raise ArgumentError(f"{name} {own}")
    return replace(EDITIONS[base], name=name)


def prepare(image: Any, edition: str = "imagenet") -> Rgb:
    """Resize and crop a source image like the edition's images before any corruption.

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
        Not an image, or the edition does not exist.
    ImageError
        The image is too small or too elongated for the edition.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> photo = np.zeros((300, 400, 3), np.uint8)
    >>> robustgen.prepare(photo, "imagenet").shape
    (224, 224, 3)
    >>> robustgen.prepare(photo, "imagenet-64").shape
    (64, 64, 3)
    """
    pixels = as_rgb(image)
    prepared = get_edition(edition).prepared(pixels)
    # The caller may modify the result, which must not change the argument.
    return prepared.copy() if np.shares_memory(prepared, pixels) else prepared


def check_scale(scale: Any) -> int | None:
    """Return `scale`, an int or None; raise an ArgumentError or ArgumentTypeError if it does not exist."""
    if scale is None:
        return None
    if not isinstance(scale, Integral) or isinstance(scale, bool):
        raise ArgumentTypeError(f"scale must be an int, not {type(scale).__name__}")
    every = (*SCALES, *CALIBRATED_SCALES)
    if scale not in every:
        raise ArgumentError(f"scale {scale} does not exist (known: {', '.join(map(str, every))})")
    return int(scale)


def check_size(image: Rgb, smallest: int = SMALLEST_SIDE) -> Rgb:
    """Return `image` unchanged, if its sides have at least `smallest` pixels, enough for most operations."""
    height, width = image.shape[:2]
    if min(height, width) < smallest:
        raise ArgumentError(f"{width} x {height} pixels; each side needs at least {smallest}; {RESIZING}")
    return image
