"""verify and list."""

import sys
from pathlib import Path

import click

from robustgen.cli.group import main


@main.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--jobs", type=click.IntRange(1), help="Threads; default all cores.")
@click.option(
    "--deep", metavar="N", help="Make N images (or all) anew from the source and compare the bytes."
)
@click.option("--against", metavar="OTHER", help="Compare with another output, or with a dataset digest.")
def verify(directory: Path, jobs: int | None, deep: str | None, against: str | None) -> None:
    """Check every file of an output against its SHA256SUMS; complete the manifest of merged shards."""
    from robustgen import verify as verifying

    findings = verifying.verify(directory, jobs=jobs, deep=deep, against=against)
    for finding in findings.problems:
        click.echo(f"{finding.kind:9s} {finding.path}{finding.detail}")
    click.echo(
        f"{findings.checked} files checked, {len(findings.problems)} findings; digest {findings.digest}"
    )
    sys.exit(1 if findings.problems else 0)


@main.command("list")
@click.argument("name", required=False)
def list_(name: str | None) -> None:
    """List corruptions, perturbations, editions and data sets, or the parameters of one NAME."""
    from robustgen.cli import listing

    click.echo(listing.parameters(name) if name else listing.overview())
