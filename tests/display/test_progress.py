"""Bars of progress: on terminals and in notebooks, but not in the log of a batch job."""

import sys
from types import ModuleType

from robustgen.display.progress import Meter, quiet


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
