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

import types

from robustgen.metrics.bootstrap import *
from robustgen.metrics.calibration import *
from robustgen.metrics.classification import *
from robustgen.metrics.corruption_errors import *
from robustgen.metrics.flips import *
from robustgen.metrics.mean_performance import *

# The names that each module lists as its own.
_NAMES = (name for name, value in [*globals().items()] if not isinstance(value, types.ModuleType))
__all__ = sorted(name for name in _NAMES if name[0] != "_")


def __dir__() -> list[str]:
    return __all__
