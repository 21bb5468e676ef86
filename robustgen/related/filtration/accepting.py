"""`--accept LIST`: copies of the accepted images, in class folders, with a manifest."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ValidationError, model_validator

from robustgen.errors import ConfigError, ImageError, OutputError
from robustgen.files.storage import Store, open_store
from robustgen.files.text_files import parse_json
from robustgen.related.filtration.filtering import ACCEPTED, FUNNEL, SHORTLIST, open_shortlist
from robustgen.related.filtration.reviewing import read_text
from robustgen.related.filtration.rules import Rule
from robustgen.related.settings import Filtering
from robustgen.sets.dataset.outputs import file_digest, open_output, read_object

MANIFEST = "manifest.json"


class _Funnel(BaseModel):
    """The required part of `funnel.json`."""

    settings: dict[str, Any]
    steps: list[str]
    images: list[int]
    classes: dict[str, list[int]]
    shortlist_sha256: str

    @model_validator(mode="after")
    def _fits(self) -> "_Funnel":
        if "set" not in self.settings or len(self.steps) != len(self.images):
            raise ValueError
        return self


@dataclass(frozen=True)
class Accepted:
    """Result of accepting images.

    Attributes
    ----------
    files, classes : int
    root : str
    made : bool
        False if everything existed already.
    """

    files: int
    classes: int
    root: str
    made: bool


def accept(rule: Rule, options: Filtering) -> Accepted:
    """Copy the accepted candidates, byte for byte; `filtering.filter_images` must have run before.

    Raises
    ------
    OutputError
        There is no shortlist, or another list was accepted before.
    ConfigError
        A key is not in the shortlist; the message names the line.
    ImageError
        A candidate is missing, or has changed since the shortlist.
    """
    # Checked before the output is created.
    _funnel(rule, open_store(options.output))
    source = open_store(options.candidates)
    with open_output(options.output, source.location) as root:
        open_shortlist(root)
        funnel, accepted = _funnel(rule, root), root.folder(ACCEPTED)
        shortlist = _shortlist(root, funnel.shortlist_sha256)
        keys = _read_accepted(options.accept, shortlist)
        entries = [shortlist[key] for key in shortlist if key in keys]
        manifest = _manifest(rule, funnel, entries, options.accept)
        made = not _is_there(accepted, manifest)
        if made:
            _write(source, accepted, manifest, options.overwrite)
    return Accepted(len(entries), len(manifest["classes"]), accepted.location, made)


def _funnel(rule: Rule, root: Store) -> _Funnel:
    if not root.exists(FUNNEL):
        raise OutputError(f"{root.location}: no finished shortlist; give the command without --accept")
    try:
        funnel = _Funnel.model_validate(read_object(root, FUNNEL))
    except ValidationError as error:
        key = error.errors()[0]["loc"]
        check = f": check {key[0]}" if key else ""
        raise OutputError(f"{root.location}/{FUNNEL} is damaged{check}") from error
    if funnel.settings["set"] != rule.title:
        raise OutputError(f"{root.location}: a shortlist for {funnel.settings['set']}, not {rule.title}")
    return funnel


def _shortlist(root: Store, digest: str) -> dict[str, dict[str, Any]]:
    path = f"{root.location}/{SHORTLIST}"
    data = root.read(SHORTLIST) if root.exists(SHORTLIST) else b""
    if hashlib.sha256(data).hexdigest() != digest:
        raise OutputError(f"{path}: differs from {FUNNEL}; give the command without --accept again")
    try:
        entries = {str(entry["key"]): entry for entry in map(parse_json, data.splitlines())}
    except (ValueError, KeyError, TypeError) as error:
        raise OutputError(f"{path} is damaged: {error}") from error
    # A foreign output could name files elsewhere.
    if any(PurePosixPath(key).is_absolute() or ".." in PurePosixPath(key).parts for key in entries):
        raise OutputError(f"{path} is damaged: it names files outside the candidates")
    return entries


# --- the lists -----------------------------------------------------------------------------------


def _read_accepted(lists: Sequence[Path], shortlist: dict[str, Any]) -> set[str]:
    keys: set[str] = set()
    for path in lists:
        lines = _lines(path)
        unexpected = [(number, key) for number, key in lines if key not in shortlist]
        if unexpected:
            (number, key), more = unexpected[0], f" and {len(unexpected) - 1} more" * (len(unexpected) > 1)
            raise ConfigError(f"{path}: line {number}: {key!r}{more}: not in the shortlist")
        keys.update(key for _, key in lines)
    return keys


def _lines(path: Path) -> list[tuple[int, str]]:
    """Yield number and key of each line with a key."""
    # Not splitlines(): keys may contain form feeds and the like.
    found = [(n, line.removesuffix("\r")) for n, line in enumerate(read_text(path).split("\n"), 1)]
    found = [(number, key) for number, key in found if key]
    if not found:
        raise ConfigError(f"{path}: names no image")
    return found


# --- the tree ------------------------------------------------------------------------------------


def _manifest(
    rule: Rule, funnel: _Funnel, entries: list[dict[str, Any]], lists: Sequence[Path]
) -> dict[str, Any]:
    counts = Counter(entry["class"] for entry in entries)
    steps = zip([*funnel.steps, "accepted"], [*funnel.images, len(entries)], strict=True)
    return {
        "set": rule.title,
        "settings": funnel.settings,
        "funnel": [{"step": step, "images": images} for step, images in steps],
        "classes": {
            name: [*numbers, counts[name]] for name, numbers in funnel.classes.items() if counts[name]
        },
        "shortlist_sha256": funnel.shortlist_sha256,
        "lists": [
            {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()} for path in lists
        ],
        "files": entries,
    }


def _is_there(accepted: Store, manifest: dict[str, Any]) -> bool:
    try:
        same = read_object(accepted, MANIFEST) == manifest
        return same and all(
            file_digest(accepted, each["key"]) == each["sha256"] for each in manifest["files"]
        )
    except FileNotFoundError:
        return False


def _write(source: Store, accepted: Store, manifest: dict[str, Any], overwrite: bool) -> None:
    """Replace the existing files by those in `manifest`, and then write the manifest."""
    entries = manifest["files"]
    held = {entry.path for entry in accepted.list()}
    # Without a manifest they are from an interrupted run, unless another list named them.
    stale = held - {entry["key"] for entry in entries}
    if stale and not overwrite:
        raise OutputError(f"{accepted.location}: images of another list, or changed; --overwrite replaces it")
    for entry in entries:
        _read_candidate(source, entry)
    accepted.delete(MANIFEST)
    for path in stale:
        accepted.delete(path)
    for entry in entries:
        accepted.put(entry["key"], _read_candidate(source, entry))
    accepted.put(MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())


def _read_candidate(source: Store, entry: dict[str, Any]) -> bytes:
    key = entry["key"]
    try:
        data = source.read(key)
    except OSError as error:
        raise ImageError(str(error.strerror), key) from error
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise ImageError("has changed since the shortlist", key)
    return data
