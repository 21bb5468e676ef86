"""verify: a check of a finished output."""

import json
import sys
from dataclasses import asdict

from robustgen.cli.app import command, echo, echo_text
from robustgen.cli.flags import takes
from robustgen.settings.inspecting import Verifying


@command("verify")
@takes(options=Verifying)
def verify(options: Verifying) -> None:
    """Verify checksums.

    Also completes the manifest after merging shards.

    Examples
    --------
    robustgen verify out/imagenet-c
    robustgen verify out/imagenet-c --deep 20
    """
    from robustgen.display.text import format_count
    from robustgen.lab.inspection import verify as verifying

    findings = verifying.verify(
        options.directory,
        jobs=options.jobs,
        deep=options.deep,
        source=options.source,
        against=options.against,
    )
    status = 1 if findings.problems or (findings.failed and not options.allow_failures) else 0
    if options.format == "json":
        echo_text(json.dumps(asdict(findings), indent=1))
        sys.exit(status)
    for finding in findings.problems:
        echo(f"{finding.kind:9s} {finding.path}{finding.detail}")
    if findings.failed:
        shown = ", ".join(map(repr, findings.failed[:5])) + ", ..." * (len(findings.failed) > 5)
        images = format_count(findings.images, "image")
        echo(f"complete but for {len(findings.failed)} of {images}: {shown}; see errors.jsonl")
    remade = f"{format_count(findings.remade, 'image')} regenerated, " * bool(options.deep)
    echo(
        f"{format_count(findings.checked, 'file')} checked, {remade}"
        f"{format_count(len(findings.problems), 'finding')}; digest {findings.digest}"
    )
    if findings.known_as:
        echo(findings.known_as)
    for path, title in findings.published.items():
        echo(f"{path}: the file of {title} on Zenodo")
    sys.exit(status)
