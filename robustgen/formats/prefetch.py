"""Reading ahead: the next pieces are read by threads while one is worked on."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

AHEAD: Final = 2
"""How many pieces are read ahead, each by a thread of its own."""

_Place = TypeVar("_Place")
_Piece = TypeVar("_Piece")


def prefetch(read: Callable[[_Place], _Piece], places: Sequence[_Place]) -> Iterator[_Piece]:
    """`read` of all `places` in order, a few of them begun before they are asked for."""
    with ThreadPoolExecutor(AHEAD) as pool:
        waiting: list[Future[_Piece]] = [pool.submit(read, place) for place in places[:AHEAD]]
        for number in range(len(places)):
            piece = waiting.pop(0).result()
            if number + AHEAD < len(places):
                waiting.append(pool.submit(read, places[number + AHEAD]))
            yield piece
