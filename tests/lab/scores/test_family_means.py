"""score: the means of other families of corruptions, beside mCE."""

import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from robustgen import metrics
from robustgen.files.set_files import SCHEMA
from robustgen.lab.evaluation.predictions import ABOUT, open_predictions
from robustgen.lab.evaluation.predictions import write_predictions as write
from robustgen.lab.scores.family_means import list_families
from robustgen.lab.scores.results import read_scores
from robustgen.metrics import ALEXNET_ERROR
from robustgen.metrics.corruption_errors import balance_mistakes as balance
from robustgen.pixels.benchmarks.corruptions import FAMILIES
from tests.helpers import cli, cli_error
from tests.lab.scores.test_scoring import put_c, put_top5, scored


def score_family(root, family):
    """What `score` says of a family of the only model, without intervals, and the notes."""
    found, notes = scored(root, "--replicates", "0")
    return found["models"][0]["families"][family], notes


def means_in_csv(root):
    """Rows of the CSV by measure."""
    rows = csv.DictReader(io.StringIO(cli("score", root, "--replicates", "0", "--format", "csv").stdout))
    return {row["measure"]: row for row in rows if row["statistic"] == "value"}


IMAGENET, CIFAR = (FAMILIES["c-bar"].names(scale) for scale in (224, 32))


@pytest.mark.parametrize("names", [IMAGENET, CIFAR], ids=["imagenet", "cifar-10"])
def test_the_mean_of_c_bar_stands_beside_mce(tmp_path, names):
    errors = {name: [(i + severity) / 20 for severity in range(5)] for i, name in enumerate(names)}
    root = put_c(tmp_path / "net", ALEXNET_ERROR | errors)
    found, _ = scored(root, "--replicates", "0")
    (model,) = found["models"]
    mean = sum(sum(each) for each in errors.values()) / 50
    assert model["families"]["c-bar"] == {"mean_error": pytest.approx(mean, abs=1e-3), "mean_over": [*names]}
    # The benchmark's own mean goes on over its fifteen.
    assert len(model["measures"]["error"]["mean_over"]) == 15
    text = cli("score", root, "--replicates", "0").stdout
    assert "ImageNet-C-bar: top-1 error in %, mean over severities, unnormalised" in text
    assert f"{100 * mean:.1f}" in text
    row = means_in_csv(root)["error of c-bar"]
    assert float(row["mean"]) == pytest.approx(mean, abs=1e-3) and row["mean_over"] == "10"


def test_means_are_over_equal_severities(tmp_path):
    levels = {"fog": (4, 5), "snow": (1, 2, 3), "contrast": (1, 2, 3), "robodepth:dark": (2,)}
    for name, own in levels.items():
        for level in own:
            put_top5(tmp_path / name.replace(":", ".") / f"{level}.npz", level / 10)
    assert "incomplete" in cli_error("score", tmp_path)
    found, _ = scored(tmp_path, "--replicates", "0", "--partial")
    families = found["models"][0]["families"]
    means = {name: (each["mean_error"], {*each["mean_over"]}) for name, each in families.items()}
    assert means == {
        "imagenet-c, severity 4, 5": (pytest.approx(0.45), {"fog"}),
        "imagenet-c, severity 1, 2, 3": (pytest.approx(0.2), {"snow", "contrast"}),
        "robodepth, severity 2": (pytest.approx(0.2), {"robodepth:dark"}),
    }


def test_a_part_of_a_family_says_so_and_unknown_names_are_in_no_family(tmp_path):
    root = put_c(tmp_path / "net", ALEXNET_ERROR | {"sparkles": 0.5, "perlin_noise": 0.25, "smudge": 0.9})
    found, _ = scored(root, "--replicates", "0")
    (model,) = found["models"]
    assert model["families"] == {
        "c-bar": {"mean_error": pytest.approx(0.375), "mean_over": ["perlin_noise", "sparkles"]}
    }
    assert "unnormalised (incomplete: 2 corruptions)" in cli("score", root, "--replicates", "0").stdout
    plain, _ = scored(put_c(tmp_path / "plain"), "--replicates", "0")
    assert "families" not in plain["models"][0]


