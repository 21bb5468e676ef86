"""Sets with one corrupted copy of each image, whose corruption and severity are drawn."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from robustgen.pixels.benchmarks.kinds import CLEAN, CLEAN_VARIANT, Variant
from robustgen.pixels.imaging.arrays import Decoded, Rgb
from robustgen.sets.dataset.recipes import CorruptionRecipe, Recipe, item_rng
from robustgen.sets.formats.base import SetListing, Writer

MIXED: Final = Variant("mixed", 0, "mixed")
"""The variant of the corrupted copies."""


@dataclass(frozen=True)
class MixedRecipe(Recipe[Rgb]):
    """Recipe of one corrupted copy of each image: the image that a C set of the same seed has.

    Attributes
    ----------
    whole : CorruptionRecipe
        Recipe of the C set.
    drawn : tuple of Variant
        Variants that the copies are drawn from, with equal probability.
    """

    whole: CorruptionRecipe
    drawn: tuple[Variant, ...]

    title = "ImageNet-C, mixed"

    @property
    def keeps_size(self) -> bool:
        """Return whether the edition keeps the size of images."""
        return self.whole.keeps_size

    def make_ready(self) -> None:
        """Store what the ingredients need where worker processes find it."""
        self.whole.make_ready()

    def prepare(self, loaded: Decoded) -> Rgb:
        """Return the image as the edition prepares it."""
        return self.whole.prepare(loaded)

    def draw(self, key: str) -> Variant:
        """Return the variant of the image `key`, which depends on no other image."""
        rng = item_rng(self.whole.seed, "c", self.whole.edition, MIXED.name, MIXED.level, key)
        return self.drawn[rng.integers(len(self.drawn))]

    def make(self, variant: Variant, key: str, prepared: Rgb, shared: dict[str, Any] | None = None) -> Rgb:
        """Return the clean image or its corrupted copy: uint8 (H, W, 3)."""
        own = variant if variant.name == CLEAN else self.draw(key)
        return self.whole.make(own, key, prepared, shared)

    def settings(self, variants: tuple[Variant, ...]) -> dict[str, Any]:
        """Return the settings of the C set, and the corruptions and severities that are drawn."""
        levels = groupby(self.drawn, lambda variant: variant.name)
        drawn = ", ".join(f"{name} {' '.join(str(each.level) for each in own)}" for name, own in levels)
        return self.whole.settings(self.drawn) | {"kind": "mixed", "mixed": drawn}

    def list_companions(self, list_all: Callable[[], SetListing], writer: Writer) -> Mapping[str, bytes]:
        """Return the list of the copies, ``mixed.jsonl``: JSON lines in the order of the source."""
        listing = list_all()
        failed = {key for key, folder in listing.failed() if folder in ("", MIXED.folder)}
        lines = (self._describe(key, listing, writer) for key in listing.keys if key not in failed)
        return {f"{MIXED.folder}.jsonl": "".join(f"{json.dumps(line)}\n" for line in lines).encode()}

    def _describe(self, key: str, listing: SetListing, writer: Writer) -> dict[str, Any]:
        drawn = self.draw(key)
        return {
            "file": MIXED.path(writer.output_name(key) or key),
            "key": key,
            "corruption": drawn.name,
            "severity": drawn.level,
            "label": listing.label(key),
        }


def mix(recipe: CorruptionRecipe, variants: tuple[Variant, ...]) -> tuple[MixedRecipe, tuple[Variant, ...]]:
    """Return the recipe of one copy of each image, drawn from `variants`, and the variants of the set.

    The order of the corruptions decides nothing.
    """
    drawn = tuple(sorted(variant for variant in variants if variant != CLEAN_VARIANT))
    clean = (CLEAN_VARIANT,) if CLEAN_VARIANT in variants else ()
    return MixedRecipe(recipe, drawn), (*clean, MIXED)
