"""Seen and unseen subtypes of 25 broad types, and the lists of their images.

A subtype is any noun below a broad type in WordNet. It is *seen* if it is one of ImageNet-1K's classes, and
*unseen* if only ImageNet-22K has it (ICLR 2019 paper, appendix G). The broad type itself is not a subtype.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from robustgen.display import progress
from robustgen.errors import SourceError, raise_as
from robustgen.files.ledger import Ledger, Record
from robustgen.files.set_files import STATE, WrittenFile
from robustgen.files.storage import Store, measure
from robustgen.files.text_files import imagenet_classes
from robustgen.pixels.imaging.decode import EXTENSIONS
from robustgen.related.subtypes.wordnet import WordNet, open_wordnet
from robustgen.sets.dataset.outputs import open_output
from robustgen.settings.yaml_files import read_yaml

SEEN, UNSEEN = "seen", "unseen"
SPLITS: Final = (SEEN, UNSEEN)
ABOUT, NAMES = "subtypes.json", "types.txt"
CITATION = (
    "Dan Hendrycks and Thomas Dietterich: Benchmarking Neural Network Robustness to Common Corruptions "
    "and Perturbations. International Conference on Learning Representations, 2019. Appendix G."
)
_RECORD: Final = "lists"
_HERE = Path(__file__).parent


# --- types and subtypes --------------------------------------------------------------------------


class BroadType(NamedTuple):
    """One of the 25 broad types: the name of its folder, its WordNet 3.0 id, and its word in WordNet."""

    name: str
    wnid: str
    word: str


class SplitPlace(NamedTuple):
    """Type and split of a subtype: the number of its broad type, and ``"seen"`` or ``"unseen"``."""

    type: int
    split: str


@cache
def broad_types() -> tuple[BroadType, ...]:
    """Return the 25 broad types of the paper, sorted by name and so numbered from 0."""
    return tuple(BroadType(name, **entry) for name, entry in read_yaml(_HERE / "types.yaml").items())


def assign_places(types: Iterable[BroadType], seen: Iterable[str], wordnet: WordNet) -> dict[str, SplitPlace]:
    """Return type and split of every subtype of `types`, by WordNet id.

    Parameters
    ----------
    types : iterable of BroadType
    seen : iterable of str
        Ids of the classes that models were trained on.
    wordnet : WordNet

    Raises
    ------
    SourceError
        An id is missing or is another noun, or a subtype belongs to two types; neither happens in WordNet
        3.0.
    """
    types, known = tuple(types), frozenset(seen)
    wordnet.check_has(sorted(known))
    places: dict[str, SplitPlace] = {}
    for number, each in enumerate(types):
        if each.word not in wordnet.words.get(each.wnid, ()):
            raise SourceError(f"{wordnet.path}: is not WordNet 3.0: {each.wnid} is not {each.word!r}")
        for wnid in wordnet.below(each.wnid):
            place = SplitPlace(number, SEEN if wnid in known else UNSEEN)
            _check_single(wordnet, wnid, types[places.setdefault(wnid, place).type], each)
    for each in types:
        if each.wnid in places:
            _check_single(wordnet, each.wnid, types[places[each.wnid].type], each)
    return places


def _check_single(wordnet: WordNet, wnid: str, one: BroadType, other: BroadType) -> None:
    if one != other:
        word = wordnet.words[wnid][0]
        raise SourceError(f"{wordnet.path}: {wnid} ({word}) is in two types, {one.name} and {other.name}")


# --- images --------------------------------------------------------------------------------------


@dataclass
class Share:
    """The subtypes of one broad type in one split.

    Attributes
    ----------
    images : dict of str to int
        Number of images of each subtype that has any.
    empty, missing : list of str
        Subtypes whose folders contain no image, and those without a folder.
    """

    images: dict[str, int] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Return the number of images."""
        return sum(self.images.values())

    def described(self) -> dict[str, Any]:
        """Return its entry in the manifest."""
        return {
            "subtypes": len(self.images),
            "images": self.total,
            "wnids": self.images,
            "empty": self.empty,
            "missing": self.missing,
        }


@dataclass(frozen=True)
class SplitSummary:
    """Summary of a run.

    Attributes
    ----------
    types : tuple of BroadType
    shares : dict of str to list of Share
        For each split, one for each type.
    refused : dict of str to str
        Files and folders that could not be listed, and why.
    unknown : list of str
        Folders named like WordNet ids that WordNet does not have.
    others : int
        Number of folders of nouns that belong to no broad type.
    """

    types: tuple[BroadType, ...]
    shares: dict[str, list[Share]]
    refused: dict[str, str]
    unknown: list[str]
    others: int

    def without_images(self, split: str) -> list[str]:
        """Return the names of the types without any image in `split`."""
        pairs = zip(self.types, self.shares[split], strict=True)
        return [each.name for each, share in pairs if not share.total]

    def missing(self, split: str) -> list[str]:
        """Return the subtypes of `split` without an image, by id."""
        return sorted(wnid for share in self.shares[split] for wnid in (*share.empty, *share.missing))

    def described(self) -> dict[str, Any]:
        """Return its entry in the manifest."""
        types = [
            {"index": number, **each._asdict()} | {s: self.shares[s][number].described() for s in SPLITS}
            for number, each in enumerate(self.types)
        ]
        return {
            "types": types,
            "refused": self.refused,
            "unknown_folders": self.unknown,
            "folders_of_other_nouns": self.others,
        }


