"""Clips: frames of one size at a constant rate, their choice, other rates, and means of frames."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, TypeVar

import numpy as np

from robustgen.errors import ArgumentError, ArgumentTypeError, ImageError, name_error
from robustgen.pixels.imaging.arrays import Rgb

USUAL_RATE: Final = Fraction(25)
"""Frames per second of numbered images, as in FFmpeg."""

Frame = TypeVar("Frame")

MOST_HELD: Final = 1 << 28
"""Bytes of the largest clip that is kept in memory; others are decoded again for each variant."""


@dataclass(frozen=True, eq=False)
class Clip:
    """Frames of one size at a constant rate.

    Attributes
    ----------
    frames : iterable of uint8 ndarray of shape (H, W, 3), or uint8 ndarray of shape (T, H, W, 3)
        Of a result, the frames may be computed on demand, once.
    rate : Fraction
        Frames per second.
    data : bytes
        The video file that decodes to these frames; empty if there is none.
    names : tuple of str
        Names of the files of the frames in their folder; () if they have none.
    notes : mapping
        What a video encoder or a damaged bit stream did to this clip, as JSON values.
    publish : callable, optional
        Returns the clip as the published video file contains it, if that has a loss that `frames` lack.
    """

    frames: Iterable[Rgb]
    rate: Fraction = USUAL_RATE
    data: bytes = b""
    names: tuple[str, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)
    publish: Callable[[], "Clip"] | None = None

    def __iter__(self) -> Iterator[Rgb]:
        try:
            yield from self.frames
        except OSError as error:
            # Frames are computed while they are written, which must not look like a failure of the output.
            raise ImageError(name_error(error)) from error

    def hold(self) -> "Clip":
        """Return the clip with its frames in memory if they need at most `MOST_HELD` bytes."""
        kept, size = list[Rgb](), 0
        for frame in self:
            kept.append(frame)
            size += frame.nbytes
            if size > MOST_HELD:
                return self
        return replace(self, frames=np.stack(kept))

    def take(self, most: int) -> tuple["Clip", int]:
        """Return the clip of at most the first `most` frames, and the number of all frames."""
        first, count = list[Rgb](), 0
        for frame in self:
            first += [frame] if count < most else []
            count += 1
        whole = count <= most
        return Clip(np.stack(first), self.rate, self.data if whole else b"", self.names[:most]), count

    def stack(self) -> Rgb:
        """Return all frames, uint8 (T, H, W, 3)."""
        return self.frames if isinstance(self.frames, np.ndarray) else np.stack([*self])


@dataclass(frozen=True)
class Repeatable:
    """Frames that are computed anew each time they are read."""

    compute: Callable[[], Iterable[Rgb]]

    def __iter__(self) -> Iterator[Rgb]:
        return iter(self.compute())


def peek(frames: Iterable[Rgb]) -> tuple[Rgb, Iterator[Rgb]]:
    """Return the first frame, and an iterator over all frames that keeps none.

    Raises
    ------
    ImageError
        There are no frames.
    """
    ahead = iter(frames)
    if (first := next(ahead, None)) is None:
        raise ImageError("contains no frames")
    kept = [first]

    def go_on() -> Iterator[Rgb]:
        yield kept.pop()
        yield from ahead

    return first, go_on()


def take_first(item: Any, most: int) -> tuple[Any, int]:
    """Return the clip of at most `most` first frames, and the number of all; an image itself, and 1."""
    return item.take(most) if isinstance(item, Clip) else (item, 1)


def take_part(item: Any, most: int, side: int) -> tuple[Any, int, float]:
    """Return a part of a clip: the middle, `side` x `side` pixels, of at most `most` first frames.

    Also the number of all frames, and the size of the clip in such parts; an image itself, 1 and 1.
    """
    part, count = take_first(item, most)
    if not isinstance(part, Clip):
        return part, 1, 1.0
    stack = part.stack()
    top, left = (max(0, length - side) // 2 for length in stack.shape[1:3])
    cut = np.ascontiguousarray(stack[:, top : top + side, left : left + side])
    part = replace(part, frames=cut, data=part.data if cut.shape == stack.shape else b"")
    return part, count, stack.size / cut.size * count / len(stack)


def as_pixels(item: Any) -> Rgb:
    """Return the frames of a `Clip`, (T, H, W, 3); an image or a sequence itself."""
    return item.stack() if isinstance(item, Clip) else item


def spread_frames(count: int, wanted: int, first: int = 0) -> list[int]:
    """Return at most `wanted` of `count` frames, evenly spaced from `first`; if one is wanted, the middle."""
    if wanted == 1:
        return [count // 2]
    return [*dict.fromkeys(np.linspace(first, count - 1, wanted).round().astype(int).tolist())]


def stills(item: Rgb, wanted: int) -> list[Rgb]:
    """Return an image, (H, W, 3), alone, or the frames of (T, H, W, 3) that `spread_frames` chooses."""
    return [item] if item.ndim == 3 else [item[number] for number in spread_frames(len(item), wanted)]


def as_clip(frames: Any, fps: Any = None) -> Clip:
    """Return the frames that a user gave as a clip of `fps` frames per second, by default 25.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        `frames` is not uint8 (T, H, W, 3), or `fps` is not a positive number.
    """
    array = np.asarray(frames)
    if array.dtype != np.uint8:
        raise ArgumentTypeError(f"frames must be uint8, not {array.dtype}")
    if array.ndim != 4 or array.shape[3] != 3 or not array.size:
        raise ArgumentError(f"frames must have the shape (T, H, W, 3), not {array.shape}")
    return Clip(np.ascontiguousarray(array), parse_rate(fps))


def parse_rate(fps: Any) -> Fraction:
    """Return frames per second as a fraction, 25 for None; raise an ArgumentError outside 0.1 to 1000."""
    try:
        # The number 29.97 is 30000/1001, and not a fraction with a large denominator.
        rate = USUAL_RATE if fps is None else Fraction(fps).limit_denominator(1001)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        raise ArgumentError(f"fps must be a number such as 25 or 30000/1001, not {fps!r}") from error
    if not Fraction(1, 10) <= rate <= 1000:
        raise ArgumentError(f"fps must be from 0.1 to 1000, not {fps}")
    return rate


def sample_frames(count: int, wanted: int, offset: int = 0) -> list[int]:
    """Return which of `count` frames a model gets, as in the evaluation of Mini Kinetics-C.

    Of a longer clip it gets every s-th frame from `offset` on, s = `frame_stride`, which leaves out the last
    ones; of a shorter one it gets frames repeatedly.
    """
    if count <= wanted:
        return [place * count // wanted for place in range(wanted)]
    return [offset + place * frame_stride(count, wanted) for place in range(wanted)]


def frame_stride(count: int, wanted: int) -> int:
    """Return the distance between the frames that a model gets of a clip of `count` frames."""
    return max(1, (count - 1) // wanted)


# --- frames of other rates, and means of frames ---------------------------------------------------


def choose_frames(count: int, rate: Fraction, wanted: Fraction) -> list[int]:
    """Return which of `count` frames at a `rate` stand for each frame at the `wanted` rate.

    Equals FFmpeg's filter ``fps``: a frame has the nearest place, halves up, and the last frame at or before
    each place is taken.
    """
    half, ratio = Fraction(1, 2), wanted / rate
    places = [int(index * ratio + half) for index in range(count)]
    chosen, source = list[int](), 0
    for place in range(int(count * ratio + half)):
        while source + 1 < count and places[source + 1] <= place:
            source += 1
        chosen.append(source)
    return chosen


def change_rate(clip: Clip, frames: Iterable[Frame], wanted: Fraction) -> Iterator[Frame]:
    """Yield the `frames` of `clip`, in any form, at the `wanted` rate: some are left out or repeated."""
    repeats = Counter(choose_frames(sum(1 for _ in clip), clip.rate, wanted))
    for place, frame in enumerate(frames):
        for _ in range(repeats[place]):
            yield frame


def average_frames(frames: Iterable[Rgb], reach: int) -> Iterator[Rgb]:
    """Yield the means of 2 `reach` frames, `reach` before and the rest from each frame on, rounded down.

    Raises
    ------
    ImageError
        There are at most 2 `reach` frames, so that nothing is left.
    """
    recent, total = deque[Rgb](), np.zeros((), np.uint32)
    count = -1
    for count, frame in enumerate(frames):
        # The last of the means has no frame, as in the published code.
        if count >= 2 * reach:
            yield (total // np.uint32(2 * reach)).astype(np.uint8)
            total = total - recent.popleft()
        total = total + frame
        recent.append(frame)
    if count < 2 * reach:
        raise ImageError(f"motion blur needs more than {2 * reach} frames, not {count + 1}")
