"""Lists of class folders in the order of a model's outputs."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from robustgen.errors import ArgumentError, quote
from robustgen.files.storage.host import read_regular
from robustgen.files.text_files import imagenet_classes


def read_classes(value: Any) -> Any:
    """Return the class folders that a text names: ``imagenet``, or a file; other values are unchanged.

    The file has one name per line (of ``n01440764 tench`` the first word), a JSON list, or Keras's JSON
    object ``{"0": ["n01440764", "tench"], ...}``.

    Raises
    ------
    ArgumentError
        The file cannot be read, contains something else, or lists a class twice.
    """
    if value == "imagenet":
        return imagenet_classes()
    names = _read_file(Path(value)) if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)):
        raise ArgumentError(f"must be imagenet, a file, or a list of class folders, not {quote(value)}")
    if not names:
        raise ArgumentError("must list at least one class")
    repeated = next((name for name, count in Counter(map(str, names)).items() if count > 1), None)
    if repeated is not None:
        raise ArgumentError(f"{quote(repeated)} is listed twice")
    return [str(name) for name in names]


def _read_file(path: Path) -> list[str]:
    try:
        text = read_regular(path).decode("utf-8-sig")
        if not text.lstrip().startswith(("[", "{")):
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            # Only WordNet ids are separated from the following text: other folder names may contain spaces.
            return [found[0] if (found := re.match(r"n\d{8}(?=\s)", line)) else line for line in lines]
        content = json.loads(text)
        if isinstance(content, dict):
            content = [content[str(index)] for index in range(len(content))]
        names = [entry[0] if isinstance(entry, list) else entry for entry in content]
        if not all(isinstance(name, str) for name in names):
            raise TypeError
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise ArgumentError(f"{path} is not a list of class folders") from error
    return names
