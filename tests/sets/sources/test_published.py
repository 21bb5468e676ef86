"""Sources of arrays: IDX files, MedMNIST's archives, CIFAR's training batches; splits; and grey sets."""

import gzip
import os
import pickle
import re
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

import robustgen
from robustgen.errors import ImageError, SourceError
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.dataset.recipes import item_rng
from robustgen.sets.sources import published
from robustgen.sets.sources.base import Source, SourceOptions
from robustgen.sets.sources.folder import ImageFolder
from robustgen.sets.sources.opening import open_source
from robustgen.sets.sources.published import Cifar
from tests.helpers import cifar_folder, cli, cli_error, errors_of, make_c, photo, put_photo
from tests.sets.sources.test_folder import labels_of, put_all, write
from tests.sets.sources.test_shards import put_parquet
from tests.sets.sources.test_trees import put_tar

QUICK = ("--jobs", "1", "--quiet")

# --- MNIST ---------------------------------------------------------------------------------------


def idx(array):
    """The bytes of an IDX file."""
    return struct.pack(f">{array.ndim + 1}I", 0x800 | array.ndim, *array.shape) + array.tobytes()


def digits(count, seed=0):
    pictures = np.stack([photo(28, 28, seed + i)[:, :, 0] for i in range(count)])
    return pictures, (np.arange(count) * 7 % 10).astype(np.uint8)


def put_mnist(folder, split="t10k", count=12, packed=(), dot="-"):
    """Images and labels of a split in `folder`; those `packed` are compressed."""
    folder.mkdir(parents=True, exist_ok=True)
    seed = 100 * (split == "train")
    for array, what in zip(digits(count, seed), ("images", "labels"), strict=True):
        name, data = f"{split}-{what}{dot}idx{array.ndim}-ubyte", idx(array)
        if what in packed:
            name, data = f"{name}.gz", gzip.compress(data)
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def mnist(tmp_path_factory):
    folder = put_mnist(tmp_path_factory.mktemp("mnist"), packed=("images",))
    return put_mnist(folder, "train", 15, ("images", "labels"))


def test_idx_files_plain_and_compressed(tmp_path, mnist):
    pictures, labels = digits(12)
    places = [
        mnist,
        mnist / "t10k-images-idx3-ubyte.gz",
        put_mnist(tmp_path / "plain"),
        put_mnist(tmp_path / "dots", dot="."),
        put_mnist(tmp_path / "torchvision" / "MNIST" / "raw"),
    ]
    for place in places:
        source = open_source(place)
        assert source.keys() == tuple(f"{i:05d}" for i in range(12))
        assert [*map(source.label, source.keys())] == labels.tolist()
        assert source.classes == tuple("0123456789") and source.size("00003") == 784
        image = source.load("00003")
        assert image.shape == (28, 28, 3) and (image == pictures[3][:, :, None]).all()
    # Of two files of one name the plain one is read.
    (tmp_path / "plain" / "t10k-images-idx3-ubyte.gz").write_bytes(b"damaged")
    assert len(open_source(tmp_path / "plain").keys()) == 12


def test_the_training_split_of_idx_files(mnist):
    pictures, labels = digits(15, 100)
    for source in (
        open_source(mnist, options=SourceOptions(split="train")),
        open_source(mnist / "train-images-idx3-ubyte.gz"),
    ):
        assert len(source.keys()) == 15 and source.label("00014") == labels[14]
        assert (source.load("00014")[:, :, 1] == pictures[14]).all()
    with pytest.raises(SourceError, match=r"has no split 'train' \(known: test\)"):
        open_source(mnist / "t10k-images-idx3-ubyte.gz", options=SourceOptions(split="train"))
    with pytest.raises(SourceError, match=r"has no split 'val'"):
        open_source(mnist, options=SourceOptions(split="val"))


