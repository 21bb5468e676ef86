"""stream and its commands: orders of corrupted images for test-time adaptation, and scores along them."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from robustgen.cli.app import Command, echo, echo_failures, echo_report, group, table_width
from robustgen.cli.execution import stop_in_order
from robustgen.cli.flags import takes
from robustgen.display.text import format_count, format_path, format_size
from robustgen.errors import ArgumentError, ConfigError
from robustgen.related.streams.settings import (
    AccuracyMeasuring,
    CccPlaying,
    Drawing,
    Streaming,
    StreamScoring,
)
from robustgen.settings.config import Choices, Config
from robustgen.settings.fields import Part, spell
from robustgen.settings.models import Runtime

if TYPE_CHECKING:
    from robustgen.sets.sources.base import Source

_CORRELATED = frozenset({"law", "concentration", "slots"})
# The first of the three published seeds of CCC, and the images of an accuracy table.
_SEED, _SAMPLE = 43, 256
_MOST_NAMED = 10


@group("stream", invoke_without_command=True)
@takes(
    "c",
    parts=(Part.SOURCE, Part.SELECTION),
    also=("edition", "corruptions", "severities"),
    says={
        "corruptions": "as for make-c, and clean for clean images; default common",
        "severities": "1 to 5, such as 3, 1-5, 1,3,5 or all; also fractional ones such as 2.5; default 5, of "
        "gradual settings 1-5",
    },
    config=Streaming,
    drawing=Drawing,
)
def stream(config: Streaming, drawing: Drawing) -> None:
    """Draw a stream for test-time adaptation.

    Each line names an image by its key, its corruption, severity and label. robustgen.torch.StreamDataset
    creates the images on the fly.

    Examples
    --------
    robustgen stream --dataset cifar-10 --setting continual
    robustgen stream --dataset cifar-10 --setting correlated --output stream.jsonl
    """
    config.require_source()
    setting = drawing.setting
    import numpy as np

    from robustgen.files.storage import save
    from robustgen.pixels.benchmarks.kinds import IMAGE, require
    from robustgen.related.streams.drawing import choose, draw_stream
    from robustgen.related.streams.rows import StreamRow, format_row
    from robustgen.sets.dataset.selection import (
        check_classes,
        describe_chosen,
        describe_maps,
        open_chosen_source,
        select_keys,
    )

    if wrong := sorted(drawing.flagged & _CORRELATED) * (not setting.endswith("correlated")):
        raise ConfigError(f"{spell(wrong[0])} is for the correlated settings")
    if config.severities_of:
        raise ConfigError("severities_of: all corruptions of a stream have the same severities")
    source = open_chosen_source(config)
    require(source.medium, (IMAGE,), "stream")
    check_classes(source, config)
    remarks, keys = describe_maps(config, source), select_keys(source, config)
    for remark in (*remarks, *describe_chosen(config, source, keys)):
        echo(remark, err=True)
    _tell_of_others(source)
    labels = [source.label(key) for key in keys]
    rng, count = np.random.default_rng(config.seed), 0
    steps = draw_stream(labels, choose(config, drawing), rng)

    def lines() -> Iterator[bytes]:
        nonlocal count
        for step in steps:
            count += 1
            named = config.base_edition if count == 1 and "edition" in config.model_fields_set else ""
            where = (step.visit, step.domain, step.reset, named)
            row = StreamRow(keys[step.image], step.corruption, step.severity, labels[step.image], *where)
            yield f"{format_row(row)}\n".encode()

    output = Path(drawing.output or f"out/stream-{setting}.jsonl")
    save(output, lines(), f"--output {output}")
    echo(f"{format_count(count, 'image')} in {format_path(output.absolute())}")


def _tell_of_others(source: "Source") -> None:
    """Print what the source has beside the images of the stream."""
    for remark in source.remarks():
        echo(remark, err=True)
    if refused := source.refused():
        echo(f"{format_count(len(refused), 'image')} left out:", err=True)
        echo_failures(sorted(refused.items()))


@stream.command(cls=Command)
@takes(options=StreamScoring)
def score(options: StreamScoring) -> None:
    """Print errors along a stream, by corruption and visit.

    Examples
    --------
    robustgen stream score stream.jsonl tent.npy
    robustgen stream score stream.jsonl source.npy tent.npy --output scores.html
    """
    from robustgen.display.html import check_page_path
    from robustgen.lab.scores.gates import NO_EVIDENCE
    from robustgen.lab.scores.table_page import render_report, write_table_page
    from robustgen.related.streams.scoring import score_stream

    if options.output:
        check_page_path(options.output)
    scores = score_stream(options)
    echo_report(render_report(scores, options.format, table_width()), [f"{scores.lead}.", scores.method])
    if options.output:
        write_table_page(scores, NO_EVIDENCE, options.output)
        echo(format_path(options.output.absolute()), err=True)


@stream.command(cls=Command)
@takes(parts=(Part.SOURCE, Part.SELECTION, Part.EDITION, Part.JOBS), choices=Choices, playing=CccPlaying)
def ccc(choices: Choices, playing: CccPlaying) -> None:
    """Write a run of CCC: images whose accuracy stays at a target while corruptions change.

    The shards are WebDatasets in the layout of the published ones. robustgen.torch.CccDataset creates the
    images on the fly.

    Examples
    --------
    robustgen stream ccc --source val --accuracy-table accuracies.json
    robustgen stream ccc --source val --accuracy-table accuracies.json --target 40 --length 25000
    """
    choices.require_source()
    stop_in_order()
    from robustgen.pixels.benchmarks.kinds import IMAGE, require
    from robustgen.related.streams.accuracy_files import load_accuracy_table
    from robustgen.related.streams.ccc import CccRun
    from robustgen.related.streams.shards import write_shards
    from robustgen.sets.dataset.selection import describe_chosen, open_chosen_source, select_keys

    table = load_accuracy_table(playing.accuracy_table)
    source = open_chosen_source(choices)
    require(source.medium, (IMAGE,), "stream ccc")
    keys = select_keys(source, choices)
    for remark in describe_chosen(choices, source, keys):
        echo(remark, err=True)
    _tell_of_others(source)
    seed = choices.seed if "seed" in choices.origins else _SEED
    run = CccRun(table, len(keys), playing.target, playing.speed, seed, playing.length)
    try:
        cells = len(run.cells)
    except ArgumentError as error:
        raise ConfigError(f"{playing.accuracy_table}: {error}") from error
    if run.images_per_cell < run.speed:
        echo(f"{len(keys)} images are fewer than {run.speed}: each cell shows all once", err=True)
    done = write_shards(run, source, keys, playing.output, jobs=choices.jobs, overwrite=playing.overwrite)
    echo(
        f"{format_count(done.made, 'image')} of {format_count(cells, 'cell')} ({format_size(done.size)}) in "
        f"{done.seconds:.1f} s, "
        f"{done.kept} were there already, in {format_path(done.location)}"
    )
    for failure in done.failures[:_MOST_NAMED]:
        echo(f"  {failure['sample']}, {failure['key']!r}: {failure['reason']}", err=True)
    sys.exit(1 if done.failures else 0)


@stream.command(cls=Command)
@takes(
    parts=(Part.SOURCE, Part.SELECTION, Part.EDITION, Part.JOBS),
    also=("with",),
    config=Config,
    measuring=AccuracyMeasuring,
    runtime=Runtime,
)
def measure(config: Config, measuring: AccuracyMeasuring, runtime: Runtime) -> None:
    """Measure the accuracies that `stream ccc` needs, on 256 images unless others are selected.

    Examples
    --------
    robustgen stream measure --source val --model resnet50.onnx
    robustgen stream measure --source val --model resnet50.onnx --output accuracies.json
    """
    config.require_source()
    stop_in_order()
    from robustgen.related.streams.measuring import measure_accuracies

    if not config.origins.keys() & {"limit", "sample", "subset"}:
        config = config.model_copy(update={"sample": _SAMPLE})
    done = measure_accuracies(config, measuring, runtime)
    echo(
        f"{done.made} accuracies of {format_count(done.images, 'image')} measured, "
        f"{done.kept} were there already, in {format_path(measuring.output)}"
    )
    echo_failures(sorted(done.failures.items()))
    sys.exit(1 if done.failures else 0)
