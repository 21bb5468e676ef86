"""Bars of progress: on terminals and in notebooks, but not in the log of a batch job."""

import subprocess
import sys
import threading
import time
from types import ModuleType

import pytest

from robustgen.display.progress import Meter, print_note, quiet
from tests.helpers import put_photo


def show(capsys):
    with Meter(3, "images") as meter:
        meter.update(3)
    return capsys.readouterr().err


def test_a_notebook_shows_bars_and_a_pipe_does_not(monkeypatch, capsys):
    assert show(capsys) == ""
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    assert "3/3" in show(capsys)
    with quiet():
        assert show(capsys) == ""


def test_one_thread_does_not_make_another_quiet(capsys):
    began, over = threading.Event(), threading.Event()

    def be_quiet():
        with quiet():
            began.set()
            over.wait(600)
            print_note("hidden")

    thread = threading.Thread(target=be_quiet)
    thread.start()
    began.wait(600)
    with quiet(False):
        print_note("shown")
        over.set()
        thread.join()
    print_note("shown later")
    assert capsys.readouterr().err.splitlines() == ["shown", "shown later"]


def test_no_rate_includes_the_time_of_a_pause(capsys, monkeypatch):
    """A clock that a hand moves: a hundred seconds for the first image, then one for each."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with Meter(100, "images") as meter:
        now[0] = 100
        meter.pause("compiling")
        meter.show(1)
        meter.pause("")
        for done in (5, 61, 71):
            now[0] = 99 + done
            meter.show(done)
    assert capsys.readouterr().err.splitlines() == [
        "0 of 100 images, compiling",
        "61 of 100 images, 1.00/s, 39 s left",
    ]


WITHOUT_STREAMS = """
import sys, robustgen
sys.stderr.close()
given = dict(source="in", corruptions=["contrast"], severities=[1])
for stream in (sys.stderr, None):
    sys.stderr = stream
    for quiet in (True, False):
        robustgen.make_c(output=f"{stream is None}-{quiet}", quiet=quiet, jobs=int(sys.argv[1]), **given)
"""


@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.slow("starts workers"))])
def test_standard_error_may_be_missing_or_closed(tmp_path, jobs):
    put_photo(tmp_path / "in" / "a" / "x.png")
    subprocess.run([sys.executable, "-c", WITHOUT_STREAMS, jobs], cwd=tmp_path, check=True)
    assert len([*tmp_path.glob("*/contrast/1/a")]) == 4
