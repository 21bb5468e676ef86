"""Build a wheel with compiled loops for the running Python and numba, and the constraints that they need.

Processors from 2013 on read the loops; others, and other releases, compile their own. The wheel and
`constraints-cpXY.txt` are written into dist/.
"""

import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from robustgen.pixels.imaging.kernels import (
    SHIPPED_FEATURES,
    SHIPPED_PROCESSOR,
    VARIABLE,
    name_loops,
)

ROOT = Path(__file__).parents[1]
# What decides whether the loops can be read; llvmlite comes with numba.
PINNED = ("numba", "llvmlite")


def main() -> None:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        sys.exit("wheels with compiled loops are for Linux on x86-64; for others: pip wheel --no-deps .")
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}{sys.abiflags}"
    cache = ROOT / "build" / "loops"
    shutil.rmtree(cache, ignore_errors=True)
    target = {"NUMBA_CPU_NAME": SHIPPED_PROCESSOR, "NUMBA_CPU_FEATURES": SHIPPED_FEATURES}
    run("robustgen", "warm", **target, **{VARIABLE: str(cache)})
    for name in ("*.lock", "told"):
        for path in (cache / name_loops()).glob(name):
            path.unlink()
    wheel = (
        "pip",
        "--disable-pip-version-check",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        "dist",
        ".",
    )
    run(*wheel, ROBUSTGEN_LOOPS=str(cache / name_loops()), ROBUSTGEN_TAG=f"{tag}-{tag}-manylinux_2_17_x86_64")
    constraints = ROOT / "dist" / f"constraints-{tag}.txt"
    constraints.write_text("".join(f"{name}=={version(name)}\n" for name in PINNED))


def run(*words: str, **environment: str) -> None:
    subprocess.run([sys.executable, "-m", *words], cwd=ROOT, env={**os.environ, **environment}, check=True)


if __name__ == "__main__":
    main()
