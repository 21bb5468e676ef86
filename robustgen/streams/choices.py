"""The choices of a stream: the settings of the papers, and their orders of the corruptions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, get_args

from robustgen.benchmark import IMAGENET_C
from robustgen.errors import ArgumentError

Setting = Literal[
    "continual",
    "reset-each-shift",
    "gradual",
    "mixed",
    "correlated",
    "reset-each-shift-correlated",
    "gradual-correlated",
    "mixed-correlated",
    "markov",
]
SETTINGS: Final[tuple[Setting, ...]] = get_args(Setting)
ALIASES: Final[Mapping[str, Setting]] = MappingProxyType({"dirichlet": "correlated"})
"""Other names of settings."""

Law = Literal["rotta", "note"]
LAWS: Final[tuple[Law, ...]] = get_args(Law)
"""Whose code divides the classes of a correlated stream."""

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

MOST_VISITS: Final = 1000


@dataclass(frozen=True)
class Chain:
    """Parameters of the Markov chain over corruptions and classes.

    Attributes
    ----------
    class_correlation, domain_correlation : float
        0 to 1; the greatest probability that the class (or the corruption) stays.
    class_imbalance, domain_imbalance : float
        1 to 1000; how many times as frequent the first class (or corruption) is as the last.
    most_samples : int or None
        Images of the most frequent class with the most frequent corruption; None for those of its class.
    """

    class_correlation: float = 0.95
    domain_correlation: float = 0.85
    class_imbalance: float = 1.0
    domain_imbalance: float = 1.0
    most_samples: int | None = None

    def __post_init__(self) -> None:
        for name in ("class_correlation", "domain_correlation"):
            if not 0 <= getattr(self, name) <= 1:
                raise ArgumentError(f"{name} must be from 0 to 1, not {getattr(self, name)}")
        for name in ("class_imbalance", "domain_imbalance"):
            if not 1 <= getattr(self, name) <= 1000:
                raise ArgumentError(f"{name} must be from 1 to 1000, not {getattr(self, name)}")
        if self.most_samples is not None and self.most_samples < 1:
            raise ArgumentError(f"most_samples must be at least 1, not {self.most_samples}")


@dataclass(frozen=True)
class StreamChoices:
    """Everything that a stream is drawn from, besides the images.

    Attributes
    ----------
    setting : str
        One of `SETTINGS`.
    corruptions : tuple of str
        In their order.
    severities : tuple of float
        Of gradual settings all that are climbed and descended, from low to high; of the others exactly one.
    shuffle : bool
        Whether the corruptions come in an order that is drawn.
    abrupt : bool
        Of gradual settings: whether the first corruption begins at the highest severity.
    concentration : float
        Of correlated settings: of the Dirichlet distribution; the smaller, the longer a class stays.
    slots : int or None
        Of correlated settings: into how many pieces a class is cut, 1 to `MOST_SLOTS`; None for the number of
        classes, by RoTTA's law at most 100.
    law : {"rotta", "note"}
        Of correlated settings: how the classes are divided among the slots.
    repeat : int
        How many times the corruptions are visited, 1 to `MOST_VISITS`.
    chain : Chain
        Of "markov".
    """

    setting: Setting
    corruptions: tuple[str, ...]
    severities: tuple[float, ...] = (5,)
    shuffle: bool = False
    abrupt: bool = False
    concentration: float = 0.1
    slots: int | None = None
    law: Law = "rotta"
    repeat: int = 1
    chain: Chain = field(default_factory=Chain)

    @property
    def gradual(self) -> bool:
        """Return whether the severity climbs and descends."""
        return is_gradual(self.setting)

    @property
    def correlated(self) -> bool:
        """Return whether like classes come together."""
        return is_correlated(self.setting)

    @property
    def resets(self) -> bool:
        """Return whether the model is reset at each change of the corruption."""
        return self.setting.startswith("reset-each-shift")

    def __post_init__(self) -> None:
        if not self.gradual and len(self.severities) != 1:
            raise ArgumentError(f"severities: a {self.setting} stream has one, not {len(self.severities)}")
        if self.abrupt and not self.gradual:
            raise ArgumentError(f"a {self.setting} stream has no abrupt start: its severity never changes")
        if not 0.001 <= self.concentration <= 1000:
            raise ArgumentError(f"concentration must be from 0.001 to 1000, not {self.concentration}")
        if self.slots is not None and not 1 <= self.slots <= MOST_SLOTS:
            raise ArgumentError(f"slots must be from 1 to {MOST_SLOTS}, not {self.slots}")
        if not 1 <= self.repeat <= MOST_VISITS:
            raise ArgumentError(f"repeat must be from 1 to {MOST_VISITS}, not {self.repeat}")


def is_gradual(setting: Setting) -> bool:
    """Return whether the severity climbs and descends in `setting`."""
    return setting.startswith("gradual")


def is_correlated(setting: Setting) -> bool:
    """Return whether like classes come together in `setting` by a Dirichlet distribution."""
    return setting.endswith("correlated")
