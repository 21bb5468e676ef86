"""What a run would take: outputs, bytes and seconds, judged in a few seconds by small parts of a few images.

Cost and size of an output grow with its pixels. So all arms are made of squares out of the middle of images,
as large as the time allows, at the strength of the whole; a line through them says what the whole would take.
How large the images are their headers tell.
"""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from robustgen.errors import ImageError, MissingDependencyError, OutputError, WriteError, explain_failure
from robustgen.generation.plan import Plan
from robustgen.generation.recipes import rank
from robustgen.generation.workers import count_cores
from robustgen.output.files import FileWriter, temporary_folder

SECONDS = 3.5
# Encoders fill up blocks of so many pixels; of a small square that would be much.
_BLOCK = 16
_FIRST_SIDE, _MOST_IMAGES, _MOST_HEADERS, _FILES_TO_TIME = 48, 8, 200, 20


@dataclass(frozen=True)
class Estimate:
    """What a run would take.

    Attributes
    ----------
    outputs : int
    size : int
        Bytes.
    seconds : float
    images : int
        How many images it is judged by.
    """

    outputs: int
    size: int
    seconds: float
    images: int


class _Cost(NamedTuple):
    """What all arms of a square of one image took; `whole` are the pixels that the whole output has."""

    pixels: int
    whole: int
    seconds: float
    size: int


def estimate(plan: Plan) -> Estimate:
    """Judge the cost of `plan`.

    Raises
    ------
    ImageError
        No image can be made.
    """
    trial = _Trial(plan)
    keys = sorted(plan.keys, key=lambda key: rank(0, key))
    for key in keys:
        trial.take(key)
        if trial.is_over:
            break
    if not trial.costs:
        raise ImageError(f"{plan.source.location}: none of the images can be made: {trial.reason}")
    loads = [_count_pixels(plan, key) for key in keys[:_MOST_HEADERS]]
    pixels = fmean(loads) if plan.recipe.keeps_size else fmean(cost.whole for cost in trial.costs)
    opening = sum(trial.opening) / sum(trial.opened) * fmean(loads)
    making = _extrapolate([(cost.pixels, cost.seconds) for cost in trial.costs], pixels)
    size = _extrapolate([(cost.pixels, cost.size) for cost in trial.costs], pixels)
    images, jobs = len(plan.keys), min(plan.jobs or count_cores(), count_cores())
    writing = 0.0 if plan.writer.arrays else len(plan.arms) * _time_a_file(round(size / len(plan.arms)))
    seconds = images * (opening + making + writing) / jobs
    return Estimate(images * len(plan.arms), round(images * size), seconds, len(trial.opening))


class _Trial:
    """Makes parts of images until the time is up."""

    def __init__(self, plan: Plan) -> None:
        self.costs: list[_Cost] = []
        # Seconds that images took to be read and prepared, and how many pixels they have.
        self.opening: list[float] = []
        self.opened: list[int] = []
        self.reason = "there are none"
        self._failed = False
        self._plan, self._deadline = plan, 0.0

    @property
    def is_over(self) -> bool:
        """Whether enough is known, or the time is up."""
        return bool(self.costs) and (len(self.opening) == _MOST_IMAGES or self._time_left() < 0)

    def take(self, key: str) -> None:
        """Make what the time allows of one image; one that cannot be made is passed over."""
        try:
            prepared, opening = self._open(key)
            if not self.costs:
                # The first time loads libraries, compiles the loops and builds the tables.
                prepared, opening = self._open(key)
                self._measure(key, prepared, _FIRST_SIDE)
                self._deadline = time.process_time() + SECONDS
                self.costs.append(self._measure(key, prepared, _FIRST_SIDE))
            self.costs.append(self._measure_twice(key, prepared, self._find_affordable_side()))
        except (WriteError, OutputError, MissingDependencyError):
            raise
        except Exception as error:
            if not self._failed:
                self._failed, self.reason = True, explain_failure(error).removeprefix(f"{key!r}: ")
            return
        self.opening.append(opening)
        self.opened.append(_count_pixels(self._plan, key))

    def _open(self, key: str) -> tuple[Any, float]:
        """An image as the recipe prepares it, and the seconds that this took."""
        started = time.process_time()
        prepared = self._plan.recipe.prepare(self._plan.source.open(key))
        return prepared, time.process_time() - started

    def _time_left(self) -> float:
        return self._deadline - time.process_time()

    def _find_affordable_side(self) -> int:
        """The side of the square that takes a third of the time that is left, judged by the last one."""
        last = self.costs[-1]
        share = max(1.0, self._time_left() / 3 / max(last.seconds, 1e-6))
        return int((last.pixels * share) ** 0.5) // _BLOCK * _BLOCK

    def _measure_twice(self, key: str, prepared: Any, side: int) -> _Cost:
        """What it takes the second time, if time allows: the first time builds what a size needs once."""
        cost = self._measure(key, prepared, side)
        # Not the lesser of both, as nothing takes the least in a run either.
        return self._measure(key, prepared, side) if cost.seconds < self._time_left() / 2 else cost

    def _measure(self, key: str, prepared: Any, side: int) -> _Cost:
        part = self._plan.recipe.cut_part(prepared, side)
        shared: dict[str, Any] = {}
        # Of the processor, as others may be at work now and not then, or the other way about.
        size, started = 0, time.process_time()
        for arm in self._plan.arms:
            pixels = part.recipe.make(arm, key, part.image, shared)
            size += self._plan.writer.measure(arm, key, pixels)
        return _Cost(part.pixels, part.whole, time.process_time() - started, size)


def _count_pixels(plan: Plan, key: str) -> int:
    """Pixels of a source image, by its header; 1 where that cannot be read."""
    try:
        width, height = plan.source.dimensions(key)
    except ImageError:
        return 1
    return width * height


def _time_a_file(size: int) -> float:
    """Seconds that the writing of a file of `size` bytes takes."""
    data = bytes(size)
    with TemporaryDirectory() as folder:
        root = Path(folder)
        temporary_folder(root).mkdir(parents=True)
        started = time.process_time()
        with closing(FileWriter(root)) as files:
            for number in range(_FILES_TO_TIME):
                files.write(f"{number}", data)
        return (time.process_time() - started) / _FILES_TO_TIME


def _extrapolate(points: Sequence[tuple[float, float]], at: float) -> float:
    """The value at `at` of the line through `points`, nowhere below zero; large ones count for more."""
    weight = sum(x for x, _ in points)
    x_mean = sum(x * x for x, _ in points) / weight
    y_mean = sum(x * y for x, y in points) / weight
    spread = sum(x * (x - x_mean) ** 2 for x, _ in points)
    slope = sum(x * (x - x_mean) * (y - y_mean) for x, y in points) / spread if spread else y_mean / x_mean
    # Neither a fixed cost below zero nor one that shrinks with the pixels.
    slope = min(max(slope, 0.0), y_mean / x_mean)
    return y_mean + slope * (at - x_mean)
