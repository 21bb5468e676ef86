"""Estimates of the outputs, bytes and seconds of a run, from a sample of a few images.

All variants of the middle of each image are created; cost and size are scaled by the number of pixels.
"""

import math
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from robustgen.dataset.ingredients import find_fitting
from robustgen.dataset.plan import Plan
from robustgen.dataset.recipes import rank
from robustgen.errors import ImageError, MissingDependencyError, OutputError, WriteError, explain_failure
from robustgen.execution import count_cores
from robustgen.imaging.geometry import centre_crop

SECONDS = 3.5
_SIDE, _MOST_IMAGES, _MOST_HEADERS = 448, 8, 200
_BLOCK = 4096


@dataclass(frozen=True)
class Estimate:
    """Estimate of a run.

    Attributes
    ----------
    outputs : int
    size : int
        Bytes of the files.
    disk : int
        Bytes of the blocks that the files occupy.
    seconds : float
    images : int
        Number of images in the sample.
    """

    outputs: int
    size: int
    disk: int
    seconds: float
    images: int


def estimate(plan: Plan) -> Estimate:
    """Estimate the cost of `plan`.

    Raises
    ------
    ImageError
        No image can be processed.
    """
    keys = sorted(plan.keys, key=lambda key: rank(0, key))
    costs, reasons, deadline = list[tuple[float, float, float]](), list[str](), 0.0
    for key in keys:
        try:
            if not costs:
                # The first pass loads libraries, compiles loops and builds tables.
                _measure(plan, key)
                deadline = time.process_time() + SECONDS
            costs.append(_measure(plan, key))
        except (WriteError, OutputError, MissingDependencyError):
            raise
        except Exception as error:
            reasons.append(explain_failure(error).removeprefix(f"{key!r}: "))
            continue
        if len(costs) == _MOST_IMAGES or time.process_time() > deadline:
            break
    if not costs:
        reason = next(iter(reasons), "there are none")
        raise ImageError(f"{plan.source.location}: none of the images can be processed: {reason}")
    pixels, seconds, size = (sum(values) / len(costs) for values in zip(*costs, strict=True))
    if plan.recipe.keeps_size:
        # The sample may contain only small images; headers give the size of many more.
        typical = []
        for key in keys[:_MOST_HEADERS]:
            with suppress(ImageError):
                typical.append(math.prod(plan.source.dimensions(key)))
        factor = sum(typical) / max(1, len(typical)) / pixels
        seconds, size = seconds * factor, size * factor
    outputs, images = len(plan.keys) * len(plan.variants), len(plan.keys)
    file = size / len(plan.variants)
    disk = images * size if plan.writer.joint else outputs * -(-file // _BLOCK) * _BLOCK
    jobs = min(plan.jobs or count_cores(), count_cores())
    return Estimate(outputs, round(images * size), round(disk), images * seconds / jobs, len(costs))


def _measure(plan: Plan, key: str) -> tuple[float, float, float]:
    """Return the pixels of an image, and the seconds and bytes of all its variants."""
    # Measure processor time, which other processes on this machine hardly affect.
    started, shared = time.process_time(), dict[str, Any]()
    prepared = plan.recipe.prepare(plan.source.open(key))
    opened, size, part = time.process_time(), 0, prepared
    if plan.recipe.keeps_size and not find_fitting(plan.recipe, plan.variants):
        height, width = prepared.shape[:2]
        part = centre_crop(prepared, min(width, _SIDE), min(height, _SIDE))
    for variant in plan.variants:
        pixels = plan.recipe.make(variant, key, part, shared)
        if plan.writer.arrays:
            # A part of an image is no row.
            size += pixels.nbytes
        else:
            size += sum(len(file.data) for file in plan.writer.encoder.encode(variant, key, pixels))
    whole, factor = 1, 1.0
    if plan.recipe.keeps_size:
        whole, factor = prepared.size // 3, prepared.size / part.size
    making = (time.process_time() - opened) * factor
    return whole, opened - started + making, size * factor
