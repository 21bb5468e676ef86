"""make-icons: classes, packages, composition, duplicates, splits, and the whole command."""

import json
import os
import re
import shutil
import unicodedata

import numpy as np
import pytest
from PIL import Image

from robustgen.errors import ImageError, SourceError
from robustgen.related.icons.choosing import CLASSES_FILE, choose, read_classes
from robustgen.related.icons.icon_set import compose, resize_icon
from robustgen.related.icons.packages import order, parse_emoji, read_picture, read_style, strip_tones
from tests.emoji import NAMES, datasource, fluent, picture, plain, put
from tests.helpers import cli, cli_error, errors_of, kept, pictures, pixels_of, tree
from tests.sets.dataset.test_state import read_by_torchvision

APPENDIX_C = (
    "Airplane, Drink, Arrow Directions, Automobile, Ball, Biking, Boat, Books, Bunny Ears, Cartwheeling, "
    "Cat, Chick, Clock, Cloud, Disk, Emotion Face, Envelope, Factory Worker, Family, Fast Train, Flag, "
    "Flower, Golfing, Hand, Heart, Holding Hands, House, Japanese Ideograph, Judge, Kiss, Lock, Mailbox, "
    "Mechanic, Medal, Money, Monkey, Moon, Mountain, Numbers, Phone, Prohibit Sign, Rowing, Scientist, "
    "Shoe, Surfing, Tree, Umbrella, Water Polo, Wrestling, Writing Utensil"
)
TONES = ("1f3fb", "1f3fc", "1f3fd", "1f3fe", "1f3ff")


# --- small packages ------------------------------------------------------------------------------


@pytest.fixture
def packages(tmp_path):
    google = datasource(tmp_path / "g", "google", NAMES, 10)
    three = fluent(tmp_path / "f", NAMES[:-1], 20)
    return ("--style", f"google={google}", "--style", f"fluent={three}", "--jobs", 1)


@pytest.fixture
def out(tmp_path, packages):
    """A set of both packages."""
    cli("make-icons", *packages, "--output", tmp_path / "out")
    return tmp_path / "out"


# --- the fifty classes ---------------------------------------------------------------------------


CLASSES = read_classes()
COMMENTED = [
    (match[1], match[2])
    for line in CLASSES_FILE.read_text(encoding="utf-8").splitlines()
    if (match := re.fullmatch(r'  - "([^"]+)"  # (.+)', line))
]


def test_the_classes_are_those_of_the_paper_with_several_emoji_each():
    assert set(CLASSES) == {name.lower().replace(" ", "_") for name in APPENDIX_C.split(", ")}
    assert len(CLASSES) == 50 and min(map(len, CLASSES.values())) >= 3


def test_emoji_are_written_as_they_are_compared_and_of_assigned_code_points():
    written = [emoji for emoji, _ in COMMENTED]
    assert len(written) == sum(map(len, CLASSES.values()))
    assert all(parse_emoji(emoji) == emoji == strip_tones(emoji) for emoji in written)
    points = {int(point, 16) for emoji in written for point in emoji.split("-")}
    assert all(unicodedata.category(chr(each)) != "Cn" or 0x1F900 <= each <= 0x1FAFF for each in points)


def test_single_code_points_bear_the_names_that_unicode_gives_them():
    singles = {emoji: name for emoji, name in COMMENTED if "-" not in emoji}
    names = {emoji: unicodedata.name(chr(int(emoji, 16)), None) for emoji in singles}
    # Older Pythons do not know the emoji of the last years, which lie in two blocks.
    unknown = {emoji for emoji, name in names.items() if name is None}
    assert all(0x1F900 <= int(emoji, 16) <= 0x1FAFF for emoji in unknown)
    assert {e: n for e, n in names.items() if n} == {e: n for e, n in singles.items() if e not in unknown}


def test_an_emoji_is_in_one_class_once():
    every = [emoji for members in CLASSES.values() for emoji in members]
    assert len(every) == len({*every})


