"""Plans of sets, as files: written on one machine, run on another."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from robustgen import __version__
from robustgen.errors import ConfigError
from robustgen.files.registry import load_row
from robustgen.files.storage import locate
from robustgen.files.text_files import parse_object
from robustgen.sets.dataset.plan import Plan
from robustgen.sets.dataset.rows import find_set
from robustgen.settings.fields import make_absolute
from robustgen.settings.loading import check


def plan_again(title: str, choices: Mapping[str, Any], name: str) -> Plan:
    """Return the plan of a set of this `title`, from the settings in the file `name`.

    Raises
    ------
    ConfigError, SourceError, OutputError
        No set has this title, or the settings are invalid here.
    """
    row = find_set(title)
    if row is None:
        raise ConfigError(f"{name}: title: {title!r}: no such set can be made from a plan")
    plan: Plan = load_row(row.planner)(check(load_row(row.choices), choices, name))
    return plan


def to_bytes(plan: Plan) -> bytes:
    """Return the file of `plan`: its settings, and a digest of everything that decides its bytes."""
    content = {
        "robustgen": __version__,
        "title": plan.recipe.title,
        "config": plan.choices | {"output": plan.store.location},
        "images": len(plan.keys),
        "digest": _digest(plan),
    }
    return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()


def read_plan(
    path: str, *, source: str | None = None, output: str | None = None, jobs: int | None = None
) -> Plan:
    """Return the plan in a file.

    Parameters
    ----------
    path : path or URL
    source, output : path or URL, optional
        Their locations on this machine, if different.
    jobs : int, optional
        Worker processes.

    Raises
    ------
    ConfigError
        The plan cannot be read, or gives another set here: other images or libraries.
    """
    try:
        store, name = locate(path)
        content = parse_object(store.read(name))
        title, config, digest = content["title"], dict(content["config"]), content["digest"]
        release = content["robustgen"]
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path}: contains no plan of robustgen ({error})") from error
    if release != __version__:
        raise ConfigError(f"{path}: written with robustgen {release}, and this machine has {__version__}")
    given = {
        "source": source and make_absolute(source),
        "output": output and make_absolute(output),
        "jobs": jobs,
    }
    plan = plan_again(str(title), config | {key: value for key, value in given.items() if value}, path)
    if _digest(plan) != digest:
        raise ConfigError(f"{path}: another set on this machine (images or libraries); write the plan again")
    return plan


def _digest(plan: Plan) -> str:
    """Return a SHA-256 of all settings, images and variants of `plan`."""
    parts = [
        json.dumps(plan.settings(), sort_keys=True),
        *plan.keys,
        "",
        *(variant.folder for variant in plan.variants),
    ]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
