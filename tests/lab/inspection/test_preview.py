"""robustgen preview: sheets, animations, pictures in the terminal."""

import base64
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import skimage
from PIL import Image

import robustgen
from robustgen.display import sheets
from robustgen.display.sheets import SheetRow
from robustgen.errors import ArgumentError, ConfigError
from robustgen.lab.inspection import preview
from robustgen.lab.inspection.preview import (
    draw_animation,
    draw_previewed,
    encode_animation,
    open_from_file,
    open_from_source,
)
from robustgen.pixels.benchmarks.kinds import CLEAN_VARIANT
from robustgen.pixels.imaging import video
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.formats.encoders import JpegEncoder
from robustgen.settings.config import Config
from robustgen.settings.loading import load, load_config
from tests.helpers import cifar_folder, cli, cli_error, photo, pixels_of, put_photo

RED = (250, 10, 20)


def plain(height, width, colour=RED):
    return np.full((height, width, 3), colour, np.uint8)


def is_there(picture, sheet):
    """Whether `picture` lies somewhere on `sheet`, pixel for pixel."""
    height, width = picture.shape[:2]
    corners = np.argwhere((sheet[: 1 - height or None, : 1 - width or None] == picture[0, 0]).all(axis=2))
    return any(np.array_equal(sheet[y : y + height, x : x + width], picture) for y, x in corners)


# --- sheets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("side", "cell", "times"), [(32, 112, 4), (64, 112, 2), (100, 112, 1), (40, 60, 2)])
def test_small_pictures_are_enlarged_pixel_for_pixel(side, cell, times):
    picture = photo(side, side)
    assert np.array_equal(sheets.fit_picture(picture, cell)[::times, ::times], picture)
    assert sheets.fit_picture(picture, cell).shape[0] == times * side


@pytest.mark.parametrize(
    ("shape", "fits"),
    [((224, 224), (112, 112)), ((300, 1200), (56, 224)), ((1200, 300), (224, 56)), ((50, 9000), (2, 336))],
)
def test_large_pictures_get_the_area_of_a_cell_unless_too_elongated(shape, fits):
    assert sheets.fit_picture(plain(*shape), 112).shape[:2] == fits


ROWS = [
    SheetRow("a", [plain(60, 60), None], group="one"),
    SheetRow("a rather long name of a row", [plain(60, 60), plain(40, 70)], ["under it", "and again"], "one"),
    SheetRow("", [plain(16, 90)], group="a group of one low row"),
    SheetRow("y", [plain(30, 30)]),
]
AREA = sum(p.shape[0] * p.shape[1] for row in ROWS for p in row.pictures if p is not None)


@pytest.mark.parametrize("cell", [16, 60, 112, 300])
@pytest.mark.parametrize("note", ["", "short", "long " * 80])
def test_nothing_is_drawn_over_a_picture_or_cut_at_the_edge(cell, note):
    sheet = sheets.draw_sheet(ROWS, ["first", "one far wider than its pictures"], cell=cell, note=note)
    assert (sheet == RED).all(axis=2).sum() == AREA
    edge = np.ones(sheet.shape[:2], bool)
    edge[4:-4, 4:-4] = False
    assert (sheet[edge] == 255).all()


def test_labels_heads_captions_groups_and_notes_take_up_room_only_where_there_are_some():
    bare = sheets.draw_sheet([SheetRow("", [plain(60, 60)])]).shape

    def grown(row, *heads, note=""):
        size = sheets.draw_sheet([row], heads, note=note).shape
        return size[0] > bare[0], size[1] > bare[1]

    assert grown(SheetRow("label", [plain(60, 60)])) == (False, True)
    assert grown(SheetRow("", [plain(60, 60)], group="group")) == (False, True)
    assert grown(SheetRow("", [plain(60, 60)], ["under"])) == (True, False)
    assert grown(SheetRow("", [plain(60, 60)]), "head") == (True, False)
    assert grown(SheetRow("", [plain(60, 60)]), note="note") == (True, False)
    drawn = {sheets.draw_sheet([SheetRow(text, [plain(60, 60)])]).tobytes() for text in ("fog 1", "fog 2")}
    assert len(drawn) == 2


