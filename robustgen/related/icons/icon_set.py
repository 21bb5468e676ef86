"""A set of icons: the pictures of several styles on white, at one size, sorted into classes."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, features

from robustgen.errors import ConfigError, ImageError, OutputError, SourceError, UnknownNameError
from robustgen.files.storage import Store, open_store
from robustgen.files.storage.host import read_regular
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.geometry import resize
from robustgen.related.icons.choosing import (
    Choice,
    Sifted,
    choose,
    count_icons,
    drop_duplicates,
    read_classes,
    split_files,
    style_in,
)
from robustgen.related.icons.packages import Style, read_picture, read_style
from robustgen.related.settings import IconChoices
from robustgen.sets.dataset.plan import Plan, assemble_plan
from robustgen.sets.dataset.recipes import Recipe
from robustgen.sets.formats.base import SetListing
from robustgen.sets.formats.encoders import LosslessEncoder
from robustgen.sets.formats.trees import TreeWriter
from robustgen.sets.sources.base import Source

CITATION = (
    "Dan Hendrycks and Thomas G. Dietterich: Benchmarks for Neural Network Robustness to Common Distortions "
    "and Styles. 2018."
)
VARIANT = Variant("icons", 0, "")


# --- pictures to icons ---------------------------------------------------------------------------


def compose(picture: Image.Image) -> Rgb:
    """Return `picture`, of mode RGBA, centred in the smallest square that contains it, on white.

    Returns
    -------
    uint8 ndarray of shape (side, side, 3)
    """
    side = max(picture.size)
    square = Image.new("RGBA", (side, side), "white")
    place = (side - picture.width) // 2, (side - picture.height) // 2
    square.alpha_composite(picture, place)
    return np.array(square.convert("RGB"))


def resize_icon(square: Rgb, size: int) -> Rgb:
    """Return a composed square at `size` by `size` pixels, by Lanczos's filter.

    The composed square has no transparent pixels, whose hidden colours could bleed into edges.
    """
    return resize(square, size, size, Image.Resampling.LANCZOS)


class EmojiPackages(Source):
    """The chosen pictures of several styles, composed on white.

    Keys are the names of the icons, ``<class>/<style>_<code points>.png``.

    Parameters
    ----------
    styles : sequence of Style
    choice : Choice
    size : int
        Side of the icons; pictures that are equal at that size are duplicates.
    """

    def __init__(self, styles: Sequence[Style], choice: Choice, size: int) -> None:
        super().__init__(str(styles[0].root))
        self._icon_size = size
        self._roots = {style.name: style.root for style in styles}
        self._pictures = dict(choice.pictures)

    @cached_property
    def sifted(self) -> Sifted:
        """Return the pictures to use, and the reasons why others are not used."""
        return drop_duplicates(
            self._pictures, lambda key: resize_icon(self.load(key), self._icon_size).tobytes()
        )

    def keys(self) -> tuple[str, ...]:
        """Return the names of all icons, sorted."""
        if not self.sifted.keys:
            raise SourceError(f"{self.location}: none of the pictures can be read")
        return self.sifted.keys

    def refused(self) -> dict[str, str]:
        """Return the pictures that cannot be read, with reasons."""
        return dict(self.sifted.unreadable)

    def load(self, key: str) -> Rgb:
        """Return one picture at its own size on white, uint8 (side, side, 3)."""
        style, path = self._picture(key)
        return compose(read_picture(path, self._roots[style]))

    def read(self, key: str) -> tuple[Rgb, str]:
        """Return one picture on white, and the identity of its file."""
        pixels = self.load(key)
        return pixels, hashlib.sha256(read_regular(self._picture(key)[1])).hexdigest()[:16]

    def size(self, key: str) -> int:
        """Return the bytes of the picture's file."""
        path = self._picture(key)[1]
        try:
            return path.stat().st_size
        except OSError as error:
            raise ImageError(str(error.strerror), key) from error

    def _picture(self, key: str) -> tuple[str, Path]:
        try:
            return self._pictures[key]
        except KeyError:
            raise ImageError("no such icon", key) from None

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Return the names of the classes that have icons."""
        return tuple(sorted({key.partition("/")[0] for key in self.keys()}))

    def label(self, key: str) -> int:
        """Return the index of the class."""
        self._picture(key)
        return self.classes.index(key.partition("/")[0])


@dataclass(frozen=True)
class IconRecipe(Recipe[Rgb]):
    """Settings that turn a composed picture into an icon.

    Attributes
    ----------
    size : int
        Width and height in pixels.
    chosen : dict
        Other values that decide the set, for its settings.
    """

    size: int
    chosen: dict[str, Any] = field(default_factory=dict)

    title = "icons in the manner of Icons-50"
    noun = "icon"
    # An icon takes milliseconds, and each job contains the list of all pictures.
    images_at_once = 16

    def make(self, variant: Variant, key: str, prepared: Rgb, shared: dict[str, Any] | None = None) -> Rgb:
        """Return the icon, uint8 (size, size, 3)."""
        return resize_icon(prepared, self.size)

    def settings(self, variants: tuple[Variant, ...]) -> dict[str, Any]:
        """Return size, styles and classes."""
        return {
            "recipe": "icons",
            "size": self.size,
            "libwebp": str(features.version("webp")),
            "parameters": {variant.folder: {} for variant in variants},
        } | self.chosen


class IconTree(TreeWriter):
    """Writer of `<class>/<style>_<code points>.png`, and the split files."""

    def list_companions(self, listing: SetListing, folders: Sequence[str]) -> Mapping[str, bytes]:
        """Return the split files."""
        return split_files(listing.keys)


# --- the plan ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IconPlan(Plan):
    """The plan of a set of icons.

    Attributes
    ----------
    styles : tuple of Style
    choice : Choice
    """

    source: EmojiPackages
    styles: tuple[Style, ...] = field(kw_only=True)
    choice: Choice = field(kw_only=True)

    def manifest(self) -> dict[str, Any]:
        """Return the content of `dataset.json` besides settings and counts."""
        manifest = super().manifest()
        # A run with another source, or only another licence, writes the description again.
        manifest["source"] |= {"styles": {style.name: style.describe() for style in self.styles}}
        return manifest | {
            "icons": count_icons(self.keys),
            "lacking": {style: list(emoji) for style, emoji in self.choice.lacking.items()},
            "left_out": {name: list(emoji) for name, emoji in self.choice.left_out.items()},
            "duplicates": dict(self.source.sifted.duplicates),
        }


def plan_icons(choices: IconChoices) -> IconPlan:
    """Return the plan of a set of icons.

    Raises
    ------
    ConfigError, SourceError, OutputError
        The settings or the sources are invalid; the message names the flag or the folder.
    """
    for name in choices.licence.keys() - choices.style.keys():
        raise ConfigError(f"--licence: {UnknownNameError('style', name, choices.style)}")
    classes = read_classes()
    styles = tuple(_style(name, Path(folder), choices) for name, folder in choices.style.items())
    choice = choose(classes, styles, per_class=choices.per_class)
    store = open_store(choices.output)
    _check_styles(styles, choice, store)
    source = EmojiPackages(styles, choice, choices.size)
    left = {*map(style_in, (*source.sifted.keys, *source.sifted.unreadable))}
    for style in styles:
        if style.name not in left:
            raise SourceError(f"--style {style.name}: all of its icons are those of another style")
    recipe = IconRecipe(choices.size, _settings(choices, classes, source, styles))
    writer, keys = IconTree(LosslessEncoder(".png")), source.keys()
    each = "; ".join(f"{style.name}: {style.licence}" for style in styles)
    terms = f"The icons remain under the licences of their pictures: {each}"
    general = assemble_plan(
        recipe, source, keys, (VARIANT,), writer, store, choices, citation=CITATION, licence=(terms,)
    )
    own = {each.name: getattr(general, each.name) for each in dataclasses.fields(general)}
    return IconPlan(**own, styles=styles, choice=choice)


def _style(name: str, folder: Path, choices: IconChoices) -> Style:
    try:
        return read_style(name, folder, choices.licence.get(name))
    except SourceError as error:
        raise SourceError(f"--style {name}: {error}") from error


def _check_styles(styles: Sequence[Style], choice: Choice, store: Store) -> None:
    owners: dict[Path, str] = {}
    having = {style for style, _ in choice.pictures.values()}
    for style in styles:
        root = style.root.resolve()
        if owners.setdefault(root, style.name) != style.name:
            raise SourceError(f"--style {style.name}: the same folder as {owners[root]}")
        if style.name not in having:
            raise SourceError(f"--style {style.name}: {style.root} has none of the chosen emoji")
        if f"{store.location}/".startswith(f"{root}/"):
            raise OutputError(f"output {store.location} is inside the source {style.root}")


def _settings(
    choices: IconChoices, classes: dict[str, tuple[str, ...]], source: EmojiPackages, styles: Sequence[Style]
) -> dict[str, Any]:
    # An unreadable picture counts, because it may be repaired.
    icons = sorted((*source.sifted.keys, *source.sifted.unreadable))
    versions = [
        f"{style.name}: {style.package or 'a folder'} {style.version or ''}".strip() for style in styles
    ]
    return {
        "per_class": choices.per_class,
        "styles": versions,
        "classes": f"{len(classes)} with the digest {_digest(classes)}",
        "icons": f"{len(icons)} with the digest {_digest(icons)}",
    }


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]
