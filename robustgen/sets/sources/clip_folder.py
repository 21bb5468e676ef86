"""Clips: video files and folders of frames, in a folder or an archive.

The key of a video is the name of its file, and that of frames the name of their folder.
"""

import hashlib
import io
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, cast

from robustgen.display.text import format_count
from robustgen.errors import ImageError, SourceError
from robustgen.pixels.benchmarks.kinds import CLIP
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import (
    Levels,
    Location,
    complain,
    decode,
    is_animated,
    name_image_in_errors,
    read_dimensions,
)
from robustgen.pixels.imaging.frames import USUAL_RATE, Clip, parse_rate
from robustgen.pixels.imaging.jpeg import Libjpeg
from robustgen.pixels.imaging.video import MOST_FRAMES, open_clip, read_clip_size
from robustgen.sets.sources import SourceKind
from robustgen.sets.sources.base import DEFAULTS, SourceOptions
from robustgen.sets.sources.folder import Named, TreeItems, put_into_classes
from robustgen.sets.sources.labels import Labels, read_labels
from robustgen.sets.sources.places import VIDEOS, Place, find_place
from robustgen.sets.sources.rigs import find_in_rig, require_all, says
from robustgen.sets.sources.rows import ask
from robustgen.sets.sources.trees import (
    UNREAD,
    UNREAD_EXTENSIONS,
    UNREAD_VIDEOS,
    FileTree,
    Found,
    check_name,
    describe_unread,
    is_image,
    is_video,
)

_SOUND: Final = "the sound of videos, if any, is not kept"


def find_in_clips(name: str, refusal: str | None) -> Iterator[Found]:
    """Yield the file `name` if it is named like a video or an image, with the reason for refusing it."""
    if is_image(name) or is_video(name):
        yield check_name(name, refusal)
    elif name.lower().endswith((*UNREAD_EXTENSIONS, *UNREAD_VIDEOS)):
        yield check_name(name, UNREAD)


def order_naturally(name: str) -> list[str | int]:
    """Return a sort key that compares the numbers in names as numbers: ``frame9`` before ``frame10``."""
    # Texts and numbers alternate, beginning with a text.
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


@dataclass(frozen=True)
class FrameFiles:
    """The frames of a clip, uint8 (H, W, 3), from image files that are read each time anew."""

    tree: FileTree
    names: tuple[str, ...]
    libjpeg: Libjpeg
    levels: Levels | None

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Rgb]:
        shape = None
        for name in self.names:
            with name_image_in_errors(name):
                data = self.tree.read(name)
            frame = decode(io.BytesIO(data), name, self.libjpeg, self.levels)
            if frame.shape != (shape := shape or frame.shape):
                sizes = " and ".join(f"{width} x {height}" for height, width, _ in (shape, frame.shape))
                raise ImageError(f"{name}: frames differ in size: {sizes}")
            yield frame


