"""Artefacts of microscopy and of skin photographs: stains, bubbles, black corners and letters."""

from dataclasses import dataclass

from robustgen.pixels.benchmarks.corruptions.medmnist_c.family import MEDMNIST_C
from robustgen.pixels.benchmarks.ingredients import InstalledFiles
from robustgen.pixels.benchmarks.registry import corruption
from robustgen.pixels.imaging import specimen
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.pixels.imaging.rng import Rng, python_draws


@dataclass(frozen=True)
class Stains:
    """Highest number of `stains`, and the `size` of their masks: 1 to 5, for 12 to 42 pixels."""

    stains: int
    size: int


class InkMasks(InstalledFiles):
    """The masks of ink."""

    name = "ink"
    sentence = "the published masks of ink, in a folder"
    licence = "Blots of ink have the shapes of the masks in the package medmnistc."

    def check(self, folder: str | None, parameters: Stains) -> None:
        """Read the masks of one size."""
        specimen.read_masks(parameters.size, folder)


INK = InkMasks()


@corruption(
    "digital",
    Stains,
    {
        "pathmnist": ((1, 3), (2, 3), (3, 3), (4, 3), (5, 4)),
        "bloodmnist": ((1, 3), (2, 3), (3, 3), (3, 3), (3, 4)),
    },
    family=MEDMNIST_C,
    needs=INK,
)
def stain_deposit(image: Rgb, parameters: Stains, rng: Rng, folder: str | None) -> Rgb:
    """Add black blots of ink."""
    masks = specimen.read_masks(parameters.size, folder)
    with python_draws(rng) as draws:
        return specimen.blot(image, masks, parameters.stains, draws)


@dataclass(frozen=True)
class Bubbles:
    """Largest `radius` in pixels, and highest number of `bubbles`."""

    radius: int
    bubbles: int


@corruption(
    "digital",
    Bubbles,
    {
        "pathmnist": ((7, 15), (10, 15), (12, 15), (15, 20), (17, 25)),
        "bloodmnist": ((5, 10), (7, 10), (10, 10), (12, 12), (15, 12)),
    },
    family=MEDMNIST_C,
)
def bubble(image: Rgb, parameters: Bubbles, rng: Rng) -> Rgb:
    """Add transparent air bubbles."""
    with python_draws(rng) as draws:
        return specimen.add_bubbles(image, parameters.radius, parameters.bubbles, draws)


@dataclass(frozen=True)
class Corners:
    """Radius of the visible disk, as a `share` of half the shorter side."""

    share: float


@corruption(
    "digital",
    Corners,
    {
        "dermamnist": (1.10, 1.05, 1.00, 0.90, 0.95),
    },
    family=MEDMNIST_C,
    random=False,
)
def black_corner(image: Rgb, parameters: Corners, rng: Rng) -> Rgb:
    """Blacken everything outside a disk, as a dermatoscope does."""
    return specimen.keep_disk(image, parameters.share)


@dataclass(frozen=True)
class Characters:
    """Highest number of `words`, highest number of `letters` in each, and their largest `size`."""

    words: int
    letters: int
    size: float


@corruption(
    "digital",
    Characters,
    {
        "dermamnist": ((1, 6, 0.14), (2, 7, 0.15), (3, 8, 0.16), (4, 9, 0.17), (6, 10, 0.18)),
    },
    family=MEDMNIST_C,
)
def characters(image: Rgb, parameters: Characters, rng: Rng) -> Rgb:
    """Write random letters over the image."""
    p = parameters
    with python_draws(rng) as draws:
        return specimen.write_letters(image, p.words, p.letters, p.size, draws)
