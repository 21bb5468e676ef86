"""Decoding by libjpeg 9c, and resizing in Pillow's order of 2018: the pixels of the published scripts."""

import hashlib
import io
import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jpeglib
import numpy as np
import pytest
from PIL import Image

import robustgen
from robustgen.errors import ArgumentError, ImageError, MissingDependencyError
from robustgen.lab.inspection import conformance
from robustgen.lab.models.preprocessing import PRESETS
from robustgen.pixels.imaging.decode import decode
from robustgen.pixels.imaging.geometry import resize, resize_picture
from robustgen.pixels.imaging.jpeg import read_by_ijg
from robustgen.sets.dataset.recipes import PerturbationRecipe
from robustgen.sets.sources.base import Options
from robustgen.sets.sources.opening import open_source
from robustgen.torch import PerturbedDataset, SourceDataset
from tests import source_writers
from tests.helpers import cli, cli_error, manifest, photo, pictures, pixels_of

GOLDEN = Path(__file__).parents[2] / "golden"
# Of Pillow 5.2's pixels.
PILLOW_5 = {
    "ijg_420.jpg": "d17577184b2dd98498b524b38d06548fd6e292c2f9a7f2aad2741a97e842bb85",
    "ijg_ycck.jpg": "d2bc209084efbecf194fd3dde56b6d5130b3970638438589a788fe58f34c817f",
}


def jpeg(pixels, mode="RGB", **options):
    file = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(file, "JPEG", **options)
    return file.getvalue()


def both(data, name="damaged"):
    """The pixels by each library, or its error."""
    results = []
    for library in ("turbo", "ijg"):
        try:
            results.append(decode(io.BytesIO(data), name, library))
        except ImageError as error:
            results.append(error)
    return results


PHOTO = photo(61, 83)
FILE = jpeg(PHOTO)


# --- pixels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PILLOW_5)
def test_pixels_are_those_of_pillow_5(name):
    turbo, ijg = both((GOLDEN / name).read_bytes())
    assert hashlib.sha256(ijg.tobytes()).hexdigest() == PILLOW_5[name]
    assert ijg.flags.c_contiguous and ijg.flags.writeable and not np.array_equal(turbo, ijg)


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": "4:2:2"}, {"quality": 30}])
def test_subsampled_files_differ_and_equal_jpeglib(tmp_path, options):
    data = jpeg(PHOTO, **options)
    turbo, ijg = both(data)
    (tmp_path / "x.jpg").write_bytes(data)
    jpeglib.version.set("9c")
    assert np.array_equal(ijg, jpeglib.read_spatial(str(tmp_path / "x.jpg")).spatial)
    assert not np.array_equal(turbo, ijg)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_files_without_subsampling_are_the_same_by_both(mode):
    turbo, ijg = both(jpeg(PHOTO, mode, subsampling=0))
    assert np.array_equal(turbo, ijg)


def test_without_jpeglib_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "jpeglib", None)
    with pytest.raises(MissingDependencyError, match=r"robustgen\[ijg\]"):
        decode(io.BytesIO(FILE), library="ijg")


# --- damaged and hostile files -------------------------------------------------------------------


def segment(marker, content):
    return bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content


def test_comments_and_application_data_change_no_pixel():
    # jpeglib keeps 50 of them in arrays without checks.
    notes = segment(0xFE, b"a note") * 200 + b"".join(segment(0xE0 + i % 16, b"\xff\xd9") for i in range(99))
    for data in (FILE, jpeg(PHOTO, progressive=True)):
        scan = data.rindex(b"\xff\xda")
        noted = data[:2] + notes + data[2:scan] + notes + data[scan:]
        assert np.array_equal(read_by_ijg(noted), read_by_ijg(data))
        turbo, ijg = both(noted)
        assert turbo.shape == ijg.shape and np.array_equal(ijg, read_by_ijg(data))


def test_too_many_headers_are_refused():
    _, error = both(FILE[:2] + segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0") * 60 + FILE[2:])
    assert isinstance(error, ImageError)


@pytest.mark.parametrize("options", [{}, {"progressive": True}])
def test_every_truncation_is_refused_as_by_libjpeg_turbo(options, capfd):
    data = jpeg(photo(24, 20), **options)
    for length in range(len(data)):
        turbo, ijg = both(data[:length])
        if isinstance(turbo, ImageError):
            assert isinstance(ijg, ImageError) and str(ijg) == str(turbo)
        else:
            # Only the mark of the end is missing.
            assert length >= len(data) - 2 and ijg.shape == turbo.shape
    assert capfd.readouterr() == ("", "")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK", "progressive"])
def test_flipped_bytes_give_an_image_of_the_same_shape_or_an_error(mode, capfd):
    own = {"progressive": True} if mode == "progressive" else {}
    data = jpeg(photo(24, 20), "RGB" if own else mode, **own)
    rng, decoded = np.random.default_rng(5), 0
    for _ in range(300):
        damaged = bytearray(data)
        for place in rng.integers(2, len(data), rng.integers(1, 4)):
            damaged[place] = rng.integers(256)
        turbo, ijg = both(bytes(damaged))
        if isinstance(turbo, ImageError):
            assert isinstance(ijg, ImageError) and str(ijg) == str(turbo)
        elif isinstance(ijg, ImageError):
            assert "'damaged': " in str(ijg)
        else:
            assert ijg.shape == turbo.shape
            decoded += 1
    assert decoded > 50
    assert capfd.readouterr() == ("", "")


def test_a_forged_size_is_refused_before_it_is_decoded():
    place = FILE.index(b"\xff\xc0") + 5
    for height, width in ((20_000, 20_000), (65_500, 65_500), (0, 8), (8, 0)):
        forged = FILE[:place] + struct.pack(">HH", height, width) + FILE[place + 4 :]
        turbo, ijg = both(forged)
        assert isinstance(ijg, ImageError) and str(ijg) == str(turbo)


def test_threads_decode_one_after_the_other():
    expected = read_by_ijg(FILE)
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(read_by_ijg, [FILE] * 40)]
    assert all(np.array_equal(each, expected) for each in found)


