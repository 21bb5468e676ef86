"""Names of the formats and of the kinds of source, and where in their packages the rows stand."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

FORMATS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "jpeg": "encoders:JPEG",
        "png": "encoders:PNG",
        "webp": "encoders:WEBP",
        "original": "encoders:ORIGINAL",
        "mp4": "encoders:MP4",
        "npy": "arrays:NPY",
        "npz": "arrays:NPZ",
        "webdataset": "webdataset:WEBDATASET",
        "parquet": "parquet:PARQUET",
        "table": "table:TABLE",
    }
)
"""Formats by their name for `--format`."""

SOURCES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "labelled": "folder:LABELLED",
        "table": "table:KIND",
        "img2dataset": "folder:SHARD_FOLDERS",
        "parquet": "parquet:KIND",
        "webdataset": "webdataset:KIND",
        "mnist": "mnist:KIND",
        "medmnist": "medmnist:KIND",
        "cifar": "cifar:KIND",
        "tiny-imagenet": "tiny_imagenet:KIND",
        "arrays": "arrays:KIND",
        "folder": "folder:FOLDER",
    }
)
"""Kinds of source by name, in the order of recognition; plug-ins come before "arrays" and "folder"."""
