"""make_c, make_p, verify, evaluate and score in Python: the files and the numbers of the commands."""

import inspect
import json
import os

import numpy as np
import pytest

import robustgen
from robustgen.errors import ConfigError, OutputError, SourceError, UnknownNameError
from robustgen.lab.evaluation.predictions import write_predictions as write
from robustgen.pixels.benchmarks.kinds import CLEAN, IMAGENET_C
from robustgen.settings.fields import Group, flag_of
from robustgen.settings.inspecting import Verifying
from robustgen.settings.keywords import EvaluateKeys, MakeKeys
from robustgen.settings.scoring import Scoring
from tests.digits import PLAIN, classifier, expected_logits, put_cifar, put_model
from tests.helpers import cli, put_photo, tree

IMAGES = 24
FEW = {"corruptions": "fog,contrast", "severities": (1, 3), "jobs": 1}
FLAGS = ("--corruptions", "fog,contrast", "--severities", "1,3", "--jobs", "1")


@pytest.fixture(scope="module")
def cifar(tmp_path_factory):
    return put_cifar(tmp_path_factory.mktemp("source"), IMAGES)


@pytest.fixture(scope="module")
def onnx(tmp_path_factory):
    return put_model(tmp_path_factory.mktemp("model") / "digits.onnx")


def evaluate(model, source, **keys):
    return robustgen.evaluate(model, dataset="cifar-10", source=source, **FEW | keys)


def predictions(folder):
    return {name: data for name, data in tree(folder).items() if name.endswith(".npz")}


# --- keywords ------------------------------------------------------------------------------------


def test_the_signatures_have_every_keyword_and_default():
    for function, keys in ((robustgen.make_c, MakeKeys), (robustgen.evaluate, EvaluateKeys)):
        parameters = inspect.signature(function).parameters
        assert parameters.keys() > keys.__annotations__.keys()
        assert parameters["severities"].default == "1-5" and parameters["seed"].annotation is int
    assert inspect.signature(robustgen.make_p).parameters == inspect.signature(robustgen.make_c).parameters


def test_verify_and_score_take_the_fields_of_their_models():
    verified = inspect.signature(robustgen.verify).parameters
    assert verified.keys() == Verifying.model_fields.keys() - {"allow_failures", "format"}
    scored = inspect.signature(robustgen.score).parameters
    shown = {name for name in Scoring.model_fields if flag_of(Scoring, name).group == Group.OUTPUT}
    assert scored.keys() - {"others"} == Scoring.model_fields.keys() - shown - {"plan"}
    for name, parameter in scored.items():
        if parameter.kind == parameter.KEYWORD_ONLY:
            assert parameter.default == Scoring.model_fields[name].default


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"severites": 3}, "unknown keyword 'severites' (did you mean 'severities'?)"),
        ({"severities": 9}, "severities: severity 9 does not exist (1 to 5)"),
        ({"ingredients": 3}, "ingredients: Input should be"),
        ({"config": "a.yaml"}, "give dataset or config, not both"),
        ({"dataset": "cifar"}, "unknown dataset 'cifar' (did you mean 'cifar-10'?)"),
        ({"source": None, "dataset": None}, "no source: give dataset, config or source"),
    ],
)
def test_errors_name_keywords_not_flags(cifar, keys, message):
    with pytest.raises(ValueError) as caught:
        robustgen.make_c(**{"dataset": "cifar-10", "source": cifar} | keys)
    assert str(caught.value).replace("must be", "Input should be").startswith(message)


# --- sets ----------------------------------------------------------------------------------------


def test_make_c_writes_what_the_command_writes(cifar, tmp_path):
    result = robustgen.make_c("cifar-10", source=cifar, output=tmp_path / "a", **FEW)
    assert (result.made, result.kept, result.failures) == (5 * IMAGES, 0, [])
    assert result.output == str(tmp_path / "a")
    cli("make-c", "--dataset", "cifar-10", "--source", cifar, "--output", tmp_path / "b", *FLAGS)
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    again = robustgen.make_c("cifar-10", source=cifar, output=tmp_path / "a", **FEW)
    assert (again.made, again.kept) == (0, 5 * IMAGES)
    found = robustgen.verify(tmp_path / "a", deep=2)
    assert not found.problems and found.remade == 2
    assert found.digest in cli("verify", tmp_path / "b").stdout
    with pytest.raises(
        OutputError, match=r"seed was 0 and is now 1\. Choose another output, or .* overwrite"
    ):
        robustgen.make_c("cifar-10", source=cifar, output=tmp_path / "a", seed=1, **FEW)


