"""The choices of a user, described once."""

from robustgen.files.registry import read_entry_points

# Before pydantic reads those of all packages.
read_entry_points()
