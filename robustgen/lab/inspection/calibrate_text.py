"""Results of `robustgen calibrate` as text, JSON, and a YAML config for make-c."""

from collections.abc import Sequence
from typing import Any

from robustgen.display.text import Cell, Table, escape, format_count, format_json, format_tables
from robustgen.lab.inspection.matching import TOLERANCE, Match, Proposal
from robustgen.lab.inspection.strengths import MeasuredStrengths
from robustgen.pixels.benchmarks.kinds import Variant

_RULE = "the 2018 draft's rule: about 0.9 at severity 1, for most corruptions about 0.5 at severity 5"


def format_calibration(calibration: MeasuredStrengths, layout: str, width: int = 0) -> str:
    """Return `calibration` as ``table`` or ``json``; a table fits into `width`, 0 for any."""
    if layout == "json":
        content = {"set": calibration.title, "images": calibration.images, "failures": calibration.failures}
        strengths = [
            {**_name(each.variant), "ms_ssim": each.mean, "std": each.std} for each in calibration.strengths
        ]
        return format_json(content | {"strengths": strengths})
    found = {(each.variant.name, each.variant.level): each.mean for each in calibration.strengths}
    levels = sorted({level for _, level in found})
    rows = [
        [name, *(_cell(found.get((name, level))) for level in levels)]
        for name in dict.fromkeys(name for name, _ in found)
    ]
    images = format_count(calibration.images, "image")
    title = f"MS-SSIM, mean over {images} ({escape(calibration.title)})"
    table = format_tables([Table(title, ["", *map(str, levels)], rows)], width=width)
    return f"{table}\n\n({_RULE})"


def _name(variant: Variant) -> dict[str, Any]:
    return {"corruption": variant.name, "severity": variant.level}


def _cell(value: float | None) -> Cell:
    return Cell(value, form=".3f", factor=1)


# --- a proposal ----------------------------------------------------------------------------------


def format_proposal(proposal: Proposal, layout: str, width: int = 0) -> str:
    """Return `proposal` as ``table`` or ``json``; a table fits into `width`, 0 for any."""
    if layout == "json":
        names = ("dataset", "size", "scales", "images", "enlarged", "seed", "failures")
        matches = [
            {
                **_name(each.variant),
                "target": each.target,
                "reached": each.reached,
                "within": each.gap.slack,
                "closed": each.gap.closed,
                "way": each.way,
                "parameters": each.constants,
            }
            for each in proposal.matches
        ]
        return format_json({name: getattr(proposal, name) for name in names} | {"matches": matches})
    return "\n".join([*_about(proposal), "", _format_matches(proposal.matches, width)])


def _about(proposal: Proposal) -> list[str]:
    missed = [each.variant.folder for each in proposal.matches if not each.gap.closed]
    counted = f"{len(proposal.matches) - len(missed)} of {len(proposal.matches)} targets reached"
    return [
        f"Constants for images of {proposal.size} x {proposal.size} pixels.",
        f"MS-SSIM ({proposal.scales} scales), mean over {format_count(proposal.images, 'image')} of "
        f"{escape(proposal.dataset)}, seed {proposal.seed}:",
        "target at 224 pixels with the published constants, and the value of these at the new size.",
        f"{counted}, within {TOLERANCE} or, for random corruptions, one standard error.",
        *([f"Not reached: {', '.join(missed)}."] * bool(missed)),
        *([f"Enlarged, because they were too small: {proposal.enlarged}."] * bool(proposal.enlarged)),
    ]


def _format_matches(matches: Sequence[Match], width: int = 0) -> str:
    rows = [
        [
            each.variant.folder,
            each.way + ", NOT REACHED" * (not each.gap.closed),
            *map(_cell, (each.target, each.reached, each.gap.slack)),
        ]
        for each in matches
    ]
    return format_tables([Table("", ["", "how", "target", "reached", "within"], rows, names=2)], width=width)


def write_config(proposal: Proposal) -> bytes:
    """Return a config for make-c: the constants under `parameters`, and their origin as comments."""
    lines = [*_about(proposal), "", *_format_matches(proposal.matches).split("\n"), ""]
    lines += ["robustgen make-c --config THIS --source FOLDER uses images unresized (edition folder)."]
    written = [f"# {line}".rstrip() for line in lines] + ["edition: folder", "parameters:"]
    name = ""
    for match in proposal.matches:
        written += [f"  {match.variant.name}:"] * (match.variant.name != name)
        name = match.variant.name
        values = ", ".join(f"{key}: {_number(value)}" for key, value in match.constants.items())
        written.append(f"    {match.variant.level}: {{{values}}}")
    return ("\n".join(written) + "\n").encode("utf-8", "backslashreplace")


def _number(value: float) -> str:
    """Return `value` without an exponent, which YAML would read as text."""
    return str(value) if isinstance(value, int) else f"{value:.10f}".rstrip("0") + "0" * (value == int(value))
