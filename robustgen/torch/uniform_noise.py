"""Uniform noise as a transform of torchvision: noise to train with, which is in no test set.

Hendrycks and Dietterich (ICLR 2019), appendix F. Importing this module imports torchvision; `robustgen.torch`
does so on the first use of `UniformNoise`.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from robustgen.errors import ArgumentError, ArgumentTypeError, MissingDependencyError
from robustgen.pixels.imaging.decode import as_rgb

try:
    import torch
    from torchvision import tv_tensors
    from torchvision.transforms import v2
    from torchvision.transforms.v2.functional import is_pure_tensor
except ImportError as _error:
    raise MissingDependencyError("UniformNoise needs torchvision: pip install 'robustgen[torch]'") from _error

if TYPE_CHECKING:
    from torch.nn import Module as _Transform  # torchvision has no types
else:
    _Transform = v2.Transform


class UniformNoise(_Transform):  # type: ignore[misc]
    """Add noise to each value of an image, drawn uniformly from -`bound` to `bound`, and clip the result.

    Values are from 0 to 1: in uint8 images 255 stands for 1, and results are rounded. All draws come from
    PyTorch's generator, for tensors on a GPU from the one of the GPU.

    Images are Pillow images, or tensors or `tv_tensors.Image` of any shape, a batch too, of dtype uint8 or
    floating point. The result is of the same type; Pillow images become RGB.

    Parameters
    ----------
    bound : float
        Greatest noise, above 0 and at most 1; in the paper 0.01, 0.05 or 0.1.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        `bound` is invalid. In a call: a floating-point image has values outside 0 to 1, or an image has
        another dtype.

    Examples
    --------
    >>> import torch
    >>> from robustgen.torch import UniformNoise
    >>> noisy = UniformNoise(bound=0.05)(torch.full((3, 64, 64), 0.5))
    >>> round(float(noisy.min()), 2), round(float(noisy.max()), 2)
    (0.45, 0.55)
    """

    _transformed_types = (Image.Image, is_pure_tensor, tv_tensors.Image)

    def __init__(self, bound: float = 0.05) -> None:
        super().__init__()
        if not 0 < bound <= 1:
            raise ArgumentError(f"bound must be above 0 and at most 1, not {bound}")
        self.bound = bound

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Return the image with noise."""
        if isinstance(inpt, Image.Image):
            return Image.fromarray(self._add(torch.from_numpy(np.array(as_rgb(inpt)))).numpy())
        result = self._add(inpt.as_subclass(torch.Tensor))
        return tv_tensors.wrap(result, like=inpt) if isinstance(inpt, tv_tensors.Image) else result

    def _add(self, values: Any) -> Any:
        if values.dtype == torch.uint8:
            noise = torch.empty(values.shape, device=values.device).uniform_(-self.bound, self.bound)
            return (values + 255 * noise).round().clamp(0, 255).to(torch.uint8)
        if not values.is_floating_point():
            raise ArgumentTypeError(f"UniformNoise takes uint8 or floating-point tensors, not {values.dtype}")
        if values.numel() and not (values.min() >= 0 and values.max() <= 1):
            raise ArgumentError("UniformNoise takes values from 0 to 1; put it before Normalize")
        return (values + torch.empty_like(values).uniform_(-self.bound, self.bound)).clamp(0, 1)
