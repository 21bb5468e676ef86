"""Sources: keys, decoding, what is refused, and what hostile files cannot do."""

import gzip
import importlib.util
import io
import os
import pickle
import re
import struct
import subprocess
import sys
import tarfile
import warnings
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image, TiffImagePlugin

from robustgen.errors import ImageError, SourceError, UnknownNameError
from robustgen.pixels.benchmarks.editions import EDITIONS, get_edition
from robustgen.pixels.imaging.decode import (
    DecodingWarning,
    as_rgb,
    collect_complaints,
    decode,
    decode_to_pillow,
    find_used_bits,
)
from robustgen.sets.sources import published
from robustgen.sets.sources.base import Options, Source
from robustgen.sets.sources.folder import ImageFolder, LabelledFolder, Photographs
from robustgen.sets.sources.imagenet import TinyImageNet
from robustgen.sets.sources.opening import open_source
from robustgen.sets.sources.published import Cifar
from robustgen.sets.sources.trees import describe_complaints
from tests.helpers import cli, put_photo
from tests.sets.sources.test_trees import assert_alike, files_of, put_tar, put_zip

IMAGENET = {
    "ILSVRC2012_val_00000293.JPEG": "n01440764",
    "ILSVRC2012_val_00000001.JPEG": "n01751748",
    "ILSVRC2012_val_00002138.JPEG": "n01440764",
}
IMAGENET_KEYS = (
    "n01440764/ILSVRC2012_val_00000293.JPEG",
    "n01440764/ILSVRC2012_val_00002138.JPEG",
    "n01751748/ILSVRC2012_val_00000001.JPEG",
)


def put(path: Path, colour: Any = (10, 20, 30), mode: str = "RGB") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, (5, 4), colour).save(path)
    return path


def put_all(root: Path, *names: str) -> Path:
    for name in names:
        put(root / name)
    return root


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def open_labelled(root: Path, labels: str | bytes, name: str = "labels.txt", **options: Any) -> Source:
    """Open the images in `root` with a file of labels beside it."""
    return open_source(root, options=Options(labels=write(root.with_name(name), labels), **options))


def labels_of(source: Source) -> list[int]:
    return [*map(source.label, source.keys())]


def every_image_is_there(source: Source) -> bool:
    return all(image.any() for image in map(source.load, source.keys())) and all(
        map(source.size, source.keys())
    )


# --- decoding ------------------------------------------------------------------------------------


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
    assert find_used_bits(decode_to_pillow(io.BytesIO(data))) == 12
    with pytest.raises(ImageError, match="'x': levels are for greys, this file has 16-bit colours"):
        decode(io.BytesIO(data), "x", levels=(0, 4095))


def test_16_bit_pgm() -> None:
    data = b"P5\n1 1\n65535\n\x12\x34"
    assert decode(io.BytesIO(data)).tolist() == [[[0x12] * 3]]
    assert as_rgb(Image.open(io.BytesIO(data))).tolist() == [[[0x12] * 3]]
    assert find_used_bits(decode_to_pillow(io.BytesIO(data))) == 13


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


def test_exif_orientation_is_ignored() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    first_pixel(Image.new("RGB", (5, 4)), format="JPEG", exif=exif)


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
            tiff_of(1, 8, 8, extra=1),
            "TIFF file of 2 channels of 8 bits with associated alpha, which Pillow does",
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
    assert describe_complaints(found) == [f"decoded with warnings: 2 images ('noisy': {printed}, ...)"]
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


def test_files_without_a_suffix_are_counted(tmp_path: Path) -> None:
    put(tmp_path / "cat" / "a.png")
    for name in ("README", "cat/0001", "cat/0002", "cat/scan.dcm"):
        write(tmp_path / name, b"data")
    (remark,) = ImageFolder(tmp_path).remarks()
    assert "2 without a suffix, 1 .dcm ('cat/0001', ...); convert them" in remark


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


# --- folders -------------------------------------------------------------------------------------


