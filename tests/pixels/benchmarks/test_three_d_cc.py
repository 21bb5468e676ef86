"""3DCC and RoboDepth: written down plainly, with depth maps good and bad."""

import numpy as np
import pytest
from PIL import Image, ImageOps

import robustgen
from robustgen import metrics
from robustgen.errors import ArgumentError, ImageError
from robustgen.pixels.benchmarks.corruptions.three_d_cc import NOT_MADE
from robustgen.pixels.imaging.kernels.exact import fill_exponentials
from robustgen.pixels.imaging.three_d_cc_effects import depth_from_midas, prepare_depth
from tests.helpers import photo

IMAGE = photo(96, 120, seed=4)
F32 = np.float32


def slope(height=96, width=120):
    y, x = np.mgrid[:height, :width]
    return (0.1 + 0.3 * y / height + 0.02 * np.sin(x / 7)).astype(F32)


@pytest.mark.parametrize("family", ["3dcc", "robodepth"])
@pytest.mark.parametrize("severity", range(1, 6))
def test_camera_noise_is_that_of_the_description(family, severity):
    x, draws = IMAGE / 255, np.random.RandomState(severity)
    g = (0.08, 0.12, 0.18, 0.26, 0.38)[severity - 1]
    counted = np.clip(draws.poisson(25 * x) / 25, 0, 1)
    want = np.clip(counted + draws.normal(0, 0.7 * g, x.shape), 0, 1)
    got = robustgen.corrupt(IMAGE, f"{family}:iso_noise", severity, rng=np.random.RandomState(severity))
    assert np.array_equal(got, (want * 255).astype(np.uint8))
    want = np.asarray(ImageOps.posterize(Image.fromarray(IMAGE), 6 - severity))
    assert np.array_equal(robustgen.corrupt(IMAGE, f"{family}:color_quant", severity), want)


@pytest.mark.parametrize(("name", "own_noise"), [("3dcc:low_light", False), ("robodepth:dark", True)])
@pytest.mark.parametrize("severity", range(1, 6))
def test_darkness_is_that_of_the_description(name, own_noise, severity):
    x, draws = IMAGE / 255, np.random.RandomState(severity)
    level = severity - 1 if own_noise else 2
    photons, sigma = 10 * (60, 25, 12, 5, 3)[level], (0.008, 0.012, 0.018, 0.026, 0.038)[level]
    y = ((x - x.min()) / (x.max() - x.min())) ** 2 * (0.6, 0.5, 0.4, 0.3, 0.2)[severity - 1]
    counted = np.clip(draws.poisson(photons * y) / photons, 0, 1)
    want = np.clip(counted + draws.normal(0, sigma, x.shape), 0, 1)
    got = robustgen.corrupt(IMAGE, name, severity, rng=np.random.RandomState(severity))
    assert np.array_equal(got, (want * 255).astype(np.uint8))


def test_darkness_of_one_colour_is_black_but_for_the_noise():
    dark = robustgen.corrupt(np.full((64, 64, 3), 200, np.uint8), "3dcc:low_light", 1, rng=0)
    # N(0, 0.018) of black: at most a few values of 255.
    assert dark.mean() < 3 and dark.max() < 30


@pytest.mark.parametrize(
    ("name", "severity"), [("3dcc:iso_noise", 1), ("3dcc:iso_noise", 5), ("robodepth:dark", 5)]
)
def test_both_generators_draw_from_the_same_distribution(name, severity):
    image = np.tile(np.arange(0, 256, 5, dtype=np.uint8)[:, None, None], (1, 1200, 3))
    pairs = zip(
        robustgen.corrupt(image, name, severity, rng=1),
        robustgen.corrupt(image, name, severity, rng=np.random.RandomState(1)),
        strict=True,
    )
    for ours, published in pairs:
        counts = [np.bincount(each.ravel(), minlength=256).cumsum() for each in (ours, published)]
        # Kolmogorov and Smirnov: above this once in 30 000.
        assert np.abs(counts[0] - counts[1]).max() / ours.size < 2.3 * np.sqrt(2 / ours.size)


