"""make-c and make-p: the two benchmarks."""

from typing import TYPE_CHECKING, Any

import click

from robustgen.cli.app import Section, command, echo
from robustgen.cli.execution import Execution, take_execution
from robustgen.cli.options import (
    classes_option,
    combine,
    complete,
    corruption_options,
    edition_option,
    engine_options,
    ingredient_options,
    libjpeg_option,
    output_option,
    perturbation_options,
    resolve_config,
    run_options,
    scale_option,
    seed_option,
    selection_options,
    shard_options,
    size_option,
    source_options,
)
from robustgen.errors import ConfigError

if TYPE_CHECKING:
    from robustgen.benchmarks.kinds import Kind
    from robustgen.dataset.plan import Plan

_of_both = combine(
    source_options,
    selection_options,
    output_option,
    edition_option,
    size_option,
    classes_option,
    scale_option,
    seed_option,
    libjpeg_option,
    engine_options,
    run_options,
    shard_options,
    click.option("--shard-size", type=int, help="Images per shard of webdataset and parquet; default 1000."),
)


@command("make-c", Section.MAKE)
@corruption_options
@ingredient_options
@click.option(
    "--format",
    metavar="FORMAT",
    shell_complete=complete(
        "jpeg", "png", "webp", "original", "npy", "npz", "webdataset", "parquet", "table"
    ),
    help="jpeg (default), png, webp, original (names and formats of the source), npy, npz, webdataset, "
    "parquet; table (default for tables).",
)
@click.option(
    "--sample-format", metavar="FORMAT", help="Encoding of the images in shards: jpeg (default), png or webp."
)
@click.option(
    "--mirror",
    is_flag=False,
    flag_value="link",
    metavar="[link|copy|none]",
    help="Link or copy annotations and other files into every variant's folder; with --format original.",
)
@click.option("--quality", type=int, help="JPEG quality; default 85, as published.")
@click.option("--clean/--no-clean", default=None, help="Write the clean images too; default on.")
@_of_both
def make_c(**flags: Any) -> None:
    """Write ImageNet-C: corrupted copies of every image."""
    execution, plan = _plan("c", flags)
    execution.carry_out(plan)


@command("make-p", Section.MAKE)
@perturbation_options
@click.option(
    "--format",
    metavar="FORMAT",
    shell_complete=complete("mp4", "png", "npy", "webdataset", "parquet"),
    help="mp4 (default), png, npy, webdataset or parquet.",
)
@click.option("--preset", metavar="NAME", help="Preset of x264: veryslow (default) to ultrafast.")
@_of_both
def make_p(**flags: Any) -> None:
    """Write ImageNet-P: perturbation sequences of every image."""
    execution, plan = _plan("p", flags | {"video.preset": flags.pop("preset")})
    execution.carry_out(plan)


def _plan(kind: "Kind", flags: dict[str, Any]) -> "tuple[Execution, Plan]":
    execution = take_execution(flags)
    path = resolve_config(flags.pop("dataset"), flags.pop("config_file"))
    if not (path or flags["source"]):
        raise ConfigError("no source: give --dataset, --config or --source")
    from robustgen.benchmarks.corruptions import ALL_CORRUPTIONS
    from robustgen.dataset.plan import plan_benchmark
    from robustgen.settings import config

    choices = config.load(path, flags)
    plan = plan_benchmark(choices, kind, overwrite=execution.overwrite)
    names = dict.fromkeys(arm.name for arm in plan.arms) if plan.mirror else ()
    for name in names:
        if name in ALL_CORRUPTIONS and ALL_CORRUPTIONS[name].displaces:
            echo(f"{name} moves pixels, but boxes and masks stay in place", err=True)
    return execution, plan
