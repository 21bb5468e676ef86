"""The folder of one model's predictions: whose it is, what is finished in it, what is under way.

    predictions.json              what decides the predictions
    fog/3.npz, tilt.npz           finished arms, for `robustgen.predictions`
    .robustgen/written.jsonl      a line for each of them:
                                  {"path": "fog/3.npz", "size": 120604, "sha256": "9f86d0..."}
    .robustgen/partial/fog-3/     rows of an arm under way, and state.json, which says how many count:
                                  {"keys": "2c26b4...", "shape": [1000], "dtype": "<f4", "done": 640},
                                  with a digest of the keys of just these rows
    .robustgen/failed.json        source images that could not be made: {"cat/a.jpg": "truncated"}

Only a file that `written.jsonl` names, and that is still what it says, is ever removed.
"""

import hashlib
import json
import math
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen import predictions
from robustgen.benchmark import Arm
from robustgen.datasets import describe_difference
from robustgen.errors import OutputError, SourceError
from robustgen.output.files import (
    check_real,
    file_digest,
    open_folder,
    open_to_append,
    remove_file,
    remove_tree,
    stream_digest,
    write_whole,
)
from robustgen.output.state import FAILED, PARTIAL, WRITTEN, claim_output, read_object
from robustgen.predictions import ABOUT, PredictionFile
from robustgen.regular_file import open_descriptor, open_regular

_SECONDS_BETWEEN_SAVES = 10.0
_REMEDY: Final = "choose another --output, or --overwrite"


# --- an arm under way ----------------------------------------------------------------------------


