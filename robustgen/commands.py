"""The commands as functions for Python: make-c, make-p, verify, preview, evaluate and score.

They call what the commands call, so that files and numbers are the same, and return what these print.
"""

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from PIL import Image

from robustgen.display import progress
from robustgen.display.sheets import CELL, FRAMES_DRAWN
from robustgen.errors import ConfigError, RobustgenError, UnknownNameError, WriteError
from robustgen.files.storage.host import check_system, explain_refusal
from robustgen.files.storage.local import TemporaryFolder
from robustgen.lab.evaluation import evaluating
from robustgen.lab.inspection.verify import Findings
from robustgen.lab.inspection.verify import verify as check_output
from robustgen.lab.models.base import FunctionModel
from robustgen.lab.models.opening import borrow_model
from robustgen.lab.scores import scoring
from robustgen.lab.scores.public import Row, Scores
from robustgen.pixels.benchmarks.kinds import Kind
from robustgen.pixels.imaging.decode import as_rgb
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.dataset.planning import plan_benchmark
from robustgen.sets.dataset.run import RunResult, run_plan
from robustgen.sets.executors import Launcher, read_executor
from robustgen.settings.config import Config
from robustgen.settings.fields import Options
from robustgen.settings.inspecting import Verifying
from robustgen.settings.keywords import ConfigKeys, EvaluateKeys, MakeKeys
from robustgen.settings.loading import Loaded, load, load_config
from robustgen.settings.models import ModelInput, OnTheFly, Results, Runtime
from robustgen.settings.running import Running
from robustgen.settings.scoring import Scoring

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "Findings",
    "Row",
    "RunResult",
    "Scores",
    "evaluate",
    "make_c",
    "make_p",
    "preview",
    "score",
    "verify",
]

_Path = str | os.PathLike[str]
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
# A word of Python, so that its keyword is the name of the field.
_RENAMED = {"with": "ingredients"}


def _takes(
    keys: type | None = None, *models: type[Options]
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """Return a decorator that gives a function the signature of its keywords, and names them in errors."""
    defaults = {name: field.default for model in models for name, field in model.model_fields.items()}
    hints = keys.__annotations__ if keys else {}

    def decorate(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        signature = inspect.signature(function)
        fixed = [each for each in signature.parameters.values() if each.kind != each.VAR_KEYWORD]
        several = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=hint)
            for name, hint in hints.items()
        ]
        known = {each.name for each in (*fixed, *several)}

        def spell(flag: re.Match[str]) -> str:
            name = _RENAMED.get(flag[1], flag[1].replace("-", "_"))
            return name if name in known else flag[0]

        @wraps(function)
        def call(*arguments: _Parameters.args, **given: _Parameters.kwargs) -> _Result:
            check_system()
            if unknown := given.keys() - known:
                raise UnknownNameError("keyword", min(unknown), sorted(known))
            for each in (*arguments, *given.values()):
                if isinstance(each, (str, os.PathLike)) and "\0" in str(each):
                    raise ConfigError(f"{str(each)!r}: contains a NUL character")
            try:
                return function(*arguments, **given)
            except RobustgenError as error:
                error.args = (re.sub(r"--([a-z][a-z-]*)", spell, str(error)),)
                raise
            except (OSError, RuntimeError) as error:
                if not (reason := explain_refusal(error)):
                    raise
                raise WriteError(reason) from error

        call.__signature__ = signature.replace(parameters=[*fixed, *several])  # type: ignore[attr-defined]
        return call

    return decorate


