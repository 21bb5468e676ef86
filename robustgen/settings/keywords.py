"""Types of the keywords of `make_c`, `make_p` and `evaluate` in Python, for editors and type checkers.

A field of a model remains the description of a choice; a test compares these names and types with the fields.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from robustgen.settings.models import Layout

_Path = str | os.PathLike[str]
_Levels = str | float | Sequence[str | float]
_Words = str | Sequence[str]
_Numbers = str | float | Sequence[float]


class ConfigKeys(TypedDict, total=False):
    """Keys of `Config`."""

    source: _Path | None
    source_kind: str
    split: str | None
    labels: _Path | None
    labels_are_classes: bool
    image_columns: _Words | None
    image_root: _Path | None
    follow_links: _Words
    levels: str | Sequence[float] | None
    limit: int | None
    sample: int | None
    subset: str | None
    seed: int
    jobs: int | Literal["all"] | None
    edition: str
    corruptions: _Words
    severities: _Levels
    one_per_image: bool
    perturbations: _Words
    difficulty: _Levels
    quality: int
    libjpeg: Literal["turbo", "ijg"]
    require_classes: bool
    clean: bool
    format: str | None
    shard_size: int
    mirror: Literal["link", "copy", "none"] | None
    video: Mapping[str, Any]
    constants_for: Literal[224, 299, 64, 32, 256, 336, 384, 448] | None
    motion_blur: Literal["exact", "imagemagick"]
    ingredients: Mapping[str, str | Mapping[str, Any]]
    parameters: Mapping[str, Mapping[Any, Any]]


class MakeKeys(ConfigKeys, total=False):
    """Keys of `Config` and of `Running` that change no result."""

    output: _Path
    overwrite: bool
    quiet: bool
    log_json: _Path | None
    on: str | None
    shard: str | None


class EvaluateKeys(ConfigKeys, total=False):
    """Keys of `Config`, `ModelInput`, `Runtime` and `OnTheFly`."""

    mean: _Numbers | None
    std: _Numbers | None
    pixel_scale: float | None
    layout: Layout | None
    input_size: int | Sequence[int] | str | None
    clahe: bool | Mapping[str, float] | None
    interpolation: Literal["bilinear", "bicubic"]
    classes: _Words | None
    preprocessing: _Path | None
    device: str
    mixed_precision: bool
    threads: int | None
    trust_model: bool
    uncompressed: bool
    save: Literal["logits", "top5"] | None
    batch_size: int
    overwrite: bool
    quiet: bool
