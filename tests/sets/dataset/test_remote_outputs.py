"""Outputs and sources that are no local folders: memory, and moto's S3 server by way of s3fs."""

import errno
import json
import shutil
import threading
from pathlib import Path

import pytest

from robustgen.files.ledger import parse_record
from robustgen.files.set_files import STATE
from robustgen.files.storage import open_store, remote
from robustgen.sets.dataset import unit_jobs
from robustgen.sets.dataset.state import SetLedger
from tests.helpers import (
    FEW,
    PATIENCE,
    cli,
    cli_error,
    findings,
    kept,
    maker,
    manifest,
    put_photo,
    spawn,
    tree,
    uploaded,
    whole,
    without_beginning,
)
from tests.servers import BUCKET, Weather, forget_connections

FORMS = ("jpeg", "png", "original", "npy", "webdataset", "parquet")


make_c = maker(*FEW)


def flags_of(form):
    """Flags of a format; several shards, and images of one size."""
    more = {
        "npy": ("--edition", "folder@32"),
        "webdataset": ("--set", "shard_size=2"),
        "parquet": ("--set", "shard_size=2"),
    }
    return ("--format", form, *more.get(form, ()))


def stored(url):
    """Path to bytes of all files below a URL but for the run's own state."""
    store = open_store(url)
    return {e.path: store.read(e.path) for e in store.list() if not e.path.startswith(f"{STATE}/")}


@pytest.fixture(params=["memory", pytest.param("s3", marks=pytest.mark.slow("sets in an S3 server"))])
def place(request, tmp_path):
    """A URL below which nothing is, of each store that can be written."""
    if request.param == "s3":
        request.getfixturevalue("s3")
        return f"s3://{BUCKET}/{tmp_path.name}"
    return f"memory://{tmp_path.name}"


def without_source(files):
    """All files, dataset.json without where the source lay, and no descriptions, which name it."""
    for name in ("croissant.json", "README.md", "MANIFEST.SHA256"):
        files.pop(name, None)
    held = json.loads(files.pop("dataset.json"))
    held["source"].pop("location")
    for name in ("source", "dataset", "follow_links"):
        held["config"].pop(name, None)
    held.pop("dataset")
    return files | {"dataset.json": held}


# --- the same set, wherever it lies ---------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_sets_are_the_same_bytes_as_on_a_disk(photos, small_set, place, form):
    local = small_set("c", "", *FEW, *flags_of(form))
    said = make_c(photos, f"{place}/out", *flags_of(form)).stdout
    assert said.startswith("25 images in ") and f"in {place}/out" in said
    assert stored(f"{place}/out") == whole(local)
    assert kept(make_c(photos, f"{place}/out", *flags_of(form))) == 25
    assert findings(f"{place}/out", "--deep", "2", status=0) == []
    assert findings(f"{place}/out", "--against", local, status=0) == []
    assert findings(local, "--against", f"{place}/out", status=0) == []


@pytest.mark.slow("makes sets in buckets")
@pytest.mark.parametrize("form", ["mp4", "png", "npy"])
def test_sequences_are_the_same_bytes_as_on_a_disk(photos, tmp_path, place, form):
    size = ("--edition", "folder@32") if form == "npy" else ()
    flags = ("--perturbations", "translate", "--limit", "2", "--jobs", "1", "--format", form, *size)
    cli("make-p", "--source", photos, "--output", tmp_path / "local", *flags)
    cli("make-p", "--source", photos, "--output", f"{place}/out", *flags)
    assert stored(f"{place}/out") == whole(tmp_path / "local")
    assert findings(f"{place}/out", status=0) == []


def test_a_source_behind_a_url_gives_the_same_set(photos, output, tmp_path, place):
    make_c(uploaded(photos, f"{place}/photos"), f"{place}/out")
    assert without_source(stored(f"{place}/out")) == without_source(whole(output))
    make_c(f"{place}/photos", tmp_path / "out")
    assert tree(tmp_path / "out") == tree(output)
    assert findings(f"{place}/out", "--deep", "all", status=0) == []


# --- resuming, repairing, sharding ---------------------------------------------------------------


@pytest.mark.slow("makes sets again in buckets")
@pytest.mark.parametrize("form", ["jpeg", "npy", "webdataset"])
def test_what_is_lost_or_cut_short_is_made_again(photos, place, form):
    flags = (*flags_of(form), "--corruptions", "contrast")
    make_c(photos, f"{place}/out", *flags)
    before, store = stored(f"{place}/out"), open_store(f"{place}/out")
    lost = sorted(name for name in before if name.startswith("contrast") and "SHA" not in name)[0]
    store.delete(lost)
    assert any(line == f"missing {lost}" for line in findings(f"{place}/out"))
    assert make_c(photos, f"{place}/out", *flags).stdout[:2] != "no"
    assert stored(f"{place}/out") == before
    store.put(lost, before[lost][:-7])
    assert findings(f"{place}/out") == [f"truncated {lost}"]
    make_c(photos, f"{place}/out", *flags)
    assert stored(f"{place}/out") == before
    records = (entry.path for entry in store.list(f"{STATE}/records"))
    record = next(path for path in records if not path.endswith("companions.json"))
    store.put(record, b"damaged")
    assert any(line.startswith("damaged .robustgen/records/") for line in findings(f"{place}/out"))
    make_c(photos, f"{place}/out", *flags)
    assert stored(f"{place}/out") == before
    assert findings(f"{place}/out", status=0) == []


