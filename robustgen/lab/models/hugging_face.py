"""Preprocessing and class names of modules of transformers, from the files beside their weights."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from robustgen.display.progress import print_note
from robustgen.errors import ConfigError, raise_as
from robustgen.lab.models.base import Model
from robustgen.lab.models.preprocessing import Preprocessing, check_fields
from robustgen.sets.sources.classes import name_folders

# Files of image processors, and the key that holds them in the file of a processor of images and texts.
_FILES: Final = {"preprocessor_config.json": "", "processor_config.json": "image_processor"}
_BICUBIC: Final = 3
_SHOWN: Final = 3


def read_preprocessing(module: Any) -> Preprocessing | None:
    """Return the preprocessing that a module of transformers was trained with; None if it does not say.

    Raises
    ------
    ConfigError
        The file is damaged.
    """
    if not _is_pretrained(module):
        return None
    for name, key in _FILES.items():
        path = _find_file(str(module.name_or_path or ""), name)
        if path:
            damages = OSError, ValueError, KeyError, TypeError, AttributeError
            with raise_as(ConfigError, f"{path}: not the file of an image processor", *damages):
                content = json.loads(path.read_text(encoding="utf-8"))
                keys = _translate(content[key] if key else content)
            return check_fields(keys, str(path))
    return None


def list_class_names(module: Any) -> tuple[str, ...]:
    """Return the names of the outputs of a module of transformers; () if it has none."""
    names = module.config.id2label if _is_pretrained(module) else None
    listed = tuple(str(names[number]) for number in sorted(names)) if names else ()
    # transformers gives these names if there are none.
    return () if listed == tuple(f"LABEL_{number}" for number in range(len(listed))) else listed


def fit_class_names(own: Preprocessing, model: Model, folders: Sequence[str]) -> Preprocessing:
    """Return `own` with the class folders of a set in the order of the model's class names.

    If it has a list already, returns it as it is; also if the names are not those of the folders, which a
    line says.
    """
    known = {_simplify(folder): folder for folder in folders}
    if own.classes or not model.class_names or not any(known):
        return own
    listed = tuple(known.get(_simplify(name), name) for name in name_folders(model.class_names))
    if {*folders} <= {*listed} and len({*listed}) == len(listed):
        return replace(own, classes=listed)
    names, there = (
        ", ".join([*each][:_SHOWN]) + ", ..." * (len(each) > _SHOWN) for each in (model.class_names, folders)
    )
    print_note(
        f"{model.folder}: its id2label (config.json) names {names}, the classes of the images are {there}: "
        "their order is taken for that of the outputs; --classes lists another one"
    )
    return own


def _is_pretrained(module: Any) -> bool:
    transformers = sys.modules.get("transformers")
    return transformers is not None and isinstance(module, transformers.PreTrainedModel)


def _find_file(place: str, name: str) -> Path | None:
    """Return a file of a model in a folder, or of the hub as far as it has been downloaded."""
    if Path(place).is_dir():
        return Path(place, name) if Path(place, name).is_file() else None
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", place):
        return None
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(place, name)
    return Path(found) if isinstance(found, str) else None


def _translate(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a preprocessing file that mean the same as those of an image processor."""
    normalises = content.get("do_normalize", True)
    keys: dict[str, Any] = {
        "mean": content["image_mean"] if normalises and "image_mean" in content else 0,
        "std": content["image_std"] if normalises and "image_std" in content else 1,
        "pixel_scale": content.get("rescale_factor", 1 / 255) if content.get("do_rescale", True) else 1,
        "interpolation": "bicubic" if content.get("resample") == _BICUBIC else "bilinear",
        "channel_order": "bgr" if content.get("do_flip_channel_order") else "rgb",
    }
    crops, resizes = content.get("do_center_crop"), content.get("do_resize", True)
    size = content.get("crop_size") if crops else content.get("size") if resizes else None
    if isinstance(size, Mapping):
        sides = size.get("height"), size.get("width")
        size = sides if all(sides) else size.get("shortest_edge")
    return keys | ({"input_size": size} if size else {})


def _simplify(name: str) -> str:
    """Return a class name as folders and lists may both write it."""
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()
