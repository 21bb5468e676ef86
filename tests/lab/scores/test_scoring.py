"""`robustgen score`: the papers' numbers from files of predictions, in every format, and wrong input."""

import csv
import io
import json
import re
import shutil
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import robustgen
from robustgen import metrics
from robustgen.lab.evaluation.predictions import ABOUT, PredictionFile, open_predictions
from robustgen.lab.evaluation.predictions import write_predictions as write
from robustgen.lab.scores import results
from robustgen.lab.scores.score_page import read_files
from robustgen.metrics import (
    ALEXNET_ERROR,
    ALEXNET_FLIP_PROBABILITY,
    ALEXNET_TOP5_DISTANCE,
    COMMON_CORRUPTIONS,
    COMMON_PERTURBATIONS,
    NOISE_PERTURBATIONS,
)
from robustgen.metrics.corruption_errors import FORMULAS, read_published
from robustgen.pixels.benchmarks.corruptions import FAMILIES
from tests.digits import PLAIN, put_folder, put_model
from tests.helpers import cli, cli_error, pixels_of, slow_after
from tests.lab.inspection.test_pages import page_data

IMAGES = 1000
KEYS = [f"n{i % 10:08d}/{i:04d}.JPEG" for i in range(IMAGES)]
# The columns of C sets.
OF_ERRORS = [each for each in FORMULAS if each.quantity == "errors"]


def put_top5(path, wrong, classes=1000, keys=KEYS):
    """Top-5 lists for images all of class 0, of which the share `wrong` is wrong."""
    top5 = np.tile(np.arange(5, dtype=np.int32), (len(keys), 1))
    top5[: round(wrong * len(keys)), 0] = 9
    path.parent.mkdir(parents=True, exist_ok=True)
    known = {"labels": np.zeros(len(keys), int), "keys": np.array(keys), "classes": np.array(classes)}
    np.savez(path, top1=top5[:, 0], top5=top5, **known)


def put_c(root, errors=ALEXNET_ERROR, clean=0.435, **more):
    """Predictions of a C set with these errors, one number a corruption or one a severity."""
    for name, error in errors.items():
        levels = error if isinstance(error, list) else [error] * 5
        for severity, each in enumerate(levels, 1):
            put_top5(root / name / f"{severity}.npz", each, **more)
    if clean is not None:
        put_top5(root / "clean.npz", clean, **more)
    return root


def put_p(root, names=COMMON_PERTURBATIONS, seed=0, classes=1000, sequences=4):
    """Logits (sequences, 31, classes) of a P set; returns them too."""
    rng = np.random.default_rng(seed)
    keys, labels = [f"cat/{i}.mp4" for i in range(sequences)], np.zeros(sequences, int)
    logits = {name: rng.normal(size=(sequences, 31, classes)).cumsum(axis=1) for name in names}
    for name, values in logits.items():
        write(root, name, keys, labels, values)
    return logits


FEW_NOTE = re.compile(r"\d+ (image|sequence)s?: so few that intervals|too few to tell the models apart")


def scored(*args):
    """What `score --format json` says, and its notes but for those on few images."""
    result = cli("score", *args, "--format", "json")
    return json.loads(result.stdout), [
        line for line in result.stderr.splitlines() if not FEW_NOTE.match(line)
    ]


def means(model):
    return {key: measure["mean"] for key, measure in model["measures"].items()}


@pytest.fixture(scope="session")
def alexnet(tmp_path_factory):
    """Predictions exactly as bad as AlexNet's."""
    return put_c(tmp_path_factory.mktemp("score") / "alexnet")


# --- numbers -------------------------------------------------------------------------------------


def test_alexnet_is_a_hundred_per_cent_of_itself(alexnet):
    report, notes = scored(alexnet)
    (model,) = report["models"]
    assert report["baseline"] == "AlexNet" and not notes
    found = means(model)
    assert found["corruption_error"] == found["relative_corruption_error"] == pytest.approx(1)
    assert found["error"] == pytest.approx(np.mean([ALEXNET_ERROR[name] for name in COMMON_CORRUPTIONS]))
    # All nineteen are shown, and the means are over fifteen.
    assert set(model["measures"]["error"]["values"]) == set(ALEXNET_ERROR)
    assert model["measures"]["error"]["mean_over"] == list(COMMON_CORRUPTIONS)


@pytest.mark.parametrize(("wrong", "classes"), [(0.999, 1000), (0.9, 10), (0.97, 1000)])
def test_a_model_no_better_than_a_guess_is_warned_of(tmp_path, wrong, classes):
    root = put_c(tmp_path / "mine", {"fog": wrong}, clean=wrong, classes=classes)
    warnings = [note for note in scored(root, "--partial")[1] if note.startswith("warning: ")]
    told = f"warning: mine is right on {1 - wrong:.1%} of the clean images, no more than a guess. The labels "
    told += "may be wrong: check the order of the classes (predict --classes) and the preprocessing"
    assert warnings == [told] * (wrong != 0.97)


def test_difficulty_takes_harder_noises_and_frames_further_apart(tmp_path):
    noises = [f"{name}_2" for name in NOISE_PERTURBATIONS[:2]]
    logits = put_p(tmp_path / "model", [*COMMON_PERTURBATIONS, *noises])
    report, notes = scored(tmp_path / "model", "--difficulty", "2")
    assert not notes and report["baseline"] is None
    found = report["models"][0]["flip_probabilities"]
    assert list(found) == sorted(COMMON_PERTURBATIONS)
    for name in ("tilt", "shot_noise"):
        noise = name in NOISE_PERTURBATIONS
        values = logits["shot_noise_2" if noise else name].argmax(axis=-1)
        assert found[name] == metrics.flip_probability(values, noise=noise, difficulty=2)
    assert "incomplete: gaussian_noise_3, shot_noise_3 missing (" in cli_error(
        "score", tmp_path / "model", "--difficulty", "3"
    )


def test_pieces_of_large_files_and_top5_lists_give_the_same_scores(tmp_path, monkeypatch):
    logits = put_p(tmp_path / "model", sequences=5)
    whole = means(scored(tmp_path / "model")[0]["models"][0])
    assert whole.keys() == {"flip_rate", "flip_probability", "standardised_top5_distance", "top5_distance"}
    with monkeypatch.context() as patch:
        patch.setattr("robustgen.lab.evaluation.predictions._CHUNK_BYTES", logits["tilt"][0].nbytes * 2)
        assert means(scored(tmp_path / "model")[0]["models"][0]) == pytest.approx(whole)
    for name, values in logits.items():
        known = np.load(tmp_path / "model" / f"{name}.npz")
        write(tmp_path / "model", name, list(known["keys"]), known["labels"], values, save="top5")
    report, notes = scored(tmp_path / "model")
    assert means(report["models"][0]) == pytest.approx(whole) and not notes


# --- baselines -----------------------------------------------------------------------------------


def test_predictions_on_a_server_are_read_at_once(tmp_path, monkeypatch):
    places, rng = (str(tmp_path / "m"), f"memory://{tmp_path.name}/m"), np.random.default_rng(0)
    for level in range(1, 5):
        logits = rng.normal(size=(8, 3))
        for place in places:
            write(place, f"fog/{level}", KEYS[:8], np.zeros(8, int), logits)
    local, _ = scored(places[0], "--partial")
    # Each of four files waits for the others.
    together, head, find = threading.Barrier(4, timeout=20), PredictionFile._head, results._find_mistakes
    waiting = type(head)(lambda file: (together.wait(), head.func(file))[1])
    waiting.__set_name__(PredictionFile, "_head")
    monkeypatch.setattr(PredictionFile, "_head", waiting)
    monkeypatch.setattr(results, "_find_mistakes", lambda file: (together.wait(), find(file))[1])
    assert scored(places[1], "--partial")[0] == local


