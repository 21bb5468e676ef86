#!/usr/bin/env python3
"""Makes small wrong changes to a copy of the package, and reports which of them the tests notice.

    python scripts/mutants.py [--suite] [PART OF A PATH ...]

Each of the thirty changes is tried on the tests of its room that `make test` runs (`tests/pixels/imaging` for
`robustgen/pixels/imaging`), and if it survives on those of its wing. With --suite, those that survive are
tried on all other tests of `make test` too. Paths, or parts of them, choose among the changes.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Mutant(NamedTuple):
    """One wrong change: in `file`, `old`, which stands there once, becomes `new`."""

    file: str
    old: str
    new: str


MUTANTS = (
    Mutant(
        "metrics/calibration.py", "max(1, len(order) // CALIBRATION_BIN)", "1 + len(order) // CALIBRATION_BIN"
    ),
    Mutant("metrics/bootstrap.py", "ddof=1", "ddof=0"),
    Mutant("lab/scores/family_means.py", "key=len, reverse=True", "key=len"),
    Mutant("lab/scores/results.py", " and file.has_logits and ", " and "),
    Mutant("display/text.py", "text[-(room - 1) :]", "text[-room:]"),
    Mutant("settings/fields.py", "if last < first:", "if last <= first:"),
    Mutant("lab/evaluation/store.py", "max(_PREDICTIONS,", "min(_PREDICTIONS,"),
    Mutant(
        "files/text_files.py",
        '.replace("\\\\", "\\\\\\\\").replace("\\n", "\\\\n")',
        '.replace("\\n", "\\\\n")',
    ),
    Mutant("files/text_files.py", 'decoded.count("[") + decoded.count("{")', 'decoded.count("[")'),
    Mutant("files/storage/local.py", "memoryview(data)[done:]", "memoryview(data)[:done]"),
    Mutant("sets/formats/arrays.py", "labels.max(initial=0) < 256", "labels.max(initial=0) <= 256"),
    Mutant("sets/formats/shards.py", 'kind="c" if stem == encoded.name else "p"', 'kind="c"'),
    Mutant("sets/formats/base.py", "-(-len(keys) // _MOST_UNITS)", "len(keys) // _MOST_UNITS"),
    Mutant("sets/sources/trees.py", "elif not refusal and (name", "elif (name"),
    Mutant("sets/sources/published.py", "<= max(labels) < classes", "<= max(labels) <= classes"),
    Mutant("sets/sources/labels.py", r're.fullmatch(r"-?\d{1,9}", label)', r're.match(r"-?\d{1,9}", label)'),
    Mutant("sets/executors/jobs.py", "1 if len(left) < before else deaths + 1", "deaths + 1"),
    Mutant("sets/executors/slurm.py", "int(shards) < 1", "int(shards) < 0"),
    Mutant("files/ledger.py", "if not (is_done or self.has_record)(name):", "if True:"),
    Mutant("sets/dataset/selection.py", "sorted(turns)[:count]", "sorted(turns)[: count + 1]"),
    Mutant("pixels/imaging/weather_effects.py", "max(rows - shape[0], 1)", "rows - shape[0] + 1"),
    Mutant("pixels/imaging/kernels/elementwise.py", "grey = delta == 0.0", "grey = delta <= 0.004"),
    Mutant("pixels/benchmarks/parameters.py", "high if fraction >= 0.5", "high if fraction > 0.5"),
    Mutant("pixels/benchmarks/perturbations.py", "total, i + 1)", "total, i)"),
    Mutant("compat/imagecorruptions.py", "corruption_number != -1", "corruption_number > 0"),
    Mutant(
        "torch/consistency.py",
        "torch.promote_types(logits_clean.dtype, torch.float32)\n    log",
        "logits_clean.dtype\n    log",
    ),
    Mutant("lab/inspection/verify_contents.py", '"changed" if path in listed else "extra"', '"extra"'),
    Mutant("lab/models/base.py", ".all(axis=1)", ".any(axis=1)"),
    Mutant("cli/list.py", "found = found or [", "found += ["),
    Mutant("related/streams/drawing.py", "(other >= state)", "(other > state)"),
)


def run(copy: Path, *tests: str) -> bool:
    """Return whether all `tests` pass on the copy."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": str(copy)}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    return done.returncode == 0


def list_rooms(file: str, suite: bool) -> list[str]:
    """Return the folders of tests around a module, from its own room to its wing, or to all tests."""
    parents = [Path("tests", each) for each in Path(file).parents]
    return [str(each) for each in (parents if suite else parents[:-1]) if (ROOT / each).is_dir()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", action="store_true")
    parser.add_argument("parts", nargs="*", default=[""])
    arguments = parser.parse_args()
    chosen = [each for each in MUTANTS if any(part in each.file for part in arguments.parts)]
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        ignored = shutil.ignore_patterns(".git", ".venv", "build", "out", "__pycache__", "node_modules")
        shutil.copytree(ROOT, copy, ignore=ignored, symlinks=True)
        for mutant in chosen:
            path, rooms = copy / "robustgen" / mutant.file, list_rooms(mutant.file, arguments.suite)
            text, started = path.read_text(), time.monotonic()
            assert text.count(mutant.old) == 1, f"{mutant.file}: {mutant.old!r} is not there once"
            path.write_text(text.replace(mutant.old, mutant.new))
            survives = all(
                run(copy, room, *(f"--ignore={each}" for each in rooms[:number]))
                for number, room in enumerate(rooms)
            )
            path.write_text(text)
            survivors += [mutant] * survives
            said = "SURVIVES" if survives else "noticed"
            print(f"{said:9}{time.monotonic() - started:5.0f} s  {mutant.file}: {mutant.new}", flush=True)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} noticed")


if __name__ == "__main__":
    main()