# --- names of files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, emoji",
    [
        ("2708-fe0f", "2708"),
        ("1F468-200D-1F527", "1f468-200d-1f527"),
        ("31-fe0f-20e3", "0031-20e3"),
        ("emoji_u1f468_200d_1f527", "1f468-200d-1f527"),
        ("1f3f4-e0067_e0062_e0065", "1f3f4-e0067-e0062-e0065-e007f"),
        ("1f3f4-e0067-e0062-e0065-e007f", "1f3f4-e0067-e0062-e0065-e007f"),
        ("fe0f", None),
        ("smile", None),
        ("1f600 copy", None),
        ("1f600-", None),
        ("ffffff", None),
    ],
)
def test_file_names_become_emoji(name, emoji):
    assert parse_emoji(name) == emoji


@pytest.mark.parametrize(
    "emoji, base",
    [
        ("1f44d-1f3fb", "1f44d"),
        ("1f468-1f3fc-200d-1f48b-200d-1f468-1f3fc", "1f468-200d-1f48b-200d-1f468"),
        ("1f468-1f3fc-200d-1f48b-200d-1f468-1f3fd", None),
        ("1f44d", "1f44d"),
        ("1f3fb", None),
    ],
)
def test_skin_tones_belong_to_their_emoji_unless_mixed(emoji, base):
    assert strip_tones(emoji) == base


# --- packages ------------------------------------------------------------------------------------


def test_layouts_and_the_licences_of_their_pictures(tmp_path):
    google = read_style("google", datasource(tmp_path / "g", "google", NAMES))
    twitter = read_style("t", datasource(tmp_path / "t", "twitter", NAMES))
    three = read_style("fluent", fluent(tmp_path / "f", NAMES))
    own = read_style("own", plain(tmp_path / "p", [*NAMES, "logo"]))
    assert set(google.files) == set(three.files) == set(own.files) == {parse_emoji(n) for n in NAMES}
    assert google.files["2708"] == tmp_path / "g/img/google/64/2708-fe0f.png"
    assert three.files["2708"] == tmp_path / "f/assets/2708-fe0f.webp"
    assert (google.ignored, own.ignored) == (0, 1)
    licences = [style.licence for style in (google, twitter, three, own)]
    assert licences == ["Apache-2.0", "CC-BY-4.0", "MIT", "as supplied"]
    # emoji-datasource declares the licence of its data.
    assert google.declared == "MIT"


def test_of_an_emoji_with_and_without_selector_the_first_in_code_point_order_stays(tmp_path):
    style = read_style("p", plain(tmp_path, ["2708-fe0f", "2708", "1f600"]))
    assert style.files["2708"].name == "2708.png"
    assert style.repeated == ("2708-fe0f.png",)


def test_of_a_source_of_several_styles_one_is_to_be_named(tmp_path):
    datasource(tmp_path, "apple", ["2708"], 1)
    datasource(tmp_path, "google", ["1f600"], 2)
    one = tmp_path / "img/apple/64"
    with pytest.raises(SourceError, match=rf"several styles \(apple, google\); name .* such as {one}"):
        read_style("google", tmp_path)
    style = read_style("google", tmp_path / "img/google/64")
    # What the package says of its licence may be said of another style.
    assert set(style.files) == {"1f600"} and style.licence == "as supplied"


def test_a_folder_of_no_known_layout_is_told_so(tmp_path):
    (tmp_path / "readme.txt").write_text("nothing")
    with pytest.raises(SourceError, match="contains no emoji images in a known layout: img/<style>/64/"):
        read_style("x", tmp_path)
    datasource(tmp_path / "package", "google", NAMES)
    with pytest.raises(SourceError, match=r"is it .*package\?"):
        read_style("x", tmp_path)
    with pytest.raises(SourceError, match="No such file"):
        read_style("x", tmp_path / "missing")
    with pytest.raises(SourceError, match="Not a directory"):
        read_style("x", tmp_path / "readme.txt")


@pytest.mark.parametrize("content", ["{", "[]", "[" * 100_000, "\xff"])
def test_a_damaged_package_json_is_named(tmp_path, content):
    plain(tmp_path, NAMES)
    (tmp_path / "package.json").write_text(content, encoding="latin-1")
    with pytest.raises(SourceError, match=re.escape(str(tmp_path / "package.json"))):
        read_style("x", tmp_path)