def test_keys_classes_labels_and_sizes(tmp_path: Path) -> None:
    put_all(tmp_path, "b/y.png", "a/x.JPEG", "a/deep/er.bmp", "B/x.GIF", "top.tiff")
    for ignored in ("a/notes.txt", "a/._x.jpg", ".hidden/x.png", "a/x.jpeg.bak", "a/jpg"):
        write(tmp_path / ignored, b"")
    (tmp_path / "empty").mkdir()
    source = ImageFolder(tmp_path)
    assert source.keys() == ("B/x.GIF", "a/deep/er.bmp", "a/x.JPEG", "b/y.png", "top.tiff")
    assert source.keys() is source.keys()
    assert source.refused() == {}
    assert source.classes == ("", "B", "a", "b")
    assert labels_of(source) == [1, 2, 2, 3, 0]
    assert source.size("b/y.png") == (tmp_path / "b/y.png").stat().st_size
    assert source.location == str(tmp_path)
    assert source.load("b/y.png")[3, 4].tolist() == [10, 20, 30]


def test_odd_names(tmp_path: Path) -> None:
    names = ("-rf.png", "a'b\"c$.png", "new\nline.png", "with space.png", "żółw🐢.png")
    source = ImageFolder(put_all(tmp_path / "-class", *names).parent)
    assert source.keys() == tuple(f"-class/{name}" for name in names)
    assert every_image_is_there(source)


@pytest.mark.skipif(sys.platform != "linux", reason="other file systems take no such names")
def test_names_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "fine.png")
    raw = os.fsencode(tmp_path)
    for name in (b"caf\xe9.png", b"caf\xe9.txt"):
        with open(raw + b"/" + name, "wb"):  # noqa: PTH123
            pass
    source = ImageFolder(tmp_path)
    assert source.keys() == ("fine.png",)
    assert source.refused() == {"caf\\xe9.png": "file name is not valid UTF-8"}