@pytest.mark.parametrize("what", ["superclasses", "calibration", "flips"])
def test_whatever_reads_predictions_again_reads_many_at_once(tmp_path, monkeypatch, gather, what):
    places, rng = (str(tmp_path / "m"), f"memory://{tmp_path.name}/m"), np.random.default_rng(0)
    names = COMMON_PERTURBATIONS if what == "flips" else FAMILIES["laion-c"].names()
    for name in names[:4]:
        logits = rng.normal(size=(3, 4, 9) if what == "flips" else (3, 1000))
        for place in places:
            folder = name if what == "flips" else f"{name.replace(':', '.')}/1"
            write(place, folder, KEYS[:3], np.array([0, 8, 5]), logits)
    read = {
        "superclasses": lambda opened: results.read_scores(opened, "m").superclass_mistakes,
        "calibration": lambda opened: read_files([opened])[1],
        "flips": results.flip_curves,
    }[what]
    monkeypatch.setattr(results, "_find_mistakes", lambda file: file.labels)
    local, opened = read(open_predictions(places[0])), open_predictions(places[1])
    files = gather(r"\.npz$", 4)
    found = read(opened)
    assert len(local) == 4 and found.keys() == local.keys() and files.is_set()
    assert all(np.array_equal(found[name], local[name]) for name in local)


def test_the_json_of_a_model_is_a_baseline(alexnet, tmp_path):
    half = {name: error / 2 for name, error in ALEXNET_ERROR.items()}
    put_c(tmp_path / "half", half, clean=0.2)
    (tmp_path / "half.json").write_text(cli("score", tmp_path / "half", "--format", "json").stdout)
    report, _ = scored(tmp_path / "half", alexnet, "--baseline", tmp_path / "half.json")
    assert report["baseline"] == "half"
    first, second = (means(model)["corruption_error"] for model in report["models"])
    assert first == pytest.approx(1) and second == pytest.approx(2, abs=0.01)


def all_errors(error):
    """The YAML of a baseline with this error on each corruption."""
    return "errors: {" + ", ".join(f"{name}: {error}" for name in COMMON_CORRUPTIONS) + "}"


def test_a_baseline_can_be_written_by_hand(alexnet, tmp_path):
    (tmp_path / "own.yaml").write_text(f"model: Own\n{all_errors(0.5)}")
    report, _ = scored(alexnet, "--baseline", tmp_path / "own.yaml")
    found = means(report["models"][0])
    assert found["corruption_error"] == pytest.approx(2 * found["error"])
    # Without its clean error there is nothing relative.
    assert "relative_corruption_error" not in found


def test_without_a_baseline_nothing_is_normalised(alexnet):
    report, notes = scored(alexnet, "--baseline", "none")
    assert list(means(report["models"][0])) == [each.key for each in OF_ERRORS if not each.normalised]
    assert report["baseline"] is None and not notes
    assert "--baseline alexnett: no such file" in cli_error("score", alexnet, "--baseline", "alexnett")


def test_alexnet_is_for_imagenet_alone(tmp_path):
    put_c(tmp_path / "ten", classes=10)
    report, notes = scored(tmp_path / "ten")
    # Only those who ask for AlexNet hear of it.
    assert report["baseline"] is None and not notes
    line = cli_error("score", tmp_path / "ten", "--baseline", "alexnet")
    assert "AlexNet's numbers are for ImageNet's 1000 classes" in line
    assert line.endswith("has 10; give a file, a folder of predictions, or none")


@pytest.mark.parametrize(
    ("own", "note", "is_compared"),
    [
        (
            {"only_classes": ["n00000000"]},
            "published values are of all outputs of the models: none is",
            False,
        ),
        ({"preprocessing": {"clean_input": {"median": {}}}}, "published values are of images without", True),
    ],
)
def test_other_inputs_and_outputs_than_those_of_published_values(alexnet, tmp_path, own, note, is_compared):
    root = Path(shutil.copytree(alexnet, tmp_path / "model"))
    (root / ABOUT).write_text(json.dumps({"schema": 1} | own))
    report, notes = scored(root, "--compare-with", "published")
    assert any(line.startswith(note) for line in notes)
    assert ("published" in report) == is_compared


def test_a_baseline_that_is_nowhere_is_told_with_the_named_ones(alexnet):
    line = cli_error("score", alexnet, "--baseline", "alex")
    assert line.startswith("--baseline alex: ") and "alexnet" in line and "none" in line


def test_predictions_are_no_set_of_images(alexnet):
    for command in (("report", alexnet), ("compare", alexnet, alexnet)):
        assert "robustgen score" in cli_error(*command)


def test_a_folder_of_predictions_is_a_baseline(alexnet, tmp_path):
    shutil.copytree(alexnet, tmp_path / "preds" / "mine")
    for base in (tmp_path / "preds", tmp_path / "preds" / "mine"):
        report, notes = scored(alexnet, "--baseline", base)
        assert report["baseline"] == "mine" and not notes
        assert means(report["models"][0])["corruption_error"] == 1
    put_c(tmp_path / "preds" / "few", {"fog": 0.5})
    line = cli_error("score", alexnet, "--baseline", tmp_path / "preds")
    folders = ", ".join(str(tmp_path / "preds" / name) for name in ("few", "mine"))
    assert line == f"--baseline {tmp_path / 'preds'}: a baseline is one model; name one of {folders}"
    line = cli_error("score", alexnet, "--baseline", tmp_path / "preds" / "few")
    assert "few: the baseline has no value for 'brightness'" in line
    put_c(tmp_path / "others", keys=KEYS[:500])
    assert "not the images of" in cli_error("score", alexnet, "--baseline", tmp_path / "others")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("errors: {fog: high}", "own.yaml: errors.fog: must be a number, not 'high'"),
        ("errors: 3", "own.yaml: errors: must be names with numbers, not 3"),
        ("errors: {fog: 0.5}", "the baseline has no value for"),
        (all_errors(50), "must be 0 to 1"),
        (all_errors(0), "nothing can be divided by it"),
        ("clean_error: 0.2", "own.yaml: has none of errors, "),
        ("clean_error: x\nerrors: {fog: 0.5}", "own.yaml: clean_error: must be a number, not 'x'"),
        ("error: {fog: 1}\nerrors: {fog: 1}", "own.yaml: unknown key 'error'"),
        ("models: [{}, {}]", "own.yaml: models: a baseline is one model"),
        ("errors: [", "own.yaml: line"),
    ],
)
def test_wrong_baselines(alexnet, tmp_path, text, says):
    (tmp_path / "own.yaml").write_text(text)
    assert says in cli_error("score", alexnet, "--baseline", tmp_path / "own.yaml")


# --- published models ----------------------------------------------------------------------------


def test_published_models_stand_beside_ones_own(alexnet):
    result = cli("score", alexnet, "--compare-with", "published", "--format", "json")
    published = {each["model"]: each for each in json.loads(result.stdout)["published"]}
    means = {name: each["measures"]["corruption_error"]["mean"] for name, each in published.items()}
    assert means["AlexNet"] == pytest.approx(1) and means["ResNet-50"] == 0.767
    assert published["ResNet-50"]["measures"]["corruption_error"]["values"]["fog"] == 0.66
    assert published["ResNet-50"]["measures"]["error"]["mean"] is None
    assert published["AlexNet"]["measures"]["area_under_distortion_error"]["mean"] is None
    assert len(published) == 7 + 11
    for each in published.values():
        assert each["source"] and each["terms"] and each["images"]
    assert any(line.startswith("RobustBench, ImageNet-C: 5000 of") for line in result.stderr.splitlines())
    assert f"Yours: 1,000 images, {alexnet} does not say who created them." in result.stderr.splitlines()
    text = cli("score", alexnet, "--compare-with", "published", "--format", "csv").stdout
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["statistic"] == "published"]
    (row,) = [row for row in rows if (row["model"], row["measure"]) == ("ResNet-50", "corruption_error")]
    assert (row["mean"], row["fog"], row["clean_error"], row["mean_over"]) == ("0.767", "0.66", "0.239", "15")
    lines = cli("score", alexnet, "--compare-with", "published").stdout.splitlines()
    start = lines.index("Means among published ones in % (yours are marked with >)")
    found = [line.split("  ")[0] for line in lines[start + 2 :]]
    assert found[0] == "Tian2022Deeper_DeiT-B (RobustBench)" and {"> alexnet", "SqueezeNet"} <= {*found}


