"""Folder of one model's predictions: its settings, finished variants and unfinished parts.

predictions.json                 settings that decide the predictions
fog/3.npz, tilt.npz              finished variants, see `robustgen.evaluation.predictions`
.robustgen/records/fog/3.json    record of each finished variant
.robustgen/records/units/        records of work units, see `predicting` and `evaluating`
.robustgen/parts/fog/3/          rows of unfinished variants: one file per unit, named in its record
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.benchmarks.kinds import Variant
from robustgen.dataset.names import STATE
from robustgen.dataset.outputs import file_digest, open_output
from robustgen.dataset.records import Record
from robustgen.dataset.state import OutputState
from robustgen.errors import OutputError, SourceError
from robustgen.evaluation import predictions
from robustgen.evaluation.predictions import ABOUT, Pieces, PredictionFile
from robustgen.files.json_files import parse_object
from robustgen.files.storage import Store
from robustgen.formats import WrittenFile, describe_difference

_PARTS: Final = f"{STATE}/parts"
_REMEDY: Final = "choose another --output, or --overwrite"
_FEWEST_UNITS: Final = 16


def choose_unit_size(images: int, batch: int, most: int) -> int:
    """Return the number of images per unit: whole batches, and at most about `most` of all `images`."""
    return max(1, min(most, images // _FEWEST_UNITS) // batch) * batch


class PredictionStore:
    """Folder of predictions.

    Parameters
    ----------
    root : Store
    """

    def __init__(self, root: Store) -> None:
        self.root, self.state = root, OutputState(root)

    def has(self, variant: Variant, keys: Sequence[str], source: str) -> bool:
        """Return whether the predictions of `variant` are finished.

        Raises
        ------
        SourceError
            The predictions cannot be read, or belong to other images than `keys` of the set at `source`.
        """
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
            raise SourceError(f"{file.location}: not the images of {source}: {reason}")
        # A run may have been killed before it recorded the file.
        parts = self.root.list(f"{_PARTS}/{variant.folder}")
        return recorded or next(parts, None) is None

    def put_part(self, variant: Variant, unit: str, rows: NDArray[Any]) -> WrittenFile:
        """Write the predicted rows of `variant` of the unit `unit`."""
        buffer = BytesIO()
        np.save(buffer, rows, allow_pickle=False)
        path, data = f"{_PARTS}/{variant.folder}/{unit}.npy", buffer.getvalue()
        self.root.put(path, data)
        self._listed[path] = len(data)
        return WrittenFile(path, len(data), hashlib.sha256(data).hexdigest())

    def list_parts(self, record: Record) -> dict[str, WrittenFile]:
        """Return the existing parts in the record of a unit, by folder of the variant."""
        return {folder: part for folder, part in name_parts(record).items() if self._has_part(part)}

    @cached_property
    def _listed(self) -> dict[str, int]:
        return {entry.path: entry.size for entry in self.root.list(_PARTS)}

    def _has_part(self, part: WrittenFile) -> bool:
        # The part may be newer than the listing.
        return part.size == self._listed.get(part.path) or [part.size] == [*self.root.sizes([part.path])]

    def read_parts(self, variant: Variant, parts: Sequence[WrittenFile], count: int) -> Pieces:
        """Return the `count` rows of `variant` in `parts`; each part is read when needed."""
        first = self._read_part(variant, parts[0])
        rest = (self._read_part(variant, part, first.shape[1:]) for part in parts[1:])
        return Pieces((count, *first.shape[1:]), first.dtype, chain([first], rest))

    def _read_part(
        self, variant: Variant, part: WrittenFile, shape: tuple[int, ...] | None = None
    ) -> NDArray[Any]:
        data = self.root.read(part.path)
        if hashlib.sha256(data).hexdigest() != part.sha256:
            self.root.delete(part.path)
            raise OutputError(f"{self.root.location}/{part.path}: was damaged; run the same command again")
        rows: NDArray[Any] = np.load(BytesIO(data), allow_pickle=False)
        if shape is not None and rows.shape[1:] != shape:
            raise SourceError(f"{variant.folder}: its sequences differ in length")
        return rows

    def finish(
        self,
        variant: Variant,
        keys: Sequence[str],
        labels: NDArray[Any] | None,
        parts: Sequence[WrittenFile],
        make_entries: Callable[[Pieces], Mapping[str, NDArray[Any] | Pieces]],
    ) -> None:
        """Write and record the file of `variant` and delete its `parts`, unless another run already has."""
        folder = variant.folder
        try:
            if not self.state.has_record(folder):
                entries = make_entries(self.read_parts(variant, parts, len(keys)))
                written = predictions.write_entries(self.root, folder, keys, labels, entries)
                self.state.put_record(folder, Record({}, [folder], [written]))
        except FileNotFoundError:
            if not self.state.has_record(folder):
                raise
        self.delete_parts(folder)

    def delete_parts(self, folder: str) -> None:
        """Delete all parts of a finished variant."""
        for place in ("records/units", "parts"):
            for entry in [*self.state.store.list(f"{place}/{folder}")]:
                self.state.store.delete(entry.path)


def name_parts(record: Record) -> dict[str, WrittenFile]:
    """Return the parts in the record of a unit, by folder of the variant."""
    return {file.path.removeprefix(f"{_PARTS}/").rpartition("/")[0]: file for file in record.files}


@contextmanager
def open_prediction_store(
    location: str | Path, source: str, settings: Mapping[str, Any], *, overwrite: bool = False
) -> Iterator[PredictionStore]:
    """Open the folder for predictions with these `settings`.

    Parameters
    ----------
    location : path or URL
    source : str
        Source of the images, which must not contain the folder.
    settings : mapping
        Content of `predictions.json`.
    overwrite : bool
        Remove earlier predictions, if robustgen wrote all files in the folder.

    Raises
    ------
    OutputError
        The folder cannot be used, or contains something else.
    """
    with open_output(location, source) as root:
        if overwrite:
            _remove_own(OutputState(root))
        _agree(root, settings)
        yield PredictionStore(root)


def _agree(root: Store, settings: Mapping[str, Any]) -> None:
    """Write `predictions.json`, or compare `settings` with the existing one."""
    data = (json.dumps(settings, indent=1, sort_keys=True) + "\n").encode()
    try:
        held = parse_object(root.read(ABOUT))
    except FileNotFoundError:
        if predictions.list_files(root):
            message = f"{root.location}: contains predictions of unknown origin; choose another --output"
            raise OutputError(message) from None
        try:
            return root.put(ABOUT, data, exclusive=True)
        except FileExistsError:
            return _agree(root, settings)
    except (OSError, ValueError) as error:
        raise OutputError(f"{root.location}/{ABOUT}: cannot be read; {_REMEDY}") from error
    if other := _find_difference(held, settings):
        raise OutputError(f"{root.location}: contains predictions of another {other}; {_REMEDY}")


def _find_difference(held: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """Return the first differing key; if that is the corruption on the fly, its first differing setting."""
    other = next((key for key in {**wanted, **held} if held.get(key) != wanted.get(key)), None)
    made, to_be_made = held.get("made"), wanted.get("made")
    if other == "made" and isinstance(made, dict) and isinstance(to_be_made, dict):
        return _find_difference(made, to_be_made)
    return other


def _remove_own(state: OutputState) -> None:
    """Remove all predictions, or none if a file differs from its record."""
    root, own = state.root, dict[str, str]()
    for _, record in state.read_records():
        own |= {file.path: file.sha256 for file in record.files} if record else {}
    irregular = [path for path, _ in root.list_irregular() if not path.endswith("/")]
    for path in (*irregular, *predictions.list_files(root)):
        if path in irregular or file_digest(root, path) != own.get(path):
            raise OutputError(
                f"{root.location}/{path}: not as robustgen wrote it, so --overwrite keeps it; "
                f"remove it yourself, or choose another --output"
            )
    for path in own:
        root.delete(path)
    root.delete(ABOUT)
    state.clear()
