"""Executors, which map any jobs to workers, report progress and survive dead workers."""

from collections.abc import Callable
from typing import Final

from robustgen.errors import (
    ArgumentError,
    ConfigError,
    RobustgenError,
    UnknownNameError,
    name_error,
    raise_as,
)
from robustgen.files.registry import Registry
from robustgen.sets.executors.base import Executor as Executor
from robustgen.sets.executors.base import Job as Job
from robustgen.sets.executors.base import Launcher as Launcher
from robustgen.sets.executors.base import WorkersLostError as WorkersLostError
from robustgen.sets.executors.jobs import count_cores as count_cores
from robustgen.sets.executors.jobs import submit_jobs as submit_jobs
from robustgen.settings.fields import spell
from robustgen.settings.running import Running

EXECUTORS: Final[Registry[Callable[[str], Executor | Launcher]]] = Registry(
    "executor",
    "robustgen.executors",
    Callable,
    {
        "dask": "robustgen.sets.executors.clusters:DaskCluster",
        "ray": "robustgen.sets.executors.clusters:RayCluster",
        "slurm": "robustgen.sets.executors.slurm:SlurmArray",
    },
)
"""Name in `--on` to a function that reads the rest of the text."""


def read_executor(running: Running) -> Executor | Launcher | None:
    """Return what ``--on`` names; None for this machine.

    Raises
    ------
    ConfigError
        There is no such executor, or it cannot be combined with other choices.
    """
    if running.on is None:
        return None
    with raise_as(ConfigError, "--on", ArgumentError):
        on = parse_executor(running.on)
    if isinstance(on, Launcher) and (given := sorted(running.flagged & {"overwrite", "shard", "write_plan"})):
        raise ConfigError(f"--on {running.on.partition(':')[0]} and {spell(given[0])} cannot be combined")
    return on


def parse_executor(text: str) -> Executor | Launcher:
    """Return what ``"dask:tcp://head:8786"`` names: an executor, or a launcher of shards.

    The executor reads the text after the first colon itself.

    Raises
    ------
    UnknownNameError
        The executor does not exist.
    ConfigError
        The executor cannot read the rest of the text.
    MissingDependencyError
        Its library is not installed.
    """
    name, _, rest = text.partition(":")
    if name not in EXECUTORS:
        raise UnknownNameError("executor", name, EXECUTORS)
    try:
        return EXECUTORS[name](rest)
    except RobustgenError:
        raise
    except Exception as error:
        raise ConfigError(f"{name} cannot read {rest!r}: {name_error(error)}") from error
