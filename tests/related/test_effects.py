"""Every flag of the commands of this wing does something; see tests/cli/test_effects.py."""

import numpy as np
import pytest

from tests import emoji
from tests.cli.test_effects import (
    EXCEPTIONS,
    MODEL,
    OUTPUTS,
    RUNNING,
    SELECTION,
    SOURCE,
    find_faults,
    list_flags,
)
from tests.cli.test_effects import places as places
from tests.cli.test_help import COMMANDS
from tests.related.filtration import test_filtering
from tests.related.filtration.test_filtering import candidates as candidates
from tests.related.filtration.test_filtering import strangers as strangers
from tests.related.streams.test_ccc_commands import accuracies
from tests.related.streams.test_scoring import put_predictions, put_stream
from tests.related.subtypes.test_splitting import DOVE, JAY, ROBIN, SONGBIRD, line, put_wordnet

RUN = {
    flag: RUNNING[flag] for flag in ("--dry-run", "--write-plan", "--quiet", "--log-json", "--on", "--shard")
}
_STREAMED = "--source {digits} --corruptions fog,contrast,jpeg_compression --setting mixed --output s.jsonl"
_MEASURED = (
    f"--source {{digits}} --target 0 --severities 0,5 --limit 2 --output a.json --jobs 1 --input-size 32 "
    f"{MODEL}"
)
_CCC = "--source {photos} --accuracy-table {table} --target 0 --speed 2 --length 6 --output shards --jobs 1"
_COLOURS = "--model {colours} --classes {rgb} --preprocessing mean=0 --preprocessing std=1 --output found"
_ICONS = "--style google={google} --style fluent={fluent} --output out --jobs 1"
_COPIES = "--source {photos} --copies 1 --output out --jobs 1"


def spell(values):
    """Flags, and what each is tried with, by the keys of choices."""
    flags = {f"--{key.replace('_', '-')}": value for key, value in values.items()}
    return {flag: f"{flag} {value}" for flag, value in flags.items()}


def clean(name, **values):
    """The call of a way of cleaning, and its flags."""
    rows = {
        "--config": "--config {cleaning}",
        "--set": "--set quality=30",
        "--limit": "--limit 1",
        "--quality": "--quality 30",
        "--allow-failures": ("! {damaged} out --jobs 1", "--allow-failures"),
        "--overwrite": (f"preprocess {name} {{own}} --quality 30 ;", "--overwrite"),
    }
    return "{photos} out --jobs 1", RUN | spell(values) | rows


def streamed(setting, words):
    return f"--setting {setting}", words


def filtered(name, images, **values):
    """The call of a filter, and its flags."""
    rows = {
        "--limit": "--limit 2",
        "--only": "--only {only}",
        "--classes": "--classes {bgr}",
        "--model": "--model {calm}",
        "--input-size": ("--model {any_size}", "--input-size 16"),
        "--clean-input": "--clean-input clahe",
        "--preprocessing": "--preprocessing std=2",
        "--resize": "--resize 40",
        "--output": "--output other",
        "--overwrite": (f"filter {name} {{own}} --preprocessing std=2 ;", "--overwrite"),
    }
    return f"{{{images}}} {_COLOURS}", rows | spell(values)


