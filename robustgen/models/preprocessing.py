"""From pixels to model input: `Preprocessing`, read from a small YAML file and from flags.

mean: [0.485, 0.456, 0.406]     # the model input is (pixel_scale * pixel - mean) / std, pixels from 0 to 255
std: [0.229, 0.224, 0.225]
pixel_scale: 0.00392156862745   # default 1/255
layout: NCHW                    # or NHWC; default from the model
input_size: 224                 # or [height, width]; images of another size are resized
classes: wnids.txt              # class folders in the order of the model's outputs, or a list of them
clahe: true                     # equalise the lightness first; or {clip_limit: 2.0, tiles: 8}
interpolation: bicubic          # for resizing; default bilinear
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from robustgen.errors import ConfigError, UnknownNameError
from robustgen.files.json_files import parse_json
from robustgen.imaging.clahe import MOST_CLIP, MOST_TILES, Clahe, clahe
from robustgen.imaging.colour import look_up_channels
from robustgen.imaging.geometry import resize
from robustgen.settings.config import read_yaml

Pixels = NDArray[np.uint8]
Layout = Literal["NCHW", "NHWC"]
Interpolation = Literal["bilinear", "bicubic"]
_INTERPOLATIONS: Final = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
Colour = tuple[float, float, float]


@dataclass(frozen=True)
class Preprocessing:
    """Normalisation of pixels to the model input: ``(pixel_scale * pixel - mean) / std``.

    Attributes
    ----------
    mean, std : tuple of three floats
        For red, green and blue.
    pixel_scale : float
    layout : {"NCHW", "NHWC"}, optional
        None: the model's layout, or NCHW if it has none.
    input_size : (int, int), optional
        Height and width that images are resized to; None: images must have the model's size.
    classes : tuple of str, optional
        Class folders in the order of the model's outputs.
    clahe : Clahe, optional
        Equalisation of the stored images, before they are resized.
    interpolation : {"bilinear", "bicubic"}
        Method of resizing.
    """

    mean: Colour
    std: Colour
    pixel_scale: float = 1 / 255
    layout: Layout | None = None
    input_size: tuple[int, int] | None = None
    classes: tuple[str, ...] | None = None
    clahe: Clahe | None = None
    interpolation: Interpolation = "bilinear"

    def normalise(self, pixels: Pixels, layout: Layout, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the model input of uint8 (n, H, W, 3): (n, 3, H, W) or (n, H, W, 3) of `dtype`."""
        first = layout == "NCHW"
        n, height, width, _ = pixels.shape
        out = np.empty((n, 3, height, width) if first else pixels.shape, dtype)
        tables = self._tables(dtype)
        for image, place in zip(pixels, out, strict=True):
            look_up_channels(image, tables, place if first else place.transpose(2, 0, 1))
        return out

    def _tables(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the value of each of the 256 levels in each channel, (3, 256)."""
        mean, std = np.array(self.mean)[:, None], np.array(self.std)[:, None]
        tables: NDArray[Any] = ((self.pixel_scale * np.arange(256.0) - mean) / std).astype(dtype)
        return tables

    def resize(self, pixels: Pixels) -> Pixels:
        """Return an image (H, W, 3) or frames (T, H, W, 3) at `input_size`."""
        if self.input_size is None or pixels.shape[-3:-1] == self.input_size:
            return pixels
        if pixels.ndim == 4:
            return np.stack([self.resize(frame) for frame in pixels])
        height, width = self.input_size
        return resize(pixels, width, height, _INTERPOLATIONS[self.interpolation])

    def prepare(self, pixels: Pixels) -> Pixels:
        """Return an image (H, W, 3) or frames (T, H, W, 3), equalised and resized if so configured."""
        return self.resize(self.equalise(pixels))

    def equalise(self, pixels: Pixels) -> Pixels:
        """Return an image (H, W, 3) or frames (T, H, W, 3) after CLAHE, if configured."""
        if self.clahe is None:
            return pixels
        if pixels.ndim == 4:
            return np.stack([clahe(frame, self.clahe) for frame in pixels])
        return clahe(pixels, self.clahe)

    def settings(self) -> dict[str, Any]:
        """Return everything that decides the predictions, as plain values."""
        plain = json.loads(json.dumps(asdict(self)))
        # Defaults are omitted, so that the settings of a model stay the same when a key is added.
        usual = {"clahe": None, "interpolation": "bilinear"}
        return {key: value for key, value in plain.items() if key not in usual or value != usual[key]}


PRESETS: Final[Mapping[str, Preprocessing]] = {
    "imagenet": Preprocessing((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "cifar-10": Preprocessing((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    "cifar-100": Preprocessing((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
}
"""Mean and standard deviation of the training images of most published models."""


def load_preprocessing(
    name: str | None, flags: Mapping[str, Any], default: str, own: Preprocessing | None = None
) -> Preprocessing:
    """Read a preset or a YAML file; the command line's `flags` override it.

    Parameters
    ----------
    name : str, optional
        One of `PRESETS`, or a file.
    flags : mapping
        Field to text, or None if the flag was not given.
    default : str
        The preset for the data set.
    own : Preprocessing, optional
        The model's own preprocessing, which replaces the default.

    Raises
    ------
    ConfigError
        The message names the file or the flag, the key and the error.
    """
    base, where = own or PRESETS[default], {}
    given: dict[str, Any] = {}
    if name in PRESETS:
        base = PRESETS[str(name)]
    elif name is not None:
        given = _read_file(Path(name))
        where = {key: f"{name}: {key}" for key in given}
    for key, text in flags.items():
        if text is not None:
            given[key], where[key] = text, f"--{key.replace('_', '-')}"
    _check_together(given, where)
    return replace(base, **{key: _check_value(where[key], key, value) for key, value in given.items()})


def check_fields(given: Any, where: str) -> Preprocessing:
    """Return a `Preprocessing` from a mapping with the keys of the YAML file; messages begin with `where`.

    Raises
    ------
    ConfigError
        The mapping or one of its values is invalid.
    """
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where} must be a mapping, not {type(given).__name__}")
    known = [each.name for each in fields(Preprocessing)]
    for key in given:
        if key not in known:
            raise ConfigError(f"{where}: {UnknownNameError('key', str(key), known)}")
    places = {key: f"{where}: {key}" for key in given}
    _check_together(given, places)
    checked = {key: _check_value(places[key], key, _simplify(value)) for key, value in given.items()}
    return replace(PRESETS["imagenet"], **checked)


def _simplify(value: Any) -> Any:
    """Return tuples and the like as the lists of a YAML file."""
    return [*value] if isinstance(value, Iterable) and not isinstance(value, (str, Mapping)) else value


def _read_file(path: Path) -> dict[str, Any]:
    if not path.exists() and path.suffix not in (".yaml", ".yml"):
        raise UnknownNameError("preprocessing", str(path), [*PRESETS, "a YAML file"])
    content = read_yaml(path)
    known = [each.name for each in fields(Preprocessing)]
    for key in content:
        if key not in known:
            raise ConfigError(f"{path}: {UnknownNameError('key', str(key), known)}")
    if isinstance(content.get("classes"), str):
        content["classes"] = str(path.parent / content["classes"])
    return content


def _check_together(given: Mapping[str, Any], where: Mapping[str, str]) -> None:
    # A mean for pixels from 0 to 1 with a scale for 0 to 255 gives plausible wrong predictions.
    for key in ("mean", "std", "pixel_scale"):
        lacking = [other for other in ("mean", "std") if key in given and other not in given]
        if lacking:
            raise ConfigError(f"{where[key]}: also needs {' and '.join(lacking)}")


def _check_value(where: str, key: str, value: Any) -> Any:
    try:
        return _CHECKS[key](value)
    except (TypeError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise ConfigError(f"{where}: {error}") from error
        raise ConfigError(f"{where}: {_WANTED[key]}, not {value!r}") from error


def _numbers(value: Any) -> list[float]:
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    numbers = [float(part) for part in parts if not isinstance(part, bool)]
    if len(numbers) != len(parts) or not all(map(math.isfinite, numbers)):
        raise ValueError
    return numbers


def _colour(value: Any) -> tuple[float, ...]:
    numbers = _numbers(value)
    if len(numbers) not in (1, 3):
        raise ValueError
    return tuple(numbers * (3 // len(numbers)))


def _positive_colour(value: Any) -> tuple[float, ...]:
    if min(numbers := _colour(value)) <= 0:
        raise ValueError
    return numbers


def _scale(value: Any) -> float:
    (number,) = _numbers(value)
    if number <= 0:
        raise ValueError
    return number


def _layout(value: Any) -> str:
    if str(value).upper() not in ("NCHW", "NHWC"):
        raise ValueError
    return str(value).upper()


def _interpolation(value: Any) -> str:
    if value not in _INTERPOLATIONS:
        raise ValueError
    return str(value)


def _size(value: Any) -> tuple[int, int]:
    sides = [int(number) for number in _numbers(value) if number == int(number) and number > 0]
    if len(sides) != len(_numbers(value)) or len(sides) > 2:
        raise ValueError
    return sides[0], sides[-1]


def _classes(value: Any) -> tuple[str, ...]:
    names = class_list(Path(value)) if isinstance(value, str) else [str(name) for name in value]
    if not names:
        raise ConfigError("lists no class")
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise ConfigError(f"{repeated!r} is listed twice")
    return tuple(names)


def _clahe(value: Any) -> Clahe | None:
    if str(value).lower() in ("true", "false"):
        return Clahe() if str(value).lower() == "true" else None
    known = [each.name for each in fields(Clahe)]
    for key in value.keys() - known if isinstance(value, dict) else ():
        raise ConfigError(str(UnknownNameError("key", str(key), known)))
    if not isinstance(value, dict):
        raise ValueError
    settings = asdict(Clahe()) | value
    (clip_limit,), (tiles,) = _numbers(settings["clip_limit"]), _numbers(settings["tiles"])
    if tiles != int(tiles):
        raise ValueError
    return Clahe(clip_limit, int(tiles))


_CHECKS = {
    "mean": _colour,
    "std": _positive_colour,
    "pixel_scale": _scale,
    "layout": _layout,
    "input_size": _size,
    "classes": _classes,
    "clahe": _clahe,
    "interpolation": _interpolation,
}
_WANTED = {
    "mean": "must be one number, or three",
    "std": "must be one positive number, or three",
    "pixel_scale": "must be a positive number",
    "layout": "must be NCHW or NHWC",
    "input_size": "must be a number of pixels, or height and width",
    "interpolation": "must be bilinear or bicubic",
    "classes": "must be a file, or a list of class folders",
    "clahe": (
        f"must be true, false, or a positive clip_limit up to {MOST_CLIP:g} and tiles from 1 to {MOST_TILES}"
    ),
}


def class_list(path: Path) -> list[str]:
    """Return the names of class folders in a file.

    Parameters
    ----------
    path : Path
        One name per line (of ``n01440764 tench`` the first word); a JSON list; or Keras's JSON object
        ``{"0": ["n01440764", "tench"], ...}``.

    Raises
    ------
    ConfigError
        The file cannot be read, or contains something else.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        if text.lstrip().startswith(("[", "{")):
            return _parse_json(text)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        # Only WordNet ids are separated from the following text: other folder names may contain spaces.
        return [found[0] if (found := re.match(r"n\d{8}(?=\s)", line)) else line for line in lines]
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ConfigError(f"{path} is not a list of class folders") from error


def _parse_json(text: str) -> list[str]:
    content = parse_json(text)
    if isinstance(content, dict):
        content = [content[str(i)] for i in range(len(content))]
    names = [entry[0] if isinstance(entry, list) else entry for entry in content]
    if not all(isinstance(name, str) for name in names):
        raise ValueError
    return names
