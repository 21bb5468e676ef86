"""Estimates of a run, and the check of the free space."""

import re
import time

import pytest
from PIL import Image

from robustgen.files.storage.local import LocalStore
from robustgen.sets.dataset.estimate import estimate
from robustgen.sets.dataset.planning import plan_benchmark
from robustgen.sets.dataset.recipes import ClipRecipe, CorruptionRecipe, PerturbationRecipe
from robustgen.sets.dataset.run import run_plan
from robustgen.settings.config import Config
from robustgen.settings.loading import load
from tests.helpers import cli, cli_error, photo, put_photo
from tests.source_writers import WRITERS


def planned(source, output, kind="c", jobs=1, **choices):
    """The plan of a run by so many processes."""
    choices |= {"source": str(source), "output": str(output), "jobs": jobs}
    return plan_benchmark(load(Config, None, choices), kind)


@pytest.fixture
def worked(monkeypatch):
    """The sizes of the images given to operations; a clock counts them instead of seconds."""
    sizes = []
    for recipe in (CorruptionRecipe, PerturbationRecipe):

        def count(self, variant, key, image, *shared, make=recipe.make):
            sizes.append(image.size)
            return make(self, variant, key, image, *shared)

        monkeypatch.setattr(recipe, "make", count)
    monkeypatch.setattr(time, "process_time", lambda: sum(sizes) / 1e9)
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    monkeypatch.setattr("robustgen.sets.dataset.estimate._FINISHING", 0.0)
    return sizes


def test_an_estimate_is_near_to_what_the_run_does(tmp_path, worked):
    """Photographs of two sizes."""
    for i in range(6):
        put_photo(tmp_path / "src" / "a" / f"{i}.JPEG", height=300 - 150 * (i % 2), width=400, seed=i)
    plan = planned(tmp_path / "src", tmp_path / "out", severities="1-3")
    judged = estimate(plan)
    assert not (tmp_path / "out").exists()
    worked.clear()
    done = run_plan(plan)
    assert judged.outputs == done.made == len(worked)
    assert 2 / 3 < judged.size / done.size < 1.5
    assert judged.seconds * 1e9 == pytest.approx(sum(worked))


def test_an_estimate_counts_files_and_what_precedes_the_first(photos, tmp_path, worked, monkeypatch):
    written, put = [], LocalStore.put

    def count(self, *arguments, **options):
        written.append(arguments)
        return put(self, *arguments, **options)

    monkeypatch.setattr(LocalStore, "put", count)
    monkeypatch.setattr(time, "perf_counter", lambda: float(len(written)))
    judged = estimate(planned(photos, tmp_path / "out", corruptions="contrast"))
    # A file of each output, and no image is created twice in the meantime.
    assert round(judged.seconds) == judged.outputs == 30
    assert judged.starting < 1 and judged.free > judged.disk
    assert not (tmp_path / "out").exists()


def test_a_set_that_does_not_fit_is_refused_before_the_first_byte(photos, tmp_path, monkeypatch):
    flags = ("--source", photos, "--output", tmp_path / "out", "--corruptions", "contrast", "--jobs", "1")
    monkeypatch.setattr(LocalStore, "measure_free_space", lambda _: 50_000)
    tried = cli("make-c", *flags, "--dry-run")
    assert "50 kB are free" in tried.stdout
    assert tried.stderr == "warning: the set will not fit on the file system of the output\n"
    message = cli_error("make-c", *flags)
    assert "needs about 123 kB, and 50 kB are free" in message
    assert not (tmp_path / "out").exists()
    # Little is missing from a set that is nearly complete.
    monkeypatch.setattr(LocalStore, "measure_free_space", lambda _: 10**9)
    cli("make-c", *flags)
    (tmp_path / "out/contrast/1/cat/a.JPEG").unlink()
    monkeypatch.setattr(LocalStore, "measure_free_space", lambda _: 50_000)
    assert cli("make-c", *flags).stdout.startswith("6 images in ")


