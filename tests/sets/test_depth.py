"""make-c of 3DCC with depth maps beside the images."""

import shutil
import tarfile

import numpy as np
import pytest
from PIL import Image

import robustgen
from robustgen.pixels.benchmarks.editions import EDITIONS, get_edition
from robustgen.pixels.imaging.three_d_cc_effects import depth_from_midas, prepare_depth
from tests.helpers import cli, cli_error, errors_of, latest, make_c, photo, tree

F32 = np.float32
KEYS = {"cat/a": (60, 90), "cat/b": (80, 50), "dog/c": (64, 64)}
THREE = ("--corruptions", "3dcc:fog_3d,3dcc:near_focus,3dcc:far_focus", "--severities", "1,4")
FEW = (*THREE, "--edition", "imagenet@48", "--format", "png")


def with_depth(maps, scale=None):
    return "--with", f"depth={maps}" + (f",scale={scale}" if scale else "")


def depth_of(key):
    height, width = KEYS[key]
    y, x = np.mgrid[:height, :width]
    return (0.05 + 0.4 * (1 - y / height) + 0.002 * (x % 7)).astype(F32)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    root = tmp_path_factory.mktemp("source")
    for number, (key, size) in enumerate(KEYS.items()):
        path = root / f"{key}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(photo(*size, seed=number)).save(path)
    return root


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    """The maps as `.npy`, and as PNG of 16 bits."""
    root = tmp_path_factory.mktemp("maps")
    for key in KEYS:
        for folder in ("npy", "png"):
            (root / folder / key).parent.mkdir(exist_ok=True, parents=True)
        values = depth_of(key)
        np.save(root / "npy" / f"{key}.npy", values[..., None] if key == "dog/c" else values)
        Image.fromarray(np.rint(depth_of(key) * 20000).astype(np.uint16)).save(root / "png" / f"{key}.png")
    return root


@pytest.fixture(scope="module")
def output(source, maps, tmp_path_factory):
    root = tmp_path_factory.mktemp("made") / "out"
    make_c(source, root, *FEW, *with_depth(maps / "npy"))
    return root


def test_depth_follows_the_preparation_of_its_image(source, output):
    for key in KEYS:
        image = robustgen.prepare(np.asarray(Image.open(source / f"{key}.png")), "imagenet@48")
        depth = prepare_depth(depth_of(key), 55, 48)
        for name in ("fog_3d", "near_focus", "far_focus"):
            want = robustgen.corrupt(image, f"3dcc:{name}", 4, depth=depth)
            made = np.asarray(Image.open(output / f"3dcc.{name}" / "4" / f"{key}.png"))
            assert np.array_equal(made, want) and not np.array_equal(made, image)
    cli("verify", output, "--deep", "all")


def test_workers_give_the_same_and_a_part_can_be_extended(source, maps, output, tmp_path):
    flags = (*FEW, "--jobs", "2", *with_depth(maps / "npy"))
    make_c(source, tmp_path / "out", *flags, "--limit", "2")
    make_c(source, tmp_path / "out", *flags)
    assert tree(tmp_path / "out") == tree(output)


def test_maps_of_16_bits_in_folders_archives_and_shards(source, maps, tmp_path):
    make_c(source, tmp_path / "folder", *FEW, *with_depth(maps / "png", "0.00005"))
    held = tree(tmp_path / "folder")
    stored = np.asarray(Image.open(maps / "png" / "dog" / "c.png"))
    depth = prepare_depth(stored.astype(F32) * F32(0.00005), 55, 48)
    image = robustgen.prepare(np.asarray(Image.open(source / "dog" / "c.png")), "imagenet@48")
    made = np.asarray(Image.open(tmp_path / "folder" / "3dcc.fog_3d" / "1" / "dog" / "c.png"))
    assert np.array_equal(made, robustgen.corrupt(image, "3dcc:fog_3d", 1, depth=depth))
    for number, folder in enumerate(("cat", "dog")):
        with tarfile.open(tmp_path / f"depth-{number}.tar", "w") as shard:
            shard.add(maps / "png" / folder, folder)
    with tarfile.open(tmp_path / "all.tar.gz", "w:gz") as archive:
        archive.add(maps / "png", "some")
    for name in ("depth-{0..1}.tar", "all.tar.gz"):
        make_c(source, tmp_path / "out", *FEW, *with_depth(tmp_path / name, "0.00005"), "--overwrite")
        assert tree(tmp_path / "out") == held


