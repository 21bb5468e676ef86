"""Images that distinguish models: those that flip first, and those that only one model gets right."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from robustgen.display.sheets import fit_picture
from robustgen.lab.scores.results import ModelScores
from robustgen.pixels.benchmarks.kinds import CLEAN, CLEAN_VARIANT, Benchmark, Kind, Variant, parse_variant
from robustgen.pixels.imaging.arrays import Rgb

IMAGES: Final = 8
"""Number of images of each kind."""
_CELL: Final = 150


class PictureSet(Protocol):
    """A C or P set, as far as scores need it; `robustgen.open_set` returns one."""

    kind: Kind

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Return the variants of the set."""

    @property
    def root(self) -> str:
        """Return the path or URL of the set."""

    @property
    def benchmark(self) -> Benchmark:
        """Return the benchmark of the set."""

    def keys_of(self, variant: Variant) -> tuple[str, ...]:
        """Return the names of the images or sequences of `variant`."""

    def load(self, variant: Variant, key: str) -> Rgb:
        """Return the image, uint8 (H, W, 3), or the frames called `key`."""


@dataclass(frozen=True)
class Exhibit:
    """One image of the gallery.

    Attributes
    ----------
    key : str
    variant : str
        Folder of the variant.
    model : str
        The model in question.
    clean : uint8 ndarray of shape (H, W, 3) or None
    picture : uint8 ndarray of shape (H, W, 3)
    """

    key: str
    variant: str
    model: str
    clean: Rgb | None
    picture: Rgb


@dataclass(frozen=True)
class Gallery:
    """The images to show.

    Attributes
    ----------
    flipped, lone : list of Exhibit
        Those that flip first, and those that only one model gets right.
    """

    flipped: list[Exhibit]
    lone: list[Exhibit]


def choose_images(models: Sequence[ModelScores], dataset: PictureSet, keys: Sequence[str]) -> Gallery:
    """Choose the most informative images of a C set, and read them.

    Parameters
    ----------
    models : sequence of ModelScores
        The best first.
    dataset : PictureSet
        The set.
    keys : sequence of str
        Sorted keys of the predicted images, which may be a part of it.
    """
    flipped = [
        _show(dataset, keys[image], folder, models[0])
        for image, folder in find_first_flips(models[0], IMAGES)
    ]
    lone = [
        _show(dataset, keys[image], folder, models[index])
        for index, image, folder in find_lone_successes(models, IMAGES)
    ]
    return Gallery(flipped, lone)


def find_first_flips(model: ModelScores, count: int) -> Iterator[tuple[int, str]]:
    """Yield indices of images that are right when clean and wrong at low severities, and the variants.

    An image is ranked by its lowest wrong severity of each corruption, summed over the corruptions.
    """
    names = [*model.errors]
    rows = np.stack([model.measured_mistakes(name) for name in names]).astype(bool)
    levels = len(model.levels)
    # Index of the first wrong severity; the number of severities if there is none.
    first = np.where(rows.any(axis=1), rows.argmax(axis=1), levels)
    order = np.argsort(first.sum(axis=0), kind="stable")
    clean = np.asarray(model.mistakes.get(CLEAN, np.zeros(rows.shape[-1], bool)))
    for image in [index for index in order.tolist() if not clean[index]][:count]:
        if (lowest := first[:, image]).min() < levels:
            name = names[int(lowest.argmin())]
            yield image, f"{name}/{model.levels[int(lowest.min())]:g}"


def find_lone_successes(models: Sequence[ModelScores], count: int) -> Iterator[tuple[int, int, str]]:
    """Yield the index of a model, of an image that only it gets right in most variants, and one of these."""
    if len(models) < 2:
        return
    folders = [folder for folder in models[0].mistakes if all(folder in each.mistakes for each in models)]
    folders = [folder for folder in folders if folder != CLEAN]
    total = np.sum([_right(model, folders) for model in models], axis=0, dtype=np.int32)
    share = -(-count // min(len(models), count))
    for index, model in list(enumerate(models))[:count]:
        alone = _right(model, folders) & (total == 1)
        often = alone.sum(axis=0)
        for image in np.argsort(-often, kind="stable")[:share].tolist():
            if often[image]:
                # The highest severity is the most informative.
                best = max(
                    np.flatnonzero(alone[:, image]).tolist(), key=lambda i: folders[i].rpartition("/")[2]
                )
                yield index, image, folders[best]


def _right(model: ModelScores, folders: Sequence[str]) -> NDArray[np.bool_]:
    return ~np.stack([model.mistakes[folder] for folder in folders]).astype(bool)


def _show(dataset: PictureSet, key: str, folder: str, model: ModelScores) -> Exhibit:
    clean = _read(dataset, CLEAN_VARIANT, key) if CLEAN_VARIANT in dataset.variants else None
    return Exhibit(key, folder, model.model, clean, _read(dataset, parse_variant(folder, "c"), key))


def _read(dataset: PictureSet, variant: Variant, key: str) -> Rgb:
    return fit_picture(dataset.load(variant, key), _CELL)
