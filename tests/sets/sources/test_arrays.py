"""Arrays as sources: `.npy`, `.npz` and `.mat` files, their labels, and sets of arrays."""

import hashlib

import numpy as np
import pytest
from scipy.io import savemat

from robustgen.errors import ImageError, SourceError
from robustgen.sets.sources.base import SourceOptions
from robustgen.sets.sources.opening import open_source
from tests.helpers import CIFAR, cli, make_c, photo, put_photo

IMAGES = np.stack([photo(32, 40, seed) for seed in range(4)])
# Integers keep their values.
LABELS = np.array([2, 5, 7, 2])


def npy(folder, **arrays):
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return folder / f"{next(iter(arrays))}.npy"


def npz(folder, **arrays):
    np.savez(folder / "set.npz", **arrays)
    return folder / "set.npz"


def mat(folder, **arrays):
    savemat(folder / "set.mat", arrays)
    return folder / "set.mat"


def read(place, **options):
    source = open_source(place, options=SourceOptions(**options))
    return np.stack([*map(source.load, source.keys())]), [*map(source.label, source.keys())], source


@pytest.mark.parametrize(
    ("write", "arrays", "split"),
    [
        (npy, {"x_test": IMAGES, "y_test": LABELS, "x_train": IMAGES[:1], "y_train": LABELS[:1]}, None),
        (npy, {"X_train": IMAGES, "y_train": LABELS}, "train"),
        (npy, {"images": IMAGES, "labels": LABELS}, None),
        (npy, {"photographs": IMAGES, "photographs_labels": LABELS[:, None]}, None),
        (npy, {"photographs": IMAGES, "labels": LABELS.astype(float)}, None),
        # The published arrays repeat the labels for each severity.
        (npy, {"clean": IMAGES, "labels": np.tile(LABELS, 5)}, None),
        (npz, {"x_test": IMAGES, "y_test": LABELS, "x_train": IMAGES[:1], "y_train": LABELS[:1]}, "test"),
        (npz, {"x_train": IMAGES, "y_train": LABELS}, "train"),
        (npz, {"test_images": IMAGES, "test_labels": LABELS[:, None]}, None),
        (npz, {"images": IMAGES, "labels": LABELS}, None),
        (mat, {"X": IMAGES.transpose(1, 2, 3, 0), "y": LABELS[:, None]}, None),
        (mat, {"images": IMAGES, "labels": LABELS.astype(float)}, None),
    ],
)
def test_names_of_images_and_labels(tmp_path, write, arrays, split):
    images, labels, source = read(write(tmp_path, **arrays), split=split)
    assert np.array_equal(images, IMAGES) and labels == LABELS.tolist()
    assert source.classes == tuple("01234567") and source.keys() == ("00000", "00001", "00002", "00003")
    if write is npy and split is None and "photographs" not in arrays:
        assert read(tmp_path)[1] == labels


def test_grey_arrays_and_digits_of_svhn(tmp_path):
    grey = IMAGES[:, :, :32, 0]
    savemat(
        tmp_path / "test_32x32.mat",
        {"X": IMAGES[:, :, :32].transpose(1, 2, 3, 0), "y": [[10], [1], [9], [10]]},
    )
    savemat(tmp_path / "train_32x32.mat", {"X": IMAGES[:2, :, :32].transpose(1, 2, 3, 0), "y": [[3], [4]]})
    assert read(tmp_path)[1] == [0, 1, 9, 0] and read(tmp_path, split="train")[1] == [3, 4]
    assert read(tmp_path)[2].class_count == 10
    for shape in (grey, grey[..., None]):
        images, *_ = read(npz(tmp_path, images=shape, labels=LABELS))
        assert np.array_equal(images, np.repeat(grey[..., None], 3, axis=3))