def test_links(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    put_all(root, "a/x.png", ".store/c/z.png")
    put_all(outside, "y.png")
    write(outside / "notes.txt", b"")
    links = {
        "a/inside.png": "x.png",
        "a/outside.png": "../../outside/y.png",
        "a/notes.txt": "../../outside/notes.txt",
        "a/broken.png": "nothing.png",
        "a/broken.avif": "nothing.avif",
        "a/loop.png": "loop.png",
        "a/self": ".",
        "a/up": "../..",
        "b": "a",
        "c": ".store/c",
        "gone": "nowhere",
        "away": str(outside),
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    source = ImageFolder(root)
    assert source.keys() == ("a/inside.png", "a/x.png", "b/inside.png", "b/x.png", "c/z.png")
    refused = source.refused()
    assert "a/notes.txt" not in refused and not [*source.remarks()]
    for key in ("a/outside.png", "b/outside.png", "a/up", "away"):
        assert refused[key].startswith(
            "symlink that leaves the source (the key follow_links allows its target"
        )
    for key in ("a/broken.png", "a/loop.png", "gone"):
        assert refused[key].startswith("symlink that cannot be followed")
    assert refused["a/self"] == "symlink loop"
    assert source.load("c/z.png").shape == (4, 5, 3)


def test_folders_linked_crosswise_end(tmp_path: Path) -> None:
    names = [f"f{i}" for i in range(6)]
    for name in names:
        put(tmp_path / name / "x.png")
        for other in names:
            (tmp_path / name / f"to-{other}").symlink_to(f"../{other}")
    source = ImageFolder(tmp_path)
    assert {f"{name}/x.png" for name in names} < set(source.keys())
    assert {"symlink loop", "more than 3 symlinked folders within each other"} == set(
        source.refused().values()
    )


def test_the_root_may_be_a_link_and_a_neighbour_is_outside(tmp_path: Path) -> None:
    put_all(tmp_path, "data/a/x.png", "data-more/y.png")
    (tmp_path / "root").symlink_to("data")
    (tmp_path / "data/a/y.png").symlink_to("../../data-more/y.png")
    source = ImageFolder(tmp_path / "root")
    assert source.keys() == ("a/x.png",)
    assert list(source.refused()) == ["a/y.png"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_named_pipe_is_refused_not_waited_for(tmp_path: Path) -> None:
    put(tmp_path / "x.png")
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "link.jpg").symlink_to("pipe.jpg")
    assert ImageFolder(tmp_path).refused() == dict.fromkeys(["link.jpg", "pipe.jpg"], "not a regular file")


def test_a_folder_that_cannot_be_listed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_all(tmp_path, "a/x.png", "b/x.png")
    scandir = os.scandir

    def denied(path: str) -> Any:
        if path.endswith("b"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", denied)
    source = ImageFolder(tmp_path)
    assert source.keys() == ("a/x.png",)
    assert source.refused() == {"b": "folder cannot be listed: Permission denied"}


def test_no_images(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "notes.txt", b"").parent)
    assert source.refused() == {}
    with pytest.raises(SourceError, match=r"no images .*JPEG.*GIF"):
        source.keys()
    (tmp_path / "x.png").symlink_to("nothing")
    with pytest.raises(SourceError, match=r"1 refused, 'x\.png': symlink"):
        ImageFolder(tmp_path).keys()


# --- the layouts of ImageNet ---------------------------------------------------------------------


def flat_imagenet(root: Path) -> Path:
    return put_all(root / "flat", *IMAGENET)


def pairs(separator: str, extension: str = ".JPEG") -> str:
    return "".join(f"{name[:-5]}{extension}{separator}{wnid}\n" for name, wnid in IMAGENET.items())


KAGGLE = "ImageId,PredictionString\n" + "".join(
    f"{name[:-5]},{wnid} 1 2 3 4 {wnid} 5 6 7 8 \n" for name, wnid in IMAGENET.items()
)
LABELS = {
    "space": pairs(" "),
    "tab": pairs("\t"),
    "comma": pairs(","),
    "comma and space": pairs(", "),
    "without extension": pairs(" ", ""),
    "windows": "\ufeff" + pairs(" ").replace("\n", "\r\n"),
    "kaggle": KAGGLE,
    "of absent images": "absent.JPEG n09999999\n\n" + pairs(" "),
    "one a line": "".join(f"{IMAGENET[name]}\n" for name in sorted(IMAGENET)),
}


@pytest.mark.parametrize("content", LABELS.values(), ids=LABELS)
def test_the_layouts_of_imagenet_have_the_same_keys(tmp_path: Path, content: str) -> None:
    flat = open_labelled(flat_imagenet(tmp_path), content)
    folders = ImageFolder(put_all(tmp_path / "val", *(f"{wnid}/{name}" for name, wnid in IMAGENET.items())))
    for source in (flat, folders):
        assert source.keys() == IMAGENET_KEYS
        assert source.classes == ("n01440764", "n01751748")
        assert labels_of(source) == [0, 0, 1]
        assert every_image_is_there(source)
        assert not source.refused()


@pytest.mark.parametrize("name", ["ILSVRC2012_validation_ground_truth.txt", "labels.txt"])
def test_numbers_of_the_devkit_are_no_classes_unless_that_is_said(tmp_path: Path, name: str) -> None:
    flat, labels = flat_imagenet(tmp_path), write(tmp_path / name, "490\n361\n171\n")
    with pytest.raises(SourceError, match=r"numbers of the devkit.* set labels_are_classes"):
        open_source(flat, options=Options(labels=labels)).keys()
    keys = open_source(flat, options=Options(labels=labels, labels_are_classes=True)).keys()
    assert keys[0] == "171/ILSVRC2012_val_00002138.JPEG"
    for image in flat.iterdir():
        put_photo(image)
    flags = ("--labels", labels, "--set", "labels_are_classes=true", "--output", tmp_path / "out")
    cli("make-c", "--source", flat, *flags, "--dry-run")
    listed = cli("list", "--keys", flat, "--labels", labels, "--labels-are-classes").stdout.splitlines()
    assert tuple(listed) == keys


def test_numbers_that_the_devkit_does_not_have_are_classes(tmp_path: Path) -> None:
    keys = open_labelled(flat_imagenet(tmp_path), "0\n361\n171\n").keys()
    assert {key.partition("/")[0] for key in keys} == {"0", "361", "171"}


def test_images_without_a_label_are_refused(tmp_path: Path) -> None:
    root = put_all(tmp_path / "flat", "a.png", "b c.png", "new\nline.png", "deeper/d.png")
    (root / "broken.png").symlink_to("nothing")
    source = open_labelled(root, "b c.png cat\nbroken.png cat\n")
    assert source.keys() == ("cat/b c.png",)
    refused = source.refused()
    assert sorted(refused) == ["a.png", "cat/broken.png", "new\nline.png"]
    assert "no label in" in refused["a.png"]


def test_classes_of_several_words(tmp_path: Path) -> None:
    root = put_all(tmp_path / "flat", "a.png", "b.png")
    source = open_labelled(root, "a.png\tgreat white shark\nb.png\then\n")
    assert source.keys() == ("great white shark/a.png", "hen/b.png")


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b"", 1, "no labels"),
        (b"a.png cat\nb.png\n", 2, "no class for 'b.png'"),
        (b"a.png,cat\n\nb.png,\n", 3, "'' cannot be"),
        (b"a.png cat\nb.png ../../etc\n", 2, "cannot be the name of a class"),
        *((b"a.png\t%b\n" % name, 1, "cannot be the name of a class") for name in (b"..", b".git", b"a\\b")),
        (b"a.png\tx\0y\n", 1, "cannot be the name of a class"),
        (b"a.png cat\na.png dog\n", 2, "'a.png' was 'cat' before, now 'dog'"),
        (b"cat\n", 1, "1 labels for 2 images"),
        (b"a.png cat\nb.png \xff\n", 2, "cannot be the name of a class"),
        (b"ImageId,PredictionString\na,n01 1 2 3 4\nb,\n", 3, "no class for 'b'"),
    ],
)
def test_malformed_labels_name_file_and_line(tmp_path: Path, content: bytes, line: int, reason: str) -> None:
    source = open_labelled(put_all(tmp_path / "flat", "a.png", "b.png"), content)
    with pytest.raises(SourceError) as caught:
        source.keys()
    start = f"{tmp_path / 'labels.txt'}, line {line}: "
    assert str(caught.value).startswith(start) and reason in str(caught.value)


