"""stream: in which order test-time adaptation meets corrupted images."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustgen.cli.app import Section, command, echo
from robustgen.cli.options import file_option, resolve_config, seed_option, selection_options, source_options
from robustgen.display.text import format_count, format_path
from robustgen.errors import ConfigError
from robustgen.streams.choices import MOST_SLOTS, ORDERS, SETTINGS, Setting, StreamChoices

if TYPE_CHECKING:
    from robustgen.generation.config import Config


@command("stream", Section.SCORE)
@click.option("--setting", type=click.Choice(SETTINGS), required=True, help="Of the papers; see docs.")
@source_options
@selection_options
@click.option("--corruptions", metavar="NAMES", help="In this order; default the fifteen, as in the paper.")
@click.option("--severities", metavar="LEVELS", help="Default 5; of gradual 1-5, up and down.")
@seed_option
@click.option("--shuffle", is_flag=True, help="Draw the order of the corruptions.")
@click.option("--abrupt", is_flag=True, help="Of gradual: begin at the highest severity, as in CoTTA's code.")
@click.option(
    "--concentration",
    type=float,
    metavar="X",
    help="Of correlated: Dirichlet's parameter; default 0.1.",
)
@click.option(
    "--slots",
    type=click.IntRange(1, MOST_SLOTS),
    metavar="N",
    help="Of correlated; default one a class, at most 100.",
)
@file_option("--output", "JSON lines; default out/stream-SETTING.jsonl.")
def stream(setting: Setting, output: Path | None, **flags: Any) -> None:
    """Draw a stream for test-time adaptation.

    Each line names an image by its key, its corruption, severity and label; robustgen.torch.StreamDataset
    plays it.
    """
    own = {name: flags.pop(name) for name in ("shuffle", "abrupt", "concentration", "slots")}
    path = resolve_config(flags.pop("dataset"), flags.pop("config_file"))
    if not (path or flags["source"]):
        raise ConfigError("nothing to draw from: give --dataset, --config or --source")
    if setting != "correlated" and (own["concentration"], own["slots"]) != (None, None):
        raise ConfigError("--concentration and --slots are for --setting correlated")
    from robustgen.generation import config

    chosen = config.load(path, flags)
    output = output or Path(f"out/stream-{setting}.jsonl")
    _write(chosen, _choose(setting, chosen, flags, own), output)


def _choose(setting: Setting, config: "Config", flags: dict[str, Any], own: dict[str, Any]) -> StreamChoices:
    """What to draw: the paper's order and severities where the command names none."""
    given = {name: value for name, value in own.items() if value is not None}
    corruptions = config.corruptions
    if flags["corruptions"] is None and {*corruptions} == {*ORDERS[setting]}:
        corruptions = ORDERS[setting]
    usual = config.severities if setting == "gradual" else (5,)
    severities = config.severities if flags["severities"] else usual
    return StreamChoices(setting, corruptions, severities, **given)


def _write(config: "Config", choices: StreamChoices, output: Path) -> None:
    import numpy as np

    from robustgen.generation.selection import open_chosen_source, select_keys
    from robustgen.output.files import save_parts
    from robustgen.streams.drawing import draw_stream
    from robustgen.streams.rows import StreamRow, format_row

    source = open_chosen_source(config)
    keys = select_keys(source, config)
    labels = [source.label(key) for key in keys]
    steps = draw_stream(labels, choices, np.random.default_rng(config.seed))
    rows = (StreamRow(keys[step.image], *step[1:], labels[step.image]) for step in steps)
    save_parts(output, (f"{format_row(row)}\n".encode() for row in rows), f"--output {output}")
    count = format_count(len(keys) * choices.stretches, "image")
    echo(f"{count} in {format_path(output.absolute())}")
