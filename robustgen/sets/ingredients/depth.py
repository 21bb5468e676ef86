"""Depth maps of the images of a set, in a folder, an archive or shards."""

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, Final, Literal

import numpy as np

from robustgen.errors import ConfigError, ImageError, SourceError
from robustgen.files.storage import Store
from robustgen.pixels.benchmarks.ingredients import Images, IngredientSpec, OpenedIngredient
from robustgen.pixels.imaging.decode import reason_of
from robustgen.pixels.imaging.geometry import PreparationStep
from robustgen.pixels.imaging.three_d_cc_effects import Depth, depth_from_midas, read_depth_picture
from robustgen.sets.sources.base import name_source_in_errors
from robustgen.sets.sources.places import ARCHIVES, Place, find_place
from robustgen.sets.sources.sample_names import sample_key
from robustgen.sets.sources.trees import ArchiveTree, FileTree, FolderTree


def open_depth(spec: IngredientSpec) -> "SetDepth":
    """List the maps, and read some of them."""
    assert spec.place is not None
    try:
        with name_source_in_errors(spec.place):
            trees = _open_trees(find_place(spec.place), spec.store)
            maps = SetDepth(spec.place, spec.source, spec.settings.get("scale", 1.0), trees)
            # Report unreadable maps now.
            maps.describe()
    except SourceError as error:
        raise ConfigError(f"depth: {error}") from error
    return maps


SUFFIXES: Final = (".png", ".npy", ".tif", ".tiff")


# Number of maps whose content enters the digest; the others contribute only names and sizes.
_LOOKED_AT: Final = 4


@dataclass(frozen=True, eq=False)
class SetDepth(OpenedIngredient):
    """Reader of the depth map of each image. Picklable.

    Attributes
    ----------
    location : str
    images : Images
        Images that the maps belong to.
    scale : float or "midas"
        Factor of the stored values; "midas" for the 16-bit inverse depth of MiDaS.
    """

    location: str
    images: Images
    scale: float | Literal["midas"]
    trees: tuple[tuple[FileTree, str], ...]

    @cached_property
    def digest(self) -> str:
        """Return a SHA-256 of the names and sizes of all maps, and of the content of a few."""
        total = hashlib.sha256()
        found = [place for key in self.images.keys() if (place := self.find(key))]  # noqa: SIM118
        for tree, folder, name in found:
            total.update(f"{tree.size(folder + name)} {name}\n".encode("utf-8", "surrogateescape"))
        for number in sorted({len(found) * part // _LOOKED_AT for part in range(_LOOKED_AT)}):
            for tree, folder, name in found[number : number + 1]:
                total.update(tree.read(folder + name))
        return total.hexdigest()

    def find(self, key: str) -> tuple[FileTree, str, str] | None:
        """Return file tree, folder and name of the map of the image `key`; None if there is none."""
        for tree, folder in self.trees:
            for name in _list_names(key):
                if tree.has(folder + name):
                    return tree, folder, name
        return None

    def check(self, keys: Sequence[str]) -> None:
        """Raise a ConfigError if one of the images `keys` has no map."""
        missing = [key for key in keys if self.find(key) is None]
        if not missing:
            return
        stem = PurePosixPath(missing[0]).with_suffix("").as_posix()
        raise ConfigError(
            f"depth: {self.location}: {len(missing)} of {len(keys)} images have no map, for instance "
            f"{missing[0]!r} (looked for {stem}{', '.join(SUFFIXES)})"
        )

    def provide(self, key: str, preparation: PreparationStep) -> Depth:
        """Return the depth of the image `key` after its `preparation`, float32 (H, W).

        Raises
        ------
        ImageError
            The map is missing or unreadable, differs in shape from the image, or has NaN or negative values.
        """
        found = self.find(key)
        if found is None:
            raise ImageError(f"no depth map in {self.location}", key)
        tree, folder, name = found
        try:
            stored = _decode(name, tree.read(folder + name))
        except Exception as error:
            raise ImageError(f"depth map {name}: {reason_of(error)}", key) from error
        width, height = self.images.dimensions(key)
        if stored.shape != (height, width):
            size = " x ".join(map(str, reversed(stored.shape)))
            raise ImageError(f"depth map {name} has {size} pixels, the image {width} x {height}", key)
        if self.scale == "midas":
            values = depth_from_midas(stored)
        else:
            values = np.asarray(stored, np.float32) * np.float32(self.scale)
        if not (np.isfinite(values).all() and values.min() >= 0):
            raise ImageError(f"depth map {name} contains NaN, infinity or negative depth", key)
        return preparation.follow(values)

    def describe(self, parameters: object = None) -> str:
        """Return digest and scale of the maps."""
        return f"{self.digest[:16]}, scale {self.scale}"

    def make_ready(self) -> None:
        """Cache the listings of archives for worker processes."""
        for tree, _ in self.trees:
            tree.make_ready()


def _open_trees(place: Place, cache: Store) -> tuple[tuple[FileTree, str], ...]:
    """Return the trees of files at `place`, each with a folder in which keys may begin."""
    if place.is_folder and not any(name.lower().endswith(ARCHIVES) for name in place.children):
        return ((FolderTree(place), ""),)
    trees: list[tuple[FileTree, str]] = []
    for number, file in enumerate(place.expand(ARCHIVES)):
        tree = ArchiveTree(f"{file.store.location}/{file.name}", (cache, f"depth-index-{number}"))
        folders = {name.partition("/")[0] for name in tree.listing.places}
        # In an archive of a single folder, all names start with that folder.
        trees += [(tree, ""), *((tree, f"{folder}/") for folder in folders if len(folders) == 1)]
    return tuple(trees)


def _list_names(key: str) -> list[str]:
    """Return the possible names of the map of the image `key`, in a folder and in shards."""
    stems = dict.fromkeys([PurePosixPath(key).with_suffix("").as_posix(), sample_key(key), key])
    return [f"{stem}{suffix}" for stem in stems for suffix in SUFFIXES]


def _decode(name: str, data: bytes) -> Any:
    """Return the values in the file of a map, of shape (H, W)."""
    if not name.endswith(".npy"):
        return read_depth_picture(data)
    values = np.load(io.BytesIO(data), allow_pickle=False)
    if values.dtype.kind not in "fiu":
        raise ValueError(f"contains {values.dtype}, not numbers")
    return values.squeeze() if values.ndim == 3 and 1 in (values.shape[0], values.shape[2]) else values
