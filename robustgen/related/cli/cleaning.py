"""preprocess: cleaning of whole sets."""

from robustgen.cli.app import Command, group
from robustgen.cli.execution import PlannedSet
from robustgen.cli.flags import takes
from robustgen.related.settings import CleaningChoices, CleaningCommand
from robustgen.settings.fields import Part
from robustgen.settings.running import Running


@group("preprocess")
def preprocess() -> None:
    """Clean a data set by CLAHE.

    Examples
    --------
    robustgen preprocess clahe out/imagenet-c out/imagenet-c-clahe
    robustgen preprocess clahe --help
    """


@preprocess.command(cls=Command)
@takes(
    parts=(Part.OPERATIONS, Part.ENCODING, Part.JOBS),
    also=("config", "limit"),
    places=CleaningCommand,
    choices=CleaningChoices,
    running=Running,
)
def clahe(places: CleaningCommand, choices: CleaningChoices, running: Running) -> PlannedSet:
    """Apply CLAHE to all images of SRC and write them to DST, under the same names.

    Examples
    --------
    robustgen preprocess clahe out/imagenet-c out/imagenet-c-clahe
    robustgen preprocess clahe photos out/photos-clahe --clip-limit 4 --tiles 16
    """
    from robustgen.related.cleaned_sets import plan_cleaning

    own = {"source": places.source, "output": places.destination}
    return PlannedSet(plan_cleaning(choices.model_copy(update=own)), running)
