"""preprocess: cleaning of whole sets."""

from collections.abc import Callable
from typing import Any

from robustgen.cli.app import Command, group
from robustgen.cli.execution import PlannedSet
from robustgen.cli.flags import takes
from robustgen.related.settings import (
    ClaheChoices,
    CleaningChoices,
    CleaningCommand,
    DenoiseChoices,
    MedianChoices,
)
from robustgen.settings.fields import Part
from robustgen.settings.running import Running


@group("preprocess")
def preprocess() -> None:
    """Clean a data set: CLAHE, non-local means, median filter.

    Examples
    --------
    robustgen preprocess clahe out/imagenet-c out/imagenet-c-clahe
    robustgen preprocess denoise --help
    """


def _takes(choices: type[CleaningChoices]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    parts = (Part.OPERATIONS, Part.ENCODING, Part.JOBS)
    also = ("config", "limit")
    return takes(parts=parts, also=also, places=CleaningCommand, choices=choices, running=Running)


def _plan(places: CleaningCommand, choices: CleaningChoices, running: Running) -> PlannedSet:
    from robustgen.related.cleaned_sets import plan_cleaning

    own = {"source": places.source, "output": places.destination}
    return PlannedSet(plan_cleaning(choices.model_copy(update=own)), running)


@preprocess.command(cls=Command)
@_takes(ClaheChoices)
def clahe(places: CleaningCommand, choices: ClaheChoices, running: Running) -> PlannedSet:
    """Apply CLAHE to all images of SRC and write them to DST, under the same names.

    Examples
    --------
    robustgen preprocess clahe out/imagenet-c out/imagenet-c-clahe
    robustgen preprocess clahe photos out/photos-clahe --clip-limit 4 --tiles 16
    """
    return _plan(places, choices, running)


@preprocess.command(cls=Command)
@_takes(DenoiseChoices)
def denoise(places: CleaningCommand, choices: DenoiseChoices, running: Running) -> PlannedSet:
    """Denoise all images of SRC by non-local means and write them to DST, under the same names.

    Examples
    --------
    robustgen preprocess denoise out/imagenet-c out/imagenet-c-denoised
    robustgen preprocess denoise photos out/photos-denoised --strength 1 --patch 7
    """
    return _plan(places, choices, running)


@preprocess.command(cls=Command)
@_takes(MedianChoices)
def median(places: CleaningCommand, choices: MedianChoices, running: Running) -> PlannedSet:
    """Apply a median filter to all images of SRC and write them to DST, under the same names.

    Examples
    --------
    robustgen preprocess median out/imagenet-c out/imagenet-c-median
    robustgen preprocess median photos out/photos-median --window 5
    """
    return _plan(places, choices, running)
