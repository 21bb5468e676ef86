"""Accuracy on corrupted clips, as Mini Kinetics-C and Mini SSV2-C define it.

Source: Yi et al., "Benchmarking the Robustness of Spatial-Temporal Models Against Corruptions" (NeurIPS 2021,
Datasets and Benchmarks).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robustgen.errors import ArgumentError
from robustgen.metrics.corruption_errors import read_published

__all__ = [
    "mean_performance_under_corruption", "published_performance", "relative_performance_under_corruption",
]  # fmt: skip


def mean_performance_under_corruption(errors: Mapping[str, Sequence[float]]) -> float:
    """Return mPC: the accuracy, 0 to 1, averaged over all corruptions and severities.

    Parameters
    ----------
    errors : mapping of str to sequence of float
        Corruption to the top-1 error at each severity, 0 to 1.

    Raises
    ------
    ArgumentError
        There are no errors.

    Examples
    --------
    >>> from robustgen.metrics import mean_performance_under_corruption
    >>> mean_performance_under_corruption({"fog": [0.2, 0.4], "rain": [0.3, 0.7]})
    0.6
    """
    if not errors or not all(map(len, errors.values())):
        raise ArgumentError("errors must have a corruption with at least one severity")
    return 1 - float(np.mean([error for each in errors.values() for error in each]))


def relative_performance_under_corruption(errors: Mapping[str, Sequence[float]], clean_error: float) -> float:
    """Return rPC: mPC divided by the accuracy on clean clips.

    Parameters
    ----------
    errors : mapping of str to sequence of float
        As for `mean_performance_under_corruption`.
    clean_error : float
        Top-1 error on the clean clips, 0 to 1.

    Raises
    ------
    ArgumentError
        There are no errors, or no clean clip is classified correctly.

    Examples
    --------
    >>> from robustgen.metrics import relative_performance_under_corruption
    >>> relative_performance_under_corruption({"fog": [0.25, 0.5]}, clean_error=0.0)
    0.625
    """
    if not clean_error < 1:
        raise ArgumentError(f"clean_error must be below 1, not {clean_error}")
    return mean_performance_under_corruption(errors) / (1 - clean_error)


def published_performance(edition: str) -> Mapping[str, Mapping[str, float]]:
    """Return the published ``"clean"``, ``"mpc"`` and ``"rpc"`` in %, by model.

    Parameters
    ----------
    edition : {"kinetics", "ssv2"}

    Raises
    ------
    ArgumentError
        Nothing was published for this edition.

    Examples
    --------
    >>> from robustgen.metrics import published_performance
    >>> published_performance("kinetics")["3D ResNet-18"]
    {'clean': 66.2, 'mpc': 53.3, 'rpc': 80.5}
    """
    rows: list[dict[str, Any]] = read_published("clips")["models"]
    keys = ("clean", "mpc", "rpc")
    found = {row["model"]: {key: row[key] for key in keys} for row in rows if row["edition"] == edition}
    if not found:
        known = ", ".join(sorted({row["edition"] for row in rows}))
        raise ArgumentError(f"nothing was published for edition {edition!r} (known: {known})")
    return found
