"""Detection and segmentation sets: every name, size and format kept, and all other files in every variant."""

import json
import os
import re
import shutil

import numpy as np
import pytest
from PIL import Image, ImageCms

from robustgen.lab.inspection.report import summarise_set
from robustgen.pixels.benchmarks.kinds import CLEAN_VARIANT
from robustgen.sets.dataset.mirror import select_companions
from robustgen.sets.dataset.opening import open_set
from tests.helpers import (
    cli,
    cli_error,
    errors_of,
    findings,
    kept,
    latest,
    maker,
    pixels_of,
    put_photo,
    put_tagged,
    read_upright,
    tree,
)

ONE = ("--corruptions", "contrast", "--severities", "2", "--jobs", "1")
FEW = (*ONE, "--format", "original", "--set", "constants_for=224")
LINK = ("--set", "mirror=link")
VARIANTS = ("clean", "contrast/2")


make_c = maker(*FEW)


@pytest.fixture
def coco(tmp_path):
    """Three photographs of different sizes with boxes and a mask, laid out as COCO is."""
    root = tmp_path / "coco"
    sizes = [(48, 64), (40, 70), (90, 50)]
    for number, (height, width) in enumerate(sizes):
        put_photo(root / "val2017" / f"{number:012d}.jpg", height, width, seed=number)
    images = [
        {"id": number, "file_name": f"{number:012d}.jpg", "height": height, "width": width}
        for number, (height, width) in enumerate(sizes)
    ]
    square = [2, 2, 22, 2, 22, 22, 2, 22]
    box = {"bbox": [2, 2, 20, 20], "area": 400, "iscrowd": 0, "category_id": 7, "segmentation": [square]}
    content = {
        "images": images,
        "annotations": [{"id": number + 1, "image_id": number} | box for number in range(3)],
        "categories": [{"id": 7, "name": "cat"}],
    }
    (root / "annotations").mkdir()
    (root / "annotations" / "instances_val2017.json").write_text(json.dumps(content))
    (root / ".cache").mkdir()
    (root / ".cache" / "x").write_text("hidden")
    return root


@pytest.fixture
def cityscapes(tmp_path):
    """Two street scenes with maps of labels, which are PNG files too."""
    root = tmp_path / "cityscapes"
    for number in range(2):
        name = f"frankfurt_{number:06d}"
        put_photo(root / "leftImg8bit/val/frankfurt" / f"{name}_leftImg8bit.png", seed=number)
        labels = root / "gtFine/val/frankfurt" / f"{name}_gtFine_labelIds.png"
        labels.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.arange(36 * 40, dtype=np.uint8).reshape(36, 40) % 34).save(labels)
    return root


@pytest.mark.parametrize("how", ["link", "copy"])
def test_pycocotools_reads_an_variant_as_it_is(coco, tmp_path, how):
    from pycocotools.coco import COCO

    make_c(coco, tmp_path / "out", "--set", f"mirror={how}")
    for variant in VARIANTS:
        root = tmp_path / "out" / variant
        annotations = root / "annotations" / "instances_val2017.json"
        held = COCO(annotations)
        for image in held.loadImgs(held.getImgIds()):
            pixels = pixels_of(root / "val2017" / image["file_name"])
            assert pixels.shape == (image["height"], image["width"], 3)
            (annotation,) = held.loadAnns(held.getAnnIds(image["id"]))
            assert held.annToMask(annotation).shape == pixels.shape[:2]
        original = coco / "annotations" / "instances_val2017.json"
        assert annotations.read_bytes() == original.read_bytes()
        assert annotations.samefile(original) == (how == "link")
    assert not list((tmp_path / "out").rglob("x"))