def test_a_grid_has_five_in_a_row():
    pictures = [(f"number {i}", plain(50, 50, (i, 250, 0))) for i in range(12)]
    sheet = sheets.draw_grid(pictures, cell=50)
    at = [np.argwhere((sheet == (i, 250, 0)).all(axis=2))[0] for i in range(12)]
    assert len({y for y, _ in at}) == 3 and len({x for _, x in at}) == 5
    assert all(is_there(picture, sheet) for _, picture in pictures)


def test_letters_the_font_lacks_are_replaced():
    assert sheets.replace_undrawable("fog, größe·été\n中") == "fog, gro?e·ete??"


@pytest.mark.parametrize("rows", [[], [SheetRow("a", [])], [SheetRow("a", [None, None])]])
def test_a_sheet_without_pictures_is_refused(rows):
    with pytest.raises(ArgumentError, match="at least one picture"):
        sheets.draw_sheet(rows)


def test_files_hold_the_picture():
    picture = photo(40, 50)
    for suffix in (".png", ".jpg", ".jpeg", ".webp"):
        opened = Image.open(io.BytesIO(sheets.encode_picture(picture, suffix)))
        difference = np.abs(np.asarray(opened.convert("RGB")).astype(int) - picture).mean()
        assert difference == 0 if suffix == ".png" else 0 < difference < 12
    with pytest.raises(ArgumentError, match=r"\.png, \.jpg, \.jpeg, \.webp"):
        sheets.encode_picture(picture, ".bmp")
    with pytest.raises(ArgumentError, match=r"20000 x 1 pixels cannot be stored as \.webp"):
        sheets.encode_picture(plain(1, 20000), ".webp")


def test_a_pdf_has_a_page_for_each_sheet_and_no_time():
    first, second = photo(40, 50), photo(60, 30)
    data = sheets.encode_picture(first, ".pdf", more=[second])
    # Sides in points, at 150 pixels per inch.
    boxes = re.findall(rb"/MediaBox \[ ([\d. ]+) \]", data)
    sides = [[float(each) for each in box.split()] for box in boxes]
    assert sides == [[0, 0, 34.56, 19.2], [0, 0, 51.36, 28.8]]
    assert all(width / height == pytest.approx(16 / 9, rel=0.02) for _, _, width, height in sides)
    assert b"CreationDate" not in data and b"ModDate" not in data
    # The pictures are JPEG files in the PDF.
    start = data.index(b"\xff\xd8\xff")
    shown = np.asarray(Image.open(io.BytesIO(data[start:]))).astype(int)[:, 11:61]
    assert 0 < np.abs(shown - first).mean() < 12


def test_the_function_draws_the_sheet_of_the_command(tmp_path):
    put_photo(tmp_path / "a" / "b.png", 64, 72)
    keys = {"corruptions": ("contrast", "brightness"), "severities": (1, 5), "edition": "folder"}
    flags = ("--corruptions", "contrast,brightness", "--severities", "1,5", "--edition", "folder")
    cli("preview", tmp_path / "a" / "b.png", *flags, "--no-show", "--output", tmp_path / "sheet.png")
    cli("preview", tmp_path / "a" / "b.png", *flags, "--no-show", "--output", tmp_path / "slides.pdf")
    assert (tmp_path / "slides.pdf").read_bytes().count(b"/MediaBox") == 2
    sheet = robustgen.preview(tmp_path / "a" / "b.png", **keys)
    assert np.array_equal(sheet, Image.open(tmp_path / "sheet.png"))
    # Of an array, only the name below the pictures differs.
    assert robustgen.preview(np.asarray(Image.open(tmp_path / "a" / "b.png")), **keys).size == sheet.size
    assert robustgen.preview(tmp_path / "a" / "b.png", corruptions="fog", grid=True).size < sheet.size
    frames = robustgen.preview(tmp_path / "a" / "b.png", perturbations="tilt", frames=3, edition="folder")
    assert frames.size[1] < sheet.size[1]
    with pytest.raises(ConfigError, match="severities"):
        robustgen.preview(tmp_path / "a" / "b.png", severities=9)


