"""Files of one image: their names, formats and pixels."""

import json

import numpy as np
import pytest
from PIL import Image

from robustgen.sets.formats.encoders import JpegEncoder, LosslessEncoder, OriginalEncoder
from tests.helpers import errors_of, make_c, pixels_of, put_photo, tree

FEW = ("--corruptions", "contrast,gaussian_noise", "--severities", "2", "--jobs", "1")
KEYS = ("cat/a.JPEG", "cat/b.jpg", "cat/c.png", "dog/a.JPEG", "dog/d.JPEG")


@pytest.fixture(scope="module")
def lossless(small_set):
    """The set as PNG files, which hold the very pixels."""
    return small_set("c", "png", *FEW)


def format_of(path):
    with Image.open(path) as image:
        return image.format


def test_webp_files_are_lossless(small_set, lossless):
    root = small_set("c", "webp", *FEW)
    webp, png = sorted(root.rglob("*.webp")), sorted(lossless.rglob("*.png"))
    assert len(webp) == len(png) == 15
    for ours, theirs in zip(webp, png, strict=True):
        assert format_of(ours) == "WEBP" and np.array_equal(pixels_of(ours), pixels_of(theirs))
    assert "libwebp" in json.loads((root / "dataset.json").read_text())["settings"]["versions"]


def test_original_keeps_name_and_format(small_set, lossless):
    root = small_set("c", "original", *FEW, "--quality", "90")
    assert {f"contrast/2/{key}" for key in KEYS} <= tree(root).keys()
    assert format_of(root / "contrast/2/cat/c.png") == "PNG"
    assert np.array_equal(
        pixels_of(root / "contrast/2/cat/c.png"), pixels_of(lossless / "contrast/2/cat/c.png")
    )
    jpeg = small_set("c", "", *FEW, "--quality", "90")
    for key in ("cat/a.JPEG", "cat/b.jpg"):
        assert (root / "contrast/2" / key).read_bytes() == (jpeg / "contrast/2" / key).read_bytes()


def test_original_names_what_it_cannot_write(tmp_path):
    put_photo(tmp_path / "src" / "a.gif")
    put_photo(tmp_path / "src" / "b.jpg")
    root = tmp_path / "out"
    make_c(tmp_path / "src", root, *FEW, "--format", "original", status=1)
    (reason,) = {error["reason"] for error in errors_of(root)}
    assert "GIF" in reason and "PNG" in reason
    assert (root / "contrast/2/b.jpg").exists()


@pytest.mark.parametrize(
    ("key", "jpeg", "png"),
    [
        ("a/b.JPEG", "a/b.JPEG", "a/b.png"),
        ("a/b.jpeg", "a/b.jpeg", "a/b.png"),
        ("a/b.jpg", "a/b.jpg", "a/b.png"),
        ("a/b.JPG", "a/b.JPG", "a/b.png"),
        ("a/b.Jpg", "a/b.JPEG", "a/b.png"),
        ("a/b.png", "a/b.JPEG", "a/b.png"),
        ("a.b/c.d.tiff", "a.b/c.d.JPEG", "a.b/c.d.png"),
        ("b.png", "b.JPEG", "b.png"),
        ("00042", "00042.JPEG", "00042.png"),
    ],
)
def test_names_of_outputs(key, jpeg, png):
    assert JpegEncoder().output_name(key) == jpeg
    assert LosslessEncoder(".png").output_name(key) == png
    assert OriginalEncoder(85).output_name(key) == key
