"""Commands on a finished set: verify, report and croissant."""

import json
import sys
from dataclasses import asdict

from robustgen.cli.app import command, echo, echo_text
from robustgen.cli.flags import takes
from robustgen.display.text import format_path, format_size
from robustgen.settings.inspecting import Describing, Reporting, Verifying


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


@command("report")
@takes(options=Reporting)
def report(options: Reporting) -> None:
    """Write an HTML page about a finished set.

    DIRECTORY is an output of make-c or make-p, or a published set, as a path or a URL.

    Examples
    --------
    robustgen report out/imagenet-c
    robustgen report out/imagenet-p --images 5 --output report.html
    """
    from robustgen.lab.inspection.report import write_report

    written, size = write_report(options.directory, options.output, options.images)
    echo(f"{format_path(written)}, {format_size(size)}")


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
