#!/usr/bin/env python3
"""Kills runs, resumes them, and compares their outputs with those of undisturbed runs.

    python scripts/kill_loop.py aimed [--formats NAMES] [--s3]
    python scripts/kill_loop.py random [--images N] [--kills N] [--loops N] [--seed N] [-- make-c FLAGS ...]

`aimed` kills a run before each of its writes, for every format and every way that a set comes about: new,
grown, repaired, overwritten, united from outputs of different operations, and merged by `verify`. With --s3,
outputs are on moto's S3. `random` kills a run with workers at random moments until it has finished; the
command follows `--`, without source and output.

After each kill, `verify` must not accept an output that the next run changes. The exit status is 1 if it
does, if a file differs in the end, if temporary files are left, or if a worker outlives its run.
"""

import argparse
import base64
import contextlib
import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1]))

from robustgen.cli import main as robustgen
from robustgen.files.storage import open_store
from tests.crashing import Death, list_unit_ends
from tests.helpers import free_port, until_open, words
from tests.servers import describe_s3

DEFAULT = ["make-c", "--corruptions", "all", "--jobs", "2"]
SMALL = [*words("make-c --edition imagenet@32 --corruptions contrast --severities 1 --jobs 1")]
FORMATS = {
    "jpeg": SMALL,
    "png": [*SMALL, "--format", "png"],
    "mirror": [*SMALL, "--format", "original", "--set", "mirror=copy"],
    "npy": [*SMALL, "--format", "npy"],
    "npz": [*SMALL, "--format", "npz"],
    "webdataset": [*SMALL, "--format", "webdataset", "--set", "shard_size=1"],
    "parquet": [*SMALL, "--format", "parquet", "--set", "shard_size=1"],
    "table": [*SMALL, "--dataset", "table"],
    "mp4": ["make-p", "--perturbations", "translate", "--format", "mp4", "--jobs", "1"],
}
BUCKET = "kills"
Files = dict[str, bytes]


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


def put_table(folder: Path) -> None:
    """Write a table with the images below `folder`."""
    cells = (base64.b64encode(path.read_bytes()).decode() for path in sorted(folder.rglob("*.JPEG")))
    lines = (json.dumps({"image": cell}) + "\n" for cell in cells)
    (folder / "table.jsonl").write_text("".join(lines))


def content(location: str | Path) -> Files:
    """Return the bytes of all files of an output by path, without the state of the run."""
    store = open_store(location)
    paths = [entry.path for entry in store.list()]
    return {path: store.read(path) for path in paths if not path.startswith(".robustgen/")}


# --- aimed kills ---------------------------------------------------------------------------------


def in_child(act: Callable[[], Any]) -> Any:
    """Return the result of `act` in a forked process; None if it was killed."""
    with tempfile.TemporaryFile() as answer:
        if (process := os.fork()) == 0:
            try:
                pickle.dump(act(), answer)
                answer.flush()
            except BaseException as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            finally:
                os._exit(0)
        _, status = os.waitpid(process, 0)
        if os.WIFSIGNALED(status):
            return None
        answer.seek(0)
        return pickle.load(answer)


def call(*arguments: object, after: int | None = None) -> tuple[int, list[str]] | None:
    """Run a command in a process that is killed before write number `after`; return its status and writes."""

    def act() -> tuple[int, list[str]]:
        for number in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        with pytest.MonkeyPatch.context() as patch:
            death = Death(patch, after, lambda: os.kill(os.getpid(), signal.SIGKILL))
            try:
                robustgen([str(argument) for argument in arguments], standalone_mode=True)
                status = 0
            except SystemExit as end:
                status = int(end.code or 0)
            return status, death.writes

    found: tuple[int, list[str]] | None = in_child(act)
    return found


@dataclass(frozen=True)
class Case:
    """A way that a set comes about.

    Attributes
    ----------
    name : str
    prepare : callable
        Writes what there is before the run to a location.
    command : callable
        Returns the command that is killed, for a location.
    remedy : callable
        Returns the command that resumes it.
    """

    name: str
    prepare: Callable[[str], object]
    command: Callable[[str], list[object]]
    remedy: Callable[[str], list[object]]


