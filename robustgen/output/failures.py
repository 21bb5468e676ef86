"""Failures that still stand, as the receipts of all runs tell, and `errors.jsonl`, which lists them.

{"key": "cat/a.png", "reason": "is in none of the formats JPEG, PNG, WebP, BMP or TIFF"}
{"key": "cat/b.png", "arm": "fog/3", "reason": "ValueError: ..."}
"""

import json
from pathlib import Path
from typing import Any

from robustgen.output.files import ERRORS, write_whole
from robustgen.output.journal import Entry
from robustgen.output.records import Failure, Receipt
from robustgen.regular_file import open_regular


class Failures:
    """The failures that stand after a series of receipts.

    That of an arm stands until the arm is tried again or the image has changed, that of a whole image until
    the image is tried again.

    Attributes
    ----------
    by_key : dict
        Of each image with failures, its entries for `errors.jsonl`.
    """

    def __init__(self) -> None:
        self.by_key: dict[str, tuple[Failure, ...]] = {}
        self._sizes: dict[str, int] = {}

    def take_note(self, receipt: Receipt | Entry) -> None:
        """Add the failures of `receipt`, and forget those that it makes out of date."""
        held = self.by_key.pop(receipt.key, ())
        if not (held or receipt.failures):
            return
        same = self._sizes.get(receipt.key) == receipt.size
        tried = {*receipt.folders, *(failure.get("arm") for failure in receipt.failures), None}
        standing = [failure for failure in held if same and failure.get("arm") not in tried]
        if standing or receipt.failures:
            self.by_key[receipt.key] = *standing, *receipt.failures
            self._sizes[receipt.key] = receipt.size

    def entries(self) -> list[Failure]:
        """All failures, by key."""
        return [failure for key in sorted(self.by_key) for failure in self.by_key[key]]


def write_errors(root: Path, failures: Failures) -> None:
    """Write the `errors.jsonl` of the output at `root`, or remove it where there are no `failures`."""
    lines = [json.dumps(failure) + "\n" for failure in failures.entries()]
    if lines:
        write_whole(root, ERRORS, "".join(lines).encode())
    else:
        (root / ERRORS).unlink(missing_ok=True)


def read_errors(path: Path) -> tuple[list[Failure], list[str]]:
    """Read an `errors.jsonl`, or nothing where there is none.

    Returns
    -------
    entries : list of Failure
        Of the lines that are as they should be.
    damage : list of str
        What is wrong with the others, or with the file, as ``"line 7 is no entry of robustgen's"``.
    """
    try:
        with open_regular(path) as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return [], []
    except OSError as error:
        return [], [f"cannot be read: {error.strerror or error}"]
    entries = [_parse_entry(line) for line in lines]
    damage = [f"line {i} is no entry of robustgen's" for i, entry in enumerate(entries, 1) if entry is None]
    return [entry for entry in entries if entry is not None], damage


def _parse_entry(line: bytes) -> Failure | None:
    try:
        entry: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    texts = isinstance(entry, dict) and all(isinstance(text, str) for text in entry.values())
    return entry if texts and entry.keys() >= {"key", "reason"} else None