def test_the_published_inverse_depth(source, tmp_path):
    stored = {key: np.rint(512 / depth_of(key)).astype(np.uint16) for key in KEYS}
    for key, values in stored.items():
        (tmp_path / "maps" / key).parent.mkdir(exist_ok=True, parents=True)
        Image.fromarray(values).save(tmp_path / "maps" / f"{key}.png")
    make_c(source, tmp_path / "out", *FEW, *with_depth(tmp_path / "maps", "midas"))
    image = robustgen.prepare(np.asarray(Image.open(source / "cat" / "a.png")), "imagenet@48")
    depth = prepare_depth(depth_from_midas(stored["cat/a"]), 55, 48)
    made = np.asarray(Image.open(tmp_path / "out" / "3dcc.far_focus" / "1" / "cat" / "a.png"))
    assert np.array_equal(made, robustgen.corrupt(image, "3dcc:far_focus", 1, depth=depth))


def test_other_maps_are_refused(source, maps, output, tmp_path):
    changed = shutil.copytree(maps / "npy", tmp_path / "npy")
    # Of the same name and size.
    np.save(changed / "cat" / "a.npy", depth_of("cat/a") + F32(0.1))
    command = ("make-c", "--source", source, "--output", output, *FEW)
    message = cli_error(*command, *with_depth(changed))
    assert "parameters.3dcc.far_focus/1.depth was" in message
    assert "scale 2.0'. Choose another output" in cli_error(*command, *with_depth(maps / "npy", "2"))
    # Corruptions that need none go beside.
    more = ("--corruptions", "3dcc:iso_noise", *FEW[2:])
    target = shutil.copytree(output, tmp_path / "copied")
    make_c(source, target, *more)
    make_c(source, target, *FEW, *with_depth(maps / "npy"))


