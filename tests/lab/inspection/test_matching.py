"""calibrate: strengths as measured by hand, and constants for other sizes that are as strong."""

import json
import math

import numpy as np
import pytest
import yaml

import robustgen
from robustgen.lab.inspection import matching
from robustgen.lab.inspection.matching import (
    Bench,
    Gap,
    interpolate,
    list_trajectories,
    propose_constants,
    search,
    select_numbers,
)
from robustgen.lab.inspection.strengths import draw_sample, measure_strengths
from robustgen.pixels.benchmarks.binding import check_overrides
from robustgen.pixels.benchmarks.corruptions import CORRUPTIONS
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging.similarity import similarity
from robustgen.sets.dataset.planning import open_making
from robustgen.settings.config import Config
from robustgen.settings.loading import load
from tests.helpers import cli, cli_error, pixels_of, put_photo


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    for seed in range(3):
        put_photo(folder / "class" / f"photo {seed}.jpg", 256, 300, seed)
    return folder


def choices(source, **more):
    return load(Config, None, {"source": str(source), "edition": "imagenet", "jobs": 2} | more)


def chosen(source, names, levels):
    """The flags of these corruptions of `source` at these severities."""
    return ("--source", source, "--corruptions", names, "--severities", levels)


# --- strengths -----------------------------------------------------------------------------------


def test_calibration_and_previews_need_no_output(source, tmp_path):
    small = ("--dataset", "folder", "--corruptions", "contrast", "--severities", "1", "--jobs", "1")
    cli("make-c", "--source", source, *small, "--limit", "1", "--output", tmp_path / "c")
    held = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    own = choices(tmp_path / "c" / "clean", corruptions="contrast", severities="1")
    assert measure_strengths(own).images == 1
    making = open_making(own, "c")
    assert making.writer.output_name(making.keys[0]) and not hasattr(making, "store")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == held


def test_strengths_are_those_of_the_api(source):
    found = measure_strengths(choices(source, corruptions="contrast,pixelate", severities="1,5"))
    folders = ["contrast/1", "contrast/5", "pixelate/1", "pixelate/5"]
    assert [each.variant.folder for each in found.strengths] == folders
    same = {"contrast": {1: {"factor": 1.0}}}
    own = measure_strengths(choices(source, corruptions="contrast", severities="1", parameters=same))
    assert own.strengths[0].mean > 0.999
    for each in found.strengths:
        values = []
        for path in sorted(source.rglob("*.jpg")):
            image = robustgen.prepare(pixels_of(path), "imagenet")
            values.append(
                similarity(image, robustgen.corrupt(image, each.variant.name, each.variant.level)).ms_ssim
            )
        assert each.mean == pytest.approx(np.mean(values), abs=1e-9)
        assert each.std == pytest.approx(np.std(values), abs=1e-9)


def test_layouts_agree(source):
    flags = (*chosen(source, "fog,snow", "2,4"), "--edition", "imagenet-64")
    strengths = json.loads(cli("calibrate", *flags, "--format", "json").stdout)["strengths"]
    table = cli("calibrate", *flags).stdout
    assert f"{source.name}, edition imagenet-64" in table
    for each in strengths:
        assert f"{each['ms_ssim']:.3f}" in table


def test_the_sample_is_decided_by_seed_and_names():
    keys = [f"a/{i}" for i in range(100)]
    assert draw_sample(keys, 0, 10) == draw_sample(keys[::-1], 0, 10) != draw_sample(keys, 1, 10)
    assert len(draw_sample(keys, 0, 10)) == 10 and len(draw_sample(keys[:3], 0, 10)) == 3


def test_unreadable_images_are_named(source, tmp_path):
    put_photo(tmp_path / "photos/good.jpg", 80, 80)
    (tmp_path / "photos/bad.jpg").write_bytes(b"none")
    flags = ("--source", tmp_path / "photos", "--corruptions", "contrast")
    result = cli("calibrate", *flags, status=1)
    assert "'bad.jpg'" in result.stderr and "mean over 1 image (" in result.stdout
    (tmp_path / "photos/good.jpg").unlink()
    assert "none of its images can be used" in cli_error("calibrate", *flags)


