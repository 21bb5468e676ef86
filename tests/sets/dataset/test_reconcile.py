"""What a run creates and deletes, given a plan, the records and the files of an output."""

import json
import shutil
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from robustgen.errors import OutputError
from robustgen.files.ledger import Record
from robustgen.files.set_files import AnotherSetError, WrittenFile
from robustgen.lab import plans
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.sets.dataset.reconcile import reconcile
from robustgen.sets.dataset.run import run_plan
from robustgen.sets.formats.base import WorkUnit
from tests.helpers import cli, findings, kept, manifest, put_photo, slow_after, whole

# --- the function --------------------------------------------------------------------------------


def planned(images, names, *, arrays=True, levels=(1,), known="abcd"):
    """A plan of arrays or of a tree: `images` and `names` are letters, each image has a byte."""
    variants = tuple(Variant(name, level, f"{name}/{level}") for name in names for level in levels)

    def cut():
        groups = [tuple(v for v in variants if v.name == name) for name in names] if arrays else [variants]
        lists = [images] if arrays else images
        parts = ((tuple(keys), group) for keys in lists for group in groups)
        return (WorkUnit(number, 0, *part) for number, part in enumerate(parts))

    files = tuple(f"{name}.npy" for name in names) if arrays else ()
    return SimpleNamespace(
        keys=tuple(images),
        refused={},
        variants=variants,
        writer=SimpleNamespace(file_per="operation" if arrays else "image", arrays=files),
        source=SimpleNamespace(keys=lambda: tuple(known)),
        store=SimpleNamespace(location="out"),
        mirror=None,
        cut=cut,
    )


def recorded(plan, **lost):
    """The records of a plan that was carried out, by name, without those named `lost`."""
    records = {}
    for unit in plan.cut():
        name = unit.variants[0].name
        paths = (
            [f"{name}.npy"] if plan.writer.arrays else [v.path(k) for v in unit.variants for k in unit.keys]
        )
        failed = unit.keys[-1] if name in lost.get("failed", "") else None
        size = len(unit.keys) * len(unit.variants)
        records[unit.name] = Record(
            dict.fromkeys(unit.keys, (1, "")),
            [variant.folder for variant in unit.variants],
            [] if failed else [WrittenFile(path, size, unit.name) for path in paths],
            [{"key": failed, "variant": unit.variants[0].folder, "reason": "no"}] if failed else [],
        )
    return records


def compare(plan, records, files=None, sizes=None):
    """The names of pending units' operations, the deleted records' files, and the unwritten arrays.

    `files` are those on the disk, path to record; without them, each record's own.
    """
    held = files or {file.path: file for record in records.values() for file in record.files}
    found = reconcile(
        plan,
        [*plan.cut()],
        sizes or dict.fromkeys(plan.keys, 1),
        records.items,
        lambda record: all(held.get(file.path, file)[1] == file.size for file in record.files),
        lambda file: held[file.path] == file,
    )
    return (
        "".join(dict.fromkeys(variant.name for unit in found.units for variant in unit.variants)),
        sorted(path for paths in found.void.values() for path in paths),
        found.unwritten,
    )


def test_a_record_of_a_file_under_another_name_costs_nothing():
    old = recorded(planned("ab", "fg"))
    doubled = old | {f"000001-{name}": record for name, record in old.items()}
    assert compare(planned("ab", "gf"), doubled) == ("", [], [])


@pytest.mark.parametrize(
    ("before", "after", "pending", "deleted"),
    [
        # The same images: files that the plan does not name stay.
        (("ab", "fg"), ("ab", "f"), "", []),
        (("ab", "f"), ("ab", "fg"), "g", []),
        # More images: each array is written again, and stays until then.
        (("ab", "fg"), ("abc", "fg"), "fg", []),
    ],
)
def test_arrays_stay_until_they_are_replaced(before, after, pending, deleted):
    plan = planned(*after)
    old, new = recorded(planned(*before)), recorded(plan)
    assert compare(plan, old)[:2] == (pending, deleted)
    # The replaced records are deleted without the files, which the new records name.
    assert compare(plan, new | old, {f.path: f for r in new.values() for f in r.files}) == ("", [], [])


def test_an_array_that_cannot_be_written_leaves_the_earlier_one():
    plan = planned("abc", "fg")
    old, new = recorded(planned("ab", "fg")), recorded(plan, failed="f")
    files = {file.path: file for record in (old | new).values() for file in record.files}
    assert compare(plan, old | new, files) == ("", [], ["f.npy"])


def test_a_file_of_the_same_size_belongs_to_the_record_with_its_digest():
    plan = planned("ab", "f")
    new = recorded(plan)
    (record,) = new.values()
    # Another list of classes, for instance.
    other = replace(record, files=[record.files[0]._replace(sha256="x")], shared="x")
    for held, pending in ((record.files[0], ""), (other.files[0], "f")):
        assert compare(plan, new | {"other": other}, {"f.npy": held})[:2] == (pending, [])


@pytest.mark.parametrize(
    ("before", "after", "sizes", "lacks"),
    [
        # Arrays of fewer images, of others, or of fewer severities.
        (("abc", "f"), ("ab", "f"), {}, "'c'"),
        (("ab", "f"), ("cd", "f"), {}, "'a'"),
        (("ab", "fg"), ("abc", "f"), {}, "'g/1'"),
        # An image has changed, and the plan lacks other outputs of it.
        (("ab", "fg"), ("ab", "f"), {"a": 2, "b": 1}, "'g/1'"),
    ],
)
@pytest.mark.parametrize("arrays", [True, False])
def test_a_plan_that_would_replace_more_than_it_creates_is_refused(before, after, sizes, lacks, arrays):
    old, plan = recorded(planned(*before, arrays=arrays)), planned(*after, arrays=arrays)
    if arrays or sizes:
        with pytest.raises(AnotherSetError, match=f"together with {lacks}, which this run lacks"):
            compare(plan, old, sizes=sizes)
    else:
        assert compare(plan, old)[1] == []


