"""Reading ahead: threads read the next pieces while one is processed."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final, TypeVar

AHEAD: Final = 2
"""Number of pieces read ahead, each by its own thread."""

_Place = TypeVar("_Place")
_Piece = TypeVar("_Piece")


def prefetch(
    read: Callable[[_Place], _Piece], places: Iterable[_Place], ahead: int = AHEAD
) -> Iterator[_Piece]:
    """Yield the results of `read` for all `places` in order, reading a few of them ahead."""
    rest = iter(places)
    with ThreadPoolExecutor(ahead) as pool:
        waiting = deque(pool.submit(read, place) for place in islice(rest, ahead))
        while waiting:
            piece = waiting.popleft().result()
            waiting.extend(pool.submit(read, place) for place in islice(rest, 1))
            yield piece
