"""Similarity of two images: PSNR, SSIM and multi-scale SSIM.

SSIM uses the settings of Wang et al. 2004 (Gaussian window of 11 pixels, sigma 1.5, K1 0.01, K2 0.03,
population covariance, no border) and equals scikit-image's with the same settings; MS-SSIM follows Wang,
Simoncelli and Bovik 2003. Both are computed for each colour channel and averaged over the three.
scikit-image has no MS-SSIM, and its SSIM is several times slower.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from robustgen.errors import ArgumentError
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.blur import gaussian, gaussian_weights
from robustgen.pixels.imaging.kernels import elementwise as kernels
from robustgen.pixels.imaging.kernels import exact
from robustgen.pixels.imaging.third_party import cv2

WINDOW: Final = 11
WEIGHTS: Final = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
# The PSNR of equal images would be infinite, which has no mean.
HIGHEST_PSNR: Final = 100.0

# For larger or non-uniform displacements, slopes carry little information.
_FARTHEST: Final = 4.0

_BORDER = WINDOW // 2
_HALF = gaussian_weights(1.5, _BORDER / 1.5).astype(np.float32)
_C1, _C2 = np.float32((0.01 * 255) ** 2), np.float32((0.03 * 255) ** 2)

# Ratio of 10 log10 to the natural logarithm.
_DECIBELS: Final = 4.3429448190325175

_Plane = npt.NDArray[Any]
_PerChannel = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Similarity:
    """PSNR in decibels, at most 100; SSIM and MS-SSIM, 1 for equal images."""

    psnr: float
    ssim: float
    ms_ssim: float


def scales_for(side: int) -> int:
    """Return the number of MS-SSIM scales for a shorter side in pixels: 5 from 176, 3 at 64, 2 at 32.

    Each scale is half as large as the one before; the window must fit into the last.

    Raises
    ------
    ArgumentError
        The image is smaller than the window.
    """
    if side < WINDOW:
        raise ArgumentError(f"a side of {side} pixels is smaller than the {WINDOW} of the window of SSIM")
    return sum(side >> scale >= WINDOW for scale in range(len(WEIGHTS)))


def weights_of(scales: int) -> _PerChannel:
    """Return the first `scales` of the five published exponents, divided by their sum."""
    chosen = WEIGHTS[:scales]
    return np.asarray(np.array(chosen) / np.sum(chosen))


class Reference:
    """An image to compare others with; computes shared values once.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    scales : int, optional
        Number of MS-SSIM scales. Default: as many as fit.

    Raises
    ------
    ArgumentError
        The image is too small.
    """

    def __init__(self, image: Rgb, scales: int | None = None) -> None:
        most = scales_for(min(image.shape[:2]))
        if scales is not None and not 1 <= scales <= most:
            raise ArgumentError(f"{scales} scales of MS-SSIM do not fit into {_size(image)} (at most {most})")
        self.image = image
        self._scales = scales or most

    @cached_property
    def _levels(self) -> list["_Level"]:
        return [_Level(plane) for plane in _pyramid(self.image, self._scales)]

    def similarity(self, image: Rgb) -> Similarity:
        """Return the similarity of `image` to the reference.

        Raises
        ------
        ArgumentError
            `image` has another shape.
        """
        if image.shape != self.image.shape:
            raise ArgumentError(f"{_size(image)} cannot be compared with {_size(self.image)}")
        pairs = zip(self._levels, _pyramid(image, self._scales), strict=True)
        measured = [level.compared(other) for level, other in pairs]
        # A negative mean has no real power, so such different images count as 0.
        weights = weights_of(self._scales).tolist()
        factors = np.maximum([*(cs for _, cs in measured[:-1]), measured[-1][0]], 0)
        products = [
            math.prod(map(exact.power, each, weights)) if min(each) > 0 else 0.0
            for each in factors.T.tolist()
        ]
        return Similarity(psnr(self.image, image), float(measured[0][0].mean()), float(np.mean(products)))


class Alignment:
    """A reference image for measuring displacements from the slopes of its grey levels.

    To first order, an image moved by d is the image minus d times its slope. After a Gaussian blur, which
    extends slopes by some pixels, least squares over all pixels give d, and gain and offset of the greys.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3)
    """

    def __init__(self, image: Rgb) -> None:
        plane = _blur(image)
        self._columns = [each.ravel().astype(np.float64) for each in _slopes(plane)]
        self._columns += [plane.ravel().astype(np.float64), np.ones(plane.size)]
        self._products = np.array(
            [[kernels.inner_product(a, b) for b in self._columns] for a in self._columns]
        )

    def displacement(self, image: Rgb) -> tuple[float, float]:
        """Return the displacement of `image` to the right and downwards, at most 4 pixels each."""
        plane = _blur(image).ravel().astype(np.float64)
        values = np.array([kernels.inner_product(column, plane) for column in self._columns])
        # A flat image has no measurable displacement.
        across, down, *_ = kernels.solve(self._products.copy(), values)
        return _within(-across), _within(-down)


def _blur(image: Rgb) -> _Plane:
    return gaussian(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32), 3.0, mode="reflect")


def _slopes(plane: _Plane) -> tuple[_Plane, _Plane]:
    """Return the Sobel slopes of `plane` to the right and downwards, with mirrored borders."""
    padded = np.pad(plane, 1, mode="reflect")
    smooth = padded[:-2] + 2 * padded[1:-1] + padded[2:]
    across = (smooth[:, 2:] - smooth[:, :-2]) / np.float32(8)
    smooth = padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]
    return across, (smooth[2:] - smooth[:-2]) / np.float32(8)


def _within(displacement: float) -> float:
    return float(np.clip(displacement, -_FARTHEST, _FARTHEST))


class _Level:
    """One scale of a reference: its image, (H, W, 3), with local means and variances."""

    def __init__(self, image: _Plane) -> None:
        self._image = image
        self._mean = _local(image)
        self._square = self._mean * self._mean
        self._variance = _local(image * image) - self._square

    def compared(self, other: _Plane) -> tuple[_PerChannel, _PerChannel]:
        """Return the means of SSIM and of its contrast-structure factor, per channel."""
        mean = _local(other)
        product, square = self._mean * mean, mean * mean
        covariance = _local(self._image * other) - product
        variance = _local(other * other) - square
        structure = (2 * covariance + _C2) / (self._variance + variance + _C2)
        luminance = (2 * product + _C1) / (self._square + square + _C1)
        return _mean(luminance * structure), _mean(structure)


def _local(plane: _Plane) -> _Plane:
    """Return the Gaussian-weighted local means of `plane`, wherever the window fits inside."""
    height, width, channels = plane.shape
    means = np.empty((height - 2 * _BORDER, width - 2 * _BORDER, channels), np.float32)
    kernels.window_means(plane.reshape(height, -1), channels, _HALF, means.reshape(len(means), -1))
    return means


def _mean(plane: _Plane) -> _PerChannel:
    means: _PerChannel = kernels.channel_means(plane)
    return means


def _pyramid(image: Rgb, scales: int) -> list[_Plane]:
    """Return the image as float32 and its halves; a last odd row or column is dropped."""
    planes: list[_Plane] = [image.astype(np.float32)]
    while len(planes) < scales:
        height, width = (side // 2 for side in planes[-1].shape[:2])
        even = planes[-1][: 2 * height, : 2 * width]
        lines = even[::2] + even[1::2]
        planes.append(np.ascontiguousarray((lines[:, ::2] + lines[:, 1::2]) * np.float32(0.25)))
    return planes


def mean_square(a: Rgb, b: Rgb) -> float:
    """Return the mean of the squared differences of two uint8 images of one shape."""
    flat, other = (np.ascontiguousarray(each).reshape(-1) for each in (a, b))
    return int(kernels.square_distance(flat, other)) / a.size


def psnr(reference: Rgb, image: Rgb) -> float:
    """Return the peak signal-to-noise ratio of two uint8 images of one shape, at most 100 dB."""
    squares = mean_square(reference, image)
    return (
        HIGHEST_PSNR
        if squares <= 0
        else min(HIGHEST_PSNR, float(exact.log(255.0 * 255.0 / squares)) * _DECIBELS)
    )


def similarity(reference: Rgb, image: Rgb) -> Similarity:
    """Return the similarity of two uint8 images of one shape, (H, W, 3).

    Raises
    ------
    ArgumentError
        The images differ in shape, or are smaller than 11 pixels.
    """
    return Reference(reference).similarity(image)


def _size(image: npt.NDArray[Any]) -> str:
    return f"{image.shape[1]} x {image.shape[0]} pixels"
