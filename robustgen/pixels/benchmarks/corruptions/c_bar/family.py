"""The family C-bar: its name, its parameter and shared functions."""

from dataclasses import dataclass

from robustgen.pixels.benchmarks.registry import Family
from robustgen.pixels.imaging.pixels import Rgb

C_BAR = Family(
    "c-bar",
    "ImageNet-C-bar",
    "Eric Mintun, Alexander Kirillov and Saining Xie: On Interaction Between Data Augmentations and "
    "Corruptions in Natural Corruption Robustness. Advances in Neural Information Processing Systems, 2021.",
    qualified=False,
)


@dataclass(frozen=True)
class CBarStrength:
    """The `strength` of a severity, 0.5 to 10."""

    strength: float

    def share(self, most: float) -> float:
        """Return `most`, the value at strength 10, scaled to this strength."""
        return self.strength * most / 10


def side_of(image: Rgb) -> int:
    """Return the side in whose unit lengths are measured: the shorter one; published images are square."""
    return int(min(image.shape[:2]))


def as_lines(image: Rgb) -> Rgb:
    """Return `image` (H, W, 3) with the channels of a row next to each other: (H, 3 W)."""
    return image.reshape(image.shape[0], -1)