@pytest.mark.parametrize("form", ["webdataset", "tsv"])
def test_an_estimate_counts_what_surrounds_the_images(tmp_path, form):
    """Headers and padding of archives; base64 in tables of text. The images are alike."""
    images = [photo(64, 64)] * 40
    source, own = WRITERS["table"]["tsv"](tmp_path / "tsv", images), {"edition": "folder"}
    if form != "tsv":
        source, own = WRITERS["folder"]["folder"](tmp_path / "folder", images), {"format": form}
    made = planned(source, tmp_path / "out", corruptions="contrast", **own)
    judged = estimate(made).size
    assert judged == pytest.approx(run_plan(made).size, rel=0.1)


def test_an_estimate_knows_that_a_process_may_wait_for_the_last_shard(photos, tmp_path, worked, monkeypatch):
    """Of two processes, one has 3 of 5 images in shards of 2."""
    monkeypatch.setattr("robustgen.sets.dataset.estimate.count_cores", lambda: 2)
    shards = {"corruptions": "contrast", "format": "webdataset", "shard_size": 2}
    one, two = (estimate(planned(photos, tmp_path, jobs=jobs, **shards)).seconds for jobs in (1, 2))
    assert two == pytest.approx(0.6 * one)


def test_a_dry_run_names_the_price_of_another_preset(photos, tmp_path):
    flags = (
        "--source",
        photos,
        "--output",
        tmp_path / "out",
        "--perturbations",
        "tilt",
        "--limit",
        2,
        "--dry-run",
    )
    quick = cli("make-p", *flags, "--preset", "ultrafast").stdout
    found = re.search(
        r"^preset +ultrafast; veryslow takes (.*) times the time, (.*) times the b", quick, re.M
    )
    assert float(found[1]) > 1 > float(found[2]) > 0
    assert re.search(r"^preset +veryslow; medium takes [\d.]+ times", cli("make-p", *flags).stdout, re.M)
    assert "preset" not in cli("make-p", *flags, "--format", "png").stdout


@pytest.mark.slow("a photograph of three million pixels")
def test_an_estimate_of_large_sequences_does_not_make_one(tmp_path, worked):
    put_photo(tmp_path / "src" / "a" / "large.JPEG", height=1500, width=2000)
    plan = planned(tmp_path / "src", tmp_path / "out", "p", perturbations="tilt")
    judged = estimate(plan)
    assert max(worked) == 448 * 448 * 3
    assert judged.seconds * 1e9 == pytest.approx(len(plan.variants) * 1500 * 2000 * 3)


def test_an_estimate_of_arrays_counts_their_bytes(tmp_path):
    for i in range(4):
        put_photo(tmp_path / "src" / f"{i}.png", 32, 32, seed=i)
    plan = planned(
        tmp_path / "src", tmp_path / "out", corruptions="contrast", edition="cifar-10", format="npy"
    )
    assert estimate(plan).size == pytest.approx(run_plan(plan).size, rel=0.05)


def test_an_estimate_of_clips_measures_a_part(tmp_path, monkeypatch):
    """One level of each operation, for the beginning of one clip, scaled by the frames of all."""
    pytest.importorskip("av")
    made, make = [], ClipRecipe.make
    for name, count in {"a": 34, "b": 46}.items():
        (tmp_path / "src" / name).mkdir(parents=True)
        for number in range(count):
            frame = photo(240, 320)[number : 150 + number, 2 * number : 200 + 2 * number]
            Image.fromarray(frame).save(tmp_path / "src" / name / f"{number}.png")

    def record(self, variant, key, clip, *more):
        made.append((variant.folder, clip.stack().shape))
        return make(self, variant, key, clip, *more)

    monkeypatch.setattr(ClipRecipe, "make", record)
    monkeypatch.setattr("robustgen.sets.dataset.estimate._CLIP_SIDE", 96)
    monkeypatch.setattr("robustgen.sets.dataset.estimate.SECONDS", -1)
    choices = {"dataset": "clips", "source_kind": "clips", "edition": "kinetics", "format": "png"}
    plan = planned(
        tmp_path / "src", tmp_path / "out", corruptions="contrast,brightness", severities="1,3,5", **choices
    )
    judged = estimate(plan)
    assert {*made} == {(each, (32, 96, 96, 3)) for each in ("clean", "contrast/3", "brightness/3")}
    assert 2 / 3 < judged.size / run_plan(plan).size < 1.5
