"""Lists of images: keys, and the lists that the authors of data sets write for a split."""

import json

import pytest

from robustgen.errors import ConfigError
from robustgen.sets.dataset.subset_lists import select_listed
from tests.helpers import cli, cli_error, put_photo

KEYS = (
    "Annotations/bear/00000.png",
    "Annotations/bear/00001.png",
    "JPEGImages/2007_000032.jpg",
    "JPEGImages/2007_000033.jpg",
    "JPEGImages/bear/00000.jpg",
    "JPEGImages/bear/00001.jpg",
    "JPEGImages/camel/00000.jpg",
    "SegmentationClass/2007_000032.png",
    "leftImg8bit/val/bonn/bonn_000000_leftImg8bit.png",
    "test/image (1).png",
    "test/rgb_00045.jpg",
    "test/sync_depth_00045.png",
)
MAPS = frozenset(key for key in KEYS if key.startswith(("Annotations", "Segmentation")) or "depth" in key)
BONN = "leftImg8bit/val/bonn/bonn_000000_leftImg8bit.png"


def select(tmp_path, text, keys=KEYS):
    path = tmp_path / "val.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [*select_listed(str(path), keys, MAPS).keys]


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("2007_000032\n2007_000033\n", ["JPEGImages/2007_000032.jpg", "JPEGImages/2007_000033.jpg"]),
        ("2007_000033\r\n\r\n# 2007_000032\r\n", ["JPEGImages/2007_000033.jpg"]),
        ("./JPEGImages/2007_000033.jpg\n", ["JPEGImages/2007_000033.jpg"]),
        ("/data/voc/JPEGImages/2007_000033.jpg\n", ["JPEGImages/2007_000033.jpg"]),
        ("..\\JPEGImages\\2007_000033.jpg\r\n", ["JPEGImages/2007_000033.jpg"]),
        ("\ufeffJPEGImages/2007_000033.jpg\n", ["JPEGImages/2007_000033.jpg"]),
        ("2007_000033\r\n".encode("utf-16"), ["JPEGImages/2007_000033.jpg"]),
        ("/test/rgb_00045.jpg /test/sync_depth_00045.png 518.8579\n", ["test/rgb_00045.jpg"]),
        ("test/sync_depth_00045.png\ttest/rgb_00045.jpg\n", ["test/rgb_00045.jpg"]),
        (
            "id,image\n1,2007_000032.jpg\n2,image (1).png\n",
            ["JPEGImages/2007_000032.jpg", "test/image (1).png"],
        ),
        (
            "2007_000032 1 3 1\n2007_000033 2 3 1\n",
            ["JPEGImages/2007_000032.jpg", "JPEGImages/2007_000033.jpg"],
        ),
        ("bear\n", ["JPEGImages/bear/00000.jpg", "JPEGImages/bear/00001.jpg"]),
        ("bear/00001\ncamel\n", ["JPEGImages/bear/00001.jpg", "JPEGImages/camel/00000.jpg"]),
        ("bonn/bonn_000000\n", [BONN]),
        ("image (1).png\n", ["test/image (1).png"]),
        ("SegmentationClass/2007_000032.png\n", ["SegmentationClass/2007_000032.png"]),
    ],
    ids=repr,
)
def test_a_split_list_names_its_images(tmp_path, text, chosen):
    assert [*select(tmp_path, text)] == chosen


@pytest.mark.parametrize(
    ("text", "line", "named"),
    [
        ("2007_000032\n2008_000001\n", 2, "'2008_000001'"),
        ("train/2007_000032.jpg\n", 1, "'train/2007_000032.jpg'"),
        ("2007_000032.png.jpg 1\n2007_000033.jpg 1\n", 1, "'2007_000032.png.jpg'"),
        ("\n00000\n", 2, "'JPEGImages/bear/00000.jpg' or 'JPEGImages/camel/00000.jpg'"),
        (
            "2007_000032.jpg 2007_000033.jpg\n",
            1,
            "file_column",
        ),
    ],
    ids=repr,
)
def test_a_line_of_no_image_or_of_two_is_named(tmp_path, text, line, named):
    with pytest.raises(ConfigError) as raised:
        select(tmp_path, text)
    assert f"val.txt, line {line}: " in str(raised.value) and named in str(raised.value)


def test_numbers_beside_missing_files_are_no_images(tmp_path):
    with pytest.raises(ConfigError, match="line 1"):
        select(tmp_path, "a.jpg 0\nb.jpg 1\n", ("0.png", "1.png", "b.jpg"))


@pytest.mark.parametrize("text", ["", "# nothing\n\n", "2007_000032 -1\n2007_000033  1\n"], ids=repr)
def test_lists_of_nothing_and_of_marks_are_refused(tmp_path, text):
    with pytest.raises(ConfigError, match=r"val\.txt"):
        select(tmp_path, text)


