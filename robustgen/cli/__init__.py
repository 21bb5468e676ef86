"""The command line: each command reads its flags, calls one function, and prints the result.

`app` is the application, `options` the options that commands share, `execution` what every command
that makes a set does with its plan; each other module holds a command or a family of commands.

Commands import what they use inside: ``robustgen --help`` is not to wait for OpenCV and numba.
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
    # No command has begun, which would say so.
    sys.stderr.write("stopped\n")
    sys.exit(130)

__all__ = ["main"]
