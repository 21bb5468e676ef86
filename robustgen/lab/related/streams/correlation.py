"""Orders in which images of a class come together, by Dirichlet distributions.

Yuan, Xie and Li, "Robust Test-Time Adaptation in Dynamic Scenarios" (CVPR 2023), and its code, RoTTA. Gong et
al., "NOTE: Robust Continual Test-time Adaptation Against Temporal Correlation" (NeurIPS 2022), and its code.
"""

import time
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from robustgen.errors import ArgumentError
from robustgen.pixels.imaging.rng import dirichlet
from robustgen.settings.streams import Law

Indices = npt.NDArray[np.int64]

# As in the code of RoTTA.
_PUBLISHED_SLOTS: Final = 100
# As in the code of NOTE.
_FEWEST_IN_A_SLOT: Final = 10
_PATIENCE_S: Final = 120


def draw_correlated(
    labels: npt.NDArray[np.integer],
    concentration: float,
    slots: int | None,
    rng: np.random.Generator,
    law: Law = "rotta",
) -> Indices:
    """Draw an order in which images of a class come together.

    Each class is divided among the slots in shares from a Dirichlet distribution. The slots follow each
    other; within a slot the pieces of the classes come in a random order.

    Parameters
    ----------
    labels : int ndarray of shape (N,)
    concentration : float
        0.001 to 1000; the value of all parameters of the distribution.
    slots : int or None
        1 to 10000; None for the number of classes, by RoTTA's law at most 100.
    rng : numpy.random.Generator
    law : {"rotta", "note"}
        By NOTE's law, a slot that has its share of the images gets no more, and everything is drawn again
        until every slot has ten.

    Returns
    -------
    int64 ndarray of shape (N,)
        Indices of the images.

    Raises
    ------
    ArgumentError
        By NOTE's law, the slots cannot be filled.
    """
    classes, numbers = np.unique(labels, return_inverse=True)
    count = slots or (min(len(classes), _PUBLISHED_SLOTS) if law == "rotta" else len(classes))
    images = rng.permutation(len(labels))
    numbers = numbers[images]
    sizes = np.bincount(numbers, minlength=len(classes))
    divide = _divide_by_rotta if law == "rotta" else _divide_by_note
    slot = np.empty_like(images)
    for number, ends in enumerate(divide(sizes, count, concentration, rng)):
        # The slot of each image of a class, ascending, by the end of each slot's share.
        slot[numbers == number] = np.searchsorted(ends, np.arange(sizes[number]), side="right")
    turns = rng.permuted(np.tile(np.arange(len(classes)), (count, 1)), axis=1)
    # Stable, so that the images of a piece stay shuffled.
    return images[np.lexsort((turns[slot, numbers], slot))]


def _divide_by_rotta(
    sizes: Indices, slots: int, concentration: float, rng: np.random.Generator
) -> Iterator[Indices]:
    """Yield for each class the number of its images in the first slot, the first two, and so on."""
    for size in sizes:
        yield _cut(dirichlet(rng, concentration, slots), size)


def _divide_by_note(
    sizes: Indices, slots: int, concentration: float, rng: np.random.Generator
) -> list[Indices]:
    """Return the result of `_divide_by_rotta`, with slots that are closed when they have their share."""
    total = int(sizes.sum())
    if total < _FEWEST_IN_A_SLOT * slots:
        raise ArgumentError(
            f"law note: {total} images do not fill {slots} slots with {_FEWEST_IN_A_SLOT} each; "
            "use fewer slots"
        )
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        held = np.zeros(slots)
        ends = []
        for size in sizes:
            shares = dirichlet(rng, concentration, slots) * (held < total / slots)
            if not shares.sum():
                break
            ends.append(_cut(shares / shares.sum(), size))
            held += np.diff(ends[-1], prepend=0, append=size)
        if len(ends) == len(sizes) and held.min() >= _FEWEST_IN_A_SLOT:
            return ends
    raise ArgumentError(
        f"law note: in {_PATIENCE_S} s no division gave every slot {_FEWEST_IN_A_SLOT} images; "
        "use fewer slots, or a larger concentration"
    )


def _cut(shares: npt.NDArray[np.float64], size: int) -> Indices:
    ends: Indices = (np.cumsum(shares)[:-1] * size).astype(np.int64)
    return ends
