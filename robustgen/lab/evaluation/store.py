"""Folder of one model's predictions: its settings, finished variants and unfinished parts.

predictions.json                 settings that decide the predictions
fog/3.npz, tilt.npz              finished variants, see `robustgen.lab.evaluation.predictions`
.robustgen/records/fog/3.json    record of each finished variant
.robustgen/records/units/        records of work units, see `predicting` and `evaluating`
.robustgen/parts/fog/3/          rows of unfinished variants: one file per unit, named in its record
"""

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import ArgumentError, ConfigError, OutputError, SourceError
from robustgen.files.ledger import Differences, Failure, Ledger, Origin, Record, describe_differences
from robustgen.files.set_files import START_OVER, STATE, WrittenFile
from robustgen.files.storage import Store, open_store
from robustgen.files.text_files import describe_difference
from robustgen.lab.evaluation import predictions
from robustgen.lab.evaluation.predictions import ABOUT, Pieces, PredictionFile
from robustgen.pixels.benchmarks.kinds import Kind, Variant
from robustgen.sets.dataset.outputs import file_digest, open_output
from robustgen.sets.formats.base import WorkUnit
from robustgen.settings.fields import check_name

_PARTS: Final = f"{STATE}/parts"
# Entries of predictions.json that decide no prediction, and those that tell one set of images from another.
_NOTES, _IMAGES = ("origins", "compression"), ("digest", "source_digest", "keys")
_PREDICTIONS, _MOST_UNITS, _FEWEST_UNITS = 256, 4096, 16
# About the number of frames in a sequence.
_FRAMES = 32
# Units whose files are written at the same time on a server.
_MOST_UNRECORDED: Final = 8
VARIANTS_AT_ONCE: Final = 4
"""Variants whose files are written to a server at once, each from its parts, many at once."""


def name_folders(output: str | Path, names: Sequence[str]) -> list[str]:
    """Return the folder below `output` for the predictions of each model; equal names are numbered.

    Raises
    ------
    ConfigError
        A name cannot be that of a folder.
    """
    try:
        checked = [check_name(name) for name in names]
    except ArgumentError as error:
        raise ConfigError(f"--model: the name of its folder {error}") from error
    numbered = [name if names.count(name) == 1 else f"{name}-{i}" for i, name in enumerate(checked, 1)]
    return [f"{open_store(output).location}/{name}" for name in numbered]


