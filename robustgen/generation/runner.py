"""Carries a plan out: `run_task` makes a chunk of images, `run` fans the chunks out over the cores."""

import ctypes
import errno
import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from joblib import Parallel, cpu_count, delayed, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError

from robustgen.benchmark import Arm
from robustgen.display import progress
from robustgen.errors import (
    ArgumentError,
    ImageError,
    MissingDependencyError,
    OutputError,
    RobustgenError,
    WriteError,
)
from robustgen.generation.plan import Plan
from robustgen.generation.recipes import Recipe
from robustgen.imaging.pixels import Rgb
from robustgen.output.files import MANIFEST, temporary_folder, write_whole
from robustgen.output.ledger import Ledger, Shard
from robustgen.output.manifest import source_digest, write_manifest
from robustgen.output.records import Failure, Receipt, Written
from robustgen.output.state import State
from robustgen.output.writers import Writer
from robustgen.sources.base import Items

_MOST_DEATHS = 3

_ERRORS_OF_A_NAME = (errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EEXIST, errno.ENOTEMPTY)

# From glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


class Item(NamedTuple):
    """A source image at hand, and the arms that it lacks; `size` is that of its file when the run began."""

    number: int
    key: str
    size: int
    arms: tuple[Arm, ...]


@dataclass(frozen=True)
class Task:
    """A chunk of source images and the arms that each of them lacks."""

    recipe: Recipe[Any]
    source: Items[Any]
    writer: Writer
    root: Path
    items: tuple[Item, ...]


@dataclass(frozen=True)
class RunResult:
    """What a run did.

    Attributes
    ----------
    made : int
        Outputs (images or sequences) written.
    kept : int
        Outputs that were there already.
    size : int
        Bytes written.
    seconds : float
    failures : list of dict
        The entries of `errors.jsonl`.
    last : bool
        Whether the output is finished; False for a shard while others are at work.
    withheld : list of str
        Arrays that some image is lacking in.
    """

    made: int
    kept: int
    size: int
    seconds: float
    failures: list[Failure]
    last: bool
    withheld: list[str]


@cache
def keep_freed_memory() -> None:
    """Tell glibc to keep what is freed: handing megabytes back and forth costs more than the arithmetic."""
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in ((_M_MMAP_THRESHOLD, 1 << 25), (_M_TRIM_THRESHOLD, 1 << 28)):
            mallopt(parameter, value)


def run_task(task: Task) -> list[Receipt]:
    """Make and write all that the images of `task` lack.

    Raises
    ------
    WriteError
        The output cannot be written; nothing is wrong with the images.
    """
    keep_freed_memory()
    works = [_Work(task, item) for item in task.items]
    try:
        # Arm by arm, so that an arm's tables stay in the cache from image to image.
        for arm in dict.fromkeys(arm for item in task.items for arm in item.arms):
            for work in works:
                work.do(arm)
    finally:
        task.writer.flush()
    return [work.receipt() for work in works]


class _UnusableNameError(ImageError):
    """The name of an image does not do for its output."""


class _Work:
    """One source image under way: loaded at once, then given to one arm after another."""

    def __init__(self, task: Task, item: Item) -> None:
        self._task, (self._index, self._key, self._size, arms) = task, item
        self._lacking = {arm.folder for arm in arms}
        self._files: dict[str, list[Written]] = {}
        self._failures: list[Failure] = []
        self._shared: dict[str, Any] = {}
        try:
            self._image: Any = task.recipe.prepare(task.source.open(self._key))
        except Exception as error:
            self._image = None
            self._fail(error)

    def do(self, arm: Arm) -> None:
        """Make and write what `arm` gives; a failure is noted, unless it is none of the image's."""
        if self._image is None or arm.folder not in self._lacking:
            return
        try:
            pixels = self._task.recipe.make(arm, self._key, self._image, self._shared)
            self._files[arm.folder] = self._write(arm, pixels)
        except (WriteError, MissingDependencyError):
            raise
        except _UnusableNameError as error:
            # It would fail in every arm alike.
            self._image = None
            self._fail(error)
        except Exception as error:
            self._fail(error, arm)

    def _write(self, arm: Arm, pixels: Rgb) -> list[Written]:
        task = self._task
        try:
            return task.writer.write(task.root, arm, self._index, self._key, pixels)
        except OSError as error:
            if isinstance(error, RobustgenError):
                raise
            if error.errno in _ERRORS_OF_A_NAME:
                name = task.writer.output_name(self._key)
                raise _UnusableNameError(f"{name} cannot name its output: {error.strerror}") from error
            raise WriteError(f"{task.root}: {error.strerror or error}") from error

    def _fail(self, error: Exception, arm: Arm | None = None) -> None:
        # What is not an ImageError is told with its type, as it may be our fault.
        reason = str(error) if isinstance(error, ImageError) else f"{type(error).__name__}: {error}"
        # The entry names the key already.
        reason = reason.removeprefix(f"{self._key!r}: ")
        entry = {"key": self._key, "arm": arm.folder} if arm else {"key": self._key}
        self._failures.append(entry | {"reason": reason})

    def receipt(self) -> Receipt:
        """What came of it."""
        return Receipt(self._key, self._size, self._files, tuple(self._failures))


