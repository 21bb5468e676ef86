"""Options that several commands share, as decorators, and functions that read them."""

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
    """A whole number of at least 1, or ``all``."""

    name = "n|all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Return `value` as a number or ``all``."""
        if value == "all" or isinstance(value, int):
            return value  # type: ignore[no-any-return]
        if not value.lstrip("-").isdecimal():
            raise ConfigError(f"--jobs: must be a whole number or all, not {value!r}")
        if int(value) < 1:
            raise ConfigError(f"--jobs: must be at least 1, not {value}")
        return int(value)


def complete(*names: str) -> Completer:
    """Return a function that completes an option whose values are `names`."""
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
    """Return one decorator that applies several; the help lists their options in this order."""
    return lambda command: reduce(lambda made, decorate: decorate(made), reversed(decorators), command)


# --- source --------------------------------------------------------------------------------------

# Listed here to avoid heavy imports; a test compares the list with the registry.
EDITION_NAMES = (
    *("imagenet", "imagenet-inception", "imagenet-64", "tiny-imagenet", "cifar-10", "cifar-100"),
    *("folder", "coco-c", "laion-c"),
    *("mnist", "pathmnist", "bloodmnist", "dermamnist", "retinamnist", "tissuemnist", "octmnist"),
    *("breastmnist", "chestmnist", "pneumoniamnist", "organamnist", "organcmnist", "organsmnist"),
)
DATASET_NAMES = (*EDITION_NAMES, "demo", "table")
_common = "common (default), extra, all, or names: a,b; robustgen list prints all."

source_options = combine(
    click.option(
        "--dataset",
        metavar="NAME",
        shell_complete=complete(*DATASET_NAMES),
        help=f"Built-in config: {', '.join(DATASET_NAMES)}.",
    ),
    click.option("--config", "config_file", type=PATH, help="Your own YAML config."),
    click.option("--source", metavar="PATH", help="Folder, archive, shards or URL of the source images."),
    click.option("--split", metavar="NAME", help="Split of the source, such as train; default as published."),
    click.option("--labels", metavar="FILE", help="Labels of a flat source: a file, or ImageNet's devkit."),
    click.option(
        "--labels-are-classes",
        is_flag=True,
        default=None,
        help="Numbers in --labels are your own classes, not those of ImageNet's devkit.",
    ),
    click.option("--image-columns", metavar="NAMES", help="Image columns of a table; default image."),
    click.option("--image-root", metavar="DIR", help="Folder of the image paths in a table."),
    click.option("--follow-links", metavar="DIRS", help="Allowed targets of links in the source: a,b."),
)
selection_options = combine(
    click.option("--limit", type=int, metavar="N", help="Use only the first N images."),
    click.option("--sample", type=int, metavar="N", help="Use a class-balanced random sample of N images."),
    click.option(
        "--subset", metavar="FILE", help="Use only the images whose keys (<class>/<name>) are in the file."
    ),
    click.option("--images", metavar="PATTERN", help="Use only images whose keys match, such as 'val/*'."),
)

# --- corruption ----------------------------------------------------------------------------------

edition_option = click.option(
    "--edition",
    metavar="NAME",
    shell_complete=complete(*EDITION_NAMES),
    help=f"Preparation and constants: {', '.join(EDITION_NAMES)}.",
)
classes_option = click.option(
    "--classes/--no-classes", default=None, help="Require class folders or labels for ImageNet; default on."
)
scale_option = click.option(
    "--scale",
    type=int,
    metavar="PIXELS",
    help="Use the constants for 224, 299, 64, 32, 256, 336, 384 or 448.",
)
size_option = click.option(
    "--size", type=int, metavar="PIXELS", help="Resize and crop to this size instead of the edition's."
)
libjpeg_option = click.option(
    "--libjpeg",
    metavar="LIBRARY",
    shell_complete=complete("turbo", "ijg"),
    help="Decode and encode JPEG by turbo (default), or ijg: libjpeg 9c, as in the published files.",
)
seed_option = click.option("--seed", type=int, help="Seed, a non-negative whole number; default 0.")
corruption_options = combine(
    click.option("--corruptions", metavar="NAMES", shell_complete=complete_operations, help=_common),
    click.option("--severities", metavar="N,N", help="Severities, such as 1,3; default 1-5."),
)
ingredient_options = combine(
    click.option(
        "--tiles",
        metavar="PATH",
        help="Pictures for laion-c:stickers and laion-c:mosaic; default: the set itself.",
    ),
    click.option(
        "--depth",
        "--depth-maps",
        "depth_maps",
        metavar="PATH",
        help="Depth maps for 3dcc: 16-bit PNG, .npy or TIFF.",
    ),
    click.option("--depth-scale", metavar="X", help="Factor for the stored depth, or midas; default 1."),
)
perturbation_options = combine(
    click.option("--perturbations", metavar="NAMES", shell_complete=complete_operations, help=_common),
    click.option("--difficulty", metavar="N,N", help="Difficulties of noises: 1 (default), 2, 3 or all."),
)
engine_options = combine(
    click.option("--frost-dir", metavar="DIR", help="Folder with the frost photographs."),
    click.option(
        "--motion-blur",
        metavar="ENGINE",
        shell_complete=complete("exact", "imagemagick"),
        help="Implementation: exact (default) or imagemagick.",
    ),
)

