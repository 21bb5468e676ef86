"""A `Calibration` or `Proposal` as text, JSON and CSV, and as a YAML config for make-c."""

from collections.abc import Iterable
from typing import Any

from robustgen.display.text import escape, format_count, format_csv, format_json
from robustgen.inspection.calibrate.matching import TOLERANCE, Match, Proposal
from robustgen.inspection.calibrate.strengths import Calibration, Strength

_RULE = "the 2018 draft's rule: about 0.9 at severity 1, for most corruptions about 0.5 at severity 5"


def format_calibration(calibration: Calibration, layout: str) -> str:
    """Return `calibration` as ``table``, ``json`` or ``csv``."""
    return {"table": _as_text, "json": _as_json, "csv": _as_csv}[layout](calibration)


def _as_text(calibration: Calibration) -> str:
    """Return a line for each corruption, a column for each severity."""
    by_name: dict[str, list[Strength]] = {}
    for each in calibration.strengths:
        by_name.setdefault(each.arm.name, []).append(each)
    levels = sorted({each.arm.level for each in calibration.strengths})
    width = max(map(len, by_name))
    images = format_count(calibration.images, "image")
    lines = [f"MS-SSIM, mean over {images} ({escape(calibration.about)})", ""]
    lines.append(" " * width + "".join(f"{level:8}" for level in levels))
    lines += [f"{name:{width}s}" + "".join(f"{s.mean:8.3f}" for s in row) for name, row in by_name.items()]
    return "\n".join([*lines, "", f"({_RULE})"])


def _as_json(calibration: Calibration) -> str:
    """Return all values, for JSON."""
    content = {
        "about": calibration.about,
        "images": calibration.images,
        "failures": calibration.failures,
        "strengths": [_strength(each) for each in calibration.strengths],
    }
    return format_json(content)


def _strength(strength: Strength) -> dict[str, Any]:
    arm = strength.arm
    return {"corruption": arm.name, "severity": arm.level, "ms_ssim": strength.mean, "std": strength.std}


def _as_csv(calibration: Calibration) -> str:
    """Return a line for each corruption and severity."""
    return format_csv([_strength(each) for each in calibration.strengths])


# --- a proposal ----------------------------------------------------------------------------------


def format_proposal(proposal: Proposal, layout: str) -> str:
    """Return `proposal` as ``table``, ``json`` or ``csv``."""
    if layout == "json":
        return _proposal_as_json(proposal)
    if layout == "csv":
        return format_csv([_match(each) for each in proposal.matches])
    return "\n".join([*_about(proposal), "", *_matches(proposal.matches)])


def _about(proposal: Proposal) -> list[str]:
    missed = [each.arm.folder for each in proposal.matches if not each.gap.closed]
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


def _matches(matches: Iterable[Match]) -> list[str]:
    lines = [f"{'':22s} target reached  within  how"]
    for each in matches:
        end = "" if each.gap.closed else ", NOT REACHED"
        figures = f"{each.target:6.3f}  {each.reached:6.3f}  {each.gap.slack:6.3f}"
        lines.append(f"{each.arm.folder:22s} {figures}  {each.way}{end}")
    return lines


def _match(match: Match) -> dict[str, Any]:
    return {
        "corruption": match.arm.name,
        "severity": match.arm.level,
        "target": match.target,
        "reached": match.reached,
        "within": match.gap.slack,
        "closed": match.gap.closed,
        "way": match.way,
    }


def _proposal_as_json(proposal: Proposal) -> str:
    """Return all values, for JSON."""
    content = {
        name: getattr(proposal, name)
        for name in ("dataset", "size", "scales", "images", "enlarged", "seed", "failures")
    }
    matches = [_match(each) | {"parameters": each.constants} for each in proposal.matches]
    return format_json(content | {"matches": matches})


def write_config(proposal: Proposal) -> bytes:
    """Return a config for make-c: the constants under `parameters`, and their origin as comments."""
    lines = [*_about(proposal), "", *_matches(proposal.matches), ""]
    lines += ["robustgen make-c --config THIS --source FOLDER uses images unresized (edition folder)."]
    written = [f"# {line}".rstrip() for line in lines] + ["edition: folder", "parameters:"]
    name = ""
    for match in proposal.matches:
        written += [f"  {match.arm.name}:"] * (match.arm.name != name)
        name = match.arm.name
        values = ", ".join(f"{key}: {_number(value)}" for key, value in match.constants.items())
        written.append(f"    {match.arm.level}: {{{values}}}")
    return ("\n".join(written) + "\n").encode("utf-8", "backslashreplace")


def _number(value: float) -> str:
    """Return `value` without an exponent, which YAML would read as text."""
    return str(value) if isinstance(value, int) else f"{value:.10f}".rstrip("0") + "0" * (value == int(value))
