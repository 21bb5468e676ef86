"""Carries a plan out: what is lacking is handed out to workers, and what comes back is recorded."""

import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from robustgen.display.progress import Meter, print_line
from robustgen.errors import ImageError, OutputError, RobustgenError, WriteError
from robustgen.generation.cluster import Cluster
from robustgen.generation.plan import Plan
from robustgen.generation.pulse import Pulse
from robustgen.generation.selection import make_source_ready
from robustgen.generation.tasks import Item, Task
from robustgen.generation.watch import Watch
from robustgen.generation.workers import Processes, ThisProcess, Workers, WorkersLostError, count_cores
from robustgen.output.files import MANIFEST, temporary_folder
from robustgen.output.journal import Entry, enter_receipts
from robustgen.output.ledger import Ledger, Shard
from robustgen.output.manifest import source_digest, write_manifest
from robustgen.output.records import Failure, Receipt
from robustgen.output.state import State
from robustgen.sources.base import Items

_MOST_DEATHS = 3


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
    known = {*plan.source.keys(), *plan.refused}
    ledger.load(sizes, plan.arms, known)
    items = _pending(plan, ledger, sizes)
    ledger.record(_fail({"key": key, "reason": reason} for key, reason in plan.refused.items()))
    make_source_ready(plan.source, State(plan.output), reading=bool(items))
    plan.writer.reopen(plan.output, frozenset(arm.folder for item in items for arm in item.arms))
    made, size = _make(plan, ledger, items, scheduler)
    news = _describe(plan, sizes)
    beside, failures = plan.mirror.list_files() if plan.mirror else ([], [])
    ledger.record(_fail(failures))
    last = ledger.finish(plan.listing(), plan.arms, known)
    if last and plan.mirror:
        plan.mirror.fill(plan.output, [arm.folder for arm in plan.arms], beside)
    if last and (made or news or ledger.failures() or not (plan.output / MANIFEST).exists()):
        write_manifest(plan.output, ledger.tally)
    asked = len(_share(plan, ledger.shard)) * len(plan.arms)
    kept = asked - sum(len(item.arms) for item in items)
    return RunResult(made, kept, size, time.monotonic() - started, ledger.failures(), last, ledger.withheld)


def _read_description(state: State) -> dict[str, Any]:
    # One that a power cut left empty is no loss: it is about to be written anew.
    with suppress(OSError, OutputError):
        return state.about()
    return {}


def _describe(plan: Plan, sizes: dict[str, int]) -> bool:
    """Leave beside the journal what the manifest says of the plan; return whether that is new."""
    about = plan.about()
    about["source"]["digest"] = source_digest(sizes)
    state = State(plan.output)
    held = _read_description(state)
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


def _make(plan: Plan, ledger: Ledger, items: list[Item], scheduler: str | None) -> tuple[int, int]:
    """Make all `items`; return the number of outputs and of bytes written."""
    made = size = 0
    arms = {item.key: len(item.arms) for item in items}
    pulse = Pulse(temporary_folder(plan.output), secrets.token_hex(4))
    with Meter(sum(arms.values()), f"{plan.recipe.noun}s") as meter, Watch(meter, pulse) as watch:
        for entries in _carry_out(plan, items, _Fleet(plan, scheduler, watch, pulse)):
            ledger.record(entries)
            made += sum(len(entry.folders) for entry in entries)
            size += sum(entry.written for entry in entries)
            watch.receive(sum(_count_settled(entry, arms[entry.key]) for entry in entries))
    return made, size


def _count_settled(entry: Entry, arms: int) -> int:
    """How many of the `arms` of an image are made or have failed."""
    # An image that could not be read has failed in all of them.
    unread = entry.failures and not entry.folders and "arm" not in entry.failures[0]
    return arms if unread else len(entry.folders) + len(entry.failures)


def _fail(failures: Iterable[Failure]) -> list[Entry]:
    """The entries of images of which nothing was made."""
    return enter_receipts(Receipt(each["key"], 0, failures=(each,)) for each in failures)


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
    pending = [item for item in items if item.arms]
    return sorted(pending, key=lambda item: plan.source.storage_order(item.key))


@dataclass(frozen=True)
class _Fleet:
    """Finds workers for a plan: the cluster's, processes of this machine, or none but this process."""

    plan: Plan
    scheduler: str | None
    watch: Watch
    pulse: Pulse

    def muster(self, items: int) -> Workers:
        """Workers for so many items; the watch is told who they are."""
        self.pulse.forget()
        workers = self._choose(min(_jobs(self.plan), items))
        self.watch.describe = workers.describe_silence
        return workers

    def _choose(self, count: int) -> Workers:
        if self.scheduler:
            return Cluster(self.scheduler)
        return Processes(count, self.pulse) if count > 1 else ThisProcess()


def _carry_out(plan: Plan, items: list[Item], fleet: _Fleet) -> Iterator[list[Entry]]:
    """The entries of all `items`, task by task; what a dead worker had in hand is done again."""
    deaths = 0
    while items:
        finished: set[str] = set()
        try:
            for entries in fleet.muster(len(items)).carry_out(_tasks(plan, items, fleet.pulse)):
                finished.update(entry.key for entry in entries)
                yield entries
        except WorkersLostError as error:
            deaths = 0 if finished else deaths + 1
            print_line(f"{error}; doing its work again")
            if deaths >= _MOST_DEATHS:
                raise WriteError(
                    f"workers keep dying; memory may be short: try fewer --jobs (now {_jobs(plan)})"
                ) from None
        items = [item for item in items if item.key not in finished]


def _jobs(plan: Plan) -> int:
    """How many workers: as asked, or as many as the machine (or the container) gives us cores."""
    return plan.jobs or count_cores()


def _tasks(plan: Plan, items: list[Item], pulse: Pulse) -> Iterator[Task]:
    most = plan.writer.images_per_task or plan.recipe.images_per_task
    start = turn = 0
    while start < len(items):
        # Few at a time towards the end, so that all workers end together.
        step = max(1, min(most, (len(items) - start) // (4 * _jobs(plan))))
        chunk = tuple(items[start : start + step])
        yield Task(plan.recipe, plan.source, plan.writer, plan.output, chunk, pulse, turn)
        start, turn = start + step, turn + 1
