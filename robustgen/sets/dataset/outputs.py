"""Outputs other than sets, such as predictions and shortlists: folders or URLs that a command writes to."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from robustgen.errors import OutputError, RobustgenError, WriteError
from robustgen.files.storage import Store, measure, open_store


@contextmanager
def open_output(location: str | Path, source: str) -> Iterator[Store]:
    """Open an output for a block, in which errors of its store become WriteErrors.

    Parameters
    ----------
    location : path or URL
    source : str
        Source of the output, which must not contain it.

    Raises
    ------
    OutputError
        `location` is a file, or is inside `source`.
    """
    store = open_store(location)
    if f"{store.location}/".startswith(f"{source}/"):
        raise OutputError(f"{store.location}: is inside the source {source}; choose another output")
    refuse_files(store)
    with name_output_in_errors(store):
        try:
            yield store
        finally:
            store.clean()


@contextmanager
def name_output_in_errors(store: Store) -> Iterator[None]:
    """Convert OSErrors of the block to WriteErrors that name the `store`."""
    try:
        yield
    except OSError as error:
        if isinstance(error, RobustgenError):
            raise
        raise WriteError(f"{store.location}: {error.strerror or error}") from error


def refuse_files(store: Store) -> None:
    """Raise an OutputError if a file has the path of a local store or of one of its parents."""
    place = Path(store.location)
    above = (place, *place.parents) if store.is_local else ()
    try:
        if file := next((each for each in above if each.exists() and not each.is_dir()), None):
            raise OutputError(f"{file}: is a file, not a folder")
    except OSError as error:
        raise OutputError(f"output {place} cannot be used: {error.strerror}") from error


def measure_file(store: Store, path: str, algorithm: str = "sha256") -> tuple[int, str]:
    """Return the size of a file in bytes, and its digest in hexadecimal."""
    with store.open(path) as file:
        return measure(file, algorithm)


def file_digest(store: Store, path: str, algorithm: str = "sha256") -> str:
    """Return the digest of a file in hexadecimal."""
    return measure_file(store, path, algorithm)[1]