# --- pixels --------------------------------------------------------------------------------------


@pytest.fixture
def photos(tmp_path):
    """Three photographs in class folders."""
    for i, name in enumerate(["cats/a.jpg", "cats/b b.jpg", "dogs/ü.jpg"]):
        put_photo(tmp_path / "photos" / name, 60, 70, seed=i)
    return tmp_path / "photos"


def subject_of(source, kind, index, tmp_path, **flags):
    chosen = load(Config, None, {"source": str(source), "seed": 5, **flags})
    return open_from_source(chosen, kind, index, tmp_path / "out" / "x.png")


def cifar_subject(*args, **flags):
    return subject_of(*args, edition="cifar-10", seed=0, **flags)


@pytest.mark.parametrize("edition", ["folder", "imagenet-64"])
def test_it_shows_what_make_c_writes(photos, tmp_path, edition):
    names = "gaussian_noise,fog,contrast"
    cli("make-c", "--source", photos, "--edition", edition, "--seed", 5, "--corruptions", names,
        "--severities", "2,4", "--jobs", 1, "--output", tmp_path / "c")  # fmt: skip
    previewed = subject_of(photos, "c", 1, tmp_path, edition=edition, corruptions=names, severities="2,4")
    assert [variant.folder for variant in previewed.variants] == [
        *("gaussian_noise/2", "gaussian_noise/4", "fog/2", "fog/4", "contrast/2", "contrast/4")
    ]
    for variant in previewed.variants:
        written = (tmp_path / "c" / variant.folder / "cats" / "b b.jpg").read_bytes()
        (encoded,) = JpegEncoder().encode(variant, "a.jpg", previewed.make(variant))
        assert encoded.data == written


def test_it_shows_what_make_p_writes(photos, tmp_path):
    cli("make-p", "--source", photos, "--seed", 5, "--perturbations", "shot_noise,tilt",
        "--difficulty", "1,2", "--format", "png", "--jobs", 1, "--output", tmp_path / "p")  # fmt: skip
    previewed = subject_of(photos, "p", 2, tmp_path, perturbations="tilt,shot_noise", difficulty="1,2")
    assert [variant.folder for variant in previewed.variants] == ["shot_noise", "shot_noise_2", "tilt"]
    for variant in previewed.variants:
        written = video.read_sequence(tmp_path / "p" / variant.folder / "dogs" / "ü")
        assert np.array_equal(previewed.make(variant), written)


def put_clip(folder, count=26):
    folder.mkdir(parents=True)
    picture = photo(120, 160)
    for t in range(count):
        Image.fromarray(picture[t : t + 64, 2 * t : 2 * t + 96]).save(folder / f"{t:05d}.png")
    return folder


def clip_subject(source, tmp_path, **flags):
    chosen = load_config(Config, "clips", None, {"source": str(source), "seed": 5, **flags})
    return open_from_source(chosen, "c", 0, tmp_path / "out" / "x.png")


def test_it_shows_frames_of_what_make_c_writes_of_a_clip(tmp_path):
    source, names = put_clip(tmp_path / "clips" / "cat" / "a").parents[1], "fog,video-c:motion_blur"
    cli("make-c", "--dataset", "clips", "--source", source, "--seed", 5, "--corruptions", names,
        "--severities", 1, "--format", "png", "--jobs", 1, "--output", tmp_path / "c")  # fmt: skip
    previewed = clip_subject(source, tmp_path, corruptions=names, severities=1)
    written = open_set(tmp_path / "c")
    assert [variant.folder for variant in previewed.variants] == ["video-c.motion_blur/1", "fog/1"]
    for variant in previewed.variants:
        assert np.array_equal(previewed.make(variant), written.load(variant, "cat/a"))
    (sheet,) = draw_previewed(previewed, frames=2)
    clean, fog = (written.load(variant, "cat/a") for variant in (CLEAN_VARIANT, previewed.variants[1]))
    # The first and the last frame of the clip, before and after.
    assert all(is_there(sheets.fit_picture(each, 112), sheet) for each in (clean[0], clean[-1], fog[0]))
    # A lone folder, or video, has the key that it has in a set.
    chosen = load_config(Config, "clips", None, {"seed": 5, "corruptions": "fog", "severities": 1})
    alone = open_from_file(source / "cat" / "a", chosen, "c", tmp_path / "x.png")
    assert alone.key == "cat/a" and np.array_equal(alone.make(alone.variants[0]), fog)


