"""Worker process, which runs jobs from its standard input and writes their results to its standard output."""

import os
import pickle
import signal
import sys
import threading
import traceback
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, NoReturn

from robustgen.execution.base import run_job
from robustgen.files.storage.memory import collect_garbage_rarely, keep_freed_memory

_SECONDS_IDLE: Final = 300


def serve() -> NoReturn:
    """Run jobs until the parent process has ended, or has sent none for five minutes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    received, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What plug-ins read and print must not mix with jobs and results.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    sys.stdout = sys.stderr
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
