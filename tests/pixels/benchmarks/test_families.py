"""Families later than C-bar: published pixels, what all have in common, and how they are listed."""

import re

import cv2
import numpy as np
import pytest
from PIL import Image

import robustgen
from robustgen.errors import ArgumentError
from robustgen.pixels.benchmarks import corruptions
from robustgen.pixels.benchmarks.corruptions import CORRUPTIONS
from robustgen.pixels.benchmarks.registry import MEDMNIST
from robustgen.pixels.imaging.laion_c_effects import TileBank
from tests.golden.outputs import read_outputs
from tests.helpers import cli, cli_error, photo, put_photo

STEP = 9
LATER = tuple(corruptions.LATER)
EVERY = [each for name in ("c-bar", *LATER) for each in robustgen.FAMILIES[name].corruptions.values()]
OPERATIONS = [each for each in EVERY if each.over_time != "whole"]


GOLDEN = read_outputs("families2")
KEYS = [key for key in GOLDEN if key.startswith(("laion-c", "medmnist-c"))]


@pytest.fixture(scope="module")
def tiles(tmp_path_factory):
    """A folder of the sixty pictures that the published functions were given."""
    folder = tmp_path_factory.mktemp("tiles")
    for number, picture in enumerate(GOLDEN["bank/photographs"]):
        Image.fromarray(picture).save(folder / f"{number:03d}.png")
    return folder


def source(key):
    photograph = key.split("/")[3]
    if key.startswith("laion-c/mosaic/2/"):
        if photograph == "grey":
            return GOLDEN["input/grey@252"]
        from skimage import data

        preparation = robustgen.pixels.benchmarks.corruptions.laion_c.published_preparation(
            "laion-c:mosaic", 2
        )
        return preparation.prepare(data.chelsea())
    return read_outputs("c_imagenet")["input" if photograph == "colour" else "gray_input"]


def is_of_this_opencv(key):
    """Whether the pixels do not depend on the letters of OpenCV 5, which earlier releases draw otherwise."""
    return "characters" not in key or int(cv2.__version__.partition(".")[0]) >= 5


@pytest.mark.parametrize("key", [key for key in KEYS if is_of_this_opencv(key)])
def test_pixels_are_the_published_ones(key, tiles):
    family, name, level, _, seed = key.split("/")
    edition, _, name = name.rpartition(":")
    own = {"tiles": str(tiles)} if name in ("stickers", "mosaic") else None
    got = robustgen.corrupt(
        source(key),
        f"{family}:{name}",
        int(level),
        edition=edition or "imagenet",
        parameters=own,
        rng=np.random.RandomState(int(seed)),
    )
    if len(got) == 252:
        got = got[14:238, 14:238]
    want, undecided = GOLDEN[key], GOLDEN.get(f"undecided/{key}", 0)
    assert got.shape == (224, 224) + want.shape[2:]
    assert (np.abs(got[::STEP, ::STEP].astype(int) - want) <= undecided).all()


def example(operation, rng, *, seed=3):
    """What the operation makes, at its highest severity, of an image that it takes."""
    edition, parameters, image = None, None, photo(240, 200, seed)
    if operation.family == "c-bar":
        image = photo(33, 47, seed)
    if operation.family == "medmnist-c":
        edition, image = next(iter(operation.table)), photo(224, 224, seed)
    if operation.grey:
        image = photo(28, 28, seed)[:, :, 0]
    if operation.name == "laion-c:mosaic":
        image = photo(252, 224, seed)
    if operation.needs and operation.needs.name == "depth":
        depth = np.linspace(0.1, 0.5, image[:, :, 0].size, dtype=np.float32).reshape(image.shape[:2])
        parameters = {"depth": depth}
    if operation.needs and operation.needs.name == "tiles":
        bank = TileBank.from_images([photo(60, 70, number) for number in range(20)], (16, 28))
        parameters = {"tiles": bank}
    if operation.needs and operation.needs.name == "camera":
        parameters = {"camera": (2, 6)}
    before = image.copy()
    made = robustgen.corrupt(
        image, operation.name, operation.levels[-1], edition=edition, parameters=parameters, rng=rng
    )
    assert np.array_equal(image, before)
    grey = operation.grey or (edition and robustgen.EDITIONS[edition].grey)
    assert made.dtype == np.uint8 and made.shape == image.shape[: 2 if grey else 3]
    return image, made


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_a_seed_fixes_the_pixels_and_the_image_is_left_alone(operation):
    image, made = example(operation, 1)
    assert np.array_equal(made, example(operation, 1)[1])
    # The generator of the published functions will do too.
    example(operation, np.random.RandomState(1))
    if operation.name != "mnist-c:identity":
        assert not np.array_equal(made, image)
    if not operation.random:
        assert np.array_equal(made, example(operation, 2)[1])
    elif operation.name != "laion-c:glitched":
        others = [example(operation, seed)[1] for seed in range(2, 8)]
        assert any(not np.array_equal(made, each) for each in others)


def test_each_family_says_where_it_is_from():
    for name in LATER:
        family = robustgen.FAMILIES[name]
        assert family.name == name and family.citation.endswith(".") and family.licence
        assert family.corruptions and all(each.startswith(f"{name}:") for each in family.corruptions)
        assert all(
            each.function.__doc__.splitlines()[0].endswith(".") for each in family.corruptions.values()
        )


