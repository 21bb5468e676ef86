"""Decoding: modes, levels and damage; libjpeg 9c; resizing in Pillow's order of 2018."""

import hashlib
import io
import os
import re
import struct
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import jpeglib
import numpy as np
import pytest
from PIL import Image, TiffImagePlugin

import robustgen
from robustgen.errors import ArgumentError, DecodingWarning, ImageError, MissingDependencyError
from robustgen.lab.models.preprocessing import PRESETS
from robustgen.pixels.benchmarks.editions import EDITIONS, get_edition
from robustgen.pixels.imaging.decode import (
    Loss,
    as_rgb,
    collect_complaints,
    decode,
    decode_to_pillow,
    find_loss,
    name_ends,
    open_image,
    read_dimensions,
)
from robustgen.pixels.imaging.geometry import resize, resize_picture
from robustgen.pixels.imaging.jpeg import read_by_ijg
from robustgen.plugins import conformance
from robustgen.sets.dataset.recipes import PerturbationRecipe
from robustgen.sets.sources.base import SourceOptions
from robustgen.sets.sources.folder import ImageFolder
from robustgen.sets.sources.opening import open_source
from robustgen.sets.sources.trees import describe_complaints
from robustgen.torch import PerturbedDataset, SourceDataset
from tests import source_writers
from tests.helpers import cli, cli_error, encode_tagged, manifest, photo, pictures, pixels_of
from tests.sets.sources.test_folder import put, write

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
    for source_kind, layouts in source_writers.WRITERS.items()
    for layout, write in layouts.items()
    if source_kind not in ("mnist", "medmnist", "cifar", "arrays")
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_source_follows(layout, tmp_path, monkeypatch):
    for module in (source_writers, conformance):
        monkeypatch.setattr(module, "encode_lossless", lambda image, extension: FILE)
    location = LAYOUTS[layout](tmp_path / "in", [PHOTO, PHOTO])
    labels = {"labels": location.parent / "labels.txt"} if layout == "labelled" else {}
    for library, pixels in zip(("turbo", "ijg"), both(FILE), strict=True):
        source = open_source(location, options=SourceOptions(**labels, libjpeg=library))
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
    base = SourceDataset(tmp_path / "src", require_classes=False, convert=False)
    own, _ = PerturbedDataset(base, "translate", edition="imagenet", video=False)[0]
    assert np.array_equal(own, np.stack(frames))
    with Image.open(tmp_path / "src/cat/a.png") as picture:
        assert np.array_equal(robustgen.perturb(picture, "translate", edition="imagenet", rng=0), own)
    assert SourceDataset(tmp_path / "src", require_classes=False)[0][0].mode == "RGB"


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


# --- every format and mode ------------------------------------------------------------------------