IMAGES, LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        (IMAGES, lambda _: idx(np.zeros(9, np.uint8)), "magic number is 0x00000801; .* have 0x00000803"),
        (LABELS, lambda _: b"\0\0", "magic number is 0x00000000"),
        (IMAGES, lambda data: data[:5000], r"damaged: 4984 bytes for an array of shape \(12, 28, 28\)"),
        (IMAGES, lambda data: data[:9], "damaged: 0 bytes"),
        (IMAGES, lambda data: data + b"\0", "damaged: 9409 bytes"),
        (LABELS, lambda _: idx(np.zeros(11, np.uint8)), "11 labels for 12 images"),
    ],
)
def test_wrong_idx_files_are_refused_by_name(tmp_path, name, damage, message):
    folder = put_mnist(tmp_path / "mnist")
    data = damage((folder / name).read_bytes())
    (folder / name).write_bytes(data)
    with pytest.raises(SourceError, match=rf"{name}: {message}"):
        open_source(folder).keys()
    # What is compressed is no better.
    (folder / name).unlink()
    (folder / f"{name}.gz").write_bytes(gzip.compress(data))
    error = cli_error("make-c", "--dataset", "mnist", "--source", folder, "--output", tmp_path / "out")
    assert f"{name}.gz: " in error and not (tmp_path / "out").exists()


def test_truncated_gzip_and_missing_labels(tmp_path):
    folder = put_mnist(tmp_path / "mnist", packed=("images",))
    path = folder / f"{IMAGES}.gz"
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(SourceError, match=rf"{IMAGES}\.gz: Compressed file ended"):
        open_source(folder).keys()
    (folder / LABELS).unlink()
    with pytest.raises(SourceError, match=rf"{LABELS}\.gz: No such file"):
        open_source(folder).keys()
    (folder / "emnist-letters-test-images-idx3-ubyte").write_bytes(b"")
    with pytest.raises(SourceError, match=r"needs one file of test images, found .*emnist-letters"):
        open_source(folder).keys()


@pytest.fixture(scope="module")
def mnist_c(tmp_path_factory, mnist):
    root = tmp_path_factory.mktemp("out") / "mnist-c"
    make_c(mnist, root, "--dataset", "mnist", *QUICK)
    return root


def test_mnist_c_is_grey_all_the_way(mnist_c):
    pictures, labels = digits(12)
    assert (np.load(mnist_c / "clean.npy") == pictures[..., None]).all()
    assert (np.load(mnist_c / "labels.npy") == labels).all()
    names = robustgen.FAMILIES["mnist-c"].names()
    assert len(names) == 15
    for name in names:
        made = np.load(mnist_c / f"{name.replace(':', '.')}.npy")
        assert made.shape == (12, 28, 28, 1) and made.dtype == np.uint8
        rng = item_rng(0, "c", "mnist", name, 1, "00007")
        assert (made[7, :, :, 0] == robustgen.corrupt(pictures[7], name, 1, edition="mnist", rng=rng)).all()
    cli("verify", mnist_c, "--deep", "3")
    # Readers see three channels.
    data = open_set(mnist_c)
    assert data.grey and len(data.variants) == 16
    image = data.load(data.variants[3], "00002")
    assert image.shape == (28, 28, 3) and (image[..., 0] == image[..., 2]).all()


@pytest.mark.parametrize(("name", "suffix"), [("png", "png"), ("jpeg", "JPEG")])
def test_grey_trees(tmp_path, mnist, mnist_c, name, suffix):
    flags = ("--dataset", "mnist", "--corruptions", "mnist-c:stripe", "--format", name)
    make_c(mnist, tmp_path / "out", *flags, *QUICK)
    label = np.load(mnist_c / "labels.npy")[4]
    picture = Image.open(tmp_path / "out" / "mnist-c.stripe" / "1" / f"{label}" / f"00004.{suffix}")
    array = np.load(mnist_c / "mnist-c.stripe.npy")[4, :, :, 0]
    difference = np.abs(np.asarray(picture).astype(int) - array).max()
    assert picture.mode == "L" and difference <= (60 if name == "jpeg" else 0)
    cli("verify", tmp_path / "out", "--deep", "2")


def test_small_images_are_refused_by_corruptions_that_need_larger_ones(tmp_path):
    put_photo(tmp_path / "photos" / "a.png", 28, 28)
    flags = ("--severities", "1", "--format", "png", *QUICK)
    make_c(tmp_path / "photos", tmp_path / "both", *flags, "--corruptions", "mnist-c:stripe,fog", status=1)
    assert Image.open(tmp_path / "both" / "mnist-c.stripe" / "1" / "a.png").size == (28, 28)
    (failure,) = errors_of(tmp_path / "both")
    reason = failure["reason"]
    assert failure == {"key": "a.png", "variant": "fog/1", "reason": reason}
    assert re.findall(r"\d+ x \d+|\b32\b", reason) == ["28 x 28", "32"]
    make_c(tmp_path / "photos", tmp_path / "none", *flags, "--corruptions", "fog", status=1)
    assert errors_of(tmp_path / "none") == [{"key": "a.png", "reason": reason}]


