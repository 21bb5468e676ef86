"""Roots of several splits whose class folders have the same names."""

import pytest

from robustgen.errors import SourceError
from robustgen.pixels.benchmarks.editions import EDITIONS
from robustgen.sets.sources.base import Options
from robustgen.sets.sources.opening import open_source
from robustgen.torch import SourceDataset
from tests.helpers import cli, cli_error, put_photo
from tests.sets.sources.test_trees import put_tar, put_zip

FEW = ("--corruptions", "contrast", "--severities", "1", "--jobs", "1")


@pytest.fixture
def splits(tmp_path):
    """A root with `train` and `valid`, and one class in both."""
    for name in ("train/cat/1.jpg", "train/dog/1.jpg", "valid/cat/1.jpg", "valid/owl/2.jpg"):
        put_photo(tmp_path / "set" / name)
    return tmp_path / "set"


# The corruption is not for 28 pixels.
@pytest.mark.parametrize("edition", [each for each in EDITIONS if each != "mnist"])
def test_splits_are_no_classes_in_any_edition(splits, edition):
    message = cli_error("make-c", "--source", splits, "--edition", edition, *FEW, "--dry-run")
    assert message == (
        f"{splits}: valid and train have the same class folders, such as 'cat': choose one with "
        "--split valid (else use `require_classes: false` in a config, or --set require_classes=false)"
    )


def test_ways_out_of_splits(splits, tmp_path):
    command = ("make-c", "--source", splits, *FEW)
    cli(*command, "--split", "valid", "--output", tmp_path / "valid")
    assert (tmp_path / "valid/clean/owl/2.jpeg").exists() or (tmp_path / "valid/clean/owl/2.jpg").exists()
    cli(*command, "--set", "require_classes=false", "--dry-run")
    # Each variant is a data set with all splits.
    cli("make-c", "--dataset", "coco-c", "--source", splits, *FEW, "--dry-run")
    with pytest.raises(SourceError, match="valid and train have the same class folders: name one of these"):
        SourceDataset(splits)
    assert len(SourceDataset(splits / "train")) == 2 and len(SourceDataset(splits, classes=False)) == 4


def test_folders_of_other_classes_are_no_splits(tmp_path):
    for name in ("train/steam/1.jpg", "test/tube/1.jpg", "test/rig/2.jpg"):
        put_photo(tmp_path / "set" / name)
    cli("make-c", "--source", tmp_path / "set", *FEW, "--dry-run")


@pytest.mark.parametrize("put", [put_tar, put_zip])
def test_an_archive_has_splits_too(splits, tmp_path, put):
    files = {f"set/{path.relative_to(splits)}": path.read_bytes() for path in splits.rglob("*.jpg")}
    suffix = "tar" if put is put_tar else "zip"
    archive = put(tmp_path / f"set.{suffix}", files)
    assert "choose one with --split valid" in cli_error("make-c", "--source", archive, *FEW, "--dry-run")
    source = open_source(archive, options=Options(split="valid"))
    assert source.keys() == ("cat/1.jpg", "owl/2.jpg") and source.classes == ("cat", "owl")
    assert source.read_bytes("owl/2.jpg") == files["set/valid/owl/2.jpg"]
    with pytest.raises(SourceError, match="contains no folder of the split 'test'"):
        open_source(archive, options=Options(split="test"))
