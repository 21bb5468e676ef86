"""Jobs for the machines of a cluster, whose workers may lack robustgen or have another release of it."""

import pickle
from collections.abc import Callable
from typing import Any

from robustgen.errors import WriteError
from robustgen.execution.base import Job
from robustgen.execution.progress import Reporter


def pack(job: Job[Any], reporter: Reporter) -> bytes:
    """Return a job as bytes, which a worker reads only after it has compared releases."""
    return pickle.dumps((job, reporter))


def make_task() -> Callable[[bytes, str], tuple[str, Any]]:
    """Return a function that runs a packed job and returns why it cannot, or ``""``, and the result."""

    # Nested, because Dask and Ray then send its code, which runs where robustgen is missing too.
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
            return f"{worker} has robustgen {found}, this run {release}; install the same one there", None
        job, reporter = pickle.loads(packed)
        return "", job.run(reporter)

    return run_packed


def take_result(answer: tuple[str, Any], cluster: str) -> Any:
    """Return the result in the answer of a task.

    Raises
    ------
    WriteError
        The worker cannot run jobs of this release.
    """
    refusal, result = answer
    if refusal:
        raise WriteError(f"{cluster}: {refusal}")
    return result
