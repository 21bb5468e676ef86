"""Scores against hand-computed numbers, published rows, brute force and scikit-learn."""

import math
import pickle
from itertools import pairwise
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from robustgen import metrics
from robustgen.errors import ArgumentError
from robustgen.metrics import ALEXNET_ERROR, COMMON_CORRUPTIONS, COMMON_PERTURBATIONS
from robustgen.metrics.bootstrap import correct_holm

# [C] Table 1: mCE, CE per corruption.
PUBLISHED_C = {
    "SqueezeNet": (104.4, (107, 106, 105, 100, 103, 101, 100, 101, 103, 97, 97, 98, 106, 109, 134)),
    "VGG-11": (93.5, (97, 97, 100, 92, 99, 93, 91, 92, 91, 84, 75, 86, 97, 107, 100)),
    "ResNet-50": (76.7, (80, 82, 83, 75, 89, 78, 80, 78, 75, 66, 57, 71, 85, 77, 77)),
}
# [C] appendix C: sigma and d. The identity comes first.
PERMUTATIONS = [
    ((1, 2, 3, 4, 5, 6, 7, 8, 9), 0),
    ((1, 2, 3, 4, 6, 5, 7, 8, 9), 1),
    ((1, 2, 3, 4, 6, 7, 5, 8, 9), 1),
    ((2, 1, 3, 4, 5, 6, 7, 8, 9), 2),
    ((3, 1, 2, 4, 5, 6, 7, 8, 9), 4),
    ((2, 3, 4, 5, 6, 7, 8, 9, 1), 5),
    ((1, 2, 3, 5, 6, 4, 7, 8, 9), 2),
    ((5, 4, 3, 2, 1, 6, 7, 8, 9), 12),
]


def ranking(row):
    """Rank of each class, counted from 1, by plain sorting."""
    order = sorted(range(len(row)), key=lambda c: (-row[c], c))
    return {c: rank for rank, c in enumerate(order, 1)}


def brute_distances(first, second):
    """Top-5 and Zipf distance, letter by letter from section 4.2 and appendix C."""
    of_first, of_second = ranking(first), ranking(second)
    sigma = {of_first[c]: of_second[c] for c in of_first}
    top5 = sum(
        1 <= j - 1 <= 5 for k in range(1, 6) for j in range(min(k, sigma[k]) + 1, max(k, sigma[k]) + 1)
    )
    return top5, sum(1 / i * abs(1 / i - 1 / sigma[i]) for i in sigma)


def brute_sequence(frames, distance, noise, difficulty):
    """Mean distance in one sequence: noises against frame 0, others along `difficulty` chains."""
    if noise:
        return fmean(distance(frames[0], frame) for frame in frames[1:])
    chains = [frames[start::difficulty] for start in range(difficulty)]
    return fmean(distance(a, b) for chain in chains for a, b in pairwise(chain))


def spread(means):
    """Five errors each with the given mean."""
    return {name: mean + np.array([-0.02, -0.01, 0, 0.01, 0.02]) for name, mean in means.items()}


# Constants


def test_names_cover_the_baselines_in_benchmark_order():
    assert [len(COMMON_CORRUPTIONS), len(metrics.EXTRA_CORRUPTIONS)] == [15, 4]
    assert [len(COMMON_PERTURBATIONS), len(metrics.EXTRA_PERTURBATIONS)] == [10, 4]
    perturbations = COMMON_PERTURBATIONS + metrics.EXTRA_PERTURBATIONS
    assert tuple(ALEXNET_ERROR) == COMMON_CORRUPTIONS + metrics.EXTRA_CORRUPTIONS
    assert tuple(metrics.ALEXNET_FLIP_PROBABILITY) == perturbations
    assert tuple(metrics.ALEXNET_TOP5_DISTANCE) == perturbations
    assert set(metrics.NOISE_PERTURBATIONS) < set(perturbations)


