"""Sets whose class folders lie at the root: no other folder lies there, and their state lies beside them."""

import shutil

import pytest
from PIL import Image

from robustgen.files.set_files import ERRORS, NOTES
from tests.helpers import cli, cli_error, errors_of, kept, run_negatives, tree

CLASSES = ("cat", "dog")
pytestmark = pytest.mark.usefixtures("negatives")


@pytest.fixture
def train(tmp_path):
    """Class folders of two images each."""
    for number, name in enumerate(("cat/a.png", "cat/b.png", "dog/a.png", "dog/c.png")):
        path = tmp_path / "data/train" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 40), (60 * number, 90, 120)).save(path)
    return tmp_path / "data/train"


def state_of(output):
    return output.with_name(f".{output.name}.robustgen")


def read_by_torchvision(root):
    """Classes and number of images, as torchvision finds them."""
    found = pytest.importorskip("torchvision").datasets.ImageFolder(root)
    return tuple(found.classes), len(found)


def test_torchvision_finds_the_classes_of_such_a_tree(train, tmp_path):
    out = tmp_path / "out/train"
    run_negatives(train, out)
    assert read_by_torchvision(out) == (CLASSES, 4)
    assert [path.name for path in out.iterdir() if path.is_dir()] and not (out / ".robustgen").exists()
    assert (state_of(out) / "settings.json").exists()


@pytest.mark.parametrize("name", [ERRORS, NOTES])
def test_a_class_with_the_name_of_the_sets_own_file_is_refused(train, tmp_path, name):
    (train / name).mkdir()
    shutil.copy(train / "cat/a.png", train / name / "a.png")
    run_negatives(train, tmp_path / "out", status=1)
    assert [error["key"] for error in errors_of(tmp_path / "out")] == [f"{name}/a.png"]


def test_it_goes_on_is_mended_and_is_verified(train, tmp_path):
    out = tmp_path / "out"
    run_negatives(train, out)
    before = tree(out)
    assert kept(run_negatives(train, out))
    (out / "cat/a.png").unlink()
    assert "missing   cat/a.png" in cli("verify", out, status=1).stdout
    assert "1 image in" in run_negatives(train, out).stdout
    assert tree(out) == before
    record = min(path for path in (state_of(out) / "records").rglob("*") if path.is_file())
    record.write_bytes(record.read_bytes()[:-20])
    assert f"damaged   .robustgen/records/{record.name}" in cli("verify", out, status=1).stdout
    run_negatives(train, out)
    assert "share was 1.0 and is now 0.5" in run_negatives(train, out, "--share", 0.5, status=2).stderr
    run_negatives(train, out, "--share", 0.5, "--overwrite")
    assert tree(out) != before
    cli("verify", out)


def test_shards_share_it(train, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    run_negatives(train, one)
    for number in (1, 2):
        run_negatives(train, two, "--shard", f"{number}/2")
    assert tree(one) == tree(two)
    assert not (two / ".robustgen").exists()


def test_a_set_that_is_moved_or_copied_verifies_without_its_state(train, tmp_path):
    out, moved = tmp_path / "out", tmp_path / "elsewhere/moved"
    run_negatives(train, out)
    moved.parent.mkdir()
    out.rename(moved)
    assert "4 files checked, 0 findings" in cli("verify", moved).stdout
    assert str(moved) in run_negatives(train, moved, status=2).stderr
    assert not state_of(moved).exists()
    state_of(out).rename(state_of(moved))
    assert kept(run_negatives(train, moved))


def test_what_is_left_of_a_removed_set_is_no_hindrance(train, tmp_path):
    out = tmp_path / "out"
    run_negatives(train, out)
    for again in (lambda: None, out.mkdir):
        shutil.rmtree(out)
        again()
        run_negatives(train, out, "--share", 0.5)
        run_negatives(train, out, "--share", 0.5)
        cli("verify", out)
    shutil.rmtree(out)
    other = tmp_path / "data/other"
    train.rename(other)
    (other / "cat/a.png").rename(other / "cat/z.png")
    run_negatives(other, out, "--share", 0.5)
    assert "cat/z.png" in tree(out)
    cli("verify", out)


def test_a_tree_of_variants_goes_where_a_set_of_classes_was(train, tmp_path):
    out = tmp_path / "out"
    run_negatives(train, out)
    flags = ("--source", train, "--output", out, "--corruptions", "contrast", "--jobs", "1")
    assert "created with different settings" in cli_error("make-c", *flags)
    shutil.rmtree(out)
    cli("make-c", *flags)
    assert (out / ".robustgen/settings.json").exists()
    cli("verify", out)


def test_a_link_in_the_place_of_the_state_is_refused(train, tmp_path):
    out, victim = tmp_path / "out", tmp_path / "victim"
    victim.mkdir()
    state_of(out).symlink_to(victim)
    assert f"{state_of(out)}: is a link" in run_negatives(train, out, status=2).stderr
    assert not [*victim.iterdir()]


def test_an_output_that_is_a_link_has_its_state_beside_the_folder(train, tmp_path):
    (tmp_path / "disk/real").mkdir(parents=True)
    (tmp_path / "out").symlink_to(tmp_path / "disk/real")
    run_negatives(train, tmp_path / "out")
    assert (tmp_path / "disk/.real.robustgen/settings.json").exists()
    assert not state_of(tmp_path / "out").exists()
    assert kept(run_negatives(train, tmp_path / "disk/real"))


def test_where_nothing_can_lie_beside_it_is_said(train, tmp_path):
    closed = tmp_path / "closed"
    (closed / "out").mkdir(parents=True)
    state_of(closed / "out").write_text("in the way")
    line = run_negatives(train, closed / "out", status=2).stderr
    assert f"{state_of(closed / 'out')}: " in line
    assert not [*(closed / "out").iterdir()]


def test_a_run_that_fails_at_once_leaves_nothing_beside(train, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/letter.txt").write_text("dear")
    assert "letter.txt" in run_negatives(train, tmp_path / "out", status=2).stderr
    assert not state_of(tmp_path / "out").exists()
