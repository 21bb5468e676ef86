"""make-augmix: AugMix copies of training images."""

from robustgen.cli.app import command
from robustgen.cli.execution import PlannedSet
from robustgen.cli.flags import takes
from robustgen.related.settings import AugMixChoices
from robustgen.settings.fields import Part
from robustgen.settings.running import Running


@command("make-augmix")
@takes(
    parts=Part,
    says={"output": "output folder or URL; default out/{dataset}-augmix, named after the source"},
    choices=AugMixChoices,
    running=Running,
)
def make_augmix(choices: AugMixChoices, running: Running) -> PlannedSet:
    """Write AugMix copies of training images.

    Examples
    --------
    robustgen make-augmix --source train --output train-augmix
    robustgen make-augmix --source train --output train-augmix --copies 3 --operations all
    """
    choices.require_source()
    from robustgen.related import training_copies

    training_copies.refuse_scored_source(choices)
    return PlannedSet(training_copies.plan_copies(choices), running)
