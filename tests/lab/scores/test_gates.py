"""Conditions that end a score with status 1: limits, and significant drops from another model."""

import json

import numpy as np
import pytest

from robustgen.settings.scoring import Drop, Scoring
from tests.helpers import cli, cli_error
from tests.lab.scores import test_detection, test_segmentation
from tests.lab.scores.test_scoring import gate, random_set


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Predictions that are wrong on about 30, 30 and 45 % of 400 images."""
    root = tmp_path_factory.mktemp("models")
    for seed, (name, chance) in enumerate((("main", 0.3), ("near", 0.3), ("far", 0.45))):
        random_set(root / name, chance, seed=seed)
    return root


def test_a_significant_drop_fails_and_a_small_one_does_not(models):
    drop = f"error.mean worse than {models / 'main'}"
    command = ("score", models / "near", models / "far", "--partial", "--format", "json", "--fail-if", drop)
    _, lines = gate(*command[1:])
    (line,) = [line for line in lines if line.startswith("failed: ")]
    assert line.startswith("failed: far: error.mean is ") and "near" not in line
    # The interval is that of the paired difference.
    report = json.loads(cli("score", models / "main", models / "far", "--partial", "--format", "json").stdout)
    (found,) = [each for each in report["differences"] if each["measure"] == "error"]
    low, high = found["interval"]
    assert f"[{100 * low:+.2f}, {100 * high:+.2f}]" in line and found["p"] < 0.001
    cli("score", models / "near", "--partial", "--fail-if", f"error.mean worse than {models / 'main'}")
    cli("score", models / "main", "--partial", "--fail-if", f"fog worse than {models / 'far'}")


def test_a_gate_on_a_normalised_mean_needs_a_baseline(models):
    for condition in ("mCE > 70", f"Rel. mCE worse than {models / 'far'}"):
        command = ("score", models / "main", "--partial", "--baseline", "none", "--fail-if", condition)
        assert "--baseline" in cli_error(*command)


def test_a_drop_can_have_a_margin(models):
    for margin, status in (("by 5", 1), ("by 30 %", 0)):
        condition = f"clean_error worse than {models / 'main'} {margin}"
        cli("score", models / "far", "--partial", "--fail-if", condition, status=status)


def test_drops_of_many_models_are_corrected_together(models, tmp_path):
    """One model is a little worse, which is significant alone and not among twenty."""
    base = models / "main"
    for place in range(20):
        name = f"m{place:02d}"
        rng = np.random.default_rng(place + 10)
        flipped = rng.choice(400, 9 if place == 0 else 0, replace=False)
        for path in sorted(base.rglob("*.npz")):
            with np.load(path) as file:
                content = dict(file)
            keys = content["keys"].astype(int)
            wrong = np.isin(keys, flipped) & (content["logits"].argmax(axis=1) == 0)
            content["logits"][wrong] = np.eye(4)[1]
            target = tmp_path / name / path.relative_to(base)
            target.parent.mkdir(parents=True, exist_ok=True)
            np.savez(target, **content)
    drop = ("--partial", "--fail-if", f"clean_error worse than {base}")
    _, lines = gate(tmp_path / "m00", *drop)
    assert [line for line in lines if line.startswith("failed: m00")]
    cli("score", tmp_path, *drop)


def test_drops_that_cannot_be_tested(models, tmp_path):
    command = ("score", models / "far", "--partial", "--fail-if")
    assert "nowhere" in cli_error(*command, f"error.mean worse than {tmp_path / 'nowhere'}")
    assert "'eror.mean'" in cli_error(*command, f"eror.mean worse than {models / 'main'}")
    assert "--replicates" in cli_error(
        *command, f"error.mean worse than {models / 'main'}", "--replicates", 0
    )
    random_set(tmp_path / "other", 0.3, names=("snow",))
    assert "'fog'" in cli_error(*command, f"fog worse than {tmp_path / 'other'}")


def test_all_means_are_named_before_single_values(models):
    known = cli_error("score", models / "far", "--partial", "--fail-if", "qqqqqq > 1").partition("known: ")[2]
    assert known.startswith("clean_error, Error (2/15), error.mean, ")


def test_conditions_say_what_they_are():
    (drop,) = Scoring(predictions=["a"], fail_if=["mCE worse than preds/a b by 1.5"]).fail_if
    assert drop == Drop("mCE", "preds/a b", 1.5) and str(drop) == "mCE worse than preds/a b by 1.5"


def test_detectors_and_segmentation_models_have_gates(tmp_path):
    test_detection.put_run(tmp_path / "d", names=("fog",), levels=(1, 2), images=6)
    command = (*test_detection.flags(tmp_path / "d"), "--partial")
    report = test_detection.report_of(tmp_path / "d", "--partial")
    mpc = 100 * report["types"]["bbox"]["summary"]["AP"]["mPC"]
    result = cli(*command, "--fail-if", "mPC < 99", "--fail-if", "bbox.AP50.P < 1", status=1)
    assert f"failed: model: mPC is {mpc:.2f} (mPC < 99)" in result.stderr and "AP50" not in result.stderr
    cli(*command, "--fail-if", "mPC < 0.1")
    assert "known: P, mPC, rPC, " in cli_error(*command, "--fail-if", "zzzz > 1")
    test_segmentation.put_run(tmp_path / "s", names=("fog",), levels=(1,))
    command = (*test_segmentation.flags(tmp_path / "s"), "--partial", "--format", "markdown")
    result = cli(*command, "--fail-if", "mean < 99", "--fail-if", "fog < 99", status=1)
    assert result.stdout.count("- failed: model: ") == 2
    assert "mCE" in cli_error(*command, "--fail-if", "mCE worse than x")