@pytest.mark.parametrize(
    "command", ["make-c --corruptions fog --severities 1", "make-p --perturbations tilt"]
)
@pytest.mark.parametrize("edition", ["folder", "cifar-10"])
def test_an_edition_that_is_named_for_small_images_works(tmp_path, command, edition):
    put_photo(tmp_path / "photos" / "a.png", 40, 24)
    flags = (*command.split(), "--source", tmp_path / "photos", "--format", "png", "--jobs", 1)
    told = cli(*flags, "--edition", edition, "--output", tmp_path / "out", status=1).stderr
    assert re.search(r"editions imagenet-64 and imagenet\b", told)
    for each in ("imagenet-64", "imagenet"):
        cli(*flags, "--edition", each, "--output", tmp_path / each)


def test_laion_c_resizes_small_images(tmp_path):
    put_photo(tmp_path / "photos" / "a.png", 40, 24)
    flags = ("--dataset", "laion-c", "--corruptions", "laion-c:glitched", "--severities", 3)
    make_c(tmp_path / "photos", tmp_path / "out", *flags, "--format", "png", "--jobs", 1)
    assert Image.open(tmp_path / "out" / "glitched" / "intensity_level_3" / "a.png").size == (224, 224)


# --- MedMNIST ------------------------------------------------------------------------------------


def put_medmnist(path, grey=False, side=224, labels=1, **more):
    rng, content = np.random.default_rng(1), {}
    for split, count in (("train", 4), ("val", 2), ("test", 3)):
        pictures = np.stack([photo(side, side, i + len(split)) for i in range(count)])
        content[f"{split}_images"] = np.ascontiguousarray(pictures[..., 0]) if grey else pictures
        classes = 9 if labels == 1 else 2
        content[f"{split}_labels"] = rng.integers(0, classes, (count, labels)).astype(np.uint8)
    np.savez_compressed(path, **content | more)
    return path, content


@pytest.fixture(scope="module")
def blood(tmp_path_factory):
    return put_medmnist(tmp_path_factory.mktemp("medmnist") / "bloodmnist_224.npz")


@pytest.fixture(scope="module")
def chest(tmp_path_factory):
    return put_medmnist(tmp_path_factory.mktemp("medmnist") / "chestmnist_224.npz", grey=True, labels=14)


@pytest.mark.parametrize("split", ["test", "train", "val"])
def test_splits_of_medmnist(blood, split):
    path, content = blood
    source = open_source(path, options=SourceOptions(split=split))
    assert [*map(source.label, source.keys())] == content[f"{split}_labels"][:, 0].tolist()
    assert (source.load("00001") == content[f"{split}_images"][1]).all()
    assert source.dimensions("00000") == (224, 224) and source.size("00000") == 224 * 224 * 3


def test_workers_read_the_copy_of_their_parent(tmp_path, blood, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    source = open_source(blood[0])
    assert source.keys() and source.dimensions("00000") and not [*tmp_path.rglob("*.npy")]
    source.make_ready()
    sent = pickle.loads(pickle.dumps(source))
    assert (sent.load("00002") == blood[1]["test_images"][2]).all()
    assert len([*tmp_path.rglob("*.npy")]) == 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"test_images": np.zeros((3, 4), np.uint8)}, r"test_images: \(3, 4\) is not"),
        ({"test_images": np.zeros((3, 4, 4), np.float32)}, "test_images: float32"),
        ({"test_labels": np.zeros((2, 1), np.uint8)}, "2 labels do not fit 3 images"),
        ({"test_labels": np.full((3, 2), 7, np.uint8)}, r"test_labels: uint8 \(3, 2\) is neither"),
        ({"test_images": np.array([None])}, "test_images.npy: "),
    ],
)
def test_wrong_archives_are_refused(tmp_path, more, message):
    path, _ = put_medmnist(tmp_path / "octmnist_224.npz", side=8, **more)
    with pytest.raises(SourceError, match=message):
        open_source(path).keys()


