"""evaluate: from images to the tables of the papers, without a set on disk."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustgen.cli.app import Section, command, echo, echo_text
from robustgen.cli.execution import stop_in_order
from robustgen.cli.options import (
    PATH,
    PREPROCESSING,
    Jobs,
    corruption_options,
    edition_option,
    engine_options,
    inference_options,
    perturbation_options,
    pop_runtime,
    preprocessing_options,
    resolve_config,
    scale_option,
    seed_option,
    selection_options,
    size_option,
    source_options,
)
from robustgen.display.text import format_count, format_path, format_time
from robustgen.errors import ConfigError, SourceError

if TYPE_CHECKING:
    from robustgen.evaluation.evaluating import EvaluateResult

_MOST_NAMED = 10


@command("evaluate", Section.SCORE)
@click.option(
    "--model",
    "models",
    metavar="NAME",
    multiple=True,
    required=True,
    help="model.onnx, model.pt2, timm:NAME[@FILE], torchvision:NAME@FILE, module:function; repeatable.",
)
@click.option("--output", metavar="DIR", type=PATH, required=True, help="Gets a folder for each model.")
@click.option("--kind", type=click.Choice(["c", "p"]), help="Corruptions or perturbations; default c.")
@source_options
@selection_options
@corruption_options
@perturbation_options
@edition_option
@size_option
@scale_option
@seed_option
@engine_options
@click.option("--format", metavar="FORMAT", help="As make-c and make-p would write: jpeg, png, mp4, npy, ...")
@click.option("--quality", type=int, help="JPEG quality; default 85, as published.")
@click.option("--clean/--no-clean", default=None, help="Whether to predict the uncorrupted images too.")
@click.option("--preprocessing", metavar="NAME", help="imagenet, cifar-10, cifar-100, or a YAML file.")
@preprocessing_options
@click.option("--classes", metavar="FILE", help="Class folders in the order of the model's outputs.")
@click.option("--save", type=click.Choice(["logits", "top5"]), help="Default logits (c), top5 (p).")
@click.option(
    "--batch-size", "--batch", "batch", type=click.IntRange(1), default=64, help="Images at once; default 64."
)
@inference_options
@click.option("--jobs", type=Jobs(), help="Worker processes that make images; default all: one a core.")
@click.option("--overwrite", is_flag=True, help="Remove other predictions from the output.")
@click.option("--quiet", is_flag=True, help="Print no progress and no tables, only what failed.")
def evaluate(
    models: tuple[str, ...], output: Path, kind: str | None, quiet: bool, overwrite: bool, **flags: Any
) -> None:
    """Score models on images that are corrupted on the way.

    Nothing but predictions is written, those that predict would give on the set that make-c or make-p
    would write; score reads them again.
    """
    from robustgen.benchmark import BENCHMARKS
    from robustgen.display import progress
    from robustgen.evaluation import evaluating
    from robustgen.generation import config

    kind = kind or ("p" if flags["perturbations"] or flags["difficulty"] else "c")
    path = resolve_config(flags.pop("dataset"), flags.pop("config_file"))
    if not (path or flags["source"]):
        raise ConfigError("nothing to work on: give --dataset, --config or --source")
    own = {name: flags.pop(name) for name in (*PREPROCESSING, "classes")}
    runtime = pop_runtime(flags)
    options = evaluating.ModelOptions(
        flags.pop("preprocessing"), own, flags.pop("save"), flags.pop("batch"), runtime
    )
    stop_in_order()
    with progress.quiet(quiet):
        choices, benchmark = config.load(path, flags), BENCHMARKS["p" if kind == "p" else "c"]
        done = evaluating.evaluate(choices, benchmark.kind, models, output, options, overwrite=overwrite)
    if not quiet:
        _show(done)
    _show_failures(done)
    sys.exit(1 if done.failures else 0)


def _show(done: "EvaluateResult") -> None:
    from robustgen.evaluation import scoring

    for folder in done.folders:
        echo(f"predictions in {format_path(folder)}")
    made = format_count(done.made, done.noun)
    echo(f"{made} predicted in {format_time(done.seconds)}, {done.kept} were there already")
    echo("")
    try:
        report = scoring.score(done.folders, partial=True)
    except SourceError as error:
        # For instance of extra corruptions alone, over which there is no mean.
        echo(f"no table: {error}", err=True)
        return
    echo_text(report.render("table"))
    for note in report.notes:
        echo(note, err=True)


def _show_failures(done: "EvaluateResult") -> None:
    if done.failures:
        echo(f"{format_count(len(done.failures), 'image')} could not be made:", err=True)
        for key, reason in sorted(done.failures.items())[:_MOST_NAMED]:
            echo(f"  {key!r}: {reason}", err=True)