def test_an_animation_shows_a_clip_at_its_own_rate(tmp_path):
    source = put_clip(tmp_path / "clips" / "cat" / "a").parents[1]
    previewed = clip_subject(source, tmp_path, corruptions="video-c:frame_rate", severities=5)
    frames = draw_animation(previewed)
    # Six frames a second are repeated, so that time goes on as in the source.
    assert len(frames) == pytest.approx(26, abs=4) and previewed.rate == 25
    several = clip_subject(source, tmp_path, corruptions="fog,contrast", severities=5)
    assert len(draw_animation(several)) == 26
    flags = ("--dataset", "clips", "--source", source, "--corruptions", "fog", "--no-show", "--output")
    cli("preview", *flags, tmp_path / "a.gif")
    with Image.open(tmp_path / "a.gif") as moving:
        assert (moving.n_frames, moving.info["duration"]) == (26, 40)
    # A GIF of fast frames lasts as long as the clip.
    cli("preview", *flags, tmp_path / "fast.gif", "--set", "fps=50", "--severities", 5)
    with Image.open(tmp_path / "fast.gif") as moving:
        assert (moving.n_frames, moving.info["duration"]) == (13, 40)
    refused = cli_error("preview", *flags, tmp_path / "b.mp4", "--grid")
    assert "--grid" in refused and "b.mp4" in refused
    cli("preview", *flags, tmp_path / "a.png", "--grid")
    assert ".mp4" in cli_error("preview", *flags, tmp_path / "a.html")


def test_a_long_clip_is_cut_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(preview, "_MOST_FRAMES", 4)
    source = put_clip(tmp_path / "clips" / "cat" / "a").parents[1]
    previewed = clip_subject(source, tmp_path, corruptions="fog", severities=1)
    assert len(previewed.make(previewed.variants[0])) == 4 and "4 of 26 frames" in previewed.note


@pytest.mark.parametrize(("name", "text"), [("a.mp4", "clips"), ("", "several")])
def test_a_video_is_a_clip_and_a_folder_of_clips_is_none(tmp_path, name, text):
    for key in ("cat/a", "dog/b"):
        put_clip(tmp_path / "clips" / key, 3)
    (tmp_path / "clips" / "a.mp4").write_bytes(b"")
    flags = () if name else ("--dataset", "clips")
    flags += ("--corruptions", "fog", "--no-show", "--output", tmp_path / "x.png")
    assert text in cli_error("preview", tmp_path / "clips" / name, *flags)


def test_it_shows_the_rows_of_arrays(tmp_path):
    folder, *_ = cifar_folder(tmp_path, images=4)
    chosen = ("--corruptions", "snow", "--severities", 3, "--jobs", 1, "--output", tmp_path / "c")
    cli("make-c", "--dataset", "cifar-10", "--source", folder, *chosen)
    previewed = cifar_subject(folder, "c", 3, tmp_path, corruptions="snow", severities=3)
    assert np.array_equal(previewed.make(previewed.variants[0]), np.load(tmp_path / "c" / "snow.npy")[3])


def test_a_lone_file_has_the_key_it_has_in_a_set(photos, tmp_path, monkeypatch):
    of_set = subject_of(photos, "c", 1, tmp_path, corruptions="fog")
    monkeypatch.chdir(photos / "cats")
    chosen = load(Config, None, {"seed": 5, "corruptions": "fog"})
    alone = open_from_file(Path("b b.jpg"), chosen, "c", tmp_path / "x.png")
    assert alone.key == of_set.key == "cats/b b.jpg"
    assert all(np.array_equal(alone.make(variant), of_set.make(variant)) for variant in of_set.variants)


