"""Interface of all image sources."""

import hashlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from operator import attrgetter
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from robustgen.errors import ArgumentError, ImageError, MissingDependencyError, SourceError
from robustgen.files.storage import AT_ONCE, MOST_BYTES, Store, is_url, prefetch
from robustgen.pixels.benchmarks.kinds import IMAGE, Medium
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import Levels, Location, find_tags, reason_of
from robustgen.pixels.imaging.file_tags import NO_TAGS, FileTags
from robustgen.pixels.imaging.jpeg import Libjpeg

Cache = tuple[Store, str] | None
"""Location of a cached index: a store and the name of a file in it."""


class SourceOptions(NamedTuple):
    """Options of sources; each source uses those that apply to it.

    Attributes
    ----------
    labels : path or URL, optional
        Labels file of ``source_kind`` "labelled".
    follow : sequence of path
        Folders outside the source to which links may lead.
    cache : (Store, str), optional
        A file in which the listing of an archive or of shards may be cached. `make_ready` writes it; later
        runs and worker processes read it, as long as size and stamp of the files are unchanged.
    split : str, optional
        "train" or another split of the source. Default: the split that benchmarks use, or all images.
    labels_are_classes : bool
        Whether numbers in a labels file are class names, not class numbers or those of the devkit.
    label_column, file_column, split_column : str, optional
        Columns of labels, of files and of splits in a table. Default: those with usual names.
    folder_split : str, optional
        The split whose folder was opened, so that `split` is None.
    split_is_listed : bool
        Whether a list of images says which of them belong to the split, so that it needs no folder.
    classes : bool
        Whether the first folders of images are classes; false for a set that mirrors its source.
    columns : sequence of str
        Image columns of ``source_kind`` "table". Default: "image".
    image_root : path or URL, optional
        Folder of the files named in cells of ``source_kind`` "table". Default: the folder of the table.
    libjpeg : {"turbo", "ijg"}
        Decoder of JPEG files.
    levels : (float, float), optional
        The two values of greys of more than 8 bits in files that become 0 and 255.
    rate : Fraction, optional
        Frames per second of the clips that are folders of frames. Default: that of ``seqinfo.ini``, or 25.
    rig : str, optional
        Scenes of the frames of clips, as in `rigs.find_in_rig`. Default: each folder is one clip.

    Examples
    --------
    >>> from robustgen.plugins import SourceOptions
    >>> SourceOptions(split="train").split
    'train'
    """

    labels: Location | None = None
    follow: Sequence[Location] = ()
    cache: Cache = None
    split: str | None = None
    labels_are_classes: bool = False
    label_column: str | None = None
    file_column: str | None = None
    split_column: str | None = None
    folder_split: str | None = None
    split_is_listed: bool = False
    classes: bool = True
    columns: Sequence[str] = ()
    image_root: str | None = None
    libjpeg: Libjpeg = "turbo"
    levels: Levels | None = None
    rate: Fraction | None = None
    rig: str | None = None


DEFAULTS: Final = SourceOptions()

Loaded = TypeVar("Loaded")
"""Type of one item: pixels, for nearly all sources."""


