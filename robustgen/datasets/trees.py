"""Sets that are folders of files: an image or a video, or a folder of frames, for each key."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from robustgen.benchmark import Arm, Kind
from robustgen.datasets.base import Dataset, Labels, Pixels, describe_difference, name_contents
from robustgen.errors import ImageError, SourceError
from robustgen.imaging import decode, video
from robustgen.output.files import SUMS
from robustgen.output.manifest import read_sums
from robustgen.sources.base import class_of, sort_classes

VIDEO = ".mp4"


@dataclass(eq=False)
class Tree(Dataset):
    """A folder per arm: JPEG files, MP4 files or folders of frames, within class folders.

    Parameters
    ----------
    root, kind, arms, about
        As for `Dataset`.
    folders : mapping of Arm to Path
    names : sequence of str, optional
        Class folders in the order of the model's outputs; otherwise those there are, sorted, numbers by size.
    """

    root: Path
    kind: Kind
    arms: tuple[Arm, ...]
    about: Mapping[str, Any]
    folders: Mapping[Arm, Path]
    names: Sequence[str] | None = None

    format = "same"

    _listed: dict[Arm, tuple[str, ...]] = field(default_factory=dict)

    def keys(self, arm: Arm) -> tuple[str, ...]:
        """As `Dataset.keys`."""
        first = self._listing(self.arms[0])
        if arm not in self._listed and self._listing(arm) != first:
            raise SourceError(
                f"{self.folders[arm]}: {describe_difference(self._listing(arm), first, 'images')}"
            )
        return first

    def _listing(self, arm: Arm) -> tuple[str, ...]:
        if arm not in self._listed:
            find = self._find_images if self.kind == "c" else _find_sequences
            self._listed[arm] = keys = tuple(sorted(find(self.folders[arm])))
            if twice := next((a for a, b in pairwise(keys) if a == b), None):
                raise SourceError(f"{self.folders[arm]}: {twice!r} is there as a video and as frames")
            if not self._listed[arm]:
                raise SourceError(f"{self.folders[arm]}: holds no {name_contents(self.kind)}")
        return self._listed[arm]

    def _find_images(self, folder: Path) -> Iterator[str]:
        for inside, files in _walk(folder):
            yield from filter(self._is_image, (f"{inside}{name}" for name in files))

    def _is_image(self, name: str) -> bool:
        """Whether the file is an image of the set; what is mirrored beside them may be pictures too."""
        pattern = self._images
        return name.lower().endswith(decode.EXTENSIONS) and (pattern is None or fnmatchcase(name, pattern))

    @cached_property
    def _images(self) -> str | None:
        """The pattern of the images' names, where a source was mirrored of which they were a part."""
        config = self.about.get("config")
        pattern = config.get("images") if isinstance(config, dict) and config.get("mirror") else None
        return pattern if isinstance(pattern, str) else None

    @cached_property
    def _index(self) -> dict[str, int]:
        names = self.names or sort_classes({class_of(key) for key in self.keys(self.arms[0])})
        return {name: i for i, name in enumerate(names)}

    @property
    def classes(self) -> int:
        """As `Dataset.classes`."""
        return len(self._index)

    def labels(self, arm: Arm) -> Labels:
        """As `Dataset.labels`."""
        index, keys = self._index, self.keys(arm)
        unknown = {class_of(key) for key in keys} - index.keys()
        if unknown:
            raise SourceError(f"{self.root}: class folder {min(unknown)!r} is not in the class list")
        return np.array([index[class_of(key)] for key in keys], np.int64)

    def load(self, arm: Arm, index: int) -> Pixels:
        """As `Dataset.load`."""
        return self._read(self.path(arm, self.keys(arm)[index]))

    def read(self, arm: Arm, key: str) -> Pixels:
        """As `Dataset.read`."""
        return self._read(self.path(arm, key), arm.path(key))

    def _read(self, path: Path, name: str | None = None) -> Pixels:
        return decode.decode(path, name) if self.kind == "c" else video.read_sequence(path)

    def has(self, arm: Arm, key: str) -> bool:
        """As `Dataset.has`."""
        return self.path(arm, key).exists()

    def size(self, key: str) -> int:
        """As `Dataset.size`."""
        try:
            return sum((folder / key).stat().st_size for folder in self.folders.values())
        except OSError as error:
            raise ImageError(f"{key!r}: {error.strerror}") from error

    def recorded_keys(self, arm: Arm) -> tuple[str, ...]:
        """As `Dataset.recorded_keys`."""
        path = self.folders[arm] / SUMS
        if not path.is_file():
            return self.keys(arm)
        try:
            names = read_sums(path)
        except OSError as error:
            raise SourceError(f"{path}: {error.strerror}") from error
        keys = sorted({self._key(name) for name in names if self._is_recorded(name)})
        if not keys:
            raise SourceError(f"{path}: lists no files")
        return tuple(keys)

    def _is_recorded(self, name: str) -> bool:
        return _is_inside(name) and (self.kind == "p" or self._is_image(name))

    def _key(self, name: str) -> str:
        """Of a frame, the folder of its sequence; a video is called as that folder would be."""
        if self.kind == "c":
            return name
        return name.rpartition("/")[0] if name.endswith(".png") else name.removesuffix(VIDEO)

    def restrict(self, arm: Arm, keys: tuple[str, ...] | None = None) -> "Tree":
        """As `Dataset.restrict`."""
        return replace(self, arms=(arm,), _listed={arm: keys} if keys is not None else {})

    @property
    def has_image_files(self) -> bool:  # type: ignore[override]
        """As `Dataset.has_image_files`; a video holds many frames."""
        arm = self.arms[0]
        return self.kind == "c" or self.path(arm, self.keys(arm)[0]).is_dir()

    @property
    def in_place(self) -> bool:  # type: ignore[override]
        """As `Dataset.in_place`; published archives are often unpacked into a folder per category."""
        return all(folder == self.root / arm.folder for arm, folder in self.folders.items())

    def path(self, arm: Arm, key: str) -> Path:
        """The file, or the folder of the frames, of the key; a sequence has the same key in both."""
        path = self.folders[arm] / key
        return path if self.kind == "c" or path.is_dir() else path.with_name(f"{path.name}{VIDEO}")


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts


def _find_sequences(folder: Path) -> Iterator[str]:
    for inside, files in _walk(folder):
        yield from (f"{inside}{name.removesuffix(VIDEO)}" for name in files if name.endswith(VIDEO))
        if inside and any(name.endswith(".png") for name in files):
            yield inside.removesuffix("/")


def _walk(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Each folder below `folder`, as a prefix of keys, and the names of its files, hidden ones apart."""
    for path, _, files in os.walk(folder):
        inside = Path(path).relative_to(folder).as_posix()
        yield "" if inside == "." else f"{inside}/", [name for name in files if not name.startswith(".")]
