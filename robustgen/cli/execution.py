"""What every command that makes a set does with its plan: show it, or run it and print the result."""

import signal
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from robustgen.cli.app import echo
from robustgen.display.text import format_count, format_path, format_size, format_time
from robustgen.errors import ConfigError

if TYPE_CHECKING:
    from robustgen.generation.plan import Plan
    from robustgen.generation.runner import RunResult


@dataclass(frozen=True)
class Execution:
    """How a plan is carried out.

    Attributes
    ----------
    overwrite : bool
        Whether what the output holds may be replaced.
    dry_run : bool
        Whether the plan is only shown.
    quiet : bool
        Whether neither progress nor the result is printed; failures are.
    shard : tuple of int or None
        (3, 16): the third of sixteen parts.
    scheduler : str or None
        Address of a Dask scheduler; None for workers of our own.
    """

    overwrite: bool
    dry_run: bool
    quiet: bool = False
    shard: tuple[int, int] | None = None
    scheduler: str | None = None

    def carry_out(self, plan: "Plan") -> None:
        """Run `plan` and print the result, or show it; exit with 1 if images failed."""
        if self.dry_run:
            _show_plan(plan)
            return
        from robustgen.display import progress
        from robustgen.generation.runner import run

        stop_in_order()
        with progress.quiet(self.quiet):
            summary = run(plan, overwrite=self.overwrite, shard=self.shard, scheduler=self.scheduler)
        if not self.quiet:
            _show_result(summary, plan)
        _show_failures(summary, plan)
        sys.exit(1 if summary.failures else 0)


def take_execution(flags: dict[str, Any]) -> Execution:
    """Take from `flags` those of `run_options` and `shard_options` that are no choices of the set.

    Raises
    ------
    ConfigError
        The shard or the scheduler is not as it should be.
    """
    return Execution(
        flags.pop("overwrite"),
        flags.pop("dry_run"),
        flags.pop("quiet"),
        _read_shard(flags.pop("shard", None)),
        _check_scheduler(flags.pop("backend", "loky"), flags.pop("scheduler", None)),
    )


def _read_shard(text: str | None) -> tuple[int, int] | None:
    """``"3/16"`` as (3, 16)."""
    if text is None:
        return None
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ConfigError(f"--shard: must be I/N with I from 1 to N, for instance 3/16, not {text!r}")
    return int(number), int(count)


def _check_scheduler(backend: str, address: str | None) -> str | None:
    if (backend == "dask") != (address is not None):
        raise ConfigError("--backend dask and --scheduler ADDRESS go together")
    return address


def stop_in_order() -> None:
    """Let Ctrl-C and SIGTERM end the command as an interrupted one; batch systems send the latter."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def _stop(number: int, frame: object) -> None:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    # The threads that look after the workers trip over their sudden end; nobody need hear of that.
    threading.excepthook = lambda _: None
    raise KeyboardInterrupt


def _show_plan(plan: "Plan") -> None:
    from robustgen.generation.estimate import estimate

    cost = estimate(plan)
    echo(f"source   {plan.source.location}: {len(plan.keys)} images, {len(plan.refused)} refused")
    if unread := plan.source.passed_over():
        from robustgen.sources.walk import describe_unread

        echo(f"         {describe_unread(unread)}")
    echo(f"output   {format_path(plan.output)}: {cost.outputs} outputs, {len(plan.arms)} of each image")
    levels: dict[str, list[str]] = {}
    for arm in plan.arms:
        levels.setdefault(arm.name, []).append(str(arm.level or ""))
    named = [f"{name} {','.join(each)}".rstrip() for name, each in levels.items()]
    echo(f"of each  {'; '.join(named)}")
    judged = format_count(cost.images, "image")
    echo(f"about    {format_size(cost.size)}, {format_time(cost.seconds)} (judged by {judged})")


def _show_result(summary: "RunResult", plan: "Plan") -> None:
    noun, output = plan.recipe.noun, format_path(plan.output)
    if summary.made:
        rate = summary.made / max(summary.seconds, 1e-9)
        echo(
            f"{format_count(summary.made, noun)} in {summary.seconds:.1f} s ({rate:.1f} {noun}s/s), "
            f"{format_size(summary.size)}, in {output}"
        )
    elif not summary.failures:
        echo(f"nothing to do: all {summary.kept} {noun}s are in {output}")
    if summary.made and summary.kept:
        echo(f"{format_count(summary.kept, noun)} there already")
    if not summary.last:
        echo("other shards are still at work; the last one, or robustgen verify, completes the manifest")


def _show_failures(summary: "RunResult", plan: "Plan") -> None:
    for file in summary.withheld:
        echo(f"{file} is withheld: not all of its rows could be made", err=True)
    if unread := plan.source.passed_over():
        from robustgen.sources.walk import describe_unread

        echo(describe_unread(unread), err=True)
    if summary.failures:
        failures = format_count(len(summary.failures), "failure")
        echo(f"{failures}, listed in {format_path(plan.output / 'errors.jsonl')}:", err=True)
        for failure in summary.failures[:10]:
            echo(f"  {failure['key']!r}: {failure['reason']}", err=True)