def test_published_errors_of_a_reference_divide(tmp_path, monkeypatch):
    named = replace(FAMILIES["c-bar"], means=dict.fromkeys(IMAGENET, 0.8), reference="AlexNet")
    monkeypatch.setitem(FAMILIES._rows, "c-bar", named)
    root = put_c(tmp_path / "net", ALEXNET_ERROR | dict.fromkeys(IMAGENET, 0.4))
    own, _ = score_family(root, "c-bar")
    assert (own["normalised_mean"], own["normalised_by"]) == (pytest.approx(0.5), "AlexNet")
    assert "/ AlexNet" in cli("score", root, "--replicates", "0").stdout
    low, high = find_family(root, "c-bar")["normalised_mean_interval"]
    assert low < 0.5 < high
    row = list_csv(root)["normalised_mean of c-bar", "low"]
    assert float(row["mean"]) == low and row["normalised_by"] == "AlexNet"


def test_common_corruptions_alone_are_in_no_other_family(tmp_path):
    put_c(tmp_path / "net")
    assert list_families([read_scores(open_predictions(tmp_path / "net"), "net")]) == []


# --- families by themselves ----------------------------------------------------------------------


def put_family(root, names, labels, classes, *, levels=range(1, 6), edition=None, clean=True, seed=0, **more):
    """Logits that are right for most images; returns the predicted classes by folder."""
    rng, predicted = np.random.default_rng(seed), {}
    keys = more.pop("keys", [f"{i:05d}" for i in range(len(labels))])
    folders = [f"{name.replace(':', '.')}/{level}" for name in names for level in levels]
    for folder in (*folders, *["clean"] * clean):
        logits = rng.normal(size=(len(labels), classes))
        logits[np.arange(len(labels)), labels] += 2
        write(root, folder, keys, labels, logits, **more)
        predicted[folder] = logits.argmax(axis=1)
    if edition:
        (root / ABOUT).write_text(json.dumps({"schema": SCHEMA, "edition": edition}))
    return predicted


def find_family(root, family):
    """What `score` says of a family of the only model, with intervals."""
    (model,) = scored(root)[0]["models"]
    return model["families"][family]


def list_csv(root):
    """Rows of the CSV by measure and statistic."""
    rows = csv.DictReader(io.StringIO(cli("score", root, "--format", "csv").stdout))
    return {(row["measure"], row["statistic"]): row for row in rows}


LABELS = np.array([0, 0, 0, 0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 8])


def test_be_and_rbe_of_medmnist_c(tmp_path):
    names = FAMILIES["medmnist-c"].names("pathmnist")
    predicted = put_family(tmp_path / "net", names, LABELS, 9, edition="pathmnist")
    own, notes = score_family(tmp_path / "net", "medmnist-c")
    alexnet = metrics.alexnet_balanced_errors("pathmnist")

    def error(folder):
        right = predicted[folder] == LABELS
        return 1 - np.mean([right[label == LABELS].mean() for label in range(9)])

    mean = {name: np.mean([error(f"{name.replace(':', '.')}/{s}") for s in range(1, 6)]) for name in names}
    stems = {name: name.partition(":")[2] for name in names}
    be = np.mean([mean[name] / alexnet[stems[name]] for name in names])
    lost = [(mean[n] - error("clean")) / (alexnet[stems[n]] - alexnet["clean"]) for n in names]
    assert own["be"] == pytest.approx(be) and own["rbe"] == pytest.approx(np.mean(lost))
    assert own["clean_balanced_error"] == pytest.approx(error("clean"))
    assert {*own["mean_over"]} == {*names} and notes == []
    text = cli("score", tmp_path / "net", "--replicates", "0").stdout
    # No empty table of the fifteen.
    assert text.startswith("MedMNIST-C: top-1 error") and " BE " in text and f"{100 * be:.1f}" in text
    assert float(means_in_csv(tmp_path / "net")["be of medmnist-c"]["mean"]) == pytest.approx(be)