class Reusable:
    """Object that a worker process receives with each task, but builds only once.

    Cached properties are not pickled; a worker computes them again when it needs them, and then keeps them.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        cls = type(self)
        token = vars(self).setdefault("_token", secrets.token_hex(8))
        state = {
            k: v for k, v in vars(self).items() if not isinstance(getattr(cls, k, None), cached_property)
        }
        return _receive, (cls, token, state)


def _receive(cls: Any, token: str, state: dict[str, Any]) -> Reusable:
    """Return the one object of this process that has the `token`."""
    received: Reusable = _allocate(cls, token)
    if not vars(received):
        vars(received).update(state)
    return received


# Depth maps have an object for each of their archives.
@lru_cache(maxsize=64)
def _allocate(cls: Any, token: str) -> Any:
    return cls.__new__(cls)


class Items(Reusable, ABC, Generic[Loaded]):
    """Input items under unique keys.

    Attributes
    ----------
    location : str
        Absolute path or URL.
    levels : (float, float), optional
        The two values of greys of more than 8 bits in its files that become 0 and 255.
    medium : Medium
        What its items are.
    usual_format : str or None
        Format of C sets of its images; None for that of the edition.
    """

    location: str
    levels: Levels | None = None
    medium: ClassVar[Medium] = IMAGE
    usual_format: ClassVar[str | None] = None

    def __init__(self, location: str) -> None:
        self.location = location

    @abstractmethod
    def keys(self) -> tuple[str, ...]:
        """Return the sorted keys of all usable images; the source is listed only once.

        Raises
        ------
        SourceError
            The source has no usable images or is malformed.
        """

    @property
    def copies(self) -> Mapping[str, str]:
        """Return the key of the first of equal items, which all get its random numbers, by their keys."""
        return {}

    @abstractmethod
    def load(self, key: str) -> Loaded:
        """Load one item; never return a cached object.

        Raises
        ------
        ImageError
            The item cannot be read; the message names the key and the reason.
        """

    def open(self, key: str) -> Loaded | Image.Image:
        """Load one item for a recipe: the result of `load`, or a Pillow image of any mode."""
        return self.read(key)[0]

    def read(self, key: str) -> tuple[Loaded | Image.Image, str]:
        """Load one item for a recipe, and return it with its identity.

        Returns
        -------
        item
            The same as `load` returns, or a Pillow image of the file's own mode.
        identity : str
            First 16 hexadecimal digits of the SHA-256 of the encoded file; "" if unknown.

        Raises
        ------
        ImageError
            The item cannot be read.
        """
        return self.load(key), ""

    def find_tags(self, key: str, loaded: Loaded | Image.Image) -> FileTags:
        """Return orientation and colour profile of the file that `read` has loaded."""
        return find_tags(loaded)

    @abstractmethod
    def size(self, key: str) -> int:
        """Return the size of one image's file in bytes.

        Raises
        ------
        ImageError
            The file does not exist.
        """

    def stat(self, key: str) -> tuple[int, str]:
        """Return the size of one image's file in bytes, and a stamp that changes when the file is written.

        The stamp may be that of a file with many images; "" if there is none.

        Raises
        ------
        ImageError
            The file does not exist.
        """
        return self.size(key), ""

    def identify(self, key: str) -> str:
        """Return the identity of one image, as `read` does; raise an ImageError if it cannot be read."""
        return self.read(key)[1]

    @property
    @abstractmethod
    def classes(self) -> tuple[str, ...]:
        """Return the names of the classes; labels index them."""

    @property
    def class_count(self) -> int | None:
        """Return the number of classes; None if they are bare numbers, of which there may be more."""
        return len(self.classes)

    @abstractmethod
    def label(self, key: str) -> int:
        """Return the index of one image's class in `classes`; -1 if it has none, unlike others.

        Raises
        ------
        ImageError
            `key` belongs to no class.
        """

    @property
    def lacks_folders(self) -> bool:
        """Return whether the keys of images lack the folders of their classes."""
        return False

    @property
    def class_labels(self) -> NDArray[np.int64]:
        """Return the labels of each class, (classes, labels): by default, its number."""
        return np.arange(len(self.classes))[:, None]

    def tree_path(self, key: str) -> str:
        """Return the path of one image below a folder of class folders: by default, its key."""
        return key

    def dimensions(self, key: str) -> tuple[int, int]:
        """Return width and height of one item in pixels, read from its header if it has one.

        Raises
        ------
        ImageError
            The item cannot be read, or has no dimensions.
        """
        raise ImageError("has no dimensions", key)

    def read_header(self, key: str) -> tuple[int, int, FileTags]:
        """Return width and height in pixels, orientation and colour profile of one item.

        Raises
        ------
        ImageError
            The item cannot be read, or has no dimensions.
        """
        return *self.dimensions(key), NO_TAGS

    def refused(self) -> dict[str, str]:
        """Return the keys of all refused images, with the reasons."""
        return {}

    def remarks(self) -> Sequence[str]:
        """Return remarks about content that is skipped or copied unchanged, one line each."""
        return ()

    def describe_columns(self) -> Sequence[str]:
        """Return lines that say what the columns of a table of labels mean."""
        return ()

    def make_ready(self) -> None:
        """List the source and cache its index, once, before worker processes read any image.

        Raises
        ------
        SourceError
            The source cannot be listed.
        OSError
            The index cannot be cached.
        """


# The first element is the item.
_Result = TypeVar("_Result", bound=tuple[Any, ...])
_MOST_AHEAD: Final = 4


def read_ahead(
    location: str, read: Callable[[str], _Result], keys: Sequence[str]
) -> Iterator[Callable[[], _Result]]:
    """Yield for each key a function that returns the result of `read`, or raises its error.

    If the source at `location` is on a server, the next items are read meanwhile: fewer if they are large.
    """
    if not is_url(location) or not keys:
        yield from (partial(read, key) for key in keys)
        return

    def attempt(key: str) -> Future[_Result]:
        done = Future[_Result]()
        try:
            done.set_result(read(key))
        except Exception as error:
            done.set_exception(error)
        return done

    # Read alone, because the source then creates what it keeps, without a lock.
    first = attempt(keys[0])
    size = 0 if first.exception() else _count_bytes(first.result()[0])
    known = {keys[0]: first}
    del first
    ahead = max(1, min(_MOST_AHEAD, MOST_BYTES // max(size, 1)))
    # Without a name for an item, which would keep its pixels while the next one is used.
    yield from map(
        attrgetter("result"), prefetch(lambda key: known.pop(key, None) or attempt(key), keys, ahead)
    )


_Answer = TypeVar("_Answer")


def map_keys(
    location: str,
    ask: Callable[[str], _Answer],
    keys: Iterable[str],
    count_bytes: Callable[[str], int] = lambda _: 0,
) -> Iterator[_Answer]:
    """Yield the results of `ask` for all keys in order; for a source on a server, many are asked for at once.

    The results are small, unlike those of `read_ahead`; `count_bytes` returns the bytes that `ask` reads.
    """
    if not is_url(location):
        yield from map(ask, keys)
        return
    for key in (rest := iter(keys)):
        # Alone, as in `read_ahead`.
        yield ask(key)
        yield from prefetch(ask, rest, AT_ONCE, count_bytes)


def list_dimensions(source: Items[Any], keys: Iterable[str]) -> Iterator[tuple[int, int] | None]:
    """Yield width and height of images from their headers, None for an unreadable one; see `map_keys`."""

    def measure(key: str) -> tuple[int, int] | None:
        with suppress(ImageError):
            return source.dimensions(key)
        return None

    return map_keys(source.location, measure, keys)


def _count_bytes(item: Any) -> int:
    """Return the bytes of the pixels of an image; 0 for a clip, whose frames are read later."""
    if isinstance(item, Image.Image):
        return item.width * item.height * len(item.getbands())
    return getattr(item, "nbytes", 0)


class Source(Items[Rgb]):
    """Images under unique keys: uint8 ndarrays of shape (H, W, 3), C-contiguous and writable.

    Examples
    --------
    >>> import numpy as np
    >>> from robustgen.plugins import Source
    >>> class Greys(Source):
    ...     classes = ("all",)
    ...     def keys(self):
    ...         return ("all/0.png", "all/1.png")
    ...     def load(self, key):
    ...         return np.full((32, 32, 3), 100, np.uint8)
    ...     def label(self, key):
    ...         return 0
    ...     def size(self, key):
    ...         return 32 * 32 * 3
    >>> source = Greys("greys")
    >>> source.dimensions(source.keys()[0])
    (32, 32)
    """

    def dimensions(self, key: str) -> tuple[int, int]:
        """Return width and height of one image in pixels, read from its header if it has one.

        Raises
        ------
        ImageError
            The image cannot be read.
        """
        height, width = self.load(key).shape[:2]
        return width, height

    def read(self, key: str) -> tuple[Rgb | Image.Image, str]:
        """Load one image, and return it with an identity that changes with its pixels."""
        image = self.load(key)
        return image, hashlib.sha256(image.tobytes()).hexdigest()[:16]


@contextmanager
def name_source_in_errors(where: object) -> Iterator[None]:
    """Turn any exception into a SourceError that names `where`: the input is not trusted."""
    try:
        yield
    except (ArgumentError, MissingDependencyError):
        raise
    except Exception as error:
        raise SourceError(f"{where}: {reason_of(error)}") from error


def check_split(location: object, split: str, known: Sequence[str]) -> str:
    """Return `split`; raise a SourceError if it is not in `known`."""
    if split not in known:
        raise SourceError(f"{location}: has no split {split!r} (known: {', '.join(known)})")
    return split


def class_of(key: str) -> str:
    """Return the first folder of `key`; "" for an image in the root."""
    return key.partition("/")[0] if "/" in key else ""
