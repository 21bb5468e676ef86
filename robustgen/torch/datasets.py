"""Data sets of clean, corrupted and perturbed images."""

import operator
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from PIL import Image

from robustgen.display.progress import print_note
from robustgen.errors import ArgumentError, ArgumentTypeError, ImageError, SourceError
from robustgen.pixels.benchmarks.editions import get_edition
from robustgen.pixels.benchmarks.kinds import IMAGENET_P, Variant
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import Levels, Location, as_rgb, as_rgb_picture, warn_of_few_greys
from robustgen.pixels.imaging.jpeg import Libjpeg, check_libjpeg
from robustgen.sets.dataset.layouts import describe_likely_maps
from robustgen.sets.dataset.recipes import BenchmarkRecipe, CorruptionRecipe, PerturbationRecipe
from robustgen.sets.formats.base import Encoder
from robustgen.sets.formats.encoders import JpegEncoder
from robustgen.sets.formats.videos import Mp4Encoder
from robustgen.sets.sources.base import Source, SourceOptions
from robustgen.sets.sources.folder import ImageFolder
from robustgen.sets.sources.imagenet import check_classes
from robustgen.sets.sources.opening import open_source
from robustgen.torch.items import (
    Key,
    MapStyle,
    Quality,
    check_natural,
    find_variant,
    resolve_keys,
    resolve_quality,
    split_pair,
)

# --- any source of images as a data set ------------------------------------------------------------


class SourceDataset:
    """A map-style data set of the source images that `make-c --source` finds: ``(image, label)``.

    Images are decoded on each access, to Pillow images; those of CIFAR, MNIST, MedMNIST and arrays are
    arrays, uint8 (H, W, 3).

    Parameters
    ----------
    source : path or Source
        A folder, an archive, or any other value of ``--source``.
    labels : path, optional
        File of labels for a folder or an archive.
    label_column : str, optional
        Column of the labels in that file, or in a table.
    labels_are_classes : bool
        Whether numbers in labels are names of classes.
    image_columns : sequence of str
        Columns of a table that contain images or name them; default ``image``.
    require_classes : bool
        Whether to refuse ImageNet images without classes, and folders around ImageNet's class folders that
        would be mistaken for classes, and to leave out images beside class folders.
    libjpeg : {"turbo", "ijg"}
        Decoder of JPEG files, as in `make-c` and `make-p`; only for a path.
    levels : (float, float), optional
        The two values of greys of more than 8 bits that become 0 and 255, as in `make-c`; only for a path.
    convert : bool
        Whether to convert Pillow images to RGB. False keeps the mode of the file, in which `make-p` resizes
        images of the edition ``"imagenet"``: `PerturbedDataset` then gives its sequences for such images too.

    Attributes
    ----------
    keys : tuple of str
    classes : tuple of str
        Names of the classes, in the order of the labels.

    Raises
    ------
    SourceError
        There is no image at `source`, or its classes are unknown.

    Examples
    --------
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from robustgen.torch import SourceDataset
    >>> Path("photos/cat").mkdir(parents=True)
    >>> Image.new("RGB", (64, 48)).save("photos/cat/a.png")
    >>> dataset = SourceDataset("photos")
    >>> image, label = dataset[0]
    >>> image.size, dataset.classes[label], dataset.keys
    ((64, 48), 'cat', ('cat/a.png',))
    """

    def __init__(
        self,
        source: Location | Source,
        labels: Location | None = None,
        *,
        label_column: str | None = None,
        labels_are_classes: bool = False,
        image_columns: Sequence[str] = (),
        require_classes: bool = True,
        libjpeg: Libjpeg = "turbo",
        levels: Levels | None = None,
        convert: bool = True,
    ) -> None:
        options = SourceOptions(
            labels=labels,
            labels_are_classes=labels_are_classes,
            label_column=label_column,
            classes=require_classes,
            columns=image_columns,
            libjpeg=check_libjpeg(libjpeg),
            levels=levels,
        )
        self.source: Source = source if isinstance(source, Source) else open_source(source, options=options)
        if require_classes:
            check_classes(self.source, "give require_classes=False")
            splits, _ = self.source.find_splits() if isinstance(self.source, ImageFolder) else ((), "")
            if splits:
                named = f"{' and '.join(splits)} have the same class folders"
                raise SourceError(f"{self.source.location}: {named}: name one (else require_classes=False)")
        self.keys: tuple[str, ...] = self.source.keys()
        self.classes: tuple[str, ...] = self.source.classes
        self.convert: bool = convert
        for remark in self.source.remarks():
            print_note(remark)
        self._has_warned = False
        remark, _ = describe_likely_maps(self.keys)
        if remark:
            warnings.warn(remark, stacklevel=2)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        key = self.keys[operator.index(index)]
        image = self.source.open(key)
        # Decoding lets Python forget what it has printed.
        self._has_warned = self._has_warned or warn_of_few_greys(image)
        if self.convert and isinstance(image, Image.Image):
            image = as_rgb_picture(image)
        return image, self.source.label(key)


