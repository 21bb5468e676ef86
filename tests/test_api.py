"""corrupt, perturb and prepare: what they take, what they refuse, and what they leave alone."""

import math
import subprocess
import sys
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

import robustgen
from robustgen import CORRUPTIONS, EDITIONS, PERTURBATIONS, corrupt, perturb, prepare
from robustgen.errors import ArgumentError, ArgumentTypeError, ImageError, RobustgenError, UnknownNameError
from robustgen.pixels.benchmarks.registry import MEDMNIST
from tests.helpers import FIXED_CORRUPTIONS, make_c, photo, pixels_of, put_photo

COMMON_CORRUPTIONS = [
    *("gaussian_noise", "shot_noise", "impulse_noise"),
    *("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    *("snow", "frost", "fog", "brightness"),
    *("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
]
EXTRA_CORRUPTIONS = ["speckle_noise", "gaussian_blur", "spatter", "saturate"]
COMMON_PERTURBATIONS = [
    *("gaussian_noise", "shot_noise", "motion_blur", "zoom_blur", "snow", "brightness"),
    *("translate", "rotate", "tilt", "scale"),
]
EXTRA_PERTURBATIONS = ["speckle_noise", "gaussian_blur", "spatter", "shear"]
NOISES = ["gaussian_noise", "shot_noise", "speckle_noise"]

IMAGE = photo(41, 57)


# --- what there is -------------------------------------------------------------------------------


def test_operations_stand_in_the_order_of_the_benchmark():
    for registry, common, extra in (
        (CORRUPTIONS, COMMON_CORRUPTIONS, EXTRA_CORRUPTIONS),
        (PERTURBATIONS, COMMON_PERTURBATIONS, EXTRA_PERTURBATIONS),
    ):
        assert list(registry) == common + extra
        assert [name for name, entry in registry.items() if entry.common] == common
    assert {entry.levels for entry in CORRUPTIONS.values()} == {(1, 2, 3, 4, 5)}
    for name, entry in PERTURBATIONS.items():
        assert entry.levels == ((1, 2, 3) if name in NOISES else (1,))
        assert entry.temporal == (name not in NOISES)


def test_editions_and_their_scales():
    scales = {name: edition.scale for name, edition in EDITIONS.items()}
    assert list(scales.items()) == [
        *[("imagenet", 224), ("imagenet-inception", 299), ("imagenet-64", 64), ("tiny-imagenet", 64)],
        *[("cifar-10", 32), ("cifar-100", 32), ("folder", None), ("coco-c", 224)],
        *[("laion-c", 224), ("mnist", 32)],
        *[(name, 224) for name in MEDMNIST],
        *[("kinetics", None), ("ssv2", None)],
    ]


@pytest.mark.parametrize("registry", [CORRUPTIONS, PERTURBATIONS, EDITIONS])
def test_registries_cannot_be_changed(registry):
    with pytest.raises(TypeError):
        registry["mine"] = None


def test_public_names():
    assert set(robustgen.__all__) == set(dir(robustgen))
    for name in robustgen.__all__:
        assert getattr(robustgen, name) is not None
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = robustgen.nothing_of_the_kind


# --- images that are taken -----------------------------------------------------------------------


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_corrupt_gives_a_new_array_of_the_same_size(name):
    before = IMAGE.copy()
    result = corrupt(IMAGE, name, 3, edition="folder", rng=0)
    assert result.shape == IMAGE.shape and result.dtype == np.uint8 and result.flags.writeable
    assert not np.shares_memory(result, IMAGE)
    assert np.array_equal(IMAGE, before)
    assert not np.array_equal(result, IMAGE)


@pytest.mark.parametrize("edition", EDITIONS)
def test_what_prepare_gives_is_the_callers_own(edition):
    fixed = {"cifar-10": 32, "cifar-100": 32, "mnist": 28, **dict.fromkeys(MEDMNIST, 224)}
    for shape in [(fixed[edition],) * 2] if edition in fixed else [(32, 32), (64, 64), (299, 300)]:
        image = photo(*shape)
        prepared = prepare(image, edition)
        assert prepared.flags.writeable
        assert not np.shares_memory(prepared, image)


@pytest.mark.parametrize("edition", ["imagenet", "cifar-10"])
@pytest.mark.parametrize("name", ["frost", "fog", "snow", "elastic_transform"])
def test_corrupt_an_image_larger_than_any_frost_photograph(name, edition):
    image = photo(700, 1000)
    result = corrupt(image, name, 3, edition=edition, rng=1)
    assert result.shape == image.shape
    assert (result != image).mean() > 0.3


@pytest.mark.parametrize("shape", [(600, 900), (1400, 40), (40, 1400)], ids=str)
def test_frost_covers_the_whole_image(shape):
    black = np.zeros((*shape, 3), np.uint8)
    for seed in range(6):
        frosted = corrupt(black, "frost", 5, rng=seed)
        assert frosted[:, -1].any() and frosted[-1].any() and frosted[0].any() and frosted[:, 0].any()


ODD_ARRAYS = {
    "read-only": lambda image: np.frombuffer(image.tobytes(), np.uint8).reshape(image.shape),
    "Fortran order": np.asfortranarray,
    "negative strides": lambda image: np.ascontiguousarray(image[::-1, ::-1])[::-1, ::-1],
    "every second pixel": lambda image: np.repeat(np.repeat(image, 2, axis=0), 2, axis=1)[::2, ::2],
    "channels last of planes": lambda image: np.ascontiguousarray(image.transpose(2, 0, 1)).transpose(
        1, 2, 0
    ),
    "subclass": lambda image: image.view(np.memmap),
}


@pytest.mark.slow("applies every corruption in several layouts")
@pytest.mark.parametrize("layout", ODD_ARRAYS)
def test_the_memory_layout_makes_no_difference(layout):
    odd = ODD_ARRAYS[layout](IMAGE)
    assert np.array_equal(odd, IMAGE)
    for name in CORRUPTIONS:
        results = [corrupt(image, name, 4, edition="folder", rng=3) for image in (IMAGE, odd)]
        assert np.array_equal(*results), name
    assert np.array_equal(odd, IMAGE)


@pytest.mark.parametrize("name", PERTURBATIONS)
def test_perturb_takes_a_read_only_array_and_leaves_it_alone(name):
    odd = ODD_ARRAYS["read-only"](IMAGE)
    frames = perturb(odd, name, edition="folder", rng=0)
    assert frames.dtype == np.uint8 and frames.shape[1:] == IMAGE.shape and frames.flags.writeable
    assert np.array_equal(odd, IMAGE)


def test_a_grey_array_is_taken_as_three_equal_channels():
    grey = IMAGE[:, :, 0]
    colours = np.stack([grey] * 3, axis=2)
    for name in ("contrast", "gaussian_noise", "fog"):
        results = [corrupt(image, name, 2, edition="folder", rng=4) for image in (grey, colours)]
        assert np.array_equal(*results), name
    assert np.array_equal(prepare(grey, "imagenet-64"), prepare(colours, "imagenet-64"))


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "RGBA", "CMYK", "1", "LA"])
def test_a_pillow_image_is_converted_to_rgb(mode):
    image = Image.fromarray(IMAGE).convert(mode)
    before = image.tobytes()
    want = corrupt(np.array(image.convert("RGB")), "contrast", 1, edition="folder")
    assert np.array_equal(corrupt(image, "contrast", 1, edition="folder"), want)
    assert image.mode == mode and image.tobytes() == before


