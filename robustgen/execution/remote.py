"""Jobs for the machines of a cluster, where robustgen may be missing or have another version."""

import pickle
from collections.abc import Callable
from typing import Any, Final

from robustgen.errors import WriteError
from robustgen.execution.base import Job
from robustgen.execution.progress import Reporter

JOBS_AHEAD: Final = 500
"""Number of jobs submitted at a time, which keeps clusters of some hundred cores busy."""


def pack(job: Job[Any], reporter: Reporter) -> bytes:
    """Return a job as bytes, which a worker unpickles only after comparing versions."""
    return pickle.dumps((job, reporter))


def make_task() -> Callable[[bytes, str], tuple[str, Any]]:
    """Return a function that runs a packed job; it returns why it cannot, or ``""``, and the result."""

    # Dask and Ray send the code of a nested function, which runs even where robustgen is missing.
    def run_packed(packed: bytes, release: str) -> tuple[str, Any]:
        import pickle
        import socket

        worker = f"worker on {socket.gethostname()}"
        try:
            import robustgen.execution.base
        except ImportError as error:
            return f"{worker} cannot import robustgen {release} ({error}); install it there", None
        if robustgen.__version__ != release:
            found = robustgen.__version__
            return f"{worker} has robustgen {found}, this run {release}; install the same version there", None
        job, reporter = pickle.loads(packed)
        return "", job.run(reporter)

    return run_packed


def take_result(answer: tuple[str, Any], cluster: str) -> Any:
    """Return the result of a task from its answer.

    Raises
    ------
    WriteError
        The worker cannot run jobs of this version.
    """
    refusal, result = answer
    if refusal:
        raise WriteError(f"{cluster}: {refusal}")
    return result
