"""Streams in which corruption and class follow a Markov chain.

Du et al., "UniTTA: Unified Benchmark and Versatile Framework Towards Realistic Test-Time Adaptation" (2024),
section 3.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from robustgen.settings.streams import Drawing

Shares = npt.NDArray[np.float64]
# From this share on, the open states are listed instead of drawing until one is found.
_MOST_TRIES: Final = 50


@dataclass(frozen=True)
class Factor:
    """One of the two variables of the chain: the class, or the corruption.

    Attributes
    ----------
    shares : float ndarray of shape (n,)
        Relative frequency of each state; that of the first is 1.
    stays : float ndarray of shape (n,)
        The probability that each state is followed by itself; all others are equally likely.
    consistent : bool
        Whether the chain itself has the `shares`, so that no state has to be closed.
    """

    shares: Shares
    stays: Shares
    consistent: bool

    def step(self, state: int, rng: np.random.Generator) -> int:
        """Draw the state after `state`."""
        count = len(self.stays)
        if count == 1 or rng.random() < self.stays[state]:
            return state
        other = int(rng.integers(count - 1))
        return other + (other >= state)

    def row(self, state: int) -> Shares:
        """Return the probabilities of all states after `state`."""
        count = len(self.stays)
        row = np.full(count, (1 - self.stays[state]) / max(count - 1, 1))
        row[state] = self.stays[state] if count > 1 else 1.0
        return row


def describe_factor(count: int, correlation: float, imbalance: float) -> Factor:
    """Return the chain over `count` states with this highest correlation and this imbalance."""
    places = np.arange(count) / max(count - 1, 1)
    leaves = imbalance * (1 - correlation)
    consistent = count == 1 or (correlation < 1 and leaves <= 1 - 1 / count)
    stays = 1 - imbalance ** (places - 1) * leaves if consistent else np.full(count, correlation)
    return Factor(imbalance**-places, stays, consistent)


def draw_chain(
    labels: Sequence[int], domains: int, chain: Drawing, rng: np.random.Generator
) -> Iterator[tuple[int, int]]:
    """Draw the steps of a chain: the index of an image, and the number of its corruption.

    The images of a class come in a shuffled order for each corruption, and start again after the last one.
    The stream begins with the first corruption and the first class.

    Parameters
    ----------
    labels : sequence of int
        Classes of the images.
    domains : int
        Number of corruptions.
    chain : Drawing
        Correlations, imbalances and number of samples.
    rng : numpy.random.Generator
    """
    numbers = np.unique(labels, return_inverse=True)[1]
    members = [np.flatnonzero(numbers == number) for number in range(int(numbers.max()) + 1)]
    by_domain = describe_factor(domains, chain.domain_correlation, chain.domain_imbalance)
    by_class = describe_factor(len(members), chain.class_correlation, chain.class_imbalance)
    most = chain.most_samples or max(map(len, members))
    bounds = np.rint(most * np.outer(by_domain.shares, by_class.shares)).astype(np.int64)
    is_open = bounds > 0
    # A chain that has these shares by itself ends with the first full state.
    free = by_domain.consistent and by_class.consistent
    given = np.zeros_like(bounds)
    rings: dict[tuple[int, int], npt.NDArray[np.int64]] = {}
    state = 0, 0
    while True:
        if state not in rings:
            rings[state] = rng.permutation(members[state[1]])
        yield int(rings[state][given[state] % len(rings[state])]), state[0]
        given[state] += 1
        if free and given[state] == most:
            return
        if not free and given[state] == bounds[state]:
            is_open[state] = False
            if not is_open.any():
                return
        state = _follow(state, by_domain, by_class, is_open, rng)


def _follow(
    state: tuple[int, int],
    by_domain: Factor,
    by_class: Factor,
    is_open: npt.NDArray[np.bool_],
    rng: np.random.Generator,
) -> tuple[int, int]:
    """Draw the next state, of those that are open."""
    for _ in range(_MOST_TRIES):
        following = by_domain.step(state[0], rng), by_class.step(state[1], rng)
        if is_open[following]:
            return following
    chances = np.outer(by_domain.row(state[0]), by_class.row(state[1])) * is_open
    if not chances.any():
        # With a correlation of 1 no state follows a closed one: any other may follow.
        chances = is_open.astype(np.float64)
    index = int(rng.choice(chances.size, p=chances.ravel() / chances.sum()))
    return index // chances.shape[1], index % chances.shape[1]