# --- what is refused -----------------------------------------------------------------------------

BAD_IMAGES = {
    "float": (IMAGE / 255, ArgumentTypeError, "uint8, not float64"),
    "bool": (IMAGE > 9, ArgumentTypeError, "uint8, not bool"),
    "list": (IMAGE.tolist(), ArgumentTypeError, "not list"),
    "None": (None, ArgumentTypeError, "not NoneType"),
    "RGBA": (np.zeros((40, 40, 4), np.uint8), ArgumentError, r"not \(40, 40, 4\)"),
    "one channel": (np.zeros((40, 40, 1), np.uint8), ArgumentError, r"not \(40, 40, 1\)"),
    "batch": (IMAGE[None], ArgumentError, r"not \(1, 41, 57, 3\)"),
    "line": (np.zeros(40, np.uint8), ArgumentError, r"not \(40,\)"),
    "empty": (np.zeros((0, 40, 3), np.uint8), ArgumentError, r"not \(0, 40, 3\)"),
}


@pytest.mark.parametrize("bad", BAD_IMAGES)
def test_what_is_no_image_is_refused(bad):
    image, error, message = BAD_IMAGES[bad]
    for call in (
        lambda: corrupt(image, "fog", 1),
        lambda: perturb(image, "rotate"),
        lambda: prepare(image),
    ):
        with pytest.raises(error, match=message):
            call()


