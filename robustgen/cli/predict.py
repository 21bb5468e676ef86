"""predict: predictions of a model on a set."""

from typing import Any

import click

from robustgen.cli.app import Section, command, echo
from robustgen.cli.options import PREPROCESSING, inference_options, pop_runtime, preprocessing_options
from robustgen.display.text import format_path, format_time


@command("predict", Section.SCORE)
@click.argument("dataset")
@click.option(
    "--model",
    metavar="NAME",
    required=True,
    help="model.onnx, model.pt2, timm:NAME[@FILE], torchvision:NAME@FILE, or package.module:function.",
)
@click.option("--output", metavar="DIR", required=True, help="Folder or URL for the .npz files.")
@click.option("--preprocessing", metavar="NAME", help="imagenet, cifar-10, cifar-100, or a YAML file.")
@preprocessing_options
@click.option("--classes", metavar="FILE", help="Class folders in the order of the model's outputs.")
@click.option(
    "--save", type=click.Choice(["logits", "top5"]), help="Default logits for C sets, top5 for P sets."
)
@click.option(
    "--batch",
    "--batch-size",
    "batch",
    type=click.IntRange(1),
    default=64,
    help="Images per batch; default 64.",
)
@inference_options
@click.option("--overwrite", is_flag=True, help="Remove other predictions from the output.")
@click.option("--quiet", is_flag=True, help="Print no progress and no result.")
def predict(dataset: str, model: str, output: str, quiet: bool, **flags: Any) -> None:
    """Run a model on a set.

    DATASET is an output of make-c or make-p, or a published set, as a path or a URL. The predictions are
    written to --output. The same command on several machines shares the work.
    """
    from robustgen.cli.execution import stop_in_order
    from robustgen.display import progress
    from robustgen.evaluation import predicting

    own = {name: flags.pop(name) for name in (*PREPROCESSING, "classes")}
    runtime = pop_runtime(flags)
    stop_in_order()
    with progress.quiet(quiet):
        done = predicting.predict(dataset, model, output, flags=own, runtime=runtime, **flags)
    if quiet:
        return
    echo(
        f"{done.made} {done.noun} predicted in {format_time(done.seconds)}, {done.kept} were there already, "
        f"in {format_path(output)} (preprocessing {done.preprocessing})"
    )
