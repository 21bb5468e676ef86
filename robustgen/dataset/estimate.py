"""Estimates what a run takes: outputs, bytes and seconds, from a sample of a few images.

All variants are made of the middle of each image; cost and size grow with the pixels.
"""

import math
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from robustgen.dataset.plan import Plan
from robustgen.dataset.recipes import rank
from robustgen.errors import ImageError, MissingDependencyError, OutputError, WriteError, explain_failure
from robustgen.execution import count_cores

SECONDS = 3.5
_SIDE, _MOST_IMAGES, _MOST_HEADERS = 448, 8, 200
_BLOCK = 4096
# The output itself, its manifest and sums, and its state apart from the records.
_ABOUT_THE_SET = 10
# Of the processor, to create, write and check a file of a tree.
_SECONDS_PER_FILE = 60e-6


@dataclass(frozen=True)
class Estimate:
    """Estimate of a run.

    Attributes
    ----------
    outputs : int
    size : int
        Bytes of the files.
    disk : int
        Bytes of the blocks that they occupy.
    inodes : int
        Files and folders, those of the output state included.
    seconds : float
    images : int
        Size of the sample.
    """

    outputs: int
    size: int
    disk: int
    inodes: int
    seconds: float
    images: int


def estimate(plan: Plan) -> Estimate:
    """Estimate the cost of `plan`.

    Raises
    ------
    ImageError
        No image can be made.
    """
    keys = sorted(plan.keys, key=lambda key: rank(0, key))
    costs, reason, deadline = list[tuple[float, float, float, float]](), "there are none", 0.0
    for key in keys:
        try:
            if not costs:
                # The first time loads libraries, compiles the loops and builds the tables.
                _measure(plan, key)
                deadline = time.process_time() + SECONDS
            costs.append(_measure(plan, key))
        except (WriteError, OutputError, MissingDependencyError):
            raise
        except Exception as error:
            reason = (
                explain_failure(error).removeprefix(f"{key!r}: ") if reason == "there are none" else reason
            )
            continue
        if len(costs) == _MOST_IMAGES or time.process_time() > deadline:
            break
    if not costs:
        raise ImageError(f"{plan.source.location}: none of the images can be made: {reason}")
    pixels, seconds, size, own = (sum(values) / len(costs) for values in zip(*costs, strict=True))
    if plan.recipe.keeps_size:
        # The sample may be of the smaller images; headers tell of many more.
        typical = []
        for key in keys[:_MOST_HEADERS]:
            with suppress(ImageError):
                typical.append(math.prod(plan.source.dimensions(key)))
        factor = sum(typical) / max(1, len(typical)) / pixels
        seconds, size = seconds * factor, size * factor
    outputs, images = len(plan.keys) * len(plan.arms), len(plan.keys)
    file = size / len(plan.arms)
    disk = images * size if plan.writer.joint else outputs * -(-file // _BLOCK) * _BLOCK
    if not plan.writer.joint:
        seconds += len(plan.arms) * _SECONDS_PER_FILE
    jobs = min(plan.jobs or count_cores(), count_cores())
    return Estimate(
        outputs,
        round(images * size),
        round(disk),
        _count_inodes(plan, own),
        images * seconds / jobs,
        len(costs),
    )


def _count_inodes(plan: Plan, own: float) -> int:
    """Return how many files and folders a finished output has; `own` of them for each image."""
    writer, units = plan.writer, [*plan.cut()]
    # Folders and checksums of the variants, and a record of each unit.
    companions = writer.list_companions(plan.listing(lambda: ()), [variant.folder for variant in plan.arms])
    around = 2 * len(plan.arms) + len(units) + len(companions) + _ABOUT_THE_SET
    if writer.joint:
        return around + (len(writer.arrays) or sum(len(unit.variants) for unit in units))
    parents = {(writer.output_name(key) or "").rpartition("/")[0] for key in plan.keys}
    folders = {folder for name in parents for folder in PurePosixPath(name, "file").parents if folder.name}
    return round(around + len(folders) * len(plan.arms) + len(plan.keys) * own)


def _measure(plan: Plan, key: str) -> tuple[float, float, float, float]:
    """Return the pixels of an image, and the seconds, bytes and inodes that all of its variants take."""
    # Of the processor, as other processes may be at work now and not later, or the other way about.
    started, shared = time.process_time(), dict[str, Any]()
    prepared = plan.recipe.prepare(plan.source.open(key))
    opened, part = time.process_time(), plan.recipe.cut(prepared, _SIDE)
    size = inodes = 0
    for variant in plan.arms:
        pixels = plan.recipe.make(variant, key, part, shared)
        size += plan.writer.measure(variant, key, pixels)
        inodes += plan.writer.count_inodes(pixels)
    whole, factor = 1, 1.0
    if plan.recipe.keeps_size:
        whole, factor = prepared.size // 3, prepared.size / part.size
    making = (time.process_time() - opened) * factor
    return whole, opened - started + making, size * factor, inodes
