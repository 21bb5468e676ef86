"""Changed source images are noticed by finished outputs, by the stamps of their files."""

import os
import shutil
import tarfile

import numpy as np
import pytest

from robustgen.files.ledger import Ledger
from robustgen.files.set_files import AnotherSetError
from robustgen.files.storage import open_store
from robustgen.sets.dataset import changes
from robustgen.sets.dataset.changes import check_unchanged, keep_stamps, look_up
from robustgen.sets.sources import files
from robustgen.sets.sources.folder import ImageFolder
from robustgen.sets.sources.opening import open_source
from tests.helpers import ONE, cli, cli_error, kept, make_c, photo, put_photo, whole


@pytest.fixture
def source(tmp_path):
    for number in range(5):
        put_photo(tmp_path / "src" / "c" / f"{number}.bmp", seed=number)
    return tmp_path / "src"


@pytest.fixture
def identified(monkeypatch):
    """The images whose files are read to compare them."""
    asked, identify = [], files.EncodedSource.identify
    monkeypatch.setattr(
        files.EncodedSource, "identify", lambda self, key: asked.append(key) or identify(self, key)
    )
    return asked


def change(path, seed=99):
    size = path.stat().st_size
    put_photo(path, seed=seed)
    assert path.stat().st_size == size


@pytest.mark.parametrize("form", ["jpeg", "png", "webdataset", "npy"])
def test_a_finished_set_names_an_image_that_changed(source, tmp_path, form):
    out, flags = tmp_path / "out", (*ONE, "--format", form, "--edition", "folder@32")
    make_c(source, out, *flags)
    assert kept(make_c(source, out, *flags))
    before = whole(out)
    change(source / "c" / "3.bmp")
    line = cli_error("make-c", "--source", source, "--output", out, *flags)
    assert "'c/3.bmp'" in line and "--overwrite" in line and whole(out) == before
    make_c(source, out, *flags, "--overwrite")
    assert kept(make_c(source, out, *flags))


def test_make_p_notices_too(source, tmp_path):
    flags = ("--perturbations", "brightness", "--format", "png", "--jobs", 1, "--limit", 2)
    cli("make-p", "--source", source, "--output", tmp_path / "p", *flags)
    change(source / "c" / "1.bmp")
    assert "'c/1.bmp'" in cli_error("make-p", "--source", source, "--output", tmp_path / "p", *flags)


@pytest.mark.parametrize("suffix", [".zip", ".tar"])
def test_an_archive_that_was_written_again(source, tmp_path, suffix):
    def pack():
        if suffix == ".zip":
            shutil.make_archive(str(tmp_path / "a"), "zip", source)
        else:
            with tarfile.open(tmp_path / "a.tar", "w") as archive:
                archive.add(source, ".")
        return tmp_path / f"a{suffix}"

    out = tmp_path / "out"
    make_c(pack(), out, *ONE)
    assert kept(make_c(pack(), out, *ONE))
    change(source / "c" / "3.bmp")
    # The images, not the size of the archive.
    assert "'c/3.bmp'" in cli_error("make-c", "--source", pack(), "--output", out, *ONE)


def test_arrays_that_changed(tmp_path):
    pictures, place = [photo(32, 32, seed) for seed in range(4)], tmp_path / "x.npz"
    np.savez(place, images=np.stack(pictures), labels=np.arange(4))
    flags = (*ONE, "--edition", "folder@32")
    make_c(place, tmp_path / "out", *flags)
    assert kept(make_c(place, tmp_path / "out", *flags))
    pictures[2] = photo(32, 32, 50)
    np.savez(place, images=np.stack(pictures), labels=np.arange(4))
    assert "differs from" in cli_error("make-c", "--source", place, "--output", tmp_path / "out", *flags)


def test_only_files_with_other_stamps_are_read_and_once(source, tmp_path, identified):
    out = tmp_path / "out"
    make_c(source, out, *ONE)
    make_c(source, out, *ONE)
    assert identified == []
    os.utime(source / "c" / "3.bmp", ns=(1, 1))
    make_c(source, out, *ONE)
    assert identified == ["c/3.bmp"]
    make_c(source, out, *ONE)
    assert identified == ["c/3.bmp"]


