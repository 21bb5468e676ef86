"""Any source of images as a data set."""

import operator
from typing import Any

from PIL import Image

from robustgen.errors import SourceError
from robustgen.pixels.imaging.decode import Levels, Location, as_rgb_picture
from robustgen.pixels.imaging.jpeg import Libjpeg, check_libjpeg
from robustgen.sets.sources.base import Options, Source
from robustgen.sets.sources.folder import ImageFolder
from robustgen.sets.sources.imagenet import check_classes
from robustgen.sets.sources.opening import open_source


class SourceDataset:
    """A map-style data set of the source images that `make-c --source` finds: ``(image, label)``.

    Images are decoded on each access, to Pillow images; those of CIFAR, MNIST, MedMNIST and arrays are
    arrays, uint8 (H, W, 3).

    Parameters
    ----------
    source : path or Source
        A folder, an archive, or any other value of ``--source``.
    labels : path, optional
        File of labels for a flat folder.
    classes : bool
        Whether to refuse ImageNet images without classes, and folders around ImageNet's class folders that
        would be mistaken for classes.
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
    """

    def __init__(
        self,
        source: Location | Source,
        labels: Location | None = None,
        *,
        classes: bool = True,
        libjpeg: Libjpeg = "turbo",
        levels: Levels | None = None,
        convert: bool = True,
    ) -> None:
        options = Options(labels=labels, libjpeg=check_libjpeg(libjpeg), levels=levels)
        self.source = source if isinstance(source, Source) else open_source(source, options=options)
        if classes:
            check_classes(self.source, "give classes=False")
            splits, _ = self.source.find_splits() if isinstance(self.source, ImageFolder) else ((), "")
            if splits:
                named = f"{' and '.join(splits)} have the same class folders"
                raise SourceError(
                    f"{self.source.location}: {named}: name one of these folders (else give classes=False)"
                )
        self.keys, self.classes, self.convert = self.source.keys(), self.source.classes, convert

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        key = self.keys[operator.index(index)]
        image = self.source.open(key)
        if self.convert and isinstance(image, Image.Image):
            image = as_rgb_picture(image)
        return image, self.source.label(key)
