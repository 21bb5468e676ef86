"""Chooses an executor and carries jobs out with it, whoever dies meanwhile."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Final, TypeVar

from robustgen.display.progress import print_line
from robustgen.errors import ConfigError, WriteError
from robustgen.execution.base import Executor, Job, Result, WorkersLostError
from robustgen.execution.progress import Progress
from robustgen.execution.this_process import ThisProcess

Name = TypeVar("Name", bound=Hashable)
_MOST_DEATHS = 3
_TOGETHER = "--backend dask and --scheduler ADDRESS go together; --address belongs to --backend ray"


def count_cores() -> int:
    """Return how many cores the machine, or the container, gives us."""
    from joblib import cpu_count

    return int(cpu_count())


def _open_dask(address: str | None) -> Executor:
    if address is None:
        raise ConfigError(_TOGETHER)
    from robustgen.execution.dask import DaskCluster

    return DaskCluster(address)


def _open_ray(address: str | None) -> Executor:
    from robustgen.execution.ray import RayCluster

    return RayCluster(address or "auto")


_CLUSTERS: Final[Mapping[str, Callable[[str | None], Executor]]] = {
    "dask": _open_dask,
    "ray": _open_ray,
}
BACKENDS: Final = ("loky", *_CLUSTERS)
"""Names of `--backend`: loky is this machine."""


def open_cluster(backend: str, address: str | None) -> Executor | None:
    """Return the executor of the cluster at `address`; None for the backend loky, which is this machine.

    Raises
    ------
    ConfigError
        The address is missing, or there is nothing that it could belong to.
    """
    if backend in _CLUSTERS:
        return _CLUSTERS[backend](address)
    if address is not None:
        raise ConfigError(_TOGETHER)
    return None


def open_executor(workers: int) -> Executor:
    """Return the executor for `workers` processes of this machine."""
    if workers == 1:
        return ThisProcess()
    from robustgen.execution.processes import Processes

    return Processes(workers)


def carry_out(
    jobs: Mapping[Name, Job[Result]],
    name_of: Callable[[Result], Name],
    workers: int,
    progress: Progress,
    cluster: Executor | None = None,
    remedy: str = "",
) -> Iterator[Result]:
    """Run all `jobs`, in order of their start, and yield their results; lost ones run again.

    Parameters
    ----------
    jobs : mapping
        Name of each job to the job.
    name_of : callable
        Returns from a result the name of its job.
    workers : int
        Processes at most.
    progress : Progress
    cluster : Executor, optional
        Runs the jobs elsewhere instead.
    remedy : str
        Ends the message if workers keep dying.

    Raises
    ------
    WriteError
        The output cannot be written any more, or workers keep dying.
    """
    left, deaths = dict(jobs), 0
    while left:
        executor = cluster or open_executor(min(workers, len(left)))
        progress.forget_workers()
        progress.describe, before = executor.describe_silence, len(left)
        try:
            for result in executor.map(list(left.values()), progress.reporter):
                del left[name_of(result)]
                yield result
        except WorkersLostError as error:
            deaths = 1 if len(left) < before else deaths + 1
            print_line(f"{error}; doing its work again")
            if deaths >= _MOST_DEATHS:
                raise WriteError(
                    f"workers keep dying; memory may be short: try fewer --jobs (now {workers}){remedy}"
                ) from None
