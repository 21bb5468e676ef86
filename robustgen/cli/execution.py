"""The last step of every command that writes a set: show its plan, or run it and print the result.

Such a command returns a `PlannedSet`, and click passes it on to `show_or_run`.
"""

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from robustgen.cli.app import echo, echo_failures, echo_text, main, show_step
from robustgen.display.text import format_count, format_path, format_size, format_time
from robustgen.files.storage import host
from robustgen.settings.running import Running

if TYPE_CHECKING:
    from robustgen.sets.dataset.plan import Plan
    from robustgen.sets.dataset.run import RunResult
    from robustgen.sets.executors import Launcher

_MOST_EXAMPLES, _MOST_NAMED = 3, 10


class PlannedSet(NamedTuple):
    """The set that a command writes.

    Attributes
    ----------
    plan : Plan
    running : Running
    on_end : callable
        Prints more after the result of a run, or after the plan.

    Examples
    --------
    >>> from robustgen.plugins import PlannedSet, Running
    >>> PlannedSet(None, Running(quiet=True)).running.quiet
    True
    """

    plan: "Plan"
    running: Running
    on_end: Callable[[], None] = lambda: None


@main.result_callback()
def show_or_run(written: PlannedSet | None) -> None:
    """Run the plan of a set and print the result, or print the plan; exit with 1 if images failed."""
    if written is None:
        return
    from robustgen.sets.dataset.run import run_plan
    from robustgen.sets.executors import Launcher, read_executor

    plan, running, on_end = written
    on = read_executor(running)
    if isinstance(on, Launcher):
        _launch(plan, on, running)
        return
    if running.dry_run:
        if not running.quiet:
            _tell_of_compiling()
        _show_plan(plan)
        on_end()
        return
    if running.write_plan:
        from robustgen.files.storage import save
        from robustgen.lab import plans

        save(running.write_plan, plans.to_bytes(plan))
        echo(f"{running.write_plan}: the plan of {format_count(len(plan.keys), plan.source.medium.name)}")
        return

    def announce() -> None:
        if running.quiet:
            return
        echo(f"{_describe_images(plan)}, {format_count(len(plan.variants), 'output')} of each", err=True)
        for line in _describe_mirror(plan):
            echo(line, err=True)

    stop_in_order()
    result = run_plan(plan, running, on, announce)
    if not running.quiet:
        _show_result(result, plan)
    _show_failures(result, plan.source.medium.name)
    on_end()
    sys.exit(1 if result.failures and not running.allow_failures else 0)


def _launch(plan: "Plan", launcher: "Launcher", running: Running) -> None:
    """Start the unfinished shards; if the launcher waits, exit with 1 if some are still unfinished."""
    from robustgen.files.storage import save
    from robustgen.lab import plans
    from robustgen.sets.dataset.run import list_waiting

    location, scheduler = plan.store.location, launcher.scheduler
    folder = f"{location if plan.store.is_local else Path.cwd() / Path(location).name}.{scheduler.lower()}"
    waiting = list_waiting(plan, launcher.shards)
    if not waiting:
        echo(f"nothing to do: all {launcher.shards} shards are in {format_path(location)}")
        return
    flags = [*["--allow-failures"] * running.allow_failures, *["--quiet"] * running.quiet]
    command = [sys.executable, "-m", "robustgen", "run", f"{folder}/plan.json", *flags]
    script = launcher.compose_script(command, waiting, folder)
    if running.dry_run:
        echo_text(script.rstrip())
        return
    save(f"{folder}/plan.json", plans.to_bytes(plan))
    save(f"{folder}/array.sh", script.encode())
    job = launcher.submit(f"{folder}/array.sh")
    count = f"{format_count(len(waiting), 'shard')} of {launcher.shards}"
    echo(f"{scheduler} job {job}: {count}; logs in {format_path(folder)}")
    if not launcher.wait:
        return
    if waiting := list_waiting(plan, launcher.shards):
        shards = ", ".join(map(str, waiting))
        echo(
            f"unfinished shards: {shards}; see {folder}/{job}-*.log, and run the same command to resume",
            err=True,
        )
        sys.exit(1)
    echo(f"all shards are in {format_path(location)}")


def stop_in_order() -> None:
    """Make Ctrl-C and SIGTERM stop the command in order; batch systems send SIGTERM."""
    host.remember(signal.SIGINT, signal.SIGTERM, orderly=True)


def _describe_images(plan: "Plan") -> str:
    """Return the number of images, and of their classes unless these are in repeated files."""
    images = format_count(len(plan.keys), plan.source.medium.name)
    if plan.mirror is not None:
        return images
    named = {number for number, name in enumerate(plan.source.classes) if name}
    own = len(named & {*map(plan.source.label, plan.keys)})
    classes = f"{len(named)} class{'es' * (len(named) != 1)}"
    return f"{images} of {own} of the {classes} of the source" if own < len(named) else f"{images}, {classes}"


