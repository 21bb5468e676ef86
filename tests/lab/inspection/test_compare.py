"""compare: no false alarms, real changes found, what is missing named, and the page of it."""

import json
import re
import shutil
import threading

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from robustgen.files.storage import remote
from robustgen.lab.inspection.compare import equivalence
from robustgen.lab.inspection.compare.comparison import compare_sets
from robustgen.lab.inspection.compare.equivalence import METRICS, measure_effect
from robustgen.lab.inspection.compare.report import format_comparison
from robustgen.lab.inspection.compare.results import Side, Sides, shorten_folders
from robustgen.metrics import COMMON_CORRUPTIONS
from robustgen.pixels.imaging.similarity import Alignment, Reference
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.sources.files import EncodedSource
from robustgen.settings.inspecting import Comparing
from tests.helpers import FIXED_CORRUPTIONS, cli, cli_error, photo, pixels_of, put_photo, uploaded

IMAGES = 14


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    for seed in range(IMAGES):
        put_photo(folder / f"class{seed % 3}" / f"photo {seed}.JPEG", 72, 80, seed)
    return folder


@pytest.fixture(scope="module")
def make(source, tmp_path_factory):
    """Makes a set from the fourteen photographs; each but once."""
    made = {}

    def make(*flags, command="make-c"):
        if (command, flags) not in made:
            output = tmp_path_factory.mktemp("made") / "set"
            common = ("--source", source, "--edition", "imagenet-64", "--jobs", 1, "--output", output)
            cli(command, *common, *flags)
            made[command, flags] = output
        return made[command, flags]

    return make


@pytest.fixture
def own_copy(tmp_path):
    def own_copy(tree):
        return shutil.copytree(tree, tmp_path / f"copy{len([*tmp_path.iterdir()])}")

    return own_copy


def compare(a, b, **choices):
    return compare_sets(Comparing(a=str(a), b=str(b), **choices))


def verdicts(found):
    return {operation.name: operation.verdict for operation in found.operations}


def as_json(*args, status=0):
    return json.loads(cli("compare", *args, "--format", "json", status=status).stdout)


def change_pixels(paths, change):
    """Write each picture again, with changed pixels."""
    for path in paths:
        Image.fromarray(change(pixels_of(path))).save(path, quality=85)


def as_published(root):
    """Without what only a set made here has."""
    (root / "dataset.json").unlink()
    shutil.rmtree(root / ".robustgen")
    return root


# --- verdicts ------------------------------------------------------------------------------------


@pytest.mark.slow("makes whole sets")
def test_two_seeds_of_the_same_settings_raise_no_alarm(make):
    a, b = (make("--seed", seed, "--severities", "1,3,5") for seed in (0, 1))
    found = compare(a, b)
    same = FIXED_CORRUPTIONS & set(COMMON_CORRUPTIONS)
    verdict = verdicts(found)
    assert {name for name, each in verdict.items() if each == "identical"} == {"clean", *same}
    assert not any(each == "different" for each in verdict.values())
    # Fourteen images prove it where draws matter little, and not where they decide about the whole image.
    assert {verdict[name] for name in ("gaussian_noise", "shot_noise", "glass_blur")} == {"equivalent"}
    assert {verdict[name] for name in ("fog", "frost")} == {"too few images"}
    assert not found.equivalent and "too few images" in found.sentence
    settled = compare(a, b, corruptions="gaussian_noise,contrast")
    assert settled.equivalent and "margin" in settled.sentence


def count_calls(monkeypatch, *methods):
    """Return a list that grows with the name of each of these methods, (class, name), that is called."""
    called = []
    for owner, name in methods:
        own = getattr(owner, name)

        def call(*args, own=own, name=name, **keys):
            called.append(name)
            return own(*args, **keys)

        monkeypatch.setattr(owner, name, call)
    return called


@pytest.mark.parametrize("form", [(), ("--format", "webdataset")])
def test_files_with_equal_bytes_are_decoded_once(make, own_copy, monkeypatch, form):
    a = make("--corruptions", "contrast,fog", "--severities", "1,3", *form)
    called = count_calls(monkeypatch, (EncodedSource, "decode"), (Reference, "similarity"))
    lines = cli("compare", a, own_copy(a), "--images", 3, "--jobs", 1).stdout
    # Three images in four variants and clean, and once more the clean ones, which they are compared with.
    assert called == ["decode"] * 18 and "2 identical" not in lines and "3 identical" in lines


