"""Work units: independent parts of a plan."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from robustgen.pixels.benchmarks.kinds import Variant

_FEWEST_UNITS, _MOST_UNITS, _MOST_IMAGES = 64, 4096, 16


@dataclass(frozen=True)
class WorkUnit:
    """Some images of a plan times some variants.

    Attributes
    ----------
    number : int
        Position among the units of the plan.
    start : int
        Number of the first image in the plan; images of complete units are consecutive.
    keys : tuple of str
    variants : tuple of Variant
    expected : mapping of str to str
        Key to the required identity of the source image, if other outputs of it exist.
    shared : str
        Properties of the whole set that determine the bytes of its files.
    """

    number: int
    start: int
    keys: tuple[str, ...]
    variants: tuple[Variant, ...]
    expected: Mapping[str, str] = field(default_factory=dict)
    shared: str = ""

    @property
    def name(self) -> str:
        """Return the name of the record, which depends only on images and variants, whatever the plan."""
        return digest_content(self.keys, (variant.folder for variant in self.variants), self.shared)

    @property
    def folders(self) -> frozenset[str]:
        """Return the folders of the variants."""
        return frozenset(variant.folder for variant in self.variants)

    def count_outputs(self) -> int:
        """Return the number of outputs of the unit."""
        return len(self.keys) * len(self.variants)


def digest_content(keys: Iterable[str], folders: Iterable[str], shared: str) -> str:
    """Return 16 hexadecimal digits that stand for these images and variants, and a unit's `shared`."""
    parts = [*keys, "", *folders, ""]
    parts += ["", shared] if shared else []
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def cut_by_images(
    keys: Sequence[str], variants: tuple[Variant, ...], *, is_slow: bool = False
) -> Iterator[WorkUnit]:
    """Cut a plan with separate files for each image: a few images and all variants per unit.

    If encoding `is_slow`, the variants of few images are divided, so that all cores have work.
    """
    size = max(1, min(_MOST_IMAGES, len(keys) // _FEWEST_UNITS), -(-len(keys) // _MOST_UNITS))
    parts = -(-_FEWEST_UNITS // max(1, len(keys))) if is_slow else 1
    some = max(1, -(-len(variants) // parts))
    groups = [variants[start : start + some] for start in range(0, len(variants), some)]
    return cut(keys, size, groups or [variants])


def cut(
    keys: Sequence[str], size: int, groups: Sequence[tuple[Variant, ...]], shared: str = ""
) -> Iterator[WorkUnit]:
    """Cut a plan into units of `size` images and one of the `groups` of variants."""
    number = 0
    for start in range(0, len(keys), size):
        for variants in groups:
            yield WorkUnit(number, start, tuple(keys[start : start + size]), variants, shared=shared)
            number += 1
