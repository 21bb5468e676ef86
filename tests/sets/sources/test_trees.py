"""Images in archives: the same keys and bytes as from folders, and archives that are damaged or hostile."""

import errno
import gzip
import io
import json
import os
import pickle
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from robustgen.errors import ImageError, SourceError
from robustgen.files.storage import open_store
from robustgen.sets.sources.base import Source, SourceOptions
from robustgen.sets.sources.classes import sort_classes
from robustgen.sets.sources.folder import ImageFolder
from robustgen.sets.sources.opening import open_source
from tests.helpers import cli, cli_error, put_photo

NAMES = ("n01/a.png", "n01/deep/b.JPEG", "n02/c.bmp", "n02/d.jpg", "n10/e.png")
ODD_NAMES = (f"{'c' * 90}/{'x' * 150}.png", "żółw/🐢.png", "with space/new\nline.png")


def put_photos(root: Path, *names: str) -> Path:
    for i, name in enumerate(names):
        put_photo(root / name, 40 + i, 50, seed=i)
    return root


def write_bytes(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def files_of(root: Path) -> dict[str, bytes]:
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def put_tar(path: Path, files: dict[str, bytes], mode: str = "w", form: int = tarfile.PAX_FORMAT) -> Path:
    with tarfile.open(path, mode, format=form) as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def put_zip(path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


PACKERS: dict[str, Any] = {
    "a.tar": put_tar,
    "gnu.tar": lambda path, files: put_tar(path, files, form=tarfile.GNU_FORMAT),
    "a.tar.gz": lambda path, files: put_tar(path, files, "w:gz"),
    "a.tgz": lambda path, files: put_tar(path, files, "w:gz"),
    "a.tar.bz2": lambda path, files: put_tar(path, files, "w:bz2"),
    "a.tar.xz": lambda path, files: put_tar(path, files, "w:xz"),
    "a.zip": put_zip,
    "stored.zip": lambda path, files: put_zip(path, files, zipfile.ZIP_STORED),
}


def assert_alike(source: Source, expected: Source) -> None:
    assert source.keys() == expected.keys()
    assert source.classes == expected.classes
    keys = expected.keys()
    for key in keys:
        assert source.size(key) == expected.size(key) and source.label(key) == expected.label(key)
        assert np.array_equal(source.load(key), expected.load(key))


@pytest.mark.parametrize("above", ["", "val/", "./", "data/val/"])
@pytest.mark.parametrize("name", PACKERS)
def test_an_archive_has_the_keys_and_pixels_of_its_folder(tmp_path: Path, name: str, above: str) -> None:
    root = put_photos(tmp_path / "photos", *NAMES, *ODD_NAMES)
    files = {f"{above}{name}": content for name, content in files_of(root).items()}
    others = {f"{above}notes.txt": b"x", f"{above}.hidden/x.png": b"x", f"{above}n01/._a.png": b"x"}
    source = open_source(PACKERS[name](tmp_path / name, files | others))
    assert source.refused() == {}
    assert_alike(source, ImageFolder(root))


def test_a_single_class_folder_stays_the_class(tmp_path: Path) -> None:
    root = put_photos(tmp_path / "photos", "cats/a.png", "cats/b.png")
    assert_alike(open_source(put_tar(tmp_path / "x.tar", files_of(root))), ImageFolder(root))
    flat = put_photos(tmp_path / "flat", "a.png", "b.png")
    assert_alike(open_source(put_zip(tmp_path / "flat.zip", files_of(flat))), ImageFolder(flat))


@pytest.mark.slow("starts worker processes")
@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.zip"])
def test_pickled_sources_of_archives_work_elsewhere(
    tmp_path: Path, files: dict[str, bytes], name: str
) -> None:
    index = open_store(tmp_path / "state"), "source-index"
    source = open_source(PACKERS[name](tmp_path / name, files), options=SourceOptions(cache=index))
    source.make_ready()
    key = source.keys()[1]
    packed = pickle.dumps(source)
    code = (
        "import pickle, sys; s = pickle.loads(sys.stdin.buffer.read()); "
        "print(s.load(sys.argv[1]).sum(), s.load(s.keys()[0]).sum())"
    )
    for gone in (False, True):
        if gone:
            # As on another machine, which sees the archive only.
            (tmp_path / "state" / "source-index").unlink()
            if name == "a.tar.gz":
                shutil.rmtree(source._tree._copies._path)  # type: ignore[attr-defined]
        printed = subprocess.run(
            [sys.executable, "-c", code, key], input=packed, capture_output=True, check=True
        ).stdout
        assert printed.split() == [b"%d" % source.load(k).sum() for k in (key, source.keys()[0])]


def test_archives_that_are_no_longer_used_hold_few_descriptors(
    tmp_path: Path, files: dict[str, bytes]
) -> None:
    before = len([*Path("/dev/fd").iterdir()])
    for number in range(30):
        source = open_source(put_tar(tmp_path / f"{number}.tar", files))
        source.load(source.keys()[0])
    assert len([*Path("/dev/fd").iterdir()]) - before < 12


def test_nothing_is_left_behind(tmp_path: Path, files: dict[str, bytes]) -> None:
    packed = PACKERS["a.tar.gz"](tmp_path / "a.tar.gz", files)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    flags = ("make-c", "--source", packed, "--corruptions", "contrast", "--severities", "1", "--jobs", "2")
    done = subprocess.run(
        [sys.executable, "-m", "robustgen", *map(str, flags), "--output", str(tmp_path / "out")],
        env=os.environ | {"TMPDIR": str(temporary)},
        check=True,
        capture_output=True,
    )
    assert b"5 of" in done.stdout or b"10 images" in done.stdout
    assert not [*temporary.glob("robustgen-*/*")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "out", "temporary"]


@pytest.mark.parametrize("name", ["a.tar", "gnu.tar", "stored.zip"])
def test_an_archive_replaced_in_place_is_not_mixed_with_its_index(tmp_path: Path, name: str) -> None:
    long = "n01/" + "long" * 40
    files = files_of(put_photos(tmp_path / "photos", f"{long}0.bmp", f"{long}1.bmp"))
    path = PACKERS[name](tmp_path / name, files)
    other = PACKERS[name](tmp_path / f"other-{name}", dict(reversed(files.items())))
    source, status = ImageFolder(path), path.stat()
    (first, *_) = source.keys()
    source.load(first)
    with path.open("r+b") as file:
        file.write(other.read_bytes())
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    with pytest.raises(ImageError, match="the archive has changed since it was listed"):
        source.load(first)


# --- damaged and hostile archives ----------------------------------------------------------------


UNSAFE = "its name is absolute, or contains .. or a zero byte"


def bad_members(tar: tarfile.TarFile) -> None:
    for name, flag in (
        ("a/link.png", tarfile.SYMTYPE),
        ("a/hard.png", tarfile.LNKTYPE),
        ("a/pipe.png", tarfile.FIFOTYPE),
        ("a/device.png", tarfile.CHRTYPE),
        ("a/link.txt", tarfile.SYMTYPE),
    ):
        info = tarfile.TarInfo(name)
        info.type, info.linkname = flag, "/etc/passwd"
        tar.addfile(info)


def test_members_that_are_no_files_or_leave_the_archive_are_named(tmp_path: Path) -> None:
    root = put_photos(tmp_path / "photos", "a/x.png", "b/y.png", "b/z.png")
    files = files_of(root)
    content = files["a/x.png"]
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        bad_members(tar)
        for name in (*files, "/a/absolute.png", "a/../../up.png", "../up.png", "a/..dots.png", "b/y.png"):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(files.get(name, content)))
    source = open_source(path)
    assert source.keys() == ("a/x.png", "b/z.png")
    assert source.refused() == {
        "a/link.png": "a link",
        "a/hard.png": "a link",
        "a/pipe.png": "not a regular file",
        "a/device.png": "not a regular file",
        "b/y.png": "occurs twice",
        **dict.fromkeys(("a/absolute.png", "a/../../up.png", "../up.png"), UNSAFE),
    }


def test_backslashes_separate_the_folders_of_a_zip(tmp_path: Path, png: bytes) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in ("set\\", "set\\cat\\a.png", "set\\dog\\b.png"):
            entry = zipfile.ZipInfo("x")
            entry.filename = entry.orig_filename = name
            archive.writestr(entry, png if name.endswith(".png") else b"")
    source = ImageFolder(tmp_path / "a.zip")
    assert source.keys() == ("cat/a.png", "dog/b.png") and source.classes == ("cat", "dog")
    assert source.refused() == {} and source.load("dog/b.png").any()


def test_files_that_are_no_images_change_no_keys(tmp_path: Path, png: bytes) -> None:
    files = {"set/cat/a.png": png, "set/dog/b.png": png, "set/list": b"", "labels": b"", "logo.svg": b""}
    assert ImageFolder(put_zip(tmp_path / "a.zip", files)).keys() == ("cat/a.png", "dog/b.png")


def test_zip_entries_that_are_refused(tmp_path: Path, png: bytes) -> None:
    path = tmp_path / "a.zip"
    link = zipfile.ZipInfo("a/link.png")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/x.png", png)
        archive.writestr(link, "/etc/passwd")
        archive.writestr("/a/absolute.png", png)
        archive.writestr("a/../../up.png", png)
        archive.writestr("a/twice.png", png)
        archive.writestr("a/twice.png", png)
        archive.writestr("b/lzma.png", png, compress_type=zipfile.ZIP_LZMA)
    source = open_source(path)
    assert source.keys() == ("a/x.png",)
    assert source.refused() == {
        "a/link.png": "a link",
        "a/absolute.png": UNSAFE,
        "a/../../up.png": UNSAFE,
        "a/twice.png": "occurs twice",
        "b/lzma.png": "compressed by method 14, which is not supported",
    }


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_a_truncated_tar_is_named_and_what_is_whole_is_read(
    tmp_path: Path, folder: Path, files: dict[str, bytes], form: int
) -> None:
    path = put_tar(tmp_path / "a.tar", files, form=form)
    whole = path.read_bytes()
    with tarfile.open(path) as tar:
        members = tar.getmembers()
    expected = ImageFolder(folder)
    for size in range(512, len(whole), 1711):
        path.write_bytes(whole[:size])
        done = [m.name for m in members if m.offset_data + m.size <= size]
        source = ImageFolder(path)
        refused = source.refused()
        if size < members[-1].offset_data + members[-1].size:
            assert set(refused) - {m.name for m in members} == {"a.tar"}
            assert "end" in refused["a.tar"]
        names = {*source.keys()} if done else set()
        # With a single class left, its folder is no longer told from the root by the others.
        assert {name.rpartition("/")[2] for name in names} == {name.rpartition("/")[2] for name in done}
    end = members[-1].offset_data + -(-members[-1].size // 512) * 512
    path.write_bytes(whole[:end])
    last = ImageFolder(path)
    assert last.keys() == expected.keys() and "end-of-archive blocks are missing" in last.refused()["a.tar"]


def test_a_damaged_header_in_the_middle_is_named(tmp_path: Path, files: dict[str, bytes]) -> None:
    path = put_tar(tmp_path / "a.tar", files)
    with tarfile.open(path) as tar:
        offset = tar.getmembers()[2].offset
    data = bytearray(path.read_bytes())
    data[offset : offset + 100] = bytes(range(100))
    path.write_bytes(data)
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(data))
    for name in ("a.tar", "a.tar.gz"):
        source = ImageFolder(tmp_path / name)
        assert source.refused() == {name: "damaged after 'n01/deep/b.JPEG': a header is invalid"}
        assert len(source.keys()) == 2


@pytest.mark.parametrize("size", ["-2048", "-512"])
def test_headers_that_run_in_circles_end(tmp_path: Path, png: bytes, size: str) -> None:
    info = tarfile.TarInfo("a/circle.png")
    info.pax_headers = {"size": size}
    path = put_tar(tmp_path / "a.tar", {"a/x.png": png})
    whole = path.read_bytes()
    end = 512 + -(-len(png) // 512) * 512
    path.write_bytes(whole[:end] + info.tobuf(tarfile.PAX_FORMAT) + whole[end:])
    source = ImageFolder(path)
    assert source.keys() == ("a/x.png",)
    assert source.refused() == {"a.tar": f"damaged after 'a/x.png': member of {size} bytes"}


def test_a_full_disk_while_unpacking(
    tmp_path: Path, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = PACKERS["a.tar.gz"](tmp_path / "a.tar.gz", files)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("robustgen.sets.sources.files.unpack", fail)
    with pytest.raises(SourceError, match=r"a\.tar\.gz: cannot be unpacked .*No space left.*TMPDIR"):
        ImageFolder(path).keys()


def test_a_damaged_tar_gz_is_refused(tmp_path: Path, files: dict[str, bytes]) -> None:
    path = PACKERS["a.tar.gz"](tmp_path / "a.tar.gz", files)
    whole = path.read_bytes()
    flags = ("make-c", "--source", path, "--output", tmp_path / "o")
    for content in (whole[:-8000], whole[:-8] + bytes(8), whole[:300] + bytes(9) + whole[309:]):
        path.write_bytes(content)
        assert "a.tar.gz: damaged; decompress what can be saved (" in cli_error(*flags)


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.zip"])
def test_what_is_no_archive(tmp_path: Path, name: str) -> None:
    for content in (b"", b"no archive at all" * 99):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SourceError, match=name.replace(".", r"\.")):
            ImageFolder(tmp_path / name).keys()
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(SourceError, match="regular file"):
        open_source(tmp_path / name).keys()


def test_zips_that_promise_gigabytes_cost_nothing(tmp_path: Path) -> None:
    path = put_zip(tmp_path / "a.zip", {"a/x.png": bytes(1 << 20), "b/y.png": bytes(9)})
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\1\2")
    assert ImageFolder(path).size("a/x.png") == 1 << 20
    for size, says in ((1 << 31, "too large for an image: 2147483648 bytes"), (1 << 28, None), (100, None)):
        data[entry + 24 : entry + 28] = size.to_bytes(4, "little")
        path.write_bytes(data)
        source = ImageFolder(path)
        assert source.refused().get("a/x.png") == says
        if says is None:
            with pytest.raises(ImageError, match=r"'a/x\.png': damaged in the zip"):
                source.load("a/x.png")


def test_a_tar_gz_that_would_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robustgen.files.containers.archives.HARMLESS_BYTES", 1 << 20)
    path = PACKERS["a.tar.gz"](tmp_path / "a.tar.gz", {"a/x.png": bytes(1 << 24)})
    with pytest.raises(SourceError, match=r"a\.tar\.gz: unpacks to more than"):
        ImageFolder(path).keys()


# --- labels of ImageNet's devkit -----------------------------------------------------------------

FLAT = tuple(f"ILSVRC2012_val_{i:08d}.JPEG" for i in (1, 2, 5, 50_000))


def devkit(root: Path) -> Path:
    """A devkit whose images 1 to 50 000 are of the classes 1 to 1000 in turn; ids above are no leaves."""
    data = root / "ILSVRC2012_devkit_t12" / "data"
    data.mkdir(parents=True)
    fields = [("ILSVRC2012_ID", object), ("WNID", object), ("words", object), ("num_children", object)]
    rows = [(i, f"n{90_000_000 - i:08d}", f"word {i}", 0 if i <= 1000 else 3) for i in range(1, 1861)]
    savemat(data / "meta.mat", {"synsets": np.array(rows, fields)[:, None]})
    numbers = "".join(f"{i % 1000 + 1}\n" for i in range(50_000))
    (data / "ILSVRC2012_validation_ground_truth.txt").write_text(numbers)
    return data


KEYS = tuple(sorted(f"n{90_000_000 - (int(name[15:23]) - 1) % 1000 - 1:08d}/{name}" for name in FLAT))


def test_the_devkit_tells_the_classes_of_imagenet(tmp_path: Path) -> None:
    flat, data = put_photos(tmp_path / "flat", *FLAT), devkit(tmp_path)
    images = put_tar(tmp_path / "ILSVRC2012_img_val.tar", files_of(flat))
    kit = tmp_path / "ILSVRC2012_devkit_t12.tar.gz"
    with tarfile.open(kit, "w:gz") as tar:
        tar.add(data.parent, data.parent.name)
    expected = open_source(flat, options=SourceOptions(labels=kit))
    assert expected.keys() == KEYS
    for labels in (kit, data.parent, data, data / "ILSVRC2012_validation_ground_truth.txt"):
        for root in (flat, images):
            assert_alike(open_source(root, options=SourceOptions(labels=labels)), expected)


def test_the_ground_truth_alone_is_refused(tmp_path: Path) -> None:
    flat, data = put_photos(tmp_path / "flat", *FLAT), devkit(tmp_path)
    alone = shutil.copy(data / "ILSVRC2012_validation_ground_truth.txt", tmp_path / "labels.txt")
    flags = ("make-c", "--source", flat, "--labels", alone, "--output", tmp_path / "out")
    line = cli_error(*flags)
    assert "contains no meta.mat" in line and "devkit_t12.tar.gz" in line
    assert not (tmp_path / "out").exists()


def test_devkits_that_are_none(tmp_path: Path) -> None:
    flat, data = put_photos(tmp_path / "flat", "a.JPEG", "b.JPEG"), devkit(tmp_path)
    with pytest.raises(SourceError, match=r"2 refused, 'a\.JPEG': no label in "):
        open_source(flat, options=SourceOptions(labels=data)).keys()
    (data / "meta.mat").write_bytes(b"nonsense")
    with pytest.raises(SourceError, match=r"meta\.mat is not the devkit's"):
        open_source(put_photos(tmp_path / "x", *FLAT), options=SourceOptions(labels=data)).keys()
    (data / "meta.mat").unlink()
    with pytest.raises(SourceError, match=r"contains no meta\.mat"):
        open_source(flat, options=SourceOptions(labels=data)).keys()
    kit = put_tar(tmp_path / "devkit.tar.gz", {"x": b""}, "w:gz")
    with pytest.raises(SourceError, match="contains no ILSVRC2012_validation_ground_truth"):
        open_source(flat, options=SourceOptions(labels=kit)).keys()


def test_flat_imagenet_needs_labels_unless_classes_are_waived(tmp_path: Path) -> None:
    flat = put_photos(tmp_path / "flat", *FLAT)
    packed = put_tar(tmp_path / "val.tar", {f"val/{n}": c for n, c in files_of(flat).items()})
    more = ("--corruptions", "contrast", "--severities", "1", "--output", tmp_path / "out")
    for source in (flat, packed):
        line = cli_error("make-c", "--dataset", "imagenet-64", "--source", source, *more)
        assert "not in class folders" in line and "--set", "require_classes=false" in line
    assert not (tmp_path / "out").exists()
    cli("make-c", "--dataset", "imagenet-64", "--source", flat, "--set", "require_classes=false", *more)
    own = put_photos(tmp_path / "own", "me.png")
    cli("make-c", "--edition", "imagenet-64", "--source", own, *more[:4], "--output", tmp_path / "own-c")


# --- classes, links, formats ------------------------------------------------------


def test_classes_that_are_numbers_stand_in_numeric_order(tmp_path: Path) -> None:
    assert sort_classes(["10", "9", "100"]) == ["9", "10", "100"]
    assert sort_classes(["10", "9", "a"]) == ["10", "9", "a"]
    source = ImageFolder(put_photos(tmp_path, "10/a.png", "9/b.png", "0/c.png"))
    assert source.classes == ("0", "9", "10")
    assert source.label("9/b.png") == 1


def test_links_are_followed_to_places_that_are_named(tmp_path: Path) -> None:
    big = put_photos(tmp_path / "imagenet", "n01/a.png", "n02/b.png", "n03/c.png")
    few = tmp_path / "imagenet-2"
    few.mkdir()
    for name in ("n01", "n03"):
        (few / name).symlink_to(big / name)
    for name in ("elsewhere", "more"):
        (tmp_path / name).mkdir()
    put_photos(few, "n04/d.png")
    (few / "n04" / "e.png").symlink_to(big / "n02" / "b.png")
    assert ImageFolder(few).keys() == ("n04/d.png",)
    assert open_source(few, options=SourceOptions(follow=[tmp_path / "elsewhere"])).keys() == ("n04/d.png",)
    source = open_source(few, options=SourceOptions(follow=[big]))
    assert source.keys() == ("n01/a.png", "n03/c.png", "n04/d.png", "n04/e.png")
    assert source.refused() == {}
    with pytest.raises(SourceError, match=r"follow_links: .*/moer: the folder does not exist"):
        open_source(few, options=SourceOptions(follow=[big, tmp_path / "moer"]))
    more = ("--corruptions", "contrast", "--severities", "1", "--no-clean", "--output", tmp_path / "out")
    done = cli("make-c", "--source", few, *more, status=1)
    assert "3 images: symlink that leaves the source" in done.stderr and "follow_links" in done.stderr
    cli("make-c", "--source", few, "--set", f"follow_links={big},{tmp_path / 'more'}", *more)
    recorded = json.loads((tmp_path / "out" / "dataset.json").read_text())["config"]["follow_links"]
    assert recorded == [big.name, "more"]
    cli("verify", tmp_path / "out", "--deep", "2")


def test_videos_are_counted_and_named(tmp_path: Path) -> None:
    root = put_photos(tmp_path / "photos", "a/x.png")
    for name in ("a/y.mp4", "a/z.MP4", "clips/w.mkv"):
        write_bytes(root / name, b"x")
    for name in ("shards", "alone"):
        (tmp_path / name).mkdir()
    shards = put_tar(tmp_path / "shards" / "0.tar", {**files_of(root), "a/x.cls": b"0"})
    flags = ("--corruptions", "contrast", "--severities", "1", "--dry-run")
    line = "skipped, videos: 1 .mkv, 2 .mp4 ('a/y.mp4', ...)"
    for source in (root, put_tar(tmp_path / "photos.tar", files_of(root)), shards.parent):
        assert line in cli("make-c", "--source", source, *flags).stdout
    (root / "a/x.png").unlink()
    shards = put_tar(tmp_path / "alone" / "0.tar", {**files_of(root), "a/y.cls": b"0"})
    for source in (root, put_zip(tmp_path / "photos.zip", files_of(root)), shards.parent):
        assert f"{line}; make-c --dataset clips" in cli_error("make-c", "--source", source, *flags)
    assert "skipped, videos: 1 .mp4 ('y.mp4'" in cli_error("make-c", "--source", root / "a/y.mp4", *flags)


def test_images_in_formats_that_are_not_read_are_counted_and_named(tmp_path: Path) -> None:
    root = put_photos(tmp_path / "photos", "a/x.png")
    for name in ("a/y.heic", "a/z.HEIC", "a/w.avif"):
        write_bytes(root / name, b"x")
    packed = put_tar(tmp_path / "photos.tar", files_of(root))
    for source in (root, packed):
        flags = ("--corruptions", "contrast", "--severities", "1", "--output", tmp_path / f"{source.name}-c")
        line = "skipped, in an unsupported format: 1 .avif, 2 .heic ('a/w.avif', ...)"
        assert line in cli("make-c", "--source", source, *flags, "--dry-run").stdout
        assert line in cli("make-c", "--source", source, *flags).stderr
    (root / "a/x.png").unlink()
    with pytest.raises(SourceError, match=r"no images .*1 \.avif, 2 \.heic \('a/w\.avif'"):
        ImageFolder(root).keys()
