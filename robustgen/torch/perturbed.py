"""ImageNet-P on the fly: the sequences that `make-p` writes, without the files."""

import operator
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
from PIL import Image

from robustgen.pixels.benchmarks.editions import get_edition
from robustgen.pixels.benchmarks.kinds import IMAGENET_P
from robustgen.pixels.imaging.pixels import Rgb
from robustgen.sets.dataset.recipes import PerturbationRecipe
from robustgen.sets.formats.mp4 import Mp4Encoder
from robustgen.torch.arguments import check_natural, find_variant
from robustgen.torch.corrupted import make_output
from robustgen.torch.keys import Key, resolve_keys
from robustgen.torch.pairs import MapStyle, split_pair


class PerturbedDataset:
    """A map-style data set of the sequences that `make-p` writes for one perturbation and difficulty.

    An item is ``(frames, label)``, whose pixels depend on edition, seed, perturbation, difficulty and key.

    Parameters
    ----------
    base, seed, edition, key
        As in `CorruptedDataset`.
    perturbation : str
        A name in `robustgen.PERTURBATIONS`.
    difficulty : int
        1 to 3 for the noises, 1 for the others.
    video : bool or "published"
        Whether the frames pass through an MP4 file in memory, like those of `make-p`; ``"published"``
        skips this for CIFAR. False gives the frames of `make-p --format png`.
    transform : callable, optional
        Called with each frame, an RGB Pillow image if the base returns one, otherwise an array (H, W, 3). The
        results, tensors or arrays, are stacked. Without it the frames are an array (T, H, W, 3).

    Raises
    ------
    ArgumentError, ArgumentTypeError, ImageError
        As in `CorruptedDataset`.
    """

    def __init__(
        self,
        base: MapStyle,
        perturbation: str,
        difficulty: int = 1,
        *,
        seed: int = 0,
        edition: str,
        key: Key = None,
        video: bool | Literal["published"] = "published",
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        self.base, self.key, self.transform = base, resolve_keys(base, key), transform
        self._recipe = PerturbationRecipe(get_edition(edition).name, check_natural("seed", seed))
        self.variant = find_variant(self._recipe, perturbation, difficulty)
        if video == "published":
            video = get_edition(edition).format == "jpeg"
        self._encoder = Mp4Encoder(noises=frozenset(IMAGENET_P.noises)) if video else None

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        position = range(len(self))[operator.index(index)]
        image, label = split_pair(self.base[position], position)
        key = self.key(position)
        frames = make_output(self._recipe, self.variant, key, image)
        if self._encoder:
            frames = self._encoder.as_read(self.variant, key, frames)
        return self._view(frames, isinstance(image, Image.Image)), label

    def _view(self, frames: Rgb, as_pictures: bool) -> Any:
        if not self.transform:
            return frames
        return _stack(self.transform(Image.fromarray(each) if as_pictures else each) for each in frames)


def _stack(frames: Iterable[Any]) -> Any:
    """Stack tensors to a tensor, and arrays to an array."""
    each = list(frames)
    if isinstance(each[0], np.ndarray):
        return np.stack(each)
    import torch

    return torch.stack(each)
