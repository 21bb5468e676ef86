"""Checks an output: against its own sums, against the source, against another output."""

import json
import os
import random
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from robustgen.config import Config
from robustgen.errors import ArgumentError, OutputError
from robustgen.journal import read_journals
from robustgen.ledger import exclusive
from robustgen.manifest import dataset_digest, read_sums, sums_files, write_papers
from robustgen.storage import COMPANIONS, ERRORS, FRAMES, MANIFEST, STATE, SUMS, file_digest, temporary_folder


@dataclass(frozen=True, order=True)
class Finding:
    """One thing that is not as it should be.

    Attributes
    ----------
    kind : {"missing", "extra", "changed", "truncated", "differs", "unfinished"}
    path : str
        POSIX path below the output.
    detail : str
        More about it, or empty.
    """

    kind: str
    path: str
    detail: str = ""


@dataclass(frozen=True)
class Findings:
    """What `verify` found: the problems, how many files it checked, and the dataset digest."""

    problems: list[Finding]
    checked: int
    digest: str


def verify(
    root: Path, *, jobs: int | None = None, deep: str | None = None, against: str | None = None
) -> Findings:
    """Check the output at `root`.

    Parameters
    ----------
    root : Path
    jobs : int, optional
        Threads that read files; default one a core.
    deep : str, optional
        How many images to make anew from the source, or ``"all"``.
    against : str, optional
        Folder of another output, or a dataset digest.

    Raises
    ------
    OutputError
        There is no output of robustgen at `root`.
    ArgumentError
        `deep` or `against` cannot be used.
    """
    if not root.is_dir():
        raise OutputError(f"{root}: no such folder")
    if (root / STATE / "about.json").exists():
        with exclusive(root):
            write_papers(root)
    if not (root / MANIFEST).exists():
        raise OutputError(f"{root} holds no {MANIFEST}; it is not a finished output of robustgen")
    wanted = _listed(root)
    problems = [*_unfinished(root), *_compared(root, wanted, jobs or os.cpu_count() or 1)]
    problems += _extra(root, wanted)
    if deep:
        problems += _made_anew(root, wanted, deep)
    digest = dataset_digest(root)
    if against:
        problems += _against(root, wanted, digest, against)
    return Findings(sorted(problems), len(wanted), digest)


def _listed(root: Path) -> dict[str, str]:
    """Every file that the sums list, POSIX path below `root`, with its digest."""
    listed = {}
    for sums in sums_files(root):
        folder = sums.parent.relative_to(root).as_posix()
        prefix = "" if folder == "." else f"{folder}/"
        listed.update({prefix + name: digest for name, digest in read_sums(sums).items()})
    return listed


def _unfinished(root: Path) -> Iterator[Finding]:
    manifest = json.loads((root / MANIFEST).read_bytes())
    if not manifest["complete"]:
        yield Finding("unfinished", MANIFEST, f": not all of the {manifest['images']} images have all files")


def _compared(root: Path, wanted: dict[str, str], jobs: int) -> Iterator[Finding]:
    sizes = _sizes(root)

    def check(path: str) -> Finding | None:
        try:
            if file_digest(root / path) == wanted[path]:
                return None
        except FileNotFoundError:
            return Finding("missing", path)
        except OSError as error:
            return Finding("changed", path, f": cannot be read: {error.strerror}")
        short = (root / path).stat().st_size < sizes.get(path, 0)
        return Finding("truncated" if short else "changed", path)

    with ThreadPoolExecutor(jobs) as pool:
        yield from filter(None, pool.map(check, wanted, chunksize=64))


def _sizes(root: Path) -> dict[str, int]:
    """The sizes that the journals recorded, of the files that are not there with that size."""
    return {
        written.path: written.size
        for receipt in read_journals(root / STATE)
        for files in receipt.files.values()
        for written in files
        if not _has_size(root / written.path, written.size)
    }


def _has_size(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def _extra(root: Path, wanted: dict[str, str]) -> Iterator[Finding]:
    papers = {SUMS, FRAMES}
    own = {MANIFEST, ERRORS, *COMPANIONS}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != STATE]
        here = Path(folder).relative_to(root).as_posix()
        prefix = "" if here == "." else f"{here}/"
        for name in files:
            if name not in papers and prefix + name not in wanted and prefix + name not in own:
                yield Finding("extra", prefix + name)


# --- against the source --------------------------------------------------------------------------


def _made_anew(root: Path, wanted: dict[str, str], deep: str) -> Iterator[Finding]:
    """Make a random sample of images, or all, once more from the source and compare."""
    from robustgen import build, runner

    manifest = json.loads((root / MANIFEST).read_bytes())
    config = Config.model_validate(manifest["config"] | {"output": str(root)})
    plan = build.plan(config, "c" if manifest["kind"] == "ImageNet-C" else "p")
    numbered = list(enumerate(plan.keys))
    with TemporaryDirectory() as folder:
        temporary_folder(Path(folder)).mkdir(parents=True)
        for index, key in _sample(numbered, deep):
            if plan.in_arrays:
                yield from _rows_anew(root, plan, index, key)
                continue
            task = runner.Task(plan.recipe, plan.source, plan.sink, Path(folder), ((index, key, plan.arms),))
            for receipt in runner.run_task(task):
                for written in (w for files in receipt.files.values() for w in files):
                    (Path(folder) / written.path).unlink()
                    if wanted.get(written.path) != written.sha256:
                        yield Finding("differs", written.path, ": from what the source gives now")
                yield from (Finding("differs", key, f": {f['reason']}") for f in receipt.failures)


def _sample(numbered: list[tuple[int, str]], deep: str) -> list[tuple[int, str]]:
    if deep == "all":
        return numbered
    if not deep.isdecimal() or int(deep) < 1:
        raise ArgumentError(f"--deep: must be a number of images, or all, not {deep!r}")
    # Seeded by the system: another sample each time finds more.
    return random.sample(numbered, min(int(deep), len(numbered)))


def _rows_anew(root: Path, plan: Any, index: int, key: str) -> Iterator[Finding]:
    image = plan.recipe.prepare(plan.source.load(key))
    for arm in plan.arms:
        file, row = plan.sink.place(arm, index)
        rows = np.load(root / file, mmap_mode="r")
        if not np.array_equal(rows[row], plan.recipe.make(arm, key, image)):
            yield Finding(
                "differs", file, f": row {row} ({key}, {arm.folder}) from what the source gives now"
            )


# --- against another output ----------------------------------------------------------------------


def _against(root: Path, wanted: dict[str, str], digest: str, other: str) -> Iterable[Finding]:
    if Path(other).is_dir():
        theirs = _listed(Path(other))
        if not theirs:
            raise ArgumentError(f"--against: {other} holds no {SUMS}")
        return [
            *(Finding("missing", path, f": is in {other}") for path in theirs.keys() - wanted.keys()),
            *(Finding("extra", path, f": is not in {other}") for path in wanted.keys() - theirs.keys()),
            *(
                Finding("differs", p, f": from {other}")
                for p in wanted.keys() & theirs
                if wanted[p] != theirs[p]
            ),
        ]
    if len(other) != 64 or set(other) - set("0123456789abcdef"):
        raise ArgumentError(f"--against: {other!r} is neither a folder nor a dataset digest")
    return [] if other == digest else [Finding("differs", ".", f": the digest is {digest}, not {other}")]