def test_pictures_may_not_be_links_that_lead_out(tmp_path):
    outside = put(tmp_path / "secret.png", picture(1))
    root = plain(tmp_path / "p", ["1f600"])
    (root / "2708.png").symlink_to(outside)
    (root / "1f431.png").symlink_to(root / "1f600.png")
    assert read_picture(root / "1f431.png", root).mode == "RGBA"
    with pytest.raises(ImageError, match=r"2708\.png': a link that leads out of its package"):
        read_picture(root / "2708.png", root)


@pytest.mark.parametrize("content", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n" + b"\0" * 40])
def test_an_unreadable_picture_is_named(tmp_path, content):
    file = tmp_path / "1f600.png"
    file.write_bytes(content)
    with pytest.raises(ImageError, match=re.escape(str(file))):
        read_picture(file, tmp_path)


def test_a_pipe_in_the_place_of_a_picture_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "1f600.png")
    with pytest.raises(ImageError, match=r"1f600\.png': is not a regular file"):
        read_picture(tmp_path / "1f600.png", tmp_path)
    os.mkfifo(tmp_path / "package.json")
    with pytest.raises(SourceError, match="is not a regular file"):
        read_style("x", tmp_path)


def test_a_picture_whose_square_would_fill_the_memory_is_named(tmp_path):
    file = put(tmp_path / "1f600.png", Image.new("L", (1, 60_000)))
    with pytest.raises(ImageError, match=r"1f600\.png': too large for a square: 1 x 60000 pixels"):
        read_picture(file, tmp_path)


@pytest.mark.parametrize("mode", ["P", "LA", "L", "RGB"])
def test_pictures_of_other_modes_are_read(tmp_path, mode):
    image = picture(3)
    file = tmp_path / "1f600.png"
    (image.quantize() if mode == "P" else image.convert(mode)).save(file)
    read = read_picture(file, tmp_path)
    assert read.mode == "RGBA" and read.size == image.size
    assert (read.getpixel((0, 0))[3] == 0) == (mode in ("P", "LA"))


# --- composition ---------------------------------------------------------------------------------


def test_transparency_shows_white():
    half = Image.new("RGBA", (20, 20), (200, 0, 100, 128))
    assert np.abs(compose(half).astype(int) - (227, 127, 177)).max() <= 1


def test_other_shapes_come_into_the_middle_of_a_square():
    square = compose(Image.new("RGBA", (10, 20), (9, 9, 9, 255)))
    assert square.shape == (20, 20, 3)
    assert (square[:, 5:15] == 9).all()
    assert (square[:, :5] == 255).all() and (square[:, 15:] == 255).all()


def test_an_icon_is_the_blend_of_the_filtered_colours_and_their_filtered_cover():
    pixels = np.random.default_rng(8).integers(90, 150, (64, 64, 4)).astype(np.uint8)
    pixels[..., 3] = np.where(np.indices((64, 64)).sum(0) > 60, 255, 0)
    icon = resize_icon(compose(Image.fromarray(pixels)), 32)

    def filtered(channel):
        image = Image.fromarray(channel.astype(np.float32))
        return np.asarray(image.resize((32, 32), Image.Resampling.LANCZOS))

    cover = filtered(pixels[..., 3] / 255.0)
    for channel in range(3):
        colour = filtered(pixels[..., channel] * (pixels[..., 3] / 255.0))
        wanted = np.clip(colour + (1 - cover) * 255, 0, 255)
        # Beside the edge, white overshoots the range that Pillow clips to between its two passes.
        assert np.abs(icon[..., channel] - wanted).max() <= 6
        assert np.quantile(np.abs(icon[..., channel] - wanted), 0.9) <= 1.5


# --- choice --------------------------------------------------------------------------------------


def styles_of(tmp_path, **names):
    return [read_style(name, plain(tmp_path / name, each)) for name, each in names.items()]


THUMBS = [f"1f44d-{tone}" for tone in TONES]
COUPLES = ["1f46b", "1f9d1-1f3fb-200d-1f91d-200d-1f9d1-1f3fb", "1f9d1-1f3fb-200d-1f91d-200d-1f9d1-1f3fc"]
SMALL = {"hand": ("1f44d",), "pair": ("1f46b", "1f9d1-200d-1f91d-200d-1f9d1")}


