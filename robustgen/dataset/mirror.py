"""Other files of a source (annotations, lists, masks), repeated in every variant of an output.

So each variant is a complete data set, which other tools read as they read the original.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from robustgen.dataset.names import FRAMES, MANIFEST, SUMS
from robustgen.dataset.records import Failure, FilesRecord
from robustgen.dataset.state import OutputState
from robustgen.formats import WrittenFile
from robustgen.storage import Store


def select_companions(names: Iterable[str], images: Collection[str], others: Collection[str]) -> list[str]:
    """Return which of the files called `names` go with `images`, and not with others.

    A file goes with an image if its name begins with that of the image. Files named after no image go with
    all, unless a word of their path names a folder that has only other images, such as ``train2017``.

    Parameters
    ----------
    names : iterable of str
    images : collection of str
        The chosen ones.
    others : collection of str
        Files that look like images and were not chosen; those that go with `images` are maps of labels.
    """
    own = {_identify(name) for name in images}
    folders = {name.rpartition("/")[0] for name in images}
    foreign = {name for name in others if name.rpartition("/")[0] in folders or not _find_owner(name, own)}
    owners = own | {_identify(name) for name in foreign}
    near = {part for name in {*images, *others} - foreign for part in name.split("/")[:-1]}
    far = {part for name in foreign for part in name.split("/")[:-1]} - near

    def goes_along(name: str) -> bool:
        if name in foreign:
            return False
        owner = _find_owner(name, owners)
        return owner in own if owner else far.isdisjoint(re.split(r"[/._-]", name))

    return [name for name in names if goes_along(name)]


def _identify(name: str) -> str:
    """Return what files about an image begin with: its name without extension, and without its top folder's.

    So it is in Cityscapes: ``leftImg8bit/val/bonn/bonn_000000_leftImg8bit.png``.
    """
    return PurePosixPath(name).stem.removesuffix(f"_{name.partition('/')[0]}")


def _find_owner(name: str, owners: Collection[str]) -> str:
    """Return the longest of `owners` that the last part of a path begins with; "" if there is none."""
    last = name.rpartition("/")[2]
    ends = [len(last), *(match.start() for match in re.finditer(r"[._-]", last))]
    return next((last[:end] for end in sorted(ends, reverse=True) if last[:end] in owners), "")


@dataclass(frozen=True)
class Mirror:
    """Repeats the other files of a source.

    Attributes
    ----------
    source : Store
    images : frozenset of str
        Paths in it of the images, which are not repeated.
    others : frozenset of str
        Paths of files that look like images but were not chosen: maps of labels, or other images.
    link : bool
        Whether to make hard links, where the file system can; else copies.
    """

    source: Store
    images: frozenset[str]
    others: frozenset[str]
    link: bool

    def list_files(self) -> tuple[list[str], list[Failure]]:
        """Return the files to repeat, and those that cannot be, with reasons.

        Hidden files are passed over, and so is what goes with images that were not chosen.
        """
        names, failures = [], []
        for name in sorted(entry.path for entry in self.source.list()):
            if name in self.images or any(part.startswith(".") for part in name.split("/")):
                continue
            if name in (SUMS, FRAMES):
                failures.append(
                    {"key": name, "reason": f"its copy would lie where the set's own {name} belongs"}
                )
            else:
                names.append(name)
        irregular = {name: reason for name, reason in self._list_irregular() if name not in self.images}
        failures += [{"key": name, "reason": reason} for name, reason in irregular.items()]
        inside = tuple(f"{name}/" for name in irregular)
        names = [name for name in names if name not in irregular and not name.startswith(inside)]
        if self.others:
            names = select_companions(names, self.images, self.others)
        return names, sorted(failures, key=lambda failure: failure["key"])

    def _list_irregular(self) -> Iterator[tuple[str, str]]:
        """Yield what is no regular file of a local source, and why it is not repeated."""
        if not self.source.is_local:
            return
        root = Path(self.source.location)
        for path in root.rglob("*"):
            name = path.relative_to(root).as_posix()
            if not any(part.startswith(".") for part in name.split("/")):
                if path.is_symlink():
                    yield name, "is a link, which is not mirrored"
                elif not path.is_file() and not path.is_dir():
                    yield name, "is no regular file, and not mirrored"

    def fill(self, state: OutputState, folder: str, names: Sequence[str]) -> None:
        """Repeat the files called `names` in one `folder` of an output, and record them.

        Raises
        ------
        OSError
            One cannot be read, or the disk is full.
        """
        name = f"mirror-{folder.replace('/', '-')}"
        wanted = [self._describe(each)._replace(path=f"{folder}/{each}") for each in names]
        held = state.read_record(name)
        recorded = [file for _, file in held.files()] if held else []
        sizes = [*state.root.sizes(file.path for file in wanted)]
        if recorded == wanted and sizes == [file.size for file in wanted]:
            return
        state.root.delete(MANIFEST)
        state.delete_record(name)
        for path, file, size in zip(names, wanted, sizes, strict=True):
            if file not in recorded or size != file.size:
                state.root.copy(self.source, path, file.path, link=self.link)
        for path in {file.path for file in recorded} - {file.path for file in wanted}:
            state.root.delete(path)
        state.put_record(name, FilesRecord({}, [folder], wanted))

    @cache  # noqa: B019
    def _describe(self, name: str) -> WrittenFile:
        digest = hashlib.sha256()
        with self.source.open(name) as file:
            while block := file.read(1 << 20):
                digest.update(block)
            return WrittenFile(name, file.tell(), digest.hexdigest())
