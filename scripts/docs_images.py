#!/usr/bin/env python3
"""Draws the sheets in docs/images again, from the photographs inside scikit-image.

    python scripts/docs_images.py [FOLDER]

The same releases of the libraries give the same bytes.
"""

import sys
from pathlib import Path

from robustgen.cli import main

MOST_BYTES = 250_000
COFFEE, CAT = ("--dataset", "demo", "--index", "2"), ("--dataset", "demo", "--index", "1")
SHEETS = {
    "corruptions.jpg": (*COFFEE, "--grid", "--severity", "3", "--cell", "168", "--quality", "85"),
    "severities.jpg": (*COFFEE, "--cell", "80", "--quality", "75"),
    "c-bar.jpg": (
        *CAT,
        "--corruptions",
        "c-bar",
        "--grid",
        "--severity",
        "3",
        "--cell",
        "168",
        "--quality",
        "80",
    ),
    "perturbations.jpg": (*CAT, "--perturbations", "common", "--cell", "104", "--quality", "75"),
}


def draw(folder):
    for name, flags in SHEETS.items():
        path = folder / name
        main(["preview", *flags, "--no-show", "--output", str(path)], standalone_mode=False)
        if path.stat().st_size > MOST_BYTES:
            sys.exit(f"{path} has {path.stat().st_size} bytes, more than {MOST_BYTES}")


if __name__ == "__main__":
    draw(Path(sys.argv[1] if sys.argv[1:] else Path(__file__).parent.parent / "docs" / "images"))
