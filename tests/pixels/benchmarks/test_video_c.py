"""The corruptions of clips: those of video-c, and ImageNet-C's with one draw per clip."""

import numpy as np
import pytest

import robustgen
from robustgen.errors import ArgumentError, ImageError
from robustgen.pixels.benchmarks.corruptions import FAMILIES
from tests.helpers import FIXED_CORRUPTIONS, photo, slow_after

FRESH = {"gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", "snow"}
NAMES = [*robustgen.CORRUPTIONS]


@pytest.fixture(scope="module")
def panning():
    picture = photo(120, 140)
    return np.stack([picture[t : t + 96, 2 * t : 2 * t + 128] for t in range(4)])


@pytest.fixture(scope="module")
def still():
    return np.repeat(photo(64, 64)[None], 3, axis=0)


def corrupt(frames, name, severity=3, seed=1, **more):
    return robustgen.corrupt_clip(frames, name, severity, rng=np.random.RandomState(seed), **more)


@pytest.mark.parametrize("name", slow_after(8, "all corruptions", NAMES))
def test_frames_of_one_clip_differ_only_where_the_world_does(name, still):
    frames = corrupt(still, name)
    assert np.array_equal(frames[0], frames[1]) == (name not in FRESH)
    afresh = corrupt(still, name, temporal="frame")
    assert np.array_equal(afresh[0], afresh[1]) == (name in FIXED_CORRUPTIONS)
    assert np.array_equal(afresh[0], frames[0])


@pytest.mark.parametrize("name", ["fog", "frost", "snow", "glass_blur", "shot_noise", "elastic_transform"])
def test_the_first_frame_is_the_corrupted_image(name, panning):
    frames = corrupt(panning, name)
    rng = np.random.RandomState(1)
    assert np.array_equal(frames[0], robustgen.corrupt(panning[0], name, 3, rng=rng))


@pytest.mark.parametrize("name", ["fog", "glass_blur", "spatter"])
def test_the_generator_stands_where_one_frame_leaves_it(name, panning):
    rng, other = np.random.RandomState(5), np.random.RandomState(5)
    robustgen.corrupt_clip(panning, name, 2, rng=rng)
    robustgen.corrupt(panning[0], name, 2, rng=other)
    assert rng.randint(1 << 30) == other.randint(1 << 30)


def test_snow_keeps_its_wind_and_has_new_flakes(panning):
    angles = []

    class Watched(np.random.RandomState):
        def uniform(self, low=0.0, high=1.0, size=None):
            angles.append((low, high))
            return super().uniform(low, high, size)

    watched = Watched(1)
    robustgen.corrupt_clip(panning, "snow", 3, rng=watched)
    assert angles.count((-135, -45)) == 1


def test_noise_runs_on_from_frame_to_frame(panning):
    frames = corrupt(panning, "gaussian_noise")
    rng = np.random.RandomState(1)
    expected = [robustgen.corrupt(frame, "gaussian_noise", 3, rng=rng) for frame in panning]
    assert np.array_equal(frames, expected)


# --- video-c -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["shot_noise", "rain", "contrast", "brightness", "saturate", "fog"])
@pytest.mark.parametrize("severity", [1, 5])
def test_pixels_of_video_c_are_those_of_the_formulas(name, severity, panning):
    from robustgen.pixels.imaging.weather_effects import add_rain, draw_rain

    made, rng = corrupt(panning, f"video-c:{name}", severity), np.random.RandomState(1)
    if name == "rain":
        rows = {1: (770, 10, 0.8), 5: (400, 80, 0.5)}[severity]
        expected = [add_rain(f, draw_rain(f.shape[:2], *rows[:2], rng), rows[2]) for f in panning]
    elif name == "contrast":
        factor = {1: 0.5, 5: 0.1}[severity]
        expected = [robustgen.corrupt(f, "contrast", 3, parameters={"factor": factor}) for f in panning]
    elif name == "shot_noise":
        expected = [robustgen.corrupt(f, name, severity, scale=224, rng=rng) for f in panning]
    else:
        more = [np.random.RandomState(1) for _ in panning]
        expected = [
            robustgen.corrupt(f, name, severity, scale=224, rng=draws)
            for f, draws in zip(panning, more, strict=True)
        ]
    assert np.array_equal(made, expected)


def test_the_edition_chooses_the_constants():
    frames = np.stack([np.full((40, 40, 3), 3 * number, np.uint8) for number in range(26)])
    assert len(corrupt(frames, "video-c:motion_blur", 5)) == 26 - 22
    assert len(corrupt(frames, "video-c:motion_blur", 5, edition="ssv2")) == 26 - 12
    assert len(corrupt(frames, "video-c:frame_rate", 5)) == 6
    assert len(corrupt(frames, "video-c:frame_rate", 5, edition="ssv2", fps=12)) == 4
    with pytest.raises(ImageError):
        corrupt(frames[:22], "video-c:motion_blur", 5)


def test_every_corruption_of_the_paper_is_there():
    family = FAMILIES["video-c"]
    assert len(family.names()) == 12
    assert {*family.corruptions} - {*family.names()} == {"video-c:h264_crf", "video-c:h264_abr"}


def test_an_image_is_no_clip():
    image = photo(64, 64)
    assert robustgen.corrupt(image, "video-c:fog", 3, edition="kinetics", rng=0).shape == image.shape
    with pytest.raises(ArgumentError, match="corrupt_clip"):
        robustgen.corrupt(image, "video-c:motion_blur", 3, edition="kinetics")


@pytest.mark.parametrize(
    ("name", "more", "text"),
    [
        ("fog", {"temporal": "shot"}, "temporal"),
        ("video-c:rain", {"temporal": "frame"}, "temporal"),
        ("3dcc:fog_3d", {}, "depth"),
        ("video-c:rains", {}, "rain"),
        ("video-c:motion_blur", {"edition": "imagenet"}, "kinetics"),
        ("video-c:frame_rate", {"fps": "fast"}, "fps"),
    ],
)
def test_what_cannot_be_is_refused(name, more, text, still):
    with pytest.raises(ArgumentError, match=text):
        robustgen.corrupt_clip(still, name, 3, **more)


def test_the_argument_is_not_modified(panning):
    before = panning.copy()
    for name in ("fog", "video-c:rain", "video-c:brightness", "pixelate"):
        corrupt(panning, name, 1)
    assert np.array_equal(panning, before)
