"""`--accept LIST`: the images that a human kept, as they are, in class folders, and what they are."""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ValidationError, model_validator

from robustgen.errors import ConfigError, ImageError, OutputError
from robustgen.filtration.filtering import ACCEPTED, FUNNEL, SHORTLIST, check_foreign
from robustgen.filtration.rules import Rule
from robustgen.output.files import file_digest, temporary_folder
from robustgen.output.state import claim_output, read_object
from robustgen.regular_file import open_regular

MANIFEST = "manifest.json"


class _Funnel(BaseModel):
    """What is needed of `funnel.json`."""

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
    """What was accepted.

    Attributes
    ----------
    files, classes : int
    root : Path
    made : bool
        False where all was there already.
    """

    files: int
    classes: int
    root: Path
    made: bool


def accept(rule: Rule, candidates: Path, output: Path, lists: Sequence[Path], overwrite: bool) -> Accepted:
    """Copy the images that `lists` name out of `candidates`, byte for byte.

    Parameters
    ----------
    rule : Rule
    candidates, output : Path
        As for `filtering.filter_images`, which has been there before.
    lists : sequence of Path
        Keys, one a line, as the review pages save them.
    overwrite : bool
        Replace the images that another list accepted.

    Raises
    ------
    OutputError
        There is no shortlist, or another list was accepted before.
    ConfigError
        A key is not in the shortlist; names the line.
    ImageError
        A candidate is gone, or is not the file that was looked at.
    """
    # Before the output is made, where there is none.
    _funnel(rule, output)
    with claim_output(output, candidates, check_foreign):
        funnel = _funnel(rule, output)
        shortlist = _shortlist(output, funnel.shortlist_sha256)
        keys = _read_accepted(lists, shortlist)
        entries = [shortlist[key] for key in shortlist if key in keys]
        manifest = _manifest(rule, funnel, entries, lists)
        made = not _is_there(output / ACCEPTED, manifest)
        if made:
            _check_free(output / ACCEPTED, overwrite)
            _make(candidates, output, manifest)
    return Accepted(len(entries), len(manifest["classes"]), output / ACCEPTED, made)


def _read(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read()


def _funnel(rule: Rule, output: Path) -> _Funnel:
    path = output / FUNNEL
    if not path.exists():
        raise OutputError(f"{output}: holds no finished shortlist; give the command without --accept first")
    try:
        funnel = _Funnel.model_validate(read_object(path))
    except ValidationError as error:
        key = error.errors()[0]["loc"]
        raise OutputError(f"{path} is damaged{f': look at {key[0]}' if key else ''}") from error
    if funnel.settings["set"] != rule.title:
        raise OutputError(f"{output}: holds a shortlist for {funnel.settings['set']}, not {rule.title}")
    return funnel


def _shortlist(output: Path, digest: str) -> dict[str, dict[str, Any]]:
    path = output / SHORTLIST
    data = _read(path) if path.exists() else b""
    if hashlib.sha256(data).hexdigest() != digest:
        raise OutputError(f"{path}: is not what {FUNNEL} says; give the command without --accept again")
    entries = {entry["key"]: entry for entry in map(json.loads, data.splitlines())}
    # Whoever made the output may have meant to have files written elsewhere.
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
            raise ConfigError(_complaint(path, unexpected, shortlist))
        keys.update(key for _, key in lines)
    return keys


def _lines(path: Path) -> list[tuple[int, str]]:
    """Number and key of each line that holds one."""
    try:
        # Not splitlines(): keys may hold form feeds and the like.
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8") from error
    found = [(number, line.removesuffix("\r")) for number, line in enumerate(lines, 1)]
    found = [(number, key) for number, key in found if key]
    if not found:
        raise ConfigError(f"{path}: names no image")
    return found


def _complaint(path: Path, unexpected: list[tuple[int, str]], shortlist: dict[str, Any]) -> str:
    (number, key), more = unexpected[0], len(unexpected) - 1
    near = get_close_matches(key, shortlist, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    numbers = ", ".join(str(each) for each, _ in unexpected[1:6]) + ", ..." * (more > 5)
    others = f"; nor are lines {numbers}" if more > 1 else f"; nor is line {numbers}" if more else ""
    return f"{path}: line {number}: {key!r} is not in the shortlist{hint}{others}"


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
        "lists": [{"file": path.name, "sha256": file_digest(path)} for path in lists],
        "files": entries,
    }


def _is_there(root: Path, manifest: dict[str, Any]) -> bool:
    if not (root / MANIFEST).exists() or read_object(root / MANIFEST) != manifest:
        return False
    files = ((root / entry["key"], entry["sha256"]) for entry in manifest["files"])
    return all(path.is_file() and file_digest(path) == digest for path, digest in files)


def _check_free(root: Path, overwrite: bool) -> None:
    if root.exists() and not overwrite:
        raise OutputError(
            f"{root}: holds what another list accepted, or was changed; --overwrite replaces it"
        )


def _make(candidates: Path, output: Path, manifest: dict[str, Any]) -> None:
    """Make the whole tree under another name, and then exchange it for what is there."""
    new, old = temporary_folder(output) / "new", temporary_folder(output) / "old"
    for entry in manifest["files"]:
        data = _candidate(candidates, entry)
        path = new / entry["key"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (new / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    if (output / ACCEPTED).exists():
        (output / ACCEPTED).rename(old)
    new.rename(output / ACCEPTED)
    shutil.rmtree(old, ignore_errors=True)


def _candidate(candidates: Path, entry: dict[str, Any]) -> bytes:
    key = entry["key"]
    try:
        data = _read(candidates / key)
    except OSError as error:
        raise ImageError(f"{key!r}: {error.strerror}") from error
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise ImageError(f"{key!r}: is not the file that was shortlisted")
    return data
