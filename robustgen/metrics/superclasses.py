"""LAION-C: sixteen superclasses of ImageNet's classes, and the accuracy on them.

Li et al., "LAION-C" (ICML 2025), and its code.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from robustgen.errors import ArgumentError
from robustgen.metrics.checks import Classes, Floats, distributions, labels_of

IMAGENET_CLASSES: Final = 1000


@lru_cache(maxsize=1)
def _read() -> Mapping[str, Any]:
    content: dict[str, Any] = json.loads(Path(__file__).with_name("laion_c.json").read_text("utf-8"))
    return MappingProxyType(content)


def list_superclasses() -> Mapping[str, tuple[int, ...]]:
    """Return the 16 superclasses, ordered by their first class: name to indices of ImageNet's classes."""
    return {name: tuple(indices) for name, indices in _read()["superclasses"].items()}


def published_accuracies() -> Mapping[str, float]:
    """Return published mean accuracies in %, by model or human, over LAION-C's distortions and severities."""
    return dict(_read()["average_accuracy"])


def superclass_labels(labels: ArrayLike) -> Classes:
    """Return the superclass of each class of ImageNet, -1 for classes without one.

    Parameters
    ----------
    labels : array_like, (images,), int
        0 to 999, in the order of the WordNet ids.
    """
    superclasses = np.full(IMAGENET_CLASSES, -1, np.intp)
    for number, classes in enumerate(list_superclasses().values()):
        superclasses[list(classes)] = number
    return superclasses[labels_of(labels, np.size(labels), IMAGENET_CLASSES)]


def superclass_probabilities(probabilities: ArrayLike) -> Floats:
    """Return the mean probability of the classes of each superclass.

    Parameters
    ----------
    probabilities : array_like, (..., 1000), float
        Softmax over the classes of ImageNet, in the order of their WordNet ids.

    Returns
    -------
    ndarray, (..., 16), float64

    Raises
    ------
    ArgumentError
        The rows are not distributions over 1000 classes.
    """
    rows = distributions(probabilities)
    if rows.shape[-1] != IMAGENET_CLASSES:
        raise ArgumentError(f"superclasses need {IMAGENET_CLASSES} classes, not {rows.shape[-1]}")
    return np.stack([rows[..., list(each)].mean(axis=-1) for each in list_superclasses().values()], axis=-1)


def superclass_predictions(probabilities: ArrayLike) -> Classes:
    """Return the most probable superclass, the first of equal ones; see `superclass_probabilities`."""
    return np.asarray(superclass_probabilities(probabilities).argmax(axis=-1), np.intp)


def superclass_accuracy(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of images whose most probable superclass is the right one.

    Parameters
    ----------
    probabilities : array_like, (images, 1000), float
    labels : array_like, (images,), int
        True superclasses, 0 to 15 in the order of `list_superclasses`.

    Raises
    ------
    ArgumentError
        As in `superclass_probabilities`, or the labels do not match.
    """
    predictions = superclass_predictions(probabilities)
    if predictions.ndim != 1:
        raise ArgumentError("probabilities must have the shape (images, classes)")
    return float(np.mean(predictions == labels_of(labels, len(predictions), len(list_superclasses()))))
