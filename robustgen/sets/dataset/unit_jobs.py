"""Jobs that write the files of a work unit, and then its record."""

import errno
import io
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np
from PIL import Image

from robustgen.errors import (
    ImageError,
    MissingDependencyError,
    OutputError,
    RobustgenError,
    SourceError,
    WriteError,
    explain_failure,
    name_error,
)
from robustgen.files.ledger import Failure, Note, Origin, Record
from robustgen.files.set_files import START_OVER, AnotherSetError, WrittenFile
from robustgen.files.storage import Store, host
from robustgen.files.storage.host import HOST, keep_freed_memory, return_freed_memory
from robustgen.pixels.benchmarks.kinds import CLIP, IMAGE, Medium, Variant
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import (
    FEW_GREYS,
    Complaint,
    Loss,
    collect_complaints,
    decode_to_pillow,
    find_loss,
    name_ends,
)
from robustgen.pixels.imaging.file_tags import NO_TAGS
from robustgen.pixels.imaging.frames import Clip
from robustgen.sets.dataset.changes import look_up
from robustgen.sets.dataset.outputs import name_output_in_errors
from robustgen.sets.dataset.recipes import Recipe
from robustgen.sets.dataset.state import SetLedger
from robustgen.sets.executors.progress import Reporter
from robustgen.sets.formats.base import UnitWriter, WorkUnit, Writer, list_versions
from robustgen.sets.sources.base import Items, read_ahead

# A name is too long or invalid, or a file and a folder have it.
_ERRORS_OF_A_NAME = {errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EEXIST, errno.EINVAL}

# Number of values (2.5 megapixels) above which a sequence leaves no room to keep freed memory.
_LARGE: Final = 7_500_000
# Side of the image of noise that loads what the jobs compute with.
_NOISE: Final = 224
# Rows of arrays are small, and rows of one variant are consecutive.
_ROWS_AT_ONCE: Final = 128
_LOSSES: Final = "losses"
_ORIENTATIONS: Final = "orientations"
# Its multiples, modulo 1, are spread evenly between 0 and 1, however many there are.
_GOLDEN_SECTION: Final = 0.6180339887498949


@dataclass(frozen=True)
class Outcome:
    """Result of a work unit.

    Attributes
    ----------
    name : str
        Name of the unit.
    made, size : int
        Number of outputs and of bytes written.
    failures : sequence of dict
    seconds : float
        Duration.
    claimed : bool
        Whether the unit was skipped because another run works on it.
    complaints : sequence of (str, str)
        Source images with warnings of their decoder.
    losses : mapping of str to Loss or None
        Key to what the image loses in 8 bits and three channels.
    orientations : mapping of str to int
        Key to the EXIF orientation, if an image of the unit has one.
    notes : sequence of dict
    """

    name: str
    made: int = 0
    size: int = 0
    failures: tuple[Failure, ...] = ()
    seconds: float = 0.0
    claimed: bool = False
    complaints: tuple[Complaint, ...] = ()
    losses: Mapping[str, Loss | None] = field(default_factory=dict)
    orientations: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class UnitJob:
    """A work unit, with everything that `write_unit` needs.

    Attributes
    ----------
    recipe : Recipe
    source : Items
    writer : Writer
    state : SetLedger
    unit : WorkUnit
    sizes : sequence of int
        Bytes of each source image of the unit at the start of the run.
    versions : mapping of str to str
        Library to the version required of workers on other machines; empty for local workers.
    """

    recipe: Recipe[Any]
    source: Items[Any]
    writer: Writer
    state: SetLedger
    unit: WorkUnit
    sizes: tuple[int, ...]
    versions: Mapping[str, str] = field(default_factory=dict)

    def begin(self, reporter: Reporter) -> Callable[[], Outcome]:
        """Write the files; return a function that awaits them, writes the record and returns the outcome."""
        started = time.monotonic()
        with collect_complaints() as found:
            record, landing = write_unit(self, reporter)

        def end() -> Outcome:
            landing.close()
            self.state.put_record(self.unit.name, record)
            failures = tuple(record.failures)
            lost = (1 if "variant" in each else len(self.unit.variants) for each in failures)
            return Outcome(
                self.unit.name,
                self.unit.count_outputs() - sum(lost),
                sum(file.size for file in record.files),
                failures,
                time.monotonic() - started,
                complaints=tuple(found),
                losses=list_losses(record),
                orientations=list_orientations(record),
                notes=tuple(record.notes),
            )

        return end

    def check_worker(self) -> None:
        """Raise an error if this worker has other library versions than the run, or cannot see its files."""
        wanted, location = self.versions, self.state.root.location
        here = list_versions("ijg" if wanted["libjpeg"].startswith("IJG") else "turbo")
        here |= self.writer.versions() | self.recipe.versions()
        others = [
            f"{name} {here.get(name)}, not {wanted[name]}"
            for name in wanted
            if here.get(name) != wanted[name]
        ]
        if others:
            raise OutputError(f"the worker on {HOST} has {'; '.join(others)}; install the same versions")
        if not self.state.exists:
            raise OutputError(f"the worker on {HOST} cannot see {location}; all workers need the same paths")
        if any(self.sizes) and not any(look_up(self.source, key)[0] for key in self.unit.keys):
            raise SourceError(
                f"the worker on {HOST} cannot see {self.source.location}; all workers need the same paths"
            )


