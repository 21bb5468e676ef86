"""Opening of stores and files by path or URL."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from robustgen.errors import OutputError, raise_as
from robustgen.files.storage.base import Store
from robustgen.files.storage.local import LocalStore

_URL = re.compile(r"[A-Za-z][\w+.:-]+://")


def is_url(text: object) -> bool:
    """Return whether `text` is a URL rather than a path; ``file://`` counts as a URL."""
    return bool(_URL.match(str(text)))


def open_store(location: str | os.PathLike[str], temporary: str | Path | None = None) -> Store:
    """Open the store of a folder, which may not exist yet.

    Parameters
    ----------
    location : path or URL
    temporary : path, optional
        Folder for the temporary files of a local store, on the same file system; by default its
        ``.robustgen/tmp``.

    Raises
    ------
    ArgumentError
        The scheme of the URL is unknown.
    MissingDependencyError
        The package for the scheme is not installed.

    Examples
    --------
    >>> from robustgen.plugins import open_store
    >>> store = open_store("out")
    >>> store.put("a.txt", b"hello")
    >>> store.read("a.txt"), store.exists("b.txt")
    (b'hello', False)
    """
    text = _text_of(location)
    if not is_url(text):
        return LocalStore(text, temporary)
    from robustgen.files.storage.remote import RemoteStore

    return RemoteStore(text)


def locate(location: str | os.PathLike[str]) -> tuple[Store, str]:
    """Return the store of the folder of a file, and the name of the file."""
    text = _text_of(location)
    if not is_url(text):
        folder, name = os.path.split(os.path.abspath(text))
        return LocalStore(folder), name
    folder, _, name = text.rstrip("/").rpartition("/")
    # Buckets and hosts count as folders.
    return (open_store(text), "") if folder.endswith("/") else (open_store(folder), name)


def _text_of(location: str | os.PathLike[str]) -> str:
    """Return a path or URL as text; a ``file://`` URL becomes a path, a `Path` of a URL becomes the URL."""
    text = os.fspath(location)
    if not isinstance(location, str) and not os.path.lexists(location):
        # A Path turns two slashes into one.
        text = re.sub(r"^([A-Za-z][\w+.-]+):/(?=[^/])", r"\1://", text)
    if not text.lower().startswith("file://"):
        return text
    return unquote(text[len("file://") :]).removeprefix("localhost")


@contextmanager
def open_log(path: str | os.PathLike[str], called: str) -> Iterator[Callable[[str], None]]:
    """Open a local file and yield a function that appends a line at once; messages name the file `called`.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    with raise_as(OutputError, called, OSError):
        # Without a buffer, the lines of several processes do not mix.
        file = open(path, "ab", buffering=0)  # noqa: SIM115

    def append(line: str) -> None:
        with raise_as(OutputError, called, OSError):
            file.write(f"{line}\n".encode("utf-8", "surrogateescape"))

    with file:
        yield append


def save(location: str | os.PathLike[str], data: bytes | Iterable[bytes], called: str = "") -> None:
    """Write a file chosen by the user, completely or not at all; messages name it `called`.

    Devices and pipes are written to, not replaced.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    parts = [data] if isinstance(data, bytes) else data
    with raise_as(OutputError, called or str(location), OSError):
        store, name = locate(location)
        path = Path(store.location, name)
        if store.is_local and path.exists() and not path.is_file():
            with path.open("wb") as special:
                special.writelines(parts)
            return
        if isinstance(store, LocalStore):
            store = LocalStore(store.location, temporary=store.location)
        with store.create(name) as file:
            file.writelines(parts)
