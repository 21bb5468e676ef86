"""What the models said, kept on disk from image to image, so that a run that was cut off can go on."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import IO, Any

import numpy as np

from robustgen.filtration.funnel import Opinions
from robustgen.regular_file import open_regular

_FIELDS = tuple(field.name for field in fields(Opinions))


class OpinionCache:
    """A file that grows by a line for each batch; a line that was cut off counts for nothing.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def load(self, sizes: Mapping[str, int], models: int, classes: int) -> tuple[Opinions, set[str]]:
        """Opinions on the images of `sizes`, in that order, and the keys of those they are known of.

        Parameters
        ----------
        sizes : mapping of str to int
            Key to bytes of the file; of an image that changed, what was said counts no more.
        models, classes : int
            What a line has to fit to count.
        """
        places = {key: place for place, key in enumerate(sizes)}
        known, said = set(), Opinions.blank(models, len(sizes))
        for keys, bytes_, batch in self._batches(models, classes):
            for index, (key, size) in enumerate(zip(keys, bytes_, strict=True)):
                if sizes.get(key) == size:
                    said.put(places[key], batch, index)
                    known.add(key)
        return said, known

    def _batches(self, models: int, classes: int) -> Iterator[tuple[list[str], list[int], Opinions]]:
        if not self._path.exists():
            return
        with open_regular(self._path) as lines:
            for line in lines:
                if line.endswith(b"\n") and (batch := _read(line, models, classes)):
                    yield batch

    def append(self, keys: Sequence[str], sizes: Sequence[int], said: Opinions) -> None:
        """Add the opinions on a batch of images; they outlive a killed process from here on.

        Raises
        ------
        OSError
            The disk is full.
        """
        values = {name: getattr(said, name).tolist() for name in _FIELDS}
        line = json.dumps({"keys": [*keys], "sizes": [*sizes], **values}).encode() + b"\n"
        if self._file is None:
            self._file = self._open()
        self._file.write(line)
        self._file.flush()

    def _open(self) -> IO[bytes]:
        file = self._path.open("ab")
        if file.tell():
            # Ends a line that was cut off.
            file.write(b"\n")
        return file

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()


def _read(line: bytes, models: int, classes: int) -> tuple[list[str], list[int], Opinions] | None:
    """The batch in `line`; None if a crash left something else there."""
    try:
        entry: dict[str, Any] = json.loads(line)
        keys, sizes = [*entry["keys"]], [*entry["sizes"]]
        said = Opinions(*(_array(entry[name]) for name in _FIELDS))
    except (ValueError, KeyError, TypeError):
        return None
    count = len(keys)
    fits = len(sizes) == count and all(
        getattr(said, name).shape == ((models, count) if place < 4 else (count,))
        for place, name in enumerate(_FIELDS)
    )
    indices = np.concatenate([said.own.ravel(), said.predicted]) if fits else np.array([-1])
    return (keys, sizes, said) if indices.min() >= 0 and indices.max() < classes else None


def _array(values: Any) -> Any:
    array = np.array(values)
    return array.astype(np.int64 if array.dtype.kind == "i" else np.float64)
