"""Writing of several files of a store at once."""

import errno
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from typing import Any

from robustgen.files.storage.base import AT_ONCE, MOST_BYTES, Store


class Flight(Store):
    """Store of which several files are written at once, each by its own thread.

    Attributes
    ----------
    written : list of str
        Files that a thread has written.
    """

    @contextmanager
    def fly(self) -> Iterator["Flight"]:
        """Open this store for a block; see `Store.open_flight`."""
        # Cannot be imported when Python ends, whereas this module can.
        from concurrent.futures import ThreadPoolExecutor

        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._under_way, self.written = dict[Future[None], tuple[str, int]](), list[str]()
        self._failure: BaseException | None = None
        try:
            yield self
        except BaseException as error:
            if (failure := self._land()) and isinstance(error, OSError):
                raise failure from None
            raise
        if failure := self._land():
            raise failure

    def begin(self, path: str, size: int, act: Callable[..., None], *arguments: Any) -> None:
        """Call `act` for a file when not too many files and bytes are under way."""
        # fsspec reads up to 100 MB of a file into memory at once.
        size = min(size, MOST_BYTES)
        self._collect()
        while len(self._under_way) >= AT_ONCE or self._count_bytes() > MOST_BYTES - size:
            wait(self._under_way, return_when=FIRST_COMPLETED)
            self._collect()
        if self._failure:
            # The block raises the failure itself.
            raise OSError(errno.ECANCELED, "an earlier file could not be written", f"{self.location}/{path}")
        self._under_way[self._pool.submit(act, path, *arguments)] = path, size

    def delete(self, path: str) -> None:
        """Delete a file after everything under way."""
        wait(self._under_way)
        super().delete(path)  # type: ignore[safe-super]

    def _land(self) -> BaseException | None:
        """Wait for everything under way; return the first error."""
        self._pool.shutdown()
        self._collect()
        return self._failure

    def _count_bytes(self) -> int:
        return sum(size for _, size in self._under_way.values())

    def _collect(self) -> None:
        for each in [each for each in self._under_way if each.done()]:
            path, _ = self._under_way.pop(each)
            if error := each.exception():
                self._failure = self._failure or error
            else:
                self.written.append(path)
