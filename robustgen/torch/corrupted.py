"""ImageNet-C on the fly: the images that `make-c` writes, without the files."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from robustgen.errors import ArgumentTypeError, ImageError
from robustgen.pixels.benchmarks.editions import get_edition
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging.decode import as_rgb
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.sets.dataset.recipes import BenchmarkRecipe, CorruptionRecipe
from robustgen.sets.formats.jpeg import JpegEncoder
from robustgen.torch.arguments import Quality, check_natural, find_variant, resolve_quality
from robustgen.torch.keys import Key, resolve_keys
from robustgen.torch.pairs import MapStyle, split_pair


def make_output(recipe: BenchmarkRecipe, variant: Variant, key: str, image: Any) -> Rgb:
    """Return the output of `variant` for the source image `image`: uint8 (H, W, 3), or frames (T, H, W, 3).

    Raises
    ------
    ArgumentTypeError
        `image` is neither a Pillow image nor an array of dtype uint8.
    ImageError
        The image cannot be used; the message names the key.
    """
    try:
        loaded = image if isinstance(image, Image.Image) else as_rgb(image)
        output = recipe.make(variant, key, recipe.prepare(loaded))
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"{key!r}: {error}; pass transforms to the corrupting data set") from error
    except ImageError as error:
        raise ImageError(f"{key!r}: {error}") from error
    # The base may return the same array again.
    return output.copy() if isinstance(loaded, np.ndarray) and np.shares_memory(output, loaded) else output


@dataclass(frozen=True)
class Corrupter:
    """Creates the images of a C set as they are read from its files.

    Attributes
    ----------
    recipe : CorruptionRecipe
    jpeg : int or None
        Quality of the files; None for no JPEG.
    transform : callable or None
        Function applied to the result.
    """

    recipe: CorruptionRecipe
    jpeg: int | None
    transform: Callable[[Any], Any] | None

    def corrupt(self, variant: Variant, key: str, image: Any) -> Any:
        """Return the transformed result: a Pillow image for a Pillow image, else uint8 (H', W', 3)."""
        pixels = make_output(self.recipe, variant, key, image)
        if self.jpeg is not None:
            subsampling = get_edition(self.recipe.edition).subsampling
            pixels = JpegEncoder(self.jpeg, subsampling=subsampling).as_read(variant, key, pixels)
        result = Image.fromarray(pixels) if isinstance(image, Image.Image) else pixels
        return self.transform(result) if self.transform else result


def open_corrupter(
    edition: str, seed: int, jpeg: Quality, transform: Callable[[Any], Any] | None
) -> Corrupter:
    """Return a function that creates the images of the C set of `edition` and `seed`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument is invalid.
    """
    recipe = CorruptionRecipe(get_edition(edition).name, check_natural("seed", seed))
    return Corrupter(recipe, resolve_quality(jpeg, edition), transform)


class CorruptedDataset:
    """A map-style data set of the images that `make-c` writes for one corruption and severity.

    An item is ``(image, label)``. Its pixels depend only on edition, seed, corruption, severity and key, not
    on the workers of a DataLoader, on samplers or on the order of the items.

    Parameters
    ----------
    base : map-style dataset
        Data set of pairs (image, label): source images as decoded, Pillow images or uint8 arrays of shape
        (H, W, 3) or (H, W), before any transform.
    corruption : str
        A name in `robustgen.CORRUPTIONS` or of another family, or ``"clean"``.
    severity : int or float
        1 to 5, whole as published or fractional; 0 for clean images.
    seed : int
        Seed, not negative.
    edition : str
        Preparation and constants, as in `make-c`.
    key : callable, sequence of str, or None
        Returns the key of an item by its index. None uses the keys of `make-c` for data sets with known keys:
        folders and CIFAR's test split of torchvision, `SourceDataset`, and parts of these.
    jpeg : int, "published" or None
        Quality of the JPEG file that the image passes through in memory. ``"published"`` is that of `make-c`:
        85, and no JPEG for CIFAR. None gives the pixels that it writes as PNG.
    transform : callable, optional
        Called with the result, an RGB Pillow image if the base returns one, otherwise an array (H', W', 3).

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument is invalid, the keys are unknown, or an item is not a pair of an image and a label.
    ImageError
        An image cannot be used; the message names its key.
    """

    def __init__(
        self,
        base: MapStyle,
        corruption: str,
        severity: float,
        *,
        seed: int = 0,
        edition: str,
        key: Key = None,
        jpeg: Quality = "published",
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        self.base, self.key = base, resolve_keys(base, key)
        self._corrupter = open_corrupter(edition, seed, jpeg, transform)
        self.variant = find_variant(self._corrupter.recipe, corruption, severity)

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        position = range(len(self))[operator.index(index)]
        image, label = split_pair(self.base[position], position)
        return self._corrupter.corrupt(self.variant, self.key(position), image), label