# --- ImageNet-C on the fly: the images that `make-c` writes, without the files ---------------------


class Prepared(NamedTuple):
    """A source image, prepared for all of its variants, and what these share.

    Attributes
    ----------
    key : str
    pixels : ndarray of uint8, shape (H, W, 3)
    is_picture : bool
        Whether it was a Pillow image.
    shared : dict
        See `Recipe.make`.
    """

    key: str
    pixels: Rgb
    is_picture: bool
    shared: dict[str, Any]


def prepare_image(recipe: BenchmarkRecipe[Any], key: str, image: Any) -> Prepared:
    """Return the source image `image`, prepared.

    Raises
    ------
    ArgumentTypeError
        `image` is neither a Pillow image nor an array of dtype uint8.
    ImageError
        The image cannot be used; the message names the key.
    """
    is_picture = isinstance(image, Image.Image)
    try:
        return Prepared(key, recipe.prepare(image if is_picture else as_rgb(image)), is_picture, {})
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"{key!r}: {error}; pass transforms to the corrupting data set") from error
    except ImageError as error:
        raise ImageError(str(error), key) from error


def make_output(recipe: BenchmarkRecipe[Any], variant: Variant, image: Prepared) -> Rgb:
    """Return the output of `variant`, uint8 (H, W, 3), or frames (T, H, W, 3), in memory of its own.

    Raises
    ------
    ImageError
        The image cannot be used; the message names the key.
    """
    try:
        output = recipe.make(variant, image.key, image.pixels, image.shared)
    except ImageError as error:
        raise ImageError(str(error), image.key) from error
    # Other variants, and the base, use their arrays again.
    kept = (image.pixels, *(each for each in image.shared.values() if isinstance(each, np.ndarray)))
    return output.copy() if any(np.may_share_memory(output, each) for each in kept) else output


@dataclass(frozen=True)
class Maker:
    """Creates the outputs of prepared images as they are read from the files of a set.

    Attributes
    ----------
    recipe : BenchmarkRecipe
    encoder : Encoder or None
        Of the files that the outputs pass through; None for none.
    transform : callable or None
        Function applied to each image or frame: a Pillow image of a Pillow image, else an array.
    """

    recipe: BenchmarkRecipe[Any]
    encoder: Encoder | None
    transform: Callable[[Any], Any] | None

    def make(self, variant: Variant, key: str, image: Any) -> Any:
        """Return the transformed output of `variant` for a source image."""
        return self.finish(variant, prepare_image(self.recipe, key, image))

    def finish(self, variant: Variant, image: Prepared) -> Any:
        """Return the transformed image, or the frames: stacked if transformed, else an array."""
        made = make_output(self.recipe, variant, image)
        if self.encoder:
            made = self.encoder.as_read(variant, image.key, made)
        if made.ndim == 3:
            return self._transform(made, image)
        return _stack(self._transform(frame, image) for frame in made) if self.transform else made

    def _transform(self, pixels: Rgb, image: Prepared) -> Any:
        result = Image.fromarray(pixels) if image.is_picture else pixels
        return self.transform(result) if self.transform else result


