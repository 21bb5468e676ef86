"""Choices of streams for test-time adaptation."""

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BeforeValidator, Field, StrictBool, ValidatorFunctionWrapHandler, field_validator

from robustgen.errors import ArgumentError, quote
from robustgen.pixels.benchmarks.kinds import CLEAN
from robustgen.settings.config import Config
from robustgen.settings.fields import Count, Flag, Group, NewFile, Options, once, split_list
from robustgen.settings.models import ModelInput
from robustgen.settings.scoring import TableForm

SOURCE, STREAM, MODEL = Group.SOURCE, Group.STREAM, Group.MODEL
OUTPUT, RUNNING = Group.OUTPUT, Group.RUNNING

Setting = Literal[
    "continual",
    "reset-each-shift",
    "gradual",
    "mixed",
    "correlated",
    "reset-each-shift-correlated",
    "gradual-correlated",
    "mixed-correlated",
]
SETTINGS: Final[tuple[Setting, ...]] = get_args(Setting)
Law = Literal["rotta", "note"]
MOST_SLOTS: Final = 10_000
"""Limit of the slots: shares of a thousand classes are then drawn in a second; the papers use 100."""
MOST_VISITS: Final = 1000


class Streaming(Config):
    """Choices of the images and corruptions of a stream, of which one may be `clean`."""

    @field_validator("corruptions", mode="wrap")
    @classmethod
    def _keep_clean(cls, value: Any, check: ValidatorFunctionWrapHandler) -> tuple[str, ...]:
        """Check all names but that of the clean images, which have no severity."""
        names = split_list(value)
        if not isinstance(names, (list, tuple)) or CLEAN not in names:
            return tuple(check(value))
        place = names.index(CLEAN)
        before, after = (tuple(check(part)) if part else () for part in (names[:place], names[place + 1 :]))
        return once((*before, CLEAN, *after))


class Drawing(Options):
    """Choices of `stream`."""

    setting: Annotated[
        Setting,
        Flag(STREAM, "NAME", usual=True, complete=lambda: SETTINGS),
        Field(description=f"order of the images: {', '.join(SETTINGS)}"),
    ]
    shuffle: Annotated[StrictBool, Flag(STREAM, usual=True)] = False
    """draw the order of the corruptions"""
    abrupt: Annotated[StrictBool, Flag(STREAM)] = False
    """gradual: start at the highest severity, as CoTTA's code"""
    repeat: Annotated[Count, Field(le=MOST_VISITS), Flag(STREAM, "N", usual=True)] = 1
    """pass N times through all corruptions; in PeTTA 20"""
    law: Annotated[Law, Flag(STREAM)] = "rotta"
    """correlated: law of the paper"""
    concentration: Annotated[float, Field(ge=0.001, le=1000), Flag(STREAM, "X")] = 0.1
    """correlated: parameter of the Dirichlet distribution"""
    slots: Annotated[Count | None, Field(le=MOST_SLOTS), Flag(STREAM, "N")] = None
    """correlated: pieces of each class; default one per class, with rotta at most 100"""
    output: Annotated[str | None, Flag(OUTPUT, "FILE", usual=True)] = None
    """output file; default out/stream-SETTING.jsonl"""


class CccPlaying(Options):
    """Choices of `stream ccc`."""

    accuracy_table: Annotated[str, Flag(STREAM, "FILE", usual=True)]
    """accuracies of all pairs: .pickle, .npz, .json, or a file of `stream measure`"""
    target: Annotated[float, Flag(STREAM, "X", usual=True)] = 20
    """target accuracy in %"""
    speed: Annotated[Count, Flag(STREAM, "N", usual=True)] = 1000
    """images per cell"""
    length: Annotated[Count, Flag(STREAM, "N", usual=True)] = 7_500_000
    """number of images"""
    output: Annotated[str, Flag(OUTPUT, "DIR", usual=True)] = "out/ccc"
    """folder or URL of the shards"""
    overwrite: Annotated[StrictBool, Flag(RUNNING)] = False
    """start over if the output has other content"""


def _read_grid(value: Any) -> Any:
    """Return ascending severities from 0 to 5."""
    try:
        grid = tuple(map(float, split_list(value)))
    except (TypeError, ValueError):
        grid = ()
    if len(grid) < 2 or (grid[0], grid[-1]) != (0, 5) or any(low >= high for low, high in pairwise(grid)):
        raise ArgumentError(f"must ascend from 0 to 5, not {quote(value)}")
    return grid


class StreamScoring(TableForm):
    """Choices of `stream score`."""

    stream: Annotated[Path, Flag(SOURCE, argument=True)]
    """the stream"""
    predictions: Annotated[tuple[Path, ...], Flag(SOURCE, argument=True)]
    """.npy files with a prediction for each line: classes (N,), or logits (N, classes)"""
    output: Annotated[NewFile | None, Flag(OUTPUT, "FILE.html", usual=True)] = None
    """also write a page with the curves"""


class AccuracyMeasuring(ModelInput):
    """Choices of `stream measure`."""

    model: Annotated[str, Flag(MODEL, "NAME", usual=True)]
    """model, as for evaluate"""
    batch_size: Annotated[Count, Flag(MODEL, "N")] = 64
    """images per batch"""
    grid: Annotated[
        tuple[float, ...], BeforeValidator(_read_grid), Flag(STREAM, "X,X", usual=True, name="severities")
    ] = Field("0,1,2,3,4,5", validate_default=True)
    """severities to measure, from 0 to 5"""
    target: Annotated[float, Flag(STREAM, "X")] = 40
    """target accuracy in % that the table has to contain"""
    output: Annotated[str, Flag(OUTPUT, "FILE", usual=True)] = "out/ccc-accuracies.json"
    """output file"""
    overwrite: Annotated[StrictBool, Flag(RUNNING)] = False
    """start over if the output has other content"""
