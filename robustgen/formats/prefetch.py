"""Reading ahead: the next pieces are read by threads while one is worked on."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final, TypeVar

AHEAD: Final = 2
"""How many pieces are read ahead, each by a thread of its own."""

_Place = TypeVar("_Place")
_Piece = TypeVar("_Piece")


def prefetch(
    read: Callable[[_Place], _Piece], places: Iterable[_Place], ahead: int = AHEAD
) -> Iterator[_Piece]:
    """Yield `read` of all `places` in order, a few of them begun before they are asked for."""
    rest = iter(places)
    with ThreadPoolExecutor(ahead) as pool:
        waiting = deque(pool.submit(read, place) for place in islice(rest, ahead))
        while waiting:
            piece = waiting.popleft().result()
            waiting.extend(pool.submit(read, place) for place in islice(rest, 1))
            yield piece
