"""Means of values that arrive in chunks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robustgen.errors import ArgumentError
from robustgen.metrics.checks import array_of


@dataclass
class RunningMean:
    """Mean of values that arrive in chunks, or in several processes.

    Attributes
    ----------
    total : float
        Sum of all values so far.
    count : int
        Number of values so far.
    """

    total: float = 0.0
    count: int = 0

    def update(self, values: ArrayLike) -> None:
        """Add one chunk.

        Parameters
        ----------
        values : array_like, any shape, bool, integer or float
            One finite value per image or sequence.

        Raises
        ------
        ArgumentError
            A value is not a finite number.
        """
        array = array_of(values, "values", "fiub", "...")
        total = float(array.sum(dtype=np.float64))
        if not np.isfinite(total):
            raise ArgumentError("values contain NaN or infinity")
        self.total, self.count = self.total + total, self.count + array.size

    def __add__(self, other: "RunningMean") -> "RunningMean":
        """Return the mean over the values of both."""
        return RunningMean(self.total + other.total, self.count + other.count)

    @property
    def mean(self) -> float:
        """Return the mean of all values so far; raise ArgumentError if there are none."""
        if self.count == 0:
            raise ArgumentError("nothing was added to this mean")
        return self.total / self.count
