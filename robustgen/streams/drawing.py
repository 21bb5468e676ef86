"""Draws the order of a stream: which image comes when, with which corruption at which severity.

A stream consists of stretches, all images with one corruption at one severity. The settings differ in which
stretches there are and in the order within them; `draw_stream` knows all four.

Wang et al., "Continual Test-Time Domain Adaptation" (CVPR 2022), and its code, CoTTA: continual and gradual.
Yuan, Xie and Li, "Robust Test-Time Adaptation in Dynamic Scenarios" (CVPR 2023), and its code, RoTTA:
correlated. Marsden, Doebler and Yang, "Universal Test-Time Adaptation through Weight Ensembling, Diversity
Weighting, and Prior Correction" (WACV 2024): mixed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from robustgen.benchmark import IMAGENET_C
from robustgen.errors import ArgumentError

Setting = Literal["continual", "gradual", "mixed", "correlated"]
SETTINGS: Final[tuple[Setting, ...]] = get_args(Setting)
Indices = npt.NDArray[np.int64]

_ROTTA = (
    *("motion_blur", "snow", "fog", "shot_noise", "defocus_blur", "contrast", "zoom_blur", "brightness"),
    *("frost", "elastic_transform", "glass_blur", "gaussian_noise", "pixelate", "jpeg_compression"),
    "impulse_noise",
)

ORDERS: Final[Mapping[Setting, tuple[str, ...]]] = MappingProxyType(
    dict.fromkeys(SETTINGS, IMAGENET_C.common) | {"correlated": _ROTTA}
)
"""The corruptions in the order of each setting's paper."""

# As in the code of RoTTA.
_MOST_SLOTS = 100


class Step(NamedTuple):
    """One image of a stream: its index among the images, and what is made of it."""

    image: int
    corruption: str
    severity: float


@dataclass(frozen=True)
class StreamChoices:
    """What a stream is drawn from.

    Attributes
    ----------
    setting : {"continual", "gradual", "mixed", "correlated"}
    corruptions : tuple of str
        In their order.
    severities : tuple of float
        Of "gradual" all that are climbed and descended, from low to high; of the others exactly one.
    shuffle : bool
        Whether the corruptions come in an order that is drawn.
    abrupt : bool
        Of "gradual": whether the first corruption begins at the highest severity.
    concentration : float
        Of "correlated": of the Dirichlet distribution; the smaller, the longer a class stays.
    slots : int or None
        Of "correlated": into how many pieces a class is cut; None for the number of classes, at most 100.
    """

    setting: Setting
    corruptions: tuple[str, ...]
    severities: tuple[float, ...] = (5,)
    shuffle: bool = False
    abrupt: bool = False
    concentration: float = 0.1
    slots: int | None = None

    @property
    def stretches(self) -> int:
        """How many stretches there are."""
        ways_up = len(self.corruptions) - self.abrupt
        return len(self.corruptions) * len(self.severities) + ways_up * (len(self.severities) - 1)

    def __post_init__(self) -> None:
        if self.setting != "gradual" and len(self.severities) != 1:
            raise ArgumentError(f"severities: a {self.setting} stream has one, not {len(self.severities)}")
        if self.abrupt and self.setting != "gradual":
            raise ArgumentError(f"a {self.setting} stream has no abrupt start: its severity never changes")
        if not 0.001 <= self.concentration <= 1000:
            raise ArgumentError(f"concentration must be from 0.001 to 1000, not {self.concentration}")
        if self.slots is not None and self.slots < 1:
            raise ArgumentError(f"slots must be at least 1, not {self.slots}")


def draw_stream(labels: Sequence[int], choices: StreamChoices, rng: np.random.Generator) -> Iterator[Step]:
    """Draw the steps of a stream, every image once in each stretch.

    Parameters
    ----------
    labels : sequence of int
        Classes of the images.
    choices : StreamChoices
    rng : numpy.random.Generator
    """
    stretches = [*_stretches(choices, rng)]
    if choices.setting == "mixed":
        yield from _mix(stretches, len(labels), rng)
        return
    for corruption, severity in stretches:
        if choices.setting == "correlated":
            order = draw_correlated(np.asarray(labels), choices.concentration, choices.slots, rng)
        else:
            order = rng.permutation(len(labels))
        yield from (Step(index, corruption, severity) for index in order.tolist())


def _stretches(choices: StreamChoices, rng: np.random.Generator) -> Iterator[tuple[str, float]]:
    """Corruption and severity of each stretch."""
    count = len(choices.corruptions)
    for place, number in enumerate(rng.permutation(count) if choices.shuffle else range(count)):
        descent = choices.severities[::-1]
        climb = () if place == 0 and choices.abrupt else choices.severities[:-1]
        yield from ((choices.corruptions[number], severity) for severity in (*climb, *descent))


def _mix(stretches: Sequence[tuple[str, float]], images: int, rng: np.random.Generator) -> Iterator[Step]:
    for number in rng.permutation(len(stretches) * images).tolist():
        stretch, index = divmod(number, images)
        yield Step(index, *stretches[stretch])


def draw_correlated(
    labels: npt.NDArray[np.integer], concentration: float, slots: int | None, rng: np.random.Generator
) -> Indices:
    """Draw an order in which like classes come together.

    Every class is spread over the slots in shares from a Dirichlet distribution; the slots follow each other,
    and within a slot the pieces of the classes stand in an order that is drawn.

    Parameters
    ----------
    labels : int ndarray of shape (N,)
    concentration : float
        0.001 to 1000; of all the distribution's parameters.
    slots : int or None
        At least 1; None for the number of classes, at most 100.
    rng : numpy.random.Generator

    Returns
    -------
    int64 ndarray of shape (N,)
        Indices of the images.
    """
    classes = np.unique(labels)
    count = slots or min(len(classes), _MOST_SLOTS)
    pieces = [_cut(np.flatnonzero(labels == each), concentration, count, rng) for each in classes]
    return np.concatenate([pieces[k][slot] for slot in range(count) for k in rng.permutation(len(pieces))])


def _cut(images: Indices, concentration: float, slots: int, rng: np.random.Generator) -> list[Indices]:
    """The images of one class, shuffled, in a piece for each slot."""
    shares = rng.dirichlet(np.full(slots, concentration))
    ends = (np.cumsum(shares)[:-1] * len(images)).astype(np.int64)
    return np.split(rng.permutation(images), ends)