def test_a_sheet_may_lie_around_an_environment(photos):
    image = next(photos.rglob("*.jpg"))
    # Such as that of a project, whose .venv holds the photographs of the demo.
    around = Path(skimage.__file__).parents[2] / "sheet.png"
    chosen = load(Config, None, {"source": ".", "source_kind": "folder"})
    assert open_from_file(image, chosen, "c", around).image.ndim == 3


def test_the_configs_own_parameters_are_shown(photos, tmp_path):
    strong = subject_of(photos, "c", 0, tmp_path, corruptions="contrast", severities=1)
    parameters = {"contrast": {1: {"factor": 0.05}}}
    own = subject_of(photos, "c", 0, tmp_path, corruptions="contrast", severities=1, parameters=parameters)
    assert own.make(own.variants[0]).std() < strong.make(strong.variants[0]).std()


# --- the command ---------------------------------------------------------------------------------


def drawn(tmp_path, *args, name="sheet.png"):
    """What the command draws, after it has told where."""
    result = cli("preview", *args, "--output", tmp_path / "out" / name)
    assert result.stdout == f"{tmp_path / 'out' / name}\n" and result.stderr == ""
    assert [path.name for path in (tmp_path / "out").iterdir()] == [name]
    return tmp_path / "out" / name


def test_a_sheet_has_every_severity_of_every_corruption(photos, tmp_path):
    args = ["--source", photos, "--index", 2, "--corruptions", "fog,shot_noise", "--severities", "1,5"]
    # At 65 pixels the photographs are neither reduced nor enlarged.
    sheet = pixels_of(drawn(tmp_path, *args, "--cell", 65, "--seed", 5))
    previewed = subject_of(photos, "c", 2, tmp_path, corruptions="fog,shot_noise", severities="1,5")
    assert is_there(previewed.image, sheet)
    assert len(previewed.variants) == 4 and all(
        is_there(previewed.make(variant), sheet) for variant in previewed.variants
    )


def test_a_sheet_has_gaps_where_corruptions_have_other_severities(photos, tmp_path):
    args = ["--source", photos, "--index", 2, "--corruptions", "fog:4,contrast:2", "--cell", 65, "--seed", 5]
    sheet = pixels_of(drawn(tmp_path, *args))
    _, width, _ = sheet.shape
    previewed = subject_of(photos, "c", 2, tmp_path, corruptions="fog:4,contrast:2")
    fog, contrast = (previewed.make(variant) for variant in previewed.variants)
    # Severity 2 is the column before the last, severity 4 the last.
    right = sheet[:, width - 65 - 20 :]
    assert is_there(fog, right) and is_there(contrast, sheet) and not is_there(contrast, right)
    grid = pixels_of(drawn(tmp_path, *args, "--grid"))
    assert is_there(fog, grid) and is_there(contrast, grid)


def test_a_grid_has_every_corruption_at_one_severity(photos, tmp_path):
    sheet = pixels_of(
        drawn(tmp_path, "--source", photos, "--grid", "--cell", 65, "--seed", 5, "--severities", 2)
    )
    for level in (2, 3):
        previewed = subject_of(photos, "c", 0, tmp_path, severities=level)
        assert {is_there(previewed.make(variant), sheet) for variant in previewed.variants} == {level == 2}


def test_frames_are_evenly_spaced_from_first_to_last(tmp_path):
    folder, *_ = cifar_folder(tmp_path, images=2)
    names = "tilt,motion_blur"
    args = ["--source", folder, "--edition", "cifar-10", "--perturbations", names, "--cell", 32]
    sheet = pixels_of(drawn(tmp_path, *args, "--frames", 3))
    previewed = cifar_subject(folder, "p", 0, tmp_path, perturbations=names)
    blur, tilt = (previewed.make(variant) for variant in previewed.variants)
    assert (len(blur), len(tilt)) == (21, 31)
    for sequence, shown in ((blur, (0, 10, 20)), (tilt, (0, 15, 30))):
        assert all(is_there(sequence[number], sheet) for number in shown)
        assert not is_there(sequence[5], sheet)
    # More than there are is all there are.
    assert is_there(blur[5], pixels_of(drawn(tmp_path, *args, "--frames", 99)))


