"""The command line: each command reads its flags, calls one function, and prints what came of it.

Commands import what they use inside: ``robustgen --help`` is not to wait for OpenCV and numba.
"""

from robustgen.cli import (
    augmenting,
    checking,
    comparing,
    filtering,
    icons,
    making,
    preprocess,
    preview,
    reporting,
    scoring,
    subtypes,
)
from robustgen.cli.group import main

__all__ = [
    "augmenting",
    "checking",
    "comparing",
    "filtering",
    "icons",
    "main",
    "making",
    "preprocess",
    "preview",
    "reporting",
    "scoring",
    "subtypes",
]