def open_corrupter(edition: str, seed: int, jpeg: Quality, transform: Callable[[Any], Any] | None) -> Maker:
    """Return what creates the images of the C set of `edition` and `seed`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument is invalid.
    """
    row, quality = get_edition(edition), resolve_quality(jpeg, edition)
    recipe = CorruptionRecipe(row.name, check_natural("seed", seed))
    encoder = None if quality is None else JpegEncoder(quality, subsampling=row.subsampling)
    return Maker(recipe, encoder, transform)


class _MadeDataset:
    """Map-style data set of variants of each item of `base`, item by item: ``(image, label)``."""

    def __init__(self, base: MapStyle, key: Key, maker: Maker, variants: tuple[Variant, ...]) -> None:
        self.base: MapStyle = base
        self.key: Callable[[int], str] = resolve_keys(base, key)
        self._maker, self._variants = maker, variants

    def __len__(self) -> int:
        return len(self.base) * len(self._variants)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        position, number = divmod(range(len(self))[operator.index(index)], len(self._variants))
        prepared, label = self._prepare(position)
        return self._maker.finish(self._variants[number], prepared), label

    def _prepare(self, position: int) -> tuple[Prepared, Any]:
        """Return an item of `base`, prepared, and its label."""
        image, label = split_pair(self.base[position], position)
        return prepare_image(self._maker.recipe, self.key(position), image), label


class CorruptedDataset(_MadeDataset):
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

    Examples
    --------
    >>> import numpy as np
    >>> from robustgen.torch import CorruptedDataset
    >>> pairs = [(np.full((32, 32, 3), 30 * each, np.uint8), each) for each in range(4)]
    >>> keys = ["a.png", "b.png", "c.png", "d.png"]
    >>> foggy = CorruptedDataset(pairs, "fog", 3, edition="cifar-10", key=keys)
    >>> image, label = foggy[2]
    >>> image.shape, label
    ((32, 32, 3), 2)
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
        corrupter = open_corrupter(edition, seed, jpeg, transform)
        self.variant: Variant = find_variant(corrupter.recipe, corruption, severity)
        super().__init__(base, key, corrupter, (self.variant,))


# --- ImageNet-P on the fly: the sequences that `make-p` writes, without the files ------------------


VideoChoice = bool | Literal["published"]


def open_perturber(
    edition: str, seed: int, video: VideoChoice, transform: Callable[[Any], Any] | None
) -> Maker:
    """Return what creates the frames of the P set of `edition` and `seed`; errors as `open_corrupter`."""
    row = get_edition(edition)
    if video == "published":
        video = row.format == "jpeg"
    encoder = Mp4Encoder(noises=frozenset(IMAGENET_P.noises)) if video else None
    return Maker(PerturbationRecipe(row.name, check_natural("seed", seed)), encoder, transform)


def _stack(frames: Iterable[Any]) -> Any:
    """Stack tensors to a tensor, and arrays to an array."""
    each = list(frames)
    if isinstance(each[0], np.ndarray):
        return np.stack(each)
    import torch

    return torch.stack(each)


