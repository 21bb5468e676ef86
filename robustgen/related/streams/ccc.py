"""CCC: streams of continuously changing corruptions, at a difficulty that a table keeps constant.

Source: Press, Schneider, Kuemmerer and Bethge, "RDumb" (NeurIPS 2023), and its code. A run goes from pair to
pair of corruptions, and in each pair from cell to cell: the first corruption fades, the second one grows.

The sequence of corruptions is that of the published run of the same baseline and seed. The images of a cell,
their crops and their noise depend only on the run, the cell and the position, and differ from the published
run.
"""

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from robustgen.errors import ArgumentError, ImageError
from robustgen.pixels.benchmarks.binding import bind
from robustgen.pixels.imaging.arrays import Decoded, Rgb
from robustgen.pixels.imaging.geometry import resize
from robustgen.pixels.imaging.kernels import exact

Accuracies = npt.NDArray[np.float64]
"""Accuracy in % under the first corruption at severity i / 4, then the second at j / 4; (21, 21)."""
AccuracyTable = Mapping[tuple[str, str], Accuracies]
"""Accuracies of each ordered pair of corruptions."""

IMAGES: Final = 7_500_000
"""Number of images of a published run."""
IMAGES_PER_FILE: Final = 25_000
STEPS: Final = 21
"""Severities 0, 0.25, ... 5."""
SIDE: Final = 224
QUALITY: Final = 85
"""Quality of the JPEG files."""

_ALL: Final = (
    *("gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur"),
    *("zoom_blur", "snow", "frost", "fog", "contrast", "elastic", "pixelate", "jpeg"),
)
# Logarithms of the aspect ratios of a crop, 3/4 and 4/3.
_LOWEST: Final = -0.2876820724517809
_HIGHEST: Final = 0.28768207245178085
_HARD: Final = ("gaussian_noise", "shot_noise", "impulse_noise", "contrast")


def list_corruptions(baseline: float) -> tuple[str, ...]:
    """Return the corruptions, in order, of a run that keeps the accuracy of ResNet-50 at `baseline` %."""
    if baseline >= 40:
        return _ALL
    return _ALL[:-1] if baseline >= 20 else _HARD


def draw_corruptions(baseline: float, seed: int) -> Iterator[str]:
    """Yield the endless sequence of corruptions of a run; none comes twice in a row."""
    draws, names = random.Random(seed), list_corruptions(baseline)
    last = ""
    while True:
        name = draws.choice(names)
        if name != last:
            yield name
            last = name


def find_path(accuracies: Accuracies, baseline: float) -> list[tuple[int, int]]:
    """Return the walk through a pair whose mean accuracy is about `baseline` %.

    Parameters
    ----------
    accuracies : float ndarray of shape (21, 21)

    Returns
    -------
    list of (int, int)
        Severities of the first and the second corruption, in quarters, from (i, 0) to (0, j);
        at each step the first one falls or the second one rises.
    """
    costs = np.full((STEPS, STEPS + 1), 1e13)
    lengths = np.ones((STEPS, STEPS + 1), np.int64)
    falls = np.zeros((STEPS, STEPS), np.bool_)
    costs[0, :STEPS] = accuracies[0]
    for i in range(1, STEPS):
        for j in reversed(range(STEPS)):
            here = accuracies[i, j]
            down, right = (
                abs((costs[place] + here) / (lengths[place] + 1) - baseline)
                for place in ((i - 1, j), (i, j + 1))
            )
            falls[i, j] = down < right
            after = (i - 1, j) if falls[i, j] else (i, j + 1)
            costs[i, j], lengths[i, j] = costs[after] + here, lengths[after] + 1
    i = 1 + int(np.argmin(np.abs(costs[1:, 0] / lengths[1:, 0] - baseline)))
    path, j = [(i, 0)], 0
    while i:
        i, j = (i - 1, j) if falls[i, j] else (i, j + 1)
        path.append((i, j))
    return path


class StreamCell(NamedTuple):
    """A part of the run with the same two corruptions at the same severities."""

    first: str
    first_severity: float
    second: str
    second_severity: float


def walk(table: AccuracyTable, baseline: float, seed: int) -> Iterator[StreamCell]:
    """Yield the endless cells of a run.

    Raises
    ------
    ArgumentError
        The table lacks a pair.
    """
    paths = lru_cache(maxsize=None)(lambda pair: find_path(table[pair], baseline))
    for pair in itertools.pairwise(draw_corruptions(baseline, seed)):
        if pair not in table:
            raise ArgumentError(f"accuracy table has no pair of {pair[0]} and {pair[1]}")
        yield from (StreamCell(pair[0], i / 4, pair[1], j / 4) for i, j in paths(pair))