def test_verify_knows_what_was_mirrored(coco, tmp_path):
    make_c(coco, tmp_path / "out", "--set", "mirror=copy")
    said = cli("verify", tmp_path / "out", "--deep", "all").stdout
    assert "9 files checked, 3 images regenerated, 0 findings" in said
    held = json.loads((tmp_path / "out" / "dataset.json").read_text())
    assert held["complete"] and held["counts"]["files"] == 9
    (tmp_path / "out" / "clean/annotations/instances_val2017.json").write_text("{}")
    said = cli("verify", tmp_path / "out", status=1).stdout
    assert "truncated clean/annotations/instances_val2017.json" in said


def test_mirrored_files_follow_the_source(coco, tmp_path):
    make_c(coco, tmp_path / "out", *LINK)
    before = tree(tmp_path / "out")
    assert kept(make_c(coco, tmp_path / "out", *LINK))
    assert tree(tmp_path / "out") == before
    (coco / "annotations" / "instances_val2017.json").unlink()
    (coco / "annotations" / "new.txt").write_text("new")
    make_c(coco, tmp_path / "out", *LINK)
    assert [path.name for path in (tmp_path / "out/contrast/2/annotations").iterdir()] == ["new.txt"]
    cli("verify", tmp_path / "out")


def test_an_interrupted_or_divided_run_gives_the_same(coco, tmp_path):
    for number in (1, 2):
        make_c(coco, tmp_path / "parts", *LINK, "--shard", f"{number}/2")
    make_c(coco, tmp_path / "one", "--set", "mirror=copy")
    assert tree(tmp_path / "parts") == tree(tmp_path / "one")


def test_overwrite_removes_what_was_mirrored(coco, tmp_path):
    make_c(coco, tmp_path / "out", *LINK)
    make_c(coco, tmp_path / "out", "--seed", "1", "--overwrite")
    assert not list((tmp_path / "out").rglob("annotations"))
    assert (coco / "annotations" / "instances_val2017.json").exists()
    cli("verify", tmp_path / "out")


def test_maps_of_labels_are_no_images(cityscapes, tmp_path):
    make_c(cityscapes, tmp_path / "out", *LINK, "--subset", "leftImg8bit/*")
    for path in (cityscapes / "gtFine").rglob("*.png"):
        name = path.relative_to(cityscapes)
        assert (tmp_path / "out/contrast/2" / name).read_bytes() == path.read_bytes()
    for path in (cityscapes / "leftImg8bit").rglob("*.png"):
        name = path.relative_to(cityscapes)
        assert np.array_equal(pixels_of(tmp_path / "out/clean" / name), pixels_of(path))
        assert not np.array_equal(pixels_of(tmp_path / "out/contrast/2" / name), pixels_of(path))
    limited = (*LINK, "--subset", "leftImg8bit/*", "--limit", "1")
    make_c(cityscapes, tmp_path / "limited", *limited)
    # Images that the limit leaves out are not repeated as they are.
    assert len(list((tmp_path / "limited/contrast/2/leftImg8bit").rglob("*.png"))) == 1
    cli("verify", tmp_path / "out", "--deep", "all")


@pytest.mark.parametrize("recorded", [True, False])
def test_maps_of_labels_are_not_read_as_images(cityscapes, tmp_path, recorded):
    out = tmp_path / "out"
    make_c(cityscapes, out, "--subset", "leftImg8bit/*", *LINK)
    if not recorded:
        (out / "clean" / "SHA256SUMS").unlink()
    assert summarise_set(out).sample.total == 2
    assert open_set(out).keys_of(CLEAN_VARIANT) == tuple(
        f"leftImg8bit/val/frankfurt/frankfurt_{number:06d}_leftImg8bit.png" for number in range(2)
    )
    assert "2 images of each" in cli("compare", out, out).stdout


def test_the_variants_are_read_by_torchvision(cityscapes, tmp_path):
    torchvision = pytest.importorskip("torchvision")
    for path in (cityscapes / "gtFine").rglob("*labelIds.png"):
        shutil.copy(path, path.with_name(path.name.replace("labelIds", "instanceIds")))
    make_c(cityscapes, tmp_path / "out", *LINK, "--subset", "leftImg8bit/*")
    held = torchvision.datasets.Cityscapes(
        str(tmp_path / "out/contrast/2"), split="val", target_type="semantic"
    )
    image, labels = held[0]
    assert len(held) == 2 and image.size == labels.size == (40, 36)


