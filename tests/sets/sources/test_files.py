"""The index of archives and shards, cached for workers and later runs, and copies of compressed files."""

import hashlib
import os
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pytest

from robustgen.errors import ImageError, SourceError
from robustgen.files.storage import open_store
from robustgen.files.storage.host import HOST_ID
from robustgen.sets.sources.base import Source, SourceOptions
from robustgen.sets.sources.files import Copies
from robustgen.sets.sources.folder import ImageFolder
from robustgen.sets.sources.opening import open_source
from tests.helpers import PATIENCE
from tests.sets.sources.test_shards import CLASSES, as_rows, labelled, put_parquet, put_shards
from tests.sets.sources.test_trees import NAMES, PACKERS, assert_alike, files_of, put_photos, put_tar, put_zip

CONTAINERS = ("tar", "tar.gz", "zip", "webdataset", "webdataset.gz", "parquet")


def put_source(root: Path, container: str) -> Path:
    """A `container` with the photographs below ``root / "photos"``."""
    files = files_of(put_photos(root / "photos", *NAMES))
    if container == "webdataset":
        return put_shards(root / "shards", labelled(files, "cls"))
    if container == "webdataset.gz":
        for number, shard in enumerate(labelled(files, "cls")):
            (root / "shards").mkdir(exist_ok=True)
            put_tar(root / "shards" / f"{number}.tar.gz", shard, "w:gz")
        return root / "shards"
    if container == "parquet":
        return put_parquet(root / "x.parquet", as_rows(files, base=False), pa.int64(), CLASSES)
    pack = {"tar": put_tar, "tar.gz": PACKERS["a.tar.gz"], "zip": put_zip}[container]
    return pack(root / f"a.{container}", files)


def opened(path: Path, root: Path | str) -> Source:
    """The source at `path`, whose index is cached below `root`."""
    return open_source(path, options=SourceOptions(cache=(open_store(root), "source-index")))


def ready(path: Path, root: Path) -> Path:
    """Cache the index of the source at `path`; returns its file."""
    opened(path, root).make_ready()
    return root / "source-index"


