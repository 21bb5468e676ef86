"""Execution of a plan with the choices of its run: executor, shard, log, progress."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from robustgen.display import progress
from robustgen.errors import ArgumentError, ConfigError
from robustgen.files.storage import open_log
from robustgen.sets.dataset.plan import Plan
from robustgen.sets.dataset.run import RunResult, UnitLog, run
from robustgen.sets.dataset.unit_jobs import Outcome
from robustgen.sets.executors import Executor, Launcher, parse_executor
from robustgen.sets.formats.units import WorkUnit
from robustgen.settings.fields import spell
from robustgen.settings.running import Running, read_shard


def read_executor(running: Running) -> Executor | Launcher | None:
    """Return what ``--on`` names; None for this machine.

    Raises
    ------
    ConfigError
        There is no such executor, or it cannot be combined with other choices.
    """
    if running.on is None:
        return None
    try:
        on = parse_executor(running.on)
    except ArgumentError as error:
        raise ConfigError(f"--on: {error}") from error
    if isinstance(on, Launcher) and (given := sorted(running.flagged & {"overwrite", "shard", "plan"})):
        raise ConfigError(f"--on {running.on.partition(':')[0]} and {spell(given[0])} cannot be combined")
    return on


def execute(
    plan: Plan,
    running: Running,
    cluster: Executor | None = None,
    on_begin: Callable[[], None] = lambda: None,
) -> RunResult:
    """Run `plan` on this machine, or on `cluster`; see `run` for `on_begin` and the exceptions."""
    shard = read_shard(running.shard) if running.shard else None
    with progress.quiet(running.quiet), _open_log(running.log_json) as log:
        return run(
            plan,
            overwrite=running.overwrite,
            shard=shard,
            cluster=cluster,
            log=log,
            on_begin=on_begin,
        )


@contextmanager
def _open_log(path: str | None) -> Iterator[UnitLog]:
    """Open the file of ``--log-json``, if any, and yield a function that adds a unit to it."""
    if path is None:
        yield lambda unit, outcome: None
        return
    with open_log(path, f"--log-json {path}") as append:

        def add(unit: WorkUnit, outcome: Outcome) -> None:
            values = {
                "unit": unit.name,
                "images": len(unit.keys),
                "outputs": outcome.made,
                "bytes": outcome.size,
                "seconds": round(outcome.seconds, 3),
                "failures": len(outcome.failures),
                "ended": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            }
            append(json.dumps(values))

        yield add
