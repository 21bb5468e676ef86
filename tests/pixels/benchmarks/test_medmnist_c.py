"""MedMNIST-C: the sets and their constants, grey images, marks that are drawn, and the scores."""

import hashlib
import random
import string

import cv2
import numpy as np
import pytest
from PIL import Image, ImageEnhance

import robustgen
from robustgen import metrics
from robustgen.errors import ArgumentError, ImageError, MissingDependencyError
from robustgen.pixels.benchmarks.corruptions.medmnist_c import MEDMNIST_C
from robustgen.pixels.benchmarks.registry import MEDMNIST
from robustgen.pixels.imaging import specimen
from robustgen.pixels.imaging.blur import blur_by_taps
from robustgen.pixels.imaging.rng import python_draws
from tests.helpers import photo

GREY = {
    *("breastmnist", "chestmnist", "octmnist", "organamnist", "organcmnist", "organsmnist"),
    *("pneumoniamnist", "tissuemnist"),
}


def test_there_are_twelve_sets_and_eight_are_grey():
    assert len(MEDMNIST) == 12 and {name for name in MEDMNIST if robustgen.EDITIONS[name].grey} == GREY
    for name in MEDMNIST:
        measured = metrics.alexnet_balanced_errors(name).keys() - {"clean"}
        assert {*MEDMNIST_C.names(name)} == {f"medmnist-c:{each}" for each in measured}


@pytest.mark.parametrize(("name", "shape"), [("pathmnist", (64, 64, 3)), ("chestmnist", (64, 64))])
def test_editions_resize_if_asked(name, shape):
    small = np.zeros((28, 28, *shape[2:]), np.uint8)
    with pytest.raises(ImageError, match=f"{name}@224"):
        robustgen.prepare(small, name)
    resized = robustgen.prepare(small, f"{name}@64")
    assert resized.shape[:2] == (64, 64)
    corrupted = robustgen.corrupt(resized, "medmnist-c:pixelate", 3, edition=f"{name}@64")
    assert corrupted.shape == shape


def test_grey_sets_stay_grey():
    image = photo(224, 224)
    grey = np.asarray(Image.fromarray(image).convert("L"))
    # What acts on single values is the same in one channel.
    made = robustgen.corrupt(grey, "medmnist-c:gamma_corr_up", 5, edition="chestmnist")
    assert np.array_equal(made, np.array([int(255.999 * (v / 255) ** 1.6) for v in range(256)])[grey])
    assert robustgen.corrupt(grey, "fog", 3, edition="breastmnist", rng=1).shape == (224, 224)
    assert robustgen.corrupt(image, "fog", 3, edition="bloodmnist", rng=1).shape == (224, 224, 3)


@pytest.mark.parametrize(
    ("name", "enhance", "factors"),
    [
        ("brightness_up", ImageEnhance.Brightness, (1.1, 1.15, 1.2, 1.22, 1.25)),
        ("contrast_down", ImageEnhance.Contrast, (0.8, 0.7, 0.6, 0.55, 0.5)),
    ],
)
def test_light_is_changed_as_pillow_does(name, enhance, factors):
    image = photo(224, 224)
    for severity, factor in enumerate(factors, 1):
        made = robustgen.corrupt(image, f"medmnist-c:{name}", severity, edition="pathmnist")
        assert np.array_equal(made, np.asarray(enhance(Image.fromarray(image)).enhance(factor)))


