"""Checks of families of corruptions from other packages."""

import json
import re
from dataclasses import asdict
from numbers import Real

from robustgen.errors import ArgumentError, raise_as
from robustgen.pixels.benchmarks.registry import SUPERCLASS_ACCURACY, Family


def check_family(family: Family, name: str) -> Family:
    """Return the family of the entry point `name`; raise an ArgumentError if it is malformed."""
    if family.name != name or not family.qualified:
        raise ArgumentError(f"its Family must be called {name!r} like the entry point, not {family.name!r}")
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
        raise ArgumentError("the name must consist of small letters, digits, - and _")
    if not family.corruptions:
        raise ArgumentError("it registers no corruption")
    if family.measure not in ("", SUPERCLASS_ACCURACY):
        raise ArgumentError(f"measure: must be {SUPERCLASS_ACCURACY!r} or empty, not {family.measure!r}")
    if not all(isinstance(text, str) for text in (family.title, family.citation, family.reference)):
        raise ArgumentError("its title, citation and reference must be texts")
    for member, mean in family.means.items():
        if not family.find(member) or not isinstance(mean, Real) or not 0 < mean <= 1:
            raise ArgumentError(f"means: {member!r} must be one of its corruptions, its mean from 0 to 1")
    for corruption in family.corruptions.values():
        with raise_as(ArgumentError, f"{corruption.name}: not numbers or texts", TypeError, ValueError):
            json.dumps([asdict(row) for rows in corruption.table.values() for row in rows], allow_nan=False)
    return family
