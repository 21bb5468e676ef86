"""verify: a check of a finished output."""

import json
import sys
from dataclasses import asdict

import click

from robustgen.cli.app import Section, command, echo, echo_text
from robustgen.cli.options import threads_option
from robustgen.errors import ConfigError


@command("verify", Section.MAKE)
@click.argument("directory")
@threads_option
@click.option(
    "--deep", metavar="N", help="Regenerate N images (or all) from the source and compare the bytes."
)
@click.option(
    "--source", metavar="PATH", help="Path or URL of the source, for --deep, if it or the set has moved."
)
@click.option("--against", metavar="OTHER", help="Compare with another output, or with a dataset digest.")
@click.option("--allow-failures", is_flag=True, help="Exit with status 0 if only failed images are missing.")
@click.option("--json", "as_json", is_flag=True, help="Print all findings and counts as one JSON object.")
def verify(
    directory: str,
    jobs: int | None,
    deep: str | None,
    source: str | None,
    against: str | None,
    allow_failures: bool,
    as_json: bool,
) -> None:
    """Verify checksums.

    Also completes the manifest after merging shards.
    """
    from robustgen.display.text import format_count
    from robustgen.inspection import verify as verifying

    if source and not deep:
        raise ConfigError("--source needs --deep: it is the current location of the source")
    findings = verifying.verify(directory, jobs=jobs, deep=deep, source=source, against=against)
    status = 1 if findings.problems or (findings.failed and not allow_failures) else 0
    if as_json:
        echo_text(json.dumps(asdict(findings), indent=1))
        sys.exit(status)
    for finding in findings.problems:
        echo(f"{finding.kind:9s} {finding.path}{finding.detail}")
    if findings.failed:
        shown = ", ".join(map(repr, findings.failed[:5])) + ", ..." * (len(findings.failed) > 5)
        images = format_count(findings.images, "image")
        echo(f"complete but for {len(findings.failed)} of {images}: {shown}; see errors.jsonl")
    remade = f"{format_count(findings.remade, 'image')} made again, " * bool(deep)
    echo(
        f"{format_count(findings.checked, 'file')} checked, {remade}"
        f"{format_count(len(findings.problems), 'finding')}; digest {findings.digest}"
    )
    if findings.known_as:
        echo(findings.known_as)
    for path, title in findings.published.items():
        echo(f"{path}: the file of {title} on Zenodo")
    sys.exit(status)
