"""The CCC setting of `stream`: write a run or its images, and measure an accuracy table."""

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from robustgen.cli.app import echo
from robustgen.cli.execution import stop_in_order
from robustgen.cli.options import (
    PREPROCESSING,
    Jobs,
    combine,
    inference_options,
    pop_runtime,
    preprocessing_options,
)
from robustgen.display.text import format_count, format_path, format_size
from robustgen.errors import ArgumentError, ConfigError

run_options = combine(
    click.option(
        "--accuracy-table",
        metavar="FILE",
        help="ccc: accuracies of all pairs: .pickle, .npz, .json, or a file of --measure-accuracy.",
    ),
    click.option("--baseline", type=float, metavar="X", help="ccc: target accuracy in %; default 20."),
    click.option("--speed", type=click.IntRange(1), metavar="N", help="ccc: images per cell; default 1000."),
    click.option(
        "--length", type=click.IntRange(1), metavar="N", help="ccc: number of images; default 7500000."
    ),
    click.option("--jobs", type=Jobs(), help="ccc: worker processes; default all: one per core."),
    click.option(
        "--overwrite", is_flag=True, default=None, help="ccc: start over if the output has other content."
    ),
)
measuring_options = combine(
    click.option(
        "--measure-accuracy",
        is_flag=True,
        help="Measure an accuracy table for ccc with --model on --sample images (default 256).",
    ),
    click.option("--model", metavar="NAME", help="Model for --measure-accuracy, as for evaluate."),
    click.option("--preprocessing", metavar="NAME", help="imagenet, or a YAML file."),
    preprocessing_options,
    click.option("--classes", metavar="FILE", help="Class folders in the order of the model's outputs."),
    click.option(
        "--batch-size", "--batch", "batch", type=click.IntRange(1), help="Images per batch; default 64."
    ),
    inference_options,
)
FLAGS = ("accuracy_table", "baseline", "speed", "length", "jobs", "overwrite")
MODEL_FLAGS = (
    *(*PREPROCESSING, "model", "preprocessing", "classes", "batch"),
    *("device", "threads", "mixed_precision", "provider", "trust_model"),
)
# The first of the three published seeds.
_SEED, _SPEED, _BASELINE = 43, 1000, 20
_SAMPLE, _GRID = 256, "0,1,2,3,4,5"
_MOST_NAMED = 10


def carry_out(
    path: Path | None, flags: dict[str, Any], file_format: str, output: str | None, *, measures: bool
) -> None:
    """Measure accuracies, write shards, or write the lines of a run; exit with 1 if images failed."""
    run = {flag: flags.pop(flag) for flag in FLAGS if flag != "jobs"}
    model = {flag: flags.pop(flag) for flag in MODEL_FLAGS}
    if file_format == "imglist":
        raise ConfigError("--format imglist is not for --setting ccc")
    stop_in_order()
    if measures:
        if file_format != "jsonl":
            raise ConfigError("--measure-accuracy writes JSON; omit --format")
        _measure(path, flags, run, model, output)
    if run["accuracy_table"] is None:
        raise ConfigError(
            "--setting ccc needs --accuracy-table FILE; "
            "robustgen stream --measure-accuracy --model NAME writes one"
        )
    if flags.pop("severities"):
        raise ConfigError("--severities with --setting ccc needs --measure-accuracy")
    _play(path, flags, run, file_format, output)


def _measure(
    path: Path | None, flags: dict[str, Any], run: dict[str, Any], model: dict[str, Any], output: str | None
) -> None:
    for flag in ("accuracy_table", "speed", "length"):
        if run[flag] is not None:
            raise ConfigError(f"--{flag.replace('_', '-')} cannot be combined with --measure-accuracy")
    if model["model"] is None:
        raise ConfigError("--measure-accuracy needs --model NAME")
    grid = _read_grid(flags.pop("severities") or _GRID)
    if not any(flags[each] for each in ("limit", "sample", "subset", "images")):
        flags["sample"] = _SAMPLE
    from robustgen.evaluation.evaluating import ModelOptions
    from robustgen.related.streams.measuring import measure_accuracies
    from robustgen.settings import config

    name, preprocessing, batch = model.pop("model"), model.pop("preprocessing"), model.pop("batch")
    runtime = pop_runtime(model)
    options = ModelOptions(preprocessing, model, None, batch or 64, runtime)
    output = output or "out/ccc-accuracies.json"
    done = measure_accuracies(
        config.load(path, flags),
        name,
        output,
        options,
        40 if run["baseline"] is None else run["baseline"],
        grid,
        overwrite=bool(run["overwrite"]),
    )
    of = format_count(done.images, "image")
    echo(f"{done.made} accuracies of {of} measured, {done.kept} were there already, in {format_path(output)}")
    for key, reason in sorted(done.failures.items())[:_MOST_NAMED]:
        echo(f"  {key!r}: {reason}", err=True)
    sys.exit(1 if done.failures else 0)


def _read_grid(text: str) -> tuple[float, ...]:
    try:
        grid = tuple(map(float, text.split(",")))
    except ValueError:
        grid = ()
    if len(grid) < 2 or (grid[0], grid[-1]) != (0, 5) or any(low >= high for low, high in pairwise(grid)):
        raise ConfigError(f"--severities of --measure-accuracy must ascend from 0 to 5, not {text!r}")
    return grid


def _play(
    path: Path | None, flags: dict[str, Any], run: dict[str, Any], file_format: str, output: str | None
) -> None:
    """Write the lines of a run, or its images."""
    from robustgen.dataset.selection import open_chosen_source, select_keys
    from robustgen.related.streams.accuracy_files import load_table
    from robustgen.related.streams.ccc import IMAGES, CccRun
    from robustgen.settings import config

    table, seed = load_table(run["accuracy_table"]), flags["seed"]
    chosen = config.load(path, flags)
    source = open_chosen_source(chosen)
    keys = select_keys(source, chosen)
    baseline = _BASELINE if run["baseline"] is None else run["baseline"]
    settings = baseline, run["speed"] or _SPEED, _SEED if seed is None else seed, run["length"] or IMAGES
    stream = CccRun(table, len(keys), *settings)
    try:
        cells = len(stream.cells)
    except ArgumentError as error:
        raise ConfigError(f"{run['accuracy_table']}: {error}") from error
    if stream.images_per_cell < stream.speed:
        echo(f"{len(keys)} images are fewer than --speed {stream.speed}: each cell shows all once", err=True)
    if file_format == "webdataset":
        from robustgen.related.streams.shards import write_shards

        done = write_shards(
            stream, source, keys, output or "out/ccc", jobs=chosen.jobs, overwrite=bool(run["overwrite"])
        )
        made = format_count(done.made, "image")
        echo(
            f"{made} ({format_size(done.size)}) in {done.seconds:.1f} s, "
            f"{done.kept} were there already, in {format_path(done.location)}"
        )
        for failure in done.failures[:_MOST_NAMED]:
            echo(f"  {failure['sample']}, {failure['key']!r}: {failure['reason']}", err=True)
        sys.exit(1 if done.failures else 0)
    from robustgen.display.progress import track
    from robustgen.files.storage import save
    from robustgen.related.streams.ccc_rows import draw_rows, format_ccc_row

    output = output or "out/stream-ccc.jsonl"
    rows = track(draw_rows(stream, source, keys), len(stream), "images")
    save(output, (f"{format_ccc_row(row)}\n".encode() for row in rows), f"--output {output}")
    echo(f"{format_count(len(stream), 'image')} in {format_count(cells, 'cell')}, in {format_path(output)}")
