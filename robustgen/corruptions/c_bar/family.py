"""The family C-bar: its name, its parameter and what its functions share."""

from dataclasses import dataclass

from robustgen.imaging.pixels import Rgb
from robustgen.registry import Family

C_BAR = Family(
    "c-bar",
    "ImageNet-C-bar",
    "Eric Mintun, Alexander Kirillov and Saining Xie: On Interaction Between Data Augmentations and "
    "Corruptions in Natural Corruption Robustness. Advances in Neural Information Processing Systems, 2021.",
    qualified=False,
)


@dataclass(frozen=True)
class CBarStrength:
    """The `strength` that a severity stands for, 0.5 to 10."""

    strength: float

    def share(self, most: float) -> float:
        """Return the share of `most` at a strength; `most` belongs to strength 10."""
        return self.strength * most / 10


def side_of(image: Rgb) -> int:
    """Return the side that lengths are measured by: the shorter one, where the published images are
    square.
    """
    return int(min(image.shape[:2]))


def as_lines(image: Rgb) -> Rgb:
    """Return `image` (H, W, 3) with the channels of a line side by side: (H, 3 W)."""
    return image.reshape(image.shape[0], -1)
