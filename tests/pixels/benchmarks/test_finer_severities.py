"""Severities between the whole ones: constants, strengths, folders, arrays."""

import itertools
import math

import numpy as np
import pytest
from PIL import Image
from skimage import data

import robustgen
from robustgen.pixels.benchmarks.corruptions import ALL_CORRUPTIONS
from robustgen.pixels.benchmarks.corruptions.laion_c import Glitch
from robustgen.pixels.benchmarks.kinds import BENCHMARKS
from robustgen.pixels.benchmarks.parameters import interpolate_parameters
from robustgen.pixels.imaging.similarity import Reference
from tests.helpers import (
    cifar_folder,
    cli,
    cli_error,
    kept,
    make_c,
    manifest,
    photo,
    pictures,
    pixels_of,
    put_photo,
    tree,
)

# A photograph alone is not enough for these; CCC's glass was published in quarters, which go up and down.
NEEDING = {
    *("laion-c:stickers", "laion-c:mosaic", "3dcc:fog_3d", "3dcc:near_focus", "3dcc:far_focus"),
    "robobev:camera_crash",
}
OF_SIDES = [
    (name, scale)
    for name, each in ALL_CORRUPTIONS.items()
    for scale in each.table
    if isinstance(scale, int) and name not in {*NEEDING, "ccc:glass_blur"} and each.over_time != "whole"
]


def test_whole_severities_are_the_published_constants():
    for entry in ALL_CORRUPTIONS.values():
        for scale, rows in entry.table.items():
            for severity, row in zip(entry.levels, rows, strict=True):
                for same in (severity, float(severity), np.float32(severity), np.int64(severity)):
                    assert entry.parameters(same, scale) is row


@pytest.mark.parametrize("name", ALL_CORRUPTIONS)
def test_finer_severities_lie_between_their_neighbours(name):
    entry = ALL_CORRUPTIONS[name]
    for scale, below in itertools.product(entry.table, entry.levels[:-1]):
        ends = [vars(entry.parameters(each, scale)) for each in (below, below + 1)]
        before = ends[0]
        for place in (0.25, 0.5, 0.75):
            now = vars(entry.parameters(below + place, scale))
            for constant, value in now.items():
                low, high = ends[0][constant], ends[1][constant]
                if isinstance(value, (int, float)):
                    assert min(low, high) <= value <= max(low, high)
                    # Each moves in one direction only.
                    assert (value - before[constant]) * (high - low) >= 0
            before = now


def test_the_rule():
    fog, jpeg = ALL_CORRUPTIONS["fog"], ALL_CORRUPTIONS["jpeg_compression"]
    middle = fog.parameters(2.5, 224)
    assert (middle.strength, middle.decay) == pytest.approx((math.sqrt(2 * 2.5), math.sqrt(2 * 1.7)))
    assert [jpeg.parameters(1 + n / 4, 224).quality for n in range(5)] == [25, 23, 21, 20, 18]
    saturate, spatter = ALL_CORRUPTIONS["saturate"], ALL_CORRUPTIONS["spatter"]
    # Less saturated becomes more saturated, and water mud, without anything between.
    assert saturate.parameters(2.49, 224) == saturate.parameters(2, 224)
    assert saturate.parameters(2.5, 224) == saturate.parameters(3, 224)
    assert spatter.parameters(3.5, 64) == spatter.parameters(4, 64)
    # A constant that is nothing at one end moves by equal steps.
    elastic = ALL_CORRUPTIONS["elastic_transform"].parameters(1.5, 32)
    assert elastic.alpha == pytest.approx(32 * 0.05 / 2)
    glass = [ALL_CORRUPTIONS["glass_blur"].parameters(1 + place, 224) for place in (0.49, 0.5)]
    assert [(each.max_delta, each.iterations) for each in glass] == [(1, 2), (2, 1)]
    # Halfway, the stronger one of two words.
    shared, own = Glitch(2, "published"), Glitch(4, "own")
    assert [interpolate_parameters(shared, own, place).seed for place in (0.49, 0.5)] == ["published", "own"]
    assert interpolate_parameters(fog.parameters(1, 32), fog.parameters(2, 32), 0) == fog.parameters(1, 32)


@pytest.fixture(scope="module")
def references():
    """Photographs at three published sizes."""
    sources = (data.astronaut(), data.chelsea(), data.coffee())
    images = {
        224: [robustgen.prepare(each) for each in sources[:2]],
        299: [robustgen.prepare(sources[0], "imagenet-inception")],
        64: [robustgen.prepare(each, "imagenet-64") for each in sources],
    }
    images[32] = [np.array(Image.fromarray(each).resize((32, 32))) for each in sources]
    return {scale: [Reference(each) for each in group] for scale, group in images.items()}