def test_links_and_files_about_the_set_are_named_and_not_mirrored(coco, tmp_path):
    (coco / "link.json").symlink_to("/etc/hostname")
    (coco / "folder").symlink_to("/etc")
    (coco / "SHA256SUMS").write_text("of the source")
    os.mkfifo(coco / "pipe")
    make_c(coco, tmp_path / "out", *LINK, status=1)
    failed = {error["key"] for error in errors_of(tmp_path / "out")}
    assert failed == {"link.json", "folder", "SHA256SUMS", "pipe"}
    assert (tmp_path / "out/contrast/2/annotations/instances_val2017.json").exists()


def test_files_that_lead_back_to_the_source_are_named(coco, tmp_path):
    (coco / "data.yaml").write_text(f"path: {coco}\nval: val2017\n")
    (coco / "val.txt").write_text("/elsewhere/val2017/000000000000.jpg\n")
    (coco / "relative.txt").write_text("val2017/000000000000.jpg\n./val2017/000000000001.jpg\n")
    (coco / "urls.json").write_text('{"coco_url": "http://images.cocodataset.org/val2017/000000000000.jpg"}')
    (coco / "escaped.json").write_text(json.dumps({"path": f"{coco}/val2017"}).replace("/", "\\/"))
    (coco / "beside.yaml").write_text(f"path: {coco}-of-others\n")
    said = make_c(coco, tmp_path / "out", *LINK).stderr.splitlines()
    named = "'data.yaml', 'escaped.json', 'val.txt'"
    assert any(re.fullmatch(rf"mirror: .*\b3 files\b.*{named}", line) for line in said)


def test_one_warning_that_boxes_do_not_follow(coco, tmp_path):
    said = make_c(coco, tmp_path / "out", *LINK, "--corruptions", "elastic_transform,fog").stderr
    assert said.count("elastic_transform moves") == 1
    assert "moves" not in make_c(coco, tmp_path / "fog", *LINK).stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ("--format", "png"),
            "mirror: needs `format: original`, which keeps names; or choose `mirror: none`",
        ),
        (
            ("--subset", "nowhere/*"),
            "subset: no key matches 'nowhere/*'; the first is 'val2017/000000000000.jpg'",
        ),
        (("--set", "mirror=move"), "--set mirror: must be 'link' or 'copy', not 'move'"),
    ],
    ids=str,
)
def test_what_does_not_go_together(coco, tmp_path, flags, message):
    given = latest(*FEW, *LINK, *flags)
    assert cli_error("make-c", "--source", coco, "--output", tmp_path / "out", *given) == message


# --- the recipe of the data set, and what is repeated ---------------------------------------------


def test_the_data_set_coco_c_is_the_whole_recipe(coco, tmp_path):
    few = ("--source", coco, *ONE)
    said = cli("make-c", "--dataset", "coco-c", *few, "--output", tmp_path / "out").stderr
    assert said.splitlines()[0] == "3 images, 2 outputs of each"
    assert re.search("^mirror: 1 file .*2 folders .*links", said, re.M)
    flags = ("--edition", "coco-c", "--format", "original", *LINK)
    cli("make-c", *flags, *few, "--output", tmp_path / "spelled")
    assert tree(tmp_path / "out") == tree(tmp_path / "spelled")
    assert (tmp_path / "out/contrast/2/annotations/instances_val2017.json").is_file()
    without = ("--dataset", "coco-c", *few, "--set", "mirror=none", "--output", tmp_path / "without")
    assert "mirror" not in cli("make-c", *without, "--format", "png").stderr
    assert not list((tmp_path / "without").rglob("annotations"))


