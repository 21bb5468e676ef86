"""Streams for test-time adaptation, with images created on the fly, and a data set of CCC."""

import operator
from array import array
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from PIL import Image

from robustgen.errors import ArgumentError, ImageError
from robustgen.pixels.benchmarks.editions import get_edition
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging.decode import Location, as_rgb
from robustgen.pixels.imaging.jpeg import round_trip
from robustgen.related.streams.ccc import (
    IMAGES,
    AccuracyTable,
    CccRun,
    CccStep,
    StreamCell,
    draw_geometry,
    make_image,
)
from robustgen.related.streams.rows import CccFile, StreamRow, holds_ccc, read_rows
from robustgen.torch.datasets import Maker, open_corrupter
from robustgen.torch.items import (
    Key,
    MapStyle,
    Quality,
    find_variant,
    resolve_keys,
    resolve_quality,
    split_pair,
)

# --- players of streams: one for single corruptions, one for the pairs of CCC ----------------------

Keys = Callable[[int], str]
"""A function that returns the key of an item by its index."""


class DomainPlayer:
    """Creates images from rows that name one corruption each; messages call them `name`."""

    def __init__(
        self, base: MapStyle, rows: Iterable[StreamRow], name: str, keys: Keys, corrupter: Maker
    ) -> None:
        self._base, self._keys, self._corrupter = base, keys, corrupter
        # For millions of rows: a few numbers each, which processes share.
        self._places, self._numbers = array("q"), array("q")
        self._visits, self._resets = array("q"), array("b")
        places = _list_places(base, keys)
        variants: dict[tuple[str, float], tuple[int, Variant]] = {}
        for number, row in enumerate(rows, 1):
            if row.key not in places:
                raise ArgumentError(f"{name}, line {number}: the data set has no image {row.key!r}")
            # The edition without the size, as in imagenet@384.
            own = corrupter.recipe.edition.partition("@")[0]
            if row.edition not in ("", own):
                raise ArgumentError(f"{name}: was drawn for the edition {row.edition!r}, not for {own!r}")
            what = row.corruption, row.severity
            if what not in variants:
                try:
                    variants[what] = len(variants), find_variant(corrupter.recipe, *what)
                except ValueError as error:
                    raise ArgumentError(f"{name}, line {number}: {error}") from error
            self._places.append(places[row.key])
            self._numbers.append(variants[what][0])
            self._visits.append(row.visit)
            self._resets.append(row.reset)
        self.variants: tuple[Variant, ...] = tuple(variant for _, variant in variants.values())

    def variant(self, index: int) -> Variant:
        """Return corruption and severity."""
        return self.variants[self._numbers[index]]

    def visit(self, index: int) -> int:
        """Return the number of the visit."""
        return self._visits[index]

    def reset(self, index: int) -> bool:
        """Return whether the model should be reset before the item."""
        return bool(self._resets[index])

    def __len__(self) -> int:
        return len(self._places)

    def play(self, index: int) -> tuple[Any, Any]:
        """Return the corrupted image with the target of its source."""
        source = self._places[index]
        image, target = split_pair(self._base[source], source)
        return self._corrupter.make(self.variant(index), self._keys(source), image), target


class CccPlayer:
    """Creates images from the rows of a CCC stream, which are read from their file on demand.

    Raises
    ------
    ArgumentError
        The file names an image that `base` does not have. Each row is checked when read, the first one now.
    """

    variants: tuple[Variant, ...] = ()

    def __init__(
        self,
        base: MapStyle,
        rows: CccFile,
        keys: Keys,
        jpeg: int | None,
        transform: Callable[[Any], Any] | None,
    ) -> None:
        self._base, self._rows, self._jpeg, self._transform = base, rows, jpeg, transform
        self._places = _list_places(base, keys)
        self._find(0)

    def _find(self, index: int) -> int:
        key = self._rows[index].key
        if key not in self._places:
            raise ArgumentError(f"{self._rows.name}, line {index + 1}: the data set has no image {key!r}")
        return self._places[key]

    def variant(self, index: int) -> StreamCell:
        """Return both corruptions with their severities."""
        return self._rows[index].cell

    def visit(self, index: int) -> int:
        """Return 1: a run of CCC is one visit."""
        return 1

    def reset(self, index: int) -> bool:
        """Return False: the model is never reset in CCC."""
        return False

    def __len__(self) -> int:
        return len(self._rows)

    def play(self, index: int) -> tuple[Any, Any]:
        """Return the corrupted image with the target of its source."""
        row, source = self._rows[index], self._find(index)
        image, target = split_pair(self._base[source], source)
        picture = as_picture(image)
        step = row.step(source)
        if draw_geometry(step, *picture.size)[0] != row.geometry:
            size = f"{picture.width} x {picture.height}"
            raise ImageError(f"{size} pixels is not the size that the stream was drawn for", row.key)
        made = make_picture(step, picture, self._jpeg)
        return (self._transform(made) if self._transform else made), target


def _list_places(base: MapStyle, keys: Keys) -> dict[str, int]:
    return {keys(index): index for index in range(len(base))}


Player = DomainPlayer | CccPlayer
"""Players, with the methods of `StreamDataset` and `play`."""


# --- CCC on the fly: the millions of images of a run, in constant memory ---------------------------