def test_labels_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"missing\.txt: No such file"):
        open_source(tmp_path, options=Options(labels=tmp_path / "missing.txt"))
    with pytest.raises(SourceError, match="is not a regular file"):
        open_source(tmp_path, options=Options(labels=tmp_path)).keys()


# --- Tiny ImageNet -------------------------------------------------------------------------------

TINY = {"val_0.JPEG": "n03444034", "val_1.JPEG": "n04067472", "val_10.JPEG": "n03444034"}
TINY_KEYS = ("n03444034/val_0.JPEG", "n03444034/val_10.JPEG", "n04067472/val_1.JPEG")


def tiny(root: Path, pattern: str) -> Path:
    val = root / "tiny-imagenet-200" / "val"
    put_all(val, *(pattern.format(name=name, wnid=wnid) for name, wnid in TINY.items()))
    write(val / "val_annotations.txt", "".join(f"{n}\t{w}\t0\t32\t44\t62\n" for n, w in TINY.items()))
    write(val.parent / "wnids.txt", "\n".join(TINY.values()))
    put(val.parent / "train/n03444034/images/n03444034_0.JPEG")
    return val


def test_a_list_of_a_thousand_classes_beside_val_is_not_tiny_imagenet(tmp_path: Path) -> None:
    put(tmp_path / "val" / "n01440764" / "a.JPEG")
    put(tmp_path / "train" / "n01440764" / "b.JPEG")
    write(tmp_path / "wnids.txt", "".join(f"n{number:08d}\n" for number in range(1000)))
    assert type(open_source(tmp_path / "val")) is ImageFolder
    assert len(open_source(tmp_path).keys()) == 2


