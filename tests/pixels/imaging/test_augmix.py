"""AugMix: Pillow's pixels, the published draws and their distributions, and what callers get wrong."""

import dataclasses

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps
from scipy import stats

import robustgen
from robustgen.errors import ArgumentError, ArgumentTypeError, UnknownNameError
from robustgen.pixels.imaging.augmix import OPERATION_SETS, OPERATIONS, AugMix, MixStep, Mixture, draw, mix
from tests.helpers import photo

# --- as published, written down plainly -----------------------------------------------------------


def affine(picture, matrix):
    return picture.transform(picture.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)


def factor(level):
    return level * 1.8 / 10 + 0.1


def sized(level, side):
    return int(level * (side / 3) / 10)


PILLOW = {
    "autocontrast": lambda p, _: ImageOps.autocontrast(p),
    "equalize": lambda p, _: ImageOps.equalize(p),
    "posterize": lambda p, level: ImageOps.posterize(p, 4 - int(level * 4 / 10)),
    "rotate": lambda p, level: p.rotate(int(level * 30 / 10), Image.Resampling.BILINEAR),
    "solarize": lambda p, level: ImageOps.solarize(p, 256 - int(level * 256 / 10)),
    "shear_x": lambda p, level: affine(p, (1, level * 0.3 / 10, 0, 0, 1, 0)),
    "shear_y": lambda p, level: affine(p, (1, 0, 0, level * 0.3 / 10, 1, 0)),
    "translate_x": lambda p, level: affine(p, (1, 0, sized(level, p.width), 0, 1, 0)),
    "translate_y": lambda p, level: affine(p, (1, 0, 0, 0, 1, sized(level, p.height))),
    "color": lambda p, level: ImageEnhance.Color(p).enhance(factor(level)),
    "contrast": lambda p, level: ImageEnhance.Contrast(p).enhance(factor(level)),
    "brightness": lambda p, level: ImageEnhance.Brightness(p).enhance(factor(level)),
    "sharpness": lambda p, level: ImageEnhance.Sharpness(p).enhance(factor(level)),
}
LEVELLESS = ("autocontrast", "equalize")
SIGNED = ("rotate", "shear_x", "shear_y", "translate_x", "translate_y")


def published(picture, rng, severity=3, width=3, depth=-1, alpha=1.0, names=tuple(PILLOW)[:9]):
    """The whole of AugMix with one draw after the other, unrounded."""
    weights = rng.dirichlet([alpha] * width)
    share = rng.beta(alpha, alpha)
    total = np.zeros((picture.height, picture.width, 3))
    for weight in weights:
        chained = picture
        for _ in range(depth if depth > 0 else rng.randint(1, 4)):
            name = names[rng.randint(0, len(names))]
            level = 0 if name in LEVELLESS else rng.uniform(0.1, severity)
            if name in SIGNED and rng.uniform() > 0.5:
                level = -level
            chained = PILLOW[name](chained, level)
        total += weight * np.asarray(chained, np.float64)
    return (1 - share) * np.asarray(picture, np.float64) + share * total


# --- pixels ---------------------------------------------------------------------------------------