class CccDataset:
    """A map-style data set of the images of one run of CCC, in its order: ``(image, target)`` as in the base.

    Use a DataLoader that does not shuffle; the number of workers does not matter. For one base and one
    run, each item always has the same pixels.

    Parameters
    ----------
    base : map-style dataset
        Data set of ``(image, target)`` with Pillow images or arrays uint8 (H, W, 3), at their full size.
        Images are flipped, cropped and resized to 224 x 224 pixels here.
    table : mapping of (str, str) to ndarray of shape (21, 21)
        Accuracies of each pair of corruptions; `robustgen.related.streams.accuracy_files.load_accuracy_table`
        reads one.
    baseline, speed, seed, images
        As in `robustgen.related.streams.ccc.CccRun`; the published runs have 40, 20 and 0, then 1000,
        2000 and 5000, then 43, 44 and 45, and 7 500 000.
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

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> from robustgen.torch import CccDataset
    >>> names = [name.removeprefix("ccc:") for name in robustgen.FAMILIES["ccc"].corruptions]
    >>> table = {(one, other): np.full((21, 21), 40.0) for one in names for other in names}
    >>> pairs = [(np.full((256, 256, 3), 30 * each, np.uint8), each) for each in range(4)]
    >>> run = CccDataset(pairs, table, baseline=40, speed=1000, seed=43, images=100)
    >>> image, label = run[0]
    >>> image.size, label == run.run[0].image, len(run)
    ((224, 224), True, 100)
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
        self.base: MapStyle = base
        self.transform: Callable[[Any], Any] | None = transform
        self.jpeg: int | None = resolve_quality(jpeg, "imagenet")
        self.run: CccRun = CccRun(table, len(base), baseline, speed, seed, images)
        # Checks now, not after a million images, that the table has all pairs.
        self.cells: tuple[StreamCell, ...] = self.run.cells

    def cell(self, index: int) -> StreamCell:
        """Return the two corruptions of an item, with their severities."""
        return self.run[operator.index(index)].cell

    def __len__(self) -> int:
        return len(self.run)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        step = self.run[operator.index(index)]
        image, target = split_pair(self.base[step.image], step.image)
        made = make_picture(step, as_picture(image), self.jpeg)
        return (self.transform(made) if self.transform else made), target


def as_picture(image: Any) -> Image.Image:
    """Return an image of the base as a Pillow image of mode RGB."""
    return image if isinstance(image, Image.Image) and image.mode == "RGB" else Image.fromarray(as_rgb(image))


def make_picture(step: CccStep, picture: Image.Image, jpeg: int | None) -> Image.Image:
    """Return the image of `step`, read from a JPEG file of that quality if one is given."""
    pixels = make_image(step, picture)
    if jpeg is not None:
        pixels = round_trip(pixels, jpeg)
    return Image.fromarray(pixels)


class StreamDataset:
    """A map-style data set of the images of a stream, in its order: ``(image, target)``.

    The target is that of the base. Use a DataLoader that does not shuffle; the number of workers does not
    matter.

    Parameters
    ----------
    base, seed, edition, key, jpeg, transform
        As in `CorruptedDataset`; the pixels of a key, corruption and severity are the same. The lines of a
        CCC stream contain their own seeds, and its edition is ``"imagenet"``.
    stream : path, or iterable of StreamRow
        A file written by `robustgen stream`. Lines of a CCC stream are read on demand, so that memory does
        not grow with their number.

    Attributes
    ----------
    variants : tuple of Variant
        The corruptions at their severities, in the order of their first use; empty for CCC, see `variant`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        As in `CorruptedDataset`; or the stream cannot be read, names an image that the base does not have, or
        was drawn for another edition.
    ImageError
        An image cannot be used; the message names its key.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from robustgen.torch import StreamDataset
    >>> pairs = [(np.full((32, 32, 3), 30 * each, np.uint8), each) for each in range(4)]
    >>> keys = ["a.png", "b.png", "c.png", "d.png"]
    >>> row = '{"key": "c.png", "corruption": "fog", "severity": 3, "label": 2, "visit": 1, "domain": 0}'
    >>> written = Path("stream.jsonl").write_text(row)
    >>> stream = StreamDataset(pairs, "stream.jsonl", edition="cifar-10", key=keys)
    >>> image, label = stream[0]
    >>> image.shape, label, stream.variant(0).folder
    ((32, 32, 3), 2, 'fog/3')
    """

    def __init__(
        self,
        base: MapStyle,
        stream: Location | Iterable[StreamRow],
        *,
        seed: int = 0,
        edition: str,
        key: Key = None,
        jpeg: Quality = "published",
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        self.base: MapStyle = base
        self.key: Callable[[int], str] = resolve_keys(base, key)
        path = Path(stream) if isinstance(stream, str | PathLike) else None
        if path and holds_ccc(path):
            if get_edition(edition).name != "imagenet" or seed:
                raise ArgumentError(f"{stream}: a CCC stream has edition 'imagenet', and its own seeds")
            quality = resolve_quality(jpeg, edition)
            self._player: Player = CccPlayer(base, CccFile(path), self.key, quality, transform)
        else:
            rows: Any = read_rows(path) if path else stream
            corrupter = open_corrupter(edition, seed, jpeg, transform)
            self._player = DomainPlayer(base, rows, str(path or "stream"), self.key, corrupter)
        self.variants: tuple[Variant, ...] = self._player.variants

    def variant(self, index: int) -> Variant | StreamCell:
        """Return corruption and severity of an item; for CCC both corruptions with their severities."""
        return self._player.variant(index)

    def visit(self, index: int) -> int:
        """Return the number of the pass through the corruptions that an item belongs to, from 1."""
        return self._player.visit(index)

    def reset(self, index: int) -> bool:
        """Return whether the model should be reset before this item."""
        return self._player.reset(index)

    def __len__(self) -> int:
        return len(self._player)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._player.play(range(len(self))[operator.index(index)])
