"""A `Calibration` or `Proposal` as text, JSON, CSV, a chart, and the YAML that make-c takes."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from robustgen.calibrate.matching import TOLERANCE, Match, Proposal
from robustgen.calibrate.strengths import Calibration, Strength
from robustgen.display import html
from robustgen.display.charts import COLOURS, chart
from robustgen.display.text import format_count, format_csv
from robustgen.registry import CATEGORIES

_RULE = "the 2018 draft's rule: about 0.9 at severity 1, for most corruptions about 0.5 at severity 5"


def as_text(calibration: Calibration) -> str:
    """A line for each corruption, a column for each severity."""
    by_name: dict[str, list[Strength]] = {}
    for each in calibration.strengths:
        by_name.setdefault(each.arm.name, []).append(each)
    levels = sorted({each.arm.level for each in calibration.strengths})
    width = max(map(len, by_name))
    images = format_count(calibration.images, "image")
    lines = [f"MS-SSIM, mean over {images} ({html.plain(calibration.about)})", ""]
    lines.append(" " * width + "".join(f"{level:8d}" for level in levels))
    lines += [f"{name:{width}s}" + "".join(f"{s.mean:8.3f}" for s in row) for name, row in by_name.items()]
    return "\n".join([*lines, "", f"({_RULE})"])


def as_json(calibration: Calibration) -> str:
    """All there is."""
    content = {
        "about": calibration.about,
        "images": calibration.images,
        "failures": calibration.failures,
        "strengths": [_strength(each) for each in calibration.strengths],
    }
    return json.dumps(content, indent=1)


def _strength(strength: Strength) -> dict[str, Any]:
    arm = strength.arm
    return {"corruption": arm.name, "severity": arm.level, "ms_ssim": strength.mean, "std": strength.std}


def as_csv(calibration: Calibration) -> str:
    """A line for each corruption and severity."""
    return format_csv([_strength(each) for each in calibration.strengths])


def plot(calibration: Calibration, path: Path) -> None:
    """Draw MS-SSIM against severity, a panel for each category, into a PNG, SVG or PDF file.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    chart(path, lambda figure: _draw_strengths(figure, calibration))


def _draw_strengths(figure: Any, calibration: Calibration) -> None:
    panels = figure.subplots(1, len(CATEGORIES), sharey=True)
    for axes, category in zip(panels, CATEGORIES, strict=True):
        members = [each for each in calibration.strengths if each.category == category]
        for i, name in enumerate(dict.fromkeys(each.arm.name for each in members)):
            points = [(each.arm.level, each.mean) for each in members if each.arm.name == name]
            look = {"color": COLOURS[i % len(COLOURS)], "marker": "o", "markersize": 4}
            axes.plot(*zip(*points, strict=True), label=name.replace("_", " "), **look)
        # What the 2018 draft wants at severity 1, and for most at severity 5.
        for level, wanted in ((1, 0.9), (5, 0.5)):
            axes.plot(level, wanted, "x", color="grey", markersize=9)
        axes.set(title=category.capitalize(), xlabel="Severity", ylim=(0, 1.02), xticks=range(1, 6))
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[1]:
            axes.legend(frameon=False, fontsize=8, loc="lower left")
    panels[0].set_ylabel("MS-SSIM to the clean image")


# --- a proposal ----------------------------------------------------------------------------------


def proposal_as_text(proposal: Proposal) -> str:
    """A line for each corruption and severity."""
    return "\n".join([*_about(proposal), "", *_matches(proposal.matches)])


def _about(proposal: Proposal) -> list[str]:
    missed = [each.arm.folder for each in proposal.matches if not each.gap.closed]
    counted = f"{len(proposal.matches) - len(missed)} of {len(proposal.matches)} targets reached"
    return [
        f"Constants for images of {proposal.size} x {proposal.size} pixels.",
        f"MS-SSIM ({proposal.scales} scales), mean over {format_count(proposal.images, 'image')} of "
        f"{html.plain(proposal.dataset)}, seed {proposal.seed}:",
        "target at 224 pixels with the published constants, and what these reach at the new size.",
        f"{counted}, to within {TOLERANCE} or, where images are corrupted at random, one standard error.",
        *([f"Not reached: {', '.join(missed)}."] * bool(missed)),
        *([f"Enlarged, because they were smaller: {proposal.enlarged}."] * bool(proposal.enlarged)),
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


def proposal_as_json(proposal: Proposal) -> str:
    """All there is."""
    content = {
        name: getattr(proposal, name)
        for name in ("dataset", "size", "scales", "images", "enlarged", "seed", "failures")
    }
    matches = [_match(each) | {"parameters": each.constants} for each in proposal.matches]
    return json.dumps(content | {"matches": matches}, indent=1)


def proposal_as_csv(proposal: Proposal) -> str:
    """A line for each corruption and severity."""
    return format_csv([_match(each) for each in proposal.matches])


def proposal_as_yaml(proposal: Proposal) -> bytes:
    """A config for make-c: the constants under `parameters`, and how they came about as comments."""
    lines = [*_about(proposal), "", *_matches(proposal.matches), ""]
    lines += ["robustgen make-c --config THIS --source FOLDER takes the images as they are (edition folder)."]
    written = [f"# {line}".rstrip() for line in lines] + ["edition: folder", "parameters:"]
    name = ""
    for match in proposal.matches:
        written += [f"  {match.arm.name}:"] * (match.arm.name != name)
        name = match.arm.name
        values = ", ".join(f"{key}: {_number(value)}" for key, value in match.constants.items())
        written.append(f"    {match.arm.level}: {{{values}}}")
    return ("\n".join(written) + "\n").encode("utf-8", "backslashreplace")


def _number(value: float) -> str:
    """`value` without an exponent, which YAML would take for text."""
    return str(value) if isinstance(value, int) else f"{value:.10f}".rstrip("0") + "0" * (value == int(value))
