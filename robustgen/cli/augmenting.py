"""make-augmix."""

from typing import Any

import click

from robustgen.cli.group import main, named_config
from robustgen.cli.making import carry_out, run_options, taken_execution
from robustgen.errors import ConfigError


@main.command("make-augmix")
@run_options(without=("--scale", "--frost-dir", "--motion-blur"))
@click.option("--copies", type=int, metavar="N", help="Augmented copies of every image; default 2.")
@click.option("--severity", type=float, metavar="X", help="0.1 to 10, strength of the operations; default 3.")
@click.option("--width", type=int, metavar="N", help="Number of chains; default 3.")
@click.option("--depth", type=int, metavar="N", help="Operations in each chain; default -1: 1 to 3.")
@click.option("--alpha", type=float, metavar="X", help="Of the distributions of the weights; default 1.")
@click.option("--operations", metavar="SET", help="augmix (default), or all: also those near to ImageNet-C.")
@click.option("--quality", type=int, help="JPEG quality; default 85.")
def make_augmix(**flags: Any) -> None:
    """Write a training set: AugMix copies of every image."""
    execution = taken_execution(flags)
    dataset = flags.pop("dataset")
    path = named_config(dataset, flags.pop("config_file"))
    if not (path or flags["source"]):
        raise ConfigError("nothing to work on: give --source, --config or --dataset demo")
    from robustgen.augmentation import generating

    choices = generating.load(path, flags)
    generating.check_named(dataset, choices, flags["source"])
    carry_out(generating.plan(choices), **execution)