def _describe_classes(plan: "Plan") -> "Iterator[str]":
    """Yield a line about each of a few images and their classes, unless there are none."""
    classes, count = plan.source.classes, len(plan.keys)
    if plan.mirror is not None or not any(classes):
        return
    shown = min(_MOST_EXAMPLES, count)
    for key in (plan.keys[count * number // shown] for number in range(shown)):
        label = plan.source.label(key)
        yield f"{key!r}: " + (f"{classes[label]!r}, number {label}" if label >= 0 else "none")


def _tell_of_compiling() -> None:
    """Print a line when this process first compiles a loop."""
    from functools import cache

    from robustgen.display.progress import print_line
    from robustgen.pixels.imaging.kernels import call_before_compiling
    from robustgen.sets.executors.progress import COMPILING

    call_before_compiling(cache(lambda: print_line(COMPILING)))


def _describe_mirror(plan: "Plan") -> "Iterator[str]":
    """Yield a line about the other files of the source that are repeated, if any."""
    if plan.mirror is None:
        return
    names, _ = plan.mirror.list_files()
    examples = ", ".join(map(repr, names[:_MOST_EXAMPLES])) + ", ..." * (len(names) > _MOST_EXAMPLES)
    if not names:
        # The plan has a remark on files of other images.
        yield from ["mirror: the source has no other files to repeat"] * (not plan.mirror.describe_left_out())
        return
    chosen = {*names}
    size = sum(entry.size for entry in plan.mirror.source.list() if entry.path in chosen)
    count, folders = format_count(len(names), "file"), len(plan.variants)
    how = (
        "hard links, which take no space"
        if plan.mirror.link
        else f"copies, {format_count(len(names) * folders, 'inode')} and {format_size(size * folders)} in all"
    )
    yield f"mirror: {count} of {format_size(size)} into each of {folders} folders as {how}: {examples}"


def _show_plan(plan: "Plan") -> None:
    from robustgen.sets.dataset.estimate import estimate
    from robustgen.sets.dataset.layouts import name_layouts
    from robustgen.sets.dataset.unit_jobs import describe_losses

    show_step("creating a few outputs, to estimate time and size")
    cost = estimate(plan, compare_presets=True)
    # Damaged images are found when they are decoded.
    refused = f", {len(plan.refused)} refused" if plan.refused else ""
    echo(f"source   {plan.source.location}: {_describe_images(plan)}{refused}")
    for key in sorted(plan.refused)[:_MOST_NAMED]:
        echo(f"         {key!r}: {plan.refused[key]}")
    if len(plan.refused) > _MOST_NAMED:
        echo(f"         and {len(plan.refused) - _MOST_NAMED} more")
    for remark in (*plan.remarks, *plan.source.remarks(), *describe_losses(cost.losses, cost.images)):
        echo(f"         {remark}")
    mirrored = () if plan.mirror is None else plan.mirror.images | plan.mirror.others | plan.mirror.maps
    for name in name_layouts(mirrored):
        echo(f"layout   {name}")
    for line in plan.columns:
        echo(f"columns  {line}")
    for line in _describe_classes(plan):
        echo(f"classes  {line}")
    echo(
        f"output   {format_path(plan.store.location)}: {cost.outputs} outputs, "
        f"{len(plan.variants)} of each {plan.source.medium.name}"
    )
    levels: dict[str, list[str]] = {}
    for variant in plan.variants:
        levels.setdefault(variant.name, []).append(str(variant.level or ""))
    named = [f"{name} {','.join(each)}".rstrip() for name, each in levels.items()]
    echo(f"of each  {'; '.join(named)}")
    judged = format_count(cost.images, plan.source.medium.name)
    for line in _describe_mirror(plan):
        echo(f"mirror   {line.removeprefix('mirror: ')}")
    disk = f"{format_size(cost.disk)} of disk blocks"
    if cost.free is not None:
        disk += f", {format_size(cost.free)} are free"
    whole = format_time(cost.starting + cost.seconds)
    uploads = "" if plan.store.is_local else " without uploads"
    echo(
        f"about    {format_size(cost.size)} ({disk}), {whole}{uploads}, of these "
        f"{format_time(cost.starting)} to start (estimated from {judged})"
    )
    if cost.preset:
        own, other, seconds, size = cost.preset
        echo(f"preset   {own}; {other} takes {seconds:.2f} times the time, {size:.2f} times the bytes")
    if cost.free is not None and cost.disk > cost.free:
        echo("warning: the set will not fit on the file system of the output", err=True)


def _show_result(result: "RunResult", plan: "Plan") -> None:
    noun, output = plan.recipe.noun, format_path(result.output)
    if result.made:
        rate = result.made / max(result.seconds, 1e-9)
        echo(
            f"{format_count(result.made, noun)} in {result.seconds:.1f} s ({rate:.1f} {noun}s/s), "
            f"{format_size(result.size)}, in {output}"
        )
    elif not (result.failures or result.incomplete or result.removed):
        echo(f"nothing to do: all {result.kept} {noun}s are in {output}")
    if result.made and result.kept:
        echo(f"{format_count(result.kept, noun)} there already")
    if result.removed:
        echo(f"{format_count(result.removed, 'file')} deleted, which others replace")
    if result.waiting:
        shards = ", ".join(map(str, result.waiting))
        echo(f"unfinished shards: {shards}; the last one to finish completes the manifest")


def _show_failures(result: "RunResult", noun: str) -> None:
    for file in result.incomplete:
        echo(f"{file} was not written, because some of its images failed", err=True)
    for remark in result.remarks:
        echo(remark, err=True)
    if result.failures:
        failures = format_count(len(result.failures), "failure")
        echo(f"{failures}, listed in {format_path(f'{result.output}/errors.jsonl')}:", err=True)
        echo_failures(((each["key"], each["reason"]) for each in result.failures), noun)