def run(
    plan: Plan, *, overwrite: bool = False, shard: tuple[int, int] | None = None, scheduler: str | None = None
) -> RunResult:
    """Carry out `plan`, or one shard of it, and return what was done.

    Parameters
    ----------
    plan : Plan
    overwrite : bool
        Begin anew where the output holds something made otherwise.
    shard : (int, int), optional
        (3, 16): only the third of sixteen parts.
    scheduler : str, optional
        Address of a Dask scheduler whose workers do the work.

    Raises
    ------
    OutputError
        The output cannot be used.
    WriteError
        The output could not be written any more; what is done stays done.
    """
    started = time.monotonic()
    sizes = {key: _size(plan.source, key) for key in plan.keys}
    part = Shard(*shard, plan.digest()) if shard else None
    with Ledger(plan.output, plan.writer, plan.settings(), shard=part, overwrite=overwrite) as ledger:
        try:
            return _run(plan, ledger, sizes, started, scheduler)
        except OSError as error:
            if isinstance(error, RobustgenError):
                raise
            raise WriteError(f"{plan.output}: {error.strerror or error}") from error


def _run(
    plan: Plan, ledger: Ledger, sizes: dict[str, int], started: float, scheduler: str | None
) -> RunResult:
    ledger.load(sizes, plan.arms)
    items = _pending(plan, ledger, sizes)
    for key, reason in plan.refused.items():
        ledger.record(Receipt(key, 0, failures=({"key": key, "reason": reason},)))
    plan.writer.reopen(plan.output, frozenset(arm.folder for item in items for arm in item.arms))
    made, size = _made(plan, ledger, items, scheduler)
    news = _describe(plan, sizes)
    last = ledger.finish(plan.listing(), plan.arms, {*plan.source.keys(), *plan.refused})
    companions = plan.companions()
    needed = [MANIFEST, *companions]
    if last and (made or news or ledger.failures() or not all((plan.output / n).exists() for n in needed)):
        for name, data in companions.items():
            write_whole(plan.output, name, data)
        write_manifest(plan.output, ledger.tally)
    asked = len(_share(plan, ledger.shard)) * len(plan.arms)
    kept = asked - sum(len(item.arms) for item in items)
    return RunResult(made, kept, size, time.monotonic() - started, ledger.failures(), last, ledger.withheld)


def _held_description(state: State) -> dict[str, Any]:
    # One that a power cut left empty is no loss: it is about to be written anew.
    with suppress(OSError, OutputError):
        return state.about()
    return {}


def _describe(plan: Plan, sizes: dict[str, int]) -> bool:
    """Leave beside the journal what the manifest says of the plan; return whether that is new."""
    about = plan.about()
    about["source"]["digest"] = source_digest(sizes)
    state = State(plan.output)
    held = _held_description(state)
    arms, arrays = ({*held.get(listing, []), *about[listing]} for listing in ("arms", "arrays"))
    images = max(held.get("images", 0), about["images"])
    if arms == set(held.get("arms", [])) and images == held["images"] and about["source"] == held["source"]:
        # A run for a part of what is there leaves the description of the whole.
        return False
    about |= {"arms": sorted(arms), "arrays": sorted(arrays), "images": images}
    # A manifest must never be older than this.
    (plan.output / MANIFEST).unlink(missing_ok=True)
    state.write_about(about)
    return True


def _made(plan: Plan, ledger: Ledger, items: list[Item], scheduler: str | None) -> tuple[int, int]:
    """Make all `items`; return the number of outputs and of bytes written."""
    made = size = 0
    arms = {item.key: len(item.arms) for item in items}
    with progress.open_bar(sum(arms.values()), "files") as bar:
        for receipt in _carried_out(plan, items, scheduler):
            ledger.record(receipt)
            made += len(receipt.files)
            size += sum(written.size for files in receipt.files.values() for written in files)
            # An image that could not be read has failed in all its arms.
            unread = receipt.failures and not receipt.files and "arm" not in receipt.failures[0]
            bar.update(arms[receipt.key] if unread else len(receipt.files) + len(receipt.failures))
    return made, size


def _size(source: Items[Any], key: str) -> int:
    """Bytes of the source image; 0 if it is gone since it was listed, which loading it will report."""
    try:
        return source.size(key)
    except ImageError:
        return 0


def _share(plan: Plan, shard: Shard | None) -> list[tuple[int, str]]:
    """The images of `shard`: every count-th, so that all shards have as many of every class."""
    numbered = list(enumerate(plan.keys))
    return numbered[shard.number - 1 :: shard.count] if shard else numbered


