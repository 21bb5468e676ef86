"""croissant.json: valid for mlcroissant, read back by it, and completed by `robustgen croissant`."""

import itertools
import json

import pytest

from tests.helpers import cli, cli_error, findings, make_c, put_photo

mlcroissant = pytest.importorskip("mlcroissant")
FEW = ("--corruptions", "fog,contrast", "--severities", "1,3", "--jobs", "1", "--edition", "imagenet-64")


@pytest.fixture(scope="module")
def sets(photos, tmp_path_factory):
    root = tmp_path_factory.mktemp("sets")
    for name in ("jpeg", "webdataset", "parquet", "npy"):
        make_c(photos, root / name, *FEW, "--format", name)
    cli("make-p", "--source", photos, "--output", root / "mp4", *FEW[4:], "--limit", "1")
    return root


def load(path, monkeypatch, tmp_path):
    monkeypatch.setenv("CROISSANT_CACHE", str(tmp_path))
    return mlcroissant.Dataset(jsonld=path / "croissant.json")


@pytest.mark.parametrize(
    ("name", "records"),
    [("jpeg", "levels"), ("webdataset", "fog-3"), ("parquet", "rows"), ("npy", None), ("mp4", None)],
)
def test_mlcroissant_reads_it(sets, name, records, monkeypatch, tmp_path):
    dataset = load(sets / name, monkeypatch, tmp_path)
    content = json.loads((sets / name / "croissant.json").read_text())
    assert str(sets) not in json.dumps(content)
    assert [each.uuid for each in dataset.metadata.record_sets][:1] == (
        [records] if records else []
    ) or records
    if records:
        first, *_ = itertools.islice(dataset.records(records), 3)
        assert first[f"{records}/image"].size == (64, 64)


def test_records_of_a_tree_say_what_each_image_is(sets, monkeypatch, tmp_path):
    dataset = load(sets / "jpeg", monkeypatch, tmp_path)
    records = [*dataset.records("levels")]
    assert len(records) == 20
    for record in records:
        path = record["levels/path"].decode()
        told = [record[f"levels/{name}"].decode() for name in ("corruption", "severity", "label")]
        assert path.split("/")[:3] == told
    assert {record["variants/label"] for record in dataset.records("variants")} == {b"cat", b"dog"}


def test_the_command_adds_what_only_the_user_knows(sets, tmp_path):
    fields = tmp_path / "fields.yaml"
    fields.write_text("datePublished: 2026-01-02\nurl: https://example.org\nrai:dataBiases: unknown\n")
    assert "missing fields: creator" in cli("croissant", sets / "npy", "--rai", fields).stdout
    content = json.loads((sets / "npy" / "croissant.json").read_text())
    assert (content["datePublished"], content["rai:dataBiases"]) == ("2026-01-02", "unknown")
    assert not findings(sets / "npy", status=0)
    fields.write_text("distribution: []\n")
    assert "distribution: cannot be set; choose from" in cli_error("croissant", sets / "npy", "--rai", fields)


def test_verify_names_a_description_of_another_set(sets, tmp_path):
    path = sets / "mp4" / "croissant.json"
    kept = path.read_text()
    path.write_text(kept.replace('"sha256": "', '"sha256": "0'))
    assert findings(sets / "mp4") == ["changed croissant.json"]
    path.write_text(kept)


def test_no_set(tmp_path):
    assert "dataset.json" in cli_error("croissant", tmp_path)


def test_images_without_classes_have_no_label(tmp_path):
    put_photo(tmp_path / "flat" / "a.png")
    make_c(tmp_path / "flat", tmp_path / "out", "--corruptions", "contrast", "--severities", "1")
    described = json.loads((tmp_path / "out" / "croissant.json").read_text())
    assert {field["name"] for records in described["recordSet"] for field in records["field"]} == {
        "image", "path", "corruption", "severity",
    }  # fmt: skip