@pytest.mark.slow("makes sets again in buckets")
def test_sets_grow_and_are_started_over(photos, output, tmp_path, place):
    make_c(photos, f"{place}/out", "--severities", "1", "--limit", "2")
    make_c(photos, f"{place}/out")
    assert stored(f"{place}/out") == whole(output)
    message = cli_error("make-c", "--source", photos, "--output", f"{place}/out", *FEW, "--seed", "1")
    assert message.startswith(f"{place}/out: ") and "seed was 0 and is now 1." in message
    make_c(photos, f"{place}/out", "--seed", "1", "--overwrite")
    make_c(photos, tmp_path / "seed", "--seed", "1")
    assert stored(f"{place}/out") == whole(tmp_path / "seed")


@pytest.mark.slow("several processes share a bucket")
def test_several_machines_share_a_bucket(photos, output, s3):
    """Each run is a process of its own, as on machines that share nothing else."""
    command = ("make-c", "--source", photos, "--output", f"s3://{BUCKET}/out", *FEW)
    together = [spawn(*command) for _ in range(3)]
    answers = [process.communicate(timeout=PATIENCE) for process in together]
    assert [process.returncode for process in together] == [0, 0, 0], answers
    assert stored(f"s3://{BUCKET}/out") == whole(output)


@pytest.mark.slow("several processes share a bucket")
def test_workers_write_to_a_bucket(photos, output, s3):
    make_c(photos, f"s3://{BUCKET}/out", "--jobs", "2")
    assert stored(f"s3://{BUCKET}/out") == whole(output)


@pytest.mark.slow("makes sets in buckets")
def test_a_local_copy_of_a_remote_set_is_that_set(photos, place, tmp_path):
    make_c(photos, f"{place}/out", "--corruptions", "contrast")
    store, local = open_store(f"{place}/out"), open_store(tmp_path / "copy")
    for entry in store.list():
        local.put(entry.path, store.read(entry.path))
    assert findings(tmp_path / "copy", status=0) == []
    assert kept(make_c(photos, tmp_path / "copy", "--corruptions", "contrast"))
    shutil.rmtree(tmp_path / "copy" / STATE)
    assert findings(tmp_path / "copy", status=0) == []
    assert manifest(tmp_path / "copy")["complete"] is True


def test_commands_make_few_requests(photos, tmp_path, monkeypatch):
    place, call, calls = f"memory://{tmp_path.name}/out", remote._call, []

    def count(location, verb, url, *arguments, **options):
        calls.append((verb, url, threading.current_thread() is threading.main_thread()))
        return call(location, verb, url, *arguments, **options)

    monkeypatch.setattr(remote, "_call", count)
    make_c(photos, place)
    # Three for each of five units.
    assert sum(is_alone for *_, is_alone in calls) <= 3 * 5 + 25
    calls.clear()
    assert findings(place, status=0) == []
    pictures = [url for _, url, _ in calls if "/cat/" in url or "/dog/" in url]
    assert len(pictures) == len({*pictures}) == 25


# --- trouble ---------------------------------------------------------------------------------------


@pytest.mark.slow("a store with faults")
def test_throttling_lost_connections_and_bodies_cut_short_cost_nothing(photos, output, s3: Weather):
    begun = []

    class Storm(list):
        """Trouble with every seventh request."""

        def __bool__(self):
            return True

        def pop(self, _=0):
            begun.append(1)
            return {0: "throttle", 3: "lose", 5: "truncate"}.get(len(begun) % 7, "")

    s3.trouble = Storm()
    try:
        make_c(photos, f"s3://{BUCKET}/out")
    finally:
        s3.trouble = []
    assert len(begun) > 100
    assert stored(f"s3://{BUCKET}/out") == whole(output)


