"""The last step of every command that writes a set: show its plan, or run it and print the result."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustgen import interruption
from robustgen.cli.app import echo, echo_text
from robustgen.display.text import format_count, format_path, format_size, format_time
from robustgen.errors import ConfigError

if TYPE_CHECKING:
    from robustgen.dataset.plan import Plan
    from robustgen.dataset.produce import Outcome
    from robustgen.dataset.run import RunResult, UnitLog
    from robustgen.execution import Executor
    from robustgen.formats import WorkUnit

_MOST_EXAMPLES, _MOST_NAMED = 3, 10
# Environment of a job of a SLURM array.
_SLURM = ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT")


@dataclass(frozen=True)
class Array:
    """A SLURM array.

    Attributes
    ----------
    options : dict of str to str
        Options of sbatch.
    shards : int
        Number of tasks.
    wait : bool
        Whether to wait for the end of the array.
    flags : list of str
        Flags for each task.
    """

    options: dict[str, str]
    shards: int
    wait: bool
    flags: list[str]

    def launch(self, plan: "Plan", *, dry_run: bool) -> None:
        """Submit tasks for the unfinished shards; with `wait`, exit with 1 if some are still unfinished."""
        from robustgen import plans
        from robustgen.dataset.run import list_waiting
        from robustgen.execution import slurm
        from robustgen.files.storage import save

        name = Path(plan.store.location).name
        folder = f"{plan.store.location if plan.store.is_local else Path.cwd() / name}.slurm"
        waiting = list_waiting(plan, self.shards)
        if not waiting:
            echo(f"nothing to do: all {self.shards} shards are in {format_path(plan.store.location)}")
            return
        command = [sys.executable, "-m", "robustgen", "run", f"{folder}/plan.json", *self.flags]
        options = {"job-name": name} | self.options
        script = slurm.compose_script(command, waiting, self.shards, folder, options)
        if dry_run:
            echo_text(script.rstrip())
            return
        save(f"{folder}/plan.json", plans.to_bytes(plan))
        save(f"{folder}/array.sh", script.encode())
        job = slurm.submit(f"{folder}/array.sh", wait=self.wait)
        count = f"{format_count(len(waiting), 'shard')} of {self.shards}"
        echo(f"SLURM job {job}: {count}; logs in {format_path(folder)}")
        if not self.wait:
            return
        if waiting := list_waiting(plan, self.shards):
            shards = ", ".join(map(str, waiting))
            echo(
                f"unfinished shards: {shards}; see {folder}/{job}-*.log, and run the same command to resume",
                err=True,
            )
            sys.exit(1)
        echo(f"all shards are in {format_path(plan.store.location)}")


@dataclass(frozen=True)
class Execution:
    """Settings for the execution of a plan.

    Attributes
    ----------
    overwrite : bool
        Whether the output may be replaced.
    dry_run : bool
        Whether to print the plan without running it.
    quiet : bool
        Whether to print only failures, no progress and no result.
    shard : tuple of int or None
        Part and number of parts; (3, 16) is the third of sixteen.
    cluster : Executor or None
        Executor of a cluster; None for worker processes on this machine.
    allow_failures : bool
        Whether to exit with status 0 although images failed.
    plan_file : str or None
        File to write the plan to, instead of running it.
    log_file : str or None
        File to append one line of JSON to for each work unit.
    array : Array or None
        SLURM array that runs the plan.
    """

    overwrite: bool
    dry_run: bool
    quiet: bool = False
    shard: tuple[int, int] | None = None
    cluster: "Executor | None" = None
    allow_failures: bool = False
    plan_file: str | None = None
    log_file: str | None = None
    array: "Array | None" = None

    def carry_out(self, plan: "Plan") -> None:
        """Run `plan` and print the result, or print the plan; exit with 1 if images failed."""
        if self.array:
            self.array.launch(plan, dry_run=self.dry_run)
            return
        if self.dry_run:
            if not self.quiet:
                _tell_of_compiling()
            _show_plan(plan)
            return
        if self.plan_file:
            from robustgen import plans
            from robustgen.files.storage import save

            save(self.plan_file, plans.to_bytes(plan))
            echo(f"{self.plan_file}: the plan of {format_count(len(plan.keys), 'image')}")
            return
        from robustgen.dataset.run import run
        from robustgen.display import progress

        def announce() -> None:
            if self.quiet:
                return
            echo(f"{_describe_images(plan)}, {format_count(len(plan.arms), 'output')} of each", err=True)
            for line in _describe_mirror(plan):
                echo(line, err=True)

        stop_in_order()
        with progress.quiet(self.quiet), _open_log(self.log_file) as log:
            result = run(
                plan,
                overwrite=self.overwrite,
                shard=self.shard,
                cluster=self.cluster,
                log=log,
                on_begin=announce,
            )
        if not self.quiet:
            _show_result(result, plan)
        _show_failures(result, plan)
        sys.exit(1 if result.failures and not self.allow_failures else 0)


def take_execution(flags: dict[str, Any]) -> Execution:
    """Remove the `run_options` and `shard_options` from `flags` and return them; settings of the set remain.

    Raises
    ------
    ConfigError
        The shard or the scheduler is invalid.
    """
    from robustgen.execution import open_cluster

    array = _read_array(flags)
    return Execution(
        flags.pop("overwrite"),
        flags.pop("dry_run"),
        flags.pop("quiet"),
        _read_shard(flags.pop("shard", None)),
        open_cluster(flags.pop("backend", "loky"), flags.pop("address", None)),
        flags.pop("allow_failures", False),
        flags.pop("plan_file", None),
        flags.pop("log_file", None),
        array,
    )


@contextmanager
def _open_log(path: str | None) -> "Iterator[UnitLog]":
    """Open the file of --log-json, if any, and yield a function that adds a unit to it."""
    if path is None:
        yield lambda unit, outcome: None
        return
    from robustgen.files.storage import open_log

    with open_log(path, f"--log-json {path}") as append:

        def add(unit: "WorkUnit", outcome: "Outcome") -> None:
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


def _read_array(flags: dict[str, Any]) -> Array | None:
    """Remove the flags of SLURM from `flags` and return them."""
    options, shards, wait = flags.pop("slurm", None), flags.pop("shards", None), flags.pop("wait", False)
    if (options is None) != (shards is None) or (wait and options is None):
        raise ConfigError("--slurm OPTIONS and --shards N must be given together; --wait needs both")
    if options is None or shards is None:
        return None
    excluded = {"overwrite": "--overwrite", "shard": "--shard", "address": "--address", "plan_file": "--plan"}
    for name, flag in excluded.items():
        if flags.get(name):
            raise ConfigError(f"--slurm and {flag} cannot be combined")
    from robustgen.execution import slurm

    passed_on = [f"--{name.replace('_', '-')}" for name in ("allow_failures", "quiet") if flags.get(name)]
    return Array(slurm.parse_options(options), shards, wait, passed_on)


def _read_shard(text: str | None) -> tuple[int, int] | None:
    """Return ``"3/16"`` as (3, 16), and for ``"auto"`` the values in SLURM's environment."""
    if text is None:
        return None
    if text == "auto":
        missing = [name for name in _SLURM if not os.environ.get(name, "").isdecimal()]
        if missing:
            raise ConfigError(f"--shard auto: {missing[0]} is not set; it is meant for jobs of a SLURM array")
        task, first, count = (int(os.environ[name]) for name in _SLURM)
        step = int(os.environ.get("SLURM_ARRAY_TASK_STEP") or 1)
        place, rest = divmod(task - first, max(1, step))
        if rest or not 0 <= place < count:
            raise ConfigError(
                f"--shard auto: task {task} is not one of {count} consecutive tasks starting at {first}"
            )
        return place + 1, count
    part, slash, parts = text.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise ConfigError(
            f"--shard: must be I/N with I from 1 to N, for instance 3/16, or auto, not {text!r}"
        )
    return int(part), int(parts)


