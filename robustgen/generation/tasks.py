"""The work of one worker: a task is a few source images, out of which all their arms are made."""

import errno
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from robustgen.benchmark import Arm
from robustgen.errors import (
    ImageError,
    MissingDependencyError,
    OutputError,
    RobustgenError,
    WriteError,
    explain_failure,
)
from robustgen.generation.pulse import NO_PULSE, Pulse
from robustgen.generation.recipes import Recipe
from robustgen.imaging.pixels import Rgb
from robustgen.memory import keep_freed_memory, return_freed_memory
from robustgen.output.journal import Entry, enter_receipts
from robustgen.output.records import Failure, Receipt, Written
from robustgen.output.writers import Writer
from robustgen.sources.base import Items

_ERRORS_OF_A_NAME = (errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EEXIST, errno.ENOTEMPTY)

# Values of an image whose sequence leaves no room for what is freed: two and a half megapixels.
_LARGE: Final = 7_500_000

# Its multiples leave no wide gap between 0 and 1, however many there are.
_GOLDEN_SECTION: Final = 0.6180339887498949


class Item(NamedTuple):
    """A source image at hand, and the arms that it lacks; `size` is that of its file when the run began."""

    number: int
    key: str
    size: int
    arms: tuple[Arm, ...]


@dataclass(frozen=True)
class Task:
    """A chunk of source images and the arms that each of them lacks; `turn` counts the tasks of a run."""

    recipe: Recipe[Any]
    source: Items[Any]
    writer: Writer
    root: Path
    items: tuple[Item, ...]
    pulse: Pulse = NO_PULSE
    turn: int = 0

    def arms(self) -> list[Arm]:
        """All arms that are lacking, in the order of this turn (`rotate_arms`)."""
        arms = {arm.folder: arm for item in self.items for arm in item.arms}
        return rotate_arms(arms.values(), self.turn)

    def run(self) -> list[Entry]:
        """Make and write all that is lacking; as `run_task`."""
        return run_task(self)


Result = TypeVar("Result", covariant=True)


class Job(Protocol[Result]):
    """What a worker can be given to do. Picklable."""

    def run(self) -> Result:
        """Do it."""


def run_job(job: Job[Result]) -> Result:
    """Do `job`; a function of a module, as workers take them."""
    return job.run()


def rotate_arms(arms: Iterable[Arm], turn: int) -> list[Arm]:
    """All `arms`, from another one on at every turn.

    So the workers of a first run compile different loops, and find those of the others in the cache.
    """
    arms = list(arms)
    first = int(turn * _GOLDEN_SECTION % 1 * len(arms))
    return arms[first:] + arms[:first]


def run_task(task: Task) -> list[Entry]:
    """Make and write all that the images of `task` lack; return an entry for each of them.

    Raises
    ------
    WriteError
        The output cannot be written; nothing is wrong with the images.
    """
    keep_freed_memory()
    task.pulse.tell(0)
    works = [ImageWork(task, item) for item in task.items]
    made = 0
    try:
        # Arm by arm, so that an arm's tables stay in the cache from image to image.
        for arm in task.arms():
            for work in works:
                made += work.do(arm)
                task.pulse.tell(made)
    finally:
        _flush(task)
        task.pulse.tell(0)
    return enter_receipts(work.receipt() for work in works)


def _flush(task: Task) -> None:
    try:
        task.writer.flush()
    except OSError as error:
        raise WriteError(f"{task.root}: {error.strerror or error}") from error


class _UnusableNameError(ImageError):
    """The name of an image does not do for its output."""


class _FrameError(Exception):
    """A frame could not be made; its cause is an OSError, which is not one of writing."""


def _guard_frames(frames: Iterator[Rgb]) -> Iterator[Rgb]:
    """The `frames`, of which an OSError becomes a _FrameError: they are made while they are written."""
    try:
        yield from frames
    except OSError as error:
        if isinstance(error, RobustgenError):
            raise
        raise _FrameError from error


class ImageWork:
    """One source image under way: loaded at once, then given to one arm after another."""

    def __init__(self, task: Task, item: Item) -> None:
        self._task, (self._index, self._key, self._size, arms) = task, item
        self._lacking = {arm.folder: number for number, arm in enumerate(arms)}
        self._files: dict[str, list[Written]] = {}
        self._failures: list[Failure] = []
        self._shared: dict[str, Any] = {}
        try:
            self._image: Any = task.recipe.prepare(task.source.open(self._key))
        except Exception as error:
            self._image = None
            self._fail(error)

    def do(self, arm: Arm) -> bool:
        """Make and write what `arm` gives; a failure is noted, unless it is none of the image's.

        Returns whether there was anything to be done.
        """
        if self._image is None or arm.folder not in self._lacking:
            return False
        try:
            self._files[arm.folder] = self._write(arm)
        except (WriteError, OutputError, MissingDependencyError):
            raise
        except _UnusableNameError as error:
            # It would fail in every arm alike.
            self._image = None
            self._fail(error)
        except _FrameError as error:
            assert isinstance(error.__cause__, OSError)
            self._fail(error.__cause__, arm)
        except Exception as error:
            self._fail(error, arm)
        return True

    def _write(self, arm: Arm) -> list[Written]:
        task, key = self._task, self._key
        write: Callable[..., list[Written]] = task.writer.write
        frames = task.recipe.stream(arm, key, self._image)
        if frames is None:
            made: Any = task.recipe.make(arm, key, self._image, self._shared)
        else:
            if self._image.size > _LARGE:
                return_freed_memory()
            write, made = task.writer.write_frames, _guard_frames(frames)
        try:
            return write(task.root, arm, self._index, key, made)
        except OSError as error:
            if isinstance(error, RobustgenError):
                raise
            if error.errno in _ERRORS_OF_A_NAME:
                name = task.writer.output_name(self._key)
                raise _UnusableNameError(f"{name} cannot name its output: {error.strerror}") from error
            raise WriteError(f"{task.root}: {error.strerror or error}") from error

    def _fail(self, error: Exception, arm: Arm | None = None) -> None:
        # The entry names the key already.
        reason = explain_failure(error).removeprefix(f"{self._key!r}: ")
        entry = {"key": self._key, "arm": arm.folder} if arm else {"key": self._key}
        self._failures.append(entry | {"reason": reason})

    def receipt(self) -> Receipt:
        """What came of it, in the order of the arms, whichever the task began with."""
        files = {folder: self._files[folder] for folder in self._lacking if folder in self._files}
        failures = sorted(self._failures, key=lambda each: self._lacking.get(each.get("arm", ""), 0))
        return Receipt(self._key, self._size, files, tuple(failures))
