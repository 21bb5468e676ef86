"""WebDataset and Parquet: what shards hold, that images alone decide their bytes, real readers."""

import json
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import webdataset as wds
from PIL import Image

from robustgen.errors import ImageError, SourceError
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.formats.shards import ShardSource
from robustgen.sets.sources.classes import sample_key, sample_name
from tests.helpers import cli, cli_error, errors_of, make_c, maker, put_photo, tree
from tests.sets.sources.test_shards import put_parquet
from tests.sets.sources.test_trees import put_tar

FEW = ("--corruptions", "gaussian_noise,contrast", "--severities", "1,4")
VARIANTS = ["clean", *(f"{name}/{level}" for name in ("gaussian_noise", "contrast") for level in (1, 4))]
# cat/a.JPEG, cat/b.jpg, cat/c.png | dog/a.JPEG, dog/d.JPEG
SMALL = ("--set", "shard_size=3")
FORMATS = ("webdataset", "parquet")


make = maker(*SMALL, *FEW, "--format")


@pytest.fixture(scope="module")
def sets(photos, tmp_path_factory):
    """The same set as files, WebDataset and Parquet."""
    root = tmp_path_factory.mktemp("sets")
    for form in ("jpeg", *FORMATS):
        make(photos, root / form, form, "--jobs", "1")
    return root


def members(path):
    """Name to content of the members of a tar archive, in order."""
    with tarfile.open(path) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


def rows(path):
    return pq.ParquetFile(path).read().to_pylist()


# --- what they hold --------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_tar_holds_the_files_of_the_tree_and_their_labels(sets, variant):
    first, second = (members(sets / "webdataset" / variant / f"00000{i}.tar") for i in range(2))
    assert list(first) == [f"cat/{name}.{suffix}" for name in "abc" for suffix in ("jpg", "cls")]
    assert list(second) == [f"dog/{name}.{suffix}" for name in "ad" for suffix in ("jpg", "cls")]
    files = {"cat/a": "a.JPEG", "cat/b": "b.jpg", "cat/c": "c.JPEG", "dog/a": "a.JPEG", "dog/d": "d.JPEG"}
    for key, name in files.items():
        tree_file = sets / "jpeg" / variant / key.split("/")[0] / name
        assert (first | second)[f"{key}.jpg"] == tree_file.read_bytes()
        assert (first | second)[f"{key}.cls"] == (b"1" if key.startswith("dog") else b"0")


def test_counts_and_names_stand_beside_the_tars(sets):
    assert (sets / "webdataset/contrast/4/nshards.txt").read_text() == "2\n"
    assert (sets / "webdataset/classnames.txt").read_text() == "cat\ndog\n"


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_table_holds_the_files_of_the_tree_and_their_labels(sets, variant):
    found = [
        row for i in range(2) for row in rows(sets / "parquet/data" / variant / f"0000{i}-of-00002.parquet")
    ]
    assert [row["image"]["path"] for row in found] == [
        "cat/a.JPEG", "cat/b.jpg", "cat/c.JPEG", "dog/a.JPEG", "dog/d.JPEG",
    ]  # fmt: skip
    assert [row["label"] for row in found] == [0, 0, 0, 1, 1]
    for row in found:
        assert row["image"]["bytes"] == (sets / "jpeg" / variant / row["image"]["path"]).read_bytes()


@pytest.mark.parametrize("name", ["cat/a.JPEG", "a.b.c.JPEG", "x.y/50%.2E.png", "%2E.jpg"])
def test_dots_in_a_name_survive_readers_that_end_a_key_at_the_first_one(name):
    key = sample_key(name)
    assert "." not in key.rpartition("/")[2]
    assert sample_name(key) == name.rpartition(".")[0]


# --- nothing else decides the bytes ----------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_an_image_that_fails_is_lacking_until_it_is_mended(source, sets, tmp_path, form):
    good = (source / "cat/b.jpg").read_bytes()
    (source / "cat/b.jpg").write_bytes(b"no image")
    make(source, tmp_path / "out", form, status=1)
    assert [failure["key"] for failure in errors_of(tmp_path / "out")] == ["cat/b.jpg"]
    if form == "webdataset":
        assert "cat/b.jpg" not in members(tmp_path / "out/clean/000000.tar")
        assert "cat/a.jpg" in members(tmp_path / "out/clean/000000.tar")
        split = json.loads((tmp_path / "out/_info.json").read_text())["splits"]["contrast/4"]
        assert (split["num_samples"], split["shard_lengths"]) == (4, [2, 2])
    made = tree(tmp_path / "out")
    make(source, tmp_path / "out", form, status=1)
    assert tree(tmp_path / "out") == made
    (source / "cat/b.jpg").write_bytes(good)
    make(source, tmp_path / "out", form)
    assert tree(tmp_path / "out") == tree(sets / form)


