"""The nineteen corruptions as the package imagecorruptions 1.1.2 computes them, at any image size.

The package ports ImageNet-C; COCO-C, Pascal-C and Cityscapes-C use it: Michaelis et al., "Benchmarking
Robustness in Object Detection" (2019). Constants are those for 224 pixels at every size. Twelve corruptions
equal those of the scripts; the seven here give other pixels, `zoom_blur` only at a few sizes.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from PIL import Image

from robustgen.pixels.benchmarks.corruptions import blur, digital, weather
from robustgen.pixels.benchmarks.registry import BENCHMARK_FAMILY, Family, corruption
from robustgen.pixels.imaging import weather_effects
from robustgen.pixels.imaging.arrays import AnyFloats, Rgb, to_uint8, unit
from robustgen.pixels.imaging.blur import gaussian, sum_along_line
from robustgen.pixels.imaging.geometry import resize_by_box
from robustgen.pixels.imaging.rng import Rng, integers, normal

IMAGECORRUPTIONS = Family(
    "imagecorruptions",
    "COCO-C",
    BENCHMARK_FAMILY.citation
    + " Claudio Michaelis et al.: Benchmarking Robustness in Object Detection: Autonomous Driving when "
    "Winter is Coming. arXiv:1907.07484, 2019.",
    qualified=False,
)
_SAME = (
    "gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", "gaussian_blur", "defocus_blur",
    "glass_blur", "fog", "brightness", "contrast", "jpeg_compression", "saturate",
)  # fmt: skip

for _name in _SAME:
    _entry = BENCHMARK_FAMILY.corruptions[_name]
    _rows = _entry.table[224]
    if _name == "jpeg_compression":
        # The package runs on later releases of Pillow than the published scripts.
        _rows = tuple(dataclasses.replace(row, library="turbo") for row in _rows)
    IMAGECORRUPTIONS.add(dataclasses.replace(_entry, table={224: _rows}, family=IMAGECORRUPTIONS.name))


_register = partial(corruption, family=IMAGECORRUPTIONS)


def _table(name: str, fields: int | None = None) -> dict[int, tuple[tuple[float, ...], ...]]:
    """Return the published constants of `name`, or the first `fields` of each row."""
    rows = BENCHMARK_FAMILY.corruptions[name].table[224]
    return {224: tuple(dataclasses.astuple(row)[:fields] for row in rows)}


@_register("blur", blur.MotionBlur, _table("motion_blur"))
def motion_blur(image: Rgb, parameters: blur.MotionBlur, rng: Rng) -> Rgb:
    """Move the camera in a straight line; images smaller than the motion get darker."""
    angle = rng.uniform(-45, 45)
    summed = sum_along_line(image.astype(np.float64), parameters.radius, parameters.sigma, angle)
    return np.asarray(np.clip(summed, 0, 255), np.uint8)


@_register("blur", blur.ZoomBlur, _table("zoom_blur"), random=False, shares=blur.Zooms)
def zoom_blur(image: Rgb, parameters: blur.ZoomBlur, rng: Rng, zooms: blur.Zooms) -> Rgb:
    """Average zooms; a last line that SciPy's rounding puts outside is black, as in the package."""
    return zooms.average(blur.zoom_factors(parameters), parameters.step, black_outside=True)


def let_fall(frames: Iterable[Rgb], parameters: weather.Snow, rng: Rng) -> Iterator[Rgb]:
    """Yield frames with new flakes in each, and the wind of the first."""
    p, wind = parameters, None
    for frame in frames:
        height, width = frame.shape[:2]
        flakes = _enlarge(normal(rng, p.loc, p.scale, (height, width)), p.zoom)
        flakes[flakes < p.threshold] = 0
        wind = rng.uniform(-135, -45) if wind is None else wind
        blown = sum_along_line(np.clip(flakes, 0, 1), p.radius, p.sigma, wind)
        layer = np.round(np.clip(blown, 0, 1) * 255).astype(np.uint8)[:height, :width]
        yield weather_effects.add_snow(
            frame, weather_effects.luma_of(frame), p.mix, np.ascontiguousarray(layer)
        )


@_register("weather", weather.Snow, _table("snow"), over_time=let_fall)
def snow(image: Rgb, parameters: weather.Snow, rng: Rng) -> Rgb:
    """Let wind-blown snow fall; the layer is rounded, and its upper left corner is used."""
    return next(let_fall([image], parameters, rng))