def test_several_labels_of_an_image_count_towards_the_bound(chest, monkeypatch):
    monkeypatch.setattr("robustgen.sets.sources.arrays._MOST_LABEL_BYTES", 3 * 14)
    assert len(open_source(chest[0]).keys()) == 3
    monkeypatch.setattr("robustgen.sets.sources.arrays._MOST_LABEL_BYTES", 3 * 14 - 1)
    with pytest.raises(SourceError, match="test_labels"):
        open_source(chest[0]).keys()


def test_other_archives_and_damage(tmp_path, blood):
    np.savez(tmp_path / "other.npz", pictures=np.zeros(3))
    with pytest.raises(SourceError, match=r"other\.npz: contains no arrays called .* \(arrays: pictures\)"):
        open_source(tmp_path / "other.npz").keys()
    (tmp_path / "cut.npz").write_bytes(blood[0].read_bytes()[:-3000])
    with pytest.raises(SourceError, match=r"cut\.npz: "):
        open_source(tmp_path / "cut.npz").keys()


def test_a_file_of_another_size_is_refused(tmp_path):
    path, _ = put_medmnist(tmp_path / "bloodmnist.npz", side=28)
    error = cli_error("make-c", "--dataset", "bloodmnist", "--source", path, "--output", tmp_path / "out")
    assert error.startswith(f"{path}: ") and re.findall(r"\d+ x \d+", error) == ["224 x 224", "28 x 28"]
    assert "bloodmnist@224" in error
    assert not (tmp_path / "out").exists()


def make_medmnist(source, output, *flags):
    return make_c(source, output, "--dataset", source.name.partition("_")[0], *QUICK, *flags)


def test_archives_are_as_published(tmp_path, blood, chest):
    for path, content in (blood, chest):
        out = tmp_path / path.stem
        make_medmnist(path, out, "--corruptions", "medmnist-c:pixelate,medmnist-c:contrast_up")
        assert {each.name for each in out.glob("*.npz")} == {"clean.npz", "pixelate.npz", "contrast_up.npz"}
        edition, images = path.name.partition("_")[0], content["test_images"]
        wanted = [
            robustgen.corrupt(image, "medmnist-c:pixelate", severity, edition=edition)
            for severity in range(1, 6)
            for image in images
        ]
        # The very bytes of what the published code calls.
        labels = np.tile(content["test_labels"], (5, 1))
        np.savez_compressed(tmp_path / "wanted.npz", test_images=wanted, test_labels=labels)
        assert (out / "pixelate.npz").read_bytes() == (tmp_path / "wanted.npz").read_bytes()
        assert (np.load(out / "clean.npz")["test_images"] == images).all()
        cli("verify", out, "--deep", "2")
        data = open_set(out)
        assert data.grey == (path == chest[0]) and len(data.variants) == 11
        assert data.load(data.variants[3], "00001").shape == (224, 224, 3)
        (variant,) = (variant for variant in data.variants if variant.folder == "medmnist-c.pixelate/4")
        assert (data.load(variant, "00002")[..., 0] == np.reshape(wanted[11], (224, 224, -1))[..., 0]).all()


def test_estimates_of_sets_with_constants_of_their_own(mnist, blood, tmp_path):
    for name, source in (("mnist", mnist), ("bloodmnist", blood[0])):
        flags = ("--source", source, "--output", tmp_path / "out", "--dry-run")
        assert "images" in cli("make-c", "--dataset", name, *flags).stdout
    assert not (tmp_path / "out").exists()


def test_published_archives_are_read(tmp_path, chest):
    make_medmnist(chest[0], tmp_path / "out", "--corruptions", "medmnist-c:pixelate,medmnist-c:gamma_corr_up")
    published = tmp_path / "chestmnist"
    published.mkdir()
    for path in (tmp_path / "out").glob("[pg]*.npz"):
        path.rename(published / path.name)
    data = open_set(published)
    assert data.manifest == {"edition": "chestmnist"} and len(data.variants) == 10
    assert data.variants[0].name == "medmnist-c:gamma_corr_up" and data.variants[0].level == 1
    wanted = robustgen.corrupt(
        chest[1]["test_images"][1], "medmnist-c:gamma_corr_up", 2, edition="chestmnist"
    )
    assert (data.load(data.variants[1], "00001")[..., 1] == wanted).all()
    # Images are of one class if all of their labels are the same.
    same = np.unique(chest[1]["test_labels"], axis=0, return_inverse=True)[1].ravel()
    assert (data.labels(data.variants[0]) == same).all()


