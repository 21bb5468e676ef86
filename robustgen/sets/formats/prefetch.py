"""Reading ahead: threads read the next pieces while one is processed."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Final, TypeVar

AHEAD: Final = 2
"""Number of pieces read ahead, each by its own thread."""

_Place = TypeVar("_Place")
_Piece = TypeVar("_Piece")


def prefetch(
    read: Callable[[_Place], _Piece], places: Iterable[_Place], ahead: int = AHEAD
) -> Iterator[_Piece]:
    """Yield the results of `read` for all `places` in order, reading a few of them ahead."""
    waiting: deque[Future[_Piece]] = deque()
    with ThreadPoolExecutor(ahead) as pool:
        for place in places:
            # In the context of the caller, who may be quiet.
            waiting.append(pool.submit(copy_context().run, read, place))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        yield from (piece.result() for piece in waiting)
