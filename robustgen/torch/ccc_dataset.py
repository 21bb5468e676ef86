"""CCC on the fly: the millions of images of a run, in constant memory."""

import operator
from collections.abc import Callable
from typing import Any

from PIL import Image

from robustgen.lab.related.streams.ccc import IMAGES, AccuracyTable, CccRun, CccStep, Cell, make_image
from robustgen.pixels.imaging.decode import as_rgb
from robustgen.pixels.imaging.jpeg import decode_jpeg, encode_jpeg
from robustgen.torch.arguments import Quality, resolve_quality
from robustgen.torch.pairs import MapStyle, split_pair


class CccDataset:
    """A map-style data set of the images of one run of CCC, in its order: ``(image, label)``.

    Use a DataLoader that does not shuffle; the number of workers does not matter. For one base and one
    run, each item always has the same pixels.

    Parameters
    ----------
    base : map-style dataset
        Data set of ``(image, label)`` with Pillow images or arrays uint8 (H, W, 3), at their full size.
        Images are flipped, cropped and resized to 224 x 224 pixels here.
    table : mapping of (str, str) to ndarray of shape (21, 21)
        Accuracies of each pair of corruptions; `robustgen.lab.related.streams.accuracy_files.load_table`
        reads one.
    baseline, speed, seed, images
        As in `robustgen.lab.related.streams.ccc.CccRun`; the published runs have 40, 20 and 0, then 1000, 2000
        and 5000, then 43, 44 and 45, and 7 500 000.
    jpeg : int, "published" or None
        Quality of the JPEG files that images pass through; 85 is the published one.
    transform : callable, optional
        Called with each image, a Pillow image.

    Attributes
    ----------
    run : CccRun

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument is invalid, or the table lacks a pair.
    """

    def __init__(
        self,
        base: MapStyle,
        table: AccuracyTable,
        *,
        baseline: float = 20,
        speed: int = 1000,
        seed: int = 43,
        images: int = IMAGES,
        jpeg: Quality = "published",
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        self.base, self.transform = base, transform
        self.jpeg = resolve_quality(jpeg, "imagenet")
        self.run = CccRun(table, len(base), baseline, speed, seed, images)
        # Checks now, not after a million images, that the table has all pairs.
        self.cells = self.run.cells

    def cell(self, index: int) -> Cell:
        """Return the two corruptions of an item, with their severities."""
        return self.run[operator.index(index)].cell

    def __len__(self) -> int:
        return len(self.run)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        step = self.run[operator.index(index)]
        image, label = split_pair(self.base[step.image], step.image)
        made = make_picture(step, as_picture(image), self.jpeg)
        return (self.transform(made) if self.transform else made), label


def as_picture(image: Any) -> Image.Image:
    """Return an image of the base as a Pillow image of mode RGB."""
    return image if isinstance(image, Image.Image) and image.mode == "RGB" else Image.fromarray(as_rgb(image))


def make_picture(step: CccStep, picture: Image.Image, jpeg: int | None) -> Image.Image:
    """Return the image of `step`, read from a JPEG file of that quality if one is given."""
    pixels = make_image(step, picture)
    if jpeg is not None:
        # Optimised tables change only the file, not the pixels.
        pixels = decode_jpeg(encode_jpeg(pixels, jpeg, optimise=False))
    return Image.fromarray(pixels)
