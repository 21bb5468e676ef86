"""`robustgen score-segmentation`: mIoU by plain counting and scikit-learn, mCD and rCD, and wrong input."""

import csv
import io
import json
import re
import struct
import zlib

import numpy as np
import pytest
from PIL import Image
from scipy import stats
from sklearn.metrics import confusion_matrix, jaccard_score

from robustgen.errors import ArgumentError
from robustgen.lab.scores.palettes import read_palette
from robustgen.metrics.classification import (
    count_pixels,
    intersections_over_union,
    mean_intersection_over_union,
)
from robustgen.pixels.benchmarks.kinds import IMAGENET_C
from tests.helpers import cli, cli_error, latest

NAMES = [f"aachen_{i:06d}_000019" for i in range(6)]


def put_map(path, labels):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(labels).save(path)


def damage(rng, truth, share):
    """Predictions that are wrong in that share of the pixels."""
    wrong = rng.random(truth.shape) < share
    return np.where(wrong, rng.integers(0, 19, truth.shape), np.where(truth == 255, 0, truth)).astype(
        np.uint8
    )


def put_run(root, names=IMAGENET_C.common, levels=(1, 2, 3, 4, 5), factor=1.0, seed=0):
    rng = np.random.default_rng(seed)
    known = np.random.default_rng(7)
    truths = {}
    for name in NAMES:
        labels = known.integers(0, 19, (6, 8)).repeat(4, axis=0).repeat(4, axis=1).astype(np.uint8)
        labels[known.random(labels.shape) < 0.1] = 255
        truths[name] = labels
        put_map(root / "gt" / "aachen" / f"{name}_gtFine_labelTrainIds.png", labels)
        put_map(root / "clean" / f"{name}_leftImg8bit.png", damage(rng, labels, 0.1 * factor))
        for corruption in names:
            for level in levels:
                share = (0.1 + 0.1 * level) * factor
                put_map(root / "preds" / corruption / str(level) / f"{name}.png", damage(rng, labels, share))
    return truths


def flags(root):
    pattern = root / "preds" / "{corruption}" / "{severity}"
    where = ("--truth", root / "gt", "--results", pattern, "--clean-results", root / "clean")
    return ("score-segmentation", *where, "--jobs", 1)


def report_of(root, *more):
    command, *given = flags(root)
    return json.loads(cli(command, *latest(*given, "--format", "json", *more)).stdout)


def plain_miou(truths, folder, tail=""):
    """Mean IoU from one confusion matrix of all pixels."""
    total = np.zeros((19, 19))
    for name, truth in truths.items():
        guess = np.asarray(Image.open(folder / f"{name}{tail}.png"))
        counted = truth != 255
        total += confusion_matrix(truth[counted], guess[counted], labels=range(19))
    union = total.sum(0) + total.sum(1) - np.diag(total)
    return (np.diag(total)[union > 0] / union[union > 0]).mean()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    root = tmp_path_factory.mktemp("segmentation")
    return root, put_run(root)


@pytest.mark.slow("reads many maps")
def test_miou_is_that_of_one_confusion_matrix(run):
    root, truths = run
    result = cli(*flags(root), "--format", "json")
    report = json.loads(result.stdout)
    assert report["clean"] == pytest.approx(plain_miou(truths, root / "clean", "_leftImg8bit"), abs=1e-12)
    for name, levels in report["corruptions"].items():
        for level, found in levels.items():
            assert found == pytest.approx(plain_miou(truths, root / "preds" / name / level), abs=1e-12)
    values = [found for levels in report["corruptions"].values() for found in levels.values()]
    assert report["summary"] == pytest.approx({"clean": report["clean"], "mean": np.mean(values)})
    for name, (low, high) in report["intervals"].items():
        assert low < report["summary"][name] < high
    assert result.stderr == "no --reference: mCD and rCD need another model's results\n"
    assert report_of(root, "--jobs", 2) == report


def test_intervals_are_those_of_the_jackknife(tmp_path):
    truths = put_run(tmp_path, names=("fog",), levels=(1,))
    found = report_of(tmp_path, "--partial")
    without = [{name: each for name, each in truths.items() if name != left} for left in truths]
    left = [plain_miou(each, tmp_path / "clean", "_leftImg8bit") for each in without]
    error = np.sqrt((len(left) - 1) / len(left) * np.square(left - np.mean(left)).sum())
    half, value = stats.t.ppf(0.975, len(left) - 1) * error, found["summary"]["clean"]
    assert found["intervals"]["clean"] == pytest.approx((max(0, value - half), min(1, value + half)))


