"""Names of the files that describe a set, as POSIX paths below its root."""

from typing import Final

STATE: Final = ".robustgen"
"""Folder of the output state."""
SUMS, FRAMES, MANIFEST, ERRORS = "SHA256SUMS", "FRAMES.SHA256", "dataset.json", "errors.jsonl"
MANIFEST_SUMS: Final = "MANIFEST.SHA256"
"""Checksums of the manifest and of the other files that describe the set, which `SUMS` does not list."""
