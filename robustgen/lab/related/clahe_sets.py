"""`robustgen preprocess clahe`: apply CLAHE to a set of images and keep its layout.

A C set, whose images have a file or a row in each variant, is processed image by image; any other folder
of images file by file. `robustgen predict` reads the result like the original.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import ImageError, SourceError
from robustgen.files.set_files import check_folder
from robustgen.files.storage import Store, open_store
from robustgen.pixels.benchmarks.kinds import TITLES, Variant
from robustgen.pixels.imaging.arrays import Decoded, Rgb
from robustgen.pixels.imaging.colour import Clahe, clahe
from robustgen.pixels.imaging.decode import as_rgb
from robustgen.sets.dataset.opening import EQUALISED, open_dataset, read_manifest_of
from robustgen.sets.dataset.plan import Plan, assemble_plan
from robustgen.sets.dataset.recipes import Recipe
from robustgen.sets.dataset.selection import select_keys
from robustgen.sets.formats import open_writer
from robustgen.sets.formats.base import Dataset, EncoderChoices, SetContent, Writer
from robustgen.sets.formats.encoders import OriginalEncoder
from robustgen.sets.formats.trees import VIDEO, Tree, TreeWriter
from robustgen.sets.sources.base import Items
from robustgen.sets.sources.folder import ImageFolder
from robustgen.settings.related import ClaheChoices

VariantReader = Callable[[Variant], Rgb]
"""A function that reads an image in one variant of a set: uint8 (H, W, 3)."""


# --- recipes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Preprocessing:
    """CLAHE of every file.

    Attributes
    ----------
    parameters : Clahe
    digest : str, optional
        Digest of the source, if file sizes cannot show whether it has changed.
    """

    parameters: Clahe
    digest: str | None = None

    title = EQUALISED

    def settings(self, variants: tuple[Variant, ...]) -> dict[str, Any]:
        """Return the parameters, which are the same for all variants."""
        return {
            "kind": "clahe",
            "clahe": asdict(self.parameters),
            "source_digest": self.digest,
            "parameters": {variant.folder: {} for variant in variants},
        }


class ImageRecipe(_Preprocessing, Recipe[Rgb]):
    """CLAHE of an image, which has one file."""

    def prepare(self, loaded: Decoded) -> Rgb:
        """Return the pixels of the image."""
        return as_rgb(loaded)

    def make(self, variant: Variant, key: str, prepared: Rgb, shared: dict[str, Any] | None = None) -> Rgb:
        """Equalise the image."""
        return clahe(prepared, self.parameters)


class VariantsRecipe(_Preprocessing, Recipe[VariantReader]):
    """CLAHE of each variant of an image."""

    def make(
        self, variant: Variant, key: str, prepared: VariantReader, shared: dict[str, Any] | None = None
    ) -> Rgb:
        """Read the image in `variant` and equalise it."""
        return clahe(prepared(variant), self.parameters)


class _SetImages(Items[VariantReader]):
    """The images of a C set, each with a file or a row in every variant."""

    def keys(self) -> tuple[str, ...]:
        dataset = _open_set(self.location)
        return dataset.keys(dataset.variants[0])

    def load(self, key: str) -> VariantReader:
        """Return a function that reads one variant: an image that fails in one may be readable in others."""
        return partial(_read, self.location, key)

    def size(self, key: str) -> int:
        """Return the bytes of the files of `key` in all variants; 0 if files contain many images."""
        dataset = _open_set(self.location)
        if not isinstance(dataset, Tree):
            return 0
        paths = [f"{folder}/{key}" for folder in dataset.folders.values()]
        sizes = [*dataset.store.sizes(paths)]
        if -1 in sizes:
            raise ImageError(f"{paths[sizes.index(-1)]} is missing", key)
        return sum(sizes)

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(_open_set(self.location).class_names or ())

    @property
    def class_count(self) -> int | None:
        return _open_set(self.location).classes

    @property
    def class_labels(self) -> NDArray[np.int64]:
        own = _open_set(self.location).class_labels
        return super().class_labels if own is None else own

    def label(self, key: str) -> int:
        dataset = _open_set(self.location)
        labels = dataset.labels(dataset.variants[0])
        return -1 if labels is None else int(labels[_index_keys(self.location)[key]])


# Workers receive the source again with every few images; this opens the set only once.
@lru_cache(maxsize=2)
def _open_set(root: str) -> Dataset:
    return open_dataset(root)


@lru_cache(maxsize=2)
def _index_keys(root: str) -> dict[str, int]:
    dataset = _open_set(root)
    return {key: row for row, key in enumerate(dataset.keys(dataset.variants[0]))}


def _read(root: str, key: str, variant: Variant) -> Rgb:
    try:
        return _open_set(root).read(variant, key)
    except ImageError as error:
        # The list of failures is published, and names no folder of this machine.
        raise ImageError(error.reason.replace(f"{root}/", ""), error.key.replace(f"{root}/", "")) from error


# --- the plan ------------------------------------------------------------------------------------


def plan_clahe(choices: ClaheChoices) -> Plan:
    """Return the plan of equalising all images of the source.

    Raises
    ------
    ConfigError, SourceError, OutputError
        The settings or the source are invalid.
    """
    for cached in (_open_set, _index_keys):
        cached.cache_clear()
    root = open_store(choices.source or "")
    check_folder(root)
    manifest = read_manifest_of(root)
    if EQUALISED in manifest:
        raise SourceError(f"{root.location}: is already the result of CLAHE")
    dataset = _open_c_set(root, manifest)
    source: Items[Any] = _SetImages(root.location) if dataset else ImageFolder(root.location)
    keys = select_keys(source, choices)
    variants = dataset.variants if dataset else (Variant("clahe", 0, ""),)
    writer = _open_writer(dataset, source, keys, choices.quality)
    # The sizes of files show changes; rows of arrays do not.
    digest = None if dataset is None or isinstance(dataset, Tree) else manifest.get("digest")
    parameters = Clahe(choices.clip_limit, choices.tiles)
    recipe: Recipe[Any] = VariantsRecipe(parameters, digest) if dataset else ImageRecipe(parameters, digest)
    known = {key: manifest.get(key) for key in ("dataset", "edition") if manifest.get(key)}
    if dataset:
        known |= {"benchmark": manifest.get("kind"), "origin": manifest.get("source", {}).get("digest")}
    named = choices.model_copy(update=known)
    return assemble_plan(recipe, source, keys, variants, writer, open_store(choices.output), named)


def _open_c_set(root: Store, manifest: dict[str, Any]) -> Dataset | None:
    """Open the C set at `root`, if its variants are folders or arrays directly in it; None for other images.

    Raises
    ------
    SourceError
        The manifest describes a set that cannot be read, or a set of sequences.
    """
    try:
        dataset = _open_set(root.location)
        for variant in dataset.variants:
            dataset.keys(variant)
    except SourceError:
        arrays = (
            entry for entry in root.list() if "/" not in entry.path and entry.path.endswith((".npy", ".npz"))
        )
        if manifest.get("kind") in TITLES or next(arrays, None):
            raise
        return None
    if dataset.kind == "p":
        variant = dataset.variants[0]
        path = dataset.path(variant, dataset.keys(variant)[0])
        if path is None or path.endswith(VIDEO):
            raise SourceError(f"{root.location}: contains sequences; use robustgen predict --clahe instead")
        return None
    # The folders of an unpacked archive may not be those that make-c uses.
    is_moved = isinstance(dataset, Tree) and any(
        variant.folder != own for variant, own in dataset.folders.items()
    )
    return None if is_moved else dataset


def _open_writer(dataset: Dataset | None, source: Items[Any], keys: tuple[str, ...], quality: int) -> Writer:
    """Return a writer for the layout of the set, or for other images like those that exist."""
    if dataset is None:
        return TreeWriter(OriginalEncoder(quality))
    content = SetContent(benchmark=dataset.benchmark, variants=dataset.variants, keys=keys, source=source)
    return open_writer(dataset.format, content, EncoderChoices(quality=quality, grey=dataset.grey))