def test_the_table_of_robustbench_gives_its_own_means():
    """Accuracies and mCE as its leaderboard has them, the latter normalised by its own AlexNet."""
    content = read_published("robustbench")
    models = {each["model"]: each for each in content["models"]}
    own = models["AlexNet"]["errors"]
    wanted = {
        "Standard_R50": (39.48, 76.38),
        "Hendrycks2020AugMix": (49.33, 64.17),
        "Geirhos2018_SIN": (39.92, 76.67),
        "Tian2022Deeper_DeiT-B": (67.55, 41.7),
    }
    for name, (accuracy, mce) in wanted.items():
        errors = models[name]["errors"]
        found = 100 * (1 - metrics.unnormalised_mean_corruption_error(errors))
        assert found == pytest.approx(accuracy, abs=0.006)
        assert 100 * metrics.mean_corruption_error(errors, own) == pytest.approx(mce, abs=0.006)


def test_the_paper_is_consistent_with_itself():
    for each in read_published("paper")["models"]:
        for score in each["scores"].values():
            values = [*score["values"].values()]
            assert not values or np.mean(values) == pytest.approx(score["mean"], abs=0.0051)


def test_published_perturbations(tmp_path):
    put_p(tmp_path / "model")
    result = cli("score", tmp_path / "model", "--compare-with", "published", "--format", "json")
    published = {each["model"]: each["measures"] for each in json.loads(result.stdout)["published"]}
    assert published["AlexNet"]["flip_rate"]["mean"] == pytest.approx(1)
    assert published["AlexNet"]["top5_distance"]["values"]["tilt"] == 1.75
    assert published["VGG-19"]["flip_rate"]["mean"] == 0.669
    flags = ("--partial", "--compare-with", "published", "--difficulty", 2)
    notes = cli("score", tmp_path / "model", *flags).stderr
    assert "published values are for five severities and difficulty 1: none is compared" in notes


# --- layout --------------------------------------------------------------------------------------


def test_the_table_has_the_layout_of_the_paper(alexnet, tmp_path):
    put_c(tmp_path / "better", {name: error / 2 for name, error in ALEXNET_ERROR.items()}, clean=0.1)
    lines = cli("score", alexnet, tmp_path / "better").stdout.splitlines()
    assert lines[0] == "Corruption error (CE) in %, normalised by AlexNet, ± half a 95 % interval"
    groups = ["Noise", "Blur", "Weather", "Digital", "In no mean"]
    assert re.findall(r"-+ ([A-Z][a-z ]+) -+", lines[1]) == groups
    heads = (
        "Model Clean mCE Gauss. Shot Impulse Defocus Glass Motion Zoom Snow Frost Fog Bright Contrast Elastic"
    )
    assert " ".join(lines[2].split()) == f"{heads} Pixel JPEG Speckle Gauss. blur Spatter Saturate"
    assert lines[3].split() == ["alexnet", "43.5", "±3.1", "100.0", "±2.7", *["100.0"] * 19]
    assert lines[4].split()[:5] == ["better", "10.0", "±1.9", "50.0", "±3.6"] and not lines[5]
    assert "Top-1 error in %, mean over severities, unnormalised, ± half a 95 % interval" in lines
    assert all(len(line) < 200 for line in lines)


def test_models_of_one_name_go_by_their_paths(alexnet, tmp_path):
    other = put_c(tmp_path / "alexnet")
    report, _ = scored(alexnet, other)
    assert [model["model"] for model in report["models"]] == [str(alexnet), str(other)]


@pytest.mark.slow("bootstraps nine models")
@pytest.mark.parametrize(("count", "width", "tables"), [(1, 120, 1), (2, 60, 1), (9, 60, 5), (9, 120, 2)])
def test_tables_fit_the_terminal(alexnet, tmp_path, monkeypatch, count, width, tables):
    names = [f"network-number-{i}" for i in range(1, count)]
    roots = [alexnet, *(Path(shutil.copytree(alexnet, tmp_path / name)) for name in names)]
    monkeypatch.setattr("robustgen.cli.score.table_width", lambda: width)
    lines = cli("score", *roots, "--replicates", 20).stdout.splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("Means in %") and lines[1].split()[:3] == ["Model", "Clean", "mCE"]
    assert re.match(r"alexnet +43\.5 +(±\d\.\d +)?100\.0", lines[2])
    # Nine models do not fit side by side: the columns are divided among several tables.
    assert len([line for line in lines if line.startswith(("fog", "glass blur"))]) == 2 * tables


def test_perturbations_fit_the_terminal(tmp_path, monkeypatch):
    roots = [tmp_path / name for name in ("a", "b")]
    for seed, root in enumerate(roots):
        put_p(root, seed=seed)
    monkeypatch.setattr("robustgen.cli.score.table_width", lambda: 70)
    text = cli("score", *roots).stdout
    assert max(map(len, text.splitlines())) <= 70
    assert text.splitlines()[2].split() == ["Model", "mFR", "mFP", "mT5D", "muT5D"]
    assert "Differences from the means of a, on the same images" in text and "translate" in text
    assert re.search(r"^b +[+-]\d+\.\d\d ±\d+\.\d\d ", text, re.M)
    assert cli("score", *roots, "--verbose").stdout.startswith("Flip rate (FR) in %, normalised by")


def test_markdown_is_short_unless_all_tables_are_wanted(alexnet):
    lines = cli("score", alexnet, "--format", "markdown").stdout.splitlines()
    assert lines[0] == "**Means in %, normalised by AlexNet, ± half a 95 % interval**"
    assert lines[2] == f"| Model | Clean | {' | '.join(each.mean for each in OF_ERRORS)} |"
    assert lines[4].startswith("| alexnet | 43.5 ± 3.1 | 100.0 ± 2.7 | 78.9 ± 2.1 |")
    assert "| fog | 100.0 | 81.9 |" in "\n".join(lines)
    lines = cli("score", alexnet, "--format", "markdown", "--verbose").stdout.splitlines()
    assert lines[0] == "**Corruption error (CE) in %, normalised by AlexNet, ± half a 95 % interval**"
    assert lines[2].startswith("| Model | Clean | mCE | Gauss. |")
    assert {line.count("|") for line in lines[2:5]} == {23}
    assert lines[4].startswith("| alexnet | 43.5 ± 3.1 | 100.0 ± 2.7 | 100.0 |")


def tabulars(text):
    """Heads and rows of the tables in LaTeX, as lists of cells; each is checked for its structure."""
    found = []
    for block in re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", text, re.DOTALL):
        begin, top, *head, last = block.splitlines()
        (columns,) = re.fullmatch(r"\\begin\{tabular\}\{@\{\}(lr+)@\{\}\}", begin).groups()
        assert (top, last) == (r"\toprule", r"\end{tabular}") and head.pop() == r"\bottomrule"
        rows = [line.removesuffix(r" \\").split(" & ") for line in head if line.endswith(r"\\")]
        rows = [row for row in rows if not any("multicolumn" in cell for cell in row)]
        assert {len(row) for row in rows} == {len(columns)}
        found.append(rows)
    assert text.count("{") == text.count("}")
    return found


@pytest.fixture
def two(tmp_path):
    common = {name: ALEXNET_ERROR[name] for name in COMMON_CORRUPTIONS}
    put_c(tmp_path / "a_b", common)
    return tmp_path / "a_b", put_c(tmp_path / "better", {name: each / 2 for name, each in common.items()})