def test_a_dry_run_says_what_is_repeated(coco, tmp_path):
    (coco / "annotations" / "big.bin").write_bytes(bytes(5000))
    said = make_c(coco, tmp_path / "out", "--set", "mirror=copy", "--dry-run").stdout
    assert "mirror   2 files of " in said and "as copies, 4 inodes and 1" in said and "big.bin" in said
    assert not (tmp_path / "out").exists()


def test_files_of_images_that_were_not_chosen_are_not_repeated(cityscapes, tmp_path):
    put_photo(cityscapes / "leftImg8bit/train/bonn/bonn_000000_leftImg8bit.png")
    put_photo(cityscapes / "gtFine/train/bonn/bonn_000000_gtFine_labelIds.png")
    for name in ("val/frankfurt/frankfurt_000000", "train/bonn/bonn_000000"):
        (cityscapes / "gtFine" / f"{name}_gtFine_polygons.json").write_text("{}")
    (cityscapes / "README").write_text("read me")
    said = make_c(cityscapes, tmp_path / "out", *LINK, "--subset", "leftImg8bit/val/*").stderr
    assert "mirror: 4 files of" in said
    repeated = {name for name in tree(tmp_path / "out/contrast/2") if not name.startswith("leftImg8bit")}
    labels = {f"gtFine/val/frankfurt/frankfurt_{n:06d}_gtFine_labelIds.png" for n in range(2)}
    polygons = "gtFine/val/frankfurt/frankfurt_000000_gtFine_polygons.json"
    assert repeated == labels | {polygons, "README", "SHA256SUMS"}
    assert not (tmp_path / "out/clean/leftImg8bit/train").exists()


@pytest.mark.parametrize(
    ("images", "others", "together", "apart"),
    [
        (
            ["val2017/1.jpg", "val2017/2.jpg"],
            ["train2017/3.jpg"],
            ["annotations/instances_val2017.json", "panoptic/panoptic_val2017/1.png", "LICENCE"],
            ["annotations/instances_train2017.json", "labels/train2017/3.txt", "train2017/3.jpg"],
        ),
        (
            ["JPEGImages/a_1.jpg"],
            ["JPEGImages/a_1_2.jpg", "JPEGImages/b.jpg", "Masks/b.png"],
            ["Annotations/a_1.xml", "Masks/a_1.png", "ImageSets/train.txt", "notes/a.txt"],
            ["Annotations/a_1_2.xml", "Annotations/b.xml", "JPEGImages/b.jpg", "Masks/b.png"],
        ),
        (
            ["images/val/1.jpg"],
            ["images/train/1.jpg"],
            ["labels/val/1.txt", "data.yaml"],
            ["images/train/1.jpg", "labels/train/1.txt"],
        ),
    ],
    ids=["coco", "pascal", "yolo"],
)
def test_files_go_with_the_images_that_they_are_named_after(images, others, together, apart):
    assert select_companions([*together, *apart], images, others) == together


# --- orientation and colour profile ----------------------------------------------------------------

PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def likeness(one, other):
    """The correlation of two pictures of one size; 0 for other sizes."""
    if one.shape != other.shape:
        return 0
    return np.corrcoef(one.ravel(), other.ravel())[0, 1]


@pytest.fixture(scope="module")
def turned(tmp_path_factory):
    """Files of four formats in eight orientations, with a colour profile and other EXIF data."""
    root = tmp_path_factory.mktemp("turned") / "src"
    for number in range(9):
        for suffix in (".jpg", ".PNG", ".webp", ".tif"):
            put_tagged(root / "val" / f"{number}{suffix[1:]}{suffix}", number, profile=PROFILE)
    # Names that differ by a word alone could be those of pictures and maps.
    flags = ("--set", "maps=none", "--output", root.parent / "out")
    cli("make-c", "--source", root, "--dataset", "coco-c", *ONE, *flags)
    return root