@pytest.mark.parametrize(
    ("labels", "wanted", "classes"),
    [
        ("2\n5\n7\n2\n", [2, 5, 7, 2], "01234567"),
        ("00003 2\n00002 7\n00000 2\n00001 5\n", [2, 5, 7, 2], "01234567"),
        ("cat\nowl\ndog\ncat\n", [0, 2, 1, 0], ("cat", "dog", "owl")),
        (LABELS, [2, 5, 7, 2], "01234567"),
        (np.array(["cat", "owl", "dog", "cat"]), [0, 2, 1, 0], ("cat", "dog", "owl")),
    ],
)
def test_files_of_labels(tmp_path, labels, wanted, classes):
    place, file = npy(tmp_path, photographs=IMAGES), tmp_path / "own.npy"
    if isinstance(labels, str):
        file = tmp_path / "own.txt"
        file.write_text(labels)
    else:
        np.save(file, labels)
    _, found, source = read(place, labels=file)
    assert found == wanted and source.classes == tuple(classes)


def test_names_of_classes_beside_an_array(tmp_path):
    names = [f"class {number}" for number in range(9)]
    (tmp_path / "classnames.txt").write_text("".join(f"{name}\n" for name in names))
    assert read(npy(tmp_path, images=IMAGES, labels=LABELS))[2].classes == tuple(names)


@pytest.mark.parametrize(
    ("write", "arrays", "message"),
    [
        (npy, {"photographs": IMAGES}, "no labels of photographs; pass .* with --labels"),
        (npy, {"images": IMAGES, "labels": LABELS[:3]}, "3 labels do not fit 4 images"),
        (npy, {"images": IMAGES, "labels": np.eye(4)}, r"labels: float64 \(4, 4\) is not .* labels.argmax"),
        (npy, {"images": IMAGES, "labels": LABELS - 3}, "labels from -1 to 4 are not the numbers"),
        (npy, {"images": IMAGES, "labels": LABELS + 0.5}, r"labels from 2\.5 to 7\.5 are not the numbers"),
        (npy, {"images": IMAGES + 1j, "labels": LABELS}, "complex128 is no type of images; convert"),
        (npy, {"images": IMAGES.transpose(0, 3, 1, 2), "labels": LABELS}, r"transpose it to \(N, H, W, 3\)"),
        (npy, {"images": np.array([None]), "labels": LABELS}, "not an array of plain values in C order"),
        (npz, {"pictures": IMAGES}, r"contains no arrays called images and labels, .* \(arrays: pictures\)"),
        (
            mat,
            {"images": IMAGES[:, :, :32, 0].repeat(8, 0), "labels": LABELS},
            "no clear axis of images",
        ),
    ],
)
def test_what_is_no_source_of_arrays_is_refused(tmp_path, write, arrays, message):
    with pytest.raises(SourceError, match=message):
        open_source(write(tmp_path, **arrays)).keys()


PARTS = np.array([0, 0.25, 0.5, 0.75, 1])


@pytest.mark.parametrize("write", [npy, npz, mat])
@pytest.mark.parametrize(
    ("dtype", "low", "high", "levels"),
    [
        ("uint16", 0, 4096, "0,4096"),
        ("uint16", 29000, 31000, "29000,31000"),
        ("int16", -1000, 3000, "-1000,3000"),
        ("int32", 0, 252, "0,255"),
        ("float32", 0, 1, "0,1"),
        ("float64", 0, 1.03, "0,1"),
        ("float64", 0, 255, "0,255"),
        ("float32", -2, 2, "-2,2"),
    ],
)
@pytest.mark.parametrize("channels", [(), (1,), (3,)])
def test_other_numbers_than_bytes_take_levels(tmp_path, write, dtype, low, high, levels, channels):
    shape = (5, 34, 40, *channels)
    values = low + (high - low) * np.broadcast_to(PARTS.reshape(5, *[1] * (len(shape) - 1)), shape)
    place = write(tmp_path, x_test=values.astype(dtype), y_test=np.arange(5))
    with pytest.raises(SourceError, match=rf"x_test: {dtype}, not uint8: .*--levels {levels}$"):
        open_source(place).keys()
    bottom, top = map(float, levels.split(","))
    images, labels, source = read(place, levels=(bottom, top))
    want = (values.astype(dtype).astype(float).reshape(5, 34, 40, -1) - bottom) / (top - bottom) * 255
    assert np.array_equal(images, np.broadcast_to(np.rint(want.clip(0, 255)), images.shape))
    assert labels == [0, 1, 2, 3, 4] and source.dimensions("00000") == (40, 34)


