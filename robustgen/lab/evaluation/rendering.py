"""The images of a set that is never written, created by workers, as a reader of the set would get them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from robustgen.display.progress import Meter
from robustgen.errors import MissingDependencyError, explain_failure
from robustgen.files.storage.host import keep_freed_memory
from robustgen.lab.models.preprocessing import Pixels, Preprocessing
from robustgen.pixels.benchmarks.kinds import CLIP, Medium, Variant
from robustgen.pixels.imaging.decode import Complaint, Loss, collect_complaints, find_loss
from robustgen.pixels.imaging.file_tags import NO_TAGS
from robustgen.pixels.imaging.frames import frame_stride, sample_frames
from robustgen.sets.dataset.plan import Making
from robustgen.sets.dataset.recipes import Recipe, item_rng
from robustgen.sets.dataset.unit_jobs import rehearse, rotate_variants
from robustgen.sets.executors import submit_jobs
from robustgen.sets.executors.progress import Progress, Reporter
from robustgen.sets.formats.base import Writer
from robustgen.sets.sources.base import Items, read_ahead


@dataclass(frozen=True)
class FrameSampling:
    """Choice of the frames of a clip that a model gets.

    Attributes
    ----------
    frames : int
        Number of frames.
    seed : int or None
        Seed of the first frame of each clip; None for the first one.
    """

    frames: int
    seed: int | None = None

    def take(self, key: str, pixels: Pixels) -> Pixels:
        """Return the chosen frames of the clip `key`, uint8 (frames, H, W, 3)."""
        count, offset = len(pixels), 0
        if self.seed is not None and count > self.frames:
            rng = item_rng(self.seed, "c", CLIP.name, "first frame", 0, key)
            offset = int(rng.integers(frame_stride(count, self.frames)))
        return pixels[sample_frames(count, self.frames, offset)]


def sample_clips(medium: Medium, frames: int, seed: int | None = None) -> FrameSampling | None:
    """Return the choice of `frames` frames of a clip; None for images."""
    return FrameSampling(frames, seed) if medium is CLIP else None


class Rendered(NamedTuple):
    """Outputs of one source image.

    Attributes
    ----------
    key : str
    pixels : dict
        Folder of a variant, and preprocessing, to the image (H, W, 3) or the frames (T, H, W, 3), uint8.
    failures : dict of str to str
        Folder of each other variant to the reason why it cannot be made.
    identity : str
        Identity of the source image when it was read; empty if it cannot be read.
    complaints : sequence of (str, str)
        Warnings of its decoder.
    loss : Loss or None
        What the source image loses in 8 bits and three channels.
    orientation : int
        Its EXIF orientation; 0 if it has none.
    """

    key: str
    pixels: dict[str, dict[Preprocessing, Pixels]]
    failures: dict[str, str]
    identity: str
    complaints: tuple[Complaint, ...] = ()
    loss: Loss | None = None
    orientation: int = 0


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
    variants : tuple of Variant
    views : tuple of Preprocessing
        Resizing and equalisation for the models.
    turn : int
        Number of the job in its group; each begins with another variant (`rotate_variants`).
    sampling : FrameSampling, optional
        Frames of each clip.
    """

    recipe: Recipe[Any]
    source: Items[Any]
    writer: Writer
    keys: tuple[str, ...]
    variants: tuple[Variant, ...]
    views: tuple[Preprocessing, ...]
    turn: int = 0
    sampling: FrameSampling | None = None

    def run(self, reporter: Reporter) -> list[Rendered]:
        """Create the images."""
        keep_freed_memory()
        reporter.tell(0)
        made = []
        reads = read_ahead(self.source.location, self._read, self.keys)
        for key in self.keys:
            made.append(self._render(key, next(reads)))
            reporter.tell(len(made))
        reporter.tell(0)
        return made

    def rehearse(self) -> None:
        """Compute what the job needs on noise, before workers are forked."""
        rehearse(self.recipe, self.source.medium, self.writer, self.variants, self.keys[0])

    def _read(self, key: str) -> tuple[Any, str, list[Complaint]]:
        """Return an image as `Source.read` does, and the warnings of its decoder."""
        with collect_complaints() as found:
            return *self.source.read(key), found

    def _render(self, key: str, read: Callable[[], tuple[Any, str, list[Complaint]]]) -> Rendered:
        pixels, failures = dict[str, dict[Preprocessing, Pixels]](), dict[str, str]()
        shared, loss, tags = dict[str, Any](), None, NO_TAGS
        prepared, identity, found = None, "", list[Complaint]()
        for variant in rotate_variants(self.variants, self.turn):
            try:
                if prepared is None:
                    loaded, identity, found = read()
                    loss = find_loss(loaded)
                    tags = self.source.find_tags(key, loaded)
                    prepared = self.recipe.prepare(loaded)
                made = self.recipe.make(variant, key, prepared, shared)
                seen = self.writer.encoder.as_read(variant, key, made)
                seen = self.sampling.take(key, seen) if self.sampling else seen
                pixels[variant.folder] = {view: view.prepare(seen) for view in self.views}
            except MissingDependencyError:
                raise
            # A bad image does not stop the others, whatever its error.
            except Exception as error:
                failures[variant.folder] = explain_failure(error, key)
                if prepared is None:
                    failures = {each.folder: failures[variant.folder] for each in self.variants}
                    break
        return Rendered(key, pixels, failures, identity, tuple(found), loss, tags.orientation)


def render_images(
    making: Making,
    keys: Sequence[str],
    variants: tuple[Variant, ...],
    views: tuple[Preprocessing, ...],
    workers: int,
    meter: Meter | None = None,
    sampling: FrameSampling | None = None,
) -> dict[str, Rendered]:
    """Return the images called `keys` in these variants, made by so many workers; `meter` waits for loops.

    Of clips, `sampling` chooses the frames.
    """
    made = dict[str, Rendered]()
    step = max(1, min(making.recipe.images_at_once, len(keys) // (4 * workers)))
    chunks = [tuple(keys[start : start + step]) for start in range(0, len(keys), step)]
    jobs = {
        chunk[0]: Rendering(
            making.recipe, making.source, making.writer, chunk, variants, views, turn, sampling
        )
        for turn, chunk in enumerate(chunks)
    }
    # Observed call by call, so that workers that wait for the model do not count as silent.
    with Progress(meter, counts=False) as progress:
        results: Iterator[list[Rendered]] = submit_jobs(
            jobs, lambda rendered: rendered[0].key, workers, progress, remedy=", or a smaller --batch-size"
        )
        for rendered in results:
            made.update({each.key: each for each in rendered})
            progress.finish(len(rendered))
    return made
