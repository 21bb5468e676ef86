"""RoboDepth: errors of depth estimation over severities, and the resilience of a model.

Kong et al., "RoboDepth" (NeurIPS 2023). All values are fractions.
"""

import numpy as np
from numpy.typing import ArrayLike

from robustgen.errors import ArgumentError
from robustgen.metrics.checks import bounded, number
from robustgen.metrics.formulas import check_positive


def depth_estimation_error(relative_error: float, accuracy: float) -> float:
    """Return DEE of the absolute relative error and of the share of pixels within a factor of 1.25 (d1)."""
    return (number(relative_error, "relative_error", np.inf) - number(accuracy, "accuracy") + 1) / 2


def depth_corruption_error(errors: ArrayLike, baseline: ArrayLike) -> float:
    """Return CE of one corruption: the sum of DEE over its severities, divided by the baseline's."""
    own = bounded(errors, "errors", "severities", np.inf)
    others = bounded(baseline, "baseline", "severities", np.inf)
    if own.shape != others.shape:
        raise ArgumentError(f"errors at {len(own)} severities, the baseline's at {len(others)}")
    return float(own.sum() / check_positive(float(others.sum()), "the corruption"))


def resilience_rate(errors: ArrayLike, clean_error: float) -> float:
    """Return RR of one corruption: the mean over severities of 1 - DEE, divided by that of clean images."""
    own = bounded(errors, "errors", "severities", np.inf)
    left = 1 - number(clean_error, "clean_error", np.inf)
    return float((1 - own).mean() / check_positive(left, "clean images"))
