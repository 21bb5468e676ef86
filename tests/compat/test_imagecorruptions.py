"""The package imagecorruptions: pixels, interface, and the edition that makes COCO-C."""

import hashlib

import numpy as np
import pytest
from PIL import Image

import robustgen
from robustgen.compat import imagecorruptions
from tests import reference
from tests.golden.outputs import DESCRIBED, read_cases, read_outputs
from tests.helpers import cli, cli_error, manifest, photo, pixels_of, put_photo

CASES = read_cases("families.json", "imagecorruptions")
NAMES = imagecorruptions.get_corruption_names("all")
DIFFERENT = {"motion_blur", "snow", "frost", "elastic_transform", "jpeg_compression"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["key"])
def test_pixels_are_the_published_ones(case):
    source, name, severity = case["key"].split("/")
    rng, step = np.random.RandomState(case["seed"]), case["step"]
    golden = read_outputs("imagecorruptions")
    image = golden[f"input/{source}"]
    got = imagecorruptions.corrupt(image, severity=int(severity), corruption_name=name, rng=rng)
    assert got.shape == image.shape and got.dtype == np.uint8
    # Sums may lie within the last bit of a whole number, and that bit is the machine's own exp's.
    difference = np.abs(got[::step, ::step].astype(int) - golden[case["key"]])
    assert difference.max() <= 1 and (difference > 0).mean() <= 1e-3


@pytest.mark.parametrize("place", DESCRIBED["imagecorruptions"])
def test_pixels_are_those_of_the_description_at_other_sizes(place):
    name, height, width = place.split("/")
    image, digest = photo(int(height), int(width), seed=3), hashlib.sha256()
    for severity in range(1, 6):
        digest.update(imagecorruptions.corrupt(image, severity, name, rng=np.random.RandomState(severity)))
    assert digest.hexdigest() == DESCRIBED["imagecorruptions"][place]


@pytest.mark.parametrize("shape", [(36, 36), (71, 78), (136, 40), (64, 64)], ids=str)
def test_the_last_line_of_a_zoom_is_black_where_scipy_placed_it_outside(shape):
    image = photo(*shape, seed=1)
    for severity in range(1, 6):
        p = robustgen.CORRUPTIONS["zoom_blur"].table[224][severity - 1]
        x, factors = image / np.float32(255), np.arange(1, p.stop, p.step)
        for mode, edition in (("constant", "coco-c"), ("nearest", "folder")):
            total = np.zeros_like(x)
            for factor in factors:
                total += reference.zoomed(x, factor, mode)
            want = reference.truncated((x + total) / (len(factors) + 1))
            got = robustgen.corrupt(image, "zoom_blur", severity, edition=edition, scale=224)
            assert np.array_equal(got, want), (severity, edition)
        assert np.array_equal(
            imagecorruptions.corrupt(image, severity, "zoom_blur"),
            robustgen.corrupt(image, "zoom_blur", severity, edition="coco-c"),
        )


def test_all_nineteen_are_covered():
    assert {case["key"].split("/")[1] for case in CASES} == set(NAMES) == set(robustgen.CORRUPTIONS)


def test_names_and_numbers():
    assert NAMES[:15] == imagecorruptions.get_corruption_names() and len(NAMES) == 19
    assert list(imagecorruptions.corruption_dict) == NAMES
    assert imagecorruptions.corruption_tuple == tuple(imagecorruptions.corruption_dict.values())
    assert imagecorruptions.corrupt(IMAGE, 1, corruption_number=0).shape == IMAGE.shape
    assert imagecorruptions.get_corruption_names("weather") == ["snow", "frost", "fog", "brightness"]
    with pytest.raises(ValueError, match="subset must be one of"):
        imagecorruptions.get_corruption_names("nonsense")


