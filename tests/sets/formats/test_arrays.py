"""Arrays of CIFAR: the pixels of the Python functions, and the labels."""

import numpy as np

from robustgen import PERTURBATIONS, corrupt, perturb
from robustgen.sets.dataset.recipes import item_rng
from robustgen.sets.formats.arrays import _shrink
from tests.helpers import (
    cli,
    make_c,
    tree,
)


def test_cifar_arrays_and_labels_are_severity_major(cifar, tmp_path):
    folder, images, of_images = cifar
    names, out = ("gaussian_noise", "frost", "pixelate"), tmp_path / "out"
    make_c(folder, out, "--dataset", "cifar-10", "--corruptions", ",".join(names), "--jobs", "1")
    for name in names:
        rows = np.load(out / f"{name}.npy")
        assert rows.dtype == np.uint8 and rows.shape == (100, 32, 32, 3)
        for severity in (1, 3, 5):
            for i in (0, 7, 19):
                rng = item_rng(0, "c", "cifar-10", name, severity, f"{i:05d}")
                want = corrupt(images[i], name, severity, edition="cifar-10", rng=rng)
                assert np.array_equal(rows[(severity - 1) * 20 + i], want)
    assert np.array_equal(np.load(out / "clean.npy"), images)
    labels = np.load(out / "labels.npy")
    assert labels.dtype == np.uint8 and labels.tolist() == of_images * 5


def test_cifar_sequences(cifar, tmp_path):
    flags = ("--dataset", "cifar-10", "--perturbations", "all", "--difficulty", "all", "--limit", "4")
    for name, jobs in (("one", 1), ("two", 2)):
        cli("make-p", "--source", cifar[0], "--output", tmp_path / name, *flags, "--jobs", jobs)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    noises = ("gaussian_noise", "shot_noise", "speckle_noise")
    for name in PERTURBATIONS:
        for level in (1, 2, 3) if name in noises else (1,):
            rows = np.load(tmp_path / "one" / (f"{name}.npy" if level == 1 else f"{name}_{level}.npy"))
            assert rows.dtype == np.uint8
            assert rows.shape == (4, {"translate": 16, "motion_blur": 21}.get(name, 31), 32, 32, 3)
            rng = item_rng(0, "p", "cifar-10", name, level, "00002")
            want = perturb(cifar[1][2], name, edition="cifar-10", difficulty=level, rng=rng)
            assert np.array_equal(rows[2], want), (name, level)
    assert not (tmp_path / "one" / "rotate_2.npy").exists()


def test_labels_that_are_no_bytes_are_not_cut_off():
    assert _shrink(np.array([0, 255])).dtype == np.uint8
    assert _shrink(np.array([0, 256])).tolist() == [0, 256]
