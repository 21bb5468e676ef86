"""What is found out once about a source, and then read by every worker process and by later runs."""

import hashlib
import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from robustgen import __version__
from robustgen.regular_file import open_regular
from robustgen.sources.listed_file import stamp_of
from robustgen.sources.scratch import Scratch

# Counts the changes of what is written.
_LAYOUT = 1
_MOST_KNOWN = 4


class Index(ABC):
    """What is in the files of a source, and where."""

    @classmethod
    @abstractmethod
    def build(cls, location: Path, scratch: Scratch) -> "Index":
        """Read through the files at `location`; what has to be unpacked goes to `scratch`.

        Raises
        ------
        OSError, ValueError
            There are none, or they are something else.
        """

    @classmethod
    @abstractmethod
    def files_at(cls, location: Path) -> Sequence[Path]:
        """The files that decide what is in an index, whether they are there or not."""

    @property
    @abstractmethod
    def is_lasting(self) -> bool:
        """Whether a later run would find the same; what could not be read now may be readable then."""

    @abstractmethod
    def make_ready(self, scratch: Scratch) -> None:
        """Unpack to `scratch` what has to be unpacked before it can be read.

        Raises
        ------
        OSError, ValueError
            It cannot be unpacked.
        """

    @abstractmethod
    def to_json(self, *, here: bool) -> Any:
        """All of it, as JSON takes it; `here` tells processes of this machine also where it is unpacked."""

    @classmethod
    @abstractmethod
    def from_json(cls, content: Any) -> "Index":
        """The index that `to_json` has written."""


Kept = TypeVar("Kept", bound=Index)


class _Handle(NamedTuple):
    """Where the process that built an index shows it to others: a file that begins with `token`."""

    token: str
    path: Path


class _Known(NamedTuple):
    """An index, and the file that its archives are unpacked to."""

    index: Any
    scratch: Scratch


# Of this process: indexes that came with the sources that another one has sent.
_KNOWN: dict[str, _Known] = {}


class Shelf(Generic[Kept]):
    """Builds the index of a source when it is first asked for.

    Pickled, it takes along where a worker process of this machine finds the index, not the index itself; on
    another machine it is built anew. Nothing is left behind, whatever ends the process.

    Parameters
    ----------
    kind : type of Index
    location : Path
        Of the source.
    held : Path, optional
        The index that an earlier run has kept, if it did. It is taken as long as size, time of change and
        inode of every file of the source are what they were.
    """

    def __init__(self, kind: type[Kept], location: Path, held: Path | None = None) -> None:
        self._kind, self._location, self._held = kind, location, held
        self._known: _Known | None = None
        self._is_news = False
        self._handle: _Handle | None = None
        # What the handle leads to; it goes with the shelf.
        self._shown: Scratch | None = None

    def get(self) -> Kept:
        """Return the index.

        Raises
        ------
        OSError, ValueError
            As `Index.build`.
        """
        if self._known is None:
            self._known = self._find()
        kept: Kept = self._known.index
        return kept

    def make_ready(self) -> None:
        """Do what every worker would else do for itself: unpack, and show the index to them.

        Raises
        ------
        OSError, ValueError
            As `Index.build` and `Index.make_ready`.
        """
        index = self.get()
        if self._handle is None and self._known is not None:
            index.make_ready(self._known.scratch)
            token = secrets.token_hex(16)
            self._shown = Scratch()
            self._shown.file.write(f"{token}\n".encode() + _to_bytes(index.to_json(here=True)))
            self._shown.file.flush()
            self._handle = _Handle(token, self._shown.path)

    def export_index(self) -> bytes | None:
        """What the next run needs to find the index as it is; None where it has that, or had better look."""
        index = self.get()
        if not (self._is_news and index.is_lasting):
            return None
        content = {"of": self._fingerprint(), "index": index.to_json(here=False)}
        body = _to_bytes(content)
        return hashlib.sha256(body).hexdigest().encode() + b"\n" + body

    def __getstate__(self) -> dict[str, Any]:
        self.make_ready()
        return self.__dict__ | {"_known": None, "_shown": None}

    def _find(self) -> _Known:
        """The index, from wherever it is had soonest."""
        if self._handle and self._handle.token in _KNOWN:
            return _KNOWN[self._handle.token]
        index = self._read_shown() or self._read_held()
        scratch = Scratch()
        if index is None:
            index, self._is_news = self._kind.build(self._location, scratch), True
        known = _Known(index, scratch)
        if self._handle:
            _KNOWN[self._handle.token] = known
            while len(_KNOWN) > _MOST_KNOWN:
                del _KNOWN[next(iter(_KNOWN))]
        return known

    def _read_shown(self) -> Index | None:
        if self._handle is None:
            return None
        # Another machine, or the process has ended and its number is another's.
        with suppress(OSError, ValueError), self._handle.path.open("rb") as file:
            if file.readline(64) == f"{self._handle.token}\n".encode():
                return self._kind.from_json(json.load(file))
        return None

    def _read_held(self) -> Index | None:
        """What an earlier run kept; None if it is damaged, or of files that were others."""
        if self._held is None:
            return None
        with suppress(OSError, ValueError, LookupError, TypeError), open_regular(self._held) as file:
            digest, body = file.readline(65).strip(), file.read()
            if digest == hashlib.sha256(body).hexdigest().encode():
                content = json.loads(body)
                if content["of"] == self._fingerprint():
                    return self._kind.from_json(content["index"])
        return None

    def _fingerprint(self) -> list[Any]:
        """What tells whether an index still holds."""
        files = [[str(path), _stamp(path)] for path in self._kind.files_at(self._location)]
        return [_LAYOUT, __version__, self._kind.__name__, str(self._location), files]


def _stamp(path: Path) -> list[int] | None:
    with suppress(OSError, ValueError):
        return [*stamp_of(path.stat())]
    return None


def _to_bytes(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()