def test_make_p_writes_sequences_and_names_images_that_fail(tmp_path):
    put_photo(tmp_path / "photos" / "cat" / "a.JPEG", 64, 64)
    (tmp_path / "photos" / "cat" / "b.JPEG").write_bytes(b"broken")
    keys = {"perturbations": "brightness", "format": "png", "jobs": 1, "quiet": True}
    result = robustgen.make_p(source=tmp_path / "photos", output=tmp_path / "out", **keys)
    assert result.made == 1 and [each["key"] for each in result.failures] == ["cat/b.JPEG"]
    next((tmp_path / "out").rglob("*.png")).unlink()
    found = robustgen.verify(tmp_path / "out")
    (finding,) = found.problems
    # In a notebook they are tables.
    assert "<td>cat/b.JPEG: " in result._repr_html_() and "<td>1</td>" in result._repr_html_()
    assert (
        f"<td>{finding.fault}: {finding.path}" in found._repr_html_() and found.digest in found._repr_html_()
    )
    assert finding.fault == "missing"


def test_only_the_command_submits_jobs_to_slurm(cifar, tmp_path):
    with pytest.raises(ConfigError, match="only the command robustgen make-c submits SLURM jobs"):
        robustgen.make_c("cifar-10", source=cifar, output=tmp_path / "out", on="slurm:partition=cpu,shards=2")


# --- scores --------------------------------------------------------------------------------------


def test_an_onnx_file_gets_the_predictions_and_numbers_of_the_command(cifar, onnx, tmp_path):
    scores = evaluate(onnx, cifar, output=tmp_path / "a", mean=0, std=1)
    flags = ("--dataset", "cifar-10", "--source", cifar, "--model", onnx, *PLAIN, *FLAGS)
    printed = cli("evaluate", *flags, "--output", tmp_path / "b").stdout
    assert predictions(tmp_path / "a" / "digits") == predictions(tmp_path / "b" / "digits")
    content = json.loads(cli("score", tmp_path / "b" / "digits", "--partial", "--format", "json").stdout)
    assert scores.to_dict()["models"] == content["models"]
    (model,) = content["models"]
    error = model["measures"]["error"]
    assert scores.mean("error") == error["mean"] and scores.clean_error == model["clean_error"]
    assert list(scores.interval("error", "fog")) == error["intervals"]["fog"]
    shown = f" {100 * scores.mean('error'):.1f} ["
    assert shown in printed and shown in str(scores)
    again = robustgen.score(tmp_path / "a" / "digits", partial=True)
    assert again.to_dict() == scores.to_dict()


def test_a_function_of_arrays_gets_pixels(cifar, onnx):
    scores = evaluate(expected_logits, cifar)
    assert scores.models == ("expected_logits",) and scores.images == IMAGES
    assert scores.mean("error") == evaluate(onnx, cifar, mean=0, std=1).mean("error")
    with pytest.raises(
        ConfigError, match="gets pixels from 0 to 255: omit presets, mean, std and channel_order"
    ):
        evaluate(expected_logits, cifar, mean=0.5, std=1)
    with pytest.raises(ConfigError, match=r"returns \(1, 32, 32, 3\) for 1 images, not \(images, classes\)"):
        evaluate(lambda images: images, cifar)


def shrinking():
    """A function that returns scores of no class after the first batches."""
    calls = []

    def shrink(images):
        calls.append(images)
        return np.zeros((len(images), 10 if len(calls) < 3 else 0))

    return shrink


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda images: "yes", "returns <U3, not numbers"),
        (lambda images: np.full((len(images), 10), None), "returns object, not numbers"),
        (lambda images: {"logits": np.zeros((len(images), 10))}, "returns object, not numbers"),
        (lambda images: np.zeros((len(images), 10), [("a", float)]), r"returns \[.*\], not numbers"),
        (lambda images: np.zeros((len(images), 0)), r"returns \(1, 0\) for 1 images"),
        (shrinking(), r"returns \(8, 0\) for 8 images"),
        (
            lambda images: np.eye(10)[:1, : 10 - (len(images) > 1)].repeat(len(images), 0),
            "returns 9 classes for",
        ),
    ],
)
def test_what_functions_return_is_checked(cifar, function, says):
    with pytest.raises(ConfigError, match=f": {says}"):
        evaluate(function, cifar, batch_size=8)


