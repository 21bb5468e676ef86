"""The index of archives and shards that a run keeps for the next one, and what is unpacked for a run."""

import os
import pickle
import signal
import time
from pathlib import Path

import pytest
from helpers import cli, pictures, spawn, tree
from test_archives import PACKERS, assert_alike, files_of, put_photos, put_tar, put_zip
from test_shard_sources import CLASSES, NAMES, as_rows, labelled, put_parquet, put_shards

from robustgen.output.state import State
from robustgen.sources import open_source
from robustgen.sources.folder import ImageFolder

KINDS = ("tar", "tar.gz", "zip", "webdataset", "webdataset.gz", "parquet")
FEW = ("--corruptions", "contrast", "--severities", "1", "--no-clean", "--jobs", "2")


def put_source(root: Path, kind: str) -> Path:
    """A source of `kind` with the photographs below ``root / "photos"``."""
    files = files_of(put_photos(root / "photos", *NAMES))
    if kind == "webdataset":
        return put_shards(root / "shards", labelled(files, "cls"))
    if kind == "webdataset.gz":
        for number, shard in enumerate(labelled(files, "cls")):
            (root / "shards").mkdir(exist_ok=True)
            put_tar(root / "shards" / f"{number}.tar.gz", shard, "w:gz")
        return root / "shards"
    if kind == "parquet":
        return put_parquet(root / "x.parquet", as_rows(files, base=False), pa_int64(), CLASSES)
    pack = {"tar": put_tar, "tar.gz": PACKERS["a.tar.gz"], "zip": put_zip}[kind]
    return pack(root / f"a.{kind}", files)


def pa_int64():
    import pyarrow

    return pyarrow.int64()


def forbid_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("the source is listed anew")

    monkeypatch.setattr("robustgen.sources.archives.list_archive", fail)
    monkeypatch.setattr("robustgen.sources.webdataset.list_samples", fail)
    monkeypatch.setattr("robustgen.sources.parquet.list_rows", fail)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_keeps_the_index_for_the_next(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = put_source(tmp_path, kind), tmp_path / "out"
    cli("make-c", "--source", path, *FEW, "--output", out, "--dry-run")
    assert not out.exists()
    cli("make-c", "--source", path, *FEW, "--output", out)
    kept, before = State(out).source_index, tree(out)
    forbid_listing(monkeypatch)
    source = open_source(path, held=kept)
    assert source.refused() == {}
    assert_alike(source, ImageFolder(tmp_path / "photos"))
    assert source.export_index() is None
    # The next run starts from it, unpacks nothing for nothing, and workers read what it leads to.
    with monkeypatch.context() as patch:
        patch.setattr("robustgen.sources.catalogue.unpack", None)
        assert cli("make-c", "--source", path, *FEW, "--output", out).stdout.startswith("nothing to do")
    (out / "contrast/1/n01/a.JPEG").unlink()
    cli("make-c", "--source", path, *FEW, "--output", out)
    assert tree(out) == before
    with pytest.raises(AssertionError):
        cli("make-c", "--source", path, *FEW, "--output", tmp_path / "other")


def test_another_shard_starts_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = put_source(tmp_path, "tar"), tmp_path / "out"
    cli("make-c", "--source", path, *FEW, "--output", out, "--shard", "1/2")
    forbid_listing(monkeypatch)
    cli("make-c", "--source", path, *FEW, "--output", out, "--shard", "2/2")
    assert len(pictures(out)) == len(NAMES)


def touch(path: Path, _: Path) -> None:
    os.utime(path, (1, 1))


def replace(path: Path, _: Path) -> None:
    status = path.stat()
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
    copy.replace(path)


def damage(_: Path, kept: Path) -> None:
    data = bytearray(kept.read_bytes())
    data[len(data) // 2] ^= 1
    kept.write_bytes(data)


def truncate(_: Path, kept: Path) -> None:
    kept.write_bytes(kept.read_bytes()[:40])


def make_pipe(_: Path, kept: Path) -> None:
    kept.unlink()
    os.mkfifo(kept)


@pytest.mark.parametrize("change", [touch, replace, damage, truncate, make_pipe])
def test_an_index_that_does_not_fit_any_more_is_not_taken(tmp_path: Path, change) -> None:
    path, kept = put_source(tmp_path, "tar"), tmp_path / "index"
    first = open_source(path).export_index()
    assert first
    kept.write_bytes(first)
    assert open_source(path, held=kept).export_index() is None
    change(path, kept)
    source = open_source(path, held=kept)
    assert_alike(source, ImageFolder(tmp_path / "photos"))
    assert source.export_index() is not None


def test_names_that_come_later_count(tmp_path: Path) -> None:
    path, kept = put_source(tmp_path, "webdataset"), tmp_path / "index"
    kept.write_bytes(open_source(path).export_index() or b"")
    (path / "classnames.txt").write_text("n01\nn02\nn10\nn11\n")
    assert open_source(path, held=kept).export_index() is not None
    (path / "more.tar").write_bytes((path / "val-000000.tar").read_bytes())
    assert "stands in the shards twice" in open_source(path, held=kept).refused().values()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("zip", "parquet")])
def test_an_index_of_damaged_files_is_not_kept(tmp_path: Path, kind: str) -> None:
    path = put_source(tmp_path, kind)
    file = sorted(path.iterdir())[-1] if path.is_dir() else path
    file.write_bytes(file.read_bytes()[: 600 if path.is_dir() else -9000])
    source = open_source(path)
    assert source.refused() and source.export_index() is None


# --- what is unpacked ----------------------------------------------------------------------------


def test_a_killed_run_leaves_nothing_of_a_compressed_archive(tmp_path: Path) -> None:
    names = [f"n{i % 10:02d}/{i}.png" for i in range(60)]
    packed = PACKERS["a.tar.gz"](tmp_path / "a.tar.gz", files_of(put_photos(tmp_path / "photos", *names)))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    flags = ("--corruptions", "common", "--size", "224", "--edition", "imagenet", "--jobs", "2")
    run = spawn("make-c", "--source", packed, *flags, "--output", tmp_path / "out", TMPDIR=str(temporary))
    deadline = time.monotonic() + 120
    while not [*(tmp_path / "out").glob("*/*/*/*.JPEG")] and time.monotonic() < deadline:
        assert run.poll() is None
        time.sleep(0.05)
    run.send_signal(signal.SIGKILL)
    run.wait()
    left = [path for path in temporary.rglob("*") if path.is_file() and b"PNG" in path.read_bytes()]
    assert not left
    assert not [path for path in temporary.iterdir() if path.name.startswith("robustgen-")]


def test_where_the_system_does_not_show_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robustgen.sources.scratch._OPEN_FILES", tmp_path / "nothing")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    path = put_source(tmp_path, "tar.gz")
    source = open_source(path)
    sent = pickle.loads(pickle.dumps(source))
    assert len([*(tmp_path / "temporary").iterdir()]) == 2
    assert_alike(sent, ImageFolder(tmp_path / "photos"))
    del source, sent
    assert not [*(tmp_path / "temporary").iterdir()]


def test_a_compressed_archive_that_changes_before_it_is_read(tmp_path: Path) -> None:
    path, kept = put_source(tmp_path, "tar.gz"), tmp_path / "index"
    kept.write_bytes(open_source(path).export_index() or b"")
    source = open_source(path, held=kept)
    keys = source.keys()
    touch(path, kept)
    with pytest.raises(Exception, match=r"a\.tar\.gz has changed since it was listed"):
        source.load(keys[0])
