"""The same bytes whatever the processor can do: a battery of outputs with features switched off.

Libraries choose their loops when they are loaded, so each set of features takes a process of its own.
"""

import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow("compiles all loops again for another processor")

BATTERY = Path(__file__).parents[3] / "scripts" / "processor_battery.py"
_AVX512 = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4"
NUMPY = {"NPY_DISABLE_CPU_FEATURES": f"AVX2 FMA3 X86_V3 {_AVX512}"}
OPENCV = {
    "OPENCV_CPU_DISABLE": "AVX2,FMA3,AVX512_SKX,AVX512_COMMON,AVX512_CNL,AVX512_CLX,AVX512_ICL",
    "OPENCV_IPP": "disabled",
}
GLIBC = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F"}
OPENBLAS = {"OPENBLAS_CORETYPE": "Prescott"}
NUMBA = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
FEATURES = {
    "NumPy without AVX-512": {"NPY_DISABLE_CPU_FEATURES": _AVX512},
    "all but our loops": NUMPY | OPENCV | GLIBC | OPENBLAS,
    "our loops for any processor": NUMBA,
}


def run(code_or_script, features):
    environment = os.environ | features
    done = subprocess.run([sys.executable, *code_or_script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@lru_cache(maxsize=1)
def as_it_is():
    return run([str(BATTERY), "--quick"], {})


@pytest.mark.parametrize("features", FEATURES)
def test_no_output_depends_on_the_processor(features):
    want, got = as_it_is(), run([str(BATTERY), "--quick"], FEATURES[features])
    assert len(want) == len(set(want)) > 1500
    assert [line for line in want if line not in set(got)] == []


def test_the_switches_are_heard():
    # Else nothing would be shown above.
    script = (
        "from numpy._core._multiarray_umath import __cpu_features__ as features; "
        "print(*(name for name, there in features.items() if there), sep='\\n')"
    )
    before, after = set(run(["-c", script], {})), set(run(["-c", script], NUMPY))
    assert before - after if before & {"AVX2", "X86_V3"} else before == after