def saved(image: Image.Image, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    image.save(file, **options)
    file.seek(0)
    return file


def first_pixel(image: Image.Image, **options: Any) -> list[int]:
    pixels = decode(saved(image, **options))
    assert pixels.dtype == np.uint8 and pixels.shape == (4, 5, 3)
    assert pixels.flags.c_contiguous and pixels.flags.writeable
    return pixels[0, 0].tolist()


@pytest.mark.parametrize(
    ("mode", "colour", "form", "expected"),
    [
        ("RGB", (1, 2, 3), "PNG", [1, 2, 3]),
        ("RGB", (1, 2, 3), "BMP", [1, 2, 3]),
        ("RGB", (1, 2, 3), "PPM", [1, 2, 3]),
        ("RGB", (1, 2, 3), "TIFF", [1, 2, 3]),
        ("RGBA", (1, 2, 3, 0), "PNG", [1, 2, 3]),
        ("LA", (7, 0), "PNG", [7, 7, 7]),
        ("L", 7, "PPM", [7, 7, 7]),
        ("1", 1, "PNG", [255, 255, 255]),
        ("I;16", 0x1234, "PNG", [0x12, 0x12, 0x12]),
        ("I;16", 0x1234, "TIFF", [0x12, 0x12, 0x12]),
        ("I;16", 200, "PNG", [0, 0, 0]),
        ("I;16B", 0xFEDC, "TIFF", [0xFE, 0xFE, 0xFE]),
    ],
)
def test_modes(mode: str, colour: Any, form: str, expected: list[int]) -> None:
    assert first_pixel(Image.new(mode, (5, 4), colour), format=form) == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_floating_point_values_that_are_not_finite(value: float) -> None:
    with pytest.raises(ImageError, match="'x': contains values that are not finite"):
        decode(saved(Image.new("F", (5, 4), value), format="TIFF"), "x")


@pytest.mark.parametrize(
    ("mode", "value", "form", "levels", "expected"),
    [
        ("I;16", 2048, "PNG", (0, 4095), 128),
        ("I;16", 5000, "TIFF", (0, 4095), 255),
        ("I", 300, "PPM", (200, 400), 128),
        ("I", -500, "TIFF", (-1000, 0), 128),
        ("I", 70000, "TIFF", (60000, 80000), 128),
        ("F", 0.2, "TIFF", (0, 1), 51),
        ("F", 300, "TIFF", (0, 1), 255),
        ("L", 7, "PNG", (0, 4095), 7),
    ],
)
def test_levels_become_black_and_white(
    mode: str, value: float, form: str, levels: tuple[float, float], expected: int
) -> None:
    file = saved(Image.new(mode, (5, 4), value), format=form)
    assert {*decode(file, levels=levels).flat} == {expected}
    assert {*np.asarray(decode_to_pillow(file, levels=levels)).flat} == {expected}


@pytest.mark.parametrize(
    ("mode", "values", "message"),
    [
        ("I", (0, 1), r"signed or 32-bit integers \(0 to 1\): set levels"),
        ("I", (-5, 300), r"signed or 32-bit integers \(-5 to 300\): set levels"),
        ("F", (0, 0.5), r"floating-point values \(0 to 0.5\): set levels"),
    ],
)
def test_values_of_unknown_range_need_levels(mode: str, values: tuple[float, float], message: str) -> None:
    image = Image.new(mode, (5, 4), values[0])
    image.putpixel((1, 1), values[1])
    with pytest.raises(ImageError, match=f"'x': {message}"):
        decode(saved(image, format="TIFF"), "x")
    with pytest.raises(ImageError, match=message):
        as_rgb(image)


def test_16_bit_colours_have_no_levels() -> None:
    ramp = np.arange(20, dtype=np.uint16).reshape(4, 5, 1).repeat(3, 2) * 200
    data = cv2.imencode(".png", ramp)[1].tobytes()
    assert find_loss(decode_to_pillow(io.BytesIO(data))) == Loss("colours", 0, 3839, 15)
    with pytest.raises(ImageError, match="'x': levels are for greys, this file has 16-bit colours"):
        decode(io.BytesIO(data), "x", levels=(0, 4095))


def test_16_bit_pgm() -> None:
    data = b"P5\n1 1\n65535\n\x12\x34"
    assert decode(io.BytesIO(data)).tolist() == [[[0x12] * 3]]
    assert as_rgb(Image.open(io.BytesIO(data))).tolist() == [[[0x12] * 3]]
    assert find_loss(decode_to_pillow(io.BytesIO(data))) == Loss("high byte", 0x1234, 0x1234, 1)


RAMP = np.arange(20, dtype=np.uint16).reshape(4, 5) * 3000
COLOURS = np.stack([RAMP, RAMP + 1000, RAMP + 2000, RAMP + 3000], 2)


def tiff_file(
    values: np.ndarray, photometric: int, numbers: int = 1, planar: int = 1, extra: int | None = None
) -> io.BytesIO:
    """Return an uncompressed TIFF file of values (H, W) or (H, W, C), whose type is that of its `numbers`."""
    values = values.reshape(*values.shape[:2], -1)
    height, width, channels = values.shape
    data = (values.transpose(2, 0, 1) if planar == 2 else values).tobytes()
    strips = channels if planar == 2 else 1
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[256], tags[257], tags[258], tags[259] = width, height, (8 * values.itemsize,) * channels, 1
    tags[262], tags[277], tags[278], tags[284] = photometric, channels, height, planar
    tags[339] = (numbers,) * channels
    tags.tagtype[273] = tags.tagtype[279] = 4
    # Pillow adds the size of the directory to the places of the strips.
    tags[273], tags[279] = [len(data) // strips * n for n in range(strips)], [len(data) // strips] * strips
    if extra is not None:
        tags[338] = (extra,)
    return io.BytesIO(b"II*\0\x08\0\0\0" + tags.tobytes(8) + data)


def test_tiff_files_whose_white_is_0() -> None:
    inverted = tiff_file(65535 - RAMP, 0)
    assert np.array_equal(decode(inverted)[..., 0], RAMP >> 8)
    assert np.array_equal(as_rgb(Image.open(inverted))[..., 0], RAMP >> 8)
    levelled = decode(inverted, levels=(0, 57000))[..., 0]
    assert np.array_equal(levelled, np.rint(RAMP / 57000 * 255))
    with pytest.raises(ImageError, match=r"'x': TIFF file of floating-point .* convert it"):
        decode(tiff_file(RAMP.astype(np.float32), 0, 3), "x", levels=(0, 57000))


def test_tiff_files_of_signed_bytes() -> None:
    values = (RAMP >> 8).astype(np.int16) - 100
    signed = tiff_file(values.astype(np.int8), 1, 2)
    with pytest.raises(ImageError, match=r"signed .* integers \(-100 to 122\): set levels"):
        decode(signed)
    assert np.array_equal(decode(signed, levels=(-128, 127))[..., 0], values + 128)


@pytest.mark.parametrize("extra", [None, 0, 2])
def test_tiff_files_of_planes_of_16_bits_are_refused(extra: int | None) -> None:
    values = COLOURS[..., : 3 if extra is None else 4]
    with pytest.raises(ImageError, match=r"'x': .*16-bit channels in separate planes.* convert it"):
        decode(tiff_file(values, 2, planar=2, extra=extra), "x")
    with pytest.raises(ImageError, match="separate planes"):
        as_rgb(Image.open(tiff_file(COLOURS[..., :3], 2, planar=2)))
    bytes_ = (COLOURS[..., :3] >> 8).astype(np.uint8)
    assert np.array_equal(decode(tiff_file(bytes_, 2, planar=2)), bytes_)


def test_further_channels_are_noticed() -> None:
    bands, clear = (COLOURS >> 8).astype(np.uint8), np.full((4, 5, 4), 255, np.uint8)
    lost = {
        "bands of TIFF": tiff_file(bands, 2, extra=0),
        "16 bits": tiff_file(COLOURS, 2, extra=0),
        "alpha": saved(Image.fromarray(bands), format="PNG"),
        "grey alpha": saved(Image.fromarray(bands).convert("LA"), format="PNG"),
        "premultiplied": tiff_file(bands, 2, extra=1),
        "palette": saved(Image.new("P", (5, 4), 1), format="PNG", transparency=b"\x00\x80"),
    }
    for name, file in lost.items():
        loss = find_loss(decode_to_pillow(file))
        assert loss and loss.has_more, name
    kept = {
        "opaque": saved(Image.fromarray(clear), format="PNG"),
        "colours": tiff_file(bands[..., :3], 2),
        "Lab": saved(Image.new("LAB", (5, 4)), format="TIFF"),
        "CMYK": saved(Image.new("CMYK", (5, 4)), format="TIFF"),
        "JPEG in TIFF": saved(Image.new("RGB", (16, 16)), format="TIFF", compression="jpeg"),
    }
    for name, file in kept.items():
        assert find_loss(decode_to_pillow(file)) is None, name


@pytest.mark.parametrize(
    ("low", "high", "levels", "loss"),
    [
        (29315, 30845, None, Loss("high byte", 29315, 30845, 7)),
        (29315, 30845, (29315, 30845), Loss("levels", 29315, 30845, 256)),
        (29315, 30845, (0, 4095), Loss("levels", 29315, 30845, 2)),
        (100, 4000, (20000, 40000), Loss("levels", 100, 4000, 2)),
        (29315, 30845, (0, 65535), Loss("levels", 29315, 30845, 7)),
    ],
)
def test_grey_levels_that_are_left(
    low: int, high: int, levels: tuple[float, float] | None, loss: Loss
) -> None:
    values = np.linspace(low, high, 64 * 64).reshape(64, 64).astype(np.uint16)
    for form in ("PNG", "TIFF"):
        assert find_loss(decode_to_pillow(saved(Image.fromarray(values), format=form), levels=levels)) == loss


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [(0, 4095, "0,4095"), (12, 3000, "0,4095"), (29315, 30845, "29315,30845"), (0, 1, "0,1")]
    + [(-5, 300, "-5,300"), (0, 0.25, "0,0.25"), (250, 255, "250,255")],
)
def test_levels_that_fit(low: float, high: float, ends: str) -> None:
    assert name_ends(low, high) == ends


def test_cmyk_jpeg() -> None:
    image = Image.new("CMYK", (5, 4), (0, 255, 255, 0))
    assert np.allclose(first_pixel(image, format="JPEG", quality=95), [255, 0, 0], atol=4)


def test_webp() -> None:
    assert first_pixel(Image.new("RGB", (5, 4), (1, 2, 3)), format="WEBP", lossless=True) == [1, 2, 3]


def test_palette_with_transparency_warns_of_nothing() -> None:
    image = Image.new("P", (5, 4), 1)
    image.putpalette([0, 0, 0, 9, 8, 7])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert first_pixel(image, format="PNG", transparency=b"\x00\x80") == [9, 8, 7]


def test_first_frame_of_an_animation() -> None:
    red, blue = (Image.new("RGB", (5, 4), colour) for colour in ("red", "blue"))
    assert first_pixel(red, format="GIF", save_all=True, append_images=[blue]) == [255, 0, 0]


@pytest.mark.parametrize("form", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_pixels_are_those_that_are_stored_whatever_the_orientation(form: str, orientation: int) -> None:
    pixels = photo(40, 48)
    plain, tagged = (encode_tagged(pixels, form, each) for each in (0, orientation))
    assert (decode(io.BytesIO(tagged)) == decode(io.BytesIO(plain))).all()
    assert read_dimensions(io.BytesIO(tagged)) == (48, 40)
    with open_image(io.BytesIO(tagged)) as image:
        assert (np.asarray(image) == decode(io.BytesIO(plain))).all()


@pytest.mark.parametrize("mode", ["L", "I;16", "P", "1", "CMYK", "F"])
def test_tiff_files_of_any_mode_are_not_turned(mode: str) -> None:
    values = np.arange(40 * 48).reshape(40, 48)
    dtypes = {"I;16": np.uint16, "F": np.float32}
    image = Image.fromarray(values.astype(dtypes.get(mode, np.uint8)))
    image = image if mode in dtypes else image.convert(mode)
    exif = Image.Exif()
    exif[0x0112] = 6
    plain, turned = (
        decode_to_pillow(saved(image, format="TIFF", **own), "a", levels=(0, 1919))
        for own in ({}, {"exif": exif})
    )
    assert plain.size == turned.size == (48, 40) and plain.tobytes() == turned.tobytes()


def truncated_jpeg() -> bytes:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    return saved(Image.fromarray(noise), format="JPEG").getvalue()[:2000]


BAD = {
    "empty.jpg": b"",
    "text.jpg": b"these are no pixels",
    "truncated.jpg": truncated_jpeg(),
    "header.png": saved(Image.new("RGB", (50, 50)), format="PNG").getvalue()[:40],
    "postscript.jpg": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 5 5\n%%EndComments\n",
    "flat.ppm": b"P6\n0 5\n255\n",
    "script.svg.png": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_content_is_an_image_error_that_names_the_key(tmp_path: Path, name: str) -> None:
    write(tmp_path / "c" / name, BAD[name])
    source = ImageFolder(tmp_path)
    assert source.keys() == (f"c/{name}",)
    with pytest.raises(ImageError, match=f"c/{name}'?: .{{5}}"):
        source.load(f"c/{name}")


def tiff_of(photometric: int, *bits: int, extra: int | None = None) -> bytes:
    """Return the header of a TIFF file with these channels."""
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[256], tags[257], tags[258], tags[259], tags[262], tags[277] = 5, 4, bits, 1, photometric, len(bits)
    if extra is not None:
        tags[338] = (extra,) * (len(bits) - 1)
    return b"II*\0\x08\0\0\0" + tags.tobytes(8)


def odd_tiff() -> bytes:
    """Return a TIFF file about whose resolution Pillow warns."""
    data = bytearray(saved(Image.new("L", (5, 4)), format="TIFF", dpi=(72, 72)).getvalue())
    place = data.index(struct.pack("<HHI", 282, 5, 1))
    data[place + 4] = 2
    return bytes(data)


def noisy_tiff() -> bytes:
    """Return a TIFF file about which libtiff prints a message, though it can be read."""
    data = bytearray(saved(NOISE.convert("1"), format="TIFF", compression="group4").getvalue())
    data[10] ^= 0xFF
    return bytes(data)


NOISE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64), np.uint8))


