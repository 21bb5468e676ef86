"""Class folders of ImageNet are WordNet ids: folders around them are never taken for classes."""

from pathlib import Path

import pytest
from PIL import Image

from robustgen.errors import ArgumentError, SourceError
from robustgen.sets.sources.folder import ImageFolder
from robustgen.sets.sources.imagenet import TinyImageNet
from robustgen.sets.sources.opening import open_source
from robustgen.torch import CorruptedDataset, SourceDataset
from tests.helpers import ONE, cli, cli_error, put_photo
from tests.sets.sources.test_folder import every_image_is_there, labels_of, put, put_all, write
from tests.sets.sources.test_trees import assert_alike, files_of, put_zip

VAL = ("n01440764/ILSVRC2012_val_00000293.JPEG", "n01751748/ILSVRC2012_val_00000001.JPEG")


def put_photos(root: Path, *names: str) -> Path:
    for name in names:
        put_photo(root / name)
    return root


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ImageNet as it is often unpacked: train and val, with class folders in each."""
    names = [f"{split}/{name}" for split in ("train", "val") for name in VAL]
    return put_photos(tmp_path_factory.mktemp("imagenet"), *names)


@pytest.mark.parametrize("flags", [("--dataset", "imagenet-64"), ("--edition", "imagenet-64")])
def test_a_source_one_level_too_high_is_recognised(
    root: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    more = (*flags, *ONE, "--output", tmp_path / "out")
    line = cli_error("make-c", "--source", root, *more)
    assert f"in train, val; did you mean --source {root}/val?" in line
    assert not (tmp_path / "out").exists()
    done = cli("make-c", "--source", root / "val", *more)
    assert done.stderr.splitlines()[0] == "2 images, 2 classes, 2 outputs of each"


def test_calibrate_and_torch_follow_the_same_rules(root: Path, tmp_path: Path) -> None:
    line = cli_error("calibrate", "--dataset", "imagenet", "--source", root)
    assert f"did you mean --source {root}/val?" in line
    with pytest.raises(SourceError, match="did you mean"):
        SourceDataset(root)
    flat = put_photos(tmp_path / "flat", *(Path(name).name for name in VAL))
    with pytest.raises(SourceError, match=r"not in class folders.*require_classes=False"):
        SourceDataset(flat)
    assert [label for _, label in SourceDataset(flat, require_classes=False)] == [0, 0]
    assert [label for _, label in SourceDataset(root / "val")] == [0, 1]


class DatasetFolder:
    """What torchvision's has of images at `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.samples = [(str(path), 0) for path in sorted(root.rglob("*.JPEG"))]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        return Image.open(self.samples[index][0]), 0


def test_folders_of_torchvision_one_level_too_high_are_recognised(root: Path) -> None:
    choices = ("contrast", 1)
    with pytest.raises(ArgumentError, match="one of train, val as root, or give key="):
        CorruptedDataset(DatasetFolder(root), *choices, edition="imagenet-64")
    data = CorruptedDataset(DatasetFolder(root / "val"), *choices, edition="imagenet-64")
    assert [data.key(place) for place in range(len(data))] == [*VAL]


@pytest.mark.parametrize("stray", ["stray.JPEG", "thumbnails/a.JPEG"])
def test_images_beside_the_class_folders_shift_no_label(tmp_path: Path, stray: str) -> None:
    source = put_photos(tmp_path / "val", *VAL, stray)
    flags = ("--source", source, *ONE, "--output", tmp_path / "out", "--dry-run")
    line = cli_error("make-c", "--dataset", "imagenet-64", *flags)
    assert f"{stray!r} is not in a class folder" in line
    cli("make-c", "--dataset", "imagenet-64", "--set", "require_classes=false", *flags)


def test_own_photographs_are_prepared_as_imagenet_is(tmp_path: Path) -> None:
    source = put_photos(tmp_path / "photos", "cat/a.JPEG", "dog/b.JPEG")
    flags = ("--edition", "imagenet-64", "--source", source, *ONE, "--output", tmp_path / "out")
    assert "2 classes" in cli("make-c", *flags, "--dry-run").stdout


# --- Tiny ImageNet -------------------------------------------------------------------------------

TINY = {"val_0.JPEG": "n03444034", "val_1.JPEG": "n04067472", "val_10.JPEG": "n03444034"}


TINY_KEYS = ("n03444034/val_0.JPEG", "n03444034/val_10.JPEG", "n04067472/val_1.JPEG")


def tiny(root: Path, pattern: str) -> Path:
    val = root / "tiny-imagenet-200" / "val"
    put_all(val, *(pattern.format(name=name, wnid=wnid) for name, wnid in TINY.items()))
    write(val / "val_annotations.txt", "".join(f"{n}\t{w}\t0\t32\t44\t62\n" for n, w in TINY.items()))
    write(val.parent / "wnids.txt", "\n".join(TINY.values()))
    put(val.parent / "train/n03444034/images/n03444034_0.JPEG")
    return val


def test_a_list_of_a_thousand_classes_beside_val_is_not_tiny_imagenet(tmp_path: Path) -> None:
    put(tmp_path / "val" / "n01440764" / "a.JPEG")
    put(tmp_path / "train" / "n01440764" / "b.JPEG")
    write(tmp_path / "wnids.txt", "".join(f"n{number:08d}\n" for number in range(1000)))
    assert type(open_source(tmp_path / "val")) is ImageFolder
    assert len(open_source(tmp_path).keys()) == 2


@pytest.mark.parametrize("pattern", ["images/{name}", "{wnid}/images/{name}", "{wnid}/{name}"])
def test_tiny_imagenet_has_the_same_keys_in_every_layout(tmp_path: Path, pattern: str) -> None:
    val = tiny(tmp_path, pattern)
    (val / "images").mkdir(exist_ok=True)
    for source in (TinyImageNet(val), TinyImageNet(val.parent), open_source(val), open_source(val.parent)):
        assert isinstance(source, TinyImageNet)
        assert source.keys() == TINY_KEYS
        assert labels_of(source) == [0, 0, 1]
        assert every_image_is_there(source)


def test_a_sorted_tiny_imagenet_without_annotations_is_detected(tmp_path: Path) -> None:
    val = tiny(tmp_path, "{wnid}/images/{name}")
    (val / "val_annotations.txt").unlink()
    assert open_source(val).keys() == open_source(val.parent).keys() == TINY_KEYS


def test_the_zip_of_tiny_imagenet(tmp_path: Path) -> None:
    val = tiny(tmp_path, "images/{name}")
    put(val.parent / "test/images/test_0.JPEG")
    source = open_source(put_zip(tmp_path / "tiny-imagenet-200.zip", files_of(tmp_path)))
    assert isinstance(source, TinyImageNet) and source.keys() == TINY_KEYS
    assert_alike(source, open_source(val.parent))
