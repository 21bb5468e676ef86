"""Sets for detection and segmentation: label maps beside the pictures are repeated, never corrupted."""

import numpy as np
import pytest
from PIL import Image

from robustgen.pixels.benchmarks.kinds import CLEAN_VARIANT
from robustgen.sets.dataset.opening import open_set
from tests.helpers import cli, cli_error, manifest, photo, pixels_of

FEW = ("--dataset", "coco-c", "--corruptions", "contrast", "--severities", "2", "--jobs", "1")


def put(root, name, pixels, mode=None):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(pixels)
    if mode == "P":
        image = image.convert("P") if pixels.ndim == 3 else image
        if pixels.ndim == 2:
            image.putpalette(
                [value for index in range(256) for value in (index, 255 - index, 7 * index % 256)]
            )
    image.save(path)


def put_picture(root, name):
    put(root, name, photo(40, 48, seed=len(name) + ord(name[-5])))


def classes(number, dtype=np.uint8):
    """A map of `number` classes."""
    return (np.arange(40 * 48).reshape(40, 48) // 200 % number).astype(dtype)


def coloured(number):
    """A map of classes in colours, as Cityscapes has it for people."""
    return np.stack([classes(number) * 30, 255 - classes(number), classes(number)], 2)


def depth():
    """Depth in millimetres."""
    return np.linspace(600, 9000, 40 * 48).reshape(40, 48).astype(np.uint16)


def put_cityscapes(root):
    for name in ("bonn/bonn_000000_000019", "ulm/ulm_000001_000019"):
        put_picture(root, f"leftImg8bit/val/{name}_leftImg8bit.png")
        put(root, f"gtFine/val/{name}_gtFine_labelIds.png", classes(34))
        put(root, f"gtFine/val/{name}_gtFine_instanceIds.png", classes(9, np.uint16) * 1000)
        put(root, f"gtFine/val/{name}_gtFine_color.png", coloured(8))
    return "leftImg8bit/*"


def put_ade20k(root):
    for number in range(2):
        put_picture(root, f"ADEChallengeData2016/images/validation/ADE_val_{number:08d}.jpg")
        put(root, f"ADEChallengeData2016/annotations/validation/ADE_val_{number:08d}.png", classes(9) * 16)
    return "*/images/*"


def put_pascal(root):
    for number in range(3):
        put_picture(root, f"JPEGImages/2007_{number:06d}.jpg")
    for folder in ("SegmentationClass", "SegmentationObject"):
        put(root, f"{folder}/2007_000001.png", classes(9), "P")
    return "JPEGImages/*"


def put_masks_beside(root):
    for number in range(2):
        put_picture(root, f"images/{number}.png")
        put(root, f"masks/{number}.png", classes(2) * 255)
    # A mask whose picture is missing.
    put(root, "masks/7.png", classes(2) * 255)
    return "images/*"


def put_masks_between(root):
    for number in range(2):
        put_picture(root, f"benign ({number}).png")
        put(root, f"benign ({number})_mask.png", classes(2) * 255)
    return "*).png"


def put_grey_masks_of_jpeg(root):
    for number in range(2):
        put_picture(root, f"images/{number}.jpg")
        put(root, f"masks/{number}.jpg", classes(2) * 255)
    return "images/*"


def put_depth(root):
    for number in range(2):
        put_picture(root, f"kitchen/rgb/{number}.png")
        put(root, f"kitchen/depth/{number}.png", depth())
    return "*/rgb/*"


def put_unnamed(root):
    """Pictures and palettes of one name, in folders that say nothing."""
    for number in range(2):
        put_picture(root, f"a/{number}.png")
        put(root, f"b/{number}.png", classes(5), "P")
    return "a/*"


LAYOUTS = [
    value for name, value in dict(globals()).items() if name.startswith("put_") and name != "put_picture"
]


@pytest.fixture(params=LAYOUTS, ids=lambda put_layout: put_layout.__name__[4:])
def layout(request, tmp_path):
    """A source, its pictures, its other files, and the pattern of the pictures."""
    pattern = request.param(tmp_path / "source")
    names = {path.relative_to(tmp_path / "source").as_posix() for path in (tmp_path / "source").rglob("*.*")}
    names = {name for name in names if (tmp_path / "source" / name).is_file()}
    maps = {
        name for name in names if np.asarray(Image.open(tmp_path / "source" / name)).size and is_map(name)
    }
    return tmp_path / "source", names - maps, maps, pattern


def is_map(name):
    words = ("gtFine", "annotations", "Segmentation", "mask", "depth")
    return name.startswith("b/") or any(word in name for word in words)


def test_label_maps_are_repeated_and_pictures_corrupted(layout, tmp_path):
    source, pictures, maps, pattern = layout
    out = tmp_path / "out"
    said = cli("make-c", "--source", source, *FEW, "--output", out).stderr
    count = f"{len(maps)} label map{'s' * (len(maps) > 1)}, such as {min(maps)!r}: repeated unchanged"
    assert f"{count}, and not corrupted; the images are those of --subset {pattern!r}" in said
    for name in maps:
        for variant in ("clean", "contrast/2"):
            assert (out / variant / name).read_bytes() == (source / name).read_bytes()
    for name in pictures:
        assert not np.array_equal(pixels_of(out / "contrast/2" / name), pixels_of(source / name))
    assert {*open_set(out).keys_of(CLEAN_VARIANT)} == pictures
    assert manifest(out)["config"]["subset"] == pattern
    assert "0 findings" in cli("verify", out, "--deep", "all").stdout
    assert "nothing to do" in cli("make-c", "--source", source, *FEW, "--output", out).stdout


def test_maps_that_subset_names_are_corrupted(tmp_path):
    put_masks_beside(tmp_path / "source")
    command = ("make-c", "--source", tmp_path / "source", *FEW)
    said = cli(*command, "--subset", "*", "--output", tmp_path / "all").stderr
    assert "--subset selects 3 label maps, such as 'masks/0.png'; they are corrupted like pictures" in said
    said = cli(*command, "--subset", "masks/*", "--output", tmp_path / "masks").stderr
    assert "label map" not in said
    listed = tmp_path / "list.txt"
    listed.write_text("images/0.png\n")
    said = cli(*command, "--subset", f"@{listed}", "--output", tmp_path / "listed").stderr
    assert "mirror: repeats no label maps with --subset @FILE, only with --subset PATTERN" in said
    assert [path.name for path in tmp_path.glob("listed/clean/*/*")] == ["0.png"]


def test_maps_that_no_pattern_leaves_out_are_refused(tmp_path):
    for name in ("ab", "ac"):
        put_picture(tmp_path / "source", f"{name}.png")
        put(tmp_path / "source", f"{name}_mask.png", classes(2))
    put_picture(tmp_path / "source", "mask.png")
    message = cli_error("make-c", "--source", tmp_path / "source", *FEW, "--output", tmp_path / "out")
    assert message == (
        f"{tmp_path}/source: contains 2 label maps, such as 'ab_mask.png': list the pictures with "
        "--subset @FILE, or put the maps into a folder of their own"
    )


def test_maps_are_left_out_without_mirror(tmp_path):
    put_masks_beside(tmp_path / "source")
    flags = ("--set", "mirror=none", "--format", "png", "--output", tmp_path / "out")
    said = cli("make-c", "--source", tmp_path / "source", *FEW, *flags).stderr
    assert "3 label maps, such as 'masks/0.png': left out, and not corrupted" in said
    assert not (tmp_path / "out/contrast/2/masks").exists()


@pytest.mark.parametrize(
    ("put_other", "key", "pattern"),
    [
        # Depth in colours.
        (lambda root: put_picture(root, "depth/0.png"), "depth/0.png", "images/*"),
        # Every other file looks like a map.
        (
            lambda root: [
                put_picture(root, "b/0.png"),
                put(root, "b/1.png", classes(3)),
                put_picture(root, "images/1.png"),
            ],
            "b/0.png",
            "images/*",
        ),
        (lambda root: put(root, "depth/17.png", depth()), "depth/17.png", "images/*"),
    ],
    ids=["depth in colours", "mixed", "depth of other times"],
)
def test_what_is_uncertain_is_refused(tmp_path, put_other, key, pattern):
    put_picture(tmp_path / "source", "images/0.png")
    put_other(tmp_path / "source")
    picture = "images/0.png"
    message = cli_error("make-c", "--source", tmp_path / "source", *FEW, "--output", tmp_path / "out")
    assert message == (
        f"{key!r} may be a label map, unlike {picture!r}: select the pictures with --subset, for instance "
        f"--subset '{pattern}' (--subset '*' for all)"
    )
    cli("make-c", "--source", tmp_path / "source", *FEW, "--output", tmp_path / "out", "--subset", pattern)
    assert (tmp_path / "out/contrast/2" / picture).exists()


@pytest.mark.parametrize("suffix", ["jpg", "png"])
def test_pictures_of_one_name_are_pictures(tmp_path, suffix):
    for folder in ("train", "val"):
        put_picture(tmp_path / "source", f"images/{folder}/0.{suffix}")
        put(tmp_path / "source", f"scans/{folder}/0.png", classes(2) * 255)
    for folder in ("train", "val"):
        (tmp_path / f"source/scans/{folder}/0.png").rename(tmp_path / f"source/scans/{folder}/page.png")
    said = cli("make-c", "--source", tmp_path / "source", *FEW, "--output", tmp_path / "out").stderr
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