def test_constants_are_the_printed_ones():
    error = "88.6 89.4 92.3 82.0 82.6 78.6 79.8 86.7 82.7 81.9 56.5 85.3 64.6 71.8 60.7 84.5 78.7 71.8 65.8"
    flips = "23.65 30.06 9.30 5.94 11.93 4.89 11.01 13.10 7.05 23.53 18.65 2.78 5.05 10.66"
    top5 = "4.77 5.76 1.93 1.34 2.42 1.19 2.63 2.95 1.75 4.48 3.89 0.70 1.26 2.48"
    assert [f"{100 * x:.1f}" for x in ALEXNET_ERROR.values()] == error.split()
    assert [f"{100 * x:.2f}" for x in metrics.ALEXNET_FLIP_PROBABILITY.values()] == flips.split()
    assert [f"{x:.2f}" for x in metrics.ALEXNET_TOP5_DISTANCE.values()] == top5.split()
    assert metrics.ALEXNET_CLEAN_ERROR == 0.435


# Published rows


@pytest.mark.parametrize("network", PUBLISHED_C)
def test_published_corruption_rows(network):
    mce, columns = PUBLISHED_C[network]
    ces = dict(zip(COMMON_CORRUPTIONS, columns, strict=True))
    errors = spread({name: ce / 100 * ALEXNET_ERROR[name] for name, ce in ces.items()})
    for name, ce in ces.items():
        assert 100 * metrics.corruption_error(name, errors[name]) == pytest.approx(ce)
    assert 100 * metrics.mean_corruption_error(errors) == pytest.approx(mce, abs=0.5)


# ImageNet-C


def test_scores_of_one_corruption_by_hand():
    errors = [0.1, 0.2, 0.3, 0.4, 0.65]
    assert metrics.unnormalised_corruption_error(errors) == pytest.approx(0.33)
    assert metrics.corruption_error("saturate", errors) == pytest.approx(0.33 / 0.658)
    assert metrics.relative_corruption_error("saturate", errors, 0.05) == pytest.approx(0.28 / 0.223)
    # Trapezoids .075 .15 .25 .35 .525 of width 1, over 5.
    assert metrics.area_under_distortion_error(0.05, errors) == pytest.approx(1.35 / 5)


def test_means_ignore_what_is_not_common():
    errors = spread(dict.fromkeys(COMMON_CORRUPTIONS, 0.5))
    more = errors | {"saturate": [1, 1, 1, 1, 1], "homemade": [0, 0, 0, 0, 0]}
    assert metrics.mean_corruption_error(more) == metrics.mean_corruption_error(errors)
    flips = dict.fromkeys(COMMON_PERTURBATIONS, 0.1)
    assert metrics.mean_flip_rate(flips | {"shear": 0.9}) == metrics.mean_flip_rate(flips)


def test_means_by_hand():
    errors = spread(dict.fromkeys(COMMON_CORRUPTIONS, 0.5))
    assert metrics.unnormalised_mean_corruption_error(errors) == pytest.approx(0.5)
    assert metrics.mean_corruption_error(errors) == pytest.approx(
        fmean(0.5 / ALEXNET_ERROR[n] for n in COMMON_CORRUPTIONS)
    )
    relative = fmean(0.25 / (ALEXNET_ERROR[n] - 0.435) for n in COMMON_CORRUPTIONS)
    assert metrics.relative_mean_corruption_error(errors, 0.25) == pytest.approx(relative)
    # Five trapezoids: (.25 + .48) / 2, .485, .495, .505, .515.
    assert metrics.mean_area_under_distortion_error(0.25, errors) == pytest.approx((0.365 + 2.0) / 5)
    flips, distances = dict.fromkeys(COMMON_PERTURBATIONS, 0.1), dict.fromkeys(COMMON_PERTURBATIONS, 2.0)
    assert metrics.mean_flip_probability(flips) == pytest.approx(0.1)
    assert metrics.mean_flip_rate(flips) == pytest.approx(
        fmean(0.1 / metrics.ALEXNET_FLIP_PROBABILITY[n] for n in flips)
    )
    assert metrics.unnormalised_mean_top5_distance(distances) == pytest.approx(2.0)
    assert metrics.mean_top5_distance(distances) == pytest.approx(
        fmean(2 / metrics.ALEXNET_TOP5_DISTANCE[n] for n in flips)
    )


