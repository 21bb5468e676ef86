"""One function over many files, in this process or in several."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

from robustgen.errors import WriteError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_AHEAD = 2
_work: list[Callable[[Any], Any]] = []


def map_files(work: Callable[[_Item], _Result], items: Iterable[_Item], jobs: int) -> Iterator[_Result]:
    """Yield the results of `work` for the items, in order; several processes get a copy of it each."""
    if jobs == 1:
        yield from map(work, items)
        return
    # joblib would pickle the work for each item: 33 MB for the paths of 5,000 label maps in 76 variants.
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _keep, (work,))
    waiting: deque[Future[_Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(_call, item))
            # Unconsumed results would fill the memory.
            if len(waiting) > _AHEAD * jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise WriteError("a worker died (killed, or out of memory): use fewer jobs") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _keep(work: Callable[[Any], Any]) -> None:
    _work[:] = [work]


def _call(item: Any) -> Any:
    return _work[0](item)
