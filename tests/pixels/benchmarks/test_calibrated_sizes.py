"""The constants of our own for sizes that have no published ones."""

import dataclasses

import numpy as np
import pytest

import robustgen
from robustgen import CORRUPTIONS
from robustgen.errors import ArgumentError
from robustgen.lab.inspection.matching import remeasure_constants
from robustgen.pixels.benchmarks.parameters import read_calibrated_constants
from robustgen.pixels.benchmarks.registry import CALIBRATED_SCALES, SCALES
from robustgen.settings.config import Config
from robustgen.settings.loading import load
from robustgen.settings.yaml_files import dataset_file
from tests.helpers import cli, cli_error, photo, put_photo

# Of every category, and quick: all are measured by scripts/calibrate_sizes.py --check.
MEASURED = "impulse_noise,gaussian_blur,contrast,brightness,pixelate"


def test_every_corruption_has_constants_of_its_own_type():
    assert CALIBRATED_SCALES == (256, 336, 384, 448) and not set(CALIBRATED_SCALES) & set(SCALES)
    for scale in CALIBRATED_SCALES:
        assert set(read_calibrated_constants()[str(scale)]) == set(CORRUPTIONS)
        for entry in CORRUPTIONS.values():
            for published, own in zip(entry.table[224], entry.rows(scale), strict=True):
                assert type(own) is type(published)
                for field in dataclasses.fields(own):
                    value = getattr(own, field.name)
                    if field.type is int:
                        assert isinstance(value, int)
                    elif field.type is not float:
                        assert value == getattr(published, field.name)


@pytest.mark.slow("corrupts large images")
@pytest.mark.parametrize("size", CALIBRATED_SCALES)
def test_they_are_as_strong_as_the_published_ones_at_224(size):
    flags = {"corruptions": MEASURED, "severities": "2,4"}
    choices = load(Config, dataset_file("demo"), flags)
    found = remeasure_constants(choices, size, read_calibrated_constants()[str(size)])
    assert len(found.matches) == 10 and found.images == 8
    for match in found.matches:
        assert abs(match.gap.miss) <= 0.01, match.variant.folder


@pytest.mark.parametrize(
    ("size", "name", "severity"), [(448, "contrast", 5), (448, "saturate", 5), (336, "glass_blur", 3)]
)
def test_the_hardest_to_match_are_as_strong_too(size, name, severity):
    choices = load(Config, dataset_file("demo"), {"corruptions": name, "severities": str(severity)})
    (match,) = remeasure_constants(choices, size, read_calibrated_constants()[str(size)]).matches
    assert abs(match.gap.miss) <= 0.01


def test_they_are_taken_only_where_they_are_named(tmp_path):
    image = photo(384, 384)
    named, nearest, published = (
        robustgen.corrupt(image, "gaussian_blur", 3, **how)
        for how in ({"scale": 384}, {"edition": "folder"}, {"scale": 299})
    )
    assert np.array_equal(nearest, published) and not np.array_equal(named, nearest)
    finer = CORRUPTIONS["gaussian_blur"].parameters(2.5, 384).sigma
    two, three = (CORRUPTIONS["gaussian_blur"].parameters(n, 384).sigma for n in (2, 3))
    assert two < finer < three
    put_photo(tmp_path / "in" / "a.jpg", 64, 64)
    flags = ["--source", tmp_path / "in", "--set", "constants_for=384", "--output", tmp_path / "out"]
    cli("make-c", *flags, "--corruptions", "contrast", "--severities", "3")
    assert "has no published strength at scale 384" in cli_error("make-p", *flags)
    assert "has no published strength at scale 384" in cli_error("make-c", *flags, "--corruptions", "c-bar")
    with pytest.raises(ArgumentError, match="no published strength at scale 448"):
        robustgen.perturb(image, "tilt", scale=448)
    with pytest.raises(ArgumentError, match="scale 300 does not exist"):
        robustgen.corrupt(image, "fog", 1, scale=300)
