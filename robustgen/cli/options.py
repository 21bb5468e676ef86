"""The options that commands share, as decorators to be put together, and what is read from them."""

import shutil
import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click

from robustgen.errors import ConfigError
from robustgen.execution.running import BACKENDS

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]
Completer = Callable[[click.Context, click.Parameter, str], list[str]]

PATH = click.Path(path_type=Path)


class Jobs(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A whole number from 1 up, or ``all``."""

    name = "n|all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Return `value` as a number, unless it is ``all``."""
        if value == "all" or isinstance(value, int):
            return value  # type: ignore[no-any-return]
        if not value.lstrip("-").isdecimal():
            raise ConfigError(f"--jobs: must be a whole number or all, not {value!r}")
        if int(value) < 1:
            raise ConfigError(f"--jobs: must be at least 1, not {value}")
        return int(value)


def complete(*names: str) -> Completer:
    """Return the completions of an option that takes one of `names`."""
    return lambda ctx, param, begun: [name for name in names if name.startswith(begun)]


def complete_operations(ctx: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Return the completions of ``--corruptions``, ``--perturbations`` and `list`: names after each comma."""
    from robustgen.metrics import names

    known = {
        "corruptions": ("common", "extra", "all", *names.COMMON_CORRUPTIONS, *names.EXTRA_CORRUPTIONS),
        "perturbations": ("common", "extra", "all", *names.COMMON_PERTURBATIONS, *names.EXTRA_PERTURBATIONS),
    }
    every = (*known["corruptions"][3:], *known["perturbations"][3:], *EDITION_NAMES)
    before, comma, last = begun.rpartition(",")
    names_here = dict.fromkeys(known.get(param.name or "", every))
    return [f"{before}{comma}{name}" for name in names_here if name.startswith(last)]


def combine(*decorators: Decorator[Any]) -> Decorator[Any]:
    """Return one decorator in place of several; the help lists their options in this order."""
    return lambda command: reduce(lambda made, decorate: decorate(made), reversed(decorators), command)


# --- what to work on -----------------------------------------------------------------------------

# Named here too, because to ask those who know would load them; a test compares.
EDITION_NAMES = (
    *("imagenet", "imagenet-inception", "imagenet-64", "tiny-imagenet", "cifar-10", "cifar-100"),
    *("folder", "coco-c", "laion-c"),
    *("mnist", "pathmnist", "bloodmnist", "dermamnist", "retinamnist", "tissuemnist", "octmnist"),
    *("breastmnist", "chestmnist", "pneumoniamnist", "organamnist", "organcmnist", "organsmnist"),
)
DATASET_NAMES = (*EDITION_NAMES, "demo", "table")
_common = "common (default), extra, all, or names: a,b; robustgen list names all."

source_options = combine(
    click.option(
        "--dataset",
        metavar="NAME",
        shell_complete=complete(*DATASET_NAMES),
        help=f"A built-in config: {', '.join(DATASET_NAMES)}.",
    ),
    click.option("--config", "config_file", type=PATH, help="Your own YAML config."),
    click.option("--source", metavar="PATH", help="Folder or archive of the source images."),
    click.option("--split", metavar="NAME", help="Of the source: train, for instance; default as published."),
    click.option("--labels", metavar="FILE", help="Labels of a flat source: a file, or ImageNet's devkit."),
    click.option(
        "--labels-are-classes",
        is_flag=True,
        default=None,
        help="Numbers in --labels name classes; they are not those of ImageNet's devkit.",
    ),
    click.option("--image-columns", metavar="NAMES", help="Columns of images of a table; default image."),
    click.option("--image-root", metavar="DIR", help="Folder of the images that a table names."),
    click.option("--follow-links", metavar="DIRS", help="Places that links in the source may lead to: a,b."),
)
selection_options = combine(
    click.option("--limit", type=int, metavar="N", help="Only the first N images."),
    click.option("--sample", type=int, metavar="N", help="Only N images, of all classes alike, by the seed."),
    click.option("--subset", metavar="FILE", help="Only the images whose keys the file lists."),
    click.option("--images", metavar="PATTERN", help="Only images whose keys match, such as 'val/*'."),
)

# --- what to make of it --------------------------------------------------------------------------

edition_option = click.option(
    "--edition",
    metavar="NAME",
    shell_complete=complete(*EDITION_NAMES),
    help=f"Preparation and constants: {', '.join(EDITION_NAMES)}.",
)
classes_option = click.option(
    "--classes/--no-classes", default=None, help="Whether ImageNet must come in class folders or with labels."
)
scale_option = click.option(
    "--scale", type=int, metavar="PIXELS", help="Constants of 224, 299, 64, 32, 256, 336, 384 or 448 instead."
)
size_option = click.option(
    "--size", type=int, metavar="PIXELS", help="Resize and crop as the edition does, but to this size."
)
seed_option = click.option("--seed", type=int, help="Non-negative whole number; default 0.")
corruption_options = combine(
    click.option("--corruptions", metavar="NAMES", shell_complete=complete_operations, help=_common),
    click.option("--severities", metavar="N,N", help="1-5 (default), or for instance 1,3."),
)
ingredient_options = combine(
    click.option(
        "--tiles",
        metavar="PATH",
        help="Pictures for laion-c:stickers and laion-c:mosaic; default the set itself.",
    ),
    click.option(
        "--depth",
        "--depth-maps",
        "depth_maps",
        metavar="PATH",
        help="Depth maps for 3dcc: PNG of 16 bits, .npy or TIFF.",
    ),
    click.option("--depth-scale", metavar="X", help="Factor of the stored depth, or midas; default 1."),
)
perturbation_options = combine(
    click.option("--perturbations", metavar="NAMES", shell_complete=complete_operations, help=_common),
    click.option("--difficulty", metavar="N,N", help="1 (default), 2, 3 or all: strength of the noises."),
)
engine_options = combine(
    click.option("--frost-dir", metavar="DIR", help="Another copy of the frost photographs."),
    click.option(
        "--motion-blur",
        metavar="ENGINE",
        shell_complete=complete("exact", "imagemagick"),
        help="exact (default) or imagemagick.",
    ),
)

# --- how to work ---------------------------------------------------------------------------------

output_option = click.option("--output", metavar="DIR", help="Where to write.")
run_options = combine(
    click.option("--jobs", type=Jobs(), help="Worker processes; default all: one a core."),
    click.option("--overwrite", is_flag=True, help="Start over if the output holds something else."),
    click.option("--allow-failures", is_flag=True, help="Exit with status 0 even if images failed."),
    click.option("--dry-run", is_flag=True, help="Print the plan and an estimate; create nothing."),
    click.option(
        "--plan", "plan_file", metavar="FILE", help="Write the plan for `robustgen run`; create nothing."
    ),
    click.option("--quiet", is_flag=True, help="Print no progress and no result, only what failed."),
    click.option(
        "--log-json",
        "log_file",
        metavar="FILE",
        help="Append a line of JSON for each work unit: images, seconds, failures.",
    ),
)
shard_options = combine(
    click.option("--shard", metavar="I/N", help="Only part I of N; auto takes both from a SLURM array."),
    click.option(
        "--backend",
        type=click.Choice(BACKENDS),
        default="loky",
        help="Where workers run: loky (this machine, default), dask or ray.",
    ),
    click.option(
        "--scheduler",
        "--address",
        "address",
        metavar="ADDRESS",
        help="Address of the Dask scheduler (tcp://host:8786), or of the Ray cluster (default auto).",
    ),
    click.option(
        "--slurm",
        metavar="OPTIONS",
        help="Submit to SLURM, with options of sbatch: partition=cpu,cpus-per-task=16,time=2:00:00.",
    ),
    click.option("--shards", type=click.IntRange(1), metavar="N", help="Tasks of the SLURM array."),
    click.option("--wait", is_flag=True, help="Wait until the SLURM array has ended."),
)
threads_option = click.option(
    "--jobs",
    type=Jobs(),
    callback=lambda ctx, param, jobs: None if jobs == "all" else jobs,
    help="Threads; default all: one a core.",
)

# --- models --------------------------------------------------------------------------------------

# What of a model's preprocessing flags can say; `evaluation.preprocessing` takes them together.
PREPROCESSING = ("mean", "std", "pixel_scale", "layout", "input_size", "clahe")
preprocessing_options = combine(
    click.option("--mean", metavar="R,G,B", help="The model sees (pixel-scale * pixel - mean) / std."),
    click.option("--std", metavar="R,G,B", help="Goes with --mean."),
    click.option("--pixel-scale", metavar="X", help="Factor of the pixels, 0 to 255; default 1/255."),
    click.option("--layout", metavar="AXES", help="NCHW or NHWC; default what the model says."),
    click.option(
        "--input-size", metavar="N", help="Of the images that the model sees: N x N pixels, or H,W."
    ),
    click.option("--clahe/--no-clahe", default=None, help="Equalise the lightness of the images first."),
)
inference_options = combine(
    click.option(
        "--device",
        type=click.Choice(["auto", "cpu", "cuda", "mps"]),
        help="Where models compute; default auto: the first there is of cuda, mps, cpu.",
    ),
    click.option(
        "--mixed-precision", is_flag=True, default=None, help="Half precision where it is safe; PyTorch only."
    ),
    click.option("--threads", type=click.IntRange(1), help="Default one a core."),
    click.option("--provider", metavar="NAME", help="Execution provider of ONNX Runtime."),
    click.option(
        "--trust-model",
        is_flag=True,
        default=None,
        help="Load a .pt2 even if it can run any code.",
    ),
)


_RUNTIME = ("device", "threads", "mixed_precision", "provider", "trust_model")


def pop_runtime(flags: dict[str, Any]) -> Any:
    """Return the `Runtime` that the `inference_options` among `flags` say; they are removed there."""
    from robustgen.evaluation.models.base import Runtime

    given = {name: flags.pop(name, None) for name in _RUNTIME}
    return Runtime(**{name: value for name, value in given.items() if value is not None})


def format_option(*layouts: str) -> Decorator[Any]:
    """Return the layout to print in; the command takes it as `layout`."""
    return click.option(
        "--format", "layout", type=click.Choice(layouts), default=layouts[0], help=f"Default {layouts[0]}."
    )


# Of scores over files for each corruption and severity.
cell_score_options = combine(
    format_option("table", "markdown", "csv", "json", "latex"),
    click.option("--partial", is_flag=True, help="Score incomplete sets too, and say what is missing."),
    click.option(
        "--replicates",
        type=click.IntRange(0),
        default=100,
        help="Bootstrap samples of images for 95 % intervals; 0 for none. Default 100.",
    ),
)


def file_option(name: str, help_text: str) -> Decorator[Any]:
    """Return a file to write."""
    return click.option(name, metavar="FILE", type=PATH, help=help_text)


def table_width() -> int:
    """Return the columns of the terminal; 0 in a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def resolve_config(dataset: str | None, file: Path | None) -> Path | None:
    """Return the YAML file that --dataset or --config names, if one of them is given.

    Raises
    ------
    ConfigError, UnknownNameError
        Both are given, or there is no such data set.
    """
    if dataset and file:
        raise ConfigError("give --dataset or --config, not both")
    from robustgen.dataset import config

    return config.dataset_file(dataset) if dataset else file