@pytest.mark.slow("bootstraps many means")
def test_latex_has_the_means_of_each_model(two):
    text = cli("score", two[0], "--format", "latex").stdout
    assert "textbf" not in text
    text = cli("score", *two, "--format", "latex").stdout
    (head, first, second), *_ = tabulars(text)
    assert head == ["Model", "Clean", "mCE", "Mean error", "Rel. mCE", "mAUDE"]
    # Both have the same clean error.
    assert first[:3] == [r"a\_b", r"\textbf{43.5 $\pm$ 3.1}", r"100.0 $\pm$ 2.7"]
    assert second[:3] == ["better", r"\textbf{43.5 $\pm$ 3.1}", r"\textbf{50.0 $\pm$ 3.6}"]
    full = tabulars(cli("score", *two, "--format", "latex", "--verbose").stdout)
    assert {row[0] for rows in full for row in rows} == {"Model", r"a\_b", "better"}
    published = cli("score", *two, "--format", "latex", "--compare-with", "published").stdout
    assert r"\textgreater{} better & " in published


def test_latex_of_corruptions_in_no_mean(tmp_path):
    text = cli("score", put_c(tmp_path / "a", {"spatter": 0.5}), "--partial", "--format", "latex").stdout
    ((_, row),) = tabulars(text)
    assert row[0] == "spatter" and "69.6" in row
    own = put_c(tmp_path / "b", {"perlin_noise": 0.5, "plasma_noise": 0.5})
    (heads, row), _ = tabulars(cli("score", own, "--format", "latex").stdout)
    assert heads == ["Model", "Clean", "Mean error"] and row[0] == "b"
    assert [re.sub(r" \$\\pm\$ \d\.\d", "", cell) for cell in row[1:]] == ["43.5", "50.0"]


def test_latex_fits_a_page(two):
    text = cli("score", *two, "--format", "latex", "--verbose").stdout
    # No group is divided.
    assert [rows[0] for rows in tabulars(text)][:3] == [
        ["Model", "Clean", "mCE", "Gauss.", "Shot", "Impulse"],
        ["Model", "Defocus", "Glass", "Motion", "Zoom", "Snow", "Frost", "Fog", "Bright"],
        ["Model", "Contrast", "Elastic", "Pixel", "JPEG"],
    ]
    assert r"\multicolumn{3}{c}{Noise}" in text and r"\cmidrule(lr){4-6}" in text
    # A letter has about 5 points, a gap 6, and a line of an article 345.
    for rows in tabulars(text):
        plain = [[re.sub(r"\\textbf|[{}$]|\\pm", "", cell) for cell in row] for row in rows]
        assert sum(5 * max(map(len, column)) + 6 for column in zip(*plain, strict=True)) <= 345


# --- a gate --------------------------------------------------------------------------------------


def gate(*conditions):
    """Standard output and the lines on stderr of `score` with conditions that fail."""
    result = cli("score", *conditions, status=1)
    return result.stdout, result.stderr.splitlines()


def test_failed_conditions_are_printed_and_set_the_status(alexnet):
    conditions = ("mCE > 99.5", "fog<100", "fog >= 100", "error.fog > 80 %", "clean_error <= 43.5", "MCE > 1")
    flags = [flag for condition in conditions[:5] for flag in ("--fail-if", condition)]
    _, lines = gate(alexnet, "--format", "json", *flags)
    assert lines == [
        "failed: alexnet: mCE is 100.00 (mCE > 99.5)",
        "failed: alexnet: fog is 100.00 (fog >= 100)",
        "failed: alexnet: error.fog is 81.90 (error.fog > 80)",
        "failed: alexnet: clean_error is 43.50 (clean_error <= 43.5)",
    ]
    report = json.loads(cli("score", alexnet, "--format", "json", "--fail-if", "mCE > 101").stdout)
    assert report["models"][0]["measures"]["corruption_error"]["mean_name"] == "mCE"
    text, _ = gate(alexnet, "--format", "markdown", "--fail-if", "mCE > 70")
    assert text.splitlines()[-1] == "- failed: alexnet: mCE is 100.00 (mCE > 70)"


def test_conditions_of_perturbations_and_of_partial_means(tmp_path, incomplete):
    put_p(tmp_path / "p")
    _, lines = gate(tmp_path / "p", "--fail-if", "mFR > 1", "--fail-if", "flip_probability.tilt > 1")
    failed = [line.split(" is ")[0] for line in lines if line.startswith("failed")]
    assert failed == ["failed: p: mFR", "failed: p: flip_probability.tilt"]
    _, lines = gate(incomplete, "--partial", "--fail-if", "CE (13/15) > 70")
    assert lines[-1] == "failed: incomplete: CE (13/15) is 100.00 (CE (13/15) > 70)"
    line = cli_error("score", incomplete, "--partial", "--fail-if", "fog > 70")
    assert line.startswith("--fail-if: incomplete: unknown score 'fog' (")


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("mCEx > 70", "--fail-if: alexnet: unknown score 'mCEx' (did you mean 'mCE'?)"),
        ("eror.fog > 70", "--fail-if: alexnet: unknown score 'eror.fog' (did you mean 'error.fog'?)"),
        (
            "qqq > 70",
            "--fail-if: alexnet: unknown score 'qqq' (known: clean_error, mCE, corruption_error.mean, ",
        ),
        ("fog 70", "--fail-if: must be NAME > NUMBER, or with <, >= or <=, not 'fog 70'"),
        ("fog > high", "--fail-if: must be NAME > NUMBER"),
    ],
)
def test_conditions_that_cannot_be_checked(alexnet, condition, says):
    assert cli_error("score", alexnet, "--fail-if", condition).startswith(says)


def test_csv_holds_fractions(alexnet):
    rows = list(csv.DictReader(io.StringIO(cli("score", alexnet, "--format", "csv").stdout)))
    assert [row["statistic"] for row in rows[:3]] == ["value", "low", "high"]
    by_measure = {row["measure"]: row for row in rows if row["statistic"] == "value"}
    assert by_measure["corruption_error"]["normalised_by"] == "AlexNet"
    assert by_measure["error"]["normalised_by"] == ""
    assert float(by_measure["error"]["fog"]) == pytest.approx(0.819)
    assert float(by_measure["error"]["clean_error"]) == 0.435
    assert {row["mean_over"] for row in rows} == {"15"}


def test_perturbations_in_every_format(tmp_path):
    put_p(tmp_path / "model", [*COMMON_PERTURBATIONS, "shear"])
    lines = cli("score", tmp_path / "model").stdout.splitlines()
    for title in (
        "Flip rate (FR) in %, normalised by AlexNet",
        "Flip probability (FP) in %, unnormalised",
        "Top-5 distance (T5D) in %, normalised by AlexNet",
        "Top-5 distance (uT5D), 0 to 15, unnormalised",
    ):
        assert f"{title}, ± half a 95 % interval" in lines
    heads = "Model mFR Gauss. Shot Motion Zoom Snow Bright Translate Rotate Tilt Scale Shear"
    assert lines[2].split() == heads.split()
    for layout in ("markdown", "csv", "latex"):
        assert "Error" not in cli("score", tmp_path / "model", "--format", layout).stdout
    # AlexNet's numbers are the paper's, and can be given by the user as well.
    flips, distances = dict(ALEXNET_FLIP_PROBABILITY), dict(ALEXNET_TOP5_DISTANCE)
    model = {"model": "A", "flip_probabilities": flips, "top5_distances": distances}
    (tmp_path / "a.json").write_text(json.dumps({"models": [model]}))
    ours, _ = scored(tmp_path / "model")
    same, _ = scored(tmp_path / "model", "--baseline", tmp_path / "a.json")
    assert means(ours["models"][0]) == means(same["models"][0])


# --- incomplete ----------------------------------------------------------------------------------


@pytest.fixture
def incomplete(alexnet, tmp_path):
    """Without fog, one severity of snow, and the clean images."""
    root = Path(shutil.copytree(alexnet, tmp_path / "incomplete"))
    shutil.rmtree(root / "fog")
    (root / "snow" / "2.npz").unlink()
    (root / "clean.npz").unlink()
    return root