class PartialRows:
    """Rows of an arm's outputs that are kept on disk from the first to the last.

    Parameters
    ----------
    root : Path
        The folder of predictions.
    arm : Arm
        What a run that was cut off left of it is continued.
    keys : sequence of str
        What the rows are to be of, in order. Rows that are of anything else are not continued.
    """

    def __init__(self, root: Path, arm: Arm, keys: Sequence[str]) -> None:
        self._root, self._arm = root, arm
        self._place = f"{PARTIAL}/{arm.folder.replace('/', '-')}"
        self._file: IO[bytes] | None = None
        self._saved = time.monotonic()
        self._expected = keys
        self._state: dict[str, Any] = {"shape": [], "dtype": "", "done": 0} | self._read_left()
        self._keys = _hash_keys(keys[: self.done])

    def _read_left(self) -> dict[str, Any]:
        """The state that an earlier run left; nothing where it is damaged, or the rows are not as it says."""
        try:
            with open_regular(self._path("state.json")) as file:
                state = json.loads(file.read())
            done, row = state["done"], _row_size(state)
            if type(done) is not int or not 0 <= done <= len(self._expected):
                return {}
            with open_regular(self._path("rows")) as rows:
                enough = os.fstat(rows.fileno()).st_size >= done * row
            fits = state["keys"] == _hash_keys(self._expected[:done]).hexdigest()
            return state if fits and enough else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _path(self, name: str) -> Path:
        return self._root / self._place / name

    @property
    def done(self) -> int:
        """How many rows there are."""
        return int(self._state["done"])

    def rewind(self, done: int) -> None:
        """Forget all rows but the first few, before any is appended."""
        self._state["done"] = min(done, self.done)
        self._keys = _hash_keys(self._expected[: self.done])

    def append(self, values: NDArray[Any], keys: Sequence[str]) -> None:
        """Take in the next rows, those of `keys`."""
        if self._file is None:
            self._file = self._open(values)
        if [*values.shape[1:]] != self._state["shape"]:
            raise SourceError(f"{self._arm.folder}: its sequences differ in length")
        # No memory map: on a full disk that would end the process without a word.
        self._file.write(values.tobytes())
        self._state["done"] += len(values)
        self._keys.update(_join_keys(keys))
        if time.monotonic() - self._saved > _SECONDS_BETWEEN_SAVES:
            self.save()

    def _open(self, values: NDArray[Any]) -> IO[bytes]:
        """The file of the rows, without what was written after the state was saved."""
        if not self.done:
            self._state |= {"shape": [*values.shape[1:]], "dtype": values.dtype.str}
        check_real(self._root, f"{self._place}/")
        self._path("rows").parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        file = os.fdopen(open_descriptor(self._path("rows"), flags), "r+b")
        # What is cut off must not count again, even if the power fails before the next save.
        if os.fstat(file.fileno()).st_size > self.done * values[0].nbytes:
            self._write_state(durable=True)
        file.truncate(self.done * values[0].nbytes)
        file.seek(0, os.SEEK_END)
        return file

    def save(self) -> None:
        """Bring the rows to the disk, and only then say how many there are."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._write_state()
        self._saved = time.monotonic()

    def _write_state(self, *, durable: bool = False) -> None:
        state = self._state | {"keys": self._keys.hexdigest()}
        write_whole(self._root, f"{self._place}/state.json", json.dumps(state).encode(), durable=durable)

    def read(self) -> NDArray[Any]:
        """All rows."""
        if self._file is not None:
            self._file.flush()
        shape = (self.done, *self._state["shape"])
        return np.memmap(self._path("rows"), np.dtype(self._state["dtype"]), "r", shape=shape)

    def remove(self) -> None:
        """Forget the rows."""
        if self._file is not None:
            self._file.close()
        remove_tree(self._root, self._place)


def _hash_keys(keys: Sequence[str]) -> "hashlib._Hash":
    """A SHA-256 of `keys` that can take in more of them."""
    return hashlib.sha256(_join_keys(keys))


def _join_keys(keys: Sequence[str]) -> bytes:
    return "".join(f"{key}\0" for key in keys).encode("utf-8", "surrogateescape")


def _row_size(state: dict[str, Any]) -> int:
    """Bytes of a row; a ValueError or TypeError where `state` does not tell."""
    shape, dtype = state["shape"], np.dtype(state["dtype"])
    if not isinstance(shape, list) or not all(type(each) is int and each > 0 for each in shape):
        raise ValueError("no shape")
    if dtype.kind not in "fiu" or not isinstance(state["dtype"], str):
        raise ValueError("no type of numbers")
    return int(math.prod(shape) * dtype.itemsize)


# --- the folder ----------------------------------------------------------------------------------


class PredictionStore:
    """The folder `root`, which `hold_store` keeps for this process."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def has(self, arm: Arm, keys: Sequence[str], source: Path) -> bool:
        """Whether the predictions of `arm` are there.

        Raises
        ------
        OutputError
            They are to be reached by a link.
        SourceError
            They are not of `keys`, those of the set at `source`.
        """
        check_real(self.root, f"{arm.folder}.npz")
        path = predictions.path_of(self.root, arm.folder)
        if not path.exists():
            return False
        own = PredictionFile(path, arm).keys
        if own != tuple(keys):
            raise SourceError(f"{path}: not the images of {source}: {describe_difference(own, keys, 'keys')}")
        return True

    def rows(self, arm: Arm, keys: Sequence[str]) -> PartialRows:
        """The rows of `arm` under way, as far as an earlier run came."""
        return PartialRows(self.root, arm, keys)

    def finish(
        self,
        arm: Arm,
        keys: Sequence[str],
        labels: NDArray[Any] | None,
        entries: dict[str, NDArray[Any]],
        rows: PartialRows,
    ) -> None:
        """Write the file of `arm` and record it."""
        path = predictions.write_entries(self.root, arm.folder, keys, labels, entries)
        record = {
            "path": path.relative_to(self.root).as_posix(),
            "size": path.stat().st_size,
            "sha256": file_digest(path),
        }
        with open_to_append(self.root / WRITTEN) as file:
            # A line that a killed run cut off is ended first.
            begun = file.seek(0, os.SEEK_END)
            file.write((b"\n" if begun else b"") + json.dumps(record).encode() + b"\n")
        rows.remove()