def test_means_over_some_operations():
    errors = {"fog": [0.1] * 5, "snow": [0.3] * 5, "frost": [0.9] * 5}
    two = ("fog", "snow")
    assert metrics.unnormalised_mean_corruption_error(errors, two) == pytest.approx(0.2)
    assert metrics.mean_corruption_error(errors, names=two) == pytest.approx(
        (0.1 / ALEXNET_ERROR["fog"] + 0.3 / ALEXNET_ERROR["snow"]) / 2
    )
    assert metrics.mean_area_under_distortion_error(0, errors, two) == pytest.approx(0.18)
    assert metrics.mean_flip_probability({"tilt": 0.2, "scale": 0.4}, ("tilt",)) == pytest.approx(0.2)
    assert metrics.unnormalised_corruption_error([0.1, 0.3], severities=2) == pytest.approx(0.2)


def test_own_baseline_as_means_or_as_five_errors():
    errors = spread(dict.fromkeys(COMMON_CORRUPTIONS, 0.3))
    means = dict.fromkeys(COMMON_CORRUPTIONS, 0.6)
    assert metrics.mean_corruption_error(errors, means) == pytest.approx(0.5)
    assert metrics.mean_corruption_error(errors, spread(means)) == pytest.approx(0.5)
    assert metrics.relative_mean_corruption_error(errors, 0.1, means, 0.2) == pytest.approx(0.5)


def test_top1_error():
    logits = [[0, 2, 1], [3, 3, 1], [0, -np.inf, -1], [5, 6, 7]]
    assert metrics.top1_mistakes(logits, [1, 1, 0, 0]).tolist() == [False, True, False, True]
    assert metrics.top1_error(logits, [1, 0, 0, 0]) == 0.25


# ImageNet-P


@pytest.mark.parametrize("sigma, expected", PERMUTATIONS)
def test_top5_distance_on_the_permutations_of_appendix_c(sigma, expected):
    first = np.arange(9, 0, -1.0)
    second = -np.array(sigma, float)
    lists = metrics.top_classes(first), metrics.top_classes(second)
    assert metrics.top5_distance(*lists) == expected
    assert metrics.top5_distance(range(5), range(5, 10)) == metrics.LARGEST_TOP5_DISTANCE
    assert brute_distances(first, second)[0] == expected


def test_zipf_distance_by_hand():
    # sigma = (2, 1, 3): 1 |1 - 1/2| + 1/2 |1/2 - 1|.
    assert metrics.zipf_distance([3, 2, 1], [2, 3, 1]) == pytest.approx(0.75)


def test_top_classes_breaks_ties_by_class():
    logits = np.array([[1, 7, 7, 0, 7, 1, 1], [-np.inf, 2, -np.inf, -np.inf, -np.inf, -np.inf, 5]])
    assert metrics.top_classes(logits).tolist() == [[1, 2, 4, 0, 5], [6, 1, 0, 2, 3]]
    assert metrics.top_classes(logits[0], 1).tolist() == [1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint8])
def test_top_classes_takes_any_real_dtype_and_leaves_it_alone(dtype):
    logits = np.random.default_rng(3).permuted(np.tile(np.arange(100), (6, 1)), axis=1).astype(dtype)
    kept = logits.copy()
    best = metrics.top_classes(logits)
    assert np.take_along_axis(logits, best, 1).tolist() == [[99, 98, 97, 96, 95]] * 6
    assert (logits == kept).all()


