"""A run: find the work units without a record, process them, and finish the set."""

import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, compress

from robustgen.display import progress
from robustgen.display.progress import Meter
from robustgen.display.text import Table, format_size, format_tables
from robustgen.errors import ImageError, OutputError
from robustgen.files.ledger import Failure, Note, Record, Standing, index_notes
from robustgen.files.set_files import (
    ERRORS,
    MANIFEST,
    MANIFEST_SUMS,
    NOTES,
    START_OVER,
    STATE,
    AnotherSetError,
    WrittenFile,
)
from robustgen.files.storage import Store, open_log
from robustgen.files.text_files import join_names, read_sums
from robustgen.pixels.imaging.decode import Complaint, Loss, collect_complaints
from robustgen.sets.dataset.changes import check_unchanged, keep_stamps, look_up
from robustgen.sets.dataset.estimate import check_space
from robustgen.sets.dataset.manifest import RecordSummary, finish, is_finished, list_checksums, source_digest
from robustgen.sets.dataset.outputs import measure_file, name_output_in_errors
from robustgen.sets.dataset.plan import Plan
from robustgen.sets.dataset.reconcile import Pending, list_unfinished, reconcile
from robustgen.sets.dataset.selection import list_files
from robustgen.sets.dataset.state import COMPANIONS, SetLedger, name_mirror
from robustgen.sets.dataset.unit_jobs import (
    Outcome,
    UnitJob,
    UnitJobs,
    check_identity,
    describe_losses,
    describe_orientations,
    list_losses,
    list_orientations,
)
from robustgen.sets.executors import Executor, count_cores, submit_jobs
from robustgen.sets.executors.clusters import JOBS_AHEAD
from robustgen.sets.executors.progress import Progress
from robustgen.sets.formats.base import SetListing, WorkUnit
from robustgen.sets.sources.classes import KEYS
from robustgen.sets.sources.trees import describe_complaints
from robustgen.settings.running import DEFAULTS, Running, read_shard

UnitLog = Callable[[WorkUnit, Outcome], None]
"""Callback for each unit that this run has processed."""

# Number of source images compared with the recorded identities before the work begins.
_LOOKED_AT = 4
# Units of a job on a server, each of which begins while the one before it ends.
_MOST_UNITS = 8


@dataclass(frozen=True)
class RunResult:
    """Result of a run.

    Attributes
    ----------
    made, kept : int
        Outputs (images or sequences) written by this run, and by earlier or simultaneous runs.
    size : int
        Bytes written.
    seconds : float
    failures : list of dict
        Failures of this run; at the end of the last shard, failures of all shards.
    waiting : list of int
        Numbers of the unfinished shards.
    incomplete : list of str
        Arrays that were not written because some of their images failed.
    removed : int
        Number of files that were deleted and not written again, because others have replaced them.
    output : str
        Path or URL of the set.
    remarks : tuple of str
        Remarks about the source, such as files that are no images, warnings of decoders, or images that come
        out dark.

    Examples
    --------
    >>> import robustgen
    >>> result = robustgen.make_c("demo", corruptions="contrast", limit=1, output="out", jobs=1, quiet=True)
    >>> result.made, result.kept
    (6, 0)
    >>> again = robustgen.make_c("demo", corruptions="contrast", limit=1, output="out", jobs=1, quiet=True)
    >>> again.made, again.kept
    (0, 6)
    """

    made: int
    kept: int
    size: int
    seconds: float
    failures: list[Failure]
    waiting: list[int]
    incomplete: list[str]
    removed: int
    output: str
    remarks: tuple[str, ...]

    def _repr_html_(self) -> str:
        rows = [("created", f"{self.made:,}"), ("kept", f"{self.kept:,}"), ("size", format_size(self.size))]
        rows += [("failed", f"{each['key']}: {each['reason']}") for each in self.failures]
        rows += [("waiting for shard", str(number)) for number in self.waiting]
        rows += [("incomplete", name) for name in self.incomplete]
        rows += [("remark", remark) for remark in self.remarks]
        return format_tables([Table(self.output, ("", ""), rows, names=2)], "html")