def test_two_corruptions_for_one_archive_are_refused(tmp_path, blood):
    flags = ("--corruptions", "pixelate,medmnist-c:pixelate", "--output", tmp_path / "out")
    error = cli_error("make-c", "--dataset", "bloodmnist", "--source", blood[0], *flags)
    assert error.startswith("format npz: pixelate and medmnist-c:pixelate ") and error.endswith("choose npy")


def test_damaged_archives_of_a_set(tmp_path, blood):
    make_medmnist(blood[0], tmp_path / "out", "--corruptions", "medmnist-c:pixelate", "--severities", "1")
    with zipfile.ZipFile(tmp_path / "out" / "pixelate.npz", "w") as archive:
        archive.writestr("something.npy", b"")
    with pytest.raises(SourceError, match=r"pixelate\.npz: contains no .* \(arrays: something\)"):
        open_set(tmp_path / "out")
    (tmp_path / "out" / "clean.npz").write_bytes(b"")
    with pytest.raises(SourceError, match=r"clean\.npz: "):
        open_set(tmp_path / "out")


# --- splits --------------------------------------------------------------------------------------


def put_training(folder):
    """The five training batches of CIFAR-10 beside the test batch, two images each."""
    pictures = np.stack([photo(32, 32, 50 + i) for i in range(10)])
    for number in range(5):
        planes = pictures[2 * number : 2 * number + 2].transpose(0, 3, 1, 2).reshape(2, 3072)
        content = {b"data": planes, b"labels": [number, number + 5]}
        (folder / f"data_batch_{number + 1}").write_bytes(pickle.dumps(content, protocol=2))
    return pictures


def test_the_training_split_of_cifar(tmp_path):
    folder, tests, _ = cifar_folder(tmp_path, images=3)
    pictures = put_training(folder)
    source = open_source(folder, options=SourceOptions(split="train"))
    assert (source.images == pictures).all() and source.classes[0] == "class0"
    assert [*map(source.label, source.keys())] == [0, 5, 1, 6, 2, 7, 3, 8, 4, 9]
    assert (open_source(folder).images == tests).all()
    flags = ("--dataset", "cifar-10", "--corruptions", "contrast", *QUICK)
    make_c(folder, tmp_path / "out", *flags, "--split", "train")
    assert (np.load(tmp_path / "out" / "clean.npy") == pictures).all()
    # The output belongs to the split.
    error = cli_error("make-c", "--source", folder, "--output", tmp_path / "out", *flags)
    assert "another" in error
    (folder / "data_batch_4").unlink()
    with pytest.raises(SourceError, match="data_batch_4: missing"):
        open_source(folder, options=SourceOptions(split="train")).keys()


def test_splits_of_parquet_files(tmp_path):
    png = put_photo(tmp_path / "a.png").read_bytes()
    for path, names in (
        ("flat/train-00000-of-00001.parquet", "ab"),
        ("flat/test-00000-of-00001.parquet", "c"),
        ("deep/train/0000.parquet", "de"),
    ):
        rows = [({"bytes": png, "path": f"{name}.png"}, "cat") for name in names]
        put_parquet(tmp_path / path, rows, pa.string())
    assert open_source(tmp_path / "flat", options=SourceOptions(split="train")).keys() == (
        "cat/a.png",
        "cat/b.png",
    )
    assert open_source(tmp_path / "flat", options=SourceOptions(split="test")).keys() == ("cat/c.png",)
    assert len(open_source(tmp_path / "flat").keys()) == 3
    assert open_source(tmp_path / "deep", options=SourceOptions(split="train")).keys() == (
        "cat/d.png",
        "cat/e.png",
    )
    with pytest.raises(SourceError, match="matches no file of the split 'validation'"):
        open_source(tmp_path / "flat", options=SourceOptions(split="validation")).keys()


def test_splits_of_folders_and_tiny_imagenet(tmp_path):
    put_photo(tmp_path / "photos" / "train" / "cat" / "a.png")
    assert open_source(tmp_path / "photos", options=SourceOptions(split="train")).keys() == ("cat/a.png",)
    with pytest.raises(SourceError, match="contains no folder of the split 'val'"):
        open_source(tmp_path / "photos", options=SourceOptions(split="val"))
    tiny = tmp_path / "tiny-imagenet-200"
    put_photo(tiny / "val" / "images" / "val_0.JPEG")
    put_photo(tiny / "train" / "n01443537" / "images" / "n01443537_0.JPEG")
    (tiny / "val" / "val_annotations.txt").write_text("val_0.JPEG\tn01443537\t0\t0\t9\t9\n")
    assert open_source(tiny).keys() == ("n01443537/val_0.JPEG",)
    source = open_source(tiny, options=SourceOptions(split="train"))
    assert source.keys() == ("n01443537/n01443537_0.JPEG",) and source.load(source.keys()[0]).shape
    with pytest.raises(SourceError, match=r"has no split 'test' \(known: val, train\)"):
        open_source(tiny, options=SourceOptions(split="test"))