class ClipFolder(TreeItems[Clip]):
    """A folder or an archive of videos, folders of frames, or both.

    A folder is a clip if it contains images, and neither a video nor another clip. The class of a clip is the
    first folder below the root, or that in the labels. Other parameters are those of `FileSource`.
    If a rig names the scenes of frames, those of a folder are a clip for each scene: ``folder/scene``.

    Parameters
    ----------
    root : path or URL
        Also a single video, or the folder of the frames of a single clip.
    options : SourceOptions
        `labels` as for `LabelledFolder`; `rate` is that of folders of frames.
    """

    medium = CLIP
    finder = staticmethod(find_in_clips)
    formats = f"no folders of frames, and no videos ({', '.join(VIDEOS)})"

    def __init__(self, root: Location | Place, options: SourceOptions = DEFAULTS) -> None:
        place = find_place(root)
        # A single video is the only clip in its folder.
        self._only = place.name if is_video(place.name) and not place.is_folder else ""
        self.keeps_folders = not options.classes or bool(self._only)
        self.has_class_folders = options.labels is None
        super().__init__(Place(place.store.location) if self._only else place, options)
        self.location, self._rate = place.location, options.rate
        self._file = find_place(options.labels) if options.labels else None
        self._asked, self._are_classes = ask(options), options.labels_are_classes
        self._rig = options.rig if says(options.rig, "scene") else None
        self._stem = place.name.partition(".")[0]

    def _list_folders(self) -> Iterator[str]:
        return map(posixpath.dirname, group_files(dict(self._tree.find()))[0])

    @cached_property
    def _found(self) -> tuple[dict[str, str | None], list[str]]:
        """Return all clips with the reasons for refusing some, and the other images and videos."""
        if self._only:
            return {self._only: None}, []
        return group_files(dict(self._tree.find(self._prefix)), self._scenes)

    @cached_property
    def _scenes(self) -> dict[str, str]:
        """Return the scene of each frame, below the prefix, if a rig names it."""
        if self._rig is None:
            return {}
        frames = [name for name, reason in self._tree.find(self._prefix) if is_image(name) and not reason]
        found = find_in_rig(self._rig, "scene", frames, f"{self.location}/{self._prefix}".rstrip("/"))
        require_all(self._rig, "scene", frames, found)
        return found

    def _scan(self) -> Iterator[Named]:
        found, _ = self._found
        if self._file is None:
            return ((name or self._stem, name, reason) for name, reason in found.items())
        return put_into_classes(found, self._labels, self._file.location)

    @cached_property
    def _labels(self) -> Labels:
        clips, folder = sorted(self._found[0]), f"{self.location}/{self._prefix}".rstrip("/")
        if self._file is None or not clips:
            return Labels({}, are_numbers=False)
        return read_labels(self._file, clips, folder, self._asked, self._are_classes)

    def _read_record(self, found: set[str]) -> tuple[Sequence[str], bool]:
        return (), self._labels.are_numbers

    def remarks(self) -> Sequence[str]:
        """Return remarks about sound and skipped images, one line each."""
        found, others = self._found
        sound = [_SOUND] if any(map(is_video, found)) else []
        images = [name for name in others if is_image(name)]
        count = format_count(len(images), "image")
        beside = [f"skipped, beside clips: {count} ({name!r}, ...)" for name in images[:1]]
        return [*super().remarks(), *describe_unread({*others} - {*images}), *beside, *sound]

    def _name(self, key: str) -> str:
        """Return the name of a video, or of a folder of frames, below the prefix."""
        if self._file is not None:
            return key.partition("/")[2]
        # The frames of a single clip lie in the root.
        return "" if key == self._stem and not is_video(key) and self._list_frames("") else key

    def has_frames(self, key: str) -> bool:
        """Return whether a clip is a folder of frames, which may be called like a video."""
        return not is_video(key) or not self._tree.has(self._prefix + self._name(key))

    def _list_frames(self, name: str) -> tuple[str, ...]:
        name, scene = posixpath.split(name) if self._rig else (name, "")
        folder = f"{self._prefix}{name}/" if name else self._prefix
        found = [folder + own for own, reason in self._tree.find(folder, deep=False) if not reason]
        if scene:
            found = [own for own in found if self._scenes.get(own.removeprefix(self._prefix)) == scene]
        return tuple(sorted(filter(is_image, found), key=order_naturally))

    def list_files(self, key: str) -> tuple[str, ...]:
        """Return the names of the files of a clip: a video, or its frames in the order of their numbers."""
        name = self._name(key)
        return self._list_frames(name) if self.has_frames(key) else (self._prefix + name,)

    def stat(self, key: str) -> tuple[int, str]:
        """Return the bytes of the video or of all frames, and a stamp of all these files."""
        with name_image_in_errors(key):
            sizes, stamps = zip(*map(self._tree.stat, self._list_existing(key)), strict=True)
            return sum(sizes), hashlib.sha256(",".join(stamps).encode()).hexdigest()[:16]

    def _list_existing(self, key: str) -> tuple[str, ...]:
        if files := self.list_files(key):
            return files
        raise ImageError(f"no such clip in {self.location}", key)

    def dimensions(self, key: str) -> tuple[int, int]:
        """Return width and height of the frames; raise an ImageError if the clip cannot be read."""
        with name_image_in_errors(key):
            data = self._tree.read(self._list_existing(key)[0])
            frames = self.has_frames(key)
            return read_dimensions(io.BytesIO(data), key) if frames else read_clip_size(data, key)

    def load(self, key: str) -> Clip:
        """Return one clip, whose frames are decoded on demand."""
        return self.read(key)[0]

    def read(self, key: str) -> tuple[Clip, str]:
        """Return one clip, whose frames are decoded on demand, and the identity of its files.

        Raises
        ------
        ImageError
            The clip does not exist, cannot be read, or is larger than `video.MOST_FRAMES` and
            `video.MOST_PIXELS`.
        """
        files, digest = self._list_existing(key), hashlib.sha256()
        if not self.has_frames(key):
            with name_image_in_errors(key):
                data = self._tree.read(files[0])
            return self.open_video(data, key), hashlib.sha256(data).hexdigest()[:16]
        if len(files) > MOST_FRAMES:
            raise ImageError(f"has {len(files)} frames, more than {MOST_FRAMES}; cut it into clips", key)
        for name in files:
            with name_image_in_errors(name):
                data = self._tree.read(name)
                if is_animated(data, name):
                    raise ImageError(
                        "is an animation, and no frame of a clip; convert it, for instance by "
                        "ffmpeg -i FILE -c:v libx264rgb -crf 0 FILE.mp4"
                    )
                digest.update(hashlib.sha256(data).digest())
        frames = FrameFiles(self._tree, files, self.libjpeg, self.levels)
        names = tuple(name.rpartition("/")[2] for name in files)
        if len({name.rpartition(".")[0] for name in names}) < len(names):
            complain(key, ["frames have one name and several suffixes: all of them are frames of this clip"])
        return Clip(frames, self._find_rate(files[0]), names=names), digest.hexdigest()[:16]

    def _find_rate(self, frame: str) -> Fraction:
        """Return the frame rate that was given, or that of MOT's ``seqinfo.ini`` above the folder, or 25."""
        above = posixpath.dirname(posixpath.dirname(frame))
        name = posixpath.join(above, "seqinfo.ini")
        if self._rate is None and self._tree.has(name):
            with name_image_in_errors(name):
                found = re.search(rb"^frameRate *= *([\d.]+)", self._tree.read(name), re.MULTILINE)
                return parse_rate(found[1].decode() if found else None)
        return self._rate or USUAL_RATE

    def open_video(self, data: bytes, key: str) -> Clip:
        """Return the clip of a video file; raise an ImageError at damage."""
        return open_clip(data, key)


