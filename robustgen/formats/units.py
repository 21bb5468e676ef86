"""Work units: the parts of a plan that can be made one without another."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from robustgen.benchmark import Variant

_FEWEST_UNITS, _MOST_UNITS, _MOST_IMAGES = 64, 4096, 16


@dataclass(frozen=True)
class WorkUnit:
    """Some images of a plan times some variants.

    Attributes
    ----------
    number : int
        Its place among the units of the plan.
    start : int
        Number of the first image in the plan; images of whole units are consecutive.
    keys : tuple of str
    variants : tuple of Variant
    lacking : mapping of str to frozenset of str
        Key to the folders of the variants to make, if those are not all.
    expected : mapping of str to str
        Key to the identity that the source image must have, where other outputs of it exist.
    shared : str
        What its files say of the whole set, where that decides their bytes too.
    """

    number: int
    start: int
    keys: tuple[str, ...]
    variants: tuple[Variant, ...]
    lacking: Mapping[str, frozenset[str]] = field(default_factory=dict)
    expected: Mapping[str, str] = field(default_factory=dict)
    shared: str = ""

    @property
    def name(self) -> str:
        """Name of its record: the same for the same images and variants, whoever asks."""
        lacking = [f"{key}:{','.join(sorted(folders))}" for key, folders in sorted(self.lacking.items())]
        parts = [*self.keys, "", *(variant.folder for variant in self.variants), "", *lacking]
        parts += ["", self.shared] if self.shared else []
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
        return f"{self.number:06d}-{digest[:16]}"

    def count_outputs(self) -> int:
        """Return how many outputs it makes."""
        return sum(map(self.count_wanted, self.keys))

    def wants(self, key: str, variant: Variant) -> bool:
        """Return whether `variant` is to be made of the image `key`."""
        return not self.lacking or key not in self.lacking or variant.folder in self.lacking[key]

    def count_wanted(self, key: str) -> int:
        """Return how many variants are to be made of the image `key`."""
        return len(self.lacking.get(key, self.variants))


def cut_by_images(keys: Sequence[str], variants: tuple[Variant, ...]) -> Iterator[WorkUnit]:
    """Cut a plan whose images have files of their own: a few images and all variants to a unit."""
    size = max(1, min(_MOST_IMAGES, len(keys) // _FEWEST_UNITS), -(-len(keys) // _MOST_UNITS))
    return cut(keys, size, [variants])


def cut(keys: Sequence[str], size: int, groups: Sequence[tuple[Variant, ...]]) -> Iterator[WorkUnit]:
    """Cut a plan into units of `size` images times each of the `groups` of variants."""
    number = 0
    for start in range(0, len(keys), size):
        for variants in groups:
            yield WorkUnit(number, start, tuple(keys[start : start + size]), variants)
            number += 1
