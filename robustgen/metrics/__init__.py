"""Scores of a model on the benchmarks, as the papers define them, with the published baselines.

Errors and probabilities are fractions, never per cent. Classes count from zero.
The papers are cited as

    [C]  Hendrycks and Dietterich, Benchmarking Neural Network Robustness to Common Corruptions and
         Perturbations, ICLR 2019
    [D]  its draft of 2018, with ImageNet-D and AUDE
    [M]  Hendrycks et al., AugMix, ICLR 2020
    [N]  Hendrycks et al., Natural Adversarial Examples, 2021

and other families of corruptions in their modules.

Data sets that do not fit into memory are scored in chunks: functions named in the plural return one value per
image or sequence, and `RunningMean` averages these values. For frame sequences, only the results of
`top_classes` are needed, not all logits::

    flips, distances = RunningMean(), RunningMean()
    for logits in chunks:                          # (sequences, frames, classes)
        best = top_classes(logits)
        flips.update(sequence_flips(best[..., 0], noise=False))
        distances.update(sequence_top5_distances(best, noise=False))
    flip_rate("tilt", flips.mean), standardised_top5_distance("tilt", distances.mean)

The functions of ImageNet-C take `errors`, the top-1 errors at severities 1 to 5, (5,), as fractions. Those in
the plural take `mistakes`, (5, images): whether each image is classified wrongly at each severity, or errors
of samples, one per column. They return the share of each image in the score; the score is the mean of these
shares. A `baseline` maps corruptions to five errors of another model, or to their mean, and perturbations to
a value. `names` are the operations of a mean, by default the common ones; all of them must have values. Wrong
shapes, errors that are not fractions and baselines without a positive value raise ArgumentError.

A score divided by a baseline and a raw one never share a name: raw scores are called `unnormalised_...`, or
flip *probability* as opposed to flip *rate*.

classification      from logits to predictions, probabilities and errors; mIoU; Jensen-Shannon
corruption_errors   ImageNet-C: all scores as weighted sums, in one table; published values; errors of
                    LAION-C, MedMNIST-C and RoboDepth
flips               ImageNet-P: changes of the prediction, and of the ranking of the classes
calibration         RMS calibration error, Brier score, ImageNet-A, ImageNet-O, OpenOOD; running means
bootstrap           intervals of means over images
"""

from robustgen.metrics.bootstrap import bootstrap_means, draw_weights, images_needed, percentile_interval
from robustgen.metrics.calibration import (
    CALIBRATION_BIN,
    DetectionRates,
    RunningMean,
    anomaly_scores,
    aupr,
    brier_score,
    brier_scores,
    detection_rates,
    imagenet_a_accuracy,
    imagenet_o_aupr,
    rms_calibration_error,
)
from robustgen.metrics.classification import (
    COMMON_CORRUPTIONS,
    COMMON_PERTURBATIONS,
    EXTRA_CORRUPTIONS,
    EXTRA_PERTURBATIONS,
    NOISE_PERTURBATIONS,
    SEVERITIES,
    confidences,
    count_pixels,
    intersections_over_union,
    jensen_shannon,
    mean_intersection_over_union,
    softmax,
    top1_error,
    top1_mistakes,
    top_classes,
)
from robustgen.metrics.corruption_errors import (
    ALEXNET_CLEAN_ERROR,
    ALEXNET_ERROR,
    ALEXNET_FLIP_PROBABILITY,
    ALEXNET_TOP5_DISTANCE,
    alexnet_balanced_errors,
    area_under_distortion_error,
    areas_under_distortion_error,
    balanced_corruption_error,
    balanced_error,
    corruption_error,
    corruption_errors,
    depth_corruption_error,
    depth_estimation_error,
    list_superclasses,
    mean_area_under_distortion_error,
    mean_balanced_corruption_error,
    mean_corruption_error,
    mean_relative_balanced_corruption_error,
    multi_label_balanced_error,
    published_accuracies,
    relative_balanced_corruption_error,
    relative_corruption_error,
    relative_corruption_errors,
    relative_mean_corruption_error,
    resilience_rate,
    superclass_accuracy,
    superclass_labels,
    superclass_predictions,
    superclass_probabilities,
    unnormalised_corruption_error,
    unnormalised_corruption_errors,
    unnormalised_mean_corruption_error,
)
from robustgen.metrics.flips import (
    LARGEST_TOP5_DISTANCE,
    flip_probability,
    flip_rate,
    mean_flip_probability,
    mean_flip_rate,
    mean_top5_distance,
    sequence_flips,
    sequence_top5_distances,
    sequence_zipf_distances,
    standardised_top5_distance,
    top5_distance,
    unnormalised_mean_top5_distance,
    unnormalised_top5_distance,
    unnormalised_zipf_distance,
    zipf_distance,
)
from robustgen.metrics.mean_performance import (
    mean_performance_under_corruption,
    published_performance,
    relative_performance_under_corruption,
)

__all__ = [
    "ALEXNET_CLEAN_ERROR", "ALEXNET_ERROR", "ALEXNET_FLIP_PROBABILITY", "ALEXNET_TOP5_DISTANCE",
    "CALIBRATION_BIN", "COMMON_CORRUPTIONS", "COMMON_PERTURBATIONS", "EXTRA_CORRUPTIONS",
    "EXTRA_PERTURBATIONS", "LARGEST_TOP5_DISTANCE", "NOISE_PERTURBATIONS", "SEVERITIES", "DetectionRates",
    "RunningMean", "alexnet_balanced_errors", "anomaly_scores", "area_under_distortion_error",
    "areas_under_distortion_error", "aupr", "balanced_corruption_error", "balanced_error", "bootstrap_means",
    "brier_score", "brier_scores", "confidences", "corruption_error", "corruption_errors", "count_pixels",
    "depth_corruption_error", "depth_estimation_error", "detection_rates", "draw_weights",
    "flip_probability", "flip_rate", "imagenet_a_accuracy", "imagenet_o_aupr", "images_needed",
    "intersections_over_union", "jensen_shannon", "list_superclasses", "mean_area_under_distortion_error",
    "mean_balanced_corruption_error", "mean_corruption_error", "mean_flip_probability", "mean_flip_rate",
    "mean_intersection_over_union", "mean_performance_under_corruption",
    "mean_relative_balanced_corruption_error", "mean_top5_distance", "multi_label_balanced_error",
    "percentile_interval", "published_accuracies", "published_performance",
    "relative_balanced_corruption_error", "relative_corruption_error", "relative_corruption_errors",
    "relative_mean_corruption_error", "relative_performance_under_corruption", "resilience_rate",
    "rms_calibration_error", "sequence_flips", "sequence_top5_distances", "sequence_zipf_distances",
    "softmax", "standardised_top5_distance", "superclass_accuracy", "superclass_labels",
    "superclass_predictions", "superclass_probabilities", "top1_error", "top1_mistakes", "top5_distance",
    "top_classes", "unnormalised_corruption_error", "unnormalised_corruption_errors",
    "unnormalised_mean_corruption_error", "unnormalised_mean_top5_distance", "unnormalised_top5_distance",
    "unnormalised_zipf_distance", "zipf_distance",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