def test_sources_without_splits(tmp_path):
    put_photo(tmp_path / "photos" / "a.png")
    (tmp_path / "labels.txt").write_text("a.png cat\n")
    options = SourceOptions(labels=tmp_path / "labels.txt", split="train")
    with pytest.raises(SourceError, match="no column says which rows are of the split 'train'"):
        open_source(tmp_path / "photos", options=options).keys()
    assert "the demo has no splits" in cli_error(
        "make-c", "--dataset", "demo", "--split", "train", "--output", tmp_path / "out"
    )


# --- CIFAR ---------------------------------------------------------------------------------------

ROWS = np.random.default_rng(0).integers(0, 256, (6, 3072), np.uint8)


NAMES = [f"class {i}".encode() for i in range(10)]


def batch(**changes: Any) -> dict[bytes, Any]:
    content = {b"data": ROWS, b"labels": [3, 1, 4, 1, 5, 9]}
    return content | {name.encode(): value for name, value in changes.items()}


def cifar10(root: Path, content: object = None, protocol: int = 2, meta: bool = True) -> Path:
    folder = root / "cifar-10-batches-py"
    write(folder / "test_batch", pickle.dumps(content or batch(), protocol))
    if meta:
        write(folder / "batches.meta", pickle.dumps({b"label_names": NAMES}, protocol))
    return folder


def cifar100(root: Path) -> Path:
    folder = root / "cifar-100-python"
    content = {b"data": ROWS, b"fine_labels": [99, 0, 1, 2, 3, 4], b"coarse_labels": [0] * 6}
    write(folder / "test", pickle.dumps(content, 2))
    return folder


def members(folder: Path) -> dict[str, bytes]:
    return {f"{folder.name}/{path.name}": path.read_bytes() for path in folder.iterdir()}


