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

from robustgen.metrics.bootstrap import bootstrap_means as bootstrap_means
from robustgen.metrics.bootstrap import draw_weights as draw_weights
from robustgen.metrics.bootstrap import images_needed as images_needed
from robustgen.metrics.bootstrap import percentile_interval as percentile_interval
from robustgen.metrics.calibration import CALIBRATION_BIN as CALIBRATION_BIN
from robustgen.metrics.calibration import DetectionRates as DetectionRates
from robustgen.metrics.calibration import RunningMean as RunningMean
from robustgen.metrics.calibration import anomaly_scores as anomaly_scores
from robustgen.metrics.calibration import aupr as aupr
from robustgen.metrics.calibration import brier_score as brier_score
from robustgen.metrics.calibration import brier_scores as brier_scores
from robustgen.metrics.calibration import detection_rates as detection_rates
from robustgen.metrics.calibration import imagenet_a_accuracy as imagenet_a_accuracy
from robustgen.metrics.calibration import imagenet_o_aupr as imagenet_o_aupr
from robustgen.metrics.calibration import rms_calibration_error as rms_calibration_error
from robustgen.metrics.classification import COMMON_CORRUPTIONS as COMMON_CORRUPTIONS
from robustgen.metrics.classification import COMMON_PERTURBATIONS as COMMON_PERTURBATIONS
from robustgen.metrics.classification import EXTRA_CORRUPTIONS as EXTRA_CORRUPTIONS
from robustgen.metrics.classification import EXTRA_PERTURBATIONS as EXTRA_PERTURBATIONS
from robustgen.metrics.classification import NOISE_PERTURBATIONS as NOISE_PERTURBATIONS
from robustgen.metrics.classification import SEVERITIES as SEVERITIES
from robustgen.metrics.classification import confidences as confidences
from robustgen.metrics.classification import count_pixels as count_pixels
from robustgen.metrics.classification import intersections_over_union as intersections_over_union
from robustgen.metrics.classification import jensen_shannon as jensen_shannon
from robustgen.metrics.classification import mean_intersection_over_union as mean_intersection_over_union
from robustgen.metrics.classification import softmax as softmax
from robustgen.metrics.classification import top1_error as top1_error
from robustgen.metrics.classification import top1_mistakes as top1_mistakes
from robustgen.metrics.classification import top_classes as top_classes
from robustgen.metrics.clips import mean_performance_under_corruption as mean_performance_under_corruption
from robustgen.metrics.clips import published_performance as published_performance
from robustgen.metrics.clips import (
    relative_performance_under_corruption as relative_performance_under_corruption,
)
from robustgen.metrics.corruption_errors import ALEXNET_CLEAN_ERROR as ALEXNET_CLEAN_ERROR
from robustgen.metrics.corruption_errors import ALEXNET_ERROR as ALEXNET_ERROR
from robustgen.metrics.corruption_errors import ALEXNET_FLIP_PROBABILITY as ALEXNET_FLIP_PROBABILITY
from robustgen.metrics.corruption_errors import ALEXNET_TOP5_DISTANCE as ALEXNET_TOP5_DISTANCE
from robustgen.metrics.corruption_errors import alexnet_balanced_errors as alexnet_balanced_errors
from robustgen.metrics.corruption_errors import area_under_distortion_error as area_under_distortion_error
from robustgen.metrics.corruption_errors import areas_under_distortion_error as areas_under_distortion_error
from robustgen.metrics.corruption_errors import balanced_corruption_error as balanced_corruption_error
from robustgen.metrics.corruption_errors import balanced_error as balanced_error
from robustgen.metrics.corruption_errors import corruption_error as corruption_error
from robustgen.metrics.corruption_errors import corruption_errors as corruption_errors
from robustgen.metrics.corruption_errors import depth_corruption_error as depth_corruption_error
from robustgen.metrics.corruption_errors import depth_estimation_error as depth_estimation_error
from robustgen.metrics.corruption_errors import list_superclasses as list_superclasses
from robustgen.metrics.corruption_errors import (
    mean_area_under_distortion_error as mean_area_under_distortion_error,
)
from robustgen.metrics.corruption_errors import (
    mean_balanced_corruption_error as mean_balanced_corruption_error,
)
from robustgen.metrics.corruption_errors import mean_corruption_error as mean_corruption_error
from robustgen.metrics.corruption_errors import (
    mean_relative_balanced_corruption_error as mean_relative_balanced_corruption_error,
)
from robustgen.metrics.corruption_errors import multi_label_balanced_error as multi_label_balanced_error
from robustgen.metrics.corruption_errors import published_accuracies as published_accuracies
from robustgen.metrics.corruption_errors import (
    relative_balanced_corruption_error as relative_balanced_corruption_error,
)
from robustgen.metrics.corruption_errors import relative_corruption_error as relative_corruption_error
from robustgen.metrics.corruption_errors import relative_corruption_errors as relative_corruption_errors
from robustgen.metrics.corruption_errors import (
    relative_mean_corruption_error as relative_mean_corruption_error,
)
from robustgen.metrics.corruption_errors import resilience_rate as resilience_rate
from robustgen.metrics.corruption_errors import superclass_accuracy as superclass_accuracy
from robustgen.metrics.corruption_errors import superclass_labels as superclass_labels
from robustgen.metrics.corruption_errors import superclass_predictions as superclass_predictions
from robustgen.metrics.corruption_errors import superclass_probabilities as superclass_probabilities
from robustgen.metrics.corruption_errors import unnormalised_corruption_error as unnormalised_corruption_error
from robustgen.metrics.corruption_errors import (
    unnormalised_corruption_errors as unnormalised_corruption_errors,
)
from robustgen.metrics.corruption_errors import (
    unnormalised_mean_corruption_error as unnormalised_mean_corruption_error,
)
from robustgen.metrics.flips import LARGEST_TOP5_DISTANCE as LARGEST_TOP5_DISTANCE
from robustgen.metrics.flips import flip_probability as flip_probability
from robustgen.metrics.flips import flip_rate as flip_rate
from robustgen.metrics.flips import mean_flip_probability as mean_flip_probability
from robustgen.metrics.flips import mean_flip_rate as mean_flip_rate
from robustgen.metrics.flips import mean_top5_distance as mean_top5_distance
from robustgen.metrics.flips import sequence_flips as sequence_flips
from robustgen.metrics.flips import sequence_top5_distances as sequence_top5_distances
from robustgen.metrics.flips import sequence_zipf_distances as sequence_zipf_distances
from robustgen.metrics.flips import standardised_top5_distance as standardised_top5_distance
from robustgen.metrics.flips import top5_distance as top5_distance
from robustgen.metrics.flips import unnormalised_mean_top5_distance as unnormalised_mean_top5_distance
from robustgen.metrics.flips import unnormalised_top5_distance as unnormalised_top5_distance
from robustgen.metrics.flips import unnormalised_zipf_distance as unnormalised_zipf_distance
from robustgen.metrics.flips import zipf_distance as zipf_distance
