"""The Python functions as guests in a process of somebody else: a script, a thread, a child process."""

import shlex
import subprocess
import sys
import threading

import pytest
from joblib import Parallel, delayed

import robustgen
from tests.helpers import PATIENCE, put_photo

# Without a guard around what they do, as in a notebook.
BEGINNING = """
import atexit, multiprocessing, os, sys, threading, time
import robustgen
from robustgen.errors import RobustgenError

SOURCE, OUTPUT, JOBS = sys.argv[1:]
FEW = dict(source=SOURCE, corruptions="contrast", severities=(1,), quiet=True, jobs=int(JOBS))

def make(output=OUTPUT):
    try:
        print(robustgen.make_c(output=output, **FEW).made)
    except RobustgenError as error:
        print("refused:", error)

def make_late():
    threading.main_thread().join()
    make()
"""
ENDING = "refused: {}Python is ending and starts no threads; call robustgen before the main thread ends"
SCRIPTS = {
    "at the top": ("make()", "48"),
    "in a spawned child": (
        "if __name__ == '__main__':\n"
        "    child = multiprocessing.get_context('spawn').Process(target=make)\n"
        "    child.start()\n"
        "    child.join()",
        "48",
    ),
    "in a daemonic child": (
        "child = multiprocessing.get_context('fork').Process(target=make, daemon=True)\n"
        "child.start()\n"
        "child.join()",
        "48",
    ),
    "in a forked child, after the parent": (
        "make()\n"
        "child = multiprocessing.get_context('fork').Process(target=make, args=(OUTPUT + '2',))\n"
        "child.start()\n"
        "child.join()\n"
        "make(OUTPUT + '3')",
        "48\n48\n48",
    ),
    "in a thread that outlives the main one": (
        "threading.Thread(target=make_late).start()",
        ENDING.format(""),
    ),
    "in such a thread, imported before": (
        "robustgen.make_c\nthreading.Thread(target=make_late).start()",
        ENDING.format(""),
    ),
    "at exit": ("atexit.register(make)", ENDING.format("")),
    "in a deleted folder": (
        "os.mkdir(OUTPUT)\nos.chdir(OUTPUT)\nos.rmdir(OUTPUT)\nmake('relative')",
        "refused: the working folder was deleted; change to another",
    ),
}


@pytest.mark.slow("a process with workers of its own for each script")
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_gets_its_set_or_one_line_and_ends(many, tmp_path, name):
    text, expected = SCRIPTS[name]
    script = tmp_path / "script.py"
    script.write_text(f"{BEGINNING}\n{text}\n")
    done = subprocess.run(
        [sys.executable, script, many, tmp_path / "out", "2"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.stdout.strip(), done.stderr, done.returncode) == (expected, "", 0)


def test_joblib_and_hooks_of_the_caller_stay_as_they_are(many, tmp_path):
    before = threading.excepthook, sys.excepthook
    robustgen.make_c(
        source=many, output=tmp_path, corruptions="contrast", severities=(1,), quiet=True, jobs=2
    )
    assert (threading.excepthook, sys.excepthook) == before
    assert Parallel(2)(delayed(abs)(each) for each in (-1, -2)) == [1, 2]


@pytest.mark.slow("processes with workers of their own")
@pytest.mark.skipif(sys.platform != "linux", reason="sets limits and locales of Linux")
@pytest.mark.parametrize("limit", ["ulimit -n 16", "export LC_ALL=C PYTHONCOERCECLOCALE=0 PYTHONUTF8=0"])
def test_a_shell_with_few_open_files_or_another_locale(tmp_path, limit):
    put_photo(tmp_path / "photos" / "straße" / "日.JPEG")
    few = ("--corruptions", "contrast", "--severities", "1", "--jobs", "2", "--quiet")
    output = tmp_path / "ausgäbe"
    for command in (
        ("make-c", "--source", tmp_path / "photos", "--output", output, *few),
        ("verify", output),
    ):
        text = shlex.join([sys.executable, "-m", "robustgen", *map(str, command)])
        done = subprocess.run(["bash", "-c", f"{limit}; {text}"], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    assert (output / "contrast" / "1" / "straße" / "日.JPEG").is_file()
