"""Decisions on which images stay: on arrays alone, without any file or model.

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
"""Most confidence that a model may have in the true class; section 3.1."""
PER_CONFUSION: Final = 15
"""Most images of one confusion; section 3.1."""
MIN_CONFIDENCE: Final = 0.9
"""Least confidence in a wrong class, for ImageNet-O; the paper says "high" and gives no number."""


class Step(IntEnum):
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
        How many crops give the true class.
    truth : (models, images), float
        Confidence in the true class: mean probability over the crops.
    own : (models, images), integer
        The model's prediction: the class with the highest mean probability over the crops.
    sure : (models, images), float
        Its confidence in that.
    predicted : (images,), integer
        The class that the models together take it for: of those that are not the true class, the one with
        the highest mean probability over crops and models.
    confidence : (images,), float
        That mean probability.
    """

    right: Whole
    truth: Floats
    own: Whole
    sure: Floats
    predicted: Whole
    confidence: Floats

    @classmethod
    def blank(cls, models: int, images: int) -> "Opinions":
        """Room for the opinions of that many models on that many images."""
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
        """Take the opinions on the image `index` of `other` over as those on the image `at`."""
        for field in fields(self):
            getattr(self, field.name)[..., at] = getattr(other, field.name)[..., index]

    def select(self, index: NDArray[np.intp]) -> "Opinions":
        """Return the opinions on the images at `index`."""
        return Opinions(*(getattr(self, field.name)[..., index] for field in fields(self)))


def summarise_opinions(probabilities: Floats, true: Whole | None = None) -> Opinions:
    """Sum up what models say of images.

    Parameters
    ----------
    probabilities : (models, images, crops, classes), float
        Of equal ones the class that comes first is the prediction.
    true : (images,), integer, optional
        True classes; None for images of none of the classes.

    Raises
    ------
    ArgumentError
        There is no class but the true one.
    """
    means = probabilities.mean(axis=2)
    together = means.mean(axis=0)
    own = means.argmax(axis=2)
    right, truth = np.zeros(own.shape, np.int64), np.zeros(own.shape)
    if true is not None:
        if together.shape[1] < 2:
            raise ArgumentError("to confuse classes takes at least two of them")
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

    An image goes if any crop of any model is right (`Step.CORRECT`); if any model gives the true class more
    than `max_confidence` (`Step.CONFIDENT`); or if its confusion, true and predicted class, has
    `per_confusion` images whose true class the models are less sure of (`Step.CROWDED`). How sure they are
    is what the surest says. Of equally unsure ones the first by key stays.

    Parameters
    ----------
    said : Opinions
    true : (images,), integer
    keys : sequence of str

    Returns
    -------
    (images,), integer
        `Step` of each.
    """
    steps = np.full(len(true), Step.KEPT, np.int64)
    steps[(said.truth > max_confidence).any(axis=0)] = Step.CONFIDENT
    steps[(said.right > 0).any(axis=0)] = Step.CORRECT
    left = np.flatnonzero(steps == Step.KEPT)
    ranks = rank_in_confusions(said.select(left), true[left], [keys[index] for index in left.tolist()])
    steps[left[ranks > per_confusion]] = Step.CROWDED
    return steps


def rank_in_confusions(said: Opinions, true: Whole, keys: Sequence[str]) -> Whole:
    """Place of each image in its confusion, from 1; first come those whose true class seems least likely."""
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

    An image goes if it is of a class that the models know (`Step.KNOWN`), or if any model is less sure than
    `min_confidence` of what it takes it for (`Step.UNSURE`).

    Parameters
    ----------
    said : Opinions
    known : (images,), bool

    Returns
    -------
    (images,), integer
        `Step` of each.
    """
    unsure = (said.sure < min_confidence).any(axis=0)
    return np.where(known, Step.KNOWN, np.where(unsure, Step.UNSURE, Step.KEPT)).astype(np.int64)


def count_left(steps: Whole, order: Sequence[Step]) -> list[int]:
    """Return how many images there are at first, and how many are left after each step of `order`."""
    counts = [len(steps)]
    for step in order:
        counts.append(counts[-1] - int((steps == step).sum()))
    return counts
