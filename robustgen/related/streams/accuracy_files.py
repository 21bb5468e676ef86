"""Files of the accuracies that decide the walk of CCC: the original's pickle, .npz, JSON, or measurements.

    {"made_of": {...}, "baseline": 40, "severities": [0, 2.5, 5], "measured": [["snow", 2.5, "fog", 5, 31.2]]}

is the format of `robustgen stream measure`: accuracies in % on a coarse grid.
"""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from robustgen.errors import ArgumentError
from robustgen.files.containers.array_files import Pickled, unpickle
from robustgen.files.storage import locate
from robustgen.files.text_files import parse_object
from robustgen.pixels.imaging.decode import Location
from robustgen.related.streams.ccc import (
    AccuracyTable,
    StreamCell,
    interpolate_table,
    list_corruptions,
    list_measurements,
    read_table,
)


@dataclass(frozen=True)
class Measurements:
    """Accuracies measured so far.

    Attributes
    ----------
    made_of : mapping
        Everything that decides them, in a form for JSON.
    baseline : float
        Baseline of the runs whose corruptions are measured.
    severities : tuple of float
        The grid.
    measured : dict of StreamCell to float
        Accuracies in %.
    """

    made_of: Mapping[str, Any]
    baseline: float
    severities: tuple[float, ...]
    measured: dict[StreamCell, float]

    def settings(self) -> dict[str, Any]:
        """Return everything but the accuracies."""
        return {"made_of": self.made_of, "baseline": self.baseline, "severities": [*self.severities]}

    def to_bytes(self) -> bytes:
        """Return the content of the file, one measurement per line."""
        rows = ",\n ".join(json.dumps([*cell, accuracy]) for cell, accuracy in self.measured.items())
        return f'{json.dumps(self.settings(), indent=1)[:-2]},\n "measured": [\n {rows}\n ]\n}}\n'.encode()


def parse_measurements(content: Mapping[str, Any]) -> Measurements:
    """Return the measurements of a JSON object.

    Raises
    ------
    ArgumentError
        The object contains none.
    """
    known = {*list_corruptions(40), ""}
    try:
        rows = [(StreamCell(*row[:-1]), float(row[-1])) for row in content["measured"]]
        severities = tuple(float(each) for each in content["severities"])
        baseline, made_of = float(content["baseline"]), dict(content["made_of"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ArgumentError("holds no measured accuracies") from error
    for cell, accuracy in rows:
        if not ({cell.first, cell.second} <= known and 0 <= accuracy <= 100):
            raise ArgumentError(f"not a measurement: {[*cell, accuracy]}")
    return Measurements(made_of, baseline, severities, dict(rows))


def load_accuracy_table(location: Location) -> AccuracyTable:
    """Read the accuracies of pairs from a file.

    Parameters
    ----------
    location : path or URL
        The original's pickle; an .npz or JSON file with arrays called ``n1_<first>_n2_<second>`` of shape
        (21, 21); or a file of ``robustgen stream measure``.

    Raises
    ------
    ArgumentError
        The file cannot be read or used; the message names it.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> np.savez("accuracies.npz", n1_fog_n2_snow=np.full((21, 21), 40.0))
    >>> table = robustgen.load_accuracy_table("accuracies.npz")
    >>> [*table], table["fog", "snow"].shape
    ([('fog', 'snow')], (21, 21))
    """
    try:
        store, name = locate(location)
        return _read(store.read(name))
    except OSError as error:
        raise ArgumentError(f"{location}: cannot be read: {error.strerror or error}") from error
    except ArgumentError as error:
        raise ArgumentError(f"{location}: {error}") from error


def _read(data: bytes) -> AccuracyTable:
    if not data.lstrip().startswith(b"{"):
        try:
            arrays = _read_npz(data) if data.startswith(b"PK") else _read_pickle(data)
        except Exception as error:
            raise ArgumentError(f"contains no accuracy table: {error}") from error
        return read_table(arrays)
    try:
        content = parse_object(data)
    except ValueError as error:
        raise ArgumentError(f"is not JSON: {error}") from error
    if "measured" not in content:
        return read_table(content)
    found = parse_measurements(content)
    missing = {*list_measurements(found.baseline, found.severities)} - found.measured.keys()
    if missing:
        raise ArgumentError(f"{len(missing)} accuracies lack; resume with robustgen stream measure")
    return interpolate_table(found.measured, found.baseline, found.severities)


def _read_npz(data: bytes) -> dict[str, npt.NDArray[Any]]:
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _read_pickle(data: bytes) -> dict[str, Any]:
    content = unpickle(data)
    if not isinstance(content, dict):
        raise ValueError(f"a pickle of {type(content).__name__} instead of a dict")
    return {
        name.decode() if isinstance(name, bytes) else str(name): (
            each.to_array() if isinstance(each, Pickled) else each
        )
        for name, each in content.items()
    }