def write_lists(source: Path, wordnet: Path, output: str | Path) -> SplitSummary:
    """Write the lists of seen and unseen images, and a manifest.

    Parameters
    ----------
    source : Path
        Folder with a folder ``n01503061`` for each noun, images directly inside; it may be incomplete.
    wordnet : Path
        Folder with WordNet 3.0's ``data.noun``.
    output : path or URL
        Output of ``seen.txt``, ``unseen.txt``, ``types.txt`` and ``subtypes.json``.

    Raises
    ------
    SourceError
        `source` or `wordnet` is invalid.
    OutputError
        `output` contains other files, or cannot be written.
    WriteError
        The disk is full.
    """
    source = source.absolute()
    folders = _folders(source)
    hierarchy, types = open_wordnet(wordnet), broad_types()
    places = assign_places(types, imagenet_classes(), hierarchy)
    own, unknown = folders & places.keys(), folders - hierarchy.words.keys()
    if not own:
        raise SourceError(f"{source}: none of its {len(folders)} folders is a subtype of the 25 broad types")
    shares = {split: [Share() for _ in types] for split in SPLITS}
    summary = SplitSummary(types, shares, {}, sorted(unknown), len(folders) - len(own) - len(unknown))
    with open_output(output, str(source.resolve())) as root:
        state = Ledger(root)
        _check_own(state)
        # Its presence means that all files in it are complete.
        root.delete(ABOUT)
        # From here on the files belong to this run, even if it is interrupted.
        state.put_record(_RECORD, Record())
        files = [_list(root, split, source, folders, places, summary) for split in SPLITS]
        files.append(_put(root, NAMES, _lines(each.name for each in types)))
        described = {
            "title": "subtypes",
            "source": source.name,
            "wordnet": {"release": hierarchy.release, "sha256": hierarchy.sha256},
            "sha256": {file.path: file.sha256 for file in files},
            "citation": CITATION,
        }
        text = json.dumps(described | summary.described(), indent=1) + "\n"
        # The manifest comes last: its presence means that all is complete.
        state.put_record(_RECORD, Record(files=[*files, _put(root, ABOUT, text.encode())]))
    return summary


def _folders(source: Path) -> frozenset[str]:
    """Return the names of the folders in `source` that look like WordNet ids."""
    with raise_as(SourceError, f"{source}: cannot be listed", OSError):
        entries = [entry for entry in os.scandir(source) if re.fullmatch(r"n\d{8}(\.tar)?", entry.name)]
    folders = frozenset(entry.name for entry in entries if entry.is_dir())
    if not folders:
        hint = "; extract each n########.tar into a folder of its name" if entries else ""
        raise SourceError(f"{source}: has no folder named by a WordNet id, like n01503061{hint}")
    return folders


def _put(output: Store, name: str, data: bytes) -> WrittenFile:
    with output.create(name) as file:
        file.write(data)
        return WrittenFile(name, *measure(file))


def _list(
    output: Store,
    split: str,
    source: Path,
    folders: frozenset[str],
    places: Mapping[str, SplitPlace],
    summary: SplitSummary,
) -> WrittenFile:
    """Write the list of one split, and record its images in `summary`."""
    wanted = sorted((place.type, wnid) for wnid, place in places.items() if place.split == split)
    with output.create(f"{split}.txt") as file:
        for number, wnid in progress.track(wanted, len(wanted), f"{split} folders"):
            share = summary.shares[split][number]
            names = _images(source, wnid, summary.refused) if wnid in folders else []
            if names:
                share.images[wnid] = len(names)
            else:
                (share.empty if wnid in folders else share.missing).append(wnid)
            file.write(_lines(f"{wnid}/{name} {number}" for name in names))
        return WrittenFile(f"{split}.txt", *measure(file))


def _lines(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _images(source: Path, wnid: str, refused: dict[str, str]) -> list[str]:
    """Return the names of the images directly in one folder, sorted; unlistable ones go to `refused`."""
    try:
        found = [entry.name for entry in os.scandir(source / wnid) if _is_image(entry)]
    except OSError as error:
        refused[wnid] = f"folder cannot be listed: {error.strerror}"
        return []
    for name in found:
        if not _fits_a_line(name):
            printable = name.encode(errors="surrogateescape").decode(errors="backslashreplace")
            refused[f"{wnid}/{printable}"] = "its name is not UTF-8, or has a line break"
    return sorted(filter(_fits_a_line, found))


def _is_image(entry: os.DirEntry[str]) -> bool:
    return entry.name[0] != "." and entry.name.lower().endswith(EXTENSIONS) and entry.is_file()


def _fits_a_line(name: str) -> bool:
    # Readers split lines as str.splitlines() does; names that are not UTF-8 contain surrogates.
    return len(name.splitlines()) == 1 and not any("\ud800" <= letter <= "\udfff" for letter in name)


# --- the output ----------------------------------------------------------------------------------


def _check_own(state: Ledger) -> None:
    """Raise an OutputError if the output contains anything that is not from an earlier run."""
    own, root = {*(f"{split}.txt" for split in SPLITS), ABOUT, NAMES}, state.root
    held = {entry.path.partition("/")[0] for entry in root.list() if not entry.path.startswith(f"{STATE}/")}
    state.refuse_unrecorded(sorted(held - own if state.has_record(_RECORD) else held))