# --- sources -------------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path):
    (tmp_path / "src/cat").mkdir(parents=True)
    (tmp_path / "src/cat/a.jpg").write_bytes(FILE)
    return tmp_path / "src"


# All layouts that hold files.
LAYOUTS = {
    layout: write
    for kind, layouts in source_writers.WRITERS.items()
    for layout, write in layouts.items()
    if kind not in ("mnist", "medmnist", "cifar", "arrays")
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_kind_of_source_follows(layout, tmp_path, monkeypatch):
    for module in (source_writers, conformance):
        monkeypatch.setattr(module, "encode_lossless", lambda image, extension: FILE)
    location = LAYOUTS[layout](tmp_path / "in", [PHOTO, PHOTO])
    labels = {"labels": location.parent / "labels.txt"} if layout == "labelled" else {}
    for library, pixels in zip(("turbo", "ijg"), both(FILE), strict=True):
        source = open_source(location, options=Options(**labels, libjpeg=library))
        key = source.keys()[0]
        assert np.array_equal(source.load(key), pixels)
        assert np.array_equal(np.asarray(source.open(key)), pixels)
        assert source.read(key)[1] == hashlib.sha256(FILE).hexdigest()[:16]


def test_the_data_set_for_pytorch_follows(source):
    (image, _), (own, _) = SourceDataset(source)[0], SourceDataset(source, libjpeg="ijg")[0]
    turbo, ijg = both(FILE)
    assert np.array_equal(image, turbo) and np.array_equal(own, ijg)
    with pytest.raises(ArgumentError, match="turbo"):
        SourceDataset(source, libjpeg="mozjpeg")


# --- commands ------------------------------------------------------------------------------------


C = ("--corruptions", "contrast", "--severities", 1, "--format", "png")
P = ("--perturbations", "translate", "--format", "png")


@pytest.mark.parametrize(("command", "flags", "jobs"), [("make-c", C, 2), ("make-p", P, 1)])
def test_commands_decode_by_the_chosen_library(command, flags, jobs, source, tmp_path):
    made = {}
    for library in ("turbo", "ijg"):
        output = tmp_path / library
        run = (command, "--source", source, "--output", output, *flags, "--jobs", jobs, "--libjpeg", library)
        cli(*run)
        made[library] = {name: pixels_of(output / name) for name in pictures(output)}
        versions = manifest(output)["settings"]["versions"]
        assert ("IJG libjpeg 9c" in versions["jpeg_decoder"]) == (library == "ijg")
        cli("verify", output, "--deep", "all")
        other = {"turbo": "ijg", "ijg": "turbo"}[library]
        cli_error(*run[:-1], other)
    assert made["turbo"].keys() == made["ijg"].keys()
    assert not any(np.array_equal(made["turbo"][name], made["ijg"][name]) for name in made["ijg"])
    # Frame 15 is not shifted.
    clean = next(name for name in made["ijg"] if name.startswith(("clean", "translate/cat/a/15")))
    assert np.array_equal(made["ijg"][clean], both(FILE)[1])


# --- resizing ------------------------------------------------------------------------------------


def resize_axis(values, size):
    """The lines of Pillow 5.2: bilinear weights of 22 bits along the first axis, rounded to 8 bits."""
    count = len(values)
    ratio = count / size
    reach = max(ratio, 1.0)
    out = np.empty((size, *values.shape[1:]), np.uint8)
    for i in range(size):
        centre = (i + 0.5) * ratio
        first, end = max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), count)
        places = np.arange(first, end)
        weights = np.maximum(0, 1 - np.abs((places - centre + 0.5) * (1 / reach)))
        whole = (0.5 + weights / sum(weights.tolist()) * 2**22).astype(np.int64)
        total = np.tensordot(whole, values[first:end].astype(np.int64), 1)
        out[i] = np.clip((total + 2**21) >> 22, 0, 255)
    return out


SIZES = [(65, 63, 64, 64), (261, 131, 64, 64), (345, 201, 299, 299), (400, 40, 2560, 256), (30, 300, 64, 64)]