@settings(deadline=None, max_examples=80)
@given(
    st.tuples(st.integers(1, 3), st.integers(4, 8), st.integers(5, 9)),
    st.booleans(),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
)
def test_sequence_scores_equal_brute_force(shape, noise, difficulty, seed):
    rng = np.random.default_rng(seed)
    # Few distinct values, so that ties are the rule.
    logits = rng.choice(np.array([-np.inf, -1.5, -0.0, 0.0, 0.25, 3.0], np.float32), shape)
    logits[..., rng.integers(shape[-1])] = 0
    best = metrics.top_classes(logits)
    choice = {"noise": noise, "difficulty": difficulty}

    def expected(distance):
        return [brute_sequence(list(s), distance, noise, difficulty) for s in logits]

    def flipped(a, b):
        return min(ranking(a), key=ranking(a).get) != min(ranking(b), key=ranking(b).get)

    assert metrics.sequence_flips(best[..., 0], **choice) == pytest.approx(expected(flipped))
    top5, zipf = (
        expected(lambda a, b: brute_distances(a, b)[0]),
        expected(lambda a, b: brute_distances(a, b)[1]),
    )
    assert metrics.sequence_top5_distances(best, **choice) == pytest.approx(top5)
    assert metrics.sequence_zipf_distances(logits, **choice) == pytest.approx(zipf)
    assert metrics.unnormalised_top5_distance(best, **choice) == pytest.approx(fmean(top5))
    assert metrics.unnormalised_zipf_distance(logits, **choice) == pytest.approx(fmean(zipf))


def test_blocks_and_chunks_change_nothing(monkeypatch):
    logits = np.random.default_rng(1).standard_normal((10, 4, 20), dtype=np.float32)
    best, zipf = metrics.top_classes(logits), metrics.sequence_zipf_distances(logits, noise=False)
    sure = metrics.confidences(logits[0])
    monkeypatch.setattr(metrics.classification, "BLOCK_ELEMENTS", 170)
    assert (metrics.top_classes(logits) == best).all()
    assert metrics.sequence_zipf_distances(logits, noise=False).tolist() == zipf.tolist()
    assert metrics.confidences(logits[0]).tolist() == sure.tolist()
    merged = metrics.RunningMean()
    for chunk in (best[:3], best[3:4], best[4:]):
        merged.update(metrics.sequence_top5_distances(chunk, noise=False))
    assert merged.mean == pytest.approx(metrics.unnormalised_top5_distance(best, noise=False), rel=1e-14)


def test_running_mean():
    one, two = metrics.RunningMean(), metrics.RunningMean()
    one.update([True, False, True])
    two.update(4.0)
    assert (one + two, (one + two).mean) == (metrics.RunningMean(6.0, 4), 1.5)
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(ArgumentError):
        _ = metrics.RunningMean().mean


# Calibration, ImageNet-A, ImageNet-O, consistency


def test_confidence_is_the_largest_softmax():
    logits = np.log([[0.2, 0.5, 0.3], [0.9, 0.05, 0.05]]) + 800
    assert metrics.softmax(logits).tolist()[0] == pytest.approx([0.2, 0.5, 0.3])
    assert metrics.confidences(logits).tolist() == pytest.approx([0.5, 0.9])
    assert metrics.softmax([0.0, -np.inf]).tolist() == [1, 0]


def test_rms_calibration_error_by_hand():
    # 250 images: a bin of 100 at .5 with 60 right, one of 150 at .9 with 120 right.
    confidence = np.repeat([0.5, 0.9], [100, 150])
    correct = np.r_[np.arange(100) < 60, np.arange(150) < 120]
    found = metrics.rms_calibration_error(confidence, correct)
    assert found == pytest.approx(math.sqrt(0.4 * 0.1**2 + 0.6 * 0.1**2))


