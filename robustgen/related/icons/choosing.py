"""Choice of emoji for a set: classes, skin tones, limit per class, duplicates, and the splits by style."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from robustgen.errors import ImageError
from robustgen.related.icons.packages import Style, order, strip_tones
from robustgen.settings.yaml_files import read_yaml

Classes = Mapping[str, tuple[str, ...]]


def style_in(key: str) -> str:
    """Return the style of the icon `key`."""
    return key.rpartition("/")[2].rpartition("_")[0]


# --- classes -------------------------------------------------------------------------------------


CLASSES_FILE: Final = Path(__file__).parent / "classes.yaml"


def read_classes() -> dict[str, tuple[str, ...]]:
    """Return each of the fifty classes with its emoji, both sorted."""
    return {name: _sort(emoji) for name, emoji in sorted(read_yaml(CLASSES_FILE).items())}


# --- choice --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """The emoji of a set.

    Attributes
    ----------
    members : mapping
        Class to its emoji, the same in every style.
    left_out : mapping
        Class to the emoji beyond the limit per class.
    lacking : mapping
        Style to the emoji in `members` without a picture in it.
    pictures : mapping
        Key to style and file.
    """

    members: Mapping[str, tuple[str, ...]]
    left_out: Mapping[str, tuple[str, ...]]
    lacking: Mapping[str, tuple[str, ...]]
    pictures: Mapping[str, tuple[str, Path]]


def choose(classes: Classes, styles: Sequence[Style], *, per_class: int | None) -> Choice:
    """Find the emoji of `classes` in `styles`, and their variants in which all persons have one skin tone.

    Parameters
    ----------
    classes : mapping
        Class to its emoji.
    styles : sequence of Style
    per_class : int or None
        Highest number of emoji in a class: first those that most styles have, then those without skin tone.
    """
    having = Counter(emoji for style in styles for emoji in style.files)
    wanted = _add_skin_tones(classes, having)
    ranked = {name: _sort_by_rank(wanted[name], having) for name in sorted(wanted)}
    members = {name: _sort(emoji[:per_class]) for name, emoji in ranked.items()}
    beyond = {name: _sort(emoji[len(members[name]) :]) for name, emoji in ranked.items()}
    every = _sort(emoji for each in members.values() for emoji in each)
    return Choice(
        members,
        {name: emoji for name, emoji in beyond.items() if emoji},
        {style.name: tuple(emoji for emoji in every if emoji not in style.files) for style in styles},
        _pictures(members, styles),
    )


def _add_skin_tones(classes: Classes, found: Iterable[str]) -> Classes:
    """Return `classes`, with the variants of their emoji that are in `found`."""
    owners = {emoji: name for name, members in classes.items() for emoji in members}
    wanted = {name: set(members) for name, members in classes.items()}
    for emoji in found:
        if owner := owners.get(strip_tones(emoji) or ""):
            wanted[owner].add(emoji)
    return {name: tuple(emoji) for name, emoji in wanted.items()}


def _sort_by_rank(emoji: Iterable[str], having: Mapping[str, int]) -> list[str]:
    """Sort by priority; `having` is the number of styles that have an emoji."""

    def rank(each: str) -> tuple[int, bool, bytes]:
        # Neighbouring code points look alike; the order of their hashes mixes them.
        return -having.get(each, 0), strip_tones(each) != each, hashlib.sha256(each.encode()).digest()

    return sorted(emoji, key=rank)


def _sort(emoji: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(emoji, key=order))


def _pictures(members: Classes, styles: Sequence[Style]) -> dict[str, tuple[str, Path]]:
    return {
        f"{name}/{style.name}_{each}.png": (style.name, style.files[each])
        for name, emoji in members.items()
        for style in styles
        for each in emoji
        if each in style.files
    }


# --- duplicates ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sifted:
    """The pictures of a `Choice` after a comparison of their pixels.

    Attributes
    ----------
    keys : tuple of str
        Keys of the pictures to use, sorted.
    duplicates : mapping
        Key of a duplicate to that of the picture it repeats.
    unreadable : mapping
        Key to the reason.
    """

    keys: tuple[str, ...]
    duplicates: Mapping[str, str]
    unreadable: Mapping[str, str]


def drop_duplicates(keys: Iterable[str], pixels_of: Callable[[str], bytes]) -> Sifted:
    """Keep the first of icons with the same pixels: a held-out style then has no icon of another style.

    Parameters
    ----------
    keys : iterable of str
        Keys of the icons.
    pixels_of : function
        Key to the pixels of the finished icon; raises ImageError if the picture cannot be read.
    """
    first: dict[bytes, str] = {}
    duplicates, unreadable = {}, {}
    for key in keys:
        try:
            digest = hashlib.sha256(pixels_of(key)).digest()
        except ImageError as error:
            unreadable[key] = str(error)
            continue
        earlier = first.setdefault(digest, key)
        if earlier != key:
            duplicates[key] = earlier
    return Sifted(tuple(sorted(first.values())), duplicates, unreadable)


# --- splits --------------------------------------------------------------------------------------


def split_files(keys: Iterable[str]) -> dict[str, bytes]:
    """Return the lists of the splits, each of which holds out one style.

    Parameters
    ----------
    keys : iterable of str
        Keys of the icons.

    Returns
    -------
    dict
        Name to content: ``hold_out_<style>_train.txt`` and ``hold_out_<style>_test.txt``, one key a line.
    """
    ordered, lists = sorted(keys), dict[str, bytes]()
    for held_out in sorted({*map(style_in, ordered)}):
        for part in ("test", "train"):
            own = [key for key in ordered if (style_in(key) == held_out) == (part == "test")]
            lists[f"hold_out_{held_out}_{part}.txt"] = "".join(f"{key}\n" for key in own).encode()
    return lists


def count_icons(keys: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return the number of `keys` by class and style."""
    ordered, counts = sorted(keys), dict[str, dict[str, int]]()
    none_yet = dict.fromkeys(sorted({*map(style_in, ordered)}), 0)
    for key in ordered:
        counts.setdefault(key.partition("/")[0], none_yet.copy())[style_in(key)] += 1
    return counts