def test_equal_pairs_are_measured_for_pages_and_beside_unequal_ones(make, own_copy, monkeypatch, tmp_path):
    a = make("--corruptions", "contrast,fog", "--severities", "1,3")
    b = own_copy(a)
    change_pixels([*sorted((b / "fog" / "3").rglob("*.JPEG"))[-1:]], np.invert)
    whole = compare(a, b, sample="all", format="json")
    called = count_calls(monkeypatch, (Reference, "similarity"))
    text = compare(a, b, sample="all")
    # The pairs of fog, one with two unlike images.
    assert len(called) == 2 * IMAGES + 1
    assert format_comparison(text, "table") == format_comparison(whole, "table")
    assert verdicts(whole)["contrast"] == "identical" != verdicts(whole)["fog"]
    del called[:]
    compare(a, a, output=tmp_path / "page.html", sample=2)
    assert len(called) == 2 * 4


FEW = ("--corruptions", "fog,brightness,gaussian_noise,glass_blur", "--severities", "1,3")


def test_another_jpeg_quality_is_found_by_the_file_sizes(make):
    a, b = make(*FEW), make(*FEW, "--quality", 40)
    found = compare(a, b)
    assert set(verdicts(found).values()) == {"different"}
    size = found.operations[1].overall("size")
    assert size.significant and -80 < size.difference < -30
    assert not found.equivalent
    # The setting itself is named, and nothing else.
    assert as_json(a, b, status=1)["settings"] == {"quality": {"a": 85, "b": 40}}
    # The libraries that wrote the files are named.
    ijg = as_json(a, make(*FEW, "--libjpeg", "ijg"), status=1)
    assert "libjpeg-turbo" in ijg["a"]["origin"] and "IJG libjpeg 9c" in ijg["b"]["origin"]


def test_settings_are_named_in_any_format_and_only_as_far_as_both_sets_know_them(make, own_copy):
    a = make(*FEW)
    shards = make(*FEW, "--format", "webdataset", "--quality", 60)
    written = as_json(a, shards, "--corruptions", "brightness", status=1)["settings"]
    assert written == {
        "format": {"a": "jpeg", "b": "webdataset:jpeg"},
        "quality": {"a": 85, "b": 60},
        "shard_size": {"a": None, "b": 1000},
    }
    lines = cli("compare", a, own_copy(a), "--images", 5).stdout.splitlines()
    assert "no recorded setting differs" in lines
    bare = cli("compare", a, as_published(own_copy(a)), "--images", 5).stdout
    assert "recorded setting" not in bare and "quality" not in bare


def test_the_verdict_is_the_last_line_and_coloured_on_a_terminal(make, own_copy, monkeypatch):
    from click.testing import CliRunner

    from robustgen.cli import main

    a = make(*FEW)
    runs = (
        (own_copy(a), 0, "\x1b[32m", "identical"),
        (make(*FEW, "--quality", 40), 1, "\x1b[31m", "different"),
    )
    for b, status, colour, word in runs:
        flags = ["compare", str(a), str(b), "--images", "6"]
        shown = CliRunner().invoke(main, flags, color=True)
        assert shown.exit_code == status
        *_, empty, verdict = shown.stdout.splitlines()
        assert not empty and verdict.startswith(colour) and word in verdict
        monkeypatch.setenv("NO_COLOR", "1")
        assert "\x1b" not in CliRunner().invoke(main, flags, color=True).stdout
        monkeypatch.delenv("NO_COLOR")


def with_parameters(path, text):
    path.write_text(f"edition: imagenet-64\nparameters: {text}\n")
    return path


