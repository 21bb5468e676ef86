"""Names of the samples of a WebDataset, and of the files that list them and their classes."""

from typing import Final

CLASS_NAMES: Final = "classnames.txt"
"""Beside the shards or above: the names of the classes, in the order of the labels."""
KEYS: Final = "keys.txt"
"""In an output whose files hold many images: what these are called, in order."""


def sample_key(name: str) -> str:
    """Return the key of the sample that is called `name`, a POSIX path: its suffix is left out.

    Readers take all behind the first dot of a file name for the suffix, so dots are written ``%2E``.
    """
    folder, slash, file = name.rpartition("/")
    dot = file.rfind(".")
    stem = file[:dot] if 0 < dot < len(file) - 1 else file
    return folder + slash + stem.replace("%", "%25").replace(".", "%2E")


def sample_name(key: str) -> str:
    """Return the name, without suffix, of which `sample_key` made `key`."""
    folder, slash, stem = key.rpartition("/")
    return folder + slash + stem.replace("%2E", ".").replace("%25", "%")