class OneClip(ClipFolder):
    """A single video or folder of frames, whose key is `key`; other parameters as for `ClipFolder`."""

    def __init__(self, clip: Place, options: SourceOptions, key: str) -> None:
        super().__init__(clip, options)
        self._key = key

    def _scan(self) -> Iterator[Named]:
        found = [*super()._scan()]
        if any(name != self._only for _, name, _ in found):
            raise SourceError(f"{self.location}: contains several clips, or other folders")
        return ((self._key, name, reason) for _, name, reason in found)

    def _name(self, key: str) -> str:
        return self._only


def group_files(
    found: dict[str, str | None], scenes: Mapping[str, str] = MappingProxyType({})
) -> tuple[dict[str, str | None], list[str]]:
    """Return the clips that files belong to, and the files that are in no clip.

    Parameters
    ----------
    found : dict
        Names of videos and images, with the reasons for refusing some.
    scenes : mapping of str to str
        Scenes of images, each a clip of its own; of others, the folder is.

    Returns
    -------
    dict
        Name of a video, or of a folder of frames, with the reason for refusing it.
    list of str
    """
    clips = {name: reason for name, reason in found.items() if is_video(name)}
    frames, others = dict[str, list[str]](), list[str]()
    for name in found:
        if is_image(name):
            folder = posixpath.join(posixpath.dirname(name), scenes.get(name, "")).rstrip("/")
            frames.setdefault(folder, []).append(name)
        elif name not in clips:
            others.append(name)
    # Folders with clips in them, at any depth, or beside their images.
    above = {folder for name in (*clips, *frames) for folder in _list_folders(name)}
    for folder, names in frames.items():
        if folder in above:
            others += names
            continue
        refused = next((f"{name}: {found[name]}" for name in sorted(names) if found[name]), None)
        clips[folder] = refused
    return clips, others


def _list_folders(name: str) -> Iterator[str]:
    """Yield all folders that contain `name`."""
    while name:
        name = posixpath.dirname(name)
        yield name


CLIPS: Final = SourceKind(lambda _: False, cast("Any", ClipFolder), has_split_folders=True)
