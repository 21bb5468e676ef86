"""Loops are compiled once for all processes and checkouts with the same sources."""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import robustgen
from robustgen.pixels.imaging import kernels

COUNT = """
import numpy
from numba.core import event
import robustgen
with event.install_recorder("numba:compile") as recorder:
    robustgen.corrupt(numpy.full((32, 32, 3), 9, "uint8"), "brightness", 1)
print(sum(each.is_start for _, each in recorder.buffer))
"""


@pytest.mark.slow("compiles loops three times")
def test_processes_wait_for_each_other_and_checkouts_share(tmp_path):
    checkout = Path(shutil.copytree(Path(robustgen.__file__).parent, tmp_path / "checkout" / "robustgen"))
    folder = tmp_path / "loops"

    def compile_in(*paths):
        """The number of loops that processes compile, which start at the same time."""
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", COUNT],
                env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
                cwd=path,
                stdout=subprocess.PIPE,
            )
            for path in paths
        ]
        return sum(int(process.communicate()[0]) for process in processes)

    once = compile_in(checkout.parent, checkout.parent, Path(robustgen.__file__).parents[1])
    assert once
    assert compile_in(checkout.parent) == 0
    with (checkout / "pixels" / "imaging" / "kernels" / "blur.py").open("a") as source:
        source.write("# changed\n")
    assert compile_in(checkout.parent) == once
    assert len(list(folder.iterdir())) == 2


@pytest.mark.slow("compiles loops four times")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="loops are shipped for x86-64")
def test_damaged_loops_are_compiled_again_with_a_line(tmp_path):
    package = Path(shutil.copytree(Path(robustgen.__file__).parent, tmp_path / "wheel" / "robustgen"))
    shipped = package / "pixels" / "imaging" / "kernels" / kernels.SHIPPED

    def compile_here(**changes):
        """The number of loops that are compiled, and what is written to standard error."""
        done = subprocess.run(
            [sys.executable, "-c", COUNT],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "loops"), **changes},
            cwd=package.parent,
            capture_output=True,
            text=True,
            check=True,
        )
        return int(done.stdout), done.stderr

    processor = {"NUMBA_CPU_NAME": kernels.SHIPPED_PROCESSOR, "NUMBA_CPU_FEATURES": kernels.SHIPPED_FEATURES}
    assert compile_here(NUMBA_CACHE_DIR=str(shipped), **processor)[0]
    # Without docstrings, the bytecode differs.
    assert compile_here(PYTHONOPTIMIZE="2") == (0, "")
    for folder, damages in (
        (shipped, (lambda content: content[:5000],)),
        (tmp_path / "loops", (lambda _: b"", lambda content: content[:9000] + b"?" + content[9001:])),
    ):
        (path,) = folder.rglob("*raise_value*.nbc")
        for damage in damages:
            path.write_bytes(damage(path.read_bytes()))
            count, said = compile_here()
            assert count and said.count("\n") == 1 and str(path) in said
            assert compile_here() == (0, "")


def test_the_line_about_other_loops_says_how_to_use_those_of_the_wheel(tmp_path, monkeypatch, capfd):
    (tmp_path / "shipped" / "loops").mkdir(parents=True)
    (tmp_path / "shipped" / "loops" / kernels.CONSTRAINTS).write_text("numba==0.1\nllvmlite==0.2\n")
    monkeypatch.setattr(kernels, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setattr(kernels, "loop_folder", lambda: tmp_path)
    kernels.tell_of_other_loops.__wrapped__()
    kernels.tell_of_other_loops.__wrapped__()
    (line,) = capfd.readouterr().err.splitlines()
    assert line.endswith("pip install numba==0.1 llvmlite==0.2")


def test_threads_name_a_temporary_folder_of_loops_once(tmp_path, monkeypatch, capfd):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(kernels.VARIABLE, str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("TMPDIR", raising=False)
    kernels.loop_folder.cache_clear()
    try:
        with ThreadPoolExecutor(8) as pool:
            (folder,) = {*pool.map(lambda _: kernels.loop_folder(), range(8))}
    finally:
        kernels.loop_folder.cache_clear()
    (line,) = capfd.readouterr().err.splitlines()
    assert folder.is_dir() and str(folder.parent) in line and kernels.VARIABLE in line