# Images that are looked at in advance are processed later.
@collect_complaints()
def run_plan(
    plan: Plan,
    running: Running = DEFAULTS,
    cluster: Executor | None = None,
    on_begin: Callable[[], None] = lambda: None,
) -> RunResult:
    """Execute `plan`, or one shard of it. Any number of runs can work on one output at once.

    Parameters
    ----------
    plan : Plan
    running : Running
        `overwrite`, `shard`, `quiet` and `log_json`.
    cluster : Executor, optional
        Runs the work units instead of processes of this machine.
    on_begin : callable, optional
        Called before the first output is created; not called if there is nothing to do.

    Raises
    ------
    OutputError
        The output cannot be used.
    WriteError
        The output can no longer be written; finished units are kept.
    """
    overwrite = running.overwrite
    if overwrite and running.shard:
        raise OutputError("--overwrite cannot be combined with --shard, because shards share one output")
    with name_output_in_errors(plan.store):
        state = SetLedger(plan.store, beside=plan.has_classes_at_root)
        if (standing := state.standing()) is Standing.ORPHANED:
            state.clear()
            state, standing = SetLedger(plan.store, beside=plan.has_classes_at_root), Standing.NEW
    with progress.quiet(running.quiet), _open_log(running.log_json) as log, _clean_up(plan, state, standing):
        attempt = partial(_SetRun, plan, state, read_shard(running.shard), cluster, log, on_begin)
        try:
            return attempt().make_set(overwrite=overwrite)
        except AnotherSetError:
            if not overwrite:
                raise
            clear(state)
            return attempt().make_set(overwrite=overwrite)


def list_waiting(plan: Plan, shards: int) -> list[int]:
    """Return the numbers of the unfinished `shards` of `plan`; 1 if only files about the set are missing."""
    state = SetLedger(plan.store, beside=plan.has_classes_at_root)
    waiting = list_unfinished(plan, (record for _, record in state.read_records()), shards)
    return waiting or [1] * (not is_finished(state))


@contextmanager
def _clean_up(plan: Plan, state: SetLedger, standing: Standing) -> Iterator[None]:
    """Remove temporary files, and everything written by a run that failed before its work began."""
    with name_output_in_errors(plan.store):
        try:
            with state.discard_if_unused():
                yield
        except BaseException:
            if standing is Standing.NEW:
                plan.store.withdraw()
            raise
        finally:
            plan.store.clean()


@contextmanager
def _open_log(path: str | None) -> Iterator[UnitLog]:
    """Open the file of ``--log-json``, if any, and yield a function that adds a unit to it."""
    if path is None:
        yield lambda unit, outcome: None
        return
    with open_log(path, f"--log-json {path}") as append:

        def add(unit: WorkUnit, outcome: Outcome) -> None:
            values = {
                "unit": unit.name,
                "images": len(unit.keys),
                "outputs": outcome.made,
                "bytes": outcome.size,
                "seconds": round(outcome.seconds, 3),
                "failures": len(outcome.failures),
                "ended": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            }
            append(json.dumps(values))

        yield add


