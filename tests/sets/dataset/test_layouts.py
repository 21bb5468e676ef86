"""Pictures and label maps: what layouts and names say, and what is refused because it would be a guess."""

import re
from fnmatch import fnmatchcase

import numpy as np
import pytest
from PIL import Image

from robustgen.errors import ConfigError
from robustgen.sets.dataset.layouts import check_pictures, describe_likely_maps, find_maps
from robustgen.sets.sources.base import SourceOptions
from robustgen.sets.sources.folder import ImageFolder
from tests.helpers import cli, photo

HEIGHT, WIDTH = 40, 48


def labels(number, count=3):
    return (np.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH) // (200 + number) % count).astype(np.uint8)


def make(look, number):
    """A picture, or a map."""
    if look == "picture":
        return Image.fromarray(photo(HEIGHT, WIDTH, seed=number))
    if look == "small":
        return Image.fromarray(labels(number)[::2, ::2])
    if look == "depth":
        return Image.fromarray(
            np.linspace(400, 9000, HEIGHT * WIDTH).reshape(HEIGHT, WIDTH).astype(np.uint16)
        )
    if look == "matte":
        return Image.fromarray(np.linspace(0, 255, HEIGHT * WIDTH).reshape(HEIGHT, WIDTH).astype(np.uint8))
    if look == "bit":
        return Image.fromarray(labels(number, 2) * 255).convert("1")
    return Image.fromarray(labels(number) * 40)


