"""Trees: an image, a video, or a folder of frames for each key, in the folder of the variant."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import numpy as np

from robustgen.errors import ImageError, SourceError
from robustgen.files.set_files import WrittenFile
from robustgen.files.storage import Store
from robustgen.pixels.benchmarks.kinds import Variant, name_contents
from robustgen.pixels.imaging import decode, video
from robustgen.pixels.imaging.arrays import Pixels
from robustgen.sets.formats.base import Dataset, Encoded, Encoder, Labels, SetContent, Writer
from robustgen.sets.formats.units import WorkUnit
from robustgen.sets.sources.base import Items, class_of
from robustgen.sets.sources.classes import describe_order, sort_classes
from robustgen.sets.sources.numbered import NumberedSource

VIDEO = ".mp4"


# --- writing -------------------------------------------------------------------------------------


class TreeWriter(Writer):
    """Writer of separate files for each image, in the folder of the variant.

    Parameters
    ----------
    encoder : Encoder
    source : Items, optional
        Source whose images have no class folders in their keys, such as rows of an array: the files then lie
        in class folders.
    """

    file_per = "image"

    def __init__(self, encoder: Encoder, source: Items[Any] | None = None) -> None:
        super().__init__(encoder)
        self._source = source

    @classmethod
    def create(cls, encoder: Encoder, content: SetContent) -> Writer:
        """Return the writer of a set."""
        return cls(encoder, content.source)

    def settings(self) -> dict[str, Any]:
        """Return the settings of the files, and whether they lie in folders that their keys lack."""
        folders = {"class_folders": True} if isinstance(self._source, NumberedSource) else {}
        return super().settings() | folders

    def find_folder(self, key: str) -> str:
        """Return the folder that the files of the image `key` lie in, if its key lacks it: ``cat/``."""
        return self._source.tree_path(key).removesuffix(key) if self._source else ""

    def output_name(self, key: str) -> str | None:
        """Return the name of the output for the source image `key`, below a variant's folder."""
        name = super().output_name(key)
        return name and self.find_folder(key) + name

    @contextmanager
    def open(self, root: Store, unit: WorkUnit, label: Callable[[str], int]) -> Iterator["_OpenTree"]:
        """Open a writer of separate files."""
        yield _OpenTree(root, self)

    def find_output(
        self, root: Store, variant: Variant, index: int, key: str, encoded: Encoded
    ) -> tuple[str, bool]:
        """Return path and equality of the file."""
        path = variant.path(self.find_folder(key) + encoded.name)
        return path, root.read(path) == encoded.data


class _OpenTree:
    """Unit writer that writes each file immediately."""

    def __init__(self, root: Store, writer: TreeWriter) -> None:
        self._root, self._writer = root, writer

    def write(self, variant: Variant, index: int, key: str, encoded: Iterable[Encoded]) -> list[WrittenFile]:
        """Write all files, or none if one of them fails."""
        written: list[WrittenFile] = []
        folder = self._writer.find_folder(key)
        try:
            for own, data, frames, _ in encoded:
                name = folder + own
                self._root.put(variant.path(name), data)
                written.append(WrittenFile(name, len(data), hashlib.sha256(data).hexdigest(), frames))
        except BaseException:
            for each in written:
                self._root.delete(variant.path(each.path))
            raise
        return written

    def finish(self, failed: Sequence[str]) -> list[WrittenFile]:
        return []


# --- reading -------------------------------------------------------------------------------------


def find_pattern(manifest: Mapping[str, Any]) -> str | None:
    """Return the pattern of the image names, if the set mirrors other files of its source and has one."""
    config = manifest.get("config", {})
    pattern = config.get("subset") if config.get("mirror") else None
    return pattern if isinstance(pattern, str) and not pattern.startswith("@") else None


