"""Ingredients of a set: their terms in the manifest, their places, and the geometry of what they give."""

import json
import shutil

import numpy as np
import pytest
from PIL import Image

from robustgen.pixels.benchmarks.corruptions.three_d_cc import DEPTH
from robustgen.pixels.benchmarks.ingredients import OpenedIngredient
from robustgen.pixels.benchmarks.kinds import IMAGENET_C
from robustgen.pixels.imaging.third_party import FROST_FILES
from robustgen.sets.dataset.recipes import CorruptionRecipe
from tests.helpers import cli, cli_error, make_c, manifest, photo, put_photo, tree

FEW = ("--severities", "1", "--jobs", "1")
OWN_TERMS = "The images derive from the source images and remain under their terms."


@pytest.fixture
def source(tmp_path):
    for name in ("a", "b"):
        put_photo(tmp_path / "in" / "cat" / f"{name}.png", 64, 64, seed=ord(name))
    return tmp_path / "in"


def licences(out):
    croissant = json.loads((out / "croissant.json").read_text())
    assert croissant["license"] == manifest(out)["licence"]
    return manifest(out)["licence"]


@pytest.mark.parametrize("names", [("fog", "frost"), ("frost", "fog"), ("fog,frost",)])
def test_the_licence_names_frost_once_there_is_frost(source, tmp_path, names):
    for corruptions in names:
        make_c(source, tmp_path / "out", "--corruptions", corruptions, *FEW)
        has_frost = (tmp_path / "out" / "frost").exists()
        frost = " Windows of frost derive from the photographs in the package imagecorruptions."
        assert licences(tmp_path / "out") == OWN_TERMS + frost * has_frost
    cli("verify", tmp_path / "out")


