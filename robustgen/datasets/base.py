"""What every set offers, whatever its layout: arms, keys, labels and pixels."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from robustgen.benchmark import BENCHMARKS, Arm, Benchmark, Kind
from robustgen.datasets.prefetch import prefetch
from robustgen.errors import ImageError, SourceError
from robustgen.sources import sample_names

Pixels = NDArray[np.uint8]
Labels = NDArray[np.int64]

_LEVELS = tuple(map(str, BENCHMARKS["c"].levels))


def parse_arm(folder: str, kind: Kind) -> Arm:
    """The arm whose files lie in `folder`: ``fog/3``, ``clean``, ``tilt`` or ``shot_noise_2``.

    Raises
    ------
    SourceError
        There can be no such folder in a set of this kind.
    """
    arm = BENCHMARKS[kind].arm_in(folder)
    if arm is None:
        raise SourceError(f"{folder!r} is no corruption with a severity from 1 to {_LEVELS[-1]}")
    return arm


def name_contents(kind: Kind) -> str:
    """What a set of this kind holds."""
    return f"{BENCHMARKS[kind].noun}s"


def describe_difference(own: Sequence[str], others: Sequence[str], what: str) -> str:
    """How the keys `own` differ from `others`, in a few words."""
    missing, more = sorted(set(others) - set(own)), sorted(set(own) - set(others))
    parts = []
    if missing:
        parts.append(f"{len(missing)} of {len(others)} {what} are missing, for instance {missing[0]!r}")
    if more:
        parts.append(f"{len(more)} {what} too many, for instance {more[0]!r}")
    return " and ".join(parts) or f"the {what} are in another order"


def read_names(path: Path) -> list[str] | None:
    """The names in a file beside a set, or None where there is none.

    Raises
    ------
    SourceError
        It cannot be read.
    """
    try:
        return sample_names.read_names(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from error


def stack_images(images: Sequence[Pixels], where: object, remedy: str = "") -> Pixels:
    """Images (or sequences) of one size as one array, uint8 (N, ...).

    Raises
    ------
    ImageError
        There are several sizes: two of them, `where`, and the `remedy`.
    """
    if len({image.shape for image in images}) > 1:
        sizes = " and ".join(sorted({"x".join(map(str, image.shape[:-1])) for image in images})[:2])
        raise ImageError(f"{where}: images differ in size: {sizes}{remedy and f' ({remedy})'}")
    return np.stack(images)


class Dataset(ABC):
    """A C or a P set.

    Attributes
    ----------
    root : Path
    kind : {"c", "p"}
    arms : tuple of Arm
        The clean images, where there are any, then all corruptions and severities; or all perturbations.
    about : mapping
        What `dataset.json` says; empty for a set that has none.
    format : str
        Name of the format that writes this layout, among those of `robustgen.output.writers`.
    usual_edition : str
        What sets of this layout are of, if they have no manifest.
    has_image_files : bool
        Whether each image, or each frame of a sequence, is a file of its own.
    in_place : bool
        Whether the arms lie where make-c and make-p put them.
    """

    root: Path
    kind: Kind
    arms: tuple[Arm, ...]
    about: Mapping[str, Any]
    format: ClassVar[str]
    usual_edition: ClassVar[str] = "imagenet"
    has_image_files: bool = False
    in_place: bool = True

    @property
    def benchmark(self) -> Benchmark:
        """The benchmark that it is a set of."""
        return BENCHMARKS[self.kind]

    @abstractmethod
    def keys(self, arm: Arm) -> tuple[str, ...]:
        """Names of the images or sequences of `arm`; those of all arms are the same.

        Raises
        ------
        SourceError
            The arm lacks some of the images of the others, or has more.
        """

    @abstractmethod
    def labels(self, arm: Arm) -> Labels | None:
        """True classes, (images,); None for a P set of arrays that came without.

        Raises
        ------
        SourceError
            A class folder is not among the classes, or the labels do not fit the images.
        """

    @property
    @abstractmethod
    def classes(self) -> int | None:
        """How many classes there are, as far as the set tells."""

    @abstractmethod
    def load(self, arm: Arm, index: int) -> Pixels:
        """The image (H, W, 3), or the frames (T, H, W, 3), of the key at `index`.

        Raises
        ------
        ImageError
            It cannot be read.
        """

    @abstractmethod
    def read(self, arm: Arm, key: str) -> Pixels:
        """As `load`, of the image or sequence called `key`; the other arms need not have it.

        Raises
        ------
        ImageError
            It is not there, or cannot be read.
        """

    def has(self, arm: Arm, key: str) -> bool:
        """Whether `arm` has the image or sequence called `key`."""
        return True

    def size(self, key: str) -> int:
        """Bytes of the files that all arms have of `key`; 0 where images have none of their own.

        Raises
        ------
        ImageError
            One is not there.
        """
        return 0

    def path(self, arm: Arm, key: str) -> Path | None:
        """The file of `key`, or the folder of its frames; None where it has none of its own."""
        return None

    def recorded_keys(self, arm: Arm) -> tuple[str, ...]:
        """The keys of `arm`, from its checksums where that is quicker than to look for the files."""
        return self.keys(arm)

    def restrict(self, arm: Arm, keys: tuple[str, ...] | None = None) -> "Dataset":
        """The set with no other arm, so that its keys are those that are there; or the `keys`, if known."""
        return self

    def batches(
        self,
        arm: Arm,
        size: int,
        start: int = 0,
        prepare: Callable[[Pixels], Pixels] | None = None,
    ) -> Iterator[Pixels]:
        """Images or sequences in the order of `keys`, `size` at a time; the next are read meanwhile.

        Parameters
        ----------
        arm : Arm
        size : int
        start : int
            Index of the first.
        prepare : callable, optional
            Applied to each image or sequence, for instance to resize it.

        Yields
        ------
        ndarray, (size, H, W, 3) or (size, T, H, W, 3), uint8
            The last may be smaller.

        Raises
        ------
        ImageError
            One cannot be read, or they differ in size.
        """

        def read(first: int) -> Pixels:
            items = [self.load(arm, index) for index in range(first, min(first + size, count))]
            prepared = [prepare(item) for item in items] if prepare else items
            return stack_images(prepared, self.root / arm.folder)

        count = len(self.keys(arm))
        yield from prefetch(read, range(start, count, size))
