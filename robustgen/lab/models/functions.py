"""Functions of arrays as models: for any library, in the process that calls robustgen."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustgen.lab.models.base import Model
from robustgen.lab.models.preprocessing import Preprocessing


class FunctionModel(Model):
    """A function that takes pixels, uint8 (n, H, W, 3), and returns scores of classes, (n, classes).

    Parameters
    ----------
    function : callable
    name : str
        Its identity: robustgen cannot see what decides the scores.
    """

    dtype = np.dtype(np.uint8)
    # The function gets the pixels themselves, so that it can do with them what its library does.
    preprocessing = Preprocessing((0, 0, 0), (1, 1, 1), pixel_scale=1, layout="NHWC")
    shape = (None, None, None, 3)

    def __init__(self, function: Callable[[Any], Any], name: str) -> None:
        self.name = self.label = name
        self._function = function

    def settings(self) -> dict[str, Any]:
        """Return its name, as `Model.settings`."""
        return {"file": self.name, "function": True}

    def versions(self) -> dict[str, str]:
        """Return nothing, as the library is unknown."""
        return {}

    def run(self, images: NDArray[Any]) -> NDArray[Any]:
        """Return the scores of a batch, as `Model.run`."""
        return np.asarray(self._function(images))