class _SetRun:
    def __init__(
        self,
        plan: Plan,
        state: SetLedger,
        shard: tuple[int, int],
        cluster: Executor | None = None,
        log: UnitLog = lambda unit, outcome: None,
        on_begin: Callable[[], None] = lambda: None,
    ) -> None:
        self._plan, self._state, self._shard, self._cluster = plan, state, shard, cluster
        self._log, self._on_begin = log, on_begin
        self._units = {unit.name: unit for unit in plan.cut()}
        self._started = time.monotonic()
        looked = {key: look_up(plan.source, key) for key in plan.keys}
        self._sizes = {key: size for key, (size, _) in looked.items()}
        self._stamps = {key: stamp for key, (_, stamp) in looked.items()}
        self._read = set[str]()
        self._workers = plan.jobs or count_cores()
        self._listing: dict[str, int] | None = None
        self._made, self._own, self._size, self._failures = 0, 0, 0, list[Failure]()
        self._complaints = list[Complaint]()
        self._losses = dict[str, Loss | None]()
        self._orientations = dict[str, int]()
        self._notes = dict[tuple[str, str], Note]()
        self._removed = 0
        self._standing = state.standing()

    def make_set(self, *, overwrite: bool) -> RunResult:
        """Find the missing units, process them, and finish the set."""
        plan, state, (part, parts) = self._plan, self._state, self._shard
        own = [unit for index, unit in enumerate(self._units.values()) if index % parts == part - 1]
        self._own_units, self._asked = own, sum(unit.count_outputs() for unit in own)
        settings, manifest = plan.settings(), plan.manifest()
        parameters = settings.pop("parameters")
        manifest["source"]["digest"] = source_digest(self._sizes)
        if not overwrite and not state.settings():
            self._refuse_unrecorded()
        state.agree(settings)
        self._check_mirrored()
        found = self._reconcile(self._stands)
        self._failures += found.failures
        self._pending = {unit.name: unit for unit in found.units}
        held = check_unchanged(plan.source, state, found.identities, self._stamps)
        if self._pending:
            plan.source.make_ready()
            plan.recipe.make_ready()
            self._check_identities(found.identities)
            missing = sum(unit.count_outputs() for unit in found.units)
            check_space(plan, missing, sum(self._sizes.values()) / len(self._sizes))
        state.add_plan(manifest, parameters)
        if found.void or self._pending:
            # An existing manifest must describe all records, even if this run is killed.
            plan.store.delete(MANIFEST)
            self._standing = Standing.STARTED
            discard(state, COMPANIONS)
        self._delete(found.void)
        if self._pending:
            self._removed = 0
            self._on_begin()
            total = sum(unit.count_outputs() for unit in self._pending.values())
            with (
                Meter(total, f"{plan.recipe.noun}s") as meter,
                Progress(meter, everywhere=self._cluster is not None) as self._progress,
            ):
                for name in state.share(self._pending, self._process, at_once=self._workers):
                    self._progress.finish(self._pending[name].count_outputs())
            if plan.writer.file_per != "image":
                found = self._reconcile(self._is_whole)
                if found.units:
                    raise OutputError(f"{plan.store.location}: another run replaced files; let it end first")
                self._delete(found.void)
        keep_stamps(state, held, {key: self._stamps[key] for key in self._read})
        return self._finish(found.unwritten)

    def _delete(self, void: Mapping[str, Sequence[str]]) -> None:
        """Delete records, after those of their files that no other record names."""
        for name, paths in void.items():
            self._plan.store.delete_all(paths)
            self._state.delete_record(name)
            self._removed += len(paths)

    # --- beginning

    def _refuse_unrecorded(self) -> None:
        """Raise an OutputError if the output contains files that no run recorded."""
        plan, store = self._plan, self._plan.store
        names = sorted({variant.folder.partition("/")[0] for variant in plan.variants})
        paths = store.map(self._find_unrecorded, names)
        arrays = compress(plan.writer.arrays, store.map(store.exists, plan.writer.arrays))
        found = chain(filter(None, paths), arrays)
        hint = "; move the hidden state folder of a set with it" * plan.has_classes_at_root
        self._state.refuse_unrecorded(found, f", or --overwrite{hint}")

    def _check_mirrored(self) -> None:
        """Raise an AnotherSetError if an output of this run was a repeated file of an earlier one."""
        plan = self._plan
        for variant in plan.variants if plan.mirror else ():
            record = self._state.read_record(name_mirror(variant.folder)) or Record()
            repeated = {file.path for file in record.files}
            names = list_files(plan.source, plan.keys)
            if both := [name for name in names if variant.path(name) in repeated]:
                own = f"{both[0]!r} as a label map, an image in this run"
                raise AnotherSetError(f"{plan.store.location}: created with {own}. {START_OVER}")

    def _find_unrecorded(self, folder: str) -> str | None:
        """Return a file in a folder of the output other than those of its state; None if there is none."""
        paths = (entry.path for entry in self._plan.store.list(folder))
        return next((path for path in paths if not path.startswith(f"{STATE}/")), None)

    def _reconcile(self, is_whole: Callable[[Record], bool]) -> Pending:
        """Compare this run's part of the plan with all records; delete the damaged ones."""

        def read_records() -> Iterator[tuple[str, Record]]:
            for name, record in self._state.read_records():
                if record is None:
                    self._state.delete_record(name)
                elif record.images:
                    self._losses |= list_losses(record)
                    self._orientations |= list_orientations(record)
                    self._notes |= index_notes(record.notes)
                    yield name, record

        def is_current(file: WrittenFile) -> bool:
            return measure_file(self._plan.store, file.path) == (file.size, file.sha256)

        self._listing = None
        return reconcile(self._plan, self._own_units, self._sizes, read_records, is_whole, is_current)

    def _stands(self, record: Record) -> bool:
        """Return whether all files of a record exist, and its failures remain."""
        return self._is_whole(record) and not any(map(self._is_repaired, record.failures))

    def _is_whole(self, record: Record) -> bool:
        """Return whether all files of a record exist with the recorded sizes."""
        store, paths = self._plan.store, [file.path for file in record.files]
        if not store.is_local and self._listing is None:
            # One listing serves all records.
            self._listing = {entry.path: entry.size for entry in store.list()}
        held = self._listing
        sizes = store.sizes(paths) if held is None else (held.get(path, -1) for path in paths)
        return [*sizes] == [file.size for file in record.files]

    def _is_repaired(self, failure: Failure) -> bool:
        """Return whether an image or variant that failed before can be created now."""
        plan, key = self._plan, failure["key"]
        with suppress(Exception):
            image = plan.recipe.prepare(plan.source.open(key))
            for variant in plan.variants:
                if variant.folder == failure.get("variant"):
                    # The frames of a large photograph would fill memory.
                    frames = plan.recipe.stream(variant, key, image)
                    deque(frames or [plan.recipe.make(variant, key, image)], maxlen=0)
            return True
        return False

    def _check_identities(self, known: Mapping[str, str]) -> None:
        """Compare a few images whatever their stamps, which programs can restore, before a change."""
        plan = self._plan
        keys = [key for key, identity in known.items() if identity]
        for key in {keys[len(keys) * index // _LOOKED_AT] for index in range(_LOOKED_AT)} if keys else ():
            # An image that cannot be read fails again when it is processed.
            with suppress(ImageError, OSError):
                identity = plan.source.identify(key)
                check_identity(plan.source.location, plan.store.location, key, known[key], identity)

    # --- processing

    def _process(self, names: Sequence[str]) -> Iterator[str]:
        """Process units; yield the name of each that no other run has claimed."""
        plan, jobs = self._plan, list[UnitJob]()
        common = plan.recipe, plan.source, plan.writer, self._state
        versions = plan.settings()["versions"] if self._cluster else {}
        for name in names:
            unit = self._pending[name]
            sizes = tuple(self._sizes[key] for key in unit.keys)
            jobs.append(UnitJob(*common, unit, sizes, versions))
        workers = JOBS_AHEAD if self._cluster else self._workers
        some = 1 if plan.store.is_local else max(1, min(_MOST_UNITS, len(jobs) // (2 * workers)))
        groups = (UnitJobs(tuple(jobs[start : start + some])) for start in range(0, len(jobs), some))
        outcomes: Iterator[list[Outcome]] = submit_jobs(
            {group.jobs[0].unit.name: group for group in groups},
            lambda found: found[0].name,
            self._workers,
            self._progress,
            self._cluster,
        )
        return filter(None, map(self._count, chain.from_iterable(outcomes)))

    def _count(self, outcome: Outcome) -> str:
        """Add the outcome of a unit to those of this run; return its name, or "" if another run has it."""
        if outcome.claimed:
            return ""
        unit = self._pending[outcome.name]
        self._made, self._size = self._made + outcome.made, self._size + outcome.size
        self._failures += outcome.failures
        self._complaints += outcome.complaints
        self._losses |= outcome.losses
        self._orientations |= outcome.orientations
        self._notes |= index_notes(outcome.notes)
        self._own += unit.count_outputs()
        self._read.update(unit.keys)
        self._log(unit, outcome)
        return outcome.name

    # --- the end

    def _finish(self, unwritten: list[str]) -> RunResult:
        """Finish the set, unless some shards are unfinished, and return the result of this run."""
        plan, state, is_sharded = self._plan, self._state, self._shard[1] > 1
        # Several units may read the same image, for different variants.
        each_once = {(each["key"], each.get("variant")): each for each in self._failures}
        failures = sorted(each_once.values(), key=lambda failure: failure["key"])
        refused = [{"key": key, "reason": reason} for key, reason in plan.refused.items()]
        remarks, waiting = self._describe(), list[int]()
        if plan.mirror:
            # Another run may have written the same images for other variants, or other images.
            mirror = plan.mirror.extend(list_files(plan.source, self._summary.attempted))
            beside, not_repeated = mirror.list_files()
            refused += not_repeated
            remarks += [*mirror.describe_clean_pictures(beside), *mirror.describe_ways_back(beside)]
            for variant in plan.variants:
                record = mirror.make_record(variant.folder, beside)
                self._put_files(name_mirror(variant.folder), record, partial(mirror.copy, variant.folder))
        self._put_companions(refused)
        # What this run has changed is no copy of a finished set.
        least = Standing.COPIED if self._standing >= Standing.COPIED else Standing.FINISHED
        if not is_finished(state, least):
            if is_sharded:
                records = (record for _, record in state.read_records())
                waiting = list_unfinished(plan, records, self._shard[1])
            if not waiting:
                plan.store.delete(MANIFEST)
                standing = finish(state)
                refused, failures = ([], standing) if is_sharded else (refused, failures)
        return RunResult(
            self._made,
            self._asked - self._own,
            self._size,
            time.monotonic() - self._started,
            failures if waiting else [*refused, *failures],
            waiting,
            [] if waiting else unwritten,
            self._removed,
            plan.store.location,
            (*remarks, *describe_complaints(self._complaints, plan.source.medium.name)),
        )

    def _describe(self) -> list[str]:
        """Return remarks on the images, whoever has processed them."""
        plan, count = self._plan, len(self._plan.keys)
        tag = "kept in their files" if plan.writer.encoder.keeps_tags else "dropped"
        fate = f"pixels as stored, and the tag is {tag}"
        return [
            *plan.remarks,
            *plan.source.remarks(),
            *describe_losses(self._losses, count),
            *plan.recipe.describe_notes(self._notes.values()),
            *describe_orientations(self._orientations.values(), count, fate),
        ]

    def _put_companions(self, refused: list[Failure]) -> None:
        """Write the small files about the whole set, and their record, which has the `refused` images."""
        plan, folders = self._plan, [variant.folder for variant in self._plan.variants]
        listing = SetListing(plan.keys, plan.source.label, lambda: plan.source.classes, self._list_failed)
        files = {
            **plan.writer.list_companions(listing, folders),
            **plan.recipe.list_companions(partial(self._list_all, listing), plan.writer),
        }
        if plan.mirror:
            # What is mirrored may be pictures too; the list of keys holds for variants of earlier runs too.
            files[KEYS] = join_names(self._list_all(listing).keys)
            earlier = (folder for each in self._state.plans() for folder in each["manifest"]["variants"])
            folders = sorted({*folders, *earlier})
        written = [
            WrittenFile(path, len(data), hashlib.sha256(data).hexdigest()) for path, data in files.items()
        ]
        record = Record({}, folders, written, refused)
        self._put_files(COMPANIONS, record, lambda store, path: store.put(path, files[path]))

    def _list_failed(self) -> set[tuple[str, str]]:
        """Return the failed outputs of this run's images."""
        is_known = self._standing >= Standing.COPIED
        return _name_outputs(self._failures if is_known else self._summary.failures)

    def _list_all(self, listing: SetListing) -> SetListing:
        """Return the images of this run and of all others."""
        known = {*self._plan.keys, *self._summary.attempted}
        keys = tuple(filter(known.__contains__, self._plan.source.keys()))
        return replace(listing, keys=keys, failed=lambda: _name_outputs(self._summary.failures))

    @cached_property
    def _summary(self) -> RecordSummary:
        """Return the content of all records after the work, which other runs may have done."""
        return RecordSummary(self._state)

    def _put_files(self, name: str, record: Record, write: Callable[[Store, str], None]) -> None:
        """Write a `record` of files about the whole set, and its files, unless they exist."""
        store, state, held = self._plan.store, self._state, self._state.read_record(name) or Record()
        # Shards that are merged know only their own failures, which matter only to files.
        if record.files or name != COMPANIONS:
            made = self._standing >= Standing.COPIED and held.shared
            record = replace(
                record, shared=made or self._summary.identify(name, record.variants, self._plan.keys)
            )
        if held.to_bytes() == record.to_bytes() and self._is_whole(record):
            return
        # Comes first, so that `verify` accepts no set that lacks some of the others.
        store.delete(MANIFEST)
        store.delete_all(file.path for file in held.files)
        if held.files:
            state.delete_record(name)
        with store.open_flight() as flight:
            for file in record.files:
                write(flight, file.path)
        state.put_record(name, record)


def _name_outputs(failures: Iterable[Failure]) -> set[tuple[str, str]]:
    """Return key and folder of each failed output; folder "" means all variants."""
    return {(each["key"], each.get("variant", "")) for each in failures}


def discard(state: SetLedger, name: str) -> None:
    """Delete a record and its files."""
    if record := state.read_record(name):
        state.root.delete_all(file.path for file in record.files)
    state.delete_record(name)


def clear(state: SetLedger) -> None:
    """Delete everything that runs of any version recorded in an output, and nothing else."""
    folders, root = {""}, state.root
    for _, record in state.read_records(any_version=True):
        for file in record.files if record else ():
            parts = file.path.split("/")[:-1]
            folders |= {"/".join(parts[:1]), "/".join(parts[:2])}
    about = read_sums(root.read(MANIFEST_SUMS)) if root.exists(MANIFEST_SUMS) else ()
    sums, frames = list_checksums(root)
    named = (ERRORS, NOTES, *about, MANIFEST_SUMS, *sums, *frames)
    # Comes first, so that `verify` accepts no set that lacks some of the others.
    root.delete(MANIFEST)
    root.delete_all(path for path in named if path.rpartition("/")[0] in folders)
    # Records come last, so that a run that is killed here can be repeated.
    for name, record in state.read_records(any_version=True):
        root.delete_all(file.path for file in (record.files if record else ()))
        state.delete_record(name)
    state.clear()