# --- execution -----------------------------------------------------------------------------------

output_option = click.option("--output", metavar="DIR", help="Output folder or URL.")
run_options = combine(
    click.option("--jobs", type=Jobs(), help="Worker processes; default all: one per core."),
    click.option("--overwrite", is_flag=True, help="Start over if the output has other content."),
    click.option("--allow-failures", is_flag=True, help="Exit with status 0 even if images failed."),
    click.option("--dry-run", is_flag=True, help="Print the plan and an estimate; create nothing."),
    click.option(
        "--plan", "plan_file", metavar="FILE", help="Write the plan for `robustgen run`; create nothing."
    ),
    click.option("--quiet", is_flag=True, help="Print only failures, no progress and no result."),
    click.option(
        "--log-json",
        "log_file",
        metavar="FILE",
        help="Append one line of JSON per work unit: images, seconds, failures.",
    ),
)
shard_options = combine(
    click.option(
        "--shard", metavar="I/N", help="Process only part I of N; auto reads both from a SLURM array."
    ),
    click.option(
        "--backend",
        type=click.Choice(BACKENDS),
        default="loky",
        help="Executor of the workers: loky (this machine, default), dask or ray.",
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
        help="Submit to SLURM with these sbatch options: partition=cpu,cpus-per-task=16,time=2:00:00.",
    ),
    click.option("--shards", type=click.IntRange(1), metavar="N", help="Number of tasks of the SLURM array."),
    click.option("--wait", is_flag=True, help="Wait until the SLURM array has ended."),
)
threads_option = click.option(
    "--jobs",
    type=Jobs(),
    callback=lambda ctx, param, jobs: None if jobs == "all" else jobs,
    help="Threads; default all: one per core.",
)

# --- models --------------------------------------------------------------------------------------

# Flags that `evaluation.preprocessing` reads together.
PREPROCESSING = ("mean", "std", "pixel_scale", "layout", "input_size", "clahe")
preprocessing_options = combine(
    click.option(
        "--mean", metavar="R,G,B", help="Mean: the model input is (pixel-scale * pixel - mean) / std."
    ),
    click.option("--std", metavar="R,G,B", help="Standard deviation, see --mean."),
    click.option("--pixel-scale", metavar="X", help="Factor for pixels from 0 to 255; default 1/255."),
    click.option("--layout", metavar="AXES", help="NCHW or NHWC; default: from the model."),
    click.option("--input-size", metavar="N", help="Resize images to this model input: N (pixels) or H,W."),
    click.option("--clahe/--no-clahe", default=None, help="Apply CLAHE to the images first; default off."),
)
inference_options = combine(
    click.option(
        "--device",
        type=click.Choice(["auto", "cpu", "cuda", "mps"]),
        help="Device of the models; default auto: the first available of cuda, mps, cpu.",
    ),
    click.option(
        "--mixed-precision", is_flag=True, default=None, help="Half precision where it is safe; PyTorch only."
    ),
    click.option("--threads", type=click.IntRange(1), help="Threads of the model; default: one per core."),
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
    """Remove the `inference_options` from `flags` and return them as a `Runtime`."""
    from robustgen.models.base import Runtime

    given = {name: flags.pop(name, None) for name in _RUNTIME}
    return Runtime(**{name: value for name, value in given.items() if value is not None})


def format_option(*layouts: str) -> Decorator[Any]:
    """Return the option ``--format``; the command receives it as `layout`."""
    return click.option(
        "--format", "layout", type=click.Choice(layouts), default=layouts[0], help=f"Default {layouts[0]}."
    )


# For scores of files for each corruption and severity.
cell_score_options = combine(
    format_option("table", "markdown", "csv", "json", "latex"),
    click.option("--partial", is_flag=True, help="Score incomplete sets too; print the missing parts."),
    click.option(
        "--replicates",
        type=click.IntRange(0),
        default=100,
        help="Bootstrap samples of images for 95 % intervals; 0 for none; default 100.",
    ),
)


def file_option(name: str, help_text: str) -> Decorator[Any]:
    """Return an option for a file to write."""
    return click.option(name, metavar="FILE", type=PATH, help=help_text)


def table_width() -> int:
    """Return the number of columns of the terminal; 0 in a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def resolve_config(dataset: str | None, file: Path | None) -> Path | None:
    """Return the YAML file of --dataset or --config; None if neither is given.

    Raises
    ------
    ConfigError, UnknownNameError
        Both are given, or the data set is unknown.
    """
    if dataset and file:
        raise ConfigError("give --dataset or --config, not both")
    from robustgen.settings import config

    return config.dataset_file(dataset) if dataset else file
