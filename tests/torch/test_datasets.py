"""The data sets of robustgen.torch give what make-c and make-p write; PyTorch is tried where there is one."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from robustgen import IMAGENET_C, IMAGENET_P, read_sequence
from robustgen.errors import ArgumentError, ArgumentTypeError, ImageError
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.sets.sources.opening import open_source
from robustgen.torch import CorruptedDataset, PerturbedDataset, SourceDataset, VariantsDataset
from tests.helpers import cifar_folder, cli, photo, pixels_of

CORRUPTIONS = ("gaussian_noise", "elastic_transform", "snow", "jpeg_compression")
PERTURBATIONS = ("tilt", "shot_noise")
EDITION = "imagenet-64"


@pytest.fixture(scope="module")
def made(photos, tmp_path_factory):
    """Sets of the photographs: C as JPEG and PNG, P as MP4 and PNG, all of the seed 7."""
    root = tmp_path_factory.mktemp("made")
    flags = ("--source", photos, "--edition", EDITION, "--seed", 7, "--jobs", 1)
    for name in ("jpeg", "png"):
        of_c = ("--corruptions", ",".join(CORRUPTIONS), "--severities", "2,5", "--format", name)
        cli("make-c", *flags, *of_c, "--output", root / f"c-{name}")
    for name in ("mp4", "png"):
        of_p = ("--perturbations", ",".join(PERTURBATIONS), "--limit", 2, "--format", name)
        cli("make-p", *flags, *of_p, "--output", root / f"p-{name}")
    return root


def written(folder, key):
    """The pixels of the file that a C set has for `key`."""
    (path,) = folder.glob(key.rpartition(".")[0] + ".*")
    return pixels_of(path)


VARIANTS = [("clean", 0), *((name, level) for name in CORRUPTIONS for level in (2, 5))]


@pytest.mark.parametrize(("corruption", "severity"), VARIANTS)
@pytest.mark.parametrize(("name", "jpeg"), [("jpeg", "published"), ("jpeg", 85), ("png", None)])
def test_the_images_are_those_that_make_c_writes(made, photos, corruption, severity, name, jpeg):
    base = SourceDataset(photos)
    dataset = CorruptedDataset(base, corruption, severity, seed=7, edition=EDITION, jpeg=jpeg)
    folder = made / f"c-{name}" / (f"{corruption}/{severity}" if severity else "clean")
    assert len(dataset) == len(base) == 5
    for key, (image, label) in zip(base.keys, dataset, strict=True):
        assert image.mode == "RGB"
        np.testing.assert_array_equal(np.asarray(image), written(folder, key))
        assert label == base.source.label(key)


@pytest.mark.parametrize("perturbation", PERTURBATIONS)
@pytest.mark.parametrize(("name", "video"), [("mp4", "published"), ("mp4", True), ("png", False)])
def test_the_sequences_are_those_that_make_p_writes(made, photos, perturbation, name, video):
    dataset = PerturbedDataset(SourceDataset(photos), perturbation, seed=7, edition=EDITION, video=video)
    for index, key in enumerate(SourceDataset(photos).keys[:2]):
        path = made / f"p-{name}" / perturbation / Path(key).with_suffix(".mp4" if name == "mp4" else "")
        frames, label = dataset[index]
        np.testing.assert_array_equal(frames, read_sequence(path))
        assert label == 0


class Counted:
    """A data set that counts the items that were read."""

    def __init__(self, base):
        self.base, self.keys, self.read = base, base.keys, []

    def __len__(self):
        return len(self.base)

    def __getitem__(self, index):
        self.read.append(index)
        return self.base[index]


@pytest.mark.parametrize(
    ("benchmark", "names", "levels", "own"),
    [
        (IMAGENET_C, CORRUPTIONS, (2, 2.5, 5), {}),
        (IMAGENET_C, CORRUPTIONS, (2, 5), {"jpeg": None}),
        (IMAGENET_P, PERTURBATIONS, (1, 2), {"video": False}),
    ],
)
def test_the_variants_of_each_image_are_those_of_their_own_data_sets(photos, benchmark, names, levels, own):
    variants = benchmark.variants(names, levels, clean=benchmark.has_clean)
    base = Counted(SourceDataset(photos))
    dataset = VariantsDataset(base, variants, seed=7, edition=EDITION, **own)
    assert len(dataset) == 5 * len(variants) and dataset.variants == variants
    one = {"c": CorruptedDataset, "p": PerturbedDataset}[benchmark.kind]
    sets = [one(base.base, each.name, each.level, seed=7, edition=EDITION, **own) for each in variants]
    for number, (image, label) in enumerate(dataset):
        index, place = divmod(number, len(variants))
        expected, known = sets[place][index]
        np.testing.assert_array_equal(np.asarray(image), np.asarray(expected))
        assert label == known
    assert base.read == [0, 1, 2, 3, 4]
    # Workers start without the image of their parent.
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(dataset))[0][0], dataset[0][0])
    assert base.read == [0, 1, 2, 3, 4, 0]


def test_changing_an_item_changes_no_other_variant():
    variants = IMAGENET_C.variants(["fog"], [1], clean=True)
    dataset = VariantsDataset(ARRAYS, variants, edition="folder", key=NAMES)
    clean, foggy = dataset[0][0].copy(), dataset[1][0].copy()
    dataset[0][0][:] = 0
    np.testing.assert_array_equal(dataset[1][0], foggy)
    np.testing.assert_array_equal(dataset[0][0], clean)
    np.testing.assert_array_equal(ARRAYS[0][0], photo(40, 44, 0))


@pytest.mark.parametrize(
    ("variants", "message"),
    [((), "variants must contain at least one"), ((Variant("fgo", 1, "fgo/1"),), "unknown corruption 'fgo'")],
)
def test_variants_that_do_not_exist_are_refused(variants, message):
    with pytest.raises(ArgumentError, match=message):
        VariantsDataset(ARRAYS, variants, edition="folder", key=NAMES)


def test_the_images_of_cifar_are_those_of_the_arrays(tmp_path):
    folder, _, labels = cifar_folder(tmp_path, images=3)
    flags = ("--dataset", "cifar-10", "--source", folder, "--jobs", 1)
    cli("make-c", *flags, "--corruptions", "shot_noise", "--severities", "4", "--output", tmp_path / "c")
    cli("make-p", *flags, "--perturbations", "shot_noise", "--output", tmp_path / "p")
    base = SourceDataset(folder)
    corrupted = CorruptedDataset(base, "shot_noise", 4, edition="cifar-10")
    perturbed = PerturbedDataset(base, "shot_noise", edition="cifar-10")
    expected = np.load(tmp_path / "c" / "shot_noise.npy"), np.load(tmp_path / "p" / "shot_noise.npy")
    np.testing.assert_array_equal(np.stack([image for image, _ in corrupted]), expected[0])
    np.testing.assert_array_equal(np.stack([frames for frames, _ in perturbed]), expected[1])
    assert [label for _, label in corrupted] == labels


@pytest.mark.parametrize(
    ("edition", "corruption", "severity", "folder"),
    [("imagenet@40", "frost", 4, "4"), (EDITION, "snow", 2.5, "2.5"), (EDITION, "snow", np.int64(3), "3")],
)
def test_other_sizes_and_severities_are_those_of_make_c(
    photos, tmp_path, edition, corruption, severity, folder
):
    flags = ("--source", photos, "--edition", edition, "--limit", 1, "--jobs", 1, "--output", tmp_path)
    cli("make-c", *flags, "--corruptions", corruption, "--severities", folder)
    image, _ = CorruptedDataset(SourceDataset(photos), corruption, severity, edition=edition)[0]
    np.testing.assert_array_equal(np.asarray(image), written(tmp_path / corruption / folder, "cat/a.JPEG"))


# --- keys ------------------------------------------------------------------------------------------

ARRAYS = [(photo(40, 44, seed), seed) for seed in range(4)]
NAMES = ["a.png", "b.png", "c.png", "d.png"]


def noisy(base, **choices):
    return CorruptedDataset(base, "gaussian_noise", 3, edition="folder", **choices)


def images_of(dataset):
    return np.stack([np.asarray(image) for image, _ in dataset])


def test_keys_are_given_by_a_sequence_or_a_function():
    expected = images_of(noisy(ARRAYS, key=NAMES))
    np.testing.assert_array_equal(images_of(noisy(ARRAYS, key=NAMES.__getitem__)), expected)
    assert (images_of(noisy(ARRAYS, key=NAMES[::-1])) != expected).any()


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        (None, ArgumentError, "a list has no known keys: give key="),
        (NAMES[:3], ArgumentError, "a key for each of the 4 items, not 3"),
        (["a", "b", "c", 4], ArgumentTypeError, "the key of item 3 must be a string"),
        (["a", "", "c", "d"], ArgumentTypeError, "the key of item 1 must be a string that is not empty"),
        ("abcd", ArgumentTypeError, "key must be a function or a sequence of keys, not str"),
        (5, ArgumentTypeError, "key must be a function or a sequence of keys, not int"),
    ],
)
def test_wrong_keys_are_refused_at_once(key, error, message):
    with pytest.raises(error, match=message):
        noisy(ARRAYS, key=key)
    with pytest.raises(ArgumentTypeError, match="the key of item 0 must be a string"):
        noisy(ARRAYS, key=lambda index: index)[0]


# --- items -----------------------------------------------------------------------------------------


def test_items_depend_on_seed_and_key_alone():
    dataset = noisy(ARRAYS, key=NAMES)
    expected = images_of(dataset)
    np.testing.assert_array_equal(np.stack([dataset[i][0] for i in (3, 2, 1, 0)])[::-1], expected)
    np.testing.assert_array_equal(dataset[-1][0], expected[3])
    np.testing.assert_array_equal(images_of(pickle.loads(pickle.dumps(dataset))), expected)
    assert (images_of(noisy(ARRAYS, key=NAMES, seed=1)) != expected).any()
    with pytest.raises(IndexError):
        dataset[4]


def test_pictures_stay_pictures_and_grey_ones_become_rgb():
    grey = Image.fromarray(photo(40, 44)[:, :, 0])
    (image, label), (array, _) = noisy([(grey, "grey"), (np.asarray(grey), 1)], key=["k", "k"])
    assert image.mode == "RGB" and label == "grey"
    np.testing.assert_array_equal(np.asarray(image), array)


@pytest.mark.parametrize("jpeg", [85, None])
def test_clean_images_are_no_views_of_the_base(jpeg):
    (image, _), *_ = CorruptedDataset(ARRAYS, "clean", 0, edition="folder", key=NAMES, jpeg=jpeg)
    assert not np.shares_memory(image, ARRAYS[0][0])
    image[:] = 0
    assert ARRAYS[0][0].any()


def test_the_transform_gets_the_result():
    dataset = noisy(ARRAYS, key=NAMES, transform=lambda image: image.transpose(2, 0, 1))
    np.testing.assert_array_equal(dataset[1][0], noisy(ARRAYS, key=NAMES)[1][0].transpose(2, 0, 1))


def test_the_transform_of_a_sequence_gets_every_frame():
    def tilted(base, transform):
        return PerturbedDataset(base, "tilt", edition="folder", key=NAMES, video=False, transform=transform)

    frames = tilted(ARRAYS, None)[0][0]
    np.testing.assert_array_equal(tilted(ARRAYS, lambda frame: frame / 255)[0][0], frames / 255)
    pictures = [(Image.fromarray(image), label) for image, label in ARRAYS]
    sizes = tilted(pictures, lambda frame: np.array(frame.size))[0][0]
    np.testing.assert_array_equal(sizes, [[44, 40]] * len(frames))


@pytest.mark.parametrize(
    ("choices", "error", "message"),
    [
        ({"corruption": "forst"}, ArgumentError, "unknown corruption 'forst' .did you mean 'frost'"),
        ({"severity": 6}, ArgumentError, "severity 6 of fog does not exist"),
        ({"severity": "3"}, ArgumentTypeError, "severity must be"),
        ({"corruption": "clean"}, ArgumentError, "severity of clean images must be 0, not 3"),
        ({"edition": "imagenet-224"}, ArgumentError, "unknown edition"),
        ({"corruption": "lines", "edition": "imagenet-64"}, ArgumentError, "no published strength at"),
        ({"seed": -1}, ArgumentError, "seed must be from 0"),
        ({"jpeg": 96}, ArgumentError, "jpeg must be a quality from 1 to 95"),
        ({"jpeg": True}, ArgumentError, "jpeg must be a quality from 1 to 95"),
    ],
)
def test_wrong_choices_are_refused_at_once(choices, error, message):
    given = {"corruption": "fog", "severity": 3, "edition": "folder", "key": NAMES} | choices
    with pytest.raises(error, match=message):
        CorruptedDataset(ARRAYS, **given)


def test_wrong_images_are_named():
    with pytest.raises(ArgumentTypeError, match="'a': image must have dtype uint8, not float32; pass"):
        noisy([(photo(40, 40).astype(np.float32), 0)], key=["a"])[0]
    with pytest.raises(ImageError, match="'a': 8 x 40 pixels"):
        noisy([(photo(40, 8), 0)], key=["a"])[0]


def test_a_source_that_is_open_does_too(photos):
    by_path, by_source = SourceDataset(photos), SourceDataset(open_source(photos))
    assert by_path.keys == by_source.keys and by_path.classes == ("cat", "dog")
    for image, label in (by_path[3], by_source[3]):
        np.testing.assert_array_equal(np.asarray(image), pixels_of(photos / "dog" / "a.JPEG"))
        assert label == 1


def test_no_dataset_loads_pytorch():
    code = (
        "import sys, numpy; from robustgen.torch import AugMixDataset, CorruptedDataset, PerturbedDataset;"
        "base = [(numpy.zeros((40, 40, 3), 'uint8'), 0)];"
        "CorruptedDataset(base, 'fog', 1, edition='folder', key=['a'])[0];"
        "PerturbedDataset(base, 'tilt', edition='folder', key=['a'])[0]; AugMixDataset(base)[0];"
        "assert not sys.modules.keys() & {'torch', 'torchvision', 'pydantic'}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- PyTorch ---------------------------------------------------------------------------------------


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def to_tensor(image):
    import torch

    return torch.from_numpy(np.array(image))


@pytest.mark.slow("starts worker processes")
@pytest.mark.parametrize(("start", "workers", "shards"), [("fork", 2, 2), ("spawn", 1, 1)])
def test_a_dataloader_gives_the_same_whatever_its_workers_and_shards(torch, photos, start, workers, shards):
    from torch.utils.data.distributed import DistributedSampler

    dataset = CorruptedDataset(SourceDataset(photos), "shot_noise", 5, edition=EDITION, transform=to_tensor)
    expected = [image for image, _ in dataset]
    for rank in range(shards):
        sampler = DistributedSampler(dataset, num_replicas=shards, rank=rank, shuffle=True, seed=4)
        loader = torch.utils.data.DataLoader(
            dataset, batch_size=2, sampler=sampler, num_workers=workers, multiprocessing_context=start
        )
        got = torch.cat([images for images, _ in loader])
        assert len(got) == len(sampler) >= 3
        for image, index in zip(got, sampler, strict=True):
            assert torch.equal(image, expected[index])


def test_folders_of_torchvision_and_their_parts_have_the_keys_of_make_c(made, photos):
    torch, torchvision = pytest.importorskip("torch"), pytest.importorskip("torchvision")
    base = torchvision.datasets.ImageFolder(photos)
    part = torch.utils.data.Subset(base, np.array([4, 0]))
    dataset = CorruptedDataset(part, "snow", 2, seed=7, edition=EDITION)
    assert [dataset.key(0), dataset.key(1)] == ["dog/d.JPEG", "cat/a.JPEG"]
    for index in range(2):
        expected = written(made / "c-jpeg" / "snow" / "2", dataset.key(index))
        np.testing.assert_array_equal(np.asarray(dataset[index][0]), expected)


def test_frames_become_one_tensor(torch, photos):
    choices = {"edition": EDITION, "video": False, "transform": to_tensor}
    dataset = PerturbedDataset(SourceDataset(photos), "tilt", **choices)
    frames, label = next(iter(torch.utils.data.DataLoader(dataset, batch_size=2)))
    assert frames.shape == (2, 31, 64, 64, 3) and frames.dtype == torch.uint8
    assert label.tolist() == [0, 0]


def test_the_test_images_of_torchvisions_cifar_have_the_keys_of_make_c(tmp_path, monkeypatch):
    torchvision = pytest.importorskip("torchvision")
    # The published digests are not those of a few images of our own.
    monkeypatch.setattr(torchvision.datasets.CIFAR10, "_check_integrity", lambda self: True)
    monkeypatch.setattr(torchvision.datasets.cifar, "check_integrity", lambda *_: True)
    folder, _, labels = cifar_folder(tmp_path, images=4)
    for name in ("batches.meta", "test_batch"):  # torchvision wants names of text
        content = pickle.loads((folder / name).read_bytes())
        (folder / name).write_bytes(pickle.dumps({key.decode(): value for key, value in content.items()}))
    base = torchvision.datasets.CIFAR10(tmp_path, train=False)
    dataset = CorruptedDataset(base, "glass_blur", 2, edition="cifar-10")
    assert [dataset.key(index) for index in (0, 3)] == ["00000", "00003"]
    arrays = [(np.asarray(image), label) for image, label in base]
    expected = CorruptedDataset(arrays, "glass_blur", 2, edition="cifar-10", key="{:05d}".format)
    np.testing.assert_array_equal(images_of(dataset), images_of(expected))
    assert [label for _, label in dataset] == labels