def test_stamps_lie_in_the_state_and_not_in_records(source, tmp_path):
    make_c(source, tmp_path / "one", *ONE)
    for file in source.rglob("*.bmp"):
        os.utime(file, ns=(1, 1))
    make_c(source, tmp_path / "two", *ONE)
    one, two = (
        {
            path.name: path.read_bytes()
            for path in (tmp_path / name / ".robustgen/records").rglob("*")
            if path.is_file()
        }
        for name in ("one", "two")
    )
    assert one == two and (tmp_path / "one" / ".robustgen" / "source-stamps").exists()
    assert whole(tmp_path / "one") == whole(tmp_path / "two")


def put_many(root, count):
    for number in range(count):
        put_photo(root / "c" / f"{number:03d}.bmp", seed=number % 7)
    return root


def opened(root, output):
    source = ImageFolder(root)
    identities = {key: source.identify(key) for key in source.listing.places}
    stamps = {key: look_up(source, key)[1] for key in identities}
    return source, Ledger(open_store(output)), identities, stamps


def test_one_changed_image_among_many_touched_ones_is_found(tmp_path):
    photos, out = put_many(tmp_path / "src", 200), tmp_path / "out"
    make_c(photos, out, *ONE)
    for file in photos.rglob("*.bmp"):
        os.utime(file, ns=(1, 1))
    put_photo(photos / "c" / "101.bmp", seed=8)
    assert "c/101.bmp" in cli_error("make-c", "--source", photos, "--output", out, *ONE)


def test_a_large_copy_is_judged_by_64_images_and_those_that_are_left(tmp_path, identified, monkeypatch):
    monkeypatch.setattr(changes, "_MOST_COMPARED", 64)
    source, ledger, identities, stamps = opened(put_many(tmp_path / "src", 150), tmp_path / "out")
    identified.clear()
    check_unchanged(source, ledger, identities, stamps)
    assert len(identified) == len({*identified}) == 64
    # Only these have other stamps then, and more than half of all do.
    check_unchanged(source, ledger, identities, stamps)
    assert len(identified) == len({*identified}) == 128
    for _ in range(2):
        check_unchanged(source, ledger, identities, stamps)
        assert len(identified) == len({*identified}) == 150


def test_all_are_read_if_one_of_the_64_differs(tmp_path, identified, monkeypatch):
    monkeypatch.setattr(changes, "_MOST_COMPARED", 64)
    source, ledger, identities, stamps = opened(put_many(tmp_path / "src", 150), tmp_path / "out")
    identified.clear()
    for key in ("c/000.bmp", "c/001.bmp", "c/149.bmp"):
        identities[key] = "0" * 16
    with pytest.raises(AnotherSetError, match=r"'c/000\.bmp'.* 2 "):
        check_unchanged(source, ledger, identities, stamps)
    assert len(identified) == 64 + 150
    # Nothing was kept.
    with pytest.raises(AnotherSetError):
        check_unchanged(source, ledger, identities, stamps)


def test_an_output_that_cannot_be_written_is_compared_again(tmp_path, identified, monkeypatch):
    source, ledger, identities, stamps = opened(put_many(tmp_path / "src", 3), tmp_path / "out")
    identified.clear()

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(ledger.store), "put", refuse)
    for _ in range(2):
        check_unchanged(source, ledger, identities, stamps)
    assert len(identified) == 6


def test_damaged_stamps_count_as_none(tmp_path, identified):
    source, ledger, identities, stamps = opened(put_many(tmp_path / "src", 3), tmp_path / "out")
    identified.clear()
    keep_stamps(ledger, {}, stamps)
    ledger.store.put("source-stamps", b"{")
    check_unchanged(source, ledger, identities, stamps)
    assert len(identified) == 3
    check_unchanged(source, ledger, identities, stamps)
    assert len(identified) == 3


def test_images_in_folders_and_archives_have_stamps(tmp_path):
    put_many(tmp_path / "src", 2)
    shutil.make_archive(str(tmp_path / "a"), "zip", tmp_path / "src")
    for place in (tmp_path / "src", tmp_path / "a.zip"):
        source = open_source(str(place))
        key = source.keys()[0]
        size, stamp = source.stat(key)
        assert size == source.size(key) and stamp
        assert source.identify(key) == source.read(key)[1]