def test_other_constants_are_found_where_they_are(make, source, tmp_path):
    config = with_parameters(tmp_path / "my.yaml", "{gaussian_noise: {3: {sigma: 0.13}}}")
    other = tmp_path / "other"
    cli("make-c", "--config", config, "--source", source, *FEW, "--seed", 5, "--output", other)
    found = compare(make(*FEW), other)
    assert verdicts(found) == {
        "clean": "identical",
        "gaussian_noise": "different",
        "glass_blur": "equivalent",
        "fog": "too few images",
        "brightness": "identical",
    }
    assert "PSNR" in found.operations[1].reason and "at severity 3" in found.operations[1].reason
    settings = as_json(make(*FEW), other, status=1)["settings"]
    assert settings.pop("gaussian_noise/3.sigma")["b"] == 0.13
    assert settings == {"seed": {"a": 0, "b": 5}}
    variants = {variant.variant.level: variant.verdict for variant in found.operations[1].variants}
    assert variants == {1: "equivalent", 3: "different"}


def test_half_a_grey_level_is_found_in_the_mean(make, own_copy):
    a = make("--corruptions", "contrast", "--severities", "2")
    b = own_copy(a)
    rng = np.random.default_rng(0)

    def round_up(pixels):
        # Rounded where it was truncated: half of the values are one higher.
        return np.minimum(pixels + rng.integers(0, 2, pixels.shape), 255).astype(np.uint8)

    change_pixels((b / "contrast").rglob("*.JPEG"), round_up)
    found = compare(a, b)
    assert verdicts(found)["contrast"] == "different"
    level = found.operations[1].overall("level")
    assert level.significant and level.difference == pytest.approx(0.5, abs=0.15)
    assert found.operations[1].variants[0].offset == pytest.approx(level.difference)


def test_a_set_is_identical_to_its_copy_and_a_lone_pixel_is_seen(make, own_copy):
    a = make(*FEW)
    b = own_copy(a)
    assert set(verdicts(compare(a, b)).values()) == {"identical"}
    cli("compare", a, b, "--output", b.parent / "same.html")
    page = (b.parent / "same.html").read_text(encoding="utf-8")
    assert "nothing to test" in page and "<table" not in page and "0 tests" not in page

    def blacken_corner(pixels):
        return np.where(np.indices((64, 64)).max(axis=0)[..., None] < 8, np.uint8(0), pixels)

    change_pixels([next((b / "fog/3").rglob("*.JPEG"))], blacken_corner)
    found = compare(a, b)
    assert verdicts(found)["fog"] == "equivalent"
    fog = next(each for each in found.operations if each.name == "fog")
    assert [variant.equal for variant in fog.variants] == [IMAGES, IMAGES - 1]


def test_the_result_is_the_same_for_any_number_of_threads(make):
    a, b = make(*FEW), make(*FEW, "--seed", 3)
    one, three = (
        cli("compare", a, b, "--jobs", jobs, "--format", "json", status=1).stdout for jobs in (1, 3)
    )
    assert one == three


def test_sequences_are_compared_with_their_first_frames(make):
    flags = ("--perturbations", "brightness,gaussian_noise", "--limit", 10, "--format", "png")
    a, b = (make(*flags, "--seed", seed, command="make-p") for seed in (0, 1))
    found = compare(a, b)
    assert verdicts(found) == {"gaussian_noise": "equivalent", "brightness": "identical"}
    assert found.operations[0].overall("ms_ssim").images == 10
    flags = ("--perturbations", "gaussian_noise", "--difficulty", 2, "--limit", 10, "--format", "png")
    louder = make(*flags, "--seed", 1, command="make-p")
    (louder / "gaussian_noise_2").rename(louder / "gaussian_noise")
    as_published(louder)
    changed = compare(a, louder, corruptions="gaussian_noise")
    assert verdicts(changed) == {"gaussian_noise": "different"}


def test_file_sizes_of_videos_and_of_frames_are_not_compared(make):
    flags = ("--perturbations", "brightness", "--limit", 5)
    a, b = (make(*flags, *form, command="make-p") for form in ((), ("--format", "png")))
    found = compare(a, b)
    effects = {each.metric.key for each in found.operations[0].variants[0].effects}
    assert effects == {"level", "psnr", "ssim", "ms_ssim", "pixels"}
    assert any("file sizes" in note for note in found.notes)
    assert not any("file sizes" in note for note in compare(a, a).notes)