def test_finished_folders_are_scored_beside_unfinished_ones(alexnet, incomplete, tmp_path):
    begun = tmp_path / "begun"
    (begun / ".robustgen" / "parts" / "fog").mkdir(parents=True)
    (begun / ".robustgen" / "parts" / "fog" / "0.npy").write_bytes(b"")
    just_begun = tmp_path / "just-begun"
    just_begun.mkdir()
    (just_begun / ABOUT).write_text('{"schema": 1}')
    result = cli(
        "score", incomplete, begun, alexnet, just_begun, "--output", tmp_path / "page.html", status=1
    )
    assert result.stderr.splitlines()[0] == (
        f"not scored, because unfinished: {incomplete} (lacks fog, snow/2), {begun}, {just_begun}; "
        "the same command resumes a run"
    )
    assert result.stdout == cli("score", alexnet).stdout and (tmp_path / "page.html").exists()
    result = cli("score", incomplete, begun, alexnet, "--partial", status=1)
    assert f"not scored, because unfinished: {begun};" in result.stderr and "CE (13/15)" in result.stdout
    assert "the run is unfinished; the same command resumes it" in cli_error("score", begun, just_begun)
    found = robustgen.score(incomplete, alexnet, begun)
    assert (found.models, found.predictions) == (("alexnet",), (str(alexnet),))
    assert found.notes[0].startswith(
        f"not scored, because unfinished: {incomplete} (lacks fog, snow/2), {begun}"
    )


def test_a_partial_mean_is_asked_for_and_goes_by_another_name(incomplete, alexnet):
    want = f"{incomplete}: incomplete: fog, snow/2 missing (--partial scores the rest)"
    assert cli_error("score", incomplete) == want
    result = cli("score", incomplete, alexnet, "--partial")
    lines = result.stdout.splitlines()
    assert lines[0].startswith(
        "Corruption error (CE) in %, normalised by AlexNet (incomplete: mean over 13 of 15 corruptions)"
    )
    assert "CE (13/15)" in lines[2] and "mCE" not in lines[2]
    assert lines[3].split()[:3] == ["incomplete", "-", "100.0"] and lines[3].split().count("-") == 3
    assert result.stderr.splitlines() == [
        f"{incomplete}: no clean.npz, so no clean error and no score that needs it",
        f"{incomplete}: incomplete: fog, snow/2 missing; means are over the rest",
    ]
    report, _ = scored(incomplete, alexnet, "--partial")
    names = [name for name in COMMON_CORRUPTIONS if name not in ("fog", "snow")]
    assert [m["measures"]["error"]["mean_over"] for m in report["models"]] == [names] * 2


def random_set(root, chance, severities=(1, 2, 3, 4, 5), names=("fog", "snow"), seed=0):
    """Predictions of 400 images that are wrong with that chance; equal seeds are wrong on the same ones."""
    rng, keys = np.random.default_rng(seed), [f"{i:03d}" for i in range(400)]
    for variant in ("clean", *(f"{name}/{level}" for name in names for level in severities)):
        logits = np.eye(4)[(rng.random(400) < chance).astype(int)]
        # The order of the rows is each file's own.
        order = rng.permutation(400)
        write(root, variant, [keys[i] for i in order], np.zeros(400, int), logits[order])
    return root


def test_severities_of_ones_own_choice_are_scored(tmp_path):
    root = random_set(tmp_path / "a", 0.3, severities=(1, 3))
    assert "--partial scores the rest" in cli_error("score", root)
    result = cli("score", root, "--partial", "--format", "json")
    report = json.loads(result.stdout)
    assert report["severities"] == [1, 3]
    (model,) = report["models"]
    assert list(model["measures"]) == ["error"]
    errors = model["errors"]["fog"]
    assert model["measures"]["error"]["values"]["fog"] == pytest.approx(np.mean(errors)) and len(errors) == 2
    assert "means are over severities 1 and 3 only" in result.stderr
    table = cli("score", root, "--partial").stdout
    assert "mean over severities 1, 3 only" in table and "mCE" not in table
    other = random_set(tmp_path / "b", 0.3, severities=(2,))
    lone = cli("score", other, "--partial")
    assert "mean over severity 2 only" in lone.stdout and "means are over severity 2 only" in lone.stderr
    cli("score", root, other, "--partial", status=2)


def test_severities_of_ones_own_choice_need_no_baseline(tmp_path):
    """Of ImageNet's classes, where AlexNet is the baseline; the chart shows the severities that there are."""
    for severity in (1, 3):
        put_top5(tmp_path / "a" / "fog" / f"{severity}.npz", severity / 10)
    put_top5(tmp_path / "a" / "clean.npz", 0.05)
    for flags in ((), ("--baseline", "alexnet")):
        result = cli("score", tmp_path / "a", "--partial", "--output", tmp_path / "chart.svg", *flags)
        assert "nothing is normalised, because baselines are means over five" in result.stderr
        assert "Top-1 error in %, mean over severities 1, 3 only" in result.stdout
        assert "normalised by" not in result.stdout
    ticks = re.findall(r"<!-- (\d|clean) -->", (tmp_path / "chart.svg").read_text())
    assert {"clean", "1", "3"} <= {*ticks} and "4" not in ticks


def test_what_a_baseline_lacks_is_left_out_with_a_line(alexnet, tmp_path):
    (tmp_path / "own.yaml").write_text("model: Own\nerrors: {fog: 0.819, snow: 0.4335}\n")
    report, notes = scored(alexnet, "--partial", "--baseline", tmp_path / "own.yaml")
    values = report["models"][0]["measures"]["corruption_error"]["values"]
    assert values == pytest.approx({"fog": 1, "snow": 2})
    assert any(note.startswith("Own has no value for gaussian_noise, shot_noise") for note in notes)


def test_every_value_has_an_interval(tmp_path):
    root = random_set(tmp_path / "a", 0.3)
    (model,) = json.loads(cli("score", root, "--partial", "--format", "json").stdout)["models"]
    half = 1.96 * np.sqrt(0.3 * 0.7 / 400)
    for low, high in model["error_intervals"].values():
        assert high - low == pytest.approx(2 * half, rel=0.25)
    for measure in model["measures"].values():
        assert measure["intervals"].keys() == measure["values"].keys()
        for name, value in measure["values"].items():
            low, high = measure["intervals"][name]
            assert low < value < high
        low, high = measure["mean_interval"]
        assert low < measure["mean"] < high
    assert "95 %" in cli("score", root, "--partial").stdout
    assert "95 %" not in cli("score", root, "--partial", "--replicates", "0").stdout


def test_models_are_compared_image_by_image(tmp_path):
    first, second = random_set(tmp_path / "a", 0.30), random_set(tmp_path / "b", 0.33)
    report = json.loads(cli("score", first, second, "--partial", "--format", "json").stdout)
    found = {each["measure"]: each for each in report["differences"]}
    assert found.keys() == {*report["models"][0]["measures"]}
    means = [model["measures"]["error"] for model in report["models"]]
    difference = found["error"]
    assert (difference["model"], difference["other"]) == ("b", "a")
    assert difference["value"] == pytest.approx(means[1]["mean"] - means[0]["mean"])
    low, high = difference["interval"]
    # The second is wrong wherever the first is, which the intervals of either do not show.
    assert 0 < low < difference["value"] < high
    (own_low, own_high), (other_low, other_high) = (each["mean_interval"] for each in means)
    assert high - low < (own_high - own_low) / 2 and high - low < (other_high - other_low) / 2
    table = cli("score", first, second, "--partial").stdout
    assert "Differences from the means of a, on the same images" in table
    assert f"{100 * difference['value']:+.2f} ±{50 * (high - low):.2f}" in table


