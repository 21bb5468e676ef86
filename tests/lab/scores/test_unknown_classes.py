"""OpenOOD: its rates by scikit-learn, and `score-ood`."""

import csv
import io
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from sklearn.metrics import auc, precision_recall_curve, roc_curve

from robustgen.errors import ArgumentError
from robustgen.lab.evaluation.predictions import write_predictions as write
from robustgen.lab.scores.unknown_classes import _find_intervals, _resample
from robustgen.metrics import detection_rates
from robustgen.metrics.bootstrap import draw_weights
from robustgen.metrics.classification import log_odds
from tests.helpers import cli, cli_error


def by_scikit_learn(known, unknown):
    """The definitions of OpenOOD: unknown ones are positive, their score is minus the confidence."""
    conf = np.concatenate([known, unknown])
    ood = np.repeat([0, 1], [len(known), len(unknown)])
    fpr, tpr, _ = roc_curve(ood, -conf)
    inside = precision_recall_curve(1 - ood, conf)
    outside = precision_recall_curve(ood, -conf)
    areas = [auc(recall, precision) for precision, recall, _ in (inside, outside)]
    return [fpr[np.argmax(tpr >= 0.95)], auc(fpr, tpr), *areas]


@pytest.mark.parametrize("digits", [1, 2, 12])
@pytest.mark.parametrize("sizes", [(1000, 700), (30, 2), (1, 1), (5, 400)])
def test_rates_are_those_of_openood(digits, sizes):
    rng = np.random.default_rng(sizes[0] + digits)
    for shift in (0, 0.3):
        known, unknown = (
            rng.beta(5, 2, sizes[0]).round(digits),
            (rng.beta(4, 3, sizes[1]) - shift).round(digits),
        )
        assert [*detection_rates(known, unknown)] == pytest.approx(by_scikit_learn(known, unknown), abs=1e-12)


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=12), st.lists(st.integers(0, 4), min_size=1, max_size=12)
)
def test_rates_of_few_tied_confidences(known, unknown):
    found = detection_rates(known, unknown)
    assert [*found] == pytest.approx(by_scikit_learn(np.array(known), np.array(unknown)), abs=1e-12)


def test_perfect_and_useless_confidence():
    assert detection_rates([0.9, 0.8], [0.1, 0.2, 0.3]) == (0, 1, 1, 1)
    found = detection_rates([0.5] * 4, [0.5] * 4)
    assert (found.fpr95, found.auroc) == (1, 0.5)
    with pytest.raises(ArgumentError, match="NaN"):
        detection_rates([0.5], [float("nan")])


@pytest.fixture
def sets(tmp_path):
    rng = np.random.default_rng(0)
    keys = [f"a/{i}.JPEG" for i in range(60)]
    labels = rng.integers(0, 8, 60)
    logits = {}
    for variant, strength in (("clean", 4), ("fog/3", 2), ("inaturalist", 0), ("textures", 0.5)):
        logits[variant] = rng.normal(size=(60, 8)) + strength * np.eye(8)[labels]
        root, name = (
            (tmp_path, variant) if "/" in variant or variant == "clean" else (tmp_path / variant, "clean")
        )
        write(root, name, keys, labels, logits[variant])
    return tmp_path, logits, labels


def test_score_compares_known_with_unknown_classes(sets):
    root, logits, labels = sets
    known = ("--id", root / "clean.npz", "--id", root / "fog" / "3.npz")
    unknown = [root / name / "clean.npz" for name in ("inaturalist", "textures")]
    command = ("score-ood", *known, *(part for path in unknown for part in ("--ood", path)))
    confidence = {
        "msp": lambda x: special.softmax(x, axis=1).max(axis=1),
        "max-logit": lambda x: x.max(axis=1),
    }
    confidence["energy"] = lambda x: special.logsumexp(x, axis=1)
    both = np.concatenate([logits["clean"], logits["fog/3"]])
    for name, function in confidence.items():
        found = json.loads(cli(*command, "--format", "json", "--confidence", name).stdout)
        wanted = [
            by_scikit_learn(function(both), function(logits[each])) for each in ("inaturalist", "textures")
        ]
        assert [[*each.values()] for each in found["sets"].values()] == [
            pytest.approx(row, abs=1e-12) for row in (*wanted, np.mean(wanted, axis=0).tolist())
        ]
        assert [*found["sets"]] == [*map(str, unknown), "mean"]
        assert found["accuracy"] == pytest.approx((both.argmax(axis=1) == np.tile(labels, 2)).mean())
    lines = cli(*command).stdout.splitlines()
    accuracy = r"accuracy on 120 ID images \d+\.\d\d (±\d|\[)"
    assert re.match(rf"Images of unknown classes in %; {accuracy}", lines[0])
    assert lines[1].split() == ["OOD", "set", "FPR@95", "AUROC", "AUPR", "in", "AUPR", "out"]


