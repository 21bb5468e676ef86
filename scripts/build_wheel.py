"""Build a wheel with compiled loops for the running Python and numba, and a file of the constraints it needs.

Usage: build_wheel.py [FOLDER], by default dist. Linux on x86-64-v3 and on aarch64 reads the loops; other
processors, and other releases of Python and numba, compile their own.
"""

import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from robustgen.pixels.imaging.kernels import (
    CONSTRAINTS,
    SHIPPED_FEATURES,
    SHIPPED_PROCESSOR,
    VARIABLE,
    name_loops,
)

ROOT = Path(__file__).parents[1]
# The releases that decide whether the loops can be read.
PINNED = ("numba", "llvmlite")


def main(folder: str = "dist") -> None:
    if sys.platform != "linux" or not SHIPPED_PROCESSOR:
        sys.exit("loops are compiled for Linux on x86-64 and aarch64; elsewhere: pip wheel --no-deps .")
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}{sys.abiflags}"
    with tempfile.TemporaryDirectory() as cache:
        processor = {"NUMBA_CPU_NAME": SHIPPED_PROCESSOR, "NUMBA_CPU_FEATURES": SHIPPED_FEATURES}
        run("robustgen", "warm", **processor, **{VARIABLE: cache})
        loops = Path(cache, name_loops())
        for lock in loops.glob("*.lock"):
            lock.unlink()
        constraints = "".join(f"{name}=={version(name)}\n" for name in PINNED)
        (loops / CONSTRAINTS).write_text(constraints)
        wheel = ("wheel", "--quiet", "--no-deps", "--wheel-dir", str(Path(folder).absolute()), str(ROOT))
        named = {
            "ROBUSTGEN_LOOPS": str(loops),
            "ROBUSTGEN_TAG": f"{tag}-{tag}-manylinux_2_17_{platform.machine()}",
        }
        run("pip", "--disable-pip-version-check", *wheel, **named)
    Path(folder, f"constraints-{tag}.txt").write_text(constraints)


def run(*words: str, **environment: str) -> None:
    subprocess.run([sys.executable, "-m", *words], cwd=ROOT, env={**os.environ, **environment}, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
