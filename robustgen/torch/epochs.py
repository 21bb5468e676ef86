"""Data sets whose items differ between epochs, also in worker processes."""

from ctypes import c_uint64
from multiprocessing.context import get_spawning_popen
from multiprocessing.sharedctypes import RawValue
from typing import Any

from robustgen.torch.arguments import check_natural
from robustgen.torch.pairs import MapStyle


class Epoch:
    """A whole number in memory that worker processes share with their parent."""

    def __init__(self, value: int = 0) -> None:
        self._memory = RawValue(c_uint64, value)

    @property
    def value(self) -> int:
        """Return the number."""
        return int(self._memory.value)

    @value.setter
    def value(self, value: int) -> None:
        self._memory.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        # Memory is shared only with a process that is being started; other copies are independent.
        if get_spawning_popen() is None:
            return Epoch, (self.value,)
        return object.__new__, (Epoch,), {"_memory": self._memory}


class EpochDataset:
    """A map-style data set of the same length as another, whose draws depend on seed, epoch and index."""

    def __init__(self, dataset: MapStyle, seed: int) -> None:
        self.dataset, self.seed = dataset, check_natural("seed", seed)
        self._epoch = Epoch()

    @property
    def epoch(self) -> int:
        """Return the current epoch, 0 at first."""
        return self._epoch.value

    def set_epoch(self, epoch: int) -> None:
        """Give every item other draws. Call this before each epoch; it also reaches persistent workers."""
        self._epoch.value = check_natural("epoch", epoch)

    def __len__(self) -> int:
        return len(self.dataset)
