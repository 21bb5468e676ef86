"""OpenOOD: its rates by scikit-learn, and `score-ood`."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from sklearn.metrics import auc, precision_recall_curve, roc_curve

from robustgen.errors import ArgumentError
from robustgen.lab.evaluation.predictions import write
from robustgen.metrics import detection_rates
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
    assert lines[0].startswith("Images of unknown classes in %; accuracy on 120 ID images ")
    assert lines[1].split() == ["OOD", "set", "FPR@95", "AUROC", "AUPR", "in", "AUPR", "out"]


def test_wrong_files_of_unknown_classes(sets):
    root, logits, labels = sets
    clean, other = root / "clean.npz", root / "textures" / "clean.npz"
    assert cli_error("score-ood", "--ood", other) == "--id is missing"
    assert cli_error("score-ood", "--id", clean) == "--ood is missing"
    assert cli_error("score") == "PREDICTIONS is missing"
    missing = root / "none.npz"
    assert str(missing) in cli_error("score-ood", "--id", clean, "--ood", missing)
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
