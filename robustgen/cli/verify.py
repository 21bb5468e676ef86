"""verify: check a finished output."""

import sys
from pathlib import Path

import click

from robustgen.cli.app import Section, command, echo
from robustgen.cli.options import PATH, threads_option
from robustgen.errors import ConfigError


@command("verify", Section.MAKE)
@click.argument("directory", type=PATH)
@threads_option
@click.option(
    "--deep", metavar="N", help="Make N images (or all) anew from the source and compare the bytes."
)
@click.option("--source", type=PATH, help="Where the source is now, for --deep, if it has moved.")
@click.option("--against", metavar="OTHER", help="Compare with another output, or with a dataset digest.")
def verify(
    directory: Path, jobs: int | None, deep: str | None, source: Path | None, against: str | None
) -> None:
    """Check every file of an output.

    Against its SHA256SUMS, that is; the manifest of merged shards is completed.
    """
    from robustgen import verify as verifying
    from robustgen.display.text import format_count

    if source and not deep:
        raise ConfigError("--source: tells where the source is for --deep")
    findings = verifying.verify(directory, jobs=jobs, deep=deep, source=source, against=against)
    for finding in findings.problems:
        echo(f"{finding.kind:9s} {finding.path}{finding.detail}")
    remade = f"{format_count(findings.remade, 'image')} made anew, " * bool(deep)
    echo(
        f"{format_count(findings.checked, 'file')} checked, {remade}"
        f"{format_count(len(findings.problems), 'finding')}; digest {findings.digest}"
    )
    sys.exit(1 if findings.problems else 0)