def test_wrong_use_is_answered(source, tmp_path):
    wrong = [
        (("--for-size", 384), "--for-size needs --output FILE"),
        (("--output", tmp_path / "x.yaml"), "--for-size"),
        (("--output", tmp_path), "is a folder"),
        (("--for-size", 299, "--output", tmp_path / "x.yaml"), "have published constants"),
        (("--for-size", 31, "--output", tmp_path / "x.yaml"), "from 32 to 1024"),
        (("--for-size", 384, "--output", tmp_path), "is a folder"),
        (
            ("--for-size", 384, "--output", tmp_path / "x", "--edition", "imagenet-64"),
            "--edition cannot be combined",
        ),
        (("--dataset", "demo", "--config", "x.yaml"), "not both"),
        (("--corruptions", "frog"), "did you mean 'fog'?"),
    ]
    for flags, message in wrong:
        assert message in cli_error("calibrate", *flags)
    assert not [*tmp_path.iterdir()]


# --- families ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize("size", [48, 96, 256, 384])
def test_families_pass_through_the_published_constants_and_fit_a_config(name, size):
    scales = {48: (32, 64), 96: (64, 224)}.get(size, (224, 299))
    operation = CORRUPTIONS[name]
    for level in operation.levels:
        for family in list_trajectories(name, level, size):
            for place in family.places:
                check_overrides({name: {level: family.at(place)}})
            if family.way == "severities":
                nearest = {48: 64, 96: 64}.get(size, 224)
                assert family.at(level) == pytest.approx(
                    select_numbers(operation.parameters(level, nearest)), rel=1e-3
                )
            else:
                for place, scale in enumerate(scales):
                    published = select_numbers(operation.parameters(level, scale))
                    assert family.at(place) == pytest.approx(published, rel=1e-3)


def test_numbers_move_by_factors_and_whole_ones_stay_whole():
    low, high = (CORRUPTIONS["glass_blur"].parameters(5, scale) for scale in (224, 299))
    assert interpolate(low, high, 2) == {"sigma": 1.707, "max_delta": 6, "iterations": 2}
    assert interpolate(low, high, -20)["max_delta"] == 1
    # Mud is not mixed with water.
    for level in CORRUPTIONS["spatter"].levels:
        for family in list_trajectories("spatter", level, 384):
            assert {family.at(place)["mud"] for place in family.places} == {int(level > 3)}
    # Beyond 299 pixels the guess is the published trend in log size.
    (family, _) = list_trajectories("gaussian_blur", 1, 384)
    guess = family.places[1]
    assert guess == pytest.approx(math.log(384 / 224) / math.log(299 / 224))
    assert family.at(guess)["sigma"] == pytest.approx(1.5**guess, rel=1e-3)


# --- the search ----------------------------------------------------------------------------------


def test_search_finds_where_a_curve_meets_the_target():
    place, gap = search(lambda x: Gap(math.exp(-x) - 0.123, 1e-3), (0.0, 1.0, 2.0, -1.0, 4.0))
    assert abs(math.exp(-place) - 0.123) <= 1e-3 and gap.closed


@pytest.mark.parametrize(
    ("places", "miss", "best"),
    [
        ((0.0, 1.0, 2.0, 3.0), lambda x: 0.02 - 0.001 * abs(x), 0.0),
        ((0.0, 1.0, 2.0), lambda x: 0.012 - 0.003 * x, 1.0),
        ((0.0, 2.0, 1.0), lambda x: float("nan") if x > 1.5 else 0.05 - 0.02 * x, 1.0),
    ],
    ids=["the others are hardly better", "within the greatest slack", "one cannot be used"],
)
def test_search_moves_only_for_something_better(places, miss, best):
    place, found = search(lambda x: Gap(miss(x), 0.005), places)
    assert (place, found.miss, found.closed) == (best, miss(best), False)


