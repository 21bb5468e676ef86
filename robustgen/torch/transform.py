"""Transforms of torchvision: corruptions, and uniform noise to train with.

Importing this module imports torchvision; `robustgen.torch` does so on the first use of one.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from robustgen.api import corrupt, corrupt_clip
from robustgen.errors import ArgumentError, ArgumentTypeError, explain_import
from robustgen.pixels.benchmarks.binding import bind
from robustgen.pixels.benchmarks.corruptions import ALL_CORRUPTIONS
from robustgen.torch.items import expand_groups

with explain_import("transforms need torchvision", "torch"):
    import torch
    from torchvision import tv_tensors
    from torchvision.transforms import v2
    from torchvision.transforms.v2.functional import is_pure_tensor

if TYPE_CHECKING:
    from torch.nn import Module as _Transform  # torchvision has no types
else:
    _Transform = v2.Transform

_PLACED = tuple(
    getattr(tv_tensors, name)
    for name in ("BoundingBoxes", "KeyPoints", "Mask")
    if hasattr(tv_tensors, name)  # KeyPoints came with torchvision 0.23
)


_WRAPPED = (tv_tensors.Image, tv_tensors.Video)


class Corrupt(_Transform):  # type: ignore[misc]
    """Corrupt an image by one of several corruptions, drawn on each call; do not change boxes and masks.

    All draws come from PyTorch's generator, as in the transforms of torchvision. For images that depend only
    on their keys see `CorruptedDataset`. The image is not resized; constants are those of the nearest
    scale.

    Images are Pillow images, or uint8 tensors or `tv_tensors.Image` of shape (3, H, W) or (1, H, W), at least
    32 x 32 pixels. The result is of the same type and has three channels. If a sample has several images, all
    are corrupted in the same way. Each image of a batch, (N, 3, H, W) or (N, 1, H, W), gets its own draw. A
    `tv_tensors.Video` of shape (T, 3, H, W), or a batch of them, is corrupted as by `robustgen.corrupt_clip`.

    Draws depend on the number of workers of a DataLoader, because a transform does not know the index of its
    sample; `SeededDataset` makes them depend on the index.

    Parameters
    ----------
    corruptions : str or iterable of str
        Names in `robustgen.CORRUPTIONS` or of other families, all with equal probability; or groups, such
        as ``"common"``, ``"extra"`` and ``"c-bar"``.
    severities : number or iterable of numbers
        All with equal probability; default 1 to 5. Fractional severities are allowed.
    p : float
        Probability that an image is corrupted, 0 to 1.
    scale : int, optional
        224, 299, 64, 32, 256, 336, 384 or 448: use these constants instead of the nearest published ones.
    move : bool
        Whether to accept samples with boxes, key points or masks for corruptions that move the content of
        the image, such as elastic_transform. Boxes, key points and masks do not move.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument is invalid. In a call: the sample has boxes or masks without `move`, or an image has
        another type.

    Examples
    --------
    >>> import torch
    >>> from robustgen.torch import Corrupt
    >>> corrupt = Corrupt(["fog", "contrast"], severities=3)
    >>> grey = torch.full((3, 64, 64), 128, dtype=torch.uint8)
    >>> corrupt(grey).shape
    torch.Size([3, 64, 64])
    """

    _transformed_types = (Image.Image, is_pure_tensor, tv_tensors.Image, tv_tensors.Video)

    def __init__(
        self,
        corruptions: str | Iterable[str],
        severities: float | Iterable[float] = (1, 2, 3, 4, 5),
        *,
        p: float = 1.0,
        scale: int | None = None,
        move: bool = False,
    ) -> None:
        super().__init__()
        named = (corruptions,) if isinstance(corruptions, str) else tuple(corruptions)
        self.corruptions: tuple[str, ...] = expand_groups(named, scale)
        self.severities: tuple[float, ...] = (
            tuple(severities) if isinstance(severities, Iterable) else (severities,)
        )
        self.p: float = p
        self.scale: int | None = scale
        self.move: bool = move
        self._check()

    def _check(self) -> None:
        if not self.corruptions or not self.severities:
            raise ArgumentError("at least one corruption and one severity are needed")
        if not 0 <= self.p <= 1:
            raise ArgumentError(f"p must be from 0 to 1, not {self.p}")
        for name in self.corruptions:
            for severity in self.severities:
                bind("folder", name, severity, scale=self.scale).any_parameters()

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """Refuse samples whose boxes or masks would no longer fit."""
        moving = [name for name in sorted(self.corruptions) if ALL_CORRUPTIONS[name].displaces]
        placed = [each for each in flat_inputs if isinstance(each, _PLACED)]
        if moving and placed and not self.move:
            still = f"{type(placed[0]).__name__}: omit it, or give move=True"
            raise ArgumentError(f"{moving[0]} moves the content of the image, but not the {still}")

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw corruption, severity and seed; return nothing if the image stays unchanged.

        For a batch, the draws of each image are under ``"batch"``.
        """
        if not flat_inputs:
            raise ArgumentTypeError("the sample has no image: Corrupt takes Pillow images and uint8 tensors")
        sizes = {len(each) if _is_batch(each) else None for each in flat_inputs}
        if len(sizes) > 1:
            raise ArgumentError("a sample must contain single images, or batches of one size")
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
        """Corrupt an image, or each image of a batch, with the given draws."""
        if _is_batch(inpt):
            drawn = params["batch"]
            single = [_wrap(each, inpt) for each in inpt.as_subclass(torch.Tensor)]
            results = [self.transform(image, own) for image, own in zip(single, drawn, strict=True)]
            # Unchanged images get three channels too if others have three.
            stacked = torch.stack([each.expand(*each.shape[:-3], 3, -1, -1) for each in results])
            return _wrap(stacked if any(drawn) else inpt, inpt)
        if not params:
            return inpt
        if isinstance(inpt, tv_tensors.Video):
            return self._corrupt_clip(inpt, params)
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
        return _wrap(torch.from_numpy(result).permute(2, 0, 1).contiguous().to(inpt.device), inpt)

    def _corrupt_clip(self, clip: Any, params: dict[str, Any]) -> Any:
        """Corrupt a video (T, 3, H, W) with the given draws."""
        frames = np.stack([_pixels(frame) for frame in clip.as_subclass(torch.Tensor)])
        name, severity, seed = (params[key] for key in ("corruption", "severity", "seed"))
        result = corrupt_clip(frames, name, severity, scale=self.scale, rng=seed)
        return _wrap(torch.from_numpy(result).permute(0, 3, 1, 2).contiguous().to(clip.device), clip)


def _wrap(tensor: Any, like: Any) -> Any:
    """Return `tensor` in the class of torchvision that `like` has, if any."""
    return tv_tensors.wrap(tensor, like=like) if isinstance(like, _WRAPPED) else tensor


def _is_batch(image: Any) -> bool:
    return isinstance(image, torch.Tensor) and image.ndim == (5 if isinstance(image, tv_tensors.Video) else 4)


def _draw(count: int) -> int:
    return int(torch.randint(count, ()).item())


def _pixels(image: Any) -> Any:
    """Return the input of `robustgen.corrupt`: a Pillow image unchanged, a tensor as an array (H, W, 3)."""
    if isinstance(image, Image.Image):
        return image
    if image.dtype != torch.uint8:
        raise ArgumentTypeError(f"Corrupt takes uint8 tensors, not {image.dtype}; put it before ToDtype")
    if image.ndim != 3 or image.shape[0] not in (1, 3):
        raise ArgumentError(f"Corrupt takes tensors (..., 3 or 1, H, W), not {tuple(image.shape)}")
    array = image.cpu().permute(1, 2, 0).numpy()
    return np.repeat(array, 3, axis=2) if image.shape[0] == 1 else np.ascontiguousarray(array)