@dataclass(frozen=True)
class UnitJobs:
    """Job for an executor: some work units, one after another.

    On a server, a unit is claimed while the one before is processed, and its last files and its record are
    written while the one after is.
    """

    jobs: tuple[UnitJob, ...]

    def run(self, reporter: Reporter) -> list[Outcome]:
        """Process the units that no other run has claimed, and return the outcome of each."""
        if self.jobs[0].versions:
            self.jobs[0].check_worker()
        root = self.jobs[0].state.root
        with name_output_in_errors(root):
            outcomes = [*root.map(lambda end: end(), self._begin(root, reporter), 1)]
        reporter.tell(0)
        return outcomes

    def rehearse(self) -> None:
        """Compute what the units need on noise, before workers are forked; touch no file of the run."""
        job = self.jobs[0]
        rehearse(job.recipe, job.source.medium, job.writer, job.unit.variants, job.unit.keys[0])

    def _begin(self, root: Store, reporter: Reporter) -> Iterator[Callable[[], Outcome]]:
        """Begin one unit after another; yield functions that end them."""
        before, claims = 0, root.map(lambda job: job.state.claim(job.unit.name), self.jobs, 1)
        for job, is_free in zip(self.jobs, claims, strict=True):
            if is_free:
                yield job.begin(replace(reporter, before=before))
            else:
                yield partial(Outcome, job.unit.name, claimed=True)
            before += job.unit.count_outputs()


def list_losses(record: Record) -> dict[str, Loss | None]:
    """Return what each image of a record loses in 8 bits and three channels, by key."""
    found = (loss and Loss(*loss) for loss in record.values.get(_LOSSES, ()))
    return dict(zip(record.images, found, strict=False))


def list_orientations(record: Record) -> dict[str, int]:
    """Return the EXIF orientation of each image of a record, by key; empty if none has any."""
    return dict(zip(record.images, record.values.get(_ORIENTATIONS, ()), strict=False))


def describe_orientations(orientations: Iterable[int], images: int, fate: str) -> tuple[str, ...]:
    """Return a line about turned or mirrored images, if there are any among so many, and their `fate`."""
    count = sum(each > 1 for each in orientations)
    has = "has" if count == 1 else "have"
    return (f"{count} of {images} images {has} an EXIF orientation: {fate}",) if count else ()


def describe_losses(losses: Mapping[str, Loss | None], images: int) -> tuple[str, ...]:
    """Return remarks about images that come out in few greys, or lose channels, among so many `images`."""
    remarks, found = list[str](), [loss for loss in losses.values() if loss]
    for way in ("high byte", "levels", "colours"):
        own = [loss for loss in found if loss.way == way and loss.low < loss.high]
        low, high = min((loss.low for loss in own), default=0), max((loss.high for loss in own), default=0)
        # An image of a set whose values fill 16 bits may well have few greys.
        most = 4 * FEW_GREYS if way != "levels" and high - low < 1 << 14 else FEW_GREYS
        if few := [loss for loss in own if loss.greys <= most]:
            low, high = min(loss.low for loss in few), max(loss.high for loss in few)
            remedy = "scale them" if way == "colours" else f"set levels, such as {name_ends(low, high)}"
            remarks.append(
                f"{len(few)} of {images} images come out in at most {max(loss.greys for loss in few)} grey "
                f"levels, as their values are {low:.9g} to {high:.9g}: {remedy}"
            )
    if more := sum(loss.has_more for loss in found):
        remarks.append(f"{more} of {images} images have an alpha channel or more bands, which are dropped")
    return tuple(remarks)