def test_search_stays_where_it_is_if_that_will_do():
    asked = []

    def gap(place):
        asked.append(place)
        return Gap(0.004, 0.005)

    assert search(gap, (0.0, 1.0)) == (0.0, Gap(0.004, 0.005))
    assert asked == [0.0]


class Jumpy(Bench):
    """A corruption whose whole number jumps over the target, and whose `sigma` helps on one side alone."""

    def _values(self, variant, constants, references):
        if not constants:
            return np.array([0.8])
        if constants["max_delta"] >= 4:
            return np.array([0.77])
        return np.array([0.83 - max(0, constants["sigma"] - 1.5) * 0.03])


def test_constants_are_varied_from_either_side_of_the_target():
    bench = Jumpy((), (), (), 336, 0, 0, {})
    match = bench.match(Variant("glass_blur", 4, "glass_blur/4"))
    assert match.gap.closed and match.constants["max_delta"] < 4
    assert match.constants["sigma"] == pytest.approx(2.5, abs=0.2) and match.way == "sigma alone"


# --- proposals -----------------------------------------------------------------------------------


def test_a_proposal_reaches_its_targets_and_make_c_takes_it(source, tmp_path):
    path = tmp_path / "own folder" / "p.yaml"
    names = "gaussian_noise,contrast,gaussian_blur"
    flags = (*chosen(source, names, "1,4"), "--for-size", 256, "--output", path)
    result = cli("calibrate", *flags, "--format", "json")
    matches = {(each["corruption"], each["severity"]): each for each in json.loads(result.stdout)["matches"]}
    assert all(each["closed"] for each in matches.values())
    first = path.read_bytes()
    cli("calibrate", *flags, "--jobs", 1)
    assert path.read_bytes() == first

    own = yaml.safe_load(first)["parameters"]
    assert {(name, level) for name, levels in own.items() for level in levels} == set(matches)
    # What the file says is reached is what these constants give.
    for (name, level), each in matches.items():
        values = []
        for photo in sorted(source.rglob("*.jpg")):
            image = matching.centre_crop(matching.resize_shorter(pixels_of(photo), 293), 256, 256)
            recipe = matching.CorruptionRecipe("imagenet", 0, None, {name: {level: own[name][level]}})
            key = photo.relative_to(source).as_posix()
            values.append(similarity(image, recipe.make(Variant(name, level, ""), key, image)).ms_ssim)
        assert np.mean(values) == pytest.approx(each["reached"], abs=1e-6)

    output = tmp_path / "made"
    few = ("--limit", 1, "--jobs", 1, "--output", output)
    cli("make-c", "--config", path, *chosen(source, names, "1,4"), *few)
    settings = json.loads((output / "dataset.json").read_text())["settings"]["parameters"]
    assert settings["contrast/4"]["224"] == own["contrast"][4]


def test_blur_becomes_stronger_at_a_larger_size_and_small_sizes_have_fewer_scales(source):
    found = propose_constants(choices(source, corruptions="gaussian_blur", severities="4"), 448, sample=2)
    (match,) = found.matches
    assert match.gap.closed and match.constants["sigma"] > 4.5
    found = propose_constants(choices(source, corruptions="contrast", severities="3"), 48, sample=2)
    assert found.scales == 3 and found.matches[0].gap.closed


def test_what_is_not_reached_is_said(source, tmp_path, monkeypatch):
    monkeypatch.setattr(matching.Bench, "_gap", lambda *_: Gap(-0.3, 0.005))
    path = tmp_path / "p.yaml"
    result = cli("calibrate", *chosen(source, "contrast", 2), "--for-size", 256, "--output", path)
    assert "0 of 1 targets reached" in result.stdout and "Not reached: contrast/2." in result.stdout
    assert "NOT REACHED" in path.read_text()
    # Nothing was better by far, so nothing was changed.
    assert yaml.safe_load(path.read_text())["parameters"] == {"contrast": {2: {"factor": 0.3}}}
