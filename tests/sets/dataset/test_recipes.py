"""Sets with one corrupted copy of each image."""

import json

import pytest

import robustgen
from robustgen.errors import ConfigError
from tests.helpers import cifar_folder, cli, cli_error, kept, maker, put_many, put_photo

COMMON = ("--corruptions", "contrast,gaussian_noise,brightness", "--severities", "1,4", "--jobs", "1")


make = maker(*COMMON)


def read_list(output):
    return [json.loads(line) for line in (output / "mixed.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return put_many(tmp_path_factory.mktemp("mixed") / "photos")


@pytest.fixture(scope="module")
def mixed(source, tmp_path_factory):
    output = tmp_path_factory.mktemp("mixed") / "set"
    make(source, output, "--one-per-image")
    return output


def test_each_copy_is_the_image_of_the_whole_set(source, mixed, tmp_path):
    make(source, tmp_path / "whole")
    rows = read_list(mixed)
    assert [row["key"] for row in rows] == sorted(f"class{i % 3}/{i}.JPEG" for i in range(24))
    for row in rows:
        assert row["file"] == f"mixed/{row['key']}" and row["label"] == int(row["key"][5])
        whole = tmp_path / "whole" / row["corruption"] / str(row["severity"]) / row["key"]
        assert (mixed / row["file"]).read_bytes() == whole.read_bytes()
    assert len({(row["corruption"], row["severity"]) for row in rows}) == 6
    clean = tmp_path / "whole" / "clean" / "class0" / "0.JPEG"
    assert (mixed / "clean/class0/0.JPEG").read_bytes() == clean.read_bytes()
    cli("verify", mixed, "--deep", "all")


def test_the_draw_depends_on_seed_and_key_alone(source, mixed, tmp_path):
    # Another order of the corruptions, fewer images first, and shards.
    other = ("--one-per-image", "--corruptions", "brightness,gaussian_noise,contrast")
    make(source, tmp_path / "set", *other, "--limit", 5)
    assert len(read_list(tmp_path / "set")) == 5
    for part in ("2/2", "1/2"):
        make(source, tmp_path / "set", *other, "--shard", part)
    names = ("SHA256SUMS", "mixed/SHA256SUMS", "mixed.jsonl")
    assert all((tmp_path / "set" / name).read_bytes() == (mixed / name).read_bytes() for name in names)
    # A run of fewer images changes nothing.
    assert kept(make(source, tmp_path / "set", *other, "--limit", 5))
    assert (tmp_path / "set/mixed.jsonl").read_bytes() == (mixed / "mixed.jsonl").read_bytes()
    make(source, tmp_path / "other", "--one-per-image", "--seed", 1)
    assert read_list(tmp_path / "other") != read_list(mixed)


def test_rows_of_arrays_get_class_folders(tmp_path):
    folder, _, labels = cifar_folder(tmp_path, images=3)
    flags = ("--dataset", "cifar-10", "--one-per-image", "--no-clean")
    assert "npy" in make(folder, tmp_path / "set", *flags, status=2).output
    make(folder, tmp_path / "set", *flags, "--format", "png")
    files = [f"mixed/class{label}/0000{index}.png" for index, label in enumerate(labels)]
    assert [row["file"] for row in read_list(tmp_path / "set")] == files
    assert all((tmp_path / "set" / file).is_file() for file in files)


def test_failed_images_are_not_listed(tmp_path):
    put_photo(tmp_path / "photos/cat/a.JPEG")
    (tmp_path / "photos/cat/b.JPEG").write_bytes(b"no picture")
    make(tmp_path / "photos", tmp_path / "set", "--one-per-image", status=1)
    assert [row["key"] for row in read_list(tmp_path / "set")] == ["cat/a.JPEG"]


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (("make-c", "--one-per-image", "--severities", "1"), "mixed was"),
        (("make-c",), "mixed was 'brightness 1 4, "),
        (("make-p", "--set", "one_per_image=true"), "only make-c has it"),
    ],
)
def test_other_sets_are_refused(source, mixed, command, named):
    name, *flags = command
    common = COMMON[:2] if name == "make-c" else ()
    assert named in cli_error(name, "--source", source, *common, *flags, "--output", mixed)


def test_models_are_scored_on_whole_sets(source):
    with pytest.raises(ConfigError, match="only make-c has it"):
        robustgen.evaluate(lambda images: images, source=source, one_per_image=True)
