"""Shards: files that hold the samples of many images each, in the order of the images.

Workers append encoded samples to spools; at the end of a run the shards are put together from them. So the
bytes of a shard depend on its samples alone, and few files are created on the way.
"""

import hashlib
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple

from robustgen.benchmark import Arm
from robustgen.errors import OutputError
from robustgen.imaging.pixels import Rgb
from robustgen.name_lists import join_names
from robustgen.output.files import (
    MANIFEST,
    file_digest,
    move_into,
    remove_file,
    temporary_folder,
)
from robustgen.output.records import Written, WrittenFile, WrittenSample
from robustgen.output.state import State
from robustgen.output.writers.base import Listing, TreeWriter, Writer
from robustgen.output.writers.companions import keep_companion, write_unless_there
from robustgen.output.writers.spool import Spool, SpoolFile, Staging, list_spools, read_spool
from robustgen.sources.sample_names import KEYS

SHARD_SIZE = 1000
"""Images of a shard where the config does not say."""


class Sample(NamedTuple):
    """What a shard holds of one image.

    Attributes
    ----------
    name : str
        POSIX path that the file would have in a tree, below the folder of the arm.
    label : int
        Index of its class.
    data : bytes
        The encoded image or video.
    """

    name: str
    label: int
    data: bytes


class _StagedArm(NamedTuple):
    """What is to be put together of one arm.

    Attributes
    ----------
    folder : str
    complete : bool
        Whether there must be a sample of every image.
    staging : Staging
    spools : list of Path
        In the order that `staging` counts them.
    """

    folder: str
    complete: bool
    staging: Staging
    spools: list[Path]


