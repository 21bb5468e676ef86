"""The command line: each command reads its flags, calls one function, and prints what came of it."""

import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustgen import __version__
from robustgen.errors import ConfigError, RobustgenError

if TYPE_CHECKING:
    from robustgen.build import Plan
    from robustgen.plan import Kind
    from robustgen.runner import Summary

# Commands import what they use inside: `robustgen --help` is not to wait for OpenCV and numba.


class _Group(click.Group):
    """Turns robustgen's own errors into one line and their exit status."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RobustgenError as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(error.exit_code)
        except KeyboardInterrupt:
            goes_on = "; the same command goes on from here" * str(ctx.invoked_subcommand).startswith("make-")
            click.echo(f"stopped{goes_on}", err=True)
            sys.exit(130)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="robustgen")
def main() -> None:
    """Regenerate ImageNet-C and ImageNet-P from your own images."""


def _run_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that all generating commands share."""
    options = [
        click.option("--dataset", metavar="NAME", help="A built-in config: imagenet, cifar-10, demo, ..."),
        click.option(
            "--config", "config_file", type=click.Path(path_type=Path), help="Your own YAML config."
        ),
        click.option("--source", metavar="PATH", help="Folder or archive of the source images."),
        click.option("--labels", metavar="FILE", help="Labels file of a flat source folder."),
        click.option("--edition", metavar="NAME", help="Preparation and constants."),
        click.option("--output", metavar="DIR", help="Where to write."),
        click.option("--seed", type=int, help="Non-negative whole number; default 0."),
        click.option("--jobs", type=int, help="Worker processes; default all cores."),
        click.option("--limit", type=int, metavar="N", help="Only the first N images."),
        click.option("--subset", metavar="FILE", help="Only the images whose keys the file lists."),
        click.option("--scale", type=int, help="Constants of 224, 299, 64 or 32 instead of the edition's."),
        click.option("--frost-dir", metavar="DIR", help="Another copy of the frost photographs."),
        click.option("--motion-blur", metavar="ENGINE", help="exact (default) or imagemagick."),
        click.option("--shard", metavar="I/N", help="Only part I of N, for machines that share the work."),
        click.option("--backend", type=click.Choice(["loky", "dask"]), default="loky", help="Who works."),
        click.option("--scheduler", metavar="ADDRESS", help="Of Dask, for instance tcp://host:8786."),
        click.option("--overwrite", is_flag=True, help="Begin anew where the output holds something else."),
        click.option("--dry-run", is_flag=True, help="Print the plan and make nothing."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@main.command("make-c")
@_run_options
@click.option("--corruptions", metavar="NAMES", help="common (default), extra, all, or names: a,b.")
@click.option("--severities", metavar="LEVELS", help="1-5 (default), or for instance 1,3.")
@click.option("--quality", type=int, help="JPEG quality; default 85, as published.")
@click.option("--clean/--no-clean", default=None, help="Whether to write the uncorrupted images too.")
def make_c(**flags: Any) -> None:
    """Write ImageNet-C: corrupted copies of every image."""
    _make("c", flags)


@main.command("make-p")
@_run_options
@click.option("--perturbations", metavar="NAMES", help="common (default), extra, all, or names: a,b.")
@click.option("--difficulty", metavar="LEVELS", help="1 (default), 2, 3 or all: strength of the noises.")
@click.option("--format", metavar="FORMAT", help="mp4, npy or png.")
def make_p(**flags: Any) -> None:
    """Write ImageNet-P: perturbation sequences of every image."""
    _make("p", flags)


@main.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--jobs", type=click.IntRange(1), help="Threads; default all cores.")
@click.option(
    "--deep", metavar="N", help="Make N images (or all) anew from the source and compare the bytes."
)
@click.option("--against", metavar="OTHER", help="Compare with another output, or with a dataset digest.")
def verify(directory: Path, jobs: int | None, deep: str | None, against: str | None) -> None:
    """Check every file of an output against its SHA256SUMS; complete the manifest of merged shards."""
    from robustgen import verifying

    findings = verifying.verify(directory, jobs=jobs, deep=deep, against=against)
    for finding in findings.problems:
        click.echo(f"{finding.kind:9s} {finding.path}{finding.detail}")
    click.echo(
        f"{findings.checked} files checked, {len(findings.problems)} findings; digest {findings.digest}"
    )
    sys.exit(1 if findings.problems else 0)


@main.command()
@click.argument("dataset", type=click.Path(path_type=Path))
@click.option("--model", metavar="FILE", type=click.Path(path_type=Path), required=True, help="ONNX model.")
@click.option("--output", metavar="DIR", type=click.Path(path_type=Path), required=True, help="For the .npz.")
@click.option("--preprocessing", metavar="NAME", help="imagenet, cifar-10, cifar-100, or a YAML file.")
@click.option("--mean", metavar="R,G,B", help="The model sees (scale * pixel - mean) / std.")
@click.option("--std", metavar="R,G,B", help="Goes with --mean.")
@click.option("--scale", metavar="X", help="Of the pixels, 0 to 255; default 1/255.")
@click.option("--layout", metavar="AXES", help="NCHW or NHWC; default what the model says.")
@click.option("--size", metavar="N", help="Resize the images to N x N, or to H,W.")
@click.option("--classes", metavar="FILE", help="Class folders in the order of the model's outputs.")
@click.option(
    "--save", type=click.Choice(["logits", "top5"]), help="Default logits of C sets, top5 of P sets."
)
@click.option("--batch", type=click.IntRange(1), default=64, help="Images at once; default 64.")
@click.option("--threads", type=click.IntRange(1), help="Default one a core.")
@click.option("--provider", metavar="NAME", help="Of ONNX Runtime; default CPUExecutionProvider.")
@click.option("--overwrite", is_flag=True, help="Remove other predictions from the output.")
def predict(dataset: Path, model: Path, output: Path, **flags: Any) -> None:
    """Run an ONNX model over DATASET, an output of make-c or make-p, and keep what it predicts."""
    from robustgen import models, predicting

    own = {name: flags.pop(name) for name in ("mean", "std", "scale", "layout", "size", "classes")}
    flags |= {"threads": flags["threads"] or 0, "provider": flags["provider"] or models.CPU}
    done = predicting.predict(dataset, model, output, flags=own, **flags)
    click.echo(
        f"{done.made} {done.noun} predicted in {_duration(done.seconds)}, {done.kept} were there already, "
        f"in {_shown(output)} (preprocessing {done.preprocessing})"
    )


@main.command()
@click.argument("predictions", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--baseline", metavar="NAME", help="alexnet (default for ImageNet), none, or a FILE.")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["table", "markdown", "csv", "json", "latex"]),
    default="table",
    help="Default table.",
)
@click.option("--partial", is_flag=True, help="Score incomplete sets too, and say what is missing.")
@click.option("--difficulty", type=click.IntRange(1, 3), default=1, help="Of perturbations; default 1.")
@click.option("--dataset", metavar="DIR", type=click.Path(path_type=Path), help="Check the keys against it.")
@click.option(
    "--plot", metavar="FILE", type=click.Path(path_type=Path), help="Draw a chart: .png, .svg, .pdf."
)
def score(predictions: tuple[Path, ...], layout: str, plot: Path | None, **flags: Any) -> None:
    """Print the papers' tables for PREDICTIONS, a folder for each model."""
    from robustgen import plotting, scoring

    if plot:
        plotting.check(plot)
    report = scoring.score(predictions, **flags)
    click.echo(report.rendered(layout))
    for note in report.notes:
        click.echo(note, err=True)
    if plot:
        plotting.plot(report, plot)


@main.command("list")
@click.argument("name", required=False)
def list_(name: str | None) -> None:
    """List corruptions, perturbations, editions and data sets, or the parameters of one NAME."""
    from robustgen import listing

    click.echo(listing.parameters(name) if name else listing.overview())


def _make(kind: "Kind", flags: dict[str, Any]) -> None:
    overwrite, dry_run = flags.pop("overwrite"), flags.pop("dry_run")
    shard, scheduler = _shard(flags.pop("shard")), _scheduler(flags.pop("backend"), flags.pop("scheduler"))
    planned = _plan(kind, flags, anew=overwrite)
    if dry_run:
        _show_plan(planned)
        return
    from robustgen.runner import run

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
    dataset, file = flags.pop("dataset"), flags.pop("config_file")
    if dataset and file:
        raise ConfigError("give --dataset or --config, not both")
    if not (dataset or file or flags["source"]):
        raise ConfigError("nothing to work on: give --dataset, --config or --source")
    from robustgen import build, config

    path = config.dataset_file(dataset) if dataset else file
    return build.plan(config.load(path, flags), kind, anew=anew)


def _show_plan(plan: "Plan") -> None:
    from robustgen.runner import estimate

    cost = estimate(plan)
    click.echo(f"source   {plan.source.location}: {len(plan.keys)} images, {len(plan.refused)} refused")
    click.echo(f"output   {_shown(plan.output)}: {cost.outputs} outputs in {len(plan.arms)} arms")
    levels: dict[str, list[str]] = {}
    for arm in plan.arms:
        levels.setdefault(arm.name, []).append(str(arm.level or ""))
    named = [f"{name} {','.join(each)}".rstrip() for name, each in levels.items()]
    click.echo(f"arms     {'; '.join(named)}")
    click.echo(f"about    {_bytes(cost.size)}, {_duration(cost.seconds)} (judged by one image)")


def _show_summary(summary: "Summary", plan: "Plan") -> None:
    noun = "image" if plan.recipe.kind == "c" else "sequence"
    if summary.made:
        rate = summary.made / max(summary.seconds, 1e-9)
        click.echo(
            f"{_count(summary.made, noun)} in {summary.seconds:.1f} s ({rate:.1f} {noun}s/s), "
            f"{_bytes(summary.size)}, in {_shown(plan.output)}"
        )
    elif not summary.failures:
        click.echo(f"nothing to do: all {summary.kept} {noun}s are in {_shown(plan.output)}")
    if summary.made and summary.kept:
        click.echo(f"{_count(summary.kept, noun)} there already")
    for file in summary.withheld:
        click.echo(f"{file} is withheld: not all of its rows could be made", err=True)
    if not summary.last:
        click.echo(
            "other shards are still at work; the last one, or robustgen verify, completes the manifest"
        )
    if summary.failures:
        click.echo(
            f"{_count(len(summary.failures), 'failure')}, listed in {_shown(plan.output / 'errors.jsonl')}:",
            err=True,
        )
        for failure in summary.failures[:10]:
            click.echo(f"  {failure['key']!r}: {failure['reason']}", err=True)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _shown(path: Path) -> Path:
    """`path` as the user is likely to have named it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