def test_variants_of_one_skin_tone_are_taken(tmp_path):
    styles = styles_of(tmp_path, a=["1f44d", *THUMBS, *COUPLES])
    choice = choose(SMALL, styles, per_class=None)
    assert choice.members["hand"] == ("1f44d", *THUMBS)
    assert COUPLES[1] in choice.members["pair"] and COUPLES[2] not in choice.members["pair"]


def test_what_a_style_lacks_is_told(tmp_path):
    styles = styles_of(tmp_path, a=["1f44d", THUMBS[0], "1f46b"], b=["1f44d"])
    choice = choose(SMALL, styles, per_class=None)
    pair = SMALL["pair"][1]
    assert choice.lacking == {"a": (pair,), "b": (THUMBS[0], "1f46b", pair)}
    assert list(choice.pictures) == [
        *("hand/a_1f44d.png", f"hand/a_{THUMBS[0]}.png", "hand/b_1f44d.png", "pair/a_1f46b.png")
    ]


def test_the_limit_keeps_the_same_emoji_in_every_style_and_those_without_tone_first(tmp_path):
    styles = styles_of(tmp_path, a=["1f44d", *THUMBS], b=["1f44d", *THUMBS])
    choice = choose(SMALL, styles, per_class=3)
    kept = choice.members["hand"]
    assert len(kept) == 3 and "1f44d" in kept
    assert choice.left_out == {"hand": tuple(sorted({*THUMBS} - {*kept}, key=order))}
    assert {f"hand/{style}_{emoji}.png" for style in "ab" for emoji in kept} == set(choice.pictures)


def test_the_limit_keeps_what_most_styles_have(tmp_path):
    styles = styles_of(tmp_path, a=["1f44d", *THUMBS], b=THUMBS[3:], c=THUMBS[3:])
    choice = choose(SMALL, styles, per_class=2)
    assert choice.members["hand"] == (*THUMBS[3:],)


# --- the command ---------------------------------------------------------------------------------


def manifest_of(output):
    return json.loads((output / "dataset.json").read_text())


def test_the_command_makes_a_set_that_verifies(tmp_path, packages):
    out = tmp_path / "out"
    result = cli("make-icons", *packages, "--output", out, "--size", 32)
    emoji = {"airplane": ("2708", "1f6e9"), "cat": ("1f431", "1f408"), "hand": ("1f44d", "1f44d-1f3fb")}
    expected = {f"{c}/{s}_{e}.png" for c, each in emoji.items() for e in each for s in ("google", "fluent")}
    assert pictures(out) == expected | {"emotion_face/google_1f600.png"}
    icon = pixels_of(out / "airplane/google_2708.png")
    assert icon.shape == (32, 32, 3)
    assert (icon[0, 0] == 255).all()
    assert "13 icons in" in result.stdout
    cli("verify", out, "--deep", "all")


def test_the_manifest_tells_packages_licences_counts_and_gaps(out):
    manifest = manifest_of(out)
    assert manifest["title"] == "icons in the manner of Icons-50"
    assert manifest["complete"] and len(manifest["digest"]) == 64
    google = manifest["source"]["styles"]["google"]
    assert (google["package"], google["version"]) == ("emoji-datasource-google", "16.0.0")
    assert (google["licence"], google["declared_licence"]) == ("Apache-2.0", "MIT")
    both = {"fluent": 2, "google": 2}
    faces = {"fluent": 0, "google": 1}
    assert manifest["icons"] == {"airplane": both, "cat": both, "emotion_face": faces, "hand": both}
    assert "1f600" in manifest["lacking"]["fluent"] and "1f600" not in manifest["lacking"]["google"]
    assert {"1f6eb", "1f6ec"} <= {*manifest["lacking"]["google"]} & {*manifest["lacking"]["fluent"]}


def test_splits_list_the_icons_that_there_are(out):
    for style in ("google", "fluent"):
        lines = {"test": "", "train": ""}
        for key in sorted(pictures(out)):
            lines["test" if f"/{style}_" in key else "train"] += f"{key}\n"
        assert {part: (out / f"hold_out_{style}_{part}.txt").read_text() for part in lines} == lines
    (out / "hold_out_google_test.txt").write_text("other\n")
    assert "truncated hold_out_google_test.txt" in cli("verify", out, status=1).stdout


