"""Stores: local folders, memory, a web server and S3, and what goes wrong with them."""

import contextlib
import errno
import hashlib
import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from robustgen.errors import ArgumentError, MissingDependencyError, OutputError
from robustgen.files.storage import AT_ONCE, Store, is_url, local, locate, measure, open_store, remote, save
from robustgen.files.storage.host import HOST, HOST_ID, hold_back_interrupts, is_alive, private_folder
from robustgen.files.storage.local import name_temporary
from tests.helpers import PATIENCE
from tests.servers import BUCKET, RangeHandler, Weather, forget_connections


class Plain(MemoryFileSystem):
    """A file system that is asked to create no file exclusively, as it might not support that."""

    protocol = "plain"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.replace("plain://", "memory://"))


@pytest.fixture(params=["local", "memory", "plain", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store, of each that can be written."""
    fsspec.register_implementation("plain", Plain, clobber=True)
    if request.param == "s3":
        request.getfixturevalue("s3")
        return open_store(f"s3://{BUCKET}/some/folder")
    return open_store(
        tmp_path / "out" if request.param == "local" else f"{request.param}://{tmp_path.name}/out"
    )


def dead_process() -> int:
    """The number of a process that has ended."""
    code = "import os; print(os.getpid())"
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)


# --- all stores ----------------------------------------------------------------------------------


def test_files_come_back(store: Store) -> None:
    assert [*store.list()] == [] and not store.exists("a/b.txt")
    for path, data in (("a/b.txt", b"hello"), ("a-b", b""), ("a/.hidden/c", b"x" * 100)):
        store.put(path, data)
        assert store.read(path) == data and store.exists(path)
        assert store.stat(path)[:2] == (path, len(data))
    assert [entry.path for entry in store.list()] == ["a-b", "a/.hidden/c", "a/b.txt"]
    assert [entry.path for entry in store.list("a")] == ["a/.hidden/c", "a/b.txt"]
    assert [entry.path for entry in store.folder("a").list()] == [".hidden/c", "b.txt"]
    assert [store.stat(entry.path) for entry in store.list()] == [*store.list()]
    assert [*store.sizes(["a/b.txt", "a", "none", "a/b.txt/c"])] == [5, -1, -1, -1]
    assert store.read("a/b.txt", 1, 3) == b"ell" and store.read("a/b.txt", 3) == b"lo"
    with store.open("a/b.txt") as file:
        assert file.seek(-2, 2) == 3 and file.read() == b"lo"
    store.put("a/b.txt", b"other")
    assert store.read("a/b.txt") == b"other"


def test_parts_are_read_in_any_order(store: Store) -> None:
    data = os.urandom(9 << 20)
    store.put("big", data)
    parts = (0, 512), (512, 70_000), (80_000, 512), (8 << 20, 1 << 19), (100, 10), (len(data) - 5, 9)
    for start, size in parts:
        assert store.read("big", start, size) == data[start : start + size]
    with store.open("big") as file:
        for start, size in ((0, 100), (5 << 20, 3 << 20), (77, 8), (len(data) - 3, 10)):
            file.seek(start)
            assert file.read(size) == data[start : start + size]


def test_files_in_pieces_are_whole_or_nothing(store: Store) -> None:
    with store.create("x/y.bin") as file:
        assert file.write(b"abc") == 3 and not store.exists("x/y.bin")
        file.write(memoryview(b"defg"))
        assert measure(file) == (7, hashlib.sha256(b"abcdefg").hexdigest())
    assert store.read("x/y.bin") == b"abcdefg"
    for path in ("x/y.bin", "x/z.bin"):
        with pytest.raises(ZeroDivisionError), store.create(path) as file:
            file.write(b"no")
            _ = 1 / 0
    assert store.read("x/y.bin") == b"abcdefg" and not store.exists("x/z.bin")
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(store.create(f"many/{i}")) for i in range(40)]
        for number, writer in enumerate(writers):
            writer.write(b"%d" % number)
    assert [store.read(f"many/{i}") for i in range(40)] == [b"%d" % i for i in range(40)]


def test_exclusive_files_are_put_once(store: Store) -> None:
    store.put("settings.json", b"first", exclusive=True)
    with pytest.raises(FileExistsError):
        store.put("settings.json", b"second", exclusive=True)
    assert store.read("settings.json") == b"first"
    assert [entry.path for entry in store.list()] == ["settings.json"]


def test_deleting(store: Store) -> None:
    store.put("a/b/c", b"")
    store.put("a/d", b"")
    store.delete("a/b/c")
    store.delete("a/b/c")
    store.delete("nothing/there")
    assert [entry.path for entry in store.list()] == ["a/d"]
    store.put("a/b/c", b"again")
    assert store.read("a/b/c") == b"again"


def test_missing_files_are_named(store: Store) -> None:
    store.put("a/b", b"x")
    for ask in (store.read, store.stat, lambda path: store.open(path).read()):
        for path in ("none", "none/deeper", "a"):
            with pytest.raises(OSError) as caught:
                ask(path)
            assert caught.value.strerror and "\n" not in caught.value.strerror
    with pytest.raises(FileNotFoundError):
        store.read("none")


def test_stores_are_small_and_equal_when_pickled(store: Store) -> None:
    store.put("a", b"x")
    packed = pickle.dumps(store)
    copy = pickle.loads(packed)
    assert len(packed) < 500 and copy == store and hash(copy) == hash(store) and {copy, store} == {store}
    assert copy.read("a") == b"x" and copy != store.folder("b")


def test_stamps_change_with_the_content(store: Store) -> None:
    store.put("a", b"x")
    before = store.stat("a")
    time.sleep(0.01)
    store.put("a", b"y")
    assert before.stamp and store.stat("a").stamp != before.stamp


def test_copies(store: Store, tmp_path: Path) -> None:
    other = open_store(tmp_path / "source")
    other.put("x/notes.txt", b"notes")
    for link in (False, True, True):
        store.copy(other, "x/notes.txt", "fog/notes.txt", link=link)
        assert store.read("fog/notes.txt") == b"notes"
    assert [entry.path for entry in store.list()] == ["fog/notes.txt"]
    if store.is_local:
        linked = Path(store.location, "fog/notes.txt")
        assert linked.samefile(tmp_path / "source/x/notes.txt")
        assert not [*Path(store.location, ".robustgen/tmp").iterdir()]


# --- places --------------------------------------------------------------------------------------


def test_spellings_of_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    spellings = ["out", tmp_path / "out", f"{tmp_path}/x/../out/", f"file://{tmp_path}/out", "link/out"]
    assert len({*map(open_store, spellings)}) == 1
    urls = ["s3://b/out", "S3://b/out/", "s3a://b//out", "s3://b/x/../out"]
    assert {store.location for store in map(open_store, urls)} == {"s3://b/out"}
    assert open_store("out").location == str(tmp_path / "out") and open_store("out") != open_store(
        "s3://b/out"
    )
    store, name = locate("out/a.tar")
    assert (store, name) == (open_store("out"), "a.tar")
    assert locate("s3://b/out/val-{0..3}.tar") == (open_store("s3://b/out"), "val-{0..3}.tar")
    assert locate("s3://b/") == locate("s3://b") == (open_store("s3://b"), "")
    assert locate("s3://b/x") == (open_store("s3://b"), "x")
    assert open_store(Path("s3://b/out")) == open_store("s3://b/out")
    assert is_url("s3://b") and is_url("file:///x") and not is_url("/x") and not is_url("C:/x")


def test_unknown_schemes_and_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match="unknown scheme 'foo'"):
        open_store("foo://bar")
    for scheme, package, remedy in (
        ("s3", "s3fs", r"robustgen\[s3\]"),
        ("gs", "gcsfs", r"robustgen\[gcs\]"),
        ("hf", "huggingface_hub", r"robustgen\[hub\]"),
        ("az", "adlfs", "adlfs"),
    ):
        with monkeypatch.context() as patch:
            forget_connections()
            for name in [name for name in sys.modules if name.split(".")[0] == package]:
                patch.delitem(sys.modules, name)
            patch.setitem(sys.modules, package, None)
            patch.delitem(sys.modules["fsspec.registry"]._registry, scheme, raising=False)
            with pytest.raises(MissingDependencyError, match=remedy):
                open_store(f"{scheme}://bucket/{scheme}")
    forget_connections()


def test_fsspec_is_not_imported_for_folders(tmp_path: Path) -> None:
    code = (
        "import sys; from robustgen.files.storage import open_store, locate; "
        "open_store(sys.argv[1]).put('a', b''); locate('x.tar'); "
        "print({'fsspec', 'aiohttp', 's3fs'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_files_of_hugging_face_are_listed_below_their_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")

    class Resolved:
        def unresolve(self) -> str:
            return "datasets/user/set@0123/data"

    found = {
        "datasets/user/set@0123/data/a.parquet": {"type": "file", "size": 3, "blob_id": "f00"},
        "datasets/user/set@0123/data/b/c.parquet": {"type": "file", "size": 4, "blob_id": "ba4"},
    }
    monkeypatch.setattr(hub.HfFileSystem, "resolve_path", lambda *_, **__: Resolved())
    monkeypatch.setattr(hub.HfFileSystem, "find", lambda *_, **__: found)
    store = open_store("hf://datasets/user/set/data")
    assert [*store.list()] == [("a.parquet", 3, "f00"), ("b/c.parquet", 4, "ba4")]


# --- local folders -------------------------------------------------------------------------------


def test_a_folder_that_others_remove_as_empty_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, removals = os.makedirs, iter([FileNotFoundError, None, FileExistsError, None])

    def create(place: str, **choices: bool) -> None:
        """Create a folder that disappears at once, or while it is created."""
        error = next(removals, True)
        if error not in (None, True):
            raise error
        real(place, **choices)
        if error is None:
            Path(place).rmdir()

    monkeypatch.setattr(os, "makedirs", create)
    store = open_store(tmp_path / "out")
    store.put("claims/fog/1", b"claim", exclusive=True)
    assert store.read("claims/fog/1") == b"claim"
    assert next(removals, "none left") == "none left"


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_bytes(b"kept")
    store = open_store(tmp_path / "out")
    store.put("fog/1/a", b"x")
    (tmp_path / "out" / "snow").symlink_to(outside)
    (tmp_path / "out" / "keep").symlink_to(outside / "keep")
    for attempt in (
        lambda: store.put("snow/keep", b"y"),
        lambda: store.folder("snow").put("keep", b"y"),
        lambda: store.delete("snow/keep"),
        lambda: store.put("snow/deep/er", b"y"),
    ):
        with pytest.raises(OutputError, match="snow: is a link"):
            attempt()
    store.put("keep", b"replaced")
    assert not (tmp_path / "out" / "keep").is_symlink()
    assert [path.name for path in outside.iterdir()] == ["keep"]
    assert (outside / "keep").read_bytes() == b"kept"
    for path in ("../outside/keep", "/etc/passwd", "a/../../outside/keep", ".."):
        for ask in (store.read, store.delete, lambda path: store.put(path, b"")):
            with pytest.raises(OSError, match="not below the folder"):
                ask(path)


def test_a_link_in_the_place_of_temporary_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".robustgen").symlink_to(tmp_path / "elsewhere")
    store = open_store(tmp_path / "out")
    with pytest.raises(OutputError, match="is a link"):
        store.put("a", b"x")
    with pytest.raises(OutputError, match="is a link"):
        store.clean()
    assert not [*(tmp_path / "elsewhere").iterdir()]


def test_temporary_files_lie_where_they_are_told(tmp_path: Path) -> None:
    store = open_store(tmp_path / "icons", tmp_path / ".icons.robustgen" / "tmp")
    store.put("cat/a.png", b"x")
    store.folder("dog").put("b.png", b"x")
    assert sorted(path.name for path in (tmp_path / "icons").iterdir()) == ["cat", "dog"]
    assert (tmp_path / ".icons.robustgen" / "tmp").is_dir()


def test_files_of_dead_processes_are_cleaned(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put("a", b"x")
    folder = tmp_path / ".robustgen" / "tmp"
    left = [
        f"{HOST_ID}-{dead_process()}-x.0",
        f"{HOST_ID}-{os.getpid()}-x.1",
        "another-host-1-x.0",
        "strange",
    ]
    for name in left:
        (folder / name).touch()
    store.clean()
    assert sorted(path.name for path in folder.iterdir()) == sorted(left[1:])
    for path in folder.iterdir():
        path.unlink()
    store.clean()
    assert not (tmp_path / ".robustgen").exists()
    store.put("b", b"y")
    assert [entry.path for entry in store.list()] == ["a", "b"]


def test_containers_with_one_host_name_are_told_apart() -> None:
    code = "from robustgen.files.storage.host import HOST, HOST_ID; print(HOST, HOST_ID)"
    inside = ["unshare", "--pid", "--fork", "--mount-proc"]
    if not shutil.which("unshare") or subprocess.run([*inside, "true"], check=False).returncode:
        pytest.skip("no process namespaces here")
    said = subprocess.run([*inside, sys.executable, "-c", code], capture_output=True, text=True, check=True)
    name, identity = said.stdout.split()
    assert name == HOST and identity != HOST_ID


def test_a_killed_writer_leaves_no_file(tmp_path: Path) -> None:
    code = (
        "import os, sys; from robustgen.files.storage import open_store\n"
        "with open_store(sys.argv[1]).create('a') as file:\n"
        "    file.write(bytes(10_000_000)); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=False)
    store = open_store(tmp_path)
    assert [*store.list()] == []
    assert len([*(tmp_path / ".robustgen/tmp").iterdir()]) == 1
    store.clean()
    assert [*tmp_path.iterdir()] == []


def test_removed_folders_are_made_again(tmp_path: Path) -> None:
    import shutil

    store = open_store(tmp_path / "out")
    store.put("fog/1/a", b"x")
    shutil.rmtree(tmp_path / "out")
    store.put("fog/1/a", b"y")
    with store.create("fog/1/b") as file:
        shutil.rmtree(tmp_path / "out" / "fog")
        file.write(b"z")
    assert store.read("fog/1/b") == b"z" and not store.exists("fog/1/a")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    store = open_store(tmp_path)
    for ask in (store.read, store.open, store.stat):
        with pytest.raises(OSError, match="is not a regular file"):
            ask("pipe")
    assert [*store.list()] == [] and [*store.sizes(["pipe"])] == [-1]


def test_a_full_disk_leaves_no_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path)
    store.put("a", b"whole")

    def fail(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail)
        with pytest.raises(OSError, match="No space left"):
            store.put("a", b"new")
    assert store.read("a") == b"whole" and not [*(tmp_path / ".robustgen/tmp").iterdir()]


def test_bytes_that_the_system_did_not_take_are_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, bytes(data[:3])))
    open_store(tmp_path).put("a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_a_folder_that_has_vanished_is_not_created_again(tmp_path: Path) -> None:
    store = open_store(tmp_path / "out")
    store.put("settings", b"x")
    store.expect(f"{store.location}/settings")
    store.put("snow/1/a", b"x")
    (tmp_path / "out").rename(tmp_path / "unmounted")
    (tmp_path / "out").mkdir()
    for each in (store, store.folder("snow"), pickle.loads(pickle.dumps(store))):
        with pytest.raises(OSError, match="was removed or unmounted"):
            each.put("1/b", b"x")
        with pytest.raises(OSError, match="was removed or unmounted"), each.create("1/c"):
            pass
    assert not [*(tmp_path / "out").iterdir()]


def test_a_folder_that_vanishes_while_one_is_created_in_it_is_left_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, create = open_store(tmp_path / "out"), os.makedirs
    store.put("settings", b"x")
    store.expect(f"{store.location}/settings")

    def unmount_first(path: str, exist_ok: bool) -> None:
        monkeypatch.undo()
        (tmp_path / "out").rename(tmp_path / "unmounted")
        (tmp_path / "out").mkdir()
        create(path, exist_ok=exist_ok)

    monkeypatch.setattr(os, "makedirs", unmount_first)
    with pytest.raises(OSError, match="was removed or unmounted"):
        store.put("snow/1/a", b"x")
    assert not [*(tmp_path / "out").iterdir()]


def test_exclusive_where_files_cannot_be_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    test_exclusive_files_are_put_once(open_store(tmp_path / "out"))


@pytest.mark.slow("many processes")
def test_many_threads_and_processes_write_at_once(tmp_path: Path) -> None:
    store = open_store(tmp_path)

    def write(number: int) -> None:
        for i in range(50):
            store.put(f"{i % 3}/{number}-{i}", b"%d" % number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries = [*store.list()]
    assert len(entries) == 400
    assert all(store.read(e.path) == e.path.rpartition("/")[2].partition("-")[0].encode() for e in entries)


def test_saving(tmp_path: Path) -> None:
    save(tmp_path / "new" / "page.html", b"<html>")
    save(tmp_path / "new" / "page.html", iter([b"a", b"b"]))
    assert [(path.name, path.read_bytes()) for path in (tmp_path / "new").iterdir()] == [("page.html", b"ab")]
    save("/dev/null", b"x")
    assert not Path("/dev/null").is_file()
    save("memory://saved/x.csv", b"1,2")
    assert open_store("memory://saved").read("x.csv") == b"1,2"
    with pytest.raises(OutputError, match=r"the chart: .*"):
        save(tmp_path / "new" / "page.html" / "x", b"", "the chart")


def test_processes_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_alive(os.getpid()) and is_alive(1)
    assert not is_alive(dead_process())
    assert name_temporary() != name_temporary()
    with hold_back_interrupts():
        pass
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = private_folder("robustgen-x")
    assert folder == private_folder("robustgen-x") and folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert private_folder("robustgen-x") != folder


# --- trouble with object stores ------------------------------------------------------------------


@pytest.mark.slow("waits between attempts")
def test_throttling_and_lost_connections_are_retried(s3: Weather) -> None:
    store = open_store(f"s3://{BUCKET}/out")
    for trouble in ("throttle", "lose"):
        for count, action in (
            (2, lambda: store.put("a", b"data")),
            (2, lambda: store.read("a")),
            (2, lambda: [*store.list()]),
            (2, lambda: store.exists("b")),
            (1, lambda: store.delete("b")),
        ):
            s3.trouble[:] = [trouble] * count
            action()
            assert not s3.trouble
        assert store.read("a") == b"data"


def test_a_body_that_ends_early_is_read_again(s3: Weather) -> None:
    store, data = open_store(f"s3://{BUCKET}/out"), os.urandom(3 << 20)
    store.put("a", data)
    for read in (
        lambda: store.read("a"),
        lambda: store.read("a", 0, 3 << 20),
        lambda: store.open("a").read(),
        lambda: [*store.list()] and data,
    ):
        s3.trouble[:] = ["truncate", "truncate"]
        assert read() == data
        assert not s3.trouble


@pytest.mark.slow("waits between attempts")
def test_a_server_that_is_gone_is_a_line(s3: Weather, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    forget_connections()
    store = open_store(f"s3://{BUCKET}/out")
    for ask in (lambda: store.read("a"), lambda: store.put("a", b""), lambda: [*store.list()]):
        with pytest.raises(ConnectionError) as caught:
            ask()
        assert caught.value.strerror and "\n" not in caught.value.strerror


@pytest.mark.slow("waits between attempts")
def test_endless_throttling_ends(s3: Weather) -> None:
    store = open_store(f"s3://{BUCKET}/out")
    s3.trouble[:] = ["throttle"] * 500
    with pytest.raises(ConnectionError, match=r"Service Unavailable|request rate"):
        store.read("a")


def test_wrong_credentials_are_a_line_and_nothing_is_retried(s3: Weather) -> None:
    store = open_store(f"s3://{BUCKET}/out")
    store.put("a", b"kept")
    for ask in (lambda: store.read("a"), lambda: store.put("a", b""), lambda: [*store.list()]):
        s3.requests.clear()
        s3.trouble[:] = ["refuse"] * 3
        with pytest.raises(PermissionError, match="access refused"):
            ask()
        assert len(s3.requests) <= 2
    s3.trouble.clear()
    assert store.read("a") == b"kept"


def test_no_credentials_at_all(s3: Weather, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    forget_connections()
    with pytest.raises(PermissionError, match="access refused: Unable to locate credentials"):
        open_store(f"s3://{BUCKET}/out").read("a")


def test_a_missing_bucket(s3: Weather) -> None:
    store = open_store("s3://robustgen-no-such-bucket/out")
    for ask in (lambda: store.read("a"), lambda: store.put("a", b"x"), lambda: [*store.list()]):
        with pytest.raises(FileNotFoundError, match="bucket") as caught:
            ask()
        assert "robustgen-no-such-bucket" in str(caught.value)


def test_an_exclusive_file_whose_answer_was_lost(s3: Weather) -> None:
    store = open_store(f"s3://{BUCKET}/out")
    s3.trouble[:] = ["", "", "lose the answer"]
    store.put("settings.json", b"ours", exclusive=True)
    assert store.read("settings.json") == b"ours"
    with pytest.raises(FileExistsError):
        store.put("settings.json", b"theirs", exclusive=True)


def test_a_server_without_conditions(s3: Weather) -> None:
    store = open_store(f"s3://{BUCKET}/out")
    s3.trouble[:] = ["not implemented"] * 4
    store.put("settings.json", b"ours", exclusive=True)
    s3.trouble.clear()
    assert store.read("settings.json") == b"ours"


def test_a_full_folder_for_temporary_files_is_named(
    s3: Weather, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = open_store(f"s3://{BUCKET}/out")
    told = f"No space left on device in the folder for temporary files, {tmp_path}; set TMPDIR to another"
    # A worker has a shard of each variant open.
    with (
        pytest.raises(OSError, match=re.escape(told)) as caught,
        store.create("a"),
        store.create("shard.tar"),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.strerror == told
    assert not store.exists("shard.tar")


def test_a_missing_folder_for_temporary_files_is_an_error(
    s3: Weather, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    with pytest.raises(OSError, match="none, which is not a folder"), open_store("s3://b/out").create("a"):
        pass


def test_a_partial_upload_is_sent_again(s3: Weather, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = open_store(f"s3://{BUCKET}/out")
    data = os.urandom(3 << 20)
    s3.trouble[:] = ["lose", "throttle", "lose"]
    with store.create("shard.tar") as file:
        file.write(data)
    assert store.read("shard.tar") == data and not any(path.is_file() for path in tmp_path.iterdir())
    s3.trouble[:] = ["refuse"] * 5
    with pytest.raises(PermissionError), store.create("other.tar") as file:
        file.write(data)
    s3.trouble.clear()
    assert not store.exists("other.tar") and not any(path.is_file() for path in tmp_path.iterdir())


def test_reading_on_takes_few_requests(s3: Weather) -> None:
    store = open_store(f"s3://{BUCKET}/out")
    store.put("shard.tar", os.urandom(10 << 20))
    s3.requests.clear()
    for start in range(0, 9 << 20, 100 << 10):
        assert len(store.read("shard.tar", start + 512, 90 << 10)) == 90 << 10
    assert len(s3.requests) <= 5
    store.put("photo.jpg", b"x")
    s3.requests.clear()
    assert store.read("photo.jpg") == b"x"
    assert [method for method, _ in s3.requests] == ["GET"]


def test_threads_share_the_blocks_that_they_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched, again = list[int](), threading.Event()
    fetch, both, failures = remote._fetch, threading.Barrier(2, timeout=PATIENCE), [ConnectionError("lost")]

    def observe(location: str, path: str, start: int, size: int) -> bytes:
        fetched.append(start)
        if fetched.count(start) > 1:
            again.set()
        again.wait(0.2)
        if start and fetched.count(start) == 1:
            both.wait()
        elif failures:
            raise failures.pop()
        return fetch(location, path, start, size)

    monkeypatch.setattr(remote, "_fetch", observe)
    store = open_store(f"memory://{tmp_path.name}")
    store.put("shard.tar", bytes(5 << 20))
    with pytest.raises(ConnectionError):
        store.read("shard.tar", 0, 100)
    again.clear()
    fetched.clear()
    with ThreadPoolExecutor(9) as pool:
        starts = [block << 21 for _ in range(3) for block in range(3)]
        parts = [*pool.map(lambda start: store.read("shard.tar", start, 100), starts)]
    assert parts == [bytes(100)] * 9
    assert sorted(fetched) == [0, 1 << 21, 2 << 21]


def test_a_listing_that_lags(s3: Weather, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"s3://{BUCKET}/out")
    store.put("a", b"x")
    listed = [*store.list()]
    store.put("b", b"yy")
    with monkeypatch.context() as patch:
        patch.setattr(type(store), "list", lambda *_: iter(listed))
        assert [*store.sizes(["a", "b", "c"])] == [1, 2, -1]
        assert store.exists("b") and store.read("b") == b"yy"
        with pytest.raises(FileExistsError):
            store.put("b", b"zz", exclusive=True)


def test_many_files_of_a_block_are_written_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"memory://{tmp_path.name}/out")
    together = threading.Barrier(AT_ONCE, timeout=PATIENCE)
    files = remote._connect(store.location, os.getpid())
    for verb in ("pipe_file", "put_file"):
        # Goes on only when so many requests wait here.
        act = getattr(files, verb)
        monkeypatch.setattr(
            files, verb, lambda *parts, act=act, **more: (together.wait(), act(*parts, **more))
        )
    names = [f"{act}/{number}" for number in range(AT_ONCE) for act in ("put", "create")]
    with store.open_flight() as flight:
        for name in names:
            if name.startswith("put"):
                flight.put(name, name.encode())
            else:
                with flight.create(name) as file:
                    file.write(name.encode())
    assert {entry.path: store.read(entry.path).decode() for entry in store.list()} == {n: n for n in names}


@pytest.mark.parametrize("slow", [True, False])
def test_only_a_slow_folder_is_written_to_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    store, replace, seen = open_store(tmp_path / "out"), os.replace, set[str]()
    together = threading.Barrier(AT_ONCE, timeout=PATIENCE)

    def wait(temporary: str, target: str) -> None:
        if threading.current_thread() is not threading.main_thread():
            # Goes on only when so many files wait here.
            together.wait()
            seen.add(target)
        replace(temporary, target)

    monkeypatch.setattr(os, "replace", wait)
    monkeypatch.setattr(local, "_SLOW", -1.0 if slow else float("inf"))
    names = [f"f/{number}" for number in range(local._FIRST_FILES + 2 * AT_ONCE)]
    with store.open_flight() as flight:
        for name in names:
            flight.put(name, name.encode())
    assert len(seen) == (2 * AT_ONCE if slow else 0)
    assert {each.path: store.read(each.path).decode() for each in store.list("f")} == {n: n for n in names}


def test_a_folder_of_a_block_loses_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_SLOW", -1.0)
    store = open_store(tmp_path / "out")
    store.put("f/taken/a", b"x")
    with store.open_flight() as flight:
        for number in range(local._FIRST_FILES):
            flight.put(str(number), b"x")
        inner = flight.folder("f")
        inner.put("b", b"x")
        assert store.exists("f/b")
        with pytest.raises(IsADirectoryError):
            inner.put("taken", b"x")


def test_a_file_that_cannot_be_written_ends_its_block(s3: Weather) -> None:
    store = open_store(f"s3://{BUCKET}/out")
    for count in (3, 300):
        s3.trouble[:] = ["", "refuse"]
        with pytest.raises(PermissionError), store.open_flight() as flight:
            for number in range(count):
                flight.put(str(number), b"x")
        assert len([*store.list()]) < min(count, 100)


def test_a_forked_process_has_a_connection_of_its_own(s3: Weather) -> None:
    import multiprocessing

    store = open_store(f"s3://{BUCKET}/out")
    store.put("a", b"x")
    process = multiprocessing.get_context("fork").Process(target=store.put, args=("b", b"y"))
    process.start()
    process.join(30)
    assert process.exitcode == 0 and store.read("b") == b"y"


# --- web servers ---------------------------------------------------------------------------------


def test_files_of_a_web_server(web: tuple[str, Path, type[RangeHandler]]) -> None:
    url, root, handler = web
    data = os.urandom(9 << 20)
    (root / "a").mkdir()
    (root / "a" / "val.tar").write_bytes(data)
    store, name = locate(f"{url}/a/val.tar")
    assert store.read(name) == data and store.read(name, 5, 10) == data[5:15]
    assert store.stat(name)[1] == len(data) and store.stat(name).stamp and store.exists(name)
    assert not store.exists("none")
    handler.requests.clear()
    with store.open(name) as file:
        file.seek(8 << 20)
        assert file.read(100) == data[8 << 20 :][:100]
    assert handler.requests.count("all") == 1
    for status in (503, 429, 0):
        handler.trouble[:] = [status, status]
        assert open_store(store.location).read(name, 7, 3) == data[7:10]
        assert not handler.trouble


def test_a_web_server_is_only_read_from(web: tuple[str, Path, type[RangeHandler]]) -> None:
    url, _, _ = web
    store = open_store(url)
    for ask in (
        lambda: store.put("a", b""),
        lambda: store.delete("a"),
        lambda: store.create("a").__enter__(),
    ):
        with pytest.raises(OSError, match="are read-only"):
            ask()
    with pytest.raises(OSError, match="cannot be listed"):
        [*store.list()]
    with pytest.raises(FileNotFoundError):
        store.read("none")


def test_a_web_server_without_ranges_is_named(web: tuple[str, Path, type[RangeHandler]]) -> None:
    url, root, handler = web
    handler.ranges = False
    (root / "big").write_bytes(os.urandom(3 << 20))
    store = open_store(url)
    assert len(store.read("big")) == 3 << 20
    with pytest.raises(OSError, match="does not support range requests"):
        store.read("big", 10, 20)
    handler.trouble[:] = [403]
    with pytest.raises(PermissionError, match="access refused"):
        store.read("big")