@pytest.mark.parametrize(("height", "width"), [(31, 90), (90, 31), (1, 1)])
def test_small_images_are_refused(height, width):
    message = f"{width} x {height} pixels.* 32"
    with pytest.raises(ArgumentError, match=message):
        corrupt(np.zeros((height, width, 3), np.uint8), "fog", 1)
    with pytest.raises(ArgumentError, match=message):
        perturb(np.zeros((height, width, 3), np.uint8), "rotate", edition="folder")


BAD_LEVELS = {
    **dict.fromkeys((6, 0, 0.5, 5.5, math.nan, math.inf), ArgumentError),
    **dict.fromkeys((True, "3", None, 2 + 0j), ArgumentTypeError),
}


@pytest.mark.parametrize(("level", "error"), BAD_LEVELS.items(), ids=repr)
def test_bad_levels_are_refused(level, error):
    with pytest.raises(error, match="severity"):
        corrupt(IMAGE, "fog", level)
    error = ArgumentTypeError if isinstance(level, float) else error
    with pytest.raises(error, match="difficulty"):
        perturb(IMAGE, "shot_noise", difficulty=level)


def test_only_noises_have_difficulties():
    with pytest.raises(ArgumentError, match=r"difficulty 2 of rotate does not exist \(1\)"):
        perturb(IMAGE, "rotate", difficulty=2)
    assert len(perturb(IMAGE, "speckle_noise", edition="folder", difficulty=3, rng=0)) == 31


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("corruption 'forst' (did you mean 'frost'?)", lambda: corrupt(IMAGE, "forst", 1)),
        ("corruption 'Motion-Blur' (did you mean 'motion_blur'?)", lambda: corrupt(IMAGE, "Motion-Blur", 1)),
        ("corruption 'qqq' (known: gaussian_noise, shot_noise, ", lambda: corrupt(IMAGE, "qqq", 1)),
        ("perturbation 'trnslate' (did you mean 'translate'?)", lambda: perturb(IMAGE, "trnslate")),
        ("edition 'imagnet' (did you mean", lambda: corrupt(IMAGE, "fog", 1, edition="imagnet")),
        ("edition 'imagnet' (did you mean", lambda: perturb(IMAGE, "rotate", edition="imagnet")),
        ("edition 'imagnet' (did you mean", lambda: prepare(IMAGE, "imagnet")),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(message, call):
    with pytest.raises(UnknownNameError) as caught:
        call()
    assert str(caught.value).startswith(f"unknown {message}") and isinstance(caught.value, ValueError)


@pytest.mark.parametrize("name", [None, 3, b"fog", ["fog"]], ids=repr)
def test_names_are_strings(name):
    for what, call in (
        ("corruption", lambda: corrupt(IMAGE, name, 1)),
        ("perturbation", lambda: perturb(IMAGE, name)),
        ("edition", lambda: prepare(IMAGE, name)),
    ):
        with pytest.raises(ArgumentTypeError, match=f"{what} must be a string") as caught:
            call()
        assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("scale", [0, 100, -64, "64", True, [64]], ids=repr)
def test_a_scale_that_does_not_exist_is_refused(scale):
    with pytest.raises(RobustgenError, match="scale"):
        corrupt(IMAGE, "fog", 1, scale=scale)


# --- randomness ----------------------------------------------------------------------------------