def _select(model: type[Options], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the `given` keywords that are fields of `model`, by key; paths as text."""
    fields = {name: field.alias or name for name, field in model.model_fields.items() if name in given}
    return {
        key: os.fspath(given[name]) if isinstance(given[name], os.PathLike) else given[name]
        for name, key in fields.items()
    }


def _load(model: type[Loaded], given: Mapping[str, Any]) -> Loaded:
    return load(model, None, _select(model, given))


def _load_config(dataset: str | None, file: _Path | None, keys: ConfigKeys) -> Config:
    config = load_config(Config, dataset, os.fspath(file) if file else None, _select(Config, keys))
    config.require_source()
    return config


@_takes(MakeKeys, Config, Running)
def make_c(
    dataset: str | None = None, *, config: _Path | None = None, **keys: "Unpack[MakeKeys]"
) -> RunResult:
    """Write ImageNet-C: corrupted copies of every image, as ``robustgen make-c`` does.

    The same call resumes an interrupted run.

    Parameters
    ----------
    dataset : str, optional
        A built-in config, such as ``"cifar-10"``.
    config : path, optional
        A YAML config instead.
    **keys : MakeKeys
        Any key of the config, which overrides it, and choices of the run.

    Returns
    -------
    RunResult
        Its `failures` name the images that could not be made.

    Raises
    ------
    RobustgenError
        A key is wrong, or the source or the output cannot be used.

    Examples
    --------
    >>> import robustgen
    >>> result = robustgen.make_c("demo", corruptions="contrast", limit=2, output="out", jobs=1, quiet=True)
    >>> result.made  # two photographs, clean and at five severities
    12
    >>> result.failures
    []
    """
    return _make("c", dataset, config, keys)


@_takes(MakeKeys, Config, Running)
def make_p(
    dataset: str | None = None, *, config: _Path | None = None, **keys: "Unpack[MakeKeys]"
) -> RunResult:
    """Write ImageNet-P: perturbation sequences of every image, as ``robustgen make-p`` does; see `make_c`.

    Examples
    --------
    >>> import robustgen
    >>> result = robustgen.make_p("demo", perturbations="tilt", limit=1, output="out", jobs=1, quiet=True)
    >>> result.made
    1
    """
    return _make("p", dataset, config, keys)


def _make(kind: Kind, dataset: str | None, file: _Path | None, keys: MakeKeys) -> RunResult:
    config, running = _load_config(dataset, file, keys), _load(Running, keys)
    cluster = read_executor(running)
    if isinstance(cluster, Launcher):
        raise ConfigError(f"--on: only the command robustgen make-{kind} submits {cluster.scheduler} jobs")
    return run_plan(plan_benchmark(config, kind, overwrite=running.overwrite), running, cluster)


@_takes()
def verify(
    directory: _Path,
    *,
    jobs: int | None = None,
    deep: int | str | None = None,
    source: _Path | None = None,
    against: _Path | None = None,
) -> Findings:
    """Check a finished output, as ``robustgen verify`` does.

    Parameters
    ----------
    directory : path or URL
    jobs : int, optional
        Number of threads; default one per core.
    deep : int or "all", optional
        Number of images to make again from the source and to compare.
    source : path or URL, optional
        Current location of the source, for `deep`, if it has moved.
    against : path or URL or digest, optional
        Another output, or a dataset digest, to compare with.

    Returns
    -------
    Findings
        Its `problems` are empty if nothing is missing or changed.

    Raises
    ------
    RobustgenError
        `directory` is not an output of robustgen, or an argument cannot be used.

    Examples
    --------
    >>> import robustgen
    >>> made = robustgen.make_c("demo", corruptions="contrast", limit=2, output="out", jobs=1, quiet=True)
    >>> found = robustgen.verify("out", deep=1)
    >>> found.problems, found.images, found.remade
    ([], 2, 1)
    """
    given = {"directory": directory, "jobs": jobs, "source": source, "against": against}
    options = _load(Verifying, given | {"deep": None if deep is None else str(deep)})
    how = options.model_dump(include={"jobs", "deep", "source", "against"})
    return check_output(options.directory, **how)


@_takes(ConfigKeys, Config)
def preview(
    image: Any,
    dataset: str = "demo",
    *,
    grid: bool = False,
    frames: int = FRAMES_DRAWN,
    cell: int = CELL,
    **keys: "Unpack[ConfigKeys]",
) -> Image.Image:
    """Draw an image with all its corruptions, or with its perturbations, as ``robustgen preview`` does.

    Parameters
    ----------
    image : path, uint8 ndarray of shape (H, W, 3) or (H, W), or a Pillow image
        With the data set ``"clips"``, the path of a video or of a folder of frames.
    dataset : str
        A built-in config, which gives settings; its images need not exist.
    grid : bool
        Whether to show all at one severity, five in a row.
    frames : int
        Number of frames of each perturbation or clip.
    cell : int
        Side of a square picture in pixels.
    **keys : ConfigKeys
        Any key of the config; `perturbations` or `difficulty` show perturbations.

    Returns
    -------
    PIL.Image.Image
        A notebook shows it.

    Raises
    ------
    RobustgenError
        A key is wrong, or the image cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> grey = np.full((64, 64, 3), 128, np.uint8)
    >>> robustgen.preview(grey, corruptions="contrast", severities=3, cell=64).mode
    'RGB'
    """
    # It loads compiled loops, which scores do without.
    from robustgen.lab.inspection.preview import choose_severities, draw_previewed, open_from_file

    given = _select(Config, keys)
    config = choose_severities(load_config(Config, dataset, None, given), grid=grid)
    folder = None if isinstance(image, (str, os.PathLike)) else TemporaryFolder()
    path = folder.path / "image" / "image.png" if folder else Path(image)
    if folder:
        path.parent.mkdir()
        Image.fromarray(as_rgb(image)).save(path)
    opened = open_from_file(path, config, "p" if given.keys() & {"perturbations", "difficulty"} else "c")
    (sheet,) = draw_previewed(opened, grid=grid, frames=frames, cell=cell)
    return Image.fromarray(sheet)


@_takes(EvaluateKeys, Config, ModelInput, Runtime, OnTheFly)
def evaluate(
    model: Any,
    dataset: str | None = None,
    *,
    config: _Path | None = None,
    output: _Path | None = None,
    name: str | None = None,
    baseline: _Path | None = None,
    **keys: "Unpack[EvaluateKeys]",
) -> Scores:
    """Score a model on images that are corrupted on the fly, as ``robustgen evaluate`` does.

    The model runs in this process; ``jobs`` workers make the images.

    Parameters
    ----------
    model : torch.nn.Module, callable, str or path
        A module that takes images (n, 3, H, W), normalised, and returns logits; a function that takes pixels,
        a uint8 array (n, H, W, 3), and returns an array of scores (n, classes); or what ``--model`` takes.
        For clips, ``dataset="clips"``, a function that takes a uint8 array (n, frames, H, W, 3).
    dataset : str, optional
        A built-in config, such as ``"cifar-10"``.
    config : path, optional
        A YAML config instead.
    output : path or URL, optional
        Folder for the predictions, in which the same call resumes an interrupted run; default a temporary
        one, which is removed with the scores.
    name : str, optional
        Name of the model in tables and below `output`; default that of its class, function or file.
    baseline : str or path, optional
        ``"alexnet"``, ``"none"``, a file or a folder of predictions, as in `score`.
    **keys : EvaluateKeys
        Any key of the config, which overrides it, and choices of the model's input, device and predictions.
        ``perturbations`` or ``difficulty`` selects ImageNet-P; ``uncompressed=True`` skips JPEG and video.

    Returns
    -------
    Scores
        Means are over the corruptions that were asked for.

    Raises
    ------
    RobustgenError
        A key is wrong, or model, images and output do not match.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> def guess(pixels):  # one score for each class of the demo
    ...     return np.eye(8)[np.zeros(len(pixels), int)]
    >>> keys = {"corruptions": "contrast", "severities": 3, "limit": 2, "jobs": 1, "quiet": True}
    >>> scores = robustgen.evaluate(guess, "demo", **keys)
    >>> scores.mean("error")
    0.5
    """
    chosen, taken = _load_config(dataset, config, keys), _load(ModelInput, keys)
    runtime, outputs = _load(Runtime, keys), _load(OnTheFly, keys)
    results = _load(Results, {"output": output, "name": name, "baseline": baseline})
    scoring.check_baseline(results.baseline)
    folder = None if results.output else TemporaryFolder()
    with borrow_model(model, runtime, results.name) as opened, progress.quiet(outputs.quiet) as printed:
        if results.output and isinstance(opened, FunctionModel) and not name:
            raise ConfigError("output also needs name, by which a resumed run recognises the function")
        place = results.output or str(folder and folder.path)
        done = evaluating.evaluate(chosen, chosen.kind, [opened], place, outputs, taken)
    report = scoring.score(done.folders, baseline=results.baseline, partial=True)
    return Scores(report, done.folders, run=done, folder=folder, printed=printed)


@_takes()
def score(
    predictions: _Path,
    *others: _Path,
    baseline: _Path | None = None,
    partial: bool = False,
    difficulty: int = 1,
    predicted_set: _Path | None = None,
    replicates: int = 1000,
    compare_with: str | None = None,
    group: Sequence[str] = (),
    models: _Path | None = None,
) -> Scores:
    """Score predictions, as ``robustgen score`` does.

    Parameters
    ----------
    predictions, *others : path or URL
        Folders of predictions, one for each model, on the same images, or folders of such folders.
    baseline : str or path, optional
        ``"alexnet"``, ``"none"``, a file or a folder of predictions; default AlexNet for ImageNet, otherwise
        none.
    partial : bool
        Score incomplete sets too.
    difficulty : int
        Difficulty of perturbations.
    predicted_set : path or URL, optional
        The set that was predicted: its keys are compared, and a report shows its pictures.
    replicates : int
        0 for no intervals.
    compare_with : {"published"}, optional
        Published models to compare with.
    group : sequence of str
        Models with several seeds: ``"resnet50=resnet50-seed*"``, the name of a row and a pattern of its runs.
    models : path, optional
        YAML, JSON or CSV file with what is known of each model, for the page.

    Returns
    -------
    Scores

    Raises
    ------
    RobustgenError
        A file is missing, malformed, or does not match; the message says which.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> keys, labels = ["a.png", "b.png"], [0, 0]
    >>> for severity in range(1, 6):
    ...     logits = [[2, 1], [0, severity - 3.5]]
    ...     path = robustgen.write_predictions("preds/m", f"fog/{severity}", keys, labels, logits)
    >>> scores = robustgen.score("preds/m", partial=True)
    >>> scores.value("error", "fog")
    0.2
    """
    given: dict[str, Any] = {
        "baseline": baseline,
        "partial": partial,
        "difficulty": difficulty,
        "predicted_set": predicted_set,
    }
    given |= {"replicates": replicates, "compare_with": compare_with, "group": group, "models": models}
    folders = [os.fspath(each) for each in (predictions, *others)]
    options = _load(Scoring, {**given, "predictions": folders})
    opened = open_set(options.predicted_set) if options.predicted_set else None
    report = scoring.score(options.predictions, dataset=opened, **scoring.choices_of(options))
    return Scores(report, report.folders, opened)
