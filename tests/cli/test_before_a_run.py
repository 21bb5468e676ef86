"""What a command says before it works: what is lacking, what the disk must hold, that loops are compiled."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from robustgen.cli.app import echo_failures, main
from robustgen.display import progress
from robustgen.pixels.imaging.kernels import call_before_compiling
from robustgen.sets.executors.progress import COMPILING, Progress
from tests.helpers import cli, cli_error, put_photo, wait_until

FEW = ("--corruptions", "contrast", "--severities", "1,2", "--jobs", "1")


def test_a_dry_run_names_what_is_refused(tmp_path):
    source = tmp_path / "photos"
    put_photo(source / "cat" / "a.JPEG")
    for number in range(12):
        (source / f"{number:02d}.JPEG").symlink_to(__file__)
    said = cli("make-c", "--source", source, *FEW, "--output", tmp_path / "out", "--dry-run").stdout
    lines = said.splitlines()
    assert lines[0].endswith("1 image, 1 class, 12 refused")
    assert lines[1].startswith("         '00.JPEG': symlink that leaves the source")
    assert lines[11] == "         and 2 more"


def test_a_dry_run_warns_of_16_bits_as_the_run_does(tmp_path):
    values = np.arange(900, dtype=np.uint16).reshape(30, 30).repeat(2, 0).repeat(2, 1)
    for name in "ab":
        (tmp_path / "deep" / name).mkdir(parents=True)
        Image.fromarray(values).save(tmp_path / "deep" / name / "1.png")
    flags = ("--source", tmp_path / "deep", *FEW, "--output", tmp_path / "out")
    (line,) = (each for each in cli("make-c", *flags, "--dry-run").stdout.splitlines() if "levels" in each)
    assert line.strip() in cli("make-c", *flags).stderr.splitlines()


def test_equal_failures_are_one_line(capsys):
    failures = [
        (f"{number:02d}.png", "is grey" if number % 2 else f"reason {number}") for number in range(30)
    ]
    echo_failures([*failures, *failures])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10 and "  15 images: is grey" in lines and "  '02.png': reason 2" in lines


def test_a_dry_run_names_missing_shards(tmp_path):
    put_photo(tmp_path / "photos" / "cat" / "a.JPEG")
    shards = tmp_path / "shards"
    flags = ("--source", tmp_path / "photos", "--format", "webdataset", "--output", shards, *FEW)
    cli("make-c", *flags)
    pattern = shards / "contrast" / "1" / "{000000..000002}.tar"
    said = cli("make-c", "--source", pattern, *FEW, "--output", tmp_path / "out", "--dry-run").stdout
    assert "2 refused" in said
    assert "'000001.tar': No such file" in said and "'000002.tar': No such file" in said


# --- compiling -----------------------------------------------------------------------------------


def test_the_first_loop_that_is_compiled_is_told_of(monkeypatch):
    numba = pytest.importorskip("numba")
    import robustgen.pixels.imaging.kernels.compiler  # noqa: F401

    told = []
    call_before_compiling(lambda: told.append(1))
    for more in (1, 2):
        assert numba.njit(lambda x, more=more: x + more)(1) == 1 + more
    assert told == [1, 1]


def test_one_line_says_that_workers_compile(capfd):
    with Progress() as watched:
        for _ in range(3):
            watched.reporter.tell_compiling()
        watched.reporter.tell(1)
        wait_until(lambda: watched._done)
    assert capfd.readouterr().err.count(COMPILING) == 1
    with progress.quiet(), Progress() as watched:
        watched.reporter.tell_compiling()
        watched.reporter.tell(1)
        wait_until(lambda: watched._done)
    assert COMPILING not in capfd.readouterr().err


def test_no_worker_is_called_silent_while_it_compiles(monkeypatch, capfd):
    looks, listen = [], Progress._listen
    monkeypatch.setattr("robustgen.sets.executors.progress.SECONDS_OF_SILENCE", 1.0)
    monkeypatch.setattr(Progress, "_listen", lambda self: looks.append(listen(self)))
    with Progress() as watched:
        watched.reporter.tell_compiling()
        wait_until(lambda: len(looks) > 6)
        assert "silent" not in capfd.readouterr().err
        watched.reporter.tell(1)
        wait_until(lambda: "silent since" in capfd.readouterr().err)


# --- what cannot be encoded ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "refused"),
    [
        (("--edition", "imagenet-64", "--set", "constants_for=299"), ""),
        (("--edition", "imagenet-inception", "--set", "constants_for=224"), "299 x 299 pixels"),
        (("--edition", "imagenet-64@63"), "63 x 63 pixels"),
    ],
    ids=str,
)
def test_the_side_of_the_images_decides_whether_they_are_playable(photos, tmp_path, flags, refused):
    config = tmp_path / "playable.yaml"
    config.write_text("video: {playable: true, preset: ultrafast}\n")
    few = ("--perturbations", "tilt", "--limit", 1, "--jobs", 1, "--output", tmp_path / "out")
    command = ("make-p", "--config", config, "--source", photos, *flags, *few)
    if refused:
        assert f"needs even sides, not {refused}" in cli_error(*command)
    else:
        cli(*command)


# --- a terminal shows that a command starts ------------------------------------------------------

STARTED = """
import io, json, sys

class Terminal(io.StringIO):
    def isatty(self):
        return "pipe" not in sys.argv
    def write(self, text):
        if text:
            shown.append([text, "pydantic" in sys.modules or "numpy" in sys.modules])
        return super().write(text)

from robustgen.cli import main
shown, sys.stdout, sys.stderr = [], Terminal(), Terminal()
try:
    main(sys.argv[2:], standalone_mode=False)
except SystemExit:
    pass
sys.__stdout__.write(json.dumps(shown))
"""


def shown_by(kind, *words):
    """What a command writes to a terminal or a pipe, and whether libraries were loaded before that."""
    command = [sys.executable, "-c", STARTED, kind, *words]
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment).stdout)


@pytest.mark.parametrize(
    "words",
    [
        ("list", "editions"),
        ("list", "nothing-of-this-name"),
        ("config", "--dataset", "demo"),
        ("preview", "--source", "nowhere"),
        ("report", "nowhere"),
    ],
    ids=" ".join,
)
def test_a_terminal_shows_at_once_that_a_command_starts(words):
    (first, has_loaded), (second, _), *rest = shown_by("terminal", *words)
    assert first and not has_loaded and second == "\r\x1b[K"
    assert [each for each, _ in rest] == [each for each, _ in shown_by("pipe", *words)]


def test_a_terminal_shows_what_runs_before_the_first_line(photos, tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    out, err = Terminal(), Terminal()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    monkeypatch.setenv("TERM", "xterm")
    places = ("--source", str(photos), "--output", str(tmp_path / "out"))
    with pytest.raises(SystemExit) as ended:
        main(["make-c", *places, "--corruptions", "contrast", "--dry-run"])
    assert ended.value.code == 0
    steps = err.getvalue().split("\r\x1b[K")
    assert steps[0] == "starting ..." and steps[1].endswith(" ...") and steps[2:] == [""]
    assert out.getvalue().startswith("source ")
