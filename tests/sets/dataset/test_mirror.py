"""Sets for detection and segmentation: label maps beside the pictures are repeated, never corrupted."""

import base64
import json
import re

import numpy as np
import pytest
from PIL import Image

from robustgen.errors import SourceError
from robustgen.files.storage import open_store
from robustgen.pixels.benchmarks.kinds import CLEAN_VARIANT
from robustgen.sets.dataset.mirror import Mirror
from robustgen.sets.dataset.opening import open_set
from tests.helpers import cli, cli_error, kept, manifest, photo, pixels_of

FEW = ("--dataset", "coco-c", "--corruptions", "contrast", "--severities", "2", "--jobs", "1")


def put(root, name, image):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(path)


def put_picture(root, name):
    put(root, name, photo(40, 48, seed=len(name) + ord(name[-5])))


def classes(number, dtype=np.uint8):
    """A map of `number` classes."""
    return (np.arange(40 * 48).reshape(40, 48) // 200 % number).astype(dtype)


def palette(number):
    """The same with a palette of colours."""
    image = Image.fromarray(classes(number))
    image.putpalette([value for index in range(256) for value in (index, 255 - index, 7 * index % 256)])
    return image


# In colours, as Cityscapes has it for people.
COLOURED = np.stack([classes(8) * 30, 255 - classes(8), classes(8)], 2)
# In millimetres.
DEPTH = np.linspace(600, 9000, 40 * 48).reshape(40, 48).astype(np.uint16)
MASK = classes(2) * 255
CITIES = ("bonn/bonn_000000_000019", "ulm/ulm_000001_000019")
CITY_MAPS = {"labelIds": classes(34), "instanceIds": classes(9, np.uint16) * 1000, "color": COLOURED}
ADE = "ADEChallengeData2016"
# The pictures, and the maps.
LAYOUTS = {
    "cityscapes": (
        [f"leftImg8bit/val/{name}_leftImg8bit.png" for name in CITIES],
        {f"gtFine/val/{name}_gtFine_{what}.png": CITY_MAPS[what] for name in CITIES for what in CITY_MAPS},
    ),
    "ade20k": (
        [f"{ADE}/images/validation/ADE_val_{number:08d}.jpg" for number in range(2)],
        {f"{ADE}/annotations/validation/ADE_val_{number:08d}.png": classes(9) * 16 for number in range(2)},
    ),
    "pascal": (
        [f"JPEGImages/2007_{number:06d}.jpg" for number in range(3)],
        {f"Segmentation{what}/2007_000001.png": palette(9) for what in ("Class", "Object")},
    ),
    # The picture of one mask is missing.
    "beside": (["images/0.png", "images/1.png"], {f"masks/{name}.png": MASK for name in "017"}),
    "between": (
        [f"benign ({number}).png" for number in range(2)],
        {f"benign ({number})_mask.png": MASK for number in range(2)},
    ),
    "grey masks of jpeg": (
        ["images/0.jpg", "images/1.jpg"],
        {f"masks/{number}.jpg": MASK for number in range(2)},
    ),
    "depth": (
        ["kitchen/rgb/0.png", "kitchen/rgb/1.png"],
        {f"kitchen/depth/{number}.png": DEPTH for number in range(2)},
    ),
}


def put_layout(root, name):
    pictures, maps = LAYOUTS[name]
    for key in pictures:
        put_picture(root, key)
    for key, pixels in maps.items():
        put(root, key, pixels)
    return {*pictures}, {*maps}


@pytest.mark.parametrize("name", LAYOUTS)
def test_label_maps_are_repeated_and_pictures_corrupted(name, tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    pictures, maps = put_layout(source, name)
    said = cli("make-c", "--source", source, *FEW, "--output", out).stderr
    count = f"{len(maps)} label map{'s' * (len(maps) > 1)}, such as {min(maps)!r}: repeated unchanged"
    assert f"{count}, and not corrupted (" in said
    for name in maps:
        for variant in ("clean", "contrast/2"):
            assert (out / variant / name).read_bytes() == (source / name).read_bytes()
    for name in pictures:
        assert not np.array_equal(pixels_of(out / "contrast/2" / name), pixels_of(source / name))
    assert {*open_set(out).keys_of(CLEAN_VARIANT)} == pictures
    assert manifest(out)["config"]["subset"] is None
    cli("verify", out, "--deep", "all")
    assert kept(cli("make-c", "--source", source, *FEW, "--output", out))


def test_neither_patterns_nor_lists_select_maps_unless_they_are_none(tmp_path):
    put_layout(tmp_path / "source", "beside")
    command = ("make-c", "--source", tmp_path / "source", *FEW)
    said = cli(*command, "--subset", "*", "--output", tmp_path / "all").stderr
    assert said.startswith("2 images") and "3 label maps, such as 'masks/0.png'" in said
    listed = tmp_path / "list.txt"
    listed.write_text("images/0.png\nmasks/0.png\nmasks/7.png\n")
    for subset in ("masks/*", f"@{listed}"):
        assert "maps" in cli_error(*command, "--subset", subset, "--output", tmp_path / "listed")
    cli(*command, "--subset", f"@{listed}", "--set", "maps=none", "--output", tmp_path / "listed")
    mask = "contrast/2/masks/0.png"
    assert (tmp_path / "listed" / mask).read_bytes() != (tmp_path / "all" / mask).read_bytes()


def test_a_list_repeats_the_maps_of_its_pictures(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    put_layout(source, "beside")
    (source / "notes").mkdir()
    for number in range(2):
        (source / f"notes/{number}.txt").write_text("what it shows")
    (tmp_path / "list.txt").write_text("images/0.png\n")
    command = ("make-c", "--source", source, *FEW, "--subset", f"@{tmp_path}/list.txt", "--output", out)
    said = cli(*command).stderr
    beside = {path.relative_to(out / "clean").as_posix() for path in (out / "clean").glob("*/*")}
    assert beside == {"images/0.png", "masks/0.png", "masks/7.png", "notes/0.txt"}
    assert (out / "contrast/2/masks/0.png").read_bytes() == (source / "masks/0.png").read_bytes()
    left = "mirror: 3 files of images that are not selected are not repeated: 'images/1.png', 'masks/1.png', "
    assert left in said and left in cli(*command, "--dry-run").stdout
    assert open_set(out).keys_of(CLEAN_VARIANT) == ("images/0.png",)
    cli("verify", out, "--deep", "all")


def test_no_other_files_are_said_only_if_there_are_none(tmp_path):
    source = tmp_path / "source"
    for number in range(2):
        put_picture(source, f"{number}.png")
    few = ("make-c", "--source", source, *FEW, "--dry-run", "--output", tmp_path / "out")
    assert "no other files" in cli(*few).stdout
    said = cli(*few, "--subset", "0.png").stdout
    assert "no other files" not in said and "'1.png'" in said


def test_images_of_several_runs_keep_their_files(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    put_layout(source, "beside")
    for name in ("images/0.png", "images/1.png", "images/0.png"):
        cli("make-c", "--source", source, *FEW, "--subset", name, "--output", out)
        assert (out / "clean/masks/0.png").exists()
    assert open_set(out).keys_of(CLEAN_VARIANT) == ("images/0.png", "images/1.png")
    assert (out / "contrast/2/masks/1.png").exists()
    cli("verify", out)


@pytest.mark.parametrize("is_first", [True, False])
def test_what_was_corrupted_is_repeated_only_after_a_start_over(tmp_path, is_first):
    source, out = tmp_path / "source", tmp_path / "out"
    put_layout(source, "beside")
    (tmp_path / "list.txt").write_text("images/0.png\nimages/1.png\nmasks/0.png\n")
    wrong = ("--subset", f"@{tmp_path}/list.txt", "--set", "maps=none")
    right = ("--subset", "images/*")
    command = ("make-c", "--source", source, *FEW, "--output", out)
    cli(*command, *(wrong if is_first else right))
    before = (out / "contrast/2/masks/0.png").read_bytes()
    message = cli_error(*command, *(right if is_first else wrong))
    assert "'masks/0.png'" in message and "--overwrite" in message
    assert (out / "contrast/2/masks/0.png").read_bytes() == before
    cli(*command, *(right if is_first else wrong), "--overwrite")
    is_same = (out / "contrast/2/masks/0.png").read_bytes() == (source / "masks/0.png").read_bytes()
    assert is_same == is_first
    cli("verify", out)


def test_maps_that_no_pattern_leaves_out_are_repeated(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    for name in ("ab", "ac"):
        put_picture(source, f"{name}.png")
        put(source, f"{name}_mask.png", classes(2))
    put_picture(source, "mask.png")
    assert (
        "2 label maps, such as 'ab_mask.png'"
        in cli("make-c", "--source", source, *FEW, "--output", out).stderr
    )
    assert manifest(out)["config"]["subset"] is None
    assert open_set(out).keys_of(CLEAN_VARIANT) == ("ab.png", "ac.png", "mask.png")
    cli("verify", out, "--deep", "all")
    (out / "keys.txt").unlink()
    with pytest.raises(SourceError, match=r"keys\.txt"):
        open_set(out).keys_of(CLEAN_VARIANT)


def test_maps_are_left_out_without_mirror(tmp_path):
    put_layout(tmp_path / "source", "beside")
    flags = ("--set", "mirror=none", "--format", "png", "--output", tmp_path / "out")
    said = cli("make-c", "--source", tmp_path / "source", *FEW, *flags).stderr
    assert "3 label maps, such as 'masks/0.png': left out, and not corrupted" in said
    assert not (tmp_path / "out/contrast/2/masks").exists()


@pytest.mark.parametrize(
    "others",
    [
        {"depth/0.png": photo(40, 48), "images/0.png": None},
        {"b/0.png": classes(5), "images/0.png": None},
        {"b/0.png": palette(5), "a/0.png": None},
        {"x/0.png": photo(40, 48), "y/0.png": None},
        {"rgb/0.png": None, "albedo/0.png": photo(40, 48, seed=3)},
        {"1_a.png": None, "2_a.png": None, "1_b.png": photo(40, 48), "2_b.png": photo(40, 48, seed=5)},
        {"a.jpg": None, "a_edited.png": photo(40, 48)},
    ],
    ids=lambda others: " ".join(others),
)
def test_what_is_uncertain_is_refused_with_ways_out(tmp_path, others):
    for name, image in others.items():
        put_picture(tmp_path / "source", name) if image is None else put(tmp_path / "source", name, image)
    command = ("make-c", "--source", tmp_path / "source", *FEW)
    message = cli_error(*command, "--output", tmp_path / "out")
    ways = re.findall(r"(--subset|--set) '?([^'@ ]+)'?", message)
    assert {flag for flag, _ in ways} == {"--subset", "--set"}
    for number, way in enumerate(ways):
        cli(*command, *way, "--no-clean", "--output", tmp_path / f"out{number}")


@pytest.mark.parametrize("suffix", ["jpg", "png"])
def test_pictures_of_one_name_are_pictures(tmp_path, suffix):
    for folder in ("train", "val"):
        put_picture(tmp_path / "source", f"images/{folder}/0.{suffix}")
        put(tmp_path / "source", f"scans/{folder}/0.png", classes(2) * 255)
    for folder in ("train", "val"):
        (tmp_path / f"source/scans/{folder}/0.png").rename(tmp_path / f"source/scans/{folder}/page.png")
    # Pages of two tones, which may be maps as well.
    command = ("make-c", "--source", tmp_path / "source", *FEW, "--output", tmp_path / "out")
    assert "scans/" in cli_error(*command)
    said = cli(*command, "--set", "maps=none").stderr
    assert "label map" not in said and said.startswith("4 images")


def test_clean_images_of_other_splits_are_not_repeated(tmp_path):
    """Images of one name in `train` and `val`, as detectors' data sets have."""
    for folder in ("train", "val"):
        put_picture(tmp_path / "source", f"images/{folder}/0.png")
        put(tmp_path / "source", f"masks/{folder}/0.png", classes(2))
    flags = ("--subset", "images/val/*", "--output", tmp_path / "out")
    cli("make-c", "--source", tmp_path / "source", *FEW, *flags)
    held = {path.relative_to(tmp_path / "out/clean").as_posix() for path in tmp_path.glob("out/clean/*/*/*")}
    assert held == {"images/val/0.png", "masks/val/0.png"}


PICTURE = photo(40, 48, seed=48 + ord("0"))
# Arrays that loaders may read in place of `images/0.png`, and arrays of annotations.
CACHES = {
    "images/0.npy": PICTURE[..., ::-1],
    "cache/0.npy": PICTURE[:24, :24],
    "0.npy": PICTURE.transpose(2, 0, 1) / np.float32(255),
    "grey/0.npy": PICTURE[..., :1],
}
ANNOTATIONS = {
    "labels/0.npy": classes(5),
    "images/0_depth.npy": np.ones((40, 48, 1), np.float32),
    "images/0.npy": np.zeros((2, 17, 3)),
    "masks/0.npy": np.stack([classes(2)] * 3),
    "normals/0.npy": np.ones((40, 48, 3), np.float32),
    "flow/0.npy": np.ones((40, 48, 2), np.float32),
}


@pytest.mark.parametrize(("name", "array"), [*CACHES.items(), *ANNOTATIONS.items()], ids=str)
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_arrays_of_clean_pictures_are_left_out(tmp_path, name, array, suffix):
    picture = "0.png" if name == "0.npy" else "images/0.png"
    put(tmp_path, picture, PICTURE)
    path = (tmp_path / name).with_suffix(suffix)
    path.parent.mkdir(exist_ok=True)
    np.save(path, array) if suffix == ".npy" else np.savez(path, boxes=np.ones((2, 4)), img=array)
    mirror = Mirror(open_store(tmp_path), frozenset({picture}), frozenset(), frozenset(), link=True)
    own = path.relative_to(tmp_path).as_posix()
    is_cache = any(array is each for each in CACHES.values())
    names, _ = mirror.list_files()
    assert (own in names) != is_cache
    assert (repr(own) in " ".join(mirror.describe_clean_pictures(names))) == is_cache


CONTAINERS = ("labels.cache", "a.tfrecord-00000-of-00010", "b.record", "images.h5", "val.zip", "db/data.mdb")


def test_containers_are_named_in_one_line(tmp_path):
    for name in (*CONTAINERS, "velodyne/0.bin", "cache.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"0")
    np.save(tmp_path / "x_test.npy", np.stack([PICTURE] * 2))
    put(tmp_path, "0.png", PICTURE)
    mirror = Mirror(open_store(tmp_path), frozenset({"0.png"}), frozenset(), frozenset(), link=True)
    (line,) = mirror.describe_clean_pictures(mirror.list_files()[0])
    assert f"{len(CONTAINERS) + 1} files" in line


@pytest.mark.parametrize("how", ["link", "copy"])
def test_pictures_in_files_of_labelme_are_emptied(tmp_path, how):
    source, out = tmp_path / "source", tmp_path / "out"
    put(source, "0.jpg", PICTURE)
    data = base64.b64encode((source / "0.jpg").read_bytes()).decode()
    shapes = [{"label": "a", "points": [[1.50, 2]], "mask": data[:90]}]
    files = {
        "0.json": {"shapes": shapes, "imageData": data, "imagePath": "0.jpg"},
        "null.json": {"imageData": None},
        "path.json": {"imageData": "images/0.jpg"},
    }
    for name, content in files.items():
        (source / name).write_text(json.dumps(content, indent=2))
    said = cli("make-c", "--source", source, *FEW, "--set", f"mirror={how}", "--output", out).stderr
    assert said.endswith(": 1 file, '0.json'\n")
    for variant in ("clean", "contrast/2"):
        for name, content in files.items():
            wanted = content | {"imageData": None} if name == "0.json" else content
            assert (out / variant / name).read_text() == json.dumps(wanted, indent=2)
    assert json.loads((source / "0.json").read_text())["imageData"] == data
    cli("verify", out)
    assert (
        "nothing to do"
        in cli("make-c", "--source", source, *FEW, "--set", f"mirror={how}", "--output", out).stdout
    )