@pytest.mark.parametrize("name", ["..", "/", "a/b", ".robustgen", "", "a\0b", "\ud800", 5])
def test_names_of_models_are_names_of_folders(cifar, tmp_path, name):
    with pytest.raises(ConfigError, match=r"name: must be a|contains a NUL character"):
        evaluate(expected_logits, cifar, output=tmp_path / "preds", name=name)
    assert not [*tmp_path.iterdir()]


def test_paths_with_a_nul_are_refused(cifar, tmp_path):
    for call in (
        lambda: evaluate("m\0.onnx", cifar),
        lambda: evaluate(expected_logits, cifar, output="a\0", name="m"),
        lambda: evaluate(expected_logits, cifar, baseline="a\0"),
        lambda: robustgen.score("a\0"),
        lambda: robustgen.verify("a\0"),
        lambda: robustgen.make_c(config="a\0"),
    ):
        with pytest.raises(ConfigError, match="contains a NUL character"):
            call()


def test_a_module_stays_as_it_was(cifar, onnx):
    torch = pytest.importorskip("torch")
    last = torch.nn.Linear(64, 10)
    last.weight.data = torch.tensor(classifier().coef_, dtype=torch.float32)
    last.bias.data = torch.tensor(classifier().intercept_, dtype=torch.float32)
    grey = torch.nn.Conv2d(3, 1, 4, stride=4, bias=False)
    grey.weight.data[:] = 1 / 48
    # A model with dropout gives other answers while it trains.
    module = torch.nn.Sequential(grey, torch.nn.Dropout(0.9), torch.nn.Flatten(), last).train()
    module[1].eval()
    kept = torch.backends.cudnn.deterministic
    scores = evaluate(module, cifar, mean=0, std=1, name="mine")
    assert scores.models == ("mine",)
    assert scores.mean("error") == evaluate(onnx, cifar, mean=0, std=1).mean("error")
    assert module.training and not module[1].training and torch.backends.cudnn.deterministic == kept
    with pytest.raises(TypeError, match=r"model must be a torch.nn.Module, a function or"):
        evaluate(3, cifar)


@pytest.mark.slow("starts worker processes")
def test_workers_make_the_images_for_a_model_of_this_process(cifar):
    def answer(images):
        assert os.getpid() == own
        return expected_logits(images)

    own = os.getpid()
    scores = evaluate(answer, cifar, jobs=2)
    assert scores.mean("error") == evaluate(expected_logits, cifar).mean("error")


def test_an_interrupted_run_resumes(cifar, tmp_path):
    calls = []

    def stop(images):
        calls.append(len(images))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return expected_logits(images)

    keys = {"output": tmp_path / "preds", "name": "mine", "batch_size": 8}
    with pytest.raises(KeyboardInterrupt):
        evaluate(stop, cifar, **keys)
    scores = evaluate(stop, cifar, **keys)
    assert scores.run.kept >= 8 and scores.run.made + scores.run.kept == 5 * IMAGES
    assert scores.predictions == (str(tmp_path / "preds" / "mine"),)
    ours, undisturbed = (each.to_dict()["models"][0] for each in (scores, evaluate(expected_logits, cifar)))
    assert ours["errors"] == undisturbed["errors"]
    with pytest.raises(ConfigError, match="output also needs name, by which"):
        evaluate(expected_logits, cifar, output=tmp_path / "preds")