def test_an_int_is_the_seed_of_a_generator():
    results = [
        corrupt(IMAGE, "fog", 1, rng=rng) for rng in (5, np.int32(5), np.uint8(5), np.random.default_rng(5))
    ]
    assert all(np.array_equal(results[0], other) for other in results[1:])


def test_no_seed_is_fresh_each_time():
    assert not np.array_equal(*[corrupt(IMAGE, "gaussian_noise", 1) for _ in range(2)])
    assert not np.array_equal(*[corrupt(IMAGE, "gaussian_noise", 1, rng=None) for _ in range(2)])


@pytest.mark.parametrize(
    "make", [np.random.default_rng, np.random.RandomState], ids=["Generator", "RandomState"]
)
def test_a_generator_is_used_where_it_stands_and_moves_on(make):
    rng = make(3)
    first, second = (corrupt(IMAGE, "gaussian_noise", 1, rng=rng) for _ in range(2))
    assert np.array_equal(first, corrupt(IMAGE, "gaussian_noise", 1, rng=make(3)))
    assert not np.array_equal(first, second)


def test_global_numpy_state_is_neither_used_nor_moved():
    np.random.seed(1)
    before = np.random.get_state()[1].copy()
    for name in CORRUPTIONS:
        corrupt(IMAGE, name, 2, edition="folder", rng=0)
        corrupt(IMAGE, name, 2, edition="folder")
    assert np.array_equal(np.random.get_state()[1], before)


@pytest.mark.parametrize("rng", [True, 1.0, "1", [1], np.random, np.random.PCG64(1), -1])
def test_what_is_no_source_of_randomness_is_refused(rng):
    error = ArgumentError if rng == -1 else ArgumentTypeError
    for call in (lambda: corrupt(IMAGE, "fog", 1, rng=rng), lambda: perturb(IMAGE, "snow", rng=rng)):
        with pytest.raises(error, match="rng must"):
            call()


# --- scales --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("side", "scale"), [(32, 32), (47, 32), (48, 64), (64, 64), (143, 64), (144, 224), (261, 224), (262, 299)]
)
def test_the_edition_folder_takes_the_scale_nearest_to_the_shorter_side(side, scale):
    wide = photo(side, side + 150)
    for image in (wide, wide.transpose(1, 0, 2)):
        want = corrupt(image, "pixelate", 3, scale=scale)
        assert np.array_equal(corrupt(image, "pixelate", 3, edition="folder"), want)


def test_a_scale_wins_over_the_edition():
    chosen = corrupt(IMAGE, "contrast", 1, edition="imagenet", scale=32)
    assert np.array_equal(chosen, corrupt(IMAGE, "contrast", 1, edition="cifar-10"))
    assert not np.array_equal(chosen, corrupt(IMAGE, "contrast", 1, edition="imagenet"))


# --- preparation ---------------------------------------------------------------------------------

BILINEAR = Image.Resampling.BILINEAR


def resized(image, width, height):
    """Resize the width first, as Pillow did in 2018; later releases begin with the height of some images."""
    return image.resize((width, image.height), BILINEAR).resize((width, height), BILINEAR)


def shorter_side(image, side):
    width, height = image.size
    if width < height:
        return resized(image, side, int(side * height / width))
    return resized(image, int(side * width / height), side)


def cropped(image, width, height):
    left, top = round((image.width - width) / 2), round((image.height - height) / 2)
    return image.crop((left, top, left + width, top + height))


def inception(image):
    window = cropped(image, int(0.875 * image.width), int(0.875 * image.height))
    return resized(window, 299, 299)


PREPARED = {
    "imagenet": lambda image: cropped(shorter_side(image, 256), 224, 224),
    "imagenet-inception": inception,
    "imagenet-64": lambda image: resized(image, 64, 64),
    "tiny-imagenet": lambda image: resized(image, 64, 64),
    "folder": lambda image: image,
}
SOURCES = [
    (300, 451),
    (451, 300),
    (375, 500),
    (500, 333),
    (256, 256),
    (64, 64),
    (255, 259),
    (40, 37),
    (90, 640),
]