def put_layout(root, layout, count=4):
    """Write the files of a layout; return those that are no pictures."""
    for pattern, look in layout.items():
        for number in range(count):
            path = root / pattern.format(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            make(look, number).save(path)
    return {pattern.format(n) for pattern, look in layout.items() for n in range(count) if look != "picture"}


def find(root):
    source = ImageFolder(root, SourceOptions(classes=False))
    found = find_maps(source.keys())
    check_pictures(source, source.keys(), found)
    return found


LAYOUTS = {
    "CHASE": {
        "Image_{:02}L.jpg": "picture",
        "Image_{:02}L_1stHO.png": "bit",
        "Image_{:02}L_2ndHO.png": "bit",
    },
    "STARE": {"im{:04}.ppm": "picture", "im{:04}.ah.ppm": "map"},
    "DRIVE": {
        "images/{}_training.tif": "picture",
        "manual/{}_manual1.gif": "map",
        "mask/{}_training_mask.gif": "map",
    },
    "HRF": {"images/{:02}_dr.jpg": "picture", "manual1/{:02}_dr.tif": "map"},
    "CamVid": {
        "701_StillsRaw_full/0001TP_{:06}.png": "picture",
        "LabeledApproved_full/0001TP_{:06}_L.png": "map",
    },
    "DeepGlobe": {"valid/{}_sat.jpg": "picture", "valid/{}_mask.png": "map"},
    "roads": {"{}_sat.jpg": "picture", "{}_road.png": "map"},
    "prefixes": {"img{:03}.jpg": "picture", "seg{:03}.png": "map"},
    "NYU": {"test/rgb_{:05}.jpg": "picture", "test/sync_depth_{:05}.png": "depth"},
    "DIODE": {"{:05}_rgb.png": "picture", "{:05}_z.png": "depth"},
    "LEVIR": {"A/{}.png": "picture", "B/{}.png": "picture", "label/{}.png": "map"},
    "CDD": {"A/{}.png": "picture", "B/{}.png": "picture", "OUT/{}.png": "map"},
    "mattes": {"merged/{}.jpg": "picture", "alpha/{}.png": "matte"},
    "video mattes": {"fgr/{}.jpg": "picture", "pha/{}.jpg": "matte"},
    "MVTec": {
        "b/test/good/{}.png": "picture",
        "b/test/hole/{}.png": "picture",
        "b/ground_truth/hole/{}_mask.png": "map",
    },
    "CVC": {"Original/{}.tif": "picture", "Ground Truth/{}.tif": "map"},
    "Virtual KITTI": {
        "frames/rgb/Camera_0/rgb_{:05}.jpg": "picture",
        "frames/classSegmentation/Camera_0/classgt_{:05}.png": "map",
        "frames/forwardFlow/Camera_0/flow_{:05}.png": "depth",
    },
    "Sintel": {
        "training/clean/a/frame_{:04}.png": "picture",
        "training/final/a/frame_{:04}.png": "picture",
        "training/flow_viz/a/frame_{:04}.png": "map",
        "training/occlusions/a/frame_{:04}.png": "map",
    },
    "clips": {
        f"{folder}/{clip}/{{:05}}.png": look
        for clip in ("bear", "camel", "dog")
        for folder, look in (("images", "picture"), ("masks", "map"))
    },
    "numbered clips": {
        f"clip_{n}/{folder}/{{:05}}.png": look
        for n in range(3)
        for folder, look in (("rgb", "picture"), ("gt", "map"))
    },
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_maps_are_found_beside_their_pictures(tmp_path, name):
    maps = put_layout(tmp_path, LAYOUTS[name])
    assert find(tmp_path).maps == maps


PICTURES = {
    "drawings of another size": {"photos/{}.jpg": "picture", "quickdraw/{}.png": "small"},
    "icons that repeat names": {"star/{}.png": "map", **{f"{name}/{{}}.png": "picture" for name in "abc"}},
    "with and without masks": {"with_mask/{}.png": "picture", "without_mask/{}.png": "picture"},
    "infrared": {"visible/{}.png": "picture", "infrared/{}.png": "matte"},
    "two series": {"{}_a.png": "matte", "{}_b.png": "picture"},
    "modalities of subjects": {"s{0}/t1.png": "matte", "s{0}/t2.png": "matte", "s{0}/seg.png": "map"},
    "numbers that look different": {"1/{}.png": "picture", "2/{}.png": "matte", "3/{}.png": "picture"},
    "below a general rule": {"frames/rgb/{}.png": "picture", "frames/classgt/{}.png": "map"},
    "beside previews": {"images/a_final/{}.jpg": "picture", "images/a_geometry/{}.png": "map"},
    "names with signs": {"a[1]/{}.png": "picture", "b *x/{}.png": "matte"},
}


@pytest.mark.parametrize("name", PICTURES)
def test_what_no_layout_says_is_refused_with_patterns_that_work(tmp_path, name):
    wanted = put_layout(tmp_path, PICTURES[name])
    with pytest.raises(ConfigError, match=r"--set maps=none") as raised:
        find(tmp_path)
    pattern = re.search(r"'maps=(.*?)'", str(raised.value))[1]
    keys = ImageFolder(tmp_path, SourceOptions(classes=False)).keys()
    assert 0 < len(maps := find_maps(keys, [pattern]).maps) < 4 * len(PICTURES[name])
    if subset := re.search(r"--subset '(.*?)'", str(raised.value)):
        chosen = {key for key in keys if fnmatchcase(key, subset[1])}
        assert chosen and chosen.isdisjoint(maps)
    if name in ("infrared", "two series", "names with signs"):
        assert maps == wanted


def test_maps_of_a_general_rule_are_no_photographs(tmp_path):
    put_layout(tmp_path, {"images/{}.png": "picture", "gt/{}.png": "picture"})
    with pytest.raises(ConfigError, match=r"gt/0\.png"):
        find(tmp_path)


SAID = {
    "two cameras": {"training/image_2/{}.png": "picture", "training/image_3/{}.png": "picture"},
    "splits": {"train2017/{}.jpg": "picture", "val2017/{}.jpg": "picture"},
    "sequences": {f"img1/{name}/{{}}.jpg": "picture" for name in ("a", "b", "c")},
    "digits": {f"{digit}/{{}}.png": "map" for digit in range(4)},
    "subjects": {"subject{0}/t1.png": "matte", "subject{0}/flair.png": "matte"},
    "mixed": {"x/{}a.png": "picture", "x/b7{}.jpg": "picture", "x/8{}c.tif": "picture"},
}


@pytest.mark.parametrize("name", SAID)
def test_pictures_need_no_word(tmp_path, name):
    put_layout(tmp_path, SAID[name])
    assert not find(tmp_path).maps


@pytest.mark.parametrize(
    ("layout", "picture"),
    [
        ({"train/images/{}.png": "picture", "train/masks/{}.png": "map"}, "train/images/0.png"),
        ({"images/{}.png": "picture", "depth/{}.png": "depth"}, "images/0.png"),
        ({"{}.jpg": "picture", "{}_mask.png": "map"}, "0.jpg"),
    ],
    ids=str,
)
def test_likely_maps_among_classes_are_counted(tmp_path, layout, picture):
    maps = put_layout(tmp_path, layout, 9)
    remark, pattern = describe_likely_maps(ImageFolder(tmp_path, SourceOptions(classes=False)).keys())
    assert "9 images" in remark and repr(min(maps)) in remark and repr(picture) in remark and pattern


@pytest.mark.parametrize(
    "layout",
    [
        *PICTURES.values(),
        {"face/{}.png": "picture", "mask_incorrect/{}.png": "picture"},
        {f"{name}/{{}}.png": "map" for name in ("dog", "mask", "label")},
        {"mask/{}.png": "map", **{f"{name}/{{}}.png": "picture" for name in "abc"}},
        {"dog/{}.png": "picture", "mask/x{}b.png": "map"},
    ],
    ids=str,
)
def test_nothing_is_said_about_classes_that_are_no_maps(tmp_path, layout):
    put_layout(tmp_path, layout)
    assert describe_likely_maps(ImageFolder(tmp_path, SourceOptions(classes=False)).keys()) == ("", None)


@pytest.mark.parametrize(
    "command",
    [
        ("make-c", "--corruptions", "contrast", "--severities", "2"),
        ("make-p", "--perturbations", "translate", "--format", "png"),
    ],
    ids=lambda command: command[0],
)
def test_plain_commands_leave_nothing_out_and_say_so(tmp_path, command):
    check_plain_command(tmp_path, command)


def check_plain_command(tmp_path, command):
    """Hold a command without annotations to leave no map out, and to say so."""
    source, out = tmp_path / "source", tmp_path / "out"
    put_layout(source, {"images/{}.png": "picture", "masks/{}.png": "map"}, 2)
    place = (source, out) if command[0] == "preprocess" else ("--source", source, "--output", out)
    jobs = () if command[0] == "stream" else ("--jobs", "1")
    said = cli(*command, *place, *jobs).stderr
    assert sum("masks/0.png" in line for line in said.splitlines()) == 1
    assert ("--subset" in said) == (command[0] != "preprocess")
    names = out.read_text() if out.is_file() else "".join(map(str, out.rglob("*")))
    assert "masks/1" in names
