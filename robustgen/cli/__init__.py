"""The command line: each command reads its flags, calls one function, and prints the result.

`app` is the application, `options` the options that commands share, `execution` what every command
that makes a set does with its plan; each other module holds a command or a family of commands.

Commands import what they use inside: ``robustgen --help`` is not to wait for OpenCV and numba.
"""

from importlib import import_module

from robustgen.cli.app import main

__all__ = ["main"]

# The help lists the commands of each section in this order.
_MODULES = (
    *("make", "verify", "list"),
    *("preview", "report", "compare", "calibrate"),
    *("evaluate", "predict", "score", "stream"),
    *("augmix", "filter", "icons", "subtypes", "preprocess"),
)
for _module in _MODULES:
    import_module(f"{__name__}.{_module}")
