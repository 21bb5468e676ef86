"""The settings of a stream: those of the papers, and their orders of the corruptions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from robustgen.errors import ArgumentError
from robustgen.pixels.benchmarks.kinds import IMAGENET_C
from robustgen.settings.config import Config
from robustgen.settings.streams import SETTINGS, Drawing, Setting

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
    setting : str
        One of `SETTINGS`.
    corruptions : tuple of str
        Corruptions, in order.
    severities : tuple of float
        For gradual settings the severities to go up and down through, ascending; otherwise exactly one.
    drawing : Drawing
        All other choices.
    """

    setting: Setting
    corruptions: tuple[str, ...]
    severities: tuple[float, ...] = (5,)
    drawing: Drawing = field(default_factory=Drawing)

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


def choose(setting: Setting, config: Config, drawing: Drawing) -> StreamChoices:
    """Return the settings of a stream; defaults are the paper's order and severities."""
    corruptions, severities = config.corruptions, config.severities
    if "corruptions" not in config.flagged and {*corruptions} == {*ORDERS[setting]}:
        corruptions = ORDERS[setting]
    if "severities" not in config.flagged and not setting.startswith("gradual"):
        severities = (5,)
    return StreamChoices(setting, corruptions, severities, drawing)