def test_levels_of_arrays_change_no_bytes_and_are_judged(tmp_path):
    assert np.array_equal(read(npy(tmp_path, x_test=IMAGES, y_test=LABELS), levels=(0, 4095))[0], IMAGES)
    wide = npy(tmp_path, x_test=np.full((2, 40, 40), np.nan, np.float32), y_test=LABELS[:2])
    with pytest.raises(ImageError, match="'00000': contains values that are not finite"):
        open_source(wide, options=SourceOptions(levels=(0, 1))).load("00000")
    ramp = np.arange(3200, dtype=np.uint16).reshape(2, 40, 40) + 30000
    dark = npy(tmp_path, x_test=ramp, y_test=LABELS[:2])
    chosen = ("--corruptions", "brightness", "--severities", "1", "--jobs", "1")
    done = cli("make-c", "--source", dark, *chosen, "--levels", "0,4095", "--output", tmp_path / "out")
    (line,) = (said for said in done.stderr.splitlines() if "levels" in said)
    assert line.startswith("2 of 2 images ") and line.endswith("30000,33199")
    cli("verify", tmp_path / "out", "--deep", "all")


def test_splits_that_arrays_lack_are_refused(tmp_path):
    for place in (npz(tmp_path, images=IMAGES, labels=LABELS), npy(tmp_path, images=IMAGES, labels=LABELS)):
        with pytest.raises(SourceError, match=r"x_train and y_train|not the array of the split 'train'"):
            open_source(place, options=SourceOptions(split="train")).keys()
    (tmp_path / "old.mat").write_bytes(
        b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM" + bytes(64)
    )
    with pytest.raises(SourceError, match=r"is a file of MATLAB 7\.3, .* save it with -v7"):
        open_source(tmp_path / "old.mat").keys()


def test_a_set_of_arrays_gives_the_bytes_of_its_source(tmp_path):
    for number, name in enumerate(("cat/a", "cat/b", "owl/c")):
        put_photo(tmp_path / "src" / f"{name}.png", 32, 32, seed=number)
    flags = ("--corruptions", "gaussian_noise", "--severities", "3", "--jobs", "1", "--quiet")
    make_c(tmp_path / "src", tmp_path / "set", *flags, "--format", "npy")
    make_c(tmp_path / "src", tmp_path / "files", *flags, "--format", "png")
    for place in (tmp_path / "set", tmp_path / "set/clean.npy"):
        images, labels, source = read(place)
        assert source.keys() == ("cat/a.png", "cat/b.png", "owl/c.png")
        assert labels == [0, 0, 1] and source.classes == ("cat", "owl") and images.shape == (3, 32, 32, 3)
    make_c(tmp_path / "set/clean.npy", tmp_path / "again", *flags, "--format", "png")
    for path in (tmp_path / "files").rglob("*.png"):
        assert path.read_bytes() == (tmp_path / "again" / path.relative_to(tmp_path / "files")).read_bytes()
    assert read(tmp_path / "set/gaussian_noise.npy")[2].keys() == ("cat/a.png", "cat/b.png", "owl/c.png")
    (tmp_path / "set/keys.txt").write_text("cat/a.png\n../b.png\nowl/c.png\n")
    with pytest.raises(SourceError, match=r"keys\.txt: '\.\./b\.png' cannot be the name of an image"):
        read(tmp_path / "set")


def test_an_image_is_hashed_once_for_all_arrays(cifar, tmp_path, monkeypatch):
    hashed, sha256 = [], hashlib.sha256

    def count(data=b"", **keys):
        hashed.append(len(data))
        return sha256(data, **keys)

    monkeypatch.setattr(hashlib, "sha256", count)
    make_c(cifar[0], tmp_path, *CIFAR, "--limit", 4)
    # Two arrays.
    assert hashed.count(32 * 32 * 3) == 4