@pytest.mark.parametrize(("height", "width", "new_height", "new_width"), SIZES)
def test_widths_are_resized_first(height, width, new_height, new_width):
    image = np.random.default_rng(8).integers(0, 256, (height, width, 3), np.uint8)
    across = resize_axis(image.swapaxes(0, 1), new_width).swapaxes(0, 1)
    expected = resize_axis(across, new_height)
    assert np.array_equal(resize(image, new_width, new_height), expected)
    assert np.array_equal(resize(Image.fromarray(image), new_width, new_height), expected)
    square = PRESETS["imagenet"]
    if new_height == new_width:
        own = square.__class__(**{**vars(square), "input_size": (new_height, new_width)})
        assert np.array_equal(own.resize(image), expected)


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_transparency_is_rounded_once(mode):
    noise = np.random.default_rng(9).integers(0, 256, (300, 180, 4), np.uint8)
    picture = Image.fromarray(noise, "RGBA").convert(mode)
    weighted = picture.convert(mode[:-1] + "a").resize((64, 300), 2).resize((64, 64), 2)
    assert resize_picture(picture, 64, 64).tobytes() == weighted.convert(mode).tobytes()


# --- preparation for perturbations ---------------------------------------------------------------

MODES = ("P", "1", "LA", "RGBA", "CMYK", "L", "I;16")


def in_mode(mode, height=300, width=420):
    if mode == "I;16":
        return Image.fromarray(photo(height, width)[..., 0].astype(np.uint16) * 257)
    picture = Image.fromarray(photo(height, width))
    if mode in ("LA", "RGBA"):
        picture.putalpha(Image.fromarray(photo(height, width, 1)[..., 0]))
    return picture.convert(mode)


@pytest.mark.parametrize("mode", MODES)
def test_imagenet_p_resizes_before_it_converts(mode):
    picture = in_mode(mode)
    as_stored = robustgen.prepare(resize_picture(picture, 358, 256))
    converted = robustgen.prepare(picture)
    frames = PerturbationRecipe("imagenet").prepare(picture)
    assert min(frames.shape[:2]) == 256
    sequence = robustgen.perturb(picture, "translate", edition="imagenet", rng=0)
    # The frame in the middle is not shifted.
    assert np.array_equal(sequence[20], as_stored)
    assert np.array_equal(as_stored, converted) == (mode == "L")
    if mode != "I;16":
        other = robustgen.perturb(picture, "translate", edition="imagenet-64", rng=0)
        array = np.asarray(picture.convert("RGB"))
        assert np.array_equal(other, robustgen.perturb(array, "translate", edition="imagenet-64", rng=0))


def test_files_pillow_images_and_data_sets_agree(tmp_path):
    (tmp_path / "src/cat").mkdir(parents=True)
    in_mode("LA").save(tmp_path / "src/cat/a.png")
    flags = ("--edition", "imagenet", "--set", "require_classes=false", *P, "--jobs", 1)
    cli("make-p", "--source", tmp_path / "src", "--output", tmp_path / "out", *flags)
    frames = [pixels_of(path) for path in sorted((tmp_path / "out/translate/cat/a").glob("*.png"))]
    base = SourceDataset(tmp_path / "src", classes=False, convert=False)
    own, _ = PerturbedDataset(base, "translate", edition="imagenet", video=False)[0]
    assert np.array_equal(own, np.stack(frames))
    with Image.open(tmp_path / "src/cat/a.png") as picture:
        assert np.array_equal(robustgen.perturb(picture, "translate", edition="imagenet", rng=0), own)
    assert SourceDataset(tmp_path / "src", classes=False)[0][0].mode == "RGB"


@pytest.mark.parametrize("edition", ["imagenet", "imagenet-64"])
@pytest.mark.parametrize("name", ["motion_blur", "scale"])
def test_perturbations_enlarge_tiny_sources(edition, name):
    for height, width in ((2, 2), (3, 40), (31, 17)):
        frames = robustgen.perturb(photo(height, width), name, edition=edition, rng=0)
        side = robustgen.EDITIONS[edition].side
        assert frames.shape[1:] == (side, side, 3) and frames.any()


def test_images_that_keep_their_size_must_not_be_tiny():
    with pytest.raises(ArgumentError, match="32"):
        robustgen.perturb(photo(31, 40), "scale", rng=0)
    with pytest.raises(ImageError, match="crop"):
        robustgen.perturb(photo(1, 40), "scale", edition="imagenet-inception", rng=0)


# --- pixelate ------------------------------------------------------------------------------------


def test_pixelate_leaves_a_gap_at_299_as_published():
    image = np.maximum(photo(299, 299), 1)

    def gap(**chosen):
        made = robustgen.corrupt(image, "pixelate", **{"severity": 4, "rng": 0} | chosen)
        rows, columns = (made == 0).all(axis=(1, 2)), (made == 0).all(axis=(0, 2))
        return [*np.flatnonzero(rows), *np.flatnonzero(columns)]

    assert gap(edition="imagenet-inception") == [149, 149]
    for severity in (3, 5):
        assert gap(edition="imagenet-inception", severity=severity) == []
    assert gap(edition="imagenet-inception@384") == gap(edition="folder") == gap(edition="imagenet") == []
