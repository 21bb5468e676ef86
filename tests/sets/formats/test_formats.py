"""The table of formats: each passes the conformance test for each benchmark that it supports."""

from pathlib import Path

import pytest

from robustgen.files.storage.local import LocalStore
from robustgen.pixels.benchmarks.kinds import IMAGENET_P
from robustgen.plugins.conformance import check_format
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.formats import FORMATS, list_encodings, list_formats
from robustgen.sets.formats.base import cut_by_images
from tests.helpers import cli, cli_error, make_c, put_photo
from tests.source_writers import WRITERS

TABLES = WRITERS["table"]


@pytest.mark.parametrize("name", [*(name for name in FORMATS if name != "table"), "webdataset:png"])
def test_a_format_conforms(name):
    check_format(name)


@pytest.mark.parametrize(
    ("name", "layout"), [*(("table", layout) for layout in TABLES), ("table:webp", "jsonl-files")]
)
def test_tables_conform(name, layout):
    check_format(name, TABLES[layout], "table")


@pytest.mark.parametrize(("command", "name"), [("make-c", "mp4"), ("make-p", "webp")])
def test_a_format_of_the_other_benchmark_is_refused(photos, tmp_path, command, name):
    message = cli_error(command, "--source", photos, "--output", tmp_path / "out", "--format", name)
    known = ", ".join(list_formats(command[-1]))
    assert message == f"format: {command} of images writes no {name} (known: {known})"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("webdatset", "--format: unknown format 'webdatset' (did you mean 'webdataset'?)"),
        ("webdataset:pgn", "unknown encoding of webdataset 'pgn' (did you mean 'png'?)"),
        ("webdataset:npy", "unknown encoding of webdataset 'npy' (known: {every})"),
        ("jpeg:png", "jpeg has no encodings; write jpeg, not jpeg:png"),
        ("webdataset:mp4", "format: shards of make-c of images cannot be mp4 (known: {of_c})"),
    ],
)
def test_a_format_that_does_not_exist_is_refused(photos, tmp_path, form, message):
    flags = ("--source", photos, "--output", tmp_path / "out", "--format", form)
    of_c, of_p = list_encodings("c"), list_encodings("p")
    every = ", ".join(dict.fromkeys([*of_c, *of_p]))
    assert cli_error("make-c", *flags) == message.format(every=every, of_c=", ".join(of_c))


def test_the_documentation_names_every_format():
    page = (Path(__file__).parents[3] / "docs" / "use" / "formats.md").read_text()
    assert all(f"`{name}`" in page for name in FORMATS)


@pytest.mark.parametrize("form", ["npy", "webdataset", "parquet"])
def test_names_may_hold_what_parts_lines_elsewhere(tmp_path, form):
    names = ["cat/\\.png", "cat/a\x0cb.png", "cat/c\u2028d.png", "cat/e\nf.png", "cat/g\\nh.png"]
    names.sort()
    for name in names:
        put_photo(tmp_path / "source" / name, height=32, width=32)
    flags = ("--corruptions", "contrast", "--severities", "1", "--no-clean", "--edition", "cifar-10")
    cli("make-c", "--source", tmp_path / "source", "--output", tmp_path / "set", "--format", form, *flags)
    dataset = open_set(tmp_path / "set")
    keys = dataset.keys_of(dataset.variants[0])
    assert [key.partition(".")[0] for key in keys] == [name.partition(".")[0] for name in names]


def test_opening_a_finished_set_does_not_list_all_its_files(photos, tmp_path, monkeypatch):
    make_c(photos, tmp_path / "out", "--corruptions", "contrast", "--jobs", "1")
    listed, walk = [], LocalStore._walk

    def count(self, prefix):
        for found in walk(self, prefix):
            listed.append(found)
            yield found

    monkeypatch.setattr(LocalStore, "_walk", count)
    dataset = open_set(tmp_path / "out")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(dataset.variants) > 1
    assert len(listed) < len(files) / 2


def test_few_sequences_are_enough_work_for_many_cores():
    variants = IMAGENET_P.variants(IMAGENET_P.common, (1,))
    for images, outputs in {1: [1] * 10, 16: [3, 3, 3, 1] * 16, 64: [10] * 64, 130: [20] * 65}.items():
        units = [*cut_by_images(range(images), variants, is_slow=True)]
        assert [unit.count_outputs() for unit in units] == outputs
    assert [unit.count_outputs() for unit in cut_by_images(["image"], variants)] == [10]


def test_a_large_plan_has_4096_units_at_most():
    assert len([*cut_by_images(range(100_000), ())]) == 4000
