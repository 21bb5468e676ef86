"""Reconciliation of a plan with the records of earlier runs: what to create, and what to delete.

A file belongs to one record. If a file contains many images, the record that another one replaces stays, with
its files, until all files that replace them exist. No file that a standing record names is deleted.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from robustgen.files.ledger import Failure, Record
from robustgen.files.set_files import START_OVER, AnotherSetError, WrittenFile
from robustgen.sets.dataset.plan import Plan
from robustgen.sets.dataset.state import Coverage
from robustgen.sets.formats.base import WorkUnit, digest_content


@dataclass(frozen=True)
class Pending:
    """Difference between an output and a plan: missing units, and records in excess.

    Attributes
    ----------
    units : list of WorkUnit
        Units, or the missing parts of units, that this run creates.
    void : mapping of str to list of str
        Name of each record to delete, to the files that must be deleted before it.
    failures : list of dict
        Recorded failures of the images of this run.
    unwritten : list of str
        Arrays that were not written yet, or because some of their images failed.
    identities : mapping of str to str
        Image to the identity of its source file when its outputs were created; "" if unknown.
    """

    units: list[WorkUnit]
    void: Mapping[str, list[str]]
    failures: list[Failure]
    unwritten: list[str]
    identities: Mapping[str, str]


def reconcile(
    plan: Plan,
    own: Sequence[WorkUnit],
    sizes: Mapping[str, int],
    read_records: Callable[[], Iterable[tuple[str, Record]]],
    is_whole: Callable[[Record], bool],
    is_current: Callable[[WrittenFile], bool],
) -> Pending:
    """Compare a plan with all records and files.

    Parameters
    ----------
    plan : Plan
    own : sequence of WorkUnit
        Units of the plan that this run creates.
    sizes : mapping of str to int
        Bytes of each source image of the plan.
    read_records : callable
        Yields the name of each record of images, and the record.
    is_whole : callable
        Returns whether all files of a record exist with the recorded sizes, and its failures remain.
    is_current : callable
        Returns whether a file has the recorded content.

    Raises
    ------
    AnotherSetError
        The output was created from another source, or this run would replace more than it creates.
    """
    view, keys = _PlanView(plan, sizes), {key for unit in own for key in unit.keys}
    identities = dict.fromkeys(plan.keys, "")
    standing, void, late = dict[str, Record](), dict[str, Record](), dict[str, Record]()
    for name, record in read_records():
        change, is_replaced = view.find_change(record), view.is_replaced(record)
        if change or is_replaced:
            view.check_creation(record, change)
            (late if is_replaced and change not in sizes else void)[name] = record
        elif is_whole(record):
            # A whole set has millions of files.
            standing[name] = replace(record, files=record.files[:1])
        elif record.images.keys() <= keys and view.folders.issuperset(record.variants):
            void[name] = record
        found = record.images.items()
        identities |= {key: each for key, (size, each) in found if each and sizes.get(key) == size}
    stale = {file.path: file for record in (*void.values(), *late.values()) for file in record.files}
    spared = set[str]()
    for name, record in read_records() if stale else ():
        if name in standing:
            named = [file for file in record.files if file.path in stale]
            spared.update(file.path for file in named)
            if not all(file == stale[file.path] or is_current(file) for file in named):
                del standing[name]
    made, written = Coverage(), Coverage()
    for record in standing.values():
        made.add(parts := _list_parts(plan, record), record.variants)
        written.add(parts if record.files else (), record.variants)
    for name, record in late.items():
        others = (unit for unit in view.units if not unit.folders.isdisjoint(record.variants))
        if not any(_find_lacking(plan, unit, written) for unit in others):
            void[name] = record
    pending = [lacking for unit in own if (lacking := _find_lacking(plan, unit, made))]
    arrays = zip(plan.writer.arrays, view.units, strict=False)
    failures = (failure for record in standing.values() for failure in record.failures)
    return Pending(
        [replace(u, expected={key: identities[key] for key in u.keys if identities[key]}) for u in pending],
        {name: [f.path for f in record.files if f.path not in spared] for name, record in void.items()},
        [failure for failure in failures if plan.writer.file_per != "image" or failure["key"] in keys],
        [name for name, unit in arrays if _find_lacking(plan, unit, written)],
        identities,
    )


def list_unfinished(plan: Plan, records: Iterable[Record | None], shards: int) -> list[int]:
    """Return the numbers of the shards of a plan that its records, None if damaged, do not cover."""
    ended = Coverage()
    for record in records:
        if record and record.images:
            ended.add(_list_parts(plan, record), record.variants)
    units = enumerate(plan.cut())
    return sorted({index % shards + 1 for index, unit in units if _find_lacking(plan, unit, ended)})


def _list_parts(plan: Plan, unit: WorkUnit | Record) -> Iterable[str]:
    """Return what a unit writes and a record contains: images, or else a file, by its content."""
    keys = unit.keys if isinstance(unit, WorkUnit) else unit.images
    if plan.writer.file_per == "image":
        return keys
    # All variants of an array share one file.
    folders = [variant if isinstance(variant, str) else variant.folder for variant in unit.variants]
    return [digest_content(keys, folders if plan.writer.file_per == "operation" else (), unit.shared)]


def _find_lacking(plan: Plan, unit: WorkUnit, made: Coverage) -> WorkUnit | None:
    """Return the part of `unit` that is not `made`, as images times variants; None if there is none."""
    parts = _list_parts(plan, unit)
    lacking = {part: rest for part in parts if (rest := unit.folders - made.get(part, frozenset()))}
    if not lacking:
        return None
    wanted = frozenset[str]().union(*lacking.values())
    keys = tuple(lacking) if plan.writer.file_per == "image" else unit.keys
    return replace(unit, keys=keys, variants=tuple(v for v in unit.variants if v.folder in wanted))


class _PlanView:
    """Plan, and the `sizes` of its source images, with which records are compared."""

    def __init__(self, plan: Plan, sizes: Mapping[str, int]) -> None:
        self._plan, self._sizes, self.units = plan, sizes, [*plan.cut()]
        self.folders = {variant.folder for variant in plan.variants}

    @cached_property
    def _known(self) -> frozenset[str]:
        """Return the keys of all images of the source, which only images outside the plan need."""
        return frozenset([*self._plan.source.keys(), *self._plan.refused])

    @cached_property
    def _wanted(self) -> frozenset[str]:
        """Return the parts of all units, and their lists of images."""
        lists = (digest_content(unit.keys, (), unit.shared) for unit in self.units)
        return frozenset([*lists, *(part for unit in self.units for part in _list_parts(self._plan, unit))])

    def find_change(self, record: Record) -> str:
        """Return an image of a record that has another size now, or that is gone; "" if there is none.

        Raises
        ------
        AnotherSetError
            An image that was processed is not in this source.
        """
        gone = {key for key in record.images if key not in self._sizes and key not in self._known}
        failed = {failure["key"] for failure in record.failures if "variant" not in failure}
        maps = self._plan.mirror.maps if self._plan.mirror else ()
        if corrupted := gone.intersection(maps):
            own = f"{min(corrupted)!r} as an image, a label map in this run"
            raise AnotherSetError(f"{self._plan.store.location}: created with {own}. {START_OVER}")
        if foreign := gone - failed:
            own = f"has {min(foreign)!r}, not {min(self._known, default='nothing')!r}"
            raise AnotherSetError(f"{self._plan.store.location}: of another source: {own}. {START_OVER}")
        changed = (key for key, (size, _) in record.images.items() if self._sizes.get(key, size) != size)
        return next(changed, min(gone, default=""))

    def is_replaced(self, record: Record) -> bool:
        """Return whether the plan creates files of many images in place of those of a record."""
        is_separate = self._plan.writer.file_per == "image"
        if is_separate or not self._wanted.isdisjoint(_list_parts(self._plan, record)):
            return False
        has_same_images = digest_content(record.images, (), record.shared) in self._wanted
        return not has_same_images or not self.folders.isdisjoint(record.variants)

    def check_creation(self, record: Record, change: str) -> None:
        """Raise an AnotherSetError if the plan does not create all that it would replace."""
        given_up = {*self._sizes, *self._plan.refused, change}
        missing = [key for key in record.images if key not in given_up and key in self._known]
        missing += [folder for folder in record.variants if folder not in self.folders]
        if missing:
            cause = f"{change!r} has changed; it was created" if change else "its files were created"
            own = f"{cause} together with {missing[0]!r}, which this run lacks"
            raise AnotherSetError(f"{self._plan.store.location}: {own}; create the whole set. {START_OVER}")
