"""From pixels to model input: `Preprocessing`, from a preset, a YAML file, flags, or the model itself.

mean: [0.485, 0.456, 0.406]     # the model input is (pixel_scale * pixel - mean) / std, pixels from 0 to 255
std: [0.229, 0.224, 0.225]
input_size: 224                 # or [height, width]; images of another size are resized
classes: imagenet               # or a list of class folders in the order of the outputs, or its FILE

`settings.models.InputKeys` describes all keys.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from robustgen.errors import ConfigError, UnknownNameError
from robustgen.pixels.imaging.cleaning import CLEANINGS, Cleaning
from robustgen.settings.fields import spell
from robustgen.settings.loading import check, convert
from robustgen.settings.models import Axes, Colour, InputKeys, OutputForm
from robustgen.settings.yaml_files import Document, KeyPath, read_document

Pixels = NDArray[np.uint8]
Interpolation = Literal["bilinear", "bicubic"]
ChannelOrder = Literal["rgb", "bgr"]
_OF_PRESETS: Final = ("mean", "std", "pixel_scale", "channel_order")
_DESCRIBED: Final = ("mean", "std", "pixel_scale", "input_size", "clean_input")
# Means of blue, green and red of ImageNet's images, 0 to 255, which networks of Caffe subtract.
_CAFFE_MEAN: Final = (103.939, 116.779, 123.68)
_INTERPOLATIONS: Final = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


@dataclass(frozen=True)
class Preprocessing:
    """Normalisation of pixels to the model input: ``(pixel_scale * pixel - mean) / std``.

    Attributes
    ----------
    mean, std : tuple of three floats
        For the channels in the model's order.
    pixel_scale : float
    layout : {"NCHW", "NHWC"}, optional
        None: the model's layout, or NCHW if it has none.
    input_size : (int, int), optional
        Height and width that images are resized to; None: images must have the model's size.
    classes : tuple of str, optional
        Class folders in the order of the model's outputs.
    clean_input : Cleaning, optional
        Cleaning of the stored images, before they are resized.
    interpolation : {"bilinear", "bicubic"}
        Method of resizing.
    channel_order : {"rgb", "bgr"}
        Order of the channels of the model input.
    outputs : {"logits", "probabilities"}, optional
        Form of the only output of a model of two classes.
    origins : dict of str to str
        Where each of these comes from, for people.
    """

    mean: Colour
    std: Colour
    pixel_scale: float = 1 / 255
    layout: Axes | None = None
    input_size: tuple[int, int] | None = None
    classes: tuple[str, ...] | None = None
    clean_input: Cleaning | None = None
    interpolation: Interpolation = "bilinear"
    channel_order: ChannelOrder = "rgb"
    outputs: OutputForm | None = None
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def normalisation(self) -> tuple[Colour, Colour, float, ChannelOrder]:
        """Return mean, standard deviation and factor of the pixels, and the order of the channels."""
        return self.mean, self.std, self.pixel_scale, self.channel_order

    def hint_at_order(self) -> str:
        """Return a hint if the means are Caffe's, but not in the order of the channels; else ""."""
        unscaled = np.array(self.mean) / self.pixel_scale
        orders = {"bgr": ("blue, green, red", _CAFFE_MEAN), "rgb": ("red, green, blue", _CAFFE_MEAN[::-1])}
        for order, (names, mean) in orders.items():
            if order != self.channel_order and np.abs(unscaled - mean).max() < 1.5:
                given = f"mean {_format_colour(self.mean)} is that of {names}"
                key = f"channel_order: {order} if the model takes it"
                return f"{given}: set {key} (--preprocessing channel_order={order})"
        return ""

    def tabulate(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the model input for each of the 256 levels in each channel, (3, 256) of `dtype`."""
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
        from robustgen.pixels.imaging.geometry import resize

        return resize(pixels, width, height, _INTERPOLATIONS[self.interpolation])

    def prepare(self, pixels: Pixels) -> Pixels:
        """Return an image (H, W, 3) or frames (T, H, W, 3), cleaned and resized if so configured."""
        return self.resize(self.clean(pixels))

    def clean(self, pixels: Pixels) -> Pixels:
        """Return an image (H, W, 3) or frames (T, H, W, 3), cleaned if so configured."""
        if self.clean_input is None:
            return pixels
        if pixels.ndim == 4:
            return np.stack([self.clean_input.apply(frame) for frame in pixels])
        return self.clean_input.apply(pixels)

    def describe(self) -> str:
        """Return what the model is given, and where each setting comes from, in one line for people."""
        size, scale = self.input_size, self.pixel_scale
        texts = {
            "mean": f"mean {_format_colour(self.mean)}",
            "std": f"std {_format_colour(self.std)}",
            "pixel_scale": f"scale {f'1/{1 / scale:g}' if scale < 1 else f'{scale:g}'}",
            "channel_order": "channels BGR" if self.channel_order == "bgr" else None,
            "input_size": f"size {size[0]} x {size[1]}" if size else None,
            "clean_input": self.clean_input and self.clean_input.title,
        }
        told = [
            f"{text} ({self.origins[key]})" if key in self.origins else text
            for key, text in texts.items()
            if text
        ]
        return ", ".join([*told, *["size of the images"] * (not size)])

    def settings(self) -> dict[str, Any]:
        """Return everything that decides the predictions, as plain values."""
        cleaning = self.clean_input and self.clean_input.settings()
        plain = json.loads(json.dumps(asdict(self) | {"origins": None, "clean_input": cleaning}))
        # Defaults are omitted, so that the settings of a model stay the same when a key is added.
        usual = {"clean_input": None, "interpolation": "bilinear", "origins": None}
        usual |= {"channel_order": "rgb", "outputs": None}
        return {key: value for key, value in plain.items() if key not in usual or value != usual[key]}


PRESETS: Final[Mapping[str, Preprocessing]] = {
    "imagenet": Preprocessing((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "cifar-10": Preprocessing((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    "cifar-100": Preprocessing((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
}
"""Mean and standard deviation of the training images of most published models."""
RAW: Final = Preprocessing((0, 0, 0), (1, 1, 1), pixel_scale=1)
"""Pixels as they are, for models whose input is uint8."""


def load_preprocessing(
    layers: Iterable[str], flags: Mapping[str, Any], default: str, own: Preprocessing | None = None
) -> Preprocessing:
    """Read presets, YAML files and keys, of which later ones override; `flags` override all.

    Parameters
    ----------
    layers : iterable of str
        Names of `PRESETS`, files, and texts ``KEY=VALUE``.
    flags : mapping
        Key of `InputKeys` to value or text; None if it is not given.
    default : str
        The preset for the data set.
    own : Preprocessing, optional
        The model's own preprocessing, which replaces the default.

    Raises
    ------
    ConfigError
        The message names the file or the flag, the key and the error.
    """
    base = _originate(own, "the model's") if own else _originate(PRESETS[default], f"default {default}")
    content, origins, places = dict[str, Any](), dict[str, str](), dict[KeyPath, str]()
    errors, file = dict[str, str](), ""
    for layer in layers:
        key, sign, text = layer.partition("=")
        if layer in PRESETS:
            base = _originate(PRESETS[layer], layer)
            content = {each: value for each, value in content.items() if each not in _OF_PRESETS}
        elif sign and key.isidentifier():
            if key not in InputKeys.model_fields:
                raise ConfigError(f"--preprocessing: {UnknownNameError('key', key, InputKeys.model_fields)}")
            content[key], origins[key] = convert(InputKeys, key, text), "given"
            errors[key] = f"--preprocessing {key}"
        else:
            file, document = layer, _read_file(Path(layer))
            content |= document.content
            origins |= dict.fromkeys(document.content, Path(layer).name)
            places |= {place: f"{layer}:{line}" for place, line in document.lines.items()}
            errors = {each: where for each, where in errors.items() if each not in document.content}
    for key, value in flags.items():
        if value is not None:
            content[key], origins[key], errors[key] = convert(InputKeys, key, value), "given", spell(key)
    return _override(base, check(InputKeys, content, file, errors, places), origins)


def _read_file(path: Path) -> Document:
    """Return the keys of a preprocessing file; it names its list of classes from its own folder."""
    if not path.exists() and path.suffix not in (".yaml", ".yml"):
        raise UnknownNameError("preprocessing", str(path), [*PRESETS, "a YAML file", "KEY=VALUE"])
    document = read_document(path)
    classes = document.content.get("classes")
    if isinstance(classes, str) and classes != "imagenet":
        document.content["classes"] = str(path.parent / classes)
    return document


def check_fields(given: Any, where: str) -> Preprocessing:
    """Return a `Preprocessing` from a mapping with the keys of the YAML file; messages begin with `where`.

    Raises
    ------
    ConfigError
        The mapping or one of its values is invalid.
    """
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where} must be a mapping, not {type(given).__name__}")
    plain = {key: [*value] if isinstance(value, np.ndarray) else value for key, value in given.items()}
    keys = check(InputKeys, plain, where)
    base = _originate(PRESETS["imagenet"], "default imagenet")
    return _override(base, keys, dict.fromkeys(keys.model_fields_set, "the model's"))


def _originate(own: Preprocessing, origin: str) -> Preprocessing:
    """Return `own` with `origin` for everything that has none yet."""
    scale = "default" if own.pixel_scale == Preprocessing.pixel_scale else origin
    return replace(own, origins={**dict.fromkeys(_DESCRIBED, origin), "pixel_scale": scale, **own.origins})


def _override(base: Preprocessing, keys: InputKeys, origins: Mapping[str, str]) -> Preprocessing:
    """Return `base` with the given `keys`, which come from `origins`."""
    given = {key: getattr(keys, key) for key in keys.model_fields_set}
    if keys.clean_input:
        ((name, own),) = keys.clean_input.model_dump(exclude_none=True).items()
        given["clean_input"] = CLEANINGS[name](**own)
    known = {key: origin for key, origin in origins.items() if key in (*_DESCRIBED, "channel_order")}
    return replace(base, **given, origins={**base.origins, **known})


def read_recorded(settings: Mapping[str, Any], where: str) -> Preprocessing | None:
    """Return the preprocessing in the content of a `predictions.json`, if there is one.

    Raises
    ------
    ConfigError
        A value is invalid; the message begins with `where`.
    """
    held, origins = settings.get("preprocessing"), settings.get("origins")
    if not isinstance(held, Mapping):
        return None
    # A later version may have recorded more.
    known = {key: value for key, value in held.items() if key in InputKeys.model_fields and value is not None}
    return replace(check_fields(known, where), origins=origins if isinstance(origins, Mapping) else {})


def _format_colour(values: Colour) -> str:
    """Return the values for red, green and blue, or the only one of all three."""
    return " ".join(f"{value:g}" for value in ([*values][:1] if len({*values}) == 1 else values))
