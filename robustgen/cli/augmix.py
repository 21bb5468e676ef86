"""make-augmix: AugMix copies of a training set."""

from typing import Any

import click

from robustgen.cli.app import Section, command
from robustgen.cli.execution import take_execution
from robustgen.cli.options import (
    edition_option,
    output_option,
    resolve_config,
    run_options,
    seed_option,
    selection_options,
    shard_options,
    source_options,
)
from robustgen.errors import ConfigError


@command("make-augmix", Section.FAMILY)
@click.option("--copies", type=int, metavar="N", help="Augmented copies of every image; default 2.")
@click.option("--severity", type=float, metavar="X", help="Strength of the operations, 0.1 to 10; default 3.")
@click.option("--width", type=int, metavar="N", help="Number of chains; default 3.")
@click.option("--depth", type=int, metavar="N", help="Operations per chain; default -1: 1 to 3 at random.")
@click.option("--alpha", type=float, metavar="X", help="Parameter of the weights' distribution; default 1.")
@click.option("--operations", metavar="SET", help="augmix (default), or all: adds some close to ImageNet-C.")
@click.option("--quality", type=int, help="JPEG quality; default 85.")
@source_options
@selection_options
@output_option
@edition_option
@seed_option
@run_options
@shard_options
def make_augmix(**flags: Any) -> None:
    """Write AugMix copies of training images."""
    execution = take_execution(flags)
    dataset = flags.pop("dataset")
    path = resolve_config(dataset, flags.pop("config_file"))
    if not (path or flags["source"]):
        raise ConfigError("no source: give --source, --config or --dataset demo")
    from robustgen.related.augmentation import training_copies

    choices = training_copies.load_choices(path, flags)
    training_copies.refuse_scored_source(dataset, choices, flags["source"])
    execution.carry_out(training_copies.plan_copies(choices))
