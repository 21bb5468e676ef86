"""What there is to choose about a stream: the settings of the papers, and their orders of the corruptions."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, get_args

from robustgen.benchmark import IMAGENET_C
from robustgen.errors import ArgumentError

Setting = Literal["continual", "gradual", "mixed", "correlated"]
SETTINGS: Final[tuple[Setting, ...]] = get_args(Setting)

_ROTTA = (
    *("motion_blur", "snow", "fog", "shot_noise", "defocus_blur", "contrast", "zoom_blur", "brightness"),
    *("frost", "elastic_transform", "glass_blur", "gaussian_noise", "pixelate", "jpeg_compression"),
    "impulse_noise",
)

ORDERS: Final[Mapping[Setting, tuple[str, ...]]] = MappingProxyType(
    dict.fromkeys(SETTINGS, IMAGENET_C.common) | {"correlated": _ROTTA}
)
"""The corruptions in the order of each setting's paper."""

MOST_SLOTS: Final = 10_000
"""Shares of a thousand classes are drawn for so many slots in a second; the papers have 100."""


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
        Of "correlated": into how many pieces a class is cut, 1 to `MOST_SLOTS`; None for the number of
        classes, at most 100.
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
        if self.slots is not None and not 1 <= self.slots <= MOST_SLOTS:
            raise ArgumentError(f"slots must be from 1 to {MOST_SLOTS}, not {self.slots}")