def test_files_of_a_changed_image_are_deleted_but_for_those_of_other_records():
    plan = planned("ab", "fg", arrays=False)
    records = recorded(plan)
    # Only the record of "a" is void; another names one of its files.
    assert compare(plan, records, sizes={"a": 2, "b": 1}) == ("fg", ["f/1/a", "g/1/a"], [])


# --- runs ----------------------------------------------------------------------------------------

FORMS = {
    "jpeg": (),
    "npy": ("--format", "npy"),
    "npz": ("--format", "npz"),
    "webdataset": ("--format", "webdataset", "--set", "shard_size=1"),
    "parquet": ("--format", "parquet"),
    "table": ("--dataset", "table"),
}
FORMATS = pytest.mark.parametrize("form", slow_after(3, "several runs of each format", [*FORMS]))


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Two photographs, as files and in a table."""
    root = tmp_path_factory.mktemp("sources")
    names = ["cat/a.JPEG", "dog/b.JPEG"]
    paths = [put_photo(root / "images" / name, seed=seed) for seed, name in enumerate(names)]
    lines = (json.dumps({"image": b64encode(path.read_bytes()).decode()}) for path in paths)
    (root / "table.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return root


def flags_of(sources, form, corruptions):
    source = sources / ("table.jsonl" if form == "table" else "images")
    common = ("--edition", "imagenet@32", "--severities", "1", "--jobs", "1", "--corruptions", corruptions)
    return ("--source", source, *common, *FORMS[form])


@FORMATS
def test_outputs_of_different_corruptions_are_united(form, sources, tmp_path):
    """Each of the two has `contrast`, at another position."""
    for name, corruptions in {"a": "contrast,pixelate", "b": "brightness,contrast"}.items():
        cli("make-c", *flags_of(sources, form, corruptions), "--output", tmp_path / name)
        shutil.copytree(tmp_path / name, tmp_path / "out", dirs_exist_ok=True)
    union = flags_of(sources, form, "contrast,brightness,pixelate")
    assert kept(cli("make-c", *union, "--output", tmp_path / "out")) == 8
    cli("make-c", *union, "--output", tmp_path / "one")
    # The other copy's description of the source is the same.
    assert whole(tmp_path / "out") == whole(tmp_path / "one")


@FORMATS
def test_two_runs_of_different_corruptions_meet(form, sources, tmp_path):
    first, second = (
        plan_of(tmp_path / "out", *flags_of(sources, form, names))
        for names in ("contrast,pixelate", "brightness,contrast")
    )
    run_plan(first, on_begin=lambda: run_plan(second))
    union = flags_of(sources, form, "contrast,brightness,pixelate")
    cli("make-c", *union, "--output", tmp_path / "out")
    cli("make-c", *union, "--output", tmp_path / "one")
    assert whole(tmp_path / "out") == whole(tmp_path / "one")


@FORMATS
def test_runs_of_different_images_meet(form, sources, tmp_path):
    """A run that loses its files to another says so; its command then creates them again."""
    flags = flags_of(sources, form, "contrast")
    more, fewer = (plan_of(tmp_path / "out", *flags, *limit) for limit in ((), ("--limit", "1")))
    if form == "jpeg":
        run_plan(fewer, on_begin=lambda: run_plan(more))
    else:
        with pytest.raises(OutputError, match="this run lacks"):
            run_plan(fewer, on_begin=lambda: run_plan(more))
    cli("make-c", *flags, "--output", tmp_path / "out")
    cli("make-c", *flags, "--output", tmp_path / "one")
    assert whole(tmp_path / "out") == whole(tmp_path / "one")


@FORMATS
def test_fewer_images_leave_a_finished_set_alone(form, sources, tmp_path):
    flags = (*flags_of(sources, form, "contrast"), "--output", tmp_path / "out")
    cli("make-c", *flags)
    before = whole(tmp_path / "out")
    cli("make-c", *flags, "--limit", "1", status=0 if form == "jpeg" else 2)
    assert whole(tmp_path / "out") == before


@pytest.mark.parametrize("form", ["npy", "npz"])
def test_arrays_stay_if_an_added_image_cannot_be_read(form, sources, tmp_path):
    sources = Path(shutil.copytree(sources, tmp_path / "sources"))
    flags = (*flags_of(sources, form, "contrast"), "--output", tmp_path / "out")
    cli("make-c", *flags)
    before = whole(tmp_path / "out")
    damaged = sources / "images" / "cat" / "z.JPEG"
    damaged.write_bytes(b"nothing")
    for _ in range(2):
        said = cli("make-c", *flags, status=1)
        assert f"contrast.{form} was not written" in said.stderr
        assert not kept(said)
        assert whole(tmp_path / "out")[f"contrast.{form}"] == before[f"contrast.{form}"]
        assert not manifest(tmp_path / "out")["complete"]
    damaged.unlink()
    cli("make-c", *flags)
    assert whole(tmp_path / "out") == before
    put_photo(damaged, seed=5)
    cli("make-c", *flags)
    cli("make-c", *flags_of(sources, form, "contrast"), "--output", tmp_path / "one")
    assert whole(tmp_path / "out") == whole(tmp_path / "one")
    assert findings(tmp_path / "out", status=0) == []


def plan_of(output, *flags):
    """The plan of a make-c command."""
    path = output.with_name("plan.json")
    cli("make-c", *flags, "--output", output, "--write-plan", path)
    return plans.read_plan(path)