@pytest.mark.parametrize("wrong", [1, 0])
def test_intervals_where_all_images_agree_are_those_of_wilson(tmp_path, wrong):
    for name in ("one", "two"):
        put_c(tmp_path / name, dict.fromkeys(COMMON_CORRUPTIONS, wrong), clean=wrong, keys=KEYS[:11])
    report, _ = scored(tmp_path, "--baseline", "none")
    error = report["models"][0]["measures"]["error"]
    width = 1.96**2 / (11 + 1.96**2)
    ends = (1 - width, 1) if wrong else (0, width)
    for found in (error["mean_interval"], error["intervals"]["fog"]):
        assert found == pytest.approx(ends, abs=1e-4)
    assert report["models"][0]["error_intervals"]["clean"] == pytest.approx(ends, abs=1e-4)
    low, high = report["differences"][0]["interval"]
    assert -width <= low < 0 < high <= width and report["differences"][0]["p"] == 1
    # The width of the interval is 3.84 / (images + 3.84).
    plans = [
        cli("score", tmp_path / "one", "--baseline", "none", "--plan", each).stdout for each in (3.1, 0.5)
    ]
    assert [re.findall(r"needs (\d+) images", each) for each in plans] == [["59"], ["381"]]


# --- few images ----------------------------------------------------------------------------------


def put_mistakes(root, **folders):
    """Predictions with these numbers of mistakes, of the first or the last images, of so many."""
    for folder, (mistakes, images) in folders.items():
        wrong = np.arange(images) < mistakes if mistakes >= 0 else np.arange(images) >= images + mistakes
        logits = np.eye(2)[wrong.astype(int)]
        write(root, folder.replace("_", "/"), KEYS[:images], np.zeros(images, int), logits)
    return root


@pytest.mark.parametrize(
    ("lost", "won", "images"), [(1, 0, 1), (3, 0, 10), (5, 1, 20), (9, 1, 20), (12, 3, 30)]
)
def test_the_chance_of_a_single_variant_is_that_of_mcnemar(tmp_path, lost, won, images):
    roots = [
        put_mistakes(tmp_path / name, fog_3=own)
        for name, own in (("a", (won, images)), ("b", (-lost, images)))
    ]
    report, _ = scored(*roots, "--partial")
    (found,) = (each for each in report["differences"] if each["measure"] == "error")
    assert found["p"] == pytest.approx(stats.binomtest(lost, lost + won).pvalue)
    low, high = found["interval"]
    assert -1 <= low <= found["value"] <= high <= 1 and (low > 0) <= (lost > won)


def test_the_interval_of_a_variant_rises_with_its_mistakes(tmp_path):
    roots = [put_mistakes(tmp_path / f"{k:02d}", fog_3=(k, 20)) for k in range(21)]
    report, _ = scored(*roots, "--partial", "--baseline", "none")
    ends = [model["error_intervals"]["fog/3"] for model in report["models"]]
    wanted = [[*stats.binomtest(k, 20).proportion_ci(method="wilson")] for k in range(21)]
    np.testing.assert_allclose(ends, wanted, atol=1e-12)
    # 5 % of 1 to 24 % is no plus or minus.
    assert re.search(
        r"^01 .*5\.0 \[0\.9, 23\.6\]", cli("score", *roots[:2], "--partial", "--verbose").stdout, re.M
    )


@pytest.mark.parametrize(
    ("images", "condition", "needed"),
    [(1, "", 6), (5, "", 6), (6, " by 10", 6), (3, " by 10", 6), (9, " by 100", 0)],
)
def test_a_condition_that_no_result_can_meet_is_refused(tmp_path, images, condition, needed):
    good = put_mistakes(tmp_path / "good", fog_3=(0, images))
    bad = put_mistakes(tmp_path / "bad", fog_3=(images, images))
    given = ("score", bad, "--partial", "--fail-if", f"error.fog worse than {good}{condition}")
    if images == needed:
        assert "failed: bad" in cli(*given, status=1).stderr
        return
    line = cli_error(*given)
    assert (f"use {needed} or more" if needed else "cannot fall so far") in line and str(images) in line


def test_models_are_not_told_apart_by_few_images(tmp_path):
    roots = [put_mistakes(tmp_path / f"m{k}", fog_3=(k, 6)) for k in range(7)]
    told = cli("score", roots[0], roots[6], "--partial").stderr
    assert "6 images: so few" in told and "too few to tell" not in told
    # One of six comparisons is significant at 0.031 before, and none after Holm's correction.
    assert "too few to tell the models apart (6 images)" in cli("score", *roots, "--partial").stderr


def test_a_baseline_of_predictions_is_left_to_chance_as_the_model_is(tmp_path):
    rng, images = np.random.default_rng(1), 60
    hard = rng.random(images)
    for name, level in (("m", 0.3), ("base", 0.4)):
        for severity in range(1, 6):
            wrong = hard + 0.02 * rng.normal(size=images) < level
            write(
                tmp_path / name,
                f"fog/{severity}",
                KEYS[:images],
                np.zeros(images, int),
                np.eye(2)[wrong.astype(int)],
            )

    def find(base):
        report, _ = scored(tmp_path / "m", "--partial", "--baseline", base)
        found = report["models"][0]["measures"]["corruption_error"]
        return found["values"]["fog"], *found["intervals"]["fog"], found["interval_method"]

    value, low, high, method = find(tmp_path / "base")
    assert low < value < high and "logarithm" in method
    (tmp_path / "fixed.yaml").write_text("errors: {fog: 0.4}\n")
    constant, fixed_low, fixed_high, other = find(tmp_path / "fixed.yaml")
    # Of images that are hard for both, the ratio is known better than the error.
    assert (high - low) / value < 0.6 * (fixed_high - fixed_low) / constant and other != method
    assert find(tmp_path / "m")[:3] == (1, 1, 1)


@pytest.mark.parametrize("replicates", [20, 100])
def test_few_bootstrap_samples_are_warned_of(tmp_path, replicates):
    root = put_mistakes(tmp_path / "m", fog_3=(5, 30))
    told = cli("score", root, "--partial", "--replicates", replicates).stderr
    assert ("20 bootstrap samples are few" in told) == (replicates == 20)


def test_a_plan_says_how_many_images_a_precision_takes(tmp_path):
    root = random_set(tmp_path / "a", 0.3, names=("fog",))
    (line,) = cli("score", root, "--partial", "--baseline", "none", "--plan", "1").stdout.splitlines()
    says = re.fullmatch(r"a: Error \(1/15\) .* from 400 images; \+- 1 % \(95 %\) needs ([\d,]+) images", line)
    needed = int(says[1].replace(",", ""))
    line = cli_error("score", root, "--partial", "--baseline", "none", "--plan", "1e-300")
    assert line == "--plan 1e-300: so narrow an interval needs more than 1e+18 images"
    # Five draws an image: a fifth of the variance of one.
    assert needed == pytest.approx(0.3 * 0.7 / 5 * (1.96 / 0.01) ** 2, rel=0.25)


def test_the_ten_that_are_averaged_of_cifar_sequences_are_named(tmp_path):
    put_p(tmp_path / "model", classes=10)
    assert not any("cifar" in note for note in scored(tmp_path / "model")[1])
    (tmp_path / "model" / ABOUT).write_text(json.dumps({"schema": 1, "edition": "cifar-10"}))
    report, notes = scored(tmp_path / "model")
    (note,) = (note for note in notes if note.startswith("means are over gaussian_noise, "))
    assert note.endswith("; the published cifar-p-eval has spatter instead of snow")
    averaged = report["models"][0]["measures"]["flip_probability"]["mean_over"]
    assert all(name in note for name in averaged) and "snow" in averaged and "spatter" not in averaged


def test_clean_predictions_may_be_missing(tmp_path):
    report, (note,) = scored(put_c(tmp_path / "model", clean=None))
    assert "no clean error" in note
    assert list(means(report["models"][0])) == [each.key for each in OF_ERRORS if each.clean is None]


