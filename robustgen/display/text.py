"""Numbers, sizes, times and paths as people read them; records as CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path


def format_count(number: int, noun: str) -> str:
    """``"1 image"``, ``"50,000 images"``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def format_size(size: float) -> str:
    """`size`, in bytes, with its unit and three digits."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def format_time(seconds: float) -> str:
    """`seconds` in the unit that fits."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def format_path(path: Path) -> Path:
    """`path` as the user is likely to have named it: below the current folder, relative to it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def format_csv(records: Sequence[Mapping[str, object]]) -> str:
    """A line for each record under one that names the columns, which are the first's; no last newline."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return buffer.getvalue().removesuffix("\n")