@pytest.mark.parametrize(
    "images, sizes", [(1, [1]), (99, [99]), (199, [199]), (200, [100, 100]), (333, [100, 100, 133])]
)
def test_rms_calibration_error_bins(images, sizes):
    rng = np.random.default_rng(images)
    confidence, correct = np.sort(rng.random(images)), rng.random(images) < 0.5
    bins = [slice(end - size, end) for end, size in zip(np.cumsum(sizes), sizes, strict=True)]
    squares = [s * (confidence[b].mean() - correct[b].mean()) ** 2 for b, s in zip(bins, sizes, strict=True)]
    mixed = rng.permutation(images)
    found = metrics.rms_calibration_error(confidence[mixed], correct[mixed])
    assert found == pytest.approx(math.sqrt(sum(squares) / images))


def test_brier_score():
    rows, labels = np.array([[0.5, 0.3, 0.2], [0, 1, 0], [1, 0, 0]]), [0, 1, 1]
    assert metrics.brier_scores(rows, labels).tolist() == pytest.approx([0.25 + 0.09 + 0.04, 0, 2])
    assert metrics.brier_score(rows, labels) == pytest.approx(2.38 / 3)
    assert rows[0, 0] == 0.5


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=1, max_size=60))
def test_aupr_equals_scikit_learn(rows):
    reference = pytest.importorskip("sklearn.metrics").average_precision_score
    scores, positives = [score / 4 for score, _ in rows], [True, *(p for _, p in rows[1:])]
    assert metrics.aupr(scores, positives) == pytest.approx(reference(positives, scores))


def test_imagenet_a_accuracy_predicts_only_the_given_classes():
    logits = [[9, 1, 2, 9], [9, 3, 3, 9], [0, 5, 1, 0]]
    assert metrics.imagenet_a_accuracy(logits, [2, 1, 2], [2, 1]) == pytest.approx(2 / 3)
    assert metrics.imagenet_a_accuracy(logits, [2, 2, 2], [2, 1]) == pytest.approx(1 / 3)


def test_imagenet_o_aupr():
    sure, unsure = [9.0, 0, 0], [1.0, 0.5, 0]
    assert metrics.imagenet_o_aupr([sure, sure], [unsure]) == 1
    assert metrics.imagenet_o_aupr([unsure, unsure], [sure]) == pytest.approx(1 / 3)
    assert metrics.anomaly_scores([[0, 0, 50]], [0, 1]).tolist() == [-0.5]


def test_jensen_shannon():
    apart = metrics.jensen_shannon([[1, 0, 0]], [[0, 1, 0]], [[0, 0, 1]])
    assert apart.tolist() == pytest.approx([math.log(3)])
    assert metrics.jensen_shannon([0.5, 0.5], [0.5, 0.5], [0.5, 0.5]) == 0


@settings(deadline=None, max_examples=40)
@given(arrays(np.float64, (3, 2, 4), elements=st.floats(-30, 30)))
def test_jensen_shannon_is_the_entropy_gap(logits):
    def entropy(p):
        return -np.sum(p * np.log(p), axis=-1)

    rows = metrics.softmax(logits)
    gap = entropy(rows.mean(axis=0)) - entropy(rows).mean(axis=0)
    assert metrics.jensen_shannon(*rows) == pytest.approx(gap, abs=1e-12)


# Bad input

