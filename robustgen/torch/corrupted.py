"""ImageNet-C on the fly: the images that `make-c` writes, without the files."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from robustgen.benchmark import Variant
from robustgen.dataset.recipes import BenchmarkRecipe, CorruptionRecipe
from robustgen.editions import get_edition
from robustgen.errors import ArgumentTypeError, ImageError
from robustgen.formats.jpeg import JpegTree
from robustgen.imaging.decode import as_rgb
from robustgen.imaging.pixels import Rgb
from robustgen.torch.arguments import Quality, check_natural, find_arm, resolve_quality
from robustgen.torch.keys import Key, resolve_keys
from robustgen.torch.pairs import MapStyle, split_pair


def make_output(recipe: BenchmarkRecipe, arm: Variant, key: str, image: Any) -> Rgb:
    """Return what `arm` makes of the source image `image`: uint8 (H, W, 3), or frames (T, H, W, 3).

    Raises
    ------
    ArgumentTypeError
        `image` is neither a Pillow image nor an array of dtype uint8.
    ImageError
        It cannot be used; the message names the key.
    """
    try:
        loaded = image if isinstance(image, Image.Image) and image.mode == "RGB" else as_rgb(image)
        output = recipe.make(arm, key, recipe.prepare(loaded))
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"{key!r}: {error}; transforms go to the data set on the outside") from error
    except ImageError as error:
        raise ImageError(f"{key!r}: {error}") from error
    # The base may give the same array again.
    return output.copy() if isinstance(loaded, np.ndarray) and np.shares_memory(output, loaded) else output


@dataclass(frozen=True)
class Corrupter:
    """Makes the images of a C set as they are read from its files.

    Attributes
    ----------
    recipe : CorruptionRecipe
    jpeg : int or None
        Quality of the files; None for no JPEG in between.
    transform : callable or None
        What is called with the result.
    """

    recipe: CorruptionRecipe
    jpeg: int | None
    transform: Callable[[Any], Any] | None

    def corrupt(self, arm: Variant, key: str, image: Any) -> Any:
        """Return the result for `image`: a Pillow image where it is one, else uint8 (H', W', 3);
        transformed.
        """
        pixels = make_output(self.recipe, arm, key, image)
        if self.jpeg is not None:
            subsampling = get_edition(self.recipe.edition).subsampling
            pixels = JpegTree(self.jpeg, subsampling=subsampling).as_read(arm, key, pixels)
        result = Image.fromarray(pixels) if isinstance(image, Image.Image) else pixels
        return self.transform(result) if self.transform else result


def open_corrupter(
    edition: str, seed: int, jpeg: Quality, transform: Callable[[Any], Any] | None
) -> Corrupter:
    """Return what makes the images of the C set of `edition` and `seed`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        A value cannot be used.
    """
    recipe = CorruptionRecipe(get_edition(edition).name, check_natural("seed", seed))
    return Corrupter(recipe, resolve_quality(jpeg, edition), transform)


class CorruptedDataset:
    """A map-style dataset of the images that `make-c` writes for one corruption and severity.

    An item is ``(image, label)``. Its pixels depend on edition, seed, corruption, severity and key alone:
    not on the workers of a DataLoader, nor on samplers, nor on the order in which items are asked for.

    Parameters
    ----------
    base : map-style dataset
        Of pairs (image, label): source images as decoded, Pillow images or uint8 arrays of shape (H, W, 3)
        or (H, W), before any transform.
    corruption : str
        A name in `robustgen.CORRUPTIONS` or of another family, or ``"clean"``.
    severity : int or float
        1 to 5, whole as published or between; 0 of clean images.
    seed : int
        Not negative.
    edition : str
        Preparation and constants, as `make-c` takes it.
    key : callable, sequence of str, or None
        Gives the key of an item by its index. None takes the keys of `make-c` where the data set tells them:
        folders and CIFAR's test split of torchvision, `SourceDataset`, and parts of these.
    jpeg : int, "published" or None
        Quality of the JPEG file that the image goes through in memory. ``"published"`` is what `make-c`
        writes: 85, and no JPEG for CIFAR. None is what it writes as PNG.
    transform : callable, optional
        Called with the result, an RGB Pillow image if the base gives one, else an array (H', W', 3).

    Raises
    ------
    ArgumentError, ArgumentTypeError
        A value cannot be used, nothing tells the keys, or an item is no pair of an image and a label.
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
        self.arm = find_arm(self._corrupter.recipe, corruption, severity)

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        place = range(len(self))[operator.index(index)]
        image, label = split_pair(self.base[place], place)
        return self._corrupter.corrupt(self.arm, self.key(place), image), label
