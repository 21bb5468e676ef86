"""Rigs: cameras and scenes of files, by a pattern or a table."""

import numpy as np
import pytest
from PIL import Image

from robustgen.errors import ConfigError, SourceError
from robustgen.sets.sources.base import SourceOptions
from robustgen.sets.sources.clip_folder import ClipFolder
from robustgen.sets.sources.rigs import NUSCENES, find_in_rig
from robustgen.settings.config import Config
from robustgen.settings.loading import load
from tests.helpers import photo

FRAMES = [
    f"{camera}/log{log}__{number}.png" for camera in ("left", "right") for log in (7, 8) for number in (9, 10)
]
PATTERN = r"(?P<camera>\w+)/(?P<scene>log\d)__"


@pytest.fixture
def folder(tmp_path):
    for number, name in enumerate(FRAMES):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(photo(32, 40, number)).save(path)
    return tmp_path / "in"


@pytest.fixture(params=["pattern", "table"])
def rig(request, tmp_path):
    if request.param == "pattern":
        return PATTERN
    lines = [f"{name},{name.partition('/')[0]},{name.partition('/')[2][:4]}" for name in FRAMES]
    (tmp_path / "rig.csv").write_text("\n".join(["file,camera,scene", *lines]))
    return f"@{tmp_path / 'rig.csv'}"


def test_a_rig_names_camera_and_scene(folder, rig):
    cameras, scenes = (find_in_rig(rig, part, FRAMES, str(folder)) for part in ("camera", "scene"))
    assert cameras == {name: name.partition("/")[0] for name in FRAMES}
    assert scenes == {name: name.partition("/")[2][:4] for name in FRAMES}


def test_a_scene_is_a_clip(folder, rig):
    source = ClipFolder(folder, SourceOptions(rig=rig))
    assert source.keys() == ("left/log7", "left/log8", "right/log7", "right/log8")
    assert source.list_files("right/log7") == ("right/log7__9.png", "right/log7__10.png")
    first = source.load("right/log7").stack()[0]
    assert np.array_equal(first, np.asarray(Image.open(folder / "right/log7__9.png")))
    assert ClipFolder(folder, SourceOptions(rig=r"(?P<camera>\w+)/")).keys() == ("left", "right")


def test_a_frame_without_a_scene_is_named(folder):
    with pytest.raises(SourceError, match="log8__10"):
        ClipFolder(folder, SourceOptions(rig="(?P<scene>log7)")).keys()


def test_a_scene_that_cannot_be_a_folder_is_refused(folder):
    with pytest.raises(SourceError, match="left/log"):
        ClipFolder(folder, SourceOptions(rig=r"(?P<scene>\w+/log\d)")).keys()


def test_the_cameras_of_nuscenes_are_known():
    names = ["samples/CAM_FRONT/a.jpg", "sweeps/CAM_BACK_LEFT/b.jpg", "samples/LIDAR_TOP/c.png"]
    assert find_in_rig(NUSCENES, "camera", names, "") == dict(
        zip(names, ["CAM_FRONT", "CAM_BACK_LEFT"], strict=False)
    )


@pytest.mark.parametrize("text", ["cam", "(cam)", "(?P<camera", "(?P<lens>a)", "@"])
def test_what_is_no_rig_is_refused(text):
    with pytest.raises(ConfigError, match="rig"):
        load(Config, None, {"rig": text})