def stop_in_order() -> None:
    """Make Ctrl-C and SIGTERM stop the command in order; batch systems send SIGTERM."""
    interruption.remember(signal.SIGINT, signal.SIGTERM, orderly=True)


def _describe_images(plan: "Plan") -> str:
    """Return the number of images and of classes in the source."""
    classes = len({*plan.source.classes} - {""})
    return f"{format_count(len(plan.keys), 'image')}, {classes} class{'es' * (classes != 1)}"


def _tell_of_compiling() -> None:
    """Print a line when this process first compiles a loop."""
    from robustgen.display.progress import print_line
    from robustgen.execution.progress import COMPILING
    from robustgen.imaging.kernels.loop_cache import call_before_compiling

    call_before_compiling(lambda: print_line(COMPILING))


def _describe_mirror(plan: "Plan") -> "Iterator[str]":
    """Yield a line about the other files of the source that are repeated, if any."""
    if plan.mirror is None:
        return
    names, _ = plan.mirror.list_files()
    examples = ", ".join(map(repr, names[:_MOST_EXAMPLES])) + ", ..." * (len(names) > _MOST_EXAMPLES)
    if not names:
        yield "mirror: the source has no other files to repeat"
        return
    chosen = {*names}
    size = sum(entry.size for entry in plan.mirror.source.list() if entry.path in chosen)
    count, folders = format_count(len(names), "file"), len(plan.arms)
    how = (
        "hard links, which take no space"
        if plan.mirror.link
        else f"copies, {format_count(len(names) * folders, 'inode')} and {format_size(size * folders)} in all"
    )
    yield f"mirror: {count} of {format_size(size)} into each of {folders} folders as {how}: {examples}"


