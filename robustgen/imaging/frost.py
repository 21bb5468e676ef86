"""The frost photographs, and windows of them blended into an image."""

import hashlib
import importlib.util
import math
from functools import lru_cache
from pathlib import Path

import numpy as np

from robustgen.errors import MissingDependencyError
from robustgen.imaging.kernels import elementwise as kernels
from robustgen.imaging.kernels import resizing
from robustgen.imaging.opencv import cv2
from robustgen.imaging.pixels import Rgb
from robustgen.imaging.rng import Rng, integers

# The sixth photograph is in the package, but the scripts drew from [0, 5) and so never used it.
FROST_PHOTOGRAPHS = {
    "frost1.png": "ff9f907860bd7a835d459e32f9d588062b7f61ee267343cc7222b56753a14755",
    "frost2.png": "fe211a89b336999c207a852ce05818d4545d0b57c5beadd824b4cc9d9a9b6137",
    "frost3.png": "2d0d50b4a9bb213f38b024ef7768731bb83cc08d2f26b5766bbc167cdfa0e504",
    "frost4.jpg": "3f8b91ca1a9fa7167b09e773da53f5ae60d0a1fd88f02a783f6e328a72887f6e",
    "frost5.jpg": "5fc6a19df4a429ba68abdcc8f8a4278d4c9f81c9ccafd2c92ab0c8cf8992ebd2",
}


def frost_directory() -> Path:
    """Folder of the frost photographs inside the installed package ``imagecorruptions``.

    Raises
    ------
    MissingDependencyError
        The package is not installed.
    """
    # Only located: importing the package fails on current NumPy.
    spec = importlib.util.find_spec("imagecorruptions")
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError(
            "the frost photographs are missing: pip install --no-deps imagecorruptions==1.1.2, "
            "or name a folder that holds frost1.png ... frost5.jpg with --frost-dir"
        )
    return Path(spec.submodule_search_locations[0]) / "frost"


@lru_cache(maxsize=32)
def frost_photograph(index: int, shrink: float = 1.0, directory: str | None = None) -> Rgb:
    """Frost photograph `index` (0 .. 4), RGB, shrunk by OpenCV's default interpolation.

    Raises
    ------
    MissingDependencyError
        The file is absent, or not the one the published data was made with.
    """
    name, digest = list(FROST_PHOTOGRAPHS.items())[index]
    path = (Path(directory) if directory else frost_directory()) / name
    try:
        data = path.read_bytes()
    except OSError as error:
        raise MissingDependencyError(
            f"frost photograph {path} cannot be read ({error.strerror}): reinstall imagecorruptions==1.1.2 "
            "or name another folder with --frost-dir"
        ) from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise MissingDependencyError(f"{path} is not the published frost photograph (its SHA-256 differs)")
    bgr = np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR))
    if shrink != 1.0:
        bgr = np.asarray(cv2.resize(bgr, (0, 0), fx=shrink, fy=shrink))
    photograph: Rgb = np.ascontiguousarray(bgr[:, :, ::-1])
    photograph.flags.writeable = False
    return photograph


def check_frost(directory: str | None = None) -> None:
    """Raise a MissingDependencyError unless all frost photographs can be read."""
    for index in range(len(FROST_PHOTOGRAPHS)):
        frost_photograph(index, 1.0, directory)


def frost_crop(shape: tuple[int, int], shrink: float, directory: str | None, rng: Rng) -> Rgb:
    """Return a random window of `shape` (H, W) of a random frost photograph, uint8 (H, W, 3)."""
    photograph = frost_photograph(int(integers(rng, 0, 5)), shrink, directory)
    photograph = _cover(photograph, shape)
    rows, columns = photograph.shape[:2]
    top = integers(rng, 0, max(rows - shape[0], 1))
    left = integers(rng, 0, max(columns - shape[1], 1))
    return photograph[top : top + shape[0], left : left + shape[1]]


@lru_cache(maxsize=16)
def enlarged_photograph(index: int, shape: tuple[int, int], directory: str | None) -> Rgb:
    """Frost photograph `index`, enlarged by a tenth more than it takes to cover `shape` (H, W).

    As the package imagecorruptions does it: in either axis alone where only that is too small, and by a tenth
    even where neither is.
    """
    photograph = frost_photograph(index, 1.0, directory)
    rows, columns = photograph.shape[:2]
    factor = max(shape[0] / rows, shape[1] / columns, 1.0) * 1.1
    enlarged = np.empty((math.ceil(rows * factor), math.ceil(columns * factor), 3), np.uint8)
    resizing.resize_cubic(photograph, enlarged)
    enlarged.flags.writeable = False
    return enlarged


def blend(image: Rgb, weight: float, other: Rgb, other_weight: float) -> Rgb:
    """Weighted sum of two uint8 images of the same shape, clipped to 0 .. 255 and truncated."""
    out = np.empty_like(image)
    flat = np.ascontiguousarray(other).reshape(-1)
    kernels.blend(image.reshape(-1), float(weight), flat, float(other_weight), out.reshape(-1))
    return out


def _cover(photograph: Rgb, shape: tuple[int, int]) -> Rgb:
    """Return `photograph`, enlarged with its aspect kept where it would not cover `shape`."""
    rows, columns = photograph.shape[:2]
    factor = max(shape[0] / rows, shape[1] / columns)
    if factor <= 1:
        return photograph
    size = max(math.ceil(columns * factor), shape[1]), max(math.ceil(rows * factor), shape[0])
    return np.asarray(cv2.resize(photograph, size, interpolation=cv2.INTER_LINEAR), np.uint8)