def dark(height, width):
    """A photo of a part of the range, which each channel has at another place."""
    return (photo(height, width) // 3 + np.array([20, 60, 110], np.uint8)).astype(np.uint8)


IMAGES = {
    "photo": photo(224, 224),
    "landscape": photo(61, 90, 1),
    "portrait": photo(97, 40, 2),
    "dark": dark(50, 50),
    "one pixel": np.array([[[7, 200, 255]]], np.uint8),
    "one row": photo(32, 33)[:1],
    "flat": np.full((40, 40, 3), 130, np.uint8),
    "two values": np.repeat(np.eye(32, dtype=np.uint8)[:, :, None] * 255, 3, axis=2),
    "few pixels": np.random.default_rng(0).integers(0, 256, (17, 16, 3), np.uint8),
    "noise": np.random.default_rng(1).integers(0, 256, (64, 64, 3), np.uint8),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("image", IMAGES.values(), ids=IMAGES)
def test_operations_give_the_pixels_of_pillow(name, image):
    rng = np.random.default_rng(list(OPERATIONS).index(name))
    levels = [0.1, 1.0, 3.0, 9.999, *rng.uniform(0.1, 3, 4), *rng.uniform(3, 10, 2)]
    signs = (1, -1) if name in SIGNED else (1,)
    before = image.copy()
    for level in [0.0] if name in LEVELLESS else [sign * level for level in levels for sign in signs]:
        expected = np.asarray(PILLOW[name](Image.fromarray(image), level))
        np.testing.assert_array_equal(OPERATIONS[name](image, level), expected, f"level {level}")
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize("operations", ["augmix", "all"])
@pytest.mark.parametrize("seed", range(12))
def test_a_random_state_gives_the_published_mix(seed, operations):
    choices = {"severity": (1, 3, 10)[seed % 3], "width": 1 + seed % 4, "depth": (-1, 1, 4)[seed % 3]}
    choices["alpha"] = (1.0, 0.3)[seed % 2]
    image = photo(60, 80, seed)
    names = tuple(PILLOW)[: 9 if operations == "augmix" else 13]
    expected = published(Image.fromarray(image), np.random.RandomState(seed), names=names, **choices)
    rng = np.random.RandomState(seed)
    mixed = robustgen.augmix(image, operations=operations, rng=rng, **choices)
    # Rounded to nearest, but for the error of single precision.
    assert np.abs(mixed - expected).max() <= 0.5 + 1e-3
    after = np.random.RandomState(seed)
    published(Image.fromarray(image), after, names=names, **choices)
    assert rng.uniform() == after.uniform()


def test_a_mix_of_unchanged_images_is_the_image():
    image = photo(50, 70)
    for seed in range(20):
        weights = np.random.default_rng(seed).dirichlet([1.0] * 5)
        mixture = Mixture(tuple(weights.tolist()), seed / 20, ((),) * 5)
        np.testing.assert_array_equal(mix(image, mixture), image)


def test_mixes_are_rounded_to_the_nearest_value():
    image = np.full((1, 1, 3), 128, np.uint8)
    black = (MixStep("translate_x", 10.0),)
    for share, expected in ((0.25, 96), (0.251, 96), (0.255, 95), (0.5, 64), (1.0, 0)):
        wide = np.repeat(image, 3, axis=1)
        assert mix(wide, Mixture((1.0,), share, (black,)))[0, 2, 0] == expected


# --- what is drawn --------------------------------------------------------------------------------

DRAWS = 4000
# The seeds are fixed: the bound only had to be unlikely to be missed by chance when they were chosen.
LEAST_P = 1e-3


def drawn(seed=0, **choices):
    parameters, rng = AugMix(**choices), np.random.default_rng(seed)
    return [draw(parameters, rng) for _ in range(DRAWS)]


def steps_of(mixtures):
    return [step for mixture in mixtures for chain in mixture.chains for step in chain]


# A RandomState draws what is published, number by number, as seen above.
@pytest.mark.parametrize(("severity", "alpha", "operations"), [(3, 1.0, "augmix"), (7.5, 0.4, "all")])
def test_both_generators_draw_alike(severity, alpha, operations):
    parameters, rng = AugMix(severity, alpha=alpha, operations=operations), np.random.RandomState(0)
    both = [draw(parameters, rng) for _ in range(DRAWS)], drawn(**dataclasses.asdict(parameters))
    names = OPERATION_SETS[operations]
    for of in (
        lambda mixture: mixture.weights,
        # Marginals do not tell everything: weights are correlated.
        lambda mixture: [mixture.weights[0] - mixture.weights[1], mixture.weights[1] - mixture.weights[2]],
        lambda mixture: [mixture.share],
        lambda mixture: [len(chain) for chain in mixture.chains],
        lambda mixture: [abs(step.level) for step in steps_of([mixture])],
        # Each operation with its own range of levels, and their signs.
        lambda mixture: [20 * names.index(step.operation) + step.level for step in steps_of([mixture])],
    ):
        one, other = ([value for mixture in mixtures for value in of(mixture)] for mixtures in both)
        assert stats.ks_2samp(one, other).pvalue > LEAST_P


def test_steps_are_drawn_independently():
    names, counts = OPERATION_SETS["augmix"], np.zeros((9, 9))
    for first, second in (chain for mixture in drawn(depth=2) for chain in mixture.chains):
        counts[names.index(first.operation), names.index(second.operation)] += 1
    assert stats.chi2_contingency(counts).pvalue > LEAST_P


# --- the public function --------------------------------------------------------------------------


def test_the_input_stays_as_it_is_and_the_result_is_new():
    image = photo(40, 50)
    before = image.copy()
    for seed in range(30):
        mixed = robustgen.augmix(image, rng=seed, operations="all")
        assert mixed.shape == image.shape and mixed.dtype == np.uint8
        assert mixed.flags.writeable and not np.shares_memory(mixed, image)
        np.testing.assert_array_equal(image, before)


def test_same_seed_same_pixels_and_without_one_every_call_is_different():
    image, rng = photo(40, 50), np.random.default_rng(1)
    first, again, other = (robustgen.augmix(image, rng=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(robustgen.augmix(image, rng=rng), first)
    assert (robustgen.augmix(image, rng=rng) != first).any()
    assert (robustgen.augmix(image) != robustgen.augmix(image)).any()


def test_images_may_be_pictures_grey_strided_or_read_only():
    image = photo(40, 50)
    fixed, grey = image.copy(), image[:, :, 0]
    fixed.flags.writeable = False
    for given, alike in (
        (Image.fromarray(image), image),
        (np.repeat(image, 2, axis=0)[::2], image),
        (fixed, image),
        (grey, np.repeat(grey[:, :, None], 3, axis=2)),
    ):
        np.testing.assert_array_equal(robustgen.augmix(given, rng=3), robustgen.augmix(alike, rng=3))


@pytest.mark.parametrize(
    "choices", [{"severity": 0.1}, {"severity": 10}, {"alpha": 0.1, "width": 1}, {"alpha": 1000}]
)
@pytest.mark.parametrize("make_rng", [np.random.default_rng, np.random.RandomState])
def test_the_ends_of_the_ranges_work(choices, make_rng):
    parameters, rng = AugMix(operations="all", **choices), make_rng(0)
    mixtures = [draw(parameters, rng) for _ in range(200)]
    assert np.isfinite([[*mixture.weights, mixture.share] for mixture in mixtures]).all()
    assert mix(photo(32, 32), mixtures[0]).shape == (32, 32, 3)


@pytest.mark.parametrize(
    ("choices", "error", "message"),
    [
        ({"severity": 0}, ArgumentError, "severity must be from 0.1 to 10, not 0"),
        ({"severity": float("nan")}, ArgumentError, "severity must be from 0.1 to 10, not nan"),
        ({"severity": 10**400}, ArgumentError, f"severity must be from 0.1 to 10, not 1{'0' * 400}"),
        ({"severity": "3"}, ArgumentTypeError, "severity must be a number, not str"),
        ({"severity": True}, ArgumentTypeError, "severity must be a number, not bool"),
        ({"alpha": 0.09}, ArgumentError, "alpha must be from 0.1 to 1000, not 0.09"),
        ({"width": 0}, ArgumentError, "width must be 1 to 100, not 0"),
        ({"width": 10**9}, ArgumentError, "width must be 1 to 100, not 1000000000"),
        ({"width": 3.0}, ArgumentTypeError, "width must be an int, not float"),
        ({"depth": 0}, ArgumentError, "depth must be -1 or 1 to 100, not 0"),
        ({"depth": -1.0}, ArgumentTypeError, "depth must be an int, not float"),
        ({"depth": True}, ArgumentTypeError, "depth must be an int, not bool"),
        ({"operations": "al"}, UnknownNameError, "unknown set of operations 'al' (did you mean 'all'?)"),
        ({"operations": ["rotate"]}, ArgumentTypeError, "operations must be a string, not list"),
        ({"rng": -1}, ArgumentError, "rng must not be negative, not -1"),
    ],
)
def test_wrong_arguments_are_answered_in_one_line(choices, error, message):
    with pytest.raises(error) as caught:
        robustgen.augmix(photo(32, 32), **choices)
    assert str(caught.value) == message


@pytest.mark.parametrize("image", [photo(32, 32) / 255, photo(32, 32)[:0], [[1, 2]], None])
def test_what_is_no_image_is_refused(image):
    with pytest.raises((ArgumentError, ArgumentTypeError), match="image must"):
        robustgen.augmix(image)