@pytest.mark.parametrize("severity", range(1, 6))
def test_fog_is_that_of_the_description(severity):
    depth, x = slope(), IMAGE.astype(F32) / F32(255)
    clear = np.exp(-(F32(4 * severity) * depth))[:, :, None]
    want = clear * x + F32(x.mean(dtype=np.float64)) * (1 - clear)
    assert want.dtype == F32
    got = robustgen.corrupt(IMAGE, "3dcc:fog_3d", severity, depth=depth)
    differing = got != (want * F32(255)).astype(np.uint8)
    # The last bit of exp decides one value in ten thousand.
    assert differing.mean() < 1e-4


def test_the_exponential_is_accurate():
    x = -np.concatenate([np.linspace(0, 700, 4001), 2.0 ** -np.arange(60)])
    found = np.empty_like(x)
    fill_exponentials(x, found)
    assert np.abs(found / np.exp(x.astype(np.longdouble)) - 1).max() < 2.3e-16
    assert found[0] == 1


def refocus_plainly(image, depth, severity, far):
    """The description, in float32: the pixels, and the same before they were truncated."""
    edges = np.quantile(depth, np.arange(9) / 8, method="linear").astype(F32)
    edges[0] -= F32(1e-4)
    edges[8] += F32(1e-4)
    focus, aperture = (edges[7], F32(severity + 0.5)) if far else (edges[0], F32(severity + 2))
    x, planes = image.astype(F32) / F32(255), []
    for edge in edges:
        radius = aperture * abs(edge - focus) / edge
        reach = int(3 * radius) // 2
        plane = x
        if radius >= 0.1 and reach:
            weights = np.exp(-(np.arange(-reach, reach + 1, dtype=F32) ** 2) / (2 * radius * radius))
            for axis in (1, 0):
                width = [(reach, reach) if axis == each else (0, 0) for each in range(3)]
                wide = np.pad(plane, width, mode="edge")
                length = plane.shape[axis]
                parts = [w * wide.take(range(n, n + length), axis) for n, w in enumerate(weights)]
                plane = sum(parts) / weights.sum()
        planes.append(plane)
    right = np.searchsorted(edges, depth)
    left = right - 1
    span = edges[right] - edges[left]
    a, b = 1 - ((depth - edges[left]) / span) ** 2, 1 - ((edges[right] - depth) / span) ** 2
    rows, columns = np.mgrid[: depth.shape[0], : depth.shape[1]]
    planes = np.stack(planes)
    out = (a / (a + b))[..., None] * planes[left, rows, columns]
    out = (out + (b / (a + b))[..., None] * planes[right, rows, columns]) * F32(255)
    return np.clip(out, 0, 255).astype(np.uint8), out


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("severity", [1, 3, 5])
def test_focus_is_that_of_the_description(far, severity):
    depth = slope()
    want, value = refocus_plainly(IMAGE, depth, severity, far)
    got = robustgen.corrupt(IMAGE, f"3dcc:{'far' if far else 'near'}_focus", severity, depth=depth)
    differing = got != want
    assert differing.mean() < 1e-3 and np.abs(got.astype(int) - want).max() <= 1
    # Only where the order of the sums decides.
    assert (np.abs(value - np.rint(value))[differing] < 1e-3).all()
    assert not np.array_equal(got, IMAGE)


def test_a_flat_scene_stays_sharp():
    depth = np.full((96, 120), 0.25, F32)
    for name in ("near_focus", "far_focus"):
        assert np.array_equal(robustgen.corrupt(IMAGE, f"3dcc:{name}", 5, depth=depth), IMAGE)


def test_a_blur_wider_than_the_image_takes_the_edges():
    depth = np.full((96, 120), 0.5, F32)
    depth[:30] = 0.0005
    white = np.full((96, 120, 3), 255, np.uint8)
    blurred = robustgen.corrupt(white, "3dcc:far_focus", 5, depth=depth)
    assert blurred.min() >= 254