LZW = saved(NOISE, format="TIFF", compression="tiff_lzw").getvalue()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"<!DOCTYPE html>", r"in none of the formats JPEG, .*, DIB \(begins with b'<!DOCTYPE html>'\)"),
        (truncated_jpeg()[:20], "damaged JPEG file: "),
        (truncated_jpeg(), "damaged JPEG file: image file is truncated"),
        (b"GIF89a\5\0\4\0\0\0\0;", "damaged GIF file: its structure is invalid"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "damaged PNG file: "),
        (b"P6\n5 4\n12345678901234\n", "damaged PPM file: Token too long in file header: 12345"),
        (b"P2\n5 4\n255\n" + b"12345678901 " * 20, "damaged PPM file: Token too long found in data: 12345"),
        (LZW[:8] + b"\xff" * 40 + LZW[48:], "damaged TIFF file: [A-Z]"),
        (
            tiff_of(1, 16, 16, extra=1),
            "TIFF file of 2 channels of 16 bits with associated alpha, which Pillow does",
        ),
        (
            tiff_of(1, *[8] * 7, extra=0),
            "TIFF file of 7 channels of 8 bits, which Pillow does not read; convert",
        ),
        (tiff_of(2, 8, 8), "TIFF file of 2 channels of 8 bits"),
    ],
)
def test_true_reasons(data: bytes, reason: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ImageError, match=f"^'x': {reason}"):
        decode(io.BytesIO(data), "x")
    assert capfd.readouterr() == ("", "")


