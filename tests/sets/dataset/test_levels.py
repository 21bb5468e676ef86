"""Files of more than 8 bits: one rule for all images of a set, recorded and followed everywhere."""

import warnings

import numpy as np
import pytest
from PIL import Image

import robustgen
from robustgen.errors import DecodingWarning
from robustgen.torch import CorruptedDataset, SourceDataset
from tests.helpers import cli, cli_error, manifest, pixels_of, tree

FEW = ("--corruptions", "contrast", "--severities", "1", "--format", "png", "--jobs", "1")
DARK = (
    "5 of 7 images come out in at most 16 grey levels, as their values are 0 to 4095: "
    "set levels, such as 0,4095"
)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Five slices of 12 bits in 16-bit files, and two of 8 bits."""
    root = tmp_path_factory.mktemp("slices")
    (root / "knee").mkdir()
    ramp = np.arange(64 * 64).reshape(64, 64)
    for number in range(7):
        values = (ramp % 4096).astype(np.uint16) if number < 5 else (ramp % 256).astype(np.uint8)
        Image.fromarray(values).save(root / f"knee/{number}.png")
    return root


def clean_of(output, number):
    return pixels_of(output / f"clean/knee/{number}.png")[..., 0]


def test_images_of_few_greys_are_counted_each_time(source, tmp_path):
    command = ("make-c", "--source", source, *FEW, "--output", tmp_path / "out")
    for shard in ("1/2", "2/2"):
        said = cli(*command, "--shard", shard).stderr.splitlines()
    assert DARK in said
    assert cli(*command).stderr.splitlines()[-1] == DARK
    assert (
        clean_of(tmp_path / "out", 0).max() == 15 and "levels" not in manifest(tmp_path / "out")["settings"]
    )
    cli("verify", tmp_path / "out", "--deep", "all")
    (source / "bright").mkdir()
    try:
        Image.fromarray(np.full((64, 64), 2**16 - 1, np.uint16)).save(source / "bright/0.png")
        said = cli(*command[:-1], tmp_path / "bright").stderr.splitlines()[-1]
        assert said == DARK.replace("7", "8", 1)
    finally:
        (source / "bright/0.png").unlink()
        (source / "bright").rmdir()


def test_levels_are_recorded_and_followed(source, tmp_path):
    out = tmp_path / "out"
    said = cli("make-c", "--source", source, *FEW, "--output", out, "--levels", "0,4095")
    assert "levels" not in said.stderr
    want = np.rint(np.arange(64 * 64).reshape(64, 64) % 4096 / 4095 * 255)
    assert np.array_equal(clean_of(out, 0), want)
    assert np.array_equal(clean_of(out, 6), np.arange(64 * 64).reshape(64, 64) % 256)
    assert manifest(out)["settings"]["levels"] == manifest(out)["config"]["levels"] == [0, 4095]
    assert "7 images regenerated, 0 findings" in cli("verify", out, "--deep", "all").stdout
    assert "created with different settings" in cli_error(
        "make-c", "--source", source, *FEW, "--output", out, "--levels", "0,1023"
    )
    keywords = {"corruptions": "contrast", "severities": 1, "format": "png", "jobs": 1, "quiet": True}
    robustgen.make_c(source=source, **keywords, levels=(0, 4095), output=tmp_path / "python")
    assert tree(tmp_path / "python") == tree(out)
    base = SourceDataset(source, levels=(0, 4095))
    streamed = CorruptedDataset(base, "contrast", 1, edition="folder", jpeg=None)
    assert np.array_equal(np.asarray(streamed[0][0]), pixels_of(out / "contrast/1/knee/0.png"))


def test_evaluate_warns_too(source):
    def model(pixels):
        return np.zeros((len(pixels), 1), np.float32)

    chosen = {"source": source, "corruptions": "contrast", "severities": 1, "jobs": 1, "quiet": True}
    assert DARK in robustgen.evaluate(model, **chosen).notes
    assert DARK not in robustgen.evaluate(model, **chosen, levels="0,4095").notes


def test_python_warns_of_dark_images(source):
    picture = Image.open(source / "knee/0.png")
    for use in (
        lambda: SourceDataset(source)[0],
        lambda: SourceDataset(source, convert=False)[0],
        lambda: robustgen.corrupt(picture, "contrast", 1),
        lambda: robustgen.prepare(picture, "imagenet-64"),
    ):
        with pytest.warns(DecodingWarning, match=r"at most 16 grey levels: .* \(0, 4095\)"):
            use()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SourceDataset(source, levels=(0, 4095))[0]
        SourceDataset(source)[6]
        robustgen.corrupt(Image.fromarray(np.full((64, 64), 2**13, np.uint16)), "contrast", 1)


def test_commands_that_write_no_set_warn_too(source, tmp_path):
    one = ("--corruptions", "contrast", "--source", source)
    for command, said in (
        (("preview", *one, "--output", tmp_path / "sheet.png"), "an image of more than 8 bits comes out in"),
        (("calibrate", *one, "--images", 7), DARK),
    ):
        (line,) = (line for line in cli(*command).stderr.splitlines() if "levels" in line)
        assert line.startswith(f"warning: {said}")
        assert "levels" not in cli(*command, "--levels", "0,4095").stderr


def test_slices_of_one_volume_have_one_rule(tmp_path):
    for number, scale in enumerate((0.5, 2)):
        values = np.full((40, 40), scale, np.float32)
        (tmp_path / "scan/a").mkdir(parents=True, exist_ok=True)
        Image.fromarray(values).save(tmp_path / f"scan/a/{number}.tif")
    command = ("make-c", "--source", tmp_path / "scan", *FEW, "--output", tmp_path / "out")
    said = cli(*command, status=1).stderr
    assert said.count("set levels, its values of black and white, or convert it to 8 bits") == 2
    assert "levels was None and is now [0.0, 4.0]" in cli_error(*command, "--levels", "0,4")
    cli(*command, "--levels", "0,4", "--overwrite")
    assert [int(pixels_of(tmp_path / f"out/clean/a/{number}.png").max()) for number in range(2)] == [32, 128]


@pytest.mark.parametrize("text", ["4095", "4095,0", "1,1", "0,nan", "a,b", "1,2,3"])
def test_levels_are_two_rising_numbers(source, text):
    message = cli_error("make-c", "--source", source, "--levels", text)
    assert message.startswith("--levels: must be two ") and message.endswith(f"such as 0,4095, not {text!r}")


def write_greys(root, ranges, suffix=".png"):
    """Grey files of 16 bits in one class; `ranges` are the smallest and largest value of each."""
    (root / "a").mkdir(parents=True)
    for number, (low, high) in enumerate(ranges):
        values = np.linspace(low, high, 64 * 64).reshape(64, 64).astype(np.uint16)
        Image.fromarray(values).save(root / f"a/heat{number}{suffix}")
    return root


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_a_narrow_part_of_16_bits_is_named_with_levels_that_fit(tmp_path, suffix):
    source = write_greys(tmp_path / "s", [(29315, 30000), (29800, 30845)], suffix)
    command = ("make-c", "--source", source, *FEW, "--output")
    (line,) = (said for said in cli(*command, tmp_path / "a").stderr.splitlines() if "levels" in said)
    assert line.startswith("2 of 2 images ") and line.endswith("such as 29315,30845")
    said = cli(*command, tmp_path / "b", "--levels", "29315,30845").stderr
    assert "levels" not in said and clean_of_heat(tmp_path / "b").size > 100


def clean_of_heat(output):
    return np.unique(pixels_of(output / "clean/a/heat0.png")[..., 0])


@pytest.mark.parametrize(("levels", "colour"), [("0,4095", 255), ("40000,50000", 0)])
def test_levels_that_leave_all_black_or_white_are_named(tmp_path, levels, colour):
    source = write_greys(tmp_path / "s", [(29315, 30845)] * 3)
    done = cli("make-c", "--source", source, *FEW, "--levels", levels, "--output", tmp_path / "out")
    (line,) = (said for said in done.stderr.splitlines() if "levels" in said)
    assert line.startswith("3 of 3 images ") and line.endswith("such as 29315,30845")
    assert clean_of_heat(tmp_path / "out").tolist() == [colour]


def test_full_and_constant_images_need_no_levels(tmp_path):
    source = write_greys(tmp_path / "s", [(0, 65535), (30000, 30000), (20000, 60000)])
    assert "levels" not in cli("make-c", "--source", source, *FEW, "--output", tmp_path / "out").stderr


def test_dropped_channels_are_counted(tmp_path):
    (tmp_path / "s/a").mkdir(parents=True)
    clear = np.full((64, 64, 4), 255, np.uint8)
    for number, alpha in enumerate((0, 128, 255)):
        clear[..., 3] = alpha
        Image.fromarray(clear).save(tmp_path / f"s/a/{number}.png")
    command = ("make-c", "--source", tmp_path / "s", *FEW, "--output", tmp_path / "out")
    assert cli(*command).stderr.splitlines()[-1].startswith("2 of 3 images have an alpha channel")
    assert cli(*command).stderr.splitlines()[-1].startswith("2 of 3 images have an alpha channel")
    notes = robustgen.evaluate(
        lambda pixels: np.zeros((len(pixels), 1), np.float32),
        source=tmp_path / "s",
        corruptions="contrast",
        severities=1,
        jobs=1,
        quiet=True,
    ).notes
    assert any(note.startswith("2 of 3 images have an alpha channel") for note in notes)
