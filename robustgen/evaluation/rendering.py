"""The images of a set that is never written: made by the workers, as a reader of the set would get them.

Groups of images are made one ahead of the one in use, so that workers and model are busy at the same time
and memory holds two groups at most.
"""

import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from robustgen.benchmark import Arm
from robustgen.display.progress import print_line
from robustgen.errors import MissingDependencyError, WriteError, explain_failure
from robustgen.evaluation.preprocessing import Pixels, Preprocessing
from robustgen.generation.plan import Plan
from robustgen.generation.pulse import NO_PULSE, Pulse
from robustgen.generation.recipes import Recipe
from robustgen.generation.tasks import rotate_arms
from robustgen.generation.watch import Watch
from robustgen.generation.workers import Processes, ThisProcess, Workers, WorkersLostError, count_cores
from robustgen.memory import keep_freed_memory
from robustgen.output.writers import Writer
from robustgen.sources.base import Items

_MOST_DEATHS: Final = 3


class Rendered(NamedTuple):
    """What was made of one source image.

    Attributes
    ----------
    key : str
    pixels : dict
        Folder of an arm to the image (H, W, 3), or the frames (T, H, W, 3), uint8, as each view sees them.
    reason : str or None
        Why there are none.
    """

    key: str
    pixels: dict[str, list[Pixels]]
    reason: str | None = None


@dataclass(frozen=True)
class RenderTask:
    """A few source images, and what is to be made of each.

    Attributes
    ----------
    recipe : Recipe
    source : Items
    writer : Writer
        Of the set that is not written.
    keys : tuple of str
    arms : tuple of Arm
    views : tuple of Preprocessing
        How the models that look at the images have them resized and equalised.
    pulse : Pulse
    turn : int
        Counts the tasks of a run; each begins at another arm (`rotate_arms`).
    """

    recipe: Recipe[Any]
    source: Items[Any]
    writer: Writer
    keys: tuple[str, ...]
    arms: tuple[Arm, ...]
    views: tuple[Preprocessing, ...]
    pulse: Pulse = NO_PULSE
    turn: int = 0

    def run(self) -> list[Rendered]:
        """Make them."""
        keep_freed_memory()
        self.pulse.tell(0)
        made = []
        for key in self.keys:
            made.append(self._render(key))
            self.pulse.tell(len(made))
        self.pulse.tell(0)
        return made

    def _render(self, key: str) -> Rendered:
        pixels: dict[str, list[Pixels]] = {}
        shared: dict[str, Any] = {}
        try:
            prepared = self.recipe.prepare(self.source.open(key))
            for arm in rotate_arms(self.arms, self.turn):
                made = self.recipe.make(arm, key, prepared, shared)
                read = self.writer.as_read(arm, key, made)
                pixels[arm.folder] = [view.prepare(read) for view in self.views]
        except MissingDependencyError:
            raise
        # One bad image does not stop the others, whatever is wrong with it.
        except Exception as error:
            return Rendered(key, {}, explain_failure(error).removeprefix(f"{key!r}: "))
        return Rendered(key, pixels)


@dataclass(frozen=True)
class Renderer:
    """Makes the images of a plan.

    Attributes
    ----------
    plan : Plan
    arms : tuple of Arm
        Those of the plan that are wanted.
    views : tuple of Preprocessing
        As for `RenderTask`.
    signs : Path, optional
        Folder where workers leave signs of life.
    """

    plan: Plan
    arms: tuple[Arm, ...]
    views: tuple[Preprocessing, ...]
    signs: Path | None = None

    @property
    def jobs(self) -> int:
        """How many workers there are."""
        return self.plan.jobs or count_cores()

    def render(self, keys: Sequence[str], size: int) -> Iterator[list[Rendered]]:
        """All `keys` in order, in groups of `size`."""
        groups = [keys[start : start + size] for start in range(0, len(keys), size)]
        with ThreadPoolExecutor(1) as pool:
            waiting: list[Future[list[Rendered]]] = [pool.submit(self.make, each) for each in groups[:1]]
            for number in range(len(groups)):
                made = waiting.pop().result()
                waiting = [pool.submit(self.make, each) for each in groups[number + 1 : number + 2]]
                yield made

    def make(self, keys: Sequence[str]) -> list[Rendered]:
        """The images of one group, in order; what a dead worker had in hand is made again."""
        made: dict[str, Rendered] = {}
        deaths = 0
        # Of each group, so that workers that wait for the model are not called silent.
        pulse = Pulse(self.signs, secrets.token_hex(4))
        with Watch(None, pulse) as watch:
            while missing := [key for key in keys if key not in made]:
                before = len(made)
                workers = self._workers(len(missing), pulse)
                watch.describe = workers.describe_silence
                try:
                    for rendered in workers.carry_out(self._tasks(missing, pulse)):
                        made.update({each.key: each for each in rendered})
                        watch.receive(len(rendered))
                except WorkersLostError as error:
                    deaths = deaths + 1 if len(made) == before else 0
                    self._tell_of_death(error, deaths)
        return [made[key] for key in keys]

    def _tell_of_death(self, error: WorkersLostError, deaths: int) -> None:
        print_line(f"{error}; doing its work again")
        if deaths >= _MOST_DEATHS:
            raise WriteError(
                f"workers keep dying; memory may be short: try fewer --jobs (now {self.jobs}), "
                f"or a smaller --batch-size"
            ) from None

    def _workers(self, images: int, pulse: Pulse) -> Workers:
        count = min(self.jobs, images)
        return Processes(count, pulse) if count > 1 else ThisProcess()

    def _tasks(self, keys: Sequence[str], pulse: Pulse) -> Iterator[RenderTask]:
        plan = self.plan
        step = max(1, min(plan.recipe.images_per_task, len(keys) // (4 * self.jobs)))
        for turn, start in enumerate(range(0, len(keys), step)):
            chunk = tuple(keys[start : start + step])
            yield RenderTask(plan.recipe, plan.source, plan.writer, chunk, self.arms, self.views, pulse, turn)
