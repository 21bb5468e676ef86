#!/usr/bin/env python3
"""Finds the constants for sizes that have no published ones, and writes them into the package.

    python scripts/calibrate_sizes.py [--check] [SIZE ...]

The sample is what everyone has: the eight photographs inside scikit-image. Each corruption and severity gets
what `robustgen calibrate --dataset demo --corruptions all --for-size SIZE` finds: constants at which the mean
MS-SSIM is that of the published ones at 224 pixels. Writes
`robustgen/pixels/benchmarks/calibrated_constants.json` and the table `docs/background/calibrated.md`; what
cannot be reached to within 0.01 is named. With --check nothing is sought: what the package holds is measured,
and the exit status is 1 if a severity is more than 0.01 off.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from robustgen.lab.inspection.matching import propose_constants, remeasure_constants
from robustgen.pixels.benchmarks.parameters import read_calibrated_constants
from robustgen.pixels.benchmarks.registry import CALIBRATED_SCALES
from robustgen.settings.config import Config
from robustgen.settings.loading import load
from robustgen.settings.yaml_files import dataset_file

ROOT = Path(__file__).parents[1]
CONSTANTS, TABLE = (
    ROOT / "robustgen" / "pixels" / "benchmarks" / "calibrated_constants.json",
    ROOT / "docs" / "background" / "calibrated.md",
)
TOLERANCE = 0.01
HEAD = """# Constants for 256, 336, 384 and 448 pixels: how well they fit

Written by `scripts/calibrate_sizes.py`. The values are the mean MS-SSIM over the eight photographs inside
scikit-image, seed 0: with the published constants at 224 pixels, and with robustgen's own at each other size.
[Calibrate](../use/calibrate.md) explains these constants.

| corruption, severity | 224 | 256 | 336 | 384 | 448 |
|---|---|---|---|---|---|
"""
# Numbers of distinct values of a channel, and MS-SSIM at the factor of 0.05, on the same photographs.
SHADES = """
`contrast/5` leaves fewer shades in a larger image: 12.5 of a channel at 224 pixels (factor 0.05),
10.8 at 256, 5 at 336, 4 at 384, and 1.7 at 448 (factor 0.003). The means of SSIM's window and of the halved
images, which contrast does not change, have more weight in a larger image: with 12.9 shades at 448 the
MS-SSIM would be 0.437 instead of 0.364. Severities 4 and 5 cannot both keep their MS-SSIM and the number of
shades, because severity 4 has the factor 0.05 there. To keep the shades, use the published constants:
`--set constants_for=224`.
"""


def measure(size, check):
    choices = load(Config, dataset_file("demo"), {"corruptions": "all"})
    if check:
        return remeasure_constants(choices, size, read_calibrated_constants()[str(size)])
    return propose_constants(choices, size)


def write(proposals):
    constants: dict[str, dict[str, Any]] = {}
    for proposal in proposals:
        for match in proposal.matches:
            of_size = constants.setdefault(str(proposal.size), {})
            of_size.setdefault(match.variant.name, {})[str(match.variant.level)] = match.constants
    CONSTANTS.write_text(json.dumps(constants, indent=1) + "\n")
    rows = [
        f"| {first.variant.folder} | {first.target:.3f} | "
        + " | ".join(f"{each.reached:.3f}" for each in (first, *others))
        + " |\n"
        for first, *others in zip(*(proposal.matches for proposal in proposals), strict=True)
    ]
    missed = ", ".join(
        f"`{match.variant.folder}` at {proposal.size} ({match.reached - match.target:+.3f})"
        for proposal in proposals
        for match in proposal.matches
        if not abs(match.reached - match.target) <= TOLERANCE
    )
    TABLE.write_text(HEAD + "".join(rows) + f"\nMore than {TOLERANCE} off: {missed or 'none'}.\n" + SHADES)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="measure what the package holds")
    parser.add_argument("sizes", nargs="*", type=int, metavar="SIZE", help="check these alone")
    given = parser.parse_args()
    proposals = [measure(size, given.check) for size in given.sizes or CALIBRATED_SCALES]
    if not (given.check or given.sizes):
        write(proposals)
    missed = [
        f"{proposal.size}: {match.variant.folder} has {match.reached:.3f} instead of {match.target:.3f}"
        for proposal in proposals
        for match in proposal.matches
        if not abs(match.gap.miss) <= TOLERANCE
    ]
    print(*missed, f"{len(missed)} of {sum(len(each.matches) for each in proposals)} missed", sep="\n")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
