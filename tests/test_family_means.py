"""score: the means of other families of corruptions, beside mCE."""

import csv
import io

import pytest
from helpers import cli
from test_score import put_c, scored

from robustgen.corruptions import FAMILIES
from robustgen.metrics import ALEXNET_ERROR

IMAGENET, CIFAR = (FAMILIES["c-bar"].names(scale) for scale in (224, 32))


@pytest.mark.parametrize("names", [IMAGENET, CIFAR], ids=["imagenet", "cifar-10"])
def test_the_mean_of_c_bar_stands_beside_mce(tmp_path, names):
    errors = {name: [(i + severity) / 20 for severity in range(5)] for i, name in enumerate(names)}
    root = put_c(tmp_path / "net", ALEXNET_ERROR | errors)
    found, _ = scored(root, "--no-intervals")
    (model,) = found["models"]
    mean = sum(sum(each) for each in errors.values()) / 50
    assert model["families"]["c-bar"] == {"mean_error": pytest.approx(mean, abs=1e-3), "mean_over": [*names]}
    # The benchmark's own mean goes on over its fifteen.
    assert len(model["measures"]["error"]["mean_over"]) == 15
    text = cli("score", root, "--no-intervals").stdout
    assert "ImageNet-C-bar: top-1 error in %, mean over severities, unnormalised" in text
    assert f"{100 * mean:.1f}" in text
    rows = list(csv.DictReader(io.StringIO(cli("score", root, "--no-intervals", "--format", "csv").stdout)))
    (row,) = [row for row in rows if row["measure"] == "error of c-bar"]
    assert float(row["mean"]) == pytest.approx(mean, abs=1e-3) and row["mean_over"] == "10"


def test_a_part_of_a_family_says_so_and_unknown_names_are_in_no_family(tmp_path):
    root = put_c(tmp_path / "net", ALEXNET_ERROR | {"sparkles": 0.5, "perlin_noise": 0.25, "smudge": 0.9})
    found, _ = scored(root, "--no-intervals")
    (model,) = found["models"]
    assert model["families"] == {
        "c-bar": {"mean_error": pytest.approx(0.375), "mean_over": ["perlin_noise", "sparkles"]}
    }
    assert "Mean of 2" in cli("score", root, "--no-intervals").stdout
    plain, _ = scored(put_c(tmp_path / "plain"), "--no-intervals")
    assert "families" not in plain["models"][0]


def test_published_errors_of_a_reference_divide(tmp_path, monkeypatch):
    from dataclasses import replace

    from robustgen import corruptions

    named = replace(FAMILIES["c-bar"], means=dict.fromkeys(IMAGENET, 0.8), reference="AlexNet")
    monkeypatch.setitem(corruptions._BUILT_IN, "c-bar", named)
    root = put_c(tmp_path / "net", ALEXNET_ERROR | dict.fromkeys(IMAGENET, 0.4))
    (model,) = scored(root, "--no-intervals")[0]["models"]
    assert model["families"]["c-bar"]["normalised_mean"] == pytest.approx(0.5)
    assert model["families"]["c-bar"]["normalised_by"] == "AlexNet"
    assert "/ AlexNet" in cli("score", root, "--no-intervals").stdout
