"""Sources with one file for each image."""

from abc import abstractmethod
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from PIL import Image

from robustgen.errors import ImageError, SourceError, explain_no_folder
from robustgen.imaging.decode import (
    EXTENSIONS,
    Location,
    decode,
    decode_to_pillow,
    read_dimensions,
    reason_of,
)
from robustgen.imaging.pixels import Rgb
from robustgen.sources.base import Source, class_of
from robustgen.sources.walk import Found


class FileSource(Source):
    """A source with one file for each image, below a folder."""

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        if not self.location.is_dir():
            raise SourceError(f"{self.location}: {explain_no_folder(self.location)}")

    @abstractmethod
    def _scan(self) -> Iterable[Found]:
        """All that look like images, in any order."""

    @abstractmethod
    def _path(self, key: str) -> Path:
        """Where the image lies; found without a listing, which worker processes do not have."""

    @cached_property
    def _listing(self) -> tuple[tuple[str, ...], dict[str, str]]:
        """The keys, and the refused ones with their reasons."""
        found = sorted(dict(self._scan()).items())
        refused = {key: reason for key, reason in found if reason}
        return tuple(key for key, _ in found if key not in refused), refused

    def keys(self) -> tuple[str, ...]:
        """Return the keys of all usable images, sorted; a SourceError if there are none."""
        keys, refused = self._listing
        if not keys:
            example = "".join(f"; {len(refused)} refused, {k!r}: {why}" for k, why in [*refused.items()][:1])
            raise SourceError(f"{self.location}: no images (looked for {', '.join(EXTENSIONS)}){example}")
        return keys

    def refused(self) -> dict[str, str]:
        """Return key and reason of whatever looks like an image but must not be processed."""
        return dict(self._listing[1])

    def load(self, key: str) -> Rgb:
        """Decode one image afresh: uint8 ndarray of shape (H, W, 3); an ImageError if it cannot be read."""
        return decode(self._path(key), key)

    def open(self, key: str) -> Image.Image:
        """Decode one image afresh to a Pillow image of mode RGB; an ImageError if it cannot be read."""
        return decode_to_pillow(self._path(key), key)

    def dimensions(self, key: str) -> tuple[int, int]:
        """Return width and height of one image, from its header; an ImageError if it cannot be read."""
        return read_dimensions(self._path(key), key)

    def size(self, key: str) -> int:
        """Return the size of one image's file in bytes; an ImageError if there is no such file."""
        try:
            return self._path(key).stat().st_size
        except (OSError, ValueError) as error:
            raise ImageError(f"{key!r}: {reason_of(error)}") from error

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(sorted({class_of(key) for key in self.keys()}))}

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, sorted."""
        return tuple(self._indices)

    def label(self, key: str) -> int:
        """Return the index of one image's class in `classes`; an ImageError if it is of none."""
        try:
            return self._indices[class_of(key)]
        except KeyError:
            raise ImageError(f"{key!r}: of no class that {self.location} has") from None
