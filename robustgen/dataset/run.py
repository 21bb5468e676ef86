"""A run: find the work units without a record, process them, and finish the set."""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from robustgen.dataset.manifest import Summary, source_digest
from robustgen.dataset.names import ERRORS, FRAMES, MANIFEST, STATE, SUMS
from robustgen.dataset.outputs import blame_output
from robustgen.dataset.plan import Plan
from robustgen.dataset.produce import AnotherImageError, Outcome, Production, check_identity, measure_image
from robustgen.dataset.records import Failure, FilesRecord, ImagesRecord
from robustgen.dataset.sharing import Sharing
from robustgen.dataset.state import START_OVER, OutputState
from robustgen.display.progress import Meter
from robustgen.errors import OutputError
from robustgen.execution import Executor, carry_out, count_cores
from robustgen.execution.progress import Progress
from robustgen.formats import WorkUnit, WrittenFile

_COMPANIONS, _REFUSED = "companions", "refused"
# Number of source images compared with the recorded identities before the work begins.
_LOOKED_AT = 4


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
    """

    made: int
    kept: int
    size: int
    seconds: float
    failures: list[Failure]
    waiting: list[int]
    incomplete: list[str]


UnitLog = Callable[[WorkUnit, Outcome], None]
"""Callback for each unit that this run has processed."""


def run(
    plan: Plan,
    *,
    overwrite: bool = False,
    shard: tuple[int, int] | None = None,
    cluster: Executor | None = None,
    log: UnitLog = lambda unit, outcome: None,
    on_begin: Callable[[], None] = lambda: None,
) -> RunResult:
    """Execute `plan`, or one shard of it. Any number of runs can work on one output at once.

    Parameters
    ----------
    plan : Plan
    overwrite : bool
        Start over if the output was created with different settings or from another source.
    shard : (int, int), optional
        (3, 16): every sixteenth work unit, from the third.
    cluster : Executor, optional
        Runs the work units instead of processes of this machine.
    log : callable, optional
        Called with each unit that this run has processed, and its outcome.
    on_begin : callable, optional
        Called before the first output is created; not called if there is nothing to do.

    Raises
    ------
    OutputError
        The output cannot be used.
    WriteError
        The output can no longer be written; finished units are kept.
    """
    if overwrite and shard:
        raise OutputError("--overwrite cannot be combined with --shard, because shards share one output")
    state = OutputState(plan.store, beside=plan.is_beside)
    lies_beside = not state.location.startswith(f"{plan.store.location}/")
    if lies_beside and state.list_records() and next(iter(plan.store.list()), None) is None:
        # The set was removed, but the state folder next to it was not.
        state.clear()
        state = OutputState(plan.store, beside=plan.is_beside)
    with _clean_up(plan, state):
        for is_last in (not overwrite, True):
            this = _Run(plan, state, shard or (1, 1), cluster, log)
            try:
                this.begin(overwrite)
                if this.pending:
                    on_begin()
                    this.make_pending()
                return this.finish()
            except AnotherImageError:
                if is_last:
                    raise
                clear(state)
        raise AssertionError


def list_waiting(plan: Plan, shards: int) -> list[int]:
    """Return the numbers of the unfinished `shards` of `plan`; 1 if only the manifest is missing."""
    state = OutputState(plan.store, beside=plan.is_beside)
    with Summary(state) as summary:
        waiting = _Run(plan, state, (1, shards)).list_waiting(summary)
    return waiting or [1] * (not plan.store.exists(MANIFEST))


@contextmanager
def _clean_up(plan: Plan, state: OutputState) -> Iterator[None]:
    """Remove temporary files, and everything written by a run that failed before its work began."""
    with blame_output(plan.store):
        try:
            yield
        except BaseException:
            if state.is_ours and not state.list_records() and not state.list_claims():
                state.clear()
            raise
        finally:
            plan.store.clean()


@dataclass
class _Held:
    """Part of a plan that already exists in the output.

    Attributes
    ----------
    units : set of str
        Names of the finished units of the plan.
    made : dict
        For one file per image: key to the folders of the variants in other records. For files with many
        images: digest of their keys to the folders of the variants with such a file.
    stale : dict of str to list of str
        Name of each record whose files the plan replaces, to these files.
    identities : dict of str to str
        Key to the identity of the source image when its outputs were created.
    """

    units: set[str] = field(default_factory=set)
    made: dict[str, frozenset[str]] = field(default_factory=dict)
    stale: dict[str, list[str]] = field(default_factory=dict)
    identities: dict[str, str] = field(default_factory=dict)


class _Run:
    """One run over a plan."""

    def __init__(
        self,
        plan: Plan,
        state: OutputState,
        shard: tuple[int, int],
        cluster: Executor | None = None,
        log: UnitLog = lambda unit, outcome: None,
    ) -> None:
        self._plan, self._state, self._shard, self._cluster = plan, state, shard, cluster
        self._log = log
        self._units = {unit.name: unit for unit in plan.cut()}
        self._started = time.monotonic()
        self._sizes = {key: measure_image(plan.source, key) for key in plan.keys}
        self._workers = plan.jobs or count_cores()
        self._listing: dict[str, int] | None = None
        self._made, self._own, self._size, self._failures = 0, 0, 0, list[Failure]()
        self._new_plan = ""
        self._sharing = Sharing(state, at_once=self._workers)
        self.pending: dict[str, WorkUnit] = {}

    # --- beginning

    def begin(self, overwrite: bool) -> None:
        """Find the missing units."""
        plan, (part, parts) = self._plan, self._shard
        held = self._settle(self._units, overwrite)
        own = [unit for place, unit in enumerate(self._units.values()) if place % parts == part - 1]
        self._asked, self._stale = sum(unit.count_outputs() for unit in own), held.stale
        pending = [lacking for unit in own if (lacking := self._find_lacking(unit, held))]
        if pending:
            plan.source.make_ready()
            plan.recipe.make_ready()
            self.pending = {unit.name: unit for unit in self._expect(pending, held.identities)}
        if pending or held.stale:
            # An existing manifest must describe all records, even if this run is killed.
            plan.store.delete(MANIFEST)

    def _settle(self, units: Mapping[str, WorkUnit], overwrite: bool) -> _Held:
        """Agree on settings with earlier and simultaneous runs; return the existing part of the plan."""
        plan, state = self._plan, self._state
        settings, about = plan.settings(), plan.about()
        parameters = settings.pop("parameters")
        about["source"]["digest"] = source_digest(self._sizes)
        try:
            if not state.settings() and not overwrite:
                self._refuse_unrecorded()
            self._new_plan = state.agree(settings, about, parameters)
            return self._list_held(units)
        except OutputError:
            if not overwrite:
                raise
            clear(state)
            state.agree(settings, about, parameters)
            return _Held()

    def _refuse_unrecorded(self) -> None:
        """Raise an OutputError if the output contains files that no run recorded."""
        plan, store = self._plan, self._plan.store
        for name in sorted({variant.folder.partition("/")[0] for variant in plan.arms}):
            entries = (entry.path for entry in store.list(name) if not entry.path.startswith(f"{STATE}/"))
            if found := next(entries, None) or next(filter(store.exists, plan.writer.arrays), None):
                remark = " (move the hidden state folder of a set with it)" * plan.is_beside
                raise OutputError(
                    f"{store.location}: contains {found}, which no run of robustgen recorded{remark}; "
                    "choose another --output, or --overwrite"
                )

    def _list_held(self, units: Mapping[str, WorkUnit]) -> _Held:
        """Return the recorded outputs whose files and source images are unchanged.

        Raises
        ------
        OutputError
            The output was created from another source.
        """
        held, known = _Held(), {*self._plan.source.keys(), *self._plan.refused}
        shared = dict[frozenset[str], frozenset[str]]()
        separable = self._plan.writer.joint and self._plan.writer.is_separable
        files = {_digest(unit.keys, unit.shared) for unit in units.values()} if separable else set()
        for name, record in self._state.read_records():
            if record is None:
                self._state.delete_record(name)
                continue
            for key, (size, identity) in record.images.items():
                # Outputs of an image whose size has changed are created again.
                if identity and size == self._sizes.get(key):
                    held.identities[key] = identity
            if isinstance(record, FilesRecord):
                self._check_images(record, record.images.keys() - known, known)
                own = _digest(record.images, record.shared)
                if name not in units and record.images and own not in files:
                    held.stale[name] = [file.path for _, file in record.files()]
                elif record.images and not self._has_changed(record):
                    lost = self._find_lost(record)
                    held.units |= set() if lost else {name}
                    held.made[own] = held.made.get(own, frozenset()).union(record.variants) - lost
            else:
                kept = self._forget_changed(name, record, known)
                missing = self._find_missing(kept)
                if name in units and kept is record and not missing and not record.failures:
                    held.units.add(name)
                    continue
                for key, folders in kept.list_made():
                    every = held.made.get(key, frozenset()) | (folders - missing.get(key, frozenset()))
                    held.made[key] = shared.setdefault(every, every)
        return held

    def _check_images(self, record: FilesRecord | ImagesRecord, unknown: set[str], known: set[str]) -> None:
        """Raise an OutputError if a record has images that the source lacks, except for failed images."""
        failed = {failure["key"] for failure in record.failures if "arm" not in failure}
        if foreign := unknown - failed:
            raise OutputError(
                f"{self._plan.store.location}: created from another source: it contains {min(foreign)!r}, "
                f"this source contains {min(known, default='nothing')!r}. {START_OVER}"
            )

    def _has_changed(self, record: FilesRecord) -> bool:
        """Return whether images of a record have changed, or failed images can now be loaded."""
        if any(self._sizes.get(key, size) != size for key, (size, _) in record.images.items()):
            return True
        for key in {failure["key"] for failure in record.failures}:
            with suppress(Exception):
                self._plan.recipe.prepare(self._plan.source.load(key))
                return True
        self._failures += record.failures
        return False

    def _find_lost(self, record: FilesRecord) -> frozenset[str]:
        """Return the folders of the variants with files missing or of another size; all for arrays."""
        files = [*record.files()]
        sizes = self._find_sizes(file.path for _, file in files)
        lost = {folder for (folder, file), size in zip(files, sizes, strict=True) if size != file.size}
        separable = self._plan.writer.is_separable and len(files) == len(record.variants)
        return frozenset(lost if separable else record.variants if lost or not files else ())

    def _find_sizes(self, paths: Iterable[str]) -> list[int]:
        """Return the sizes of files; in a remote store, from one listing for all records."""
        store = self._plan.store
        if store.is_local:
            return [*store.sizes(paths)]
        if self._listing is None:
            self._listing = {entry.path: entry.size for entry in store.list()}
        return [self._listing.get(path, -1) for path in paths]

    def _forget_changed(self, name: str, record: ImagesRecord, known: set[str]) -> ImagesRecord:
        """Delete the outputs of images that have changed, because this run may not create them again."""
        unknown = record.images.keys() - known
        self._check_images(record, unknown, known)
        changed = {key for key, (size, _) in record.images.items() if self._sizes.get(key, size) != size}
        if not changed and not unknown:
            return record
        for key, folder, file in record.list_outputs():
            if key in changed:
                self._plan.store.delete(f"{folder}/{file.path}" if folder else file.path)
        kept = record.without(changed | unknown)
        self._state.put_record(name, kept)
        return kept

    def _find_missing(self, record: ImagesRecord) -> dict[str, frozenset[str]]:
        """Return, for each image, the folders of the variants with files missing or of another size."""
        wanted = [(file.path, file.size) for _, file in record.files()]
        sizes = self._find_sizes(path for path, _ in wanted)
        if sizes == [size for _, size in wanted]:
            return {}
        bad = {path for (path, size), found in zip(wanted, sizes, strict=True) if size != found}
        missing: dict[str, frozenset[str]] = {}
        for key, folder, file in record.list_outputs():
            if (f"{folder}/{file.path}" if folder else file.path) in bad:
                missing[key] = missing.get(key, frozenset()) | {folder}
        return missing

    def _find_lacking(self, unit: WorkUnit, held: _Held) -> WorkUnit | None:
        """Return the missing part of `unit`; None if the unit is complete."""
        if unit.name in held.units:
            return None
        folders = frozenset(variant.folder for variant in unit.variants)
        if self._plan.writer.joint:
            made = (
                held.made.get(_digest(unit.keys, unit.shared), frozenset())
                if self._plan.writer.is_separable
                else frozenset()
            )
            lacking = dict.fromkeys(unit.keys, folders - made) if folders - made else {}
        else:
            own = {key: folders - held.made.get(key, frozenset()) for key in unit.keys}
            lacking = {key: wanted for key, wanted in own.items() if wanted}
        if not lacking:
            return None
        wanted = frozenset[str]().union(*lacking.values())
        return replace(
            unit,
            keys=tuple(lacking),
            variants=tuple(variant for variant in unit.variants if variant.folder in wanted),
            lacking={key: own for key, own in lacking.items() if own != wanted},
        )

    def _expect(self, pending: list[WorkUnit], known: Mapping[str, str]) -> list[WorkUnit]:
        """Return `pending` with the `known` identities of the source images of existing outputs.

        Raises
        ------
        AnotherImageError
            One of a few sampled images has changed; the output is left unchanged.
        """
        keys, plan = [*known], self._plan
        for key in {keys[len(keys) * place // _LOOKED_AT] for place in range(_LOOKED_AT)} if keys else ():
            try:
                _, identity = plan.source.read(key)
                check_identity(plan.source.location, plan.store.location, key, known[key], identity)
            except AnotherImageError:
                if self._new_plan:
                    self._state.store.delete(self._new_plan)
                raise
            except Exception:
                # The image fails again when it is processed, and is recorded then.
                continue
        return [
            replace(unit, expected={key: known[key] for key in unit.keys if key in known}) for unit in pending
        ]

    # --- processing

    def make_pending(self) -> None:
        """Process all pending units, or wait for other runs to do so, and show progress."""
        total = sum(unit.count_outputs() for unit in self.pending.values())
        with (
            Meter(total, f"{self._plan.recipe.noun}s") as meter,
            Progress(meter, everywhere=self._cluster is not None) as self._progress,
        ):
            for name in self._sharing.carry_out(self.pending, self._make, self._state.has_record):
                self._progress.finish(self.pending[name].count_outputs())

    def _make(self, names: Sequence[str], insist: bool) -> Iterator[tuple[str, bool]]:
        """Process units; yield the name of each, and False if another run has claimed it, else True."""
        plan, jobs = self._plan, dict[str, Production]()
        common = plan.recipe, plan.source, plan.writer, self._state
        versions = plan.settings()["versions"] if self._cluster else {}
        for name in names:
            unit = self.pending[name]
            sizes = tuple(self._sizes[key] for key in unit.keys)
            jobs[name] = Production(*common, unit, sizes, plan.labels(unit), insist, versions)
        outcomes: Iterator[Outcome] = carry_out(
            jobs, lambda outcome: outcome.name, self._workers, self._progress, self._cluster
        )
        for outcome in outcomes:
            self._made, self._size = self._made + outcome.made, self._size + outcome.size
            self._failures += outcome.failures
            self._sharing.slowest = max(self._sharing.slowest, outcome.seconds)
            if not outcome.claimed:
                self._own += self.pending[outcome.name].count_outputs()
                self._log(self.pending[outcome.name], outcome)
            yield outcome.name, not outcome.claimed

    # --- the end

    def finish(self) -> RunResult:
        """Finish the set, unless some shards are unfinished, and return the result of this run."""
        plan, state, is_sharded = self._plan, self._state, self._shard[1] > 1
        failures = sorted(self._failures, key=lambda failure: failure["key"])
        refused = [{"key": key, "reason": reason} for key, reason in plan.refused.items()]
        folders, waiting = [variant.folder for variant in plan.arms], list[int]()
        if plan.mirror:
            beside, not_repeated = plan.mirror.list_files()
            refused += not_repeated
            for folder in folders:
                name, record = f"mirror-{folder.replace('/', '-')}", plan.mirror.make_record(folder, beside)
                self._put_files(name, record, partial(plan.mirror.copy, plan.store, folder))
        self._put_files(_REFUSED, FilesRecord({}, folders, [], refused))

        def list_failed() -> set[tuple[str, str]]:
            made = (record for name, record in state.read_records() if record and name not in self._stale)
            return {(each["key"], each.get("arm", "")) for record in made for each in record.failures}

        files = plan.writer.list_companions(plan.listing(list_failed), folders)
        written = [
            WrittenFile(path, len(data), hashlib.sha256(data).hexdigest()) for path, data in files.items()
        ]
        self._put_files(
            _COMPANIONS, FilesRecord({}, folders, written, []), lambda path: plan.store.put(path, files[path])
        )
        if self._stale or state.fingerprint() != state.finished or not plan.store.exists(MANIFEST):
            with Summary(state, self._stale) as summary:
                if is_sharded:
                    waiting = self.list_waiting(summary)
                if not waiting:
                    plan.store.delete(MANIFEST)
                    standing = summary.finish()
                    refused, failures = ([], standing) if is_sharded else (refused, failures)
        return RunResult(
            self._made,
            self._asked - self._own,
            self._size,
            time.monotonic() - self._started,
            failures if waiting else [*refused, *failures],
            waiting,
            [] if waiting else plan.list_incomplete(),
        )

    def list_waiting(self, summary: Summary) -> list[int]:
        """Return the numbers of the unfinished shards."""
        attempted, waiting = summary.tally.attempted, set()
        for place, (name, unit) in enumerate(self._units.items()):
            folders = {variant.folder for variant in unit.variants}
            ended = name in summary.names or (
                not self._plan.writer.joint
                and all(attempted.get(key, frozenset()) >= folders for key in unit.keys)
            )
            if not ended:
                waiting.add(place % self._shard[1] + 1)
        return sorted(waiting)

    def _put_files(
        self, name: str, record: FilesRecord, write: Callable[[str], None] = lambda path: None
    ) -> None:
        """Write a `record` of files about the whole set, and its missing files."""
        store, state, wanted = self._plan.store, self._state, list(record.written)
        held = state.read_record(name)
        recorded = {file for _, file in held.files()} if held else set()
        sizes = self._find_sizes(file.path for file in wanted)
        lacking = [f for f, size in zip(wanted, sizes, strict=True) if f not in recorded or size != f.size]
        known_failures = [*held.failures] if held else []
        if not lacking and len(recorded) == len(wanted) and known_failures == [*record.failures]:
            return
        store.delete(MANIFEST)
        state.delete_record(name)
        for file in lacking:
            write(file.path)
        for path in {file.path for file in recorded} - {file.path for file in wanted}:
            store.delete(path)
        state.put_record(name, record)


def _digest(keys: Iterable[str], shared: str) -> str:
    return hashlib.sha256("\0".join([*keys, "", shared]).encode("utf-8", "surrogateescape")).hexdigest()


def clear(state: OutputState) -> None:
    """Delete everything that earlier runs recorded in an output, and nothing else."""
    folders = {""}
    for _, record in state.read_records():
        if record:
            folders.update(record.variants)
            for _, file in record.files():
                state.root.delete(file.path)
    for folder in folders:
        for name in (SUMS, FRAMES):
            state.root.delete(f"{folder}/{name}" if folder else name)
    for name in (MANIFEST, ERRORS):
        state.root.delete(name)
    state.clear()