def test_errors_of_other_types_tell_of_no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(TiffImagePlugin.TiffImageFile):
        def _open(self) -> None:
            raise TypeError("'<' not supported between instances of 'IFDRational' and 'tuple'")

    data = tiff_of(1, 8)
    monkeypatch.setitem(Image.OPEN, "TIFF", (Broken, Image.OPEN["TIFF"][1]))
    with pytest.raises(ImageError, match="'x': damaged TIFF file: its structure is invalid"):
        decode(io.BytesIO(data), "x")


def test_warnings_of_decoders_name_the_image(capfd: pytest.CaptureFixture[str]) -> None:
    data = odd_tiff()
    with pytest.warns(DecodingWarning, match="'odd': Metadata Warning, tag 282 had too many entries"):
        decode(io.BytesIO(data), "odd")
    with collect_complaints() as found:
        decode(io.BytesIO(data), "odd")
        decode(saved(Image.new("L", (5, 4)), format="TIFF", compression="jpeg"), "intact")
        decode(io.BytesIO(noisy_tiff()), "noisy")
    (odd, said), (noisy, printed) = found
    assert (
        (odd, noisy) == ("odd", "noisy")
        and "too many entries" in said
        and printed.startswith("Fax4Decode: Bad code word")
    )
    assert describe_complaints(found, "image") == [
        f"decoded with warnings: 2 images ('noisy': {printed}, ...)"
    ]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "mode", "form", "expected"),
    [
        ("x.jpe", "RGB", "JPEG", [10, 20, 30]),
        ("x.apng", "RGB", "PNG", [10, 20, 30]),
        ("x.pbm", "1", "PPM", [255] * 3),
        ("x.PNM", "L", "PPM", [10] * 3),
        ("x.dib", "RGB", "DIB", [10, 20, 30]),
    ],
)
def test_rarer_suffixes(tmp_path: Path, name: str, mode: str, form: str, expected: list[int]) -> None:
    image = Image.new(mode, (5, 4), {"1": 1, "L": 10}.get(mode, (10, 20, 30)))
    write(tmp_path / name, saved(image, format=form).getvalue())
    source = ImageFolder(tmp_path)
    assert source.keys() == (name,)
    assert np.allclose(source.load(name)[0, 0], expected, atol=2)


