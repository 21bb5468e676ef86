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
    ingredient_options,
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
@click.option("--output", metavar="DIR", required=True, help="Folder or URL; gets a folder for each model.")
@click.option("--task", type=click.Choice(["classification", "detection"]), help="Default classification.")
@click.option(
    "--annotations", metavar="FILE", type=PATH, help="Of detection: COCO annotations of the source."
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
@click.option("--baseline", metavar="NAME", help="Of the tables: alexnet, none, or a FILE.")
@click.option("--overwrite", is_flag=True, help="Remove other predictions from the output.")
@click.option("--quiet", is_flag=True, help="Print no progress and no tables, only what failed.")
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
    """Score models on images that are corrupted on the way.

    Nothing but predictions is written, those that predict would give on the set that make-c or make-p
    would write; score reads them again.
    """
    if task == "detection":
        _detect(models, output, annotations, {"kind": kind, "baseline": baseline, **flags}, quiet, overwrite)
        return
    if annotations:
        raise ConfigError("--annotations goes with --task detection")
    from robustgen.benchmark import BENCHMARKS
    from robustgen.dataset import config
    from robustgen.display import progress
    from robustgen.evaluation import evaluating, scoring

    kind = kind or ("p" if flags["perturbations"] or flags["difficulty"] else "c")
    path = resolve_config(flags.pop("dataset"), flags.pop("config_file"))
    if not (path or flags["source"]):
        raise ConfigError("nothing to work on: give --dataset, --config or --source")
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
    from robustgen.dataset import config
    from robustgen.display import progress
    from robustgen.evaluation.detection import running, scoring

    if annotations is None:
        raise ConfigError("--task detection needs --annotations FILE")
    for name in (*_OF_CLASSIFIERS, *PREPROCESSING):
        if flags.pop(name, None) is not None:
            raise ConfigError(f"--{name.replace('_', '-')} is not for --task detection")
    flags.pop("batch")
    runtime = pop_runtime(flags)
    path = resolve_config(flags.pop("dataset"), flags.pop("config_file"))
    if not (path or flags["source"]):
        raise ConfigError("nothing to work on: give --dataset, --config or --source")
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
            echo(f"{count} of categories that {annotations} does not have", err=True)
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
    from robustgen.evaluation import compact, scoring

    for folder in done.folders:
        echo(f"predictions in {format_path(folder)}")
    made = format_count(done.made, done.noun)
    echo(f"{made} predicted in {format_time(done.seconds)}, {done.kept} were there already")
    echo("")
    try:
        report = scoring.score(done.folders, baseline=baseline, partial=True)
    except (ConfigError, SourceError) as error:
        # For instance of extra corruptions alone, over which there is no mean.
        echo(f"no table: {error}", err=True)
        return
    echo_text(compact.render(report, "table", table_width()))
    for note in report.notes:
        echo(note, err=True)


def _show_failures(done: "EvaluateResult") -> None:
    if done.failures:
        echo(f"{format_count(len(done.failures), 'image')} could not be made:", err=True)
        for key, reason in sorted(done.failures.items())[:_MOST_NAMED]:
            echo(f"  {key!r}: {reason}", err=True)
