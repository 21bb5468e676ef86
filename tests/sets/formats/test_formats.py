"""The formats of make-c and make-p: what their files are, and that their pixels are the same in all."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from robustgen.files.storage.local import LocalStore
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.formats import FORMATS
from robustgen.sets.formats.arrays import _shrink
from robustgen.sets.formats.encoders import JpegEncoder, LosslessEncoder, OriginalEncoder
from robustgen.sets.formats.units import cut_by_images
from tests.helpers import cli, cli_error, errors_of, make_c, pixels_of, put_photo, tree

FEW = ("--corruptions", "contrast,gaussian_noise", "--severities", "2", "--jobs", "1")
KEYS = ("cat/a.JPEG", "cat/b.jpg", "cat/c.png", "dog/a.JPEG", "dog/d.JPEG")


def make(source, output, *flags, status=0):
    make_c(source, output, *FEW, *flags, status=status)
    return output


@pytest.fixture(scope="module")
def lossless(photos, tmp_path_factory):
    """The set as PNG files, which hold the very pixels; not to be changed."""
    return make(photos, tmp_path_factory.mktemp("formats") / "png", "--format", "png")


def kind_of(path):
    with Image.open(path) as image:
        return image.format


def test_png_files_are_png_files(lossless):
    names = {f"{variant}/{key.rpartition('.')[0]}.png" for variant in ("clean", "contrast/2") for key in KEYS}
    assert names <= tree(lossless).keys()
    assert kind_of(lossless / "clean/cat/b.png") == "PNG"
    assert json.loads((lossless / "dataset.json").read_text())["settings"]["output"] == {"format": "png"}


def test_webp_files_are_lossless(photos, lossless, tmp_path):
    root = make(photos, tmp_path / "out", "--format", "webp")
    webp, png = sorted(root.rglob("*.webp")), sorted(lossless.rglob("*.png"))
    assert len(webp) == len(png) == 15
    for ours, theirs in zip(webp, png, strict=True):
        assert kind_of(ours) == "WEBP" and np.array_equal(pixels_of(ours), pixels_of(theirs))
    assert "libwebp" in json.loads((root / "dataset.json").read_text())["settings"]["versions"]


def test_original_keeps_name_and_format(photos, lossless, tmp_path):
    root = make(photos, tmp_path / "out", "--format", "original", "--quality", "90")
    assert {f"contrast/2/{key}" for key in KEYS} <= tree(root).keys()
    assert kind_of(root / "contrast/2/cat/c.png") == "PNG"
    assert np.array_equal(
        pixels_of(root / "contrast/2/cat/c.png"), pixels_of(lossless / "contrast/2/cat/c.png")
    )
    jpeg = make(photos, tmp_path / "jpeg", "--quality", "90")
    for key in ("cat/a.JPEG", "cat/b.jpg"):
        assert (root / "contrast/2" / key).read_bytes() == (jpeg / "contrast/2" / key).read_bytes()


def test_original_names_what_it_cannot_write(tmp_path):
    put_photo(tmp_path / "src" / "a.gif")
    put_photo(tmp_path / "src" / "b.jpg")
    root = make(tmp_path / "src", tmp_path / "out", "--format", "original", status=1)
    assert {error["reason"] for error in errors_of(root)} == {
        "GIF files cannot store the result; convert them to PNG first"
    }
    assert (root / "contrast/2/b.jpg").exists()


def test_arrays_of_any_size(photos, tmp_path):
    source = tmp_path / "src"
    for number in range(3):
        put_photo(source / "cat" / f"{number}.png", seed=number)
    root = make(source, tmp_path / "out", "--format", "npy")
    files = make(source, tmp_path / "png", "--format", "png")
    rows = np.load(root / "gaussian_noise.npy")
    assert rows.shape == (3, 36, 40, 3)
    for number in range(3):
        assert np.array_equal(rows[number], pixels_of(files / "gaussian_noise/2/cat" / f"{number}.png"))


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


def test_the_first_of_two_with_one_output_name_keeps_it(tmp_path):
    for name in ("a.JPEG", "a.png", "a.jpg", "A.png"):
        put_photo(tmp_path / "src" / "c" / name, seed=len(name))
    root = make(tmp_path / "src", tmp_path / "jpeg", status=1)
    assert errors_of(root) == [{"key": "c/a.png", "reason": "its output would replace that of 'c/a.JPEG'"}]
    root = make(tmp_path / "src", tmp_path / "same", "--format", "original")
    assert sorted(path.name for path in root.glob("clean/c/*")) == ["A.png", "a.JPEG", "a.jpg", "a.png"]


def test_a_damaged_image_gives_way_to_another_of_its_output_name(tmp_path):
    put_photo(tmp_path / "src" / "c" / "a.png")
    (tmp_path / "src" / "c" / "a.bmp").write_bytes(b"BM")
    root = make(tmp_path / "src", tmp_path / "out", status=1)
    (failure,) = errors_of(root)
    assert failure["key"] == "c/a.bmp" and failure["reason"].startswith("damaged BMP file: ")
    assert [path.name for path in root.glob("clean/c/*")] == ["a.JPEG"]


@pytest.mark.parametrize(
    ("command", "name", "known"), [("make-c", "mp4", "jpeg, png"), ("make-p", "webp", "png, mp4")]
)
def test_a_format_of_the_other_benchmark_is_refused(photos, tmp_path, command, name, known):
    message = cli_error(command, "--source", photos, "--output", tmp_path / "out", "--format", name)
    assert message.startswith(f"format: {command} writes no {name} (known: {known}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("webdatset", "--format: unknown format 'webdatset' (did you mean 'webdataset'?)"),
        ("webdataset:pgn", "unknown encoding of webdataset 'pgn' (did you mean 'png'?)"),
        ("webdataset:npy", "unknown encoding of webdataset 'npy' (known: jpeg, png, webp, mp4)"),
        ("jpeg:png", "jpeg has no encodings; write jpeg, not jpeg:png"),
        ("webdataset:mp4", "format: make-c shards cannot be mp4 (known: jpeg, png, webp)"),
    ],
)
def test_a_format_that_does_not_exist_is_refused(photos, tmp_path, form, message):
    flags = ("--source", photos, "--output", tmp_path / "out", "--format", form)
    assert cli_error("make-c", *flags) == message


def test_the_documentation_names_every_format():
    page = (Path(__file__).parents[3] / "docs" / "use" / "formats.md").read_text()
    assert all(f"`{name}`" in page for name in FORMATS)


@pytest.mark.parametrize("form", ["npy", "webdataset", "parquet"])
def test_names_may_hold_what_parts_lines_elsewhere(tmp_path, form):
    names = ["cat/\\.png", "cat/a\x0cb.png", "cat/c\u2028d.png", "cat/e\nf.png", "cat/g\\nh.png"]
    names.sort()
    for name in names:
        put_photo(tmp_path / "source" / name, height=32, width=32)
    flags = ("--corruptions", "contrast", "--severities", "1", "--no-clean", "--edition", "cifar-10")
    cli("make-c", "--source", tmp_path / "source", "--output", tmp_path / "set", "--format", form, *flags)
    dataset = open_set(tmp_path / "set")
    keys = dataset.keys_of(dataset.variants[0])
    assert [key.partition(".")[0] for key in keys] == [name.partition(".")[0] for name in names]


def test_opening_a_finished_set_does_not_list_all_its_files(lossless, monkeypatch):
    listed, walk = [], LocalStore._walk

    def count(self, prefix):
        for found in walk(self, prefix):
            listed.append(found)
            yield found

    monkeypatch.setattr(LocalStore, "_walk", count)
    dataset = open_set(lossless)
    files = [path for path in lossless.rglob("*") if path.is_file()]
    assert len(dataset.variants) > 1
    assert len(listed) < len(files) / 2


def test_labels_that_are_no_bytes_are_not_cut_off():
    assert _shrink(np.array([0, 255])).dtype == np.uint8
    assert _shrink(np.array([0, 256])).tolist() == [0, 256]


def test_a_large_plan_has_4096_units_at_most():
    assert len([*cut_by_images(range(100_000), ())]) == 4000
