"""predict: predictions of a model on a set."""

from robustgen.cli.app import command, echo
from robustgen.cli.flags import takes
from robustgen.display.text import format_path, format_time
from robustgen.settings.models import ModelInput, Predicting, Runtime


@command("predict")
@takes(options=Predicting, taken=ModelInput, runtime=Runtime)
def predict(options: Predicting, taken: ModelInput, runtime: Runtime) -> None:
    """Run a model on a set.

    DATASET is an output of make-c or make-p, or a published set, as a path or a URL. The predictions are
    written to a folder below --output, named after the model. The same command on several machines shares
    the work.

    Examples
    --------
    robustgen predict out/imagenet-c --model resnet50.onnx --output preds
    robustgen predict /data/ImageNet-C --model timm:resnet50 --output preds
    """
    from robustgen.cli.execution import stop_in_order
    from robustgen.display import progress
    from robustgen.lab.evaluation import predicting

    stop_in_order()
    with progress.quiet(options.quiet):
        done = predicting.predict(options, taken, runtime)
    if options.quiet:
        return
    echo(
        f"{done.made} {done.noun} predicted in {format_time(done.seconds)}, {done.kept} were there already, "
        f"in {format_path(done.folder)}"
    )