def _enlarge(layer: AnyFloats, factor: float) -> AnyFloats:
    """Return the middle ceil(side / factor) of `layer`, enlarged linearly by `factor` and not trimmed."""
    from scipy import ndimage

    crops = [math.ceil(side / factor) for side in layer.shape]
    middle = tuple(
        slice((side - crop) // 2, (side - crop) // 2 + crop)
        for side, crop in zip(layer.shape, crops, strict=True)
    )
    enlarged: AnyFloats = ndimage.zoom(layer[middle], factor, order=1)
    return enlarged


@dataclass(frozen=True)
class FrostWindow:
    """Weights of the image and of the frost."""

    image_weight: float
    frost_weight: float


@_register("weather", FrostWindow, _table("frost", 2), needs=weather.FROST)
def frost(image: Rgb, parameters: FrostWindow, rng: Rng, folder: str | None) -> Rgb:
    """Add a window of a frost photograph, which is always enlarged by a tenth."""
    height, width = image.shape[:2]
    photograph = weather_effects.enlarged_photograph(int(integers(rng, 0, 5)), (height, width), folder)
    top = integers(rng, 0, photograph.shape[0] - height)
    left = integers(rng, 0, photograph.shape[1] - width)
    window = photograph[top : top + height, left : left + width]
    return weather_effects.blend(image, parameters.image_weight, window, parameters.frost_weight)


@dataclass(frozen=True)
class ElasticField:
    """Displacement: `alpha` times noise of `amplitude`, smoothed by `sigma`; both are shares of the sides."""

    alpha: float
    sigma: float
    amplitude: float


@_register(
    "digital",
    ElasticField,
    {224: tuple((250 * share, 0.01, 0.005) for share in (0.05, 0.065, 0.085, 0.1, 0.12))},
    displaces=True,
)
def elastic_transform(image: Rgb, parameters: ElasticField, rng: Rng) -> Rgb:
    """Stretch and contract small regions, without an affine map."""
    from scipy import ndimage

    height, width = image.shape[:2]
    # The height limits both fields.
    bound, sigmas = height * parameters.amplitude, (height * parameters.sigma, width * parameters.sigma)
    dx, dy = (
        (
            gaussian(rng.uniform(-bound, bound, size=(height, width)), sigmas, 3.0, "reflect")
            * parameters.alpha
        ).astype(np.float32)
        for _ in range(2)
    )
    rows, columns = np.mgrid[:height, :width]
    places = np.stack([rows + dy, columns + dx])
    x, moved = unit(image, np.float32), np.empty(image.shape, np.float32)
    for channel in range(3):
        plane = np.ascontiguousarray(x[:, :, channel])
        moved[:, :, channel] = ndimage.map_coordinates(plane, places, order=1, mode="reflect")
    return to_uint8(moved)


@_register("digital", digital.Pixelate, _table("pixelate"), random=False, breaks={224: (1, 4)})
def pixelate(image: Rgb, parameters: digital.Pixelate, rng: Rng) -> Rgb:
    """Shrink by averaging and enlarge by repeating."""
    height, width = image.shape[:2]
    size = int(width * parameters.fraction), int(height * parameters.fraction)
    small = Image.fromarray(resize_by_box(image, *size))
    return np.array(small.resize((width, height), Image.Resampling.NEAREST))


@_register("weather", weather.Spatter, _table("spatter"), common=False, breaks={224: (3,)})
def spatter(image: Rgb, parameters: weather.Spatter, rng: Rng) -> Rgb:
    """Splash water (distances in float32) or mud (colours in float64) on the lens."""
    p = parameters
    layer = weather_effects.draw_drops(image.shape[:2], p.loc, p.scale, p.sigma, p.threshold, rng)
    if not p.mud:
        # The reference outputs come from a build of OpenCV with IPP.
        splashed = weather_effects.splash_water(image, layer, p.strength, weather_effects.IPP_COSTS)
        return to_uint8(unit(image, np.float32)) if splashed is None else splashed
    x = unit(image, np.float32)
    cover = weather_effects.draw_cover(layer > p.threshold, p.strength, np.float32)
    return to_uint8(x * (1 - cover) + np.array([63, 42, 20]) / 255.0 * cover)