def test_mirrored_files_keep_orientation_and_profile_and_nothing_else(turned):
    for variant in VARIANTS:
        for number in range(9):
            for suffix in (".jpg", ".PNG", ".webp", ".tif"):
                name = f"val/{number}{suffix[1:]}{suffix}"
                made, source = turned.parent / "out" / variant / name, turned / name
                assert likeness(read_upright(made), read_upright(source)) > 0.95, (variant, name)
                with Image.open(made) as image:
                    assert image.info["icc_profile"] == PROFILE
                    exif = image.getexif()
                    assert exif.get(0x0112, 0) == number
                    assert suffix == ".tif" or len(exif) == (number > 0)


def test_what_was_added_does_not_change_the_rest(turned, tmp_path):
    for suffix in (".jpg", ".png", ".webp", ".tif"):
        put_tagged(tmp_path / "plain" / "val" / f"6{suffix}", 0)
        put_tagged(tmp_path / "tagged" / "val" / f"6{suffix}", 1, profile=PROFILE)
    photos = {name: put_photo(tmp_path / name / "val" / "6.bmp") for name in ("plain", "tagged")}
    assert len(photos) == 2
    for name in ("plain", "tagged"):
        cli(
            "make-c",
            "--source",
            tmp_path / name,
            "--dataset",
            "coco-c",
            *ONE,
            "--set",
            "maps=none",
            "--output",
            tmp_path / f"{name}-c",
        )
    for variant in VARIANTS:
        assert (tmp_path / "plain-c" / variant / "val/6.bmp").read_bytes() == (
            tmp_path / "tagged-c" / variant / "val/6.bmp"
        ).read_bytes()
        for suffix in (".jpg", ".png", ".webp", ".tif"):
            made = (tmp_path / "plain-c" / variant / "val" / f"6{suffix}").read_bytes()
            assert b"Exif" not in made and b"eXIf" not in made and b"ICC" not in made and b"VP8X" not in made


def test_tagged_images_are_counted_also_when_there_is_nothing_to_do(turned, tmp_path):
    flags = ("--set", "maps=none", "--output", turned.parent / "out")
    again = cli("make-c", "--source", turned, "--dataset", "coco-c", *ONE, *flags)
    assert "28 of 36 images have an EXIF orientation" in again.stderr and "kept" in again.stderr
    for form in ("jpeg", "png", "npy"):
        flags = (*ONE, "--format", form, "--edition", "imagenet-64")
        other = cli("make-c", "--source", turned, *flags, "--output", tmp_path / form)
        assert "28 of 36 images have an EXIF orientation" in other.stderr and "dropped" in other.stderr
    assert (
        "EXIF"
        not in cli("make-c", "--source", turned, "--subset", "*/0*", *ONE, "--output", tmp_path / "0").stderr
    )


def test_other_formats_are_as_published(turned, tmp_path):
    cli("make-c", "--source", turned, *ONE, "--output", tmp_path / "jpeg", "--format", "jpeg")
    for made in (tmp_path / "jpeg" / "clean").rglob("*.j*"):
        with Image.open(made) as image:
            assert image.size == (48, 40) and not image.getexif() and "icc_profile" not in image.info


def test_a_set_of_tagged_images_is_verified(turned, tmp_path):
    assert findings(turned.parent / "out", "--deep", "all", status=0) == []
    shutil.copytree(turned.parent / "out", tmp_path / "out")
    file = tmp_path / "out" / "clean" / "val" / "6jpg.jpg"
    Image.open(file).save(file, quality=95, exif=b"", icc_profile=None)
    assert any("6jpg.jpg" in line for line in findings(tmp_path / "out", "--deep", "all"))


def test_a_set_is_not_turned(turned, tmp_path):
    line = cli_error("make-c", "--source", turned, "--set", "orientation=upright", "--output", tmp_path / "x")
    assert "orientation" in line and "--annotations" in line