@pytest.mark.parametrize("taps", [3, 5, 11, 25])
def test_the_gaussian_is_that_of_its_taps(taps):
    image, sigma = photo(60, 70), 0.15 * taps + 0.35
    weights = np.exp(-0.5 * ((np.arange(taps) - taps // 2) / sigma) ** 2)
    weights /= weights.sum()
    wide = np.pad(image.astype(float), [(taps // 2,) * 2] * 2 + [(0, 0)], mode="reflect")
    lines = sum(w * wide[n : n + 60] for n, w in enumerate(weights))
    want = sum(w * lines[:, n : n + 70] for n, w in enumerate(weights))
    differing = blur_by_taps(image, taps) != np.rint(want)
    assert (np.abs(want - np.floor(want) - 0.5)[differing] < 1e-3).all() and differing.mean() < 1e-3


def test_missing_and_other_masks_are_refused(tmp_path):
    own = {"edition": "pathmnist", "parameters": {"ink": str(tmp_path)}}
    with pytest.raises(MissingDependencyError, match="cannot be read"):
        robustgen.corrupt(photo(224, 224), "medmnist-c:stain_deposit", 1, **own)
    np.savez(tmp_path / "inks.npz", **{"3": np.ones((10, 24, 24))})
    with pytest.raises(MissingDependencyError, match="is not the published file"):
        robustgen.corrupt(photo(224, 224), "medmnist-c:stain_deposit", 1, **own)
    with pytest.raises(ArgumentError, match="sizes 1, 2, 3, 4, 5, not 6"):
        specimen.read_masks(6)


def test_stains_lie_where_the_published_draws_put_them():
    image, draws = photo(224, 224), random.Random(5)
    mask = specimen.read_masks(3)[draws.randint(0, 9)]
    left, top = draws.randint(10, 190), draws.randint(10, 190)
    want = image.copy()
    want[top : top + 24, left : left + 24][mask == 1] = 0
    rng = np.random.RandomState()
    keys = random.Random(5).getstate()[1]
    rng.set_state(("MT19937", np.array(keys[:-1], np.uint32), keys[-1]))
    got = robustgen.corrupt(image, "medmnist-c:stain_deposit", 1, edition="pathmnist", rng=rng)
    assert np.array_equal(got, want)
    # The generator goes on where the draws stopped.
    again = robustgen.corrupt(image, "medmnist-c:stain_deposit", 1, edition="pathmnist", rng=rng)
    assert not np.array_equal(again, got)


def test_python_draws_go_on_with_either_generator():
    legacy, plain = np.random.RandomState(3), random.Random()
    plain.setstate((3, (*map(int, legacy.get_state()[1]), legacy.get_state()[2]), None))
    with python_draws(legacy) as draws:
        assert [draws.randint(0, 99) for _ in range(900)] == [plain.randint(0, 99) for _ in range(900)]
    with python_draws(legacy) as draws:
        assert draws.random() == plain.random()
    ours = np.random.default_rng(3)
    with python_draws(ours) as draws:
        first = draws.random()
    with python_draws(ours) as draws:
        assert draws.random() != first


def test_a_disk_is_left_of_a_skin():
    white = np.full((224, 224, 3), 255, np.uint8)
    for severity, share in enumerate((1.10, 1.05, 1.00, 0.90, 0.95), 1):
        kept = robustgen.corrupt(white, "medmnist-c:black_corner", severity, edition="dermamnist")
        y, x = np.mgrid[:224, :224]
        away, radius = np.hypot(y - 112, x - 112), int(112 * share)
        assert (kept[away < radius - 1] == 255).all() and not kept[away > radius + 1].any()


@pytest.mark.parametrize("seed", range(5))
def test_bubbles_are_lighter_and_few(seed):
    black = np.zeros((224, 224, 3), np.uint8)
    shown = robustgen.corrupt(black, "medmnist-c:bubble", 5, edition="pathmnist", rng=seed)
    # Rims of alpha 130 and disks of 100 of white, which replace each other.
    assert set(np.unique(shown)) == {0, 100, 130}


def test_letters_do_not_depend_on_the_release_of_opencv(monkeypatch):
    grey = np.full((224, 224, 3), 128, np.uint8)
    monkeypatch.setattr(specimen.cv2, "putText", None, raising=False)
    written = specimen.write_letters(grey, 6, 10, 0.18, random.Random(1))
    assert hashlib.md5(written.tobytes()).hexdigest() == "48dd405f32b93a0bef24b2b1a1a2df2f"


@pytest.mark.skipif(int(cv2.__version__.partition(".")[0]) < 5, reason="OpenCV 4 has other letters")
def test_letters_are_those_of_opencv_5():
    draws, noise = random.Random(2), np.random.default_rng(2).integers(0, 256, (224, 224, 3), np.uint8)
    for number in range(300):
        word = "".join(draws.choice(string.ascii_lowercase) for _ in range(10))
        scale, place = draws.randint(14, 18) / 100, (draws.randint(10, 144), draws.randint(10, 214))
        colour = tuple(draws.randint(0, 255) for _ in range(3))
        own, wanted = noise.copy(), noise.copy()
        specimen._write_word(own, word, *place, scale, colour)
        cv2.putText(wanted, word, place, cv2.FONT_HERSHEY_DUPLEX, scale, colour, 1, cv2.LINE_AA)
        assert np.array_equal(own, wanted), (number, word, scale)


def test_sizes_that_marks_do_not_fit_are_refused():
    for name, message in (("stain_deposit", "sides of at least 52"), ("bubble", "sides of at least 34")):
        with pytest.raises(ArgumentError, match=message):
            robustgen.corrupt(photo(32, 32), f"medmnist-c:{name}", 5, edition="pathmnist")


@pytest.mark.parametrize(("severity", "least"), [(1, 58), (5, 90)])
def test_words_fit_into_every_image_that_is_wide_enough(severity, least):
    for seed in range(40):
        image = np.full((32, least, 3), 128, np.uint8)
        made = robustgen.corrupt(image, "medmnist-c:characters", severity, edition="dermamnist", rng=seed)
        assert made.shape == image.shape and (made != image).any()
        with pytest.raises(ArgumentError, match=f"letters need a width of at least {least} pixels"):
            robustgen.corrupt(image[:, 1:], "medmnist-c:characters", severity, edition="dermamnist", rng=seed)


def test_images_of_another_size_are_refused():
    with pytest.raises(
        robustgen.errors.ImageError, match=r"MedMNIST\+ images are 224 x 224 pixels, not 64 x 28"
    ):
        robustgen.prepare(photo(28, 64), "pathmnist")
    with pytest.raises(ArgumentError, match="has no perturbations"):
        robustgen.perturb(photo(224, 224), "tilt", edition="pathmnist")


def test_balanced_errors_by_hand():
    # Recalls of the three classes: 1/2, 1 and 0.
    assert metrics.balanced_error([0, 1, 1, 1, 0], [0, 0, 1, 1, 2]) == pytest.approx(0.5)
    scores = [[0.9, 0.2], [0.6, 0.4], [0.4, 0.8], [0.1, 0.3]]
    labels = [[1, 0], [0, 0], [1, 1], [0, 1]]
    # At 0.5 the first label has recalls 1/2 and 1/2, the second 1 and 1/2.
    assert metrics.multi_label_balanced_error(scores, labels) == pytest.approx((0.5 + 0.25) / 2)
    # At 0.7 for the first label: of those without it both are right.
    found = metrics.multi_label_balanced_error(scores, labels, [0.7, 0.5])
    assert found == pytest.approx((0.25 + 0.25) / 2)
    with pytest.raises(ArgumentError, match="thresholds"):
        metrics.multi_label_balanced_error(scores, labels, [0.5, 0.5, 0.5])


def test_errors_relative_to_alexnet_by_hand():
    alexnet = metrics.alexnet_balanced_errors("octmnist")
    assert alexnet["clean"] == pytest.approx(0.202) and alexnet["pixelate"] == 0.3124
    errors = [0.1, 0.2, 0.3, 0.4, 0.562]
    assert metrics.balanced_corruption_error("pixelate", errors, alexnet) == pytest.approx(1.0)
    relative = metrics.relative_balanced_corruption_error("pixelate", errors, 0.1020, alexnet)
    assert relative == pytest.approx((0.3124 - 0.1020) / (0.3124 - 0.202))
    both = {"pixelate": errors, "motion_blur": [0.4892] * 5}
    assert metrics.mean_balanced_corruption_error(list(both), both, alexnet) == pytest.approx(1.0)
    mean = metrics.mean_relative_balanced_corruption_error(list(both), both, 0.202, alexnet)
    assert mean == pytest.approx(1.0)
    # A fact of the published baseline: AlexNet errs less on these than on clean images.
    pneumonia = metrics.alexnet_balanced_errors("pneumoniamnist")
    for name in ("contrast_up", "gamma_corr_up"):
        assert metrics.relative_balanced_corruption_error(name, [0.2] * 5, 0.1, pneumonia) < 0
    with pytest.raises(ArgumentError, match="unknown data set 'mnist'"):
        metrics.alexnet_balanced_errors("mnist")
    with pytest.raises(ArgumentError, match="no value for 'fog'"):
        metrics.balanced_corruption_error("fog", errors, alexnet)