def test_the_same_command_gives_the_same_bytes_and_another_seed_others(photos, tmp_path):
    args = ["--source", photos, "--corruptions", "snow", "--severities", 3]
    first = drawn(tmp_path, *args).read_bytes()
    assert drawn(tmp_path, *args).read_bytes() == first
    assert drawn(tmp_path, *args, "--seed", 1).read_bytes() != first


def test_a_carried_photograph_is_shown_where_nothing_is_named(tmp_path, monkeypatch):
    named = drawn(tmp_path, "--dataset", "demo", "--corruptions", "contrast", "--index", 0)
    monkeypatch.chdir(tmp_path)
    assert cli("preview", "--corruptions", "contrast").stdout == "out/preview.png\n"
    assert (tmp_path / "out" / "preview.png").read_bytes() == named.read_bytes()


def test_an_image_is_prepared_as_for_imagenet_unless_an_edition_or_a_config_says_otherwise(tmp_path):
    image = put_photo(tmp_path / "x" / "a.jpg", 80, 90)
    notes = {}
    for edition in ("imagenet", "folder", "tiny-imagenet"):
        notes[edition] = drawn(tmp_path, image, "--edition", edition, "--corruptions", "fog").read_bytes()
    assert drawn(tmp_path, image, "--corruptions", "fog").read_bytes() == notes["imagenet"]
    # The images of the config need not be there.
    by_config = drawn(tmp_path, image, "--dataset", "tiny-imagenet", "--corruptions", "fog").read_bytes()
    assert by_config == notes["tiny-imagenet"] != notes["imagenet"]
    tiles = ("--with", f"tiles={put_photo(tmp_path / 'tiles' / 'b.jpg').parent}")
    laion = (image, "--corruptions", "laion-c:mosaic", "--severities", 1, *tiles)
    assert (
        drawn(tmp_path, *laion).read_bytes() == drawn(tmp_path, *laion, "--edition", "laion-c").read_bytes()
    )


def test_mistakes_are_answered_in_one_line_and_leave_no_file(photos, tmp_path):
    image = photos / "cats" / "a.jpg"
    before = image.read_bytes()
    (tmp_path / "folder.png").mkdir()
    named = {
        "no such file": [tmp_path / "none.png"],
        "is a folder; --source": [photos],
        "did you mean 'frost'?": [image, "--corruptions", "forst"],
        "did you mean 'tilt'?": [image, "--perturbations", "tlt"],
        "did you mean 'imagenet'?": [image, "--edition", "imagnet"],
        "did you mean 'cifar-10'?": ["--dataset", "cifar10"],
        "severity 7 does not exist": [image, "--severities", "7"],
        ".png, .jpg, .jpeg, .webp, .pdf, .html;": [image, "--output", tmp_path / "x.tif"],
        "with --perturbations or clips also .gif, .mp4": [image, "--output", tmp_path / "x.gif"],
        "folder.png: is a folder": [image, "--output", tmp_path / "folder.png"],
        "a.jpg: is a file": [image, "--output", image / "x.png"],
        "is the image itself": [image, "--output", image],
        "is inside the source": ["--source", photos, "--output", photos / "out" / "x.png"],
        "must be from 0 to 2": ["--source", photos, "--index", 3],
        "give IMAGE, or --source": [image, "--index", 0],
        "cell must be from 16 to 1024": [image, "--cell", 0],
        "--grid shows one severity": [image, "--grid", "--severities", "1-3"],
        "--corruptions is for corruptions": [image, "--corruptions", "fog", "--frames", 3],
        "x.gif shows every frame": [image, "--frames", 3, "--output", tmp_path / "x.gif"],
        "give --dataset or --config": [image, "--dataset", "demo", "--config", "x.yaml"],
    }
    for reason, args in named.items():
        output = [] if "--output" in args else ["--output", tmp_path / "x.png"]
        assert reason in cli_error("preview", *args, *output)
    assert image.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"photos", "folder.png"}