@pytest.mark.parametrize("mode", ["La", "RGBa"])
def test_colours_multiplied_by_their_transparency(mode: str) -> None:
    image = Image.new(mode[:-1] + "A", (5, 4), (100,) * (len(mode) - 1) + (255,)).convert(mode)
    assert as_rgb(image)[0, 0].tolist() == [100, 100, 100]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("form", ["JPEG", "PNG", "GIF", "TIFF", "WEBP", "BMP", "PPM"])
def test_damaged_bytes_raise_nothing_else(form: str) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (16, 16, 3), np.uint8)
    intact = saved(Image.fromarray(noise), format=form).getvalue()
    rng = np.random.default_rng(2)
    for _ in range(60):
        damaged = bytearray(intact)
        for place in rng.integers(0, min(len(intact), 200), 4):
            damaged[place] = rng.integers(256)
        try:
            assert decode(io.BytesIO(bytes(damaged)), "damaged").dtype == np.uint8
        except ImageError as error:
            assert "damaged" in str(error)


def test_decompression_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "bomb.png")
    filters = list(warnings.filters)
    # Pillow warns of more pixels than this number, and refuses twice as many.
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 15)
    assert ImageFolder(tmp_path).load("bomb.png").shape == (4, 5, 3)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 8)
    with pytest.raises(ImageError, match=r"bomb\.png.*decompression bomb"):
        ImageFolder(tmp_path).load("bomb.png")
    assert warnings.filters == filters