BAD = {
    "another shape": (np.ones((30, 40), F32), "depth map dog/c.npy has 40 x 30 pixels, the image 64 x 64"),
    "NaN": (np.where(np.eye(64) > 0, np.nan, 0.3), "dog/c.npy contains NaN, infinity or negative depth"),
    "negative": (np.where(np.eye(64) > 0, -1, 0.3), "dog/c.npy contains NaN, infinity or negative depth"),
    "channels": (np.ones((64, 64, 3), F32), "depth map dog/c.npy has 3 x 64 x 64 pixels"),
    "words": (np.full((64, 64), "a"), "dog/c.npy: contains <U1, not numbers"),
    "objects": (np.full((64, 64), None), "dog/c.npy: "),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_map_fails_alone(source, maps, tmp_path, name):
    values, reason = BAD[name]
    bad = shutil.copytree(maps / "npy", tmp_path / "npy")
    np.save(bad / "dog" / "c.npy", values)
    make_c(source, tmp_path / "out", *FEW, *with_depth(bad), status=1)
    entries = errors_of(tmp_path / "out")
    assert {each["key"] for each in entries} == {"dog/c.png"} and len(entries) == 6
    assert all(reason in each["reason"] for each in entries)
    assert (tmp_path / "out" / "3dcc.fog_3d" / "1" / "cat" / "a.png").exists()
    assert (tmp_path / "out" / "clean" / "dog" / "c.png").exists()


def test_a_map_of_several_channels_or_none_at_all_fails_alone(source, maps, tmp_path):
    bad = shutil.copytree(maps / "png", tmp_path / "png")
    Image.new("RGB", (64, 64)).save(bad / "dog" / "c.png")
    (bad / "cat" / "b.png").write_bytes(b"no picture")
    make_c(source, tmp_path / "out", *FEW, *with_depth(bad, "1e-4"), status=1)
    reasons = {each["key"]: each["reason"] for each in errors_of(tmp_path / "out")}
    assert (
        set(reasons) == {"cat/b.png", "dog/c.png"} and "several channels (mode RGB)" in reasons["dog/c.png"]
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            (),
            "3dcc:fog_3d needs depth maps with the keys of the images, in a folder, an archive or shards: "
            "give --with depth=PLACE, or leave it out",
        ),
        (("--with", "depth=nowhere"), "depth: nowhere: No such file"),
        (
            ("--with", "depth=npy/cat"),
            "no map of 3 of 3 images: 'cat/a.png' (looked for cat/a.png, .npy",
        ),
        (("--with", "depth=part"), "no map of 1 of 3 images: 'dog/c.png'"),
        (("--with", "depth=exr"), "'dog/c.png' (looked for dog/c.png, .npy, .tif, .tiff)"),
        (("--with", "depth=npy,scale=0"), "with: depth.scale: must be a positive number or midas, not '0'"),
        (("--corruptions", "fog", "--with", "depth=npy"), "with: depth: none of the corruptions needs it"),
        (("--with", "dept=npy"), "with: dept: none of the corruptions needs it (they need depth)"),
        (
            ("--with", "depth=npy,scal=2"),
            "with: depth.scal: unknown setting of depth 'scal' (did you mean 'scale'?)",
        ),
        (("--with", "depth"), "--with: must be NAME=PLACE[,KEY=VALUE], not 'depth'"),
        (
            ("--corruptions", "3dcc:flash"),
            "3dcc:flash cannot be made: it needs a map of the shading, which a",
        ),
        (("--corruptions", "3dcc:h265_crf"), "3dcc:h265_crf cannot be made: it needs the video of xy_motion"),
    ],
)
def test_what_is_missing_is_named_before_anything_is_made(
    source, maps, tmp_path, monkeypatch, flags, message
):
    monkeypatch.chdir(tmp_path)
    for name in ("npy", "part", "exr"):
        shutil.copytree(maps / "npy", tmp_path / name)
    (tmp_path / "part" / "dog" / "c.npy").unlink()
    (tmp_path / "exr" / "dog" / "c.npy").rename(tmp_path / "exr" / "dog" / "c.exr")
    found = cli_error("make-c", "--source", source, "--output", "out", *latest(*FEW, *flags))
    assert message in found.replace(f"{tmp_path}/", "")
    assert not (tmp_path / "out").exists()


def test_list_names_what_cannot_be_made():
    result = cli("list", "3dcc")
    assert result.stderr.count("cannot be made") == 6 and "3dcc:flash cannot be made: it" in result.stderr
    assert "xy_motion_blur" in cli_error("list", "3dcc:bit_error")


def test_preview_takes_depth_with_a_source(source, maps, tmp_path):
    flags = ("--corruptions", "3dcc", *with_depth(maps / "npy"), "--output", tmp_path / "a.png", "--no-show")
    cli("preview", "--source", source, "--edition", "imagenet", *flags)
    assert (tmp_path / "a.png").exists()
    assert "--with depth needs --source: depth maps" in cli_error("preview", source / "cat" / "a.png", *flags)


@pytest.mark.parametrize("edition", [*EDITIONS, "imagenet@64"])
def test_a_map_follows_every_step_of_an_edition(edition):
    prepared, side = get_edition(edition).prepared, get_edition(edition).side
    height, width = (side, side) if "as they are" in get_edition(edition).preparation and side else (300, 420)
    y, x = np.mgrid[:height, :width].astype(F32)
    image = np.stack([x / width * 255, y / height * 255, x * 0], axis=2).astype(np.uint8)
    rows, columns = prepared.follow(y), prepared.follow(x)
    pixels = prepared(image)
    assert rows.shape == columns.shape == pixels.shape[:2] and rows.dtype == F32
    # The image shows at each place its column and row, up to a pixel of the source and antialiasing.
    assert np.abs(pixels[..., 0] - columns / width * 255).max() < 255 * 4 / side if side else True
    assert np.abs(pixels[..., 1] - rows / height * 255).max() < 255 * 4 / side if side else True
    assert np.isin(rows, y).all()
