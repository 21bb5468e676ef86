"""The two benchmarks and the arms of their sets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from robustgen.corruptions import CORRUPTIONS
from robustgen.perturbations import PERTURBATIONS
from robustgen.registry import Operation

Kind = Literal["c", "p"]


CLEAN = "clean"


TITLES: Mapping[Kind, str] = {"c": "ImageNet-C", "p": "ImageNet-P"}
"""What `dataset.json` calls the two kinds of set."""


@dataclass(frozen=True, order=True)
class Arm:
    """One operation at one level: a folder of the output, or a stretch of an array.

    Attributes
    ----------
    name : str
        Corruption or perturbation, or ``"clean"`` for the prepared image itself.
    level : int
        Severity or difficulty; 0 for the clean arm.
    folder : str
        Where its files go below the output, for instance ``"fog/3"`` or ``"shot_noise_2"``; empty
        where they go to the output itself.
    """

    name: str
    level: int
    folder: str

    def path(self, name: str) -> str:
        """Where the file called `name` goes, POSIX, below the output."""
        return f"{self.folder}/{name}" if self.folder else name


def operations(kind: Kind) -> Mapping[str, Operation]:
    """The corruptions of a C set, or the perturbations of a P set, by name."""
    return CORRUPTIONS if kind == "c" else PERTURBATIONS


def corruption_arms(names: tuple[str, ...], severities: tuple[int, ...], clean: bool) -> tuple[Arm, ...]:
    """The arms of a C set: the clean one first, then every severity of every corruption."""
    arms = [Arm(name, level, f"{name}/{level}") for name in names for level in severities]
    return tuple([Arm(CLEAN, 0, CLEAN)] * clean + arms)


def perturbation_arms(names: tuple[str, ...], difficulties: tuple[int, ...]) -> tuple[Arm, ...]:
    """The arms of a P set; where there is no such difficulty, the one set of frames there is."""
    arms = []
    for name in names:
        levels = [level for level in difficulties if level in PERTURBATIONS[name].levels] or [1]
        arms += [Arm(name, level, name if level == 1 else f"{name}_{level}") for level in levels]
    return tuple(arms)


def every_arm(kind: Kind) -> tuple[Arm, ...]:
    """All arms that a C or a P set can have."""
    if kind == "c":
        return corruption_arms(tuple(CORRUPTIONS), (1, 2, 3, 4, 5), clean=True)
    return perturbation_arms(tuple(PERTURBATIONS), (1, 2, 3))