NAN_LOGITS = np.array([[0, np.nan, 1, 2, 3.0]])
FIVE = {name: [0.5] * 5 for name in COMMON_CORRUPTIONS}
TEN = dict.fromkeys(COMMON_PERTURBATIONS, 0.1)
BAD_CALLS = [
    lambda: metrics.top1_error(NAN_LOGITS, [0]),
    lambda: metrics.top_classes(NAN_LOGITS),
    lambda: metrics.softmax([0, np.inf]),
    lambda: metrics.softmax([-np.inf, -np.inf]),
    lambda: metrics.sequence_zipf_distances(NAN_LOGITS[None], noise=False),
    lambda: metrics.zipf_distance(NAN_LOGITS, NAN_LOGITS),
    lambda: metrics.anomaly_scores(NAN_LOGITS),
    lambda: metrics.imagenet_a_accuracy(NAN_LOGITS, [0], [0, 1]),
    lambda: metrics.RunningMean().update([1, np.nan]),
    lambda: metrics.top1_error([[0, 1, 2]], [3]),
    lambda: metrics.top1_error([[0, 1, 2]], [-1]),
    lambda: metrics.brier_score([[0, 1, 0]], [3]),
    lambda: metrics.top1_error([0, 1, 2], [1]),
    lambda: metrics.top1_error([[0, 1, 2]], [[1]]),
    lambda: metrics.top1_error(np.empty((0, 3)), []),
    lambda: metrics.sequence_flips([1, 2], noise=False),
    lambda: metrics.sequence_flips(np.zeros((2, 3, 4), int), noise=False),
    lambda: metrics.unnormalised_top5_distance([[1, 2, 3, 4, 5]], noise=False),
    lambda: metrics.sequence_zipf_distances([[1, 2]], noise=False),
    lambda: metrics.corruption_error("fog", 0.5),
    lambda: metrics.top_classes(1.0),
    lambda: metrics.top1_error([[0, 1, 2]], [1.0]),
    lambda: metrics.sequence_flips([[0.5, 0.5]], noise=False),
    lambda: metrics.softmax(["a"]),
    lambda: metrics.corruption_error("fog", None),
    lambda: metrics.aupr([0.1], ["yes"]),
    lambda: metrics.top_classes([[1, 2], [1]]),
    lambda: metrics.top1_error([[0, 1, 2]], [0, 1]),
    lambda: metrics.top_classes([1, 2, 3, 4]),
    lambda: metrics.top5_distance([1, 2, 3], [1, 2, 3]),
    lambda: metrics.top5_distance(np.zeros((2, 5), int), np.zeros((3, 5), int)),
    lambda: metrics.zipf_distance(np.zeros((2, 5)), np.zeros((3, 5))),
    lambda: metrics.zipf_distance([1, 2], [1]),
    lambda: metrics.sequence_flips([[1]], noise=True),
    lambda: metrics.sequence_flips([[1, 2]], noise=False, difficulty=2),
    lambda: metrics.sequence_flips([[1, 2]], noise=False, difficulty=0),
    lambda: metrics.corruption_error("fog", [50, 60, 70, 80, 90]),
    lambda: metrics.corruption_error("fog", [0.1, 0.2, np.nan, 0.3, 0.4]),
    lambda: metrics.corruption_error("fog", [0.1] * 5, {"fog": 81.9}),
    lambda: metrics.area_under_distortion_error(23.9, [0.5] * 5),
    lambda: metrics.flip_rate("tilt", 7.05),
    lambda: metrics.mean_flip_probability(TEN | {"tilt": -0.1}),
    lambda: metrics.rms_calibration_error([2.0], [1]),
    lambda: metrics.brier_score([[-3.0, 4.0]], [0]),
    lambda: metrics.standardised_top5_distance("tilt", 16),
    lambda: metrics.corruption_error("fog", [0.5] * 3),
    lambda: metrics.mean_corruption_error({n: e for n, e in FIVE.items() if n not in ("fog", "pixelate")}),
    lambda: metrics.mean_flip_rate({n: e for n, e in TEN.items() if n != "tilt"}),
    lambda: metrics.corruption_error("fog", [0.5] * 5, {"snow": 0.5}),
    lambda: metrics.corruption_error("fog", [0.5] * 5, {"fog": 0}),
    lambda: metrics.flip_rate("tilt", 0.5, {"tilt": 0.0}),
    lambda: metrics.relative_corruption_error("fog", [0.5] * 5, 0.1, {"fog": 0.5}, 0.5),
    lambda: metrics.brier_score([[0.5, 0.4]], [0]),
    lambda: metrics.jensen_shannon([0.5, 0.5], [0.9, 0.9]),
    lambda: metrics.mean_corruption_error(FIVE, names=()),
    lambda: metrics.jensen_shannon([0.5, 0.5]),
    lambda: metrics.jensen_shannon([0.5, 0.5], [0.5, 0.5, 0]),
    lambda: metrics.aupr([0.1, 0.2], [1]),
    lambda: metrics.aupr([0.1, 0.2], [1, -1]),
    lambda: metrics.aupr([0.1, np.nan], [1, 0]),
    lambda: metrics.aupr([0.1, 0.2], [0, 0]),
    lambda: metrics.imagenet_a_accuracy([[1, 2, 3]], [1], [1, 1]),
    lambda: metrics.anomaly_scores([[1, 2, 3]], [1, 3]),
    lambda: metrics.corruption_errors("fog", np.ones((2, 3), bool)),
    lambda: metrics.bootstrap_means([[np.nan]]),
    lambda: metrics.bootstrap_means([[1.0]], replicates=0),
    lambda: metrics.images_needed([1.0], 0.1),
    lambda: metrics.images_needed([1.0, 0.0], 0.0),
    lambda: metrics.images_needed([1.0, 0.0], 1e-300),
    lambda: metrics.imagenet_a_accuracy([[1, 2, 3]], [0], [1, 2]),
    # An own baseline needs its own clean error.
    lambda: metrics.relative_corruption_error("fog", [0.3] * 5, 0.1, {"fog": 0.6}),
]


