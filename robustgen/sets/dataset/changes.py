"""Source images that have changed since an output was created, noticed by the stamps of their files.

Stamps are those of the machine that wrote them, so they lie in the ledger, apart from the records.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from robustgen.display.progress import Meter
from robustgen.errors import ImageError, OutputError
from robustgen.files.ledger import Ledger
from robustgen.files.set_files import START_OVER, AnotherSetError
from robustgen.files.text_files import parse_object
from robustgen.sets.sources.base import Items, map_keys

_STAMPS: Final = "source-stamps"
# Of more images, a few stand for all if most files have other stamps: those of a copy, for instance.
_MOST_COMPARED: Final = 10_000
_FEW: Final = 64
# Ten million images have a gigabyte of names and stamps.
_MOST_BYTES: Final = 1 << 30


def look_up(source: Items[Any], key: str) -> tuple[int, str]:
    """Return bytes and stamp of a source image; 0 and "" if it no longer exists, which loading it reports."""
    try:
        return source.stat(key)
    except ImageError:
        return 0, ""


def check_unchanged(
    source: Items[Any], ledger: Ledger, identities: Mapping[str, str], stamps: Mapping[str, str]
) -> dict[str, str]:
    """Compare the images whose files have other stamps than before with their recorded identities.

    Parameters
    ----------
    source : Items
    ledger : Ledger
        Ledger of the output.
    identities : mapping of str to str
        Image to its identity when the output was created; "" if unknown.
    stamps : mapping of str to str
        Image to the stamp of its file now; "" if unknown.

    Returns
    -------
    dict of str to str
        All stamps that the ledger has then.

    Raises
    ------
    AnotherSetError
        An image has another content.
    """
    known = sorted(key for key, identity in identities.items() if identity)
    held = dict[str, Any]()
    # A new output costs no request; a damaged file has no stamps.
    with suppress(OSError, ValueError):
        held = parse_object(ledger.store.read(_STAMPS), _MOST_BYTES) if known else held
    other = [key for key in known if not stamps[key] or held.get(key) != stamps[key]]
    few = other
    if len(other) > max(_MOST_COMPARED, len(known) / 2):
        few = [other[len(other) * index // _FEW] for index in range(_FEW)]
    if changed := _find_changed(source, few, identities):
        if len(few) < len(other):
            changed = _find_changed(source, other, identities)
        others = len(changed) - 1
        more = f", and so do {others} more" if others > 1 else ", and so does one more" * others
        raise AnotherSetError(
            f"{source.location}: {changed[0]!r} differs from the {source.medium.name} that "
            f"{ledger.root.location} was created from{more}. {START_OVER}"
        )
    # Those that were not compared wait for a later run.
    return keep_stamps(ledger, held, {key: stamps[key] for key in few})


def keep_stamps(ledger: Ledger, held: Mapping[str, str], stamps: Mapping[str, str]) -> dict[str, str]:
    """Add to those `held` the `stamps` of images that were read or compared since, and return all."""
    every = {**held, **stamps}
    if any(held.get(key, "") != stamp for key, stamp in stamps.items()):
        # A finished output may be read-only; its images are then compared again.
        with suppress(OSError, OutputError):
            ledger.store.put(_STAMPS, json.dumps(every, separators=(",", ":")).encode())
    return every


def _find_changed(source: Items[Any], keys: Iterable[str], identities: Mapping[str, str]) -> list[str]:
    """Return those of the `keys` whose images have another identity now."""
    keys = [*keys]

    def differs(key: str) -> bool:
        # An image that cannot be read fails when it is processed.
        with suppress(ImageError):
            return source.identify(key) != identities[key]
        return False

    with Meter(len(keys), f"{source.medium.name}s compared") as meter:
        changed = []
        answers = map_keys(source.location, differs, keys, lambda key: look_up(source, key)[0])
        for key, is_changed in zip(keys, answers, strict=True):
            if is_changed:
                changed.append(key)
            meter.update()
    return changed