class PerturbedDataset(_MadeDataset):
    """A map-style data set of the sequences that `make-p` writes for one perturbation and difficulty.

    An item is ``(frames, label)``, whose pixels depend on edition, seed, perturbation, difficulty and key.

    Parameters
    ----------
    base, seed, edition, key
        As in `CorruptedDataset`.
    perturbation : str
        A name in `robustgen.PERTURBATIONS`.
    difficulty : int
        1 to 3 for the noises, 1 for the others.
    video : bool or "published"
        Whether the frames pass through an MP4 file in memory, like those of `make-p`; ``"published"``
        skips this for CIFAR. False gives the frames of `make-p --format png`.
    transform : callable, optional
        Called with each frame, an RGB Pillow image if the base returns one, otherwise an array (H, W, 3). The
        results, tensors or arrays, are stacked. Without it the frames are an array (T, H, W, 3).

    Raises
    ------
    ArgumentError, ArgumentTypeError, ImageError
        As in `CorruptedDataset`.

    Examples
    --------
    >>> import numpy as np
    >>> from robustgen.torch import PerturbedDataset
    >>> pairs = [(np.full((32, 32, 3), 30 * each, np.uint8), each) for each in range(4)]
    >>> keys = ["a.png", "b.png", "c.png", "d.png"]
    >>> tilted = PerturbedDataset(pairs, "tilt", edition="cifar-10", key=keys)
    >>> frames, label = tilted[2]
    >>> frames.shape, label
    ((31, 32, 32, 3), 2)
    """

    def __init__(
        self,
        base: MapStyle,
        perturbation: str,
        difficulty: int = 1,
        *,
        seed: int = 0,
        edition: str,
        key: Key = None,
        video: VideoChoice = "published",
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        perturber = open_perturber(edition, seed, video, transform)
        self.variant: Variant = find_variant(perturber.recipe, perturbation, difficulty)
        super().__init__(base, key, perturber, (self.variant,))


# --- all variants of each image on the fly ---------------------------------------------------------


class VariantsDataset(_MadeDataset):
    """A map-style data set of several variants of each image, image by image, each decoded and prepared once.

    Item ``i`` is ``(image, label)`` of the image ``i // len(variants)`` in the variant ``i % len(variants)``:
    what `CorruptedDataset` or `PerturbedDataset` gives. A process keeps its latest image, prepared, so read
    the items in order, in batches of ``len(variants)`` or a multiple of it.

    Parameters
    ----------
    base, seed, edition, key, transform
        As in `CorruptedDataset` and `PerturbedDataset`.
    variants : iterable of Variant
        As `robustgen.IMAGENET_C.variants` or `robustgen.IMAGENET_P.variants` returns them.
    jpeg, video
        As in `CorruptedDataset` for images, and in `PerturbedDataset` for sequences.

    Attributes
    ----------
    variants : tuple of Variant

    Raises
    ------
    ArgumentError, ArgumentTypeError, ImageError
        As in `CorruptedDataset`.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> from robustgen.torch import VariantsDataset
    >>> pairs = [(np.full((32, 32, 3), 30 * each, np.uint8), each) for each in range(4)]
    >>> keys = ["a.png", "b.png", "c.png", "d.png"]
    >>> variants = robustgen.IMAGENET_C.variants(["fog"], [1, 3, 5])
    >>> foggy = VariantsDataset(pairs, variants, edition="cifar-10", key=keys)
    >>> len(foggy), foggy[0][0].shape
    (12, (32, 32, 3))
    """

    def __init__(
        self,
        base: MapStyle,
        variants: Iterable[Variant],
        *,
        seed: int = 0,
        edition: str,
        key: Key = None,
        jpeg: Quality = "published",
        video: VideoChoice = "published",
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        self.variants: tuple[Variant, ...] = tuple(variants)
        if not self.variants:
            raise ArgumentError("variants must contain at least one")
        is_p = all(each == IMAGENET_P.variant(each.name, each.level) for each in self.variants)
        maker = open_corrupter(edition, seed, jpeg, transform)
        if is_p:
            maker = open_perturber(edition, seed, video, transform)
        for each in self.variants:
            find_variant(maker.recipe, each.name, each.level)
        super().__init__(base, key, maker, self.variants)
        self._latest: tuple[int, tuple[Prepared, Any]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_latest": None}

    def _prepare(self, position: int) -> tuple[Prepared, Any]:
        latest = self._latest
        if latest is None or latest[0] != position:
            latest = self._latest = position, super()._prepare(position)
        return latest[1]
