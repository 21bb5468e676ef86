"""A set is complete or says that it is not, at whichever write a run dies."""

import shutil
from functools import partial
from pathlib import Path

import pytest

from robustgen.errors import RobustgenError
from robustgen.files.storage import open_store
from robustgen.lab.inspection.verify import verify
from tests.crashing import count_writes, die, list_unit_ends
from tests.helpers import findings, maker, manifest, put_photo, slow_after, whole, words
from tests.servers import BUCKET

SMALL = ("--edition", "imagenet@32", "--corruptions", "contrast", "--severities", "1", "--jobs", "1")
FORMATS = {
    "jpeg": ("make-c", *SMALL),
    "mirror": ("make-c", *SMALL, "--format", "original", "--set", "mirror=copy"),
    "npy": ("make-c", *SMALL, "--format", "npy"),
    "npz": ("make-c", *SMALL, "--format", "npz"),
    "webdataset": ("make-c", *SMALL, "--format", "webdataset", "--set", "shard_size=1"),
    "parquet": ("make-c", *SMALL, "--format", "parquet"),
    "mp4": ("make-p", "--perturbations", "translate", "--format", "mp4", "--jobs", "1"),
}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Two photographs with annotations."""
    root = tmp_path_factory.mktemp("source")
    put_photo(root / "cat" / "a.JPEG", seed=1)
    put_photo(root / "dog" / "b.JPEG", seed=2)
    (root / "notes").mkdir()
    (root / "notes" / "a.json").write_text("{}")
    return root


def make_from(source, form):
    """Return a function that makes a set of this format in an output."""
    command, *usual = FORMATS[form]
    return partial(maker(*usual, command=command), source)


def content(location):
    """Return path to bytes of all files of an output, except for its state."""
    store = open_store(location)
    paths = [entry.path for entry in store.list()]
    return {path: store.read(path) for path in paths if not path.startswith(".robustgen/")}


def accept(output):
    """Return the content of an output in which `verify` finds nothing, else None."""
    try:
        problems = verify(output).problems
    except RobustgenError:
        return None
    return None if problems else content(output)


def hold(root, begin, act, want, first=0):
    """Die at each write of `act` from number `first`: `verify` accepts only what the next run leaves alone.

    Each output lies in a folder of its own below `root`, and is prepared by `begin`.
    """
    begin(f"{root}/all")
    writes = count_writes(lambda: act(f"{root}/all"))
    assert len(writes) > first
    for number in range(first, len(writes)):
        output = f"{root}/{number}"
        begin(output)
        die(lambda output=output: act(output), number)
        accepted = accept(output)
        act(output)
        assert content(output) == want, writes[number]
        assert accepted in (None, want), writes[number]


@pytest.mark.parametrize("form", FORMATS)
def test_verify_accepts_no_set_whose_run_died_while_finishing(form, source, tmp_path):
    make = make_from(source, form)
    writes = count_writes(lambda: make(tmp_path / "whole"))
    last = list_unit_ends(writes)[-1]
    hold(tmp_path / "dead", lambda output: None, make, whole(tmp_path / "whole"), first=last)


@pytest.mark.slow("many runs on S3")
def test_verify_accepts_no_set_on_s3_whose_run_died_while_finishing(s3, source, tmp_path):
    make = make_from(source, "webdataset")
    make(tmp_path / "whole")
    hold(f"s3://{BUCKET}", lambda output: None, make, content(tmp_path / "whole"), first=12)


def copy_of(made):
    """Return a function that prepares an output as a copy of `made`."""
    return lambda output: shutil.copytree(made, output)


@pytest.mark.parametrize("form", slow_after(3, "many runs", [*words("mirror webdataset npy npz parquet")]))
def test_verify_accepts_no_set_whose_extension_died(form, source, tmp_path):
    make, more = make_from(source, form), ("--severities", "1,2")
    make(tmp_path / "whole", *more)
    make(tmp_path / "begun", "--limit", "1")
    # Before the first write, the set is still the finished smaller one.
    begin, want = copy_of(tmp_path / "begun"), whole(tmp_path / "whole")
    hold(tmp_path / "dead", begin, lambda output: make(output, *more), want, first=1)


@pytest.mark.parametrize("form", slow_after(1, "many runs", ["npy", "npz", "webdataset", "parquet", "jpeg"]))
def test_verify_accepts_no_united_outputs_whose_run_died(form, source, tmp_path):
    make = make_from(source, form)
    for name in ("pixelate", "brightness"):
        make(tmp_path / name, "--corruptions", f"{name},contrast")
        shutil.copytree(tmp_path / name, tmp_path / "begun", dirs_exist_ok=True)
    union = ("--corruptions", "brightness,contrast,pixelate")
    make(tmp_path / "whole", *union)
    begin, want = copy_of(tmp_path / "begun"), whole(tmp_path / "whole")
    hold(tmp_path / "dead", begin, lambda output: make(output, *union), want)


@pytest.mark.parametrize("form", ["jpeg", "webdataset"])
def test_verify_accepts_no_set_whose_repair_died(form, source, tmp_path):
    images = Path(shutil.copytree(source, tmp_path / "images"))
    make = make_from(images, form)
    photo = (images / "dog" / "b.JPEG").read_bytes()
    (images / "dog" / "b.JPEG").write_bytes(bytes(len(photo)))
    make(tmp_path / "failed", status=1)
    (images / "dog" / "b.JPEG").write_bytes(photo)
    make(tmp_path / "whole")
    hold(tmp_path / "dead", copy_of(tmp_path / "failed"), make, whole(tmp_path / "whole"), first=1)


@pytest.mark.parametrize("form", ["jpeg", "parquet"])
def test_verify_accepts_no_set_that_died_while_being_overwritten(form, source, tmp_path):
    make, other = make_from(source, form), ("--seed", "1", "--format", "png", "--overwrite")
    make(tmp_path / "old")
    make(tmp_path / "whole", *other)
    begin, want = copy_of(tmp_path / "old"), whole(tmp_path / "whole")
    hold(tmp_path / "dead", begin, lambda output: make(output, *other), want, first=1)


@pytest.mark.parametrize("form", ["jpeg", "npy"])
def test_verify_that_dies_while_it_completes_merged_shards_can_be_repeated(form, source, tmp_path):
    make = make_from(source, form)
    for number in ("1", "2"):
        make(tmp_path / number, "--shard", f"{number}/2")
        shutil.copytree(tmp_path / number, tmp_path / "merged", dirs_exist_ok=True)
    make(tmp_path / "whole")
    want = whole(tmp_path / "whole")
    hold(tmp_path / "dead", copy_of(tmp_path / "merged"), verify, want)
    assert manifest(tmp_path / "whole")["complete"]


def test_merged_shards_whose_lists_know_only_some_failures_are_unfinished(source, tmp_path):
    images = Path(shutil.copytree(source, tmp_path / "images"))
    for name in ("cat/b.JPEG", "dog/a.JPEG"):
        (images / name).write_bytes(b"")
    make = make_from(images, "webdataset")
    for number in ("1", "2"):
        make(tmp_path / number, "--shard", f"{number}/2", status=1)
        shutil.copytree(tmp_path / number, tmp_path / "merged", dirs_exist_ok=True)
    (line,) = findings(tmp_path / "merged")
    assert line.startswith("unfinished dataset.json: ") and "companions" in line
    assert not manifest(tmp_path / "merged")["complete"]
    make(tmp_path / "merged", status=1)
    make(tmp_path / "whole", status=1)
    assert whole(tmp_path / "merged") == whole(tmp_path / "whole")
