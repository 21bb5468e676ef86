"""`python -m robustgen` is the `robustgen` command."""

from robustgen.cli import main

main(prog_name="robustgen")
