"""Checks an output: against its own checksums and records, against its source, against another output."""

import errno
import os
from pathlib import Path

from robustgen.errors import OutputError, WriteError
from robustgen.output.files import MANIFEST
from robustgen.output.manifest import Tally, card_files, dataset_digest, write_manifest
from robustgen.output.state import State, lock_output, read_object
from robustgen.verify.against import compare_outputs
from robustgen.verify.contents import check_contents
from robustgen.verify.findings import Finding as Finding
from robustgen.verify.findings import Findings as Findings
from robustgen.verify.records import check_manifest, check_state, name_damaged, read_manifest
from robustgen.verify.remaking import remake_images


def verify(
    root: Path,
    *,
    jobs: int | None = None,
    deep: str | None = None,
    source: Path | None = None,
    against: str | None = None,
) -> Findings:
    """Check the output at `root`.

    Parameters
    ----------
    root : Path
    jobs : int, optional
        Threads that read files; default one a core.
    deep : str, optional
        How many images to make anew from the source, or ``"all"``.
    source : Path, optional
        Where the source is now, if it is not where it was.
    against : str, optional
        Folder of another output, or a dataset digest.

    Raises
    ------
    OutputError
        There is no output of robustgen at `root`.
    ArgumentError
        `deep` or `against` cannot be used.
    WriteError
        The disk is full.
    """
    if not root.is_dir():
        raise OutputError(f"{root}: no such folder")
    has_state = State(root).has_about
    problems = _complete_manifest(root) if has_state else []
    manifest, digest = read_manifest(root), dataset_digest(root)
    contents = check_contents(root, jobs or os.cpu_count() or 1, card_files(manifest))
    problems += [*contents.findings, *check_manifest(root, manifest, digest, contents)]
    if has_state:
        problems += check_state(root, manifest)
    remade, differing = remake_images(root, manifest, deep, source) if deep else (0, [])
    problems += differing
    if against:
        problems += compare_outputs(root, against, digest)
    return Findings(sorted(set(problems)), contents.files, remade, digest)


def _complete_manifest(root: Path) -> list[Finding]:
    """Write the checksums and the manifest of merged shards, unless all one may do here is read.

    Returns
    -------
    list of Finding
        Why nothing was written: the journals are damaged, and what they lack would be left out.
    """
    try:
        with lock_output(root):
            if _is_complete(root):
                return []
            tally = Tally(root)
            if tally.damaged:
                return list(name_damaged(root, tally))
            write_manifest(root, tally)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise WriteError(f"{root}: {error.strerror or error}") from error
    return []


def _is_complete(root: Path) -> bool:
    """Whether the manifest speaks of a complete output: then it is evidence, not to be touched."""
    return (root / MANIFEST).exists() and bool(read_object(root / MANIFEST).get("complete"))
