"""The interface of the package imagecorruptions 1.1.2, on today's libraries.

Replace ``from imagecorruptions import corrupt`` by

    from robustgen.compat.imagecorruptions import corrupt

Names, arguments, errors and pixels are the same; in addition, every function takes ``rng=``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from robustgen.pixels.benchmarks.corruptions.imagecorruptions import IMAGECORRUPTIONS
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.rng import Rng

CorruptionFunction = Callable[..., Any]

_PILLOW_RESULTS = ("pixelate", "jpeg_compression")
_SUBSETS = {
    "common": (0, 15),
    "validation": (15, 19),
    "all": (0, 19),
    "noise": (0, 3),
    "blur": (3, 7),
    "weather": (7, 11),
    "digital": (11, 15),
}


def _corrupt_pixels(name: str, image: Rgb, severity: Any, rng: Rng | None) -> Rgb:
    entry = IMAGECORRUPTIONS.corruptions[name]
    # As in the package, anything that can serve as an index from 1 to 5 is accepted.
    parameters = entry.table[224][severity - 1]
    # NumPy's global generator has no public name.
    source = np.random.mtrand._rand if rng is None else rng
    corrupted: Rgb = entry.apply(image, parameters, source)
    return corrupted.copy() if np.shares_memory(corrupted, image) else corrupted


def _make_function(name: str) -> CorruptionFunction:
    def function(x: Any, severity: Any = 1, *, rng: Rng | None = None) -> Any:
        pixels = np.array(x.convert("RGB")) if isinstance(x, Image.Image) else x
        corrupted = _corrupt_pixels(name, _check_image(pixels, smallest=1), severity, rng)
        return Image.fromarray(corrupted) if name in _PILLOW_RESULTS else corrupted.astype(np.float64)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{IMAGECORRUPTIONS.corruptions[name].function.__doc__}

    Parameters
    ----------
    x : Pillow image, or uint8 ndarray as for `corrupt`, of any size that the function supports
    severity : int
        1 to 5.
    rng : numpy.random.RandomState or Generator, optional
        None uses NumPy's global generator.

    Returns
    -------
    {"Pillow image" if name in _PILLOW_RESULTS else "float64 ndarray of shape (H, W, 3), 0 to 255, truncated"}

    Examples
    --------
    >>> import numpy as np
    >>> from PIL import Image
    >>> from robustgen.compat.imagecorruptions import {name}
    >>> np.shape({name}(Image.new("RGB", (64, 48)), severity=3))
    (48, 64, 3)
    """
    return function


gaussian_noise: CorruptionFunction = _make_function("gaussian_noise")
shot_noise: CorruptionFunction = _make_function("shot_noise")
impulse_noise: CorruptionFunction = _make_function("impulse_noise")
defocus_blur: CorruptionFunction = _make_function("defocus_blur")
glass_blur: CorruptionFunction = _make_function("glass_blur")
motion_blur: CorruptionFunction = _make_function("motion_blur")
zoom_blur: CorruptionFunction = _make_function("zoom_blur")
snow: CorruptionFunction = _make_function("snow")
frost: CorruptionFunction = _make_function("frost")
fog: CorruptionFunction = _make_function("fog")
brightness: CorruptionFunction = _make_function("brightness")
contrast: CorruptionFunction = _make_function("contrast")
elastic_transform: CorruptionFunction = _make_function("elastic_transform")
pixelate: CorruptionFunction = _make_function("pixelate")
jpeg_compression: CorruptionFunction = _make_function("jpeg_compression")
speckle_noise: CorruptionFunction = _make_function("speckle_noise")
gaussian_blur: CorruptionFunction = _make_function("gaussian_blur")
spatter: CorruptionFunction = _make_function("spatter")
saturate: CorruptionFunction = _make_function("saturate")

corruption_tuple: tuple[CorruptionFunction, ...] = (
    gaussian_noise, shot_noise, impulse_noise, defocus_blur, glass_blur, motion_blur, zoom_blur, snow, frost,
    fog, brightness, contrast, elastic_transform, pixelate, jpeg_compression, speckle_noise, gaussian_blur,
    spatter, saturate,
)  # fmt: skip
"""The functions by number."""

corruption_dict: dict[str, CorruptionFunction] = {
    function.__name__: function for function in corruption_tuple
}
"""The functions by name."""


def corrupt(
    image: Any,
    severity: Any = 1,
    corruption_name: str | None = None,
    corruption_number: int = -1,
    *,
    rng: Rng | None = None,
) -> Rgb:
    """Corrupt an image as the package imagecorruptions does.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3), (H, W, 1) or (H, W)
        Each side at least 32 pixels. It is not modified.
    severity : int
        1 to 5.
    corruption_name : str, optional
        A key of `corruption_dict`; overrides the number.
    corruption_number : int
        An index of `corruption_tuple`; -1 for none.
    rng : numpy.random.RandomState or Generator, optional
        None uses NumPy's global generator, which ``numpy.random.seed`` seeds.

    Returns
    -------
    uint8 ndarray of shape (H, W, 3)
        A grey image is returned with three channels.

    Raises
    ------
    AttributeError, ValueError, KeyError, IndexError
        As in the package.

    Examples
    --------
    >>> import numpy as np
    >>> from robustgen.compat.imagecorruptions import corrupt
    >>> grey = np.full((64, 64, 3), 128, np.uint8)
    >>> corrupt(grey, severity=3, corruption_name="brightness")[0, 0].tolist()
    [204, 204, 204]
    """
    pixels = _check_image(image)
    if severity not in [1, 2, 3, 4, 5]:
        raise AttributeError("Severity must be an integer in [1, 5]")
    if corruption_name is not None:
        name = corruption_dict[corruption_name].__name__
    elif corruption_number != -1:
        name = corruption_tuple[corruption_number].__name__
    else:
        raise ValueError("Either corruption_name or corruption_number must be passed")
    return _corrupt_pixels(name, pixels, severity, rng)


def _check_image(image: Any, smallest: int = 32) -> Rgb:
    """Return `image` with three channels; refuse sides below `smallest`."""
    if not isinstance(image, np.ndarray):
        raise AttributeError("Expecting type(image) to be numpy.ndarray")
    if image.dtype.type is not np.uint8:
        raise AttributeError("Expecting image.dtype.type to be numpy.uint8")
    if image.ndim not in (2, 3):
        raise AttributeError(
            "Expecting image.shape to be either (height x width) or (height x width x channels)"
        )
    if image.ndim == 2:
        image = np.stack([image] * 3, axis=-1)
    if min(image.shape[:2]) < smallest:
        raise AttributeError(f"Image width and height must be at least {smallest} pixels")
    if image.shape[2] not in (1, 3):
        raise AttributeError("Expecting image to have either 1 or 3 channels (last dimension)")
    return np.ascontiguousarray(np.repeat(image, 3 // image.shape[2], axis=2))


def get_corruption_names(subset: str = "common") -> list[str]:
    """Return the names of a subset of the corruptions, in the order of their numbers.

    Parameters
    ----------
    subset : {"common", "validation", "all", "noise", "blur", "weather", "digital"}

    Raises
    ------
    ValueError
        The subset does not exist.

    Examples
    --------
    >>> from robustgen.compat.imagecorruptions import get_corruption_names
    >>> get_corruption_names("blur")
    ['defocus_blur', 'glass_blur', 'motion_blur', 'zoom_blur']
    """
    if subset not in _SUBSETS:
        raise ValueError("subset must be one of ['common', 'validation', 'all']")
    return [function.__name__ for function in corruption_tuple[slice(*_SUBSETS[subset])]]
