"""The order of a stream: for each step an image, a corruption and a severity.

A stream consists of stretches, each of all images with one corruption at one severity. The settings differ in
the stretches and in the order within them; `draw_stream` implements all of them.

Wang et al., "Continual Test-Time Domain Adaptation" (CVPR 2022), and its code, CoTTA: continual and gradual.
Marsden, Doebler and Yang, "Universal Test-Time Adaptation through Weight Ensembling, Diversity Weighting, and
Prior Correction" (WACV 2024), and its code: mixed, with resets, and the correlated forms of all.
Hoang, Vo and Do, "Persistent Test-time Adaptation in Recurring Testing Scenarios" (NeurIPS 2024): the visits.
Yuan, Xie and Li, "Robust Test-Time Adaptation in Dynamic Scenarios" (CVPR 2023), and its code, RoTTA, and
Gong et al., "NOTE: Robust Continual Test-time Adaptation Against Temporal Correlation" (NeurIPS 2022), its
code: orders in which images of a class come together, by Dirichlet distributions.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from robustgen.errors import ArgumentError
from robustgen.pixels.benchmarks.kinds import CLEAN, IMAGENET_C
from robustgen.pixels.imaging.rng import dirichlet
from robustgen.related.streams.settings import SETTINGS, Drawing, Law, Setting
from robustgen.settings.config import Config

_ROTTA = (
    *("motion_blur", "snow", "fog", "shot_noise", "defocus_blur", "contrast", "zoom_blur", "brightness"),
    *("frost", "elastic_transform", "glass_blur", "gaussian_noise", "pixelate", "jpeg_compression"),
    "impulse_noise",
)

ORDERS: Final[Mapping[Setting, tuple[str, ...]]] = MappingProxyType(
    dict.fromkeys(SETTINGS, IMAGENET_C.common) | {"correlated": _ROTTA}
)
"""The corruptions in the order of each setting's paper."""


@dataclass(frozen=True)
class StreamChoices:
    """All settings of a stream, without the images.

    Attributes
    ----------
    corruptions : tuple of str
        Corruptions, in order; "clean" for the clean images, whose severity is 0.
    severities : tuple of float
        For gradual settings the severities to go up and down through, ascending; otherwise exactly one.
    drawing : Drawing
        The setting, and its other choices.
    """

    corruptions: tuple[str, ...]
    severities: tuple[float, ...]
    drawing: Drawing

    @property
    def setting(self) -> Setting:
        """Return the kind of the stream."""
        return self.drawing.setting

    @property
    def gradual(self) -> bool:
        """Return whether the severity goes up and down."""
        return self.setting.startswith("gradual")

    @property
    def correlated(self) -> bool:
        """Return whether images of a class come together by a Dirichlet distribution."""
        return self.setting.endswith("correlated")

    @property
    def resets(self) -> bool:
        """Return whether the model is reset at each change of the corruption."""
        return self.setting.startswith("reset-each-shift")

    def __post_init__(self) -> None:
        if not self.gradual and len(self.severities) != 1:
            raise ArgumentError(f"severities: a {self.setting} stream has one, not {len(self.severities)}")
        if self.drawing.abrupt and not self.gradual:
            raise ArgumentError(f"a {self.setting} stream has no abrupt start: its severity never changes")


def choose(config: Config, drawing: Drawing) -> StreamChoices:
    """Return the settings of a stream; defaults are the paper's order and severities."""
    setting, corruptions, severities = drawing.setting, config.corruptions, config.severities
    if "corruptions" not in config.flagged and {*corruptions} == {*ORDERS[setting]}:
        corruptions = ORDERS[setting]
    if "severities" not in config.flagged and not setting.startswith("gradual"):
        severities = (5,)
    return StreamChoices(corruptions, severities, drawing)


Indices = npt.NDArray[np.int64]

# As in the code of RoTTA.
_PUBLISHED_SLOTS: Final = 100
# As in the code of NOTE.
_FEWEST_IN_A_SLOT: Final = 10
_PATIENCE_S: Final = 120


def draw_correlated(
    labels: npt.NDArray[np.integer],
    concentration: float,
    slots: int | None,
    rng: np.random.Generator,
    law: Law = "rotta",
) -> Indices:
    """Draw an order in which images of a class come together.

    Each class is divided among the slots in shares from a Dirichlet distribution. The slots follow each
    other; within a slot the pieces of the classes come in a random order.

    Parameters
    ----------
    labels : int ndarray of shape (N,)
    concentration : float
        0.001 to 1000; the value of all parameters of the distribution.
    slots : int or None
        1 to 10000; None for the number of classes, by RoTTA's law at most 100.
    rng : numpy.random.Generator
    law : {"rotta", "note"}
        By NOTE's law, a slot that has its share of the images gets no more, and everything is drawn again
        until every slot has ten.

    Returns
    -------
    int64 ndarray of shape (N,)
        Indices of the images.

    Raises
    ------
    ArgumentError
        By NOTE's law, the slots cannot be filled.
    """
    classes, numbers = np.unique(labels, return_inverse=True)
    count = slots or (min(len(classes), _PUBLISHED_SLOTS) if law == "rotta" else len(classes))
    images = rng.permutation(len(labels))
    numbers = numbers[images]
    sizes = np.bincount(numbers, minlength=len(classes))
    divide = _divide_by_rotta if law == "rotta" else _divide_by_note
    slot = np.empty_like(images)
    for number, ends in enumerate(divide(sizes, count, concentration, rng)):
        # The slot of each image of a class, ascending, by the end of each slot's share.
        slot[numbers == number] = np.searchsorted(ends, np.arange(sizes[number]), side="right")
    turns = rng.permuted(np.tile(np.arange(len(classes)), (count, 1)), axis=1)
    # Stable, so that the images of a piece stay shuffled.
    return images[np.lexsort((turns[slot, numbers], slot))]


