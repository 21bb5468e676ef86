"""`robustgen preprocess`: clean a set of images and keep its layout.

A C set, whose images have a file or a row in each variant, is processed image by image; any other folder
of images file by file. `robustgen predict` reads the result like the original.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import ImageError, SourceError
from robustgen.files.set_files import check_folder
from robustgen.files.storage import Store, open_store
from robustgen.pixels.benchmarks.kinds import IMAGE, TITLES, Variant, require
from robustgen.pixels.imaging.arrays import Decoded, Rgb
from robustgen.pixels.imaging.cleaning import CLEANINGS, Cleaning
from robustgen.pixels.imaging.decode import as_rgb, name_image_in_errors
from robustgen.pixels.imaging.file_tags import NO_TAGS, FileTags
from robustgen.related.settings import CLEANING_CHOICES, CleaningChoices
from robustgen.sets.dataset.layouts import describe_likely_maps
from robustgen.sets.dataset.opening import CLEANED, open_set, read_manifest_of
from robustgen.sets.dataset.plan import Plan, assemble_plan
from robustgen.sets.dataset.recipes import Recipe
from robustgen.sets.dataset.selection import select_keys
from robustgen.sets.formats import open_writer
from robustgen.sets.formats.base import EncoderChoices, SetContent, Writer, WrittenSet
from robustgen.sets.formats.encoders import OriginalEncoder
from robustgen.sets.formats.trees import SequenceFolder, TreeSet, TreeWriter
from robustgen.sets.sources.base import Items, Source, SourceOptions
from robustgen.sets.sources.files import EncodedSource
from robustgen.sets.sources.folder import ImageFolder

VariantReader = Callable[[Variant], Rgb]
"""A function that reads an image in one variant of a set: uint8 (H, W, 3)."""


# --- recipes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CleaningRecipe(Recipe[Any]):
    """Cleaning of an image, which has one file, or of each variant of an image.

    Attributes
    ----------
    cleaning : Cleaning
    digest : str, optional
        Digest of the source, if file sizes cannot show whether it has changed.
    """

    cleaning: Cleaning
    digest: str | None = None

    @property
    def title(self) -> str:  # type: ignore[override]  # computed
        """Return the title of the set."""
        return self.cleaning.title

    def settings(self, variants: tuple[Variant, ...]) -> dict[str, Any]:
        """Return the parameters, which are the same for all variants."""
        return {
            "recipe": self.cleaning.name,
            **self.cleaning.settings(),
            "source_digest": self.digest,
            "parameters": {variant.folder: {} for variant in variants},
        }

    def versions(self) -> dict[str, str]:
        """Return the versions of the libraries of the cleaning."""
        return self.cleaning.versions()

    def prepare(self, loaded: Decoded | VariantReader) -> Rgb | VariantReader:
        """Return the pixels of an image, or the function that reads one in a variant."""
        return loaded if callable(loaded) else as_rgb(loaded)

    def make(self, variant: Variant, key: str, prepared: Any, shared: dict[str, Any] | None = None) -> Rgb:
        """Clean an image, or read it in `variant` and clean it."""
        return self.cleaning.apply(prepared(variant) if callable(prepared) else prepared)


class _ReadVariants:
    """The files of an image in all variants, decoded when they are needed."""

    def __init__(self, store: Store, sources: Mapping[Variant, EncodedSource], key: str) -> None:
        self._sources, self._key = sources, key
        self._files = dict(zip(sources, store.map(self._read, sources), strict=True))
        self.nbytes = sum(len(each) for each in self._files.values() if isinstance(each, bytes))

    def _read(self, variant: Variant) -> bytes | ImageError:
        try:
            with name_image_in_errors(self._key):
                return self._sources[variant].read_bytes(self._key)
        except ImageError as error:
            return error

    def __call__(self, variant: Variant) -> Rgb:
        """Return the pixels in a variant."""
        data = self._files.pop(variant)
        if isinstance(data, ImageError):
            raise data
        return self._sources[variant].decode(data, self._key)


class _SetImages(Items[VariantReader]):
    """The images of a C set, each with a file or a row in every variant."""

    # Workers receive this object with every few images; cached properties open the set only once.
    @cached_property
    def written(self) -> WrittenSet:
        """Return the set."""
        return open_set(self.location)

    @cached_property
    def _sources(self) -> dict[Variant, Source]:
        return {variant: self.written.open(variant) for variant in self.written}

    @cached_property
    def _labels(self) -> dict[str, int]:
        labels = self.written.labels(self.written.variants[0])
        return {} if labels is None else dict(zip(self.keys(), labels.tolist(), strict=True))

    def keys(self) -> tuple[str, ...]:
        return self.written.keys_of(self.written.variants[0])

    def load(self, key: str) -> VariantReader:
        """Return a function that reads one variant: an image that fails in one may be readable in others.

        Of files on a server, those of all variants are read at once.
        """
        files = {variant: each for variant, each in self._sources.items() if isinstance(each, EncodedSource)}
        if self.written.store.is_local or len(files) < len(self._sources):
            return lambda variant: self._sources[variant].load(key)
        return _ReadVariants(self.written.store, files, key)

    def find_tags(self, key: str, loaded: object) -> FileTags:
        """Return orientation and colour profile of the files of `key`, which all variants share."""
        for source in self._sources.values():
            with suppress(ImageError):
                return source.read_header(key)[2]
        return NO_TAGS

    def size(self, key: str) -> int:
        """Return the bytes of the files of `key` in all variants; 0 if files contain many images."""
        if not isinstance(self.written, TreeSet):
            return 0
        paths = [f"{folder}/{key}" for folder in self.written.places.values()]
        sizes = [*self.written.store.sizes(paths)]
        if -1 in sizes:
            raise ImageError(f"{paths[sizes.index(-1)]} is missing", key)
        return sum(sizes)

    @property
    def classes(self) -> tuple[str, ...]:
        return self.written.classes

    @property
    def class_count(self) -> int | None:
        return self.written.class_count

    @property
    def class_labels(self) -> NDArray[np.int64]:
        return self.written.class_labels

    def label(self, key: str) -> int:
        return self._labels.get(key, -1)


# --- the plan ------------------------------------------------------------------------------------


def plan_cleaning(choices: CleaningChoices) -> Plan:
    """Return the plan of cleaning all images of the source.

    Raises
    ------
    ConfigError, SourceError, OutputError
        The settings or the source are invalid.
    """
    root = open_store(choices.source or "")
    check_folder(root)
    manifest = read_manifest_of(root)
    if CLEANED in manifest:
        (earlier,) = manifest[CLEANED]
        raise SourceError(f"{root.location}: is already the result of preprocess {earlier}")
    name = next(name for name, each in CLEANING_CHOICES.items() if isinstance(choices, each))
    row = CLEANINGS[name]
    cleaning = row(**{each.name: getattr(choices, each.name) for each in fields(row)})  # type: ignore[arg-type]
    images = _SetImages(root.location)
    dataset = images.written if _is_c_set(images, root, manifest, name) else None
    source: Items[Any] = images if dataset else ImageFolder(root.location, SourceOptions(classes=False))
    keys = select_keys(source, choices)
    variants = dataset.variants if dataset else (Variant(name, 0, ""),)
    # Other images are written like those that exist.
    writer: Writer = TreeWriter(OriginalEncoder(choices.quality))
    if dataset:
        content = SetContent(benchmark=dataset.benchmark, variants=variants, keys=keys, source=source)
        chosen = EncoderChoices(quality=choices.quality, grey=dataset.grey)
        writer = open_writer(dataset.format, content, chosen)
    # The sizes of files show changes; rows of arrays do not.
    digest = None if dataset is None or isinstance(dataset, TreeSet) else manifest.get("digest")
    recipe = CleaningRecipe(cleaning, digest)
    known = {key: manifest.get(key) for key in ("dataset", "edition") if manifest.get(key)}
    if dataset:
        known |= {"benchmark": manifest.get("title"), "origin": manifest.get("source", {}).get("digest")}
    named = choices.model_copy(update=known)
    plan = assemble_plan(recipe, source, keys, variants, writer, open_store(choices.output), named)
    remark, _ = describe_likely_maps(keys)
    return replace(plan, remarks=(remark,) * bool(remark))


def _is_c_set(images: _SetImages, root: Store, manifest: dict[str, Any], name: str) -> bool:
    """Return whether `root` has a C set, whose variants are folders or arrays directly in it.

    Raises
    ------
    SourceError
        The manifest describes a set that cannot be read, or a set of sequences.
    """
    try:
        written = images.written
        for variant in written:
            written.keys_of(variant)
    except SourceError:
        arrays = (
            entry for entry in root.list() if "/" not in entry.path and entry.path.endswith((".npy", ".npz"))
        )
        if manifest.get("title") in TITLES or next(arrays, None):
            raise
        return False
    require(written.benchmark.medium, (IMAGE,), "preprocess")
    if written.kind == "p":
        first = written[written.variants[0]]
        if not isinstance(first, SequenceFolder) or not first.has_frames(first.keys()[0]):
            raise SourceError(f"{root.location}: holds sequences; use predict --clean-input {name}")
        return False
    # The folders of an unpacked archive may not be those that make-c uses.
    return not isinstance(written, TreeSet) or all(
        variant.folder == own for variant, own in written.places.items()
    )