@pytest.mark.slow("corrupts photographs at nine strengths")
@pytest.mark.parametrize(("name", "scale"), OF_SIDES)
def test_strength_is_monotone_where_that_of_the_neighbours_is(name, scale, references):
    # What lies on small images is a matter of chance: more of it is needed.
    seeds = {224: 1, 299: 1, 64: 3, 32: 8}[scale]

    def strength(reference, severity, seed):
        rng = np.random.RandomState(seed)
        made = robustgen.corrupt(reference.image, name, severity, edition="folder", scale=scale, rng=rng)
        return reference.similarity(made).ms_ssim

    cases = [*itertools.product(references[scale], range(seeds))]
    levels = ALL_CORRUPTIONS[name].levels
    slack = 0.01 if scale >= 224 else 0.02
    values = {}
    for below, above in itertools.pairwise(levels):
        for severity in (below, (below + above) / 2, above):
            if severity not in values:
                values[severity] = np.mean([strength(each, severity, seed) for each, seed in cases])
        low, middle, high = (values[each] for each in (below, (below + above) / 2, above))
        assert min(low, high) - slack <= middle <= max(low, high) + slack, (below, low, middle, high)


def test_a_set_of_finer_severities(tmp_path):
    put_photo(tmp_path / "in" / "class" / "a.jpg", 64, 64)
    out, flags = tmp_path / "out", ["--source", tmp_path / "in", "--edition", "imagenet", "--jobs", "1"]
    asked = ["make-c", *flags, "--corruptions", "fog,contrast", "--severities", "2.5,1,2.0", "--output", out]
    cli(*asked)
    folders = ["clean", *(f"{name}/{severity}" for name in ("fog", "contrast") for severity in (1, 2, 2.5))]
    assert pictures(out) == {f"{folder}/class/a.jpg" for folder in folders}
    assert sorted(manifest(out)["variants"]) == sorted(folders)
    before = tree(out)
    assert kept(cli(*asked))
    cli("make-c", *flags, "--corruptions", "fog", "--severities", "4.75", "--output", out)
    after = tree(out)
    assert all(after[name] == content for name, content in before.items() if "SHA" not in name)
    cli("verify", out, "--deep", "5")
    cli("report", out, "--output", tmp_path / "report.html")
    assert "2.5" in (tmp_path / "report.html").read_text()
    sheet = ["--source", tmp_path / "in", "--corruptions", "fog", "--severities", "1,2.5"]
    cli("preview", *sheet, "--output", tmp_path / "sheet.png")
    assert "2.5" in cli("calibrate", *sheet, "--images", "1").stdout
    whole = {level: pixels_of(out / f"contrast/{level}/class/a.jpg").std() for level in (1, 2, 2.5)}
    assert whole[1] > whole[2] > whole[2.5]
    assert "--for-size" in cli_error("calibrate", *sheet, "--for-size", "96", "--output", tmp_path / "c.yaml")


def test_arrays_hold_finer_severities_in_their_order(tmp_path):
    folder, images, _ = cifar_folder(tmp_path, images=3)
    out = tmp_path / "out"
    flags = ("--edition", "cifar-10", "--corruptions", "contrast", "--jobs", "1", "--no-clean")
    make_c(folder, out, *flags, "--severities", "3,1.5")
    rows = np.load(out / "contrast.npy").reshape(2, 3, 32, 32, 3)
    for severity, made in zip((1.5, 3), rows, strict=True):
        want = [robustgen.corrupt(each, "contrast", severity, edition="cifar-10") for each in images]
        assert np.array_equal(made, want)
    make_c(folder, out, *flags, "--severities", "2")
    grown = np.load(out / "contrast.npy").reshape(3, 3, 32, 32, 3)
    assert np.array_equal(grown[[0, 2]], rows)
    cli("verify", out, "--deep", "3")


def test_random_streams_differ_between_severities():
    image, made = photo(48, 48), {}
    for severity in (2, 2.0, 2.5, 3):
        made[severity] = robustgen.corrupt(image, "gaussian_noise", severity, edition="folder", rng=3)
    assert len(made) == 3 and len({each.tobytes() for each in made.values()}) == 3


def test_folders_are_read_back():
    c, p = BENCHMARKS["c"], BENCHMARKS["p"]
    for level in (1, 2.5, 4.125):
        assert c.variant_in(f"fog/{level}") == c.variant("fog", level)
    for folder in ("fog/2.50", "fog/5.5", "fog/0.5", "fog/2.0", "fog/nan", "fog/6"):
        assert c.variant_in(folder) is None
    assert p.variant_in("shot_noise_2.5").name == "shot_noise_2.5"