def test_incomplete_perturbations(tmp_path):
    put_p(tmp_path / "model", ["tilt", "snow"])
    assert "incomplete: gaussian_noise, shot_noise, motion_blur" in cli_error("score", tmp_path / "model")
    text = cli("score", tmp_path / "model", "--partial").stdout
    assert "Flip rate (FR) in %, normalised by AlexNet (incomplete: mean over 2 of 10 perturbations)" in text
    put_p(tmp_path / "other", ["scale"])
    line = cli_error("score", tmp_path / "model", tmp_path / "other", "--partial")
    assert line == "the folders share no corruption or perturbation that could be scored"


def test_fewer_than_five_classes_have_no_top5_distance(tmp_path):
    put_p(tmp_path / "model", classes=3)
    report, _ = scored(tmp_path / "model")
    assert list(means(report["models"][0])) == ["flip_probability"]


# --- charts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", slow_after(1, "draws each chart twice", [".svg", ".png", ".pdf"]))
def test_charts_are_the_same_each_time(alexnet, tmp_path, suffix):
    for name in ("a", "b"):
        cli("score", alexnet, "--output", tmp_path / f"{name}{suffix}")
    data = (tmp_path / f"a{suffix}").read_bytes()
    assert len(data) > 5000 and data == (tmp_path / f"b{suffix}").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"a{suffix}", f"b{suffix}"]


def test_charts_show_models_categories_perturbations_and_incomplete_sets(alexnet, incomplete, tmp_path):
    put_c(tmp_path / "$a$_$b")
    cli("score", alexnet, tmp_path / "$a$_$b", "--output", tmp_path / "chart.svg")
    text = (tmp_path / "chart.svg").read_text()
    for word in ("alexnet", "$a$_$b", "Noise", "Blur", "Weather", "Digital", "Severity"):
        assert f"<!-- {word} -->" in text
    put_p(tmp_path / "model")
    cli("score", tmp_path / "model", "--output", tmp_path / "p.png")
    cli("score", incomplete, "--partial", "--output", tmp_path / "c.png")
    for name in ("p.png", "c.png"):
        assert pixels_of(tmp_path / name).std() > 10


def test_charts_that_cannot_be_drawn(alexnet, tmp_path, monkeypatch):
    assert "chart.gif: must end in .png, .svg, .pdf" in cli_error("score", alexnet, "--output", "chart.gif")
    (tmp_path / "file").write_text("")
    result = cli("score", alexnet, "--output", tmp_path / "file" / "chart.png", status=2)
    assert result.stderr.startswith("Error: --output ")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    line = cli_error("score", alexnet, "--output", "chart.png")
    assert line == "charts need matplotlib: pip install 'robustgen[plot]'"


# --- wrong input ---------------------------------------------------------------------------------

LOGITS = np.zeros((IMAGES, 10))
GOOD = {"logits": LOGITS, "labels": np.zeros(IMAGES, int), "keys": np.array(KEYS)}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"logits": np.full((IMAGES, 10), np.nan)}, "logits contain NaN or infinity"),
        ({"logits": LOGITS[:5]}, "1000 keys for 5 predictions"),
        ({"logits": LOGITS[:, 0]}, "logits have the shape (1000,)"),
        ({"logits": LOGITS[0, 0]}, "logits have the shape ()"),
        ({"logits": LOGITS[:, :0]}, "logits have the shape (1000, 0)"),
        ({"logits": np.zeros((IMAGES, 3, 10))}, "(1000, 3, 10) are not one row per image"),
        ({"logits": LOGITS.astype(str)}, "logits must contain numbers"),
        ({"logits": LOGITS.astype(object)}, "3.npz: "),
        ({"logits": None}, "has neither logits nor top1 and top5"),
        ({"labels": np.full(IMAGES, 10)}, "labels must be 0 to 9, not 10 to 10"),
        ({"labels": np.full(IMAGES, -1)}, "labels must be 0 to 9, not -1 to -1"),
        ({"labels": np.zeros(IMAGES)}, "has no list of integer labels"),
        ({"labels": np.zeros(3, int)}, "3 labels for 1000 keys"),
        ({"labels": None}, "has no list of integer labels"),
        ({"labels": np.ones(IMAGES, int)}, "other labels than in"),
        ({"keys": None}, "has no list of keys"),
        ({"keys": np.array(KEYS[:1] * IMAGES)}, "has a key twice"),
        ({"keys": np.array(["x", *KEYS[1:]])}, "not the images of"),
        ({"logits": np.zeros((IMAGES, 11))}, "11 classes, where"),
        ({"logits": np.asfortranarray(LOGITS)}, "its arrays must be in C order"),
    ],
)
def test_malformed_predictions(tmp_path, changes, says):
    root = put_c(tmp_path / "model", {"fog": 0.5}, classes=10)
    np.savez(root / "fog" / "3.npz", **{k: v for k, v in (GOOD | changes).items() if v is not None})
    line = cli_error("score", root, "--partial")
    assert "fog/3.npz: " in line and says in line


def test_files_that_are_no_predictions(tmp_path):
    root = put_c(tmp_path / "model", {"fog": 0.5}, classes=10)
    victim = root / "fog" / "3.npz"
    for data in (b"", b"no archive", victim.read_bytes()[:500]):
        victim.write_bytes(data)
        assert "fog/3.npz: not a complete file of predictions" in cli_error("score", root, "--partial")
    top5 = np.full((IMAGES, 5), 10)
    known = {"labels": GOOD["labels"], "keys": GOOD["keys"], "classes": np.array(10), "top1": top5[:, 0]}
    np.savez(victim, top5=top5, **known)
    assert "fog/3.npz: predicted classes 10 to 10 are out of range" in cli_error("score", root, "--partial")
    np.savez(victim, top5=top5[:, :3], **known)
    assert "fog/3.npz: top5 has the shape (1000, 3), not (1000, 5)" in cli_error("score", root, "--partial")


def put_entries(path, **entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(f"{name}.npy", data)


def npy(shape, dtype, data=b""):
    text = str({"descr": dtype, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"keys": npy((2_000_000_000,), "<U1")}, "keys claim the shape (2000000000,), 4 bytes each"),
        ({"keys": npy((30,), "<U30000000")}, "keys claim the shape (30,), 120000000 bytes each"),
        ({"labels": npy((1 << 40,), "<i8")}, "labels claim the shape"),
        ({"keys": b"\x93NUMPY\x02\x00" + b"\xff" * 4 + bytes(99)}, "claims a header of 4294967295 bytes"),
        ({"keys": npy((IMAGES,), "<U4", b"x")}, "keys are cut off"),
        ({"keys": npy((1,), "<U1", bytes(9))}, "keys are longer than they claim"),
        ({"logits": npy((IMAGES, 10), "<U100000000")}, "logits claim 4000000000 bytes a row"),
        ({"logits": npy((IMAGES, -1), "<f8")}, "an array of the shape (1000, -1)"),
    ],
)
def test_predictions_that_promise_gigabytes(tmp_path, changes, says):
    root = put_c(tmp_path / "model", {"fog": 0.5}, classes=10)
    keys = np.array(KEYS)
    good = {
        "logits": npy((IMAGES, 10), "<f8", bytes(80 * IMAGES)),
        "labels": npy((IMAGES,), "<i8", bytes(8 * IMAGES)),
        "keys": npy((IMAGES,), keys.dtype.str, keys.tobytes()),
    }
    put_entries(root / "fog" / "3.npz", **good | changes)
    line = cli_error("score", root, "--partial")
    assert "fog/3.npz: " in line and says in line


def test_folders_without_predictions(tmp_path):
    assert "missing: no such folder of predictions" in cli_error("score", tmp_path / "missing")
    assert "has no predictions" in cli_error("score", tmp_path)
    put_top5(tmp_path / "clean.npz", 0)
    assert "has no predictions" in cli_error("score", tmp_path)
    put_top5(tmp_path / "fog" / "6.npz", 0)
    assert "'fog/6' is not a corruption with a severity from 1 to 5" in cli_error("score", tmp_path)