@pytest.mark.parametrize(("named", "others"), [((), False), (("--with", "tiles=tiles"), True)])
def test_the_licence_names_pictures_of_others(source, tmp_path, named, others, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put_photo(tmp_path / "tiles" / "x.png")
    make_c(source, tmp_path / "out", "--corruptions", "laion-c:stickers", *FEW, *named)
    tiles = " Stickers and mosaics contain pictures of another source."
    assert licences(tmp_path / "out") == OWN_TERMS + tiles * others


def test_perturbations_derive_from_the_source_alone(source, tmp_path):
    cli(
        "make-p", "--source", source, "--output", tmp_path / "p", "--perturbations", "tilt", "--format", "npy"
    )
    assert licences(tmp_path / "p") == OWN_TERMS


def test_another_folder_of_frost_gives_the_same_set_and_is_checked(source, tmp_path):
    folder = tmp_path / "photographs"
    shutil.copytree(FROST_FILES.find(), folder)
    make_c(source, tmp_path / "out", "--corruptions", "frost", *FEW)
    config = tmp_path / "my.yaml"
    config.write_text(f"with:\n  frost: {folder}\n")
    flags = ("--source", source, "--corruptions", "frost", *FEW)
    cli("make-c", "--config", config, *flags, "--output", tmp_path / "own")
    assert tree(tmp_path / "own") == tree(tmp_path / "out")
    # Photographs are read once in each process.
    other = folder.rename(tmp_path / "other")
    (other / "frost2.png").write_bytes(b"other")
    message = cli_error("make-c", *flags, "--with", f"frost={other}", "--output", tmp_path / "bad")
    assert "frost2.png " in message and not (tmp_path / "bad").exists()
    message = cli_error("make-c", *flags, "--with", f"frost={other},size=3", "--output", tmp_path / "bad")
    assert message == "with: frost.size: unknown setting of frost 'size' (known: none)"


class Ramp(OpenedIngredient):
    """Depth maps from memory, which count how often they are read."""

    def __init__(self):
        self.count = 0

    def provide(self, key, preparation):
        self.count += 1
        return preparation.follow(np.linspace(0.1, 0.5, 300 * 260, dtype=np.float32).reshape(300, 260))


@pytest.mark.parametrize("edition", ["imagenet", "laion-c"])
def test_what_an_image_needs_is_read_once_and_gets_its_preparation(edition):
    ramp, image, shared = Ramp(), photo(300, 260), {}
    recipe = CorruptionRecipe(edition, ingredients={DEPTH.name: ramp})
    prepared = recipe.prepare(image)
    made = [
        recipe.make(variant, "key", prepared, shared)
        for variant in IMAGENET_C.variants(("3dcc:fog_3d", "3dcc:near_focus"), (1, 3))
    ]
    assert ramp.count == 1 and {each.shape for each in made} == {(224, 224, 3)}
    # Both editions prepare most images alike.
    other = CorruptionRecipe("imagenet", ingredients={DEPTH.name: ramp})
    (variant,) = IMAGENET_C.variants(("3dcc:fog_3d",), (1,))
    assert np.array_equal(made[0], other.make(variant, "key", other.prepare(image)))


# --- cameras -------------------------------------------------------------------------------------

CRASH = ("--corruptions", "robobev:camera_crash", "--severities", "2", "--format", "png", "--jobs", "1")
CUSTOM = r"rig=/(?P<camera>cam\d)_"


def put_rig(root, names):
    for number, name in enumerate(names):
        put_photo(root / name, 32, 40, seed=number)
    return root


def find_black(out):
    """The black images of the only corruption, below its folder."""
    folder = out / "robobev.camera_crash" / "2"
    black = (path for path in folder.rglob("*.png") if not np.asarray(Image.open(path)).any())
    return {path.relative_to(folder).as_posix() for path in black}


def test_cameras_crash_once_for_the_whole_run(tmp_path):
    cameras = [
        f"CAM_{side}" for side in ("FRONT", "FRONT_LEFT", "FRONT_RIGHT", "BACK", "BACK_LEFT", "BACK_RIGHT")
    ]
    source = put_rig(tmp_path / "in", [f"samples/{each}/{n}.png" for each in cameras for n in range(2)])
    keys = ("--set", "require_classes=false")
    make_c(source, tmp_path / "all", *CRASH, *keys)
    black = find_black(tmp_path / "all")
    assert {name.rpartition("/")[0] for name in black} and len(black) % 2 == 0
    assert len({name.rpartition("/")[0] for name in black}) == len(black) // 2 <= 4
    make_c(source, tmp_path / "part", *CRASH, *keys, "--subset", "samples/CAM_BACK*/1.png", "--jobs", "2")
    assert find_black(tmp_path / "part") == {n for n in black if "CAM_BACK" in n and n.endswith("1.png")}
    others = []
    for seed in range(1, 4):
        make_c(source, tmp_path / f"seed{seed}", *CRASH, *keys, "--seed", str(seed))
        others.append(find_black(tmp_path / f"seed{seed}"))
    assert any(each != black for each in others)
    cli("verify", tmp_path / "all", "--deep", "all")


def test_cameras_of_another_rig_are_named_by_a_pattern_or_a_table(tmp_path):
    names = [f"c/cam{camera}_{n}.png" for camera in range(3) for n in range(2)]
    source = put_rig(tmp_path / "in", names)
    assert "c/cam0_0.png" in cli_error("make-c", "--source", source, *CRASH, "--output", tmp_path / "x")
    make_c(source, tmp_path / "pattern", *CRASH, "--set", CUSTOM)
    black = find_black(tmp_path / "pattern")
    assert black and all({name.replace("_0", "_1"), name.replace("_1", "_0")} <= black for name in black)
    table = tmp_path / "rig.csv"
    table.write_text("\n".join(["file,camera", *(f"{name},{name[2:6]}" for name in names)]))
    make_c(source, tmp_path / "table", *CRASH, "--set", f"rig=@{table}")
    assert find_black(tmp_path / "table") == black
    # Other cameras would be another set.
    table.write_text(table.read_text().replace(",cam0", ",cam1"))
    flags = ("make-c", "--source", source, "--output", tmp_path / "table", *CRASH, "--set", f"rig=@{table}")
    assert "camera" in cli_error(*flags)
