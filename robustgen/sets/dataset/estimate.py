"""Estimates of the outputs, bytes and seconds of a run, from a sample of a few images.

All variants of the middle of each image are created, or one level of each operation of the beginning of a
clip; cost and size are scaled by the number of pixels. Files are written to a folder on the file system of
the output, which is removed.
"""

import heapq
import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from operator import attrgetter
from statistics import median
from typing import Any, NamedTuple

from robustgen.display.text import format_size
from robustgen.errors import ImageError, MissingDependencyError, OutputError, WriteError, explain_failure
from robustgen.files.storage import Store
from robustgen.pixels.benchmarks.kinds import CLIP, IMAGE
from robustgen.pixels.imaging import video
from robustgen.pixels.imaging.decode import Loss, find_loss
from robustgen.pixels.imaging.frames import take_part
from robustgen.pixels.imaging.geometry import centre_crop
from robustgen.sets.dataset.outputs import name_output_in_errors
from robustgen.sets.dataset.plan import Plan
from robustgen.sets.dataset.recipes import rank
from robustgen.sets.executors import count_cores
from robustgen.sets.formats.base import Encoded
from robustgen.sets.ingredients import find_fitting
from robustgen.sets.sources.base import list_dimensions

SECONDS = 2.0
_SIDE, _MOST_IMAGES, _MOST_HEADERS, _MOST_CLIPS = 448, 32, 200, 12
# Enough for the longest motion blur.
_MOST_FRAMES = 32
_CLIP_SIDE = 224
# Variants of one value cost alike: levels of an operation on clips, which take too long to try all.
_ALIKE = {IMAGE: attrgetter("folder"), CLIP: attrgetter("name")}
_BLOCK = 4096
# Seconds for a file that all processes share: in records, checksums and manifest, and while it goes to disk.
_FINISHING = 1.5e-5
# Outputs larger than this are rare: so many bytes, and so many times the bytes of the source image.
_LARGE_OUTPUT, _LARGE_RATIO = 1 << 14, 20


class PresetPrice(NamedTuple):
    """Another preset of x264, with its seconds and bytes relative to those of the plan's own."""

    own: str
    other: str
    seconds: float
    size: float


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
        Duration without starting and without uploads.
    starting : float
        Seconds in which the run and its processes load libraries, compile loops and build tables.
    images : int
        Number of images in the sample.
    free : int or None
        Free bytes of the file system of the output; None for servers.
    preset : PresetPrice or None
        Another preset of x264, if the set has videos and a comparison was asked for.
    losses : mapping of str to Loss or None
        What each image of the sample loses in 8 bits and three channels.
    """

    outputs: int
    size: int
    disk: int
    seconds: float
    starting: float
    images: int
    free: int | None
    preset: PresetPrice | None = None
    losses: Mapping[str, Loss | None] = field(default_factory=dict)


def check_space(plan: Plan, outputs: int, source_size: float) -> None:
    """Compare the free space with what so many `outputs` need, if it may not suffice.

    Parameters
    ----------
    plan : Plan
    outputs : int
        Number of outputs that are missing.
    source_size : float
        Mean number of bytes of a source image.

    Raises
    ------
    OutputError
        The outputs will not fit.
    """
    free = plan.store.measure_free_space()
    # The sample takes a few seconds, so it is not taken where there is room for anything.
    if free is None or outputs * (_LARGE_OUTPUT + _LARGE_RATIO * source_size) <= free:
        return
    with suppress(ImageError):
        cost = estimate(plan)
        needed = cost.disk * outputs / cost.outputs
        if needed > free:
            needs = f"needs about {format_size(needed)}, and {format_size(free)} are free"
            raise OutputError(f"{plan.store.location}: {needs}; choose another output, or fewer images")


def estimate(plan: Plan, *, compare_presets: bool = False) -> Estimate:
    """Estimate the cost of `plan`; of a set of videos also with another preset, if asked.

    Raises
    ------
    ImageError
        No image can be processed.
    """
    keys = sorted(plan.keys, key=lambda key: rank(0, key))
    loading, starting, deadline = time.process_time(), 0.0, 0.0
    costs, reasons, losses = dict[str, _Cost](), list[str](), dict[str, Loss | None]()
    with plan.store.open_scratch() as scratch:
        for key in keys:
            try:
                if not costs:
                    # The first pass loads libraries, compiles loops, builds tables and creates folders.
                    before = time.process_time()
                    _measure(plan, key, scratch, losses)
                    starting = time.process_time() - before
                    deadline = time.process_time() + SECONDS
                before = time.process_time()
                costs[key] = _measure(plan, key, scratch, losses)
                starting -= (time.process_time() - before) * (len(costs) == 1)
            except (WriteError, OutputError, MissingDependencyError):
                raise
            except Exception as error:
                reasons.append(explain_failure(error, key))
                continue
            if len(costs) == _MOST_IMAGES or time.process_time() > deadline:
                break
    if not costs:
        reason = next(iter(reasons), "there are none")
        raise ImageError(f"{plan.source.location}: no {plan.source.medium.name} can be used: {reason}")
    pixels, seconds, writing, size = (
        sum(values) / len(costs) for values in zip(*costs.values(), strict=True)
    )
    first, cost = next(iter(costs.items()))
    # The run loads what this process had loaded before, and its workers, if any, load it once more.
    loading *= 1 if _count_processes(plan) == 1 else 2
    starting = loading + max(0.0, starting)
    preset = _price_preset(plan, first, cost) if compare_presets else None
    if typical := [*_list_sizes(plan, keys)] if pixels > 1 else []:
        # The sample may contain only small images or short clips.
        factor = sum(typical) / len(typical) / pixels
        seconds, size = seconds * factor, size * factor
    outputs, images = len(plan.keys) * len(plan.variants), len(plan.keys)
    file = size / len(plan.variants)
    is_separate = plan.writer.file_per == "image"
    disk = outputs * -(-file // _BLOCK) * _BLOCK if is_separate else images * size
    whole = images * (seconds + writing) * _find_largest_share(plan)
    whole += outputs * _FINISHING * is_separate
    free = plan.store.measure_free_space()
    return Estimate(
        outputs, round(images * size), round(disk), whole, starting, len(costs), free, preset, losses
    )


def _list_sizes(plan: Plan, keys: Sequence[str]) -> Iterator[int]:
    """Yield the numbers of pixels of many images, from their headers, or of frames of some clips."""
    if plan.recipe.keeps_size:
        dimensions = list_dimensions(plan.source, keys[:_MOST_HEADERS])
        yield from (math.prod(size) for size in dimensions if size)
        return
    for key in keys[:_MOST_CLIPS]:
        with suppress(ImageError):
            clip: Any = plan.source.open(key)
            yield len(clip.frames)


def _price_preset(plan: Plan, key: str, cost: "_Cost") -> PresetPrice | None:
    """Return the price of the published preset, or of medium if that is the plan's, for one image."""
    encoder: Any = plan.writer.encoder
    if not hasattr(encoder, "with_preset"):
        return None
    own = encoder.encoding.preset
    other = "medium" if own == video.Encoding.preset else video.Encoding.preset
    changed = copy(plan.writer)
    changed.encoder = encoder.with_preset(other)
    price = _measure(replace(plan, writer=changed), key, None, {})
    return PresetPrice(own, other, price.seconds / cost.seconds, price.size / cost.size)