@pytest.mark.parametrize("shape", SOURCES, ids=str)
@pytest.mark.parametrize("edition", PREPARED)
def test_prepare_does_what_pillow_does(edition, shape):
    source = photo(*shape)
    want = np.asarray(PREPARED[edition](Image.fromarray(source)))
    assert np.array_equal(prepare(source, edition), want)


@pytest.mark.parametrize("edition", ["cifar-10", "cifar-100"])
def test_prepare_takes_cifar_images_as_they_are_and_no_others(edition):
    image = photo(32, 32)
    assert np.array_equal(prepare(image, edition), image)
    with pytest.raises(ImageError, match="32 x 32 pixels, not 33 x 32"):
        prepare(photo(32, 33), edition)


@pytest.mark.parametrize(
    ("shape", "edition", "message"),
    [
        # At 299 an eighth of each side is cut off; of one pixel nothing is left to enlarge.
        ((1, 90), "imagenet-inception", "small"),
        ((90, 1), "imagenet-inception", "small"),
        ((1, 5000), "imagenet", "5000 x 1"),
        # It would grow to gigabytes.
        ((3000, 2), "imagenet", "too elongated to resize: 2 x 3000 pixels"),
    ],
)
def test_what_cannot_be_prepared_is_refused(shape, edition, message):
    with pytest.raises(ImageError, match=message):
        prepare(np.full((*shape, 3), 200, np.uint8), edition)
    assert prepare(np.zeros((510, 2, 3), np.uint8), "imagenet").shape == (224, 224, 3)


@pytest.mark.parametrize("edition", ["imagenet", "imagenet-inception", "imagenet-64", "tiny-imagenet"])
def test_perturb_brings_every_frame_to_the_size_of_the_edition(edition):
    side = EDITIONS[edition].scale
    for name in ("translate", "motion_blur", "scale"):
        assert perturb(photo(97, 150), name, edition=edition).shape[1:] == (side, side, 3)


def test_the_first_frame_is_the_clean_image():
    source = photo(97, 150)
    want = prepare(source, "imagenet")
    for name in (*NOISES, "zoom_blur"):
        assert np.array_equal(perturb(source, name, edition="imagenet", rng=0)[0], want), name


# --- parameters ----------------------------------------------------------------------------------


def test_parameters_replace_constants_by_name():
    image = photo(64, 64)
    assert np.array_equal(
        corrupt(image, "contrast", 1, parameters={"factor": 0.3}), corrupt(image, "contrast", 2)
    )
    assert np.array_equal(
        corrupt(image, "gaussian_noise", 1, parameters={"sigma": np.float32(0.25)}, rng=1),
        corrupt(image, "gaussian_noise", 5, parameters={"sigma": 0.25}, rng=1),
    )
    assert np.array_equal(corrupt(image, "fog", 1, parameters={}, rng=1), corrupt(image, "fog", 1, rng=1))


def test_parameters_of_a_sequence_too():
    image = photo(32, 32)
    twice = perturb(image, "rotate", edition="cifar-10", parameters={"step": 2})
    assert np.array_equal(twice[16], perturb(image, "rotate", edition="cifar-10")[17])
    drip = {"drip": [0.2, 0.8], "threshold": 0.7}
    assert np.array_equal(
        perturb(image, "spatter", edition="cifar-10", parameters=drip, rng=2),
        perturb(image, "spatter", edition="cifar-10", rng=2),
    )