def list_cases(form: list[str], home: Path) -> Iterator[Case]:
    """Yield all ways that a set of one format comes about."""
    source = put_images(home / "source", 3)
    (source / "notes").mkdir()
    (source / "notes" / "all.json").write_text("{}")
    broken = Path(shutil.copytree(source, home / "broken"))
    damaged = broken / "class1" / "0001.JPEG"
    damaged.write_bytes(bytes(damaged.stat().st_size))

    if "table" in form:
        put_table(source)
        put_table(broken)

    def make(location: str, *flags: object) -> list[object]:
        images = source / "table.jsonl" if "table" in form else source
        return [*form, "--source", images, "--output", location, *flags]

    def put_shards(location: str) -> None:
        for number in (1, 2):
            part = home / f"part{number}"
            shutil.rmtree(part, ignore_errors=True)
            call(*make(str(part), "--shard", f"{number}/2"))
            in_child(partial(upload, part, location))

    def put_others(location: str) -> None:
        """Write an output of two whose lists of operations differ, so that one is in both."""
        for number, names in enumerate(lists):
            part = home / f"part{number}"
            shutil.rmtree(part, ignore_errors=True)
            call(*make(str(part), *names))
            in_child(partial(upload, part, location))

    def fail(location: str) -> None:
        # The images are repaired by a folder of the same name.
        source.rename(home / "kept")
        broken.rename(source)
        try:
            call(*make(location))
        finally:
            source.rename(broken)
            (home / "kept").rename(source)

    if form[0] == "make-c":
        more, flag, others = ["--severities", "1,2"], "--corruptions", ("contrast", "brightness", "pixelate")
    else:
        more, flag = ["--perturbations", "translate,rotate"], "--perturbations"
        others = ("translate", "brightness", "rotate")
    lists = [[flag, f"{others[0]},{other}"] for other in others[1:]]
    union = [flag, ",".join(others)]
    yield Case("new", lambda location: None, make, make)
    yield Case(
        "grown",
        lambda location: call(*make(location, "--limit", 1)),
        lambda location: make(location, *more),
        lambda location: make(location, *more),
    )
    yield Case("repaired", fail, make, make)
    yield Case(
        "overwritten",
        lambda location: call(*make(location, "--seed", 1)),
        lambda location: make(location, "--overwrite"),
        lambda location: make(location, "--overwrite"),
    )
    yield Case(
        "united",
        put_others,
        lambda location: make(location, *union),
        lambda location: make(location, *union),
    )
    yield Case("merged", put_shards, lambda location: ["verify", location], make)


def upload(folder: Path, location: str) -> None:
    """Copy all files of a folder to an output."""
    source, target = open_store(folder), open_store(location)
    for entry in source.list():
        target.copy(source, entry.path, entry.path)


def name_phase(writes: list[str], number: int) -> str:
    """Return the phase of a run in which write `number` falls."""
    units = [index for index, write in enumerate(writes) if write.startswith("put claims/")]
    ends = list_unit_ends(writes)
    if not units:
        return "finishing"
    if number <= units[0]:
        return "withdrawing" if writes[number].startswith("delete") else "before the first unit"
    if number > ends[-1]:
        return "finishing"
    inside = sum(index < number for index in units) > sum(index < number for index in ends)
    return "within a unit" if inside else "between units"


def aim(case: Case, root: str) -> tuple[Counter[str], list[str]]:
    """Kill a run before each of its writes, below `root`; return the kills of each phase, and the faults."""
    location = f"{root}/undisturbed"
    case.prepare(location)
    before = in_child(lambda: content(location))
    ended = call(*case.command(location))
    assert ended and ended[0] == 0, (case.name, ended)
    writes, want = ended[1], in_child(lambda: content(location))
    kills, found = Counter[str](), list[str]()
    for number, write in enumerate(writes):
        output = f"{root}/{number}"
        case.prepare(output)
        if call(*case.command(output), after=number) is not None:
            found.append(f"{case.name}: write {number} ({write}) was never made again")
            continue
        kills[name_phase(writes, number)] += 1
        checked = call("verify", output)
        accepted = in_child(partial(content, output)) if checked and not checked[0] else None
        resumed = call(*case.remedy(output))
        final = in_child(partial(content, output))
        if not resumed or resumed[0] or final != want:
            found.append(f"{case.name}: differs after a kill before write {number} ({write})")
        if Path(output, ".robustgen", "tmp").exists():
            found.append(f"{case.name}: temporary files after a kill before write {number} ({write})")
        # Nothing has been changed before the first write.
        if accepted not in (None, want) and (number or accepted != before):
            found.append(f"{case.name}: verify accepts the output before write {number} ({write})")
    return kills, found


@contextlib.contextmanager
def serve_s3() -> Iterator[None]:
    """Start moto's S3 and name it in the environment."""
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.environ |= describe_s3(f"http://127.0.0.1:{port}")
    try:
        until_open(port)
        in_child(make_bucket)
        yield
    finally:
        server.kill()
        server.wait()


def make_bucket() -> None:
    import s3fs

    s3fs.S3FileSystem().mkdir(BUCKET)


