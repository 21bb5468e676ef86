"""What `robustgen preview` shows: one image, and the very pixels that make-c or make-p would make of it."""

import math
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from robustgen.benchmark import BENCHMARKS, CLEAN, Arm, Kind
from robustgen.display import sheets
from robustgen.display.sheets import CELL, Row, fitted
from robustgen.errors import ArgumentError, ConfigError, ImageError, OutputError, SourceError
from robustgen.generation.config import Config
from robustgen.generation.plan import Plan, plan_benchmark
from robustgen.generation.recipes import Recipe
from robustgen.imaging import video
from robustgen.imaging.decode import decode
from robustgen.imaging.pixels import Rgb
from robustgen.registry import CATEGORIES

ANIMATED = (".gif", ".webp", ".mp4")
FRAMES_PER_SECOND = 8
# Equally far apart in all the published lengths: 16, 21, 31 and 41.
FRAMES = 6
# A lone sequence is animated at its own size, if that is reasonable.
_SMALLEST_ALONE, _LARGEST_ALONE = 224, 512


@dataclass(frozen=True)
class Subject:
    """The image that is shown, and what is made of it.

    Attributes
    ----------
    kind : {"c", "p"}
    recipe : Recipe
    arms : tuple of Arm
        Of corruptions or perturbations, without the clean one, category by category.
    key : str
        The image's key, which decides its random streams.
    image : uint8 ndarray of shape (H, W, 3)
        Prepared for corruptions, raw for perturbations.
    edition : str
    seed : int
    """

    kind: Kind
    recipe: Recipe[Rgb]
    arms: tuple[Arm, ...]
    key: str
    image: Rgb
    edition: str
    seed: int
    _shared: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def make(self, arm: Arm) -> Rgb:
        """What make-c or make-p would write for `arm`, before it is encoded: (H, W, 3) or (T, H, W, 3).

        Raises
        ------
        ImageError
            It cannot be made of this image.
        """
        try:
            return self.recipe.make(arm, self.key, self.image, self._shared)
        except ImageError as error:
            raise ImageError(f"{self.key!r}: {arm.folder}: {error}") from error

    @property
    def note(self) -> str:
        """What a sheet says of itself at the bottom."""
        return f"{self.key} · {self.edition} · seed {self.seed}"

    def category(self, arm: Arm) -> str:
        """The category of the corruption or perturbation of `arm`."""
        return BENCHMARKS[self.kind].operations[arm.name].category


# --- which image ---------------------------------------------------------------------------------


def from_source(config: Config, kind: Kind, index: int, output: Path) -> Subject:
    """The image at `index`, from 0, among those that make-c or make-p would take.

    Raises
    ------
    SourceError, ConfigError, OutputError
        There is no such image, or the sheet at `output` would lie among the images.
    ImageError
        It cannot be read, or is too small for the edition.
    """
    plan = _plan(config, kind, output)
    if not 0 <= index < len(plan.keys):
        raise ConfigError(f"--index {index}: the images have the numbers 0 to {len(plan.keys) - 1}")
    key = plan.keys[index]
    return _subject(config, kind, plan, key, plan.source.load(key))


def from_file(path: Path, config: Config, kind: Kind, output: Path) -> Subject:
    """The image at `path`, whose key is ``<name of its folder>/<its own name>``.

    Of a data set whose images lie in class folders, that is the key which make-c and make-p give it.

    Raises
    ------
    SourceError, OutputError
        There is no such file, or `output` is the same.
    ImageError
        It cannot be read, or is too small for the edition.
    """
    with suppress(OSError):
        if path.samefile(output):
            raise OutputError(f"--output {output}: is the image itself")
    if not path.is_file():
        hint = "is a folder; --source shows an image of it" if path.is_dir() else "not a regular file"
        raise SourceError(f"{path}: {'no such file' if not path.exists() else hint}")
    own = Path(path.absolute().parent.name) / path.name
    nowhere = {"source": None, "source_kind": "demo", "labels": None, "subset": None, "limit": None}
    plan = _plan(config.model_copy(update=nowhere), kind, output)
    return _subject(config, kind, plan, own.as_posix(), decode(path))


def _plan(config: Config, kind: Kind, output: Path) -> Plan:
    # The folder of the sheet takes the place of that of the files; PNG frames ask for nothing beforehand.
    changed = {"output": str(output.absolute().parent), "format": "png"}
    return plan_benchmark(config.model_copy(update=changed), kind, anew=True)


def _subject(config: Config, kind: Kind, plan: Plan, key: str, source: Rgb) -> Subject:
    try:
        image = plan.recipe.prepare(source)
    except ImageError as error:
        raise ImageError(f"{key!r}: {error}") from error
    known = BENCHMARKS[kind].operations
    arms = [arm for arm in plan.arms if arm.name != CLEAN]
    arms.sort(key=lambda arm: CATEGORIES.index(known[arm.name].category))
    return Subject(kind, plan.recipe, tuple(arms), key, image, config.edition, config.seed)


# --- sheets --------------------------------------------------------------------------------------


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def drawn(subject: Subject, *, grid: bool = False, frames: int = FRAMES, cell: int = CELL) -> Rgb:
    """The sheet of `subject`, uint8 (H, W, 3); `grid` is for corruptions, `frames` for perturbations."""
    if subject.kind == "p":
        return sequence_sheet(subject, frames, cell)
    return (corruption_grid if grid else corruption_sheet)(subject, cell)


