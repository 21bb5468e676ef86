"""Draws the order of a stream: which image comes when, with which corruption at which severity.

A stream consists of stretches, all images with one corruption at one severity. The settings differ in which
stretches there are and in the order within them; `draw_stream` knows all four.

Wang et al., "Continual Test-Time Domain Adaptation" (CVPR 2022), and its code, CoTTA: continual and gradual.
Yuan, Xie and Li, "Robust Test-Time Adaptation in Dynamic Scenarios" (CVPR 2023), and its code, RoTTA:
correlated. Marsden, Doebler and Yang, "Universal Test-Time Adaptation through Weight Ensembling, Diversity
Weighting, and Prior Correction" (WACV 2024): mixed.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from robustgen.streams.choices import StreamChoices

Indices = npt.NDArray[np.int64]

# As in the code of RoTTA.
_PUBLISHED_SLOTS = 100


class Step(NamedTuple):
    """One image of a stream: its index among the images, and what is made of it."""

    image: int
    corruption: str
    severity: float


def draw_stream(labels: Sequence[int], choices: StreamChoices, rng: np.random.Generator) -> Iterator[Step]:
    """Draw the steps of a stream, every image once in each stretch.

    Parameters
    ----------
    labels : sequence of int
        Classes of the images.
    choices : StreamChoices
    rng : numpy.random.Generator
    """
    stretches = [*_stretches(choices, rng)]
    if choices.setting == "mixed":
        yield from _mix(stretches, len(labels), rng)
        return
    for corruption, severity in stretches:
        if choices.setting == "correlated":
            order = draw_correlated(np.asarray(labels), choices.concentration, choices.slots, rng)
        else:
            order = rng.permutation(len(labels))
        yield from (Step(index, corruption, severity) for index in order.tolist())


def _stretches(choices: StreamChoices, rng: np.random.Generator) -> Iterator[tuple[str, float]]:
    """Corruption and severity of each stretch."""
    count = len(choices.corruptions)
    for place, number in enumerate(rng.permutation(count) if choices.shuffle else range(count)):
        descent = choices.severities[::-1]
        climb = () if place == 0 and choices.abrupt else choices.severities[:-1]
        yield from ((choices.corruptions[number], severity) for severity in (*climb, *descent))


def _mix(stretches: Sequence[tuple[str, float]], images: int, rng: np.random.Generator) -> Iterator[Step]:
    for number in rng.permutation(len(stretches) * images).tolist():
        stretch, index = divmod(number, images)
        yield Step(index, *stretches[stretch])


def draw_correlated(
    labels: npt.NDArray[np.integer], concentration: float, slots: int | None, rng: np.random.Generator
) -> Indices:
    """Draw an order in which like classes come together.

    Every class is spread over the slots in shares from a Dirichlet distribution; the slots follow each other,
    and within a slot the pieces of the classes stand in an order that is drawn.

    Parameters
    ----------
    labels : int ndarray of shape (N,)
    concentration : float
        0.001 to 1000; of all the distribution's parameters.
    slots : int or None
        1 to 10000; None for the number of classes, at most 100.
    rng : numpy.random.Generator

    Returns
    -------
    int64 ndarray of shape (N,)
        Indices of the images.
    """
    classes, numbers = np.unique(labels, return_inverse=True)
    count = slots or min(len(classes), _PUBLISHED_SLOTS)
    images = rng.permutation(len(labels))
    numbers = numbers[images]
    slot = np.empty_like(images)
    for number in range(len(classes)):
        members = np.flatnonzero(numbers == number)
        slot[members] = _divide(len(members), rng.dirichlet(np.full(count, concentration)))
    turns = rng.permuted(np.tile(np.arange(len(classes)), (count, 1)), axis=1)
    # Stable, so that the images of a piece stay shuffled.
    return images[np.lexsort((turns[slot, numbers], slot))]


def _divide(images: int, shares: npt.NDArray[np.float64]) -> Indices:
    """The slot of each image of a class, ascending, by the shares of the slots."""
    ends = (np.cumsum(shares)[:-1] * images).astype(np.int64)
    return np.searchsorted(ends, np.arange(images), side="right")
