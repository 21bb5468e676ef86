"""A corruption that needs a map of the light on each image: an ingredient in a plug-in."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import ConfigError
from robustgen.plugins import (
    Family,
    Ingredient,
    IngredientSpec,
    OpenedIngredient,
    PreparationStep,
    Rgb,
    Rng,
    corruption,
)

LAMPS = Family("lamps", "Lamps", "A. Lamp: On Light. Journal of Night, 2032.")


class Lamps(Ingredient):
    """Maps of light."""

    name = "lamps"
    sentence = "maps of light, in a folder of .npy files with the keys of the images"
    settings: ClassVar = {"gain": float}
    fits_image = True

    def open(self, spec: IngredientSpec) -> "LampMaps":
        """Open the folder."""
        return LampMaps(Path(str(spec.place)), spec.settings.get("gain", 1.0))


@dataclass(frozen=True)
class LampMaps(OpenedIngredient):
    """The maps in a folder; the stored values are multiplied by `gain`."""

    folder: Path
    gain: float
    licence = "The maps of light are free."

    def check(self, keys: Sequence[str]) -> None:
        """Find the map of each image."""
        if missing := [key for key in keys if not (self.folder / f"{key}.npy").is_file()]:
            raise ConfigError(f"lamps: no map of {missing[0]} in {self.folder}")

    def describe(self, parameters: object) -> str:
        """Return digest and gain of the maps."""
        content = b"".join(path.read_bytes() for path in sorted(self.folder.rglob("*.npy")))
        return f"{hashlib.sha256(content).hexdigest()[:16]}, gain {self.gain:g}"

    def provide(self, key: str, preparation: PreparationStep) -> NDArray[np.float32]:
        """Return the light on the image `key`, after its preparation."""
        return preparation.follow(np.load(self.folder / f"{key}.npy")) * np.float32(self.gain)


@dataclass(frozen=True)
class Night:
    """Share `light` of the light that is left without lamps."""

    light: float


@corruption("weather", Night, {224: (0.4, 0.3, 0.2, 0.1, 0)}, family=LAMPS, random=False, needs=Lamps())
def night(image: Rgb, parameters: Night, rng: Rng, lamps: NDArray[np.float32]) -> Rgb:
    """Leave the light of the lamps."""
    lit: Rgb = (image * np.clip(parameters.light + lamps, 0, 1)[..., None]).astype(np.uint8)
    return lit