def test_degradations_are_divided_severity_sum_by_severity_sum(run, tmp_path):
    root, _ = run
    reference = tmp_path / "reference"
    put_run(reference, factor=0.8, seed=3)
    known = report_of(reference, "--name", "Ref")
    (tmp_path / "ref.json").write_text(json.dumps(known))
    found = report_of(root, "--reference", tmp_path / "ref.json")

    def degradations(report):
        return {name: 1 - np.array([*values.values()]) for name, values in report["corruptions"].items()}

    own, other = degradations(found), degradations(known)
    cd = [own[name].sum() / other[name].sum() for name in own]
    clean, clean_other = 1 - found["clean"], 1 - known["clean"]
    rcd = [(own[name] - clean).sum() / (other[name] - clean_other).sum() for name in own]
    assert found["summary"]["mCD"] == pytest.approx(np.mean(cd), abs=1e-12)
    assert found["summary"]["rCD"] == pytest.approx(np.mean(rcd), abs=1e-12)
    low, high = found["intervals"]["mCD"]
    assert low < found["summary"]["mCD"] < high
    text = cli(*flags(root), "--reference", tmp_path / "ref.json").stdout
    title = "Mean intersection over union in %; mCD and rCD divided by Ref, "
    assert text.splitlines()[0].startswith(title)


def test_label_ids_of_cityscapes_become_train_ids(tmp_path):
    put_run(tmp_path, ["fog"], [1])
    wanted = report_of(tmp_path, "--partial")
    ids = np.array([7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33], np.uint8)
    table = np.zeros(256, np.uint8)
    table[:19] = ids
    for path in (tmp_path / "gt").rglob("*.png"):
        labels = np.asarray(Image.open(path))
        put_map(path.with_name(path.name.replace("labelTrainIds", "labelIds")), table[labels])
        put_map(path.with_name(path.name.replace("labelTrainIds", "instanceIds")), labels)
    # The maps of train ids lie beside them still.
    for more in ((), ("--label-ids", "truth")):
        assert report_of(tmp_path, "--partial", *more) == wanted


def test_tables_and_csv(run):
    root, _ = run
    lines = cli(*flags(root)).stdout.splitlines()
    assert lines[1].split()[0] == "mIoU," and re.fullmatch(
        r"All( +\d+\.\d (±|\[)[\d., ]+\]?)+", lines[2].strip()
    )
    assert lines[-1].startswith("jpeg_compression") and len(lines[-1].split()) == 7
    rows = list(csv.DictReader(io.StringIO(cli(*flags(root), "--format", "csv").stdout)))
    found = report_of(root)
    wanted = [found["summary"]["mean"], *found["intervals"]["mean"]]
    assert wanted in [[float(row[end] or -1) for end in ("value", "low", "high")] for row in rows]
    assert rows[-1]["low"] == ""
    assert "±" not in cli(*flags(root), "--replicates", 0).stdout


def test_any_number_of_classes_in_sixteen_bits(tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 1000, (20, 30)).astype(np.uint16)
    guess = np.where(rng.random(truth.shape) < 0.3, 999, truth).astype(np.uint16)
    put_map(tmp_path / "gt" / "a.png", truth)
    put_map(tmp_path / "clean" / "a.png", truth)
    put_map(tmp_path / "preds" / "fog" / "1" / "a.png", guess)
    found = report_of(tmp_path, "--partial", "--class-count", 1000, "--ignore", 65535)
    present = np.union1d(truth, guess)
    wanted = jaccard_score(truth.ravel(), guess.ravel(), labels=present, average="macro")
    assert found["clean"] == 1 and found["corruptions"]["fog"]["1"] == pytest.approx(wanted)