def kill_aimed(formats: list[str], on_s3: bool) -> bool:
    """Kill runs of all `formats` before each of their writes; return whether there were faults."""
    failed = False
    with contextlib.ExitStack() as stack:
        if on_s3:
            stack.enter_context(serve_s3())
        for name in formats:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            root = f"s3://{BUCKET}/{name}" if on_s3 else str(home)
            # Processes that are forked later need not import anything.
            source = put_images(home / "first", 1)
            put_table(source)
            images = source / "table.jsonl" if name == "table" else source
            flags = ["--source", str(images), "--output", str(home / "warm"), "--quiet"]
            with contextlib.suppress(SystemExit):
                robustgen([*FORMATS[name], *flags], standalone_mode=True)
            for case in list_cases(FORMATS[name], home):
                kills, found = aim(case, f"{root}/{case.name}")
                told = ", ".join(f"{count} {phase}" for phase, count in kills.items())
                print(f"{name}, {case.name}: {kills.total()} kills ({told}), {len(found)} faults", flush=True)
                for fault in found:
                    print(f"  {fault}", flush=True)
                failed |= bool(found)
    return failed


# --- random kills --------------------------------------------------------------------------------


def start(command: list[str], source: Path, output: Path) -> subprocess.Popen[bytes]:
    """Start the command in a new session, which its workers share."""
    full = [sys.executable, "-m", "robustgen", *command, "--source", str(source), "--output", str(output)]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(full, stdout=quiet, stderr=quiet, start_new_session=True)


def kill_until_done(
    command: list[str], source: Path, output: Path, rng: random.Random, kills: int, seconds: float
) -> tuple[list[int], list[Files]]:
    """Start and kill the command until it is done; return its sessions, and outputs that verify accepts."""
    sessions, accepted = list[int](), list[Files]()
    while True:
        process = start(command, source, output)
        sessions.append(process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0, seconds) if len(sessions) <= kills else None)
        process.kill()
        if process.wait() >= 0:
            if process.returncode:
                raise SystemExit(f"a run ended with status {process.returncode}")
            return sessions, accepted
        if (checked := call("verify", output)) and checked[0] == 0:
            accepted.append(content(output))


def alive(sessions: list[int]) -> list[int]:
    """Return the processes of `sessions` that are still alive (on Linux)."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, session = stat.read_text().rpartition(") ")[2].split()[:4]
            if int(session) in sessions and state != "Z":
                found.append(int(stat.parent.name))
    return found


def faults(root: Path, want: Files, sessions: list[int]) -> list[str]:
    """Return the faults of the output at `root`, one line each."""
    got = content(root)
    found = [f"differs: {name}" for name in sorted(got.keys() | want) if got.get(name) != want.get(name)]
    state = root / ".robustgen"
    found += [f"left behind: {path}" for path in [*state.glob("tmp/**/*"), *state.glob("claims/*")]]
    time.sleep(3)  # orphaned workers check for their parent once a second
    return found + [f"still running: process {pid}" for pid in alive(sessions)]


def kill_at_random(options: argparse.Namespace, command: list[str]) -> bool:
    """Kill runs at random moments; return whether there were faults."""
    rng, failed = random.Random(options.seed), False
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        source, undisturbed = put_images(home / "source", options.images), home / "undisturbed"
        began = time.monotonic()
        kill_until_done(command, source, undisturbed, rng, 0, 0)
        whole, want = time.monotonic() - began, content(undisturbed)
        seconds = options.seconds or 2 + whole / 3
        print(f"undisturbed: {len(want)} files in {whole:.1f} s; lives of up to {seconds:.1f} s")
        for loop in range(1, options.loops + 1):
            output = home / f"{loop}"
            sessions, accepted = kill_until_done(command, source, output, rng, options.kills, seconds)
            wrong = faults(output, want, sessions)
            wrong += ["verify accepted an unfinished output"] * sum(each != want for each in accepted)
            print(f"loop {loop}: {len(sessions) - 1} kills, {len(wrong)} faults", *wrong, sep="\n  ")
            failed |= bool(wrong)
    return failed


def main() -> int:
    # argparse would read the flags after the dashes as those of this script.
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    ways = parser.add_subparsers(dest="way", required=True)
    aimed = ways.add_parser("aimed", help="kill before each write")
    aimed.add_argument("--formats", default=",".join(FORMATS))
    aimed.add_argument("--s3", action="store_true", help="write outputs to moto's S3")
    at_random = ways.add_parser("random", help="kill at random moments")
    at_random.add_argument("--images", type=int, default=60)
    at_random.add_argument("--kills", type=int, default=15, help="number of kills in each loop")
    at_random.add_argument("--loops", type=int, default=3)
    at_random.add_argument("--seed", type=int, default=0, help="seed of the moments")
    at_random.add_argument(
        "--seconds", type=float, help="longest life of a run; default 2 seconds and a third of a whole run"
    )
    options = parser.parse_args(sys.argv[1:split])
    if options.way == "aimed":
        return int(kill_aimed(options.formats.split(","), options.s3))
    return int(kill_at_random(options, sys.argv[split + 1 :] or DEFAULT))


if __name__ == "__main__":
    sys.exit(main())
