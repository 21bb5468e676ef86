"""evaluate: predictions of models on corruptions that are not stored; predict: predictions on a set."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from robustgen.cli.app import command, echo, echo_failures, echo_report, table_width
from robustgen.cli.execution import stop_in_order
from robustgen.cli.flags import takes
from robustgen.display.text import format_count, format_path, format_time
from robustgen.errors import ConfigError, SourceError
from robustgen.settings.config import Config
from robustgen.settings.fields import Part, spell
from robustgen.settings.models import Evaluating, ModelInput, Predicting, Runtime
from robustgen.settings.scoring import DetectionScoring

if TYPE_CHECKING:
    from robustgen.lab.evaluation.predictions import EvaluateResult


_OF_CLASSIFIERS = frozenset(
    {
        *("baseline", "save", "only_classes", "batch_size", "perturbations", "difficulty"),
        "uncompressed",
    }
)


@command("evaluate")
@takes(
    options=Evaluating,
    config=Config,
    taken=ModelInput,
    runtime=Runtime,
    parts=(Part.SELECTION, Part.EDITION, Part.OPERATIONS, Part.JOBS),
    also=("dataset", "config", "source", "labels"),
    says={
        "perturbations": "score ImageNet-P on these (robustgen list perturbations); default none",
        "difficulty": "score ImageNet-P at these difficulties of the noise sequences, 1 to 3; default none",
    },
)
def evaluate(options: Evaluating, config: Config, taken: ModelInput, runtime: Runtime) -> None:
    """Score models on images corrupted on the fly.

    Writes only predictions, the same ones that predict writes for the set of make-c or make-p. score can read
    them again. --perturbations or --difficulty selects ImageNet-P; --annotations selects detectors.

    Examples
    --------
    robustgen evaluate --dataset imagenet --model resnet50.onnx --output preds
    robustgen evaluate --dataset cifar-10 --model mymodel:build --input-size 32 --output preds
    """
    config.require_source()
    from robustgen.display import progress

    stop_in_order()
    with progress.quiet(options.quiet):
        if options.annotations:
            _detect(options, options.annotations, config, taken, runtime)
            return
        from robustgen.lab.evaluation import evaluating
        from robustgen.lab.models.opening import open_model
        from robustgen.lab.scores import scoring

        scoring.check_baseline(options.baseline)
        models = [open_model(name, runtime) for name in options.model]
        done = evaluating.evaluate(config, config.kind, models, options.output, options, taken)
    if not options.quiet:
        _show(done, options.baseline)
    for remark in done.remarks:
        echo(remark, err=True)
    if done.failures:
        echo(f"{format_count(len(done.failures), done.source_noun)} could not be made:", err=True)
        echo_failures(sorted(done.failures.items()), done.source_noun)
    sys.exit(1 if done.failures else 0)


def _detect(
    options: Evaluating, annotations: Path, config: Config, taken: ModelInput, runtime: Runtime
) -> None:
    """Run detectors, and print their scores."""
    from robustgen.lab.evaluation.detection import detecting
    from robustgen.lab.scores.detection import score_detections
    from robustgen.lab.scores.table_page import render_report

    given = options.flagged | config.flagged
    for name in sorted((given & _OF_CLASSIFIERS) | taken.flagged):
        raise ConfigError(f"{spell(name)} cannot be combined with --annotations, which selects detectors")
    done = detecting.evaluate_detectors(
        config, annotations, options.model, Path(options.output), runtime, overwrite=options.overwrite
    )
    for each in done:
        counts = f"{each.made} files written, {each.kept} were there already"
        echo(f"results in {format_path(each.folder)}: {counts}")
        if each.dropped:
            count = format_count(each.dropped, "detection")
            echo(f"{count} with categories that {annotations} does not have", err=True)
        if options.quiet or not (each.folder / "clean.json").is_file():
            continue
        scored = DetectionScoring(
            annotations=each.annotations,
            results=f"{each.folder}/{{corruption}}/{{severity}}.json",
            clean=each.folder / "clean.json",
            partial=True,
            name=each.folder.name,
            jobs=1,
        )
        report = score_detections(scored)
        echo_report(render_report(report, "table", table_width()), report.notes)


def _show(done: "EvaluateResult", baseline: str | None) -> None:
    from robustgen.lab.scores import scoring, text_forms

    for folder in done.folders:
        echo(f"predictions in {format_path(folder)}")
    made = format_count(done.made, done.noun)
    echo(f"{made} predicted in {format_time(done.seconds)}, {done.kept} were there already")
    echo("")
    try:
        report = scoring.score(done.folders, baseline=baseline, partial=True)
    except (ConfigError, SourceError) as error:
        # For instance with only extra corruptions, which have no mean.
        echo(f"no table: {error}", err=True)
        return
    echo_report(text_forms.format_report(report, "table", table_width()), report.notes)


@command("predict")
@takes(options=Predicting, taken=ModelInput, runtime=Runtime)
def predict(options: Predicting, taken: ModelInput, runtime: Runtime) -> None:
    """Run a model on a set.

    SET is an output of make-c or make-p, or a published set, as a path or a URL. The predictions are
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
        f"{done.made} {done.noun}s predicted in {format_time(done.seconds)}, {done.kept} were there already, "
        f"in {format_path(done.folders[0])}"
    )
