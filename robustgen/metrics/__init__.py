"""Scores of a model on the benchmarks: what the papers define, with the baselines they print.

Errors and probabilities are fractions, never per cent. Classes count from zero.
The papers are cited as

    [C]  Hendrycks and Dietterich, Benchmarking Neural Network Robustness to Common Corruptions and
         Perturbations, ICLR 2019
    [D]  its draft of 2018, with ImageNet-D and AUDE
    [M]  Hendrycks et al., AugMix, ICLR 2020
    [N]  Hendrycks et al., Natural Adversarial Examples, 2021

Data sets that do not fit into memory are scored chunk by chunk: the functions named in the plural return
one value per image or sequence, and `RunningMean` averages these. A whole run over frame sequences needs
of the logits only what `top_classes` keeps of them::

    flips, distances = RunningMean(), RunningMean()
    for logits in chunks:                          # (sequences, frames, classes)
        best = top_classes(logits)
        flips.update(sequence_flips(best[..., 0], noise=False))
        distances.update(sequence_top5_distances(best, noise=False))
    flip_rate("tilt", flips.mean), standardised_top5_distance("tilt", distances.mean)

A score that is divided by a baseline and one that is not never share a name: the latter are called
`unnormalised_...`, or flip *probability* as opposed to flip *rate*.

names               the operations of the benchmarks, in the order of the tables
classification      from logits to predictions, probabilities and errors
corruption_errors   ImageNet-C
flips               ImageNet-P: how often the prediction changes
ranking_distances   ImageNet-P: how far the ranking of the classes moves
calibration         RMS calibration error, Brier score
anomalies           ImageNet-A and ImageNet-O
divergence          Jensen-Shannon
bootstrap           intervals of means over images
baselines           AlexNet's values, and the division by them
running             means of values that arrive in chunks
checks              of what callers pass
"""

from robustgen.metrics.anomalies import anomaly_scores, aupr, imagenet_a_accuracy, imagenet_o_aupr
from robustgen.metrics.baselines import (
    ALEXNET_CLEAN_ERROR,
    ALEXNET_ERROR,
    ALEXNET_FLIP_PROBABILITY,
    ALEXNET_TOP5_DISTANCE,
)
from robustgen.metrics.bootstrap import bootstrap_means, images_needed, percentile_interval
from robustgen.metrics.calibration import CALIBRATION_BIN, brier_score, brier_scores, rms_calibration_error
from robustgen.metrics.classification import confidences, softmax, top1_error, top1_mistakes, top_classes
from robustgen.metrics.corruption_errors import (
    area_under_distortion_error,
    areas_under_distortion_error,
    corruption_error,
    corruption_errors,
    mean_area_under_distortion_error,
    mean_corruption_error,
    relative_corruption_error,
    relative_corruption_errors,
    relative_mean_corruption_error,
    unnormalised_corruption_error,
    unnormalised_corruption_errors,
    unnormalised_mean_corruption_error,
)
from robustgen.metrics.divergence import jensen_shannon
from robustgen.metrics.flips import (
    flip_probability,
    flip_rate,
    mean_flip_probability,
    mean_flip_rate,
    sequence_flips,
)
from robustgen.metrics.names import (
    COMMON_CORRUPTIONS,
    COMMON_PERTURBATIONS,
    EXTRA_CORRUPTIONS,
    EXTRA_PERTURBATIONS,
    NOISE_PERTURBATIONS,
    SEVERITIES,
)
from robustgen.metrics.ranking_distances import (
    LARGEST_TOP5_DISTANCE,
    mean_top5_distance,
    sequence_top5_distances,
    sequence_zipf_distances,
    standardised_top5_distance,
    top5_distance,
    unnormalised_mean_top5_distance,
    unnormalised_top5_distance,
    unnormalised_zipf_distance,
    zipf_distance,
)
from robustgen.metrics.running import RunningMean

__all__ = [
    "ALEXNET_CLEAN_ERROR",
    "ALEXNET_ERROR",
    "ALEXNET_FLIP_PROBABILITY",
    "ALEXNET_TOP5_DISTANCE",
    "CALIBRATION_BIN",
    "COMMON_CORRUPTIONS",
    "COMMON_PERTURBATIONS",
    "EXTRA_CORRUPTIONS",
    "EXTRA_PERTURBATIONS",
    "LARGEST_TOP5_DISTANCE",
    "NOISE_PERTURBATIONS",
    "SEVERITIES",
    "RunningMean",
    "anomaly_scores",
    "area_under_distortion_error",
    "areas_under_distortion_error",
    "aupr",
    "bootstrap_means",
    "brier_score",
    "brier_scores",
    "confidences",
    "corruption_error",
    "corruption_errors",
    "flip_probability",
    "flip_rate",
    "imagenet_a_accuracy",
    "imagenet_o_aupr",
    "images_needed",
    "jensen_shannon",
    "mean_area_under_distortion_error",
    "mean_corruption_error",
    "mean_flip_probability",
    "mean_flip_rate",
    "mean_top5_distance",
    "percentile_interval",
    "relative_corruption_error",
    "relative_corruption_errors",
    "relative_mean_corruption_error",
    "rms_calibration_error",
    "sequence_flips",
    "sequence_top5_distances",
    "sequence_zipf_distances",
    "softmax",
    "standardised_top5_distance",
    "top1_error",
    "top1_mistakes",
    "top5_distance",
    "top_classes",
    "unnormalised_corruption_error",
    "unnormalised_corruption_errors",
    "unnormalised_mean_corruption_error",
    "unnormalised_mean_top5_distance",
    "unnormalised_top5_distance",
    "unnormalised_zipf_distance",
    "zipf_distance",
]