def check_cifar10(source: Source) -> None:
    assert isinstance(source, Cifar)
    assert source.keys() == ("00000", "00001", "00002", "00003", "00004", "00005")
    assert source.classes == tuple(name.decode() for name in NAMES)
    assert source.label("00005") == 9 and labels_of(source) == [3, 1, 4, 1, 5, 9]
    assert source.size("00005") == 3072
    assert source.images.shape == (6, 32, 32, 3) and source.images.dtype == np.uint8
    image = source.load("00004")
    assert image.flags.c_contiguous and image.flags.writeable
    assert (image[:, :, 2] == ROWS[4, 2048:].reshape(32, 32)).all()
    assert source.refused() == {}


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_cifar10_folder_parent_and_archive(tmp_path: Path, protocol: int) -> None:
    folder = cifar10(tmp_path / "data", protocol=protocol)
    packed = put_tar(tmp_path / "cifar-10-python.tar.gz", members(folder), "w:gz")
    for path in (folder, folder.parent, packed):
        check_cifar10(open_source(path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cifar-10-python.tar.gz", "data"]


def as_python_2(content: dict[bytes, Any]) -> bytes:
    """The batch as Python 2 pickled it: strings of bytes, and NumPy by its old module name."""
    data, labels = content[b"data"].tobytes(), content[b"labels"]

    def string(value: bytes) -> bytes:
        return b"T" + len(value).to_bytes(4, "little") + value

    shape = b"".join(b"M" + n.to_bytes(2, "little") for n in content[b"data"].shape)
    dtype = b"cnumpy\ndtype\n(" + string(b"u1") + b"K\x00K\x01tR(K\x03" + string(b"|")
    dtype += b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t" + string(b"b") + b"tR"
    array += b"(K\x01(" + shape + b"t" + dtype + b"\x89" + string(data) + b"tb"
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}(" + string(b"data") + array + string(b"labels") + numbers + b"u."


def test_batches_pickled_by_python_2_and_by_columns(tmp_path: Path) -> None:
    folder = cifar10(tmp_path, batch(data=np.asfortranarray(ROWS)))
    check_cifar10(Cifar(folder))
    write(folder / "test_batch", as_python_2(batch()))
    check_cifar10(Cifar(folder))


def test_cifars_without_names(tmp_path: Path) -> None:
    source = open_source(cifar100(tmp_path))
    assert source.label("00000") == 99 and source.classes == tuple(map(str, range(100)))
    assert Cifar(cifar10(tmp_path, meta=False)).classes == tuple("0123456789")


def test_an_archive_with_folders_called_train_and_test_is_not_cifar(tmp_path: Path) -> None:
    put_all(tmp_path / "photos", "train/a.png", "test/b.png")
    # Unlike the other archives, it has entries for folders.
    with tarfile.open(tmp_path / "photos.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "photos", "photos")
    source = open_source(tmp_path / "photos.tar.gz")
    assert type(source) is ImageFolder and source.keys() == ("test/b.png", "train/a.png")


def test_both_cifars_in_one_place_or_none(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="neither test_batch nor test"):
        Cifar(tmp_path).keys()
    cifar10(tmp_path)
    cifar100(tmp_path)
    with pytest.raises(SourceError, match="both CIFARs"):
        Cifar(tmp_path).keys()


@pytest.mark.parametrize("key", ["6", "00006", "000001", "-0001", "a", "", "²", "0000\uff11"])
def test_unknown_cifar_keys(tmp_path: Path, key: str) -> None:
    source = Cifar(cifar10(tmp_path))
    for ask in (source.load, source.label, source.size):
        with pytest.raises(ImageError):
            ask(key)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([1, 2], "b'data' is missing"),
        ({"data": ROWS, "labels": [0] * 6}, "b'data' is missing"),
        (batch(data=ROWS.tolist()), "b'data' is missing or of the wrong type"),
        (batch(data=ROWS.astype(np.int16)), "uint8"),
        (batch(data=ROWS[:, :3000]), "3072"),
        (batch(data=ROWS[0]), "3072"),
        (batch(data=ROWS[:0], labels=[]), "3072"),
        (batch(labels=[0, 1]), "the labels are not 6 integers from 0 to 9"),
        (batch(labels=[0, 1, 2, 3, 4, 10]), "the labels are not 6 integers from 0 to 9"),
        (batch(labels=[0, 1, 2, 3, 4, -1]), "the labels are not 6 integers from 0 to 9"),
        (batch(labels=[0, 1, 2, 3, 4, 5.0]), "the labels are not 6 integers from 0 to 9"),
        (batch(labels=[0, 1, 2, 3, 4, True]), "the labels are not 6 integers from 0 to 9"),
        (batch(labels=None), "b'labels'"),
    ],
)
def test_malformed_batches(tmp_path: Path, content: object, reason: str) -> None:
    with pytest.raises(SourceError, match=r"cifar-10-batches-py: test_batch: ") as caught:
        Cifar(cifar10(tmp_path, content, protocol=4)).keys()
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", ""),
        (b"\x80\x02", ""),
        (b"no pickle at all", ""),
        (as_python_2(batch())[:-500], ""),
        (b"cbuiltins\neval\n.", "global builtins.eval"),
        (b"cnumpy\nload\n.", "global numpy.load"),
        (b"cnumpy.core.multiarray\nscalar\n.", "global numpy.core.multiarray.scalar"),
        (b"cos\nsystem\n.", "global os.system"),
    ],
)
def test_broken_and_malicious_pickles_are_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    folder = cifar10(tmp_path)
    write(folder / "test_batch", content)
    with pytest.raises(SourceError, match=f"test_batch: .*{reason}"):
        Cifar(folder).keys()


REFUSALS = """
import resource, sys
from robustgen.sets.sources.published import Cifar
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (40, 40))
for path in sys.argv[1:]:
    try:
        print(Cifar(path).keys())
    except Exception as error:
        print(type(error).__name__, error)
"""


PICKLE_BOMBS = {
    "a far place in the memo": (b"\x80\x02K\x01r\x00\x00\x00\x10.", "b'data' is missing"),
    "one text encoded again and again": (
        b"\x80\x02](c_codecs\nencode\nq\x00X\x00\x00\x10\x00" + b"a" * (1 << 20) + b"q\x01"
        b"" + b"h\x00h\x01h\x01\x86R" * 2000 + b"e.",
        "more than 536870912 bytes of text",
    ),
    "millions of lists": (b"\x80\x02(" + b"]" * 3_000_000 + b"l.", "more than 2000000 steps"),
}


