"""Choices of how a plan is run, which change no byte of the output."""

import os
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StrictBool

from robustgen.errors import ArgumentError, quote
from robustgen.settings.fields import ExpandedLocation, Flag, Group, Jobs, Options

# Environment of a job of a SLURM array.
_SLURM: Final = ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT")
RUNNING: Final = Group.RUNNING


def read_shard(text: str | None) -> tuple[int, int]:
    """Return ``"3/16"`` as (3, 16), for ``"auto"`` the values in SLURM's environment, for None (1, 1).

    Raises
    ------
    ArgumentError
        The text is neither, or this is no task of an array.
    """
    if text is None:
        return 1, 1
    if text != "auto":
        part, slash, parts = text.partition("/")
        if not (slash and part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
            raise ArgumentError(f"must be I/N, for instance 3/16, or auto, not {quote(text)}")
        return int(part), int(parts)
    missing = [name for name in _SLURM if not os.environ.get(name, "").isdecimal()]
    if missing:
        raise ArgumentError(f"auto: {missing[0]} is not set; it is meant for jobs of a SLURM array")
    task, first, count = (int(os.environ[name]) for name in _SLURM)
    step = int(os.environ.get("SLURM_ARRAY_TASK_STEP") or 1)
    index, rest = divmod(task - first, max(1, step))
    if rest or not 0 <= index < count:
        raise ArgumentError(f"auto: task {task} is not one of {count} consecutive tasks starting at {first}")
    return index + 1, count


class Running(Options):
    """Execution of a plan.

    Examples
    --------
    >>> from robustgen.plugins import Running
    >>> Running(overwrite=True).overwrite
    True
    """

    overwrite: Annotated[StrictBool, Flag(RUNNING, usual=True)] = False
    """start over if the output has other content"""
    allow_failures: Annotated[StrictBool, Flag(RUNNING)] = False
    """exit with status 0 even if images failed"""
    dry_run: Annotated[StrictBool, Flag(RUNNING, usual=True)] = False
    """print the plan and an estimate; create nothing"""
    write_plan: Annotated[str | None, Flag(RUNNING, "FILE")] = None
    """write the plan for `robustgen run`; create nothing"""
    quiet: Annotated[StrictBool, Flag(RUNNING)] = False
    """print only failures, no progress and no result"""
    log_json: Annotated[str | None, Flag(RUNNING, "FILE")] = None
    """append one line of JSON per work unit: images, seconds, failures"""
    on: Annotated[str | None, Flag(RUNNING, "EXECUTOR")] = Field(
        None,
        description="executor of the work: dask:ADDRESS, ray[:ADDRESS], or "
        "slurm:partition=cpu,shards=N[,wait] with further options of sbatch; default this machine",
    )
    shard: Annotated[
        str | None, AfterValidator(lambda text: read_shard(text) and text), Flag(RUNNING, "I/N")
    ] = None
    """process only part I of N; auto reads both from a SLURM array"""


DEFAULTS: Final = Running()


class PlanRun(Running):
    """A plan in a file, and where it is run."""

    plan_file: Annotated[str, Flag(RUNNING, argument=True, name="PLAN")]
    """the plan"""
    source: Annotated[ExpandedLocation | None, Flag(RUNNING, "PATH", usual=True)] = None
    """path or URL of the source on this machine, if different"""
    output: Annotated[ExpandedLocation | None, Flag(RUNNING, "DIR", usual=True)] = None
    """output folder or URL on this machine, if different"""
    jobs: Annotated[Jobs, Flag(RUNNING, "N|all", usual=True)] = None
    """worker processes; default all: one per core"""
