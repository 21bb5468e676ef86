"""Negatives of photographs: the settings, the recipe, the plan and the command."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from robustgen.plugins import (
    Choices,
    Flag,
    Group,
    OriginalEncoder,
    Part,
    Plan,
    PlannedSet,
    Recipe,
    Rgb,
    Running,
    TreeWriter,
    Variant,
    as_rgb,
    assemble_plan,
    command,
    open_chosen_source,
    open_store,
    select_keys,
    takes,
)

OUTPUT = "output folder or URL; default out/{dataset}-negatives"


class NegativeChoices(Choices):
    """Choices of make-negatives."""

    share: Annotated[float, Field(ge=0, le=1), Flag(Group.CONTENT, "X", Part.OPERATIONS, usual=True)] = 1.0
    """share of the negative, 0 to 1; the rest is the image"""


@dataclass(frozen=True)
class Negatives(Recipe[Rgb]):
    """Mixes of an image with its negative."""

    share: float

    title = "Negatives"

    def prepare(self, loaded: Rgb) -> Rgb:
        """Return the pixels of the image."""
        return as_rgb(loaded)

    def make(self, variant: Variant, key: str, prepared: Rgb, shared: dict[str, Any] | None = None) -> Rgb:
        """Mix the image with its negative."""
        mixed = (1 - self.share) * prepared + self.share * (255 - prepared)
        return np.round(mixed).astype(np.uint8)

    def settings(self, variants: tuple[Variant, ...]) -> dict[str, Any]:
        """Return everything that decides the pixels."""
        return {"parameters": {variant.folder: {"share": self.share} for variant in variants}}


def plan_negatives(choices: NegativeChoices) -> Plan:
    """Return the plan of a set of negatives, whose files have the names of the images."""
    source = open_chosen_source(choices)
    variants, writer = (Variant("negative", 0, ""),), TreeWriter(OriginalEncoder(95))
    output = open_store(choices.resolve_output("negatives"))
    return assemble_plan(
        Negatives(choices.share), source, select_keys(source, choices), variants, writer, output, choices
    )


@command("make-negatives")
@takes(parts=Part, says={"output": OUTPUT}, choices=NegativeChoices, running=Running)
def make_negatives(choices: NegativeChoices, running: Running) -> PlannedSet:
    """Write the negatives of images.

    Examples
    --------
    robustgen make-negatives --source photos --output negatives
    robustgen make-negatives --source photos --output negatives --share 0.5
    """
    choices.require_source()
    return PlannedSet(plan_negatives(choices), running)
