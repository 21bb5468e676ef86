"""Other files of a source (annotations, lists, masks), repeated in every variant of an output.

So each variant is a complete data set, which other tools read as they read the original.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from robustgen.dataset.names import FRAMES, SUMS
from robustgen.dataset.outputs import measure_file
from robustgen.dataset.records import Failure, FilesRecord
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
            if name in self.images or _is_hidden(name):
                continue
            if name in (SUMS, FRAMES):
                failures.append(
                    {"key": name, "reason": f"its copy would lie where the set's own {name} belongs"}
                )
            else:
                names.append(name)
        irregular = {
            name: f"{what}, which is not mirrored"
            for name, what in self.source.list_irregular()
            if name not in self.images and name[-1] != "/" and not _is_hidden(name)
        }
        failures += [{"key": name, "reason": reason} for name, reason in irregular.items()]
        inside = tuple(f"{name}/" for name in irregular)
        names = [name for name in names if name not in irregular and not name.startswith(inside)]
        if self.others:
            names = select_companions(names, self.images, self.others)
        return names, sorted(failures, key=lambda failure: failure["key"])

    def make_record(self, folder: str, names: Sequence[str]) -> FilesRecord:
        """Return the record of the files called `names` repeated in one `folder` of an output."""
        files = [self._describe(name)._replace(path=f"{folder}/{name}") for name in names]
        return FilesRecord({}, [folder], files)

    def copy(self, store: Store, folder: str, path: str) -> None:
        """Repeat the file that is to be at `path`, in `folder` of the output `store`."""
        store.copy(self.source, path.removeprefix(f"{folder}/"), path, link=self.link)

    @cache  # noqa: B019
    def _describe(self, name: str) -> WrittenFile:
        return WrittenFile(name, *measure_file(self.source, name))


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))
