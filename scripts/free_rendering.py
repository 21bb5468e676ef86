"""Rendering that takes no time, for `bench_feed.py --cores`: workers import this module, and little else."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from robustgen.lab.evaluation.rendering import Rendered, Rendering


@dataclass(frozen=True)
class FreeRendering(Rendering):
    """A job like `Rendering`, whose images are the same noise for all keys and variants."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers need neither recipe nor source, whose libraries take a second to import.
        return FreeRendering, (None, None, None, self.keys, self.variants, self.views)

    def run(self, reporter: Any) -> list[Rendered]:
        """Return the images."""
        # An array of its own for each, because pickle hands over the same array only once.
        pixels = {each.folder: {view: _draw().view() for view in self.views} for each in self.variants}
        return [Rendered(key, pixels, {}, "0") for key in self.keys]


@cache
def _draw() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (224, 224, 3), np.uint8)