def _count_processes(plan: Plan) -> int:
    return min(plan.jobs or count_cores(), count_cores())


def _find_largest_share(plan: Plan) -> float:
    """Return the share of the work of the busiest process; three shards leave one of two idle for a while."""
    busy = [0] * _count_processes(plan)
    for unit in plan.cut():
        heapq.heapreplace(busy, busy[0] + unit.count_outputs())
    return max(busy) / sum(busy)


class _Cost(NamedTuple):
    """Pixels or frames of an item, seconds to create and to write all its variants, and their bytes."""

    pixels: float
    seconds: float
    writing: float
    size: float


def _take_part(plan: Plan, prepared: Any) -> tuple[Any, float, float]:
    """Return a part of a prepared image or clip, the pixels or frames of the whole, and its size in parts.

    The number is 1 if the cost of an output does not depend on it.
    """
    if not plan.recipe.keeps_size:
        return take_part(prepared, _MOST_FRAMES, _CLIP_SIDE)
    part = prepared
    if not find_fitting(plan.recipe, plan.variants):
        height, width = prepared.shape[:2]
        part = centre_crop(prepared, min(width, _SIDE), min(height, _SIDE))
    return part, prepared.size // 3, prepared.size / part.size


def _measure(plan: Plan, key: str, scratch: Store | None, losses: dict[str, Loss | None]) -> _Cost:
    """Return the cost of all variants of an image; add its loss; files are written to `scratch`."""
    # Measure processor time, which other processes on this machine hardly affect; disks make a run wait.
    started, writing, shared = time.process_time(), list[float](), dict[str, Any]()
    loaded = plan.source.open(key)
    losses[key] = find_loss(loaded)
    prepared = plan.recipe.prepare(loaded)
    part, whole, factor = _take_part(plan, prepared)
    opening, making, size = time.process_time() - started, 0.0, 0
    # Of clips, the middle level of each operation stands for all.
    for levels in ([*some] for _, some in itertools.groupby(plan.variants, _ALIKE[plan.source.medium])):
        variant, count = levels[len(levels) // 2], len(levels)
        before, files = time.process_time(), list[Encoded]()
        pixels = plan.recipe.make(variant, key, part, shared)
        if plan.writer.file_per == "operation":
            # A part of an image is no row.
            size += pixels.nbytes
        else:
            files += plan.writer.encoder.encode(variant, key, pixels)
        making += (time.process_time() - before) * count
        size += sum(map(plan.writer.measure, files)) * count
        if scratch and plan.writer.file_per == "image":
            with name_output_in_errors(plan.store):
                for file in files:
                    clock = time.perf_counter()
                    scratch.put(variant.path(file.name), file.data)
                    writing += [time.perf_counter() - clock] * count
    # The median is that of a machine without other work.
    waiting = len(writing) * median(writing) if writing else 0.0
    return _Cost(whole, opening + making * factor, waiting, size * factor)