def test_names_of_classes_that_are_none(tmp_path: Path) -> None:
    folder = cifar10(tmp_path)
    for names in (NAMES[:9], [*NAMES[:9], b"x" * 1000], [*NAMES[:9], 10]):
        write(folder / "batches.meta", pickle.dumps({b"label_names": names}, 2))
        with pytest.raises(SourceError, match=r"batches\.meta: these are not the names of 10 classes"):
            Cifar(folder).keys()


def tar_header(flag: bytes, size: int) -> bytes:
    info = tarfile.TarInfo("x")
    info.type = flag
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\x80" + size.to_bytes(11, "big") if size >= 0 else b"\xff" * 12
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


TAR_BOMBS = (
    (tarfile.XHDTYPE, 3 << 30, "header of 3221225472 bytes"),
    (tarfile.XGLTYPE, 3 << 30, "header of 3221225472 bytes"),
    (tarfile.GNUTYPE_LONGNAME, 3 << 30, "header of 3221225472 bytes"),
    (tarfile.GNUTYPE_SPARSE, 512, "sparse file"),
    (tarfile.REGTYPE, -1, "member of -1 bytes"),
    (tarfile.REGTYPE, 1 << 40, "unpacks to more than"),
)


def test_bombs_are_refused_at_once(tmp_path: Path) -> None:
    """An interpreter with 1 GB of memory and 40 processor seconds refuses all of them."""
    reasons = {}
    for number, (content, reason) in enumerate(PICKLE_BOMBS.values()):
        folder = cifar10(tmp_path / str(number))
        write(folder / "test_batch", content)
        reasons[folder] = f"test_batch: {reason}"
    for number, (flag, size, reason) in enumerate(TAR_BOMBS):
        path = tmp_path / f"{number}.tar.gz"
        path.write_bytes(gzip.compress(tar_header(flag, size) + bytes(1 << 20), 1))
        reasons[path] = f".tar.gz: {reason}"
    command = [sys.executable, "-c", REFUSALS, *map(str, reasons)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    for said, reason in zip(done.stdout.splitlines(), reasons.values(), strict=True):
        assert said.startswith("SourceError") and reason in said


def test_members_that_leave_the_archive_are_ignored(tmp_path: Path) -> None:
    names = (
        "../test_batch",
        "a/../../test_batch",
        f"{tmp_path}/x/test_batch",
        "test_batch",
        "a/x/../test_batch",
    )
    good = members(cifar10(tmp_path / "data"))
    packed = put_tar(tmp_path / "c.tar.gz", dict.fromkeys(names, b"bad") | good, "w:gz")
    before = sorted(tmp_path.rglob("*"))
    check_cifar10(Cifar(packed))
    assert sorted(tmp_path.rglob("*")) == before


def test_giant_batches_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "_MOST_CIFAR_BYTES", 100)
    folder = cifar10(tmp_path)
    for path in (folder, put_tar(tmp_path / "c.tar.gz", members(folder), "w:gz")):
        with pytest.raises(SourceError, match="has more than 100 bytes"):
            Cifar(path).keys()


def test_broken_archives(tmp_path: Path) -> None:
    packed = put_tar(tmp_path / "c.tar.gz", members(cifar10(tmp_path)), "w:gz")
    for content in (b"", b"no archive", packed.read_bytes()[:-3000]):
        path = write(tmp_path / "broken.tar.gz", content)
        with pytest.raises(SourceError, match=r"broken\.tar\.gz: "):
            Cifar(path).keys()


def test_a_changed_batch_is_read_again(tmp_path: Path) -> None:
    folder = cifar10(tmp_path)
    assert Cifar(folder).label("00000") == 3
    cifar10(tmp_path, batch(labels=[7] * 6))
    os.utime(folder / "test_batch", (1, 1))
    assert Cifar(folder).label("00000") == 7


def test_a_batch_is_read_once_in_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Cifar(cifar10(tmp_path))
    image = source.load("00000")
    packed = pickle.dumps(source)
    assert len(packed) < 1500 and (pickle.loads(packed).load("00000") == image).all()
    monkeypatch.setattr(published, "unpickle", None)
    assert (pickle.loads(packed).load("00000") == image).all()