def choose_unit_size(outputs: int, kind: Kind, batch: int) -> tuple[int, int]:
    """Return the number of outputs per batch, and of batches per unit, in a plan of so many `outputs`.

    A unit has at most 256 images or frames, or 1/4096 of a large plan: a minute of work for a model that
    predicts four images a second, or 1/4096 of the run. A plan has at least 16 units, and a unit at least one
    batch. A batch never contains frames of two sequences.
    """
    step, inputs = (batch, batch) if kind == "c" else (1, _FRAMES)
    predictions = outputs * inputs // step
    most = max(_PREDICTIONS, predictions // _MOST_UNITS)
    return step, max(1, min(most, predictions // _FEWEST_UNITS) // inputs)


class PredictionStore:
    """Folder of predictions.

    Parameters
    ----------
    state : Ledger
        Of the folder of predictions.

    Attributes
    ----------
    records : dict of str to Record
        Records of units and finished variants that this run has read or written.
    finished : list of str
        Folders of the variants that were finished before this run.
    pending : dict of str to Variant
        Folder and variant of those that were unfinished at the latest `find_pending`.
    """

    def __init__(self, state: Ledger) -> None:
        self.root, self.state = state.root, state
        self.records = {name: record for name, record in self.state.read_records() if record}
        self.finished = [name for name in self.records if not name.startswith("units/")]
        self.pending: dict[str, Variant] = {}

    @property
    def unrecorded(self) -> int:
        """Return the number of units to record at once, while the next ones are predicted."""
        return 1 if self.root.is_local else _MOST_UNRECORDED

    def find_pending(self, variants: Iterable[Variant], keys: Sequence[str], source: str) -> None:
        """List the unfinished ones of `variants` as `pending`.

        Raises
        ------
        SourceError
            Predictions cannot be read, or belong to other images than `keys` of the set at `source`.
        """
        variants = [*variants]
        # On a server, many files are looked at at once.
        known = self.root.map(lambda variant: self._has(variant, keys, source), variants)
        self.pending = {
            each.folder: each for each, is_known in zip(variants, known, strict=True) if not is_known
        }

    def _has(self, variant: Variant, keys: Sequence[str], source: str) -> bool:
        file = PredictionFile(self.root, predictions.path_of(variant.folder), variant)
        recorded = self.state.has_record(variant.folder)
        try:
            own = file.keys
        except SourceError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            if recorded:
                # The file was deleted.
                self.state.delete_record(variant.folder)
            return False
        if own != tuple(keys):
            reason = describe_difference(own, keys, "keys")
            raise SourceError(f"{file.location}: not the images of {source}: {reason}. {START_OVER}")
        # A run may have been killed before it recorded the file.
        parts = self.root.list(f"{_PARTS}/{variant.folder}")
        return recorded or next(parts, None) is None

    @property
    def failures(self) -> dict[str, str]:
        """Return the failures in the known records: image to reason."""
        # A thread may add records meanwhile.
        records = [*self.records.values()]
        return {each["key"]: each["reason"] for record in records for each in record.failures}

    # --- units

    def list_lacking(self, name: str, unit: WorkUnit) -> list[Variant]:
        """Return the pending variants of a `unit` whose predictions no known part contains."""
        record = self.records.get(name, Record())
        failed = Counter(failure["variant"] for failure in record.failures)
        parts = _list_parts(record)
        return [
            variant
            for variant in unit.variants
            if variant.folder in self.pending
            and failed[variant.folder] < len(unit.keys)
            and not self._has_part(parts.get(variant.folder))
        ]

    def find_lacking(self, name: str, unit: WorkUnit) -> list[Variant]:
        """Return what `list_lacking` returns, after a look at what other runs have written since."""
        lacking = self.list_lacking(name, unit)
        if lacking and (record := self.state.read_record(name)):
            self.records[name] = record
            lacking = self.list_lacking(name, unit)
        # Variants are finished in order, and their parts are deleted.
        if lacking and self.state.has_record(lacking[0].folder):
            lacking = [variant for variant in lacking if not self.state.has_record(variant.folder)]
        return lacking

    @cached_property
    def _listed(self) -> dict[str, int]:
        return {entry.path: entry.size for entry in self.root.list(_PARTS)}

    def _has_part(self, part: WrittenFile | None) -> bool:
        # The part may be newer than the listing.
        return part is not None and (
            part.size == self._listed.get(part.path) or [part.size] == [*self.root.sizes([part.path])]
        )

    def put_unit(
        self,
        name: str,
        rows: Mapping[Variant, Sequence[NDArray[Any]]],
        images: Mapping[str, Origin] | None = None,
        failures: Sequence[Failure] = (),
    ) -> None:
        """Write the predicted `rows` of a unit, in batches for each variant, and then its record."""
        with self.root.open_flight() as flight:
            parts = [
                self._put_part(flight, variant, name, batches) for variant, batches in rows.items() if batches
            ]
        record = Record(images or {}, [variant.folder for variant in rows], parts, failures)
        self.records[name] = record
        self.state.put_record(name, record)

    def _put_part(
        self, root: Store, variant: Variant, name: str, batches: Sequence[NDArray[Any]]
    ) -> WrittenFile:
        if len({rows.shape[1:] for rows in batches}) > 1:
            raise SourceError(f"{variant.folder}: its sequences differ in length")
        buffer = BytesIO()
        np.save(buffer, np.concatenate(batches), allow_pickle=False)
        path, data = f"{_PARTS}/{variant.folder}/{name.rpartition('/')[2]}.npy", buffer.getvalue()
        root.put(path, data)
        self._listed[path] = len(data)
        return WrittenFile(path, len(data), hashlib.sha256(data).hexdigest())

    # --- finished variants

    def finish(
        self,
        variant: Variant,
        units: Mapping[str, WorkUnit],
        keys: Mapping[str, str],
        labels: NDArray[Any] | None,
        make_entries: Callable[[Pieces], Mapping[str, NDArray[Any] | Pieces]],
    ) -> None:
        """Write and record the file of `variant`, and delete its parts, unless another run already has.

        Parameters
        ----------
        variant : Variant
        units : mapping of str to WorkUnit
        keys : mapping of str to str
            Image to its key in the file, for all images of which the file has predictions.
        labels : ndarray, optional
        make_entries : callable
            Returns the entries of the file for all predicted rows.
        """
        folder = variant.folder
        try:
            if not self.state.has_record(folder):
                pieces = self._read_parts(variant, units, keys)
                first = next(pieces)
                rows = Pieces((len(keys), *first.shape[1:]), first.dtype, chain([first], pieces))
                entries = make_entries(rows)
                written = predictions.write_entries(self.root, folder, [*keys.values()], labels, entries)
                self.state.put_record(folder, Record({}, [folder], [written]))
        except FileNotFoundError:
            if not self.state.has_record(folder):
                raise
        self.delete_parts(folder)

    def _read_parts(
        self, variant: Variant, units: Mapping[str, WorkUnit], keys: Container[str]
    ) -> Iterator[NDArray[Any]]:
        """Yield the rows of the images in `keys`; each part is read when needed."""
        shapes, folder = set[tuple[int, ...]](), variant.folder
        places = list[tuple[WrittenFile, list[bool]]]()
        for name, unit in units.items():
            if variant not in unit.variants:
                continue
            record = self.records[name]
            failed = {each["key"] for each in record.failures if each["variant"] == folder}
            if failed != {*unit.keys}:
                kept = [key in keys for key in unit.keys if key not in failed]
                places.append((_list_parts(record)[folder], kept))
        parts = self.root.map(
            lambda place: self.root.read(place[0].path), places, count_bytes=lambda place: place[0].size
        )
        for (part, kept), data in zip(places, parts, strict=True):
            if hashlib.sha256(data).hexdigest() != part.sha256:
                self.root.delete(part.path)
                raise OutputError(f"{self.root.location}/{part.path}: damaged; run the same command again")
            rows: NDArray[Any] = np.load(BytesIO(data), allow_pickle=False)
            shapes.add(rows.shape[1:])
            if len(shapes) > 1:
                raise SourceError(f"{folder}: its sequences differ in length")
            yield rows[kept]

    def finish_pending(self, write: Callable[[str], None]) -> None:
        """Write all pending variants with `write`, or wait for other runs to do so, and delete all parts."""
        deque(self.state.share_one_by_one(self.pending, write, at_once=VARIANTS_AT_ONCE), maxlen=0)
        # Another run may have finished one while this run predicted units of it again.
        deque(self.root.map(self.delete_parts, self.pending, VARIANTS_AT_ONCE), maxlen=0)
        self.state.delete_claims()

    def delete_parts(self, folder: str) -> None:
        """Delete all parts of a finished variant."""
        for place in ("records/units", "parts"):
            self.state.store.delete_all([entry.path for entry in self.state.store.list(f"{place}/{folder}")])


def _list_parts(record: Record) -> dict[str, WrittenFile]:
    """Return the parts in the record of a unit, by folder of the variant."""
    return {file.path.removeprefix(f"{_PARTS}/").rpartition("/")[0]: file for file in record.files}


@contextmanager
def open_prediction_store(
    location: str | Path,
    source: str,
    settings: Mapping[str, Any],
    sizes: Mapping[str, int] | None = None,
    *,
    overwrite: bool = False,
) -> Iterator[PredictionStore]:
    """Open the folder for predictions with these `settings`.

    Parameters
    ----------
    location : path or URL
    source : str
        Source of the images, which must not contain the folder.
    settings : mapping
        Content of `predictions.json`.
    sizes : mapping of str to int, optional
        Size of each source image, to say what has changed.
    overwrite : bool
        Remove earlier predictions, if robustgen wrote all files in the folder.

    Raises
    ------
    OutputError
        The folder cannot be used, or contains something else.
    """
    with open_output(location, source) as root:
        ledger = Ledger(root, ABOUT)
        if overwrite:
            _remove_own(ledger)
        if not ledger.settings():
            ledger.refuse_unrecorded(predictions.list_files(root))
        decisive = {key: value for key, value in settings.items() if key not in _NOTES}
        describe = partial(_describe_differences, ledger, sizes or {})
        ledger.agree(decisive, {name: settings[name] for name in _NOTES}, describe=describe)
        yield PredictionStore(ledger)


def _describe_differences(ledger: Ledger, sizes: Mapping[str, int], found: Differences) -> str:
    """Return which settings differ, and in which images from those with the given `sizes`."""
    others = {name: values for name, values in found.items() if name not in _IMAGES}
    if len(others) == len(found):
        return describe_differences(found)
    records = (record for _, record in ledger.read_records() if record)
    known = {key: size for record in records for key, (size, _) in record.images.items()}
    # The records of an unfinished run do not have all images.
    is_whole = predictions.list_files(ledger.root)
    keys = {
        "of other sizes": [key for key in known if sizes.get(key, known[key]) != known[key]],
        "that are missing now": [key for key in known if key not in sizes],
        "that are new": [key for key in sizes if key not in known] if is_whole else [],
    }
    parts = [f"{len(some)} {what}, for instance {min(some)!r}" for what, some in keys.items() if some]
    what = "other images" if "keys" in found else "the same names, but other files"
    images = f"{what} ({' and '.join(parts)})" if parts and sizes and known else what
    return "; ".join([images, describe_differences(others)] if others else [images])


def _remove_own(state: Ledger) -> None:
    """Remove all predictions, or none if a file differs from its record."""
    root, own = state.root, dict[str, str]()
    for _, record in state.read_records(any_version=True):
        own |= {file.path: file.sha256 for file in record.files} if record else {}
    irregular = [path for path, _ in root.list_irregular() if not path.endswith("/")]
    for path in (*irregular, *predictions.list_files(root)):
        if path in irregular or file_digest(root, path) != own.get(path):
            raise OutputError(f"{root.location}/{path}: changed, so --overwrite keeps it; remove it yourself")
    for path in own:
        root.delete(path)
    state.clear()