def test_an_image_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "text.png").write_text("no picture")
    whole = put_photo(tmp_path / "x" / "whole.jpg", 200, 200).read_bytes()
    (tmp_path / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    put_photo(tmp_path / "x" / "tiny.png", 20, 50)
    for args, reason in (
        ([tmp_path / "text.png"], "text.png': in none of the formats"),
        ([tmp_path / "cut.jpg"], "cut.jpg': damaged JPEG file: image file is truncated"),
        ([tmp_path / "x" / "tiny.png", "--edition", "folder"], "'x/tiny.png': 50 x 20 pixels"),
        ([tmp_path / "x" / "whole.jpg", "--edition", "cifar-10"], "'x/whole.jpg': CIFAR images are 32 x 32"),
    ):
        result = cli("preview", *args, "--output", tmp_path / "out.png", status=1)
        assert reason in result.stderr and result.stdout == "" and len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "out.png").exists()


def test_what_cannot_be_written_leaves_the_old_file(photos, tmp_path, monkeypatch):
    sheet = drawn(tmp_path, "--source", photos, "--corruptions", "contrast")
    before = sheet.read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    args = ["--source", photos, "--corruptions", "fog", "--output", sheet]
    assert "sheet.png: No space left on device" in cli_error("preview", *args)
    assert sheet.read_bytes() == before and [path.name for path in sheet.parent.iterdir()] == ["sheet.png"]


# --- animations ----------------------------------------------------------------------------------


def test_an_animation_has_every_frame_and_goes_on_for_ever(photos, tmp_path):
    args = ["--source", photos, "--perturbations", "rotate", "--cell", 65]
    path = drawn(tmp_path, *args, name="moving.gif")
    previewed = subject_of(photos, "p", 0, tmp_path, perturbations="rotate")
    frames = previewed.make(previewed.variants[0])
    with Image.open(path) as moving:
        assert (moving.n_frames, moving.info["loop"], moving.size) == (31, 0, (70, 60))
        for number in (0, 12, 30):
            moving.seek(number)
            shown = np.asarray(moving.convert("RGB")).astype(int)
            error = [np.abs(shown - frames[i]).mean() for i in range(31)]
            assert np.argmin(error) == number and error[number] < 15


def test_mp4_is_what_browsers_play(photos, tmp_path):
    args = ["--source", photos, "--perturbations", "tilt", "--cell", 65]
    path = drawn(tmp_path, *args, name="moving.mp4")
    previewed = subject_of(photos, "p", 0, tmp_path, perturbations="tilt")
    assert path.read_bytes() == encode_animation(previewed.make(previewed.variants[0]), ".mp4")
    assert video.read_sequence(path).shape == (31, 60, 70, 3)
    # yuv420p knows no odd sides.
    odd = np.stack([photo(33, 41, seed) for seed in range(3)])
    assert video.read_frames(encode_animation(odd, ".mp4")).shape == (3, 34, 42, 3)


def test_several_sequences_move_side_by_side_and_the_shorter_wait(tmp_path):
    folder, *_ = cifar_folder(tmp_path, images=2)
    names = "tilt,motion_blur"
    previewed = subject_of(folder, "p", 0, tmp_path, edition="cifar-10", perturbations=names)
    moving = draw_animation(previewed, cell=32)
    blur, tilt = (previewed.make(variant) for variant in previewed.variants)
    assert len(moving) == 31
    for number in (0, 20, 30):
        assert is_there(tilt[number], moving[number])
        assert is_there(blur[min(number, 20)], moving[number])


# --- in the terminal -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "how"),
    [
        ({"TERM": "xterm-kitty", "KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM": "xterm-ghostty"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "kitty"),
        ({"TERM": "foot"}, "sixel"),
        ({"TERM": "mlterm"}, "sixel"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "mintty"}, "sixel"),
        ({"TERM": "xterm-256color"}, None),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "vscode", "KITTY_WINDOW_ID": "1"}, None),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"}, None),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/tmux"}, None),
        ({"TERM": "dumb", "TERM_PROGRAM": "WezTerm"}, None),
        ({}, None),
    ],
)
def test_the_environment_tells_what_the_terminal_can(environment, how):
    assert sheets.detect_protocol(environment) == how