def test_scores_of_medmnist_c_have_intervals(tmp_path):
    names, labels = FAMILIES["medmnist-c"].names("pathmnist"), np.repeat(np.arange(9), np.arange(10, 19))
    predicted = put_family(tmp_path / "net", names, labels, 9, edition="pathmnist")
    own, rows = find_family(tmp_path / "net", "medmnist-c"), list_csv(tmp_path / "net")
    alexnet = metrics.alexnet_balanced_errors("pathmnist")
    rng, drawn = np.random.default_rng(9), []
    wrong = {folder: each != labels for folder, each in predicted.items() if folder != "clean"}
    divisors = [alexnet[folder.partition(".")[2].partition("/")[0]] for folder in wrong]
    for _ in range(300):
        chosen = rng.integers(0, len(labels), len(labels))
        errors = [balance(each[chosen], labels[chosen]) for each in wrong.values()]
        drawn.append(np.mean(np.divide(errors, divisors)))
    width = own["be_interval"][1] - own["be_interval"][0]
    assert width / 3.92 == pytest.approx(np.std(drawn), rel=0.25)
    for key in ("be", "rbe", "clean_balanced_error"):
        low, high = own[f"{key}_interval"]
        assert low < own[key] < high
        assert float(rows[f"{key} of medmnist-c", "high"]["mean"]) == high
    for name, (low, high) in own["intervals"].items():
        assert 0 <= low < high <= 1
        assert float(rows["error of medmnist-c", "low"][name]) == low
    assert re.search(r" \d+\.\d ± *\d+\.\d", cli("score", tmp_path / "net").stdout.splitlines()[3])
    cli("score", tmp_path / "net", "--output", tmp_path / "page.html")
    low, high = own["intervals"][names[0]]
    assert f"[{float(f'{low:.5g}')},{float(f'{high:.5g}')}]" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(("key", "least", "most"), [("be", 0, 10), ("superclass_accuracy", 0, 1)])
def test_scores_that_all_images_share_are_not_certain(tmp_path, key, least, most):
    edition = {"be": "pathmnist", "superclass_accuracy": None}[key]
    family = {"be": "medmnist-c", "superclass_accuracy": "laion-c"}[key]
    labels = np.array([FISH, BIRD, FISH, FISH, BIRD, FISH])
    classes = {"be": 9, "superclass_accuracy": 1000}[key]
    names = FAMILIES[family].names(edition) if edition else FAMILIES[family].names()
    for name in names:
        for level in range(1, 6):
            logits = 40 * np.eye(classes)[labels]
            write(tmp_path / "net", f"{name.replace(':', '.')}/{level}", list("abcdef"), labels, logits)
    (tmp_path / "net" / ABOUT).write_text(json.dumps({"schema": SCHEMA, "edition": edition}))
    own = find_family(tmp_path / "net", family)
    low, high = own[f"{key}_interval"]
    assert least <= low <= own[key] <= high <= most and high - low > 0.3
    wilson = 1.96**2 / (6 + 1.96**2)
    assert all(ends == pytest.approx([0, wilson], abs=1e-3) for ends in own["intervals"].values())


def test_be_takes_the_corruptions_of_the_data_set(tmp_path):
    # Those of TissueMNIST are a part of ChestMNIST's and OrganAMNIST's.
    names = FAMILIES["medmnist-c"].names("organamnist")
    put_family(tmp_path / "net", names, LABELS, 9, edition="organamnist", clean=False)
    own, notes = score_family(tmp_path / "net", "medmnist-c")
    assert {*own["mean_over"]} == {*names} and own["rbe"] is None and own["be"] > 0
    assert any("no clean.npz" in note for note in notes)


@pytest.mark.parametrize(
    ("edition", "note"),
    [
        ("chestmnist", "BE of chestmnist needs a score for each label"),
        (None, "need the edition of the images"),
    ],
)
def test_why_there_is_no_be(tmp_path, edition, note):
    put_family(tmp_path / "net", FAMILIES["medmnist-c"].names("chestmnist"), LABELS, 9, edition=edition)
    own, notes = score_family(tmp_path / "net", "medmnist-c")
    # All of them count, though other sets have a part of them.
    assert "be" not in own and len(own["mean_over"]) == 13 and any(note in each for each in notes)