@contextmanager
def hold_store(
    root: Path, source: Path, settings: dict[str, Any], *, overwrite: bool = False
) -> Iterator[PredictionStore]:
    """Hold `root` for the predictions that `settings` decide, against other runs and other settings.

    Parameters
    ----------
    root, source : Path
        The folder of predictions, and that of the images, which must not hold it.
    settings : dict
        What `predictions.json` is to say.
    overwrite : bool
        Remove earlier predictions, if all that is there was written by this tool.

    Raises
    ------
    OutputError
        `root` cannot be used, or holds something else.
    """
    with claim_output(root, source, check_state):
        if overwrite:
            _remove_own(root)
        _check_settings(root, settings)
        write_whole(root, ABOUT, (json.dumps(settings, indent=1, sort_keys=True) + "\n").encode())
        yield PredictionStore(root)


def check_state(root: Path) -> None:
    """Raise an OutputError if what this tool keeps for itself lies elsewhere by way of a link."""
    check_real(root, f"{PARTIAL}/")


def _check_settings(root: Path, settings: dict[str, Any]) -> None:
    path = root / ABOUT
    if not path.exists():
        if _prediction_files(root):
            raise OutputError(f"{root}: holds predictions of unknown origin; choose another --output")
        return
    try:
        held = read_object(path)
    except (OSError, OutputError) as error:
        raise OutputError(f"{path}: cannot be read; {_REMEDY}") from error
    if other := _find_difference(held, settings):
        raise OutputError(f"{root}: holds predictions of another {other}; {_REMEDY}")


def _find_difference(held: dict[str, Any], wanted: dict[str, Any]) -> str | None:
    """The first key with another value, or of how images were made on the way, the first setting."""
    other = next((key for key in {**wanted, **held} if held.get(key) != wanted.get(key)), None)
    made, to_be_made = held.get("made"), wanted.get("made")
    if other == "made" and isinstance(made, dict) and isinstance(to_be_made, dict):
        return _find_difference(made, to_be_made)
    return other


def _prediction_files(root: Path) -> set[str]:
    """Paths below `root` of what `open_predictions` would take for predictions."""
    return {path.relative_to(root).as_posix() for path in [*root.glob("*.npz"), *root.glob("*/*.npz")]}


# --- removing ------------------------------------------------------------------------------------


def _remove_own(root: Path) -> None:
    """Remove all predictions, or none: none where one was not written by this tool."""
    own = [record for record in _read_written(root) if _is_own(root, record)]
    foreign = sorted(_prediction_files(root) - {record["path"] for record in own})
    if foreign:
        raise OutputError(
            f"{root / foreign[0]}: is not as this tool wrote it; --overwrite removes only what is, "
            f"so remove it yourself, or choose another --output"
        )
    for record in own:
        remove_file(root, record["path"])
    for path in (ABOUT, WRITTEN, FAILED):
        remove_file(root, path)
    remove_tree(root, PARTIAL)


def _read_written(root: Path) -> list[dict[str, Any]]:
    """The last record of each file; a line that was cut off counts for nothing."""
    path, records, lines = root / WRITTEN, {}, b""
    if path.exists():
        with open_regular(path) as file:
            lines = file.read()
    for line in lines.splitlines():
        try:
            record = json.loads(line)
            records[str(record["path"])] = {**record, "path": str(record["path"])}
        except (ValueError, KeyError, TypeError):
            continue
    return [*records.values()]


def _is_own(root: Path, record: dict[str, Any]) -> bool:
    """Whether the file is a regular one, reached by no link, with the content that was recorded."""
    try:
        with open_folder(root, record["path"]) as (folder, name):
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            with os.fdopen(file, "rb") as content:
                about = os.fstat(content.fileno())
                if not stat.S_ISREG(about.st_mode) or about.st_size != record.get("size"):
                    return False
                return stream_digest(content) == record.get("sha256")
    except OSError:
        return False
