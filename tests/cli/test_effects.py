"""Every flag of every command does something: it changes files, or what is printed.

A flag without a row in `EFFECTS` or a reason in `EXCEPTIONS` fails. The choices of a run, which dataset.json
records, do not count.
"""

import os
import re
import shutil
from importlib.util import find_spec

import click
import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from robustgen.cli import main
from tests.cli.test_help import COMMANDS
from tests.helpers import cifar_folder, latest, photo, put_photo, tree

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
# Command to its shortest call, and to what each flag is tried with: the words, or others for both calls, and
# the words; beginning with ! the others replace the shortest call. Before ; stands a command to run first.
EFFECTS = {
    "make-c": (
        "--source {photos} --corruptions gaussian_noise --severities 1 --format png --output out --jobs 1",
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
}
# Why a flag, of all commands or of one, has no effect that this test could see.
EXCEPTIONS = {
    "--help-all": "shows the help",
    "--jobs": "processes change no byte, and nothing that is printed",
}


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Small sources, and other files that flags name."""
    root = tmp_path_factory.mktemp("places")
    for number, name in enumerate(("photos/cat/a.JPEG", "photos/dog/b.png", "others/cat/a.JPEG")):
        put_photo(root / name, seed=number)
    put_photo(root / "others/dog/b.png", seed=3)
    for number, split in enumerate(("train", "val")):
        put_photo(root / "split" / split / "cat/a.png", seed=number)
    put_photo(root / "flat/a.png")
    put_photo(root / "flat/b.png", seed=1)
    (root / "labels.csv").write_text("file,label\na.png,05\nb.png,07\n")
    (root / "deep/cat").mkdir(parents=True)
    Image.fromarray(photo(36, 40)[..., 0].astype(np.uint16) * 100).save(root / "deep/cat/a.png")
    shutil.copytree(root / "photos", root / "damaged")
    (root / "damaged/cat/a.JPEG").write_bytes(b"no picture")
    for number in range(4):
        put_photo(root / f"clips/run/a/{number}.png", 64, 64, seed=number)
    (root / "config.yaml").write_text("edition: imagenet\n")
    folders = ("photos", "others", "split", "flat", "deep", "damaged", "clips")
    own = {each: str(root / each) for each in folders}
    files = {"labels": str(root / "labels.csv"), "config": str(root / "config.yaml")}
    return own | files | {"cifar": str(cifar_folder(root, 2)[0])}


def observe(words, folder, before=()):
    """Exit status, what is printed but times, and the files that a call leaves in an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    os.chdir(folder)
    if before:
        call(before)
    result = call(words)
    printed = re.sub(r"[\d.]+ (s|min|h|images|sequences|clips)/?\b|[\d.]+ (k|M|G)?B\b", "", result.output)
    return result.exit_code, printed, {name: data for name, data in tree(folder).items() if name != "log"}


def call(words):
    result = CliRunner().invoke(main, words)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise AssertionError(f"traceback from {words}") from result.exception
    return result


def list_flags(name):
    return {max(each.opts, key=len) for each in COMMANDS[name].params if isinstance(each, click.Option)}


def split(text, places, own=""):
    return text.replace("{own}", own).format(**places).split()


def check_effect(name, effects, places, folder, flag):
    """Call a command without and with a flag, and compare."""
    shortest, rows = effects[name]
    row = rows[flag]
    others, words = row if isinstance(row, tuple) else ("", row)
    before, _, others = others.rpartition(";")
    base = others[1:] if others[:1] == "!" else f"{shortest} {others}"
    plain = [*name.split(), *latest(*split(base, places))]
    given = [*name.split(), *latest(*split(f"{base} {words}", places))]
    first = split(before, places, shortest)
    without, held = observe(plain, folder, first), observe(given, folder, first)
    assert held[0] in (0, 1), held[1]
    assert without != held, f"{name} {words} changes nothing"


def list_cases(effects):
    return [(name, flag) for name, (_, rows) in effects.items() for flag in rows]


def test_each_flag_is_tried_or_stands_among_the_exceptions():
    for name in EFFECTS:
        excepted = {flag.rpartition(" ")[2] for flag in EXCEPTIONS if flag.startswith(("--", f"{name} "))}
        tried = {*EFFECTS[name][1]}
        assert list_flags(name) <= tried | excepted, name
        assert tried <= list_flags(name), name


@pytest.mark.slow("calls each command once or twice for each flag")
@pytest.mark.parametrize("name", EFFECTS)
def test_each_flag_has_an_effect(name, places, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    faults = list[str]()
    for flag in EFFECTS[name][1]:
        if flag == "--libjpeg" and not find_spec("jpeglib"):
            continue
        try:
            check_effect(name, EFFECTS, places, tmp_path / "work", flag)
        except AssertionError as error:
            faults.append(f"{flag}: {error}")
    assert not faults
