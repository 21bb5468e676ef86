"""Intervals and tests of scores: over all outcomes of few images, over drawn ones of more, and by papers."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import special, stats

from robustgen.metrics.intervals import (
    difference_interval,
    jackknife_interval,
    logit_interval,
    margin_chance,
    mean_interval,
    newcombe_interval,
    paired_chances,
    ratio_interval,
    seed_variance,
    stratified_interval,
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


def as_pairs(both, first, second, neither):
    """Two columns of mistakes with these numbers of images."""
    one = np.repeat([1, 1, 0, 0], [both, first, second, neither])
    return one, np.repeat([1, 0, 1, 0], [both, first, second, neither])


@pytest.mark.parametrize(
    ("cells", "wanted"),
    # Newcombe 1998, table III, rows of method 10: difference of the first share and the second.
    [
        ((36, 12, 2, 0), (0.0569, 0.3404)),
        ((20, 12, 2, 16), (0.0562, 0.3292)),
        ((0, 0, 0, 30), (-0.1135, 0.1135)),
    ],
)
def test_paired_shares_have_the_intervals_of_newcombe(cells, wanted):
    first, second = as_pairs(*cells)
    assert newcombe_interval(second, first) == pytest.approx(wanted, abs=2e-4)
    low, high = newcombe_interval(first, second)
    assert (-high, -low) == pytest.approx(wanted, abs=2e-4)


def test_many_differences_are_judged_by_students_test_and_equal_ones_by_mcnemars():
    rng = np.random.default_rng(0)
    change = rng.normal(0.1, 1, 30)
    first, second = as_pairs(5, 3, 17, 20)
    found = paired_chances(np.stack([change[:30], (second - first)[:30]], axis=1), np.zeros(30))
    assert found[0] == pytest.approx(stats.ttest_1samp(change, 0).pvalue)
    lost, won = int(((second - first)[:30] > 0).sum()), int(((second - first)[:30] < 0).sum())
    assert found[1] == pytest.approx(stats.binomtest(lost, lost + won).pvalue)


def test_a_margin_is_judged_by_tangos_score():
    first, second = as_pairs(60, 10, 30, 100)
    z = (30 - 10 - 200 * 0.02) / np.sqrt(200 * spread_of(30, 10, 200, 0.02))
    assert margin_chance(first, second, 0.02, 0, 1) == pytest.approx(2 * stats.norm.sf(z), rel=1e-4)
    assert margin_chance(first, first, 0, 0, 1) == 1


def spread_of(more, less, count, margin):
    """Variance of a pair under the margin, by maximising the likelihood on a grid."""
    shares = np.linspace(1e-9, (1 - margin) / 2, 400_001)
    with np.errstate(divide="ignore"):
        likelihood = (
            less * np.log(shares)
            + more * np.log(shares + margin)
            + (count - more - less) * np.log(np.maximum(1e-300, 1 - 2 * shares - margin))
        )
    best = shares[likelihood.argmax()]
    return 2 * best + margin * (1 - margin)


@pytest.mark.parametrize("seed", range(4))
def test_intervals_of_means_and_differences_stay_in_their_bounds(seed):
    rng = np.random.default_rng(seed)
    values = rng.beta(0.3, 0.3, (rng.integers(1, 6), 2)).round(1)
    low, high = mean_interval(values)
    assert (low >= 0).all() and (low <= values.mean(0) + 1e-9).all() and (high <= 1).all()
    low, high = difference_interval(values[:, 0], values[:, 1], 0, 1)
    assert -1 <= low <= values[:, 1].mean() - values[:, 0].mean() + 1e-9 <= high + 2e-9 <= 1 + 2e-9


@pytest.mark.parametrize(
    ("counts", "errors"), [((45, 5), (0.1, 0.3)), ((10,) * 9, (0.02,) * 9), ((200, 2, 2), (0.1,) * 3)]
)
def test_a_class_of_few_right_images_is_not_without_errors(counts, errors):
    rng, labels = np.random.default_rng(0), np.repeat(np.arange(len(counts)), counts)
    hits = []
    for _ in range(400):
        wrong = rng.random(len(labels)) < np.asarray(errors)[labels]
        low, high = stratified_interval(wrong, labels)
        hits.append(low <= np.mean(errors) <= high)
    assert np.mean(hits) >= 0.92


def test_rates_at_the_border_and_scores_that_no_image_changes_are_not_certain():
    low, high = logit_interval([1.0, 0.0], np.tile([1.0, 0.0], (50, 1)), 20, [0.001, 0.001])
    assert (
        high[0] == 1
        and low[0] == pytest.approx(1 - 0.1611, abs=1e-3)
        and high[1] == pytest.approx(0.1611, abs=1e-3)
    )
    assert jackknife_interval(1.0, [1.0] * 20, 20) == pytest.approx((1 - 0.1611, 1), abs=1e-3)


def test_the_variance_of_seeds_is_that_of_the_analysis_of_variance():
    rows = np.random.default_rng(3).normal(size=(4, 9)) + [[0], [1], [3], [2]]
    seed, image = ((rows.mean(axis=axis) - rows.mean()) for axis in (1, 0))
    squares = np.array([9 * (seed**2).sum() / 3, 4 * (image**2).sum() / 8])
    residual = np.square(rows - rows.mean(1)[:, None] - rows.mean(0) + rows.mean()).sum() / 24
    variance, parts = seed_variance(rows)
    assert variance == pytest.approx((squares[0] - residual) / 36)
    assert parts == pytest.approx((squares[0] / 36) ** 2 / 3 + (residual / 36) ** 2 / 24)
    assert (
        seed_variance(rows - rows.mean(1)[:, None]) == [0, pytest.approx((residual / 36) ** 2 / 24)]
    ).all()


@pytest.mark.parametrize("spread", [0, 0.2])
@pytest.mark.parametrize("images", [100, 1000])
@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_intervals_count_images_and_seeds(seeds, images, spread):
    rng, draws = np.random.default_rng(1), 300
    shape, hard = (seeds, images, draws), rng.normal(size=(1, images, draws))

    def draw():
        return (hard + spread * rng.normal(size=(seeds, 1, draws)) + rng.normal(size=shape) > 1).astype(float)

    truth, (wrong, other) = stats.norm.sf(1 / np.sqrt(2 + spread**2)), (draw(), draw())
    means, own, more = wrong.mean(axis=0), seed_variance(wrong), seed_variance(other)
    low, high = mean_interval(means, seeds=own)
    assert 0.90 <= np.mean((low <= truth) & (truth <= high)) <= 0.98
    chances = paired_chances(means - other.mean(axis=0), np.zeros(images), own + more)
    assert np.mean(chances < 0.05) <= 0.1
    if spread and images == 1000:
        # Of images alone, intervals would be far too narrow.
        low, high = mean_interval(means)
        assert np.mean((low <= truth) & (truth <= high)) < 0.85
