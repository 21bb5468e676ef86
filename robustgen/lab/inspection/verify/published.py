"""Recognition of files that equal those of a published set."""

from collections.abc import Collection, Mapping
from typing import Any

from robustgen.files.storage import Store
from robustgen.pixels.benchmarks.canonical import PUBLISHED_FILES
from robustgen.pixels.benchmarks.kinds import BENCHMARKS
from robustgen.sets.dataset.outputs import file_digest
from robustgen.sets.formats.base import prefetch


def find_published(
    store: Store, manifest: Mapping[str, Any], wrong: Collection[str], jobs: int
) -> dict[str, str]:
    """Return the files with the content of a published set's: path to the name of that set.

    `wrong` names paths with findings, and `jobs` is the number of threads that read files.
    """
    if manifest["kind"] != BENCHMARKS["c"].title or manifest["dataset"] not in PUBLISHED_FILES:
        return {}
    title, digests = PUBLISHED_FILES[manifest["dataset"]]
    paths = [path for path in digests if path not in wrong and store.exists(path)]
    found = prefetch(lambda path: file_digest(store, path, "md5"), paths, jobs)
    return {path: title for path, digest in zip(paths, found, strict=True) if digest == digests[path]}