@pytest.mark.parametrize("call", BAD_CALLS, ids=range(len(BAD_CALLS)))
def test_bad_input_raises_one_clear_line(call):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert "\n" not in str(caught.value)


# Intervals


def test_bootstrap_means_are_means_of_resamples():
    values = np.random.default_rng(0).random((40, 3))
    means = metrics.bootstrap_means(values, replicates=70, seed=5)
    rng = np.random.default_rng(5)
    draws = [rng.integers(0, 40, 40, np.int32) for _ in range(70)]
    np.testing.assert_allclose(means, [values[draw].mean(axis=0) for draw in draws], rtol=1e-12)
    truths = values > 0.4
    exact = metrics.bootstrap_means(truths, replicates=70, seed=5)
    np.testing.assert_array_equal(exact, [truths[draw].sum(axis=0) / 40 for draw in draws])


def test_intervals_of_a_proportion_are_those_of_the_binomial():
    values = np.arange(2000) < 600
    low, high = metrics.percentile_interval(metrics.bootstrap_means(values[:, None]))
    half = 1.96 * np.sqrt(0.3 * 0.7 / 2000)
    assert low[0] == pytest.approx(0.3 - half, abs=0.003) and high[0] == pytest.approx(0.3 + half, abs=0.003)
    assert metrics.images_needed(values, half) == pytest.approx(2000, rel=0.01)
    # (1.96 x 0.7071 / 0.5)**2 = 7.68
    assert metrics.images_needed([0, 1], 0.5) == 8


def test_errors_of_a_corruption_are_means_over_images():
    wrong = np.random.default_rng(1).random((5, 200)) < 0.4
    clean = np.random.default_rng(2).random(200) < 0.2
    errors = wrong.mean(axis=1)
    pairs = [
        (metrics.unnormalised_corruption_errors(wrong), metrics.unnormalised_corruption_error(errors)),
        (metrics.corruption_errors("fog", wrong), metrics.corruption_error("fog", errors)),
        (
            metrics.relative_corruption_errors("fog", wrong, clean),
            metrics.relative_corruption_error("fog", errors, clean.mean()),
        ),
        (
            metrics.areas_under_distortion_error(clean, wrong),
            metrics.area_under_distortion_error(clean.mean(), errors),
        ),
    ]
    for images, whole in pairs:
        assert images.shape == (200,) and images.mean() == pytest.approx(whole)


def test_holm_is_the_textbook_example():
    assert correct_holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert correct_holm([]) == []