def test_an_image_that_fails_in_two_units_of_a_shard_counts_once(source, tmp_path):
    (source / "cat/b.jpg").write_bytes(b"no image")
    for _ in range(2):
        told = make(source, tmp_path / "out", "webdataset", "--set", "shard_size=5", status=1).stderr
        assert "1 failure, listed in " in told and told.count("'cat/b.jpg'") == 1


@pytest.mark.parametrize("form", FORMATS)
def test_an_image_that_changes_is_made_again_and_one_that_breaks_is_withdrawn(source, tmp_path, form):
    make(source, tmp_path / "out", form)
    put_photo(source / "dog/a.JPEG", 60, 60, seed=77)
    make(source, tmp_path / "out", form)
    make(source, tmp_path / "anew", form)
    assert tree(tmp_path / "out") == tree(tmp_path / "anew")
    (source / "dog/a.JPEG").write_bytes(b"no image")
    make(source, tmp_path / "out", form, status=1)
    make(source, tmp_path / "lacking", form, status=1)
    assert tree(tmp_path / "out") == tree(tmp_path / "lacking")


# --- checked ---------------------------------------------------------------------------------------


def test_verify_deep_finds_another_image_in_a_shard(source, tmp_path):
    make(source, tmp_path / "out", "webdataset", "--corruptions", "contrast")
    size = (source / "dog/a.JPEG").stat().st_size
    put_photo(source / "dog/a.JPEG", seed=9)
    with (source / "dog/a.JPEG").open("ab") as file:
        file.write(bytes(max(0, size - file.tell())))
    found = cli("verify", tmp_path / "out", "--deep", "all", status=1).output
    assert "differs   contrast/1/000001.tar: dog/a.JPEG" in found


# --- real readers ----------------------------------------------------------------------------------


def test_webdataset_reads_the_tars(sets):
    pattern = str(sets / "webdataset/gaussian_noise/4/{000000..000001}.tar")
    found = list(wds.WebDataset(pattern, shardshuffle=False).decode("pil").to_tuple("__key__", "jpg", "cls"))
    assert [(key, label) for key, _, label in found] == [
        ("cat/a", 0), ("cat/b", 0), ("cat/c", 0), ("dog/a", 1), ("dog/d", 1),
    ]  # fmt: skip
    assert [image.size for _, image, _ in found] == [(40, 36)] * 4 + [(33, 50)]
    assert isinstance(found[0][1], Image.Image)


def test_timm_reads_the_tars_by_their_list(sets):
    timm = pytest.importorskip("timm.data")
    found = timm.create_dataset("wds/any", root=str(sets / "webdataset"), split="contrast/4")
    assert [(image.size, label) for image, label in found] == [
        ((40, 36), 0), ((40, 36), 0), ((40, 36), 0), ((40, 36), 1), ((33, 50), 1),
    ]  # fmt: skip
    assert len(found) == 5