def test_counts_by_hand():
    truth = np.array([[0, 0, 1, 255], [1, 2, 2, 255]])
    guess = np.array([[0, 1, 1, 0], [1, 255, 2, 3]])
    counts = count_pixels(truth, guess, 5)
    assert counts.tolist() == [[1, 2, 1, 0, 0], [2, 2, 2, 0, 0], [1, 3, 1, 0, 0]]
    found = intersections_over_union(counts)
    assert found[:3].tolist() == [1 / 2, 2 / 3, 1 / 2] and np.isnan(found[3:]).all()
    assert mean_intersection_over_union(counts) == pytest.approx((0.5 + 2 / 3 + 0.5) / 3)
    with pytest.raises(ArgumentError, match="2 x 2 pixels, where the truth has 4 x 2"):
        count_pixels(truth, guess[:, :2], 5)


def test_wrong_maps(tmp_path):
    truths = put_run(tmp_path, ["fog"], [1])
    command = (*flags(tmp_path), "--partial")
    path = tmp_path / "preds" / "fog" / "1" / f"{NAMES[0]}.png"
    labels = np.zeros_like(truths[NAMES[0]])
    put_map(path, labels[:, :9])
    assert cli_error(*command) == f"{path}: labels of 9 x 24 pixels, where the truth has 32 x 24"
    put_map(path, labels + 19)
    assert cli_error(*command).startswith(f"{path}: it has label 19, where 19 classes and 255 are expected; ")
    put_map(path, np.stack([labels, labels + 1, labels], axis=-1))
    assert "--palette" in cli_error(*command)
    path.write_bytes(b"no image")
    assert str(path) in cli_error(*command)
    path.unlink()
    assert "1 of 6 maps are missing" in cli_error(*command)
    put_map(path, labels)
    put_map(path.with_name(f"{NAMES[0]}_leftImg8bit.png"), labels)
    assert "are of the same image" in cli_error(*command)


def test_what_is_missing(tmp_path):
    put_run(tmp_path, ["fog"], [1])
    assert "--results: incomplete: gaussian_noise, " in cli_error(*flags(tmp_path))
    command = [*flags(tmp_path), "--partial"]
    command[2] = tmp_path / "none"
    assert cli_error(*command) == f"{tmp_path / 'none'}: no such folder of label maps"
    (tmp_path / "none").mkdir()
    assert cli_error(*command).startswith(f"{tmp_path / 'none'}: contains no label maps (.png, ")


def reference(**corruptions):
    return json.dumps({"model": "a", "clean": 0.5, "corruptions": corruptions})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", "must contain model, clean and corruptions"),
        (reference(), "has no value for fog/1"),
        (reference(fog={"1": 50}), "must be from 0 to 1, not 50"),
        (reference(fog={"1": 0.6}), "is no worse on fog than on clean"),
    ],
)
def test_wrong_references(tmp_path, text, says):
    put_run(tmp_path, ["fog"], [1])
    (tmp_path / "ref.json").write_text(text)
    line = cli_error(*flags(tmp_path), "--partial", "--reference", tmp_path / "ref.json")
    assert line.startswith(f"--reference {tmp_path / 'ref.json'}: ") and says in line


# --- values that mean something else than they seem to -------------------------------------------


def put_pair(root, truth, guess, mode="L", count=3):
    """Put the same truth and the same prediction for some images."""
    for number in range(count):
        for folder, labels in (("gt", truth), ("clean", guess), ("preds/fog/1", guess)):
            path = root / folder / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            image = Image.fromarray(labels.astype(np.uint8))
            image.convert("1" if mode == "1" else "L").save(path)


def clean_of(root, *more):
    """The mIoU of the clean images, and what is said on stderr."""
    done = cli(*flags(root), "--partial", "--replicates", "0", "--format", "json", *more)
    return json.loads(done.stdout)["clean"], done.stderr


X = np.arange(32)[None].repeat(32, 0)


@pytest.mark.parametrize(
    ("foreground", "wanted"),
    [(X >= 24, 1 / 4), (X < 0, 3 / 8), (X < 8, 1)],
    ids=["elsewhere", "none", "same"],
)
def test_255_is_a_class_of_two(tmp_path, foreground, wanted):
    put_pair(tmp_path, (X < 8) * 255, foreground * 255)
    miou, said = clean_of(tmp_path, "--class-count", 2)
    assert miou == pytest.approx(wanted) and "--ignore 255" in said
    if foreground.any() and wanted < 1:
        # All that counts is right, if the foreground is ignored.
        assert clean_of(tmp_path, "--class-count", 2, "--ignore", 255)[0] == pytest.approx(2 / 3)


