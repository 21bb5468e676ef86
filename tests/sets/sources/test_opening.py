"""Every source as it is recognised: conformance, splits, layouts of other tools, and refusals."""

import json
import re
from pathlib import Path

import pytest

from robustgen.errors import SourceError, UnknownNameError
from robustgen.pixels.benchmarks.editions import EDITIONS
from robustgen.plugins.conformance import check_source
from robustgen.sets.formats.encoders import encode_lossless
from robustgen.sets.sources import SOURCES
from robustgen.sets.sources.base import SourceOptions
from robustgen.sets.sources.folder import ImageFolder, LabelledFolder
from robustgen.sets.sources.opening import open_source
from robustgen.sets.sources.places import find_place
from robustgen.torch import SourceDataset
from tests.helpers import ONE, cli, cli_error, make_c, photo, pictures, put_photo
from tests.sets.sources.test_folder import flat_imagenet, pairs, write
from tests.sets.sources.test_published import put_medmnist
from tests.sets.sources.test_trees import put_tar, put_zip
from tests.source_writers import WRITERS, write_tar

LAYOUTS = [(source_kind, layout) for source_kind, layouts in WRITERS.items() for layout in layouts]


def test_every_source_kind_is_checked():
    # tests/sets/sources/test_clip_folder.py has the layouts of clips.
    assert {*WRITERS} == {*SOURCES} - {"clips"}


def open_layout(location, source_kind, layout):
    if source_kind == "labelled":
        labels = f"{str(location).rpartition('/')[0]}/labels.txt"
        return open_source(location, options=SourceOptions(labels=labels))
    # Parquet files are recognised as a source of their own.
    return open_source(location, "table" if layout == "table-parquet" else "auto")


@pytest.mark.parametrize(("source_kind", "layout"), LAYOUTS, ids=[layout for _, layout in LAYOUTS])
def test_a_source_conforms(source_kind, layout):
    shape = (28, 28) if "mnist" in source_kind else (32, 32)
    write = WRITERS[source_kind][layout]
    check_source(
        write, lambda place: open_layout(place, source_kind, layout), shape=shape, grey=source_kind == "mnist"
    )


# --- splits whose class folders have the same names -----------------------------------------------


@pytest.fixture
def splits(tmp_path):
    """A root with `train` and `valid`, and one class in both."""
    for name in ("train/cat/1.jpg", "train/dog/1.jpg", "valid/cat/1.jpg", "valid/owl/2.jpg"):
        put_photo(tmp_path / "set" / name)
    return tmp_path / "set"


# The corruption is not for 28 pixels.
@pytest.mark.parametrize("edition", [each for each in EDITIONS if each != "mnist"])
def test_splits_are_no_classes_in_any_edition(splits, edition):
    message = cli_error("make-c", "--source", splits, "--edition", edition, *ONE, "--dry-run")
    assert message == (
        f"{splits}: valid and train have the same class folders, such as 'cat': choose one with "
        "--split valid (else use `require_classes: false` in a config, or --set require_classes=false)"
    )


def test_ways_out_of_splits(splits, tmp_path):
    command = ("make-c", "--source", splits, *ONE)
    cli(*command, "--split", "valid", "--output", tmp_path / "valid")
    assert (tmp_path / "valid/clean/owl/2.jpeg").exists() or (tmp_path / "valid/clean/owl/2.jpg").exists()
    cli(*command, "--set", "require_classes=false", "--dry-run")
    # Each variant is a data set with all splits.
    cli("make-c", "--dataset", "coco-c", "--source", splits, *ONE, "--subset", "*", "--dry-run")
    with pytest.raises(SourceError, match="valid and train have the same class folders: name one"):
        SourceDataset(splits)
    assert (
        len(SourceDataset(splits / "train")) == 2 and len(SourceDataset(splits, require_classes=False)) == 4
    )


def test_folders_of_other_classes_are_no_splits(tmp_path):
    for name in ("train/steam/1.jpg", "test/tube/1.jpg", "test/rig/2.jpg"):
        put_photo(tmp_path / "set" / name)
    cli("make-c", "--source", tmp_path / "set", *ONE, "--dry-run")


@pytest.mark.parametrize("put", [put_tar, put_zip])
def test_an_archive_has_splits_too(splits, tmp_path, put):
    files = {f"set/{path.relative_to(splits)}": path.read_bytes() for path in splits.rglob("*.jpg")}
    suffix = "tar" if put is put_tar else "zip"
    archive = put(tmp_path / f"set.{suffix}", files)
    assert "choose one with --split valid" in cli_error("make-c", "--source", archive, *ONE, "--dry-run")
    source = open_source(archive, options=SourceOptions(split="valid"))
    assert source.keys() == ("cat/1.jpg", "owl/2.jpg") and source.classes == ("cat", "owl")
    assert source.read_bytes("owl/2.jpg") == files["set/valid/owl/2.jpg"]
    with pytest.raises(SourceError, match="contains no folder of the split 'test'"):
        open_source(archive, options=SourceOptions(split="test"))


# --- layouts of other tools, and formats that are refused -----------------------------------------


QUICK = ("--corruptions", "contrast", "--severities", "1", "--format", "png", "--jobs", "1", "--quiet")


