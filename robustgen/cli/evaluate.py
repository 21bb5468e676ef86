"""evaluate: scores of models, without a set on disk."""

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
    ingredient_options,
    libjpeg_option,
    perturbation_options,
    pop_runtime,
    preprocessing_options,
    resolve_config,
    scale_option,
    seed_option,
    selection_options,
    size_option,
    source_options,
    table_width,
)
from robustgen.display.text import format_count, format_path, format_time
from robustgen.errors import ConfigError, SourceError

if TYPE_CHECKING:
    from robustgen.evaluation.evaluating import EvaluateResult

_MOST_NAMED = 10
_OF_CLASSIFIERS = ("kind", "baseline", "perturbations", "difficulty", "preprocessing", "classes", "save")


@command("evaluate", Section.SCORE)
@click.option(
    "--model",
    "models",
    metavar="NAME",
    multiple=True,
    required=True,
    help="model.onnx, model.pt2, timm:NAME[@FILE], torchvision:NAME@FILE, module:function; repeatable.",
)
@click.option("--output", metavar="DIR", required=True, help="Folder or URL; one subfolder per model.")
@click.option("--task", type=click.Choice(["classification", "detection"]), help="Default classification.")
@click.option(
    "--annotations", metavar="FILE", type=PATH, help="COCO annotations of the source, for detection."
)
@click.option("--kind", type=click.Choice(["c", "p"]), help="Corruptions or perturbations; default c.")
@source_options
@selection_options
@corruption_options
@ingredient_options
@perturbation_options
@edition_option
@size_option
@scale_option
@seed_option
@libjpeg_option
@engine_options
@click.option(
    "--format", metavar="FORMAT", help="Output format of make-c or make-p: jpeg, png, mp4, npy, ..."
)
@click.option("--quality", type=int, help="JPEG quality; default 85, as published.")
@click.option("--clean/--no-clean", default=None, help="Predict the clean images too; default on for c.")
@click.option("--preprocessing", metavar="NAME", help="imagenet, cifar-10, cifar-100, or a YAML file.")
@preprocessing_options
@click.option("--classes", metavar="FILE", help="Class folders in the order of the model's outputs.")
@click.option("--save", type=click.Choice(["logits", "top5"]), help="Default logits for c, top5 for p.")
@click.option(
    "--batch-size",
    "--batch",
    "batch",
    type=click.IntRange(1),
    default=64,
    help="Images per batch; default 64.",
)
@inference_options
@click.option("--jobs", type=Jobs(), help="Worker processes that corrupt images; default all: one per core.")
@click.option("--baseline", metavar="NAME", help="Baseline of the tables: alexnet, none, or a FILE.")
@click.option("--overwrite", is_flag=True, help="Remove other predictions from the output.")
@click.option("--quiet", is_flag=True, help="Print only failures, no progress and no tables.")
def evaluate(
    models: tuple[str, ...],
    output: str,
    task: str | None,
    annotations: Path | None,
    kind: str | None,
    baseline: str | None,
    quiet: bool,
    overwrite: bool,
    **flags: Any,
) -> None:
    """Score models on images corrupted on the fly.

    Writes only predictions, the same ones that predict writes for the set of make-c or make-p. score can read
    them again.
    """
    if task == "detection":
        _detect(models, output, annotations, {"kind": kind, "baseline": baseline, **flags}, quiet, overwrite)
        return
    if annotations:
        raise ConfigError("--annotations needs --task detection")
    from robustgen.benchmarks.kinds import BENCHMARKS
    from robustgen.display import progress
    from robustgen.evaluation import evaluating
    from robustgen.scores import scoring
    from robustgen.settings import config

    kind = kind or ("p" if flags["perturbations"] or flags["difficulty"] else "c")
    path = resolve_config(flags.pop("dataset"), flags.pop("config_file"))
    if not (path or flags["source"]):
        raise ConfigError("no source: give --dataset, --config or --source")
    own = {name: flags.pop(name) for name in (*PREPROCESSING, "classes")}
    runtime = pop_runtime(flags)
    options = evaluating.ModelOptions(
        flags.pop("preprocessing"), own, flags.pop("save"), flags.pop("batch"), runtime
    )
    scoring.check_baseline(baseline)
    stop_in_order()
    with progress.quiet(quiet):
        choices, benchmark = config.load(path, flags), BENCHMARKS["p" if kind == "p" else "c"]
        done = evaluating.evaluate(choices, benchmark.kind, models, output, options, overwrite=overwrite)
    if not quiet:
        _show(done, baseline)
    _show_failures(done)
    sys.exit(1 if done.failures else 0)


def _detect(
    models: tuple[str, ...],
    output: str,
    annotations: Path | None,
    flags: dict[str, Any],
    quiet: bool,
    overwrite: bool,
) -> None:
    """Run detectors, and print their scores."""
    from robustgen.display import progress
    from robustgen.evaluation.detection import running
    from robustgen.scores.detection import scoring
    from robustgen.settings import config

    if annotations is None:
        raise ConfigError("--task detection needs --annotations FILE")
    for name in (*_OF_CLASSIFIERS, *PREPROCESSING):
        if flags.pop(name, None) is not None:
            raise ConfigError(f"--{name.replace('_', '-')} cannot be combined with --task detection")
    flags.pop("batch")
    runtime = pop_runtime(flags)
    path = resolve_config(flags.pop("dataset"), flags.pop("config_file"))
    if not (path or flags["source"]):
        raise ConfigError("no source: give --dataset, --config or --source")
    stop_in_order()
    with progress.quiet(quiet):
        chosen = config.load(path, flags)
        done = running.evaluate_detectors(
            chosen, annotations, models, Path(output), runtime, overwrite=overwrite
        )
    for each in done:
        counts = f"{each.made} files written, {each.kept} were there already"
        echo(f"results in {format_path(each.folder)}: {counts}")
        if each.dropped:
            count = format_count(each.dropped, "detection")
            echo(f"{count} with categories that {annotations} does not have", err=True)
        if quiet or not (each.folder / "clean.json").is_file():
            continue
        pattern = f"{each.folder}/{{corruption}}/{{severity}}.json"
        report = scoring.score_detections(
            each.annotations, pattern, each.folder / "clean.json", partial=True, model=each.folder.name
        )
        echo_text(report.render("table"))
        for note in report.notes:
            echo(note, err=True)


def _show(done: "EvaluateResult", baseline: str | None) -> None:
    from robustgen.scores import scoring, terminal_tables

    for folder in done.folders:
        echo(f"predictions in {format_path(folder)}")
    made = format_count(done.made, done.noun)
    echo(f"{made} predicted in {format_time(done.seconds)}, {done.kept} were there already")
    echo("")
    try:
        report = scoring.score(done.folders, baseline=baseline, partial=True)
    except (ConfigError, SourceError) as error:
        # For instance with only extra corruptions, which have no mean.
        echo(f"no table: {error}", err=True)
        return
    echo_text(terminal_tables.render(report, "table", table_width()))
    for note in report.notes:
        echo(note, err=True)


def _show_failures(done: "EvaluateResult") -> None:
    if done.failures:
        echo(f"{format_count(len(done.failures), 'image')} could not be made:", err=True)
        for key, reason in sorted(done.failures.items())[:_MOST_NAMED]:
            echo(f"  {key!r}: {reason}", err=True)
