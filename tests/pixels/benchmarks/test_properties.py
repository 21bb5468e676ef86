"""What holds for every size, corruption, perturbation and scale."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from robustgen import CORRUPTIONS, PERTURBATIONS, corrupt, perturb, prepare
from robustgen.pixels.imaging.blur import disk
from tests.helpers import FIXED_CORRUPTIONS, RANDOM_PERTURBATIONS

quick = settings(max_examples=150, deadline=None, derandomize=True)
slower = settings(max_examples=40, deadline=None, derandomize=True)

seeds = st.integers(0, 2**63)
scales = st.sampled_from([224, 299, 64, 32])


@st.composite
def images(draw):
    """Noise, smoothed or not, brightened or darkened, of 32 to 80 pixels a side."""
    height, width = draw(st.integers(32, 80)), draw(st.integers(32, 80))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    coarse = draw(st.sampled_from([1, 4, 16]))
    low, high = draw(st.sampled_from([(0, 255), (0, 40), (200, 255)]))
    tiles = rng.integers(low, high, (-(-height // coarse), -(-width // coarse), 3), np.uint8, endpoint=True)
    return np.repeat(np.repeat(tiles, coarse, axis=0), coarse, axis=1)[:height, :width]


def some_differ(results):
    """Whether not all of them are alike: two seeds may well agree on an angle, but not five."""
    return any(not np.array_equal(results[0], other) for other in results[1:])


@quick
@given(images(), st.sampled_from(list(CORRUPTIONS)), st.integers(1, 5), scales, seeds)
def test_corrupt(image, name, severity, scale, seed):
    before = image.copy()
    result = corrupt(image, name, severity, scale=scale, rng=seed)
    assert result.shape == image.shape
    assert result.dtype == np.uint8
    assert np.array_equal(image, before)
    assert np.array_equal(result, corrupt(image, name, severity, scale=scale, rng=seed))
    others = [corrupt(image, name, severity, scale=scale, rng=seed + i) for i in range(1, 5)]
    if name in FIXED_CORRUPTIONS:
        assert not some_differ([result, *others])
    elif image.std() > 30:
        assert some_differ([result, *others])


def test_callers_may_have_numpy_raise():
    disk.cache_clear()
    image = np.full((32, 32, 3), 100, np.uint8)
    with np.errstate(all="raise"):
        for name in CORRUPTIONS:
            corrupt(image, name, 5, rng=0)
        corrupt(image, "medmnist-c:defocus_blur", 1, edition="pathmnist")


@slower
@given(images(), st.sampled_from(list(PERTURBATIONS)), scales, seeds, st.data())
def test_perturb(source, name, scale, seed, data):
    before = source.copy()
    difficulty = data.draw(st.sampled_from(PERTURBATIONS[name].levels))
    options = {"edition": "folder", "scale": scale, "difficulty": difficulty}
    frames = perturb(source, name, rng=seed, **options)
    count = {"translate": {224: 41, 299: 41, 64: 31, 32: 16}, "motion_blur": {32: 21}}
    assert frames.shape == (count.get(name, {}).get(scale, 31), *source.shape)
    assert frames.dtype == np.uint8
    assert np.array_equal(source, before)
    assert np.array_equal(frames, perturb(source, name, rng=seed, **options))
    if name not in RANDOM_PERTURBATIONS:
        assert np.array_equal(frames, perturb(source, name, rng=seed + 1, **options))


@slower
@given(images(), st.sampled_from(["imagenet-inception", "imagenet-64", "tiny-imagenet"]))
def test_prepare(image, edition):
    side = {"imagenet-inception": 299}.get(edition, 64)
    prepared = prepare(image, edition)
    assert prepared.shape == (side, side, 3)
    assert prepared.dtype == np.uint8
    # Interpolation makes no value brighter or darker than there was one.
    assert prepared.min() >= image.min() and prepared.max() <= image.max()


@quick
@given(images(), scales, seeds)
def test_impulses_are_black_or_white_and_leave_the_rest_alone(image, scale, seed):
    struck = corrupt(image, "impulse_noise", 5, scale=scale, rng=seed)
    assert np.isin(struck[struck != image], (0, 255)).all()


@quick
@given(images(), st.integers(1, 5), scales, seeds)
def test_glass_takes_pixels_from_nowhere_but_the_neighbourhood(image, severity, scale, seed):
    """A glass-blurred value lies between the extremes of the image, but for what truncation takes off."""
    shuffled = corrupt(image, "glass_blur", severity, scale=scale, rng=seed).astype(int)
    assert shuffled.min() >= int(image.min()) - 2
    assert shuffled.max() <= image.max()
