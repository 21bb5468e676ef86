"""The images of a set that is never written, created by workers, as a reader of the set would get them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from robustgen.benchmarks.kinds import Variant
from robustgen.dataset.plan import Plan
from robustgen.dataset.produce import rotate_variants
from robustgen.dataset.recipes import Recipe
from robustgen.errors import MissingDependencyError, explain_failure
from robustgen.execution import carry_out, count_cores
from robustgen.execution.progress import Progress, Reporter
from robustgen.files.storage.memory import keep_freed_memory
from robustgen.formats import Writer
from robustgen.models.preprocessing import Pixels, Preprocessing
from robustgen.sources.base import Items


class Rendered(NamedTuple):
    """Outputs of one source image.

    Attributes
    ----------
    key : str
    pixels : dict
        Folder of an arm to the image (H, W, 3), or the frames (T, H, W, 3), uint8, for each preprocessing.
    reason : str or None
        Reason of a failure.
    identity : str
        Identity of the source image when it was read.
    """

    key: str
    pixels: dict[str, list[Pixels]]
    reason: str | None = None
    identity: str = ""


@dataclass(frozen=True)
class Rendering:
    """A few source images and their variants: a job for an executor.

    Attributes
    ----------
    recipe : Recipe
    source : Items
    writer : Writer
        Writer of the set that is not written.
    keys : tuple of str
    arms : tuple of Variant
    views : tuple of Preprocessing
        Resizing and equalisation for the models.
    turn : int
        Number of the job in its group; each begins with another variant (`rotate_variants`).
    """

    recipe: Recipe[Any]
    source: Items[Any]
    writer: Writer
    keys: tuple[str, ...]
    arms: tuple[Variant, ...]
    views: tuple[Preprocessing, ...]
    turn: int = 0

    def run(self, reporter: Reporter) -> list[Rendered]:
        """Create the images."""
        keep_freed_memory()
        reporter.tell(0)
        made = []
        for key in self.keys:
            made.append(self._render(key))
            reporter.tell(len(made))
        reporter.tell(0)
        return made

    def _render(self, key: str) -> Rendered:
        pixels: dict[str, list[Pixels]] = {}
        shared: dict[str, Any] = {}
        try:
            loaded, identity = self.source.read(key)
            prepared = self.recipe.prepare(loaded)
            for arm in rotate_variants(self.arms, self.turn):
                made = self.recipe.make(arm, key, prepared, shared)
                read = self.writer.encoder.as_read(arm, key, made)
                pixels[arm.folder] = [view.prepare(read) for view in self.views]
        except MissingDependencyError:
            raise
        # A bad image does not stop the others, whatever its error.
        except Exception as error:
            return Rendered(key, {}, explain_failure(error).removeprefix(f"{key!r}: "))
        return Rendered(key, pixels, None, identity)


@dataclass(frozen=True)
class Renderer:
    """Creates the images of a plan.

    Attributes
    ----------
    plan : Plan
    arms : tuple of Variant
        The wanted variants of the plan.
    views : tuple of Preprocessing
        As in `Rendering`.
    """

    plan: Plan
    arms: tuple[Variant, ...]
    views: tuple[Preprocessing, ...]

    @property
    def jobs(self) -> int:
        """Return the number of workers."""
        return self.plan.jobs or count_cores()

    def make(self, keys: Sequence[str]) -> list[Rendered]:
        """Return the images of one group, in order."""
        plan, made = self.plan, dict[str, Rendered]()
        step = max(1, min(plan.recipe.images_at_once, len(keys) // (4 * self.jobs)))
        chunks = [tuple(keys[start : start + step]) for start in range(0, len(keys), step)]
        jobs = {
            chunk[0]: Rendering(plan.recipe, plan.source, plan.writer, chunk, self.arms, self.views, turn)
            for turn, chunk in enumerate(chunks)
        }
        # Observed group by group, so that workers that wait for the model do not count as silent.
        with Progress() as progress:
            results: Iterator[list[Rendered]] = carry_out(
                jobs,
                lambda rendered: rendered[0].key,
                self.jobs,
                progress,
                remedy=", or a smaller --batch-size",
            )
            for rendered in results:
                made.update({each.key: each for each in rendered})
                progress.finish(len(rendered))
        return [made[key] for key in keys]
