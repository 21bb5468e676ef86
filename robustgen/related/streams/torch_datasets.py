"""Streams for test-time adaptation, with images created on the fly, and a data set of CCC."""

import operator
from array import array
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from PIL import Image

from robustgen.errors import ArgumentError
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging.decode import Location, as_rgb
from robustgen.pixels.imaging.jpeg import round_trip
from robustgen.related.streams.ccc import IMAGES, AccuracyTable, CccRun, StreamCell, make_image
from robustgen.related.streams.rows import StreamRow, read_rows
from robustgen.torch.datasets import open_corrupter
from robustgen.torch.items import (
    Key,
    MapStyle,
    Quality,
    find_variant,
    resolve_keys,
    resolve_quality,
    split_pair,
)

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
        pixels = make_image(step, as_rgb(image))
        made = Image.fromarray(pixels if self.jpeg is None else round_trip(pixels, self.jpeg))
        return (self.transform(made) if self.transform else made), target


class StreamDataset:
    """A map-style data set of the images of a stream, in its order: ``(image, target)``.

    The target is that of the base. Use a DataLoader that does not shuffle; the number of workers does not
    matter.

    Parameters
    ----------
    base, seed, edition, key, jpeg, transform
        As in `CorruptedDataset`; the pixels of a key, corruption and severity are the same.
    stream : path, or iterable of StreamRow
        A file written by `robustgen stream`.

    Attributes
    ----------
    variants : tuple of Variant
        The corruptions at their severities, in the order of their first use.

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
        rows: Any = read_rows(path) if path else stream
        self._corrupter = open_corrupter(edition, seed, jpeg, transform)
        # For millions of rows: a few numbers each, which processes share.
        self._places, self._numbers = array("q"), array("q")
        self._visits, self._resets = array("q"), array("b")
        self.variants: tuple[Variant, ...] = tuple(self._list_variants(rows, str(path or "stream")))

    def _list_variants(self, rows: Iterable[StreamRow], name: str) -> Iterator[Variant]:
        """Store the rows of a stream called `name` in messages, and yield the variants at their first use."""
        places = {self.key(index): index for index in range(len(self.base))}
        # The edition without the size, as in imagenet@384.
        edition = self._corrupter.recipe.edition.partition("@")[0]
        known: dict[tuple[str, float], int] = {}
        for number, row in enumerate(rows, 1):
            if row.key not in places:
                raise ArgumentError(f"{name}, line {number}: the data set has no image {row.key!r}")
            if row.edition not in ("", edition):
                raise ArgumentError(f"{name}: was drawn for the edition {row.edition!r}, not for {edition!r}")
            what = row.corruption, row.severity
            if what not in known:
                known[what] = len(known)
                try:
                    variant = find_variant(self._corrupter.recipe, *what)
                except ValueError as error:
                    raise ArgumentError(f"{name}, line {number}: {error}") from error
                yield variant
            self._places.append(places[row.key])
            self._numbers.append(known[what])
            self._visits.append(row.visit)
            self._resets.append(row.reset)

    def variant(self, index: int) -> Variant:
        """Return corruption and severity of an item."""
        return self.variants[self._numbers[index]]

    def visit(self, index: int) -> int:
        """Return the number of the pass through the corruptions that an item belongs to, from 1."""
        return self._visits[index]

    def reset(self, index: int) -> bool:
        """Return whether the model should be reset before this item."""
        return bool(self._resets[index])

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        place = range(len(self))[operator.index(index)]
        source = self._places[place]
        image, target = split_pair(self.base[source], source)
        return self._corrupter.make(self.variant(place), self.key(source), image), target