# --- our own readers -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_report_takes_shards(sets, tmp_path, form):
    cli("report", sets / form, "--output", tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_a_webdataset_of_someone_else_is_read(sets, tmp_path):
    for variant in VARIANTS:
        shutil.copytree(sets / "webdataset" / variant, tmp_path / "theirs" / variant, dirs_exist_ok=True)
        (tmp_path / "theirs" / variant / "SHA256SUMS").unlink()
    theirs = open_set(tmp_path / "theirs")
    names = ("cat/a", "cat/b", "cat/c", "dog/a", "dog/d")
    assert theirs.keys_of(theirs.variants[0]) == tuple(f"{name}.jpg" for name in names)
    assert theirs.class_count is None
    assert theirs.labels(theirs.variants[0]).tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("key", ["../../victim", "/etc/victim", "cat/../../victim"])
def test_samples_that_would_lie_outside_are_refused(sets, tmp_path, key):
    out = Path(shutil.copytree(sets / "webdataset", tmp_path / "out"))
    shutil.rmtree(out / ".robustgen")
    (out / "keys.txt").unlink()
    image = (sets / "jpeg/clean/cat/a.JPEG").read_bytes()
    put_tar(out / "clean/000000.tar", {f"{key}.jpg": image, f"{key}.cls": b"0"})
    said = cli_error("report", out)
    assert said.startswith(f"{out / 'clean'}: ") and repr(f"{key}.jpg".lstrip("/")) in said
    assert "leaves the archive" in said or "is absolute" in said


# --- samples found by the records of a set ----------------------------------------------------------


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """40 images in shards of 35, some names too long for a plain header, as WebDataset, Parquet and files."""
    root = tmp_path_factory.mktemp("many")
    for i in range(40):
        name = f"{i:02d}{'é' * (i % 3)}{'x' * 90 * (i % 4 == 1)}.png"
        put_photo(root / "photos" / ("cat", "dog")[i % 2] / name, seed=i)
    for form in ("jpeg", *FORMATS):
        flags = ("--corruptions", "contrast", "--severities", "1", "--set", "shard_size=35")
        make_c(root / "photos", root / form, "--format", form, *flags)
    return root


@pytest.mark.parametrize("form", FORMATS)
def test_samples_are_found_without_a_listing_of_all(many, form, monkeypatch):
    expected, written = (open_set(many / each) for each in ("jpeg", form))
    monkeypatch.setattr(ShardSource, "listing", property(lambda self: pytest.fail("all shards are listed")))
    for variant in written.variants:
        keys = written.keys_of(variant)
        assert sorted(keys) == sorted(expected.keys_of(variant))
        assert [*written.labels(variant)] == [key.startswith("dog/") for key in keys]
        for key in (keys[39], *keys, *keys[::-7]):
            assert np.array_equal(written[variant].load(key), expected[variant].load(key))


@pytest.mark.parametrize("form", FORMATS)
def test_shards_that_are_not_those_of_the_records_are_listed(many, tmp_path, form):
    out = Path(shutil.copytree(many / form, tmp_path / "out"))
    (shard,) = out.rglob("contrast/1/*01*.*") if form == "webdataset" else out.rglob("contrast/1/00001-*")
    shard.unlink()
    written = open_set(out)
    clean, contrast = written.variants
    assert len(written.keys_of(clean)) == 40 and len(written[contrast].keys()) == 35
    with pytest.raises(SourceError):
        written.keys_of(contrast)


def test_another_sample_at_a_place_is_refused(many, tmp_path):
    out = Path(shutil.copytree(many / "webdataset", tmp_path / "out"))
    for first, second in (("000000.tar", "000001.tar"), ("000001.tar", "000000.tar")):
        shutil.copy(many / "webdataset/contrast/1" / first, out / "contrast/1" / second)
    source = open_set(out)[open_set(out).variants[1]]
    with pytest.raises(ImageError) as raised:
        source.load(source.keys()[0])
    assert "000000.tar" in raised.value.reason
    with pytest.raises(ImageError):
        source.load(source.keys()[-1])


# --- Parquet as others read it ---------------------------------------------------------------------


def test_folders_of_tables_hold_nothing_else(sets):
    """pandas, Polars, Spark and Dask take every file of a folder for a table."""
    data = sets / "parquet" / "data"
    assert {path.suffix for path in data.rglob("*") if path.is_file()} == {".parquet"}
    lines = (sets / "parquet/SHA256SUMS").read_text().splitlines()
    assert len(lines) == 2 * len(VARIANTS) + 1 and sum("  data/contrast/4/" in line for line in lines) == 2
    whole = pa.dataset.dataset(data).to_table()
    found = {(row["corruption"], row["severity"], row["key"]): row for row in whole.to_pylist()}
    assert len(found) == 25 and {(name, level) for name, level, _ in found} == {
        ("clean", 0), *((name, level) for name in ("gaussian_noise", "contrast") for level in (1, 4)),
    }  # fmt: skip
    row = found["contrast", 4, "cat/c.png"]
    assert row["image"]["path"] == "cat/c.JPEG" and row["label"] == 0


def test_pandas_and_dask_read_folders(sets):
    pandas = pytest.importorskip("pandas")
    dask = pytest.importorskip("dask.dataframe")
    data = str(sets / "parquet" / "data")
    for read in (pandas.read_parquet, lambda place: dask.read_parquet(place).compute()):
        whole, one = read(data), read(f"{data}/contrast/4")
        assert (len(whole), len(one)) == (25, 5)
        assert whole.groupby(["corruption", "severity"]).size().to_dict()["contrast", 4] == 5
        assert one.label.to_list() == [0, 0, 0, 1, 1]


def test_labels_and_names_are_those_of_the_source_as_in_the_tree(tmp_path):
    """The labels of `--limit` are those of the whole source, and another limit adds rows only."""
    import datasets

    names = ["zebra", "ant", "cat"]
    rows = [({"bytes": None, "path": f"{name}.png"}, number) for number, name in enumerate(names)]
    for row, _ in rows:
        row["bytes"] = put_photo(tmp_path / "photos" / row["path"], seed=len(row["path"])).read_bytes()
    flags = ("--source", put_parquet(tmp_path / "in.parquet", rows, pa.int64(), names))
    flags = ("make-c", *flags, "--corruptions", "contrast", "--severities", "1", "--no-clean")
    for limit in ("2", "3"):
        for form in ("jpeg", "parquet"):
            cli(*flags, "--limit", limit, "--format", form, "--output", tmp_path / form)
        files, tables = open_set(tmp_path / "jpeg"), open_set(tmp_path / "parquet")
        (variant,) = files.variants
        assert tables.keys_of(variant) == files.keys_of(variant)
        assert np.array_equal(tables.labels(variant), files.labels(variant)) and tables.class_count == 3
    cli(*flags, "--format", "parquet", "--output", tmp_path / "fresh")
    assert tree(tmp_path / "parquet") == tree(tmp_path / "fresh")
    (path,) = (tmp_path / "fresh/data/contrast/1").iterdir()
    found = datasets.Dataset.from_parquet(str(path), cache_dir=str(tmp_path))
    assert found.features["label"].names == names