def test_temporary_predictions_go_with_the_scores(cifar, tmp_path):
    scores = evaluate(expected_logits, cifar)
    (folder,) = scores.predictions
    assert scores.report(tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert not any(folder in note for note in scores.notes)
    del scores
    with pytest.raises(SourceError):
        robustgen.score(folder)


def test_corruptions_that_no_mean_includes_have_values(cifar, tmp_path):
    scores = evaluate(expected_logits, cifar, corruptions="spatter")
    assert [row.name for row in scores.rows] == ["spatter"]
    assert scores.value("error", "spatter") == scores.rows[0].values["error"]
    assert "spatter" in str(scores) and "Means" not in str(scores)
    assert "1 model on ImageNet-C, 24 images" in scores.report(tmp_path / "page.html").read_text()
    with pytest.raises(ValueError, match="error has no mean, because the models share none of the common"):
        scores.mean("error")


def test_images_that_fail_are_named(tmp_path):
    put_photo(tmp_path / "photos" / "cat" / "a.JPEG", 64, 64)
    put_photo(tmp_path / "photos" / "dog" / "b.JPEG", 64, 64)
    (tmp_path / "photos" / "dog" / "c.JPEG").write_bytes(b"broken")
    keys = {"corruptions": "contrast", "severities": 1, "jobs": 1, "require_classes": False}
    scores = robustgen.evaluate(lambda images: np.ones((len(images), 2)), source=tmp_path / "photos", **keys)
    assert scores.images == 2 and [*scores.run.failures] == ["dog/c.JPEG"]
    assert scores.notes[-1] == "1 image could not be made: dog/c.JPEG"


@pytest.fixture
def two(cifar, tmp_path):
    evaluate(expected_logits, cifar, output=tmp_path, name="good")
    evaluate(lambda images: -expected_logits(images), cifar, output=tmp_path, name="<bad>")
    return robustgen.score(tmp_path / "good", tmp_path / "<bad>", partial=True)


def test_only_a_mean_over_all_corruptions_is_called_mce(tmp_path):
    names, labels = [f"{number:02d}" for number in range(20)], np.arange(20) % 10
    for variant in IMAGENET_C.variants(IMAGENET_C.common, IMAGENET_C.levels, clean=True):
        wrong = 0 if variant.name == CLEAN else variant.level
        logits = np.eye(10)[(labels + (np.arange(20) < wrong)) % 10]
        write(tmp_path / "preds", variant, names, labels, logits)
    scores = robustgen.score(tmp_path / "preds")
    assert scores.mce == pytest.approx(3 / 20) and scores.clean_error == 0 and scores.baseline is None
    (tmp_path / "own.json").write_text(json.dumps(scores.to_dict()))
    alexnet = robustgen.score(tmp_path / "preds", baseline=tmp_path / "own.json")
    assert alexnet.mce == pytest.approx(1) and alexnet.baseline == "preds"
    (tmp_path / "preds" / "fog" / "3.npz").unlink()
    scores = robustgen.score(tmp_path / "preds", partial=True)
    with pytest.raises(ValueError, match="15 corruptions at five severities, these scores 14: use mean"):
        _ = scores.mce


def test_several_models_are_named(two):
    assert two.models == ("good", "<bad>")
    assert two.mean("error", "good") < two.mean("error", "<bad>")
    assert two.value("error", "fog", "good") == next(iter(two.rows)).values["error"]
    with pytest.raises(ValueError, match=r"name one of the models, as in mean\('error', 'good'\)"):
        _ = two.mce
    for call, message in (
        (lambda: two.mean("errors", "good"), "unknown measure 'errors' (did you mean 'error'?)"),
        (lambda: two.mean("error", "god"), "unknown model 'god' (did you mean 'good'?)"),
        (lambda: two.value("error", "snow", "good"), "unknown corruption 'snow'"),
    ):
        with pytest.raises(UnknownNameError) as caught:
            call()
        assert str(caught.value).startswith(message)


def test_scores_are_a_table(two):
    pandas = pytest.importorskip("pandas")
    frame = two.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    rows = [(model, name) for model in two.models for name in ("fog", "contrast")]
    assert [*zip(frame.model, frame.corruption, strict=True)] == rows
    row = frame.iloc[0]
    assert row.error == two.value("error", "fog", "good") and row.error_low <= row.error <= row.error_high
    assert row.error == pytest.approx((row.severity_1 + row.severity_3) / 2)


def test_scores_are_html_in_a_notebook(two):
    text = two._repr_html_()
    assert (
        text.startswith("<style>")
        and "<caption>Means in %" in text
        and "&lt;bad&gt;" in text
        and "<bad>" not in text
    )
    assert f"<td>{100 * two.mean('error', 'good'):.1f} [" in text
    told = "input of good, &lt;bad&gt;: mean 0 (the model&#x27;s), std 1 (the model&#x27;s), scale 1 "
    assert f"<p>{told}(the model&#x27;s), size of the images</p>" in text


def test_a_notebook_shows_the_chart(two):
    pytest.importorskip("matplotlib")
    column, page = two.plot("dots", width="column"), two.plot()
    assert page.format == "PNG" and column.width < 1000 < page.width
    with pytest.raises(UnknownNameError, match="better"):
        two.plot(models=["better"])


def test_scores_have_the_formats_of_the_command(two, tmp_path):
    folders = (tmp_path / "good", tmp_path / "<bad>")
    for ours, flags in (
        (two.to_latex(), ("latex",)),
        (two.to_markdown(), ("markdown",)),
        (two.to_markdown(verbose=True), ("markdown", "--verbose")),
        (two.to_csv(), ("csv",)),
    ):
        assert ours.strip() == cli("score", *folders, "--partial", "--format", *flags).stdout.strip()