def test_of_equal_pixels_the_first_stays_and_the_others_are_told(tmp_path, packages):
    google, three = tmp_path / "g/img/google/64", tmp_path / "f/assets"
    put(google / "1f6eb.png", Image.open(google / "2708-fe0f.png"))
    put(google / "1f6ec.png", Image.open(google / "2708-fe0f.png"))
    # In another class, and in another style.
    put(google / "1f44d.png", Image.open(google / "1f6e9-fe0f.png"))
    put(google / "1f408.png", Image.open(three / "1f408.webp"))
    # The same to the eye: hidden colours differ where nothing shows.
    hidden = np.array(Image.open(google / "1f431.png"))
    hidden[hidden[..., 3] == 0] = (7, 7, 7, 0)
    put(google / "1f63a.png", Image.fromarray(hidden))
    out = tmp_path / "out"
    result = cli("make-icons", *packages, "--output", out)
    assert manifest_of(out)["duplicates"] == {
        "airplane/google_1f6eb.png": "airplane/google_2708.png",
        "airplane/google_1f6ec.png": "airplane/google_2708.png",
        "cat/google_1f408.png": "cat/fluent_1f408.png",
        "cat/google_1f63a.png": "cat/google_1f431.png",
        "hand/google_1f44d.png": "airplane/google_1f6e9.png",
    }
    assert not {*manifest_of(out)["duplicates"]} & pictures(out)
    assert "5 icons, 5 duplicates" in result.stdout


def test_the_bytes_depend_neither_on_jobs_nor_on_the_order_of_styles(tmp_path, packages, out):
    styles, two = packages[2:4] + packages[:2], tmp_path / "two"
    cli("make-icons", *styles, "--output", two, "--jobs", 2)
    assert tree(out) == tree(two) and manifest_of(out)["digest"] == manifest_of(two)["digest"]


def test_a_run_goes_on_where_it_was_cut_off(packages, out):
    before = tree(out)
    for name in ("cat/google_1f431.png", "hold_out_google_test.txt", "dataset.json"):
        (out / name).unlink()
    assert "1 icon in" in cli("make-icons", *packages, "--output", out).stdout
    assert tree(out) == before
    assert kept(cli("make-icons", *packages, "--output", out))


def test_other_settings_are_refused_unless_overwritten(tmp_path, packages, out):
    own = ("--style", f"own={plain(tmp_path / 'p', NAMES)}")
    changes = (("--size", 32), ("--per-class", 1), own)
    for flags in changes:
        error = cli_error("make-icons", *packages, "--output", out, *flags)
        assert str(out) in error and "--overwrite" in error
    cli("make-icons", *packages, "--output", out, *own, "--overwrite")
    assert (out / "hold_out_own_test.txt").exists()
    cli("make-icons", *packages, "--output", out, "--size", 32, "--overwrite")
    assert not (out / "hold_out_own_test.txt").exists()
    assert not any("/own_" in name for name in pictures(out))
    cli("verify", out)


@pytest.mark.parametrize("change", ["lost", "repeated"])
def test_a_package_that_has_fewer_icons_makes_another_set(tmp_path, packages, out, change):
    folder = tmp_path / "g/img/google/64"
    (folder / "1f431.png").unlink()
    if change == "repeated":
        shutil.copy(folder / "1f408.png", folder / "1f431.png")
    assert "icons was '13 with the digest" in cli_error("make-icons", *packages, "--output", out)
    cli("make-icons", *packages, "--output", out, "--overwrite")
    assert "cat/google_1f431.png" not in pictures(out)
    cli("verify", out, "--deep", "all")


def test_a_licence_that_is_told_later_is_recorded(packages, out):
    cli("make-icons", *packages, "--output", out, "--licence", "google=mine, says who?")
    assert manifest_of(out)["source"]["styles"]["google"]["licence"] == "mine, says who?"
    assert "google: mine, says who?" in manifest_of(out)["licence"]
    cli("verify", out)


