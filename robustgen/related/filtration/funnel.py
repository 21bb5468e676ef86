"""Decisions on which images stay, using only arrays, no files or models.

Hendrycks et al., "Natural Adversarial Examples", section 3.1. The numbers of its dragonflies, from
candidates to ImageNet-A: 81 413, 8 925, 1 452, 80.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import ArgumentError

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

MAX_CONFIDENCE: Final = 0.15
"""Highest confidence that a model may have in the true class; section 3.1."""
PER_CONFUSION: Final = 15
"""Highest number of images of one confusion; section 3.1."""
MIN_CONFIDENCE: Final = 0.9
"""Lowest confidence in a wrong class, for ImageNet-O; the paper says "high" and gives no number."""


class FunnelStep(IntEnum):
    """Step at which an image leaves the funnel."""

    KEPT = 0
    CORRECT = 1
    CONFIDENT = 2
    CROWDED = 3
    KNOWN = 4
    UNSURE = 5


@dataclass(frozen=True)
class Opinions:
    """Predictions of the models for images.

    Attributes
    ----------
    right : (models, images), integer
        Number of crops whose prediction is the true class.
    truth : (models, images), float
        Confidence in the true class: mean probability over the crops.
    own : (models, images), integer
        The model's prediction: the class with the highest mean probability over the crops.
    sure : (models, images), float
        Its confidence in that class.
    predicted : (images,), integer
        The joint prediction of the models: of all classes except the true one, the one with the highest mean
        probability over crops and models.
    confidence : (images,), float
        Mean probability of that class.
    """

    right: Whole
    truth: Floats
    own: Whole
    sure: Floats
    predicted: Whole
    confidence: Floats

    @classmethod
    def blank(cls, models: int, images: int) -> "Opinions":
        """Return empty predictions of that many models for that many images."""
        every, each = (models, images), (images,)
        return cls(
            np.zeros(every, np.int64),
            np.zeros(every),
            np.zeros(every, np.int64),
            np.zeros(every),
            np.zeros(each, np.int64),
            np.zeros(each),
        )

    def put(self, at: int, other: "Opinions", index: int) -> None:
        """Copy the predictions for the image `index` of `other` to the image `at`."""
        for field in fields(self):
            getattr(self, field.name)[..., at] = getattr(other, field.name)[..., index]

    def select(self, index: NDArray[np.intp]) -> "Opinions":
        """Return the predictions for the images at `index`."""
        return Opinions(*(getattr(self, field.name)[..., index] for field in fields(self)))


def summarise_opinions(probabilities: Floats, true: Whole | None = None) -> Opinions:
    """Summarise the probabilities of the models.

    Parameters
    ----------
    probabilities : (models, images, crops, classes), float
        Of equal ones, the first class is the prediction.
    true : (images,), integer, optional
        True classes; None for images of unknown classes.

    Raises
    ------
    ArgumentError
        There is no class except the true one.
    """
    means = probabilities.mean(axis=2)
    together = means.mean(axis=0)
    own = means.argmax(axis=2)
    right, truth = np.zeros(own.shape, np.int64), np.zeros(own.shape)
    if true is not None:
        if together.shape[1] < 2:
            raise ArgumentError("confusing classes needs at least two of them")
        every = np.arange(len(true))
        right = (probabilities.argmax(axis=3) == true[:, None]).sum(axis=2)
        truth = means[:, every, true]
        together[every, true] = -1
    sure = np.take_along_axis(means, own[..., None], axis=2)[..., 0]
    return Opinions(right, truth, own, sure, together.argmax(axis=1), together.max(axis=1))


def judge_adversarial(
    said: Opinions,
    true: Whole,
    keys: Sequence[str],
    *,
    max_confidence: float = MAX_CONFIDENCE,
    per_confusion: int = PER_CONFUSION,
) -> Whole:
    """Return the step at which each candidate for ImageNet-A leaves the funnel.

    An image is removed if any crop of any model is right (`CORRECT`); if any model gives the true class
    more than `max_confidence` (`CONFIDENT`); or if its confusion, true and predicted class, has
    `per_confusion` images with a lower probability of the true class (`CROWDED`). That probability is
    the highest of all models. Of equal images, the first by key stays.

    Parameters
    ----------
    said : Opinions
    true : (images,), integer
    keys : sequence of str

    Returns
    -------
    (images,), integer
        `FunnelStep` of each image.
    """
    steps = np.full(len(true), FunnelStep.KEPT, np.int64)
    steps[(said.truth > max_confidence).any(axis=0)] = FunnelStep.CONFIDENT
    steps[(said.right > 0).any(axis=0)] = FunnelStep.CORRECT
    left = np.flatnonzero(steps == FunnelStep.KEPT)
    ranks = rank_in_confusions(said.select(left), true[left], [keys[index] for index in left.tolist()])
    steps[left[ranks > per_confusion]] = FunnelStep.CROWDED
    return steps


def rank_in_confusions(said: Opinions, true: Whole, keys: Sequence[str]) -> Whole:
    """Return the rank of each image in its confusion, from 1, by probability of the true class."""
    surest = said.truth.max(axis=0)
    order = sorted(range(len(keys)), key=lambda i: (true[i], said.predicted[i], surest[i], keys[i]))
    ranks = np.zeros(len(keys), np.int64)
    before, rank = None, 0
    for index in order:
        confusion = (true[index], said.predicted[index])
        rank = rank + 1 if confusion == before else 1
        ranks[index], before = rank, confusion
    return ranks


def judge_outlying(
    said: Opinions, known: NDArray[np.bool_], *, min_confidence: float = MIN_CONFIDENCE
) -> Whole:
    """Return the step at which each candidate for ImageNet-O leaves the funnel.

    An image is removed if the models know its class (`KNOWN`), or if the confidence of any model in its
    prediction is below `min_confidence` (`UNSURE`).

    Parameters
    ----------
    said : Opinions
    known : (images,), bool

    Returns
    -------
    (images,), integer
        `FunnelStep` of each image.
    """
    unsure = (said.sure < min_confidence).any(axis=0)
    return np.where(known, FunnelStep.KNOWN, np.where(unsure, FunnelStep.UNSURE, FunnelStep.KEPT)).astype(
        np.int64
    )


def count_left(steps: Whole, order: Sequence[FunnelStep]) -> list[int]:
    """Return the number of images at first and after each step of `order`."""
    counts = [len(steps)]
    for step in order:
        counts.append(counts[-1] - int((steps == step).sum()))
    return counts