@pytest.mark.parametrize(
    ("owner", "name", "error", "reason"),
    [
        (os, "open", PermissionError(13, "Permission denied"), "Permission denied"),
        (Image.Image, "convert", MemoryError(), "MemoryError"),
    ],
)
def test_errors_of_the_system_name_the_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, error: Exception, reason: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    put(tmp_path / "x.png")
    monkeypatch.setattr(owner, name, fail)
    with pytest.raises(ImageError, match=rf"'x\.png': {reason}"):
        ImageFolder(tmp_path).load("x.png")


def test_a_folder_or_an_impossible_name_in_place_of_an_image(tmp_path: Path) -> None:
    put(tmp_path / "x.jpg" / "y.png")
    source = ImageFolder(tmp_path)
    assert source.keys() == ("x.jpg/y.png",)
    with pytest.raises(ImageError, match="is not a regular file"):
        source.load("x.jpg")
    for ask in (source.load, source.size):
        with pytest.raises(ImageError):
            ask("nul\0.jpg")


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("name", ["wide.png", "tall.jpg", "grey.tiff", "small.bmp"])
def test_preparing_from_pillow_gives_the_pixels_of_preparing_from_an_array(
    tmp_path: Path, edition: str, name: str
) -> None:
    sizes = {"wide.png": (700, 400), "tall.jpg": (300, 512), "grey.tiff": (256, 256), "small.bmp": (32, 32)}
    noise = np.random.default_rng(3).integers(0, 256, (*sizes[name][::-1], 3), np.uint8)
    Image.fromarray(noise[..., 0] if name == "grey.tiff" else noise).save(tmp_path / name)
    source, prepared = ImageFolder(tmp_path), get_edition(edition).prepared
    try:
        expected = prepared(source.load(name))
    except ImageError as error:
        with pytest.raises(ImageError, match=re.escape(str(error))):
            prepared(source.open(name))
        return
    assert np.array_equal(prepared(source.open(name)), expected)
