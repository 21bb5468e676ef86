"""Sources of arrays: IDX files, MedMNIST's archives, CIFAR's training batches; splits; and grey sets."""

import gzip
import pickle
import struct
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

import robustgen
from robustgen.errors import SourceError
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.dataset.recipes import item_rng
from robustgen.sets.sources.base import Options
from robustgen.sets.sources.opening import open_source
from tests.helpers import cifar_folder, cli, cli_error, errors_of, make_c, photo, put_photo
from tests.sets.sources.test_shards import put_parquet

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
        open_source(mnist, options=Options(split="train")),
        open_source(mnist / "train-images-idx3-ubyte.gz"),
    ):
        assert len(source.keys()) == 15 and source.label("00014") == labels[14]
        assert (source.load("00014")[:, :, 1] == pictures[14]).all()
    with pytest.raises(SourceError, match=r"has no split 'train' \(known: test\)"):
        open_source(mnist / "t10k-images-idx3-ubyte.gz", options=Options(split="train"))
    with pytest.raises(SourceError, match=r"has no split 'val'"):
        open_source(mnist, options=Options(split="val"))


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
    with pytest.raises(SourceError, match=r"exactly one file of test images, found .*emnist-letters"):
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
    assert "0 findings" in cli("verify", mnist_c, "--deep", "3").stdout
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
    assert "0 findings" in cli("verify", tmp_path / "out", "--deep", "2").stdout


def test_small_images_are_refused_by_corruptions_that_need_larger_ones(tmp_path):
    put_photo(tmp_path / "photos" / "a.png", 28, 28)
    flags = ("--severities", "1", "--format", "png", *QUICK)
    make_c(tmp_path / "photos", tmp_path / "both", *flags, "--corruptions", "mnist-c:stripe,fog", status=1)
    assert Image.open(tmp_path / "both" / "mnist-c.stripe" / "1" / "a.png").size == (28, 28)
    reason = "image is 28 x 28 pixels; each side needs at least 32"
    assert errors_of(tmp_path / "both") == [{"key": "a.png", "variant": "fog/1", "reason": reason}]
    make_c(tmp_path / "photos", tmp_path / "none", *flags, "--corruptions", "fog", status=1)
    assert errors_of(tmp_path / "none") == [{"key": "a.png", "reason": reason}]


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
    source = open_source(path, options=Options(split=split))
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
        ({"test_images": np.zeros((3, 4), np.uint8)}, r"test_images.npy: uint8 \(3, 4\) is not uint8"),
        ({"test_images": np.zeros((3, 4, 4), np.float32)}, "test_images.npy: float32"),
        ({"test_labels": np.zeros((2, 1), np.uint8)}, "2 labels do not fit 3 images"),
        ({"test_labels": np.full((3, 2), 7, np.uint8)}, "labels from 7 to 7"),
        ({"test_images": np.array([None])}, "test_images.npy: "),
    ],
)
def test_wrong_archives_are_refused(tmp_path, more, message):
    path, _ = put_medmnist(tmp_path / "octmnist_224.npz", side=8, **more)
    with pytest.raises(SourceError, match=message):
        open_source(path).keys()


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
    assert error.endswith("MedMNIST+ images are 224 x 224 pixels, not 28 x 28")
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
        assert "0 findings" in cli("verify", out, "--deep", "2").stdout
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


def test_equalised_archives_keep_all_labels(tmp_path, chest):
    make_medmnist(chest[0], tmp_path / "out", "--corruptions", "medmnist-c:pixelate", "--severities", "1")
    cli("preprocess", "clahe", tmp_path / "out", tmp_path / "equal", "--jobs", "1")
    for name in ("clean.npz", "pixelate.npz"):
        before, after = (np.load(tmp_path / folder / name) for folder in ("out", "equal"))
        assert (before["test_labels"] == after["test_labels"]).all() and after["test_labels"].shape == (3, 14)
        assert before["test_images"].shape == after["test_images"].shape == (3, 224, 224)


def test_two_corruptions_for_one_archive_are_refused(tmp_path, blood):
    flags = ("--corruptions", "pixelate,medmnist-c:pixelate", "--output", tmp_path / "out")
    error = cli_error("make-c", "--dataset", "bloodmnist", "--source", blood[0], *flags)
    assert error == "format npz: pixelate and medmnist-c:pixelate would share pixelate.npz; choose npy"


def test_damaged_archives_of_a_set(tmp_path, blood):
    make_medmnist(blood[0], tmp_path / "out", "--corruptions", "medmnist-c:pixelate", "--severities", "1")
    with zipfile.ZipFile(tmp_path / "out" / "pixelate.npz", "w") as archive:
        archive.writestr("something.npy", b"")
    with pytest.raises(SourceError, match=r"pixelate\.npz: contains no test_images \(arrays: something\)"):
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
    source = open_source(folder, options=Options(split="train"))
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
        open_source(folder, options=Options(split="train")).keys()


def test_splits_of_parquet_files(tmp_path):
    png = put_photo(tmp_path / "a.png").read_bytes()
    for path, names in (
        ("flat/train-00000-of-00001.parquet", "ab"),
        ("flat/test-00000-of-00001.parquet", "c"),
        ("deep/train/0000.parquet", "de"),
    ):
        rows = [({"bytes": png, "path": f"{name}.png"}, "cat") for name in names]
        put_parquet(tmp_path / path, rows, pa.string())
    assert open_source(tmp_path / "flat", options=Options(split="train")).keys() == ("cat/a.png", "cat/b.png")
    assert open_source(tmp_path / "flat", options=Options(split="test")).keys() == ("cat/c.png",)
    assert len(open_source(tmp_path / "flat").keys()) == 3
    assert open_source(tmp_path / "deep", options=Options(split="train")).keys() == ("cat/d.png", "cat/e.png")
    with pytest.raises(SourceError, match="matches no file of the split 'validation'"):
        open_source(tmp_path / "flat", options=Options(split="validation")).keys()


def test_splits_of_folders_and_tiny_imagenet(tmp_path):
    put_photo(tmp_path / "photos" / "train" / "cat" / "a.png")
    assert open_source(tmp_path / "photos", options=Options(split="train")).keys() == ("cat/a.png",)
    with pytest.raises(SourceError, match="contains no folder of the split 'val'"):
        open_source(tmp_path / "photos", options=Options(split="val"))
    tiny = tmp_path / "tiny-imagenet-200"
    put_photo(tiny / "val" / "images" / "val_0.JPEG")
    put_photo(tiny / "train" / "n01443537" / "images" / "n01443537_0.JPEG")
    (tiny / "val" / "val_annotations.txt").write_text("val_0.JPEG\tn01443537\t0\t0\t9\t9\n")
    assert open_source(tiny).keys() == ("n01443537/val_0.JPEG",)
    source = open_source(tiny, options=Options(split="train"))
    assert source.keys() == ("n01443537/n01443537_0.JPEG",) and source.load(source.keys()[0]).shape
    with pytest.raises(SourceError, match=r"has no split 'test' \(known: val, train\)"):
        open_source(tiny, options=Options(split="test"))


def test_sources_without_splits(tmp_path):
    put_photo(tmp_path / "photos" / "a.png")
    (tmp_path / "labels.txt").write_text("a.png cat\n")
    with pytest.raises(SourceError, match="contains no folder of the split 'train'"):
        open_source(tmp_path / "photos", options=Options(labels=tmp_path / "labels.txt", split="train"))
    assert "the demo has no splits" in cli_error(
        "make-c", "--dataset", "demo", "--split", "train", "--output", tmp_path / "out"
    )