def test_turbo_is_a_parameter_of_jpeg_compression():
    image = photo(64, 64)
    ijg, turbo = (
        corrupt(image, "jpeg_compression", 1, parameters={"library": name}) for name in ("ijg", "turbo")
    )
    assert np.array_equal(ijg, corrupt(image, "jpeg_compression", 1))
    assert 0 < np.abs(ijg.astype(int) - turbo).mean() < 2
    with BytesIO() as file:
        Image.fromarray(image).save(file, "JPEG", quality=65)
        assert np.array_equal(turbo, np.asarray(Image.open(file)))


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("contrast", {"facto": 1}, "unknown parameter of contrast 'facto' (did you mean 'factor'?)"),
        ("contrast", {"factor": -1}, "parameters: contrast.factor: must be a number of at least 0, not -1"),
        ("contrast", {"factor": True}, "contrast.factor: must be a number of at least 0, not True"),
        ("contrast", {"factor": math.nan}, "contrast.factor: must be a number of at least 0, not nan"),
        ("glass_blur", {"iterations": 1.5}, "iterations: must be a whole number of at least 0, not 1.5"),
        ("jpeg_compression", {"library": "mozjpeg"}, "library: must be 'turbo' or 'ijg', not 'mozjpeg'"),
        ("frost", {"frost": 3}, "parameters: frost: cannot be used: "),
        ("pixelate", {"fraction": 0}, "pixelate: fraction 0 leaves none of 64 x 64"),
        ("pixelate", {"fraction": 1.5}, "parameters: pixelate.fraction: must be from 0 to 1, not 1.5"),
        ("jpeg_compression", {"quality": 0}, "jpeg_compression.quality: must be from 1 to 100, not 0"),
        ("contrast", [0.3], "parameters must be a mapping"),
    ],
)
def test_wrong_parameters_are_refused(name, parameters, message):
    error = ArgumentError if isinstance(parameters, dict) else ArgumentTypeError
    with pytest.raises(error) as caught:
        corrupt(photo(64, 64), name, 1, parameters=parameters)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["gaussian_noise", "speckle_noise", "gaussian_blur", "motion_blur"])
def test_without_a_deviation_an_image_stays_as_it_is(name):
    image = photo(40, 48)
    generators = (1, np.random.RandomState(1), np.random.Generator(np.random.Philox(1)))
    for rng in generators:
        assert np.array_equal(corrupt(image, name, 3, parameters={"sigma": 0}, rng=rng), image)
    if name.endswith("noise"):
        for rng in generators:
            frames = perturb(image, name, parameters={"sigma": 0}, rng=rng)
            assert np.array_equal(frames, np.stack([image] * len(frames)))


def test_a_sequence_among_parameters_is_checked():
    with pytest.raises(ArgumentError, match="must be a sequence of numbers"):
        perturb(photo(32, 32), "spatter", edition="cifar-10", parameters={"drip": "fast"})


# --- what the scripts did by accident ------------------------------------------------------------


def test_without_drops_a_sequence_is_black_and_a_corrupted_image_dry():
    image = photo(32, 32)
    frames = perturb(image, "spatter", edition="cifar-10", parameters={"threshold": 9}, rng=1)
    assert not frames.any()
    dry = corrupt(image, "spatter", 1, edition="cifar-10", parameters={"threshold": 9}, rng=1)
    assert np.abs(dry.astype(int) - image).max() <= 1


@pytest.mark.parametrize("bit_generator", [np.random.MT19937, np.random.PCG64, np.random.SFC64])
def test_noise_has_the_same_mean_from_every_bit_generator(bit_generator):
    image = np.full((64, 64, 3), 128, np.uint8)
    for name in ("gaussian_noise", "shot_noise", "impulse_noise"):
        noisy = corrupt(image, name, 3, rng=np.random.Generator(bit_generator(1)))
        assert abs(noisy.mean() - 128) < 4


@pytest.mark.parametrize(
    ("height", "width", "scale"), [(32, 32, 32), (64, 64, 64), (224, 224, 224), (300, 400, 299)]
)
def test_without_an_edition_the_size_decides_as_it_does_in_make_c(height, width, scale, tmp_path):
    source = put_photo(tmp_path / "src" / "a" / "x.png", height, width)
    few = ("--corruptions", "contrast,pixelate", "--severities", "3", "--format", "png", "--jobs", "1")
    make_c(tmp_path / "src", tmp_path / "out", *few)
    for name in ("contrast", "pixelate"):
        ours = corrupt(pixels_of(source), name, 3)
        assert np.array_equal(ours, corrupt(pixels_of(source), name, 3, scale=scale))
        assert np.array_equal(ours, pixels_of(tmp_path / "out" / name / "3/a/x.png"))
    assert robustgen.perturb(pixels_of(source), "brightness").shape == (31, height, width, 3)


