"""Formatting: counts, sizes, times, paths and names for people; JSON for programs."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def format_count(number: int, noun: str) -> str:
    """Return ``"1 image"``, ``"50,000 images"``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def format_size(size: float) -> str:
    """Return `size`, in bytes, with a unit and three digits."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def format_time(seconds: float) -> str:
    """Return `seconds` in a suitable unit."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def format_path(path: Path | str) -> str:
    """Return a path, escaped, and relative to the current folder if it is below that."""
    here = Path.cwd().as_posix()
    return escape(str(path).removeprefix(f"{here}/"))


def escape(text: object) -> str:
    """Return `text` with invisible characters, line breaks and direction marks as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))


def format_json(content: Any) -> str:
    """Return `content` as JSON; NaN and infinity become null, because JSON has neither."""
    return json.dumps(_replace_nan(content), indent=1)


def _replace_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _replace_nan(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def format_constant(value: object) -> str:
    """Return a constant of a corruption: ``"0.5"``, ``"3"``, ``"exact"``, ``"0.1, 0.9"``."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(format_constant, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def format_signed(value: float, digits: int) -> str:
    """Return `value` with its sign and so many digits; what rounds to zero has a plus."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def format_name(name: str) -> str:
    """Return ``"glass blur"`` for ``glass_blur``."""
    return name.replace("_", " ")
