"""Every flag of every command does something: it changes files, or what is printed.

A flag without a row in `EFFECTS` or a reason in `EXCEPTIONS` fails. The choices of a run, which dataset.json
records, do not count.
"""

import json
import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from robustgen.cli import main
from robustgen.pixels.benchmarks.kinds import IMAGENET_C
from tests.cli.test_help import COMMANDS
from tests.digits import put_folder, put_model
from tests.helpers import cifar_folder, cli, latest, photo, put_photo, tree
from tests.lab.scores.test_answers import plain
from tests.lab.scores.test_answers import put as put_table
from tests.lab.scores.test_answers import put_all as put_answers
from tests.lab.scores.test_detection import put_run as put_boxes
from tests.lab.scores.test_scoring import COMMON_PERTURBATIONS, KEYS, put_c, put_p
from tests.lab.scores.test_segmentation import put_run as put_maps

SOURCE = {
    "--dataset": ("--source {cifar}", "--dataset cifar-10"),
    "--config": "--config {config}",
    "--set": "--set edition=imagenet",
    "--source": "--source {others}",
    "--split": ("--source {split}", "--split val"),
    "--labels": ("--source {flat}", "--labels {labels}"),
    "--labels-are-classes": ("--source {flat} --labels {labels}", "--labels-are-classes"),
    "--levels": ("--source {deep} --levels 0,65535", "--levels 0,30000"),
    "--edition": "--edition imagenet",
}
SELECTION = {
    "--limit": "--limit 1",
    "--sample": "--sample 1",
    "--subset": "--subset cat/*",
    "--seed": "--seed 1",
}
CORRUPTIONS = {"--corruptions": "--corruptions shot_noise", "--severities": "--severities 2"}
PERTURBATIONS = {
    "--perturbations": "--perturbations rotate",
    "--difficulty": ("--perturbations gaussian_noise", "--difficulty 2"),
}
CLIPS = "! --dataset clips --source {clips} --corruptions fog --severities 1"
STICKERS = "--corruptions laion-c:stickers --source {photos}"
RUNNING = {
    "--allow-failures": ("--source {damaged}", "--allow-failures"),
    "--dry-run": "--dry-run",
    "--write-plan": "--write-plan other.json",
    "--quiet": "--quiet",
    "--log-json": "--log-json log.jsonl",
    "--on": ("--dry-run", "--on slurm:shards=2"),
    "--shard": "--shard 1/2",
    "--output": "--output other",
}
MADE = "--source {photos} --corruptions gaussian_noise --severities 1 --format png --output out --jobs 1"
SEQUENCES = "! --source {photos} --perturbations translate --cell 32 --output p.png"
MODEL = "--model {model} --preprocessing mean=0 --preprocessing std=1"
ON_THE_FLY = (
    f"! --source {{digits}} --corruptions gaussian_noise --severities 1 --output preds --jobs 1 {MODEL}"
)
OF_FRAMES = "--model frame_judge:build --classes {acts} --output preds"
OUTPUTS = {
    "--save": "--save top5",
    "--quiet": "--quiet",
    "--output": "--output other",
    "--clean-input": "--clean-input median",
    "--classes": "--classes {turned}",
    "--preprocessing": "--preprocessing std=2",
}
BOXES = (
    "--annotations {boxes}/truth.json --results {boxes}/{{corruption}}/{{severity}}.json "
    "--clean-results {boxes}/clean.json --replicates 0 --jobs 1"
)
MAPS = (
    "--truth {maps}/gt --results {maps}/preds/{{corruption}}/{{severity}} --clean-results {maps}/clean "
    "--replicates 0 --jobs 1"
)
# Command to its shortest call, and to what each flag is tried with: the words, or others for both calls, and
# the words; beginning with ! the others replace the shortest call. Before ; stands a command to run first.
EFFECTS = {
    "make-c": (
        MADE,
        SOURCE
        | SELECTION
        | CORRUPTIONS
        | RUNNING
        | {
            "--temporal": (f"{CLIPS} --format png --output out --jobs 1", "--temporal frame"),
            "--one-per-image": "--one-per-image",
            "--quality": ("--format jpeg", "--quality 30"),
            "--libjpeg": ("--format jpeg", "--libjpeg ijg"),
            "--clean": "--no-clean",
            "--format": "--format webp",
            "--preset": (f"{CLIPS} --output out --jobs 1", "--preset ultrafast"),
            "--with": (STICKERS, "--with tiles={others}"),
            "--overwrite": ("make-c {own} --seed 1 ;", "--overwrite"),
        },
    ),
    "make-p": (
        "--source {photos} --perturbations translate --format png --output out --jobs 1",
        SOURCE
        | SELECTION
        | PERTURBATIONS
        | RUNNING
        | {
            "--libjpeg": ("--format png", "--libjpeg ijg"),
            "--format": "--format npy",
            "--preset": ("--format mp4 --limit 1", "--preset ultrafast"),
            "--overwrite": ("make-p {own} --seed 1 ;", "--overwrite"),
        },
    ),
    "run": (
        f"make-c {MADE} --write-plan plan.json ; plan.json --jobs 1",
        RUNNING
        | {
            "--allow-failures": (
                "make-c {own} --source {damaged} --write-plan plan.json ;! plan.json --jobs 1",
                "--allow-failures",
            ),
            "--source": "--source {others}",
            "--overwrite": (
                "make-c {own} --write-plan plan.json ; make-c {own} --seed 1 ;! plan.json",
                "--overwrite",
            ),
        },
    ),
    "verify": (
        "{set}",
        {
            "--deep": "--deep 1",
            "--source": ("--deep 1", "--source {others}"),
            "--against": "--against {part}",
            "--allow-failures": (f"make-c {MADE} --source {{damaged}} ;! out", "--allow-failures"),
            "--format": "--format json",
        },
    ),
    "list": (
        "fog",
        {
            "--format": "--format json",
            "--keys": "--keys {photos}",
            "--labels": ("! --keys {flat}", "--labels {labels}"),
            "--labels-are-classes": ("! --keys {flat} --labels {labels}", "--labels-are-classes"),
            "--label-column": ("! --keys {flat} --labels {labels}", "--label-column shade"),
        },
    ),
    "config": (
        "--source {photos}",
        {
            flag: row if isinstance(row, str) else row[1]
            for flag, row in {**SOURCE, **SELECTION, **CORRUPTIONS, **PERTURBATIONS}.items()
        }
        | {
            "--output": "--output other",
            "--temporal": "--temporal frame",
            "--one-per-image": "--one-per-image",
            "--quality": "--quality 30",
            "--libjpeg": "--libjpeg ijg",
            "--clean": "--no-clean",
            "--format": "--format webp",
            "--preset": "--preset fast",
            "--with": "--with tiles={others}",
            "--schema": "--schema",
        },
    ),
    "croissant": (f"make-c {MADE} ; out", {"--rai": "--rai {fields}"}),
    "fetch": ("", {}),
    "warm": ("", {}),
    "preview": (
        "--source {photos} --corruptions gaussian_noise --severities 1 --cell 32 --output p.png",
        SOURCE
        | CORRUPTIONS
        | {
            "--seed": "--seed 1",
            "--temporal": (f"{CLIPS} --cell 32 --output p.png", "--temporal frame"),
            "--perturbations": (SEQUENCES, "--perturbations rotate"),
            "--difficulty": (SEQUENCES.replace("translate", "gaussian_noise"), "--difficulty 2"),
            "--libjpeg": ("--source {photos}", "--libjpeg ijg"),
            "--with": (STICKERS, "--with tiles={others}"),
            "--index": "--index 1",
            "--grid": "--grid",
            "--frames": (SEQUENCES, "--frames 3"),
            "--cell": "--cell 40",
            "--quality": ("--output p.jpg", "--quality 30"),
            "--output": "--output q.png",
            "--show": "--show",
        },
    ),
    "report": ("{set}", {"--output": "--output q.html", "--images": ("--output r.html", "--images 1")}),
    "compare": (
        "{set} {other} --format json",
        {
            "--images": "--images 1",
            "--seed": ("--images 1", "--seed 3"),
            "--corruptions": "--corruptions contrast",
            "--severities": "--severities 1",
            "--perturbations": ("! {sequences} {others_sequences}", "--perturbations translate"),
            "--partial": ("! {set} {part}", "--partial"),
            "--clean-images": ("! {part} {bare} --partial", "--clean-images {part}/clean"),
            "--format": ("! {set} {other}", "--format json"),
            "--output": "--output c.html",
        },
    ),
    "calibrate": (
        "--source {photos} --corruptions gaussian_noise --severities 1 --images 2 --format json --jobs 1",
        SOURCE
        | CORRUPTIONS
        | {
            "--seed": "--seed 1",
            "--libjpeg": ("--source {photos}", "--libjpeg ijg"),
            "--with": ("--corruptions laion-c:stickers --source {large}", "--with tiles={others}"),
            "--images": "--images 1",
            "--format": (
                "! --source {photos} --images 2 --severities 1 --corruptions contrast --jobs 1",
                "--format json",
            ),
        },
    ),
    "evaluate": (
        f"--source {{digits}} --corruptions gaussian_noise --severities 1 --output preds --jobs 1 {MODEL}",
        {flag: SOURCE[flag] for flag in ("--dataset",)}
        | SELECTION
        | CORRUPTIONS
        | OUTPUTS
        | {
            "--config": ("--corruptions fog", "--config {sizes}"),
            "--set": ("--corruptions fog", "--set constants_for=64"),
            "--subset": "--subset *013.png",
            "--input-size": ("--source {wide}", "--input-size 32"),
            "--model": "--model {twin}",
            "--source": ("--classes {classes}", "--source {fewer}"),
            "--labels": ("--source {flat} --input-size 32", "--labels {labels}"),
            "--levels": (
                "--source {deep} --input-size 32 --classes {animals} --levels 0,65535",
                "--levels 0,30000",
            ),
            "--edition": "--edition cifar-10",
            "--perturbations": (f"{ON_THE_FLY} --limit 1", "--perturbations translate"),
            "--difficulty": (f"{ON_THE_FLY} --limit 1 --perturbations gaussian_noise", "--difficulty 2"),
            "--with": (f"{STICKERS} --input-size 32 --classes {{animals}}", "--with tiles={others}"),
            "--overwrite": (f"evaluate {ON_THE_FLY[1:]} --seed 1 ;", "--overwrite"),
            "--frames": (f"{CLIPS} --jobs 1 {OF_FRAMES}", "--frames 2"),
            "--random-offset": (f"{CLIPS} --jobs 1 {OF_FRAMES} --frames 1 --seed 2", "--random-offset"),
            "--uncompressed": "--uncompressed",
            "--baseline": "--baseline alexnet",
            "--only-classes": ("--source {fewer} --classes {classes}", "--only-classes"),
        },
    ),
    "predict": (
        f"{{predicted}} --output preds {MODEL}",
        OUTPUTS
        | {
            "--input-size": (f"! {{large_set}} --output preds {MODEL}", "--input-size 32"),
            "--model": (f"! {{predicted}} --output preds {MODEL[15:]}", "--model {twin}"),
            "--only-classes": (f"! {{few}} --output preds {MODEL} --classes {{classes}}", "--only-classes"),
            "--frames": (f"! {{clip_set}} {OF_FRAMES}", "--frames 2"),
            "--overwrite": (
                f"predict {{predicted}} --output preds {MODEL} --preprocessing std=2 ;",
                "--overwrite",
            ),
        },
    ),
    "score": (
        "{scored}/one {scored}/two --replicates 0",
        {
            "--chart-width": ("--output c.svg", "--chart-width column"),
            "--chart": ("--output c.svg", "--chart dots"),
            "--chart-models": ("--output c.svg", "--chart-models one"),
            "--replicates": "--replicates 10",
            "--partial": ("! {some} --replicates 0", "--partial"),
            "--format": "--format csv",
            "--baseline": "--baseline none",
            "--difficulty": ("! {flips} --replicates 0", "--difficulty 2"),
            "--plan": ("--replicates 10", "--plan 1"),
            "--compare-with": "--compare-with published",
            "--group": ("! {scored} --replicates 0", "--group both=*"),
            "--models": ("--output s.html", "--models {facts}"),
            "--fail-if": "--fail-if mCE>1",
            "--output": "--output s.html",
        },
    ),
    "score-ood": (
        "--id {some}/clean.npz --ood {some}/gaussian_noise/1.npz --replicates 0",
        {
            "--fail-if": "--fail-if AUROC>0",
            "--output": "--output s.html",
            "--format": "--format csv",
            "--replicates": "--replicates 10",
            "--id": "--id {some}/gaussian_noise/1.npz",
            "--ood": "--ood {some}/clean.npz",
            "--confidence": "--confidence energy",
        },
    ),
    "score-detection": (
        f"{BOXES} --partial",
        {
            "--fail-if": "--fail-if mPC>0",
            "--output": "--output s.html",
            "--format": "--format csv",
            "--replicates": "--replicates 10",
            "--partial": (f"! {BOXES}", "--partial"),
            "--annotations": "--annotations {boxes}/fewer.json",
            "--results": "--results {boxes}/again/{{corruption}}/{{severity}}.json",
            "--clean-results": "--clean-results {boxes}/fog/1.json",
            "--type": "--type bbox",
            "--name": ("--format json", "--name mine"),
            "--compare-with": "--compare-with published",
        },
    ),
    "score-segmentation": (
        f"{MAPS} --partial",
        {
            "--fail-if": "--fail-if mean>0",
            "--output": "--output s.html",
            "--format": "--format csv",
            "--replicates": "--replicates 10",
            "--partial": (f"! {MAPS}", "--partial"),
            "--truth": "--truth {maps}/other",
            "--results": "--results {maps}/again/{{corruption}}/{{severity}}",
            "--clean-results": "--clean-results {maps}/preds/fog/1",
            "--class-count": ("--format json", "--class-count 30"),
            "--ignore": "--ignore 3 --class-count 256",
            "--one-based": "--one-based both",
            "--label-ids": "--label-ids both",
            "--reference": "--reference {reference}",
            "--name": ("--format json", "--name mine"),
        },
    ),
    "score-answers": (
        "--results {answers}/one/{{corruption}}-{{severity}}.csv --clean-results {answers}/one/clean.csv",
        {
            "--format": "--format csv",
            "--results": "--results {answers}/two/{{corruption}}-{{severity}}.csv",
            "--clean-results": "--clean-results {answers}/two/clean.csv",
            "--questions": "--questions {answers}/questions.csv",
            "--score": "--score other",
            "--key": "--key number",
            "--picture": "--picture picture",
            "--category": "--category kind",
            "--partial": ("--questions {answers}/more.csv", "--partial"),
            "--name": "--name mine",
            "--fail-if": "--fail-if accuracy>1",
            "--output": "--output s.html",
        },
    ),
}
# Why a flag, of all commands or of one, has no effect that this test could see.
EXCEPTIONS = {
    "--help-all": "shows the help",
    "--jobs": "processes change no byte, and nothing that is printed",
    "--batch-size": "batches change no prediction; test_predicting.py",
    "--device": "needs a GPU; test_models.py",
    "--mixed-precision": "needs PyTorch; test_models.py",
    "--threads": "threads change no prediction",
    "--trust-model": "needs a .pt2; test_models.py",
    "evaluate --annotations": "selects detectors; detection/test_detecting.py",
    "calibrate --for-size": "searches for constants; test_matching.py",
    "calibrate --output": "needs --for-size; test_matching.py",
    "compare --margin": "needs more images; test_compare.py",
    "fetch --wheel": "downloads, or reads a wheel; test_install.py",
    "--predicted-set": "checks keys; test_scoring.py; shows images that fail; test_score_page.py",
    "score --verbose": "changes tables of terminals; test_scoring.py",
    "score-segmentation --palette": "needs maps in colours; test_segmentation.py",
    "score-answers --rule": "needs answers without scores; test_answers.py",
}


