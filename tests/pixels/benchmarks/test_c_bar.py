"""ImageNet-C-bar and CIFAR-10-C-bar: published pixels, any size, refusals, sets."""

import hashlib

import numpy as np
import pytest

import robustgen
from robustgen.pixels.benchmarks.corruptions import ALL_CORRUPTIONS
from robustgen.pixels.imaging.kernels.exact import angle_of, cosine, raise_to, sine
from robustgen.settings.config import Config
from robustgen.settings.loading import load
from tests.golden.outputs import DESCRIBED, read_cases, read_outputs
from tests.helpers import cli, cli_error, make_c, manifest, photo, put_photo

CASES = read_cases("families.json", "cbar_imagenet", "cbar_cifar-10")
C_BAR = robustgen.FAMILIES["c-bar"]
TEN_OF_BOTH = {
    scale: {case["key"].split("/")[1] for case in CASES if case["file"] == f"cbar_{edition}"}
    for scale, edition in ((224, "imagenet"), (32, "cifar-10"))
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['file']}/{case['key']}")
def test_pixels_are_the_published_ones(case):
    data, step = read_outputs(case["file"]), case["step"]
    source, name, severity = case["key"].split("/")
    rng, edition = np.random.RandomState(case["seed"]), case["file"].removeprefix("cbar_")
    got = robustgen.corrupt(data[f"input/{source}"], name, int(severity), edition=edition, rng=rng)
    assert np.array_equal(got[::step, ::step], data[case["key"]])


@pytest.mark.parametrize("place", DESCRIBED["c-bar"])
def test_pixels_are_those_of_the_description_at_other_sizes(place):
    """Squares of odd and even sides with the strengths of both editions: only squares were published."""
    name, side = place.split("/")
    image, digest = photo(int(side), int(side), seed=int(side)), hashlib.sha256()
    for scale in ALL_CORRUPTIONS[name].table:
        for severity, seed in ((1, 5), (5, int(side))):
            rng = np.random.RandomState(seed)
            digest.update(robustgen.corrupt(image, name, severity, edition="folder", scale=scale, rng=rng))
    assert digest.hexdigest() == DESCRIBED["c-bar"][place]


@pytest.mark.parametrize("side", [100, 224])
def test_a_gradient_of_no_length_blackens_what_it_touches(side):
    """One image in a thousand draws one; 1397 is the first seed that does."""
    rng = np.random.RandomState(1397)
    got = robustgen.corrupt(photo(side, side), "perlin_noise", 3, edition="folder", scale=224, rng=rng)
    assert hashlib.sha256(got).hexdigest() == DESCRIBED["perlin_noise"][str(side)]
    assert (got == 0).all(axis=2).sum() > 300


@pytest.mark.parametrize("scale", TEN_OF_BOTH)
def test_ten_corruptions_have_a_strength_and_all_are_covered(scale):
    assert len(TEN_OF_BOTH[scale]) == 10 and TEN_OF_BOTH[scale] == set(C_BAR.names(scale))


@pytest.mark.parametrize(
    ("name", "edition", "where", "nearest"),
    [
        ("lines", "imagenet", "32", 32),
        ("perlin_noise", "cifar-10", "224", 224),
        ("sparkles", "imagenet-64", "32 and 224", 32),
    ],
)
def test_a_name_without_a_published_strength_is_refused_with_the_reason(name, edition, where, nearest):
    line = cli_error("make-c", "--dataset", "demo", "--edition", edition, "--corruptions", name, "--dry-run")
    assert f"{name} has no published strength" in line
    assert line.endswith(f"at {where}); set constants_for={nearest}")


def test_the_set_holds_the_ten_of_its_edition(tmp_path):
    put_photo(tmp_path / "in" / "class" / "a.png", 64, 64)
    flags = ("--corruptions", "c-bar", "--edition", "imagenet", "--severities", "3", "--no-clean")
    make_c(tmp_path / "in", tmp_path / "out", *flags)
    held = manifest(tmp_path / "out")
    assert {variant.split("/")[0] for variant in held["variants"]} == TEN_OF_BOTH[224]
    assert "Mintun" in held["citation"] and "Hendrycks" not in held["citation"]
    cli("verify", tmp_path / "out", "--deep", "2")


def test_names_and_families_may_be_mixed():
    mixed = load(Config, None, {"corruptions": "fog,c-bar:lines,c-bar:all,fog", "edition": "cifar-10"})
    assert mixed.corruptions[:2] == ("fog", "lines")
    assert set(mixed.corruptions) == {"fog", *TEN_OF_BOTH[32]}
    with pytest.raises(robustgen.errors.ConfigError, match="unknown corruption 'forst'"):
        load(Config, None, {"corruptions": "c-bar:forst"})


def test_elementary_functions_are_accurate():
    x = np.random.default_rng(0).uniform(-1000, 1000, 20000)
    wide = x.astype(np.longdouble)
    assert max(abs(sine(v) - float(w)) for v, w in zip(x, np.sin(wide), strict=True)) < 3e-16
    assert max(abs(cosine(v) - float(w)) for v, w in zip(x, np.cos(wide), strict=True)) < 3e-16
    y = x[::-1]
    assert max(abs(angle_of(a, b) - np.arctan2(a, b)) for a, b in zip(x, y, strict=True)) < 1e-15
    assert (angle_of(0.0, 0.0), angle_of(1.0, 0.0), angle_of(0.0, -1.0)) == (0.0, np.pi / 2, np.pi)
    positive = np.exp(x[:5000] / 60)
    for exponent in (0.13, 1.3, 1.4):
        raised = positive.copy()
        raise_to(raised, exponent)
        assert np.abs(raised / positive.astype(np.longdouble) ** np.longdouble(exponent) - 1).max() < 1e-14
