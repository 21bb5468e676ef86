"""Sources behind URLs: the same keys, labels and pixels as from folders, and servers that fail."""

import io
import pickle
import shutil
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from robustgen.errors import ImageError, SourceError
from robustgen.files.storage import Store, open_store
from robustgen.sets.dataset import estimate
from robustgen.sets.sources.base import Source, SourceOptions, read_ahead
from robustgen.sets.sources.folder import ImageFolder
from robustgen.sets.sources.opening import open_source
from tests.helpers import cli, photo, put_photo, wait_until
from tests.servers import BUCKET, RangeHandler, Weather
from tests.sets.sources.test_opening import LAYOUTS, open_layout
from tests.sets.sources.test_shards import labelled, put_shards
from tests.sets.sources.test_trees import NAMES as PHOTOS
from tests.sets.sources.test_trees import assert_alike, files_of, put_photos, put_tar, put_zip
from tests.source_writers import WRITERS


def upload(root: Path, store: Store) -> str:
    """Copy all files below `root` to a store; returns its URL."""
    for name, content in files_of(root).items():
        store.put(name, content)
    return store.location


@pytest.fixture(params=["memory", "s3"])
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty remote store."""
    if request.param == "s3":
        request.getfixturevalue("s3")
        return open_store(f"s3://{BUCKET}/data")
    return open_store(f"memory://{tmp_path.name}/data")


def check(source: Source, expected: Source, url: str) -> None:
    """Both are alike, also as worker processes get them."""
    assert source.location == url
    assert source.refused() == {}
    assert_alike(source, expected)
    packed = pickle.dumps(source)
    assert len(packed) < 1500
    copy, key = pickle.loads(packed), expected.keys()[-1]
    assert np.array_equal(copy.load(key), expected.load(key))
    assert copy.read(key)[1] == expected.read(key)[1] and copy.dimensions(key) == expected.dimensions(key)


def test_a_folder(remote: Store, tmp_path: Path) -> None:
    root = put_photos(tmp_path / "photos", *PHOTOS, ".hidden/x.png", "n01/._a.png")
    (root / "notes.txt").write_bytes(b"x")
    (root / "n01" / "raw.heic").write_bytes(b"x")
    url = upload(root, remote)
    source = open_source(url)
    check(source, ImageFolder(root), url)
    assert "1 .heic ('n01/raw.heic', ...)" in source.remarks()[0]
    for ask in (source.load, source.size):
        with pytest.raises(ImageError, match=r"'n01/gone\.png'"):
            ask("n01/gone.png")


@pytest.mark.parametrize(("source_kind", "layout"), LAYOUTS, ids=[layout for _, layout in LAYOUTS])
def test_every_source_kind(remote: Store, tmp_path: Path, source_kind: str, layout: str) -> None:
    side = 28 if "mnist" in source_kind else 32
    local = WRITERS[source_kind][layout](tmp_path / "data", [photo(side, side, seed) for seed in range(3)])
    root = upload(tmp_path / "data", remote)
    url = f"{root}/{local.relative_to(tmp_path / 'data').as_posix()}".removesuffix("/.")
    source, expected = (open_layout(place, source_kind, layout) for place in (url, local))
    assert type(source) is type(expected)
    check(source, expected, url)


@pytest.mark.parametrize("pattern", ["", "val-{000000..000001}.tar", "val-*.tar", "val-00000[01].tar"])
def test_a_webdataset(
    remote: Store, tmp_path: Path, folder: Path, files: dict[str, bytes], pattern: str
) -> None:
    shards = put_shards(tmp_path / "shards", labelled(files, "cls"))
    (shards / "classnames.txt").write_text("n01\nn02\nn10\n")
    url = upload(shards, remote.folder("shards")) + f"/{pattern}" * bool(pattern)
    state = open_store(tmp_path / "state")
    for _ in range(2):
        source = open_source(url, options=SourceOptions(cache=(state, "source-index")))
        source.make_ready()
        check(source, ImageFolder(folder), url)


def test_a_single_image(remote: Store, tmp_path: Path, png: bytes) -> None:
    for folder in (tmp_path, remote):
        (folder / "a.png").write_bytes(png) if isinstance(folder, Path) else folder.put("a.png", png)
    check(
        open_source(f"{remote.location}/a.png"), open_source(tmp_path / "a.png"), f"{remote.location}/a.png"
    )


def test_files_of_a_web_server(
    web: tuple[str, Path, type[RangeHandler]], tmp_path: Path, folder: Path, files: dict[str, bytes]
) -> None:
    url, served, handler = web
    put_tar(served / "a.tar", files)
    put_zip(served / "a.zip", files)
    put_shards(served, labelled(files, "cls"))
    state = open_store(tmp_path / "state")
    for name in ("a.tar", "a.zip", "val-{000000..000001}.tar", "val-{000000,000001}.tar"):
        check(open_source(f"{url}/{name}"), ImageFolder(folder), f"{url}/{name}")
    source = open_source(f"{url}/a.tar", options=SourceOptions(cache=(state, "source-index")))
    source.make_ready()
    handler.requests.clear()
    again = pickle.loads(pickle.dumps(source))
    for key in again.keys():  # noqa: SIM118
        again.load(key)
    # A look at the file, and a part of it for an image, or for several.
    assert len(handler.requests) <= 1 + len(PHOTOS)
    with pytest.raises(SourceError, match="cannot be listed"):
        open_source(f"{url}/folder").keys()
    with pytest.raises(SourceError, match=r"gone\.tar: .*no such file"):
        open_source(f"{url}/gone.tar").keys()


def test_a_web_server_without_ranges(web: tuple[str, Path, type[RangeHandler]]) -> None:
    url, served, handler = web
    noise = np.random.default_rng(0).integers(0, 256, (1500, 1500, 3), np.uint8)
    content = io.BytesIO()
    Image.fromarray(noise).save(content, "PNG")
    put_tar(served / "a.tar", {"n01/a.png": content.getvalue()})
    handler.ranges = False
    with pytest.raises(SourceError, match=r"a\.tar: the server does not support range requests"):
        open_source(f"{url}/a.tar").keys()


def test_places_that_are_none(s3: Weather) -> None:
    for url, reason in (
        (f"s3://{BUCKET}/nothing", r"no such folder"),
        (f"s3://{BUCKET}", r"no such folder"),
        (f"s3://{BUCKET}/nothing.tar", r"no such file"),
        (f"s3://{BUCKET}/val-*.tar", r"matches no file"),
        ("s3://robustgen-no-such-bucket/val", r"bucket"),
        ("foo://bar", r"unknown scheme 'foo'"),
    ):
        with pytest.raises(SourceError if "foo" not in url else ValueError, match=reason) as caught:
            open_source(url).keys()
        assert url in str(caught.value) and "\n" not in str(caught.value)


def test_a_source_that_vanishes_in_the_middle(
    remote: Store, tmp_path: Path, folder: Path, files: dict[str, bytes]
) -> None:
    remote.put("a.tar", put_tar(tmp_path / "a.tar", files).read_bytes())
    url = upload(folder, remote.folder("photos"))
    for location, name in ((f"{remote.location}/a.tar", "a.tar"), (url, "photos/n01/a.png")):
        source = open_source(location)
        key = source.keys()[0]
        source.load(key)
        remote.delete(name)
        fresh = pickle.loads(pickle.dumps(source))
        with pytest.raises((ImageError, SourceError), match=r"a\.(tar|png)"):
            fresh.load(key)


def test_an_archive_that_changes_between_runs(remote: Store, tmp_path: Path, png: bytes) -> None:
    url, options = f"{remote.location}/a.tar", SourceOptions(cache=(open_store(tmp_path / "state"), "index"))
    for name in ("n01/old.png", "n05/new.png"):
        remote.put("a.tar", put_tar(tmp_path / "a.tar", {name: png}).read_bytes())
        source = open_source(url, options=options)
        source.make_ready()
        assert source.keys() == (name,)


def test_the_next_images_of_a_server_are_read_meanwhile() -> None:
    begun, keys = list[str](), list("abcd")

    def read(key: str) -> tuple[str]:
        begun.append(key)
        if key == "b":
            raise ImageError("is damaged", key)
        return (key,)

    for location, ahead in (("s3://bucket/photos", True), ("/photos", False)):
        begun.clear()
        found = read_ahead(location, read, keys)
        first = next(found)
        if ahead:
            wait_until(lambda: sorted(begun) == keys)
        assert first() == ("a",) and (ahead or begun == ["a"])
        second, *rest = found
        with pytest.raises(ImageError, match="damaged"):
            second()
        assert [each() for each in rest] == [("c",), ("d",)] and sorted(begun) == keys


def test_the_first_image_is_read_alone() -> None:
    events = list[str]()

    def read(key: str) -> tuple[str]:
        events.append(f"{key} begins")
        # Time in which the others would also begin.
        time.sleep(0.02)
        events.append(f"{key} ends")
        return (key,)

    found = [each() for each in read_ahead("s3://bucket/photos", read, "abcdef")]
    assert found == [(key,) for key in "abcdef"]
    assert events[:2] == ["a begins", "a ends"] and len(events) == 12
    assert [*read_ahead("s3://bucket/photos", read, "")] == []


@pytest.mark.parametrize(("side", "most"), [(8, 5), (4096, 2)])
def test_large_images_are_not_held_for_long(side: int, most: int) -> None:
    held, begun = weakref.WeakSet[Any](), list[int]()

    class Pixels(np.ndarray[Any, Any]):
        """An array that can be counted."""

        __hash__ = object.__hash__

    def read(key: str) -> tuple[Any]:
        pixels = np.empty((side, side, 3), np.uint8).view(Pixels)
        held.add(pixels)
        begun.append(len(held))
        return (pixels,)

    for act in read_ahead("s3://bucket/photos", read, "abcdefgh"):
        act()
        del act
        wait_until(lambda: len(held) < most)
    assert len(begun) == 8


def put_six(root: Path) -> Path:
    for seed, name in enumerate("abcdef"):
        put_photo(root / "cat" / f"{name}.png", 64, 72, seed)
    return root


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("calibrate", ()),
        ("calibrate", ("--for-size", "96", "--output", "constants.json")),
        ("make-c", ("--dry-run", "--edition", "folder")),
        ("make-c", ("--format", "npy", "--edition", "folder")),
    ],
)
def test_commands_read_a_source_on_a_server_ahead(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    gather: Callable[[str, int], threading.Event],
    command: str,
    flags: tuple[str, ...],
) -> None:
    root = put_six(tmp_path / "photos")
    url = upload(root, open_store(f"memory://{tmp_path.name}/photos"))
    # The sample of the estimate is the first image.
    monkeypatch.setattr(estimate, "rank", lambda _, key: key)
    monkeypatch.setattr(estimate, "_MOST_IMAGES", 1)
    monkeypatch.chdir(tmp_path)
    few = ("--corruptions", "contrast", "--severities", "1", "--jobs", "1")
    output = ("--output", tmp_path / "out") if command == "make-c" else ()
    local = cli(command, "--source", root, *few, *flags, *output).stdout
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    (tmp_path / "constants.json").unlink(missing_ok=True)
    images = gather("/photos/cat/[b-f]", 3)
    remote = cli(command, "--source", url, *few, *flags, *output).stdout
    assert images.is_set()
    # Estimates are of processor time.
    assert command == "make-c" or remote.replace(url, str(root)) == local


def test_images_that_may_have_changed_are_read_many_at_once(
    tmp_path: Path, gather: Callable[[str, int], threading.Event]
) -> None:
    root, store = put_six(tmp_path / "photos"), open_store(f"memory://{tmp_path.name}/photos")
    few = ("--corruptions", "contrast", "--severities", "1", "--jobs", "1", "--output", tmp_path / "out")
    for again in (False, True):
        url = upload(root, store)
        images = gather("/photos/cat/[b-f]" if again else "nothing", 5)
        said = cli("make-c", "--source", url, *few).stdout
        assert images.is_set() == again == said.startswith("nothing to do")
