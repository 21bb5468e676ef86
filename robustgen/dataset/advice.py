"""Advice before a run: constants that do not suit the sizes of the images, and memory."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

from robustgen.dataset.config import Config
from robustgen.dataset.plan import Plan
from robustgen.dataset.recipes import rank
from robustgen.display.text import format_size
from robustgen.editions import get_edition, nearest_scale
from robustgen.errors import ImageError

_MOST_HEADERS = 200
# Constants are lengths in pixels: at three times the size they were made for, a blur is hard to see.
_TOO_LARGE = 3.0
# elastic_transform moves three points in the middle square; far away from it, that turns a long image over.
_TOO_LONG = 4.0
# Bytes per pixel of a large frame that x264 keeps at most, measured on 4000 x 3000.
_X264 = 60
_MUCH_MEMORY = 1e9


def advise(plan: Plan, config: Config) -> Iterator[str]:
    """Yield one line for each thing that may not be as wanted, with a remedy.

    Sizes are those of up to 200 images, by their headers.
    """
    sizes = sorted(_read_sizes(plan, config), key=min)
    if not sizes:
        return
    # Constants of the user's own are made for what they are.
    if not config.parameters:
        yield from _advise_on_size(sizes, config)
        yield from _advise_on_shape(sizes, {arm.name for arm in plan.arms})
    if plan.writer.settings().get("format") == "mp4":
        yield from _advise_on_memory(sizes[-1])


def _read_sizes(plan: Plan, config: Config) -> Iterator[tuple[int, int]]:
    """Width and height of what images of the plan become."""
    side = config.size or get_edition(config.edition).side
    if side:
        yield side, side
        return
    for key in sorted(plan.keys, key=lambda key: rank(0, key))[:_MOST_HEADERS]:
        # What cannot be read fails in the run, and is told of there.
        with suppress(ImageError):
            yield plan.source.dimensions(key)


def _advise_on_size(sizes: Sequence[tuple[int, int]], config: Config) -> Iterator[str]:
    largest = sizes[-1]
    own = config.scale or get_edition(config.edition).scale
    large = [size for size in sizes if min(size) >= _TOO_LARGE * (own or nearest_scale(min(size)))]
    if large:
        scale = own or nearest_scale(min(largest))
        which = f"{len(large)} of {len(sizes)} images are" if len(sizes) > 1 else "images are"
        yield (
            f"{which} large ({_show(largest)}) for constants made for {scale} pixels: many corruptions "
            "will hardly show; --size makes them smaller, calibrate --for-size finds constants"
        )


def _advise_on_shape(sizes: Sequence[tuple[int, int]], names: Collection[str]) -> Iterator[str]:
    long = [size for size in sizes if max(size) >= _TOO_LONG * min(size)]
    if long and "elastic_transform" in names:
        yield (
            f"{len(long)} of {len(sizes)} images are elongated ({_show(long[0])}): elastic_transform "
            "overturns them, as it goes by the shorter side; --size cuts squares out of them"
        )


def _advise_on_memory(size: tuple[int, int]) -> Iterator[str]:
    needed = size[0] * size[1] * _X264
    if needed > _MUCH_MEMORY:
        yield (
            f"x264 needs about {format_size(needed)} a worker for {_show(size)}: "
            "--size makes them smaller, --format png needs nearly nothing"
        )


def _show(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"
