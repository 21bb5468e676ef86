"""Items of a data set whose random transforms depend only on the index, not on workers."""

import operator
from typing import Any

import numpy as np

from robustgen.errors import MissingDependencyError
from robustgen.torch.epochs import EpochDataset
from robustgen.torch.pairs import MapStyle


class SeededDataset(EpochDataset):
    """A map-style data set that returns the items of another, after seeding PyTorch's generator for each.

    Transforms that draw from PyTorch's generator, such as `Corrupt` and those of torchvision, then depend
    only on seed, epoch and index, not on the number of workers or the order of the items.

    Parameters
    ----------
    dataset : map-style dataset
        Data set whose items apply the transforms.
    seed : int
        Seed, not negative.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        `seed` is invalid.
    MissingDependencyError
        PyTorch is not installed.
    """

    def __init__(self, dataset: MapStyle, *, seed: int = 0) -> None:
        super().__init__(dataset, seed)
        _import_torch()

    def __getitem__(self, index: int) -> Any:
        position = range(len(self))[operator.index(index)]
        sequence = np.random.SeedSequence((self.seed, self.epoch, position))
        generator = _import_torch().default_generator
        before = generator.get_state()
        generator.manual_seed(int(sequence.generate_state(1, np.uint64)[0]) >> 1)
        try:
            return self.dataset[position]
        finally:
            generator.set_state(before)


def _import_torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError("SeededDataset needs PyTorch: pip install 'robustgen[torch]'") from error
    return torch