def forbid_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("the source is listed again")

    for each in ("trees.ArchiveTree", "shards.WebDataset", "shards.Parquet"):
        monkeypatch.setattr(f"robustgen.sets.sources.{each}.build", fail)


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_index_serves_later_runs(tmp_path: Path, container: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put_source(tmp_path, container)
    kept = ready(path, tmp_path / "state")
    content = kept.read_bytes()
    forbid_listing(monkeypatch)
    source = opened(path, tmp_path / "state")
    assert source.refused() == {}
    assert_alike(source, ImageFolder(tmp_path / "photos"))
    source.make_ready()
    assert kept.read_bytes() == content
    with pytest.raises(SourceError, match="listed again"):
        opened(path, tmp_path / "other").keys()


@pytest.mark.parametrize("container", CONTAINERS)
def test_workers_read_the_index_once(tmp_path: Path, container: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"memory://index-{container}/out")
    source = opened(put_source(tmp_path, container), store.location)
    source.make_ready()
    assert [entry.path for entry in store.list()] == ["source-index"]
    packed = pickle.dumps(source)
    assert len(packed) < 1500
    forbid_listing(monkeypatch)
    assert_alike(pickle.loads(packed), ImageFolder(tmp_path / "photos"))
    # The next task of the same worker brings the same source.
    store.delete("source-index")
    assert_alike(pickle.loads(packed), ImageFolder(tmp_path / "photos"))


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
def test_an_index_that_does_not_fit_any_more_is_not_used(tmp_path: Path, change) -> None:
    path = put_source(tmp_path, "tar")
    kept = ready(path, tmp_path / "state")
    change(path, kept)
    before = kept.stat()
    source = opened(path, tmp_path / "state")
    assert_alike(source, ImageFolder(tmp_path / "photos"))
    source.make_ready()
    assert kept.is_file() and kept.stat().st_ino != before.st_ino
    assert_alike(opened(path, tmp_path / "state"), ImageFolder(tmp_path / "photos"))


def test_names_that_come_later_count(tmp_path: Path) -> None:
    path = put_source(tmp_path, "webdataset")
    ready(path, tmp_path / "state")
    (path / "classnames.txt").write_text("n01\nn02\nn10\nn11\n")
    assert len(opened(path, tmp_path / "state").keys()) == len(NAMES)
    ready(path, tmp_path / "state")
    (path / "more.tar").write_bytes((path / "val-000000.tar").read_bytes())
    assert "occurs twice" in opened(path, tmp_path / "state").refused().values()


@pytest.mark.parametrize("container", ["tar", "webdataset", "webdataset.gz"])
def test_damaged_files_are_named_from_the_index_too(tmp_path: Path, container: str) -> None:
    path = put_source(tmp_path, container)
    file = sorted(path.iterdir())[-1] if path.is_dir() else path
    whole = file.read_bytes()
    file.write_bytes(whole[: 600 if path.is_dir() else -9000])
    first = opened(path, tmp_path / "state")
    first.make_ready()
    again = opened(path, tmp_path / "state")
    assert again.refused() and again.refused() == first.refused() and again.keys() == first.keys()
    file.write_bytes(whole)
    assert opened(path, tmp_path / "state").refused() == {}


@pytest.mark.parametrize("container", ["tar", "tar.gz", "parquet"])
def test_a_file_that_changes_before_it_is_read(tmp_path: Path, container: str) -> None:
    path = put_source(tmp_path, container)
    ready(path, tmp_path / "state")
    source = opened(path, tmp_path / "state")
    (first, *_) = source.keys()
    os.utime(path, (1, 1))
    with pytest.raises(ImageError, match=rf"{first}'.*{path.name} has changed since it was listed"):
        source.load(first)


# --- copies of compressed files ------------------------------------------------------------------


def test_a_killed_process_leaves_nothing_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put_source(tmp_path, "tar.gz")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    code = (
        "import os, sys; from robustgen.sets.sources.opening import open_source\n"
        "s = open_source(sys.argv[1]); "
        "s.make_ready(); os.kill(os.getpid(), 9)"
    )
    environment = os.environ | {"TMPDIR": str(temporary)}
    subprocess.run([sys.executable, "-c", code, path], env=environment, check=False)
    (left,) = (copy for copy in temporary.rglob("*.tar"))
    assert left.parent.name.startswith(f"{HOST_ID}-")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    source = open_source(path)
    source.make_ready()
    (own,) = temporary.rglob("*.tar")
    assert own.parent != left.parent
    del source
    assert not [*temporary.glob("*/*")]


def test_workers_read_the_copy_of_their_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put_source(tmp_path, "tar.gz")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    source = opened(path, tmp_path / "state")
    source.make_ready()
    sent = pickle.loads(pickle.dumps(source))
    assert_alike(sent, ImageFolder(tmp_path / "photos"))
    assert len([*(tmp_path / "temporary").rglob("*.tar")]) == 1
    del source
    assert not [*(tmp_path / "temporary").glob("*/*")]
    # As on another machine.
    assert_alike(sent, ImageFolder(tmp_path / "photos"))


def test_threads_share_one_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    copies, together, written = Copies(), threading.Barrier(4, timeout=PATIENCE), list[str]()

    def write(file: BinaryIO) -> None:
        written.append("a")
        # Time in which the others would also begin.
        time.sleep(0.05)
        file.write(b"content")

    def find(_: int) -> bytes:
        together.wait()
        return copies.find("a", write, "a.tar.gz").read("a")

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(find, range(4))] == [b"content"] * 4
    assert written == ["a"]


# --- identities ----------------------------------------------------------------------------------


@pytest.mark.parametrize("container", ["folder", *CONTAINERS])
def test_the_identity_of_an_image_is_that_of_its_file(tmp_path: Path, container: str) -> None:
    path = put_source(tmp_path, "tar" if container == "folder" else container)
    source = open_source(tmp_path / "photos" if container == "folder" else path)
    files = files_of(tmp_path / "photos")
    for key in source.keys():  # noqa: SIM118
        image, identity = source.read(key)
        assert identity == hashlib.sha256(files[key]).hexdigest()[:16]
        assert np.array_equal(np.asarray(image), source.load(key))


def test_an_archive_rewritten_in_place_has_other_identities(tmp_path: Path) -> None:
    path = put_source(tmp_path, "tar")
    status, source = path.stat(), open_source(path)
    before = [source.read(key)[1] for key in source.keys()]  # noqa: SIM118
    data = bytearray(path.read_bytes())
    data[len(data) // 4] ^= 255
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    after = []
    for key in source.keys():  # noqa: SIM118
        try:
            after.append(source.read(key)[1])
        except ImageError:
            after.append("")
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1
