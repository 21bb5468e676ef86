"""RoboBEV's nuScenes-C: known corruptions at their own severities, failed cameras, lost frames."""

import numpy as np
import pytest

import robustgen
from robustgen.errors import ArgumentError
from tests.helpers import photo

KNOWN = {
    "motion_blur": ("motion_blur", "coco-c", (2, 4, 5)),
    "brightness": ("brightness", "coco-c", (2, 4, 5)),
    "fog": ("fog", "coco-c", (2, 4, 5)),
    "snow": ("snow", "coco-c", (1, 2, 3)),
    "color_quant": ("robodepth:color_quant", None, (2, 3, 4)),
    "low_light": ("robodepth:dark", None, (3, 4, 5)),
}


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("severity", [1, 2, 3])
def test_a_known_corruption_has_its_own_severity_and_the_channels_of_opencv(name, severity):
    known, edition, severities = KNOWN[name]
    image, order = photo(96, 160), slice(None, None, -1 if edition else None)

    def draw(seen):
        rng = np.random.RandomState(7)
        return robustgen.corrupt(seen, known, severities[severity - 1], edition=edition, rng=rng)

    made = robustgen.corrupt(image, f"robobev:{name}", severity, rng=np.random.RandomState(7))
    assert np.array_equal(made, draw(image[:, :, order])[:, :, order])
    # The luma of snow weighs red and blue differently.
    assert np.array_equal(made, draw(image)) == (name not in ("snow", "brightness"))


def crash(severity, rng, camera):
    image = photo(32, 40)
    made = robustgen.corrupt(image, "robobev:camera_crash", severity, parameters={"camera": camera}, rng=rng)
    assert np.array_equal(made, image) or not made.any()
    return not made.any()


@pytest.mark.parametrize(("severity", "draws"), [(1, 2), (2, 4), (3, 5)])
@pytest.mark.parametrize("count", [6, 5])
def test_cameras_crash_that_are_drawn_with_replacement(severity, draws, count):
    numbers = []
    for seed in range(20):
        drawn = {*np.random.RandomState(seed).randint(0, count, draws)}
        black = {n for n in range(count) if crash(severity, np.random.RandomState(seed), (n, count))}
        assert black == drawn
        numbers.append(len(black))
    assert max(numbers) == min(draws, count) > min(numbers)


@pytest.mark.parametrize("camera", [(6, 6), (-1, 6)])
def test_a_camera_that_the_rig_does_not_have_is_refused(camera):
    with pytest.raises(ArgumentError, match="camera"):
        crash(1, 0, camera)


@pytest.mark.parametrize(("severity", "share"), [(1, 2 / 6), (2, 4 / 6), (3, 5 / 6)])
def test_frames_are_lost_one_by_one(severity, share):
    image = np.full((600, 32, 32, 3), 9, np.uint8)
    lost = ~robustgen.corrupt_clip(image, "robobev:frame_lost", severity, rng=1).any(axis=(1, 2, 3))
    assert abs(lost.mean() - share) < 0.06


@pytest.mark.parametrize("temporal", ["clip", "frame"])
def test_a_camera_crashes_for_whole_clips(temporal):
    frames = np.full((8, 32, 32, 3), 9, np.uint8)
    for seed in range(4):
        made = robustgen.corrupt_clip(
            frames, "robobev:camera_crash", 1, temporal=temporal, parameters={"camera": (0, 6)}, rng=seed
        )
        assert made.all() or not made.any()


def test_snow_falls_from_frame_to_frame_in_one_wind():
    frames = np.full((3, 64, 64, 3), 90, np.uint8)
    first, second, _ = robustgen.corrupt_clip(frames, "robobev:snow", 2, rng=0)
    assert not np.array_equal(first, second)
    assert np.array_equal(first, robustgen.corrupt(frames[0], "robobev:snow", 2, rng=0))
