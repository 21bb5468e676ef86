"""Pixels equal those of the published functions, as stored in tests/golden."""

import numpy as np
import pytest

import robustgen
from tests.golden.outputs import read_cases, read_outputs

CASES = read_cases("cases.json")


def make(case):
    kind, edition = case["file"].split("_", 1)
    data, rng = read_outputs(case["file"]), np.random.RandomState(case["seed"])
    if kind == "p":
        *variant, name = case["key"].split("/")
        frames = robustgen.perturb(data["_".join([*variant, "source"])], name, edition=edition, rng=rng)
        assert frames.shape == (case["frames"], *case["shape"])
        return frames[case["kept_frames"]]
    *variant, name, severity = case["key"].split("/")
    image = data[f"{variant[0]}_input" if variant else "input"]
    corrupted = robustgen.corrupt(image, name, int(severity), edition=edition, rng=rng)
    assert corrupted.shape == image.shape
    return corrupted


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['file']}/{case['key']}")
def test_pixels_are_the_published_ones(case):
    step = case["step"]
    got, want = make(case)[..., ::step, ::step, :], read_outputs(case["file"])[case["key"]]
    assert got.dtype == want.dtype == np.uint8
    assert np.array_equal(got, want)
