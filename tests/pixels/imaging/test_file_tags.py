"""Orientation and colour profile: read from files, added to files, and what readers make of them."""

import io
import struct
import zlib

import cv2
import numpy as np
import pytest
from PIL import Image, ImageCms, ImageOps

from robustgen.pixels.imaging.decode import decode_to_pillow, find_tags, read_header
from robustgen.pixels.imaging.file_tags import NO_TAGS, FileTags, add_tags, turn_upright
from robustgen.pixels.imaging.jpeg import encode_jpeg
from robustgen.sets.formats.encoders import encode_lossless
from tests.helpers import encode_tagged, photo

PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
FORMS = {".jpg": "JPEG", ".png": "PNG", ".tif": "TIFF", ".webp": "WEBP"}


def with_space(space):
    """A profile that says so of its colours."""
    return PROFILE[:16] + space + PROFILE[20:]


def written(suffix, height=31, width=40):
    pixels = photo(height, width)
    return encode_jpeg(pixels, 90, optimise=True) if suffix == ".jpg" else encode_lossless(pixels, suffix)


def tags_of(data, library="turbo"):
    return find_tags(decode_to_pillow(io.BytesIO(data), library=library))


@pytest.mark.parametrize("suffix", FORMS)
@pytest.mark.parametrize("profile", [b"", PROFILE, PROFILE + bytes(200_001)], ids=["none", "small", "large"])
@pytest.mark.parametrize("size", [(30, 41), (31, 40)])
def test_readers_turn_what_was_added(suffix, profile, size):
    plain = written(suffix, *size)
    stored = np.asarray(decode_to_pillow(io.BytesIO(plain)))
    for orientation in range(9):
        tags = FileTags(orientation, profile)
        data = add_tags(plain, tags)
        assert tags_of(data) == tags and read_header(io.BytesIO(data)) == (*size[::-1], tags)
        assert (np.asarray(decode_to_pillow(io.BytesIO(data))) == stored).all()
        upright = turn_upright(stored, orientation)
        with Image.open(io.BytesIO(data)) as image:
            held = {tag: value for tag, value in image.getexif().items() if suffix != ".tif"}
            assert held == ({0x0112: orientation} if orientation and suffix != ".tif" else {})
            assert image.info.get("icc_profile", b"") == profile
            assert (np.asarray(ImageOps.exif_transpose(image)) == upright).all()
        # OpenCV turns WebP since 4.13.
        if suffix == ".webp" and tuple(map(int, cv2.__version__.split(".")[:2])) < (4, 13):
            upright = stored
        shown = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
        assert shown.shape == upright.shape and np.abs(shown - upright.astype(int)).max() < 16


@pytest.mark.parametrize("suffix", [*FORMS, ".bmp", ".ppm"])
def test_nothing_changes_without_tags_or_without_a_place_for_them(suffix):
    plain = written(suffix)
    assert add_tags(plain, NO_TAGS) is plain
    assert (add_tags(plain, FileTags(6)) is plain) == (suffix not in FORMS)


@pytest.mark.parametrize("form", FORMS.values())
def test_tags_of_files_of_other_programs(form):
    for orientation in (0, 1, 2, 5, 8):
        data = encode_tagged(photo(30, 41), form, orientation, PROFILE)
        assert tags_of(data) == FileTags(orientation, PROFILE)


def test_the_decoder_of_2018_keeps_tags():
    pytest.importorskip("jpeglib")
    assert tags_of(encode_tagged(photo(40, 48), "JPEG", 6, PROFILE), "ijg") == FileTags(6, PROFILE)


def test_grey_values_with_levels_keep_tags():
    buffer = io.BytesIO()
    Image.fromarray(np.arange(40 * 48).reshape(40, 48).astype(np.uint16)).save(buffer, "PNG", exif=exif_of(6))
    assert find_tags(decode_to_pillow(buffer, "a", levels=(0, 1919))) == FileTags(6)


def exif_of(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


@pytest.mark.parametrize("space", [b"CMYK", b"GRAY", b"Lab ", b"", b"RGB "])
def test_a_profile_is_kept_for_rgb_colours_alone(space):
    profile = with_space(space) if space else b"damaged"
    found = tags_of(encode_tagged(photo(30, 41), "JPEG", 6, profile))
    assert found == FileTags(6, profile if space == b"RGB " else b"")


@pytest.mark.parametrize(
    "exif",
    [
        b"",
        b"Exif\0\0",
        b"Exif\0\0MM\0*\xff\xff\xff\xff\x00\x10" + b"\xff" * 40,
        b"Exif\0\0II*\0\x08\0\0\0\xff\xff" + b"\x12\x01\x03\x00",
        b"Exif\0\0" + exif_of(9).tobytes().removeprefix(b"Exif\0\0"),
    ],
)
def test_damaged_exif_is_none(exif):
    assert tags_of(encode_tagged(photo(30, 41), "JPEG", exif=exif)) == NO_TAGS


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("code", [3, 4])
def test_exif_in_either_order_of_bytes(order, code):
    value = struct.pack(f"{order}HH" if code == 3 else f"{order}L", *([6, 0] if code == 3 else [6]))
    entries = (
        struct.pack(f"{order}HHL", 0x0100, 3, 1) + bytes(4) + struct.pack(f"{order}HHL", 0x0112, code, 1)
    )
    head = b"II*\0" if order == "<" else b"MM\0*"
    exif = b"Exif\0\0" + head + struct.pack(f"{order}LH", 8, 2) + entries + value + bytes(4)
    assert tags_of(encode_tagged(photo(30, 41), "JPEG", exif=exif)) == FileTags(6)


def test_png_whose_exif_follows_the_pixels():
    plain, tagged = (encode_tagged(photo(30, 41), "PNG", each) for each in (0, 6))
    content = exif_of(6).tobytes().removeprefix(b"Exif\0\0")
    chunk = struct.pack(">L", len(content)) + b"eXIf" + content
    late = plain[:-12] + chunk + struct.pack(">L", zlib.crc32(chunk[4:])) + plain[-12:]
    assert tags_of(late) == tags_of(tagged) == FileTags(6)
    assert read_header(io.BytesIO(late)) == (41, 30, FileTags(6))