@pytest.mark.parametrize(
    ("name", "depth", "message"),
    [
        ("3dcc:fog_3d", None, "3dcc:fog_3d needs a depth map"),
        ("3dcc:near_focus", np.ones((120, 96), F32), r"\(96, 120\), not float32"),
        ("3dcc:near_focus", np.ones((96, 120), bool), "must hold numbers"),
        ("3dcc:fog_3d", np.where(np.eye(96, 120) > 0, np.nan, 0.3), "NaN or infinity"),
        ("3dcc:far_focus", np.repeat([1e-7, 0.5], [48 * 120, 48 * 120]).reshape(96, 120), "too close to 0"),
        ("3dcc:fog_3d", np.where(np.eye(96, 120) > 0, -1, 0.3), "must not be negative, not -1"),
        ("3dcc:iso_noise", np.ones((96, 120), F32), "takes no depth map"),
        ("fog", np.ones((96, 120), F32), "takes no depth map"),
    ],
)
def test_bad_depth_is_refused(name, depth, message):
    with pytest.raises(ArgumentError, match=message):
        robustgen.corrupt(IMAGE, name, 3, depth=depth)


def test_fog_of_which_nothing_of_the_image_is_left_is_refused():
    metres = np.linspace(1.5, 80, IMAGE.shape[0] * IMAGE.shape[1], dtype=F32).reshape(IMAGE.shape[:2])
    message = r"depths 1.5 to 80, at most 0.5: .*scale=0.006"
    with pytest.raises(ImageError, match=message):
        robustgen.corrupt(IMAGE, "3dcc:fog_3d", 1, depth=metres)
    assert robustgen.corrupt(IMAGE, "3dcc:fog_3d", 1, depth=metres * F32(0.006)).std() > 5
    # A published map may be as far as this everywhere.
    assert robustgen.corrupt(IMAGE, "3dcc:fog_3d", 5, depth=np.full(IMAGE.shape[:2], 0.5, F32)).std() == 0


def test_depth_takes_the_geometry_of_its_image():
    depth = np.arange(300 * 400, dtype=F32).reshape(300, 400)
    prepared = prepare_depth(depth, 256, 224)
    assert prepared.shape == (224, 224) and np.isin(prepared, depth).all()
    # The middle stays in the middle.
    assert abs(prepared[112, 112] - depth[150, 200]) <= 2 * 401
    tall = prepare_depth(depth.T, 256, 224)
    assert np.array_equal(tall, prepared.T)


def test_the_inverse_depth_of_midas_becomes_depth():
    # 512 stands for an inverse depth of 1, and what lies beyond 0.5 is cut off.
    found = depth_from_midas(np.array([[0, 512, 1024, 2048, 5120]], np.uint16))
    assert np.allclose(found, [[0.5, 0.5, 0.5, 0.25, 0.1]], atol=1e-5) and found.dtype == F32


def test_what_cannot_be_made_is_named_with_the_reason():
    published = {
        *("near_focus", "far_focus", "bit_error", "color_quant", "flash", "fog_3d", "h265_abr", "h265_crf"),
        *("iso_noise", "low_light", "xy_motion_blur", "z_motion_blur"),
    }
    made = {name.removeprefix("3dcc:") for name in robustgen.FAMILIES["3dcc"].corruptions}
    assert made | set(NOT_MADE) == published and not made & set(NOT_MADE) and all(NOT_MADE.values())


def test_errors_of_depth_estimation():
    assert metrics.depth_estimation_error(0.2, 0.8) == pytest.approx(0.2)
    assert metrics.depth_corruption_error([0.2, 0.4], [0.4, 0.8]) == pytest.approx(0.5)
    assert metrics.resilience_rate([0.2, 0.4], 0.3) == pytest.approx(1.0)
    with pytest.raises(ArgumentError, match="at 2 severities, the baseline's at 1"):
        metrics.depth_corruption_error([0.2, 0.4], [0.4])
