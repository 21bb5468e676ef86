"""Accuracy on corrupted clips: the formulas, and what the paper prints."""

import pytest

from robustgen import metrics
from robustgen.errors import ArgumentError


def test_performance_is_averaged_over_corruptions_and_severities():
    errors = {"fog": [0.1, 0.3], "rain": [0.2, 0.6]}
    assert metrics.mean_performance_under_corruption(errors) == pytest.approx(0.7)
    assert metrics.relative_performance_under_corruption(errors, 0.125) == pytest.approx(0.8)


@pytest.mark.parametrize("edition", ["kinetics", "ssv2"])
def test_published_rows_agree_with_each_other(edition):
    rows = metrics.published_performance(edition)
    assert len(rows) == 7
    for row in rows.values():
        assert 100 * row["mpc"] / row["clean"] == pytest.approx(row["rpc"], abs=0.1)
    assert metrics.published_performance("kinetics")["TimeSformer"]["mpc"] == 71.4


def test_what_has_no_mean_is_refused():
    with pytest.raises(ArgumentError, match="errors"):
        metrics.mean_performance_under_corruption({})
    with pytest.raises(ArgumentError, match="clean_error"):
        metrics.relative_performance_under_corruption({"fog": [0.1]}, 1.0)
    with pytest.raises(ArgumentError, match="kinetics"):
        metrics.published_performance("imagenet")