@pytest.mark.parametrize(("truth", "guess"), [(255, 1), (1, 255)])
def test_255_is_a_class_on_one_side(tmp_path, truth, guess):
    put_pair(tmp_path, (X < 8) * truth, (X < 8) * guess)
    miou, said = clean_of(tmp_path, "--class-count", 2)
    assert miou == 1 and said.count("--ignore 255") == 1


def test_255_stays_ignored_among_other_labels(tmp_path):
    put_pair(tmp_path, np.where(X < 8, 255, X % 2), X % 2)
    miou, said = clean_of(tmp_path, "--class-count", 2)
    assert miou == 1 and "--ignore" not in said


def test_another_foreground_is_refused_with_its_flags(tmp_path):
    put_pair(tmp_path, (X < 8) * 128, (X < 10) * 128)
    message = cli_error(*flags(tmp_path), "--partial", "--class-count", 2)
    assert "label 128" in message and "--class-count 129 " in message and "--ignore 128 " in message
    assert clean_of(tmp_path, "--class-count", 129)[0] == pytest.approx((8 / 10 + 22 / 24) / 2)


def put_shifted(root, classes, shifted, highest=None):
    """Perfect predictions of 0 to `classes` - 1; on one side, classes begin at 1 and 0 is void."""
    values = np.arange(48 * 48).reshape(48, 48) % (highest or classes)
    one_based = np.where(np.arange(48) < 4, 0, values + 1)
    put_pair(root, *((one_based, values) if shifted == "truth" else (values, values + 1)))


@pytest.mark.parametrize("shifted", ["truth", "results"])
@pytest.mark.parametrize("more", [(), ("--ignore", 0)])
def test_classes_that_begin_at_1(tmp_path, shifted, more):
    put_shifted(tmp_path, 150, shifted)
    chosen = ("--class-count", 150, *more)
    message = cli_error(*flags(tmp_path), "--partial", *chosen)
    assert message.endswith(f"--one-based {shifted}") and "label 150" in message
    miou, said = clean_of(tmp_path, *chosen, "--one-based", shifted)
    assert miou == 1 and "--one-based" not in said


def test_both_may_begin_at_1(tmp_path):
    values = np.arange(48 * 48).reshape(48, 48) % 151
    put_pair(tmp_path, values, values)
    assert clean_of(tmp_path, "--class-count", 150, "--one-based", "both")[0] == 1