def write_unit(job: UnitJob, reporter: Reporter) -> tuple[Record, ExitStack]:
    """Write the files of a work unit; return its record, and what to close before the record is written.

    Raises
    ------
    WriteError
        The output cannot be written; the images are not the cause.
    AnotherSetError
        A source image differs from the one that existing outputs were created from.
    """
    keep_freed_memory()
    root, landing = job.state.root, ExitStack()
    try:
        with landing:
            flight = landing.enter_context(root.open_flight())
            record = _write_files(job, flight, reporter)
            # The last files reach a server while the next unit is processed.
            return record, landing if root.is_local else landing.pop_all()
    except OSError as error:
        if not root.is_local or error.errno not in _ERRORS_OF_A_NAME:
            raise
    # Many files were written at once, so it is unknown which image is the cause.
    root.delete_all(getattr(flight, "written", ()))
    return _write_files(job, root, reporter), landing


def _write_files(job: UnitJob, root: Store, reporter: Reporter) -> Record:
    reporter.tell(0)
    unit, made = job.unit, 0
    images, files, failures = dict[str, Origin](), list[WrittenFile](), list[Failure]()
    losses, orientations, notes = list[Loss | None](), list[int](), list[Note]()
    reads = read_ahead(job.source.location, job.source.read, unit.keys)
    step = _ROWS_AT_ONCE if job.writer.file_per == "operation" else job.recipe.images_at_once
    with job.writer.open(root, unit, job.source.label) as writer:
        for start in range(0, len(unit.keys), step):
            works = [
                ImageWork(job, writer, unit.start + index, unit.keys[index], job.sizes[index], next(reads))
                for index in range(start, min(start + step, len(unit.keys)))
            ]
            # Process variant by variant, so that the tables of each stay in the processor's cache.
            for variant in rotate_variants(unit.variants, unit.number):
                for work in works:
                    made += work.write_variant(variant)
                reporter.tell(made)
                host.check()
            for work in works:
                images[work.key] = work.origin
                losses.append(work.loss)
                orientations.append(work.tags.orientation)
                files += work.files
                failures += work.sort(work.failures)
                notes += work.sort(work.notes)
            # Free the pixels before loading the next images.
            del works, work
        files += writer.finish([*dict.fromkeys(failure["key"] for failure in failures)])
    folders = [variant.folder for variant in unit.variants]
    values: dict[str, list[Any]] = {_LOSSES: losses} if any(losses) else {}
    turned = {_ORIENTATIONS: orientations} if any(orientations) else {}
    noted = {"notes": notes} if notes else {}
    return Record(images, folders, files, failures, unit.shared, values | turned | noted)


def rotate_variants(variants: Iterable[Variant], turn: int) -> list[Variant]:
    """Return all `variants`, rotated so that each `turn` starts with a different one.

    The workers of a first run thus compile different loops, and load the loops of others from the cache.
    """
    variants = list(variants)
    first = int(turn * _GOLDEN_SECTION % 1 * len(variants))
    return variants[first:] + variants[:first]


def _store(noise: Rgb) -> Image.Image:
    stored = io.BytesIO()
    Image.fromarray(noise).save(stored, "jpeg")
    return decode_to_pillow(stored)


_LOADED: Final[Mapping[Medium, Callable[[Rgb], Any]]] = {IMAGE: _store, CLIP: lambda noise: Clip(noise[None])}


def rehearse(
    recipe: Recipe[Any], medium: Medium, writer: Writer, variants: Sequence[Variant], key: str
) -> None:
    """Compute some variants of noise, which loads modules and loops.

    Images and clips are encoded too, under the name of `key`.
    """
    noise = np.random.default_rng(0).integers(0, 256, (_NOISE, _NOISE, 3), np.uint8)
    image, shared = recipe.prepare(_LOADED[medium](noise)), dict[str, Any]()
    # Light and heavy levels need other loops.
    for variant in variants:
        # What goes wrong here goes wrong in the job, which tells of it.
        with suppress(Exception):
            if frames := recipe.stream(variant, "", image):
                next(frames)
            else:
                made = recipe.make(variant, "", image, shared)
                deque(writer.encoder.encode_with_tags(variant, key, made, NO_TAGS), maxlen=0)