def _pending(plan: Plan, ledger: Ledger, sizes: Mapping[str, int]) -> list[Item]:
    share = _share(plan, ledger.shard)
    items = (Item(index, key, sizes[key], ledger.pending(key, plan.arms)) for index, key in share)
    return [item for item in items if item.arms]


def _carried_out(plan: Plan, items: list[Item], scheduler: str | None) -> Iterator[Receipt]:
    """The receipts of all `items`; what a dead worker had in hand is done again."""
    deaths = 0
    while items:
        finished: set[str] = set()
        try:
            workers = min(_jobs(plan), len(items))
            for receipts in _fanned_out(_tasks(plan, items), workers, scheduler):
                finished.update(receipt.key for receipt in receipts)
                yield from receipts
        except TerminatedWorkerError:
            deaths = 0 if finished else deaths + 1
            progress.print_line("a worker died (killed, or out of memory); doing its work again")
            if deaths >= _MOST_DEATHS:
                raise WriteError(
                    f"workers keep dying; memory may be short: try fewer --jobs (now {_jobs(plan)})"
                ) from None
        items = [item for item in items if item.key not in finished]


def _jobs(plan: Plan) -> int:
    """How many workers: as asked, or as many as the machine (or the container) gives us cores."""
    return plan.jobs or int(cpu_count())


def _tasks(plan: Plan, items: list[Item]) -> Iterator[Task]:
    most = plan.writer.images_per_task or plan.recipe.images_per_task
    step = max(1, min(most, len(items) // (4 * _jobs(plan))))
    for start in range(0, len(items), step):
        chunk = tuple(items[start : start + step])
        yield Task(plan.recipe, plan.source, plan.writer, plan.output, chunk)


def _fanned_out(tasks: Iterable[Task], workers: int, scheduler: str | None) -> Iterator[list[Receipt]]:
    if scheduler:
        yield from _on_cluster(tasks, scheduler)
        return
    if workers == 1:
        yield from map(run_task, tasks)
        return
    # What loky's resource tracker says of workers that were killed is of no use to anyone.
    os.environ.setdefault(
        "PYTHONWARNINGS", "ignore::UserWarning:joblib.externals.loky.backend.resource_tracker"
    )
    start = {"initializer": _start_worker, "initargs": (os.getpid(),)}
    with parallel_config(backend="loky", inner_max_num_threads=1, **start):
        parallel = Parallel(n_jobs=workers, return_as="generator_unordered", pre_dispatch="3*n_jobs")
        with _interrupts_held_back():
            results = parallel(delayed(run_task)(task) for task in tasks)
        yield from results


def _start_worker(parent: int) -> None:
    """Prepare a worker process: it leaves Ctrl-C to its parent, and ends when that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_freed_memory()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Processes started meanwhile never see Ctrl-C, not even while they import; ours comes afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _on_cluster(tasks: Iterable[Task], scheduler: str) -> Iterator[list[Receipt]]:
    """Run `tasks` on the workers of a Dask scheduler, which see the same paths as this process."""
    try:
        from distributed import Client, KilledWorker
    except ImportError as error:
        raise MissingDependencyError("--scheduler needs Dask: pip install 'robustgen[dask]'") from error
    try:
        client = Client(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        raise ArgumentError(f"no Dask scheduler answers at {scheduler}") from error
    with client, parallel_config(backend="dask"):
        parallel = Parallel(n_jobs=-1, return_as="generator_unordered", pre_dispatch="3*n_jobs")
        try:
            yield from parallel(delayed(run_task)(task) for task in tasks)
        except KilledWorker as error:
            raise TerminatedWorkerError(str(error)) from error


@dataclass(frozen=True)
class Estimate:
    """What a run would take: outputs, bytes and seconds, judged by making one image."""

    outputs: int
    size: int
    seconds: float


def estimate(plan: Plan) -> Estimate:
    """Judge the cost of `plan` by the first image that can be made, in a temporary folder.

    Raises
    ------
    ImageError
        No image can be made.
    """
    with TemporaryDirectory() as folder:
        root = Path(folder)
        temporary_folder(root).mkdir(parents=True)
        plan.writer.start(root)
        for key in plan.keys:
            task = Task(plan.recipe, plan.source, plan.writer, root, (Item(0, key, 0, plan.arms),))
            # The first time compiles the loops and builds the tables.
            run_task(task)
            started = time.perf_counter()
            (receipt,) = run_task(task)
            seconds = time.perf_counter() - started
            if not receipt.failures:
                break
        else:
            raise ImageError(f"{plan.source.location}: none of the images can be made")
        size = sum(written.size for files in receipt.files.values() for written in files)
    images = len(plan.keys)
    return Estimate(images * len(plan.arms), size * images, seconds * images / _jobs(plan))