def _show_plan(plan: "Plan") -> None:
    from robustgen.dataset.estimate import estimate

    cost = estimate(plan)
    echo(f"source   {plan.source.location}: {_describe_images(plan)}, {len(plan.refused)} refused")
    for key in sorted(plan.refused)[:_MOST_NAMED]:
        echo(f"         {key!r}: {plan.refused[key]}")
    if len(plan.refused) > _MOST_NAMED:
        echo(f"         and {len(plan.refused) - _MOST_NAMED} more")
    for remark in plan.source.remarks():
        echo(f"         {remark}")
    echo(
        f"output   {format_path(plan.store.location)}: {cost.outputs} outputs, {len(plan.arms)} of each image"
    )
    levels: dict[str, list[str]] = {}
    for arm in plan.arms:
        levels.setdefault(arm.name, []).append(str(arm.level or ""))
    named = [f"{name} {','.join(each)}".rstrip() for name, each in levels.items()]
    echo(f"of each  {'; '.join(named)}")
    judged = format_count(cost.images, "image")
    for line in _describe_mirror(plan):
        echo(f"mirror   {line.removeprefix('mirror: ')}")
    disk = f"{format_size(cost.disk)} of disk blocks"
    echo(f"about    {format_size(cost.size)} ({disk}), {format_time(cost.seconds)} (estimated from {judged})")


def _show_result(result: "RunResult", plan: "Plan") -> None:
    noun, output = plan.recipe.noun, format_path(plan.store.location)
    if result.made:
        rate = result.made / max(result.seconds, 1e-9)
        echo(
            f"{format_count(result.made, noun)} in {result.seconds:.1f} s ({rate:.1f} {noun}s/s), "
            f"{format_size(result.size)}, in {output}"
        )
    elif not result.failures:
        echo(f"nothing to do: all {result.kept} {noun}s are in {output}")
    if result.made and result.kept:
        echo(f"{format_count(result.kept, noun)} there already")
    if result.waiting:
        shards = ", ".join(map(str, result.waiting))
        echo(f"unfinished shards: {shards}; the last one to finish completes the manifest")


def _show_failures(result: "RunResult", plan: "Plan") -> None:
    for file in result.incomplete:
        echo(f"{file} was not written, because some of its images failed", err=True)
    for remark in plan.source.remarks():
        echo(remark, err=True)
    if result.failures:
        failures = format_count(len(result.failures), "failure")
        echo(f"{failures}, listed in {format_path(f'{plan.store.location}/errors.jsonl')}:", err=True)
        for failure in result.failures[:10]:
            echo(f"  {failure['key']!r}: {failure['reason']}", err=True)