def test_arrays_are_compared(tmp_path):
    for seed, name in enumerate("ab"):
        root = tmp_path / name
        root.mkdir()
        clean = np.stack([photo(32, 32, i) for i in range(20)])
        noise = np.random.default_rng(seed).normal(0, 20, (5, *clean.shape))
        np.save(
            root / "gaussian_noise.npy",
            np.clip(clean + noise, 0, 255).astype(np.uint8).reshape(-1, 32, 32, 3),
        )
        np.save(root / "labels.npy", np.zeros(100, np.uint8))
        if name == "a":
            np.save(root / "clean.npy", clean)
    found = compare(tmp_path / "a", tmp_path / "b")
    assert verdicts(found) == {"gaussian_noise": "equivalent"}
    effects = {each.metric.key for each in found.operations[0].pooled}
    assert effects == {"level", "psnr", "ssim", "ms_ssim", "right", "down"}
    assert any("B has no clean images" in note for note in found.notes)


# --- the statistics ------------------------------------------------------------------------------


def test_false_alarms_are_as_rare_as_promised():
    rng = np.random.default_rng(1)
    p = []
    for _ in range(400):
        images = rng.normal(0.7, 0.1, 30)
        # The images differ far more among each other than the draws do.
        a, b = (images + rng.normal(0, 0.02, 30) for _ in range(2))
        found = measure_effect(METRICS[3], a, b)
        p.append((found.p_paired, found.p_ks))
    paired, ks = np.array(p).T
    assert 0.02 < np.mean(paired < 0.05) < 0.08
    assert np.mean(ks < 0.05) < 0.05


def test_pairs_show_what_two_heaps_hide_and_the_other_test_a_change_of_spread():
    rng = np.random.default_rng(2)
    images = rng.normal(0.7, 0.1, 40)
    found = measure_effect(METRICS[3], images, images - 0.01 + rng.normal(0, 0.005, 40))
    assert found.p_paired < 1e-9 < 0.5 < found.p_ks
    assert found.difference == pytest.approx(-0.01, abs=0.002)
    # JSON has ten digits, which no processor changes.
    described = equivalence.describe_effect(found)
    assert described["images"] == 40 and described["p_ks"] != found.p_ks
    assert described["p_ks"] == pytest.approx(found.p_ks, rel=1e-9)
    wider = measure_effect(METRICS[0], rng.normal(0, 1, 200), rng.normal(0, 3, 200))
    assert wider.p_ks < 1e-5 < wider.p_paired


def test_what_is_called_detectable_is_detected_four_times_out_of_five():
    rng = np.random.default_rng(4)
    (known,) = equivalence.correct_effects(
        [measure_effect(METRICS[0], rng.normal(0, 1, 50), rng.normal(0, 1, 50))]
    )
    # Of this one error the shift is known; of others the error differs a little.
    hits = 0
    for _ in range(300):
        a = rng.normal(0, 1, 50)
        (each,) = equivalence.correct_effects(
            [measure_effect(METRICS[0], a, rng.normal(known.detectable, 1, 50))]
        )
        hits += each.p_paired < equivalence.ALPHA
    assert 0.65 < hits / 300 < 0.95


# --- equivalence ---------------------------------------------------------------------------------


def paired(rng, images, spread, shift):
    a = rng.normal(0.7, 0.1, images)
    return a, a + shift + rng.normal(0, spread, images)


@pytest.mark.parametrize(("shift", "share"), [(0, (0.9, 1)), (0.02, (0, 0.02)), (-0.03, (0, 0.02))])
def test_the_margin_is_proven_only_where_it_holds(shift, share):
    rng = np.random.default_rng(6)
    found = [measure_effect(METRICS[2], *paired(rng, 60, 0.03, shift)) for _ in range(300)]
    assert share[0] <= np.mean([each.within for each in found]) <= share[1]


def test_the_two_one_sided_tests_are_those_of_scipy():
    a, b = paired(np.random.default_rng(7), 25, 0.01, 0.004)
    low = stats.ttest_1samp(b - a, -0.02, alternative="greater").pvalue
    high = stats.ttest_1samp(b - a, 0.02, alternative="less").pvalue
    assert measure_effect(METRICS[2], a, b).p_margin == pytest.approx(max(low, high))


