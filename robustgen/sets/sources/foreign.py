"""Formats of other libraries that no source reads, and how to convert them."""

import re
from collections.abc import Iterator
from typing import Final

from robustgen.sets.sources.places import Place

_EXPORT: Final = "write its images into class folders, or as WebDataset shards or Parquet"
# Pattern of file names, name of the format, and the way to convert it.
_FOREIGN: Final = (
    (
        r"dataset_dict\.json|.+\.arrow",
        "a folder of `save_to_disk`",
        "load it with datasets.load_from_disk, and write each split with .to_parquet('test.parquet')",
    ),
    (
        r".+\.tfrecords?(-.*|\.gz)?|\w+-\d{5}-of-\d{5}",
        "TFRecord",
        f"{_EXPORT}, for instance with tensorflow_datasets.as_numpy",
    ),
    (
        r"data\.mdb|lock\.mdb|.+\.lmdb",
        "an LMDB",
        f"{_EXPORT}, for instance the entries of lmdb.open(...).begin()",
    ),
    (r".+\.beton", "FFCV", "name the images that the .beton was written from, or " + _EXPORT),
    (r".+\.rec", "RecordIO", f"{_EXPORT}, for instance with mxnet.recordio"),
    (r".+\.(h5|hdf5)", "HDF5", "write its arrays with numpy.savez(file, images=..., labels=...)"),
    (
        r".+\.(pt|pth)",
        "a file of PyTorch",
        "write its tensors with numpy.savez(file, images=..., labels=...)",
    ),
    (r".+\.(pkl|pickle)", "a pickle", "write its arrays with numpy.savez(file, images=..., labels=...)"),
    (r".+\.(7z|rar|zst)", "a compressed file", "unpack it, or pack it as .zip or .tar"),
)


def explain_foreign(place: Place) -> str:
    """Return the format of another library that is at `place`, and a way to convert it; "" if unknown."""
    names = [*_list_names(place)] if place.is_folder else [place.name]
    for pattern, kind, way in _FOREIGN:
        if found := next((name for name in names if re.fullmatch(pattern, name, re.IGNORECASE)), None):
            there = f"contains {found}: " if place.is_folder else ""
            return f"{there}{kind}, which is not read; {way}"
    return ""


def _list_names(place: Place, depth: int = 2) -> Iterator[str]:
    """Yield the names in a folder, and in folders in it, as some libraries name folders after releases."""
    for name, is_folder in sorted(place.children.items()):
        if not is_folder:
            yield name
        elif depth:
            yield from _list_names(Place(f"{place.location}/{name}"), depth - 1)
