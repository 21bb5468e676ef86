"""The settings of a stream: those of the papers, and their orders of the corruptions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from robustgen.benchmarks.kinds import IMAGENET_C
from robustgen.errors import ArgumentError
from robustgen.settings.config import Config
from robustgen.settings.streams import MOST_SLOTS, MOST_VISITS, SETTINGS, Drawing, Law, Setting

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
class Chain:
    """Parameters of the Markov chain over corruptions and classes.

    Attributes
    ----------
    class_correlation, domain_correlation : float
        0 to 1; the highest probability that the class (or the corruption) stays.
    class_imbalance, domain_imbalance : float
        1 to 1000; frequency of the first class (or corruption) relative to the last.
    most_samples : int or None
        Images of the most frequent class with the most frequent corruption; None for all images of its class.
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
    """All settings of a stream, without the images.

    Attributes
    ----------
    setting : str
        One of `SETTINGS`.
    corruptions : tuple of str
        Corruptions, in order.
    severities : tuple of float
        For gradual settings the severities to go up and down through, ascending; otherwise exactly one.
    shuffle : bool
        Whether the order of the corruptions is drawn.
    abrupt : bool
        For gradual settings: whether the first corruption begins at the highest severity.
    concentration : float
        For correlated settings: parameter of the Dirichlet distribution; a smaller value keeps a class
        longer.
    slots : int or None
        For correlated settings: number of pieces of a class, 1 to `MOST_SLOTS`; None for the number of
        classes, by RoTTA's law at most 100.
    law : {"rotta", "note"}
        For correlated settings: law that divides the classes among the slots.
    repeat : int
        Number of passes through the corruptions, 1 to `MOST_VISITS`.
    chain : Chain
        Chain of the setting "markov".
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
        """Return whether the severity goes up and down."""
        return is_gradual(self.setting)

    @property
    def correlated(self) -> bool:
        """Return whether images of a class come together."""
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
    """Return whether the severity goes up and down in `setting`."""
    return setting.startswith("gradual")


def is_correlated(setting: Setting) -> bool:
    """Return whether images of a class come together in `setting` by a Dirichlet distribution."""
    return setting.endswith("correlated")


def choose(setting: Setting, config: Config, drawing: Drawing) -> StreamChoices:
    """Return the settings of a stream; defaults are the paper's order and severities."""
    corruptions, severities = config.corruptions, config.severities
    if "corruptions" not in config.flagged and {*corruptions} == {*ORDERS[setting]}:
        corruptions = ORDERS[setting]
    if "severities" not in config.flagged and not is_gradual(setting):
        severities = (5,)
    own = {key: getattr(drawing, key) for key in drawing.flagged}
    fields = StreamChoices.__dataclass_fields__.keys() - {"setting"}
    chain = Chain(**{key: value for key, value in own.items() if key in Chain.__dataclass_fields__})
    given = {key: value for key, value in own.items() if key in fields}
    return StreamChoices(setting, corruptions, severities, **given, chain=chain)
