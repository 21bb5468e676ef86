"""LAION-C: its glitch, its tiles, its banks of pictures, its preparation and its score."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

import robustgen
from robustgen import metrics
from robustgen.errors import ArgumentError
from robustgen.pixels.benchmarks.corruptions.laion_c import published_preparation
from robustgen.pixels.imaging.laion_c_effects import TileBank, plan_glitch, shrink_to_tile
from robustgen.pixels.imaging.laion_c_effects import _turn as turn
from tests.helpers import photo

# Of 224 x 224 pixels: shifts (offset, first row, rows), then channel, right, down, before they wrap.
GLITCHES = {
    2: ("(-4,145,55) (-7,23,6) (-1,151,35) (-1,77,7)", (0, -3, 0)),
    10: (
        "(-156,145,55) (217,217,4) (-103,151,35) (-104,77,7) (94,65,48) (182,146,53) (-59,38,26) "
        "(-108,94,25) (13,156,24) (68,8,28) (7,221,3) (18,68,43) (-92,74,44) (-170,157,45) (-118,2,34) "
        "(-39,120,31) (43,106,52) (-132,31,43) (122,11,51) (146,175,49)",
        (0, 16, -16),
    ),
}


@pytest.mark.parametrize("amount", GLITCHES)
def test_the_glitch_is_the_published_one(amount):
    text, (channel, right, down) = GLITCHES[amount]
    shifts = tuple(tuple(map(int, each.strip("()").split(","))) for each in text.split())
    glitch = plan_glitch(224, 224, amount, 1)
    assert glitch.shifts == shifts
    assert (glitch.channel, glitch.right, glitch.down) == (channel, right % 224, down % 224)


def test_the_glitch_of_an_image_may_have_a_seed_of_its_own():
    image = photo(224, 224)
    published = robustgen.corrupt(image, "laion-c:glitched", 3, rng=1)
    assert np.array_equal(published, robustgen.corrupt(image, "laion-c:glitched", 3, rng=2))
    own = [
        robustgen.corrupt(image, "laion-c:glitched", 3, rng=seed, parameters={"seed": "own"})
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(own[0], own[1])
    assert not np.array_equal(own[0], own[2]) and not np.array_equal(own[0], published)


def test_stars_are_turned_by_correctly_rounded_sines():
    sines, cosines = turn()
    degrees = np.arange(684)
    radians = (degrees * 0.017453292519943295).astype(np.longdouble)
    for found, exact in ((np.array(sines), np.sin(radians)), (np.array(cosines), np.cos(radians))):
        assert (np.abs(found - exact) <= 0.501 * np.spacing(np.abs(found))).all()


def bend_plainly(image, columns, step):
    """Vertical lines, written down as the description has them."""
    height, width = image.shape[:2]
    grey = np.asarray(Image.fromarray(image).convert("L")).astype(int)
    canvas = Image.new("RGB", (width, height))
    painter = ImageDraw.Draw(canvas)
    for i in range(columns):
        x = (i / columns) * width
        first, after = int(x), min(int(x + width / columns), width)
        before = (x, 0)
        for y in range(0, height, step):
            cell = image[y : y + step, first:after].reshape(-1, 3).astype(int)
            count = len(cell)
            colour = tuple(int(cell[:, c].sum()) // count for c in range(3)) if count else (0, 0, 0)
            light = int(grey[y : y + step, first:after].sum()) // count if count else 0
            place = (x - 40 * (1 - light / 255), y)
            painter.line([before, place], fill=colour)
            before = place
    return np.asarray(canvas)


@pytest.mark.parametrize("shape", [(224, 224), (48, 70), (90, 400)])
def test_lines_are_those_of_the_description(shape):
    image = photo(*shape, seed=2)
    for severity, (columns, step) in enumerate([(224, 1), (178, 2), (112, 4), (84, 6), (60, 8)], 1):
        got = robustgen.corrupt(image, "laion-c:vertical_lines", severity)
        assert np.array_equal(got, bend_plainly(image, columns, step))


def bank_of(colours, side=8):
    tiles = np.zeros((len(colours), side, side, 3), np.uint8)
    tiles[...] = np.array(colours, np.uint8)[:, None, None]
    return TileBank({side: tiles})


def test_a_mosaic_takes_the_nearest_colour_and_leaves_one_picture_out():
    image = np.zeros((64, 64, 3), np.uint8)
    image[:, 32:] = (200, 30, 40)
    bank = bank_of([(0, 0, 0), (255, 0, 0), (10, 10, 10), (190, 40, 50)])
    laid = robustgen.corrupt(image, "laion-c:mosaic", 3, parameters={"tiles": bank})
    assert (laid[:, :24] == 0).all() and (laid[:, 40:] == (190, 40, 50)).all()
    laid = robustgen.corrupt(image, "laion-c:mosaic", 3, parameters={"tiles": bank.without(3)})
    assert (laid[:, :24] == 0).all() and (laid[:, 40:] == (255, 0, 0)).all()
    laid = robustgen.corrupt(image, "laion-c:mosaic", 3, parameters={"tiles": bank.without(0)})
    assert (laid[:, :24] == 10).all()


def test_stickers_never_show_the_picture_left_out():
    bank = bank_of([(number, 0, 0) for number in range(1, 6)], 16)
    plain = np.zeros((224, 224, 3), np.uint8)
    for left_out in (0, 2, 4):
        own = {"tiles": bank.without(left_out)}
        shown = set(np.unique(robustgen.corrupt(plain, "laion-c:stickers", 5, parameters=own, rng=7)))
        assert shown - {0} == {1, 2, 3, 4, 5} - {left_out + 1}


def test_a_tile_is_a_picture_cropped_and_shrunk():
    picture = Image.fromarray(photo(300, 500))
    resized = picture.resize((426, 256), Image.Resampling.BILINEAR).crop((101, 16, 325, 240))
    want = np.asarray(resized.resize((16, 16), Image.Resampling.BILINEAR))
    assert np.array_equal(shrink_to_tile(picture, 16), want)


def test_a_folder_of_tiles_is_read_again_where_pictures_were_added(tmp_path):
    image = np.full((224, 224, 3), 250, np.uint8)
    Image.new("RGB", (50, 50), (0, 0, 0)).save(tmp_path / "a.png")
    own = {"tiles": tmp_path}
    assert (robustgen.corrupt(image, "laion-c:mosaic", 5, parameters=own) == 0).all()
    Image.new("RGB", (50, 50), (240, 240, 240)).save(tmp_path / "b.png")
    assert (robustgen.corrupt(image, "laion-c:mosaic", 5, parameters=own) == 240).all()


@pytest.mark.parametrize(
    ("name", "severity", "own", "message"),
    [
        ("stickers", 3, None, "laion-c:stickers needs pictures for tiles"),
        ("mosaic", 3, {"tiles": "/no/such/folder"}, "/no/such/folder is not a folder"),
        ("stickers", 3, {"tiles": Path(__file__).parent}, "benchmarks contains no picture"),
        ("stickers", 3, {"tiles": bank_of([(1, 2, 3)], 4)}, "none of 16 x 16 pixels"),
        ("stickers", 3, {"tiles": bank_of([(1, 2, 3)], 16).without(0)}, "too small"),
        ("stickers", 3, {"tiles": 3}, "parameters: laion-c:stickers: cannot be used: "),
        ("mosaic", 2, {"tiles": bank_of([(1, 2, 3)], 6)}, "of 6, not 224 x 224; --edition laion-c"),
        ("glitched", 1, {"amount": 11}, "must be from 0 to 10, not 11"),
    ],
)
def test_bad_parameters_are_refused(name, severity, own, message):
    with pytest.raises(ArgumentError, match=message):
        robustgen.corrupt(photo(224, 224), f"laion-c:{name}", severity, parameters=own)


def test_images_are_prepared_as_published():
    steps = [published_preparation("laion-c:mosaic", severity) for severity in range(1, 6)]
    assert [*map(tuple, steps)] == [
        (256, 224, 224), (252, 252, 224), (256, 224, 224), (256, 224, 224), (252, 224, 224)
    ]  # fmt: skip
    assert published_preparation("laion-c:stickers", 5) == (256, 224, 224)
    prepared = steps[1].prepare(photo(300, 400))
    assert prepared.shape == (252, 252, 3)
    assert np.array_equal(steps[1].complete(prepared), prepared[14:238, 14:238])
    assert np.array_equal(steps[0].prepare(photo(300, 400)), robustgen.prepare(photo(300, 400)))


def test_superclasses_take_the_mean_of_their_classes():
    groups = metrics.list_superclasses()
    assert len(groups) == 16 and sum(map(len, groups.values())) == 285
    assert [len(groups[name]) for name in ("fish", "dog", "cat", "bird", "car_truck")] == [12, 109, 6, 49, 11]
    names = list(groups)
    # Tench is the first fish, and fish come first; tabby cat is 281, and Granny Smith 948.
    assert names[0] == "fish" and groups["fish"][0] == 0 and 281 in groups["cat"] and 948 in groups["fruit"]
    rows = np.zeros((4, 1000))
    # One cat for sure against many dogs: 1 / 6 of a cat is more than 1 / 109 of a dog.
    rows[0, 281], rows[0, list(groups["dog"])] = 0.5, 0.5 / len(groups["dog"])
    rows[1, list(groups["dog"])] = 1 / len(groups["dog"])
    # Outside all superclasses: a tie of sixteen, which the first one wins.
    rows[2, 999] = 1
    rows[3, 948] = 1
    found = metrics.superclass_predictions(rows)
    assert [names[each] for each in found] == ["cat", "dog", "fish", "fruit"]
    labels = [names.index(each) for each in ("cat", "cat", "fish", "fruit")]
    assert metrics.superclass_accuracy(rows, labels) == 0.75
    assert metrics.superclass_labels([281, 152, 0, 948, 999]).tolist() == [
        *(names.index(each) for each in ("cat", "dog", "fish", "fruit")), -1
    ]  # fmt: skip
    assert metrics.published_accuracies()["best human"] == 55.2
    with pytest.raises(ArgumentError, match="1000 classes, not 10"):
        metrics.superclass_accuracy(np.full((2, 10), 0.1), [0, 1])
