"""CCC: its sequences and walks, constants between severities, and runs whose images can be asked for."""

import itertools
import math
import pickle

import cv2
import numpy as np
import pytest
from PIL import Image

import robustgen
from robustgen.errors import ArgumentError
from robustgen.pixels.benchmarks.registry import interpolate_parameters
from robustgen.pixels.imaging.blur import disk
from robustgen.related.streams import ccc
from tests.golden.outputs import read_outputs
from tests.helpers import photo

CCC = robustgen.FAMILIES["ccc"].corruptions
GOLDEN = read_outputs("families2")

SEQUENCES = """
40 43 gaussian_noise glass_blur elastic pixelate impulse_noise snow motion_blur contrast
20 44 zoom_blur frost elastic shot_noise impulse_noise zoom_blur defocus_blur glass_blur
0 45 impulse_noise contrast impulse_noise gaussian_noise impulse_noise gaussian_noise contrast gaussian_noise
"""


@pytest.mark.parametrize("line", SEQUENCES.strip().splitlines())
def test_sequences_are_those_of_the_published_runs(line):
    baseline, seed, *names = line.split()
    assert [*itertools.islice(ccc.draw_corruptions(int(baseline), int(seed)), 8)] == names


def test_the_corruptions_of_a_run_are_those_of_the_family():
    family = robustgen.FAMILIES["ccc"]
    assert [f"ccc:{name}" for name in sorted(ccc.list_corruptions(40))] == sorted(family.names())
    assert set(ccc.list_corruptions(40)) - set(ccc.list_corruptions(20)) == {"jpeg"}
    assert len(ccc.list_corruptions(0)) == 4


@pytest.mark.parametrize("key", [key for key in GOLDEN if key.startswith("ccc/elastic/")])
def test_pixels_are_the_published_ones(key):
    """Elastic reflects borders like SciPy of 2022."""
    _, _, severity, photograph, seed = key.split("/")
    image = read_outputs("c_imagenet")["input" if photograph == "colour" else "gray_input"]
    rng = np.random.RandomState(int(seed))
    made = robustgen.corrupt(image, "ccc:elastic", float(severity), edition="imagenet", rng=rng)
    assert np.array_equal(made[1::4, 1::4], GOLDEN[key])


def some_accuracies(seed):
    """Accuracies that fall with both severities, and not evenly."""
    draws = np.random.default_rng(seed)
    steps = draws.uniform(0, 1, (21, 21)).cumsum(axis=0).cumsum(axis=1)
    return 76 * np.exp(-steps / steps.max() * 4)


def walk_plainly(accuracies, baseline):
    """The recursion of the description."""
    known = {}

    def best(i, j):
        if j == 21:
            return 1e13, [None]
        if i == 0:
            return accuracies[0, j], [(0, j)]
        if (i, j) not in known:
            ways = best(i - 1, j), best(i, j + 1)
            means = [(cost + accuracies[i, j]) / (len(path) + 1) for cost, path in ways]
            down = abs(means[0] - baseline) < abs(means[1] - baseline)
            cost, path = ways[0 if down else 1]
            known[i, j] = cost + accuracies[i, j], [(i, j), *path]
        return known[i, j]

    starts = [best(i, 0) for i in range(1, 21)]
    return min(starts, key=lambda each: abs(each[0] / len(each[1]) - baseline))[1]


@pytest.mark.parametrize("baseline", [0, 20, 40])
@pytest.mark.parametrize("seed", range(4))
def test_walks_are_those_of_the_description(seed, baseline):
    accuracies = some_accuracies(seed)
    path = ccc.find_path(accuracies, baseline)
    assert path == walk_plainly(accuracies, baseline)
    assert path[0][1] == 0 and path[-1][0] == 0
    assert all((a - c, d - b) in ((1, 0), (0, 1)) for (a, b), (c, d) in itertools.pairwise(path))


def test_constants_lie_on_straight_lines():
    corruptions = robustgen.FAMILIES["ccc"].corruptions
    assert corruptions["ccc:gaussian_noise"].parameters(0.25, 224).sigma == 0.02
    assert corruptions["ccc:shot_noise"].parameters(1.5, 224).photon == pytest.approx((1 / 60 + 1 / 25) / 2)
    blur = corruptions["ccc:motion_blur"].parameters(4.25, 224)
    assert (blur.radius, blur.sigma) == (16.25, 12.75)
    elastic = corruptions["ccc:elastic"].parameters(0.25, 224)
    assert elastic.alpha == 122 and elastic.sigma == pytest.approx(792, abs=0.1)
    zoom = corruptions["ccc:zoom_blur"].parameters(0.25, 224)
    assert len(np.arange(1, zoom.stop, zoom.step)) == 3
    # Those of ImageNet-C stay on their curve.
    assert robustgen.CORRUPTIONS["gaussian_noise"].parameters(1.5, 224).sigma == math.sqrt(0.08 * 0.12)
    low, high = (robustgen.CORRUPTIONS["gaussian_noise"].parameters(level, 224) for level in (1, 2))
    assert interpolate_parameters(low, high, 0.5, linear=True).sigma == pytest.approx(0.1)