def test_a_unit_whose_last_files_fail_has_no_record(photos, output, tmp_path, monkeypatch):
    place, call = f"memory://{tmp_path.name}/out", remote._call

    def refuse(location, verb, url, *arguments, **options):
        if verb == "pipe_file" and "contrast/4/dog" in url:
            raise PermissionError(errno.EACCES, "access refused", url)
        return call(location, verb, url, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(remote, "_call", refuse)
        (line,) = without_beginning(make_c(photos, place, status=1).stderr)
    assert line == f"Error: {place}: access refused"
    recorded = {
        file.path for _, record in SetLedger(open_store(place)).read_records() for file in record.files
    }
    assert recorded <= stored(place).keys() and not any("dog" in path for path in recorded)
    make_c(photos, place)
    assert stored(place) == whole(output)


def test_a_unit_ends_while_the_next_one_is_processed(photos, tmp_path, monkeypatch):
    make_c(photos, tmp_path / "local")
    place, call, write = f"memory://{tmp_path.name}/out", remote._call, unit_jobs._write_files
    store, begun, second, records = open_store(place), [], threading.Event(), []

    def note(job, root, reporter):
        begun.append(job.unit.name)
        assert store.exists(f"{STATE}/claims/{job.unit.name}")
        if len(begun) == 2:
            second.set()
        return write(job, root, reporter)

    def wait(location, verb, url, *arguments, **options):
        if verb == "pipe_file" and "/records/" in url and (files := parse_record(arguments[0]).files):
            # A kill at this point leaves no record without its files.
            assert all(store.exists(file.path) for file in files)
            assert second.wait(PATIENCE)
            records.append(url)
        return call(location, verb, url, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(unit_jobs, "_write_files", note)
        patch.setattr(remote, "_call", wait)
        make_c(photos, place)
    assert len(begun) == 5 and begun[0] in records[0]
    assert stored(place) == whole(tmp_path / "local")


@pytest.mark.slow("a store with faults")
@pytest.mark.parametrize("trouble", ["refuse", "throttle"])
def test_trouble_that_does_not_end_is_one_line_and_loses_nothing(photos, output, s3: Weather, trouble):
    s3.trouble[:] = [""] * 60 + [trouble] * 400
    result = make_c(photos, f"s3://{BUCKET}/out", status=1)
    (line,) = without_beginning(result.stderr)
    assert line.startswith(f"Error: s3://{BUCKET}/out: ")
    s3.trouble.clear()
    make_c(photos, f"s3://{BUCKET}/out")
    assert stored(f"s3://{BUCKET}/out") == whole(output)


@pytest.mark.slow("waits for refusals")
def test_wrong_credentials_are_one_line(photos, s3: Weather):
    s3.trouble[:] = ["refuse"] * 100
    message = cli_error("make-c", "--source", photos, "--output", f"s3://{BUCKET}/out", *FEW)
    assert message.startswith(f"s3://{BUCKET}/out/")
    s3.trouble.clear()
    assert stored(f"s3://{BUCKET}/out") == {}


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, "Unable to locate credentials"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "Could not connect"),
    ],
    ids=["no credentials", "no server"],
)
def test_a_store_out_of_reach_is_one_line(photos, s3, monkeypatch, variables, says):
    for name, value in variables.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    forget_connections()
    message = cli_error("make-c", "--source", photos, "--output", f"s3://{BUCKET}/out", *FEW)
    assert message.startswith(f"s3://{BUCKET}/out/") and says in message


def test_a_missing_bucket_is_one_line(photos, s3):
    (line,) = without_beginning(make_c(photos, "s3://robustgen-no-such-bucket/out", status=1).stderr)
    assert line.startswith("Error: s3://robustgen-no-such-bucket/out: ") and "bucket" in line
    assert "bucket" in cli_error("make-c", "--source", "s3://robustgen-no-such-bucket/in", *FEW)


def test_unknown_schemes_are_named(photos):
    assert "unknown scheme 'foo'" in cli_error("make-c", "--source", photos, "--output", "foo://bar", *FEW)


def test_web_servers_are_only_read_from(photos, web):
    url, _, _ = web
    (line,) = without_beginning(make_c(photos, f"{url}/out", status=1).stderr)
    assert line.startswith(f"Error: {url}/out: ") and "web servers" in line


def test_an_output_of_files_that_no_run_recorded_is_refused(photos, place):
    open_store(f"{place}/out").put("contrast/1/cat/mine.png", b"precious")
    message = cli_error("make-c", "--source", photos, "--output", f"{place}/out", *FEW)
    assert "contrast/1/cat/mine.png" in message
    assert stored(f"{place}/out") == {"contrast/1/cat/mine.png": b"precious"}


@pytest.mark.parametrize("spelling", ["{}/photos/out", "{}/x/../photos/out", "{}"])
def test_an_output_inside_or_around_its_source_is_refused(photos, place, spelling):
    source = uploaded(photos, f"{place}/photos")
    message = cli_error("make-c", "--source", source, "--output", spelling.format(place), *FEW)
    assert " the source " in message


def test_verify_of_nothing_is_one_line(place):
    assert "contains no files" in cli_error("verify", f"{place}/nothing")


def test_temporary_files_of_shards_go(photos, s3, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    make_c(photos, f"s3://{BUCKET}/out", "--format", "webdataset", "--set", "shard_size=2")
    assert not [path for path in Path(tmp_path).rglob("*") if path.is_file()]


def test_images_that_fail_are_listed_beside_the_set(source, place):
    (source / "cat" / "empty.png").write_bytes(b"")
    put_photo(source / "cat" / "z.png", seed=9)
    result = make_c(source, f"{place}/out", status=1)
    assert f"1 failure, listed in {place}/out/errors.jsonl:" in result.stderr
    said = cli("verify", f"{place}/out", "--allow-failures").stdout
    assert "1 of 7 images: 'cat/empty.png'" in said
