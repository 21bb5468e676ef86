"""Corruptions as a transform of torchvision, for training and for tasks with boxes and masks.

Importing this module imports torchvision; `robustgen.torch` does so when `Corrupt` is asked for.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from PIL import Image

from robustgen.api import corrupt
from robustgen.corruptions import ALL_CORRUPTIONS
from robustgen.errors import ArgumentError, ArgumentTypeError, MissingDependencyError, UnknownNameError
from robustgen.registry import get_known
from robustgen.torch.arguments import expand_groups

try:
    import torch
    from torchvision import tv_tensors
    from torchvision.transforms import v2
    from torchvision.transforms.v2.functional import is_pure_tensor
except ImportError as error:
    raise MissingDependencyError("Corrupt needs torchvision: pip install 'robustgen[torch]'") from error

_PLACED = tuple(
    getattr(tv_tensors, name)
    for name in ("BoundingBoxes", "KeyPoints", "Mask")
    if hasattr(tv_tensors, name)  # KeyPoints came with torchvision 0.23
)


class Corrupt(v2.Transform):  # type: ignore[misc]
    """Corrupt an image by one of several corruptions, drawn anew each time; leave boxes and masks alone.

    Whatever is drawn comes from PyTorch's generator, as for the transforms of torchvision. For images that
    depend on their keys alone see `CorruptedDataset`. The image is not resized; constants are those of the
    scale nearest to its size.

    Images are Pillow images, or uint8 tensors or `tv_tensors.Image` of shape (3, H, W) or (1, H, W), at least
    32 x 32 pixels. The result is of the same type and has three channels. If a sample has several images, all
    are corrupted in the same way. For each image of a batch, (N, 3, H, W) or (N, 1, H, W), it is drawn anew.

    Draws depend on the number of workers of a DataLoader, because a transform does not know the index of its
    sample; `SeededDataset` makes them depend on the index.

    Parameters
    ----------
    corruptions : str or iterable of str
        Names in `robustgen.CORRUPTIONS` or of other families, all equally likely; or groups, such as
        ``"common"``, ``"extra"`` and ``"c-bar"``.
    severities : number or iterable of numbers
        All equally likely; default 1 to 5. What lies between two published ones will do.
    p : float
        Probability that an image is corrupted at all, 0 to 1.
    scale : int, optional
        224, 299, 64 or 32, or our own for 256, 336, 384 or 448: these constants instead of the nearest.
    move : bool
        Whether a sample with boxes, key points or masks may be given to a corruption that displaces what the
        image shows, such as elastic_transform. They stay where they were.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        A value cannot be used. On use: the sample has boxes or masks and `move` is needed, or an image is of
        another kind.
    """

    _transformed_types = (Image.Image, is_pure_tensor, tv_tensors.Image)

    def __init__(
        self,
        corruptions: str | Iterable[str],
        severities: float | Iterable[float] = (1, 2, 3, 4, 5),
        *,
        p: float = 1.0,
        scale: int | None = None,
        move: bool = False,
        **unknown: Any,
    ) -> None:
        super().__init__()
        for name in unknown:
            known = ("corruptions", "severities", "p", "scale", "move")
            raise ArgumentTypeError(f"Corrupt: {UnknownNameError('argument', name, known)}")
        named = (corruptions,) if isinstance(corruptions, str) else tuple(corruptions)
        self.corruptions = expand_groups(named, scale)
        self.severities = tuple(severities) if isinstance(severities, Iterable) else (severities,)
        self.p, self.scale, self.move = p, scale, move
        self._check()

    def _check(self) -> None:
        if not self.corruptions or not self.severities:
            raise ArgumentError("at least one corruption and one severity are needed")
        if not 0 <= self.p <= 1:
            raise ArgumentError(f"p must be from 0 to 1, not {self.p}")
        for name in self.corruptions:
            operation = get_known("corruption", name, ALL_CORRUPTIONS)
            for severity in self.severities:
                operation.parameters(severity, self.scale or next(iter(operation.table)))

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """Refuse samples whose boxes or masks would no longer fit, and videos."""
        if any(isinstance(each, tv_tensors.Video) for each in flat_inputs):
            raise ArgumentTypeError("Corrupt takes images, not videos")
        moving = [name for name in sorted(self.corruptions) if ALL_CORRUPTIONS[name].displaces]
        placed = [each for each in flat_inputs if isinstance(each, _PLACED)]
        if moving and placed and not self.move:
            raise ArgumentError(
                f"{moving[0]} displaces what the image shows, but not the {type(placed[0]).__name__} of the "
                "sample: leave it out, or give move=True"
            )

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw corruption, severity and the seed of its draws; nothing where the image is left alone.

        For the images of a batch, each by itself, under ``"batch"``.
        """
        if not flat_inputs:
            raise ArgumentTypeError("the sample has no image: Corrupt takes Pillow images and uint8 tensors")
        sizes = {len(each) if _is_batch(each) else None for each in flat_inputs}
        if len(sizes) > 1:
            raise ArgumentError("the images of a sample must be single ones, or batches of one size")
        size = sizes.pop()
        return self._draw() if size is None else {"batch": [self._draw() for _ in range(size)]}

    def _draw(self) -> dict[str, Any]:
        if torch.rand(()).item() >= self.p:
            return {}
        return {
            "corruption": self.corruptions[_draw(len(self.corruptions))],
            "severity": self.severities[_draw(len(self.severities))],
            "seed": _draw(2**63 - 1),
        }

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Corrupt an image, or each of a batch, as was drawn."""
        if _is_batch(inpt):
            drawn, single = params["batch"], [*inpt.as_subclass(torch.Tensor)]
            results = [self.transform(image, own) for image, own in zip(single, drawn, strict=True)]
            # Those that are left alone have three channels too, where others have.
            stacked = torch.stack([each.expand(3, -1, -1) for each in results]) if any(drawn) else inpt
            return tv_tensors.wrap(stacked, like=inpt) if isinstance(inpt, tv_tensors.Image) else stacked
        if not params:
            return inpt
        result = corrupt(
            _pixels(inpt),
            params["corruption"],
            params["severity"],
            edition="folder",
            scale=self.scale,
            rng=params["seed"],
        )
        if isinstance(inpt, Image.Image):
            return Image.fromarray(result)
        tensor = torch.from_numpy(result).permute(2, 0, 1).contiguous().to(inpt.device)
        return tv_tensors.wrap(tensor, like=inpt) if isinstance(inpt, tv_tensors.Image) else tensor


def _is_batch(image: Any) -> bool:
    return isinstance(image, torch.Tensor) and image.ndim == 4


def _draw(count: int) -> int:
    """Return a whole number from 0 up to, and without, `count`."""
    return int(torch.randint(count, ()).item())


def _pixels(image: Any) -> Any:
    """Return what `robustgen.corrupt` takes: a Pillow image as it is, a tensor as an array (H, W, 3)."""
    if isinstance(image, Image.Image):
        return image
    if image.dtype != torch.uint8:
        raise ArgumentTypeError(
            f"Corrupt takes tensors of dtype uint8, not {image.dtype}; it stands before ToDtype"
        )
    if image.ndim != 3 or image.shape[0] not in (1, 3):
        raise ArgumentError(
            "Corrupt takes tensors of shape (3, H, W) or (1, H, W), or batches of these, "
            f"not {tuple(image.shape)}"
        )
    array = image.cpu().permute(1, 2, 0).numpy()
    return np.repeat(array, 3, axis=2) if image.shape[0] == 1 else np.ascontiguousarray(array)
