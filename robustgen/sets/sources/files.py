"""Sources of encoded image files."""

import hashlib
import io
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from robustgen.errors import ImageError, SourceError
from robustgen.pixels.imaging import video
from robustgen.pixels.imaging.arrays import Decoded, Rgb
from robustgen.pixels.imaging.decode import (
    PILLOW_FORMATS,
    Location,
    decode,
    decode_to_pillow,
    name_image_in_errors,
    read_dimensions,
)
from robustgen.pixels.imaging.jpeg import Libjpeg
from robustgen.sets.sources.base import DEFAULTS, Options, Source, class_of
from robustgen.sets.sources.foreign import explain_foreign
from robustgen.sets.sources.index import Index, SourceListing
from robustgen.sets.sources.places import Place, find_place


class EncodedSource(Source):
    """A source of encoded images with a listing; keys begin with the class.

    Attributes
    ----------
    libjpeg : {"turbo", "ijg"}
        Decoder of its JPEG files.
    """

    libjpeg: Libjpeg = "turbo"

    @property
    @abstractmethod
    def listing(self) -> SourceListing:
        """Return the images found."""

    @abstractmethod
    def read_bytes(self, key: str) -> bytes:
        """Read the file of one image; raise any exception if it cannot be read."""

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        places, refused = self.listing.places, self.listing.refused
        if not places:
            first = [f"{len(refused)} refused, {key!r}: {why}" for key, why in [*refused.items()][:1]]
            none = (
                explain_foreign(Place(self.location))
                or f"no images in the formats {', '.join(PILLOW_FORMATS)}"
            )
            raise SourceError(f"{self.location}: {'; '.join([none, *first, *self.remarks()])}")
        return tuple(sorted(places))

    def keys(self) -> tuple[str, ...]:
        """Return the sorted keys of all usable images; raise a SourceError if there are none."""
        return self._keys

    def refused(self) -> dict[str, str]:
        """Return the keys of all refused images and files, with the reasons."""
        return dict(self.listing.refused)

    def remarks(self) -> Sequence[str]:
        """Return remarks about content that is skipped or copied unchanged, one line each."""
        return self.listing.remarks

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the names of the classes in the order of the labels."""
        return tuple(self.listing.classes)

    @property
    def class_count(self) -> int | None:
        """Return the number of classes; None if they are bare numbers, of which there may be more."""
        return None if self.listing.are_numbers else len(self.classes)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.listing.classes)}

    def label(self, key: str) -> int:
        """Return the index of one image's class in `classes`; raise an ImageError if it has none."""
        try:
            return self._numbers[class_of(key)]
        except KeyError:
            raise ImageError(f"in no class of {self.location}", key) from None

    def load(self, key: str) -> Rgb:
        """Decode one image: uint8 ndarray of shape (H, W, 3); raise an ImageError if it is unreadable."""
        with name_image_in_errors(key):
            data = self.read_bytes(key)
        return decode(io.BytesIO(data), key, self.libjpeg, self.levels)

    def read(self, key: str) -> tuple[Decoded, str]:
        """Decode one image to a Pillow image of its own mode; return it with the identity of its file."""
        with name_image_in_errors(key):
            data = self.read_bytes(key)
        image = decode_to_pillow(io.BytesIO(data), key, self.libjpeg, self.levels)
        return image, hashlib.sha256(data).hexdigest()[:16]

    def dimensions(self, key: str) -> tuple[int, int]:
        """Return width and height of one image from its header; raise an ImageError if unreadable."""
        with name_image_in_errors(key):
            return read_dimensions(io.BytesIO(self.read_bytes(key)), key)

    def _place(self, key: str) -> Any:
        """Return the place of one image; raise an ImageError if `key` is unknown."""
        try:
            return self.listing.places[key]
        except KeyError:
            raise ImageError(f"no such image in {self.location}", key) from None


class IndexedSource(Index, EncodedSource):
    """Images in files that contain many images each, with an index of their places.

    Parameters
    ----------
    files : path or URL
        A file, a folder of files, or a pattern: ``val-{000000..000063}.tar``, ``val-*.parquet``.
    options : Options
        With a `split`, only the files whose names contain it are used.
    kind : {"c", "p"}, optional
        Kind of the set, if the files are one of its variants: keys are the names of the samples (without
        suffix for sequences) in the order of the files, and labels are the stored numbers.

    Raises
    ------
    SourceError
        The file does not exist. From all other methods: the files contain no images.
    """

    def __init__(self, files: Location | Place, options: Options = DEFAULTS, kind: str | None = None) -> None:
        super().__init__(find_place(files).location, options.cache, options.split)
        self.kind, self.libjpeg, self.levels = kind, options.libjpeg, options.levels

    def add_as_stored(self, listing: SourceListing, name: str, label: object, place: Any) -> None:
        """Add an image of a set under the name and label it was written with."""
        key = name if self.kind == "c" else str(PurePosixPath(name).with_suffix(""))
        leaves = key.startswith("/") or ".." in key.split("/")
        listing.add(key, place, "its path leaves the folder" if leaves else None)
        if isinstance(label, int):
            listing.labels[key] = label

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        if not self.kind:
            return super()._keys
        places = self.listing.places
        return tuple(sorted(super()._keys, key=lambda key: places[key][:3]))

    @property
    def has_labels(self) -> bool:
        """Return whether every image has a class; samples of a set may lack a stored number."""
        return not self.kind or len(self.listing.labels) == len(self.listing.places)

    def label(self, key: str) -> int:
        """Return the stored number of a sample of a set; else the index of one image's class."""
        return self.listing.labels[key] if self.kind else super().label(key)

    def load(self, key: str) -> Rgb:
        """Decode one image (H, W, 3), or the frames (T, H, W, 3) of a video; uint8."""
        if self.kind != "p":
            return super().load(key)
        with name_image_in_errors(key):
            data = self.read_bytes(key)
        return video.read_frames(data, key)

    def size(self, key: str) -> int:
        """Return the size of one image's file in bytes; raise an ImageError if `key` is unknown."""
        return int(self._place(key)[-1])