@pytest.mark.parametrize("pattern", ["images/{name}", "{wnid}/images/{name}", "{wnid}/{name}"])
def test_tiny_imagenet_has_the_same_keys_in_every_layout(tmp_path: Path, pattern: str) -> None:
    val = tiny(tmp_path, pattern)
    (val / "images").mkdir(exist_ok=True)
    for source in (TinyImageNet(val), TinyImageNet(val.parent), open_source(val), open_source(val.parent)):
        assert isinstance(source, TinyImageNet)
        assert source.keys() == TINY_KEYS
        assert labels_of(source) == [0, 0, 1]
        assert every_image_is_there(source)


def test_a_sorted_tiny_imagenet_without_annotations_is_detected(tmp_path: Path) -> None:
    val = tiny(tmp_path, "{wnid}/images/{name}")
    (val / "val_annotations.txt").unlink()
    assert open_source(val).keys() == open_source(val.parent).keys() == TINY_KEYS


def test_the_zip_of_tiny_imagenet(tmp_path: Path) -> None:
    val = tiny(tmp_path, "images/{name}")
    put(val.parent / "test/images/test_0.JPEG")
    source = open_source(put_zip(tmp_path / "tiny-imagenet-200.zip", files_of(tmp_path)))
    assert isinstance(source, TinyImageNet) and source.keys() == TINY_KEYS
    assert_alike(source, open_source(val.parent))


# --- CIFAR ---------------------------------------------------------------------------------------

ROWS = np.random.default_rng(0).integers(0, 256, (6, 3072), np.uint8)
NAMES = [f"class {i}".encode() for i in range(10)]


def batch(**changes: Any) -> dict[bytes, Any]:
    content = {b"data": ROWS, b"labels": [3, 1, 4, 1, 5, 9]}
    return content | {name.encode(): value for name, value in changes.items()}


def cifar10(root: Path, content: object = None, protocol: int = 2, meta: bool = True) -> Path:
    folder = root / "cifar-10-batches-py"
    write(folder / "test_batch", pickle.dumps(content or batch(), protocol))
    if meta:
        write(folder / "batches.meta", pickle.dumps({b"label_names": NAMES}, protocol))
    return folder


def cifar100(root: Path) -> Path:
    folder = root / "cifar-100-python"
    content = {b"data": ROWS, b"fine_labels": [99, 0, 1, 2, 3, 4], b"coarse_labels": [0] * 6}
    write(folder / "test", pickle.dumps(content, 2))
    return folder


def members(folder: Path) -> dict[str, bytes]:
    return {f"{folder.name}/{path.name}": path.read_bytes() for path in folder.iterdir()}