@pytest.mark.parametrize("name", CCC)
def test_severity_0_changes_nothing_and_all_quarters_can_be_made(name):
    image = photo(64, 80)
    assert np.array_equal(robustgen.corrupt(image, name, 0, rng=1), image)
    for quarter in range(1, 21):
        made = robustgen.corrupt(image, name, quarter / 4, rng=1)
        assert made.shape == image.shape
    assert not np.array_equal(made, image)


@pytest.mark.parametrize("severity", [1, 5])
@pytest.mark.parametrize("name", [name for name in robustgen.CORRUPTIONS if f"ccc:{name}" in CCC])
def test_whole_severities_are_those_of_imagenet_c(name, severity):
    made, published = (
        robustgen.corrupt(photo(224, 224), each, severity, edition="imagenet", rng=np.random.RandomState(3))
        for each in (f"ccc:{name}", name)
    )
    assert np.array_equal(made, published)


@pytest.mark.parametrize("severity", [0.25, 2.75, 4.25, 4.5, 4.75])
def test_disks_of_a_fraction_are_filtered_as_opencv_does(severity):
    image = photo(90, 100)
    row = robustgen.FAMILIES["ccc"].corruptions["ccc:defocus_blur"].parameters(severity, 224)
    places = np.arange(-8, 9) if row.radius <= 8 else np.arange(-row.radius, row.radius + 1)
    kernel = (places[:, None] ** 2 + places[None] ** 2 <= row.radius**2).astype(np.float32)
    size = 3 if row.radius <= 8 else 5
    kernel = cv2.GaussianBlur(kernel / kernel.sum(), (size, size), sigmaX=row.alias_blur)
    assert np.allclose(kernel, disk(row.radius, row.alias_blur), atol=1e-8)
    want = cv2.filter2D(image / 255, -1, kernel)
    got = robustgen.corrupt(image, "ccc:defocus_blur", severity)
    away = np.abs(want * 255 - np.rint(want * 255)) > 1e-3
    assert np.array_equal(got[away], (want * 255).clip(0, 255).astype(np.uint8)[away])


def a_table(baseline):
    pairs = itertools.permutations(ccc.list_corruptions(baseline), 2)
    return {pair: some_accuracies(number) for number, pair in enumerate(pairs)}


