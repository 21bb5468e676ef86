"""make-augmix: AugMix copies of a training set."""

from robustgen.cli.app import command
from robustgen.cli.execution import WrittenSet
from robustgen.cli.flags import takes
from robustgen.settings.related import AugMixChoices
from robustgen.settings.running import Running


@command("make-augmix")
@takes(
    says={"output": "output folder or URL; default out/{dataset}-augmix, named after the source"},
    choices=AugMixChoices,
    running=Running,
)
def make_augmix(choices: AugMixChoices, running: Running) -> WrittenSet:
    """Write AugMix copies of training images.

    Examples
    --------
    robustgen make-augmix --source train --output train-augmix
    robustgen make-augmix --source train --output train-augmix --copies 3 --operations all
    """
    choices.require_source()
    from robustgen.lab.related.augmentation import training_copies

    training_copies.refuse_scored_source(choices)
    return WrittenSet(training_copies.plan_copies(choices), running)
