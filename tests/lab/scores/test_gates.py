"""Conditions that end a score with status 1: limits, and significant drops from another model."""

import json
import shutil

import numpy as np
import pytest

import robustgen
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


def find_evidence(content):
    """Return the conditions by their text, and the models by their names."""
    found = content["evidence"]
    assert found["version"] == robustgen.__version__
    return {each["condition"]: each for each in found["conditions"]}, {
        each["name"]: each for each in found["models"]
    }


def describe(root, sha256):
    """Write a `predictions.json` such as `predict` writes."""
    about = {"schema": 1, "title": "ImageNet-C", "digest": "d" * 64, "source_digest": "e" * 64}
    about |= {"model": {"file": "net.onnx", "sha256": sha256}, "keys": "f" * 64}
    (root / "predictions.json").write_text(json.dumps(about))


def test_the_evidence_of_all_conditions_stands_in_json_and_on_the_page(models, tmp_path):
    for name, letter in (("main", "a"), ("far", "b")):
        shutil.copytree(models / name, tmp_path / name)
        describe(tmp_path / name, letter * 64)
    drop, page = f"error.mean worse than {tmp_path / 'main'}", tmp_path / "page.html"
    gates = ("--fail-if", drop, "--fail-if", "error.mean > 90", "--output", page)
    command = ("score", tmp_path / "far", "--partial", "--format", "json")
    result = cli(*command, *gates, status=1)
    report = json.loads(result.stdout)
    conditions, found = find_evidence(report)
    mean = 100 * report["models"][0]["measures"]["error"]["mean"]
    passed, failed = conditions["error.mean > 90"], conditions["error.mean worse than main"]
    assert (passed["verdict"], passed["limit"], "p" in passed) == ("passed", 90, False)
    assert failed["verdict"] == "failed" and failed["model"] == "far" and failed["p"] < 0.05
    assert passed["value"] == failed["value"] == pytest.approx(mean)
    assert failed["limit"] == pytest.approx(mean - failed["difference"])
    assert failed["interval"][0] < failed["difference"] < failed["interval"][1]
    assert {name: each["sha256"] for name, each in found.items()} == {"far": "b" * 64, "main": "a" * 64}
    assert all((each["digest"], each["source_digest"]) == ("d" * 64, "e" * 64) for each in found.values())
    text = page.read_text("utf-8")
    assert "error.mean worse than main" in text and "b" * 64 in text and "d" * 64 in text
    # The paths are those of this machine, and another run writes the same bytes.
    assert str(tmp_path) not in text
    cli(*command, *gates[:-1], tmp_path / "again.html", status=1)
    assert (tmp_path / "again.html").read_text("utf-8") == text
    assert "evidence" not in json.loads(cli(*command).stdout)


def test_other_scores_have_evidence_too(tmp_path):
    test_detection.put_run(tmp_path / "d", names=("fog",), levels=(1,), images=6)
    detector = {"model": "mine:build", "sha256": "a" * 64}
    about = {"images": {"source": "e" * 64}, "detector": detector, "annotations": "c" * 64}
    (tmp_path / "d" / "detections.json").write_text(json.dumps(about))
    page, form = tmp_path / "page.html", ("--format", "json", "--output", tmp_path / "page.html")
    command = (*test_detection.flags(tmp_path / "d"), "--partial", *form)
    conditions, found = find_evidence(json.loads(cli(*command, "--fail-if", "mPC < 0.1").stdout))
    assert conditions["mPC < 0.1"]["verdict"] == "passed"
    known = {key: found["model"][key] for key in ("sha256", "source_digest", "annotations")}
    assert known == {"sha256": "a" * 64, "source_digest": "e" * 64, "annotations": "c" * 64}
    assert "mPC &lt; 0.1" in page.read_text("utf-8") and "a" * 64 in page.read_text("utf-8")
    test_segmentation.put_run(tmp_path / "s", names=("fog",), levels=(1,))
    command = (*test_segmentation.flags(tmp_path / "s"), "--partial", *form)
    conditions, _ = find_evidence(json.loads(cli(*command, "--fail-if", "mean > 0.1", status=1).stdout))
    assert conditions["mean > 0.1"]["verdict"] == "failed"
    random_set(tmp_path / "known", 0.3)
    random_set(tmp_path / "unknown", 0.3, seed=1)
    describe(tmp_path / "known", "b" * 64)
    files = ("--id", tmp_path / "known/fog/1.npz", "--ood", tmp_path / "unknown/clean.npz")
    command = ("score-ood", *files, "--replicates", 10, *form)
    _, found = find_evidence(json.loads(cli(*command, "--fail-if", "AUROC > 99").stdout))
    (model, other) = found.values()
    assert (model["sha256"], model["digest"], other["sha256"]) == ("b" * 64, "d" * 64, None)