class ShardWriter(Writer):
    """Writes shards of the files that `encoder` makes.

    Parameters
    ----------
    encoder : TreeWriter
        Makes one file for each image.
    arms : tuple of Arm
    keys : tuple of str
        The images, in order.
    shard_size : int
        Images of a shard.
    """

    format: ClassVar[str]

    def __init__(
        self, encoder: TreeWriter, arms: Sequence[Arm], keys: Sequence[str], shard_size: int
    ) -> None:
        self.encoder, self.shard_size = encoder, shard_size
        self._folders = tuple(arm.folder for arm in arms)
        self._keys, self._images = tuple(keys), len(keys)
        # Samples staged for another list of images must not pass for these.
        listing = "\0".join([self.format, str(shard_size), *keys])
        self._layout = hashlib.sha256(listing.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._generation = 0
        # Bytes of the spools that earlier runs left, by name.
        self._spools: dict[str, int] = {}
        self._finished: dict[str, Mapping[str, WrittenFile]] = {}
        self._spool: SpoolFile | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Every task has a copy of the writer, and workers ask for no names.
        return self.__dict__ | {"_keys": (), "_spool": None, "_spools": {}, "_finished": {}}

    # --- what is particular to a kind of shard

    @abstractmethod
    def shard_name(self, number: int, count: int) -> str:
        """The file name of the shard `number`, from 0, of `count`."""

    @abstractmethod
    def write_shard(self, file: BinaryIO, samples: Iterator[Sample], classes: Sequence[str]) -> None:
        """Write a shard of `samples`; its bytes depend on nothing else."""

    @abstractmethod
    def read_shard(self, path: Path) -> Mapping[str, Callable[[], bytes]]:
        """Name of each sample in the shard at `path`, to what reads its data.

        Raises
        ------
        OutputError
            The shard is damaged.
        """

    def companions(self, count: int) -> Mapping[str, bytes]:
        """Small files beside the `count` shards of an arm, by name."""
        return {}

    def root_companions(self, classes: Sequence[str]) -> Mapping[str, bytes]:
        """Small files at the root of the output, by name."""
        return {}

    # --- what it is

    def settings(self) -> dict[str, Any]:
        """Format, size of the shards, and what decides the bytes of a sample."""
        return {"format": self.format, "shard_size": self.shard_size, "sample": self.encoder.settings()}

    def versions(self) -> dict[str, str]:
        """Those that decide the bytes of a sample."""
        return self.encoder.versions()

    def output_name(self, key: str) -> str | None:
        """The name of the sample, without its suffix, as two samples of a stem would be one."""
        return self.encoder.output_name(key)

    def as_read(self, arm: Arm, key: str, pixels: Rgb) -> Rgb:
        """What is read of the file in the shard."""
        return self.encoder.as_read(arm, key, pixels)

    # --- a run

    def start(self, root: Path) -> None:
        """Find the spools that earlier runs left; those of other lists of images are of no use any more."""
        state = State(root)
        with state.lock_partial():
            spools = list_spools(state.partial)
            for spool in spools:
                if spool.layout != self._layout:
                    spool.path.unlink()
            own = [spool for spool in spools if spool.layout == self._layout]
            self._generation = 1 + max((spool.generation for spool in own), default=0)
            self._spools = {spool.path.name: spool.path.stat().st_size for spool in own}
        self._finished.clear()

    def measure(self, arm: Arm, key: str, pixels: Rgb) -> int:
        """The bytes of the image; what the shard puts around it is little."""
        return self.encoder.measure(arm, key, pixels)

    def write(self, root: Path, arm: Arm, index: int, key: str, pixels: Rgb) -> list[Written]:
        """Encode `pixels` and add the sample to the spool of this process."""
        (encoded,) = self.encoder.encode(arm, key, pixels)
        spool = self._open_spool(root)
        end = spool.add(arm.folder, index, encoded.data)
        size = len(encoded.data)
        return [WrittenSample(self._path(arm.folder, index), index, size, spool.path.name, end, self._layout)]

    def flush(self) -> None:
        """Append to the spool what was collected."""
        spool, self._spool = self._spool, None
        if spool:
            spool.flush()

    def holds(self, root: Path, written: Written) -> bool:
        """Whether the sample is in a spool or in a finished shard of this list of images."""
        if not isinstance(written, WrittenSample) or written.layout != self._layout:
            return False
        if self._spools.get(written.spool, 0) >= written.end:
            return True
        return written.path in self._find_finished(root, written.path.rpartition("/")[0])

    def remove(self, root: Path, written: Written) -> None:
        """Withdraw a sample; the shard is put together anew without it."""
        if isinstance(written, WrittenSample) and written.layout == self._layout:
            self._open_spool(root).withdraw(written.path.rpartition("/")[0], written.image)
            self.flush()

    def finish(
        self, root: Path, complete: frozenset[str], settled: frozenset[str], listing: Listing
    ) -> list[str]:
        """Put the shards of the settled arms together; they lack the images that failed."""
        spools = [each for each in list_spools(State(root).partial) if each.layout == self._layout]
        staged, used = self._read_spools(spools)
        for folder in self._folders:
            if folder in settled:
                staging = staged.get(folder) or Staging(self._images)
                paths = [spool.path for spool in spools]
                self._finish_arm(root, _StagedArm(folder, folder in complete, staging, paths), listing)
        keep_companion(root, KEYS, join_names(map(self._name, self._keys)))
        for name, data in self.root_companions(listing.classes()).items():
            keep_companion(root, name, data)
        for path, folders in used.items():
            if settled >= folders:
                path.unlink()
        self._finished.clear()
        return [folder for folder in self._folders if folder not in settled]

    # --- spools

    def _open_spool(self, root: Path) -> SpoolFile:
        if self._spool is None:
            self._spool = SpoolFile(State(root).partial, self._layout, self._generation)
        return self._spool

    def _read_spools(self, spools: Sequence[Spool]) -> tuple[dict[str, Staging], dict[Path, set[str]]]:
        """What is staged of each arm, and of which arms each spool holds samples."""
        staged: dict[str, Staging] = {}
        used: dict[Path, set[str]] = {spool.path: set() for spool in spools}
        generations = [spool.generation for spool in spools]
        for number, spool in enumerate(spools):
            for each in read_spool(spool.path):
                if each.folder not in staged:
                    staged[each.folder] = Staging(self._images)
                if each.image >= self._images:
                    raise OutputError(f"{spool.path} is damaged; remove it and give the command again")
                staged[each.folder].take(number, each, generations)
                used[spool.path].add(each.folder)
        return staged, used

    # --- shards

    def _name(self, key: str) -> str:
        """What the file of the image `key` would be called in a tree."""
        return self.encoder.output_name(key) or key

    def _path(self, folder: str, index: int) -> str:
        name = self.shard_name(index // self.shard_size, self._count)
        return f"{folder}/{name}" if folder else name

    @property
    def _count(self) -> int:
        return max(1, -(-self._images // self.shard_size))

    def _find_finished(self, root: Path, folder: str) -> Mapping[str, WrittenFile]:
        """The finished shards of an arm that are of this list of images and still there, by path."""
        if folder not in self._finished:
            record = State(root).assembled(folder)
            files = record.files if record and record.layout == self._layout else []
            self._finished[folder] = {
                file.path: file for file in files if super(ShardWriter, self).holds(root, file)
            }
        return self._finished[folder]

    def _finish_arm(self, root: Path, arm: "_StagedArm", listing: Listing) -> None:
        """Put the shards of `arm` together that are not there yet, and record them."""
        state, folder = State(root), arm.folder
        finished = self._find_finished(root, folder)
        files = []
        for number in range(self._count):
            span = range(number * self.shard_size, min((number + 1) * self.shard_size, self._images))
            path = self._path(folder, span.start)
            if path in finished and not arm.staging.touches(span):
                files.append(finished[path])
                continue
            held = self.read_shard(root / path) if path in finished else {}
            samples = self._samples(span, arm, held, listing)
            files.append(self._assemble(root, path, samples, listing))
        for name, data in self.companions(self._count).items():
            files.append(write_unless_there(root, f"{folder}/{name}" if folder else name, data))
        before = state.assembled(folder)
        if before and before.files == files and before.layout == self._layout:
            return
        # A manifest must never be older than this.
        (root / MANIFEST).unlink(missing_ok=True)
        state.record_assembled(folder, files, self._layout)
        outdated = {file.path for file in before.files} if before else set()
        for name in outdated - {file.path for file in files}:
            remove_file(root, name)

    def _assemble(self, root: Path, path: str, samples: Iterator[Sample], listing: Listing) -> WrittenFile:
        """Put one shard together, whole or not at all."""
        temporary = temporary_folder(root) / f"{path.replace('/', '-')}-{os.getpid()}"
        try:
            with temporary.open("xb") as file:
                self.write_shard(file, samples, listing.classes())
            written = WrittenFile(path, temporary.stat().st_size, file_digest(temporary))
            move_into(root, temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return written

    def _samples(
        self,
        span: range,
        arm: "_StagedArm",
        held: Mapping[str, Callable[[], bytes]],
        listing: Listing,
    ) -> Iterator[Sample]:
        """The samples of the images in `span`: those staged, and else those that the old shard has."""
        for index in span:
            key = self._keys[index]
            name = self._name(key)
            data = arm.staging.read(index, arm.spools)
            if data is None and name in held and not arm.staging.is_withdrawn(index):
                data = held[name]()
            if data is not None:
                yield Sample(name, listing.label(key), data)
            elif arm.complete:
                raise OutputError(f"{arm.folder}: the sample of {key!r} is lost; begin anew with --overwrite")

    # --- checking

    def differences(
        self, root: Path, arm: Arm, index: int, key: str, pixels: Rgb
    ) -> Iterator[tuple[str, str]]:
        """Whether the shard holds what `pixels` are encoded to."""
        (encoded,) = self.encoder.encode(arm, key, pixels)
        path = self._path(arm.folder, index)
        try:
            held = _open_shard(self, root / path)
        except (OSError, OutputError):
            return  # the sums have told of that
        if encoded.name not in held or held[encoded.name]() != encoded.data:
            yield path, f": {key} from what the source gives now"


@lru_cache(maxsize=4)
def _open_shard(writer: ShardWriter, path: Path) -> Mapping[str, Callable[[], bytes]]:
    return writer.read_shard(path)