def test_a_run_is_a_sequence_of_cells():
    run = ccc.CccRun(a_table(0), sources=30, baseline=0, speed=7, seed=43, images=500)
    assert run.name == "baseline_0_transition+speed_7_seed_43" and len(run) == 500
    steps = [run[index] for index in range(500)]
    first = steps[0].cell
    assert (first.first, first.second, first.second_severity) == ("gaussian_noise", "impulse_noise", 0)
    for number in range(500 // 7):
        cell = steps[7 * number : 7 * number + 7]
        assert len({step.cell for step in cell}) == 1
        assert len({step.image for step in cell}) == 7 and len({step.seed for step in steps}) == 500
    pairs = [pair for pair, _ in itertools.groupby((step.cell.first, step.cell.second) for step in steps)]
    names = [*itertools.islice(ccc.draw_corruptions(0, 43), len(pairs) + 1)]
    assert pairs == [*itertools.pairwise(names)]
    assert run[-1] == steps[-1]
    with pytest.raises(IndexError):
        run[500]


def test_images_do_not_depend_on_the_order_in_which_they_are_asked_for():
    run = ccc.CccRun(a_table(20), sources=9, baseline=20, speed=1000, seed=44, images=10_000)
    assert run.images_per_cell == 9
    images = [Image.fromarray(photo(120 + number, 200, number)) for number in range(9)]
    wanted = [3000, 17, 9_999, 3001, 17]
    made = [ccc.make_image(run[index], images[run[index].image]) for index in wanted]
    assert all(each.shape == (224, 224, 3) and each.dtype == np.uint8 for each in made)
    assert np.array_equal(made[1], made[4]) and not np.array_equal(made[0], made[3])
    again = pickle.loads(pickle.dumps(run))
    assert np.array_equal(made[0], ccc.make_image(again[3000], np.asarray(images[again[3000].image])))


def test_a_long_run_takes_no_more_memory_than_its_cells():
    run = ccc.CccRun(a_table(40), sources=50_000)
    assert len(run) == 7_500_000 and len(run.cells) == 7500
    assert run[7_499_999].cell == run.cells[-1]


def test_crops_are_of_the_published_sizes():
    rng = np.random.default_rng(0)
    boxes = np.array([ccc.draw_crop(400, 300, rng) for _ in range(4000)])
    width, height = (boxes[:, 2:] - boxes[:, :2]).T
    assert (boxes >= 0).all() and (boxes[:, 2] <= 400).all() and (boxes[:, 3] <= 300).all()
    shares, ratios = width * height / (400 * 300), width / height
    assert shares.min() > 0.075 and 0.9 < shares.max() <= 1.001
    assert 0.74 < ratios.min() < 0.8 and 1.25 < ratios.max() < 1.35
    # Nothing fits so long an image: the largest middle part of a published ratio does.
    assert ccc.draw_crop(1000, 10, rng) == (493, 0, 506, 10)
    assert ccc.draw_crop(10, 1000, rng) == (0, 493, 10, 506)


def test_samples_are_named_as_in_the_published_shards():
    assert ccc.name_sample(0) == ("serial_00000.tar", "sample_0")
    assert ccc.name_sample(24_999) == ("serial_00000.tar", "sample_24999")
    assert ccc.name_sample(ccc.IMAGES - 1) == ("serial_00299.tar", "sample_24999")


def test_tables_are_read_by_the_published_names():
    arrays = {"n1_fog_n2_jpeg": np.full((21, 21), 30), "n1_gaussian_noise_n2_fog": np.eye(21)}
    table = ccc.read_table(arrays)
    assert set(table) == {("fog", "jpeg"), ("gaussian_noise", "fog")}
    for arrays, message in [
        ({"fog_jpeg": np.eye(21)}, "'fog_jpeg' is not n1_"),
        ({"n1_fog_n2_jpeg": np.eye(20)}, r"has the shape \(20, 20\), not \(21, 21\)"),
        ({"n1_fog_n2_jpeg": np.full((21, 21), np.nan)}, "must be from 0 to 100 %"),
        ({"n1_fog_n2_jpeg": "no"}, "contains no numbers"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            ccc.read_table(arrays)
    with pytest.raises(ArgumentError, match="has no pair of gaussian_noise and glass_blur"):
        next(ccc.walk(table, 40, 43))


def test_tables_are_filled_between_measurements():
    severities = (0.0, 2.5, 5.0)
    cells = ccc.list_measurements(0, severities)
    # Clean images once, four corruptions alone at two severities, twelve pairs at four.
    assert len(cells) == len(set(cells)) == 1 + 4 * 2 + 12 * 4
    measured = {cell: 76 - 6 * cell.first_severity - 8 * cell.second_severity for cell in cells}
    table = ccc.interpolate_table(measured, 0, severities)
    assert len(table) == 12
    accuracies = table["gaussian_noise", "contrast"]
    # The second corruption alone is measured as the first of its cell.
    assert accuracies[0, 0] == 76 and accuracies[20, 0] == 46 and accuracies[0, 20] == 46
    assert accuracies[20, 20] == 6 and accuracies[10, 10] == 41 and accuracies[5, 0] == 68.5
    with pytest.raises(ArgumentError, match="lacks 1 measurements"):
        ccc.interpolate_table({cell: measured[cell] for cell in cells[1:]}, 0, severities)
    with pytest.raises(ArgumentError, match="ascend from 0 to 5"):
        ccc.interpolate_table(measured, 0, (0.0, 3.0))


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"sources": 0}, "sources must be at least 1"),
        ({"baseline": 120}, "baseline must be from 0 to 100"),
        ({"seed": -1}, "seed must not be negative"),
    ],
)
def test_bad_runs_are_refused(own, message):
    with pytest.raises(ArgumentError, match=message):
        ccc.CccRun(**{"table": {}, "sources": 5, **own})


def test_a_dataset_plays_a_run():
    from robustgen.torch import CccDataset

    base = [(Image.fromarray(photo(100 + 10 * index, 130, index)), index) for index in range(9)]
    settings = {"baseline": 0, "speed": 5, "seed": 45, "images": 200}
    dataset = CccDataset(base, a_table(0), jpeg=None, **settings)
    assert len(dataset) == 200
    for index in (0, 7, 199):
        image, label = dataset[index]
        step = dataset.run[index]
        assert label == step.image and dataset.cell(index) == step.cell
        assert np.array_equal(np.asarray(image), ccc.make_image(step, base[label][0]))
    pixels, _ = CccDataset(base, a_table(0), transform=np.asarray, **settings)[7]
    assert pixels.shape == (224, 224, 3) and not np.array_equal(pixels, np.asarray(dataset[7][0]))
    loaded = pickle.loads(pickle.dumps(dataset))
    assert np.array_equal(np.asarray(loaded[199][0]), np.asarray(dataset[199][0]))
    with pytest.raises(ArgumentError, match="has no pair"):
        CccDataset(base, {}, images=10)
    with pytest.raises(ArgumentError, match="jpeg must be a quality"):
        CccDataset(base, a_table(20), images=10, jpeg=100)