def test_rates_have_intervals_over_both_sets_of_images(sets):
    root, logits, labels = sets
    known, far, near = (root / name for name in ("fog/3.npz", "textures/clean.npz", "inaturalist/clean.npz"))
    command = ("score-ood", "--id", known, "--ood", far, "--ood", near, "--replicates", "400")
    found = json.loads(cli(*command, "--format", "json").stdout)
    low, high = found["accuracy_interval"]
    deviation = np.std(logits["fog/3"].argmax(axis=1) == labels) / np.sqrt(60)
    assert high - low == pytest.approx(3.92 * deviation, rel=0.15)
    inside, outside = (special.softmax(logits[name], axis=1).max(axis=1) for name in ("fog/3", "textures"))
    rng = np.random.default_rng(5)
    drawn = [by_scikit_learn(rng.choice(inside, 60), rng.choice(outside, 60)) for _ in range(400)]
    for name, wanted in zip(found["sets"]["mean"], np.std(drawn, axis=0), strict=True):
        for own, value in found["sets"].items():
            low, high = found["intervals"][own][name]
            assert 0 <= low <= value[name] <= high <= 1
        low, high = found["intervals"][str(far)][name]
        assert (high - low) / 3.92 == pytest.approx(wanted, rel=0.3)
    rows = [*csv.DictReader(io.StringIO(cli(*command, "--format", "csv").stdout))]
    (row,) = (row for row in rows if (row["row"], row["column"]) == (str(far), "AUROC"))
    assert float(row["high"]) == found["intervals"][str(far)]["auroc"][1]
    plain = json.loads(cli(*command[:-1], "0", "--format", "json").stdout)
    assert plain["accuracy_interval"] is None and plain["intervals"] is None


def test_perfect_rates_of_few_images_are_not_certain(tmp_path):
    keys, labels = [f"{i}" for i in range(6)], np.arange(6)
    known = write(tmp_path, "clean", keys, labels, 9 * np.eye(6))
    other = write(tmp_path / "other", "clean", keys[:4], labels[:4], np.zeros((4, 6)))
    found = json.loads(cli("score-ood", "--id", known, "--ood", other, "--format", "json").stdout)
    wilson = 1.96**2 / (4 + 1.96**2)
    assert found["intervals"][str(other)]["auroc"] == pytest.approx([1 - wilson, 1], abs=1e-3)
    # The threshold is the largest of four unknown images, and others may be larger.
    assert found["intervals"][str(other)]["fpr95"] == [0, 1]
    assert found["accuracy_interval"] == pytest.approx([1 - 1.96**2 / (6 + 1.96**2), 1], abs=1e-3)


@pytest.mark.parametrize("unknown", [8, 20, 30, 100])
def test_the_interval_of_a_threshold_contains_it(unknown):
    truth, rng, hits = stats.norm.cdf(stats.norm.ppf(0.95) - 2), np.random.default_rng(unknown), []
    for _ in range(60):
        known, others = rng.normal(2, 1, 100), rng.normal(0, 1, unknown)
        rates, samples = detection_rates(known, others), _resample(known, others, draw_weights(100, 50))
        ends = _find_intervals({"o": rates}, {"o": samples}, 100, {"o": others}, known)["o"][0]
        hits.append(ends.low <= truth <= ends.high)
    assert np.mean(hits) >= 0.88


def test_all_predictions_of_an_image_are_in_a_sample_or_none(sets, tmp_path):
    root, logits, labels = sets
    keys = [f"a/{i}.JPEG" for i in range(60)]
    copies = write(tmp_path / "again", "clean", keys, labels, logits["clean"])
    other = root / "textures" / "clean.npz"
    alone, twice = (
        json.loads(cli("score-ood", *known, "--ood", other, "--format", "json").stdout)
        for known in (("--id", root / "clean.npz"), ("--id", root / "clean.npz", "--id", copies))
    )
    # A copy of each prediction tells nothing new.
    assert twice["accuracy_interval"] == pytest.approx(alone["accuracy_interval"])


def test_probabilities_of_one_are_ranked_by_their_odds(tmp_path):
    # Softmax gives 1 for all of them, in floating point.
    write(tmp_path / "in", "clean", list("abc"), [0, 0, 0], [[80, 0], [90, 0], [85, 0]])
    # Equal confidences, whose sums differ by rounding.
    write(tmp_path / "out", "clean", list("abc"), [0, 0, 0], [[60, 0.1], [0.1, 60], [70, 0.3]])
    command = ("score-ood", "--id", tmp_path / "in/clean.npz", "--ood", tmp_path / "out/clean.npz")
    (found,) = json.loads(cli(*command, "--format", "json").stdout)["sets"].values()
    assert found["auroc"] == 1
    noise = log_odds([[0.1 + 0.2, 0.7, 1e-3], [0.7, 1e-3, 0.3]])
    assert noise[0] == noise[1]


def test_wrong_files_of_unknown_classes(sets):
    root, logits, labels = sets
    clean, other = root / "clean.npz", root / "textures" / "clean.npz"
    assert cli_error("score-ood", "--ood", other) == "--id is missing"
    assert cli_error("score-ood", "--id", clean) == "--ood is missing"
    assert cli_error("score") == "PREDICTIONS is missing"
    missing = root / "none.npz"
    assert str(missing) in cli_error("score-ood", "--id", clean, "--ood", missing)
    assert "clean.npz" in cli_error("score-ood", "--id", clean, "--ood", other.parent)
    few = write(root / "few", "clean", ["a"], [0], np.zeros((1, 3)))
    assert f"{few}: 3 classes, where {clean} has 8" in cli_error("score-ood", "--id", clean, "--ood", few)
    keys = [f"{i}" for i in range(60)]
    lists = write(root / "lists", "clean", keys, labels, logits["clean"], save="top5")
    assert f"{lists}: has no logits; predict --save logits" in cli_error(
        "score-ood", "--id", clean, "--ood", lists
    )
    nan = root / "nan.npz"
    np.savez(nan, logits=np.full((60, 8), np.nan), labels=labels, keys=np.array(keys))
    assert f"{nan.name}: logits contain NaN or infinity" in cli_error(
        "score-ood", "--id", clean, "--ood", nan
    )