def test_kitty_gets_a_png_in_pieces_and_is_told_not_to_answer():
    picture = photo(60, 80)
    pieces = re.findall(rb"\x1b_G([^;]*);([^\x1b]*)\x1b\\", sheets.encode_kitty(picture))
    assert b"".join(b"\x1b_G%s;%s\x1b\\" % piece for piece in pieces) == sheets.encode_kitty(picture)
    heads, data = zip(*pieces, strict=True)
    assert heads == (b"a=T,f=100,q=2,m=1", *[b"m=1"] * (len(heads) - 2), b"m=0") and len(heads) > 2
    assert max(map(len, data)) == 4096
    assert np.array_equal(pixels_of(io.BytesIO(base64.b64decode(b"".join(data)))), picture)
    assert sheets.encode_kitty(plain(2, 2)).startswith(b"\x1b_Ga=T,f=100,q=2,m=0;")


def painted(sixels):
    """Pixels of a sixel picture, by a reader as plain as can be."""
    head = re.match(rb'\x1bP0;1q"1;1;(\d+);(\d+)', sixels)
    width, height = map(int, head.groups())
    picture, colours = np.zeros((height + 5, width, 3)), {}
    x = y = colour = 0
    for token in re.findall(rb"#\d+;2;\d+;\d+;\d+|#\d+|!\d+.|[$-]|[?-~]", sixels[head.end() : -2]):
        if token[:1] == b"#":
            colour, *rgb = (int(number) for number in token[1:].replace(b";2;", b";").split(b";"))
            colours.update({colour: rgb} if rgb else {})
        elif token in (b"$", b"-"):
            x, y = 0, y + 6 * (token == b"-")
        else:
            times = int(token[1:-1] or 1)
            for bit in range(6):
                if (token[-1] - ord("?")) >> bit & 1:
                    picture[y + bit, x : x + times] = colours[colour]
            x += times
    return picture[:height] * 2.55


def test_sixels_show_the_picture():
    picture = photo(45, 64)
    assert np.abs(painted(sheets.encode_sixel(picture)) - picture).mean() < 12
    flag = np.concatenate([plain(7, 30), plain(8, 30, (0, 0, 250))])
    assert np.abs(painted(sheets.encode_sixel(flag)) - flag).max() < 4


class _Screen(io.BytesIO):
    def isatty(self):
        return True


def test_a_terminal_gets_the_picture_no_wider_than_its_window_and_a_file_nothing():
    kitty = {"TERM": "xterm-kitty"}
    screen, wide, file = _Screen(), _Screen(), io.BytesIO()
    assert sheets.show_picture(photo(40, 50), screen, kitty)
    assert screen.getvalue() == sheets.encode_kitty(photo(40, 50)) + b"\n"
    assert sheets.show_picture(plain(100, 1280), wide, {"TERM": "foot"})
    assert wide.getvalue().startswith(b'\x1bP0;1q"1;1;640;50')
    assert not sheets.show_picture(photo(40, 50), file, kitty) and file.getvalue() == b""
    assert not sheets.show_picture(photo(40, 50), _Screen(), {"TERM": "xterm"})


def test_the_terminal_is_not_waited_for(photos, tmp_path):
    """A pseudo-terminal that never answers gets the picture, and the command ends."""
    ours, theirs = os.openpty()
    image, sheet = photos / "cats" / "a.jpg", tmp_path / "x.png"
    command = [sys.executable, "-m", "robustgen", "preview", image, "--corruptions", "fog", "--output", sheet]
    environment = {k: v for k, v in os.environ.items() if k not in ("TMUX", "STY", "TERM_PROGRAM")}
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, env=environment | {"TERM": "xterm-kitty"}
    )
    os.close(theirs)
    told = b""
    while process.poll() is None or b"m=0" not in told:
        try:
            told += os.read(ours, 65536)
        except OSError:
            break
    os.close(ours)
    assert process.wait() == 0
    assert told.startswith(str(sheet).encode()) and b"\x1b_Ga=T,f=100,q=2" in told


def test_whoever_insists_on_seeing_it_is_told_why_not(photos, tmp_path):
    result = cli(
        "preview", "--source", photos, "--corruptions", "fog", "--show", "--output", tmp_path / "x.png"
    )
    assert result.stdout == f"{tmp_path / 'x.png'}\n" and "not known to support pictures" in result.stderr
