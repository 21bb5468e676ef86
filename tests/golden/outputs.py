"""Readers of the golden outputs."""

import json
from functools import lru_cache
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).parent
# The SHA-256 of pixels at sizes that were not published, by family and place.
DESCRIBED = json.loads((GOLDEN / "descriptions.json").read_text())


@lru_cache(maxsize=2)
def read_outputs(stem):
    """Key to pixels of `stem`.npz."""
    with np.load(GOLDEN / f"{stem}.npz") as data:
        return {key: data[key] for key in data.files}


def read_cases(name, *stems):
    """The cases in the file `name`, those of all or of some `stems`."""
    cases = json.loads((GOLDEN / name).read_text())
    return [case for case in cases if not stems or case["file"] in stems]
