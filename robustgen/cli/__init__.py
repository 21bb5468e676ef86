"""The command line: each command reads its flags, calls one function, and prints the result.

`app` is the application, `options` the options that commands share, and `execution` runs a plan and prints
its result. Each other module contains a command or a family of commands.

Commands import what they need inside their functions, so ``robustgen --help`` does not load OpenCV and numba.
"""

import sys
from importlib import import_module

# The help lists the commands of each section in this order.
_MODULES = (
    *("make", "run", "verify", "list", "croissant", "fetch", "warm"),
    *("preview", "report", "compare", "calibrate"),
    *("evaluate", "predict", "score", "score_detection", "score_segmentation", "stream"),
    *("augmix", "filter", "icons", "subtypes", "preprocess"),
)
try:
    from robustgen.cli.app import main

    for _module in _MODULES:
        import_module(f"{__name__}.{_module}")
except KeyboardInterrupt:
    # No command has started yet that could print this.
    sys.stderr.write("stopped\n")
    sys.exit(130)

__all__ = ["main"]