def test_few_images_prove_nothing_however_alike_they_are():
    a = np.random.default_rng(8).normal(0.7, 0.1, 9)
    assert not measure_effect(METRICS[2], a, a).within
    assert measure_effect(METRICS[2], np.append(a, 0.7), np.append(a, 0.7)).within
    # Unknown values are left out.
    assert measure_effect(METRICS[2], np.append(a, np.nan), np.append(a, 0.7)).images == 9
    assert measure_effect(METRICS[2], a[:4], a[:4]) is None


def test_a_margin_of_the_users_own_allows_what_is_certain():
    a, b = paired(np.random.default_rng(9), 60, 0.001, 0.005)
    assert measure_effect(METRICS[2], a, b).significant
    assert not measure_effect(METRICS[2], a, b, {"ssim": 0.01}).significant
    assert measure_effect(METRICS[2], a, b, {"ssim": 0.004}).significant
    assert measure_effect(METRICS[2], a, b, {"psnr": 9}).significant


def test_margins_can_be_named(make):
    a, b = make(*FEW), make(*FEW, "--quality", 80)
    flags = ("compare", a, b, "--corruptions", "gaussian_noise")
    assert "different: clean, gaussian_noise" in cli(*flags, status=1).stdout
    wide = ("size=30", "level=1", "psnr=2", "ssim=0.1", "ms_ssim=0.1", "pixels=20")
    result = cli(*flags, *(word for each in wide for word in ("--margin", each)))
    assert "B is equivalent to A within the margin" in result.stdout
    for wrong in ("size", "width=3", "size=-1", "size=much", "size=nan"):
        assert cli_error(*flags, "--margin", wrong).startswith("--margin: ")
    assert "did you mean 'size'?" in cli_error(*flags, "--margin", "sizes=3")


def test_an_image_is_found_to_be_moved():
    still = photo(120, 120)
    for right, down in ((0, 0), (1, 0), (0, -1), (2, 1)):
        moved = np.roll(still, (down, right), axis=(0, 1))
        assert Alignment(still).displacement(moved) == pytest.approx((right, down), abs=0.25)
    assert Alignment(np.full((40, 40, 3), 9, np.uint8)).displacement(photo(40, 40)) == (0, 0)


def test_a_crop_that_is_off_by_one_is_found_where_nothing_is_drawn(make, own_copy):
    a = make("--corruptions", "defocus_blur", "--severities", "3")
    b = own_copy(a)
    change_pixels((b / "defocus_blur").rglob("*.JPEG"), lambda pixels: pixels[[0, *range(63)]])
    found = compare(a, b)
    (variant,) = found.operations[1].variants
    effects = {each.metric.key: each for each in variant.effects}
    assert found.operations[1].verdict == "different"
    assert effects["pixels"].significant and effects["down"].difference == pytest.approx(1, abs=0.3)


def test_names_of_variants_are_shortened():
    folders = ["fog/1", "fog/2", "fog/5", "snow/3", "tilt", "shot_noise", "shot_noise_2"]
    assert shorten_folders(folders) == "fog/1-2, fog/5, snow/3, tilt, shot_noise, shot_noise_2"
    assert shorten_folders(["fog/2", "fog/4"]) == "fog/2, fog/4"
    assert shorten_folders(["fog/2", "fog/2.5", "fog/3"]) == "fog/2, fog/2.5, fog/3"


# --- what is missing or unusable -----------------------------------------------------------------


def test_missing_and_unreadable_files_are_named_and_counted(make, own_copy):
    a = make(*FEW)
    b = own_copy(a)
    paths = sorted((b / "fog/3").rglob("*.JPEG"))
    paths[0].unlink()
    paths[1].write_bytes(b"no image")
    *lost, bad = sorted((b / "glass_blur/3").rglob("*.JPEG"))
    for path in lost:
        path.unlink()
    bad.write_bytes(b"no image")
    result = cli("compare", a, b, status=1)
    assert f"{paths[0].relative_to(b / 'fog/3').as_posix()!r} of fog/3 missing from B\n" in result.stdout
    assert f"and {IMAGES - 4} more of glass_blur/3 missing from B\n" in result.stdout
    name = paths[1].relative_to(b / "fog/3").as_posix()
    assert f"B: fog/3/{name!r}: " in result.stdout
    assert f"{IMAGES} images missing from B" in result.stdout
    assert "2 images unusable in B" in result.stdout
    content = as_json(a, b, status=1)
    variants = {variant["variant"]: variant for each in content["operations"] for variant in each["variants"]}
    assert len(variants["glass_blur/3"]["missing"]["b"]) == IMAGES - 1
    assert variants["glass_blur/3"]["verdict"] == "too few images"


