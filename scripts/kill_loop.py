#!/usr/bin/env python3
"""Kills a run at random moments until it has finished, and compares its output with an undisturbed run.

    python scripts/kill_loop.py [--images N] [--kills N] [--loops N] [--seed N] [-- make-c FLAGS ...]

The command follows `--`, without source and output, for instance
`make-p --perturbations translate`. The exit status is 1 if a file differs, if
temporary files are left, or if a worker outlives its run.
"""

import argparse
import contextlib
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

DEFAULT = ["make-c", "--corruptions", "all", "--jobs", "2"]


def put_images(folder: Path, count: int) -> Path:
    """Write `count` images of noise and gradients, of different sizes, in three classes."""
    rng = np.random.default_rng(0)
    for i in range(count):
        height, width = rng.integers(40, 120, 2)
        pixels = np.linspace(0, 200, width)[None, :, None] + rng.integers(0, 55, (height, width, 3))
        path = folder / f"class{i % 3}" / f"{i:04d}.JPEG"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.astype(np.uint8)).save(path)
    return folder


def start(command: list[str], source: Path, output: Path) -> subprocess.Popen[bytes]:
    """Start the command in a new session, which its workers share."""
    full = [sys.executable, "-m", "robustgen", *command, "--source", str(source), "--output", str(output)]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(full, stdout=quiet, stderr=quiet, start_new_session=True)


def kill_until_done(
    command: list[str], source: Path, output: Path, rng: random.Random, kills: int, seconds: float
) -> list[int]:
    """Start and kill the command `kills` times, then let it finish; return its sessions."""
    sessions = []
    while True:
        process = start(command, source, output)
        sessions.append(process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0, seconds) if len(sessions) <= kills else None)
        process.kill()
        if process.wait() >= 0:
            if process.returncode:
                raise SystemExit(f"a run ended with status {process.returncode}")
            return sessions


def alive(sessions: list[int]) -> list[int]:
    """Return the processes of `sessions` that are still alive (on Linux)."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, session = stat.read_text().rpartition(") ")[2].split()[:4]
            if int(session) in sessions and state != "Z":
                found.append(int(stat.parent.name))
    return found


def content(root: Path) -> dict[str, bytes]:
    """Return the bytes of all files by relative path, without the state of the run."""
    files = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if not name.startswith(".robustgen/")}


def faults(root: Path, undisturbed: Path, sessions: list[int]) -> list[str]:
    """Return the faults of the output at `root`, one line each."""
    got, want = content(root), content(undisturbed)
    found = [f"differs: {name}" for name in sorted(got.keys() | want) if got.get(name) != want.get(name)]
    state = root / ".robustgen"
    found += [f"left behind: {path}" for path in [*state.glob("tmp/**/*"), *state.glob("claims/*")]]
    time.sleep(3)  # orphaned workers check for their parent once a second
    return found + [f"still running: process {pid}" for pid in alive(sessions)]


def arguments() -> argparse.Namespace:
    # argparse would read the flags after the dashes as those of this script.
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--images", type=int, default=60)
    parser.add_argument("--kills", type=int, default=15, help="number of kills in each loop")
    parser.add_argument("--loops", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="seed of the moments")
    parser.add_argument(
        "--seconds", type=float, help="longest life of a run; default 2 seconds and a third of a whole run"
    )
    options = parser.parse_args(sys.argv[1:split])
    options.command = sys.argv[split + 1 :] or DEFAULT
    return options


def main() -> int:
    options = arguments()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        source, undisturbed = put_images(home / "source", options.images), home / "undisturbed"
        began = time.monotonic()
        kill_until_done(options.command, source, undisturbed, rng, 0, 0)
        whole = time.monotonic() - began
        seconds = options.seconds or 2 + whole / 3
        print(
            f"undisturbed: {len(content(undisturbed))} files in {whole:.1f} s; lives of up to {seconds:.1f} s"
        )
        failed = False
        for loop in range(1, options.loops + 1):
            output = home / f"{loop}"
            sessions = kill_until_done(options.command, source, output, rng, options.kills, seconds)
            wrong = faults(output, undisturbed, sessions)
            print(f"loop {loop}: {len(sessions) - 1} kills, {len(wrong)} faults", *wrong, sep="\n  ")
            failed |= bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
