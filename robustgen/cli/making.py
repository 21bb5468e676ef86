"""make-c and make-p."""

import signal
import sys
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from robustgen.cli.group import counted, in_bytes, in_time, main, named_config, shown
from robustgen.errors import ConfigError

if TYPE_CHECKING:
    from robustgen.benchmark import Kind
    from robustgen.generation.plan import Plan
    from robustgen.generation.runner import Summary


Command = TypeVar("Command", bound=Callable[..., None])


def _option(*names: str, **attributes: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    return names, attributes


_OPTIONS = [
    _option("--dataset", metavar="NAME", help="A built-in config: imagenet, cifar-10, demo, ..."),
    _option("--config", "config_file", type=click.Path(path_type=Path), help="Your own YAML config."),
    _option("--source", metavar="PATH", help="Folder or archive of the source images."),
    _option("--labels", metavar="FILE", help="Labels file of a flat source folder."),
    _option("--edition", metavar="NAME", help="Preparation and constants."),
    _option("--output", metavar="DIR", help="Where to write."),
    _option("--seed", type=int, help="Non-negative whole number; default 0."),
    _option("--jobs", type=int, help="Worker processes; default all cores."),
    _option("--limit", type=int, metavar="N", help="Only the first N images."),
    _option("--subset", metavar="FILE", help="Only the images whose keys the file lists."),
    _option("--scale", type=int, help="Constants of 224, 299, 64 or 32 instead of the edition's."),
    _option("--frost-dir", metavar="DIR", help="Another copy of the frost photographs."),
    _option("--motion-blur", metavar="ENGINE", help="exact (default) or imagemagick."),
    _option("--shard", metavar="I/N", help="Only part I of N, for machines that share the work."),
    _option("--backend", type=click.Choice(["loky", "dask"]), default="loky", help="Who works."),
    _option("--scheduler", metavar="ADDRESS", help="Of Dask, for instance tcp://host:8786."),
    _option("--overwrite", is_flag=True, help="Begin anew where the output holds something else."),
    _option("--dry-run", is_flag=True, help="Print the plan and make nothing."),
]


def run_options(*, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """The options that generating commands share, but for those `without` whose names it does."""

    def decorated(command: Command) -> Command:
        for names, attributes in reversed(_OPTIONS):
            if names[0] not in without:
                command = click.option(*names, **attributes)(command)
        return command

    return decorated


@main.command("make-c")
@run_options()
@click.option("--corruptions", metavar="NAMES", help="common (default), extra, all, or names: a,b.")
@click.option("--severities", metavar="LEVELS", help="1-5 (default), or for instance 1,3.")
@click.option("--quality", type=int, help="JPEG quality; default 85, as published.")
@click.option("--clean/--no-clean", default=None, help="Whether to write the uncorrupted images too.")
def make_c(**flags: Any) -> None:
    """Write ImageNet-C: corrupted copies of every image."""
    _make("c", flags)


@main.command("make-p")
@run_options()
@click.option("--perturbations", metavar="NAMES", help="common (default), extra, all, or names: a,b.")
@click.option("--difficulty", metavar="LEVELS", help="1 (default), 2, 3 or all: strength of the noises.")
@click.option("--format", metavar="FORMAT", help="mp4, npy or png.")
def make_p(**flags: Any) -> None:
    """Write ImageNet-P: perturbation sequences of every image."""
    _make("p", flags)


def _make(kind: "Kind", flags: dict[str, Any]) -> None:
    execution = taken_execution(flags)
    carry_out(_plan(kind, flags, anew=execution["overwrite"]), **execution)


def taken_execution(flags: dict[str, Any]) -> dict[str, Any]:
    """Take from `flags` what `carry_out` needs beside the plan.

    Raises
    ------
    ConfigError
        The shard or the scheduler is not as it should be.
    """
    shard = _shard(flags.pop("shard", None))
    scheduler = _scheduler(flags.pop("backend", "loky"), flags.pop("scheduler", None))
    own = {name: flags.pop(name) for name in ("overwrite", "dry_run")}
    return {"shard": shard, "scheduler": scheduler} | own


def carry_out(
    planned: "Plan",
    *,
    overwrite: bool,
    dry_run: bool,
    shard: tuple[int, int] | None = None,
    scheduler: str | None = None,
) -> None:
    """Run `planned`, or show it, tell what came of it, and exit with 1 if images failed."""
    if dry_run:
        _show_plan(planned)
        return
    from robustgen.generation.runner import run

    # Batch systems end a job with SIGTERM; it deserves the same orderly stop as Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    summary = run(planned, overwrite=overwrite, shard=shard, scheduler=scheduler)
    _show_summary(summary, planned)
    sys.exit(1 if summary.failures else 0)


def _stop(number: int, frame: object) -> None:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    # The threads that look after the workers trip over their sudden end; nobody need hear of that.
    threading.excepthook = lambda _: None
    raise KeyboardInterrupt


def _shard(text: str | None) -> tuple[int, int] | None:
    """``"3/16"`` as (3, 16)."""
    if text is None:
        return None
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ConfigError(f"--shard: must be I/N with I from 1 to N, for instance 3/16, not {text!r}")
    return int(number), int(count)


def _scheduler(backend: str, address: str | None) -> str | None:
    if (backend == "dask") != (address is not None):
        raise ConfigError("--backend dask and --scheduler ADDRESS go together")
    return address


def _plan(kind: "Kind", flags: dict[str, Any], *, anew: bool) -> "Plan":
    path = named_config(flags.pop("dataset"), flags.pop("config_file"))
    if not (path or flags["source"]):
        raise ConfigError("nothing to work on: give --dataset, --config or --source")
    from robustgen.generation import config
    from robustgen.generation import plan as build

    return build.plan(config.load(path, flags), kind, anew=anew)


def _show_plan(plan: "Plan") -> None:
    from robustgen.generation.runner import estimate

    cost = estimate(plan)
    click.echo(f"source   {plan.source.location}: {len(plan.keys)} images, {len(plan.refused)} refused")
    click.echo(f"output   {shown(plan.output)}: {cost.outputs} outputs in {len(plan.arms)} arms")
    levels: dict[str, list[str]] = {}
    for arm in plan.arms:
        levels.setdefault(arm.name, []).append(str(arm.level or ""))
    named = [f"{name} {','.join(each)}".rstrip() for name, each in levels.items()]
    click.echo(f"arms     {'; '.join(named)}")
    click.echo(f"about    {in_bytes(cost.size)}, {in_time(cost.seconds)} (judged by one image)")


def _show_summary(summary: "Summary", plan: "Plan") -> None:
    noun = plan.recipe.noun
    if summary.made:
        rate = summary.made / max(summary.seconds, 1e-9)
        click.echo(
            f"{counted(summary.made, noun)} in {summary.seconds:.1f} s ({rate:.1f} {noun}s/s), "
            f"{in_bytes(summary.size)}, in {shown(plan.output)}"
        )
    elif not summary.failures:
        click.echo(f"nothing to do: all {summary.kept} {noun}s are in {shown(plan.output)}")
    if summary.made and summary.kept:
        click.echo(f"{counted(summary.kept, noun)} there already")
    for file in summary.withheld:
        click.echo(f"{file} is withheld: not all of its rows could be made", err=True)
    if not summary.last:
        click.echo(
            "other shards are still at work; the last one, or robustgen verify, completes the manifest"
        )
    if summary.failures:
        click.echo(
            f"{counted(len(summary.failures), 'failure')}, listed in {shown(plan.output / 'errors.jsonl')}:",
            err=True,
        )
        for failure in summary.failures[:10]:
            click.echo(f"  {failure['key']!r}: {failure['reason']}", err=True)
