"""Other files of a source (annotations, lists, masks), linked or copied into every variant of an output.

Each variant is then a complete data set, which other tools read like the original.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from robustgen.dataset.names import FRAMES, SUMS
from robustgen.dataset.outputs import measure_file
from robustgen.dataset.records import Failure, Record
from robustgen.files.storage import Store
from robustgen.formats.base import WrittenFile


def select_companions(names: Iterable[str], images: Collection[str], others: Collection[str]) -> list[str]:
    """Return the files among `names` that belong to `images`, and not only to others.

    A file belongs to an image if its name begins with that of the image. Files named after no image belong to
    all images, unless a word of their path names a folder with only other images, such as ``train2017``.

    Parameters
    ----------
    names : iterable of str
    images : collection of str
        Selected images.
    others : collection of str
        Files that look like images and were not selected; those that belong to `images` are label maps.
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
    """Return the common start of files about an image: its name without extension and top folder's name.

    An example is Cityscapes: ``leftImg8bit/val/bonn/bonn_000000_leftImg8bit.png``.
    """
    return PurePosixPath(name).stem.removesuffix(f"_{name.partition('/')[0]}")


def _find_owner(name: str, owners: Collection[str]) -> str:
    """Return the longest of `owners` that starts the last part of a path; "" if there is none."""
    last = name.rpartition("/")[2]
    ends = [len(last), *(match.start() for match in re.finditer(r"[._-]", last))]
    return next((last[:end] for end in sorted(ends, reverse=True) if last[:end] in owners), "")


@dataclass(frozen=True)
class Mirror:
    """Copies of the other files of a source in an output.

    Attributes
    ----------
    source : Store
    images : frozenset of str
        Paths of the images in the source, which are not repeated.
    others : frozenset of str
        Paths of files that look like images but were not selected: label maps, or other images.
    link : bool
        Whether to create hard links, if the file system supports them, instead of copies.
    """

    source: Store
    images: frozenset[str]
    others: frozenset[str]
    link: bool

    def list_files(self) -> tuple[list[str], list[Failure]]:
        """Return the files to repeat, and the files that cannot be repeated, with reasons.

        Hidden files are skipped, and so are files that belong to images that were not selected.
        """
        names, failures = [], []
        for name in sorted(entry.path for entry in self.source.list()):
            if name in self.images or _is_hidden(name):
                continue
            if name in (SUMS, FRAMES):
                failures.append({"key": name, "reason": f"its copy would replace the set's own {name}"})
            else:
                names.append(name)
        irregular = {
            name: f"{what}, which is not mirrored"
            for name, what in self.source.list_irregular()
            if name not in self.images and name[-1] != "/" and not _is_hidden(name)
        }
        failures += [{"key": name, "reason": reason} for name, reason in irregular.items()]
        names = [name for name in names if name not in irregular]
        if self.others:
            names = select_companions(names, self.images, self.others)
        return names, sorted(failures, key=lambda failure: failure["key"])

    def make_record(self, folder: str, names: Sequence[str]) -> Record:
        """Return the record of the copies of the files `names` in one `folder` of an output."""
        files = [self._describe(name)._replace(path=f"{folder}/{name}") for name in names]
        return Record({}, [folder], files)

    def copy(self, store: Store, folder: str, path: str) -> None:
        """Create the copy at `path`, in `folder` of the output `store`."""
        store.copy(self.source, path.removeprefix(f"{folder}/"), path, link=self.link)

    @cache  # noqa: B019
    def _describe(self, name: str) -> WrittenFile:
        return WrittenFile(name, *measure_file(self.source, name))


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))
