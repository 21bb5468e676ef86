"""verify: check a finished output."""

import sys
from pathlib import Path

import click

from robustgen.cli.app import Section, command, echo
from robustgen.cli.options import PATH, threads_option


@command("verify", Section.MAKE)
@click.argument("directory", type=PATH)
@threads_option
@click.option(
    "--deep", metavar="N", help="Make N images (or all) anew from the source and compare the bytes."
)
@click.option("--against", metavar="OTHER", help="Compare with another output, or with a dataset digest.")
def verify(directory: Path, jobs: int | None, deep: str | None, against: str | None) -> None:
    """Check every file of an output.

    Against its SHA256SUMS, that is; the manifest of merged shards is completed.
    """
    from robustgen import verify as verifying

    findings = verifying.verify(directory, jobs=jobs, deep=deep, against=against)
    for finding in findings.problems:
        echo(f"{finding.kind:9s} {finding.path}{finding.detail}")
    echo(f"{findings.checked} files checked, {len(findings.problems)} findings; digest {findings.digest}")
    sys.exit(1 if findings.problems else 0)