def test_the_number_of_corruptions_is_the_published_one():
    counts = {name: len(robustgen.FAMILIES[name].names()) for name in LATER}
    assert (
        counts.items()
        >= {
            "laion-c": 6,
            "medmnist-c": 21,
            "mnist-c": 15,
            "3dcc": 6,
            "robodepth": 3,
            "robobev": 8,
            "ccc": 14,
        }.items()
    )
    assert counts["video-c"] == 12
    assert len(CORRUPTIONS) == 19


def test_families_are_listed():
    listed = cli("list").stdout
    for title in ("LAION-C", "MedMNIST-C", "MNIST-C", "ImageNet-3DCC", "RoboDepth", "CCC"):
        assert f"corruptions of {title}" in listed
    assert "scale bloodmnist, severity 5" in cli("list", "medmnist-c:bubble").stdout
    assert "severity 0" in cli("list", "ccc:fog").stdout
    assert all(f"  {name} " in listed for name in MEDMNIST)


def test_an_unknown_member_is_named_with_the_nearest():
    assert "'laion-c:glitched'" in cli_error("list", "laion-c:glitch")
    with pytest.raises(ArgumentError, match="laion-c:glitched"):
        robustgen.corrupt(photo(64, 64), "laion-c:glitchd", 3)


@pytest.mark.parametrize(
    ("name", "severity", "message"),
    [
        ("laion-c:glitched", 6, "does not exist .1 to 5."),
        ("mnist-c:fog", 2, "does not exist .1."),
        ("ccc:fog", 5.25, "does not exist .0 to 5."),
        ("medmnist-c:bubble", 3, "no published strength at scale 224 .it has at bloodmnist and pathmnist."),
    ],
)
def test_a_level_or_a_set_without_constants_is_refused(name, severity, message):
    image = photo(28, 28)[:, :, 0] if name.startswith("mnist") else photo(224, 224)
    with pytest.raises(ArgumentError, match=message):
        robustgen.corrupt(image, name, severity)


def test_no_later_family_is_loaded_before_it_is_asked_for():
    import subprocess
    import sys

    code = (
        "import numpy, sys, robustgen; robustgen.corrupt(numpy.zeros((32, 32, 3), 'uint8'), 'fog', 1)\n"
        "print([name for name in sys.modules if '.laion_c' in name or '.ccc' in name])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_sets_are_made_from_the_command_line(tmp_path):
    put_photo(tmp_path / "in" / "cat" / "a.png", 224, 224)
    flags = ["--source", tmp_path / "in", "--severities", "3", "--no-clean", "--quiet"]
    cli("make-c", *flags, "--corruptions", "laion-c:glitched,3dcc:iso_noise", "--output", tmp_path / "one")
    folders = {path.name for path in (tmp_path / "one").iterdir()}
    assert {"laion-c.glitched", "3dcc.iso_noise"} <= folders
    flags += ["--edition", "pathmnist", "--format", "png"]
    cli("make-c", *flags, "--corruptions", "medmnist-c", "--output", tmp_path / "two")
    made = {path.name for path in (tmp_path / "two").iterdir() if path.name.startswith("medmnist-c.")}
    assert len(made) == 11 and "medmnist-c.stain_deposit" in made
    cli("verify", tmp_path / "two", "--deep", "2")


def test_digits_are_corrupted_from_the_command_line(tmp_path):
    digits = np.random.default_rng(0).integers(0, 256, (2, 28, 28), np.uint8)
    for number, digit in enumerate(digits):
        path = tmp_path / "in" / str(number) / "digit.png"
        path.parent.mkdir(parents=True)
        Image.fromarray(digit).save(path)
    flags = ["--source", tmp_path / "in", "--edition", "mnist", "--format", "npy", "--quiet"]
    cli("make-c", *flags, "--corruptions", "mnist-c", "--output", tmp_path / "out")
    rows = np.load(tmp_path / "out" / "mnist-c.stripe.npy")
    # One severity and one channel.
    assert rows.shape == (2, 28, 28, 1)
    want = [robustgen.corrupt(digit, "mnist-c:stripe", 1) for digit in digits]
    assert np.array_equal(rows[..., 0], want)
    refused = cli_error("make-c", *flags, "--corruptions", "fog", "--output", tmp_path / "two")
    assert refused.startswith("edition mnist: fog ")
    assert re.findall(r"\d+ pixels|imagenet[\w-]*", refused) == ["32 pixels", "imagenet-64", "imagenet"]


def test_what_is_missing_is_named_before_the_work(tmp_path, tiles):
    put_photo(tmp_path / "in" / "cat" / "a.png", 224, 224)
    flags = ["--source", tmp_path / "in", "--edition", "imagenet", "--output", tmp_path / "out"]
    for name, severity, message in (
        ("3dcc:fog_3d", 3, "3dcc:fog_3d needs depth maps"),
        ("laion-c:stickers", 3, "the set itself contains no other picture"),
        ("laion-c:mosaic", 2, "multiples of 6, not 224 x 224"),
    ):
        assert message in cli_error("make-c", *flags, "--corruptions", name, "--severities", severity)
    assert not (tmp_path / "out").exists()
    config = tmp_path / "tiles.yaml"
    config.write_text(f"with: {{tiles: {tiles}}}\n")
    flags += ["--corruptions", "laion-c:stickers", "--severities", "3", "--no-clean", "--quiet"]
    cli("make-c", "--config", config, *flags)
    assert (tmp_path / "out" / "laion-c.stickers" / "3" / "cat").is_dir()