@dataclass(eq=False)
class Tree(Dataset):
    """Set with a folder per variant: image files, MP4 files or folders of frames, in class folders.

    Parameters
    ----------
    store, kind, variants, manifest, folders
        As for `Dataset`.
    names : sequence of str, optional
        Class folders in the order of the model's outputs. Default: the order in `dataset.json`, or else that
        of `sort_classes`.
    """

    format = "original"

    _listed: dict[Variant, tuple[str, ...]] = field(default_factory=dict)

    def list_keys(self, variant: Variant) -> tuple[str, ...]:
        """Return the names of the images or sequences that `variant` has."""
        if variant not in self._listed:
            folder = self.folders[variant]
            start = len(folder) + 1 if folder else 0
            names = [entry.path[start:] for entry in self.store.list(folder)]
            visible = [name for name in names if not name.rpartition("/")[2].startswith(".")]
            if self.kind == "c":
                found = {*filter(self._is_image, visible)}
            else:
                found = {name.removesuffix(VIDEO) for name in visible if name.endswith(VIDEO)}
                found |= {
                    name.rpartition("/")[0] for name in visible if "/" in name and name.endswith(".png")
                }
            if not found:
                raise SourceError(f"{self.root}/{folder}: contains no {name_contents(self.kind)}")
            keys = tuple(sorted(found))
            # Variants with the same images share one list.
            self._listed[variant] = next((each for each in self._listed.values() if each == keys), keys)
        return self._listed[variant]

    def _is_image(self, name: str) -> bool:
        """Return True if the file is an image of the set; mirrored files may be pictures too."""
        is_chosen = self._pattern is None or fnmatchcase(name, self._pattern)
        return is_chosen and name.lower().endswith(decode.EXTENSIONS)

    @cached_property
    def _pattern(self) -> str | None:
        return find_pattern(self.manifest)

    @cached_property
    def _sorted_classes(self) -> list[str]:
        return sort_classes({class_of(key) for key in self.keys(self.variants[0])})

    def find_classes(self) -> Sequence[str]:
        """Return the class folders, sorted."""
        return self._sorted_classes

    def remarks(self) -> Sequence[str]:
        """Return a remark if other tools order the class folders differently."""
        return [] if self.names or "classes" in self.manifest else describe_order(self._sorted_classes)

    def list_labels(self, variant: Variant) -> Labels:
        """Return the true classes; raise a SourceError if `dataset.json` lacks the folder of one."""
        index, keys = {name: i for i, name in enumerate(self.class_names or ())}, self.keys(variant)
        if unknown := {class_of(key) for key in keys} - index.keys():
            raise SourceError(f"{self.root}: class folder {min(unknown)!r} is not in its dataset.json")
        return np.array([index[class_of(key)] for key in keys], np.int64)

    def read(self, variant: Variant, key: str) -> Pixels:
        """Return the image or the frames called `key`."""
        path = self.path(variant, key)
        name = f"{self.root}/{path}"
        try:
            if self.kind == "c":
                with self.store.open(path) as file:
                    return decode.decode(file, name)
            if path.endswith(VIDEO):
                return video.read_frames(self.store.read(path), name)
            frames = [entry.path for entry in self.store.list(path) if entry.path.endswith(".png")]
            return video.stack_frames(
                ((f"{self.root}/{each}", self.store.read(each)) for each in frames), name
            )
        except OSError as error:
            raise ImageError(error.strerror or str(error), name) from error

    def restrict(self, variant: Variant, keys: tuple[str, ...] | None = None) -> "Tree":
        """Return the set with this variant alone."""
        return replace(self, variants=(variant,), _listed={variant: keys} if keys is not None else {})

    def path(self, variant: Variant, key: str) -> str:
        """Return the path of the file, or of the folder of the frames, below the set."""
        path = f"{self.folders[variant]}/{key}" if self.folders[variant] else key
        return f"{path}{VIDEO}" if self.kind == "p" and self.store.exists(f"{path}{VIDEO}") else path
