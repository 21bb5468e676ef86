"""Names of WebDataset samples, and of the files that list the samples and their classes."""

from typing import Final

CLASS_NAMES: Final = "classnames.txt"
"""File next to the shards or above them with the class names, in the order of the labels."""
KEYS: Final = "keys.txt"
"""File in an output with many images per file: their names, in order."""


def sample_key(name: str) -> str:
    """Return the key of the sample `name`, a POSIX path: the name without its suffix.

    Readers treat everything after the first dot as the suffix, so other dots are written ``%2E``.
    """
    folder, slash, file = name.rpartition("/")
    dot = file.rfind(".")
    stem = file[:dot] if 0 < dot < len(file) - 1 else file
    return folder + slash + stem.replace("%", "%25").replace(".", "%2E")


def sample_name(key: str) -> str:
    """Return the name, without suffix, that `sample_key` converts to `key`."""
    folder, slash, stem = key.rpartition("/")
    return folder + slash + stem.replace("%2E", ".").replace("%25", "%")
