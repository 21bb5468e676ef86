"""croissant: complete the Croissant description of a finished set."""

from robustgen.cli.app import command, echo
from robustgen.cli.flags import takes
from robustgen.settings.inspecting import Describing


@command("croissant")
@takes(options=Describing)
def croissant(options: Describing) -> None:
    """Complete croissant.json.

    Every finished set has this description, which NeurIPS requires and hubs read. Before you publish the set,
    add the fields that only you know.

    Examples
    --------
    robustgen croissant out/imagenet-c --rai fields.yaml
    robustgen croissant s3://bucket/imagenet-c
    """
    from robustgen.lab.inspection.publishing import describe_set
    from robustgen.settings.yaml_files import read_yaml

    described = describe_set(options.directory, read_yaml(options.rai) if options.rai else {})
    missing = [name for name in ("url", "creator", "datePublished") if name not in described]
    fields = f"; missing fields: {', '.join(missing)}" * bool(missing)
    echo(f"{options.directory}/croissant.json written{fields}")