def test_img2dataset_writes_metadata_beside_shards_and_folders(tmp_path):
    photographs, samples = [photo(32, 32, seed) for seed in range(4)], {}
    for number, photograph in enumerate(photographs):
        samples[f"{number:09d}.png"] = encode_lossless(photograph, ".png")
        samples[f"{number:09d}.json"] = json.dumps({"caption": "", "label": number % 2}).encode()
    shards = write_tar(tmp_path / "shards", photographs, name="00000.tar", files=samples).parent
    (shards / "00000.parquet").write_bytes(b"")
    source = open_source(shards)
    assert [*map(source.label, source.keys())] == [0, 0, 1, 1] and source.keys()[0] == "0/000000000.png"
    # Folders of shards are no classes.
    put_photo(tmp_path / "files" / "00000" / "0.png", 32, 32)
    for name in ("00000.parquet", "00000_stats.json"):
        (tmp_path / "files" / name).write_bytes(b"")
        with pytest.raises(SourceError, match=r"img2dataset.* require_classes=false"):
            open_source(tmp_path / "files")
        (tmp_path / "files" / name).unlink()
    assert open_source(tmp_path / "files").classes == ("00000",)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("test.tfrecord", "TFRecord, which is not read; write its images"),
        ("1.0/train-00000-of-01024", "contains train-00000-of-01024: TFRecord"),
        ("set/dataset_dict.json", "save_to_disk.*load_from_disk.*to_parquet"),
        ("data-00000-of-00001.arrow", "save_to_disk"),
        ("lmdb/data.mdb", "contains data.mdb: an LMDB"),
        ("val.beton", "FFCV, which is not read; name the images"),
        ("val.h5", "HDF5, which is not read; write its arrays with numpy.savez"),
    ],
)
def test_formats_of_other_libraries_are_refused_with_a_way_out(tmp_path, name, message):
    path = tmp_path / "src" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"data")
    rows = [SOURCES[name] for name in SOURCES if name not in ("arrays", "folder")]
    for place in (path.parent, tmp_path / "src", *([] if "contains" in message else [path])):
        # A row that was added since may read it.
        if not any(row.recognise(find_place(str(place))) for row in rows):
            with pytest.raises(SourceError, match=message):
                open_source(place).keys()
    (tmp_path / "notes.txt").write_text("notes")
    with pytest.raises(SourceError, match=r"notes\.txt: neither a folder, an image nor an archive"):
        open_source(tmp_path / "notes.txt")


def test_a_single_image_is_a_source(tmp_path):
    put_photo(tmp_path / "a.png", seed=1)
    put_photo(tmp_path / "b.png", seed=2)
    assert open_source(tmp_path / "a.png").keys() == ("a.png",)
    # The output may lie beside it.
    make_c(tmp_path / "a.png", tmp_path / "out", *QUICK)
    assert {*pictures(tmp_path / "out")} == {"clean/a.png", "contrast/1/a.png"}


def test_bare_names_select_images(tmp_path):
    for name in ("cat/a", "cat/b", "dog/b", "dog/c"):
        put_photo(tmp_path / "src" / f"{name}.png")
    names = tmp_path / "names.txt"

    def select(subset):
        output = tmp_path / f"out {len([*tmp_path.iterdir()])}"
        make_c(tmp_path / "src", output, "--subset", subset, *QUICK)
        return sorted(name.removeprefix("clean/") for name in pictures(output) if name.startswith("clean/"))

    assert select("a.png") == ["cat/a.png"] and select("dog") == ["dog/b.png", "dog/c.png"]
    assert select("b.*") == ["cat/b.png", "dog/b.png"]
    names.write_text("a.png\ndog/c.png\n")
    assert select(f"@{names}") == ["cat/a.png", "dog/c.png"]
    flags = ("make-c", "--source", tmp_path / "src", "--output", tmp_path / "none", "--subset")
    assert f"did you mean @{names}" in cli_error(*flags, names)
    names.write_text("a.png\nb.png\n")
    told = cli_error(*flags, f"@{names}")
    assert told.startswith(f"{names}, line 2: ")
    assert re.findall(r"'(.*?)'", told) == ["b.png", "cat/b.png", "dog/b.png"]


@pytest.mark.parametrize(
    ("name", "edition", "more", "message"),
    [
        (
            "own",
            "chestmnist",
            {},
            "colour images with one label each, but chestmnist has grey images with several",
        ),
        ("own", "chestmnist", {"grey": True}, "grey images with one label each, but chestmnist"),
        ("own", "pathmnist", {"grey": True}, "grey images with one label each, but pathmnist has colour"),
        (
            "own",
            "octmnist",
            {"grey": True, "labels": 3},
            "several labels each, but octmnist has grey images with one",
        ),
        ("bloodmnist", "pathmnist", {}, "is bloodmnist, but pathmnist has"),
    ],
)
def test_files_of_another_set_of_medmnist_are_refused(tmp_path, name, edition, more, message):
    path, _ = put_medmnist(tmp_path / f"{name}_224.npz", **more)
    flags = ("--dataset", edition, "--source", path, "--output", tmp_path / "out")
    assert message in cli_error("make-c", *flags) and not (tmp_path / "out").exists()


def test_open_source_detects_or_refuses(tmp_path: Path) -> None:
    flat = flat_imagenet(tmp_path)
    labels = write(tmp_path / "labels.txt", pairs(" "))
    assert type(open_source(flat)) is ImageFolder
    assert type(open_source(str(flat), "folder")) is ImageFolder
    assert type(open_source(flat, options=SourceOptions(labels=labels))) is LabelledFolder
    assert type(open_source(flat, "labelled", SourceOptions(labels))) is LabelledFolder
    with pytest.raises(UnknownNameError, match="did you mean 'cifar'"):
        open_source(flat, "cifer")
    for path in (tmp_path / "missing", tmp_path / "missing.tar.gz", "nul\0", "x" * 5000):
        with pytest.raises(SourceError, match=r"missing(\.tar\.gz)?: No|null|too long"):
            open_source(path)
    wrong = (
        (flat, "labelled"),
        (flat, "folder", SourceOptions(labels)),
        (None, "folder"),
        (labels, "folder"),
    )
    for arguments in wrong:
        with pytest.raises(SourceError):
            open_source(*arguments)
