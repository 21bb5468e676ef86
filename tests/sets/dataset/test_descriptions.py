"""The card and croissant.json of a set: what other libraries, without a network, read of each layout."""

import itertools
import json
from functools import partial

import numpy as np
import pytest
import yaml

from robustgen.plugins.conformance import draw_images
from robustgen.sets.dataset.opening import open_set
from tests.helpers import cifar_folder, cli, cli_error, findings, make_c, manifest, put_photo
from tests.source_writers import WRITERS

# --- the card, as `datasets` reads it -------------------------------------------------------------


FEW = ("--corruptions", "contrast", "--severities", "2.5", "--jobs", "1")
VARIANTS = ["clean", "contrast-2.5"]
SEQUENCES = ("--perturbations", "brightness,tilt", "--edition", "imagenet-64", "--limit", "3", "--jobs", "1")


@pytest.fixture
def load(tmp_path, monkeypatch):
    """`load_dataset`, with a cache of its own, and `names`, which lists the configs of a folder."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    datasets = pytest.importorskip("datasets")
    load = partial(datasets.load_dataset, split="test", cache_dir=str(tmp_path / "cache"))
    return lambda folder, name=None: load(str(folder), name)


def names_in(folder):
    """The names of the configs in the header of the card."""
    header = yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    return [config["config_name"] for config in header["configs"]]


LAYOUTS = {
    "jpeg": ("image", "label"),
    "png": ("image", "label"),
    "webp": ("image", "label"),
    "original": ("image", "label"),
    "webdataset": ("jpg", "cls"),
    "webdataset:png": ("png", "cls"),
    "parquet": ("image", "label"),
}


@pytest.mark.parametrize("form", LAYOUTS)
def test_a_config_has_the_images_and_labels_of_its_variant_alone(photos, tmp_path, load, form):
    out = tmp_path / "photos-c"
    make_c(photos, out, *FEW, "--format", form)
    assert names_in(out) == VARIANTS
    with pytest.raises(ValueError, match=r"available configs: \['clean', 'contrast-2.5'\]"):
        load(out)
    image, label = LAYOUTS[form]
    ours = open_set(out)
    for name, variant in zip(VARIANTS, ours.variants, strict=True):
        found = load(out, name)
        assert found[label] == [0, 0, 0, 1, 1]
        if label == "label":
            assert found.features["label"].names == ["cat", "dog"]
        for index, picture in enumerate(found[image]):
            assert np.array_equal(picture, ours.load(variant, ours.keys_of(variant)[index]))


@pytest.mark.parametrize("form", ["jpeg", "webdataset", "parquet"])
def test_images_without_classes_have_no_label_or_the_same_one(tmp_path, load, form):
    for name in "ab":
        put_photo(tmp_path / "flat" / f"{name}.png")
    make_c(tmp_path / "flat", tmp_path / "out", *FEW, "--format", form)
    found = load(tmp_path / "out", "contrast-2.5")
    labels = {"webdataset": "cls", "parquet": "label"}
    if form == "jpeg":
        assert found.column_names == ["image"] and len(found) == 2
    else:
        assert found[labels[form]] == [0, 0]


def test_folders_in_a_class_are_no_classes(tmp_path, load):
    for name in ("cat/x/a", "dog/y/a"):
        put_photo(tmp_path / "deep" / f"{name}.png")
    make_c(tmp_path / "deep", tmp_path / "out", *FEW)
    assert load(tmp_path / "out", "clean").column_names == ["image"]


def test_one_class_is_a_label_and_one_variant_needs_no_name(tmp_path, load):
    put_photo(tmp_path / "one" / "cat" / "a.png")
    make_c(tmp_path / "one", tmp_path / "out", *FEW, "--no-clean")
    found = load(tmp_path / "out")
    assert found["label"] == [0] and found.features["label"].names == ["cat"]


@pytest.mark.parametrize("form", ["mp4", "webdataset", "parquet"])
def test_sequences_have_a_config_for_each_perturbation(photos, tmp_path, load, form):
    cli("make-p", "--source", photos, "--output", tmp_path / "out", "--format", form, *SEQUENCES)
    assert names_in(tmp_path / "out") == ["brightness", "tilt"]
    label = "cls" if form == "webdataset" else "label"
    assert load(tmp_path / "out", "tilt")[label] == [0, 0, 0]


def test_the_frames_of_sequences_have_no_labels(photos, tmp_path, load):
    cli("make-p", "--source", photos, "--output", tmp_path / "out", "--format", "png", *SEQUENCES)
    found = load(tmp_path / "out", "tilt")
    assert found.column_names == ["image"] and len(found) == 3 * 31


def test_arrays_are_refused_and_their_lists_of_names_are_not_read(tmp_path, load):
    folder, *_ = cifar_folder(tmp_path, 3)
    make_c(folder, tmp_path / "out", *FEW, "--dataset", "cifar-10", "--severities", "2")
    assert names_in(tmp_path / "out") == ["clean", "contrast-2"]
    with pytest.raises(FileNotFoundError, match=r"No .supported. data files found"):
        load(tmp_path / "out", "clean")


@pytest.mark.parametrize(
    ("layout", "other"), [("tsv", "index"), ("jsonl", "question"), ("table-parquet", "label")]
)
def test_tables_keep_their_columns(tmp_path, load, layout, other):
    table, out = WRITERS["table"][layout](tmp_path / "in", draw_images(3)), tmp_path / "out"
    make_c(table, out, *FEW, "--dataset", "table")
    assert names_in(out) == VARIANTS
    clean, corrupted = (load(out, variant) for variant in VARIANTS)
    assert {*clean.column_names} == {*corrupted.column_names} == {"image", other}
    assert len(clean) == 3 and clean[other] == corrupted[other]
    assert clean[0]["image"] != corrupted[0]["image"]


def test_a_table_of_files_is_read_without_the_images_beside_it(tmp_path, load):
    for name in "ab":
        put_photo(tmp_path / "in" / "images" / f"{name}.jpg")
    table = tmp_path / "in" / "questions.jsonl"
    table.write_text('{"image": "images/a.jpg", "text": "?"}\n{"image": "images/b.jpg", "text": "!"}\n')
    make_c(table, tmp_path / "out", *FEW, "--dataset", "table")
    found = load(tmp_path / "out", "contrast-2.5")
    assert found["image"] == ["images/a.jpg", "images/b.jpg"] and found["text"] == ["?", "!"]


MIRROR = (*FEW, "--format", "original", "--set", "mirror=copy")


def test_mirrored_metadata_becomes_columns(tmp_path, load):
    put_photo(tmp_path / "in" / "a.JPG")
    (tmp_path / "in" / "metadata.jsonl").write_text('{"file_name": "a.JPG", "text": "a cat"}\n')
    make_c(tmp_path / "in", tmp_path / "out", *MIRROR)
    found = load(tmp_path / "out", "contrast-2.5")
    assert found["text"] == ["a cat"] and found["image"][0].size == (40, 36)


def test_mirrored_maps_and_annotations_are_not_read_as_samples(tmp_path, load):
    for number in range(2):
        put_photo(tmp_path / "in" / "images" / "val" / "x" / f"{number}_image.jpg", seed=number)
        put_photo(tmp_path / "in" / "masks" / "val" / "x" / f"{number}_mask.png")
        for suffix in ("txt", "xml"):
            (tmp_path / "in" / f"{number}.{suffix}").write_text("0 0 0 1 1\n")
    make_c(tmp_path / "in", tmp_path / "out", *MIRROR, "--subset", "images/*_image.jpg")
    found = load(tmp_path / "out", "contrast-2.5")
    assert found.column_names == ["image"] and len(found) == 2


def test_verify_misses_the_card(photos, tmp_path):
    make_c(photos, tmp_path / "out", *FEW)
    card = tmp_path / "out" / "README.md"
    assert manifest(tmp_path / "out")["digest"] in card.read_text(encoding="utf-8")
    card.unlink()
    assert "missing   README.md" in cli("verify", tmp_path / "out", status=1).output


# --- croissant.json -------------------------------------------------------------------------------


CROISSANT_FLAGS = (
    "--corruptions",
    "fog,contrast",
    "--severities",
    "1,3",
    "--jobs",
    "1",
    "--edition",
    "imagenet-64",
)


@pytest.fixture(scope="module")
def sets(photos, tmp_path_factory):
    root = tmp_path_factory.mktemp("sets")
    for name in ("jpeg", "webdataset", "parquet", "npy"):
        make_c(photos, root / name, *CROISSANT_FLAGS, "--format", name)
    cli("make-p", "--source", photos, "--output", root / "mp4", *CROISSANT_FLAGS[4:], "--limit", "1")
    return root


def load_croissant(path, monkeypatch, tmp_path):
    mlcroissant = pytest.importorskip("mlcroissant")
    monkeypatch.setenv("CROISSANT_CACHE", str(tmp_path))
    return mlcroissant.Dataset(jsonld=path / "croissant.json")


@pytest.mark.parametrize(
    ("name", "records"),
    [("jpeg", "levels"), ("webdataset", "fog-3"), ("parquet", "rows"), ("npy", None), ("mp4", None)],
)
def test_mlcroissant_reads_it(sets, name, records, monkeypatch, tmp_path):
    dataset = load_croissant(sets / name, monkeypatch, tmp_path)
    content = json.loads((sets / name / "croissant.json").read_text())
    assert str(sets) not in json.dumps(content)
    assert [each.uuid for each in dataset.metadata.record_sets][:1] == (
        [records] if records else []
    ) or records
    if records:
        first, *_ = itertools.islice(dataset.records(records), 3)
        assert first[f"{records}/image"].size == (64, 64)


def test_records_of_a_tree_say_what_each_image_is(sets, monkeypatch, tmp_path):
    dataset = load_croissant(sets / "jpeg", monkeypatch, tmp_path)
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
    for licence, line in (
        ("https://creativecommons.org/licenses/by-nc/4.0/", "license: cc-by-nc-4.0"),
        ("Apache-2.0", "license: apache-2.0"),
        ("https://example.org/terms", 'license_link: "https://example.org/terms"'),
    ):
        fields.write_text(f"license: {licence}\n")
        cli("croissant", sets / "npy", "--rai", fields)
        assert line in (sets / "npy" / "README.md").read_text().splitlines()
    assert not findings(sets / "npy", status=0)
    fields.write_text("distribution: []\n")
    assert "distribution: cannot be set; choose from" in cli_error("croissant", sets / "npy", "--rai", fields)


def test_verify_names_a_description_of_another_set(sets, tmp_path):
    path = sets / "mp4" / "croissant.json"
    kept = path.read_text()
    path.write_text(kept.replace('"sha256": "', '"sha256": "0'))
    assert findings(sets / "mp4") == ["changed croissant.json"]
    path.write_text(kept)


def test_croissant_of_no_set(tmp_path):
    assert "dataset.json" in cli_error("croissant", tmp_path)
    assert "no such folder" in cli_error("croissant", tmp_path / "none")


def test_images_without_classes_have_no_label_in_croissant(tmp_path):
    put_photo(tmp_path / "flat" / "a.png")
    make_c(tmp_path / "flat", tmp_path / "out", "--corruptions", "contrast", "--severities", "1")
    described = json.loads((tmp_path / "out" / "croissant.json").read_text())
    assert {field["name"] for records in described["recordSet"] for field in records["field"]} == {
        "image", "path", "corruption", "severity",
    }  # fmt: skip
