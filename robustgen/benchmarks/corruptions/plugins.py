"""Families of corruptions from other packages, found by the entry points ``robustgen.corruptions``.

A package is imported only when its family is used by name, or when everything is listed.
"""

import json
import re
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from numbers import Real

from robustgen.benchmarks.registry import Family
from robustgen.errors import ArgumentError, name_error

GROUP = "robustgen.corruptions"


def find_plugins(taken: tuple[str, ...]) -> dict[str, EntryPoint]:
    """Return the installed plug-ins, by the names of their families, except those whose name is `taken`.

    If two packages claim a name, the first in alphabetical order gets it.
    """
    return {entry.name: entry for entry in reversed(_list_entries()) if entry.name not in taken}


def find_impostors(taken: tuple[str, ...]) -> dict[str, str]:
    """Return by package why plug-ins cannot be used because the name of their family is `taken`."""
    owners = dict.fromkeys(taken, "robustgen")
    refused = {}
    for entry in _list_entries():
        owner = owners.setdefault(entry.name, package_of(entry))
        if owner != package_of(entry):
            refused[f"{package_of(entry)}: {entry.name}"] = f"the name is taken by {owner}"
    return refused


def package_of(entry: EntryPoint) -> str:
    """Return name and version of the package of a plug-in."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "of unknown origin"


@lru_cache(maxsize=1)
def _list_entries() -> tuple[EntryPoint, ...]:
    # A package may be on the path twice; each entry counts once.
    found = {(package_of(entry), entry.name): entry for entry in entry_points(group=GROUP)}
    return tuple(found[key] for key in sorted(found))


@lru_cache(maxsize=64)
def load_plugin(entry: EntryPoint) -> Family:
    """Return the family that a plug-in registers.

    Raises
    ------
    ArgumentError
        The plug-in cannot be used; the message names the package and the reason.
    """
    try:
        # Only robustgen prints to standard output: `robustgen list --json` must stay JSON.
        with redirect_stdout(sys.stderr):
            family: object = entry.load()
        return _check_family(family, entry.name)
    except (Exception, SystemExit) as error:
        reason = str(error) if isinstance(error, ArgumentError) else name_error(error)
        raise ArgumentError(
            f"family {entry.name!r} of package {package_of(entry)} cannot be used: {reason}"
        ) from error


def _check_family(family: object, name: str) -> Family:
    if not isinstance(family, Family):
        raise ArgumentError(
            f"its entry point must name a robustgen.benchmarks.registry.Family, not {family!r}"
        )
    if family.name != name or not family.qualified:
        raise ArgumentError(f"its Family must be called {name!r} like the entry point, not {family.name!r}")
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
        raise ArgumentError("the name must consist of small letters, digits, - and _")
    if not family.corruptions:
        raise ArgumentError("it registers no corruption")
    if not all(isinstance(text, str) for text in (family.title, family.citation, family.reference)):
        raise ArgumentError("its title, citation and reference must be texts")
    for member, mean in family.means.items():
        if not family.find(member) or not isinstance(mean, Real) or not 0 < mean <= 1:
            raise ArgumentError(f"means: {member!r} must be one of its corruptions, its mean from 0 to 1")
    for corruption in family.corruptions.values():
        try:
            json.dumps([asdict(row) for rows in corruption.table.values() for row in rows], allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"parameters of {corruption.name} are not numbers or texts: {error}"
            ) from error
    return family
