"""Trees: an image, a video, or a folder of frames for each key, in the folder of the variant."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from robustgen.errors import SourceError
from robustgen.files.set_files import WrittenFile, has_mirror
from robustgen.files.storage import Store
from robustgen.files.text_files import split_names
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging import codecs, video
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import name_image_in_errors
from robustgen.pixels.imaging.frames import Clip
from robustgen.sets.formats.base import Encoded, Encoder, FilePer, SetContent, WorkUnit, Writer, WrittenSet
from robustgen.sets.sources.base import Items, Loaded, Source, SourceOptions, name_source_in_errors
from robustgen.sets.sources.classes import KEYS
from robustgen.sets.sources.clip_folder import ClipFolder
from robustgen.sets.sources.folder import ImageFolder, Named, TreeItems
from robustgen.sets.sources.places import Place

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

    Examples
    --------
    >>> from robustgen.plugins import LosslessEncoder, TreeWriter
    >>> writer = TreeWriter(LosslessEncoder(".png"))
    >>> writer.file_per, writer.output_name("cat/a.jpg")
    ('image', 'cat/a.png')
    """

    file_per: ClassVar[FilePer] = "image"

    def __init__(self, encoder: Encoder, source: Items[Any] | None = None) -> None:
        super().__init__(encoder)
        self._source = source

    @classmethod
    def create(cls, encoder: Encoder, content: SetContent) -> Writer:
        """Return the writer of a set."""
        return cls(encoder, content.source)

    def settings(self) -> dict[str, Any]:
        """Return the settings of the files, and whether they lie in folders that their keys lack."""
        folders = {"class_folders": True} if self._source and self._source.lacks_folders else {}
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


class TreeSet(WrittenSet):
    """Set with a folder per variant: image files, MP4 files or folders of frames, in class folders."""

    format = "original"

    def open(self, variant: Variant) -> Source:
        """Open the folder of a variant."""
        readers: dict[str, Any] = {"c": VariantFolder, "p": SequenceFolder, "clip": VariantClips}
        place = f"{self.root}/{self.places[variant]}".rstrip("/")
        names = self.store if has_mirror(self.manifest) else None
        folder: Source = readers[self.benchmark.content](place, self.manifest, names)
        return folder


class _OfVariant(TreeItems[Loaded]):
    """The items of a variant, whose order of classes is that of `dataset.json`, if it has one.

    Parameters
    ----------
    location : path or URL
    manifest : mapping
        The content of `dataset.json`, or nothing.
    names : Store, optional
        Set whose `keys.txt` tells the images from other files; by default, all are images.
    """

    def __init__(self, location: str, manifest: Mapping[str, Any], names: Store | None = None) -> None:
        place = Place(location)
        self._recorded: Sequence[str] = manifest.get("classes", ())
        self._store, self._names = place.folder, names
        # The files of a set may be links to any place.
        super().__init__(place, SourceOptions(follow=(Path(location).anchor,), classes=False))

    def _scan(self) -> Iterator[Named]:
        found = super()._scan()  # type: ignore[safe-super]
        if self._names is None:
            return iter(found)
        with name_source_in_errors(f"{self._names.location}/{KEYS}"):
            names = {*split_names(self._names.read(KEYS))}
        return (each for each in found if each[0] in names)

    def _read_record(self, found: set[str]) -> tuple[Sequence[str], bool]:
        return self._recorded, False


class VariantFolder(_OfVariant[Rgb], ImageFolder):
    """The images of a variant."""


class VariantClips(_OfVariant[Clip], ClipFolder):
    """The clips of a variant: videos, some of them damaged by a corruption, or folders of frames."""

    def open_video(self, data: bytes, key: str) -> Clip:
        """Return the clip of a video file, with as many frames as can be decoded."""
        return codecs.open_damaged(data)

    def load(self, key: str) -> Rgb:  # type: ignore[override]
        """Decode the frames of a clip: uint8 ndarray of shape (T, H, W, 3)."""
        return super().load(key).stack()


class SequenceFolder(VariantFolder):
    """The sequences of a variant: videos, whose keys lack the suffix, or folders of frames."""

    def _scan(self) -> Iterator[Named]:
        names = [entry.path for entry in self._store.list()]
        visible = [name for name in names if not name.rpartition("/")[2].startswith(".")]
        folders = (name.rpartition("/")[0] for name in visible if "/" in name and name.endswith(".png"))
        found = {name: name for name in folders}
        found |= {name.removesuffix(VIDEO): name for name in visible if name.endswith(VIDEO)}
        if not found:
            raise SourceError(f"{self.location}: contains no sequences")
        return ((key, name, None) for key, name in found.items())

    def has_frames(self, key: str) -> bool:
        """Return whether a sequence is a folder of frames, as listed if it was."""
        if "listing" in vars(self):
            return bool(self.listing.places.get(key, key) == key)
        return not self._store.exists(f"{key}{VIDEO}")

    def read_encoded(self, key: str) -> bytes | list[tuple[str, bytes]]:
        """Read the bytes of the video, or the names and bytes of the frames."""
        with name_image_in_errors(key):
            if not self.has_frames(key):
                return self._store.read(f"{key}{VIDEO}")
            names = [entry.path for entry in self._store.list(key) if entry.path.endswith(".png")]
            return [*zip(names, self._store.map(self._store.read, names), strict=True)]

    def decode(self, data: Any, key: str) -> Rgb:
        """Decode the frames of a sequence: uint8 ndarray of shape (T, H, W, 3)."""
        with name_image_in_errors(key):
            return video.read_frames(data, key) if isinstance(data, bytes) else video.stack_frames(data, key)

    def size(self, key: str) -> int:
        """Return the bytes of the video, or of all frames."""
        if not self.has_frames(key):
            return self._store.stat(f"{key}{VIDEO}").size
        return sum(entry.size for entry in self._store.list(key) if entry.path.endswith(".png"))