def corruption_sheet(subject: Subject, cell: int = CELL) -> Rgb:
    """A row for each corruption, a column for the clean image and each severity; uint8 (H, W, 3)."""
    clean = fitted(subject.image, cell)
    rows = [
        # Reduced one by one: at their own size, all of a large photograph's would fill the memory.
        Row(_spoken(name), [clean, *(fitted(subject.make(arm), cell) for arm in arms)], group=category)
        for (category, name), arms in groupby(subject.arms, lambda arm: (subject.category(arm), arm.name))
    ]
    levels = sorted({arm.level for arm in subject.arms})
    columns = ["clean", *(f"severity {level}" for level in levels)]
    return sheets.sheet(rows, columns, cell=cell, note=subject.note)


def corruption_grid(subject: Subject, cell: int = CELL) -> Rgb:
    """Every corruption at one severity over its name, five in a row, as in the paper's figure 1."""
    pictures = [(_spoken(arm.name), fitted(subject.make(arm), cell)) for arm in subject.arms]
    (level,) = {arm.level for arm in subject.arms}
    return sheets.grid(pictures, cell=cell, note=f"{subject.note} · severity {level}")


def sequence_sheet(subject: Subject, frames: int = FRAMES, cell: int = CELL) -> Rgb:
    """A row for each perturbation: so many frames of it, evenly spaced from the first to the last."""
    strips = [_strip(subject.make(arm), frames, cell) for arm in subject.arms]
    # Not all sequences are of one length; what differs from the heads is told under the pictures.
    ((heads, _),) = Counter(names for names, _ in strips).most_common(1)
    rows = [
        Row(_spoken(arm.folder), pictures, () if names == heads else names, subject.category(arm))
        for arm, (names, pictures) in zip(subject.arms, strips, strict=True)
    ]
    return sheets.sheet(rows, heads, cell=cell, note=subject.note)


def _strip(sequence: Rgb, count: int, cell: int) -> tuple[tuple[str, ...], list[Rgb]]:
    """Names and pictures of `count` frames, or of all if there are fewer."""
    last = len(sequence) - 1
    numbers = np.linspace(0, last, min(count, last + 1)).round().astype(int).tolist()
    return tuple(f"frame {n}" for n in numbers), [fitted(sequence[n], cell) for n in numbers]


# --- animations ----------------------------------------------------------------------------------


def animation(subject: Subject, cell: int | None = None) -> Rgb:
    """The frames, uint8 (T, H, W, 3), of the perturbations: of one alone, of several side by side with names.

    Where sequences differ in length, the shorter ones wait at their end.
    """
    if len(subject.arms) == 1:
        alone = subject.make(subject.arms[0])
        return np.stack(_small(alone, cell or _own_size(alone)))
    size = cell or CELL
    sequences = [_small(subject.make(arm), size) for arm in subject.arms]
    names = [_spoken(arm.folder) for arm in subject.arms]
    moments = zip(*_equally_long(sequences), strict=True)
    grids = [zip(names, pictures, strict=True) for pictures in moments]
    return np.stack([sheets.grid(pictures, cell=size, note=subject.note) for pictures in grids])


def _small(sequence: Rgb, cell: int) -> list[Rgb]:
    return [fitted(frame, cell) for frame in sequence]


def _own_size(sequence: Rgb) -> int:
    _, height, width, _ = sequence.shape
    return min(max(round(math.sqrt(height * width)), _SMALLEST_ALONE), _LARGEST_ALONE)


def _equally_long(sequences: list[list[Rgb]]) -> list[list[Rgb]]:
    longest = max(map(len, sequences))
    return [sequence + sequence[-1:] * (longest - len(sequence)) for sequence in sequences]


def animated(frames: Rgb, suffix: str, quality: int = 85) -> bytes:
    """The file of `frames`, uint8 (T, H, W, 3): endless GIF or WebP, or MP4 that browsers play.

    Raises
    ------
    ArgumentError, ImageError
        The frames are too large for the format.
    """
    if suffix == ".mp4":
        encoding = video.Encoding(preset="medium", fps=FRAMES_PER_SECOND).playable()
        return video.encode(_even_sided(frames), encoding)
    first, *others = map(Image.fromarray, frames)
    buffer, format = BytesIO(), suffix[1:].upper()
    options = {"quality": quality} if format == "WEBP" else {}
    pause = 1000 // FRAMES_PER_SECOND
    try:
        first.save(buffer, format, save_all=True, append_images=others, duration=pause, loop=0, **options)
    except (OSError, ValueError, RuntimeError) as error:
        raise ArgumentError(
            f"{first.width} x {first.height} pixels do not go into {suffix}: {error}"
        ) from error
    return buffer.getvalue()


def _even_sided(frames: Rgb) -> Rgb:
    """`frames` with their last row and column again where their number is odd, as yuv420p asks for."""
    _, height, width, _ = frames.shape
    return np.pad(frames, ((0, 0), (0, height % 2), (0, width % 2), (0, 0)), mode="edge")


# --- files ---------------------------------------------------------------------------------------


def check_output(path: Path, animate: bool) -> None:
    """Find out before the work whether `path` can name the file.

    Raises
    ------
    OutputError
        It is a folder, or ends in nothing we know.
    """
    known = ANIMATED if animate else sheets.SUFFIXES
    if path.suffix.lower() not in known:
        hint = " (animations need --animate)" if path.suffix.lower() in ANIMATED else ""
        raise OutputError(f"--output {path}: must end in {', '.join(known)}{hint}")
    if path.is_dir():
        raise OutputError(f"--output {path}: is a folder")
