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
DARK = "5 of 7 images use at most 12 of 16 bits: set levels, such as 0,4095"


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


def test_few_used_bits_are_counted_each_time(source, tmp_path):
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
        assert said == "5 of 8 images use at most 12 of 16 bits: set levels, such as 0,4095"
    finally:
        (source / "bright/0.png").unlink()
        (source / "bright").rmdir()


def test_levels_are_recorded_and_followed(source, tmp_path):
    out = tmp_path / "out"
    said = cli("make-c", "--source", source, *FEW, "--output", out, "--levels", "0,4095")
    assert "bits" not in said.stderr
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
        with pytest.warns(DecodingWarning, match=r"uses at most 12 of its bits .* \(0, 4095\)"):
            use()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SourceDataset(source, levels=(0, 4095))[0]
        SourceDataset(source)[6]
        robustgen.corrupt(Image.fromarray(np.full((64, 64), 2**13, np.uint16)), "contrast", 1)


def test_commands_that_write_no_set_warn_too(source, tmp_path):
    one = ("--corruptions", "contrast", "--source", source)
    for command, said in (
        (("preview", *one, "--output", tmp_path / "sheet.png"), "a 16-bit image uses at most 12 of its bits"),
        (("calibrate", *one, "--images", 7), DARK),
    ):
        (line,) = (line for line in cli(*command).stderr.splitlines() if "bits" in line)
        assert line.startswith(f"warning: {said}")
        assert "bits" not in cli(*command, "--levels", "0,4095").stderr


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
