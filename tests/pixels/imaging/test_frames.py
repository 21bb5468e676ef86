"""Clips as values: frame rates, means of frames, rain, and what a user may pass."""

from fractions import Fraction

import numpy as np
import pytest

from robustgen.errors import ArgumentError, ArgumentTypeError, ImageError
from robustgen.pixels.imaging.frames import (
    Clip,
    as_clip,
    average_frames,
    change_rate,
    choose_frames,
    parse_rate,
)


def ramp(count, height=6, width=8):
    return np.stack([np.full((height, width, 3), number, np.uint8) for number in range(count)])


@pytest.mark.parametrize(("count", "rate", "wanted"), [(50, 25, 10), (46, 24, 6), (9, 12, 20), (120, 30, 16)])
def test_frames_of_another_rate_are_those_of_the_filter_fps(count, rate, wanted):
    chosen = choose_frames(count, Fraction(rate), Fraction(wanted))
    assert len(chosen) == int(Fraction(count * wanted, rate) + Fraction(1, 2))
    places = [int(Fraction(index * wanted, rate) + Fraction(1, 2)) for index in range(count)]
    expected = [max(i for i in range(count) if places[i] <= k) for k in range(len(chosen))]
    assert chosen == expected


def test_25_frames_a_second_become_10():
    assert choose_frames(50, Fraction(25), Fraction(10))[:5] == [1, 3, 6, 8, 11]
    clip = Clip(ramp(50))
    changed = [*change_rate(clip, clip, Fraction(10))]
    assert [frame[0, 0, 0] for frame in changed[:5]] == [1, 3, 6, 8, 11]
    doubled = change_rate(Clip(ramp(3)), "abc", Fraction(50))
    assert "".join(doubled) == "aabbcc"


def test_frames_are_averaged_half_a_frame_early_and_the_ends_are_lost():
    averaged = [*average_frames(ramp(7) * 10, 2)]
    # Frame i has the frames i - 2 .. i + 1, i from 2.
    assert [int(frame[0, 0, 0]) for frame in averaged] == [15, 25, 35]
    with pytest.raises(ImageError, match="4 frames"):
        [*average_frames(ramp(4), 2)]


@pytest.mark.parametrize(
    ("frames", "error"),
    [(np.zeros((4, 4, 3), np.uint8), ArgumentError), (np.zeros((2, 4, 4, 3)), ArgumentTypeError)],
)
def test_other_arrays_than_frames_are_refused(frames, error):
    with pytest.raises(error):
        as_clip(frames)


def test_rates_are_fractions():
    assert parse_rate(None) == 25
    assert parse_rate(29.97002997) == Fraction(30000, 1001)
    assert parse_rate("30000/1001") == Fraction(30000, 1001)
    for wrong in ("fast", 0, -1, 2000, float("nan"), float("inf")):
        with pytest.raises(ArgumentError, match="fps"):
            parse_rate(wrong)


def test_an_error_of_the_disk_while_frames_are_computed_is_that_of_the_clip():
    def frames():
        yield ramp(1)[0]
        raise FileNotFoundError(2, "No such file", "frost1.png")

    with pytest.raises(ImageError, match="frost1"):
        Clip(frames()).stack()


def test_large_clips_are_not_kept_in_memory(monkeypatch):
    monkeypatch.setattr("robustgen.pixels.imaging.frames.MOST_HELD", 400)
    frames = [*ramp(5)]
    held, read = Clip(frames).hold(), Clip(frames[:2]).hold()
    assert held.frames is frames
    assert isinstance(read.frames, np.ndarray)
