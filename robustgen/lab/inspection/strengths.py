"""`robustgen calibrate`: the strength of each corruption.

The strength is the MS-SSIM between the prepared image and the corrupted one. The 2018 draft used it to choose
severities: about 0.9 at severity 1, and for most corruptions about 0.5 at severity 5 (section 3.2).
"""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robustgen.display import progress
from robustgen.errors import DecodingWarning, ImageError, MissingDependencyError, SourceError, name_error
from robustgen.files.storage import prefetch
from robustgen.pixels.benchmarks.kinds import IMAGE, Variant, require
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import Loss, as_rgb, find_loss
from robustgen.pixels.imaging.similarity import Reference
from robustgen.sets.dataset.plan import Making
from robustgen.sets.dataset.planning import open_making
from robustgen.sets.dataset.recipes import rank
from robustgen.sets.dataset.unit_jobs import describe_losses
from robustgen.sets.sources.base import read_ahead
from robustgen.settings.config import Config


@dataclass(frozen=True)
class Strength:
    """Similarity of corrupted images to the clean ones, for one corruption at one severity.

    Attributes
    ----------
    variant : Variant
    mean, std : float
        MS-SSIM over the images.
    """

    variant: Variant
    mean: float
    std: float


@dataclass(frozen=True)
class MeasuredStrengths:
    """The strengths of a set of corruptions.

    Attributes
    ----------
    title : str
        Data set and edition of the images.
    images : int
    strengths : tuple of Strength
    failures : dict
        Images that cannot be used, with the reasons.
    """

    title: str
    images: int
    strengths: tuple[Strength, ...]
    failures: dict[str, str]


def measure_strengths(config: Config, sample: int = 20) -> MeasuredStrengths:
    """Measure the strengths of the corruptions of `config` on `sample` of its images, chosen by its seed.

    Raises
    ------
    RobustgenError
        The config or the source is invalid, or no image can be used.
    """
    making, losses = open_calibration(config), dict[str, Loss | None]()

    def measure(image: tuple[str, Callable[[], tuple[Rgb]]]) -> list[float] | ImageError:
        key, read = image
        try:
            return _strengths(making, key, *read())
        except MissingDependencyError:
            raise
        except Exception as error:
            return error if isinstance(error, ImageError) else ImageError(name_error(error))

    keys = draw_sample(making.keys, config.seed, sample)
    images = zip(keys, read_pixels(making, keys, losses), strict=True)
    measured = prefetch(measure, images, config.jobs or os.cpu_count() or 1)
    found = dict(zip(keys, progress.track(measured, len(keys), "images"), strict=True))
    failures = {key: str(each) for key, each in found.items() if isinstance(each, ImageError)}
    values = [each for each in found.values() if isinstance(each, list)]
    check_any(values, making, failures)
    warn_of_losses(losses)
    pairs = zip(making.variants, np.array(values).T, strict=True)
    strengths = tuple(Strength(variant, float(each.mean()), float(each.std())) for variant, each in pairs)
    title = f"{config.name_dataset()}, edition {config.edition}"
    return MeasuredStrengths(title, len(values), strengths, failures)


def read_pixels(
    making: Making, keys: Sequence[str], losses: dict[str, Loss | None]
) -> Iterator[Callable[[], tuple[Rgb]]]:
    """Yield functions that return source images, uint8 (H, W, 3), or raise their errors; see `read_ahead`.

    What the images lose in 8 bits is put into `losses`.
    """

    def read(key: str) -> tuple[Rgb]:
        loaded = making.source.open(key)
        losses[key] = find_loss(loaded)
        return (as_rgb(loaded),)

    return read_ahead(making.source.location, read, keys)


def warn_of_losses(losses: Mapping[str, Loss | None]) -> None:
    """Warn of images that come out in few greys or lose channels, as `robustgen make-c` does."""
    for text in describe_losses(losses, len(losses)):
        warnings.warn(text, DecodingWarning, stacklevel=3)


def _strengths(making: Making, key: str, pixels: Rgb) -> list[float]:
    """Return the MS-SSIM of one image after each corruption."""
    image = making.recipe.prepare(pixels)
    reference, shared = Reference(image), dict[str, Any]()
    return [
        reference.similarity(making.recipe.make(variant, key, image, shared)).ms_ssim
        for variant in making.variants
    ]


def open_calibration(config: Config) -> Making:
    """Return what make-c would compute, without the clean images."""
    making = open_making(config.of_separate_images(clean=False), "c")
    require(making.source.medium, (IMAGE,), "calibrate")
    return making


def draw_sample(keys: Sequence[str], seed: int, sample: int) -> list[str]:
    """Return the images to measure, chosen by the seed and their names."""
    return sorted(sorted(keys, key=lambda key: rank(seed, key))[:sample])


def check_any(found: Sequence[Any], making: Making, failures: dict[str, str]) -> None:
    """Raise a SourceError if nothing was `found`."""
    if not found:
        reason = next(iter(failures.values()), "there are none")
        raise SourceError(f"{making.source.location}: none of its images can be used: {reason}")