def test_a_stem_names_the_picture_beside_its_label_map(tmp_path):
    for folder in ("images", "labels"):
        put_photo(tmp_path / "source" / folder / "0.png")
    (tmp_path / "list.txt").write_text("0\n")
    flags = (
        "--source",
        tmp_path / "source",
        "--subset",
        f"@{tmp_path}/list.txt",
        "--output",
        tmp_path / "out",
    )
    few = ("--corruptions", "contrast", "--severities", "1", "--format", "png", "--jobs", "1")
    cli("make-c", *flags, *few)
    assert [path.parent.name for path in (tmp_path / "out/clean").rglob("*.png")] == ["images"]


@pytest.mark.parametrize("subset", ["", "@"])
def test_an_empty_subset_is_refused(tmp_path, subset):
    put_photo(tmp_path / "source/a/0.png")
    message = cli_error("make-c", "--source", tmp_path / "source", "--subset", subset)
    assert message.startswith("--subset") and "@FILE" in message


def write(path, text):
    path.write_text(text)
    return path


def test_a_list_says_how_it_was_understood(tmp_path):
    for name in "abcd":
        put_photo(tmp_path / f"set/{name}.jpg")
    made = ("make-c", "--source", tmp_path / "set", "--dry-run", "--subset")
    named = write(tmp_path / "named.csv", "id,image\n9,/up/1a2b3c4d-a.jpg\n8,b.jpg\n7,/up/0a2b3c4d-c.jpg\n")
    lines = cli(*made, f"@{named}").stdout.splitlines()
    assert "3 images" in lines[0] and "2 names have a prefix" in lines[1]
    assert [line.rpartition("-> ")[2] for line in lines if line.startswith("columns")][1:] == [
        "a.jpg",
        "b.jpg",
        "c.jpg",
    ]
    listed = write(tmp_path / "list.txt", "a.jpg 0\nb.jpg 1\nc.jpg 2\n")
    assert "split_column" in cli(*made, f"@{listed}").stdout
    assert " 1 image" in cli(*made, f"@{listed}", "--set", "split_column=2", "--split", "2").stdout
    assert "read 'x.jpg'" in cli_error(
        *made, f"@{write(tmp_path / 'x.csv', 'age,image' + chr(10) + '1,x.jpg')}"
    )


def test_annotations_of_coco_list_images_without_objects_too(tmp_path):
    images = [{"id": n, "file_name": f"{n}.jpg"} for n in range(3)]
    text = json.dumps({"images": images, "annotations": [{"image_id": 1, "category_id": 1}]})
    assert select(tmp_path, text, ("0.jpg", "1.jpg", "2.jpg", "3.jpg")) == ["0.jpg", "1.jpg", "2.jpg"]


def test_labels_and_a_list_choose_the_split_that_a_folder_has(tmp_path):
    rows = [(name, "xy"[place % 2], ("val", "test")[place > 1]) for place, name in enumerate("abcd")]
    for seed, (name, label, split) in enumerate(rows):
        for place in (tmp_path / "flat", tmp_path / "split" / split, tmp_path / "tree" / split / label):
            put_photo(place / f"{name}.jpg", seed=seed)
    table = "image,label,split\n" + "".join(f"{name}.jpg,{label},{split}\n" for name, label, split in rows)
    labels = write(tmp_path / "labels.csv", table)
    plain = write(tmp_path / "plain.csv", "".join(f"{name}.jpg,{label}\n" for name, label, _ in rows))
    ways = {
        "tree": ("tree",),
        "labels": ("flat", "--labels", labels),
        "folder": ("split", "--labels", labels),
        "list": ("flat", "--labels", plain, "--subset", f"@{labels}"),
    }
    sets = []
    for way, (source, *flags) in ways.items():
        output = tmp_path / "out" / way
        of_split = ("--source", tmp_path / source, *flags, "--split", "test", "--output", output)
        cli("make-c", *of_split, "--corruptions", "gaussian_noise", "--severities", "3", "--no-clean")
        sets.append({path.name: path.read_bytes() for path in (output / "gaussian_noise/3").rglob("*.jpg")})
    assert len(sets[0]) == 2 and all(each == sets[0] for each in sets)


@pytest.mark.parametrize(
    ("text", "folder"),
    [("train/1.jpg 0\ntest/2.jpg 1\n", "images"), ("/data/x/test/1.jpg\n", "train"), ("val\\1\n", "test")],
)
def test_images_of_another_split_are_not_those_of_the_source(tmp_path, text, folder):
    (tmp_path / "list.txt").write_text(text)
    keys = ("1.jpg", "2.jpg")
    with pytest.raises(ConfigError, match="one split"):
        select_listed(str(tmp_path / "list.txt"), keys, folder=folder)
    own = text.replace("test", "val").replace("train", "val")
    (tmp_path / "list.txt").write_text(own)
    assert select_listed(str(tmp_path / "list.txt"), keys, folder="val").keys == keys[: own.count("\n")]
