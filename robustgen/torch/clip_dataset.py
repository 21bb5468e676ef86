"""Data set of corrupted clips."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from robustgen.errors import ArgumentError, ImageError
from robustgen.pixels.benchmarks.editions import get_edition
from robustgen.pixels.benchmarks.kinds import CLEAN, Variant
from robustgen.pixels.benchmarks.registry import Temporal
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import Location
from robustgen.pixels.imaging.frames import parse_rate, sample_frames
from robustgen.sets.dataset.recipes import ClipRecipe
from robustgen.sets.sources.base import Items, SourceOptions
from robustgen.sets.sources.opening import open_source
from robustgen.torch.items import check_natural, find_variant, import_torch


class ClipDataset:
    """A map-style data set of the clips that `make-c --dataset clips` writes for one corruption and severity.

    An item is ``(clip, label)``: a uint8 tensor of shape (T, 3, H, W), and the index of its class. Its pixels
    depend only on edition, seed, corruption, severity and key, and are those of the frames that `make-c`
    writes without loss.

    Parameters
    ----------
    source : path or URL
        Videos and folders of frames, as for ``make-c --source``.
    corruption : str
        A name as for `robustgen.corrupt_clip`, or ``"clean"``.
    severity : int or float, optional
        1 to 5; 0 for clean clips. By default 0 for these, else 3.
    seed : int
        Seed, not negative.
    edition : str
        ``"kinetics"``, ``"ssv2"``, ``"folder"``, or one that prepares the frames, such as ``"kinetics@224"``.
    temporal : {"clip", "frame"}
        As in `make-c`.
    frames : int, optional
        Number of frames, chosen as in the evaluation of Mini Kinetics-C; default all.
    labels : path, optional
        File of labels, as for ``make-c --labels``.
    fps : int, float or str, optional
        Frames per second of folders of frames, as for the key ``fps`` of a config.
    transform : callable, optional
        Called with the tensor.

    Attributes
    ----------
    keys : tuple of str
    classes : tuple of str
        Names of the classes, in the order of the labels.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument is invalid.
    SourceError
        There is no clip at `source`.
    ImageError
        In item access: a clip cannot be read; the message names its key.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from PIL import Image
    >>> from robustgen.torch import ClipDataset
    >>> for number in range(8):
    ...     Path("clips/run/a").mkdir(parents=True, exist_ok=True)
    ...     frame = np.full((64, 64, 3), 20 * number, np.uint8)
    ...     Image.fromarray(frame).save(f"clips/run/a/{number:05d}.png")
    >>> dataset = ClipDataset("clips", "fog", 3, edition="folder")
    >>> clip, label = dataset[0]
    >>> clip.shape, dataset.classes[label]
    (torch.Size([8, 3, 64, 64]), 'run')
    """

    def __init__(
        self,
        source: Location,
        corruption: str,
        severity: float | None = None,
        *,
        seed: int = 0,
        edition: str = "kinetics",
        temporal: Temporal = "clip",
        frames: int | None = None,
        labels: Location | None = None,
        fps: Any = None,
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        if temporal not in ("clip", "frame"):
            raise ArgumentError(f'temporal must be "clip" or "frame", not {temporal!r}')
        if frames is not None and check_natural("frames", frames) < 1:
            raise ArgumentError("frames must be at least 1")
        options = SourceOptions(labels=labels, rate=None if fps is None else parse_rate(fps))
        self.source: Items[Any] = open_source(source, "clips", options)
        self.recipe: ClipRecipe = ClipRecipe(
            get_edition(edition).name, check_natural("seed", seed), temporal=temporal
        )
        usual = 0 if corruption == CLEAN else 3
        level = usual if severity is None else severity
        self.variant: Variant = find_variant(self.recipe, corruption, level)
        self.keys: tuple[str, ...] = self.source.keys()
        self.classes: tuple[str, ...] = self.source.classes
        self.frames: int | None = frames
        self.transform: Callable[[Any], Any] | None = transform

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        torch = import_torch("ClipDataset")
        key = self.keys[operator.index(index)]
        clip = torch.from_numpy(self._make(key)).permute(0, 3, 1, 2).contiguous()
        return self.transform(clip) if self.transform else clip, self.source.label(key)

    def _make(self, key: str) -> Rgb:
        """Return the frames of a clip, uint8 (T, H, W, 3)."""
        try:
            made = self.recipe.make(self.variant, key, self.recipe.prepare(self.source.load(key))).stack()
        except ImageError as error:
            raise error if error.key else ImageError(str(error), key) from error
        if self.frames is None:
            return made
        return np.ascontiguousarray(made[sample_frames(len(made), self.frames)])