@pytest.mark.parametrize("shifted", ["truth", "results"])
def test_a_shift_is_noticed_where_all_labels_are_known(tmp_path, shifted):
    put_shifted(tmp_path, 150, shifted, highest=140)
    miou, said = clean_of(tmp_path, "--class-count", 150)
    assert miou < 0.1 and f"--one-based {shifted}" in said
    put_pair(tmp_path, X, 31 - X)
    assert "--one-based" not in clean_of(tmp_path, "--class-count", 32)[1]


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_greys_of_few_bits_are_labels(tmp_path, bits):
    labels = (X // 8 % 2 ** min(bits, 2)).astype(np.uint8)
    put_pair(tmp_path, labels, labels)
    for number in range(3):
        path = tmp_path / "clean" / f"{number}.png"
        path.write_bytes(grey_png(labels, bits))
    assert np.asarray(Image.open(path)).max() in (True, 255, 51)
    assert clean_of(tmp_path, "--class-count", 4)[0] == 1


def grey_png(labels, bits):
    """A PNG file of greys of 1, 2 or 4 bits, which Pillow does not write."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width = labels.shape
    unpacked = np.unpackbits(labels[..., None], axis=2)[..., -bits:].reshape(height, -1)
    lines = b"".join(b"\0" + np.packbits(line).tobytes() for line in unpacked)
    head = struct.pack(">IIBBBBB", width, height, bits, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(lines))
        + chunk(b"IEND", b"")
    )


# Red, green and blue of five classes; the last one is ignored.
COLOURS = np.array([(255, 255, 255), (0, 0, 255), (0, 255, 255), (0, 255, 0), (255, 0, 0)], np.uint8)
VOC_COLOURS = np.array([(0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0), (224, 224, 192)], np.uint8)
PALETTES = {
    "a.txt": (
        "255 255 255\tImpervious surfaces\n0 0 255\n0 255 255\n\n0 255 0\n255 255 0 0 clutter\n",
        COLOURS,
    ),
    "a.csv": (
        "name,r,g,b\nroad,255,255,255\nroof,0,0,255\n3D,0,255,255\ntree,0,255,0\n255,255,0,0\n",
        COLOURS,
    ),
    "cvat.txt": (
        "# label:color_rgb:parts:actions\n0:255,255,255::\n1:0,0,255::\n2:0,255,255::\n"
        "3:0,255,0::\n255:255,0,0::\n",
        COLOURS,
    ),
    "voc": (None, VOC_COLOURS),
}


def put_five(root, encode, suffix, of="gt", cells=("preds/fog/3", "clean")):
    """Truth in the form that `encode` gives, where all predictions are right."""
    for number in range(3):
        labels = np.random.default_rng(number).integers(0, 5, (8, 9)).astype(np.uint8)
        labels[labels == 4] = 255
        for folder in ("gt", *cells):
            path = root / folder / f"{number}.png"
            put_map(path, labels)
            if folder == of:
                path.unlink()
                made, path = encode(labels), path.with_suffix(suffix)
                np.save(path, made) if suffix == ".npy" else Image.fromarray(made).save(path)


@pytest.mark.parametrize("name", PALETTES)
@pytest.mark.parametrize("of", ["gt", "clean"])
def test_colours_are_scored_with_a_palette(tmp_path, name, of):
    text, colours = PALETTES[name]
    put_five(tmp_path, lambda labels: colours[np.minimum(labels, 4)], ".png", of)
    command = [*flags(tmp_path), "--partial", "--class-count", 4, "--format", "json"]
    if text:
        (tmp_path / name).write_text(text)
    assert "--palette FILE (or voc)" in cli_error(*command)
    found = "voc" if name == "voc" else tmp_path / name
    result = json.loads(cli(*command, "--palette", found).stdout)
    assert result["clean"] == result["summary"]["mean"] == 1


def test_palettes_in_json_have_a_list_for_each_class(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"version": [1, 2], "labels": [{"color": [255, 255, 255]},\n {"color": [0,0,255]}]}')
    assert read_palette(path) == {(255, 255, 255): 0, (0, 0, 255): 1}


@pytest.mark.parametrize(
    ("encode", "suffix"),
    [
        (lambda labels: np.stack([labels] * 3, -1), ".png"),
        (lambda labels: np.stack([labels] * 3 + [labels * 0 + 255], -1), ".png"),
        (lambda labels: labels, ".tif"),
        (lambda labels: labels.astype(np.float32), ".tiff"),
        (lambda labels: labels, ".bmp"),
        (lambda labels: labels.astype(np.int64), ".npy"),
        (lambda labels: labels[..., None] / 1.0, ".npy"),
        (lambda labels: np.stack([labels] * 3, -1), ".npy"),
    ],
)
def test_greys_in_any_file_are_labels(tmp_path, encode, suffix):
    put_five(tmp_path, encode, suffix)
    found = report_of(tmp_path, "--partial", "--class-count", 4)
    assert found["clean"] == found["summary"]["mean"] == 1


@pytest.mark.parametrize(
    "text", ["", "1 2\n", "1 2 3 4 5\n", "0 0 256\n", "1 2 3\n1 2 3\n", "\xff", "255 255 255"]
)
def test_palettes_that_are_none_or_lack_a_colour(tmp_path, text):
    put_five(tmp_path, lambda labels: COLOURS[np.minimum(labels, 4)], ".png")
    (tmp_path / "a.txt").write_bytes(text.encode("latin-1"))
    command = (*flags(tmp_path), "--partial", "--class-count", "4", "--palette", tmp_path / "a.txt")
    assert "a.txt" in cli_error(*command) or "the palette lacks" in cli_error(*command)


def test_fractions_are_no_labels(tmp_path):
    put_five(tmp_path, lambda labels: labels / np.float32(255), ".npy")
    assert "fractions" in cli_error(*flags(tmp_path), "--partial", "--class-count", "4")
