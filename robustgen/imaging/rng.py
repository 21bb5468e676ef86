"""The random generators that operations draw from."""

from typing import Any

import numpy as np

Rng = np.random.Generator | np.random.RandomState


def integers(rng: Rng, low: int, high: int, size: tuple[int, ...] | None = None) -> Any:
    """Integers in [low, high) from either kind of generator."""
    draw = rng.randint if isinstance(rng, np.random.RandomState) else rng.integers
    return draw(low, high, size)


def spawn(rng: Rng) -> Rng:
    """Where a published function seeds a generator of its own: that one, or `rng` itself if a `Generator`."""
    if isinstance(rng, np.random.RandomState):
        return np.random.RandomState(rng.randint(0, 2**32))
    return rng