def test_mnist_c_has_one_severity(tmp_path):
    names = FAMILIES["mnist-c"].names()
    predicted = put_family(tmp_path / "net", names, LABELS, 10, levels=[1])
    own, notes = score_family(tmp_path / "net", "mnist-c")
    wrong = [predicted[f"{name.replace(':', '.')}/1"] != LABELS for name in names]
    assert own["mean_error"] == pytest.approx(np.mean(wrong)) and len(own["mean_over"]) == 15
    assert notes == []
    row = means_in_csv(tmp_path / "net")["error of mnist-c"]
    assert [float(row[name]) for name in names] == pytest.approx([np.mean(each) for each in wrong])


def test_a_family_that_lacks_a_severity_is_incomplete(tmp_path):
    put_family(tmp_path / "net", FAMILIES["c-bar"].names(224), LABELS, 9)
    (tmp_path / "net" / "sparkles" / "4.npz").unlink()
    assert "incomplete: sparkles/4" in cli_error("score", tmp_path / "net")
    found, _ = scored(tmp_path / "net", "--partial", "--replicates", "0")
    assert len(found["models"][0]["families"]["c-bar"]["mean_over"]) == 9


FISH, BIRD, NONE = 0, 8, 5


@pytest.fixture(scope="module")
def laion(tmp_path_factory):
    root = tmp_path_factory.mktemp("laion")
    labels, names = np.array([FISH, BIRD, NONE, FISH, 100, 954]), FAMILIES["laion-c"].names()
    for number in range(2):
        put_family(root / f"net{number}", names, labels, 1000, clean=False, seed=number)
    put_family(root / "lists", names, labels, 1000, clean=False, save="top5")
    return root


def test_superclasses_of_laion_c(laion):
    predictions = open_predictions(laion / "net0")
    rows = []
    for file in predictions.files.values():
        (logits,) = file.logits()
        shares = metrics.superclass_probabilities(metrics.softmax(logits))[[0, 1, 3, 4, 5]]
        rows.append(shares.argmax(axis=1) == metrics.superclass_labels([FISH, BIRD, FISH, 100, 954]))
    accuracy = np.mean(rows)
    assert 0 < accuracy < 1 and np.shape(rows) == (30, 5)
    found, _ = scored(laion / "net0", laion / "net1", "--replicates", "0")
    own = found["models"][0]["families"]["laion-c"]
    assert own["superclass_accuracy"] == pytest.approx(accuracy)
    assert own["published"]["best human"] == pytest.approx(0.552) and len(own["published"]) == 10
    text = cli("score", laion / "net0", laion / "net1", "--replicates", "0").stdout
    ranking = text[text.index("LAION-C: means among published ones") :].splitlines()[2:]
    values = [float(line.rsplit(maxsplit=1)[1]) for line in ranking]
    assert values == sorted(values, reverse=True) and len(values) == 12
    assert sum(line.startswith("> net") for line in ranking) == 2


def test_families_have_a_place_on_the_page(laion, tmp_path):
    result = cli("score", laion / "net0", "--replicates", "0", "--output", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "1 model on LAION-C, 6 images" in page and '{"name":"best human","published":true' in page
    assert "published accuracies are of its own images" in result.stderr and "mCE" not in result.stdout
    # There is no mean over the fifteen to plan for, and nothing published to compare with.
    assert "share none of the common corruptions" in cli_error("score", laion / "net0", "--plan", "1")
    compared = cli("score", laion / "net0", "--replicates", "0", "--compare-with", "published")
    assert compared.stdout == result.stdout


def test_superclasses_take_logits(laion):
    own, notes = score_family(laion / "lists", "laion-c")
    assert "superclass_accuracy" not in own and any(
        "needs logits (predict --save logits)" in note for note in notes
    )


def test_state_may_be_superclasses(tmp_path):
    # As in the published set, whose labels count them in the order of their names.
    keys, labels = ["bird/a.JPEG", "fish/b.JPEG"], np.array([2, 7])
    for name in FAMILIES["laion-c"].names():
        for severity in range(1, 6):
            logits = np.zeros((2, 1000))
            logits[0, BIRD] = logits[1, BIRD] = 40
            write(tmp_path / "net", f"{name.replace(':', '.')}/{severity}", keys, labels, logits)
    (found,) = list_families([read_scores(open_predictions(tmp_path / "net"), "net")])
    assert found.scores[1].means == (0.5,)
