"""The images of a source that a config selects."""

import pytest

from robustgen.sets.dataset.selection import sample_keys
from tests.helpers import ONE, THREE, cli, cli_error, make_c, manifest, put_photo


def images_of(output, variant="clean"):
    return sorted(path.relative_to(output / variant).as_posix() for path in (output / variant).rglob("*.J*"))


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    """Three classes of 6, 2 and 1 images."""
    root = tmp_path_factory.mktemp("uneven")
    for folder, count in (("a", 6), ("b", 2), ("c", 1)):
        for i in range(count):
            put_photo(root / folder / f"{i}.JPEG", seed=i)
    return root


def test_a_sample_has_of_every_class_as_many_as_can_be(uneven, tmp_path):
    counts = {}
    for size in (3, 5, 6, 9):
        make_c(uneven, tmp_path / str(size), *ONE, "--sample", size)
        names = images_of(tmp_path / str(size))
        counts[size] = [sum(name.startswith(letter) for name in names) for letter in "abc"]
    assert counts == {3: [1, 1, 1], 5: [2, 2, 1], 6: [3, 2, 1], 9: [6, 2, 1]}
    assert set(images_of(tmp_path / "3")) < set(images_of(tmp_path / "5")) < set(images_of(tmp_path / "6"))


def test_a_sample_is_decided_by_the_seed():
    keys, label = [f"{i:05d}" for i in range(1000)], lambda _: 0
    samples = [sample_keys(keys, label, 20, seed) for seed in (0, 0, 1)]
    assert samples[0] == samples[1] != samples[2]
    assert all(list(sample) == sorted(sample) for sample in samples)


def test_a_sample_of_more_images_than_there_are_is_all_of_them(uneven, tmp_path):
    make_c(uneven, tmp_path / "out", *ONE, "--sample", 100_000)
    assert manifest(tmp_path / "out")["images"] == 9
    flags = ("--source", uneven, "--output", tmp_path / "none", "--sample", "2", "--limit", "2")
    assert cli_error("make-c", *flags).startswith("sample and limit ")


def test_the_keys_of_a_source_make_a_subset(uneven, tmp_path):
    keys = cli("list", "--keys", uneven).stdout
    assert keys.splitlines() == [*(f"a/{i}.JPEG" for i in range(6)), "b/0.JPEG", "b/1.JPEG", "c/0.JPEG"]
    (tmp_path / "subset.txt").write_text("".join(keys.splitlines(keepends=True)[5:7]))
    make_c(uneven, tmp_path / "out", *THREE, "--subset", f"@{tmp_path}/subset.txt")
    assert images_of(tmp_path / "out") == ["a/5.JPEG", "b/0.JPEG"]
