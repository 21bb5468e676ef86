"""preprocess: CLAHE for whole sets."""

from robustgen.cli.app import Command, group
from robustgen.cli.execution import WrittenSet
from robustgen.cli.flags import takes
from robustgen.settings.related import ClaheChoices, ClaheCommand
from robustgen.settings.running import Running


@group("preprocess")
def preprocess() -> None:
    """Apply CLAHE to a data set.

    Examples
    --------
    robustgen preprocess clahe out/imagenet-c out/imagenet-c-clahe
    robustgen preprocess clahe --help
    """


@preprocess.command(cls=Command)
@takes(
    places=ClaheCommand,
    choices=ClaheChoices,
    running=Running,
    hide=("_", "source", "split", "labels", "levels", "sample", "subset", "seed", "output"),
)
def clahe(places: ClaheCommand, choices: ClaheChoices, running: Running) -> WrittenSet:
    """Apply CLAHE to all images of SRC and write them to DST, under the same names.

    Examples
    --------
    robustgen preprocess clahe out/imagenet-c out/imagenet-c-clahe
    robustgen preprocess clahe photos out/photos-clahe --clip-limit 4 --tiles 16
    """
    from robustgen.lab.related.clahe_sets import plan_clahe

    own = {"source": places.source, "output": places.destination}
    return WrittenSet(plan_clahe(choices.model_copy(update=own)), running)