def test_images_that_several_variants_lack_are_named_once(make, own_copy):
    a = make(*FEW)
    b = own_copy(a)
    lost = sorted((b / "fog/3").rglob("*.JPEG"))[:2]
    names = [path.relative_to(b / "fog/3") for path in lost]
    for folder in ("fog/3", "glass_blur/3"):
        for name in names:
            (b / folder / name).unlink()
    text = cli("compare", a, b, "--partial").stdout
    (line,) = [
        line for line in text.splitlines() if line.endswith("missing from B") and "4 images" not in line
    ]
    assert "glass_blur/3, fog/3" in line and all(repr(str(name)) in line for name in names)


def test_partial_sets_are_equivalent_as_far_as_they_go(make, own_copy):
    a = make(*FEW)
    b = own_copy(a)
    as_published(b)
    shutil.rmtree(b / "fog")
    shutil.rmtree(b / "clean")
    result = cli("compare", a, b, status=1)
    assert "only in A: fog/1, fog/3" in result.stdout
    result = cli("compare", a, b, "--partial")
    assert "B is identical to A (" in result.stdout and "only in A: fog/1, fog/3" in result.stdout
    only = as_json(a, b, "--corruptions", "brightness", "--severities", "1")
    assert [each["name"] for each in only["operations"]] == ["brightness"]
    assert [each["variant"] for each in only["operations"][0]["variants"]] == ["brightness/1"]


def test_clean_images_can_be_named(make, own_copy):
    a, b = (own_copy(make(*FEW, "--seed", seed)) for seed in (0, 1))
    clean = a.parent / "prepared images"
    shutil.move(a / "clean", clean)
    shutil.rmtree(b / "clean")
    for root in (a, b):
        as_published(root)
    without = compare(a, b)
    assert not any(operation.overall("psnr") for operation in without.operations)
    assert any("--clean-images" in note for note in without.notes)
    found = compare(a, b, clean=str(clean))
    assert found.operations[0].overall("psnr").images == IMAGES
    for path in clean.rglob("*.JPEG"):
        Image.fromarray(photo(80, 72)).save(path)
    result = cli("compare", a, b, "--clean-images", clean, status=1)
    assert all(size in result.stdout for size in ("64 x 64", "72 x 80"))


def test_variants_of_the_same_images_share_their_names(make):
    side = Side(open_set(make(*FEW)))
    assert side.keys("fog/1") is side.keys("glass_blur/3")


def test_the_sample_is_the_same_images_in_all_variants_and_decided_by_the_seed(make):
    a = make(*FEW)
    keys = {}
    for seed in (0, 1):
        found = compare(a, a, sample=5, seed=seed)
        sets = {frozenset(pair.key for pair in variant.pairs) for variant in found.variants}
        (keys[seed],) = sets
    assert len(keys[0]) == 5 and keys[0] != keys[1]


def test_too_few_images_are_no_verdict(make):
    for sample in (4, 5, 9):
        result = cli("compare", make(*FEW), make(*FEW, "--seed", 3), "--images", sample, status=1)
        assert "at least 10 images" in result.stdout
        assert "too few images: gaussian_noise, glass_blur, fog" in result.stdout


def test_what_cannot_be_compared_is_refused(make, tmp_path):
    a = make(*FEW)
    assert cli_error("compare", a, tmp_path / "none").startswith(f"{tmp_path / 'none'}: ")
    assert "contains no folder" in cli_error("compare", a, tmp_path)
    assert "did you mean 'fog'?" in cli_error("compare", a, a, "--corruptions", "frog")
    assert "--severities: severity 7" in cli_error("compare", a, a, "--severities", "7")
    assert cli_error("compare", a, a, "--images", "0").endswith(
        "--images: must be greater than or equal to 1, not 0"
    )
    assert "is a folder" in cli_error("compare", a, a, "--output", tmp_path)
    assert "inside the set" in cli_error("compare", a, a, "--output", a / "page.html")
    assert "--clean-images" in cli_error("compare", a, a, "--clean-images", tmp_path / "none")
    assert "in common" in cli_error("compare", a, make("--corruptions", "snow", "--severities", "1"))
    sequences = ("--perturbations", "brightness,gaussian_noise", "--limit", 6, "--format", "png", "--seed", 0)
    assert "cannot be compared" in cli_error("compare", a, make(*sequences, command="make-p"))