def check_cifar10(source: Source) -> None:
    assert isinstance(source, Cifar)
    assert source.keys() == ("00000", "00001", "00002", "00003", "00004", "00005")
    assert source.classes == tuple(name.decode() for name in NAMES)
    assert source.label("00005") == 9 and labels_of(source) == [3, 1, 4, 1, 5, 9]
    assert source.size("00005") == 3072
    assert source.images.shape == (6, 32, 32, 3) and source.images.dtype == np.uint8
    image = source.load("00004")
    assert image.flags.c_contiguous and image.flags.writeable
    assert (image[:, :, 2] == ROWS[4, 2048:].reshape(32, 32)).all()
    assert source.refused() == {}


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_cifar10_folder_parent_and_archive(tmp_path: Path, protocol: int) -> None:
    folder = cifar10(tmp_path / "data", protocol=protocol)
    packed = put_tar(tmp_path / "cifar-10-python.tar.gz", members(folder), "w:gz")
    for path in (folder, folder.parent, packed):
        check_cifar10(open_source(path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cifar-10-python.tar.gz", "data"]


def as_python_2(content: dict[bytes, Any]) -> bytes:
    """The batch as Python 2 pickled it: strings of bytes, and NumPy by its old module name."""
    data, labels = content[b"data"].tobytes(), content[b"labels"]

    def string(value: bytes) -> bytes:
        return b"T" + len(value).to_bytes(4, "little") + value

    shape = b"".join(b"M" + n.to_bytes(2, "little") for n in content[b"data"].shape)
    dtype = b"cnumpy\ndtype\n(" + string(b"u1") + b"K\x00K\x01tR(K\x03" + string(b"|")
    dtype += b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t" + string(b"b") + b"tR"
    array += b"(K\x01(" + shape + b"t" + dtype + b"\x89" + string(data) + b"tb"
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}(" + string(b"data") + array + string(b"labels") + numbers + b"u."


def test_batches_pickled_by_python_2_and_by_columns(tmp_path: Path) -> None:
    folder = cifar10(tmp_path, batch(data=np.asfortranarray(ROWS)))
    check_cifar10(Cifar(folder))
    write(folder / "test_batch", as_python_2(batch()))
    check_cifar10(Cifar(folder))


def test_cifars_without_names(tmp_path: Path) -> None:
    source = open_source(cifar100(tmp_path))
    assert source.label("00000") == 99 and source.classes == tuple(map(str, range(100)))
    assert Cifar(cifar10(tmp_path, meta=False)).classes == tuple("0123456789")


def test_an_archive_with_folders_called_train_and_test_is_not_cifar(tmp_path: Path) -> None:
    put_all(tmp_path / "photos", "train/a.png", "test/b.png")
    # Unlike the other archives, it has entries for folders.
    with tarfile.open(tmp_path / "photos.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "photos", "photos")
    source = open_source(tmp_path / "photos.tar.gz")
    assert type(source) is ImageFolder and source.keys() == ("test/b.png", "train/a.png")


def test_both_cifars_in_one_place_or_none(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="neither test_batch nor test"):
        Cifar(tmp_path).keys()
    cifar10(tmp_path)
    cifar100(tmp_path)
    with pytest.raises(SourceError, match="both CIFARs"):
        Cifar(tmp_path).keys()


@pytest.mark.parametrize("key", ["6", "00006", "000001", "-0001", "a", "", "²", "0000\uff11"])
def test_unknown_cifar_keys(tmp_path: Path, key: str) -> None:
    source = Cifar(cifar10(tmp_path))
    for ask in (source.load, source.label, source.size):
        with pytest.raises(ImageError):
            ask(key)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([1, 2], "b'data' is missing"),
        ({"data": ROWS, "labels": [0] * 6}, "b'data' is missing"),
        (batch(data=ROWS.tolist()), "b'data' is missing or of the wrong type"),
        (batch(data=ROWS.astype(np.int16)), "uint8"),
        (batch(data=ROWS[:, :3000]), "3072"),
        (batch(data=ROWS[0]), "3072"),
        (batch(data=ROWS[:0], labels=[]), "3072"),
        (batch(labels=[0, 1]), "the labels are not 6 integers from 0 to 9"),
        (batch(labels=[0, 1, 2, 3, 4, 10]), "the labels are not 6 integers from 0 to 9"),
        (batch(labels=[0, 1, 2, 3, 4, -1]), "the labels are not 6 integers from 0 to 9"),
        (batch(labels=[0, 1, 2, 3, 4, 5.0]), "the labels are not 6 integers from 0 to 9"),
        (batch(labels=[0, 1, 2, 3, 4, True]), "the labels are not 6 integers from 0 to 9"),
        (batch(labels=None), "b'labels'"),
    ],
)
def test_malformed_batches(tmp_path: Path, content: object, reason: str) -> None:
    with pytest.raises(SourceError, match=r"cifar-10-batches-py: test_batch: ") as caught:
        Cifar(cifar10(tmp_path, content, protocol=4)).keys()
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", ""),
        (b"\x80\x02", ""),
        (b"no pickle at all", ""),
        (as_python_2(batch())[:-500], ""),
        (b"cbuiltins\neval\n.", "global builtins.eval"),
        (b"cnumpy\nload\n.", "global numpy.load"),
        (b"cnumpy.core.multiarray\nscalar\n.", "global numpy.core.multiarray.scalar"),
        (b"cos\nsystem\n.", "global os.system"),
    ],
)
def test_broken_and_malicious_pickles_are_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    folder = cifar10(tmp_path)
    write(folder / "test_batch", content)
    with pytest.raises(SourceError, match=f"test_batch: .*{reason}"):
        Cifar(folder).keys()


