"""`robustgen stream score`: errors along a stream, by corruption and visit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustgen.display.charts import Curve, CurveGroup
from robustgen.display.text import Cell, Table, format_count, format_name
from robustgen.errors import ArgumentError, SourceError
from robustgen.lab.scores.table_page import name_models
from robustgen.metrics.classification import top1_mistakes
from robustgen.metrics.intervals import clustered_interval
from robustgen.related.streams.rows import read_rows
from robustgen.related.streams.settings import StreamScoring

MEAN: Final = "mean"


class StreamError(NamedTuple):
    """Error of some images of a stream: a fraction, the ends of its 95 % interval, the number of lines."""

    error: float
    low: float
    high: float
    images: int


@dataclass(frozen=True)
class StreamScores:
    """Errors of one or more models along one stream.

    Attributes
    ----------
    stream : str
    mistakes : dict of str to ndarray of shape (lines,), bool
        Model to its wrong predictions.
    keys, corruptions, visits : ndarray of shape (lines,), int
        Number of the image, of the corruption in `names`, and of the visit in `rounds`, from 0.
    names : tuple of str
        The corruptions, in the order of their first line.
    rounds : tuple of int
        The visits.
    """

    stream: str
    mistakes: Mapping[str, NDArray[np.bool_]]
    keys: NDArray[Any]
    corruptions: NDArray[Any]
    visits: NDArray[Any]
    names: tuple[str, ...]
    rounds: tuple[int, ...]

    title = "errors along a stream"
    method = (
        "Intervals are Wilson's with the effective number of images, all lines of an image together. They "
        "hold for this order: another order, or another seed of the method, is another draw."
    )
    notes = ()
    recorded: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @property
    def model(self) -> str:
        """Return the names of the models, or their number."""
        return name_models(self.mistakes)

    @property
    def lead(self) -> str:
        """Return what the stream consists of."""
        corruptions = format_count(len(self.names), "corruption")
        visits = format_count(len(self.rounds), "visit")
        return f"{self.stream}: {format_count(len(self.keys), 'image')}, {corruptions}, {visits}"

    @cached_property
    def errors(self) -> dict[tuple[str, int, str], StreamError]:
        """Return the errors by model, visit and corruption; visit 0 is all, `MEAN` all corruptions."""
        shown = {0: np.full(len(self.keys), True)}
        if len(self.rounds) > 1:
            shown |= {each: self.visits == number for number, each in enumerate(self.rounds)}
        parts = {name: self.corruptions == number for number, name in enumerate(self.names)}
        return {
            (model, visit, name): self._measure(wrong, within & part)
            for model, wrong in self.mistakes.items()
            for visit, within in shown.items()
            for name, part in (parts | {MEAN: shown[0]}).items()
            if (within & part).any()
        }

    def _measure(self, wrong: NDArray[np.bool_], part: NDArray[np.bool_]) -> StreamError:
        low, high = clustered_interval(wrong[part], self.keys[part])
        return StreamError(float(wrong[part].mean()), low, high, int(part.sum()))

    @property
    def _columns(self) -> list[tuple[str, int]]:
        """Return the models, each with its visits and all of them together."""
        visits = (*self.rounds, 0) if len(self.rounds) > 1 else (0,)
        return [(model, visit) for model in self.mistakes for visit in visits]

    def list_tables(self) -> list[Table]:
        """Return the means of several models, and a table with a row for each corruption and their mean."""
        several = len(self.rounds) > 1
        heads = [
            (f"visit {visit}" if visit else "all visits") if several else model
            for model, visit in self._columns
        ]
        rows = [
            [format_name(name), *(self._cell(model, visit, name) for model, visit in self._columns)]
            for name in (*self.names, MEAN)
        ]
        groups = ("", *(model for model, _ in self._columns)) if several else ()
        tables = [Table("Top-1 error in %", ("corruption", *heads), rows, groups)]
        if several and len(self.mistakes) > 1:
            visits = [*dict.fromkeys(visit for _, visit in self._columns)]
            means = [[model, *(self._cell(model, each, MEAN) for each in visits)] for model in self.mistakes]
            tables.insert(0, Table("Mean top-1 error in %", ("model", *heads[: len(visits)]), means))
        return tables

    def _cell(self, model: str, visit: int, name: str) -> Cell:
        found = self.errors.get((model, visit, name))
        return Cell(found and found.error, found and (found.low, found.high), sense=-1)

    def list_curves(self) -> list[CurveGroup]:
        """Return the errors of each model by corruption, in the order of the stream, and by visit."""
        corruptions = [(number, 0, name) for number, name in enumerate(self.names, 1)]
        visits = [(visit, visit, MEAN) for visit in self.rounds]
        groups = {"Number of the corruption": corruptions, "Visit": visits}
        return [
            CurveGroup(
                f"Top-1 error in % by {label.rpartition(' ')[2].lower()}",
                label,
                {"": [self._curve(model, places) for model in self.mistakes]},
            )
            for label, places in groups.items()
            if len(places) > 1
        ]

    def _curve(self, model: str, places: Sequence[tuple[int, int, str]]) -> Curve:
        points = [self.errors[model, visit, name] for _, visit, name in places]
        mean, low, high = ([each[part] for each in points] for part in range(3))
        return Curve(model, [x for x, _, _ in places], mean, low, high)

    def as_dict(self) -> dict[str, Any]:
        """Return all values, for JSON."""
        errors = [
            {"model": model, "visit": visit or None, "corruption": name, **each._asdict()}
            for (model, visit, name), each in self.errors.items()
        ]
        return {"stream": self.stream, "interval_method": self.method, "errors": errors}

    def list_scores(self) -> dict[str, float]:
        """Return the mean error of each model, in %."""
        return {model: 100 * self.errors[model, 0, MEAN].error for model in self.mistakes}


def score_stream(options: StreamScoring) -> StreamScores:
    """Compare predictions with the labels of a stream.

    Raises
    ------
    SourceError
        The stream cannot be read, or a file does not have a prediction for each of its lines.
    """
    try:
        lines = [(row.key, row.corruption, row.visit, row.label) for row in read_rows(options.stream)]
    except ArgumentError as error:
        raise SourceError(str(error)) from error
    if not lines:
        raise SourceError(f"{options.stream}: has no lines")
    keys, corruptions, visits, labels = zip(*lines, strict=True)
    names, rounds = tuple(dict.fromkeys(corruptions)), tuple(sorted({*visits}))
    models = _name_models(options.predictions)
    return StreamScores(
        options.stream.name,
        {name: _find_mistakes(path, np.array(labels), options.stream) for name, path in models.items()},
        np.unique(np.array(keys), return_inverse=True)[1],
        _number(corruptions, names),
        _number(visits, rounds),
        names,
        rounds,
    )


def _number(values: Sequence[Any], known: Sequence[Any]) -> NDArray[Any]:
    numbers = {value: number for number, value in enumerate(known)}
    return np.array([numbers[value] for value in values])


def _name_models(paths: Sequence[Path]) -> dict[str, Path]:
    """Return the files by their stems, or by their paths if two have the same one."""
    models = {path.stem: path for path in paths}
    return models if len(models) == len(paths) else {str(path): path for path in paths}


def _find_mistakes(path: Path, labels: NDArray[Any], stream: Path) -> NDArray[np.bool_]:
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise SourceError(f"{path}: cannot be read as an array of NumPy: {error}") from error
    shape = getattr(found, "shape", ())
    if len(shape) not in (1, 2) or (len(shape) == 1 and found.dtype.kind not in "iu"):
        raise SourceError(f"{path}: must contain classes, integers (N,), or logits (N, classes)")
    if len(found) != len(labels):
        raise SourceError(f"{path}: has {len(found):,} predictions, and {stream} {len(labels):,} lines")
    try:
        mistakes: NDArray[np.bool_] = found != labels if found.ndim == 1 else top1_mistakes(found, labels)
    except ArgumentError as error:
        raise SourceError(f"{path}: {error}") from error
    return mistakes
