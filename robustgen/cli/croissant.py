"""croissant: complete the Croissant description of a finished set."""

from pathlib import Path

import click

from robustgen.cli.app import Section, command, echo


@command("croissant", Section.MAKE)
@click.argument("directory")
@click.option(
    "--rai",
    "fields",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="YAML or JSON file of fields that only you know: creator, url, datePublished, rai:dataBiases, ...",
)
def croissant(directory: str, fields: Path | None) -> None:
    """Complete croissant.json.

    Every finished set has this description, which NeurIPS requires and hubs read. Before you publish the set,
    add the fields that only you know.
    """
    from robustgen.inspection.publishing import describe_set
    from robustgen.settings.config import read_yaml

    described = describe_set(directory, read_yaml(fields) if fields else {})
    missing = [name for name in ("url", "creator", "datePublished") if name not in described]
    echo(f"{directory}/croissant.json written" + f"; missing fields: {', '.join(missing)}" * bool(missing))
