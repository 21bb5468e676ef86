"""Worker process, which runs jobs from its standard input and writes their results to its standard output."""

import os
import pickle
import signal
import threading
import traceback
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, NoReturn

from robustgen.files.storage.host import collect_garbage_rarely, keep_freed_memory, take_streams
from robustgen.sets.executors.base import run_job

_SECONDS_IDLE: Final = 300


def serve() -> NoReturn:
    """Run jobs until the parent process has ended, or has sent none for five minutes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    received, answers = take_streams()
    collect_garbage_rarely()
    keep_freed_memory()
    jobs = SimpleQueue[bytes]()

    def receive() -> None:
        with suppress(EOFError, OSError, pickle.UnpicklingError):
            while True:
                jobs.put(pickle.load(received))
        os._exit(1)

    with suppress(Empty, OSError, RuntimeError):
        threading.Thread(target=receive, daemon=True).start()
        while True:
            answers.write(_answer(jobs.get(timeout=_SECONDS_IDLE)))
            answers.flush()
    os._exit(1)


def _answer(packed: bytes) -> bytes:
    """Run a job; return its result, or its error and traceback."""
    try:
        job, reporter = pickle.loads(packed)
        return pickle.dumps((run_job(job, reporter), None, ""))
    except Exception as error:
        return pickle.dumps((None, error, traceback.format_exc()))
