"""Verification of an output against its checksums, its records, its source or another output."""

import os
from pathlib import Path
from typing import Any

from robustgen.errors import ConfigError, OutputError, SourceError
from robustgen.files.ledger import Standing
from robustgen.files.set_files import MANIFEST, check_folder
from robustgen.files.storage import Store, open_store
from robustgen.lab.inspection.verify.contents import Finding as Finding
from robustgen.lab.inspection.verify.contents import Findings as Findings
from robustgen.lab.inspection.verify.contents import check_contents, compare_outputs
from robustgen.lab.inspection.verify.manifest import check_manifest
from robustgen.lab.inspection.verify.published import find_published
from robustgen.lab.inspection.verify.remaking import remake_images
from robustgen.pixels.benchmarks.canonical import recognise
from robustgen.sets.dataset.manifest import (
    check_about,
    dataset_digest,
    describe,
    finish,
    list_about,
    read_errors,
    read_manifest,
)
from robustgen.sets.dataset.opening import name_command
from robustgen.sets.dataset.outputs import name_output_in_errors
from robustgen.sets.dataset.state import SetLedger


def verify(
    root: str | Path,
    *,
    jobs: int | None = None,
    deep: int | str | None = None,
    source: str | None = None,
    against: str | None = None,
) -> Findings:
    """Check the output at `root`.

    Parameters
    ----------
    root : path or URL
    jobs : int, optional
        Number of threads that read files; default one per core.
    deep : int or str, optional
        Number of images to recreate from the source, or ``"all"``.
    source : path or URL, optional
        Current location of the source, if it has moved.
    against : str, optional
        Another output, or a dataset digest.

    Raises
    ------
    OutputError
        `root` is not an output of robustgen.
    ArgumentError
        `deep`, `source` or `against` cannot be used.
    WriteError
        The manifest of merged shards cannot be written.
    """
    if source and deep is None:
        raise ConfigError("--source needs --deep: it is the current location of the source")
    store = open_store(root)
    try:
        check_folder(store)
    except SourceError as error:
        raise OutputError(str(error)) from None
    state = SetLedger(store)
    if state.exists and not store.exists(MANIFEST):
        if state.standing() >= Standing.COPIED:
            remedy = f"{name_command(describe(state)['kind'])} writes it again"
            raise OutputError(f"{store.location}: its {MANIFEST} was deleted, or a run was stopped; {remedy}")
        # Merged shards have no manifest yet.
        with name_output_in_errors(store):
            finish(state)
            store.clean()
    manifest, digest, jobs = read_finished(store), dataset_digest(store), jobs or os.cpu_count() or 1
    problems, counts = check_contents(store, jobs, list_about(manifest))
    published = find_published(store, manifest, {finding.path for finding in problems}, jobs)
    problems += check_manifest(store, manifest, digest, None if problems else counts)
    detailed = {(each.kind, each.path) for each in problems}
    problems += (Finding(*each) for each in check_about(store, manifest) if each not in detailed)
    remade, differing = remake_images(store, manifest, str(deep), source) if deep is not None else (0, [])
    problems += differing
    if against:
        problems += compare_outputs(store, against, digest)
    unfinished = any(finding.kind == "unfinished" for finding in problems)
    failed = [] if unfinished else sorted({entry["key"] for entry in read_errors(store)[0]})
    known_as = None if problems else recognise(digest, manifest.get("frames_digest"))
    checked = sum(files for files, _ in counts.values())
    problems = sorted(set(problems))
    return Findings(problems, failed, manifest["images"], checked, remade, digest, known_as, published)


def read_finished(store: Store) -> dict[str, Any]:
    """Return the manifest of a finished output.

    Raises
    ------
    OutputError
        There is no manifest, or robustgen did not write it.
    """
    try:
        return read_manifest(store)
    except FileNotFoundError:
        raise OutputError(
            f"{store.location} contains no {MANIFEST}; it is not a finished output of robustgen"
        ) from None
