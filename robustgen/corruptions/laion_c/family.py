"""The family LAION-C, and how its images were prepared."""

from typing import NamedTuple

from robustgen.imaging.geometry import centre_crop, resize_shorter
from robustgen.imaging.pixels import Decoded, Rgb
from robustgen.registry import Family

LAION_C = Family(
    "laion-c",
    "LAION-C",
    "Fanfei Li, Thomas Klein, Wieland Brendel, Robert Geirhos and Roland S. Zimmermann: LAION-C: An "
    "Out-of-Distribution Benchmark for Web-Scale Vision Models. International Conference on Machine "
    "Learning, 2025.",
    licence="MIT",
)
"""The six distortions."""


class Preparation(NamedTuple):
    """The geometry of one distortion: shorter side to `resize`, the middle `crop`, and at the end `finish`.

    All are pixels.
    """

    resize: int = 256
    crop: int = 224
    finish: int = 224

    def prepare(self, image: Decoded) -> Rgb:
        """Resize and crop a source image for the distortion."""
        return centre_crop(resize_shorter(image, self.resize), self.crop, self.crop)

    def complete(self, distorted: Rgb) -> Rgb:
        """Crop what the distortion gave to what is saved."""
        return centre_crop(distorted, self.finish, self.finish)


def published_preparation(name: str, severity: float) -> Preparation:
    """Return the geometry of the distortion `name`, for instance ``"laion-c:mosaic"``, at `severity`."""
    if name != "laion-c:mosaic":
        return Preparation()
    tile = LAION_C.corruptions[name].parameters(severity, 224).tile
    if 224 % tile:
        side = 256 - 256 % tile
        return Preparation(side, side)
    return Preparation(256 - 256 % tile)