@pytest.mark.parametrize("name", ["zoom_blur", "brightness", "snow", "saturate"])
def test_large_images_are_processed_strip_by_strip(name, monkeypatch):
    image = IMAGE[:50, :40]
    calls = [lambda: corrupt(image, name, 3, rng=0)]
    if name in ("zoom_blur", "brightness"):
        calls.append(lambda: perturb(image, name, edition="folder"))
    whole = [call() for call in calls]
    # From now on an image 40 pixels wide is a large one, a strip of which has seven rows.
    monkeypatch.setattr("robustgen.pixels.imaging.arrays._STRIP", 40 * 7)
    monkeypatch.setattr("robustgen.pixels.imaging.colour._STRIP", 40 * 7)
    monkeypatch.setattr("robustgen.pixels.imaging.colour._LARGE", 0)
    assert all(np.array_equal(call(), expected) for call, expected in zip(calls, whole, strict=True))


WITHOUT_POSIX = """
import os, signal, sys
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
del os.getuid, os.sched_getaffinity, os.setpriority, signal.pthread_sigmask
import numpy as np
import robustgen, robustgen.torch
image = np.full((64, 64, 3), 90, np.uint8)
made = [robustgen.corrupt(image, "gaussian_noise", 3, rng=0), robustgen.perturb(image, "brightness", rng=0)]
made += [robustgen.augmix(image, rng=0), robustgen.prepare(image, "imagenet")]
assert {each.dtype for each in made} == {np.dtype(np.uint8)}
for call in (robustgen.make_c, robustgen.make_p):
    try:
        call(source="in", output="out")
    except robustgen.errors.MissingDependencyError as error:
        assert "WSL" in str(error)
    else:
        raise AssertionError
from robustgen.cli import main
main(["list"])
"""


def test_pixels_need_no_modules_of_posix_and_commands_say_so(tmp_path):
    command = [sys.executable, "-c", WITHOUT_POSIX]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == "", done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: ") and "WSL" in line


# --- observations of an environment --------------------------------------------------------------


class Camera:
    """An environment of Gymnasium's interface, whose camera pans over a photograph."""

    name = "pan"

    def __init__(self):
        self.time = 0

    def reset(self, seed=None, options=None):
        self.time = 0
        return self.see(), {"seed": seed}

    def step(self, action):
        self.time += 1
        return self.see(), 1.0, False, self.time == 3, {}

    def see(self):
        return {"camera": photo(60, 80)[self.time : self.time + 50], "state": self.time}


def play(env, seed=None):
    """The camera's frames of an episode of four steps."""
    seen = [env.reset(seed=seed)[0], *(env.step(None)[0] for _ in range(3))]
    assert [each["state"] for each in seen] == [0, 1, 2, 3]
    return np.stack([each["camera"] for each in seen])


@pytest.mark.parametrize(
    ("temporal", "names"),
    [
        ("clip", "gaussian_noise snow frost fog spatter glass_blur contrast plasma_noise"),
        ("frame", "fog snow"),
    ],
)
def test_an_episode_is_a_clip(temporal, names):
    clean = play(Camera())
    for name in names.split():
        env = robustgen.CorruptObservation(Camera(), name, 3, key="camera", temporal=temporal, rng=5)
        first, second = play(env), play(env)
        wanted = robustgen.corrupt_clip(clean, name, 3, temporal=temporal, rng=5)
        assert np.array_equal(first, wanted) and np.array_equal(play(env, seed=5), wanted)
        assert np.array_equal(first, second) == (name in FIXED_CORRUPTIONS)


def test_an_environment_keeps_its_interface():
    env = robustgen.CorruptObservation(Camera(), "contrast", 1, key="camera")
    assert (env.name, env.time) == ("pan", 0) and env.reset(seed=3)[1] == {"seed": 3}
    assert env.step(None)[1:] == (1.0, False, False, {})
    rainy = robustgen.CorruptObservation(Camera(), "video-c:rain", 2, key="camera", rng=0)
    assert np.array_equal(play(rainy), robustgen.corrupt_clip(play(Camera()), "video-c:rain", 2, rng=0))
    with pytest.raises(ArgumentError, match="corrupt_clip"):
        robustgen.CorruptObservation(Camera(), "video-c:frame_rate", 1)