# --- layouts -------------------------------------------------------------------------------------


def test_the_page_is_self_contained_and_shows_what_differs(make, own_copy, tmp_path):
    page = tmp_path / "a folder" / "page.html"
    a, b = make(*FEW), own_copy(make(*FEW, "--quality", 40))
    b = b.rename(tmp_path / "<script>alert(1)<_script>")
    result = cli("compare", a, b, "--output", page, status=1)
    assert "page.html" in result.stderr
    text = page.read_text()
    assert "file size (kB)" in text
    assert "quality (85 in A, 40 in B)" in text
    ticks = [float(each) for each in re.findall(r'text-anchor="end">([^<]*)<', text)]
    assert ticks and all(float(f"{each:.3g}") == each for each in ticks)
    assert "is not equivalent" in text and "<svg" in text and "nan" not in text.lower().split("base64")[0]
    assert text.count("data:image/jpeg;base64,") >= 2 * 3 * 5
    outside = [part for part in ("http:", "https:", 'src="/', "url(") if part in text]
    assert not outside
    # The own scripts of the page, and not the name of a set.
    assert text.count("<script") == 2 and "<script>alert" not in text
    again = tmp_path / "again.html"
    cli("compare", a, b, "--output", again, status=1)
    assert again.read_bytes() == page.read_bytes()
    assert ".html" in cli_error("compare", a, b, "--output", tmp_path / "x.tif")


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("make-c", ("--corruptions", "fog", "--severities", "1,3")),
        ("make-p", ("--perturbations", "tilt", "--limit", 2)),
        ("make-p", ("--perturbations", "tilt", "--limit", 1, "--format", "png")),
    ],
)
def test_a_server_is_not_asked_for_the_sizes_of_what_is_read(make, tmp_path, monkeypatch, command, flags):
    local = make(*flags, command=command)
    url, call, asked = uploaded(local, f"memory://{tmp_path.name}/set"), remote._call, []

    def note(location, verb, url, *arguments, **options):
        if verb == "info" and re.search(r"/(clean|fog|tilt)/.*\.\w+$", url):
            asked.append(url)
        return call(location, verb, url, *arguments, **options)

    monkeypatch.setattr(remote, "_call", note)
    found, wanted = as_json(url, local), as_json(local, local)
    assert found.pop("a") and wanted.pop("a") and found == wanted
    assert not asked


def test_variants_on_a_server_are_listed_at_once(make, tmp_path, gather):
    side = Side(open_set(uploaded(make(*FEW), f"memory://{tmp_path.name}/set")))
    folders = gather(r"^find .*/\d$", 4)
    side.open(side.variants)
    assert len(side.keys("fog/1")) == IMAGES and folders.is_set()


def test_sets_behind_urls(make, monkeypatch):
    from fsspec.implementations.memory import MemoryFileSystem

    a, b = make(*FEW), make(*FEW, "--seed", 1)
    for name, root in (("a", a), ("b", b)):
        for path in root.rglob("*.*"):
            if path.is_file() and ".robustgen" not in path.parts:
                MemoryFileSystem().pipe(f"/compare/{name}/{path.relative_to(root)}", path.read_bytes())
    read, together = Sides._read, threading.Barrier(4, timeout=60)

    def read_together(sides, key, folder):
        # The first variant is read alone, the others at least four at once.
        if "://" in sides.b.root and folder != "clean":
            together.wait()
        return read(sides, key, folder)

    monkeypatch.setattr(Sides, "_read", read_together)
    local, remote = (
        as_json(*pair, status=1) for pair in ((a, b), ("memory://compare/a", "memory://compare/b"))
    )
    assert local["a"].pop("root") == str(a) and remote["a"].pop("root") == "memory://compare/a"
    assert local["b"].pop("root") != remote["b"].pop("root") and local == remote