def _divide_by_rotta(
    sizes: Indices, slots: int, concentration: float, rng: np.random.Generator
) -> Iterator[Indices]:
    """Yield for each class the number of its images in the first slot, the first two, and so on."""
    for size in sizes:
        yield _cut(dirichlet(rng, concentration, slots), size)


def _divide_by_note(
    sizes: Indices, slots: int, concentration: float, rng: np.random.Generator
) -> list[Indices]:
    """Return the result of `_divide_by_rotta`, with slots that are closed when they have their share."""
    total = int(sizes.sum())
    if total < _FEWEST_IN_A_SLOT * slots:
        raise ArgumentError(f"law note: use fewer than {slots} slots: {total} images do not fill them")
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        held = np.zeros(slots)
        ends = []
        for size in sizes:
            shares = dirichlet(rng, concentration, slots) * (held < total / slots)
            if not shares.sum():
                break
            ends.append(_cut(shares / shares.sum(), size))
            held += np.diff(ends[-1], prepend=0, append=size)
        if len(ends) == len(sizes) and held.min() >= _FEWEST_IN_A_SLOT:
            return ends
    few = f"no division gave every slot {_FEWEST_IN_A_SLOT} images in {_PATIENCE_S} s"
    raise ArgumentError(f"law note: {few}; use fewer slots, or a larger concentration")


def _cut(shares: npt.NDArray[np.float64], size: int) -> Indices:
    ends: Indices = (np.cumsum(shares)[:-1] * size).astype(np.int64)
    return ends


# Corruption and severity of a stretch.
Domain = tuple[str, float]


class StreamStep(NamedTuple):
    """One image of a stream.

    Attributes
    ----------
    image : int
        Index among the images.
    corruption : str
    severity : float
    visit : int
        Number of the pass through the corruptions, from 1.
    domain : int
        Number of this corruption and severity among those of the stream, from 0.
    reset : bool
        Whether the model should be reset before this image.
    """

    image: int
    corruption: str
    severity: float
    visit: int
    domain: int
    reset: bool


def draw_stream(
    labels: Sequence[int], choices: StreamChoices, rng: np.random.Generator
) -> Iterator[StreamStep]:
    """Draw the steps of a stream: every image once in each stretch.

    Parameters
    ----------
    labels : sequence of int
        Classes of the images.
    choices : StreamChoices
    rng : numpy.random.Generator

    Raises
    ------
    ArgumentError
        The images cannot be divided by the law.
    """
    stretches = [*_stretches(choices, rng)]
    domains = [*dict.fromkeys(stretches)]
    for visit in range(1, choices.drawing.repeat + 1):
        for image, domain, first in _draw_visit(np.asarray(labels), stretches, choices, rng):
            yield StreamStep(image, *domain, visit, domains.index(domain), first and choices.resets)


def _stretches(choices: StreamChoices, rng: np.random.Generator) -> Iterator[Domain]:
    """Yield the corruption and severity of each stretch."""
    count, drawing = len(choices.corruptions), choices.drawing
    for index, number in enumerate(rng.permutation(count) if drawing.shuffle else range(count)):
        if choices.corruptions[number] == CLEAN:
            yield CLEAN, 0
            continue
        descent = choices.severities[::-1]
        climb = () if index == 0 and drawing.abrupt else choices.severities[:-1]
        yield from ((choices.corruptions[number], severity) for severity in (*climb, *descent))


def _draw_visit(
    labels: Indices, stretches: Sequence[Domain], choices: StreamChoices, rng: np.random.Generator
) -> Iterator[tuple[int, Domain, bool]]:
    """Yield the images of one visit with their domains, and whether each is the first of its stretch."""
    drawing = choices.drawing
    # All stretches together, or one after the other.
    mixed = choices.setting.startswith("mixed")
    for together in [stretches] if mixed else [[stretch] for stretch in stretches]:
        of_all = np.tile(labels, len(together))
        if choices.correlated:
            order = draw_correlated(of_all, drawing.concentration, drawing.slots, rng, drawing.law)
        else:
            order = rng.permutation(len(of_all))
        for index, number in enumerate(order.tolist()):
            stretch, image = divmod(number, len(labels))
            yield image, together[stretch], index == 0