def test_a_folder_of_folders_of_predictions_is_all_of_these(alexnet, tmp_path):
    root = tmp_path / "preds"
    put_c(root / "fog", {"fog": 0.25}, clean=0.5)
    put_c(root / "other", {"fog": 0.75}, clean=None)
    (root / "linked").symlink_to(alexnet)
    (root / "begun").mkdir()
    (root / "begun" / ABOUT).write_text('{"schema": 1}')
    (root / "scores.json").write_text("{}")
    result = cli("score", root, root / "fog", "--partial", "--format", "json", status=1)
    found = [each["model"] for each in json.loads(result.stdout)["models"]]
    # A linked folder goes by its own name.
    assert found == ["fog", "alexnet", "other"]
    assert "has no predictions" in cli_error("score", tmp_path)
    told = f"not scored, because unfinished: {root / 'begun'}; the same command resumes a run"
    assert told in result.stderr and robustgen.score(root / "other", partial=True).models == ("other",)
    put_p(tmp_path / "p" / "tilted", ["tilt"])
    assert scored(tmp_path / "p", "--partial")[0]["models"][0]["model"] == "tilted"


def test_models_of_other_sets(alexnet, tmp_path):
    put_p(tmp_path / "p")
    assert "is of a C set" in cli_error("score", alexnet, tmp_path / "p")
    mixed = Path(shutil.copytree(alexnet, tmp_path / "mixed"))
    put_p(mixed, ["tilt"])
    line = cli_error("score", mixed)
    assert line.startswith(f"{mixed}: mixes a C set (")
    assert line.endswith("with a P set (tilt)")
    few = put_c(tmp_path / "few", keys=KEYS[:500])
    missing = "500 of 1000 keys are missing, for instance 'n0"
    assert cli_error("score", alexnet, few).startswith(f"{few}: not the images of {alexnet}: {missing}")
    a, b = (Path(shutil.copytree(alexnet, tmp_path / name)) for name in "ab")
    for root in (a, b):
        (root / ABOUT).write_text(json.dumps({"schema": 1, "source_digest": root.name}))
    told = f"{b}: made from other source images than {a}: of the same names, but of other sizes"
    assert cli_error("score", a, b) == told


# --- the whole way -------------------------------------------------------------------------------


def test_keys_are_held_against_the_set(tmp_path):
    source = put_folder(tmp_path / "digits", 30)
    few = ("--source", source, "--set", "constants_for=32", "--jobs", "1", "--corruptions", "fog")
    for name, limit in (("c", 30), ("smaller", 20)):
        cli("make-c", *few, "--limit", limit, "--output", tmp_path / name)
    model = put_model(tmp_path / "digits.onnx")
    cli("predict", tmp_path / "c", "--model", model, "--output", tmp_path / "preds", *PLAIN)
    common = ("score", tmp_path / "preds", "--partial", "--predicted-set")
    cli(*common, tmp_path / "c")
    assert "not the images of" in cli_error(*common, tmp_path / "smaller")
    # What was asked for is compared, and no image may be missing from that.
    few = (*few, "--model", model, *PLAIN, "--sample", 10, "--output", tmp_path / "few", "--quiet")
    cli("evaluate", *few)
    page = ("--output", tmp_path / "page.html")
    command = ("score", tmp_path / "few" / "digits", "--partial", "--predicted-set", tmp_path / "c")
    notes = cli(*command, *page).stderr
    assert f"the predictions are of 10 of the 30 images of {tmp_path / 'c'}, as their command chose" in notes
    data = page_data(tmp_path / "page.html")
    pictured = {data["keys"][each.rpartition(" ")[2]] for each in data["thumbs"]}
    assert pictured and pictured <= {*np.load(tmp_path / "few" / "digits" / "clean.npz")["keys"]}
    about = tmp_path / "few" / "digits" / ABOUT
    about.write_text(about.read_text().replace('"keys": "', '"keys": "0'))
    assert "20 of 30 keys are missing" in cli_error(*command)


# --- several seeds, and what is known of models ---------------------------------------------------


@pytest.fixture
def seeds(tmp_path):
    for seed, chance in enumerate((0.3, 0.4, 0.35)):
        random_set(tmp_path / f"mine-{seed}", chance, seed=seed)
    random_set(tmp_path / "other", 0.5, seed=9)
    return tmp_path


def test_seeds_of_a_model_are_one_row_with_their_mean_and_deviation(seeds):
    flags = ("--partial", "--baseline", "none")
    alone, _ = scored(seeds, *flags)
    report, notes = scored(seeds, *flags, "--group", "mine=mine-*")
    mine, other = report["models"]
    assert (mine["model"], other["model"]) == ("mine", "other") and any("3 seeds" in note for note in notes)
    assert mine["seeds"] == [f"mine-{seed}" for seed in range(3)] and "seeds" not in other
    for name in ("fog", "snow"):
        single = [each["measures"]["error"]["values"][name] for each in alone["models"][:3]]
        assert mine["measures"]["error"]["values"][name] == pytest.approx(np.mean(single))
        assert mine["measures"]["error"]["seed_deviation"][name] == pytest.approx(np.std(single, ddof=1))
    assert other["measures"] == alone["models"][3]["measures"]

    def width(model):
        low, high = model["measures"]["error"]["mean_interval"]
        return high - low

    # Single runs say nothing of other seeds.
    assert width(mine) > max(map(width, alone["models"][:3]))
    (row,) = [
        each
        for each in csv.DictReader(
            io.StringIO(cli("score", seeds, *flags, "--group", "mine=mine-*", "--format", "csv").stdout)
        )
        if each["statistic"] == "seed_deviation" and each["measure"] == "error"
    ]
    assert float(row["fog"]) == mine["measures"]["error"]["seed_deviation"]["fog"]
    gated = cli("score", seeds, *flags, "--group", "mine=mine-*", "--fail-if", "error.mean > 45", status=1)
    assert "failed: other" in gated.stderr and "Standard deviation over seeds" in gated.stdout
    public = robustgen.score(seeds, partial=True, baseline="none", group=["mine=mine-*"])
    assert public.models == ("mine", "other")
    assert public.value("error", "fog", "mine") == mine["measures"]["error"]["values"]["fog"]


@pytest.mark.parametrize("groups", ["mine", "mine=none*", "mine=mine-0", "other=mine-*", "a=mine-*,b=*"])
def test_groups_that_name_no_seeds_are_refused(seeds, groups):
    flags = [text for each in groups.split(",") for text in ("--group", each)]
    assert "group" in cli_error("score", seeds, "--partial", *flags)


def test_seeds_cannot_be_planned_by_images_alone(seeds):
    assert "--plan" in cli_error("score", seeds, "--partial", "--group", "mine=mine-*", "--plan", 1)


FACTS = {"architecture": "ResNet-50", "parameters": 25557032, "url": "https://example.org/paper"}


@pytest.mark.parametrize("suffix", ["yaml", "json", "csv"])
def test_a_models_file_says_what_is_known_of_each_model(seeds, suffix):
    path = seeds / f"models.{suffix}"
    as_csv = "model,architecture,parameters,url,paper\nother,{architecture},{parameters},{url},\n".format(
        **FACTS
    )
    path.write_text(as_csv if suffix == "csv" else json.dumps({"other": FACTS}))
    report, notes = scored(seeds, "--partial", "--group", "mine=mine-*", "--models", path)
    assert "facts" not in report["models"][0] and report["models"][1]["facts"] == FACTS
    assert any("no facts of models" in note and "mine" in note for note in notes)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"other": {"architekture": "a"}}', ["models.json: other", "architekture"]),
        ('{"other": {"parameters": -1}}', ["models.json: other", "parameters"]),
        ('{"other": {"url": "javascript:alert(1)"}}', ["models.json: other", "url"]),
        ('{"other": 3}', ["models.json", "other"]),
        ("[", ["models.json"]),
    ],
)
def test_a_models_file_with_a_mistake_is_refused(seeds, text, names):
    (seeds / "models.json").write_text(text)
    error = cli_error("score", seeds, "--partial", "--models", seeds / "models.json")
    assert all(name in error for name in names)