def test_an_unreadable_picture_is_named_and_made_once_it_is_mended(tmp_path, packages):
    broken, out, key = tmp_path / "g/img/google/64/1f431.png", tmp_path / "out", "cat/google_1f431.png"
    whole = broken.read_bytes()
    broken.write_bytes(whole[: len(whole) // 2])
    assert str(broken) in cli("make-icons", *packages, "--output", out, status=1).stderr
    assert [failure["key"] for failure in errors_of(out)] == [key]
    assert key not in (out / "hold_out_google_test.txt").read_text()
    broken.write_bytes(whole)
    cli("make-icons", *packages, "--output", out)
    assert (out / key).exists() and not (out / "errors.jsonl").exists()
    assert key in (out / "hold_out_google_test.txt").read_text()
    cli("verify", out, "--deep", "all")


def test_a_dry_run_counts_and_writes_nothing(tmp_path, packages):
    result = cli("make-icons", *packages, "--output", tmp_path / "out", "--dry-run")
    assert "7 icons, 0 duplicates" in result.stdout
    assert "13 images" in result.stdout
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "flags, message",
    [
        (("--style", "google"), "--style: must be NAME=DIR, not 'google'"),
        (("--style", "google={f}"), "--style: 'google' is given twice"),
        (("--style", "a/b={p}"), "--style: 'a/b' is not a valid style name"),
        (("--style", "own={missing}"), "--style own: {missing}: No such file or directory"),
        (("--style", "own={empty}"), "--style own: {empty} contains no emoji images in a known layout"),
        (("--style", "own={other}"), "--style own: {other} has none of the chosen emoji"),
        (("--style", "own={g}"), "--style own: the same folder as google"),
        (("--licence", "own=MIT"), "--licence: unknown style 'own'"),
        (("--licence", "MIT"), "--licence: must be NAME=TEXT, not 'MIT'"),
        (("--size", 15), "--size: must be greater than or equal to 16, not 15"),
        (("--per-class", "-3"), "--per-class: must be greater than or equal to 1, not -3"),
        (("--per-class", "few"), "--per-class: must be a valid integer, not 'few'"),
        (("--style", "own={copy}"), "--style own: all of its icons are those of another style"),
        (("--output", "{g}/img"), "is inside the source {g}"),
        (("--output", "{f}/out"), "is inside the source {f}"),
    ],
)
def test_wrong_flags_are_answered_in_one_line(tmp_path, packages, flags, message):
    places = {name: str(tmp_path / name) for name in ("g", "f", "p", "missing", "empty", "other", "copy")}
    plain(tmp_path / "p", NAMES)
    plain(tmp_path / "other", ["1f9e6"])
    (tmp_path / "empty").mkdir()
    shutil.copytree(tmp_path / "g", tmp_path / "copy")
    flags = [str(flag).format(**places) for flag in flags]
    output = () if "--output" in flags else ("--output", tmp_path / "out")
    assert message.format(**places) in cli_error("make-icons", *packages, *output, *flags)
    assert not (tmp_path / "out").exists()


def test_a_single_style_is_too_few(tmp_path, packages):
    error = cli_error("make-icons", *packages[:2], "--output", tmp_path / "out")
    assert error.startswith("--style: ")


def test_an_output_that_holds_something_else_is_left_alone(tmp_path, packages):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/letter.txt").write_text("dear")
    assert "letter.txt" in cli_error("make-icons", *packages, "--output", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir() if path.name != ".robustgen"] == ["letter.txt"]


@pytest.fixture
def icons(tmp_path):
    """The flags of make-icons with two styles of two classes."""
    for number, style in enumerate(("google", "fluent")):
        (tmp_path / style).mkdir()
        for place, name in enumerate(("2708", "1f431")):
            Image.new("RGBA", (64, 64), (100 * number, 90 * place, 7, 255)).save(
                tmp_path / style / f"{name}.png"
            )
    styles = [f"{style}={tmp_path / style}" for style in ("google", "fluent")]
    return (
        "--style",
        styles[0],
        "--style",
        styles[1],
        "--jobs",
        1,
    )


def test_torchvision_finds_the_classes_of_icons(icons, tmp_path):
    out = tmp_path / "out"
    cli("make-icons", *icons, "--output", out)
    assert read_by_torchvision(out) == (("airplane", "cat"), 4)
    assert (
        out / "hold_out_google_test.txt"
    ).read_text() == "airplane/google_2708.png\ncat/google_1f431.png\n"
    cli("verify", out, "--deep", "all")


def test_a_style_given_twice_is_refused():
    assert "given twice" in cli_error("make-icons", "--style", "a=x", "--style", "b=x", "--style", "a=y")
