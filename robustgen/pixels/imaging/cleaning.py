"""Cleaning of images before a model sees them: CLAHE, non-local means and a median filter."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import metadata
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from robustgen.errors import ArgumentError, explain_import
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import as_rgb
from robustgen.pixels.imaging.kernels import elementwise
from robustgen.pixels.imaging.third_party import cv2


class Cleaning(ABC):
    """A way of cleaning images, with its parameters. Hashable and picklable.

    Attributes
    ----------
    name : str
        Name in flags and files.
    title : str
        Name for people, and title of a cleaned set.
    """

    name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def apply(self, image: Any) -> Rgb:
        """Return the cleaned image, uint8 (H, W, 3), of an array or a Pillow image, which stays unchanged."""

    def settings(self) -> dict[str, Any]:
        """Return the name and the parameters, as plain values."""
        return {self.name: asdict(self)}  # type: ignore[call-overload]  # subclasses are dataclasses

    def versions(self) -> dict[str, str]:
        """Return the versions of libraries that decide the pixels, apart from those of every set."""
        return {}


# --- contrast limited adaptive histogram equalisation ----------------------------------------------

# Preprocessing of the ICLR 2019 paper, section 5.2, which found a lower mCE for networks finetuned on such
# images. It gives neither the clip limit nor the tiles; the defaults here are those of OpenCV's
# documentation, 2.0 and 8 x 8. Only the lightness L of CIELAB is equalised, which preserves hues.

# A level cannot exceed 256 even shares; far above, OpenCV overflows and clips most values.
MOST_CLIP = 256.0
# Each tile has a table of 256 levels, so more tiles would only fill memory.
MOST_TILES = 64


@dataclass(frozen=True)
class Clahe(Cleaning):
    """Strength and grid of the equalisation.

    Attributes
    ----------
    clip_limit : float
        Largest count of a lightness level in a tile's histogram, as a multiple of the even share; positive
        and at most `MOST_CLIP`, which clips nothing. The excess is spread over all levels.
    tiles : int
        Number of tiles along each side, from 1 to `MOST_TILES`.

    Raises
    ------
    ArgumentError
        A value is out of range.
    """

    clip_limit: float = 2.0
    tiles: int = 8

    name = "clahe"
    title = "CLAHE"

    def __post_init__(self) -> None:
        """Check both values: OpenCV ends the process for 0 tiles."""
        if not 0 < self.clip_limit <= MOST_CLIP:
            raise ArgumentError(f"clip_limit must be above 0, at most {MOST_CLIP:g}, not {self.clip_limit!r}")
        if self.tiles not in range(1, MOST_TILES + 1):
            raise ArgumentError(f"tiles must be a whole number from 1 to {MOST_TILES}, not {self.tiles!r}")

    def apply(self, image: Any) -> Rgb:
        """Equalise the lightness of the image."""
        return clahe(image, self)


def clahe(image: Any, parameters: Clahe = Clahe(), rng: None = None) -> Rgb:
    """Equalise the lightness of `image` tile by tile, interpolated bilinearly.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3) or (H, W), or a Pillow image
        Of any size; not modified.
    parameters : Clahe
    rng : None
        Unused; part of the interface of operations.

    Returns
    -------
    uint8 ndarray of shape (H, W, 3)

    Raises
    ------
    ArgumentError, ArgumentTypeError, ImageError
        As for `robustgen.pixels.imaging.decode.as_rgb`.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> dull = np.random.default_rng(0).integers(100, 130, (64, 64, 3), np.uint8)
    >>> clear = robustgen.clahe(dull)
    >>> int(np.ptp(dull)), int(np.ptp(clear))
    (29, 121)
    """
    lab = cv2.cvtColor(as_rgb(image), cv2.COLOR_RGB2LAB)
    lightness = np.ascontiguousarray(lab[..., 0])
    tiles, (height, width) = parameters.tiles, lightness.shape
    # If only one side needs padding, OpenCV pads the other one by a full tile.
    even = height % tiles == 0 and width % tiles == 0
    rows, columns = (_extend(size, 0 if even else tiles - size % tiles) for size in (height, width))
    limit = max(int(parameters.clip_limit * (rows.size // tiles * (columns.size // tiles)) / 256), 1)
    elementwise.equalise(lightness, tiles, columns, rows, limit, lightness)
    lab[..., 0] = lightness
    return np.asarray(cv2.cvtColor(lab, cv2.COLOR_LAB2RGB), np.uint8)


@lru_cache(maxsize=64)
def _extend(size: int, more: int) -> npt.NDArray[np.int64]:
    """Return the indices of `size` samples, followed by `more` that mirror their end."""
    return np.array([elementwise.beyond(index, size, True) for index in range(size + more)])


# --- non-local means -------------------------------------------------------------------------------

# Appendix F of the ICLR 2019 paper. It names the algorithm and the estimate of the noise, but no parameter.
# The defaults are those of the fast example in scikit-image's gallery that is given the noise.

# High-pass filter of Daubechies' wavelet with two vanishing moments.
_ROOT: Final = math.sqrt(3)
_DETAIL: Final = tuple(
    weight / (4 * math.sqrt(2)) for weight in (-(1 + _ROOT), 3 + _ROOT, _ROOT - 3, 1 - _ROOT)
)
# Median of the absolute value of a standard normal variable.
_MEDIAN: Final = 0.6744897501960817
# Details of flat areas are smaller, if rounding errors make them other than zero; others of bytes are larger.
_ZERO: Final = 1e-12


def estimate_noise(image: Rgb) -> float:
    """Return the standard deviation of the noise in an image, uint8 (H, W, 3), scaled to [0, 1].

    This is the median absolute diagonal detail at the finest scale, without zeros, over that of normal noise
    (Donoho and Johnstone, 1994, section 4.2), averaged over the channels: ``estimate_sigma`` of scikit-image.
    """
    channels = (_transform(_transform(image[..., channel] / 255).T) for channel in range(3))
    details = (np.abs(each[np.abs(each) > _ZERO]) for each in channels)
    return sum(float(np.median(each)) / _MEDIAN for each in details if each.size) / 3


def _transform(plane: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the wavelet's details of each row (H, W), mirrored at the ends: ((W + 3) // 2) for each row."""
    extended = np.pad(plane, ((0, 0), (2, 3)), "symmetric")
    last = 2 * ((plane.shape[1] + 3) // 2) - 1
    first, *others = (extended[:, start : start + last : 2] for start in (3, 2, 1, 0))
    total = _DETAIL[0] * first
    for weight, values in zip(_DETAIL[1:], others, strict=True):
        total += weight * values
    return np.asarray(total)


@dataclass(frozen=True)
class Denoise(Cleaning):
    """Non-local means, as strong as the estimated noise.

    Attributes
    ----------
    patch : int
        Side of the patches that are compared, in pixels; odd.
    distance : int
        Largest distance of their centres along each axis, in pixels.
    strength : float
        Cut-off distance of the patches, as a multiple of the noise's standard deviation.
    """

    patch: int = 5
    distance: int = 6
    strength: float = 0.6

    name = "denoise"
    title = "Denoising"

    def apply(self, image: Any) -> Rgb:
        """Average similar patches, if the image has noise.

        Raises
        ------
        MissingDependencyError
            scikit-image is not installed.
        """
        pixels = as_rgb(image)
        noise, means = estimate_noise(pixels), _import_restoration().denoise_nl_means
        if not noise:
            return pixels.copy()
        result = means(
            pixels / 255,
            patch_size=self.patch,
            patch_distance=self.distance,
            h=self.strength * noise,
            sigma=noise,
            channel_axis=-1,
        )
        return np.asarray(np.clip(np.rint(result * 255), 0, 255), np.uint8).reshape(pixels.shape)

    def versions(self) -> dict[str, str]:
        """Return the version of scikit-image, which computes the means.

        Raises
        ------
        MissingDependencyError
            It is not installed.
        """
        _import_restoration()
        return {"scikit-image": metadata.version("scikit-image")}


def _import_restoration() -> Any:
    with explain_import("denoise needs scikit-image", "demo"):
        from skimage import restoration
    return restoration


# --- median filter -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Median(Cleaning):
    """Median of each channel in a square.

    Attributes
    ----------
    size : int
        Side of the square in pixels; odd.
    """

    size: int = 3

    name = "median"
    title = "Median filter"

    def apply(self, image: Any) -> Rgb:
        """Replace each value by the median around it; the image is repeated at its borders."""
        return np.asarray(cv2.medianBlur(as_rgb(image), self.size), np.uint8)


CLEANINGS: Final[Mapping[str, type[Cleaning]]] = {each.name: each for each in (Clahe, Denoise, Median)}
"""Name to class."""
