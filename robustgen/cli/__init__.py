"""The command line: each command takes typed values, calls one function, and prints the result.

`app` is the application, `flags` derives flags from the models in `settings`, and `execution` runs a plan and
prints its result. Each other module contains a command or a family of commands.

A command's module is imported when the command is called, and commands import what they need inside their
functions, so no help loads NumPy, OpenCV or numba.
"""

import sys

try:
    from robustgen.cli.app import main
except KeyboardInterrupt:
    # No command has started yet that could print this.
    sys.stderr.write("stopped\n")
    sys.exit(130)

__all__ = ["main"]
