"""The folder of one model's predictions: whose it is, what is finished in it, what is under way.

predictions.json                 what decides the predictions
fog/3.npz, tilt.npz              finished variants, for `robustgen.predictions`
.robustgen/records/fog/3.json    record of each of them
.robustgen/records/units/        records of work units, see `predicting` and `evaluating`
.robustgen/parts/fog/3/          rows of variants under way: a file for each unit, named in its record
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen import predictions
from robustgen.benchmark import Variant
from robustgen.dataset.names import STATE
from robustgen.dataset.outputs import file_digest, open_output
from robustgen.dataset.records import FilesRecord
from robustgen.dataset.state import OutputState
from robustgen.errors import OutputError, SourceError
from robustgen.formats import WrittenFile, describe_difference
from robustgen.json_files import parse_object
from robustgen.predictions import ABOUT, Pieces, PredictionFile
from robustgen.storage import Store

_PARTS: Final = f"{STATE}/parts"
_REMEDY: Final = "choose another --output, or --overwrite"
_FEWEST_UNITS: Final = 16


def choose_unit_size(images: int, batch: int, most: int) -> int:
    """Return how many of so many images a unit has: whole batches, and about `most` images at most."""
    return max(1, min(most, images // _FEWEST_UNITS) // batch) * batch


class PredictionStore:
    """A folder of predictions.

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
            They are not of `keys`, those of the set at `source`, or cannot be read.
        """
        file = PredictionFile(self.root, predictions.path_of(variant.folder), variant)
        recorded = self.state.has_record(variant.folder)
        try:
            own = file.keys
        except SourceError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            if recorded:
                # Someone has deleted the file.
                self.state.delete_record(variant.folder)
            return False
        if own != tuple(keys):
            reason = describe_difference(own, keys, "keys")
            raise SourceError(f"{file.location}: not the images of {source}: {reason}")
        # A run may have been killed before it could record the file.
        parts = self.root.list(f"{_PARTS}/{variant.folder}")
        return recorded or next(parts, None) is None

    def put_part(self, variant: Variant, unit: str, rows: NDArray[Any]) -> WrittenFile:
        """Write the rows of `variant` that the unit `unit` has predicted."""
        buffer = BytesIO()
        np.save(buffer, rows, allow_pickle=False)
        path, data = f"{_PARTS}/{variant.folder}/{unit}.npy", buffer.getvalue()
        self.root.put(path, data)
        self._listed[path] = len(data)
        return WrittenFile(path, len(data), hashlib.sha256(data).hexdigest())

    def list_parts(self, record: FilesRecord) -> dict[str, WrittenFile]:
        """Return the parts that the record of a unit names and that are there, by folder of the variant."""
        return {folder: part for folder, part in name_parts(record).items() if part.size == self._size(part)}

    @cached_property
    def _listed(self) -> dict[str, int]:
        return {entry.path: entry.size for entry in self.root.list(_PARTS)}

    def _size(self, part: WrittenFile) -> int:
        if self._listed.get(part.path) != part.size:
            # It may be newer than the listing.
            with suppress(FileNotFoundError):
                return self.root.stat(part.path).size
        return self._listed.get(part.path, -1)

    def read_parts(self, variant: Variant, parts: Sequence[WrittenFile], count: int) -> Pieces:
        """Return the `count` rows of `variant` in `parts`, each of which is read when it is needed."""
        first = self._read_part(variant, parts[0])
        rest = (self._read_part(variant, part, first.shape[1:]) for part in parts[1:])
        return Pieces((count, *first.shape[1:]), first.dtype, chain([first], rest))

    def _read_part(
        self, variant: Variant, part: WrittenFile, shape: tuple[int, ...] | None = None
    ) -> NDArray[Any]:
        data = self.root.read(part.path)
        if hashlib.sha256(data).hexdigest() != part.sha256:
            self.root.delete(part.path)
            raise OutputError(
                f"{self.root.location}/{part.path}: was damaged; the same command predicts its rows again"
            )
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
        """Write and record the file of `variant`, and delete its `parts`, unless another run was faster."""
        folder = variant.folder
        try:
            if not self.state.has_record(folder):
                entries = make_entries(self.read_parts(variant, parts, len(keys)))
                written = predictions.write_entries(self.root, folder, keys, labels, entries)
                self.state.put_record(folder, FilesRecord({}, [folder], [written]))
        except FileNotFoundError:
            if not self.state.has_record(folder):
                raise
        for place in ("records/units", "parts"):
            for entry in [*self.state.store.list(f"{place}/{folder}")]:
                self.state.store.delete(entry.path)


def name_parts(record: FilesRecord) -> dict[str, WrittenFile]:
    """Return the parts in the record of a unit, by folder of the variant."""
    files = [WrittenFile(*file) for file in record.written]
    return {file.path.removeprefix(f"{_PARTS}/").rpartition("/")[0]: file for file in files}


@contextmanager
def open_prediction_store(
    location: str | Path, source: str, settings: Mapping[str, Any], *, overwrite: bool = False
) -> Iterator[PredictionStore]:
    """Open the folder for the predictions that `settings` decide.

    Parameters
    ----------
    location : path or URL
    source : str
        What the images are read from, which must not hold the folder.
    settings : mapping
        What `predictions.json` is to say.
    overwrite : bool
        Remove earlier predictions, if all that is there was written by this tool.

    Raises
    ------
    OutputError
        The folder cannot be used, or holds something else.
    """
    with open_output(location, source) as root:
        if overwrite:
            _remove_own(OutputState(root))
        _agree(root, settings)
        yield PredictionStore(root)


def _agree(root: Store, settings: Mapping[str, Any]) -> None:
    """Put `predictions.json`, or compare `settings` with the one that is there."""
    data = (json.dumps(settings, indent=1, sort_keys=True) + "\n").encode()
    try:
        held = parse_object(root.read(ABOUT))
    except FileNotFoundError:
        if predictions.list_files(root):
            message = f"{root.location}: holds predictions of unknown origin; choose another --output"
            raise OutputError(message) from None
        try:
            return root.put(ABOUT, data, exclusive=True)
        except FileExistsError:
            return _agree(root, settings)
    except (OSError, ValueError) as error:
        raise OutputError(f"{root.location}/{ABOUT}: cannot be read; {_REMEDY}") from error
    if other := _find_difference(held, settings):
        raise OutputError(f"{root.location}: holds predictions of another {other}; {_REMEDY}")


def _find_difference(held: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """Return the first key with another value, or of how images were made on the way, the first setting."""
    other = next((key for key in {**wanted, **held} if held.get(key) != wanted.get(key)), None)
    made, to_be_made = held.get("made"), wanted.get("made")
    if other == "made" and isinstance(made, dict) and isinstance(to_be_made, dict):
        return _find_difference(made, to_be_made)
    return other


def _remove_own(state: OutputState) -> None:
    """Remove all predictions, or none: none if one is not as a record says."""
    root, own = state.root, dict[str, str]()
    for _, record in state.read_records():
        own |= {file.path: file.sha256 for _, file in record.files()} if record else {}
    irregular = {path for path, what in root.list_irregular() if what in ("is a link", "is no regular file")}
    for path in (*sorted(irregular), *predictions.list_files(root)):
        if path in irregular or path not in own or file_digest(root, path) != own[path]:
            raise OutputError(
                f"{root.location}/{path}: is not as this tool wrote it; --overwrite removes only what is, "
                f"so remove it yourself, or choose another --output"
            )
    for path in own:
        root.delete(path)
    root.delete(ABOUT)
    state.clear()