def check_identity(source: str, output: str, key: str, expected: str, identity: str) -> None:
    """Raise an AnotherSetError if the `identity` of the image `key` differs from the `expected` one."""
    if expected and expected != identity:
        raise AnotherSetError(f"{source}: {key!r} differs from the image that made {output}. {START_OVER}")


def _guard_frames(frames: Iterator[Rgb]) -> Iterator[Rgb]:
    """Yield the `frames`, computed while they are written; raise an OSError of a frame as an ImageError."""
    try:
        yield from frames
    except OSError as error:
        raise ImageError(name_error(error)) from error


class ImageWork:
    """Processing of one source image: it is loaded once, then corrupted in each variant in turn.

    Attributes
    ----------
    key : str
    origin : Origin
        Bytes and identity of the image at the time of reading.
    loss : Loss or None
        What the image loses in 8 bits and three channels.
    tags : FileTags
        Orientation and colour profile of the file.
    files : list of WrittenFile
    failures : list of dict
    notes : list of dict
    """

    def __init__(
        self, job: UnitJob, writer: UnitWriter, index: int, key: str, size: int, read: Callable[[], Any]
    ) -> None:
        self._job, self._writer, self._index, self.key = job, writer, index, key
        self.origin: Origin = (size, "")
        self.loss: Loss | None = None
        self.tags = NO_TAGS
        self.files: list[WrittenFile] = []
        self.failures: list[Failure] = []
        self.notes: list[Note] = []
        self._shared: dict[str, Any] = {}
        self._image: Any = None
        try:
            loaded, identity = read()
            expected = job.unit.expected.get(key, "")
            check_identity(job.source.location, job.state.root.location, key, expected, identity)
            self.origin = size, identity
            self.loss = find_loss(loaded)
            self.tags = job.source.find_tags(key, loaded)
            self._image = job.recipe.prepare(loaded)
        except OutputError:
            raise
        except Exception as error:
            self._fail(error)

    def write_variant(self, variant: Variant) -> bool:
        """Create and write one variant; record a failure caused by the image, raise any other.

        Returns whether there was work to do.
        """
        job, key, image = self._job, self.key, self._image
        made: Any = None
        if image is None:
            return False
        try:
            frames = job.recipe.stream(variant, key, image)
            if frames is None:
                made = job.recipe.make(variant, key, image, self._shared)
            else:
                if image.size > _LARGE:
                    return_freed_memory()
                made = _guard_frames(frames)
            encoded = job.writer.encoder.encode_with_tags(variant, key, made, self.tags)
            files = self._writer.write(variant, self._index, key, encoded)
            self.files += [file._replace(path=variant.path(file.path)) for file in files]
            if note := job.recipe.note(made):
                self.notes.append({"key": key, "variant": variant.folder, **note})
        except (WriteError, OutputError, MissingDependencyError):
            raise
        except Exception as error:
            if made is None or not isinstance(error, OSError):
                self._fail(error, variant)
            elif isinstance(error, RobustgenError) or error.errno not in _ERRORS_OF_A_NAME:
                raise
            else:
                # All other variants would fail for the same reason.
                self._image = None
                name = job.writer.output_name(key)
                self._fail(ImageError(f"{name} cannot name its output: {error.strerror}"))
        return True

    def _fail(self, error: Exception, variant: Variant | None = None) -> None:
        host.check()
        # The failure already names the key.
        reason = explain_failure(error, self.key)
        entry = {"key": self.key, "variant": variant.folder} if variant else {"key": self.key}
        self.failures.append(entry | {"reason": reason})

    def sort(self, entries: list[Note]) -> list[Note]:
        """Return failures or notes in the order of the variants, whatever the order of processing."""
        order = {variant.folder: index for index, variant in enumerate(self._job.unit.variants)}
        return sorted(entries, key=lambda entry: order.get(entry.get("variant", ""), 0))
