"""Intervals and tests of scores, over all outcomes of few images and over drawn ones of more."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import special, stats

from robustgen.metrics.intervals import (
    difference_interval,
    margin_chance,
    mean_interval,
    paired_chances,
    ratio_interval,
    student_quantile,
)


def put_outcome(images, lost, won):
    """Return the mistakes of two models, of which the second makes `lost` more and `won` fewer."""
    first, second = np.zeros(images), np.zeros(images)
    first[:won], second[won : won + lost] = 1, 1
    return first, second


@pytest.mark.parametrize("images", [4, 5, 8, 20])
@pytest.mark.parametrize("margin", [0.001, 0.1, 0.3])
def test_a_margin_raises_no_more_false_alarms_than_it_says(images, margin):
    found = []
    for lost, won in product(range(images + 1), repeat=2):
        if lost + won <= images and lost - won > margin * images:
            first, second = put_outcome(images, lost, won)
            chance = margin_chance(first, second, margin, 0, 1)
            # Who is worse by more than a margin is worse.
            assert chance >= paired_chances(second[:, None], first)[0]
            found.append((lost, won, chance < 0.05))
    lost, won, alarm = np.transpose(found)
    for share in np.linspace(margin, 1, 20):
        counts = np.array([lost, won, images - lost - won])
        chances = np.array([(share + margin) / 2, (share - margin) / 2, 1 - share])[:, None]
        logs = special.gammaln(images + 1) + (
            special.xlogy(counts, chances) - special.gammaln(counts + 1)
        ).sum(0)
        assert np.exp(logs)[alarm == 1].sum() <= 0.05


@pytest.mark.parametrize("count", [1, 3, 8, 12])
def test_signs_of_few_differences_are_all_tried(count):
    changes = np.random.default_rng(count).normal(size=count)
    sums = [abs(np.dot(signs, changes)) for signs in product((1, -1), repeat=count)]
    padded = np.concatenate([changes, np.zeros(50)])
    expected = np.mean(np.array(sums) >= abs(changes.sum()) - 1e-12)
    assert paired_chances(padded[:, None], np.zeros(len(padded)))[0] == pytest.approx(expected)


@pytest.mark.parametrize("images", [1, 30, 1000])
def test_differences_of_alike_images_are_as_narrow_as_shares_of_none(images):
    values = np.random.default_rng(0).integers(0, 6, images) / 5
    none = stats.binomtest(0, images).proportion_ci(method="wilson").high
    np.testing.assert_allclose(difference_interval(values, values, 0, 1), (-none, none))
    low, high = difference_interval(np.zeros(images), np.full(images, 0.6), 0, 1)
    assert -1 <= low < 0.6 < high <= 1 and high - low == pytest.approx(2 * none)


@pytest.mark.parametrize(("images", "level", "shared"), [(20, 1.0, 0.6), (60, 1.0, 0.6), (20, -0.8, 0.97)])
def test_ratios_are_covered_also_where_most_images_are_wrong(images, level, shared):
    rng, draws = np.random.default_rng(images), 1000
    limits = [level + shift + 0.2 * np.arange(5) for shift in (0, 0.3)]
    hard = shared * rng.normal(size=(draws, images, 1))
    own = [hard + math.sqrt(1 - shared**2) * rng.normal(size=(draws, images, 1)) for _ in limits]
    first, second = ((part + limit > 0).mean(axis=2).T for part, limit in zip(own, limits, strict=True))
    aim = np.divide(*(special.ndtr(limit).sum() for limit in limits))
    ratios = first.mean(axis=0) / second.mean(axis=0)
    influences = (first - ratios * second) / second.mean(axis=0)
    low, high = ratio_interval(ratios, influences)
    # Where no image differs, there is no standard error, and another interval is used.
    differ = np.ptp(influences, axis=0) > 1e-9
    assert np.mean(((low <= aim) & (aim <= high))[differ]) > 0.9


def test_means_of_few_hard_images_are_covered():
    rng = np.random.default_rng(3)
    values = (3 * rng.normal(size=(20, 400, 1)) + rng.normal(size=(20, 400, 15)) > 2).mean(axis=2)
    low, high = mean_interval(values)
    aim = stats.norm.sf(2 / math.hypot(3, 1))
    student = student_quantile(20) * values.std(axis=0, ddof=1) / math.sqrt(20)
    covered = np.mean((low <= aim) & (aim <= high))
    assert covered > 0.92 and covered > np.mean(abs(values.mean(axis=0) - aim) <= student)