REFUSALS = """
import resource, sys
from robustgen.sets.sources.published import Cifar
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (40, 40))
for path in sys.argv[1:]:
    try:
        print(Cifar(path).keys())
    except Exception as error:
        print(type(error).__name__, error)
"""


PICKLE_BOMBS = {
    "a far place in the memo": (b"\x80\x02K\x01r\x00\x00\x00\x10.", "b'data' is missing"),
    "one text encoded again and again": (
        b"\x80\x02](c_codecs\nencode\nq\x00X\x00\x00\x10\x00" + b"a" * (1 << 20) + b"q\x01"
        b"" + b"h\x00h\x01h\x01\x86R" * 2000 + b"e.",
        "more than 536870912 bytes of text",
    ),
    "millions of lists": (b"\x80\x02(" + b"]" * 3_000_000 + b"l.", "more than 2000000 steps"),
}


def test_names_of_classes_that_are_none(tmp_path: Path) -> None:
    folder = cifar10(tmp_path)
    for names in (NAMES[:9], [*NAMES[:9], b"x" * 1000], [*NAMES[:9], 10]):
        write(folder / "batches.meta", pickle.dumps({b"label_names": names}, 2))
        with pytest.raises(SourceError, match=r"batches\.meta: these are not the names of 10 classes"):
            Cifar(folder).keys()


def tar_header(kind: bytes, size: int) -> bytes:
    info = tarfile.TarInfo("x")
    info.type = kind
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\x80" + size.to_bytes(11, "big") if size >= 0 else b"\xff" * 12
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


TAR_BOMBS = (
    (tarfile.XHDTYPE, 3 << 30, "header of 3221225472 bytes"),
    (tarfile.XGLTYPE, 3 << 30, "header of 3221225472 bytes"),
    (tarfile.GNUTYPE_LONGNAME, 3 << 30, "header of 3221225472 bytes"),
    (tarfile.GNUTYPE_SPARSE, 512, "sparse file"),
    (tarfile.REGTYPE, -1, "member of -1 bytes"),
    (tarfile.REGTYPE, 1 << 40, "unpacks to more than"),
)


