"""predict and score."""

from pathlib import Path
from typing import Any

import click

from robustgen.cli.group import in_time, main, shown


@main.command()
@click.argument("dataset", type=click.Path(path_type=Path))
@click.option("--model", metavar="FILE", type=click.Path(path_type=Path), required=True, help="ONNX model.")
@click.option("--output", metavar="DIR", type=click.Path(path_type=Path), required=True, help="For the .npz.")
@click.option("--preprocessing", metavar="NAME", help="imagenet, cifar-10, cifar-100, or a YAML file.")
@click.option("--mean", metavar="R,G,B", help="The model sees (scale * pixel - mean) / std.")
@click.option("--std", metavar="R,G,B", help="Goes with --mean.")
@click.option("--scale", metavar="X", help="Of the pixels, 0 to 255; default 1/255.")
@click.option("--layout", metavar="AXES", help="NCHW or NHWC; default what the model says.")
@click.option("--size", metavar="N", help="Resize the images to N x N, or to H,W.")
@click.option("--classes", metavar="FILE", help="Class folders in the order of the model's outputs.")
@click.option("--clahe/--no-clahe", default=None, help="Equalise the lightness of the images first.")
@click.option(
    "--save", type=click.Choice(["logits", "top5"]), help="Default logits of C sets, top5 of P sets."
)
@click.option("--batch", type=click.IntRange(1), default=64, help="Images at once; default 64.")
@click.option("--threads", type=click.IntRange(1), help="Default one a core.")
@click.option("--provider", metavar="NAME", help="Of ONNX Runtime; default CPUExecutionProvider.")
@click.option("--overwrite", is_flag=True, help="Remove other predictions from the output.")
def predict(dataset: Path, model: Path, output: Path, **flags: Any) -> None:
    """Run an ONNX model over DATASET, an output of make-c or make-p, and keep what it predicts."""
    from robustgen.evaluation import models, predicting

    own = {name: flags.pop(name) for name in ("mean", "std", "scale", "layout", "size", "classes", "clahe")}
    flags |= {"threads": flags["threads"] or 0, "provider": flags["provider"] or models.CPU}
    done = predicting.predict(dataset, model, output, flags=own, **flags)
    click.echo(
        f"{done.made} {done.noun} predicted in {in_time(done.seconds)}, {done.kept} were there already, "
        f"in {shown(output)} (preprocessing {done.preprocessing})"
    )


@main.command()
@click.argument("predictions", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--baseline", metavar="NAME", help="alexnet (default for ImageNet), none, or a FILE.")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["table", "markdown", "csv", "json", "latex"]),
    default="table",
    help="Default table.",
)
@click.option("--partial", is_flag=True, help="Score incomplete sets too, and say what is missing.")
@click.option("--difficulty", type=click.IntRange(1, 3), default=1, help="Of perturbations; default 1.")
@click.option("--dataset", metavar="DIR", type=click.Path(path_type=Path), help="Check the keys against it.")
@click.option(
    "--plot", metavar="FILE", type=click.Path(path_type=Path), help="Draw a chart: .png, .svg, .pdf."
)
def score(predictions: tuple[Path, ...], layout: str, plot: Path | None, **flags: Any) -> None:
    """Print the papers' tables for PREDICTIONS, a folder for each model."""
    from robustgen.display import charts
    from robustgen.evaluation import plotting, scoring

    if plot:
        charts.check(plot)
    report = scoring.score(predictions, **flags)
    click.echo(report.rendered(layout))
    for note in report.notes:
        click.echo(note, err=True)
    if plot:
        plotting.plot(report, plot)