IMAGE = photo(40, 50, 7)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((IMAGE.tolist(), 1, "fog"), AttributeError, "type(image) to be numpy.ndarray"),
        ((IMAGE / 255, 1, "fog"), AttributeError, "image.dtype.type to be numpy.uint8"),
        ((IMAGE[None], 1, "fog"), AttributeError, "image.shape to be either"),
        ((IMAGE[:, :31, :2], 1, "fog"), AttributeError, "at least 32 pixels"),
        ((IMAGE[..., :2], 9, "fog"), AttributeError, "either 1 or 3 channels"),
        ((IMAGE, 0, "nonsense"), AttributeError, "integer in [1, 5]"),
        ((IMAGE, 2.5, "fog"), AttributeError, "integer in [1, 5]"),
        ((IMAGE, 1.0, "fog"), TypeError, "indices must be integers"),
        ((IMAGE, 1, "nonsense"), KeyError, "nonsense"),
        ((IMAGE, 1, None, 19), IndexError, "out of range"),
        ((IMAGE, 1), ValueError, "Either corruption_name or corruption_number"),
    ],
)
def test_errors_are_those_of_the_package(arguments, error, message):
    with pytest.raises(error) as raised:
        imagecorruptions.corrupt(*arguments)
    assert message in str(raised.value) and type(raised.value) is error


@pytest.mark.parametrize("name", NAMES)
def test_functions_take_a_pillow_image_and_the_global_generator(name):
    before = IMAGE.copy()
    np.random.seed(3)
    given = imagecorruptions.corrupt(IMAGE, True, name)
    np.random.seed(3)
    raw = imagecorruptions.corruption_dict[name](Image.fromarray(IMAGE))
    assert isinstance(raw, Image.Image) == (name in ("pixelate", "jpeg_compression"))
    assert np.array_equal(np.uint8(raw), given)
    assert isinstance(raw, Image.Image) or (raw.dtype == np.float64 and raw.max() <= 255)
    assert np.array_equal(IMAGE, before)


@pytest.mark.parametrize("name", NAMES)
def test_functions_take_grey_images_and_refuse_what_they_cannot_use(name):
    function, grey = imagecorruptions.corruption_dict[name], IMAGE[:, :, 0]
    want = np.uint8(function(np.stack([grey] * 3, -1), 2, rng=np.random.RandomState(1)))
    for each in (grey, grey[..., None], Image.fromarray(np.ascontiguousarray(grey))):
        assert np.array_equal(np.uint8(function(each, 2, rng=np.random.RandomState(1))), want)
    for wrong in (IMAGE / 255, IMAGE[..., :2], IMAGE[None], IMAGE[:0], IMAGE.tolist()):
        with pytest.raises(AttributeError, match=r"Expecting|at least 1 pixels"):
            function(wrong, 2)


@pytest.mark.parametrize("name", NAMES)
def test_the_edition_speaks_the_dialect(name):
    image = photo(64, 48, 2)
    own, theirs = (
        robustgen.corrupt(image, name, 3, edition=edition, scale=scale, rng=np.random.RandomState(4))
        for edition, scale in (("folder", 224), ("coco-c", None))
    )
    port = imagecorruptions.corrupt(image, 3, name, rng=np.random.RandomState(4))
    assert np.array_equal(theirs, port)
    if name in DIFFERENT:
        assert not np.array_equal(own, theirs)
    elif name not in ("pixelate", "spatter"):
        assert np.array_equal(own, theirs)


def test_the_edition_makes_sets_in_the_format_and_size_of_the_source(tmp_path):
    Image.fromarray(photo(48, 70, 1)).save(put_photo(tmp_path / "in" / "one.jpg").with_name("two.png"))
    flags = ["--dataset", "coco-c", "--source", tmp_path / "in", "--severities", "3", "--jobs", "1"]
    out = tmp_path / "out"
    cli("make-c", *flags, "--format", "original", "--corruptions", "frost,motion_blur", "--output", out)
    assert pixels_of(out / "frost/3/two.png").shape == (48, 70, 3)
    assert pixels_of(out / "motion_blur/3/one.jpg").shape == (36, 40, 3)
    held = manifest(out)
    assert held["edition"] == "coco-c" and "Michaelis" in held["citation"]
    cli("verify", out, "--deep", "2")
    cli_error("make-p", *flags[:4], "--output", tmp_path / "p")
    with pytest.raises(robustgen.errors.ArgumentError, match="coco-c"):
        robustgen.perturb(IMAGE, "tilt", edition="coco-c")