class CccStep(NamedTuple):
    """One image of a run.

    Attributes
    ----------
    image : int
        Index of the source image.
    cell : StreamCell
    seed : tuple of int
        Seed of its flip, its crop and its noise.
    """

    image: int
    cell: StreamCell
    seed: tuple[int, ...]


@dataclass(frozen=True)
class CccRun:
    """One run, whose images are available by number, in constant memory and in any order.

    Attributes
    ----------
    table : mapping
        Accuracies of the pairs.
    sources : int
        Number of images of the source. If there are fewer than `speed`, a cell shows each once.
    baseline : float
        Target of the mean accuracy in %: 40, 20 and 0 are published.
    speed : int
        Images per cell: 1000, 2000 and 5000 are published.
    seed : int
        43, 44 and 45 are published.
    images : int
        Number of images of the whole run.
    """

    table: AccuracyTable = field(repr=False)
    sources: int
    baseline: float = 20
    speed: int = 1000
    seed: int = 43
    images: int = IMAGES

    def __post_init__(self) -> None:
        for name in ("sources", "speed", "images"):
            if getattr(self, name) < 1:
                raise ArgumentError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not 0 <= self.baseline <= 100:
            raise ArgumentError(f"baseline must be from 0 to 100, not {self.baseline}")
        if self.seed < 0:
            raise ArgumentError(f"seed must not be negative, not {self.seed}")

    @property
    def name(self) -> str:
        """Return the name of the published run with these settings."""
        return f"baseline_{self.baseline:g}_transition+speed_{self.speed}_seed_{self.seed}"

    @property
    def images_per_cell(self) -> int:
        """Return the number of images in a cell."""
        return min(self.speed, self.sources)

    @cached_property
    def cells(self) -> tuple[StreamCell, ...]:
        """Return all cells, in order."""
        count = -(-self.images // self.images_per_cell)
        return tuple(itertools.islice(walk(self.table, self.baseline, self.seed), count))

    def __len__(self) -> int:
        return self.images

    def __getitem__(self, index: int) -> CccStep:
        cell, number = divmod(range(self.images)[index], self.images_per_cell)
        # Floating-point numbers cannot be seeds.
        run = round(self.baseline * 1000), self.speed, self.seed, cell
        return CccStep(int(_shuffle(run, self.sources)[number]), self.cells[cell], (*run, number))


@lru_cache(maxsize=4)
def _shuffle(run: tuple[int, ...], sources: int) -> npt.NDArray[np.int64]:
    """Return the order of the source's images in a cell."""
    return np.random.Generator(np.random.PCG64(run)).permutation(sources)


class CropGeometry(NamedTuple):
    """The part of a source image in a step.

    Attributes
    ----------
    flip : bool
        Whether it is mirrored.
    box : tuple of int
        Left, upper, right and lower side of the crop, in the source image.
    """

    flip: bool
    box: tuple[int, int, int, int]


def draw_geometry(step: CccStep, width: int, height: int) -> tuple[CropGeometry, np.random.Generator]:
    """Draw the view of `step` for an image of that size; return also the generator of its noise."""
    rng = np.random.Generator(np.random.PCG64((*step.seed, 1)))
    flip = bool(rng.random() < 0.5)
    return CropGeometry(flip, draw_crop(width, height, rng)), rng


def make_image(step: CccStep, image: Decoded) -> Rgb:
    """Flip, crop and resize a source image for `step`, and apply its two corruptions.

    Returns
    -------
    uint8 ndarray of shape (224, 224, 3)
    """
    picture = image if isinstance(image, Image.Image) else Image.fromarray(image)
    (flip, box), rng = draw_geometry(step, *picture.size)
    crop = picture.crop(box)
    if flip:
        crop = crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    pixels, cell = resize(crop, SIDE, SIDE), step.cell
    pixels = apply_corruption(pixels, cell.first, cell.first_severity, rng)
    return apply_corruption(pixels, cell.second, cell.second_severity, rng)


def apply_corruption(pixels: Rgb, name: str, severity: float, rng: np.random.Generator) -> Rgb:
    """Apply the corruption `name` of CCC; severity 0 changes nothing."""
    if not severity:
        return pixels
    return bind("imagenet", f"ccc:{name}", severity).apply(pixels, rng)


def draw_crop(width: int, height: int, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """Draw left, upper, right and lower side of a crop: 8 to 100 % of the area, aspect ratio 3/4 to 4/3.

    As in torchvision's `RandomResizedCrop`: after ten crops that do not fit, the largest central one that
    does.
    """
    if not width or not height:
        raise ImageError(f"cannot crop an image of {width} x {height} pixels")
    for _ in range(10):
        # Operations with the same last bit on every processor, unlike those of a library.
        area = width * height * (0.08 + (1 - 0.08) * rng.random())
        ratio = exact.exp(_LOWEST + (_HIGHEST - _LOWEST) * rng.random())
        across, down = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < across <= width and 0 < down <= height:
            top, left = int(rng.integers(0, height - down + 1)), int(rng.integers(0, width - across + 1))
            return left, top, left + across, top + down
    across, down = width, height
    if width / height < 3 / 4:
        down = round(width / (3 / 4))
    elif width / height > 4 / 3:
        across = round(height * (4 / 3))
    left, top = (width - across) // 2, (height - down) // 2
    return left, top, left + across, top + down


def name_sample(index: int) -> tuple[str, str]:
    """Return the shard and the key that image `index` has in the published runs."""
    file, number = divmod(index, IMAGES_PER_FILE)
    return f"serial_{file:05d}.tar", f"sample_{number}"


def format_info(wnid: str, file: str, cell: StreamCell) -> str:
    """Return the text of a sample's member ``.info``, as in the published shards."""
    values = {"dir": wnid, "name": file, "n1": cell.first, "s1": cell.first_severity}
    values |= {"n2": cell.second, "s2": cell.second_severity}
    return "".join(f"++{name}++{value}" for name, value in values.items())


def read_table(arrays: Mapping[str, Any]) -> dict[tuple[str, str], Accuracies]:
    """Read the accuracies of pairs from arrays called ``n1_<first>_n2_<second>``, as in the original.

    Raises
    ------
    ArgumentError
        A name or an array has another form; the message names it.
    """
    table = {}
    for name, values in arrays.items():
        first, mark, second = name.removeprefix("n1_").partition("_n2_")
        if not name.startswith("n1_") or not mark:
            raise ArgumentError(f"accuracy table: {name!r} is not n1_<corruption>_n2_<corruption>")
        try:
            accuracies = np.asarray(values, np.float64)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"accuracy table: {name}: contains no numbers") from error
        if accuracies.shape != (STEPS, STEPS):
            raise ArgumentError(f"accuracy table: {name}: has the shape {accuracies.shape}, not (21, 21)")
        if not (accuracies.min() >= 0 and accuracies.max() <= 100):
            raise ArgumentError(f"accuracy table: {name}: accuracies must be from 0 to 100 %")
        table[first, second] = accuracies
    return table


def list_measurements(baseline: float, severities: tuple[float, ...]) -> list[StreamCell]:
    """List the measurements for a table on a coarse grid of `severities`: all pairs at all severities.

    A single corruption comes once, as the first of its cell; the second then has no name.
    """
    pairs = itertools.permutations(list_corruptions(baseline), 2)
    cells = itertools.product(pairs, severities, severities)
    found = (_simplify(first, one, second, other) for (first, second), one, other in cells)
    return [*dict.fromkeys(found)]


def _simplify(first: str, one: float, second: str, other: float) -> StreamCell:
    """Return the cell, without the corruptions whose severity is 0."""
    if not one:
        first, one, second, other = second, other, "", 0.0
    return StreamCell(first if one else "", one, second if other else "", other)


def interpolate_table(
    measured: Mapping[StreamCell, float], baseline: float, severities: tuple[float, ...]
) -> dict[tuple[str, str], Accuracies]:
    """Return a table, interpolated linearly between the `severities` of `list_measurements`.

    Parameters
    ----------
    measured : mapping of StreamCell to float
        Accuracies in %.
    severities : tuple of float
        Ascending, from 0 to 5.

    Raises
    ------
    ArgumentError
        A measurement is missing, or the severities do not ascend from 0 to 5.
    """
    if [*severities] != sorted({0.0, 5.0, *severities}):
        raise ArgumentError(f"severities must ascend from 0 to 5, not {severities}")
    if missing := [cell for cell in list_measurements(baseline, severities) if cell not in measured]:
        raise ArgumentError(f"accuracy table: lacks {len(missing)} measurements, the first is {missing[0]}")
    fine, table = np.arange(STEPS) / 4, {}
    for first, second in itertools.permutations(list_corruptions(baseline), 2):
        coarse = [[measured[_simplify(first, a, second, b)] for b in severities] for a in severities]
        columns = np.array([np.interp(fine, severities, row) for row in coarse])
        table[first, second] = np.array([np.interp(fine, severities, column) for column in columns.T]).T
    return table
