"""AugMix: Pillow's pixels, the published draws and their distributions, and what callers get wrong."""

import dataclasses
import json

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps
from scipy import stats

import robustgen
from robustgen.errors import ArgumentError, ArgumentTypeError, UnknownNameError
from robustgen.pixels.imaging.augmix import OPERATION_SETS, OPERATIONS, AugMix, MixStep, Mixture, draw, mix
from robustgen.pixels.imaging.jpeg import encode_jpeg
from robustgen.sets.dataset.recipes import item_rng
from tests.helpers import cifar_folder, cli, cli_error, photo, pictures, pixels_of, put_photo, tree

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
def test_both_kinds_of_generator_draw_alike(severity, alpha, operations):
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
@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
def test_the_ends_of_the_ranges_work(choices, kind):
    parameters, rng = AugMix(operations="all", **choices), kind(0)
    mixtures = [draw(parameters, rng) for _ in range(200)]
    assert np.isfinite([[*mixture.weights, mixture.share] for mixture in mixtures]).all()
    assert mix(photo(32, 32), mixtures[0]).shape == (32, 32, 3)


@pytest.mark.parametrize(
    ("choices", "kind", "message"),
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
def test_wrong_arguments_are_answered_in_one_line(choices, kind, message):
    with pytest.raises(kind) as caught:
        robustgen.augmix(photo(32, 32), **choices)
    assert str(caught.value) == message


@pytest.mark.parametrize("image", [photo(32, 32) / 255, photo(32, 32)[:0], [[1, 2]], None])
def test_what_is_no_image_is_refused(image):
    with pytest.raises((ArgumentError, ArgumentTypeError), match="image must"):
        robustgen.augmix(image)


# --- make-augmix ----------------------------------------------------------------------------------


@pytest.fixture
def photos(tmp_path):
    """Five photographs of two classes, one of them smaller than any corruption allows."""
    folder = tmp_path / "train"
    for i, name in enumerate(["a/one.jpg", "a/two.png", "b/drei ü.JPEG", "b/four.jpg"]):
        put_photo(folder / name, 40 + i, 50, i)
    put_photo(folder / "b" / "tiny.png", 9, 20, 9)
    return folder


def make(photos, output, *more, status=0):
    return cli("make-augmix", "--source", photos, "--output", output, "--jobs", 1, *more, status=status)


def test_make_augmix_writes_copies_by_class(photos, tmp_path):
    result = make(photos, tmp_path / "out")
    assert result.stdout.startswith("10 images in ")
    names = ["a/one.jpg", "a/two.JPEG", "b/drei ü.JPEG", "b/four.jpg", "b/tiny.JPEG"]
    assert pictures(tmp_path / "out") == {f"augmix/{copy}/{name}" for copy in (1, 2) for name in names}
    assert make(photos, tmp_path / "out").output.startswith("nothing to do: all 10 images")
    checked = cli("verify", tmp_path / "out", "--deep", "all")
    assert checked.output.startswith("10 files checked, 5 images regenerated, 0 findings")
    manifest = json.loads((tmp_path / "out" / "dataset.json").read_text())
    assert manifest["kind"] == "AugMix" and "AugMix" in manifest["citation"]
    assert manifest["settings"]["parameters"]["augmix/2"] == dataclasses.asdict(AugMix())
    assert "corruptions" not in manifest["config"]
    put_photo(photos / "a" / "one.jpg", 40, 50, seed=77)
    found = cli("verify", tmp_path / "out", "--deep", "all", status=1).output
    assert "differs" in found and "augmix/2/a/one.jpg" in found and "two" not in found


def test_the_files_hold_what_the_function_gives(photos, tmp_path):
    choices = {"severity": 5, "width": 2, "depth": 2, "alpha": 0.5, "operations": "all"}
    flags = [part for name, value in choices.items() for part in (f"--{name}", value)]
    make(photos, tmp_path / "out", "--seed", 4, "--quality", 70, *flags)
    image = pixels_of(photos / "a" / "two.png")
    for copy in (1, 2):
        rng = item_rng(4, "augmix", "folder", "augmix", copy, "a/two.png")
        expected = encode_jpeg(robustgen.augmix(image, rng=rng, **choices), 70, optimise=True)
        assert (tmp_path / "out" / "augmix" / str(copy) / "a" / "two.JPEG").read_bytes() == expected


def test_more_copies_later_leave_the_earlier_ones_alone(photos, tmp_path):
    make(photos, tmp_path / "out", "--copies", 1)
    before = {name: content for name, content in tree(tmp_path / "out").items() if name.endswith("one.jpg")}
    make(photos, tmp_path / "out", "--copies", 3)
    after = tree(tmp_path / "out")
    assert before.items() <= after.items()
    assert len(pictures(tmp_path / "out")) == 15
    assert len({after[f"augmix/{copy}/a/one.jpg"] for copy in (1, 2, 3)}) == 3
    assert "0 findings" in cli("verify", tmp_path / "out", "--deep", "all").output


def test_other_parameters_on_the_same_output_are_refused(photos, tmp_path):
    make(photos, tmp_path / "out")
    message = cli_error("make-augmix", "--source", photos, "--output", tmp_path / "out", "--severity", 4)
    assert "parameters.augmix/1.severity was 3.0 and is now 4.0" in message
    assert make(photos, tmp_path / "out", "--severity", 4, "--overwrite").stdout.startswith("10 images")


def test_a_damaged_image_is_named_and_the_others_are_made(photos, tmp_path):
    (photos / "a" / "one.jpg").write_bytes((photos / "a" / "one.jpg").read_bytes()[:300])
    result = make(photos, tmp_path / "out", status=1)
    assert "'a/one.jpg'" in result.stderr
    assert len(pictures(tmp_path / "out")) == 8


def test_a_dry_run_makes_nothing(photos, tmp_path):
    output = make(photos, tmp_path / "out", "--dry-run", "--copies", 4, "--limit", 3).output
    assert "12 outputs, 4 of each image" in output
    assert not (tmp_path / "out").exists()


def test_choices_come_from_a_file_too(photos, tmp_path):
    config = tmp_path / "my.yaml"
    config.write_text(f"source: {photos}\nedition: imagenet-64\ncopies: 1\nwidth: 1\nseverities: 1-3\n")
    cli("make-augmix", "--config", config, "--output", tmp_path / "out", "--jobs", 1)
    assert pixels_of(tmp_path / "out" / "augmix" / "1" / "a" / "one.jpg").shape == (64, 64, 3)
    settings = json.loads((tmp_path / "out" / "dataset.json").read_text())["settings"]
    assert settings["parameters"]["augmix/1"]["width"] == 1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--copies", 0], "--copies: must be greater than or equal to 1, not 0"),
        (["--severity", 0], "--severity: must be greater than or equal to 0.1, not 0.0"),
        (["--width", 101], "--width: must be less than or equal to 100, not 101"),
        (["--depth", 0], "--depth: must be -1 or 1 to 100, not 0"),
        (["--alpha", 0], "--alpha: must be greater than or equal to 0.1, not 0.0"),
        (["--operations", "every"], "--operations: must be 'augmix' or 'all', not 'every'"),
    ],
)
def test_wrong_flags_are_answered_in_one_line(photos, tmp_path, flags, message):
    error = cli_error("make-augmix", "--source", photos, "--output", tmp_path / "out", *flags)
    assert error == message
    assert not (tmp_path / "out").exists()


def test_the_images_that_models_are_scored_on_are_refused(tmp_path, monkeypatch, photos):
    output = ["--output", tmp_path / "out"]
    monkeypatch.setenv("IMAGENET_VAL", str(photos))
    message = cli_error("make-augmix", "--dataset", "imagenet", *output)
    assert message.startswith("--dataset imagenet names test images; give the training images with")
    cifar, _, _ = cifar_folder(tmp_path / "cifar")
    assert "has no class folders" in cli_error("make-augmix", "--source", cifar, *output)
    (photos / "val").mkdir()
    (photos / "val" / "val_annotations.txt").write_text("")
    assert "validation images of Tiny ImageNet" in cli_error("make-augmix", "--source", photos, *output)
    assert "no source: give" in cli_error("make-augmix", *output)


def test_the_edition_of_a_data_set_goes_with_training_images(photos, tmp_path):
    make(photos, tmp_path / "out", "--dataset", "imagenet-64", "--limit", 1, "--jobs", 1)
    (name,) = {name for name in pictures(tmp_path / "out") if name.startswith("augmix/1/")}
    assert pixels_of(tmp_path / "out" / name).shape == (64, 64, 3)