def test_bombs_are_refused_at_once(tmp_path: Path) -> None:
    """An interpreter with 1 GB of memory and 40 processor seconds refuses all of them."""
    reasons = {}
    for number, (content, reason) in enumerate(PICKLE_BOMBS.values()):
        folder = cifar10(tmp_path / str(number))
        write(folder / "test_batch", content)
        reasons[folder] = f"test_batch: {reason}"
    for number, (kind, size, reason) in enumerate(TAR_BOMBS):
        path = tmp_path / f"{number}.tar.gz"
        path.write_bytes(gzip.compress(tar_header(kind, size) + bytes(1 << 20), 1))
        reasons[path] = f".tar.gz: {reason}"
    command = [sys.executable, "-c", REFUSALS, *map(str, reasons)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    for said, reason in zip(done.stdout.splitlines(), reasons.values(), strict=True):
        assert said.startswith("SourceError") and reason in said


def test_members_that_leave_the_archive_are_ignored(tmp_path: Path) -> None:
    names = (
        "../test_batch",
        "a/../../test_batch",
        f"{tmp_path}/x/test_batch",
        "test_batch",
        "a/x/../test_batch",
    )
    good = members(cifar10(tmp_path / "data"))
    packed = put_tar(tmp_path / "c.tar.gz", dict.fromkeys(names, b"bad") | good, "w:gz")
    before = sorted(tmp_path.rglob("*"))
    check_cifar10(Cifar(packed))
    assert sorted(tmp_path.rglob("*")) == before


def test_giant_batches_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "_MOST_CIFAR_BYTES", 100)
    folder = cifar10(tmp_path)
    for path in (folder, put_tar(tmp_path / "c.tar.gz", members(folder), "w:gz")):
        with pytest.raises(SourceError, match="has more than 100 bytes"):
            Cifar(path).keys()


def test_broken_archives(tmp_path: Path) -> None:
    packed = put_tar(tmp_path / "c.tar.gz", members(cifar10(tmp_path)), "w:gz")
    for content in (b"", b"no archive", packed.read_bytes()[:-3000]):
        path = write(tmp_path / "broken.tar.gz", content)
        with pytest.raises(SourceError, match=r"broken\.tar\.gz: "):
            Cifar(path).keys()


def test_a_changed_batch_is_read_again(tmp_path: Path) -> None:
    folder = cifar10(tmp_path)
    assert Cifar(folder).label("00000") == 3
    cifar10(tmp_path, batch(labels=[7] * 6))
    os.utime(folder / "test_batch", (1, 1))
    assert Cifar(folder).label("00000") == 7


def test_a_batch_is_read_once_in_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Cifar(cifar10(tmp_path))
    image = source.load("00000")
    packed = pickle.dumps(source)
    assert len(packed) < 1500 and (pickle.loads(packed).load("00000") == image).all()
    monkeypatch.setattr(published, "unpickle", None)
    assert (pickle.loads(packed).load("00000") == image).all()


# --- all kinds -----------------------------------------------------------------------------------


def test_photographs_without_importing_scikit_image() -> None:
    code = (
        "import sys; from robustgen.sets.sources.folder import Photographs; s = Photographs(); k = s.keys(); "
        "s.load(k[0]); print(len(k), k[0], {'skimage', 'cv2', 'numba'} & set(sys.modules))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "8 astronaut/astronaut.png set()\n"


def test_photographs() -> None:
    source = open_source(None, "demo")
    assert labels_of(source) == list(range(8))
    assert source.load("rocket/rocket.JPEG").shape == (427, 640, 3)


def test_missing_photographs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Photographs, "NAMES", ("nothing.png",))
    with pytest.raises(SourceError, match=r"nothing\.png.*pip install"):
        Photographs()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SourceError, match="pip install"):
        Photographs()


def test_open_source_detects_or_refuses(tmp_path: Path) -> None:
    flat = flat_imagenet(tmp_path)
    labels = write(tmp_path / "labels.txt", pairs(" "))
    assert type(open_source(flat)) is ImageFolder
    assert type(open_source(str(flat), "folder")) is ImageFolder
    assert type(open_source(flat, options=Options(labels=labels))) is LabelledFolder
    assert type(open_source(flat, "labelled", Options(labels))) is LabelledFolder
    with pytest.raises(UnknownNameError, match="did you mean 'cifar'"):
        open_source(flat, "cifer")
    for path in (tmp_path / "missing", tmp_path / "missing.tar.gz", "nul\0", "x" * 5000):
        with pytest.raises(SourceError, match=r"missing(\.tar\.gz)?: No|null|too long"):
            open_source(path)
    wrong = ((flat, "labelled"), (flat, "folder", Options(labels)), (None, "folder"), (labels, "folder"))
    for arguments in wrong:
        with pytest.raises(SourceError):
            open_source(*arguments)
