"""Types of the keywords of `make_c`, `make_p` and `evaluate` in Python, for editors and type checkers.

Written by scripts/docs_reference.py from the fields of the models; run `make docs`.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

_Path = str | os.PathLike[str]


class ConfigKeys(TypedDict, total=False):
    """Keys of Config."""

    source: _Path | None
    source_kind: str
    split: str | None
    labels: _Path | None
    labels_are_classes: bool
    label_column: str | None
    file_column: str | None
    split_column: str | None
    image_columns: str | Sequence[str] | None
    image_root: _Path | None
    follow_links: str | Sequence[str]
    fps: str | float | None
    rig: str | None
    levels: str | float | Sequence[float] | None
    limit: int | None
    sample: int | None
    subset: str | None
    seed: int
    jobs: Literal["all"] | int | None
    edition: str
    corruptions: str | Sequence[str]
    severities: str | float | Sequence[str | float]
    severities_of: Mapping[str, Any]
    temporal: Literal["clip", "frame"]
    one_per_image: bool
    perturbations: str | Sequence[str]
    difficulty: str | float | Sequence[str | float]
    quality: int
    libjpeg: Literal["turbo", "ijg"]
    require_classes: bool
    clean: bool
    format: str | None
    shard_size: int
    mirror: Literal["none"] | Literal["link", "copy"] | None
    maps: str | Sequence[str] | None
    orientation: Literal["stored", "upright"] | None
    video: Mapping[str, Any]
    constants_for: Literal[224, 299, 64, 32, 256, 336, 384, 448] | None
    ingredients: Mapping[str, Any]
    parameters: Mapping[str, Any]


class MakeKeys(ConfigKeys, total=False):
    """Keys of Running."""

    output: _Path
    overwrite: bool
    quiet: bool
    log_json: _Path | None
    on: str | None
    shard: str | None


class EvaluateKeys(ConfigKeys, total=False):
    """Keys of ModelInput, Runtime, OnTheFly."""

    mean: str | float | Sequence[float] | None
    std: str | float | Sequence[float] | None
    pixel_scale: float | None
    layout: Literal["NCHW", "NHWC"] | None
    channel_order: Literal["rgb", "bgr"]
    outputs: Literal["logits", "probabilities"] | None
    input_size: str | int | Sequence[int] | None
    clean_input: str | Mapping[str, Any] | None
    interpolation: Literal["bilinear", "bicubic"]
    classes: str | Sequence[str] | None
    preprocessing: str | Sequence[str]
    device: str
    mixed_precision: bool
    threads: int | None
    trust_model: bool
    save: Literal["logits", "top5"] | None
    only_classes: bool
    batch_size: int
    frames: int
    overwrite: bool
    quiet: bool
    random_offset: bool
    uncompressed: bool
