"""Checks an output: against its own checksums and records, against its source, against another output."""

import os
from pathlib import Path

from robustgen.canonical import recognise
from robustgen.dataset.croissant import CROISSANT, find_difference
from robustgen.dataset.manifest import Summary, dataset_digest, make_cards, read_errors
from robustgen.dataset.names import MANIFEST
from robustgen.dataset.opening import check_folder
from robustgen.dataset.state import OutputState
from robustgen.dataset.verify.against import compare_outputs
from robustgen.dataset.verify.contents import check_contents
from robustgen.dataset.verify.findings import Finding as Finding
from robustgen.dataset.verify.findings import Findings as Findings
from robustgen.dataset.verify.manifest import check_manifest, check_state, read_manifest
from robustgen.dataset.verify.remaking import remake_images
from robustgen.errors import OutputError, RobustgenError, SourceError, WriteError
from robustgen.storage import open_store


def verify(
    root: str | Path,
    *,
    jobs: int | None = None,
    deep: str | None = None,
    source: str | None = None,
    against: str | None = None,
) -> Findings:
    """Check the output at `root`.

    Parameters
    ----------
    root : path or URL
    jobs : int, optional
        Threads that read files; default one a core.
    deep : str, optional
        How many images to make again from the source, or ``"all"``.
    source : path or URL, optional
        Where the source is now, if it has moved.
    against : str, optional
        Another output, or a dataset digest.

    Raises
    ------
    OutputError
        There is no output of robustgen at `root`.
    ArgumentError
        `deep` or `against` cannot be used.
    WriteError
        The manifest of merged shards cannot be written.
    """
    # What cannot be listed is a finding, and the rest is checked.
    store = open_store(root).passing_over_closed()
    try:
        check_folder(store)
    except SourceError as error:
        raise OutputError(str(error)) from None
    state = OutputState(store)
    if state.exists and not store.exists(MANIFEST):
        # The shards of a set were merged.
        try:
            with Summary(state) as summary:
                summary.finish()
        except PermissionError:
            pass
        except OSError as error:
            if isinstance(error, RobustgenError):
                raise
            raise WriteError(f"{store.location}: {error.strerror or error}") from error
    manifest, digest = read_manifest(store), dataset_digest(store)
    contents = check_contents(store, jobs or os.cpu_count() or 1, make_cards(manifest))
    problems = [*contents.findings, *check_manifest(store, manifest, digest, contents)]
    if state.exists:
        problems += check_state(state, manifest)
    if not problems and (difference := find_difference(manifest, store)):
        problems.append(Finding("changed", CROISSANT, difference))
    remade, differing = remake_images(store, manifest, deep, source) if deep else (0, [])
    problems += differing
    if against:
        problems += compare_outputs(store, against, digest)
    unfinished = any(finding.kind == "unfinished" for finding in problems)
    failed = [] if unfinished else sorted({entry["key"] for entry in read_errors(store)[0]})
    known_as = None if problems else recognise(digest, manifest.get("frames_digest"))
    return Findings(
        sorted(set(problems)), failed, manifest["images"], contents.files, remade, digest, known_as
    )