EFFECTS = {
    "stream": (
        _STREAMED,
        {flag: row for flag, row in SOURCE.items() if flag != "--levels"}
        | SELECTION
        | {
            "--corruptions": "--corruptions shot_noise",
            "--severities": "--severities 2",
            "--subset": "--subset *013.png",
            "--setting": "--setting continual",
            "--shuffle": streamed("continual", "--shuffle"),
            "--abrupt": streamed("gradual", "--abrupt"),
            "--repeat": "--repeat 2",
            "--law": streamed("correlated --slots 2", "--law note"),
            "--concentration": streamed("correlated", "--concentration 9"),
            "--slots": streamed("correlated", "--slots 2"),
            "--output": "--output other.jsonl",
        },
    ),
    "stream score": (
        "{scored_stream}/stream.jsonl {scored_stream}/one.npy",
        {
            "--format": "--format csv",
            "--output": "--output s.html",
        },
    ),
    "stream measure": (
        _MEASURED,
        SELECTION
        | {flag: OUTPUTS[flag] for flag in ("--clean-input", "--classes", "--preprocessing")}
        | {
            "--config": "--config {seeded}",
            "--set": "--set seed=1",
            "--input-size": (f"! {_MEASURED}".replace("--input-size 32 ", ""), "--input-size 32"),
            "--source": ("--classes {classes}", "--source {fewer}"),
            "--subset": "--subset *013.png",
            "--sample": (f"! {_MEASURED}".replace("--limit 2", ""), "--sample 10"),
            "--severities": "--severities 0,2,5",
            "--target": "--target 101",
            "--output": "--output b.json",
            "--overwrite": ("stream measure {own} --seed 1 ;", "--overwrite"),
        },
    ),
    "stream ccc": (
        _CCC,
        {flag: row for flag, row in SOURCE.items() if flag != "--edition"}
        | SELECTION
        | {
            "--config": "--config {seeded}",
            "--set": "--set seed=1",
            "--source": "--source {fewer}",
            "--levels": ("--source {deep} --levels 0,65535", "--levels 0,30000"),
            "--accuracy-table": ("--target 40", "--accuracy-table {other_table}"),
            "--target": "--target 40",
            "--speed": "--speed 1",
            "--length": "--length 3",
            "--output": "--output other",
            "--overwrite": ("stream ccc {own} --seed 1 ;", "--overwrite"),
        },
    ),
    "filter a": filtered("a", "candidates", max_confidence=0.9, per_confusion=1),
    "filter o": filtered("o", "strangers", min_confidence=0.5),
    "make-icons": (
        _ICONS,
        RUNNING
        | {
            "--style": "--style more={more_icons}",
            "--licence": "--licence google=CC0",
            "--size": "--size 32",
            "--per-class": "--per-class 1",
            "--set": "--set size=32",
            "--allow-failures": ("--style damaged={damaged_icons}", "--allow-failures"),
            "--overwrite": ("make-icons {own} --size 32 ;", "--overwrite"),
        },
    ),
    "make-subtypes": (
        "{nouns} --wordnet {wordnet}",
        {"--wordnet": "--wordnet {other_wordnet}", "--output": "--output other"},
    ),
    "make-augmix": (
        _COPIES,
        SOURCE
        | SELECTION
        | RUNNING
        | {
            "--edition": "--edition cifar-10",
            "--dataset": ("! --copies 1 --limit 1 --output out --jobs 1", "--dataset demo"),
            "--quality": "--quality 30",
            "--copies": "--copies 2",
            "--severity": "--severity 9",
            "--width": "--width 1",
            "--depth": "--depth 3",
            "--alpha": "--alpha 9",
            "--operations": "--operations all",
            "--overwrite": ("make-augmix {own} --seed 1 ;", "--overwrite"),
        },
    ),
    "preprocess clahe": clean("clahe", clip_limit=9, tiles=2),
    "preprocess denoise": clean("denoise", patch=3, distance=2, strength=5),
    "preprocess median": clean("median", window=7),
}


@pytest.fixture(scope="module")
def more_places(places, candidates, strangers, tmp_path_factory):
    """Small inputs of this wing's commands, beside those of the others."""
    root = tmp_path_factory.mktemp("more")
    (root / "scored_stream").mkdir()
    put_predictions(
        root / "scored_stream", put_stream(root / "scored_stream"), "one.npy", lambda row: row["visit"] == 1
    )
    table = accuracies(0) | accuracies(40)
    np.savez(root / "table.npz", **table)
    np.savez(root / "other_table.npz", **{name: values.T for name, values in table.items()})
    test_filtering.put_model(root / "colours.onnx")
    test_filtering.put_model(root / "calm.onnx", scale=2.0)
    test_filtering.put_model(root / "any_size.onnx", side="side")
    (root / "rgb.txt").write_text("red\ngreen\nblue\n")
    (root / "bgr.txt").write_text("blue\ngreen\nred\n")
    (root / "only.txt").write_text("green\nblue\n")
    (root / "seeded.yaml").write_text("seed: 1\n")
    emoji.datasource(root / "google", "google", emoji.NAMES, 10)
    emoji.fluent(root / "fluent", emoji.NAMES[:-1], 20)
    emoji.fluent(root / "more_icons", emoji.NAMES[:-1], 40)
    emoji.fluent(root / "damaged_icons", emoji.NAMES[:-1], 30)
    next((root / "damaged_icons/assets").iterdir()).write_bytes(b"no picture")
    put_wordnet(root / "wordnet")
    put_wordnet(root / "other_wordnet", {SONGBIRD: line(SONGBIRD, "songbird", below=[ROBIN, JAY])})
    for noun in (DOVE, SONGBIRD):
        emoji.put(root / "nouns" / noun / "a.png", emoji.picture(0))
    own = {path.stem: str(path) for path in root.iterdir()}
    return places | own | {"candidates": str(candidates), "strangers": str(strangers)}


def test_each_command_of_this_wing_is_tried():
    own = {name for name, command in COMMANDS.items() if ".related." in command.callback.__module__}
    assert own <= EFFECTS.keys() | {"filter", "preprocess"}


# Sources and models are opened as by evaluate, whose flags are tried.
AS_EVALUATE = {"--dataset", "--edition", "--labels", "--labels-are-classes", "--levels", "--split", "--with"}


@pytest.mark.parametrize("name", EFFECTS)
def test_each_flag_is_tried_or_stands_among_the_exceptions(name):
    excepted = {flag for flag in EXCEPTIONS if flag.startswith("--")}
    excepted |= AS_EVALUATE | {"--model"} if name == "stream measure" else set()
    assert list_flags(name) <= EFFECTS[name][1].keys() | excepted
    assert EFFECTS[name][1].keys() <= list_flags(name)


@pytest.mark.slow("calls each command with and without each flag")
@pytest.mark.parametrize("name", EFFECTS)
def test_each_flag_has_an_effect(name, more_places, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_faults(name, EFFECTS, more_places, tmp_path / "work") == []