def put_scores(root):
    """Predictions of two models, of a few variants of digits, and of perturbations."""
    put_c(root / "scored/one", dict.fromkeys(IMAGENET_C.common, 0.6), keys=KEYS[:20])
    rising = {name: [0.5, 0.6, 0.7, 0.8, 0.9] for name in IMAGENET_C.common}
    put_c(root / "scored/two", rising, keys=KEYS[:20])
    put_p(root / "flips", (*COMMON_PERTURBATIONS, "gaussian_noise_2", "shot_noise_2"), classes=20)
    (root / "facts.json").write_text('{"one": {"architecture": "net"}}')
    put_boxes(root / "boxes", masks=True, names=("fog",), levels=(1,), images=6)
    truth = json.loads((root / "boxes/truth.json").read_text())
    (root / "boxes/fewer.json").write_text(json.dumps(truth | {"annotations": truth["annotations"][::2]}))
    (root / "boxes/again/fog").mkdir(parents=True)
    shutil.copy(root / "boxes/clean.json", root / "boxes/again/fog/1.json")
    put_maps(root / "maps", names=("fog",), levels=(1,))
    shutil.copytree(root / "maps/gt", root / "maps/other")
    for path in (root / "maps/other").rglob("*.png"):
        labels = np.asarray(Image.open(path))
        Image.fromarray(np.where(labels == 255, labels, labels // 2)).save(path)
    shutil.copytree(root / "maps/clean", root / "maps/again/fog/1")
    put_answers(root / "answers", answer, models=("one", "two"))
    more = [{"question": q, "number": q, "image": f"{q // 3}.jpg"} for q in range(61)]
    put_table(root / "answers/questions.csv", [row | {"image": "a.jpg"} for row in more[:60]])
    put_table(root / "answers/more.csv", more)


def answer(model, variant):
    rows = plain(model, variant, seed=model == "two")
    return [
        row | {"number": q if variant == "clean" else 59 - q, "other": 1 - row["score"], "picture": q % 7}
        for q, row in enumerate(rows)
    ]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Small sources and sets, and other files that flags name."""
    root = tmp_path_factory.mktemp("places")
    for number, name in enumerate(("photos/cat/a.JPEG", "photos/dog/b.png", "others/cat/a.JPEG")):
        put_photo(root / name, seed=number)
    put_photo(root / "others/dog/b.png", seed=3)
    for number, name in enumerate(("train", "val")):
        put_photo(root / "split" / name / "cat/a.png", seed=number)
    put_photo(root / "flat/a.png")
    put_photo(root / "flat/b.png", seed=1)
    (root / "labels.csv").write_text("file,label,shade\na.png,05,x\nb.png,07,y\n")
    (root / "deep/cat").mkdir(parents=True)
    Image.fromarray(photo(36, 40)[..., 0].astype(np.uint16) * 100).save(root / "deep/cat/a.png")
    shutil.copytree(root / "photos", root / "damaged")
    (root / "damaged/cat/a.JPEG").write_bytes(b"no picture")
    for number in range(4):
        put_photo(root / f"clips/run/a/{number}.png", 64, 64, seed=number)
    (root / "config.yaml").write_text("edition: imagenet\n")
    (root / "sizes.yaml").write_text("constants_for: 64\n")
    (root / "cleaning.yaml").write_text("quality: 30\n")
    (root / "fields.yaml").write_text("url: https://example.org\n")
    put_folder(root / "digits", 22)
    put_folder(root / "fewer", 6)
    for path in put_folder(root / "wide", 22).rglob("*.png"):
        Image.open(path).resize((40, 40)).save(path)
    for number, name in enumerate("ab"):
        put_photo(root / "large" / name / f"{name}.png", 224, 224, seed=number)
    (root / "animals.txt").write_text("".join(f"{name}\n" for name in ("cat", "dog", *"abcdefgh")))
    names = sorted(path.name for path in (root / "digits").iterdir())
    names += [f"digit {digit}" for digit in range(10) if f"digit {digit}" not in names]
    (root / "classes.txt").write_text("".join(f"{name}\n" for name in names))
    (root / "turned.txt").write_text("".join(f"{name}\n" for name in names[::-1]))
    put_model(root / "model.onnx")
    (root / "frame_judge.py").write_text(
        "def build():\n    return lambda clips: clips.mean(axis=(1, 2, 3))\n"
    )
    (root / "acts.txt").write_text("run\nwalk\njump\n")
    shutil.copy(root / "model.onnx", root / "twin.onnx")
    small = ("--format", "png", "--jobs", "1", "--severities", "1,2", "--corruptions")
    cli("make-c", "--source", root / "photos", "--output", root / "set", *small, "gaussian_noise,contrast")
    cli("make-c", "--source", root / "photos", "--output", root / "part", *small, "contrast")
    cli("make-c", "--source", root / "photos", "--output", root / "bare", *small, "contrast", "--no-clean")
    seeded = ("--output", root / "other", *small, "gaussian_noise,contrast", "--seed", "1")
    cli("make-c", "--source", root / "photos", *seeded)
    cli("make-c", "--source", root / "digits", "--output", root / "predicted", *small, "gaussian_noise")
    cli("make-c", "--source", root / "fewer", "--output", root / "few", *small, "gaussian_noise")
    cli("make-c", "--source", root / "wide", "--output", root / "large_set", *small, "gaussian_noise")
    clips = ("--dataset", "clips", "--source", root / "clips", "--corruptions", "fog", "--severities", "1")
    cli("make-c", *clips, "--output", root / "clip_set", "--format", "png", "--jobs", "1")
    few = ("--perturbations", "translate,rotate", "--limit", "1", "--format", "png", "--jobs", "1")
    for number, name in enumerate(("sequences", "others_sequences")):
        cli("make-p", "--source", root / "photos", "--output", root / name, *few, "--seed", number)
    model = ("--model", root / "model.onnx", "--preprocessing", "mean=0", "--preprocessing", "std=1")
    cli("predict", root / "predicted", "--output", root / "preds", *model)
    put_scores(root)
    (root / "reference.json").write_text(cli(*score_segmentation(root / "maps")).stdout)
    found = {path.stem: str(path) for path in root.iterdir()}
    return found | {"some": str(root / "preds/model"), "cifar": str(cifar_folder(root, 2)[0])}


def score_segmentation(root):
    pattern = root / "preds" / "{corruption}" / "{severity}"
    where = ("--truth", root / "gt", "--results", pattern, "--clean-results", root / "clean")
    return ("score-segmentation", *where, "--partial", "--format", "json", "--jobs", "1")


def observe(words, folder, before):
    """Exit status, what is printed but times, and the files that a call leaves in an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    os.chdir(folder)
    for each in before:
        call(each)
    result = call(words)
    printed = re.sub(r"[\d.]+ (s|min|h|images|sequences|clips)/?\b|[\d.]+ (k|M|G)?B\b", "", result.output)
    files = {name: data for name, data in tree(folder).items() if not name.endswith("predictions.json")}
    return result.exit_code, printed, files


def call(words):
    result = CliRunner().invoke(main, words)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise AssertionError(f"traceback from {words}") from result.exception
    return result


def list_flags(name):
    return {max(each.opts, key=len) for each in COMMANDS[name].params if isinstance(each, click.Option)}


def list_words(text, places):
    """Return the words of a call with the `places`; the last value of a flag counts."""
    words = text.format(**places).split()
    first = next((number for number, word in enumerate(words) if word.startswith("--")), len(words))
    return [*words[:first], *latest(*words[first:])]


def check_effect(name, effects, places, folder, flag):
    """Call a command without and with a flag, and compare."""
    usual, rows = effects[name]
    row = rows[flag]
    others, words = row if isinstance(row, tuple) else ("", row)
    *before, others = others.split(";")
    *first, shortest = usual.split(";")
    base = others[1:] if others[:1] == "!" else f"{shortest} {others}"
    first = [each.replace("{own}", MADE if "plan.json" in usual else shortest) for each in before or first]
    calls = [list_words(each, places) for each in first]
    without = observe([*name.split(), *list_words(base, places)], folder, calls)
    held = observe([*name.split(), *list_words(f"{base} {words}", places)], folder, calls)
    assert held[0] in (0, 1), held[1][-300:]
    if without == held:
        raise AssertionError(f"{words} changes nothing")


def find_faults(name, effects, places, folder):
    """What is wrong with the flags of a command."""
    faults = []
    for flag in effects[name][1]:
        if flag == "--libjpeg" and not find_spec("jpeglib"):
            continue
        try:
            check_effect(name, effects, places, folder, flag)
        except AssertionError as error:
            faults.append(f"{flag}: {error}")
    return faults


def test_each_flag_is_tried_or_stands_among_the_exceptions():
    own = {name for name, command in COMMANDS.items() if ".related." not in command.callback.__module__}
    assert own == EFFECTS.keys()
    for name in EFFECTS:
        excepted = {flag.rpartition(" ")[2] for flag in EXCEPTIONS if flag.startswith(("--", f"{name} "))}
        assert list_flags(name) <= EFFECTS[name][1].keys() | excepted, name
        assert EFFECTS[name][1].keys() <= list_flags(name), name


@pytest.mark.slow("calls each command with and without each flag")
@pytest.mark.parametrize("name", EFFECTS)
def test_each_flag_has_an_effect(name, places, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(Path(places["model"]).parent)
    assert find_faults(name, EFFECTS, places, tmp_path / "work") == []
