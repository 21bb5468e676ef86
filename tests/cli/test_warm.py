"""`robustgen warm`, and what a fresh process loads before the first image."""

import os
import subprocess
import sys

from robustgen.cli.warm import WarmingJob
from robustgen.errors import MissingDependencyError
from tests.helpers import cli


def test_an_operation_is_applied_and_a_missing_file_is_told(monkeypatch):
    assert WarmingJob("corruption", "contrast").run(None) == (WarmingJob("corruption", "contrast"), "")
    assert WarmingJob("perturbation", "brightness").run(None)[1] == ""

    def fail(*_, **__):
        raise MissingDependencyError("the files of frost are missing")

    monkeypatch.setattr("robustgen.api.corrupt", fail)
    assert WarmingJob("corruption", "frost").run(None)[1] == "the files of frost are missing"


def test_every_operation_is_a_job(monkeypatch):
    done = []
    monkeypatch.setattr(WarmingJob, "run", lambda self, _: (done.append(self.name), (self, "no frost"))[1])
    result = cli("warm", "--jobs", "1")
    assert {"gaussian_noise", "saturate", "tilt", "snow"} <= {*done}
    assert result.stderr == "no frost\n" and result.stdout.startswith(f"{len(done)} operations in ")


def test_loops_load_without_scipy_s_linear_algebra_and_leave_others_their_own():
    code = (
        "import sys, numpy as np, robustgen, gc\n"
        "robustgen.corrupt(np.full((32, 32, 3), 90, 'uint8'), 'gaussian_noise', 3, rng=0)\n"
        "print('scipy.linalg' in sys.modules, gc.isenabled())\n"
        "import numba\n"
        "print(numba.njit(lambda a: np.dot(a, a))(np.eye(2)).sum(), 'scipy.linalg' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert done.stdout == "False True\n2.0 True\n"
