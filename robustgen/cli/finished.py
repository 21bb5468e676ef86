"""Commands on a finished set: verify, report, croissant and compare."""

import json
import sys
from dataclasses import asdict

from robustgen.cli.app import command, echo, echo_text, echo_verdict, table_width
from robustgen.cli.flags import takes
from robustgen.display.text import format_path, format_size
from robustgen.settings.inspecting import Comparing, Describing, Reporting, Verifying


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

    how = options.model_dump(include={"jobs", "deep", "source", "against"})
    findings = verifying.verify(options.directory, **how)
    status = 1 if findings.problems or (findings.failed and not options.allow_failures) else 0
    if options.format == "json":
        echo_text(json.dumps(asdict(findings), indent=1))
        sys.exit(status)
    for finding in findings.problems:
        echo(f"{finding.fault:9s} {finding.path}{finding.detail}")
    if findings.failed:
        shown = ", ".join(map(repr, findings.failed[:5])) + ", ..." * (len(findings.failed) > 5)
        images = format_count(findings.images, findings.noun)
        echo(f"complete but for {len(findings.failed)} of {images}: {shown}; see errors.jsonl")
    remade = f"{format_count(findings.remade, findings.noun)} regenerated, " * bool(options.deep)
    echo(
        f"{format_count(findings.checked, 'file')} checked, {remade}"
        f"{format_count(len(findings.problems), 'finding')}; digest {findings.digest}"
    )
    if findings.known_as:
        echo(findings.known_as)
    for note in findings.notes:
        echo(note, err=True)
    for path, title in findings.published.items():
        echo(f"{path}: the file of {title} on Zenodo")
    sys.exit(status)


@command("report")
@takes(options=Reporting)
def report(options: Reporting) -> None:
    """Write a page about a finished set.

    DIRECTORY is an output of make-c or make-p, or a published set, as a path or a URL.

    Examples
    --------
    robustgen report out/imagenet-c
    robustgen report out/imagenet-p --images 5 --output report.html
    """
    from robustgen.lab.inspection.report import write_report

    written = write_report(options)
    echo(f"{format_path(written)}, {format_size(written.stat().st_size)}")


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
    from robustgen.lab.inspection.verify import describe_set
    from robustgen.settings.yaml_files import read_yaml

    described = describe_set(options.directory, read_yaml(options.rai) if options.rai else {})
    missing = [name for name in ("url", "creator", "datePublished") if name not in described]
    fields = f"; missing fields: {', '.join(missing)}" * bool(missing)
    echo(f"{options.directory}/croissant.json written{fields}")


@command("compare")
@takes(options=Comparing)
def compare(options: Comparing) -> None:
    """Test whether two sets are equivalent.

    A and B are two C or P sets of the same images, created by robustgen or published, as paths or URLs.
    Exits with 0 if they are identical or equivalent within the margin and nothing is missing, otherwise 1.

    Examples
    --------
    robustgen compare out/imagenet-c /data/ImageNet-C
    robustgen compare out/imagenet-c /data/ImageNet-C --output compare.html
    """
    from robustgen.display.html import check_page_path
    from robustgen.files.storage import is_url, save
    from robustgen.lab.inspection.compare.comparison import compare_sets
    from robustgen.lab.inspection.compare.report import format_comparison, render_comparison

    if options.output:
        check_page_path(options.output, *(each for each in (options.a, options.b) if not is_url(each)))
    found = compare_sets(options)
    echo_text(format_comparison(found, options.format, table_width()))
    if options.format == "table":
        echo_verdict(f"Verdict: {found.verdict}", good=found.equivalent)
    if options.output:
        save(options.output, render_comparison(found), f"--output {options.output}")
        echo(format_path(options.output), err=True)
    sys.exit(0 if found.equivalent else 1)
