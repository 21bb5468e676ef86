"""Accuracy on corrupted clips, as Mini Kinetics-C and Mini SSV2-C define it.

Source: Yi et al., "Benchmarking the Robustness of Spatial-Temporal Models Against Corruptions" (NeurIPS 2021,
Datasets and Benchmarks).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robustgen.errors import ArgumentError
from robustgen.metrics.corruption_errors import read_published


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
    """
    rows: list[dict[str, Any]] = read_published("clips")["models"]
    keys = ("clean", "mpc", "rpc")
    found = {row["model"]: {key: row[key] for key in keys} for row in rows if row["edition"] == edition}
    if not found:
        known = ", ".join(sorted({row["edition"] for row in rows}))
        raise ArgumentError(f"nothing was published for edition {edition!r} (known: {known})")
    return found
