"""The sets of this wing, and its states, fit the schemas; sets of other versions are refused."""

import itertools
import shutil

import numpy as np
import pytest

from robustgen.related.streams import ccc
from tests.helpers import cli, cli_error, make_c, put_photo
from tests.sets.dataset.test_schemas import SMALL, check_set, check_state, make_older, refused


def test_augmix_copies(source, tmp_path):
    cli("make-augmix", "--source", source, "--output", tmp_path / "out", "--jobs", "1", "--allow-failures")
    check_set(tmp_path / "out")


def test_icons(tmp_path):
    for seed, name in enumerate(("one/1f431", "one/1f408", "other/1f431", "other/1f44d")):
        put_photo(tmp_path / f"{name}.png", 32, 32, seed)
    styles = [f"--style={name}={tmp_path / name}" for name in ("one", "other")]
    cli("make-icons", *styles, "--output", tmp_path / "out", "--jobs", "1")
    check_set(tmp_path / "out", tmp_path / ".out.robustgen")


@pytest.mark.parametrize("form", ["jpeg", "npy"])
def test_equalised_sets(form, source, tmp_path):
    shutil.copytree(source, tmp_path / "whole")
    (tmp_path / "whole" / "dog" / "c.png").unlink()
    make_c(tmp_path / "whole", tmp_path / "c", *SMALL, "--format", form)
    cli("preprocess", "clahe", tmp_path / "c", tmp_path / "out", "--jobs", "1")
    check_set(tmp_path / "out")


def test_equalised_folders(source, tmp_path):
    cli("preprocess", "clahe", source, tmp_path / "out", "--jobs", "1", "--allow-failures")
    check_set(tmp_path / "out", tmp_path / ".out.robustgen")


def test_streams(source, tmp_path):
    strength = np.arange(21)
    pairs = itertools.permutations(ccc.list_corruptions(0), 2)
    accuracies = {
        f"n1_{one}_n2_{two}": np.clip(76 - 3 * strength[:, None] - 4 * strength, 1, 100) for one, two in pairs
    }
    np.savez(tmp_path / "table.npz", **accuracies)
    cli(
        *("stream", "ccc", "--target", "0", "--speed", "2", "--jobs", "1", "--length", "8"),
        *("--accuracy-table", tmp_path / "table.npz", "--source", source),
        *("--output", tmp_path),
        status=1,
    )
    (state,) = tmp_path.glob(".baseline*.robustgen")
    assert check_state(state) == (1, 1)


def test_a_set_of_an_earlier_version_is_not_cleaned(copied):
    make_older(copied)
    error = cli_error("preprocess", "clahe", copied, copied.parent / "equalised")
    assert error == refused(copied / "dataset.json")
