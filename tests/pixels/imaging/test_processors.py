"""The same bytes whatever the processor can do: a battery of outputs with features switched off.

Libraries choose their loops when they are loaded, so each set of features takes a process of its own.
"""

import os
import platform
import shutil
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


# A photograph that becomes brighter: by default, x264 encodes it otherwise on processors of AMD.
ENCODE = """
import hashlib
import numpy as np
from skimage.data import retina
from robustgen.pixels.imaging import codecs, video
from robustgen.pixels.imaging.frames import Clip
from PIL import Image

picture = np.asarray(Image.fromarray(retina()).resize((224, 224))).astype(int)
frames = np.stack([np.clip(picture + 2 * t, 0, 255).astype(np.uint8) for t in range(31)])
small = frames[:12, 64:160, 64:160]
made = [video.encode(frames, video.Encoding("medium"))]
made += [video.encode(small, video.Encoding(each)) for each in ("superfast", "fast", "slow", "veryslow")]
made += [video.encode(small, video.Encoding(crf=None, tune="grain"))]
for codec in ("libx264", "libx265"):
    made += [codecs.compress(Clip(small), codec, 28).data, codecs.squeeze(Clip(small), codec, 4).data]
for each in made:
    print(hashlib.sha256(each).hexdigest(), video.frames_digest(video.read_frames(each)))
"""
EMULATOR = shutil.which("qemu-x86_64-static")


@pytest.mark.skipif(platform.machine() != "x86_64" or not EMULATOR, reason="needs qemu-x86_64-static")
def test_videos_are_those_of_an_amd():
    emulated = [EMULATOR, "-cpu", "EPYC", sys.executable, "-c", ENCODE]
    done = subprocess.run(emulated, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == run(["-c", ENCODE], {})


def test_the_switches_are_heard():
    # Else nothing would be shown above.
    script = (
        "from numpy._core._multiarray_umath import __cpu_features__ as features; "
        "print(*(name for name, there in features.items() if there), sep='\\n')"
    )
    before, after = set(run(["-c", script], {})), set(run(["-c", script], NUMPY))
    assert before - after if before & {"AVX2", "X86_V3"} else before == after
