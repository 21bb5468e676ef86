"""make-c of LAION-C: its preparation, files and folders, and the pictures of stickers and mosaics."""

import io
import pickle
import shutil

import numpy as np
import pytest
from PIL import Image

import robustgen
from robustgen.files.storage import open_store
from robustgen.pixels.benchmarks.corruptions.laion_c import published_preparation
from robustgen.pixels.benchmarks.kinds import parse_variant
from robustgen.pixels.imaging.laion_c_effects import TileBank
from robustgen.sets.dataset.planning import open_making
from robustgen.sets.formats.encoders import JpegEncoder
from robustgen.settings.config import Config
from robustgen.settings.loading import check
from tests.helpers import cli, cli_error, kept, latest, make_c, manifest, photo, put_photo, tree

TILED = (
    *("--corruptions", "laion-c:stickers,laion-c:mosaic", "--severities", "2,3"),
    *("--no-clean", "--jobs", "1"),
)
KEYS = ("cat/a.png", "cat/b.png", "dog/c.png", "dog/d.png")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    root = tmp_path_factory.mktemp("source")
    for number, key in enumerate(KEYS):
        put_photo(root / key, 60 + 4 * number, 90, seed=number)
    return root


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Three plain pictures."""
    root = tmp_path_factory.mktemp("pictures")
    for number, colour in enumerate([(250, 0, 0), (0, 250, 0), (0, 0, 250)]):
        Image.new("RGB", (40, 40), colour).save(root / f"{number}.bmp")
    return root


@pytest.fixture(scope="module")
def output(source, tmp_path_factory):
    root = tmp_path_factory.mktemp("made") / "out"
    make_c(source, root, *TILED)
    return root


def decoded(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def test_the_whole_family_is_written_as_published(source, pictures, tmp_path):
    flags = ("--corruptions", "laion-c", "--with", f"tiles={pictures}", "--limit", "1")
    make_c(source, tmp_path / "out", *flags)
    made = {name: data for name, data in tree(tmp_path / "out").items() if name.endswith(".JPEG")}
    distortions = (
        *("geometric_shapes", "vertical_lines", "glitched", "luminance_checkerboard", "stickers", "mosaic"),
    )
    assert set(made) == {
        "clean/cat/a.JPEG",
        *(f"{name}/intensity_level_{n}/cat/a.JPEG" for name in distortions for n in range(1, 6)),
    }
    assert {decoded(data).shape for data in made.values()} == {(224, 224, 3)}
    config = manifest(tmp_path / "out")["config"]
    assert (config["edition"], config["quality"]) == ("laion-c", 100)
    assert manifest(tmp_path / "out")["settings"]["output"]["subsampling"] == "4:4:4"
    for severity, side in ((2, 252), (5, 224)):
        image = np.asarray(Image.open(source / "cat" / "a.png").convert("RGB"))
        steps = published_preparation("laion-c:mosaic", severity)
        prepared = steps.prepare(image)
        assert prepared.shape == (side, side, 3)
        laid = robustgen.corrupt(prepared, "laion-c:mosaic", severity, parameters={"tiles": str(pictures)})
        # The file is Pillow's, to the byte.
        saved = io.BytesIO()
        Image.fromarray(steps.complete(laid)).save(saved, "JPEG", quality=100, subsampling=0)
        assert made[f"mosaic/intensity_level_{severity}/cat/a.JPEG"] == saved.getvalue()
    variant = parse_variant("mosaic/intensity_level_2", "c")
    assert (variant.name, variant.level) == ("laion-c:mosaic", 2)
    cli("verify", tmp_path / "out", "--deep", "all")


def test_the_set_is_its_own_bank_without_the_image_in_question(source, output):
    images = [np.asarray(Image.open(source / key)) for key in KEYS]
    bank = TileBank.from_images(images, (6, 8))
    for number, key in enumerate(KEYS):
        for severity in (2, 3):
            steps = published_preparation("laion-c:mosaic", severity)
            own = {"tiles": bank.without(number)}
            image = steps.prepare(images[number])
            laid = robustgen.corrupt(image, "laion-c:mosaic", severity, parameters=own)
            name = f"{key.removesuffix('.png')}.JPEG"
            want = JpegEncoder(100, subsampling="4:4:4").as_read(None, name, steps.complete(laid))
            path = output / "mosaic" / f"intensity_level_{severity}" / name
            assert np.array_equal(decoded(path.read_bytes()), want)


def test_workers_a_part_of_the_images_and_a_plan_give_the_same_bytes(source, output, tmp_path):
    make_c(source, tmp_path / "two", *TILED[:-1], "2")
    assert tree(tmp_path / "two") == tree(output)
    make_c(source, tmp_path / "few", *TILED, "--limit", "2")
    held = tree(output)
    assert all(held[name] == data for name, data in tree(tmp_path / "few").items() if name.endswith("JPEG"))
    make_c(source, tmp_path / "few", *TILED)
    assert tree(tmp_path / "few") == held
    make_c(source, tmp_path / "planned", *TILED, "--write-plan", tmp_path / "plan.json")
    cli("run", tmp_path / "plan.json")
    assert tree(tmp_path / "planned") == held


def test_other_tiles_are_refused_though_their_names_and_sizes_are_the_same(source, pictures, tmp_path):
    tiles = shutil.copytree(pictures, tmp_path / "tiles")
    make_c(source, tmp_path / "out", *TILED, "--with", f"tiles={tiles}")
    before = tree(tmp_path / "out")
    assert kept(make_c(source, tmp_path / "out", *TILED, "--with", f"tiles={tiles}"))
    size = (tiles / "0.bmp").stat().st_size
    Image.new("RGB", (40, 40), (250, 250, 0)).save(tiles / "0.bmp")
    assert (tiles / "0.bmp").stat().st_size == size
    command = ("make-c", "--source", source, "--output", tmp_path / "out", *TILED)
    message = cli_error(*command, "--with", f"tiles={tiles}")
    assert "parameters.mosaic/intensity_level_2.tiles was '3 of" in message
    assert "3 of another source" in message and "of the set itself" not in message
    assert "4 of the set itself" in cli_error(*command)
    assert tree(tmp_path / "out") == before


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--with", "tiles=nowhere"), "nowhere: No such file"),
        (("--with", "tiles=empty"), "empty: no images"),
        (("--with", "tiles=broken"), "broken: 'x.png': in none of the formats"),
        (("--limit", "1", "--source", "single"), "contains no other picture; name other"),
        (("--corruptions", "fog", "--with", "tiles=single"), "with: tiles: none of the corruptions needs it"),
        (("--edition", "imagenet"), "multiples of 6, not 224 x 224; --edition laion-c"),
        (("--edition", "laion-c@384"), "laion-c@384 is 224 x 224 pixels, and has no other size"),
        (("--quality", "101"), "--quality: must be less than or equal to 100, not 101"),
    ],
)
def test_bad_banks_are_named_before_anything_is_made(source, tmp_path, monkeypatch, flags, message):
    monkeypatch.chdir(tmp_path)
    put_photo(tmp_path / "single" / "x" / "a.png")
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "x.png").write_bytes(b"no picture")
    assert message in cli_error("make-c", *latest("--source", source, "--output", "out", *TILED, *flags))
    assert not (tmp_path / "out").exists()


def test_a_broken_picture_of_the_set_itself_is_no_tile(source, output, tmp_path):
    broken = shutil.copytree(source, tmp_path / "broken")
    (broken / "dog" / "z.png").write_bytes(b"no picture")
    make_c(broken, tmp_path / "out", *TILED, status=1)
    held = tree(output)
    made = {name: data for name, data in tree(tmp_path / "out").items() if name.endswith(".JPEG")}
    assert len(made) == 16 and all(held[name] == data for name, data in made.items())


def test_stickers_and_mosaics_of_two_runs_are_checked_together(source, tmp_path):
    for names in ("laion-c:stickers", "laion-c:mosaic"):
        flags = ("--corruptions", names, "--severities", "3", "--no-clean", "--jobs", "1")
        make_c(source, tmp_path / "out", *flags)
    cli("verify", tmp_path / "out", "--deep", "all")


def test_tiles_travel_to_workers_by_the_output_state(source, tmp_path):
    choices = {"source": str(source), "corruptions": ["laion-c:stickers"], "severities": [1]}
    plan = open_making(check(Config, choices, "config"), "c", output=open_store(tmp_path / "out"))
    assert len(pickle.dumps(plan.recipe)) < 3000
    plan.recipe.make_ready()
    image = photo(80, 80)
    variant, sent = plan.variants[1], pickle.loads(pickle.dumps(plan.recipe))
    for key in (*KEYS, "elsewhere.png"):
        assert np.array_equal(sent.make(variant, key, image), plan.recipe.make(variant, key, image))


def test_preview_shows_tiles_of_the_source_or_of_a_folder(source, pictures, tmp_path):
    sheet = tmp_path / "sheet.png"
    cli("preview", "--source", source, "--corruptions", "laion-c:mosaic", "--output", sheet, "--no-show")
    assert sheet.exists()
    mosaic = ("--corruptions", "laion-c:mosaic", "--severities", "5", "--with", f"tiles={pictures}")
    cli("preview", source / "cat" / "a.png", *mosaic, "--no-show", "--output", sheet, "--cell", "224")
    colours = set(map(tuple, np.asarray(Image.open(sheet).convert("RGB")).reshape(-1, 3).tolist()))
    assert colours >= {(250, 0, 0)} or colours >= {(0, 0, 250)} or colours >= {(0, 250, 0)}


def test_arrays_and_perturbations_of_the_edition(source, tmp_path):
    make_c(source, tmp_path / "out", *TILED, "--format", "npy")
    assert np.load(tmp_path / "out" / "laion-c.mosaic.npy").shape == (8, 224, 224, 3)
    assert "has no perturbations" in cli_error("make-p", "--source", source, "--edition", "laion-c")
