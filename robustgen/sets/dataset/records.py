"""Records about a whole set, and what all records of a set cover."""

import hashlib
from collections.abc import Container, Iterable
from typing import Final

from robustgen.files.ledger import Failure

COMPANIONS: Final = "companions"
"""Name of the record of the files about a set as a whole, and of its refused images."""


class Coverage(dict[str, frozenset[str]]):
    """Images to the folders of their attempted variants; images with the same variants share one object."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[frozenset[str], frozenset[str]] = {}

    def add(self, keys: Iterable[str], folders: Iterable[str]) -> None:
        """Add the variants in `folders` to all `keys`."""
        given = frozenset(folders)
        for key in keys:
            every = self.get(key, given) | given
            self[key] = self._known.setdefault(every, every)


def find_folder(path: str, folders: Container[str]) -> str:
    """Return which of the `folders`, at most two levels deep, contains the file at `path`; else ""."""
    outer, _, rest = path.partition("/")
    inner, slash, _ = rest.partition("/")
    if slash and f"{outer}/{inner}" in folders:
        return f"{outer}/{inner}"
    return outer if rest and outer in folders else ""


def name_mirror(folder: str) -> str:
    """Return the name of the record of the mirrored files in the `folder` of a variant."""
    return f"mirror-{folder.replace('/', '-')}"


def identify(keys: Iterable[str], folders: Iterable[str], failures: Iterable[Failure] = ()) -> str:
    """Return a digest of the images, variants and failures that files about a whole set describe."""
    failed = (f"{failure['key']}\0{failure.get('variant', '')}" for failure in failures)
    text = "\0\0".join("\0".join(sorted(part)) for part in (keys, folders, failed))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
