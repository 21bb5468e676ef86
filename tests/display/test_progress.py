"""Bars of progress: on terminals and in notebooks, but not in the log of a batch job."""

import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from types import ModuleType

import pytest

import robustgen
from robustgen.display.progress import Meter, print_note, quiet
from tests.helpers import put_photo


def show(capsys):
    with Meter(3, "images") as meter:
        meter.update(3)
    return capsys.readouterr().err


class Cell(ModuleType):
    """IPython.display as a bar uses it; `outputs` are those of a cell."""

    def __init__(self):
        super().__init__("IPython.display")
        self.outputs = []

    def display(self, data, raw, display_id):
        self.outputs.append(data["text/plain"])
        return self

    def update(self, data, raw):
        self.outputs[-1] = data["text/plain"]


@pytest.fixture
def cell(monkeypatch):
    """The outputs of the cell of a notebook."""
    made = Cell()
    for module in (ModuleType("ipykernel.zmqshell"), ModuleType("IPython"), made):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return made.outputs


def test_a_pipe_shows_no_bar(capsys):
    assert show(capsys) == ""


def test_a_bar_starts_no_process():
    shown = "from multiprocessing import resource_tracker as t; print(t._resource_tracker._pid)"
    code = f"from robustgen.display.progress import Meter; Meter(1, 'images'); {shown}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "None\n"


def test_a_bar_in_a_notebook_is_one_output(cell, capsys):
    assert show(capsys) == ""
    assert len(cell) == 1 and "3/3" in cell[0]
    with quiet(), Meter(3, "images") as hidden:
        hidden.update(3)
    with Meter(0, "images compared"):
        pass
    assert len(cell) == 1


def test_lines_in_a_notebook_are_on_standard_output(cell, capsys):
    print_note("input of m")
    assert capsys.readouterr() == ("input of m\n", "")


def test_scores_in_a_notebook_do_not_repeat_what_the_run_has_printed(cell, tmp_path, capsys):
    for name in "ab":
        put_photo(tmp_path / "in" / name / "x.png")

    def guess(pixels):
        return pixels.reshape(len(pixels), -1)[:, :2]

    given = {"source": tmp_path / "in", "corruptions": "contrast", "severities": 1, "jobs": 1}
    shown, hidden = (robustgen.evaluate(guess, **given, quiet=quiet) for quiet in (False, True))
    printed = capsys.readouterr()
    assert printed.err == "" and printed.out.count("input of guess") == 1
    assert "input of guess" not in shown._repr_html_() and "input of guess" in hidden._repr_html_()
    assert "input of guess" in str(shown)


@pytest.mark.slow("starts the kernel of a notebook")
def test_a_kernel_shows_each_line_once_and_nothing_red(tmp_path):
    client, nbformat = (pytest.importorskip(name) for name in ("nbclient", "nbformat"))
    if find_spec("ipykernel") is None:
        pytest.skip("no kernel")
    for name in "ab":
        put_photo(tmp_path / "in" / name / "x.png")
    given = 'source="in", corruptions=["contrast", "fog"], severities=[1], jobs=1'
    cells = [
        f'import robustgen\nrobustgen.make_c({given}, output="out")',
        f"robustgen.evaluate(lambda pixels: pixels.reshape(len(pixels), -1)[:, :2], {given})",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    resources = {"metadata": {"path": str(tmp_path)}}
    client.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    made, evaluated = ([*each.outputs] for each in notebook.cells)
    assert [each.output_type for each in made] == ["display_data", "execute_result"]
    assert "6/6" in made[0].data["text/plain"] and "created" in made[1].data["text/html"]
    # A busy kernel sends the lines of a stream in several parts.
    shown = [each for each in evaluated if each.output_type != "stream"]
    assert [each.output_type for each in shown] == ["display_data", "execute_result"]
    assert {each.name for each in evaluated if each not in shown} == {"stdout"}
    assert "input of" not in shown[1].data["text/html"]


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
