"""Every number of `score` and `robustgen.metrics` is what it was before the formulas stood in one table."""

import json
from pathlib import Path

import numpy as np
import pytest

from robustgen import metrics
from robustgen.lab.evaluation.predictions import write_predictions as write
from robustgen.metrics import COMMON_CORRUPTIONS, COMMON_PERTURBATIONS, EXTRA_CORRUPTIONS, EXTRA_PERTURBATIONS
from tests.helpers import cli

# Written by this file itself, with the functions of the time:  python tests/lab/scores/test_score_formulas.py
RECORDED = Path(__file__).parents[2] / "golden" / "scores.json"


def compute_functions():
    """All public scores of random errors, flips and distances, by AlexNet and by a baseline of our own."""
    rng = np.random.default_rng(0)
    names = [*COMMON_CORRUPTIONS, *EXTRA_CORRUPTIONS]
    errors = {name: rng.random(5) for name in names}
    own = {name: 0.4 + 0.6 * rng.random(5) for name in names}
    mistakes, clean = rng.random((5, 7)) < 0.4, rng.random(7) < 0.2
    found = {}
    for label, baseline, of_clean in (("alexnet", metrics.ALEXNET_ERROR, None), ("own", own, 0.3)):
        found[label] = {
            "ce": [metrics.corruption_error(name, errors[name], baseline) for name in names],
            "relative": [
                metrics.relative_corruption_error(name, errors[name], 0.25, baseline, of_clean)
                for name in names
            ],
            "ces": metrics.corruption_errors("fog", mistakes, baseline).tolist(),
            "relatives": metrics.relative_corruption_errors(
                "fog", mistakes, clean, baseline, of_clean
            ).tolist(),
            "mce": metrics.mean_corruption_error(errors, baseline),
            "relative_mce": metrics.relative_mean_corruption_error(errors, 0.25, baseline, of_clean),
            "four": metrics.mean_corruption_error(errors, baseline, EXTRA_CORRUPTIONS),
        }
    found["plain"] = {
        "uce": [metrics.unnormalised_corruption_error(errors[name]) for name in names],
        "two": metrics.unnormalised_corruption_error(errors["fog"][:2], severities=2),
        "uces": metrics.unnormalised_corruption_errors(mistakes).tolist(),
        "mean": metrics.unnormalised_mean_corruption_error(errors),
        "aude": [metrics.area_under_distortion_error(0.25, errors[name]) for name in names],
        "audes": metrics.areas_under_distortion_error(clean, mistakes).tolist(),
        "maude": metrics.mean_area_under_distortion_error(0.25, errors),
    }
    sequences = [*COMMON_PERTURBATIONS, *EXTRA_PERTURBATIONS]
    flips = dict(zip(sequences, rng.random(14).tolist(), strict=True))
    distances = {name: 15 * value for name, value in zip(sequences, rng.random(14).tolist(), strict=True)}
    logits = rng.normal(size=(3, 11, 20)).cumsum(axis=1)
    best = metrics.top_classes(logits)
    how = [{"noise": True}, {"noise": False}, {"noise": False, "difficulty": 3}]
    found["sequences"] = {
        "fr": [metrics.flip_rate(name, flips[name]) for name in sequences],
        "t5d": [metrics.standardised_top5_distance(name, distances[name]) for name in sequences],
        "mfr": metrics.mean_flip_rate(flips),
        "mfp": metrics.mean_flip_probability(flips),
        "mt5d": metrics.mean_top5_distance(distances),
        "mut5d": metrics.unnormalised_mean_top5_distance(distances),
        "flips": [metrics.sequence_flips(best[..., 0], **each).tolist() for each in how],
        "fp": [metrics.flip_probability(best[..., 0], **each) for each in how],
        "distances": [metrics.sequence_top5_distances(best, **each).tolist() for each in how],
        "ut5d": [metrics.unnormalised_top5_distance(best, **each) for each in how],
        "zipf": [metrics.sequence_zipf_distances(logits, **each).tolist() for each in how],
        "uzipf": [metrics.unnormalised_zipf_distance(logits, **each) for each in how],
    }
    return found


def put_models(root):
    """Random predictions of two models, of a C and of a P set."""
    rng = np.random.default_rng(1)
    keys, labels = [f"n{i:02d}/{i}.JPEG" for i in range(40)], rng.integers(0, 6, 40)
    for model in ("a", "b"):
        variants = [
            f"{name}/{s}" for name in (*COMMON_CORRUPTIONS, "spatter", "of_my_own") for s in range(1, 6)
        ]
        for variant in ("clean", *variants):
            logits = rng.normal(size=(40, 6)) + 1.5 * np.eye(6)[labels]
            write(root / "c" / model, variant, keys, labels, logits)
        for name in (*COMMON_PERTURBATIONS, "shear"):
            logits = rng.normal(size=(9, 12, 6)).cumsum(axis=1)
            write(root / "p" / model, name, keys[:9], labels[:9], logits)
    values = {
        "clean_error": 0.3,
        "errors": {
            name: np.round(0.5 + 0.5 * rng.random(5), 3).tolist() if i % 2 else 0.7
            for i, name in enumerate(COMMON_CORRUPTIONS)
        },
        "flip_probabilities": {name: 0.1 + i / 20 for i, name in enumerate(COMMON_PERTURBATIONS)},
        "top5_distances": {name: 1.0 + i for i, name in enumerate(COMMON_PERTURBATIONS)},
    }
    (root / "own.json").write_text(json.dumps(values))


def compute_reports(root):
    """Everything that `score --format json` says of these models, with intervals and differences."""
    put_models(root)
    found = {}
    for kind in "cp":
        for baseline in ("none", root / "own.json"):
            args = ("score", root / kind / "a", root / kind / "b", "--baseline", baseline, "--format", "json")
            found[f"{kind} {Path(baseline).stem}"] = json.loads(cli(*args).stdout)
    return found


def assert_close(found, wanted, where=""):
    if isinstance(wanted, dict):
        assert found.keys() >= wanted.keys(), where
        for key in wanted:
            assert_close(found[key], wanted[key], f"{where}/{key}")
    elif isinstance(wanted, list):
        # Formulas that were added since are not recorded.
        known = {each["measure"] for each in wanted if isinstance(each, dict) and "measure" in each}
        found = [each for each in found if not known or each["measure"] in known]
        assert len(found) == len(wanted), where
        for place, pair in enumerate(zip(found, wanted, strict=True)):
            assert_close(*pair, f"{where}/{place}")
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12), where
    else:
        assert found == wanted, where


def test_the_functions_give_the_recorded_numbers():
    assert_close(compute_functions(), json.loads(RECORDED.read_text())["functions"])


def test_the_reports_give_the_recorded_numbers(tmp_path):
    assert_close(compute_reports(tmp_path), json.loads(RECORDED.read_text())["reports"])


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        content = {"functions": compute_functions(), "reports": compute_reports(Path(folder))}
    RECORDED.write_text(json.dumps(content))
