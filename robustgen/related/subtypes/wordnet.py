"""WordNet's nouns and the narrower nouns of each, read from its file `data.noun`.

ImageNet names its classes by WordNet 3.0: ``n01503061`` is the noun at 01503061. Other releases have other
numbers. A line of the file is

    01503061 05 n 01 bird 0 080 @ 01471682 n 0000 ... ~ 01504179 n 0000 ... | warm-blooded egg-laying ...

the number, a file number, the part of speech, the number of words (hexadecimal) and the words, each with a
digit; then the number of pointers and the pointers: symbol, target, its part of speech, places. ``~`` points
to a narrower noun, ``~i`` to an instance.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from robustgen.errors import SourceError, raise_as
from robustgen.files.storage.host import read_regular

DATA = "data.noun"
# Locations in Debian, in the npm package wordnet 2.0.0, and in Princeton's own archive.
_FOLDERS = ("", "db", "dict", "package/db", "package/dict")
_REMEDY = "Debian's wordnet-base (/usr/share/wordnet) and npm's wordnet 2.0.0 contain WordNet 3.0"
_MOST_NAMED = 10


@dataclass(frozen=True)
class WordNet:
    """The nouns of one release.

    Attributes
    ----------
    path : Path
        The file that was read.
    release : str
        From its licence, for instance ``"3.0"``; "" if not given.
    sha256 : str
        SHA-256 of the file.
    words : dict of str to tuple of str
        Words of each noun by its id, ``n`` and eight digits.
    narrower : dict of str to tuple of str
        The nouns and instances directly below each noun.
    """

    path: Path
    release: str
    sha256: str
    words: dict[str, tuple[str, ...]]
    narrower: dict[str, tuple[str, ...]]

    def below(self, wnid: str) -> frozenset[str]:
        """Return all nouns and instances below `wnid`, without itself."""
        found: set[str] = set()
        pending = [wnid]
        while pending:
            new = set(self.narrower[pending.pop()]) - found
            found |= new
            pending += new
        return frozenset(found - {wnid})

    def check_has(self, wnids: Iterable[str]) -> None:
        """Raise a SourceError that names those of `wnids` that are not nouns of this release."""
        wanted = tuple(wnids)
        missing = [wnid for wnid in wanted if wnid not in self.words]
        if missing:
            named = ", ".join(missing[:_MOST_NAMED]) + ", ..." * (len(missing) > _MOST_NAMED)
            what = "is not WordNet 3.0" if self.release in ("", "3.0") else f"is WordNet {self.release}"
            lacks = f"it lacks {len(missing)} of ImageNet's {len(wanted)} ids ({named})"
            raise SourceError(f"{self.path}: {what}: {lacks}; {_REMEDY}")


def open_wordnet(folder: Path) -> WordNet:
    """Read `data.noun` in `folder`, or in the folder ``db`` or ``dict`` of an unpacked package.

    Raises
    ------
    SourceError
        The file is missing, cannot be read, or is malformed; the message names the line.
    """
    places = [folder / inside / DATA for inside in _FOLDERS]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        what = f"no {DATA} in it" if folder.is_dir() else "no such folder"
        raise SourceError(f"{folder}: {what}; {_REMEDY}")
    return _read(path)


def _read(path: Path) -> WordNet:
    with raise_as(SourceError, f"{path}: cannot be read", OSError):
        release, content = "", read_regular(path)
    words: dict[str, tuple[str, ...]] = {}
    narrower: dict[str, tuple[str, ...]] = {}
    for number, line in _lines(path, content):
        if line.startswith(" "):  # the licence
            found = re.search(r"WordNet (\d+\.\d+) Copyright", line)
            release = release or (found[1] if found else "")
            continue
        try:
            wnid, words[wnid], narrower[wnid] = _parse_line(line)
        except (ValueError, IndexError) as error:
            raise SourceError(f"{path}, line {number}: not a noun of WordNet") from error
    _check_targets(path, narrower)
    return WordNet(path, release, hashlib.sha256(content).hexdigest(), words, narrower)


def _lines(path: Path, content: bytes) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not empty, numbered from 1."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: is not text") from error
    yield from ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def _parse_line(line: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return id, words, and ids of the narrower nouns."""
    fields = line.partition(" | ")[0].split()
    count = int(fields[3], 16)
    words = fields[4 : 4 + 2 * count : 2]
    pointers = fields[5 + 2 * count :]
    if fields[2] != "n" or len(words) != count or len(pointers) != 4 * int(fields[4 + 2 * count]):
        raise ValueError
    pairs = zip(pointers[0::4], pointers[1::4], strict=True)
    return _wnid(fields[0]), tuple(words), tuple(_wnid(to) for symbol, to in pairs if symbol in ("~", "~i"))


def _wnid(number: str) -> str:
    if not re.fullmatch(r"\d{8}", number):
        raise ValueError
    return f"n{number}"


def _check_targets(path: Path, narrower: dict[str, tuple[str, ...]]) -> None:
    # A truncated file has enough valid lines to look right.
    for wnid, below in narrower.items():
        stray = [target for target in below if target not in narrower]
        if stray:
            raise SourceError(f"{path}: {wnid} points to {stray[0]}, which is missing; is it truncated?")
    if not narrower:
        raise SourceError(f"{path}: contains no nouns")
